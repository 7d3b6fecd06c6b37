//! The options of a run, and its report.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use repertoire_model::{ModelName, ResponseFormat, TokenUsage};
use repertoire_select::SelectionSettings;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::backend::Backend;
use crate::definition::AgentDefinition;
use crate::event::{AgentRunStatus, EventSink, ToolDenial};
use crate::form::AnswerForms;
use crate::middleware::TurnError;
use crate::permission::{PermissionAsker, RunPermissions};
use crate::spending::RunLimits;

/// The options of a run. All have defaults; set only what matters:
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
    /// The conversation to resume; a new one if absent.
    pub conversation: Option<String>,
    /// The model; takes precedence over the agent's and the configured one.
    pub model: Option<ModelName>,
    /// Skills to load regardless of the task.
    pub skills: Vec<String>,
    /// The arguments of skills, by the skill's id.
    pub arguments: BTreeMap<String, String>,
    /// Replaces the configured settings for selecting skills.
    pub selection: Option<SelectionSettings>,
    /// Paths that the task touches, as input for selecting skills.
    pub paths: Vec<Utf8PathBuf>,
    /// The event that triggered the run, as input for selecting skills.
    pub event: Option<String>,
    /// The format of the answer; takes precedence over the agent's.
    pub format: Option<ResponseFormat>,
    /// The maximum number of tokens in one answer of the model.
    pub max_tokens: Option<u32>,
    /// Replaces the configured limits.
    pub limits: Option<RunLimits>,
    /// Replaces the configured permissions.
    pub permissions: Option<RunPermissions>,
    /// An agent definition that is not in the catalog.
    pub definition: Option<AgentDefinition>,
    /// The external agent to run; our own loop if absent.
    pub backend: Option<Arc<dyn Backend>>,
    /// MCP servers for the external agent, as the `mcpServers` object of their usual configuration
    /// file.
    pub mcp_servers: Option<Value>,
    /// Forms, for backends that cannot enforce the schema of an answer.
    pub forms: Option<AnswerForms>,
    /// Makes the external agent ignore instruction files in its folder, if it has such an option: a
    /// change under review must not control its own review.
    pub ignore_project_rules: bool,
    /// A sink for events, in addition to the system's.
    pub on_event: Option<EventSink>,
    /// Asks the user where permissions require it.
    pub asker: Option<Arc<dyn PermissionAsker>>,
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

/// The result of a run.
#[derive(Clone, Debug)]
pub struct RunReport {
    pub run: String,
    /// The id for resuming the conversation.
    pub conversation: String,
    pub status: AgentRunStatus,
    /// The answer; the text so far if the run failed.
    pub text: String,
    /// The answer as JSON, if a format was requested.
    pub structured: Option<Value>,
    pub error: Option<AgentRunError>,
    /// The usage, including sub-agents.
    pub usage: TokenUsage,
    /// The cost, if all prices are known.
    pub cost_usd: Option<f64>,
    pub iterations: u32,
    pub duration: Duration,
    pub denials: Vec<ToolDenial>,
    /// The session at an external backend.
    pub session: Option<String>,
    /// The skills activated in the conversation.
    pub skills: Vec<String>,
}

impl RunReport {
    /// Returns the answer.
    ///
    /// # Errors
    ///
    /// Returns the error of a run that did not succeed.
    pub fn into_answer(self) -> Result<String, AgentRunError> {
        match self.error {
            None => Ok(self.text),
            Some(error) => Err(error),
        }
    }
}

/// The reason why a run has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AgentRunError {
    /// Our own loop failed.
    #[error(transparent)]
    Turn(#[from] TurnError),
    /// An external agent failed.
    #[error("{backend}: {message}")]
    Backend { backend: String, message: String },
}
