//! What the fake GitHub holds. It can be written down as JSON, for tests that start it as a program.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fault::Fault;

/// The token that is let in unless another is set.
pub const TOKEN: &str = "ghs_0123456789fakeGitHubToken";

/// Everything: one repository, and who may do what.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct State {
    /// Whose repository it is.
    pub owner: String,
    /// Its name.
    pub name: String,
    /// The branch that others begin on.
    pub default_branch: String,
    /// The token that is let in.
    pub token: String,
    /// Who the token acts as.
    pub login: String,
    /// Whether the token is a person's; an app's may not ask who it is.
    pub token_of_person: bool,
    /// Most items of one page, whatever is asked for.
    pub page_size: usize,
    /// Ways to merge that the repository allows.
    pub merge_methods: BTreeSet<String>,
    /// Roles of collaborators.
    pub collaborators: BTreeMap<String, String>,
    /// Accounts that exist beside them.
    pub users: BTreeSet<String>,
    /// Labels of the repository.
    pub labels: BTreeSet<String>,
    /// Issues, pull requests among them, by number.
    pub issues: BTreeMap<u64, Issue>,
    /// What pull requests have beyond issues.
    pub pulls: BTreeMap<u64, Pull>,
    /// Branches.
    pub branches: BTreeMap<String, Branch>,
    /// What moved them.
    pub moves: Vec<Move>,
    /// Check runs, by commit.
    pub checks: BTreeMap<String, Vec<Check>>,
    /// Statuses, by commit.
    pub statuses: BTreeMap<String, Vec<Status>>,
    /// Rules of rule sets, by branch, as they are answered.
    pub rules: BTreeMap<String, Vec<Value>>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// A bare repository that is served to git below `/OWNER/NAME.git`.
    pub git_dir: Option<String>,
    /// The id that was given last.
    pub last_id: u64,
    /// The second that was told last: time goes on with everything that happens.
    pub seconds: u64,
}

impl Default for State {
    fn default() -> Self {
        State {
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

/// An issue, or what a pull request has of one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Issue {
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
    /// Who opened it.
    pub author: String,
    /// Whether it is closed.
    pub closed: bool,
    /// Its labels.
    pub labels: Vec<String>,
    /// Who it is assigned to.
    pub assignees: Vec<String>,
    /// What was written below.
    pub comments: Vec<Comment>,
    /// What happened to it, as it is answered.
    pub events: Vec<Value>,
    /// When it was opened.
    pub created_at: String,
    /// When its text was last edited.
    pub edited_at: Option<String>,
}

/// A comment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Comment {
    /// Its number.
    pub id: u64,
    /// Who wrote it.
    pub author: String,
    /// Its text.
    pub body: String,
    /// When.
    pub created_at: String,
    /// When it was changed.
    pub updated_at: String,
}

/// What a pull request has beyond an issue.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pull {
    /// The branch with the change.
    pub head: String,
    /// Its commit.
    pub head_sha: String,
    /// The repository that it is in, if that is another one.
    pub fork: Option<String>,
    /// The branch that it shall go into.
    pub base: String,
    /// Whether it is not ready.
    pub draft: bool,
    /// The commit that it was merged as.
    pub merged_as: Option<String>,
    /// Whether it can be merged; nothing if the service does not know yet.
    pub mergeable: Option<bool>,
    /// After how many looks somebody pushes, so that the head is another one.
    pub moves_after: Option<usize>,
    /// How many times the service says that it does not know before it does.
    pub unknown_times: usize,
    /// `clean`, `blocked`, `behind`, `dirty`, `unstable` and so on.
    pub mergeable_state: String,
    /// Files that it changes.
    pub files: Vec<File>,
    /// Reviews.
    pub reviews: Vec<Review>,
    /// Comments at lines.
    pub review_comments: Vec<ReviewComment>,
    /// The difference, as it is answered.
    pub diff: String,
}

/// A file that a pull request changes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct File {
    /// Its path.
    pub path: String,
    /// What it was called before.
    pub before: Option<String>,
    /// Lines added.
    pub additions: u64,
    /// Lines removed.
    pub deletions: u64,
}

/// A review.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Review {
    /// Its number.
    pub id: u64,
    /// Who.
    pub author: String,
    /// `APPROVED`, `CHANGES_REQUESTED`, `COMMENTED`, `DISMISSED`.
    pub state: String,
    /// The commit that was looked at.
    pub commit: String,
    /// What was said.
    pub body: String,
    /// When.
    pub submitted_at: String,
}

