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
pub const CANDIDATES_MAX: usize = 256;
/// How large a file of labelled queries may be.
pub const LABELS_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How many queries one such file may hold.
pub const LABELS_MAX: usize = 100_000;
/// How many problems of one such file are told of.
pub const LABEL_PROBLEMS_MAX: usize = 20;
