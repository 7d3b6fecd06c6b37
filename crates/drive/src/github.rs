//! The GitHub driver: turns an event into work on a branch, and reports in a comment.

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
