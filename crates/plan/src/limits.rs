//! The caps on plan files and on runs of plans.

use std::time::Duration;

/// Largest plan file.
pub const PLAN_BYTES_MAX: usize = 1024 * 1024;
/// Most tasks of a plan.
pub const PLAN_TASKS_MAX: usize = 2_000;
/// Longest line of a plan.
pub const PLAN_LINE_BYTES_MAX: usize = 16 * 1024;
/// Most headings of a plan.
pub const PLAN_SECTIONS_MAX: usize = 2_000;
/// Most things that the tasks and sections of a plan wait for, together.
pub const PLAN_BLOCKERS_MAX: usize = 10_000;
/// How deep tasks may be nested; what is deeper counts as the deepest.
pub const PLAN_NESTING_MAX: usize = 16;
/// Most lines of the text of one task; what follows is a detail.
pub const PLAN_TEXT_LINES_MAX: usize = 100;
/// Most skills that a task names, with those of the sections above it.
pub const PLAN_HINTS_MAX: usize = 32;
/// Longest note that is written below a task.
pub const PLAN_NOTE_BYTES_MAX: usize = 1_000;
/// Characters of a task's text that are too many for one iteration.
pub const PLAN_TASK_CHARS_MAX: usize = 600;
/// Most findings about one plan file that are reported.
pub const PLAN_FINDINGS_MAX: usize = 200;

/// Steps of a plan loop that are remembered for the watchdog.
pub const HISTORY_MAX: usize = 64;

/// Steps in a row on one task whose worker was gone before a person has to look.
pub const INTERRUPTIONS_MAX: u32 = 5;

/// Tasks or files that one sentence names.
pub const NAMES_SHOWN: usize = 10;

/// Most characters of a task in the journal.
pub const TASK_LABEL_CHARS_MAX: usize = 200;

/// Most characters of one thing that was learnt.
pub const LEARNING_CHARS_MAX: usize = 600;

/// Most events that are recorded at once when a plan was changed by hand.
pub const PLAN_EVENTS_MAX: usize = 500;

/// Most findings of a review that are kept.
pub const FINDINGS_MAX: usize = 50;

/// Most characters of one.
pub const FINDING_CHARS_MAX: usize = 2_000;

/// Reasons for a skill that are recorded.
pub const REASONS_SHOWN: usize = 3;

/// Most characters of notes in a prompt.
pub const NOTES_CHARS_MAX: usize = 12_000;

/// Most characters of a difference in a prompt.
pub const DIFF_CHARS_MAX: usize = 40_000;

/// Learnings that a prompt shows.
pub const LEARNINGS_SHOWN: usize = 20;

/// How often a worker looks for what people want of a run.
pub const WISH_POLL: Duration = Duration::from_secs(1);

/// Largest log of one step of an agent.
pub const STEP_LOG_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Largest file of learnings.
pub const LEARNINGS_BYTES_MAX: u64 = 256 * 1024;

/// Most of a difference that is kept with a run.
pub const DIFF_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How long to wait for an allowance when nobody says until when.
pub const DEFERRAL: Duration = Duration::from_secs(15 * 60);

/// How long the output of a step may be in the journal.
pub const RESULT_CHARS_MAX: usize = 4_000;

/// Fixes that an agent is told of.
pub const OFFERS_SHOWN: usize = 3;

/// Most characters of one of them.
pub const OFFER_CHARS_MAX: usize = 3_000;

/// Largest file that lines around an error are taken from.
pub const CONTEXT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Recoveries after one step of an agent that were put off or cut short, before it is asked again all the same.
pub const RECOVER_CUT_SHORT_MAX: usize = 3;
