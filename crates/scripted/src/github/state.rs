//! The state of the fake GitHub. Serialisable, for tests that start it as a program.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fault::GitHubFault;

/// The accepted token, unless another is set.
pub const TOKEN: &str = "ghs_0123456789fakeGitHubToken";

/// The whole state: one repository, and its permissions.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FakeGitHubState {
    pub owner: String,
    pub name: String,
    pub default_branch: String,
    /// The accepted token.
    pub token: String,
    /// The user as which the token acts.
    pub login: String,
    /// True for a personal token; an app's token may not query its user.
    pub token_of_person: bool,
    /// The maximum number of items per page, regardless of the request.
    pub page_size: usize,
    /// The merge methods that the repository allows.
    pub merge_methods: BTreeSet<String>,
    /// The roles of collaborators, by login.
    pub collaborators: BTreeMap<String, String>,
    /// Other existing accounts.
    pub users: BTreeSet<String>,
    /// The labels of the repository.
    pub labels: BTreeSet<String>,
    /// Issues and pull requests, by number.
    pub issues: BTreeMap<u64, FakeIssue>,
    /// The additional data of pull requests.
    pub pulls: BTreeMap<u64, FakePull>,
    pub branches: BTreeMap<String, FakeBranch>,
    /// The pushes so far.
    pub moves: Vec<FakePush>,
    /// Check runs, by commit.
    pub checks: BTreeMap<String, Vec<FakeCheck>>,
    /// Commit statuses, by commit.
    pub statuses: BTreeMap<String, Vec<FakeCommitStatus>>,
    /// Rules of rulesets, by branch, in the API's format.
    pub rules: BTreeMap<String, Vec<Value>>,
    pub faults: Vec<GitHubFault>,
    /// A bare repository that is served to git below `/OWNER/NAME.git`.
    pub git_dir: Option<String>,
    /// The last assigned id.
    pub last_id: u64,
    /// The simulated time in seconds; it advances with every event.
    pub seconds: u64,
}

impl Default for FakeGitHubState {
    fn default() -> Self {
        FakeGitHubState {
            owner: "octo".to_owned(),
            name: "repo".to_owned(),
            default_branch: "main".to_owned(),
            token: TOKEN.to_owned(),
            login: "github-actions[bot]".to_owned(),
            token_of_person: false,
            page_size: 100,
            merge_methods: ["merge", "squash", "rebase"].map(str::to_owned).into(),
            collaborators: BTreeMap::new(),
            users: BTreeSet::new(),
            labels: BTreeSet::new(),
            issues: BTreeMap::new(),
            pulls: BTreeMap::new(),
            branches: BTreeMap::new(),
            moves: Vec::new(),
            checks: BTreeMap::new(),
            statuses: BTreeMap::new(),
            rules: BTreeMap::new(),
            faults: Vec::new(),
            git_dir: None,
            last_id: 1000,
            seconds: 0,
        }
    }
}

/// An issue, or the issue part of a pull request.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FakeIssue {
    pub title: String,
    pub body: String,
    pub author: String,
    pub closed: bool,
    pub labels: Vec<String>,
    pub assignees: Vec<String>,
    pub comments: Vec<FakeComment>,
    /// The events of the issue, in the API's format.
    pub events: Vec<Value>,
    pub created_at: String,
    /// The time of the last edit of the body.
    pub edited_at: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FakeComment {
    pub id: u64,
    pub author: String,
    pub body: String,
    pub created_at: String,
    pub updated_at: String,
}

/// The data of a pull request beyond that of an issue.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FakePull {
    /// The head branch.
    pub head: String,
    pub head_sha: String,
    /// The repository of the head branch, if it is a fork.
    pub fork: Option<String>,
    /// The base branch.
    pub base: String,
    pub draft: bool,
    /// The merge commit.
    pub merged_as: Option<String>,
    /// True if it can be merged; `None` if GitHub has not computed it yet.
    pub mergeable: Option<bool>,
    /// Simulates a push after this many requests.
    pub moves_after: Option<usize>,
    /// The number of requests to which `mergeable` is unknown.
    pub unknown_times: usize,
    /// `clean`, `blocked`, `behind`, `dirty`, `unstable` and so on.
    pub mergeable_state: String,
    pub files: Vec<FakePullFile>,
    pub reviews: Vec<FakeReview>,
    pub review_comments: Vec<FakeReviewComment>,
    pub diff: String,
}

/// A file that a pull request changes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FakePullFile {
    pub path: String,
    /// The previous path of a renamed file.
    pub before: Option<String>,
    pub additions: u64,
    pub deletions: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FakeReview {
    pub id: u64,
    pub author: String,
    /// `APPROVED`, `CHANGES_REQUESTED`, `COMMENTED`, `DISMISSED`.
    pub state: String,
    /// The reviewed commit.
    pub commit: String,
    pub body: String,
    pub submitted_at: String,
}

