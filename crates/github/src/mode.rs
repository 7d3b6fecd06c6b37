//! A mode: how an event is answered, read from a skill of type `mode`.
//!
//! A mode decides nothing about who may ask. It says what starts it, which tools it needs, where it reports, and what the
//! agent is told. What is wrong with one is a finding; a mode that lacks a template is not used, and that is said loudly.

use camino::Utf8PathBuf;
use crate::trigger::Trigger;
use repertoire_skill::skill::{Scope, Skill};
use repertoire_text::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::template::Template;

mod builtin;
mod detect;
mod load;
mod sections;
mod settings;

pub use detect::{Considered, Detection, detect};
pub use load::{Modes, findings, modes};

/// How an event is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mode {
    /// Its name: `agent`, `tag`, `continuous` or one's own.
    pub name: String,
    /// Where it is from.
    pub origin: ModeOrigin,
    /// What it does and when.
    pub description: String,
    /// What starts it. Any one is enough.
    pub triggers: Vec<Trigger>,
    /// 0 to 100; the highest among those that match wins.
    pub priority: u8,
    /// The tools that it works with.
    pub tools: Vec<String>,
    /// The tools that it never uses.
    pub disallowed_tools: Vec<String>,
    /// Where it tells how far it is.
    pub tracking: Tracking,
    /// How its work is done.
    pub execution: Execution,
    /// What the agent is told about itself.
    pub system: Template,
    /// What the agent is asked.
    pub user: Template,
}

/// Where a mode is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum ModeOrigin {
    /// A skill.
    Skill {
        /// Its name.
        skill: String,
        /// Where its root belongs.
        scope: Scope,
        /// Its file.
        #[schemars(with = "String")]
        file: Utf8PathBuf,
    },
    /// This program, because there is no skill that could be used.
    Fallback,
}

/// Where a mode tells how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tracking {
    /// In which comment.
    pub comment: TrackingComment,
    /// The label while it works.
    pub status_label: Option<String>,
    /// Most characters of a comment.
    pub comment_limit: usize,
}

/// The comment in which a mode tells how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrackingComment {
    /// A new one for each run.
    New,
    /// One for each issue or pull request, brought up to date.
    Sticky,
    /// None.
    None,
}

/// How the work of a mode is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Execution {
    /// When a branch is needed.
    pub requires_branch: RequiresBranch,
    /// When a pull request is opened.
    pub opens_pull_request: OpensPullRequest,
    /// Whether work that failed may be tried again.
    pub supports_retry: bool,
    /// Whether it goes from task to task.
    pub supports_continuous: bool,
    /// Most tasks of a run.
    pub max_tasks: Option<u32>,
    /// The pause between tasks.
    pub delay_ms: Option<u64>,
    /// Whether the first failure ends the run.
    pub stop_on_first_failure: bool,
    /// How often a failure is tried again, if the configuration allows as many.
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

/// When a mode opens a pull request, if the configuration lets it.
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

impl Mode {
    /// Reads a mode. Without one of its templates there is none.
    pub fn read(skill: &Skill) -> (Option<Mode>, Vec<Diagnostic>) {
        load::read(skill)
    }

    /// Whether a trigger starts it.
    pub fn takes(&self, trigger: Trigger) -> bool {
        self.triggers.contains(&trigger)
    }
}

/// The name of a mode: a skill `agent-mode` and a mode `agent` are the same.
pub fn plain_name(name: &str) -> &str {
    let name = name.trim();
    name.strip_suffix("-mode").filter(|rest| !rest.is_empty()).unwrap_or(name)
}
