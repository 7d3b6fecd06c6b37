//! What executes the turns of a run: our own loop, or somebody else's agent.

use std::time::Duration;

use camino::Utf8PathBuf;
use futures_util::future::BoxFuture;
use repertoire_model::Usage;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::event::{Denial, Events, Status};
use crate::form::Form;
use repertoire_sandbox::process::UsageLimits;

mod acp;
mod allowance;
mod claude;
mod cli;
mod codex;
mod command;
mod fields;
mod gemini;
mod holds;
mod kind;
pub mod limits;
mod opencode;
mod scripted;
#[cfg(test)]
mod stream_tests;
mod structured;
pub(crate) mod tally;

pub use acp::AcpBackend;
pub use cli::CliBackend;
pub use command::CommandBackend;
pub use holds::{Holds, Keeps, Rules, Told};
pub(crate) use holds::{freedom, hold};
pub use kind::{Choice, ChoiceError, Installed, Kind, available, backend};
pub use scripted::{ScriptedBackend, TranscriptError};

/// Something that executes a whole task by itself.
pub trait Backend: Send + Sync {
    /// The word that users choose it by.
    fn name(&self) -> &str;

    /// What it can be held to.
    fn holds(&self) -> Holds;

    /// Whether it takes servers of tools but no JSON Schema, so that answers of a shape are best handed in on a form.
    fn wants_forms(&self) -> bool {
        false
    }

    /// Runs a task to its end. Everything that happens is told through `events`, but for the start and the end of
    /// the run, which the caller tells. It never fails: what goes wrong is a [`Finished`] as well.
    fn run<'a>(&'a self, job: &'a Job, events: &'a Events) -> BoxFuture<'a, Finished>;
}

/// What somebody else's agent is asked to do.
#[derive(Clone, Debug)]
pub struct Job {
    /// What is to be done, with skills that strangers wrote wrapped into it.
    pub prompt: String,
    /// What it is told as the operator: the agent's instructions and the skills that are trusted.
    pub system: String,
    /// Where it works.
    pub dir: Utf8PathBuf,
    /// Its whole environment.
    pub environment: Vec<(String, String)>,
    /// The model, in the backend's own words; its default if absent.
    pub model: Option<String>,
    /// The session to go on with.
    pub session: Option<String>,
    /// The JSON Schema of the answer.
    pub schema: Option<Value>,
    /// The form that the answer is handed in on, where the program cannot be held to a schema.
    pub form: Option<Form>,
    /// What it may do.
    pub freedom: Freedom,
    /// What it is told of our rules, where it knows such rules.
    pub told: Told,
    /// Most dollars to spend, where the backend can be told.
    pub max_cost_usd: Option<f64>,
    /// Most turns, where the backend can be told.
    pub max_iterations: Option<u32>,
    /// MCP servers to offer, as the `mcpServers` object of their usual configuration file.
    pub mcp_servers: Option<Value>,
    /// Whether instruction files of the folder are not followed, where it can be told.
    pub ignore_project_rules: bool,
    /// Longest silence.
    pub idle: Duration,
    /// Longest life.
    pub absolute: Duration,
    /// Limits on it and everything that it starts together.
    pub usage: UsageLimits,
    /// Ends it.
    pub cancel: CancellationToken,
}

impl Job {
    /// What the operator says, for programs that keep it with the session: nothing when a session goes on.
    pub(crate) fn new_system(&self) -> &str {
        if self.session.is_some() { "" } else { &self.system }
    }
}

/// What somebody else's agent may do without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Freedom {
    /// Look only.
    ReadOnly,
    /// Change files in its folder, and run commands in its own sandbox.
    #[default]
    Workspace,
    /// Anything.
    Full,
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// How.
    pub status: Status,
    /// The answer.
    pub text: String,
    /// The answer as JSON, where a schema was asked for.
    pub structured: Option<Value>,
    /// What went wrong.
    pub error: Option<String>,
    /// What was used.
    pub usage: Usage,
    /// What it cost, as far as it was told.
    pub cost_usd: Option<f64>,
    /// Turns.
    pub iterations: u32,
    /// Calls that were not allowed.
    pub denials: Vec<Denial>,
    /// The session, for going on with it.
    pub session: Option<String>,
    /// When an allowance is filled again, if that is why it ended.
    pub resets_at_ms: Option<u64>,
}
