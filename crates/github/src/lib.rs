//! GitHub integration: reading events ([`event`]), deciding whether they trigger work ([`trigger`])
//! and who may ask for it ([`actor`]), sanitising untrusted text ([`untrusted`]), and calling the
//! API ([`client`]).
//!
//! Everything except the client is a pure function over values. Nothing here depends on skills,
//! agents or runs.

pub mod actor;
pub mod automerge;
pub mod base;
pub mod client;
pub mod codes;
pub mod comment;
pub mod credentials;
pub mod event;
pub mod grant;
pub mod limits;
pub mod mode;
pub mod outputs;
pub mod publish;
pub mod run;
pub mod tasks;
pub mod template;
pub mod tracking;
pub mod trigger;
pub mod untrusted;
