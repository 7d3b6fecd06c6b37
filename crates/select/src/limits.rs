//! The caps on what is read of a task and of a skill.

/// How much of a body is indexed.
pub const BODY_BYTES_MAX: usize = 20_000;
/// How much of a task's text is read.
pub const TASK_BYTES_MAX: usize = 32_768;
/// How many different words of a task are scored.
pub const TASK_TERMS_MAX: usize = 64;
/// How many sentences of a task are also scored on their own.
pub const SENTENCES_MAX: usize = 12;
/// How many skills are looked at closely after all were scored.
pub const CANDIDATES_MAX: usize = 128;
/// How many of the paths that a task touches are held against globs.
pub const TASK_PATHS_MAX: usize = 1_000;
/// Longest trigger phrase: a longer one is no phrase, and never found.
pub const PHRASE_BYTES_MAX: usize = 256;
/// How many phrases of one skill are used, of each kind.
pub const PHRASES_PER_SKILL_MAX: usize = 256;
/// Longest glob: a longer one matches nothing, and is told as a problem.
pub const GLOB_BYTES_MAX: usize = 256;
/// How many Unicode classes such as `\p{Greek}` a pattern may have: each costs thousands of ranges.
pub const PATTERN_CLASSES_MAX: usize = 16;
/// What one pattern may keep in memory while it is being matched.
pub const PATTERN_DFA_BYTES_MAX: usize = 512 * 1024;
/// How many patterns of one skill are used.
pub const PATTERNS_PER_SKILL_MAX: usize = 64;
/// How much work one pattern may be: its characters, repetitions written out, times the bytes that it reads
/// of a task. A pattern of 32 reads [`TASK_BYTES_MAX`]; one of 1,000 reads 1,048.
pub const PATTERN_STEPS_MAX: usize = 1 << 20;
/// How many patterns without a fixed text, which have to be tried on every task, a catalog may have.
pub const PATTERNS_EVERYWHERE_MAX: usize = 256;
/// How many of them one skill may have, so that none takes the room of all others.
pub const PATTERNS_EVERYWHERE_PER_SKILL_MAX: usize = 4;
/// How much work all patterns together may be for one task, counted as for [`PATTERN_STEPS_MAX`]. The
/// smallest are tried first; those that are left when it is used up are not.
pub const TASK_PATTERN_STEPS_MAX: usize = 1 << 24;
/// How much of the text that a pattern matched is shown.
pub const MATCHED_CHARS_MAX: usize = 80;
/// How many wrong names in a task are reported: the nearest right one of each costs a look at every skill.
pub const SUGGESTIONS_MAX: usize = 16;
/// How large a file of labelled queries may be.
pub const LABELS_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How many queries one such file may hold.
pub const LABELS_MAX: usize = 100_000;
/// How many problems of one such file are told of.
pub const LABEL_PROBLEMS_MAX: usize = 20;
/// How many skills lint compares with each other unless it is asked to: the work grows with their square.
pub const COMPARED_SKILLS_MAX: usize = 500;
/// How many of a skill's own phrases and sentences lint tries.
pub const OWN_WORDS_MAX: usize = 32;
/// How many skills come along with picks because these need them.
pub const NEEDS_MAX: usize = 16;
