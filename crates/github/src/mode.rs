//! A mode defines how an event is answered. It is read from a skill of type `mode`.
//!
//! A mode has no say in who may ask. It defines its triggers, its tools, where it reports, and the
//! prompts of the agent. Problems are reported as diagnostics; a mode without a required template
//! is not used, with a warning.

use crate::trigger::EventTrigger;
use camino::Utf8PathBuf;
use repertoire_skill::skill::{Scope, Skill};
use repertoire_text::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::template::PromptTemplate;

mod builtin;
mod detect;
mod load;
mod sections;
mod settings;

pub use detect::{ConsideredMode, ModeDetection, detect_mode};
pub use load::{ModeSet, load_modes, mode_diagnostics};

/// The definition of how an event is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitHubMode {
    /// `agent`, `tag`, `continuous` or a custom name.
    pub name: String,
    pub origin: ModeOrigin,
    pub description: String,
    /// The triggers. A single match is enough.
    pub triggers: Vec<EventTrigger>,
    /// 0 to 100; the matching mode with the highest priority wins.
    pub priority: u8,
    pub tools: Vec<String>,
    /// Tools that the mode never uses.
    pub disallowed_tools: Vec<String>,
    /// The settings of the progress report.
    pub tracking: ModeTracking,
    pub execution: ModeExecution,
    /// The template of the system prompt.
    pub system: PromptTemplate,
    /// The template of the user prompt.
    pub user: PromptTemplate,
}

/// The origin of a mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum ModeOrigin {
    /// A skill.
    Skill {
        /// The name of the skill.
        skill: String,
        /// The scope of the root it was found in.
        scope: Scope,
        /// The file of the skill.
        #[schemars(with = "String")]
        file: Utf8PathBuf,
    },
    /// Built into this program, used if no skill provides the mode.
    Fallback,
}

/// The settings of the progress report of a mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModeTracking {
    /// The comment.
    pub comment: TrackingComment,
    /// The label that is set while the mode works.
    pub status_label: Option<String>,
    /// The maximum length of a comment, in characters.
    pub comment_limit: usize,
}

/// The comment in which a mode reports its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrackingComment {
    /// A new comment for each run.
    New,
    /// One comment for each issue or pull request, which is updated.
    Sticky,
    /// No comment.
    None,
}

/// The way the work of a mode is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModeExecution {
    /// When a branch is needed.
    pub requires_branch: RequiresBranch,
    /// When a pull request is opened.
    pub opens_pull_request: OpensPullRequest,
    /// True if failed work may be retried.
    pub supports_retry: bool,
    /// True if it works through several tasks.
    pub supports_continuous: bool,
    /// The maximum number of tasks in a run.
    pub max_tasks: Option<u32>,
    /// The pause between tasks, in milliseconds.
    pub delay_ms: Option<u64>,
    /// True if the first failure ends the run.
    pub stop_on_first_failure: bool,
    /// The maximum number of retries, within the limit of the configuration.
    pub max_retries: u32,
}

/// When a mode needs a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RequiresBranch {
    /// In any case.
    Always,
    /// If something changes.
    WhenChanging,
    /// Not at all.
    Never,
}

/// When a mode opens a pull request, if the configuration allows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OpensPullRequest {
    /// If the prompt or the configuration asks for one.
    OnRequest,
    /// One for each task.
    PerTask,
    /// Never.
    Never,
}

impl GitHubMode {
    /// Reads a mode from a skill. Returns `None` if one of its templates is missing.
    pub fn read_skill(skill: &Skill) -> (Option<GitHubMode>, Vec<Diagnostic>) {
        load::read_mode(skill)
    }

    /// Returns true if a trigger starts the mode.
    pub fn has_trigger(&self, trigger: EventTrigger) -> bool {
        self.triggers.contains(&trigger)
    }
}

/// Returns the name of a mode without the suffix `-mode`: a skill `agent-mode` defines the mode
/// `agent`.
pub fn plain_name(name: &str) -> &str {
    let name = name.trim();
    name.strip_suffix("-mode").filter(|rest| !rest.is_empty()).unwrap_or(name)
}
