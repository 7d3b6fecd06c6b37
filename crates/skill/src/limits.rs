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
pub struct Limits {
    /// On one file.
    pub text: TextLimits,
    /// On one root.
    pub walk: WalkLimits,
    /// On one skill's folder.
    pub resources: ResourceLimits,
}

/// How many entries are read from a disk for each that may be kept, before a walk is given up.
pub const WALK_READS_PER_ENTRY: usize = 8;
/// Longest name that is taken from a file, in bytes; the specification allows 64 characters.
pub const NAME_BYTES_MAX: usize = 1024;
/// Longest version that is looked at, in bytes.
pub const VERSION_BYTES_MAX: usize = 256;
/// Most dependencies of one skill.
pub const DEPENDENCIES_MAX: usize = 100;
/// Most missing dependencies of a catalog for which a near name is looked up.
pub const SUGGESTIONS_MAX: usize = 100;

/// Most circles of dependencies that are shown.
pub const CYCLES_MAX: usize = 16;
/// Longest description that is made from a body, in characters.
pub const DESCRIPTION_CHARS_MAX: usize = 1024;
/// Longest trigger pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 1024;
/// Largest compiled trigger pattern, in bytes.
pub const PATTERN_COMPILED_BYTES_MAX: usize = 256 * 1024;

/// Most characters of one skill's body that are put into a conversation, unless configured otherwise.
pub const BODY_CHARS_MAX: usize = 20_000;
/// A body that the total budget would cut to fewer characters than this is left out instead.
pub const KEPT_CHARS_MIN: usize = 200;
/// Most bytes that arguments may add to a body.
pub const ARGUMENT_BYTES_MAX: usize = 1024 * 1024;
/// Most named arguments that a skill may have; later names are not placeholders.
pub const ARGUMENT_NAMES_MAX: usize = 64;
/// How long an activation counts as fresh.
pub const LEDGER_TTL_MS: u64 = 60 * 60 * 1000;
/// Most skills that one conversation keeps.
pub const LEDGER_SKILLS_MAX: usize = 100;
/// Most tokens of one body that are put back after compaction.
pub const REATTACH_TOKENS_EACH: usize = 5_000;
/// Most tokens of all bodies that are put back after compaction.
pub const REATTACH_TOKENS_TOTAL: usize = 25_000;
/// Most resources that a rendered skill lists.
pub const RESOURCES_LISTED_MAX: usize = 100;
/// The largest file of a skill that is searched for invisible characters, in bytes.
pub const HIDDEN_TEXT_FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Most skills that a message about a missing one lists.
pub const SKILLS_LISTED_MAX: usize = 50;

/// Most notices about changed files that wait to be dealt with; more, and every file is read again.
pub const NOTICES_MAX: usize = 1024;
/// Most changed paths that are remembered one by one; more, and every file is read again.
pub const SUSPECTS_MAX: usize = 4096;
/// How often in a row the watched folders are set up anew while roots come and go.
pub const SETTLE_ROUNDS_MAX: usize = 8;

