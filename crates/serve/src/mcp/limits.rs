//! Limits on the requests of MCP clients, and on responses.

/// The number of skills or resources per page.
pub(super) const PAGE: usize = 50;
/// The number of prompts per page.
pub(super) const PROMPTS_PAGE: usize = 100;
/// The maximum length of a URI, in bytes.
pub(super) const URI_BYTES_MAX: usize = 8 * 1024;
/// The maximum number of segments of a URI.
pub(super) const URI_SEGMENTS_MAX: usize = 32;
/// The maximum length of a cursor, in bytes.
pub(super) const CURSOR_BYTES_MAX: usize = 1024;
/// The maximum number of files of a served skill, including its `SKILL.md`: the extension's limit.
pub(super) const FILES_MAX: usize = 512;
/// The maximum size of a served skill, including its `SKILL.md`: the extension's limit.
pub(super) const BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The time for which a client may cache a list of skills.
pub(super) const TTL_MS: u64 = 10_000;
/// The maximum number of completions: the protocol's limit.
pub(super) const COMPLETIONS_MAX: usize = 100;
/// The maximum length of a task for searching skills, in bytes.
pub(super) const TASK_BYTES_MAX: usize = 64 * 1024;
/// The maximum length of a skill's arguments, in bytes.
pub(super) const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;
/// The maximum number of characters of a resource that a tool returns.
pub(super) const RESOURCE_CHARS_MAX: usize = 40_000;
