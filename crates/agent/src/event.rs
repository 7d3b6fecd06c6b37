//! Events of a run: one type for all backends, which is also the format of `--json`.
//!
//! Events are for display and for storage. They contain no secrets, and readers must ignore unknown
//! kinds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use repertoire_model::TokenUsage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use repertoire_text::clock::Clock;

/// The version of the event format.
pub const EVENT_VERSION: u32 = 1;

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentEvent {
    /// The version of the event format.
    pub v: u32,
    /// The position among the events of the run, from 1.
    pub seq: u64,
    /// The time of the event, in milliseconds since 1970.
    pub at_ms: u64,
    /// The id of the run.
    pub run: String,
    /// The agent that the event belongs to.
    pub agent: String,
    /// The depth of delegation; 0 for the agent of the run itself.
    pub depth: u32,
    /// The kind of event, with its data.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// The kind of event, with its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventKind {
    /// A run started.
    RunStarted {
        /// The id of the conversation.
        conversation: String,
        /// The backend that executes the run.
        backend: String,
        /// The model, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The session at the backend, for resuming it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    },
    /// Skills were selected for the task, or none matched.
    SkillsSelected {
        /// The selected skills, best first.
        picks: Vec<SkillPick>,
        /// The reason why no skill was selected.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        abstention: Option<String>,
    },
    /// A skill was loaded into the conversation.
    SkillLoaded {
        /// The id of the skill.
        skill: String,
        /// The digest of the skill's file.
        digest: String,
        /// The reason for loading: the selection, a pin, or the `skill` tool.
        by: LoadedBy,
        /// A description of why the skill was loaded.
        reason: String,
        /// True if the skill was already loaded, and nothing was added.
        already: bool,
        /// True if the user trusts the skill.
        trusted: bool,
        /// The estimated number of tokens of the skill.
        tokens: usize,
    },
    /// A skill was truncated to its budget.
    SkillTruncated {
        /// The id of the skill.
        skill: String,
        /// The limit in characters.
        max_chars: usize,
    },
    /// A skill could not be loaded; the run continues.
    SkillFailed {
        /// The id of the skill.
        skill: String,
        /// The error message.
        message: String,
    },
    /// The model is being called.
    ModelCall {
        /// The model.
        model: String,
        /// The turn, from 1.
        iteration: u32,
        /// The attempt, from 1; higher after failed calls.
        attempt: u32,
    },
    /// A piece of the answer's text.
    Text {
        /// The text.
        text: String,
    },
    /// A piece of the model's thinking.
    Thinking {
        /// The text.
        text: String,
    },
    /// An answer is complete.
    Answer {
        /// The text of the answer.
        text: String,
        /// The reason why the model stopped.
        stop: String,
        /// The tokens used.
        usage: TokenUsage,
        /// The cost in US dollars, if the price is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
    },
    /// A tool was called.
    ToolCall {
        /// The id of the call.
        id: String,
        /// The name of the tool.
        tool: String,
        /// A one-line description of the call.
        subject: String,
        /// The arguments.
        arguments: Value,
    },
    /// A tool returned a result.
    ToolResult {
        /// The id of the call.
        id: String,
        /// The name of the tool.
        tool: String,
        /// True if the call failed.
        is_error: bool,
        /// The start of the result.
        summary: String,
        /// The size of the whole result.
        bytes: usize,
        /// The duration of the call.
        duration_ms: u64,
        /// The file with the full result, if it was truncated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spilled: Option<String>,
    },
    /// A call was denied.
    Denied {
        /// The name of the tool.
        tool: String,
        /// A one-line description of the call.
        subject: String,
        /// The rule that denied it.
        reason: String,
    },
    /// A call is being retried.
    Retry {
        /// The kind of call that failed.
        what: String,
        /// The error.
        reason: String,
        /// The number of attempts so far.
        attempt: u32,
        /// The delay before the next attempt.
        after_ms: u64,
    },
    /// The run is waiting for a usage limit to reset.
    Paused {
        /// The reason for the pause.
        reason: String,
        /// The end of the pause, in milliseconds since 1970.
        until_ms: u64,
    },
    /// The conversation was compacted.
    Compacted {
        /// The estimated tokens before.
        tokens_before: u64,
        /// The estimated tokens after.
        tokens_after: u64,
        /// The number of messages removed.
        messages: usize,
        /// The skills that were re-attached.
        reattached: Vec<String>,
    },
    /// A task was delegated to another agent.
    Delegated {
        /// The id of the call that requested it.
        id: String,
        /// The name of the agent.
        to: String,
        /// A short description of the task.
        task: String,
    },
    /// A delegated task ended.
    DelegationEnded {
        /// The id of the call that requested it.
        id: String,
        /// The name of the agent.
        to: String,
        /// The final status of the task.
        status: AgentRunStatus,
    },
    /// The to-do list changed.
    Todos {
        /// The whole list.
        items: Vec<TodoItem>,
    },
    /// A limit stopped the run, or is close.
    Limit {
        /// The name of the limit.
        limit: String,
        /// The message for the user.
        message: String,
    },
    /// A feature is missing or restricted: no sandbox, for instance.
    Degraded {
        /// The feature.
        what: String,
        /// The consequence, and how to fix it.
        message: String,
    },
    /// A warning for the user.
    Warning {
        /// The warning.
        message: String,
    },
    /// An event of a backend that has no other kind.
    Other {
        /// The name of the backend.
        backend: String,
        /// The backend's name for the event.
        name: String,
    },
    /// A run ended.
    RunFinished {
        /// The final status.
        status: AgentRunStatus,
        /// The answer.
        text: String,
        /// The answer as JSON, if a schema was requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        structured: Option<Value>,
        /// The error, unless the run succeeded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The tokens used, including sub-agents.
        usage: TokenUsage,
        /// The cost in US dollars, as far as prices are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// The number of turns.
        iterations: u32,
        /// The duration of the run.
        duration_ms: u64,
        /// The calls that were denied.
        denials: Vec<ToolDenial>,
        /// The session at the backend, for resuming it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    },
}

/// A skill that was selected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillPick {
    /// The id of the skill.
    pub skill: String,
    /// The confidence of the selection, from 0 to 1.
    pub score: f64,
    /// The strategy that selected it.
    pub strategy: String,
    /// A short reason.
    pub reason: String,
}

/// A call that was denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolDenial {
    /// The name of the tool.
    pub tool: String,
    /// A one-line description of the call.
    pub subject: String,
    /// The reason for the denial.
    pub reason: String,
}