/// A comment at a line.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReviewComment {
    /// Its number.
    pub id: u64,
    /// Who.
    pub author: String,
    /// What.
    pub body: String,
    /// The file.
    pub path: String,
    /// The line.
    pub line: Option<u64>,
    /// When.
    pub created_at: String,
}

/// A branch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Branch {
    /// The commit that it is at.
    pub sha: String,
    /// Its protection as it is answered, if it has one.
    pub protection: Option<Value>,
    /// Whether the token may read the protection.
    pub protection_hidden: bool,
}

/// Something that moved a branch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Move {
    /// The branch.
    pub branch: String,
    /// Who did it.
    pub by: String,
    /// The commit that it is at since.
    pub after: String,
}

/// A check run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// `queued`, `in_progress`, `completed`.
    pub status: String,
    /// What came out.
    pub conclusion: Option<String>,
    /// The app that ran it.
    pub app: String,
    /// After how many answers it is completed with `success`.
    pub completes_after: Option<usize>,
}

/// A status of a commit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Status {
    /// Its name.
    pub context: String,
    /// `success`, `failure`, `error`, `pending`.
    pub state: String,
}

impl State {
    /// The next id.
    pub(crate) fn id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// The next moment, as GitHub writes it.
    pub(crate) fn now(&mut self) -> String {
        self.seconds += 1;
        let (minutes, seconds) = (self.seconds / 60, self.seconds % 60);
        format!(
            "2026-01-{:02}T{:02}:{:02}:{seconds:02}Z",
            1 + minutes / 1440,
            minutes / 60 % 24,
            minutes % 60
        )
    }

    /// The role of an account: collaborators have theirs, everybody else who exists may read.
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

    /// Writes down that something happened to an issue.
    pub(crate) fn happened(&mut self, number: u64, event: &str, actor: &str, detail: Value) {
        let (id, at) = (self.id(), self.now());
        let mut record = serde_json::json!({
            "id": id, "event": event, "created_at": at, "actor": super::shapes::user(actor),
        });
        if let (Some(record), Value::Object(detail)) = (record.as_object_mut(), detail) {
            record.extend(detail);
        }
        if let Some(issue) = self.issues.get_mut(&number) {
            issue.events.push(record);
        }
    }

    /// Somebody pushes to the branch of a pull request.
    pub fn push(&mut self, number: u64, by: &str, after: &str) {
        let Some(pull) = self.pulls.get_mut(&number) else { return };
        pull.head_sha = after.to_owned();
        let (branch, by, after) = (pull.head.clone(), by.to_owned(), after.to_owned());
        self.moves.push(Move { branch, by, after });
    }

    /// Writes the text of an issue anew.
    pub(crate) fn edit(&mut self, number: u64, body: &str) {
        let now = self.now();
        if let Some(issue) = self.issues.get_mut(&number).filter(|issue| issue.body != body) {
            issue.body = body.to_owned();
            issue.edited_at = Some(now);
        }
    }

    /// Gives an issue another title.
    pub(crate) fn rename(&mut self, number: u64, title: &str, actor: &str) {
        let Some(issue) = self.issues.get_mut(&number).filter(|issue| issue.title != title) else {
            return;
        };
        let from = std::mem::replace(&mut issue.title, title.to_owned());
        let detail = serde_json::json!({ "rename": { "from": from, "to": title } });
        self.happened(number, "renamed", actor, detail);
    }

    /// Adds a label to an issue, and to the repository.
    pub(crate) fn add_label(&mut self, number: u64, label: &str, actor: &str) {
        self.labels.insert(label.to_owned());
        let Some(issue) = self.issues.get_mut(&number) else { return };
        if issue.labels.iter().any(|there| there.eq_ignore_ascii_case(label)) {
            return;
        }
        issue.labels.push(label.to_owned());
        self.happened(number, "labeled", actor, serde_json::json!({ "label": { "name": label } }));
    }

    /// The commit of a branch: that of the repository on disk, else of the list, else one made of its name.
    pub(crate) fn sha_of(&self, branch: &str) -> Option<String> {
        match &self.git_dir {
            Some(dir) => super::git::tip(dir, branch),
            None => self.branches.get(branch).map(|branch| branch.sha.clone()),
        }
    }
}

/// A commit's name that is made of a text.
pub fn sha_for(text: &str) -> String {
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
