//! Limits on discovery, resources and catalogs.

use repertoire_text::Limits as TextLimits;

/// Limits on the walk below one root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkLimits {
    /// The maximum depth that is searched; the root's own entries are at depth 1.
    pub depth_max: usize,
    /// The maximum number of entries below one root.
    pub entries_max: usize,
}

impl Default for WalkLimits {
    fn default() -> Self {
        WalkLimits { depth_max: 6, entries_max: 20_000 }
    }
}

/// Limits on the files of one skill, the same as in MCP's Skills extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceLimits {
    /// The maximum number of files in a skill's folder.
    pub files_max: usize,
    /// The maximum total size of these files, in bytes.
    pub bytes_max: u64,
    /// The maximum depth below the skill's folder.
    pub depth_max: usize,
}

impl Default for ResourceLimits {
    fn default() -> Self {
        ResourceLimits { files_max: 512, bytes_max: 16 * 1024 * 1024, depth_max: 8 }
    }
}

/// All configurable limits of this crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Limits on one file.
    pub text: TextLimits,
    /// Limits on one root.
    pub walk: WalkLimits,
    /// Limits on one skill's folder.
    pub resources: ResourceLimits,
}

/// The number of directory entries read from disk per entry that may be kept; a walk that reads more is
/// abandoned.
pub const WALK_READS_PER_ENTRY: usize = 8;
/// The maximum length of a name that is taken from a file, in bytes; the specification allows 64 characters.
pub const NAME_BYTES_MAX: usize = 1024;
/// The maximum length of a version that is parsed, in bytes.
pub const VERSION_BYTES_MAX: usize = 256;
/// The maximum number of dependencies of one skill.
pub const DEPENDENCIES_MAX: usize = 100;
/// The maximum number of missing dependencies in a catalog for which a similar name is suggested.
pub const SUGGESTIONS_MAX: usize = 100;

/// The maximum number of dependency cycles that are reported.
pub const CYCLES_MAX: usize = 16;
/// The maximum length of a description that is derived from a body, in characters.
pub const DESCRIPTION_CHARS_MAX: usize = 1024;
/// The maximum length of a trigger pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 1024;
/// The maximum compiled size of a trigger pattern, in bytes.
pub const PATTERN_COMPILED_BYTES_MAX: usize = 256 * 1024;

/// The default maximum number of characters of one skill's body in a conversation.
pub const BODY_CHARS_MAX: usize = 20_000;
/// A body that the total budget would cut to fewer characters than this is left out instead.
pub const KEPT_CHARS_MIN: usize = 200;
/// The maximum number of bytes that arguments may add to a body.
pub const ARGUMENT_BYTES_MAX: usize = 1024 * 1024;
/// The maximum number of named arguments of a skill; later names are not placeholders.
pub const ARGUMENT_NAMES_MAX: usize = 64;
/// The time after which an activation expires.
pub const LEDGER_TTL_MS: u64 = 60 * 60 * 1000;
/// The maximum number of skills that the ledger of a conversation keeps.
pub const LEDGER_SKILLS_MAX: usize = 100;
/// The maximum number of tokens of one body that is restored after compaction.
pub const REATTACH_TOKENS_EACH: usize = 5_000;
/// The maximum number of tokens of all bodies that are restored after compaction.
pub const REATTACH_TOKENS_TOTAL: usize = 25_000;
/// The maximum number of resources that a rendered skill lists.
pub const RESOURCES_LISTED_MAX: usize = 100;
/// The maximum size of a file that is searched for invisible characters, in bytes.
pub const HIDDEN_TEXT_FILE_BYTES_MAX: u64 = 1024 * 1024;
/// The maximum number of skills listed in a message about an unknown one.
pub const SKILLS_LISTED_MAX: usize = 50;

/// The maximum number of queued notices about changed files; beyond it, every file is read again.
pub const NOTICES_MAX: usize = 1024;
/// The maximum number of changed paths that are tracked; beyond it, every file is read again.
pub const SUSPECTS_MAX: usize = 4096;
/// The maximum number of consecutive rounds in which the watches are set up again because roots change.
pub const SETTLE_ROUNDS_MAX: usize = 8;

/// The maximum number of focus areas of one review skill.
pub const REVIEW_AREAS_MAX: usize = 64;
/// The maximum number of checks of one focus area.
pub const REVIEW_CHECKS_MAX: usize = 64;
/// The maximum length of a check, rule, step, question or description of a review skill, in characters.
pub const REVIEW_TEXT_CHARS_MAX: usize = 500;
/// The maximum length of the name of a focus area or a pattern, in characters.
pub const REVIEW_NAME_CHARS_MAX: usize = 120;
/// The maximum length of the approach or mindset of a methodology, in characters.
pub const REVIEW_APPROACH_CHARS_MAX: usize = 1_000;
/// The maximum number of auto-validated patterns of one review skill.
pub const REVIEW_PATTERNS_MAX: usize = 256;
/// The maximum length of an auto-validated pattern's expression, in bytes.
pub const REVIEW_PATTERN_BYTES_MAX: usize = 2_048;
/// The maximum compiled size of an auto-validated pattern, in bytes.
pub const REVIEW_PATTERN_COMPILED_BYTES_MAX: usize = 512 * 1024;
/// The maximum cache size for matching one auto-validated pattern, in bytes.
pub const REVIEW_PATTERN_CACHE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// The maximum number of globs of one auto-validated pattern.
pub const REVIEW_PATTERN_GLOBS_MAX: usize = 32;
/// The maximum number of false-positive rules of one review skill.
pub const REVIEW_RULES_MAX: usize = 128;
/// The maximum number of globs for priority files.
pub const REVIEW_GLOBS_MAX: usize = 128;
/// The maximum length of a glob, in characters.
pub const REVIEW_GLOB_CHARS_MAX: usize = 200;
/// The maximum number of steps of one methodology.
pub const REVIEW_STEPS_MAX: usize = 64;
/// The maximum number of questions of one methodology.
pub const REVIEW_QUESTIONS_MAX: usize = 64;
/// The maximum number of shared files that one review skill may point to.
pub const REVIEW_POINTERS_MAX: usize = 8;
/// The maximum size of a shared file that a review skill points to, in bytes.
pub const REVIEW_SHARED_BYTES_MAX: u64 = 512 * 1024;
/// The maximum number of findings about one review skill; the rest are only counted.
pub const REVIEW_FINDINGS_MAX: usize = 64;
