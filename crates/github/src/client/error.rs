//! Errors of the client, grouped by what the caller can do about them.

/// A failed call. In most variants, `what` is the method and path, and `message` is GitHub's error
/// message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// A name that is not valid on GitHub; nothing was sent.
    #[error("`{name}` cannot be the name of {what}")]
    BadName {
        /// The kind of name.
        what: &'static str,
        name: String,
    },
    /// The base URL of the API cannot be used; nothing was sent.
    #[error("the address `{url}` of GitHub's programming interface {why}")]
    BadAddress { url: String, why: &'static str },
    /// The token is invalid or missing.
    #[error(
        "{what}: GitHub does not take the token ({message}); is `GITHUB_TOKEN` set, and not expired?"
    )]
    Unauthorised { what: String, message: String },
    /// The token is valid but lacks a permission.
    #[error("{what}: the token may not do this ({message}){}", describe_needs(needs.as_deref()))]
    Forbidden {
        what: String,
        /// The permissions that would suffice, as GitHub names them.
        needs: Option<String>,
        message: String,
    },
    /// The resource does not exist, or the token cannot see it.
    #[error("{what}: this does not exist, or is not visible to this token")]
    NotFound { what: String },
    /// GitHub rejected the request.
    #[error("{what}: GitHub refused with status {status}: {message}")]
    Refused { what: String, status: u16, message: String },
    /// The rate limit is exhausted for longer than the caller wants to wait.
    #[error("{what}: GitHub's limit is reached until {}; {message}", format_time(*until_ms))]
    Limited {
        what: String,
        /// The time of the next attempt, in milliseconds since 1970.
        until_ms: u64,
        message: String,
    },
    /// GitHub failed with a server error.
    #[error("{what}: GitHub failed with status {status}: {message}")]
    Server { what: String, status: u16, message: String },
    /// GitHub could not be reached, or the connection broke.
    #[error("{what}: GitHub could not be reached: {message}")]
    Network { what: String, message: String },
    /// GitHub did not respond in time.
    #[error("{what}: no answer within {limit_ms} ms")]
    TimedOut { what: String, limit_ms: u64 },
    /// The response could not be decoded.
    #[error("{what}: the answer is not understood: {message}")]
    Unclear { what: String, message: String },
}

impl ClientError {
    /// Returns true if the resource does not exist, or cannot be seen.
    pub fn is_not_found(&self) -> bool {
        matches!(self, ClientError::NotFound { .. })
    }

    /// Returns true if the token lacks a permission.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, ClientError::Forbidden { .. })
    }

    /// Applies a function to every text of the error, to redact secrets.
    pub(super) fn map_texts(mut self, change: impl Fn(&str) -> String) -> Self {
        match &mut self {
            ClientError::BadName { name: message, .. }
            | ClientError::BadAddress { url: message, .. }
            | ClientError::NotFound { what: message }
            | ClientError::TimedOut { what: message, .. } => *message = change(message),
            ClientError::Unauthorised { what, message }
            | ClientError::Forbidden { what, message, .. }
            | ClientError::Refused { what, message, .. }
            | ClientError::Limited { what, message, .. }
            | ClientError::Server { what, message, .. }
            | ClientError::Network { what, message }
            | ClientError::Unclear { what, message } => {
                *what = change(what);
                *message = change(message);
            }
        }
        self
    }
}

fn describe_needs(needs: Option<&str>) -> String {
    needs.map(|needs| format!("; it needs `{needs}`")).unwrap_or_default()
}

fn format_time(until_ms: u64) -> String {
    let at = i64::try_from(until_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    at.map_or_else(|| "a time that cannot be told".to_owned(), |at| at.to_string())
}
