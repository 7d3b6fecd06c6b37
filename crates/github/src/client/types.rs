//! The responses of GitHub's API, as far as they are used. Unknown fields are ignored.

use serde::{Deserialize, Deserializer, Serialize};

/// A GitHub account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitHubUser {
    pub login: String,
    /// `User`, `Bot` or `Organization`.
    #[serde(default, rename = "type")]
    pub kind: String,
}

impl GitHubUser {
    /// Returns true if the account is a bot.
    pub fn is_bot(&self) -> bool {
        self.kind == "Bot" || self.login.ends_with("[bot]")
    }

    /// Returns true if the account has this login. Logins are case-insensitive.
    pub fn has_login(&self, login: &str) -> bool {
        self.login.eq_ignore_ascii_case(login)
    }
}

/// The permission of an account in the repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollaboratorPermission {
    /// `admin`, `write`, `read` or `none`; `maintain` is reported as `write`, `triage` as `read`.
    pub permission: String,
    /// The role; an organisation's custom roles have their own names.
    #[serde(default)]
    pub role_name: Option<String>,
}

impl CollaboratorPermission {
    /// Returns true if it allows pushing.
    pub fn can_write(&self) -> bool {
        matches!(self.permission.as_str(), "admin" | "write")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryInfo {
    /// `owner/name`.
    pub full_name: String,
    pub default_branch: String,
    /// True if merge commits are allowed. GitHub reports the merge settings only to some tokens.
    #[serde(default)]
    pub allow_merge_commit: Option<bool>,
    #[serde(default)]
    pub allow_squash_merge: Option<bool>,
    #[serde(default)]
    pub allow_rebase_merge: Option<bool>,
}

/// An issue or pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitHubIssue {
    pub number: u64,
    pub title: String,
    #[serde(default)]
    pub body: Option<String>,
    /// `open` or `closed`.
    pub state: String,
    /// The author; `None` if the account was deleted.
    #[serde(default)]
    pub user: Option<GitHubUser>,
    #[serde(default, deserialize_with = "labels")]
    pub labels: Vec<String>,
    #[serde(default)]
    pub assignees: Vec<GitHubUser>,
    #[serde(default)]
    pub created_at: String,
    /// The URL of its page.
    #[serde(default)]
    pub html_url: String,
    /// Only set for pull requests.
    #[serde(default)]
    pub pull_request: Option<PullLink>,
}

impl GitHubIssue {
    /// Returns true if it is a pull request.
    pub fn is_pull(&self) -> bool {
        self.pull_request.is_some()
    }

    /// Returns true if it has a label, without regard to case.
    pub fn has_label(&self, label: &str) -> bool {
        self.labels.iter().any(|there| there.eq_ignore_ascii_case(label))
    }
}

/// Marks an issue as a pull request. Its content is not used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullLink {}

/// A comment on an issue or pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueComment {
    pub id: u64,
    #[serde(default)]
    pub body: Option<String>,
    #[serde(default)]
    pub user: Option<GitHubUser>,
    #[serde(default)]
    pub created_at: String,
    #[serde(default)]
    pub updated_at: String,
    /// The URL of the comment on its page.
    #[serde(default)]
    pub html_url: String,
}

/// A review of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullReview {
    pub id: u64,
    #[serde(default)]
    pub user: Option<GitHubUser>,
    /// `APPROVED`, `CHANGES_REQUESTED`, `COMMENTED`, `DISMISSED` or `PENDING`.
    pub state: String,
    /// The commit that was reviewed.
    #[serde(default)]
    pub commit_id: Option<String>,
    #[serde(default)]
    pub body: Option<String>,
    #[serde(default)]
    pub submitted_at: Option<String>,
}

/// A comment on a line of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullReviewComment {
    pub id: u64,
    #[serde(default)]
    pub user: Option<GitHubUser>,
    #[serde(default)]
    pub body: Option<String>,
    #[serde(default)]
    pub path: String,
    /// `None` if the line no longer exists.
    #[serde(default)]
    pub line: Option<u64>,
    #[serde(default)]
    pub created_at: String,
}

/// An event in the timeline of an issue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineEvent {
    /// `labeled`, `unlabeled`, `closed` and so on.
    #[serde(default)]
    pub event: String,
    #[serde(default)]
    pub actor: Option<GitHubUser>,
    /// The label that was added or removed.
    #[serde(default)]
    pub label: Option<LabelName>,
    #[serde(default)]
    pub created_at: Option<String>,
}

/// A label in a timeline event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelName {
    #[serde(default)]
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequest {
    pub number: u64,
    pub title: String,
    #[serde(default)]
    pub body: Option<String>,
    /// `open` or `closed`.
    pub state: String,
    #[serde(default)]
    pub draft: bool,
    /// True if it was merged. Always false in lists, which lack this field.
    #[serde(default)]
    pub merged: bool,
    /// The merge commit. Before the merge, GitHub's test merge commit.
    #[serde(default)]
    pub merge_commit_sha: Option<String>,
    /// `None` while GitHub computes it.
    #[serde(default)]
    pub mergeable: Option<bool>,
    /// `clean`, `blocked`, `behind`, `dirty`, `unstable`, `draft`, `has_hooks` or `unknown`.
    #[serde(default)]
    pub mergeable_state: Option<String>,
    #[serde(default)]
    pub user: Option<GitHubUser>,
    #[serde(default, deserialize_with = "labels")]
    pub labels: Vec<String>,
    /// The head branch.
    pub head: PullBranch,
    /// The base branch.
    pub base: PullBranch,
    #[serde(default)]
    pub additions: u64,
    #[serde(default)]
    pub deletions: u64,
    /// The URL of its page.
    #[serde(default)]
    pub html_url: String,
}

