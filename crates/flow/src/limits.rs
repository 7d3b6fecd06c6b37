//! The caps on workflows and their runs.

use std::time::Duration;

/// Largest `workflow.yaml`.
pub const FILE_BYTES_MAX: u64 = 512 * 1024;
/// Most steps of a workflow.
pub const STEPS_MAX: usize = 200;
/// Largest resource or convention that is injected.
pub const RESOURCE_BYTES_MAX: u64 = 256 * 1024;
/// Largest value of a parameter.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Largest output of a step that is kept.
pub const OUTPUT_BYTES_MAX: usize = 64 * 1024;
/// Most items of one review.
pub const ITEMS_MAX: usize = 500;
/// Longest text of an item: its scope, its check or its finding.
pub const ITEM_TEXT_BYTES_MAX: usize = 8 * 1024;
/// Longest id of an item, a question or a step.
pub const ID_BYTES_MAX: usize = 64;
/// Most questions that a sub-agent asks at once.
pub const QUESTIONS_MAX: usize = 3;
/// Fewest and most options of a question.
pub const OPTIONS: std::ops::RangeInclusive<usize> = 2..=3;
/// How often the user may be asked during one step.
pub const ASKS_PER_VISIT_MAX: u32 = 3;
/// The largest bound of a loop.
pub const LOOP_MAX: u32 = 100;
/// How much work one template may cause.
pub const TEMPLATE_FUEL: u64 = 50_000;
/// Longest text that a template may give.
pub const TEMPLATE_BYTES_MAX: usize = 512 * 1024;
/// Largest step that is read as XML.
pub const STEP_XML_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How deep the elements of such a step may be.
pub const STEP_XML_DEPTH_MAX: usize = 64;
/// Most that is read of what a script prints as its step.
pub const SCRIPT_OUTPUT_BYTES_MAX: usize = 1024 * 1024;
/// How often a loop of a script is gone through before it stops for a person.
pub const SCRIPT_ITERATIONS_MAX: u32 = 5;
/// Most steps that a script may say it has.
pub const SCRIPT_STEPS_MAX: usize = 200;
/// Longest text that all templates of one step may give together.
pub const STEP_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most bytes of resources and conventions that a workflow injects, each as often as it is injected.
pub const INJECTED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most entries of a list or of work.
pub const ENTRIES_MAX: usize = 1000;
/// Most bytes of all items of one review together.
pub const REVIEW_BYTES_MAX: usize = 1024 * 1024;
/// Longest note, error or answer.
pub const NOTE_BYTES_MAX: usize = 16 * 1024;
/// Most findings about one workflow that are told.
pub const FINDINGS_MAX: usize = 200;
/// Most words and signs of one tag of a template, or of a condition.
pub const TAG_WORDS_MAX: usize = 200;
/// Most statements of one text.
pub const STATEMENTS_MAX: usize = 200;

/// Largest state of a run of a workflow.
pub const RUN_FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Largest workflow that a run was started with, with all that it injects.
pub const WORKFLOW_FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// How long a change waits for another one to the same run.
pub const RUN_LOCK_WAIT: Duration = Duration::from_secs(20);

/// How often it looks.
pub const RUN_LOCK_POLL: Duration = Duration::from_millis(2);

/// After how long a run that was never started in full is taken for left.
pub const NEW_RUN_AGE_MAX: Duration = Duration::from_secs(60 * 60);

/// How long a declared check of a workflow may take.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// How long a script may take to print a step.
pub const SCRIPT_TIMEOUT: Duration = Duration::from_secs(30);

/// Most of what a program says that is kept, of each stream.
pub const PROGRAM_OUTPUT_BYTES_MAX: usize = 1024 * 1024;

/// The largest file that a built-in check of a workflow reads.
pub const CHECKED_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Most of each stream that goes into the record of a check.
pub const CHECK_NOTE_BYTES_MAX: usize = 2 * 1024;
