//! Commits, as they are told.

use serde::{Deserialize, Serialize};

use super::call::Ask;
use super::{Git, GitError, Oid};
use crate::limits::LOG_COMMITS_MAX;

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Its name.
    pub oid: Oid,
    /// What it builds on.
    pub parents: Vec<Oid>,
    /// Who wrote it.
    pub author: String,
    /// Their address.
    pub email: String,
    /// When, in seconds since 1970.
    pub time_s: i64,
    /// The first line of its message.
    pub subject: String,
    /// The rest of its message.
    pub body: String,
}

const FORMAT: &str = "--format=tformat:%H%x00%P%x00%an%x00%ae%x00%at%x00%s%x00%b";
const FIELDS: usize = 7;

impl Git {
    /// The commits that are reached from `to` and not from `from`, the newest first; at most [`LOG_COMMITS_MAX`].
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