/// A branch of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullBranch {
    #[serde(rename = "ref")]
    pub name: String,
    pub sha: String,
    /// The repository of the branch; `None` if it was deleted.
    #[serde(default)]
    pub repo: Option<RepositoryName>,
}

/// The name of a repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryName {
    /// `owner/name`.
    pub full_name: String,
}

/// A file that a pull request changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullFile {
    pub filename: String,
    /// The path before a rename.
    #[serde(default)]
    pub previous_filename: Option<String>,
    /// `added`, `modified`, `removed`, `renamed` and so on.
    #[serde(default)]
    pub status: String,
    /// The number of added and removed lines.
    #[serde(default)]
    pub changes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRun {
    /// The id; later runs have higher ones.
    #[serde(default)]
    pub id: u64,
    pub name: String,
    pub head_sha: String,
    /// `queued`, `in_progress`, `completed` and so on.
    pub status: String,
    /// The result; `None` until the run is completed.
    #[serde(default)]
    pub conclusion: Option<String>,
    #[serde(default)]
    pub app: Option<GitHubApp>,
}

/// A GitHub app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitHubApp {
    /// The name of the app in URLs.
    #[serde(default)]
    pub slug: Option<String>,
}

/// A commit status, the predecessor of check runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitStatus {
    /// The name of the status.
    pub context: String,
    /// `success`, `failure`, `error` or `pending`.
    pub state: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitHubBranch {
    pub name: String,
    /// The latest commit.
    pub commit: CommitName,
    #[serde(default)]
    pub protected: bool,
    /// The part of the protection that every token may read.
    #[serde(default)]
    pub protection: Option<ProtectionSummary>,
}

/// A reference to a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitName {
    pub sha: String,
}

/// A change of a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchActivity {
    /// The full name of the branch, as `refs/heads/NAME`.
    #[serde(rename = "ref")]
    pub name: String,
    /// The commit after the change.
    pub after: String,
    /// `push`, `force_push`, `branch_creation`, `branch_deletion`, `pr_merge` and so on.
    #[serde(rename = "activity_type")]
    pub kind: String,
    /// `None` if the account was deleted.
    #[serde(default)]
    pub actor: Option<GitHubUser>,
}

/// The part of a branch's protection that every token may read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectionSummary {
    #[serde(default)]
    pub required_status_checks: Option<RequiredChecks>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchProtection {
    #[serde(default)]
    pub required_status_checks: Option<RequiredChecks>,
    #[serde(default)]
    pub required_pull_request_reviews: Option<RequiredReviews>,
    /// Requires that conversations are resolved.
    #[serde(default)]
    pub required_conversation_resolution: Option<EnabledSetting>,
}

/// Checks that must succeed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequiredChecks {
    /// True if the branch must be up to date with its base.
    #[serde(default)]
    pub strict: bool,
    /// The names of the checks.
    #[serde(default)]
    pub contexts: Vec<String>,
}

/// Reviews that a pull request needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequiredReviews {
    /// True if a new commit dismisses earlier reviews.
    #[serde(default)]
    pub dismiss_stale_reviews: bool,
    #[serde(default)]
    pub required_approving_review_count: u32,
}

/// A setting that is on or off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnabledSetting {
    #[serde(default)]
    pub enabled: bool,
}

/// A rule of a rule set that applies to a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchRule {
    /// `required_status_checks`, `pull_request` and so on.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub parameters: Option<RuleParameters>,
}

/// The parameters of a rule, as far as they are used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleParameters {
    #[serde(default)]
    pub required_status_checks: Vec<RuleCheck>,
    #[serde(default)]
    pub required_approving_review_count: u32,
    /// True if a new commit dismisses earlier reviews.
    #[serde(default)]
    pub dismiss_stale_reviews_on_push: bool,
    /// True if conversations must be resolved.
    #[serde(default)]
    pub required_review_thread_resolution: bool,
}

/// A check that a rule requires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleCheck {
    /// The name of the check.
    pub context: String,
}

/// The result of a merge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeResult {
    /// The merge commit.
    pub sha: String,
    #[serde(default)]
    pub merged: bool,
}

/// Deserialises labels, which are objects, or strings in some responses.
fn labels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let labels = Vec::<serde_json::Value>::deserialize(deserializer)?;
    Ok(labels.iter().filter_map(label_name).collect())
}

fn label_name(label: &serde_json::Value) -> Option<String> {
    label.as_str().or_else(|| label["name"].as_str()).map(str::to_owned)
}
