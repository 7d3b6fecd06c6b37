//! The stages of selection, in the order in which they run. Each is one file, uses only the task and the
//! index or the triggers, and can be switched off.

pub(crate) mod calibrate;
mod case_folding;
pub(crate) mod context;
mod events;
pub(crate) mod exclusions;
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
