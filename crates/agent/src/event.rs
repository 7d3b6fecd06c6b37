//! What happens in a run, as values: one type for every backend, also the shape of `--json`.
//!
//! Events are for watching and for keeping. They carry no secrets, and a reader that meets a kind it does not
//! know passes over it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use repertoire_model::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use repertoire_text::clock::Clock;

/// The version of the shape.
pub const EVENT_VERSION: u32 = 1;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// The version of this shape.
    pub v: u32,
    /// The position among the events of the run, from 1.
    pub seq: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The run.
    pub run: String,
    /// The agent that it happened to.
    pub agent: String,
    /// How deep it was delegated; 0 for the agent that was asked.
    pub depth: u32,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventKind {
    /// A run begins.
    RunStarted {
        /// The conversation that it belongs to.
        conversation: String,
        /// What executes it.
        backend: String,
        /// The model, as far as it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The session at the backend, for resuming there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    },
    /// Skills were chosen for the task, or none was.
    SkillsSelected {
        /// Those that were chosen, the best first.
        picks: Vec<SkillPick>,
        /// Why nothing was chosen, if so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        abstention: Option<String>,
    },
    /// A skill's text is in the conversation now.
    SkillLoaded {
        /// The skill.
        skill: String,
        /// The digest of its file.
        digest: String,
        /// Who asked for it.
        by: LoadedBy,
        /// Why.
        reason: String,
        /// Whether it was there before and nothing was added.
        already: bool,
        /// Whether a person has agreed to it.
        trusted: bool,
        /// About how many tokens it takes.
        tokens: usize,
    },
    /// A skill was cut to its budget.
    SkillTruncated {
        /// The skill.
        skill: String,
        /// The limit in characters.
        max_chars: usize,
    },
    /// A skill could not be loaded; the run goes on.
    SkillFailed {
        /// The skill.
        skill: String,
        /// What went wrong.
        message: String,
    },
    /// The model is called.
    ModelCall {
        /// The model.
        model: String,
        /// The turn, from 1.
        iteration: u32,
        /// The call, from 1; more than 1 if the call before failed.
        attempt: u32,
    },
    /// More text of the answer.
    Text {
        /// The text.
        text: String,
    },
    /// More thoughts.
    Thinking {
        /// The text.
        text: String,
    },
    /// An answer is complete.
    Answer {
        /// Its text.
        text: String,
        /// Why it ended.
        stop: String,
        /// What it used.
        usage: Usage,
        /// What it cost, if the price is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
    },
    /// A tool is called.
    ToolCall {
        /// The call.
        id: String,
        /// The tool.
        tool: String,
        /// What it is about, on one line.
        subject: String,
        /// The arguments.
        arguments: Value,
    },
    /// A tool answered.
    ToolResult {
        /// The call.
        id: String,
        /// The tool.
        tool: String,
        /// Whether it failed.
        is_error: bool,
        /// The start of the answer.
        summary: String,
        /// Its size.
        bytes: usize,
        /// How long it took.
        duration_ms: u64,
        /// Where all of it is, if the answer was cut.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spilled: Option<String>,
    },
    /// A call was not allowed.
    Denied {
        /// The tool.
        tool: String,
        /// What it was about.
        subject: String,
        /// The rule that forbade it.
        reason: String,
    },
    /// A call is tried again.
    Retry {
        /// What failed.
        what: String,
        /// Why.
        reason: String,
        /// Calls so far.
        attempt: u32,
        /// How long we wait.
        after_ms: u64,
    },
    /// The run waits for an allowance to be filled again.
    Paused {
        /// Why.
        reason: String,
        /// Until when, in milliseconds since 1970.
        until_ms: u64,
    },
    /// The conversation was made shorter.
    Compacted {
        /// Tokens before, as estimated.
        tokens_before: u64,
        /// Tokens after.
        tokens_after: u64,
        /// Messages that were taken out.
        messages: usize,
        /// Skills whose text was put back.
        reattached: Vec<String>,
    },
    /// Work is handed to another agent.
    Delegated {
        /// The call that asked for it.
        id: String,
        /// The agent.
        to: String,
        /// What it shall do, in short.
        task: String,
    },
    /// The other agent is done.
    DelegationEnded {
        /// The call that asked for it.
        id: String,
        /// The agent.
        to: String,
        /// How it ended.
        status: Status,
    },
    /// The list of things to do changed.
    Todos {
        /// The list.
        items: Vec<TodoItem>,
    },
    /// A limit ended the run, or is near.
    Limit {
        /// Which.
        limit: String,
        /// What it says.
        message: String,
    },
    /// Something works less well than it should: no sandbox, for instance.
    Degraded {
        /// What.
        what: String,
        /// How, and what to do about it.
        message: String,
    },
    /// Something that a person should know.
    Warning {
        /// What.
        message: String,
    },
    /// An event of a backend that has no other kind.
    Other {
        /// The backend.
        backend: String,
        /// Its word for it.
        name: String,
    },
    /// A run ended.
    RunFinished {
        /// How.
        status: Status,
        /// The answer.
        text: String,
        /// The answer as JSON, where a schema was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        structured: Option<Value>,
        /// What went wrong.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// What was used, sub-agents included.
        usage: Usage,
        /// What it cost, as far as prices are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// Turns.
        iterations: u32,
        /// How long it took.
        duration_ms: u64,
        /// Calls that were not allowed.
        denials: Vec<Denial>,
        /// The session at the backend, for resuming there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    },
}

/// A skill that was chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillPick {
    /// The skill.
    pub skill: String,
    /// How sure the selection is, 0 to 1.
    pub score: f64,
    /// What chose it.
    pub strategy: String,
    /// Why, in a few words.
    pub reason: String,
}

/// A call that was not allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Denial {
    /// The tool.
    pub tool: String,
    /// What it was about.
    pub subject: String,
    /// Why.
    pub reason: String,
}

