//! The git program, run in the sandbox, and worktrees for runs.
//!
//! - [`diff`] parses git's unified diffs and other patches.
//! - [`repo`] calls git on one repository: status, diffs, commits, pushes.
//! - [`worktree`] creates, finishes, repairs and prunes the worktrees of runs.
//!
//! Every call that touches a repository runs without network and without secrets; see [`repo`].

pub mod diff;
pub mod limits;
pub mod repo;
pub mod worktree;
