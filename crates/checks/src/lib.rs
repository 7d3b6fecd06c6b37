//! Self-improvement: what went wrong is read, remembered, and mended with what helped before. Nothing counts as mended until
//! the checks say so.

pub mod analyse;
pub mod declared;
pub mod error;
pub mod limits;
pub mod memory;
pub mod protected_files;
pub mod recover;
pub mod signature;
pub mod verify;
