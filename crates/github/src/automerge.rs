//! Auto-merge: merges a pull request without a person. The answer is no unless every condition is
//! known to hold, and the feature is off unless the configuration of the base branch enables it.
//!
//! [`decide_merge`] is pure: facts and settings in, a decision with its reason out. [`gather_facts`] fetches
//! the facts; a failed lookup is unknown, and unknown means no. [`merge_if_allowed`] waits for pending facts,
//! merges exactly the commit that was decided on, and confirms the merge by reading it back. It is
//! attempted when a pull request is opened, and again with every event that may have changed the
//! answer. [`PullOrigin`] is the data that a later process reads from the pull request itself.

use std::collections::BTreeMap;

use crate::client::MergeMethod;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod decide;
mod gather;
mod merge;
mod origin;
mod sensitive;
mod watch;

pub use decide::decide_merge;
pub use gather::gather_facts;
pub use merge::{MergeClock, WallClock, merge_if_allowed};
pub use origin::PullOrigin;
pub use watch::HALT_LABEL;

/// The settings of auto-merge. They are read from the base branch, so a pull request cannot enable
/// it for itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AutoMerge {
    /// Enables auto-merge.
    pub enabled: bool,
    /// The names of checks that must have succeeded. Without any, nothing is merged.
    pub required_checks: Vec<String>,
    /// The app a check must come from, by the name of the check.
    pub check_apps: BTreeMap<String, String>,
    /// The names of checks for which `neutral` and `skipped` count as success.
    pub skippable_checks: Vec<String>,
    /// The names of checks that may fail, unless they are required.
    pub optional_checks: Vec<String>,
    /// The required number of approvals of the exact commit, by people with write access who
    /// neither wrote it nor asked for it.
    pub required_approvals: u32,
    /// True if the bot adds an approval of its own. It never counts towards the required approvals.
    pub approve: bool,
    /// The merge method; a method the repository allows, if absent.
    pub method: Option<MergeMethod>,
    /// The maximum wait for pending checks, in seconds.
    pub wait_seconds: u64,
    /// The time for which the checks of the merged commit are watched, in seconds; 0 to disable.
    pub watch_seconds: u64,
    /// The branches that may be merged into. If empty, the default branch, unless it is protected
    /// or a release branch.
    pub base_branches: Vec<String>,
    /// The maximum number of changed lines.
    pub changed_lines_max: u64,
    /// The maximum number of changed files.
    pub changed_files_max: u64,
    /// The labels that prevent a merge.
    pub stop_labels: Vec<String>,
    /// Suspends all merges.
    pub frozen: bool,
    /// True if the head branch is deleted afterwards.
    pub delete_branch: bool,
    /// True if the linked issue is closed afterwards.
    pub close_issue: bool,
}

impl Default for AutoMerge {
    fn default() -> Self {
        AutoMerge {
            enabled: false,
            required_checks: Vec::new(),
            check_apps: BTreeMap::new(),
            skippable_checks: Vec::new(),
            optional_checks: Vec::new(),
            required_approvals: 1,
            approve: false,
            method: None,
            wait_seconds: 600,
            watch_seconds: 600,
            base_branches: Vec::new(),
            changed_lines_max: 500,
            changed_files_max: 50,
            stop_labels: ["do-not-merge", "hold", "wip"].map(str::to_owned).to_vec(),
            frozen: false,
            delete_branch: false,
            close_issue: false,
        }
    }
}

impl AutoMerge {
    /// Returns remarks for the owner of the repository: anyone with write access can report a check
    /// under any name.
    fn settings_remarks(&self) -> Vec<String> {
        let open = self.required_checks.iter().filter(|name| !self.check_apps.contains_key(*name));
        open.map(|name| missing_app_remark(name)).collect()
    }
}

fn missing_app_remark(name: &str) -> String {
    format!("required check `{name}` counts whoever reports it; name its app in `check_apps`")
}

/// A fact that is known, or unknown with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeFact<T> {
    Known(T),
    Unknown(String),
}

