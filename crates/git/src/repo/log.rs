//! The commit log.

use serde::{Deserialize, Serialize};

use super::call::Ask;
use super::{Git, GitError, Oid};
use crate::limits::LOG_COMMITS_MAX;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    pub oid: Oid,
    pub parents: Vec<Oid>,
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

impl Git {
    /// The commits that are reachable from `to` but not from `from`, newest first; at most
    /// [`LOG_COMMITS_MAX`].
    pub async fn log(&self, from: &Oid, to: &Oid) -> Result<Vec<Commit>, GitError> {
        let range = format!("{from}..{to}");
        let most = format!("--max-count={LOG_COMMITS_MAX}");
        let args = ["log", "-z", FORMAT, &most, "--no-show-signature", "--no-decorate", &range];
        let answer = self.fine(Ask::new(&args)).await?;
        let text = String::from_utf8_lossy(answer.bytes()?);
        let fields: Vec<&str> = text.split_terminator('\0').collect();
        fields
            .chunks(FIELDS)
            .map(|fields| commit_of(fields).ok_or_else(|| answer.unclear(&fields.join(" "))))
            .collect()
    }
}

fn commit_of(fields: &[&str]) -> Option<Commit> {
    let [oid, parents, author, email, time, subject, body] = fields else { return None };
    Some(Commit {
        oid: Oid::parse(oid)?,
        parents: parents.split_whitespace().map(Oid::parse).collect::<Option<_>>()?,
        author: (*author).to_owned(),
        email: (*email).to_owned(),
        time_s: time.parse().ok()?,
        subject: (*subject).to_owned(),
        body: body.trim_end().to_owned(),
    })
}
