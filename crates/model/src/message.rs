//! Messages of a conversation, independent of the provider.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum ModelMessage {
    /// A system message. The first ones of a conversation are the system prompt; later ones are
    /// sent where the provider allows them.
    System {
        /// The text.
        text: String,
    },
    /// A message of the user, or tool results.
    User {
        /// The parts, in order.
        content: Vec<UserPart>,
    },
    /// A message of the model.
    Assistant {
        /// The parts, in order.
        content: Vec<AssistantPart>,
    },
}

impl ModelMessage {
    /// Creates a system message.
    pub fn system(text: impl Into<String>) -> Self {
        ModelMessage::System { text: text.into() }
    }

    /// Creates a user message.
    pub fn user(text: impl Into<String>) -> Self {
        ModelMessage::User { content: vec![UserPart::Text { text: text.into() }] }
    }

    /// Creates a text message of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        ModelMessage::Assistant { content: vec![AssistantPart::Text { text: text.into() }] }
    }

    /// Creates a message with tool results.
    pub fn tool_results(results: Vec<ToolResult>) -> Self {
        ModelMessage::User { content: results.into_iter().map(UserPart::ToolResult).collect() }
    }

    /// The visible text of the message: all text parts, concatenated.
    pub fn text(&self) -> String {
        match self {
            ModelMessage::System { text } => text.clone(),
            ModelMessage::User { content } => content
                .iter()
                .filter_map(|part| match part {
                    UserPart::Text { text } => Some(text.as_str()),
                    UserPart::ToolResult(_) => None,
                })
                .collect(),
            ModelMessage::Assistant { content } => content
                .iter()
                .filter_map(|part| match part {
                    AssistantPart::Text { text } => Some(text.as_str()),
                    _ => None,
                })
                .collect(),
        }
    }

    /// The tool calls in the message.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        let parts = match self {
            ModelMessage::Assistant { content } => content.as_slice(),
            _ => &[],
        };
        parts.iter().filter_map(|part| match part {
            AssistantPart::ToolCall(call) => Some(call),
            _ => None,
        })
    }
}

/// A part of a user message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum UserPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// The result of a tool call.
    ToolResult(ToolResult),
}

/// A part of a model's message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AssistantPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// The model's thinking, with the signature that the provider requires when it is sent back.
    Thinking {
        /// The text of the thinking.
        text: String,
        /// The provider's signature.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// Thinking that only the provider can read.
    RedactedThinking {
        /// The provider's opaque data.
        data: String,
    },
    /// A tool call.
    ToolCall(ToolCall),
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// The provider's id for the call.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments as the model wrote them, usually valid JSON.
    pub arguments: String,
}

impl ToolCall {
    /// Parses the arguments as an object; an empty text counts as an empty object.
    ///
    /// # Errors
    ///
    /// Returns the problem, worded so that the model can correct it.
    pub fn parse_arguments(&self) -> Result<Value, String> {
        if self.arguments.trim().is_empty() {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        match serde_json::from_str(&self.arguments) {
            Ok(value @ Value::Object(_)) => Ok(value),
            Ok(_) => Err("the arguments must be a JSON object".to_owned()),
            Err(error) => Err(format!("the arguments are not valid JSON: {error}")),
        }
    }
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: String,
    /// The text of the result.
    pub text: String,
    /// True if the call failed.
    #[serde(default)]
    pub is_error: bool,
}
