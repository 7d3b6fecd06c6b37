//! The caps of the client.

/// Most bytes of an answer that are read.
pub const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Most bytes of a refusal that are read.
pub const REFUSAL_BYTES_MAX: usize = 64 * 1024;
/// Most characters of GitHub's own words in an error.
pub const MESSAGE_CHARS_MAX: usize = 600;
/// Items that are asked for at once.
pub const PAGE_ITEMS: usize = 100;
/// Most pages of a list.
pub const PAGES_MAX: usize = 30;
/// Longest name of an account.
pub const LOGIN_BYTES_MAX: usize = 100;
/// Longest name of a repository.
pub const REPOSITORY_BYTES_MAX: usize = 100;
/// Longest name of a branch.
pub const BRANCH_BYTES_MAX: usize = 250;
/// Longest name of a label.
pub const LABEL_CHARS_MAX: usize = 50;
/// Longest text that GitHub takes as a comment, or as the text of an issue.
pub const TEXT_CHARS_MAX: usize = 65_536;
/// How long to wait when GitHub says that it was too much at once, and not until when.
pub const SECONDARY_WAIT_MS: u64 = 60_000;
