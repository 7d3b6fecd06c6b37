//! The caps of this crate: what a client may send, how long it may take, and how many there may be.

use std::time::Duration;

/// Caps on HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Largest body of a request.
    pub body_bytes_max: usize,
    /// Largest head of a request: its first line and its headers.
    pub head_bytes_max: usize,
    /// Most headers of a request.
    pub headers_max: usize,
    /// How long the head of a request may take to come; also how long a connection may be idle.
    pub head_timeout: Duration,
    /// How long the body of a request may take to come.
    pub body_timeout: Duration,
    /// How long an answer may take to begin. `/mcp` is not held to it: a tool may take its time.
    pub answer_timeout: Duration,
    /// How long a client may take none of what is sent to it.
    pub write_timeout: Duration,
    /// The maximum number of connections that have shown a good token.
    pub connections_max: usize,
    /// The maximum number of connections that have not; beyond it the oldest of them ends.
    pub unauthenticated_connections_max: usize,
    /// The maximum number of MCP sessions; beyond it the one that was used least recently ends.
    pub mcp_sessions_max: usize,
    /// How long open connections have to end when the daemon stops.
    pub stop_timeout: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        HttpLimits {
            body_bytes_max: 1024 * 1024,
            head_bytes_max: 32 * 1024,
            headers_max: 64,
            head_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            answer_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            connections_max: 12_288,
            unauthenticated_connections_max: 1_024,
            mcp_sessions_max: 1_024,
            stop_timeout: Duration::from_secs(2),
        }
    }
}

/// The length of the queue of connections that the system has taken and the daemon has not; the system may have a lower limit.
pub const BACKLOG: u32 = 4_096;
/// The maximum number of bytes of a skill's file in one answer; a larger file comes in parts.
pub const FILE_PART_BYTES_MAX: usize = 512 * 1024;
/// How long a link that opens a page can be used.
pub const CODE_LIFE: Duration = Duration::from_secs(10 * 60);
/// How long a page that was opened with one may stay.
pub const SESSION_LIFE: Duration = Duration::from_secs(12 * 60 * 60);
/// Links and sessions that are kept at most, each; the oldest goes first.
pub const LENT_MAX: usize = 64;
/// Largest file that holds a token, a link or an address.
pub const SMALL_FILE_BYTES_MAX: u64 = 4096;
/// Largest configuration file of another program that is edited.
pub const CONFIG_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Largest record of what was done to such a file, with what was replaced in it.
pub const RECORD_BYTES_MAX: u64 = 8 * CONFIG_BYTES_MAX;
/// How long a server may take to say who it is.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(20);

/// Most spans that wait to be collected; those beyond are counted and dropped.
pub const SPANS_MAX: usize = 4_096;
/// Most spans that are sent at once.
pub const SPANS_AT_ONCE_MAX: usize = 512;

/// Largest body of a request that exchanges a code for a session: nobody has shown a token for it yet.
pub const CODE_BODY_BYTES_MAX: usize = 1_024;
