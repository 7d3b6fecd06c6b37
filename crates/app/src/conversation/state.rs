//! The state of a conversation: a pure fold over the events of its run, and the increments by which
//! a changed conversation is recorded.

use repertoire_agent::conversation::{CONVERSATION_VERSION, Conversation, estimate_message_tokens};
use repertoire_agent::{AgentEvent, EventKind};
use repertoire_journal::event::EVENT_VERSION;
use repertoire_journal::fold::FoldedRun;
use repertoire_journal::{Event, Payload, Run, RunKind, RunStatus};
use repertoire_model::{ModelMessage, TokenUsage};
use serde::Deserialize;
use serde_json::Value;

use super::event::{
    AGENT_EVENT, CONVERSATION_RECORD_VERSION, ConversationEvent, ConversationRequest,
    SavedConversation,
};
use crate::limits::SAVED_TOKENS_MAX;

/// The metadata of a conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConversationMetadata {
    pub id: String,
    /// The agent it was started with.
    pub agent: String,
    /// The start of the first prompt, as a title.
    pub first: String,
    /// The project it was started in; empty if unknown.
    pub folder: String,
    /// The number of prompts.
    pub turns: u32,
    /// The time it was started, in milliseconds since 1970.
    pub begun_ms: u64,
    /// The time of the last event, in milliseconds since 1970.
    pub updated_ms: u64,
    /// The cost, as far as prices are known.
    pub cost_usd: f64,
    /// True if part of the usage has no known price.
    pub cost_is_partial: bool,
    /// True if a turn is in progress, or was when its process ended.
    pub at_work: bool,
}

/// The state of a conversation.
#[derive(Clone, Debug)]
pub struct ConversationState {
    run: FoldedRun,
    pub conversation: Conversation,
    /// The tokens used by all turns that ended.
    pub usage: TokenUsage,
    /// The turn that has started and not ended.
    pub unfinished: Option<UnfinishedTurn>,
    /// Parts of a difference whose last part has not come yet.
    parts: Vec<SavedConversation>,
}

/// A turn that has started and not ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnfinishedTurn {
    pub prompt: String,
    /// The answers, tool calls and loaded skills of the agent itself, without those of sub-agents.
    pub events: Vec<AgentEvent>,
    /// The number of events before the messages were last recorded.
    pub events_before_saved: usize,
}

/// The reason why events are not a conversation that this version can continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConversationFoldError {
    /// An event contradicts those before it, or cannot be read.
    #[error("{0}")]
    Damaged(String),
    /// A later version has written it.
    #[error("{0}")]
    Newer(String),
}

impl ConversationMetadata {
    /// Reads the metadata from the run of a conversation.
    ///
    /// # Errors
    ///
    /// If the run has no request of a conversation.
    pub fn from_run(run: &Run) -> Result<Self, ConversationFoldError> {
        let request = read_request(&run.request)?;
        Ok(ConversationMetadata {
            id: run.id.to_string(),
            agent: request.agent,
            first: run.name.clone(),
            folder: run.workspace.clone(),
            turns: run.steps,
            begun_ms: run.created_ms,
            updated_ms: run.updated_ms,
            cost_usd: run.spent.cost_usd(),
            cost_is_partial: run.spent.unpriced,
            at_work: run.status == RunStatus::Running,
        })
    }
}

impl Default for ConversationState {
    fn default() -> Self {
        ConversationState {
            run: FoldedRun::default(),
            conversation: Conversation::new(""),
            usage: TokenUsage::default(),
            unfinished: None,
            parts: Vec::new(),
        }
    }
}

