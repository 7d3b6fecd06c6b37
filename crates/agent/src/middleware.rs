//! One turn of an agent as a chain: each link does its part and calls the next.
//!
//! The order is [`standard`]'s. A link may call the rest more than once (retry), not at all (limits), or look at what
//! came back. [`crate::system::Builder::middleware`] puts a link of one's own before the model is called.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use repertoire_model::prices::ModelInfo;
use repertoire_model::{Message, ModelName, Response, ToolSpec};
use repertoire_select::Task;
use repertoire_skill::render::message::Role;
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

use crate::conversation::Conversation;
use crate::definition::{Definition, DefinitionError};
use crate::event::Status;
use crate::run::Run;
use crate::spending::LimitReached;
use crate::system::{Asked, RunOptions};
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

/// One link.
pub trait Middleware: Send + Sync {
    /// Its name, for people.
    fn name(&self) -> &'static str;

    /// Does its part, and calls `next` for the rest of the turn.
    fn handle<'a>(
        &'a self,
        turn: &'a mut Turn,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<(), TurnError>>;
}

/// The rest of the chain. It may be run more than once.
#[derive(Clone, Copy)]
pub struct Next<'a> {
    rest: &'a [Arc<dyn Middleware>],
}

impl<'a> Next<'a> {
    /// A whole chain.
    pub fn all(chain: &'a [Arc<dyn Middleware>]) -> Self {
        Next { rest: chain }
    }

    /// Runs the rest of the turn.
    pub fn run<'t>(self, turn: &'t mut Turn) -> BoxFuture<'t, Result<(), TurnError>>
    where
        'a: 't,
    {
        match self.rest.split_first() {
            Some((first, rest)) => first.handle(turn, Next { rest }),
            None => Box::pin(async { Ok(()) }),
        }
    }
}

/// The links in their order, with the caller's own before the model is called.
pub fn standard(own: Vec<Arc<dyn Middleware>>) -> Vec<Arc<dyn Middleware>> {
    let mut chain: Vec<Arc<dyn Middleware>> = vec![
        Arc::new(error_boundary::ErrorBoundary),
        Arc::new(agent_load::AgentLoad),
        Arc::new(auto_trigger::AutoTrigger),
        Arc::new(context::Context),
        Arc::new(provider::ProviderSelection),
        Arc::new(safety::Safety),
    ];
    chain.extend(own);
    chain.extend([
        Arc::new(retry::Retry) as Arc<dyn Middleware>,
        Arc::new(model_call::ModelCall),
        Arc::new(tool_execution::ToolExecution),
    ]);
    chain
}

/// A turn in the making.
pub struct Turn {
    /// The run that it belongs to.
    pub run: Arc<Run>,
    /// The agent that was asked for.
    pub agent_name: String,
    /// Whether a person asked for it.
    pub(crate) asked: Asked,
    /// Its definition, once it is loaded.
    pub agent: Arc<Definition>,
    /// What is to be done.
    pub task: Task,
    /// What was asked of the run.
    pub options: Arc<RunOptions>,
    /// The conversation; nobody else has it while the run lasts.
    pub conversation: OwnedMutexGuard<Conversation>,
    /// The turn, from 1.
    pub iteration: u32,
    /// The call of this turn, from 1; more than 1 if the call before failed.
    pub attempt: u32,
    /// The tools of the agent.
    pub tools: Vec<Arc<dyn Tool>>,
    /// How the model sees them.
    pub specs: Vec<ToolSpec>,
    /// The state of the catalog that they were made for.
    pub specs_of: Option<u64>,
    /// About how many tokens they take.
    pub specs_tokens: u64,
    /// Skills that go into the conversation on this turn.
    pub injections: Vec<Injection>,
    /// The model.
    pub model: Option<ModelChoice>,
    /// Whether the model is really called.
    pub preview: bool,
    /// The model's answer on this turn.
    pub response: Option<Response>,
    /// How often an answer was not of the shape that was asked for.
    pub reshaped: u32,
    /// Set when the run is over.
    pub outcome: Option<Outcome>,
}

/// A skill on its way into the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Injection {
    /// The skill.
    pub skill: String,
    /// Who it speaks as.
    pub role: Role,
    /// Its text.
    pub text: String,
}

/// The model of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelChoice {
    /// Its name.
    pub name: ModelName,
    /// What is known of it.
    pub info: Option<ModelInfo>,
    /// Tokens that fit into a conversation.
    pub context_tokens: u64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How.
    pub status: Status,
    /// The answer.
    pub text: String,
    /// The answer as JSON, where a shape was asked for.
    pub structured: Option<Value>,
    /// What went wrong.
    pub error: Option<TurnError>,
}

impl Outcome {
    /// An answer.
    pub fn done(text: String, structured: Option<Value>) -> Self {
        Outcome { status: Status::Done, text, structured, error: None }
    }
}

/// Why a turn did not come to its end.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TurnError {
    /// The model could not be asked.
    #[error(transparent)]
    Model(#[from] repertoire_model::Error),
    /// A limit was reached.
    #[error(transparent)]
    Limit(#[from] LimitReached),
    /// The agent's definition cannot be run.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// There is no such agent.
    #[error("there is no agent `{name}`{}", nearest.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    UnknownAgent {
        /// The name that was asked for.
        name: String,
        /// A name that may be meant.
        nearest: Option<String>,
        /// All names.
        known: Vec<String>,
    },
    /// The agent asks for tools that there are not.
    #[error("agent `{agent}` asks for tools that are not there: {}; there are {}", missing.join(", "), known.join(", "))]
    UnknownTools {
        /// The agent.
        agent: String,
        /// What it asks for.
        missing: Vec<String>,
        /// What there is.
        known: Vec<String>,
    },
    /// The answer never had the shape that was asked for.
    #[error("the answer is not of the shape that was asked for: {0}")]
    Shape(String),
    /// The run waits for an allowance.
    #[error("{reason}; the run can be resumed after that")]
    Paused {
        /// Why.
        reason: String,
        /// Until when, in milliseconds since 1970.
        until_ms: u64,
    },
    /// The answer was cut off at the limit on its length.
    #[error("the answer was cut off at the model's limit on its length")]
    CutOff,
    /// The model declined.
    #[error("the model declined to answer")]
    Refused,
    /// Somebody stopped the run.
    #[error("the run was stopped")]
    Cancelled,
    /// A defect of ours.
    #[error("something went wrong inside: {0}")]
    Panicked(String),
}

impl TurnError {
    /// How a run ends with it.
    pub fn status(&self) -> Status {
        match self {
            TurnError::Limit(_) => Status::Limited,
            TurnError::Paused { .. } => Status::Paused,
            TurnError::Cancelled => Status::Cancelled,
            _ => Status::Failed,
        }
    }
}

impl Turn {
    /// The messages of the conversation.
    pub fn messages(&self) -> &[Message] {
        &self.conversation.messages
    }
}
