//! Caps on what GitHub, and the people who write there, may send.

/// Largest event file that is read. GitHub sends no payload above 25 MB.
pub const EVENT_BYTES_MAX: u64 = 25 * 1024 * 1024;

/// Longest text of a comment, an issue or a review. GitHub takes 65,536 characters of up to four bytes.
pub const TEXT_BYTES_MAX: usize = 256 * 1024;

/// Longest title, label, branch, file name or other thing of one line that is shown.
pub const LINE_CHARS_MAX: usize = 256;

/// Most labels, assignees and inputs of one event.
pub const LIST_MAX: usize = 200;

/// Longest name of an account, a repository or an event.
pub const NAME_BYTES_MAX: usize = 100;

/// How often a text is gone through until nothing more is found in it.
pub const CLEAN_PASSES_MAX: usize = 6;
