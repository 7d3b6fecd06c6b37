//! What one run is asked for, and what it gives back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use repertoire_model::{ModelName, ResponseFormat, Usage};
use repertoire_select::Settings;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::backend::Backend;
use crate::definition::Definition;
use crate::event::{Denial, Sink, Status};
use crate::form::Forms;
use crate::middleware::TurnError;
use crate::permission::{Asker, Permissions};
use crate::spending::RunLimits;

/// What a run is asked for. Everything has a default; set what matters:
///
/// ```
/// use repertoire_agent::RunOptions;
///
/// let options = RunOptions {
///     conversation: Some("tender-7".into()),
///     skills: vec!["danish-tender-guidelines".into()],
///     ..RunOptions::default()
/// };
/// assert!(options.model.is_none(), "the agent's own model, or the configured one");
/// ```
#[derive(Clone, Default)]
pub struct RunOptions {
    /// The conversation to go on with; a new one if absent.
    pub conversation: Option<String>,
    /// The model, before the agent's and the configured one.
    pub model: Option<ModelName>,
    /// Skills to load in any case.
    pub skills: Vec<String>,
    /// What is given after the name of a skill, by the skill.
    pub arguments: BTreeMap<String, String>,
    /// How skills are chosen, in place of the configured way.
    pub selection: Option<Settings>,
    /// Paths that the task touches, which helps to choose skills.
    pub paths: Vec<Utf8PathBuf>,
    /// The event that started it, which helps to choose skills.
    pub event: Option<String>,
    /// The shape of the answer, before the agent's.
    pub format: Option<ResponseFormat>,
    /// Most tokens of one answer of the model.
    pub max_tokens: Option<u32>,
    /// What the run may use, in place of the configured limits.
    pub limits: Option<RunLimits>,
    /// Who may do what, in place of the configured permissions.
    pub permissions: Option<Permissions>,
    /// An agent that has no file.
    pub definition: Option<Definition>,
    /// Somebody else's agent that shall do the work; our own loop if absent.
    pub backend: Option<Arc<dyn Backend>>,
    /// MCP servers to offer to that agent, as the `mcpServers` object of the usual configuration file.
    pub mcp_servers: Option<Value>,
    /// Forms, for agents whose programs cannot be held to the shape of an answer.
    pub forms: Option<Forms>,
    /// Keeps that agent from following instruction files of the folder it works in, where it can be told: a change that is
    /// looked at does not say how.
    pub ignore_project_rules: bool,
    /// Who is told of events, besides the system's own listener.
    pub on_event: Option<Sink>,
    /// Who is asked where permissions say so.
    pub asker: Option<Arc<dyn Asker>>,
    /// Ends the run.
    pub cancel: CancellationToken,
}

impl std::fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunOptions")
            .field("conversation", &self.conversation)
            .field("model", &self.model)
            .field("skills", &self.skills)
            .finish_non_exhaustive()
    }
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Report {
    /// The run's id.
    pub run: String,
    /// The conversation, to go on with.
    pub conversation: String,
    /// How it ended.
    pub status: Status,
    /// The answer; what had been said so far, if it failed.
    pub text: String,
    /// The answer as JSON, where a shape was asked for.
    pub structured: Option<Value>,
    /// What went wrong.
    pub error: Option<RunError>,
    /// What was used, sub-agents included.
    pub usage: Usage,
    /// What it cost, if every price is known.
    pub cost_usd: Option<f64>,
    /// Turns.
    pub iterations: u32,
    /// How long it took.
    pub duration: Duration,
    /// Calls that were not allowed.
    pub denials: Vec<Denial>,
    /// The session at another backend.
    pub session: Option<String>,
    /// Skills that are in the conversation.
    pub skills: Vec<String>,
}

impl Report {
    /// The answer, or why there is none.
    ///
    /// # Errors
    ///
    /// What went wrong.
    pub fn into_answer(self) -> Result<String, RunError> {
        match self.error {
            None => Ok(self.text),
            Some(error) => Err(error),
        }
    }
}

/// Why a run gave no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// Our own loop ended with this.
    #[error(transparent)]
    Turn(#[from] TurnError),
    /// Somebody else's agent ended with this.
    #[error("{backend}: {message}")]
    Backend {
        /// The backend.
        backend: String,
        /// What it said.
        message: String,
    },
}
