//! The caps on workflows and their runs.

use std::time::Duration;

/// Maximum size of a `workflow.yaml`.
pub const FILE_BYTES_MAX: u64 = 512 * 1024;
/// Most steps of a workflow.
pub const STEPS_MAX: usize = 200;
/// Maximum size of an injected resource or convention.
pub const RESOURCE_BYTES_MAX: u64 = 256 * 1024;
/// Maximum size of a parameter's value.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Maximum size of a step's output.
pub const OUTPUT_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of items in a review.
pub const ITEMS_MAX: usize = 500;
/// Maximum length of an item's scope, check or finding.
pub const ITEM_TEXT_BYTES_MAX: usize = 8 * 1024;
/// Maximum length of the id of an item, a question or a step.
pub const ID_BYTES_MAX: usize = 64;
/// Maximum number of questions a sub-agent can ask at once.
pub const QUESTIONS_MAX: usize = 3;
/// The number of options a question must have.
pub const OPTIONS: std::ops::RangeInclusive<usize> = 2..=3;
/// Maximum number of times the user can be asked during one visit of a step.
pub const ASKS_PER_VISIT_MAX: u32 = 3;
/// Maximum bound of a loop.
pub const LOOP_MAX: u32 = 100;
/// minijinja fuel for rendering one template.
pub const TEMPLATE_FUEL: u64 = 50_000;
/// Maximum length of a rendered template.
pub const TEMPLATE_BYTES_MAX: usize = 512 * 1024;
/// Maximum size of a step in XML.
pub const STEP_XML_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum nesting depth of the elements of such a step.
pub const STEP_XML_DEPTH_MAX: usize = 64;
/// Maximum output of a script for one step.
pub const SCRIPT_OUTPUT_BYTES_MAX: usize = 1024 * 1024;
/// Number of iterations of a script's loop before it stops for a person.
pub const SCRIPT_ITERATIONS_MAX: u32 = 5;
/// Maximum number of steps a script can declare.
pub const SCRIPT_STEPS_MAX: usize = 200;
/// Maximum total length of all rendered templates of a step.
pub const STEP_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum total size of the resources and conventions a workflow injects, counting each injection.
pub const INJECTED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum number of entries of a `list` or `work` parameter.
pub const ENTRIES_MAX: usize = 1000;
/// Maximum total size of the items of a review.
pub const REVIEW_BYTES_MAX: usize = 1024 * 1024;
/// Maximum length of a note, an error or an answer.
pub const NOTE_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of findings reported for a workflow.
pub const FINDINGS_MAX: usize = 200;
/// Maximum number of tokens in a template tag or a condition.
pub const TAG_WORDS_MAX: usize = 200;
/// Maximum number of statements in a template.
pub const STATEMENTS_MAX: usize = 200;

/// Maximum size of the state of a workflow run.
pub const RUN_STATE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Time for which a change of a workflow run waits for other changes of the same run.
pub const RUN_LOCK_WAIT: Duration = Duration::from_secs(20);

/// Interval between attempts to take the lock of a workflow run.
pub const RUN_LOCK_POLL: Duration = Duration::from_millis(2);

/// Timeout of a workflow's declared check.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Maximum number of files in the fingerprint of the work that a check looks at.
pub const WORK_FILES_MAX: usize = 100_000;

/// Maximum number of bytes in the fingerprint of the work.
pub const WORK_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Maximum number of repositories in the fingerprint of the work.
pub const WORK_NESTED_MAX: usize = 64;

/// Timeout of a script that prints a step.
pub const SCRIPT_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of bytes kept of each output stream of a program.
pub const PROGRAM_OUTPUT_BYTES_MAX: usize = 1024 * 1024;

/// Maximum size of a file read by a workflow's built-in checks.
pub const CHECKED_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Maximum number of bytes of each output stream in the record of a check.
pub const CHECK_NOTE_BYTES_MAX: usize = 2 * 1024;
