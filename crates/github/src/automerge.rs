//! Whether a pull request is merged without a person pressing the button. The answer is no unless every condition is known
//! to hold, and the whole of it is off unless the configuration of the base branch switches it on.
//!
//! [`decide`] is pure: facts and settings in, a decision with its reason out. [`gather`] asks the service for the facts;
//! what could not be asked is unknown, and unknown is no. [`run`] waits for what is pending, merges the commit that was
//! decided on and no other, and confirms by reading. It is tried when a pull request is opened, and again with every event
//! that may have changed the answer; [`Origin`] is what a later process is told by the pull request itself.

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

pub use decide::decide;
pub use gather::gather;
pub use merge::{Pace, WallClock, run};
pub use origin::Origin;
pub use watch::HALT_LABEL;

/// The settings, as the configuration has them. They are read from the base branch: a pull request cannot switch it on for
/// itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AutoMerge {
    /// Whether anything is merged at all.
    pub enabled: bool,
    /// Names of checks that must have succeeded. Without any nothing is merged.
    pub required_checks: Vec<String>,
    /// The app that a check has to come from, by the check's name.
    pub check_apps: BTreeMap<String, String>,
    /// Names of checks for which `neutral` and `skipped` are as good as success.
    pub skippable_checks: Vec<String>,
    /// Names of checks that may fail, unless they are required.
    pub optional_checks: Vec<String>,
    /// Approvals of the very commit that are needed, by people with write access who neither wrote it nor asked for it.
    pub required_approvals: u32,
    /// Whether the bot adds an approval of its own. It is never counted.
    pub approve: bool,
    /// How to merge; what the repository allows, if absent.
    pub method: Option<MergeMethod>,
    /// How long to wait for pending checks, in seconds.
    pub wait_seconds: u64,
    /// How long the checks of the merged commit are watched, in seconds; 0 for not at all.
    pub watch_seconds: u64,
    /// Branches that may be merged into. Without any it is the default branch, if that is neither protected nor a release.
    pub base_branches: Vec<String>,
    /// Most lines of a change.
    pub changed_lines_max: u64,
    /// Most files of a change.
    pub changed_files_max: u64,
    /// Labels that stop a merge.
    pub stop_labels: Vec<String>,
    /// Whether nothing is merged for the time being.
    pub frozen: bool,
    /// Whether the head branch is deleted afterwards.
    pub delete_branch: bool,
    /// Whether the linked issue is closed afterwards.
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
    /// What the owner of the repository should know: whoever may write can report a check under any name.
    fn remarks(&self) -> Vec<String> {
        let open = self.required_checks.iter().filter(|name| !self.check_apps.contains_key(*name));
        let remark = |name: &String| {
            format!(
                "required check `{name}` counts whoever reports it; name its app in `check_apps`"
            )
        };
        open.map(remark).collect()
    }
}

/// Something that is known, or not and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact<T> {
    /// It is known.
    Known(T),
    /// It is not, for this reason.
    Unknown(String),
}

/// What the driver knows, and the service does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The pull request.
    pub number: u64,
    /// Whether a permitted event or actor asked for the merge.
    pub asked: Fact<bool>,
    /// Who asked for the work, had it done again, or wrote the issue that it is for. Who tells the author what to write does
    /// not approve it.
    pub asked_by: Fact<Vec<String>>,
    /// Whether the pull request was opened in this run, or in one that can be named.
    pub made_by_us: Fact<bool>,
    /// Who we are.
    pub own_login: String,
    /// What the names of our branches begin with.
    pub branch_prefix: String,
    /// Who can say that the change works.
    pub witness: Witness,
    /// Whether a question to a person is open in the tracking comment.
    pub open_question: Fact<bool>,
    /// The issue that the change is for.
    pub issue: Option<u64>,
}

/// Who can say that the change works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Witness {
    /// The journal of the run that made it.
    Journal(Verification),
    /// The service alone: the run was another process's, and its journal is not here. The required checks on the very commit
    /// stand in for the declared ones, if nobody but us has moved the branch.
    Service,
    /// Nobody, for this reason.
    Nobody(String),
}

/// What the declared checks said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// The verdict.
    pub verdict: Verdict,
    /// Whether all checks were run, and not only some.
    pub full: bool,
    /// The commit that was checked, or another one with the same files.
    pub commit: String,
}

/// A verdict of the declared checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All passed.
    Passed,
    /// Some did not.
    Failed,
    /// Nobody can tell.
    Inconclusive,
}

/// Everything that a decision rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// What the driver knows.
    pub request: Request,
    /// The commit that the decision is to be about; the pull request's head, if nothing was decided yet.
    pub pinned: Option<String>,
    /// The open issue that says that a merge of ours went wrong, if there is one.
    pub halted: Fact<Option<u64>>,
    /// The pull request.
    pub pull: Fact<PullFacts>,
    /// The branch that it shall go into.
    pub base: Fact<BaseFacts>,
    /// The checks of the head, of both kinds.
    pub checks: Fact<Vec<Check>>,
    /// The reviews, oldest first.
    pub reviews: Fact<Vec<ReviewFacts>>,
    /// Paths that are changed, and what they were called before.
    pub paths: Fact<Vec<String>>,
    /// Who moved the branch; asked only where the service is the witness.
    pub movers: Fact<Vec<String>>,
}

