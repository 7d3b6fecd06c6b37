//! Limits on what is read of a task and of a skill.

/// The number of bytes of a body that are indexed.
pub const BODY_BYTES_MAX: usize = 20_000;
/// The number of bytes of a task's text that are read.
pub const TASK_BYTES_MAX: usize = 32_768;
/// The maximum number of distinct words of a task that are scored.
pub const TASK_TERMS_MAX: usize = 64;
/// The maximum number of sentences of a task that are also scored on their own.
pub const SENTENCES_MAX: usize = 12;
/// The number of best-scoring skills that the later stages examine.
pub const CANDIDATES_MAX: usize = 128;
/// The maximum number of a task's paths that are matched against globs.
pub const TASK_PATHS_MAX: usize = 1_000;
/// The maximum length of a trigger phrase. Longer ones are ignored.
pub const PHRASE_BYTES_MAX: usize = 256;
/// The maximum number of phrases used per skill, for each kind of phrase.
pub const PHRASES_PER_SKILL_MAX: usize = 256;
/// The maximum length of a glob. Longer ones match nothing and are reported as a problem.
pub const GLOB_BYTES_MAX: usize = 256;
/// The maximum number of Unicode classes such as `\p{Greek}` in a pattern: each costs thousands of ranges.
pub const PATTERN_CLASSES_MAX: usize = 16;
/// The maximum memory that matching one pattern may take.
pub const PATTERN_DFA_BYTES_MAX: usize = 512 * 1024;
/// The maximum number of patterns used per skill.
pub const PATTERNS_PER_SKILL_MAX: usize = 64;
/// The maximum work of one pattern: its length in characters with repetitions written out, times the bytes of
/// the task that it is matched against. A pattern of 32 reads [`TASK_BYTES_MAX`]; one of 1,000 reads 1,048.
pub const PATTERN_STEPS_MAX: usize = 1 << 20;
/// The maximum number of patterns in a catalog that contain no literal text and are tried on every task.
pub const PATTERNS_EVERYWHERE_MAX: usize = 256;
/// The maximum number of such patterns per skill, so that one skill cannot use up the catalog's limit.
pub const PATTERNS_EVERYWHERE_PER_SKILL_MAX: usize = 4;
/// The maximum work of all patterns for one task, counted as for [`PATTERN_STEPS_MAX`]. The smallest patterns
/// are tried first; those left when the limit is reached are not tried.
pub const TASK_PATTERN_STEPS_MAX: usize = 1 << 24;
/// The maximum number of characters shown of the text that a pattern matched.
pub const MATCHED_CHARS_MAX: usize = 80;
/// The maximum number of unknown names in a task that are reported: finding the nearest name for each means
/// comparing it with every skill.
pub const SUGGESTIONS_MAX: usize = 16;
/// The maximum size of a label file.
pub const LABELS_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The maximum number of queries in a label file.
pub const LABELS_MAX: usize = 100_000;
/// The maximum number of problems reported per label file.
pub const LABEL_PROBLEMS_MAX: usize = 20;
/// The maximum number of skills that lint compares with each other by default: the work grows with their
/// square.
pub const COMPARED_SKILLS_MAX: usize = 500;
/// The maximum number of a skill's own phrases and sentences that lint tries.
pub const OWN_WORDS_MAX: usize = 32;
/// The maximum number of skills that are added as dependencies of picks.
pub const NEEDS_MAX: usize = 16;
