//! The interface of tools.

use futures_util::future::BoxFuture;
use repertoire_model::ToolSpec;
use serde_json::Value;

use crate::effect::EffectSet;
use crate::run::AgentRun;

/// A tool that an agent can call.
pub trait Tool: Send + Sync {
    /// The name by which agents, permissions and skills refer to it.
    fn name(&self) -> &str;

    /// The description for the model. May depend on the run: the `skill` tool lists the current
    /// skills.
    fn spec(&self, run: &AgentRun) -> ToolSpec;

    /// The access that a call needs, for permissions and the read-only mode. May depend on the
    /// arguments.
    fn access(&self, arguments: &Value) -> ToolAccess;

    /// The effects that the tool can have. By default any effect except delegation; those of
    /// built-in tools are in the table of [`crate::effect`].
    fn effects(&self) -> EffectSet {
        EffectSet::UNKNOWN_TOOL
    }

    /// Tells whether calls may run in parallel with others.
    fn concurrency(&self) -> ToolConcurrency {
        ToolConcurrency::Exclusive
    }

    /// The subject of a call on one line, such as the command or the path. Permission patterns are
    /// matched against it.
    fn subject(&self, arguments: &Value) -> String;

    /// The subject of a call for display. Differs from `subject` where that is not descriptive
    /// enough.
    fn label(&self, arguments: &Value) -> String {
        self.subject(arguments)
    }

    /// Executes a call. A failure is an [`ToolOutput`] as well, since the model should read it.
    fn call<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput>;
}

/// The access that a call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolAccess {
    /// No access outside of the run: the to-do list, a skill.
    None,
    Read,
    Write,
    Execute,
    Network,
}

/// The concurrency of calls of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolConcurrency {
    Safe,
    /// Runs alone, in the order of the calls.
    Exclusive,
}

/// A call of a tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolInvocation<'a> {
    pub id: &'a str,
    /// The arguments, already validated against the tool's schema.
    pub arguments: &'a Value,
    pub run: &'a AgentRun,
}

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// The text for the model.
    pub text: String,
    pub is_error: bool,
    /// The file with the full output, if `text` is truncated.
    pub spilled: Option<camino::Utf8PathBuf>,
}

impl ToolOutput {
    /// A successful result.
    pub fn ok(text: impl Into<String>) -> Self {
        ToolOutput { text: text.into(), ..ToolOutput::default() }
    }

    /// A failure, with a message that helps the model.
    pub fn error(text: impl Into<String>) -> Self {
        ToolOutput { text: text.into(), is_error: true, spilled: None }
    }
}
