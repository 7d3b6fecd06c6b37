//! Renders a turn in each protocol, as events or as one JSON value.

mod anthropic;
mod chat;
mod responses;

use serde_json::{Value, json};

use crate::script::{Fault, Turn};

/// A model protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Anthropic,
    Chat,
    Responses,
}

/// The content of an event, for faults that depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carries {
    Text,
    Arguments,
    Other,
}

/// An event in wire format.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) wire: String,
    pub(crate) carries: Carries,
}

impl Protocol {
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        match path.split('?').next()? {
            "/v1/messages" => Some(Protocol::Anthropic),
            "/chat/completions" | "/v1/chat/completions" => Some(Protocol::Chat),
            "/responses" | "/v1/responses" => Some(Protocol::Responses),
            _ => None,
        }
    }

    /// The events of a turn. `number` makes the ids of its calls unique.
    pub(crate) fn events(self, turn: &Turn, model: &Value, number: usize) -> Vec<Event> {
        match self {
            Protocol::Anthropic => anthropic::events(turn, model, number),
            Protocol::Chat => chat::events(turn, model, number),
            Protocol::Responses => responses::events(turn, model, number),
        }
    }

    /// The turn as a complete answer.
    pub(crate) fn whole(self, turn: &Turn, model: &Value, number: usize) -> Value {
        match self {
            Protocol::Anthropic => anthropic::whole(turn, model, number),
            Protocol::Chat => chat::whole(turn, model, number),
            Protocol::Responses => responses::whole(turn, model, number),
        }
    }

    /// A text event.
    pub(crate) fn text_event(self, text: &str) -> Event {
        match self {
            Protocol::Anthropic => anthropic::text_event(0, text),
            Protocol::Chat => chat::text_event(text),
            Protocol::Responses => responses::text_event(text),
        }
    }

    /// An error body.
    pub(crate) fn error(self, kind: &str, message: &str) -> Value {
        let error = json!({ "type": kind, "message": message });
        match self {
            Protocol::Anthropic => json!({ "type": "error", "error": error }),
            Protocol::Chat | Protocol::Responses => json!({ "error": error }),
        }
    }

    /// An error in the middle of a stream.
    pub(crate) fn error_event(self) -> Event {
        let body = self.error("overloaded_error", "Overloaded").to_string();
        let wire = match self {
            Protocol::Anthropic => format!("event: error\ndata: {body}\n\n"),
            Protocol::Chat | Protocol::Responses => format!("data: {body}\n\n"),
        };
        Event { wire, carries: Carries::Other }
    }
}

/// The id of a call.
fn call_id(turn: &Turn, number: usize, at: usize) -> String {
    let own = turn.tools[at].id.clone();
    own.unwrap_or_else(|| format!("call_{number}_{at}"))
}

/// The arguments of a call as text; truncated for [`Fault::MalformedArguments`].
fn arguments(turn: &Turn, at: usize) -> String {
    let mut text = turn.tools[at].arguments.to_string();
    if turn.fault == Some(Fault::MalformedArguments) {
        text.pop();
    }
    text
}

/// Splits text into pieces, as a model would stream it.
fn pieces(text: &str) -> Vec<String> {
    const CHARS: usize = 12;
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(CHARS).map(|piece| piece.iter().collect()).collect()
}
