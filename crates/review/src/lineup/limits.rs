//! The caps of a line-up.

/// Largest file of a line-up that is read.
pub const FILE_BYTES_MAX: usize = 512 * 1024;
/// Most agents of a line-up, those that others have added included: each of them costs a call.
pub const AGENTS_MAX: usize = 40;
/// Most pairs of a line-up, for the same reason.
pub const PAIRS_MAX: usize = 40;
/// Most entries of any other list.
pub const ENTRIES_MAX: usize = 200;
/// Most characters of one text: instructions, a question, a rule.
pub const TEXT_CHARS_MAX: usize = 20_000;
/// Most characters of a name or a key.
pub const NAME_CHARS_MAX: usize = 64;
