//! The limits of a line-up.

/// Maximum size of a line-up file.
pub const FILE_BYTES_MAX: usize = 512 * 1024;
/// Maximum number of agents after merging. Each agent costs at least one call.
pub const AGENTS_MAX: usize = 40;
/// Maximum number of pairs after merging. Each pair costs a call.
pub const PAIRS_MAX: usize = 40;
/// Maximum number of entries in any other list.
pub const ENTRIES_MAX: usize = 200;
/// Maximum length of a text: instructions, a question, a rule.
pub const TEXT_CHARS_MAX: usize = 20_000;
/// Maximum length of a name or a key.
pub const NAME_CHARS_MAX: usize = 64;
