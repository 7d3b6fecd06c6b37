//! The origin of a pull request of the bot: a hidden line at the very beginning of its text, for
//! processes that look at it later.
//!
//! Any account with write access can edit that text, so it proves nothing and never grants
//! anything: it names the run to look up, the issue to close, and the accounts whose approval does
//! *not* count. Without it nothing is merged.

use repertoire_journal::RunId;
use serde::{Deserialize, Serialize};

use crate::limits::ORIGIN_BYTES_MAX;

const BEGINS: &str = "<!-- repertoire:made ";
const ENDS: &str = " -->";

/// The origin of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullOrigin {
    /// The run that created it.
    pub run: RunId,
    #[serde(default)]
    pub issue: Option<u64>,
    /// The accounts that asked for it; `None` if they are not known.
    #[serde(default)]
    pub asked_by: Option<Vec<String>>,
}

impl PullOrigin {
    /// Returns the line for the text of a pull request.
    pub fn to_line(&self) -> String {
        let json = serde_json::to_string(self).unwrap_or_default();
        // Escape `>`, so that nothing in the JSON can end the comment.
        format!("{BEGINS}{}{ENDS}", json.replace('>', "\\u003e"))
    }

    /// Parses the first line of the text of a pull request. Further down it could be a quotation.
    pub fn read_body(body: &str) -> Option<PullOrigin> {
        let line = body.lines().next().filter(|line| line.len() <= ORIGIN_BYTES_MAX)?;
        let json = line.trim_end().strip_prefix(BEGINS)?.strip_suffix(ENDS)?;
        serde_json::from_str(json).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin() -> PullOrigin {
        let asked_by = Some(vec!["ada".to_owned(), "--> @eve".to_owned()]);
        PullOrigin { run: RunId::known("0190-a"), issue: Some(31), asked_by }
    }

    #[test]
    fn what_is_written_is_read_again_and_stays_hidden() {
        let body = format!("{}\r\n\nFor #31.", origin().to_line());
        assert_eq!(PullOrigin::read_body(&body), Some(origin()));
        assert_eq!(body.matches("-->").count(), 1, "{body}");
    }

    #[test]
    fn only_the_very_beginning_counts() {
        let line = origin().to_line();
        let long = format!("{BEGINS}{}{ENDS}", " ".repeat(ORIGIN_BYTES_MAX));
        for body in [format!("Hello\n{line}"), format!(" {line}"), format!("{line} x"), long] {
            assert_eq!(PullOrigin::read_body(&body), None, "{body}");
        }
        assert_eq!(PullOrigin::read_body(""), None);
    }

    #[test]
    fn who_asked_may_be_unknown_but_the_run_may_not() {
        let read = |json: &str| PullOrigin::read_body(&format!("{BEGINS}{json}{ENDS}"));
        assert_eq!(read(r#"{"run":"a"}"#).unwrap().asked_by, None);
        assert_eq!(read(r#"{"asked_by":[]}"#), None);
    }
}
