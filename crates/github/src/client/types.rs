//! What GitHub answers, as far as it is used. Fields that are not named here are passed over.

use serde::{Deserialize, Deserializer, Serialize};

/// An account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The name that it is known by.
    pub login: String,
    /// `User`, `Bot` or `Organization`.
    #[serde(default, rename = "type")]
    pub kind: String,
}

impl User {
    /// Whether it is a program.
    pub fn is_bot(&self) -> bool {
        self.kind == "Bot" || self.login.ends_with("[bot]")
    }

    /// Whether it has a name; letters count in either case.
    pub fn is(&self, login: &str) -> bool {
        self.login.eq_ignore_ascii_case(login)
    }
}

/// What somebody may do in the repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permission {
    /// `admin`, `write`, `read` or `none`: `maintain` counts as `write` here, `triage` as `read`.
    pub permission: String,
    /// The role itself; one that an organisation made up has its own name.
    #[serde(default)]
    pub role_name: Option<String>,
}

impl Permission {
    /// Whether it allows to push.
    pub fn can_write(&self) -> bool {
        matches!(self.permission.as_str(), "admin" | "write")
    }
}

/// The repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryInfo {
    /// Owner and name.
    pub full_name: String,
    /// The branch that others begin on.
    pub default_branch: String,
    /// Whether a merge commit may be made; not told to everybody.
    #[serde(default)]
    pub allow_merge_commit: Option<bool>,
    /// Whether commits may be squashed.
    #[serde(default)]
    pub allow_squash_merge: Option<bool>,
    /// Whether commits may be rebased.
    #[serde(default)]
    pub allow_rebase_merge: Option<bool>,
}

/// An issue; a pull request is one as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its text.
    #[serde(default)]
    pub body: Option<String>,
    /// `open` or `closed`.
    pub state: String,
    /// Who opened it; nobody if the account is gone.
    #[serde(default)]
    pub user: Option<User>,
    /// Its labels.
    #[serde(default, deserialize_with = "labels")]
    pub labels: Vec<String>,
    /// Who it is assigned to.
    #[serde(default)]
    pub assignees: Vec<User>,
    /// When it was opened.
    #[serde(default)]
    pub created_at: String,
    /// Where people see it.
    #[serde(default)]
    pub html_url: String,
    /// There for pull requests only.
    #[serde(default)]
    pub pull_request: Option<PullMark>,
}

impl Issue {
    /// Whether it is a pull request.
    pub fn is_pull(&self) -> bool {
        self.pull_request.is_some()
    }

    /// Whether it has a label; letters count in either case.
    pub fn has_label(&self, label: &str) -> bool {
        self.labels.iter().any(|there| there.eq_ignore_ascii_case(label))
    }
}

/// What tells a pull request from an issue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullMark {}

/// A comment below an issue or a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    /// Its number.
    pub id: u64,
    /// Its text.
    #[serde(default)]
    pub body: Option<String>,
    /// Who wrote it.
    #[serde(default)]
    pub user: Option<User>,
    /// When.
    #[serde(default)]
    pub created_at: String,
    /// When it was changed.
    #[serde(default)]
    pub updated_at: String,
    /// Where people see it.
    #[serde(default)]
    pub html_url: String,
}

/// A review of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// Its number.
    pub id: u64,
    /// Who.
    #[serde(default)]
    pub user: Option<User>,
    /// `APPROVED`, `CHANGES_REQUESTED`, `COMMENTED`, `DISMISSED` or `PENDING`.
    pub state: String,
    /// The commit that was looked at.
    #[serde(default)]
    pub commit_id: Option<String>,
    /// What was said.
    #[serde(default)]
    pub body: Option<String>,
    /// When.
    #[serde(default)]
    pub submitted_at: Option<String>,
}

/// A comment at a line of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewComment {
    /// Its number.
    pub id: u64,
    /// Who.
    #[serde(default)]
    pub user: Option<User>,
    /// What.
    #[serde(default)]
    pub body: Option<String>,
    /// The file.
    #[serde(default)]
    pub path: String,
    /// The line; nothing if it is gone.
    #[serde(default)]
    pub line: Option<u64>,
    /// When.
    #[serde(default)]
    pub created_at: String,
}

/// Something that happened to an issue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineEvent {
    /// `labeled`, `unlabeled`, `closed` and so on.
    #[serde(default)]
    pub event: String,
    /// Who did it.
    #[serde(default)]
    pub actor: Option<User>,
    /// The label that it is about.
    #[serde(default)]
    pub label: Option<LabelName>,
    /// When.
    #[serde(default)]
    pub created_at: Option<String>,
}

/// A label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelName {
    /// Its name.
    #[serde(default)]
    pub name: String,
}

/// A pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its text.
    #[serde(default)]
    pub body: Option<String>,
    /// `open` or `closed`.
    pub state: String,
    /// Whether it is not ready.
    #[serde(default)]
    pub draft: bool,
    /// Whether it was merged. Lists do not say.
    #[serde(default)]
    pub merged: bool,
    /// The commit that it was merged as. Before, a commit to try with.
    #[serde(default)]
    pub merge_commit_sha: Option<String>,
    /// Whether it can be merged; nothing while GitHub works it out.
    #[serde(default)]
    pub mergeable: Option<bool>,
    /// `clean`, `blocked`, `behind`, `dirty`, `unstable`, `draft`, `has_hooks` or `unknown`.
    #[serde(default)]
    pub mergeable_state: Option<String>,
    /// Who opened it.
    #[serde(default)]
    pub user: Option<User>,
    /// Its labels.
    #[serde(default, deserialize_with = "labels")]
    pub labels: Vec<String>,
    /// The branch with the change.
    pub head: PullBranch,
    /// The branch that it shall go into.
    pub base: PullBranch,
    /// Lines added.
    #[serde(default)]
    pub additions: u64,
    /// Lines removed.
    #[serde(default)]
    pub deletions: u64,
    /// Where people see it.
    #[serde(default)]
    pub html_url: String,
}

