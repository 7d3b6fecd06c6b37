//! Self-improvement: what went wrong is read, remembered, and mended with what helped before. Nothing counts as mended until
//! the checks say so.

pub mod analyse;
pub mod error;
pub mod memory;
pub mod recover;
pub mod signature;
pub mod verify;