impl ConversationState {
    /// Folds one more event.
    ///
    /// # Errors
    ///
    /// If the event cannot follow the events before it, or only a later version can read it.
    pub fn apply(&mut self, event: Event) -> Result<(), ConversationFoldError> {
        refuse_unreadable(&event)?;
        self.run
            .apply(&event)
            .map_err(|error| ConversationFoldError::Damaged(error.to_string()))?;
        let damaged =
            |what: String| ConversationFoldError::Damaged(format!("event {}: {what}", event.seq));
        match event.payload {
            Payload::RunCreated { kind, request, .. } => {
                if kind != RunKind::Conversation.as_str() {
                    return Err(damaged(format!("this is a {kind}, not a conversation")));
                }
                read_request(&request)?;
                self.conversation = Conversation::new(event.run.as_str());
                Ok(())
            }
            Payload::KindEvent { name, .. } if !ConversationEvent::is_known(&name) => {
                let what = format!("event {} is `{name}`, which is not known here", event.seq);
                Err(ConversationFoldError::Newer(what))
            }
            Payload::KindEvent { name, data } => match ConversationEvent::from_payload(&name, data)
            {
                Ok(read) => self.apply_event(read).map_err(|error| match error {
                    ConversationFoldError::Damaged(what) => damaged(what),
                    newer => newer,
                }),
                // Kinds of agent events that only a later version knows are not needed here.
                Err(_) if name == AGENT_EVENT => Ok(()),
                Err(error) => Err(damaged(format!("`{name}`: {error}"))),
            },
            _ => Ok(()),
        }
    }

    fn apply_event(&mut self, event: ConversationEvent) -> Result<(), ConversationFoldError> {
        match event {
            ConversationEvent::TurnStarted { prompt } => {
                // The process of the last turn ended before it had stored all parts.
                self.parts.clear();
                self.unfinished = Some(UnfinishedTurn { prompt, ..UnfinishedTurn::default() });
            }
            ConversationEvent::AgentEvent(event) => {
                if let Some(turn) = &mut self.unfinished
                    && is_needed_for_recovery(&event)
                {
                    turn.events.push(*event);
                }
            }
            ConversationEvent::Saved(saved) if saved.more => self.parts.push(saved),
            ConversationEvent::Saved(saved) => {
                for part in std::mem::take(&mut self.parts) {
                    apply_saved(&mut self.conversation, part)?;
                }
                apply_saved(&mut self.conversation, saved)?;
                if let Some(turn) = &mut self.unfinished {
                    turn.events_before_saved = turn.events.len();
                }
            }
            ConversationEvent::TurnEnded { usage, .. } => {
                self.unfinished = None;
                add_usage(&mut self.usage, usage);
            }
        }
        Ok(())
    }

    /// The run that the events describe; `None` before the first event.
    pub fn run(&self) -> Option<&Run> {
        self.run.run.as_ref()
    }
}

/// Applies an increment to a conversation.
pub(super) fn apply_saved(
    conversation: &mut Conversation,
    saved: SavedConversation,
) -> Result<(), ConversationFoldError> {
    let there = conversation.messages.len();
    if saved.kept > there {
        let what = format!("it keeps {} messages, and there are {there}", saved.kept);
        return Err(ConversationFoldError::Damaged(what));
    }
    conversation.messages.truncate(saved.kept);
    conversation.messages.extend(saved.messages);
    if let Some(state) = saved.state {
        check_version(state.version, CONVERSATION_VERSION)?;
        let messages = std::mem::take(&mut conversation.messages);
        *conversation = Conversation { messages, ..*state };
    }
    Ok(())
}

/// Adds up tokens.
pub(super) fn add_usage(sum: &mut TokenUsage, more: TokenUsage) {
    sum.input_tokens = sum.input_tokens.saturating_add(more.input_tokens);
    sum.output_tokens = sum.output_tokens.saturating_add(more.output_tokens);
    sum.cache_read_tokens = sum.cache_read_tokens.saturating_add(more.cache_read_tokens);
    sum.cache_write_tokens = sum.cache_write_tokens.saturating_add(more.cache_write_tokens);
}

/// The messages and the state of a conversation as they were last recorded, from which the next
/// increment is computed.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedBaseline {
    messages: Vec<ModelMessage>,
    /// The conversation without its messages, as JSON; null if it was never recorded.
    state: Value,
}

impl RecordedBaseline {
    pub(super) fn new(conversation: &Conversation) -> Self {
        let state = serde_json::json!(without_messages(conversation));
        RecordedBaseline { messages: conversation.messages.clone(), state }
    }

