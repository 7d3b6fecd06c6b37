//! Responses of a model: as a stream of deltas, and assembled.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::{AssistantPart, ModelMessage, ToolCall};

/// A piece of an answer, in the order in which the provider sends it.
#[derive(Clone, Debug, PartialEq)]
pub enum ResponseDelta {
    Text(String),
    Thinking(String),
    /// The signature of the preceding thinking.
    ThinkingSignature(String),
    /// Thinking that only the provider can read.
    RedactedThinking(String),
    /// The start of a call. `index` identifies the call within the answer.
    ToolCallStart {
        index: usize,
        /// The provider's id.
        id: String,
        /// The name of the tool.
        name: String,
    },
    /// More of a call's arguments.
    ToolCallArguments {
        index: usize,
        json: String,
    },
    /// The usage so far; non-zero fields replace earlier values.
    Usage(TokenUsage),
    /// The end of the answer.
    Stop(StopReason),
}

/// The reason why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model finished.
    EndTurn,
    /// The model is waiting for tool results.
    ToolUse,
    /// The answer reached its token limit.
    MaxTokens,
    /// The model declined to answer.
    Refusal,
    /// Another reason, as the provider names it.
    Other(String),
}

/// The tokens that a call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TokenUsage {
    /// Input tokens, without those read from a cache.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Input tokens read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Input tokens written to the provider's cache.
    pub cache_write_tokens: u64,
}

impl TokenUsage {
    pub fn total(&self) -> u64 {
        self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens
    }

    /// Replaces the fields that are non-zero in a later report.
    pub fn update(&mut self, later: TokenUsage) {
        replace_if_nonzero(&mut self.input_tokens, later.input_tokens);
        replace_if_nonzero(&mut self.output_tokens, later.output_tokens);
        replace_if_nonzero(&mut self.cache_read_tokens, later.cache_read_tokens);
        replace_if_nonzero(&mut self.cache_write_tokens, later.cache_write_tokens);
    }
}

fn replace_if_nonzero(old: &mut u64, new: u64) {
    if new != 0 {
        *old = new;
    }
}

impl std::ops::AddAssign for TokenUsage {
    fn add_assign(&mut self, other: TokenUsage) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_tokens += other.cache_read_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ModelResponse {
    pub message: ModelMessage,
    pub stop: StopReason,
    pub usage: TokenUsage,
}

/// Assembles an answer from its deltas.
#[derive(Clone, Debug, Default)]
pub struct ResponseAssembler {
    parts: Vec<AssistantPart>,
    /// Pairs of a call's index and its position in `parts`.
    calls: Vec<(usize, usize)>,
    usage: TokenUsage,
    stop: Option<StopReason>,
}

impl ResponseAssembler {
    pub fn push(&mut self, delta: &ResponseDelta) {
        match delta {
            ResponseDelta::Text(more) => match self.parts.last_mut() {
                Some(AssistantPart::Text { text }) => text.push_str(more),
                _ => self.parts.push(AssistantPart::Text { text: more.clone() }),
            },
            ResponseDelta::Thinking(more) => match self.parts.last_mut() {
                Some(AssistantPart::Thinking { text, signature: None }) => text.push_str(more),
                _ => {
                    self.parts.push(AssistantPart::Thinking { text: more.clone(), signature: None })
                }
            },
            ResponseDelta::ThinkingSignature(more) => {
                if let Some(AssistantPart::Thinking { signature, .. }) = self.parts.last_mut() {
                    signature.get_or_insert_default().push_str(more);
                }
            }
            ResponseDelta::RedactedThinking(data) => {
                self.parts.push(AssistantPart::RedactedThinking { data: data.clone() });
            }
            ResponseDelta::ToolCallStart { index, id, name } => {
                self.calls.push((*index, self.parts.len()));
                self.parts.push(AssistantPart::ToolCall(ToolCall {
                    id: id.clone(),
                    name: name.clone(),
                    arguments: String::new(),
                }));
            }
            ResponseDelta::ToolCallArguments { index, json } => {
                let at = self.calls.iter().rev().find(|(call, _)| call == index);
                if let Some(AssistantPart::ToolCall(call)) =
                    at.and_then(|(_, at)| self.parts.get_mut(*at))
                {
                    call.arguments.push_str(json);
                }
            }
            ResponseDelta::Usage(usage) => self.usage.update(*usage),
            ResponseDelta::Stop(reason) => self.stop = Some(reason.clone()),
        }
    }

    /// The usage so far, also of an incomplete answer.
    pub fn usage(&self) -> TokenUsage {
        self.usage
    }

    /// The answer; `None` if the provider never ended it.
    pub fn finish(self) -> Option<ModelResponse> {
        let stop = self.stop?;
        let message = ModelMessage::Assistant { content: self.parts };
        Some(ModelResponse { message, stop, usage: self.usage })
    }
}
