//! Self-improvement: analyses failures, remembers them, and repairs them with what worked before. A
//! failure counts as repaired only when the checks pass.

pub mod analyse;
pub mod declared;
pub mod error;
pub mod limits;
pub mod memory;
pub mod protected_files;
pub mod recover;
pub mod signature;
pub mod verify;