/// The cause for loading a skill.
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

/// The final status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentRunStatus {
    /// The run ended with an answer.
    Done,
    /// The run ended with an error.
    Failed,
    /// The run reached a limit.
    Limited,
    /// The run was cancelled.
    Cancelled,
    /// The run reached a usage limit that resets too late for this run; it can be resumed.
    Paused,
}

/// An item of a to-do list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TodoItem {
    /// The task.
    pub content: String,
    /// The progress of the task.
    pub status: TodoStatus,
}

/// The progress of a to-do item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not started.
    Pending,
    /// In progress; at most one item.
    InProgress,
    /// Completed.
    Completed,
}

/// Receives the events. Called synchronously from the run, so it must return quickly.
pub type EventSink = Arc<dyn Fn(&AgentEvent) + Send + Sync>;

/// Numbers the events of a run and passes them to a sink.
#[derive(Clone)]
pub struct EventEmitter {
    sink: EventSink,
    clock: Arc<dyn Clock>,
    run: Arc<str>,
    agent: Arc<str>,
    depth: u32,
    seq: Arc<AtomicU64>,
    /// Events that [`Events::emit_once`] has already emitted.
    told: Arc<Mutex<Vec<EventKind>>>,
}

impl std::fmt::Debug for EventEmitter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("run", &self.run).field("agent", &self.agent).finish()
    }
}

impl EventEmitter {
    pub fn new(run: &str, agent: &str, clock: Arc<dyn Clock>, sink: EventSink) -> Self {
        EventEmitter {
            sink,
            clock,
            run: run.into(),
            agent: agent.into(),
            depth: 0,
            seq: Arc::new(AtomicU64::new(0)),
            told: Arc::default(),
        }
    }

    /// The events of a sub-agent of this run; they share its sequence numbers.
    pub fn for_subagent(&self, agent: &str) -> Self {
        EventEmitter { agent: agent.into(), depth: self.depth + 1, ..self.clone() }
    }

    /// Emits an event.
    pub fn emit(&self, kind: EventKind) {
        let event = AgentEvent {
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

    /// Emits an event, unless this run or one of its sub-agents already did.
    pub fn emit_once(&self, kind: EventKind) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.contains(&kind) {
            return;
        }
        told.push(kind.clone());
        drop(told);
        self.emit(kind);
    }

    /// The id of the run.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The name of the agent.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// The depth of delegation.
    pub fn depth(&self) -> u32 {
        self.depth
    }
}