/// A branch of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullBranch {
    /// Its name.
    #[serde(rename = "ref")]
    pub name: String,
    /// Its commit.
    pub sha: String,
    /// The repository that it is in; nothing if that is gone.
    #[serde(default)]
    pub repo: Option<RepositoryName>,
}

/// Owner and name of a repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryName {
    /// Owner and name.
    pub full_name: String,
}

/// A file that a pull request changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullFile {
    /// Its path.
    pub filename: String,
    /// What it was called before.
    #[serde(default)]
    pub previous_filename: Option<String>,
    /// `added`, `modified`, `removed`, `renamed` and so on.
    #[serde(default)]
    pub status: String,
    /// Lines added and removed.
    #[serde(default)]
    pub changes: u64,
}

/// A check run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRun {
    /// Its number: later runs have higher ones.
    #[serde(default)]
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The commit that it is about.
    pub head_sha: String,
    /// `queued`, `in_progress`, `completed` and so on.
    pub status: String,
    /// What came out, once it is completed.
    #[serde(default)]
    pub conclusion: Option<String>,
    /// The app that ran it.
    #[serde(default)]
    pub app: Option<App>,
}

/// An app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct App {
    /// Its name in addresses.
    #[serde(default)]
    pub slug: Option<String>,
}

/// A status of a commit: what was there before check runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitStatus {
    /// Its name.
    pub context: String,
    /// `success`, `failure`, `error` or `pending`.
    pub state: String,
}

/// A branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    /// Its name.
    pub name: String,
    /// The commit that it is at.
    pub commit: CommitName,
    /// Whether it is protected.
    #[serde(default)]
    pub protected: bool,
    /// As much of its protection as everybody is told.
    #[serde(default)]
    pub protection: Option<ProtectionSummary>,
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitName {
    /// Its name.
    pub sha: String,
}

/// Something that moved a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// The full name of the branch, as `refs/heads/NAME`.
    #[serde(rename = "ref")]
    pub name: String,
    /// The commit that it is at since.
    pub after: String,
    /// `push`, `force_push`, `branch_creation`, `branch_deletion`, `pr_merge` and so on.
    #[serde(rename = "activity_type")]
    pub kind: String,
    /// Who did it; nobody if the account is gone.
    #[serde(default)]
    pub actor: Option<User>,
}

/// As much of a branch's protection as everybody is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectionSummary {
    /// The checks that have to succeed.
    #[serde(default)]
    pub required_status_checks: Option<RequiredChecks>,
}

/// The protection of a branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protection {
    /// The checks that have to succeed.
    #[serde(default)]
    pub required_status_checks: Option<RequiredChecks>,
    /// The reviews that are needed.
    #[serde(default)]
    pub required_pull_request_reviews: Option<RequiredReviews>,
    /// Whether conversations have to be resolved.
    #[serde(default)]
    pub required_conversation_resolution: Option<Switch>,
}

/// Checks that have to succeed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequiredChecks {
    /// Whether the branch has to be up to date.
    #[serde(default)]
    pub strict: bool,
    /// Their names.
    #[serde(default)]
    pub contexts: Vec<String>,
}

/// Reviews that are needed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequiredReviews {
    /// Whether a new commit makes reviews void.
    #[serde(default)]
    pub dismiss_stale_reviews: bool,
    /// How many approvals.
    #[serde(default)]
    pub required_approving_review_count: u32,
}

/// Something that is on or off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// Whether it is on.
    #[serde(default)]
    pub enabled: bool,
}

/// A rule that holds for a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// `required_status_checks`, `pull_request` and so on.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it says.
    #[serde(default)]
    pub parameters: Option<RuleParameters>,
}

/// What a rule says, as far as it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleParameters {
    /// Checks that have to succeed.
    #[serde(default)]
    pub required_status_checks: Vec<RuleCheck>,
    /// How many approvals.
    #[serde(default)]
    pub required_approving_review_count: u32,
    /// Whether a new commit makes reviews void.
    #[serde(default)]
    pub dismiss_stale_reviews_on_push: bool,
    /// Whether conversations have to be resolved.
    #[serde(default)]
    pub required_review_thread_resolution: bool,
}

/// A check that a rule demands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleCheck {
    /// Its name.
    pub context: String,
}

/// What came of a merge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merged {
    /// The commit.
    pub sha: String,
    /// Whether it was done.
    #[serde(default)]
    pub merged: bool,
}

/// Labels are objects, or, in old answers, texts.
fn labels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let labels = Vec::<serde_json::Value>::deserialize(deserializer)?;
    let name = |label: &serde_json::Value| {
        label.as_str().or_else(|| label["name"].as_str()).map(str::to_owned)
    };
    Ok(labels.iter().filter_map(name).collect())
}
