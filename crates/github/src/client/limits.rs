//! The limits of the client.

/// The maximum size of a response.
pub const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The maximum size of an error response.
pub const REFUSAL_BYTES_MAX: usize = 64 * 1024;
/// The maximum length of GitHub's message in an error.
pub const MESSAGE_CHARS_MAX: usize = 600;
/// The number of items requested per page.
pub const PAGE_ITEMS: usize = 100;
/// The maximum number of pages of a list.
pub const PAGES_MAX: usize = 30;
/// The maximum length of a login.
pub const LOGIN_BYTES_MAX: usize = 100;
/// The maximum length of a repository name.
pub const REPOSITORY_BYTES_MAX: usize = 100;
/// The maximum length of a branch name.
pub const BRANCH_BYTES_MAX: usize = 250;
/// The maximum length of a label.
pub const LABEL_CHARS_MAX: usize = 50;
/// GitHub's maximum length of a comment or of the text of an issue.
pub const TEXT_CHARS_MAX: usize = 65_536;
/// The wait after a secondary rate limit if GitHub does not say how long it lasts.
pub const SECONDARY_WAIT_MS: u64 = 60_000;