/// The facts that the driver knows and GitHub does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutoMergeRequest {
    pub number: u64,
    /// True if a permitted event or actor asked for the merge.
    pub asked: MergeFact<bool>,
    /// The accounts that asked for the work, re-ran it, or wrote its issue. They tell the author
    /// what to write, so their approval does not count.
    pub asked_by: MergeFact<Vec<String>>,
    /// True if the pull request was opened in this run, or in another known run of the bot.
    pub made_by_us: MergeFact<bool>,
    pub own_login: String,
    /// The prefix of the bot's branches.
    pub branch_prefix: String,
    /// The evidence that the change works.
    pub witness: MergeEvidence,
    /// True if the tracking comment has an open question to a person.
    pub open_question: MergeFact<bool>,
    pub issue: Option<u64>,
}

/// The evidence that a change works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeEvidence {
    /// The journal of the run that made it.
    Journal(CheckVerification),
    /// Only GitHub: the run belonged to another process, and its journal is not available. The
    /// required checks on the exact commit replace the declared ones, if only the bot has moved the
    /// branch.
    Service,
    /// None, for this reason.
    Nobody(String),
}

/// The result of the declared checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckVerification {
    pub verdict: DeclaredCheckVerdict,
    /// True if all checks were run, and not only some.
    pub full: bool,
    /// The commit that was checked, or another one with the same tree.
    pub commit: String,
}

/// The verdict of the declared checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeclaredCheckVerdict {
    /// All checks passed.
    Passed,
    /// A check failed.
    Failed,
    /// The result is not known.
    Inconclusive,
}

/// All facts that a decision is based on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeFacts {
    pub request: AutoMergeRequest,
    /// The commit to decide about; the head of the pull request if `None`.
    pub pinned: Option<String>,
    /// The open issue that reports a failed merge of the bot, if there is one.
    pub halted: MergeFact<Option<u64>>,
    pub pull: MergeFact<PullFacts>,
    pub base: MergeFact<BaseFacts>,
    /// The check runs and statuses of the head.
    pub checks: MergeFact<Vec<HeadCheck>>,
    /// The reviews, oldest first.
    pub reviews: MergeFact<Vec<ReviewFacts>>,
    /// The changed paths, including previous names.
    pub paths: MergeFact<Vec<String>>,
    /// The accounts that moved the branch; fetched only if GitHub is the only evidence.
    pub movers: MergeFact<Vec<String>>,
}

impl MergeFacts {
    /// Creates facts that are all unknown.
    fn all_unknown(request: &AutoMergeRequest) -> Self {
        let why = "it was not asked for";
        MergeFacts {
            request: request.clone(),
            pinned: None,
            halted: MergeFact::Unknown(why.to_owned()),
            pull: MergeFact::Unknown(why.to_owned()),
            base: MergeFact::Unknown(why.to_owned()),
            checks: MergeFact::Unknown(why.to_owned()),
            reviews: MergeFact::Unknown(why.to_owned()),
            paths: MergeFact::Unknown(why.to_owned()),
            movers: MergeFact::Unknown(why.to_owned()),
        }
    }
}

/// The facts about a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullFacts {
    pub open: bool,
    pub merged: bool,
    pub draft: bool,
    /// True if its head branch is in this repository.
    pub same_repository: bool,
    pub author: String,
    /// The head branch.
    pub head: String,
    pub head_sha: String,
    /// The base branch.
    pub base: String,
    pub labels: Vec<String>,
    /// `None` while GitHub computes it.
    pub mergeable: Option<bool>,
    /// GitHub's description of the state, such as `clean` or `blocked`.
    pub mergeable_state: Option<String>,
    /// The number of added and removed lines.
    pub changed_lines: u64,
}

/// The facts about the base branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseFacts {
    /// True if it is the default branch.
    pub is_default: bool,
    pub protected: bool,
    /// The checks that its protection requires.
    pub required_checks: Vec<String>,
    /// The number of approvals that its protection requires.
    pub required_approvals: u32,
    /// True if conversations must be resolved before a merge.
    pub resolves_conversations: bool,
}

/// A check of the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadCheck {
    pub name: String,
    /// The app that reported it.
    pub app: Option<String>,
    /// The result; `None` while it is pending.
    pub conclusion: Option<String>,
}

