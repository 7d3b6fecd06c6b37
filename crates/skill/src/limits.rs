//! Caps on what discovery, resources and catalogs may cost.

use repertoire_text::Limits as TextLimits;

/// Caps on a walk below one root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkLimits {
    /// Deepest folder that is searched; the root's own entries are at depth 1.
    pub depth_max: usize,
    /// Most entries that are looked at below one root.
    pub entries_max: usize,
}

impl Default for WalkLimits {
    fn default() -> Self {
        WalkLimits { depth_max: 6, entries_max: 20_000 }
    }
}

/// Caps on the files of one skill; MCP's Skills extension has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Most files in a skill's folder.
    pub files_max: usize,
    /// Most bytes in all of them.
    pub bytes_max: u64,
    /// Deepest folder below the skill's own.
    pub depth_max: usize,
}

impl Default for ResourceLimits {
    fn default() -> Self {
        ResourceLimits { files_max: 512, bytes_max: 16 * 1024 * 1024, depth_max: 8 }
    }
}

/// All caps of this crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkillLimits {
    /// On one file.
    pub text: TextLimits,
    /// On one root.
    pub walk: WalkLimits,
    /// On one skill's folder.
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
