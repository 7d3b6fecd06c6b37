//! Child processes, the walls around them, and paths beneath a folder.
//!
//! - [`process`] starts, supervises and ends programs, with limits on what they and their descendants use together.
//! - [`confinement`] is the sandbox: what a confined program may read, write and reach, and the guard of protected paths.
//! - [`program`] runs one confined program to its end.
//! - [`workplace`] describes the folder that a run works in; [`beneath`] resolves the paths of tools in it, and [`protected`] lists
//!   the paths that nothing may change.
//!
//! This crate knows no agents: git calls and checks run through it as well.

pub mod beneath;
pub mod confinement;
pub mod limits;
pub mod process;
pub mod program;
pub mod protected;
#[cfg(test)]
mod testing;
pub mod workplace;
