//! The events of a conversation in the journal, and the request of its run.

use repertoire_agent::AgentEvent;
use repertoire_agent::conversation::Conversation;
use repertoire_journal::Payload;
use repertoire_model::{ModelMessage, TokenUsage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the request and the events.
pub const CONVERSATION_RECORD_VERSION: u32 = 1;

/// The name of events that only report on a run. Unlike the others, a reader may skip them.
pub(super) const AGENT_EVENT: &str = "agent_event";

const NAMES: [&str; 4] = ["turn_started", AGENT_EVENT, "saved", "turn_ended"];

/// The request of a run of the kind `conversation`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationRequest {
    /// The version of the request and the events.
    pub version: u32,
    /// The agent that the conversation was started with.
    pub agent: String,
}

/// An event of a conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "name", content = "data", rename_all = "snake_case")]
pub enum ConversationEvent {
    /// The user sent a prompt.
    TurnStarted { prompt: String },
    /// The agent did something. Chunks of an answer are not recorded, because the whole answer follows.
    AgentEvent(Box<AgentEvent>),
    /// The messages changed, or the rest of the conversation did.
    Saved(SavedConversation),
    /// The run that answers the prompt ended.
    TurnEnded {
        usage: TokenUsage,
        /// The cost in US dollars, if all prices are known.
        cost_usd: Option<f64>,
    },
}

/// The difference between a conversation and what was recorded of it before.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedConversation {
    /// The number of messages that are the same as before. Those after them are replaced.
    pub kept: usize,
    pub messages: Vec<ModelMessage>,
    /// The conversation without its messages; `None` if nothing else changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Box<Conversation>>,
    /// True if the next event has another part of the same difference. Parts without the last one
    /// have no effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

impl ConversationEvent {
    /// Converts the event for the journal.
    pub fn to_payload(&self) -> Payload {
        let mut tagged = serde_json::json!(self);
        let name = tagged["name"].as_str().unwrap_or_default().to_owned();
        Payload::KindEvent { name, data: tagged["data"].take() }
    }

    /// Reads an event of the journal.
    ///
    /// # Errors
    ///
    /// If the data does not fit the name.
    pub fn from_payload(name: &str, data: Value) -> Result<Self, serde_json::Error> {
        serde_json::from_value(serde_json::json!({ "name": name, "data": data }))
    }

    /// Returns true if this version has an event of this name.
    pub fn is_known(name: &str) -> bool {
        NAMES.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_read_back_from_its_name_and_data() {
        let agent = serde_json::json!({
            "v": 1, "seq": 1, "at_ms": 1, "run": "r", "agent": "a", "depth": 0, "type": "warning", "message": "m"
        });
        let agent: AgentEvent = serde_json::from_value(agent).unwrap();
        let saved = SavedConversation {
            kept: 2,
            messages: vec![ModelMessage::user("nul \0 and more")],
            state: Some(Box::new(Conversation::new("c"))),
            more: true,
        };
        let events = [
            ConversationEvent::TurnStarted { prompt: "hello".into() },
            ConversationEvent::AgentEvent(Box::new(agent)),
            ConversationEvent::Saved(saved),
            ConversationEvent::TurnEnded { usage: TokenUsage::default(), cost_usd: Some(0.5) },
        ];
        for (event, expected) in events.iter().zip(NAMES) {
            let Payload::KindEvent { name, data } = event.to_payload() else { panic!() };
            assert_eq!(name, expected);
            let back = ConversationEvent::from_payload(&name, data).unwrap();
            assert_eq!(back.to_payload(), event.to_payload());
        }
        assert!(!ConversationEvent::is_known("forked"));
    }
}
