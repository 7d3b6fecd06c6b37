//! Self-improvement: analyses failures, remembers them, and repairs them with what worked before. A
//! failure counts as repaired only when the checks pass.

pub mod analyse;
pub mod error;
pub mod memory;
pub mod recover;
pub mod signature;
pub mod verify;
