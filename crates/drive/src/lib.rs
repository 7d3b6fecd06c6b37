//! Drivers: what keeps an agent at work beyond one run. [`conversation`] is the first of them.

pub mod conversation;
pub mod limits;
pub mod usage;

pub use conversation::{Driver, Store, StoreError, Talk};
pub use usage::SkillUse;
