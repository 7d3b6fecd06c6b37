//! GitHub integration: from an event to work on a branch, and back to a comment.
//!
//! - [`event`] reads an event, [`trigger`] decides whether it triggers work, and [`actor`] who may ask for it.
//! - [`untrusted`] sanitises text of contributors, and [`client`] calls the API.
//! - [`mode`] chooses how to respond, [`run`] does the work, [`publish`] and [`automerge`] deliver it, and [`tracking`]
//!   reports it.
//!
//! `actor`, `event`, `trigger` and `untrusted` are pure functions over values.

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
