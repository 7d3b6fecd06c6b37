//! The commit log.

use serde::{Deserialize, Serialize};

use super::call::GitCall;
use super::{GitClient, GitError, GitObjectId};
use crate::limits::LOG_COMMITS_MAX;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogCommit {
    pub oid: GitObjectId,
    pub parents: Vec<GitObjectId>,
    pub author: String,
    pub email: String,
    /// The author date, in seconds since 1970.
    pub time_s: i64,
    /// The first line of the message.
    pub subject: String,
    /// The message without its first line.
    pub body: String,
}

const FORMAT: &str = "--format=tformat:%H%x00%P%x00%an%x00%ae%x00%at%x00%s%x00%b";
const FIELDS: usize = 7;

impl GitClient {
    /// The commits that are reachable from `to` but not from `from`, newest first; at most
    /// [`LOG_COMMITS_MAX`].
    pub async fn commits_between(
        &self,
        from: &GitObjectId,
        to: &GitObjectId,
    ) -> Result<Vec<LogCommit>, GitError> {
        let range = format!("{from}..{to}");
        let most = format!("--max-count={LOG_COMMITS_MAX}");
        let args = ["log", "-z", FORMAT, &most, "--no-show-signature", "--no-decorate", &range];
        let answer = self.run_checked_call(GitCall::new(&args)).await?;
        let text = String::from_utf8_lossy(answer.stdout_bytes()?);
        let fields: Vec<&str> = text.split_terminator('\0').collect();
        fields
            .chunks(FIELDS)
            .map(|fields| commit_of(fields).ok_or_else(|| answer.unclear_error(&fields.join(" "))))
            .collect()
    }
}

fn commit_of(fields: &[&str]) -> Option<LogCommit> {
    let [oid, parents, author, email, time, subject, body] = fields else { return None };
    Some(LogCommit {
        oid: GitObjectId::parse(oid)?,
        parents: parents.split_whitespace().map(GitObjectId::parse).collect::<Option<_>>()?,
        author: (*author).to_owned(),
        email: (*email).to_owned(),
        time_s: time.parse().ok()?,
        subject: (*subject).to_owned(),
        body: body.trim_end().to_owned(),
    })
}
