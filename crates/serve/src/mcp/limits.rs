//! The caps on what a client of MCP may ask for, and on what it is given at once.

/// Skills, or resources, on one page of a list.
pub(super) const PAGE: usize = 50;
/// Prompts on one page of a list.
pub(super) const PROMPTS_PAGE: usize = 100;
/// Longest URI that is looked at, in bytes.
pub(super) const URI_BYTES_MAX: usize = 8 * 1024;
/// Most segments of a URI.
pub(super) const URI_SEGMENTS_MAX: usize = 32;
/// Longest cursor that is looked at, in bytes.
pub(super) const CURSOR_BYTES_MAX: usize = 1024;
/// Most files of a skill that is served, its `SKILL.md` included: the extension's limit.
pub(super) const FILES_MAX: usize = 512;
/// Most bytes of a skill that is served, its `SKILL.md` included: the extension's limit.
pub(super) const BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How long a client may keep a list of skills without asking again.
pub(super) const TTL_MS: u64 = 10_000;
/// Most names that a completion offers: the protocol's limit.
pub(super) const COMPLETIONS_MAX: usize = 100;
/// Longest task that skills are searched for, in bytes.
pub(super) const TASK_BYTES_MAX: usize = 64 * 1024;
/// Longest arguments of a skill, in bytes.
pub(super) const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;
/// Most characters of a resource that a tool puts into a conversation.
pub(super) const RESOURCE_CHARS_MAX: usize = 40_000;
