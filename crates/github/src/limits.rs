//! Caps on what GitHub, and the people who write there, may send.

use std::time::Duration;

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

/// Most characters of a comment of ours, with all that is folded in it; GitHub takes 65,536.
pub const COMMENT_CHARS_MAX: usize = 60_000;

/// Most characters of a pull request's text.
pub const PULL_BODY_CHARS_MAX: usize = 30_000;

/// Most characters of a pull request's title.
pub const PULL_TITLE_CHARS_MAX: usize = 120;

/// Most tasks of one source that are looked at, and of one run that a mode may ask for.
pub const TASKS_MAX: usize = 1_000;

/// Largest file of tasks that is read.
pub const TASKS_FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Most characters of a task's title.
pub const TASK_TITLE_CHARS_MAX: usize = 300;

/// Most characters of a task's text.
pub const TASK_BODY_CHARS_MAX: usize = 40_000;

/// Most characters of what an agent said that a dead letter has as its question.
pub const LETTER_QUESTION_CHARS_MAX: usize = 1_000;

/// How long the label of a run at work holds others back, if nobody says otherwise: as long as a job on GitHub may take.
pub const CLAIM_LEASE: Duration = Duration::from_secs(6 * 60 * 60);

/// Longest pause between tasks that a mode may ask for.
pub const DELAY_MS_MAX: u64 = 60 * 60 * 1_000;

/// Most comments of a discussion that an agent is given.
pub const THREAD_COMMENTS_MAX: usize = 50;

/// Most authors of a discussion whose rights are asked for.
pub const THREAD_AUTHORS_MAX: usize = 10;

/// Most bytes of a pull request's changes that an agent is given.
pub const PROMPT_DIFF_BYTES_MAX: usize = 64 * 1024;

/// Most links that are followed until a file is found.
pub const LINK_STEPS_MAX: usize = 8;

/// Longest target of a link that is followed.
pub const LINK_BYTES_MAX: u64 = 4_096;

/// How often pending checks are looked at.
pub const MERGE_POLL: Duration = Duration::from_secs(10);

/// How long the first check of a merged commit may take to begin.
pub const MERGE_WATCH_APPEAR: Duration = Duration::from_secs(60);

/// Most pull requests that are looked at when no event names one.
pub const MERGE_PULLS_MAX: usize = 20;

/// Longest line that says where a pull request comes from.
pub const ORIGIN_BYTES_MAX: usize = 4 * 1024;

/// How often a merge starts again because the head moved.
pub const MERGE_RESTARTS_MAX: u32 = 3;
