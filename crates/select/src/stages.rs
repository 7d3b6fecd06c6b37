//! The stages, in the order in which they run. Each is a file, looks at the task and the index or the triggers
//! alone, and can be switched off.

pub mod fusion;
pub mod lexical;
pub mod semantic;
