//! What GitHub did not do, by what the caller can do about it.

/// A call that did not do what it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// A name that GitHub does not give; nothing was sent.
    #[error("`{name}` cannot be the name of {what}")]
    BadName {
        /// What it should have been.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// The address of the service cannot be used; nothing was sent.
    #[error("the address `{url}` of GitHub's programming interface {why}")]
    BadAddress {
        /// The address.
        url: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The token is not valid, or there is none.
    #[error(
        "{what}: GitHub does not take the token ({message}); is `GITHUB_TOKEN` set, and not expired?"
    )]
    Unauthorised {
        /// The call.
        what: String,
        /// GitHub's words.
        message: String,
    },
    /// The token is valid, and not enough.
    #[error("{what}: the token may not do this ({message}){}", needed(needs.as_deref()))]
    Forbidden {
        /// The call.
        what: String,
        /// The permissions that would do, as GitHub names them.
        needs: Option<String>,
        /// GitHub's words.
        message: String,
    },
    /// It is not there, or the token cannot see it.
    #[error("{what}: this does not exist, or is not visible to this token")]
    NotFound {
        /// The call.
        what: String,
    },
    /// GitHub understood, and said no.
    #[error("{what}: GitHub refused with status {status}: {message}")]
    Refused {
        /// The call.
        what: String,
        /// The status.
        status: u16,
        /// GitHub's words.
        message: String,
    },
    /// The allowance is used up for longer than the caller wants to wait.
    #[error("{what}: GitHub's limit is reached until {}; {message}", moment(*until_ms))]
    Limited {
        /// The call.
        what: String,
        /// When it may be tried again, in milliseconds since 1970.
        until_ms: u64,
        /// GitHub's words.
        message: String,
    },
    /// GitHub failed.
    #[error("{what}: GitHub failed with status {status}: {message}")]
    Server {
        /// The call.
        what: String,
        /// The status.
        status: u16,
        /// GitHub's words.
        message: String,
    },
    /// It could not be reached, or the connection broke.
    #[error("{what}: GitHub could not be reached: {message}")]
    Network {
        /// The call.
        what: String,
        /// Why.
        message: String,
    },
    /// It did not answer in time.
    #[error("{what}: no answer within {limit_ms} ms")]
    TimedOut {
        /// The call.
        what: String,
        /// The time that it had.
        limit_ms: u64,
    },
    /// What came back is not understood.
    #[error("{what}: the answer is not understood: {message}")]
    Unclear {
        /// The call.
        what: String,
        /// Why.
        message: String,
    },
}

impl ClientError {
    /// Whether the thing is not there, or cannot be seen.
    pub fn is_not_found(&self) -> bool {
        matches!(self, ClientError::NotFound { .. })
    }

    /// Whether the token was not enough.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, ClientError::Forbidden { .. })
    }

    /// The same with every text changed: secrets are taken out this way.
    pub(super) fn map(mut self, change: impl Fn(&str) -> String) -> Self {
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

fn needed(needs: Option<&str>) -> String {
    needs.map(|needs| format!("; it needs `{needs}`")).unwrap_or_default()
}

fn moment(until_ms: u64) -> String {
    let at = i64::try_from(until_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    at.map_or_else(|| "a time that cannot be told".to_owned(), |at| at.to_string())
}
