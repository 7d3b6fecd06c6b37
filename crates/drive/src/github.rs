//! The driver for GitHub: from an event to work on a branch, and back to a comment.

pub mod automerge;
pub mod base;
pub mod codes;
pub mod credentials;
pub mod grant;
pub mod mode;
pub mod protected;
pub mod publish;
pub mod run;
pub mod tasks;
pub mod template;
pub mod tracking;