/// A review comment on a line.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FakeReviewComment {
    pub id: u64,
    pub author: String,
    pub body: String,
    pub path: String,
    pub line: Option<u64>,
    pub created_at: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FakeBranch {
    pub sha: String,
    /// The protection in the API's format, if any.
    pub protection: Option<Value>,
    /// True if the token may not read the protection.
    pub protection_hidden: bool,
}

/// A push to a branch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FakePush {
    pub branch: String,
    pub by: String,
    /// The commit after the push.
    pub after: String,
}

/// A check run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FakeCheck {
    pub name: String,
    /// `queued`, `in_progress`, `completed`.
    pub status: String,
    pub conclusion: Option<String>,
    /// The app that ran it.
    pub app: String,
    /// Completes with `success` after this many requests.
    pub completes_after: Option<usize>,
}

/// A commit status.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FakeCommitStatus {
    pub context: String,
    /// `success`, `failure`, `error`, `pending`.
    pub state: String,
}

impl FakeGitHubState {
    /// Returns the next id.
    pub(crate) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Advances the time, and returns it in GitHub's format.
    pub(crate) fn next_time(&mut self) -> String {
        self.seconds += 1;
        let (minutes, seconds) = (self.seconds / 60, self.seconds % 60);
        format!(
            "2026-01-{:02}T{:02}:{:02}:{seconds:02}Z",
            1 + minutes / 1440,
            minutes / 60 % 24,
            minutes % 60
        )
    }

    /// The role of an account: that of a collaborator, or `read` for every other existing account.
    pub(crate) fn role_of(&self, login: &str) -> Option<&str> {
        let known = |name: &&String| name.eq_ignore_ascii_case(login);
        if let Some((_, role)) = self.collaborators.iter().find(|(name, _)| known(name)) {
            return Some(role);
        }
        let wrote = self.issues.values().any(|issue| {
            known(&&issue.author) || issue.comments.iter().any(|comment| known(&&comment.author))
        });
        (wrote || self.users.iter().any(|name| known(&name))).then_some("read")
    }

    /// Records an event of an issue.
    pub(crate) fn record_event(&mut self, number: u64, event: &str, actor: &str, detail: Value) {
        let (id, at) = (self.next_id(), self.next_time());
        let mut record = serde_json::json!({
            "id": id, "event": event, "created_at": at, "actor": super::api_json::user_json(actor),
        });
        if let (Some(record), Value::Object(detail)) = (record.as_object_mut(), detail) {
            record.extend(detail);
        }
        if let Some(issue) = self.issues.get_mut(&number) {
            issue.events.push(record);
        }
    }

    /// Simulates a push to the branch of a pull request.
    pub fn push(&mut self, number: u64, by: &str, after: &str) {
        let Some(pull) = self.pulls.get_mut(&number) else { return };
        pull.head_sha = after.to_owned();
        let (branch, by, after) = (pull.head.clone(), by.to_owned(), after.to_owned());
        self.moves.push(FakePush { branch, by, after });
    }

    /// Edits the body of an issue.
    pub(crate) fn edit_issue(&mut self, number: u64, body: &str) {
        let now = self.next_time();
        if let Some(issue) = self.issues.get_mut(&number).filter(|issue| issue.body != body) {
            issue.body = body.to_owned();
            issue.edited_at = Some(now);
        }
    }

    /// Changes the title of an issue.
    pub(crate) fn rename_issue(&mut self, number: u64, title: &str, actor: &str) {
        let Some(issue) = self.issues.get_mut(&number).filter(|issue| issue.title != title) else {
            return;
        };
        let from = std::mem::replace(&mut issue.title, title.to_owned());
        let detail = serde_json::json!({ "rename": { "from": from, "to": title } });
        self.record_event(number, "renamed", actor, detail);
    }

    /// Adds a label to an issue, and to the repository.
    pub(crate) fn add_label(&mut self, number: u64, label: &str, actor: &str) {
        self.labels.insert(label.to_owned());
        let Some(issue) = self.issues.get_mut(&number) else { return };
        if issue.labels.iter().any(|there| there.eq_ignore_ascii_case(label)) {
            return;
        }
        issue.labels.push(label.to_owned());
        self.record_event(
            number,
            "labeled",
            actor,
            serde_json::json!({ "label": { "name": label } }),
        );
    }

    /// The commit of a branch: from the repository on disk, if there is one, else from the state.
    pub(crate) fn sha_of(&self, branch: &str) -> Option<String> {
        match &self.git_dir {
            Some(dir) => super::git::branch_tip(dir, branch),
            None => self.branches.get(branch).map(|branch| branch.sha.clone()),
        }
    }
}

/// A commit id derived from a text.
pub fn fake_sha(text: &str) -> String {
    let mut state: u64 = 0xcbf2_9ce4_8422_2325;
    let mut out = String::new();
    while out.len() < 40 {
        for byte in text.bytes().chain([out.len() as u8]) {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        out.push_str(&format!("{state:016x}"));
    }
    out.truncate(40);
    out
}