impl Facts {
    /// Facts before anything was asked.
    fn unasked(request: &Request) -> Self {
        let why = "it was not asked for";
        Facts {
            request: request.clone(),
            pinned: None,
            halted: Fact::Unknown(why.to_owned()),
            pull: Fact::Unknown(why.to_owned()),
            base: Fact::Unknown(why.to_owned()),
            checks: Fact::Unknown(why.to_owned()),
            reviews: Fact::Unknown(why.to_owned()),
            paths: Fact::Unknown(why.to_owned()),
            movers: Fact::Unknown(why.to_owned()),
        }
    }
}

/// What is known of a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullFacts {
    /// Whether it is open.
    pub open: bool,
    /// Whether it was merged already.
    pub merged: bool,
    /// Whether it is a draft.
    pub draft: bool,
    /// Whether its branch is one of this repository.
    pub same_repository: bool,
    /// Who opened it.
    pub author: String,
    /// Its branch.
    pub head: String,
    /// The commit of that.
    pub head_sha: String,
    /// The branch that it shall go into.
    pub base: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// Whether it can be merged; nothing while the service works it out.
    pub mergeable: Option<bool>,
    /// In the service's words.
    pub mergeable_state: Option<String>,
    /// Lines added and removed.
    pub changed_lines: u64,
}

/// What is known of the branch that it shall go into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseFacts {
    /// Whether it is the branch that others begin on.
    pub is_default: bool,
    /// Whether it is protected.
    pub protected: bool,
    /// Checks that its protection demands.
    pub required_checks: Vec<String>,
    /// Approvals that its protection demands.
    pub required_approvals: u32,
    /// Whether conversations have to be resolved.
    pub resolves_conversations: bool,
}

/// A check of the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// The app that it comes from.
    pub app: Option<String>,
    /// What came out; nothing while it is pending.
    pub conclusion: Option<String>,
}

/// A review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewFacts {
    /// Who.
    pub login: String,
    /// Whether that is a program.
    pub is_bot: bool,
    /// Whether they may write to the repository.
    pub can_write: Fact<bool>,
    /// What they decided.
    pub state: String,
    /// The commit that they looked at.
    pub commit: Option<String>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Merge this commit.
    Merge {
        /// The head that everything was found to hold for.
        head: String,
    },
    /// Do not merge.
    Refuse(Refusal),
}

/// Why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The condition that does not hold, from 1 to 11.
    pub condition: u8,
    /// Why.
    pub reason: String,
    /// Who could do what about it.
    pub next: String,
    /// Whether it may pass.
    pub prospect: Prospect,
}

/// Whether a no may become a yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prospect {
    /// By waiting a little: something is under way.
    Soon,
    /// By waiting, if it is only late. If it does not come in time, something is wrong.
    Perhaps,
    /// When somebody does something. An event tells of it, and then everything is asked again.
    Later,
    /// Not by itself.
    Never,
}

impl Prospect {
    /// Whether it is worth waiting for.
    pub fn is_waited_for(self) -> bool {
        matches!(self, Prospect::Soon | Prospect::Perhaps)
    }

    /// What is said of it when nobody waits any longer.
    pub fn outcome(self) -> Outcome {
        match self {
            Prospect::Soon | Prospect::Later => Outcome::Waiting,
            Prospect::Perhaps | Prospect::Never => Outcome::Refused,
        }
    }
}

/// What was done, for people and programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// The pull request.
    pub pull_request: u64,
    /// The commit that was decided on.
    pub head: Option<String>,
    /// Whether it was merged.
    pub decision: Outcome,
    /// The condition that did not hold.
    pub condition: Option<u8>,
    /// Why not.
    pub reason: Option<String>,
    /// Who could do what about it.
    pub next: Option<String>,
    /// The conditions that were looked at, in order.
    pub conditions: Vec<Condition>,
    /// The commit that it was merged as.
    pub merged_as: Option<String>,
    /// How it was merged.
    pub method: Option<MergeMethod>,
    /// What was done beside the merge, each on its own.
    pub steps: Vec<Step>,
    /// What the owner of the repository should know about the settings.
    pub remarks: Vec<String>,
}

/// Whether it was merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was, and that was read back.
    Merged,
    /// Not yet: something is under way, or somebody has yet to do something.
    Waiting,
    /// It was not.
    Refused,
    /// It may have been: the service said so, and reading did not confirm it.
    Unconfirmed,
}

/// A condition, and whether it held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Condition {
    /// Its number.
    pub n: u8,
    /// Whether it held.
    pub ok: bool,
}

/// Something that was done beside the merge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// What.
    pub step: String,
    /// Whether it worked.
    pub ok: bool,
    /// More about it.
    pub detail: String,
}

impl Report {
    /// One line for the tracking comment.
    pub fn line(&self) -> String {
        let merged_as = self.merged_as.as_deref().map(short).unwrap_or_default();
        match self.decision {
            Outcome::Merged => {
                let method = self.method.map_or("the service's method", MergeMethod::as_str);
                format!("Merged as {merged_as} by {method}.")
            }
            Outcome::Waiting | Outcome::Refused | Outcome::Unconfirmed => {
                let word = match self.decision {
                    Outcome::Waiting => "Not merged yet",
                    Outcome::Unconfirmed => "Perhaps merged",
                    Outcome::Merged | Outcome::Refused => "Not merged",
                };
                let reason = self.reason.as_deref().unwrap_or("nobody can tell");
                let next = self.next.as_deref().unwrap_or("a person looks at it");
                format!("{word}: {reason}. Next: {next}.")
            }
        }
    }
}

fn short(sha: &str) -> &str {
    sha.get(..7).unwrap_or(sha)
}
