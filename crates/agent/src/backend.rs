//! Backends that execute the turns of a run: our own loop, or an external agent CLI.

use std::time::Duration;

use camino::Utf8PathBuf;
use futures_util::future::BoxFuture;
use repertoire_model::TokenUsage;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::event::{AgentRunStatus, EventEmitter, ToolDenial};
use crate::form::AnswerForm;
use repertoire_sandbox::process::UsageLimits;

mod acp;
mod backend_kind;
mod claude;
mod cli;
mod codex;
mod command;
mod enforcement;
mod gemini;
mod json_fields;
pub mod limits;
mod opencode;
mod scripted;
pub(crate) mod stream_tally;
#[cfg(test)]
mod stream_tests;
mod structured_output;
mod usage_limit;

pub use acp::AcpBackend;
pub use backend_kind::{
    BackendChoice, BackendChoiceError, BackendKind, InstalledCli, build_backend,
    find_installed_clis,
};
pub use cli::CliBackend;
pub use command::CommandBackend;
pub use enforcement::{
    BackendEnforcement, BackendRestrictions, EffectEnforcement, RuleEnforcement,
};
pub(crate) use enforcement::{freedom_of_mode, restrict_backend};
pub use scripted::{ScriptedBackend, TranscriptError};

/// Executes a whole task without further help from the caller.
pub trait Backend: Send + Sync {
    /// The name by which users select the backend.
    fn name(&self) -> &str;

    /// Describes which restrictions the backend can enforce.
    fn enforcement(&self) -> BackendEnforcement;

    /// Returns true if the backend accepts MCP servers but no JSON Schema, so that structured
    /// answers are best submitted through a form.
    fn wants_forms(&self) -> bool {
        false
    }

    /// Runs a task to completion. Reports progress through `events`, except for the start and the
    /// end of the run, which the caller reports. Never fails: errors are returned in the
    /// [`BackendResult`] as well.
    fn run<'a>(
        &'a self,
        job: &'a BackendJob,
        events: &'a EventEmitter,
    ) -> BoxFuture<'a, BackendResult>;
}

/// A task for an external agent.
#[derive(Clone, Debug)]
pub struct BackendJob {
    /// The task itself, with untrusted skills wrapped into it.
    pub prompt: String,
    /// The system prompt: the agent's instructions and the trusted skills.
    pub system: String,
    pub dir: Utf8PathBuf,
    /// The complete environment of the process; nothing is inherited.
    pub environment: Vec<(String, String)>,
    /// The model, as the backend names it; the backend's default if absent.
    pub model: Option<String>,
    /// The id of the session to resume.
    pub session: Option<String>,
    /// The JSON Schema that the answer must match.
    pub schema: Option<Value>,
    /// The form to submit the answer through, for backends that cannot enforce a schema.
    pub form: Option<AnswerForm>,
    pub freedom: AgentFreedom,
    /// Rules passed on to backends that support them.
    pub told: BackendRestrictions,
    /// The maximum cost in US dollars, for backends with such an option.
    pub max_cost_usd: Option<f64>,
    /// The maximum number of turns, for backends with such an option.
    pub max_iterations: Option<u32>,
    /// MCP servers to offer, as the `mcpServers` object of their usual configuration file.
    pub mcp_servers: Option<Value>,
    /// True if instruction files in `dir` are to be ignored, for backends with such an option.
    pub ignore_project_rules: bool,
    /// The maximum time without output.
    pub idle: Duration,
    /// The maximum run time.
    pub absolute: Duration,
    /// Limits on the process and all its descendants together.
    pub usage: UsageLimits,
    pub cancel: CancellationToken,
}

impl BackendJob {
    /// The system prompt for backends that store it with the session: empty when a session is
    /// resumed.
    pub(crate) fn new_system(&self) -> &str {
        if self.session.is_some() { "" } else { &self.system }
    }
}

/// The freedom of an external agent to act without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentFreedom {
    ReadOnly,
    /// May change files in its folder and run commands in its own sandbox.
    #[default]
    Workspace,
    /// No restrictions.
    Full,
}

/// The result of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendResult {
    pub status: AgentRunStatus,
    pub text: String,
    /// The answer as JSON, if a schema was requested.
    pub structured: Option<Value>,
    pub error: Option<String>,
    pub usage: TokenUsage,
    /// The cost, as far as the backend reports it.
    pub cost_usd: Option<f64>,
    pub iterations: u32,
    pub denials: Vec<ToolDenial>,
    /// The id for resuming the session.
    pub session: Option<String>,
    /// The time at which the usage limit resets, if the task ended because of that limit.
    pub resets_at_ms: Option<u64>,
}
