//! Faults that tests can inject.

use serde::{Deserialize, Serialize};

/// A fault that affects some calls.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitHubFault {
    /// Affects only calls with this method; all if absent.
    #[serde(default)]
    pub method: Option<String>,
    /// Affects only calls whose path contains this.
    pub path: String,
    /// The number of matching calls to let pass first.
    #[serde(default)]
    pub after: usize,
    /// The number of calls to affect.
    #[serde(default = "once")]
    pub times: usize,
    pub kind: GitHubFaultKind,
}

fn once() -> usize {
    1
}

/// The effect of a fault on a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum GitHubFaultKind {
    /// The call is not executed, and this response is sent.
    Status {
        status: u16,
        #[serde(default)]
        headers: Vec<(String, String)>,
        /// The message in GitHub's error format.
        #[serde(default)]
        message: String,
    },
    /// The call succeeds, with additional headers.
    Headers { headers: Vec<(String, String)> },
    /// The call is executed, but the connection is closed without a response.
    LostAnswer,
    /// The call is not executed, and the connection is closed.
    Dropped,
    /// The response is not valid JSON.
    Malformed,
    /// The call is not executed, and no response is sent.
    Hang,
    /// The call is executed, but no response is sent.
    HangAfter,
    /// The response is larger than a client should read.
    Huge { bytes: usize },
}

impl GitHubFault {
    /// Affects the next call whose path contains `path`.
    pub fn new(path: &str, kind: GitHubFaultKind) -> Self {
        GitHubFault { method: None, path: path.to_owned(), after: 0, times: 1, kind }
    }

    /// Responds with a status and a message.
    pub fn status(path: &str, status: u16, message: &str) -> Self {
        let message = message.to_owned();
        GitHubFault::new(path, GitHubFaultKind::Status { status, headers: Vec::new(), message })
    }

    /// Reports an exceeded hourly rate limit, with its reset in seconds since 1970.
    pub fn primary_limit(path: &str, reset_s: u64) -> Self {
        let headers = [
            ("x-ratelimit-limit", "5000".to_owned()),
            ("x-ratelimit-remaining", "0".to_owned()),
            ("x-ratelimit-reset", reset_s.to_string()),
        ];
        GitHubFault::with_status(path, 403, &headers, "API rate limit exceeded for installation.")
    }

    /// Reports an exceeded secondary rate limit, with the delay in seconds.
    pub fn secondary_limit(path: &str, retry_after_s: u64) -> Self {
        let headers = [("retry-after", retry_after_s.to_string())];
        GitHubFault::with_status(path, 429, &headers, "You have exceeded a secondary rate limit.")
    }

    /// Reports that the token lacks a permission.
    pub fn forbidden(path: &str, permission: &str) -> Self {
        let headers = [("x-accepted-github-permissions", permission.to_owned())];
        GitHubFault::with_status(path, 403, &headers, "Resource not accessible by integration")
    }

    fn with_status(path: &str, status: u16, headers: &[(&str, String)], message: &str) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let message = message.to_owned();
        GitHubFault::new(
            path,
            GitHubFaultKind::Status { status, headers: headers.collect(), message },
        )
    }

    /// Affects only calls with this method.
    #[must_use]
    pub fn method(mut self, method: &str) -> Self {
        self.method = Some(method.to_owned());
        self
    }

    /// Sets the number of calls to affect.
    #[must_use]
    pub fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    /// Sets the number of calls to let pass first.
    #[must_use]
    pub fn after(mut self, calls: usize) -> Self {
        self.after = calls;
        self
    }

    /// Returns true, and counts the call, if the fault affects it.
    pub(crate) fn affects(&mut self, method: &str, path: &str) -> bool {
        let meant = self.method.as_deref().is_none_or(|only| only == method);
        if !meant || !path.contains(&self.path) || self.times == 0 {
            return false;
        }
        if self.after > 0 {
            self.after -= 1;
            return false;
        }
        self.times -= 1;
        true
    }
}
