//! GitHub integration: reading events ([`event`]), deciding whether they trigger work ([`trigger`])
//! and who may ask for it ([`actor`]), sanitising untrusted text ([`stranger`]), and calling the
//! API ([`client`]).
//!
//! Everything except the client is a pure function over values. Nothing here depends on skills,
//! agents or runs.

pub mod actor;
pub mod client;
pub mod comment;
pub mod event;
pub mod limits;
pub mod outputs;
pub mod stranger;
pub mod trigger;
