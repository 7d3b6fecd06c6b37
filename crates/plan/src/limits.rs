//! The caps on plan files and on runs of plans.

use std::time::Duration;

/// Maximum size of a plan file.
pub const PLAN_BYTES_MAX: usize = 1024 * 1024;
/// Maximum number of tasks in a plan.
pub const PLAN_TASKS_MAX: usize = 2_000;
/// Maximum length of a line of a plan.
pub const PLAN_LINE_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of headings in a plan.
pub const PLAN_SECTIONS_MAX: usize = 2_000;
/// Maximum total number of blockers of a plan's tasks and sections.
pub const PLAN_BLOCKERS_MAX: usize = 10_000;
/// Maximum nesting depth of tasks; deeper tasks count as being at this depth.
pub const PLAN_NESTING_MAX: usize = 16;
/// Maximum number of lines in a task's text; the lines after them are details.
pub const PLAN_TEXT_LINES_MAX: usize = 100;
/// Maximum number of skills a task names, including those of the sections above it.
pub const PLAN_HINTS_MAX: usize = 32;
/// Maximum length of a note written below a task.
pub const PLAN_NOTE_BYTES_MAX: usize = 1_000;
/// Number of characters above which a task's text is too long for one iteration.
pub const PLAN_TASK_CHARS_MAX: usize = 600;
/// Most findings about one plan file that are reported.
pub const PLAN_FINDINGS_MAX: usize = 200;

/// Number of past steps of a plan run that the watchdog compares.
pub const HISTORY_MAX: usize = 64;

/// Consecutive interrupted steps (the worker died) on one task before the run waits for a person.
pub const INTERRUPTIONS_MAX: u32 = 5;

/// Maximum number of tasks or files named in one sentence.
pub const NAMES_SHOWN: usize = 10;

/// Maximum number of characters of a task's label in the journal.
pub const TASK_LABEL_CHARS_MAX: usize = 200;

/// Maximum number of characters of one learning.
pub const LEARNING_CHARS_MAX: usize = 600;

/// Maximum number of events recorded at once after a plan file was edited by hand.
pub const PLAN_EVENTS_MAX: usize = 500;

/// Maximum number of findings kept of a review.
pub const FINDINGS_MAX: usize = 50;

/// Maximum number of characters of a finding.
pub const FINDING_CHARS_MAX: usize = 2_000;

/// Maximum number of reasons recorded for a selected skill.
pub const REASONS_SHOWN: usize = 3;

/// Maximum number of characters of notes in a prompt.
pub const NOTES_CHARS_MAX: usize = 12_000;

/// Maximum number of characters of a diff in a prompt.
pub const DIFF_CHARS_MAX: usize = 40_000;

/// Maximum number of learnings in a prompt.
pub const LEARNINGS_SHOWN: usize = 20;

/// Interval at which a worker polls for requests to pause, stop or change a run.
pub const WISH_POLL: Duration = Duration::from_secs(1);

/// Maximum size of the log of one agent step.
pub const STEP_LOG_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Maximum size of the file of learnings.
pub const LEARNINGS_BYTES_MAX: u64 = 256 * 1024;

/// Maximum number of bytes of the diff stored with a run.
pub const DIFF_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Default deferral of a run after a rate limit that names no reset time.
pub const DEFERRAL: Duration = Duration::from_secs(15 * 60);

/// Maximum number of characters of a step's output in the journal.
pub const RESULT_CHARS_MAX: usize = 4_000;

/// Maximum number of remembered fixes in a prompt.
pub const OFFERS_SHOWN: usize = 3;

/// Maximum number of characters of such a fix.
pub const OFFER_CHARS_MAX: usize = 3_000;

/// Maximum size of a file from which the lines around an error are read.
pub const CONTEXT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Number of deferred or interrupted recoveries after one agent step before the agent runs again
/// regardless.
pub const RECOVER_CUT_SHORT_MAX: usize = 3;
