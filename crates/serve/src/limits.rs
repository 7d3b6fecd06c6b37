//! The limits of this crate: on requests, timeouts and connections.

use std::time::Duration;

/// Limits on HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// The maximum size of a request's body.
    pub body_bytes_max: usize,
    /// The maximum size of a request's head: its first line and its headers.
    pub head_bytes_max: usize,
    /// The maximum number of headers of a request.
    pub headers_max: usize,
    /// The timeout for receiving the head of a request; also the timeout of idle connections.
    pub head_timeout: Duration,
    /// The timeout for receiving the body of a request.
    pub body_timeout: Duration,
    /// The timeout until a response begins. Does not apply to `/mcp`, since tools may take longer.
    pub answer_timeout: Duration,
    /// The timeout for a client that does not read its response.
    pub write_timeout: Duration,
    /// The maximum number of authenticated connections.
    pub connections_max: usize,
    /// The maximum number of unauthenticated connections; beyond it, the oldest is closed.
    pub unauthenticated_connections_max: usize,
    /// The maximum number of MCP sessions; beyond it, the least recently used one is closed.
    pub mcp_sessions_max: usize,
    /// The time that open connections have to end when the daemon stops.
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

/// The length of the queue of connections that the daemon has not accepted yet; the system may
/// impose a lower limit.
pub const BACKLOG: u32 = 4_096;
/// The maximum number of bytes of a skill's file in one response; larger files are returned in
/// parts.
pub const FILE_PART_BYTES_MAX: usize = 512 * 1024;
/// The lifetime of a link that opens a page.
pub const CODE_LIFE: Duration = Duration::from_secs(10 * 60);
/// The lifetime of a session that was opened with such a link.
pub const SESSION_LIFE: Duration = Duration::from_secs(12 * 60 * 60);
/// The maximum number of links and of sessions; the oldest are dropped first.
pub const LENT_MAX: usize = 64;
/// The maximum size of a file with a token, a link or an address.
pub const SMALL_FILE_BYTES_MAX: u64 = 4096;

/// The maximum size of a request that exchanges a code for a session; it is not authenticated yet.
pub const CODE_BODY_BYTES_MAX: usize = 1_024;
