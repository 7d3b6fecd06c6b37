//! The caps on workflows, runs and plans.

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
