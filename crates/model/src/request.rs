//! What is asked of a model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::Message;
use crate::name::ModelName;

/// One call of a model.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Which model.
    pub model: &'a ModelName,
    /// The conversation so far.
    pub messages: &'a [Message],
    /// The tools that the model may call.
    pub tools: &'a [ToolSpec],
    /// Whether it may, must or must not call one.
    pub tool_choice: ToolChoice,
    /// Most tokens of the answer; the model's own limit if absent.
    pub max_tokens: Option<u32>,
    /// How adventurous the answer is.
    pub sampling: Sampling,
    /// Whether the model thinks first.
    pub thinking: Thinking,
    /// The shape of the answer.
    pub format: ResponseFormat,
    /// Whether the provider is asked to remember the start of the conversation.
    pub caching: Caching,
}

impl<'a> Request<'a> {
    /// A request with everything left to the model.
    pub fn new(model: &'a ModelName, messages: &'a [Message]) -> Self {
        Request {
            model,
            messages,
            tools: &[],
            tool_choice: ToolChoice::Auto,
            max_tokens: None,
            sampling: Sampling::default(),
            thinking: Thinking::Off,
            format: ResponseFormat::Text,
            caching: Caching::On,
        }
    }
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}

/// Whether tools are called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// As the model likes.
    #[default]
    Auto,
    /// Not at all.
    None,
    /// This one.
    Tool(String),
}

/// How adventurous an answer is; absent values are the provider's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sampling {
    /// 0 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
}

/// Whether the model thinks before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// It does not.
    #[default]
    Off,
    /// It may spend this many tokens on it.
    Budget(u32),
}

/// The shape of the answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ResponseFormat {
    /// Text.
    #[default]
    Text,
    /// Any JSON.
    Json,
    /// JSON of this schema.
    Schema {
        /// A name for it.
        name: String,
        /// The schema.
        schema: Value,
    },
}

/// Whether the provider is asked to remember the start of the conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Caching {
    /// Marks are set where they help: after the tools, the system prompt and the last two turns.
    #[default]
    On,
    /// No marks.
    Off,
}
