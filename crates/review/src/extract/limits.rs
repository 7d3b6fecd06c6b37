//! The caps on what is read out of a review skill.

/// Most focus areas of one review skill.
pub const REVIEW_AREAS_MAX: usize = 64;
/// Most checks of one focus area.
pub const REVIEW_CHECKS_MAX: usize = 64;
/// Longest check, rule, step, question or description of a review skill, in characters.
pub const REVIEW_TEXT_CHARS_MAX: usize = 500;
/// Longest name of a focus area or a pattern, in characters.
pub const REVIEW_NAME_CHARS_MAX: usize = 120;
/// Longest approach or mindset of a methodology, in characters.
pub const REVIEW_APPROACH_CHARS_MAX: usize = 1_000;
/// Most auto-validated patterns of one review skill.
pub const REVIEW_PATTERNS_MAX: usize = 256;
/// Longest expression of an auto-validated pattern, in bytes.
pub const REVIEW_PATTERN_BYTES_MAX: usize = 2_048;
/// Largest compiled auto-validated pattern, in bytes.
pub const REVIEW_PATTERN_COMPILED_BYTES_MAX: usize = 512 * 1024;
/// Most bytes that matching one auto-validated pattern may keep for itself.
pub const REVIEW_PATTERN_CACHE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Most globs of one auto-validated pattern.
pub const REVIEW_PATTERN_GLOBS_MAX: usize = 32;
/// Most false-positive rules of one review skill.
pub const REVIEW_RULES_MAX: usize = 128;
/// Most globs of files that come first.
pub const REVIEW_GLOBS_MAX: usize = 128;
/// Longest glob, in characters.
pub const REVIEW_GLOB_CHARS_MAX: usize = 200;
/// Most steps of one methodology.
pub const REVIEW_STEPS_MAX: usize = 64;
/// Most questions of one methodology.
pub const REVIEW_QUESTIONS_MAX: usize = 64;
/// Most shared files that one review skill may point to.
pub const REVIEW_POINTERS_MAX: usize = 8;
/// Largest shared file that a review skill may point to, in bytes.
pub const REVIEW_SHARED_BYTES_MAX: u64 = 512 * 1024;
/// Most findings about one review skill; the rest is counted.
pub const REVIEW_FINDINGS_MAX: usize = 64;
