//! What goes wrong, on command.

use serde::{Deserialize, Serialize};

/// Something that goes wrong with calls.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Calls with this method; all without one.
    #[serde(default)]
    pub method: Option<String>,
    /// Calls whose path has this in it.
    pub path: String,
    /// How many calls are passed over before.
    #[serde(default)]
    pub after: usize,
    /// How many calls it strikes.
    #[serde(default = "once")]
    pub times: usize,
    /// What happens to them.
    pub kind: FaultKind,
}

fn once() -> usize {
    1
}

/// What happens to a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FaultKind {
    /// Nothing is done, and this is answered.
    Status {
        /// The status.
        status: u16,
        /// Headers.
        #[serde(default)]
        headers: Vec<(String, String)>,
        /// GitHub's message.
        #[serde(default)]
        message: String,
    },
    /// All is well, but for headers that are added.
    Headers {
        /// The headers.
        headers: Vec<(String, String)>,
    },
    /// It is done, and nobody is told: the connection ends.
    LostAnswer,
    /// It is not done either: the connection ends.
    Dropped,
    /// What is answered is no JSON.
    Malformed,
    /// Nothing ever comes.
    Hang,
    /// It is done, and then nothing ever comes.
    HangAfter,
    /// More than anybody should read is answered.
    Huge {
        /// How much.
        bytes: usize,
    },
}

impl Fault {
    /// Something that strikes the next call whose path has `path` in it.
    pub fn on(path: &str, kind: FaultKind) -> Self {
        Fault { method: None, path: path.to_owned(), after: 0, times: 1, kind }
    }

    /// A status, with a message.
    pub fn status(path: &str, status: u16, message: &str) -> Self {
        let message = message.to_owned();
        Fault::on(path, FaultKind::Status { status, headers: Vec::new(), message })
    }

    /// The allowance of the hour is used up until a second since 1970.
    pub fn primary_limit(path: &str, reset_s: u64) -> Self {
        let headers = [
            ("x-ratelimit-limit", "5000".to_owned()),
            ("x-ratelimit-remaining", "0".to_owned()),
            ("x-ratelimit-reset", reset_s.to_string()),
        ];
        Fault::refusing(path, 403, &headers, "API rate limit exceeded for installation.")
    }

    /// Too much at once; come back after so many seconds.
    pub fn secondary_limit(path: &str, retry_after_s: u64) -> Self {
        let headers = [("retry-after", retry_after_s.to_string())];
        Fault::refusing(path, 429, &headers, "You have exceeded a secondary rate limit.")
    }

    /// The token lacks a permission.
    pub fn forbidden(path: &str, permission: &str) -> Self {
        let headers = [("x-accepted-github-permissions", permission.to_owned())];
        Fault::refusing(path, 403, &headers, "Resource not accessible by integration")
    }

    fn refusing(path: &str, status: u16, headers: &[(&str, String)], message: &str) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let message = message.to_owned();
        Fault::on(path, FaultKind::Status { status, headers: headers.collect(), message })
    }

    /// Only for calls with a method.
    #[must_use]
    pub fn method(mut self, method: &str) -> Self {
        self.method = Some(method.to_owned());
        self
    }

    /// For so many calls.
    #[must_use]
    pub fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    /// Not before so many calls went well.
    #[must_use]
    pub fn after(mut self, calls: usize) -> Self {
        self.after = calls;
        self
    }

    /// Whether it strikes this call; it counts it if so.
    pub(crate) fn strikes(&mut self, method: &str, path: &str) -> bool {
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
