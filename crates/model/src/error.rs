//! Errors of model calls, grouped by what the caller can do about them.

use crate::protocol::ModelService;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// Too many requests: wait and retry.
    #[error("{service} asks us to slow down (HTTP {status}): {message}")]
    RateLimited {
        service: ModelService,
        status: u16,
        message: String,
        /// The requested delay.
        retry_after_ms: Option<u64>,
    },
    /// The account's usage limit is exhausted: retrying before the reset is useless.
    #[error("the allowance at {service} is used up: {message}")]
    UsageLimit {
        service: ModelService,
        message: String,
        /// The reset time, in milliseconds since 1970.
        resets_at_ms: Option<u64>,
    },
    /// The server failed: retry.
    #[error("{service} failed (HTTP {status}): {message}")]
    Server {
        service: ModelService,
        /// The HTTP status; 0 if the error was reported in a stream.
        status: u16,
        message: String,
        /// The requested delay.
        retry_after_ms: Option<u64>,
    },
    /// No connection, or it was lost: retry.
    #[error("no connection to {service} at {url}: {message}")]
    Connection {
        service: ModelService,
        /// The URL, without secrets.
        url: String,
        message: String,
    },
    /// The idle timeout was exceeded: retry.
    #[error("{service} sent nothing for {waited_ms} ms {phase}")]
    Stalled {
        service: ModelService,
        /// Tells whether the answer had begun.
        phase: Phase,
        waited_ms: u64,
    },
    /// The stream ended before the answer was complete: retry.
    #[error("the answer of {service} broke off")]
    BrokenOff { service: ModelService },
    /// The whole call took too long.
    #[error("{service} did not finish within {limit_ms} ms")]
    TimedOut { service: ModelService, limit_ms: u64 },
    /// The conversation exceeds the context window: shorten it.
    #[error("the conversation is too long for the model: {message}")]
    ContextTooLong { message: String },
    /// The key is missing, invalid or lacks permissions: the user has to act.
    #[error("{service} does not accept the key (HTTP {status}): {message}")]
    Unauthorised { service: ModelService, status: u16, message: String },
    /// There is no key or address for the service.
    #[error("{service} is not set up: {message}")]
    NotConfigured { service: ModelService, message: String },
    /// The service rejected the request: retrying gives the same result.
    #[error("{service} refused the request (HTTP {status}): {message}")]
    Rejected { service: ModelService, status: u16, message: String },
    /// The response violates the protocol.
    #[error("{service} sent something that is not its protocol: {message}")]
    Protocol { service: ModelService, message: String },
    /// The circuit breaker is open; the next call is allowed later.
    #[error("calls to {service} failed too often; the next is tried in {retry_in_ms} ms")]
    CircuitOpen {
        service: ModelService,
        /// The time until the next call is allowed.
        retry_in_ms: u64,
    },
}

impl ModelError {
    /// Maps the server's message.
    pub(crate) fn map_message(mut self, f: impl FnOnce(&str) -> String) -> Self {
        match &mut self {
            ModelError::RateLimited { message, .. }
            | ModelError::UsageLimit { message, .. }
            | ModelError::Server { message, .. }
            | ModelError::Connection { message, .. }
            | ModelError::ContextTooLong { message }
            | ModelError::Unauthorised { message, .. }
            | ModelError::NotConfigured { message, .. }
            | ModelError::Rejected { message, .. }
            | ModelError::Protocol { message, .. } => *message = f(message),
            ModelError::Stalled { .. }
            | ModelError::BrokenOff { .. }
            | ModelError::TimedOut { .. }
            | ModelError::CircuitOpen { .. } => {}
        }
        self
    }
}

/// The phase of a call in which it stalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Before the first byte of the answer.
    Headers,
    Stream,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Phase::Headers => "before its answer began",
            Phase::Stream => "in the middle of its answer",
        })
    }
}
