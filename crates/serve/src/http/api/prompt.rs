//! The exact prompt that an agent would get. Nothing is sent, and no MCP server is started to list its tools.

use camino::Utf8PathBuf;
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::select::Ask;
use super::{Answer, Api, Call, Nothing};
use crate::house::{PromptAsk, PromptError};
use crate::http::problem::Problem;

/// A prompt.
#[derive(Debug, Serialize, JsonSchema)]
struct Prompt {
    /// The name of the agent.
    agent: String,
    /// The model.
    model: String,
    /// The messages, in order.
    messages: Vec<MessageJson>,
    /// The tools offered, except those of MCP servers: none is started for a preview.
    tools: Vec<ToolJson>,
    /// The estimated number of tokens.
    tokens: u64,
    /// The exact body of the request.
    body: Value,
}

/// A message.
#[derive(Debug, Serialize, JsonSchema)]
struct MessageJson {
    /// The author: `system`, `user` or `assistant`.
    role: String,
    /// The text.
    text: String,
}

/// A tool.
#[derive(Debug, Serialize, JsonSchema)]
struct ToolJson {
    /// The name of the tool.
    name: String,
    /// The description given to the model.
    description: String,
    /// The schema of its arguments.
    parameters: Value,
}

pub(super) fn add(api: Api) -> Api {
    let summary = "The exact prompt that an agent would be given; nothing is sent";
    api.add(Method::POST, "/api/v1/prompt", "selection", summary, prompt)
        .refuses(StatusCode::NOT_FOUND, "There is no such agent.")
        .refuses(StatusCode::CONFLICT, "A prompt cannot be made here.")
}

async fn prompt(call: Call<Nothing, Nothing, Ask>) -> Answer<Prompt> {
    let ask = call.body.checked()?;
    let Some(make) = call.house.preview().cloned() else {
        return Err(Problem::new(StatusCode::CONFLICT, "prompts cannot be made here"));
    };
    let ask = PromptAsk {
        task: ask.task,
        agent: ask.agent.filter(|agent| !agent.is_empty()),
        skills: ask.skills,
        paths: ask.paths.into_iter().map(Utf8PathBuf::from).collect(),
        event: ask.event,
        max_skills: ask.max.map(|max| max as usize),
        threshold: ask.threshold,
    };
    let made = make(ask).await.map_err(|error| match &error {
        PromptError::NoAgent(_) => Problem::not_found(error.to_string())
            .hint("`GET /api/v1/skills?kind=agent` lists agents."),
        PromptError::Refused(_) => Problem::new(StatusCode::CONFLICT, error.to_string()),
    })?;
    let messages = made.messages.iter().map(|message| message_of(&serde_json::json!(message)));
    let tools = made.tools.into_iter().map(|tool| ToolJson {
        name: tool.name,
        description: tool.description,
        parameters: tool.parameters,
    });
    Ok(Prompt {
        agent: made.agent.name,
        model: made.model.to_string(),
        messages: messages.collect(),
        tools: tools.collect(),
        tokens: made.tokens,
        body: made.body,
    })
}

/// Flattens a message for people: its parts one after the other, with non-text parts as JSON.
fn message_of(message: &Value) -> MessageJson {
    let text = match &message["content"] {
        Value::Array(parts) => parts.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        _ => text_of(message),
    };
    MessageJson { role: message["role"].as_str().unwrap_or_default().to_owned(), text }
}

fn text_of(part: &Value) -> String {
    match part["text"].as_str() {
        Some(text) => text.to_owned(),
        None => part.to_string(),
    }
}
