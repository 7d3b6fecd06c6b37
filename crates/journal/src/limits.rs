//! The caps of this crate.

/// Most characters of a reason, a note or an error in an event; what is longer is cut, and says so.
pub const TEXT_CHARS_MAX: usize = 8 * 1024;
/// Largest payload of one event.
pub const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;
/// Most names that one event lists.
pub const NAMES_MAX: usize = 1_000;
