//! Requests to a model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::ModelMessage;
use crate::name::ModelName;

/// A request to a model.
#[derive(Clone, Debug)]
pub struct ModelRequest<'a> {
    pub model: &'a ModelName,
    pub messages: &'a [ModelMessage],
    /// The tools that the model may call.
    pub tools: &'a [ToolSpec],
    pub tool_choice: ToolChoice,
    /// The maximum number of tokens of the answer; the model's own limit if absent.
    pub max_tokens: Option<u32>,
    pub sampling: SamplingParams,
    pub thinking: ThinkingMode,
    pub format: ResponseFormat,
    pub caching: PromptCaching,
}

impl<'a> ModelRequest<'a> {
    /// Creates a request with default settings.
    pub fn new(model: &'a ModelName, messages: &'a [ModelMessage]) -> Self {
        ModelRequest {
            model,
            messages,
            tools: &[],
            tool_choice: ToolChoice::Auto,
            max_tokens: None,
            sampling: SamplingParams::default(),
            thinking: ThinkingMode::Off,
            format: ResponseFormat::Text,
            caching: PromptCaching::On,
        }
    }
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolSpec {
    /// The name of the tool.
    pub name: String,
    /// A description of the tool and of when to use it.
    pub description: String,
    /// The JSON Schema of the arguments.
    pub parameters: Value,
}

/// Controls whether the model calls tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must not call a tool.
    None,
    /// The model must call this tool.
    Tool(String),
}

/// Sampling parameters; absent values are the provider's defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SamplingParams {
    /// The temperature, from 0 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The nucleus sampling threshold, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
}

/// Controls whether the model thinks before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingMode {
    /// No thinking.
    #[default]
    Off,
    /// Thinking with a budget of this many tokens.
    Budget(u32),
}

/// The format of the answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ResponseFormat {
    #[default]
    Text,
    /// Any JSON value.
    Json,
    /// JSON that matches a schema.
    Schema {
        /// A name for the schema, which some providers require.
        name: String,
        schema: Value,
    },
}

/// Controls prompt caching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PromptCaching {
    /// Sets cache marks after the tools, the system prompt and the last two turns.
    #[default]
    On,
    Off,
}
