//! The stages, in the order in which they run. Each is a file, looks at the task and the index or the triggers
//! alone, and can be switched off.

pub(crate) mod calibrate;
pub(crate) mod context;
pub(crate) mod contra;
pub(crate) mod fusion;
pub(crate) mod lexical;
pub(crate) mod semantic;
pub(crate) mod triggers;
