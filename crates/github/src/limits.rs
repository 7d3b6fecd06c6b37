//! Caps on what GitHub, and the people who write there, may send.

use std::time::Duration;

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

/// Maximum number of characters of a comment that we post, folded sections included. GitHub's own
/// limit is 65,536.
pub const COMMENT_CHARS_MAX: usize = 60_000;

/// Maximum number of characters of a pull request's body.
pub const PULL_BODY_CHARS_MAX: usize = 30_000;

/// Maximum number of characters of a pull request's title.
pub const PULL_TITLE_CHARS_MAX: usize = 120;

/// Maximum number of tasks read from one source, and that a mode may request for one run.
pub const TASKS_MAX: usize = 1_000;

/// Maximum size of a task file.
pub const TASKS_FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Maximum number of characters of a task's title.
pub const TASK_TITLE_CHARS_MAX: usize = 300;

/// Maximum number of characters of a task's text.
pub const TASK_BODY_CHARS_MAX: usize = 40_000;

/// Maximum number of characters of an agent's answer that become the question of a dead letter.
pub const LETTER_QUESTION_CHARS_MAX: usize = 1_000;

/// Default time for which the in-progress label of a run blocks other runs: the longest time that a
/// job on GitHub may take.
pub const CLAIM_LEASE: Duration = Duration::from_secs(6 * 60 * 60);

/// Maximum pause between tasks that a mode may request.
pub const DELAY_MS_MAX: u64 = 60 * 60 * 1_000;

/// Maximum number of comments of a thread in a prompt.
pub const THREAD_COMMENTS_MAX: usize = 50;

/// Maximum number of authors of a thread whose permissions are looked up.
pub const THREAD_AUTHORS_MAX: usize = 10;

/// Maximum number of bytes of a pull request's diff in a prompt.
pub const PROMPT_DIFF_BYTES_MAX: usize = 64 * 1024;

/// Maximum number of symbolic links followed to find a file.
pub const LINK_STEPS_MAX: usize = 8;

/// Maximum length of a symbolic link's target.
pub const LINK_BYTES_MAX: u64 = 4_096;

/// Interval at which pending checks are polled.
pub const MERGE_POLL: Duration = Duration::from_secs(10);

/// Timeout for the first check of a merged commit to appear.
pub const MERGE_WATCH_APPEAR: Duration = Duration::from_secs(60);

/// Maximum number of pull requests examined when no event names one.
pub const MERGE_PULLS_MAX: usize = 20;

/// Maximum length of the line that records a pull request's origin.
pub const ORIGIN_BYTES_MAX: usize = 4 * 1024;

/// Maximum number of times a merge restarts because the head moved.
pub const MERGE_RESTARTS_MAX: u32 = 3;