/// The facts about a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewFacts {
    pub login: String,
    pub is_bot: bool,
    pub can_write: MergeFact<bool>,
    /// GitHub's state of the review, such as `APPROVED`.
    pub state: String,
    /// The commit that was reviewed.
    pub commit: Option<String>,
}

/// The decision about a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeDecision {
    /// Merge this commit.
    Merge {
        /// The head for which all conditions hold.
        head: String,
    },
    Refuse(MergeRefusal),
}

/// The reason a pull request is not merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeRefusal {
    /// The condition that does not hold, from 1 to 11.
    pub condition: u8,
    pub reason: String,
    /// The next action, and who could take it.
    pub next: String,
    pub prospect: RefusalProspect,
}

/// The chance that a refusal changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalProspect {
    /// By waiting a little: something is in progress.
    Soon,
    /// By waiting, if it is only late. If it does not come in time, something is wrong.
    Perhaps,
    /// When a person does something. That causes an event, and then everything is checked again.
    Later,
    /// Not by itself.
    Never,
}

impl RefusalProspect {
    /// Returns true if it is worth waiting for.
    pub fn is_waited_for(self) -> bool {
        matches!(self, RefusalProspect::Soon | RefusalProspect::Perhaps)
    }

    /// Returns the outcome to report when the wait is over.
    pub fn outcome(self) -> MergeOutcome {
        match self {
            RefusalProspect::Soon | RefusalProspect::Later => MergeOutcome::Waiting,
            RefusalProspect::Perhaps | RefusalProspect::Never => MergeOutcome::Refused,
        }
    }
}

/// The report of an auto-merge, for people and programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MergeReport {
    /// The pull request.
    pub pull_request: u64,
    /// The commit that was decided on.
    pub head: Option<String>,
    /// The outcome.
    pub decision: MergeOutcome,
    /// The condition that did not hold.
    pub condition: Option<u8>,
    /// The reason it was not merged.
    pub reason: Option<String>,
    /// The next action, and who could take it.
    pub next: Option<String>,
    /// The conditions that were checked, in order.
    pub conditions: Vec<ConditionResult>,
    /// The merge commit.
    pub merged_as: Option<String>,
    /// The merge method.
    pub method: Option<MergeMethod>,
    /// The actions besides the merge, each with its own result.
    pub steps: Vec<MergeStep>,
    /// Remarks about the settings, for the owner of the repository.
    pub remarks: Vec<String>,
}

/// The outcome of an auto-merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeOutcome {
    /// Merged, and confirmed by reading it back.
    Merged,
    /// Not merged yet: something is in progress, or a person has to act.
    Waiting,
    /// Not merged.
    Refused,
    /// Possibly merged: GitHub said so, but reading it back did not confirm it.
    Unconfirmed,
}

/// The result of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConditionResult {
    /// The number of the condition.
    pub n: u8,
    /// True if the condition holds.
    pub ok: bool,
}

/// An action besides the merge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MergeStep {
    /// The name of the action.
    pub step: String,
    /// True if it succeeded.
    pub ok: bool,
    /// Details of the result.
    pub detail: String,
}

impl MergeReport {
    /// Returns one line for the tracking comment.
    pub fn to_line(&self) -> String {
        let merged_as = self.merged_as.as_deref().map(short_sha).unwrap_or_default();
        match self.decision {
            MergeOutcome::Merged => {
                let method = self.method.map_or("the service's method", MergeMethod::as_str);
                format!("Merged as {merged_as} by {method}.")
            }
            MergeOutcome::Waiting | MergeOutcome::Refused | MergeOutcome::Unconfirmed => {
                let word = match self.decision {
                    MergeOutcome::Waiting => "Not merged yet",
                    MergeOutcome::Unconfirmed => "Perhaps merged",
                    MergeOutcome::Merged | MergeOutcome::Refused => "Not merged",
                };
                let reason = self.reason.as_deref().unwrap_or("nobody can tell");
                let next = self.next.as_deref().unwrap_or("a person looks at it");
                format!("{word}: {reason}. Next: {next}.")
            }
        }
    }
}

fn short_sha(sha: &str) -> &str {
    sha.get(..7).unwrap_or(sha)
}