    /// Returns the increments that turn the last recorded conversation into this one; none if they
    /// are the same. Many messages are split, so that each increment fits into an event; all but the
    /// last say that more follows.
    pub(super) fn advance(&mut self, conversation: Conversation) -> Vec<SavedConversation> {
        let same = self.messages.iter().zip(&conversation.messages);
        let mut kept = same.take_while(|(before, now)| before == now).count();
        let state = without_messages(&conversation);
        let state_json = serde_json::json!(state);
        let changed = (state_json != self.state).then(|| Box::new(state));
        if kept == self.messages.len() && kept == conversation.messages.len() && changed.is_none() {
            return Vec::new();
        }
        let mut increments = Vec::new();
        for messages in split_messages(&conversation.messages[kept..]) {
            let messages = messages.to_vec();
            let next = kept + messages.len();
            increments.push(SavedConversation { kept, messages, state: None, more: true });
            kept = next;
        }
        match increments.last_mut() {
            Some(last) => (last.state, last.more) = (changed, false),
            None => {
                let messages = Vec::new();
                increments.push(SavedConversation { kept, messages, state: changed, more: false });
            }
        }
        *self = RecordedBaseline { messages: conversation.messages, state: state_json };
        increments
    }
}

/// Splits messages into groups of at most [`SAVED_TOKENS_MAX`], or of one message that is larger.
fn split_messages(mut messages: &[ModelMessage]) -> Vec<&[ModelMessage]> {
    let mut groups = Vec::new();
    while !messages.is_empty() {
        let mut tokens = 0;
        let fitting = messages.iter().take_while(|message| {
            tokens += estimate_message_tokens(message);
            tokens <= SAVED_TOKENS_MAX
        });
        let (group, rest) = messages.split_at(fitting.count().max(1));
        groups.push(group);
        messages = rest;
    }
    groups
}

fn without_messages(conversation: &Conversation) -> Conversation {
    Conversation {
        version: conversation.version,
        id: conversation.id.clone(),
        agent: conversation.agent.clone(),
        messages: Vec::new(),
        ledger: conversation.ledger.clone(),
        head_skills: conversation.head_skills.clone(),
        todos: conversation.todos.clone(),
        session: conversation.session.clone(),
        session_at: conversation.session_at.clone(),
        winners: conversation.winners.clone(),
        measured: None,
    }
}

fn is_needed_for_recovery(event: &AgentEvent) -> bool {
    let kind = &event.kind;
    event.depth == 0
        && matches!(
            kind,
            EventKind::Answer { .. } | EventKind::ToolCall { .. } | EventKind::SkillLoaded { .. }
        )
}

/// Refuses an event that the journal could not decode: it may have changed the messages.
fn refuse_unreadable(event: &Event) -> Result<(), ConversationFoldError> {
    match &event.payload {
        Payload::Note { name, .. } if name.starts_with("unknown:") => {
            let seq = event.seq;
            Err(if event.v > EVENT_VERSION {
                ConversationFoldError::Newer(format!("event {seq} is not known here"))
            } else {
                ConversationFoldError::Damaged(format!("event {seq} cannot be read"))
            })
        }
        _ => Ok(()),
    }
}

/// Reads the request of a conversation. The version comes first: a later version may have another
/// shape.
fn read_request(request: &Value) -> Result<ConversationRequest, ConversationFoldError> {
    let damaged =
        |error: serde_json::Error| ConversationFoldError::Damaged(format!("its request: {error}"));
    let version = request.get("version").and_then(Value::as_u64).unwrap_or(0);
    check_version(u32::try_from(version).unwrap_or(u32::MAX), CONVERSATION_RECORD_VERSION)?;
    ConversationRequest::deserialize(request).map_err(damaged)
}

fn check_version(found: u32, known: u32) -> Result<(), ConversationFoldError> {
    if found > known {
        let what = format!("version {found}, and {known} is the latest known here");
        return Err(ConversationFoldError::Newer(what));
    }
    if found < known {
        return Err(ConversationFoldError::Damaged(format!("there is no version {found}")));
    }
    Ok(())
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