/// Who put a skill into the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadedBy {
    /// The selection, on the first turn.
    AutoTrigger,
    /// The agent's definition, or the caller.
    Pin,
    /// The model, with the `skill` tool.
    Tool,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// With an answer.
    Done,
    /// With an error.
    Failed,
    /// At a limit.
    Limited,
    /// Somebody stopped it.
    Cancelled,
    /// It waits for an allowance that is filled too late for this run; it can be resumed.
    Paused,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TodoItem {
    /// What.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
}

/// How far a thing to do is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// At work; at most one.
    InProgress,
    /// Done.
    Completed,
}

/// Who is told of events. It is called from the run itself and must be quick.
pub type Sink = Arc<dyn Fn(&Event) + Send + Sync>;

/// Numbers events and hands them on.
#[derive(Clone)]
pub struct Events {
    sink: Sink,
    clock: Arc<dyn Clock>,
    run: Arc<str>,
    agent: Arc<str>,
    depth: u32,
    seq: Arc<AtomicU64>,
    /// What is told only once.
    told: Arc<Mutex<Vec<EventKind>>>,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("run", &self.run).field("agent", &self.agent).finish()
    }
}

impl Events {
    /// The events of a run.
    pub fn new(run: &str, agent: &str, clock: Arc<dyn Clock>, sink: Sink) -> Self {
        Events {
            sink,
            clock,
            run: run.into(),
            agent: agent.into(),
            depth: 0,
            seq: Arc::new(AtomicU64::new(0)),
            told: Arc::default(),
        }
    }

    /// The events of a sub-agent of this run; they share its numbers.
    pub fn child(&self, agent: &str) -> Self {
        Events { agent: agent.into(), depth: self.depth + 1, ..self.clone() }
    }

    /// Tells of something.
    pub fn emit(&self, kind: EventKind) {
        let event = Event {
            v: EVENT_VERSION,
            seq: self.seq.fetch_add(1, Ordering::Relaxed) + 1,
            at_ms: self.clock.now_ms(),
            run: self.run.to_string(),
            agent: self.agent.to_string(),
            depth: self.depth,
            kind,
        };
        (self.sink)(&event);
    }

    /// Tells of something, unless it was told before in this run or by a sub-agent of it.
    pub fn emit_once(&self, kind: EventKind) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.contains(&kind) {
            return;
        }
        told.push(kind.clone());
        drop(told);
        self.emit(kind);
    }

    /// The run's id.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The agent's name.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// How deep the agent is delegated.
    pub fn depth(&self) -> u32 {
        self.depth
    }
}
