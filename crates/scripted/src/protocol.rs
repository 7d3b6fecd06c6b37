//! Renders a turn in each protocol, as events or as one JSON value.

mod anthropic;
mod chat;
mod responses;

use serde_json::{Value, json};

use crate::script::{ModelFault, ScriptedTurn};

/// A model protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModelProtocol {
    Anthropic,
    Chat,
    Responses,
}

/// The content of an event, for faults that depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventContent {
    Text,
    Arguments,
    Other,
}

/// An event in wire format.
#[derive(Clone, Debug)]
pub(crate) struct WireEvent {
    pub(crate) wire: String,
    pub(crate) carries: EventContent,
}

impl ModelProtocol {
    pub(crate) fn from_path(path: &str) -> Option<Self> {
        match path.split('?').next()? {
            "/v1/messages" => Some(ModelProtocol::Anthropic),
            "/chat/completions" | "/v1/chat/completions" => Some(ModelProtocol::Chat),
            "/responses" | "/v1/responses" => Some(ModelProtocol::Responses),
            _ => None,
        }
    }

    /// The events of a turn. `number` makes the ids of its calls unique.
    pub(crate) fn events(
        self,
        turn: &ScriptedTurn,
        model: &Value,
        number: usize,
    ) -> Vec<WireEvent> {
        match self {
            ModelProtocol::Anthropic => anthropic::turn_events(turn, model, number),
            ModelProtocol::Chat => chat::turn_events(turn, model, number),
            ModelProtocol::Responses => responses::turn_events(turn, model, number),
        }
    }

    /// The turn as a complete answer.
    pub(crate) fn complete_answer(
        self,
        turn: &ScriptedTurn,
        model: &Value,
        number: usize,
    ) -> Value {
        match self {
            ModelProtocol::Anthropic => anthropic::complete_answer(turn, model, number),
            ModelProtocol::Chat => chat::complete_answer(turn, model, number),
            ModelProtocol::Responses => responses::complete_answer(turn, model, number),
        }
    }

    /// A text event.
    pub(crate) fn text_event(self, text: &str) -> WireEvent {
        match self {
            ModelProtocol::Anthropic => anthropic::text_event(0, text),
            ModelProtocol::Chat => chat::text_event(text),
            ModelProtocol::Responses => responses::text_event(text),
        }
    }

    /// An error body.
    pub(crate) fn error_body(self, kind: &str, message: &str) -> Value {
        let error = json!({ "type": kind, "message": message });
        match self {
            ModelProtocol::Anthropic => json!({ "type": "error", "error": error }),
            ModelProtocol::Chat | ModelProtocol::Responses => json!({ "error": error }),
        }
    }

    /// An error in the middle of a stream.
    pub(crate) fn error_event(self) -> WireEvent {
        let body = self.error_body("overloaded_error", "Overloaded").to_string();
        let wire = match self {
            ModelProtocol::Anthropic => format!("event: error\ndata: {body}\n\n"),
            ModelProtocol::Chat | ModelProtocol::Responses => format!("data: {body}\n\n"),
        };
        WireEvent { wire, carries: EventContent::Other }
    }
}

/// The id of a call.
fn call_id(turn: &ScriptedTurn, number: usize, at: usize) -> String {
    let own = turn.tools[at].id.clone();
    own.unwrap_or_else(|| format!("call_{number}_{at}"))
}

/// The arguments of a call as text; truncated for [`Fault::MalformedArguments`].
fn call_arguments(turn: &ScriptedTurn, at: usize) -> String {
    let mut text = turn.tools[at].arguments.to_string();
    if turn.fault == Some(ModelFault::MalformedArguments) {
        text.pop();
    }
    text
}

/// Splits text into pieces, as a model would stream it.
fn split_text(text: &str) -> Vec<String> {
    const CHARS: usize = 12;
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(CHARS).map(|piece| piece.iter().collect()).collect()
}
