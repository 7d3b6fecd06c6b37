//! The stages, in the order in which they run. Each is a file, looks at the task and the index or the triggers
//! alone, and can be switched off.

#[cfg_attr(not(test), expect(dead_code, reason = "called by the selector"))]
pub(crate) mod events;
mod fold;
pub(crate) mod fusion;
#[cfg_attr(not(test), expect(dead_code, reason = "called by the selector"))]
pub(crate) mod hints;
pub(crate) mod lexical;
mod literals;
#[cfg_attr(not(test), expect(dead_code, reason = "called by the selector"))]
pub(crate) mod negatives;
#[cfg_attr(not(test), expect(dead_code, reason = "called by the selector"))]
pub(crate) mod paths;
#[cfg_attr(not(test), expect(dead_code, reason = "called by the selector"))]
pub(crate) mod patterns;
#[cfg_attr(not(test), expect(dead_code, reason = "called by the selector"))]
pub(crate) mod phrases;
pub(crate) mod semantic;
