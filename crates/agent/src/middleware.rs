//! The turn of an agent, as a chain of middleware: each link does its part and calls the next.
//!
//! The order is that of [`standard_chain`]. A link may call the rest more than once (retry), not at all
//! (limits), or inspect the result. [`crate::system::SystemBuilder::middleware`] inserts additional links
//! before the model call.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use repertoire_model::prices::ModelInfo;
use repertoire_model::{ModelMessage, ModelName, ModelResponse, ToolSpec};
use repertoire_select::Task;
use repertoire_skill::render::message::SkillMessageRole;
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

use crate::conversation::Conversation;
use crate::definition::{AgentDefinition, DefinitionError};
use crate::event::AgentRunStatus;
use crate::run::AgentRun;
use crate::spending::LimitReached;
use crate::system::{AgentOrigin, RunOptions};
use crate::tool::Tool;

pub mod agent_load;
pub mod auto_trigger;
pub mod context;
pub mod error_boundary;
pub mod model_call;
pub mod provider;
pub mod retry;
pub mod safety;
pub mod tool_execution;

/// A link of the chain.
pub trait TurnMiddleware: Send + Sync {
    /// The name, for display.
    fn name(&self) -> &'static str;

    /// Does the link's work, and calls `next` for the rest of the turn.
    fn handle<'a>(
        &'a self,
        turn: &'a mut AgentTurn,
        next: MiddlewareNext<'a>,
    ) -> BoxFuture<'a, Result<(), TurnError>>;
}

/// The rest of the chain. May be run more than once.
#[derive(Clone, Copy)]
pub struct MiddlewareNext<'a> {
    rest: &'a [Arc<dyn TurnMiddleware>],
}

impl<'a> MiddlewareNext<'a> {
    /// Starts a whole chain.
    pub fn from_chain(chain: &'a [Arc<dyn TurnMiddleware>]) -> Self {
        MiddlewareNext { rest: chain }
    }

    pub fn run<'t>(self, turn: &'t mut AgentTurn) -> BoxFuture<'t, Result<(), TurnError>>
    where
        'a: 't,
    {
        match self.rest.split_first() {
            Some((first, rest)) => first.handle(turn, MiddlewareNext { rest }),
            None => Box::pin(async { Ok(()) }),
        }
    }
}

/// Returns the links in order, with the caller's own before the model call.
pub fn standard_chain(own: Vec<Arc<dyn TurnMiddleware>>) -> Vec<Arc<dyn TurnMiddleware>> {
    let mut chain: Vec<Arc<dyn TurnMiddleware>> = vec![
        Arc::new(error_boundary::ErrorBoundary),
        Arc::new(agent_load::AgentLoad),
        Arc::new(auto_trigger::AutoTrigger),
        Arc::new(context::ContextSetup),
        Arc::new(provider::ProviderSelection),
        Arc::new(safety::SafetyLimits),
    ];
    chain.extend(own);
    chain.extend([
        Arc::new(retry::RetryMiddleware) as Arc<dyn TurnMiddleware>,
        Arc::new(model_call::ModelCall),
        Arc::new(tool_execution::ToolExecution),
    ]);
    chain
}

/// The state of a turn.
pub struct AgentTurn {
    pub run: Arc<AgentRun>,
    /// The name of the requested agent.
    pub agent_name: String,
    /// Tells whether the user requested the agent by name.
    pub(crate) asked: AgentOrigin,
    /// The agent's definition, once it is loaded.
    pub agent: Arc<AgentDefinition>,
    pub task: Task,
    /// The options of the run.
    pub options: Arc<RunOptions>,
    /// The conversation, locked for the duration of the run.
    pub conversation: OwnedMutexGuard<Conversation>,
    /// The turn, from 1.
    pub iteration: u32,
    /// The attempt of this turn's model call, from 1; higher after failed calls.
    pub attempt: u32,
    /// The tools of the agent.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The tools as the model sees them.
    pub specs: Vec<ToolSpec>,
    /// The generation of the catalog for which `specs` were created.
    pub specs_of: Option<u64>,
    /// The estimated tokens of `specs`.
    pub specs_tokens: u64,
    /// Skills to insert into the conversation on this turn.
    pub injections: Vec<SkillInjection>,
    /// The selected model; `None` until `ProviderSelection` has run.
    pub model: Option<ModelChoice>,
    /// True if the model is not really called.
    pub preview: bool,
    /// The model's answer on this turn.
    pub response: Option<ModelResponse>,
    /// The number of answers so far that did not match the requested format.
    pub reshaped: u32,
    /// Set when the run is over.
    pub outcome: Option<TurnOutcome>,
}

/// A skill to insert into the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct SkillInjection {
    pub skill: String,
    pub role: SkillMessageRole,
    pub text: String,
}

/// The model of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelChoice {
    pub name: ModelName,
    /// Prices and limits, if the model is known.
    pub info: Option<ModelInfo>,
    /// The size of the context window.
    pub context_tokens: u64,
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnOutcome {
    pub status: AgentRunStatus,
    pub text: String,
    /// The answer as JSON, if a format was requested.
    pub structured: Option<Value>,
    pub error: Option<TurnError>,
}

impl TurnOutcome {
    /// Creates the outcome of a successful run.
    pub fn done(text: String, structured: Option<Value>) -> Self {
        TurnOutcome { status: AgentRunStatus::Done, text, structured, error: None }
    }
}

/// The reason why a turn failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TurnError {
    /// The model call failed.
    #[error(transparent)]
    Model(#[from] repertoire_model::ModelError),
    #[error(transparent)]
    Limit(#[from] LimitReached),
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    #[error("there is no agent `{name}`{}", nearest.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    UnknownAgent {
        name: String,
        /// A similar name that exists.
        nearest: Option<String>,
        known: Vec<String>,
    },
    #[error("agent `{agent}` asks for tools that are not there: {}; there are {}", missing.join(", "), known.join(", "))]
    UnknownTools { agent: String, missing: Vec<String>, known: Vec<String> },
    /// The answer still did not match the requested format after all retries.
    #[error("the answer is not of the shape that was asked for: {0}")]
    Shape(String),
    /// The run reached a usage limit.
    #[error("{reason}; the run can be resumed after that")]
    Paused {
        reason: String,
        /// The time of the reset, in milliseconds since 1970.
        until_ms: u64,
    },
    #[error("the answer was cut off at the model's limit on its length")]
    CutOff,
    #[error("the model declined to answer")]
    Refused,
    #[error("the run was stopped")]
    Cancelled,
    /// A bug in our own code.
    #[error("something went wrong inside: {0}")]
    Panicked(String),
}

impl TurnError {
    /// The status of a run that ends with this error.
    pub fn status(&self) -> AgentRunStatus {
        match self {
            TurnError::Limit(_) => AgentRunStatus::Limited,
            TurnError::Paused { .. } => AgentRunStatus::Paused,
            TurnError::Cancelled => AgentRunStatus::Cancelled,
            _ => AgentRunStatus::Failed,
        }
    }
}

impl AgentTurn {
    /// The messages of the conversation.
    pub fn messages(&self) -> &[ModelMessage] {
        &self.conversation.messages
    }
}
