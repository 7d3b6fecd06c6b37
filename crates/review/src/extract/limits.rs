//! The caps on what is read out of a review skill.

/// The maximum number of focus areas of one review skill.
pub(super) const REVIEW_AREAS_MAX: usize = 64;
/// The maximum number of checks of one focus area.
pub(super) const REVIEW_CHECKS_MAX: usize = 64;
/// The maximum length of a check, rule, step, question or description of a review skill, in characters.
pub(super) const REVIEW_TEXT_CHARS_MAX: usize = 500;
/// The maximum length of the name of a focus area or a pattern, in characters.
pub(super) const REVIEW_NAME_CHARS_MAX: usize = 120;
/// The maximum length of the approach or mindset of a methodology, in characters.
pub(super) const REVIEW_APPROACH_CHARS_MAX: usize = 1_000;
/// The maximum number of auto-validated patterns of one review skill.
pub(super) const REVIEW_PATTERNS_MAX: usize = 256;
/// The maximum length of an auto-validated pattern's expression, in bytes.
pub(super) const REVIEW_PATTERN_BYTES_MAX: usize = 2_048;
/// The maximum compiled size of an auto-validated pattern, in bytes.
pub(super) const REVIEW_PATTERN_COMPILED_BYTES_MAX: usize = 512 * 1024;
/// The maximum cache size for matching one auto-validated pattern, in bytes.
pub(super) const REVIEW_PATTERN_CACHE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// The maximum number of globs of one auto-validated pattern.
pub(super) const REVIEW_PATTERN_GLOBS_MAX: usize = 32;
/// The maximum number of false-positive rules of one review skill.
pub(super) const REVIEW_RULES_MAX: usize = 128;
/// The maximum number of globs for priority files.
pub(super) const REVIEW_GLOBS_MAX: usize = 128;
/// The maximum length of a glob, in characters.
pub(super) const REVIEW_GLOB_CHARS_MAX: usize = 200;
/// The maximum number of steps of one methodology.
pub(super) const REVIEW_STEPS_MAX: usize = 64;
/// The maximum number of questions of one methodology.
pub(super) const REVIEW_QUESTIONS_MAX: usize = 64;
/// The maximum number of shared files that one review skill may point to.
pub(super) const REVIEW_POINTERS_MAX: usize = 8;
/// The maximum size of a shared file that a review skill points to, in bytes.
pub(super) const REVIEW_SHARED_BYTES_MAX: u64 = 512 * 1024;
/// The maximum number of findings about one review skill; the rest are only counted.
pub(super) const REVIEW_FINDINGS_MAX: usize = 64;
