//! What can go wrong with a call, by what the caller can do about it.

use crate::name::Service;

/// A call that did not end in an answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// Too many requests: wait and try again.
    #[error("{service} asks us to slow down (HTTP {status}): {message}")]
    RateLimited {
        /// Who.
        service: Service,
        /// The status.
        status: u16,
        /// What it said.
        message: String,
        /// How long it asked us to wait.
        retry_after_ms: Option<u64>,
    },
    /// The account's allowance is used up until a certain time: trying again before is useless.
    #[error("the allowance at {service} is used up: {message}")]
    UsageLimit {
        /// Who.
        service: Service,
        /// What it said.
        message: String,
        /// When it is filled again, in milliseconds since 1970.
        resets_at_ms: Option<u64>,
    },
    /// The server failed: try again.
    #[error("{service} failed (HTTP {status}): {message}")]
    Server {
        /// Who.
        service: Service,
        /// The status; 0 where the failure was told in a stream.
        status: u16,
        /// What it said.
        message: String,
        /// How long it asked us to wait.
        retry_after_ms: Option<u64>,
    },
    /// No connection, or one that broke: try again.
    #[error("no connection to {service} at {url}: {message}")]
    Connection {
        /// Who.
        service: Service,
        /// Where, without secrets.
        url: String,
        /// What happened.
        message: String,
    },
    /// Nothing came for too long: try again.
    #[error("{service} sent nothing for {waited_ms} ms {phase}")]
    Stalled {
        /// Who.
        service: Service,
        /// Before or after the answer began.
        phase: Phase,
        /// How long we waited.
        waited_ms: u64,
    },
    /// The stream ended before the answer did: try again.
    #[error("the answer of {service} broke off")]
    BrokenOff {
        /// Who.
        service: Service,
    },
    /// The whole call took too long.
    #[error("{service} did not finish within {limit_ms} ms")]
    TimedOut {
        /// Who.
        service: Service,
        /// The limit.
        limit_ms: u64,
    },
    /// The conversation is larger than the model can read: make it smaller.
    #[error("the conversation is too long for the model: {message}")]
    ContextTooLong {
        /// What the service said.
        message: String,
    },
    /// The key is missing, wrong or not enough: a person has to act.
    #[error("{service} does not accept the key (HTTP {status}): {message}")]
    Unauthorised {
        /// Who.
        service: Service,
        /// The status.
        status: u16,
        /// What it said.
        message: String,
    },
    /// There is no key or address for the service.
    #[error("{service} is not set up: {message}")]
    NotConfigured {
        /// Who.
        service: Service,
        /// What is missing.
        message: String,
    },
    /// The service refused the request: trying again gives the same.
    #[error("{service} refused the request (HTTP {status}): {message}")]
    Rejected {
        /// Who.
        service: Service,
        /// The status.
        status: u16,
        /// What it said.
        message: String,
    },
    /// The service said something that we do not understand.
    #[error("{service} sent something that is not its protocol: {message}")]
    Protocol {
        /// Who.
        service: Service,
        /// What.
        message: String,
    },
    /// Too many calls failed lately; the next one is allowed later.
    #[error("calls to {service} failed too often; the next is tried in {retry_in_ms} ms")]
    CircuitOpen {
        /// Who.
        service: Service,
        /// When the next call is allowed.
        retry_in_ms: u64,
    },
}

impl Error {
    /// The error with what the server said put through `f`.
    pub(crate) fn map_message(mut self, f: impl FnOnce(&str) -> String) -> Self {
        match &mut self {
            Error::RateLimited { message, .. }
            | Error::UsageLimit { message, .. }
            | Error::Server { message, .. }
            | Error::Connection { message, .. }
            | Error::ContextTooLong { message }
            | Error::Unauthorised { message, .. }
            | Error::NotConfigured { message, .. }
            | Error::Rejected { message, .. }
            | Error::Protocol { message, .. } => *message = f(message),
            Error::Stalled { .. }
            | Error::BrokenOff { .. }
            | Error::TimedOut { .. }
            | Error::CircuitOpen { .. } => {}
        }
        self
    }
}

/// Where in a call nothing came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Before the first byte of the answer.
    Headers,
    /// In the middle of it.
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
