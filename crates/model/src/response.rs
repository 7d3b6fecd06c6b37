//! What comes back from a model: piece by piece, and put together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::{AssistantPart, Message, ToolCall};

/// A piece of an answer, in the order in which the provider sends them.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// More text.
    Text(String),
    /// More thoughts.
    Thinking(String),
    /// The signature of the thoughts before.
    ThinkingSignature(String),
    /// Thoughts that only the provider can read.
    RedactedThinking(String),
    /// A call begins. `index` tells the calls of one answer apart.
    ToolCallStart {
        /// Which call.
        index: usize,
        /// The provider's id.
        id: String,
        /// The tool.
        name: String,
    },
    /// More of a call's arguments.
    ToolCallArguments {
        /// Which call.
        index: usize,
        /// The text that follows.
        json: String,
    },
    /// What was used so far; later figures replace earlier ones, field by field, where they are not zero.
    Usage(Usage),
    /// The answer is complete.
    Stop(StopReason),
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model was done.
    EndTurn,
    /// It waits for tools.
    ToolUse,
    /// It reached the limit on the answer.
    MaxTokens,
    /// It declined.
    Refusal,
    /// Another reason, in the provider's word.
    Other(String),
}

/// Tokens that a call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// Read, and not from a cache.
    pub input_tokens: u64,
    /// Written.
    pub output_tokens: u64,
    /// Read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Written to the provider's cache.
    pub cache_write_tokens: u64,
}

impl Usage {
    /// All tokens.
    pub fn total(&self) -> u64 {
        self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens
    }

    /// Takes over the fields of a later report that say something.
    pub fn update(&mut self, later: Usage) {
        let newer = |old: &mut u64, new: u64| {
            if new != 0 {
                *old = new;
            }
        };
        newer(&mut self.input_tokens, later.input_tokens);
        newer(&mut self.output_tokens, later.output_tokens);
        newer(&mut self.cache_read_tokens, later.cache_read_tokens);
        newer(&mut self.cache_write_tokens, later.cache_write_tokens);
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_tokens += other.cache_read_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
    }
}

/// A complete answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// What the model said.
    pub message: Message,
    /// Why it stopped.
    pub stop: StopReason,
    /// What it used.
    pub usage: Usage,
}

/// Puts an answer together from its pieces.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    parts: Vec<AssistantPart>,
    /// Where the call of an index stands among the parts.
    calls: Vec<(usize, usize)>,
    usage: Usage,
    stop: Option<StopReason>,
}

impl Assembler {
    /// Takes one piece.
    pub fn push(&mut self, delta: &Delta) {
        match delta {
            Delta::Text(more) => match self.parts.last_mut() {
                Some(AssistantPart::Text { text }) => text.push_str(more),
                _ => self.parts.push(AssistantPart::Text { text: more.clone() }),
            },
            Delta::Thinking(more) => match self.parts.last_mut() {
                Some(AssistantPart::Thinking { text, signature: None }) => text.push_str(more),
                _ => {
                    self.parts.push(AssistantPart::Thinking { text: more.clone(), signature: None })
                }
            },
            Delta::ThinkingSignature(more) => {
                if let Some(AssistantPart::Thinking { signature, .. }) = self.parts.last_mut() {
                    signature.get_or_insert_default().push_str(more);
                }
            }
            Delta::RedactedThinking(data) => {
                self.parts.push(AssistantPart::RedactedThinking { data: data.clone() });
            }
            Delta::ToolCallStart { index, id, name } => {
                self.calls.push((*index, self.parts.len()));
                self.parts.push(AssistantPart::ToolCall(ToolCall {
                    id: id.clone(),
                    name: name.clone(),
                    arguments: String::new(),
                }));
            }
            Delta::ToolCallArguments { index, json } => {
                let at = self.calls.iter().rev().find(|(call, _)| call == index);
                if let Some(AssistantPart::ToolCall(call)) =
                    at.and_then(|(_, at)| self.parts.get_mut(*at))
                {
                    call.arguments.push_str(json);
                }
            }
            Delta::Usage(usage) => self.usage.update(*usage),
            Delta::Stop(reason) => self.stop = Some(reason.clone()),
        }
    }

    /// What has been used so far, also by an answer that never ended.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The answer; `None` if the provider never said that it was complete.
    pub fn finish(self) -> Option<Response> {
        let stop = self.stop?;
        let message = Message::Assistant { content: self.parts };
        Some(Response { message, stop, usage: self.usage })
    }
}
