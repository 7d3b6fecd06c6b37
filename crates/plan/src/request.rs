//! The request of a plan run. Stored with the run, so that any worker can drive it.

use camino::Utf8PathBuf;
use repertoire_text::layout::one_line;
use serde::{Deserialize, Serialize};

use crate::limits::TASK_LABEL_CHARS_MAX as TITLE_CHARS_MAX;
use repertoire_checks::declared::CheckDefinition;

/// The kind of this driver's runs in the journal.
pub const KIND: &str = "plan";

/// The request of a plan run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanRequest {
    /// The plan file, relative to the workspace. Empty for a task without a file.
    pub plan: Utf8PathBuf,
    /// The task, if it is not in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<AdHocTask>,
    /// Specifications that prompts refer to, relative to the workspace.
    pub specs: Vec<Utf8PathBuf>,
    /// Other files that prompts refer to.
    pub context: Vec<Utf8PathBuf>,
    /// Replaces the default instructions. `SPEC_PATH` and `PLAN_PATH` are substituted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    pub implementer: PlanStepAgent,
    pub reviewer: PlanStepAgent,
    /// True if work has to be reviewed.
    pub review: bool,
    /// The checks that have to pass after every change.
    pub checks: Vec<CheckDefinition>,
    /// Additional checks that have to pass before the run is complete.
    pub final_checks: Vec<CheckDefinition>,
    /// The branch to start from; the current one if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_branch: Option<String>,
    /// The prefix of the run's branch.
    pub branch_prefix: String,
    /// True to start even if the checkout has changes, which the worktree will lack.
    pub allow_dirty: bool,
    /// Globs of ignored files to copy into the worktree.
    pub copy: Vec<String>,
    /// A command that sets up a new worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// The delivery of the finished work.
    pub ending: PlanDeliveryMode,
    /// True to stop after one task.
    pub once: bool,
    pub bounds: PlanLimits,
    pub skills: SkillRules,
    /// Settings for recovery before an agent is asked; `None` to disable it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub improve: Option<RecoverySettings>,
}

impl Default for PlanRequest {
    fn default() -> Self {
        PlanRequest {
            plan: Utf8PathBuf::new(),
            asked: None,
            specs: Vec::new(),
            context: Vec::new(),
            instructions: None,
            implementer: PlanStepAgent::default(),
            reviewer: PlanStepAgent::default(),
            review: true,
            checks: Vec::new(),
            final_checks: Vec::new(),
            base_branch: None,
            branch_prefix: "rep/".to_owned(),
            allow_dirty: false,
            copy: Vec::new(),
            setup: None,
            ending: PlanDeliveryMode::Keep,
            once: false,
            bounds: PlanLimits::default(),
            skills: SkillRules::default(),
            improve: None,
        }
    }
}

/// A task that is not in a file, such as a request in a comment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AdHocTask {
    /// The task in one line.
    pub title: String,
    /// The full text for agents.
    pub words: String,
    /// The text for selecting skills; `words` if empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub topic: String,
    /// True if an answer without a change is enough.
    pub answer: bool,
}

impl AdHocTask {
    /// The text for selecting skills.
    pub fn skill_topic(&self) -> &String {
        if self.topic.is_empty() { &self.words } else { &self.topic }
    }

    /// A plan with this task only. The title is reduced to one line, so that it stays one task.
    pub fn to_plan(&self) -> String {
        let (title, _) = repertoire_text::invisible::removed(&self.title);
        let line = one_line(&title);
        let line: String = line.chars().take(TITLE_CHARS_MAX).collect();
        format!("- [ ] {}\n", if line.is_empty() { "What was asked for" } else { &line })
    }
}

/// The agent that executes a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanStepAgent {
    /// `default` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The backend as in `--backend`; the built-in loop if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The permissions: `read-only`, `accept-edits` or `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Replaces the agent's own system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The available tools; all if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// True to ignore instruction files of the project, if the backend supports that.
    pub ignore_project_rules: bool,
    /// Additional allow rules.
    pub allow: Vec<String>,
    /// Additional deny rules.
    pub deny: Vec<String>,
}

/// Settings for recovery before an agent is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecoverySettings {
    /// The name of the repository whose memory is used.
    pub scope: String,
    /// Maximum number of attempts per failure.
    pub attempts_max: u32,
    /// True if fixes may use the network, for instance to install from a lock file.
    pub network: bool,
    /// True if a failed run becomes a dead letter. Callers that create a dead letter for their own
    /// task disable this.
    pub letters: bool,
}

impl Default for RecoverySettings {
    fn default() -> Self {
        RecoverySettings { scope: String::new(), attempts_max: 3, network: false, letters: false }
    }
}

/// The delivery of the finished work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanDeliveryMode {
    /// The work stays on its branch, in its worktree.
    #[default]
    Keep,
    /// The branch is merged into its base branch.
    Merge,
    /// The branch is merged as one commit.
    Squash,
    /// Another branch without the prefix is created at the same commit, ready for a pull request.
    Branch,
}

impl PlanDeliveryMode {
    /// The serialised name.
    pub fn as_str(self) -> &'static str {
        match self {
            PlanDeliveryMode::Keep => "keep",
            PlanDeliveryMode::Merge => "merge",
            PlanDeliveryMode::Squash => "squash",
            PlanDeliveryMode::Branch => "branch",
        }
    }

    /// Parses a serialised name.
    pub fn from_word(word: &str) -> Option<Self> {
        [
            PlanDeliveryMode::Keep,
            PlanDeliveryMode::Merge,
            PlanDeliveryMode::Squash,
            PlanDeliveryMode::Branch,
        ]
        .into_iter()
        .find(|ending| ending.as_str() == word)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanLimits {
    /// Attempts before a task is marked failed.
    pub attempts_max: u32,
    /// Consecutive failed steps of one kind before the run fails.
    pub failures_max: u32,
    /// Maximum number of implementations and reviews.
    pub iterations_max: u32,
    /// Maximum number of prompt rewrites by the watchdog.
    pub rewrites_max: u32,
    /// Timeout of an agent's step.
    pub step_ms_max: u64,
    /// Maximum number of concurrent checks.
    pub checks_at_once: u32,
}

impl Default for PlanLimits {
    fn default() -> Self {
        PlanLimits {
            attempts_max: 5,
            failures_max: 6,
            iterations_max: 200,
            rewrites_max: 2,
            step_ms_max: 60 * 60 * 1000,
            checks_at_once: 2,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SkillRules {
    /// True if prompts contain skills at all.
    pub enabled: bool,
    /// True to select matching skills in addition to named ones.
    pub chosen: bool,
    /// Maximum number of skills for an implementation.
    pub impl_max: usize,
    /// Maximum number of skills for a review.
    pub review_max: usize,
    /// Maximum number of characters per skill.
    pub body_chars_max: usize,
    /// True to load `references/` as well.
    pub references: bool,
    /// Maximum number of skills listed by name in a prompt, best matches first.
    pub listed_max: usize,
}

impl Default for SkillRules {
    fn default() -> Self {
        SkillRules {
            enabled: true,
            chosen: true,
            impl_max: 2,
            review_max: 1,
            body_chars_max: 20_000,
            references: false,
            listed_max: 50,
        }
    }
}
