//! Limits on input from GitHub and its users.

/// The maximum size of an event file. GitHub sends no payload above 25 MB.
pub const EVENT_BYTES_MAX: u64 = 25 * 1024 * 1024;

/// The maximum size of a comment, an issue or a review. GitHub allows 65,536 characters of up to
/// four bytes.
pub const TEXT_BYTES_MAX: usize = 256 * 1024;

/// The maximum length of a title, label, branch, file name or other text of one line.
pub const LINE_CHARS_MAX: usize = 256;

/// The maximum number of labels, assignees or inputs of one event.
pub const LIST_MAX: usize = 200;

/// The maximum length of the name of an account, a repository or an event.
pub const NAME_BYTES_MAX: usize = 100;

/// The maximum number of sanitising passes over a text before it is neutralised bluntly.
pub const CLEAN_PASSES_MAX: usize = 6;
