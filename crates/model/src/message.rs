//! What is said in a conversation, in no provider's words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    /// The operator speaks. At the start of a conversation this is the system prompt; later ones are
    /// put where the provider allows them.
    System {
        /// What is said.
        text: String,
    },
    /// The user speaks, or tools answer.
    User {
        /// The parts, in order.
        content: Vec<UserPart>,
    },
    /// The model speaks.
    Assistant {
        /// The parts, in order.
        content: Vec<AssistantPart>,
    },
}

impl Message {
    /// A message of the operator.
    pub fn system(text: impl Into<String>) -> Self {
        Message::System { text: text.into() }
    }

    /// A message of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Message::User { content: vec![UserPart::Text { text: text.into() }] }
    }

    /// A message of the model, of text alone.
    pub fn assistant(text: impl Into<String>) -> Self {
        Message::Assistant { content: vec![AssistantPart::Text { text: text.into() }] }
    }

    /// The answers of tools.
    pub fn results(results: Vec<ToolResult>) -> Self {
        Message::User { content: results.into_iter().map(UserPart::ToolResult).collect() }
    }

    /// All text of the message that a person would read, one part after the other.
    pub fn text(&self) -> String {
        match self {
            Message::System { text } => text.clone(),
            Message::User { content } => content
                .iter()
                .filter_map(|part| match part {
                    UserPart::Text { text } => Some(text.as_str()),
                    UserPart::ToolResult(_) => None,
                })
                .collect(),
            Message::Assistant { content } => content
                .iter()
                .filter_map(|part| match part {
                    AssistantPart::Text { text } => Some(text.as_str()),
                    _ => None,
                })
                .collect(),
        }
    }

    /// The calls of tools in the message.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        let parts = match self {
            Message::Assistant { content } => content.as_slice(),
            _ => &[],
        };
        parts.iter().filter_map(|part| match part {
            AssistantPart::ToolCall(call) => Some(call),
            _ => None,
        })
    }
}

/// A part of what the user says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum UserPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// What a tool answered.
    ToolResult(ToolResult),
}

/// A part of what the model says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AssistantPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// Thoughts, with what the provider wants back to believe that they are its own.
    Thinking {
        /// The thoughts.
        text: String,
        /// The provider's signature.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// Thoughts that only the provider can read.
    RedactedThinking {
        /// The provider's bytes.
        data: String,
    },
    /// A tool is called.
    ToolCall(ToolCall),
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// The provider's id for the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as the model wrote them: JSON, if all went well.
    pub arguments: String,
}

impl ToolCall {
    /// The arguments as an object; nothing at all counts as an empty one.
    ///
    /// # Errors
    ///
    /// What is wrong with them, in words that help a model to mend them.
    pub fn parsed(&self) -> Result<Value, String> {
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

/// What a tool answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// The call that is answered.
    pub call_id: String,
    /// The answer.
    pub text: String,
    /// Whether the call failed.
    #[serde(default)]
    pub is_error: bool,
}
