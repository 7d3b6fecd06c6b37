//! The stages of selection, in the order in which they run. Each is one file, uses only the task and the
//! index or the triggers, and can be switched off.

pub(crate) mod calibrate;
pub(crate) mod context;
pub(crate) mod contra;
mod events;
mod fold;
pub(crate) mod fusion;
mod hints;
pub(crate) mod lexical;
mod literals;
mod negatives;
mod paths;
mod patterns;
mod phrases;
pub(crate) mod semantic;
pub(crate) mod triggers;
