//! What a tool is.

use futures_util::future::BoxFuture;
use repertoire_model::ToolSpec;
use serde_json::Value;

use crate::effect::EffectSet;
use crate::run::Run;

/// Something that an agent can do.
pub trait Tool: Send + Sync {
    /// The name that agents, permissions and skills know it by.
    fn name(&self) -> &str;

    /// How the model sees it. The description may depend on the run: the `skill` tool lists the skills that there
    /// are at this moment.
    fn spec(&self, run: &Run) -> ToolSpec;

    /// What it touches, for permissions and the read-only mode. It may depend on the arguments.
    fn access(&self, arguments: &Value) -> Access;

    /// The effects that the tool can have. By default a tool can do anything except delegate; the effects of built-in
    /// tools are in the table of [`crate::effect`].
    fn effects(&self) -> EffectSet {
        EffectSet::UNKNOWN_TOOL
    }

    /// Whether calls may run beside others.
    fn concurrency(&self) -> Concurrency {
        Concurrency::Exclusive
    }

    /// What a call is about, on one line: the command, the path. Permission patterns are matched against it.
    fn subject(&self, arguments: &Value) -> String;

    /// What a call is about, for people; what rules are matched against, unless that says too little.
    fn label(&self, arguments: &Value) -> String {
        self.subject(arguments)
    }

    /// Does it. A failure is an [`Output`] as well: the model shall read it.
    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Output>;
}

/// What a tool touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing outside of the run: the list of things to do, a skill.
    None,
    /// It reads files.
    Read,
    /// It changes files.
    Write,
    /// It runs programs.
    Execute,
    /// It talks to the network.
    Network,
}

/// Whether calls may run beside others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// They may.
    Safe,
    /// One at a time, in the order of the calls.
    Exclusive,
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Its id.
    pub id: &'a str,
    /// The arguments; they fit the tool's schema.
    pub arguments: &'a Value,
    /// The run that it belongs to.
    pub run: &'a Run,
}

/// What a tool answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// For the model.
    pub text: String,
    /// Whether it failed.
    pub is_error: bool,
    /// The whole output on disk, if `text` is only a part of it.
    pub spilled: Option<camino::Utf8PathBuf>,
}

impl Output {
    /// An answer.
    pub fn ok(text: impl Into<String>) -> Self {
        Output { text: text.into(), ..Output::default() }
    }

    /// A failure, in words that help the model.
    pub fn error(text: impl Into<String>) -> Self {
        Output { text: text.into(), is_error: true, spilled: None }
    }
}
