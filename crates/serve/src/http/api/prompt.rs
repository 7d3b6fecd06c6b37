//! The exact prompt that an agent would get. Nothing is sent, and no MCP server is started to list its tools.

use camino::Utf8PathBuf;
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::select::SelectRequest;
use super::{ApiBuilder, ApiCall, ApiResult, Nothing};
use crate::http::problem::HttpProblem;
use crate::serve_state::{PromptError, PromptRequest};

/// A prompt.
#[derive(Debug, Serialize, JsonSchema)]
struct PromptPreviewJson {
    /// The name of the agent.
    agent: String,
    /// The model.
    model: String,
    /// The messages, in order.
    messages: Vec<PromptMessageJson>,
    /// The tools offered, except those of MCP servers: none is started for a preview.
    tools: Vec<PromptToolJson>,
    /// The estimated number of tokens.
    tokens: u64,
    /// The exact body of the request.
    body: Value,
}

/// A message.
#[derive(Debug, Serialize, JsonSchema)]
struct PromptMessageJson {
    /// The author: `system`, `user` or `assistant`.
    role: String,
    /// The text.
    text: String,
}

/// A tool.
#[derive(Debug, Serialize, JsonSchema)]
struct PromptToolJson {
    /// The name of the tool.
    name: String,
    /// The description given to the model.
    description: String,
    /// The schema of its arguments.
    parameters: Value,
}

pub(super) fn add_endpoints(api: ApiBuilder) -> ApiBuilder {
    let summary = "The exact prompt that an agent would be given; nothing is sent";
    api.add(Method::POST, "/api/v1/prompt", "selection", summary, preview_prompt)
        .refuses(StatusCode::NOT_FOUND, "There is no such agent.")
        .refuses(StatusCode::CONFLICT, "A prompt cannot be made here.")
}

async fn preview_prompt(
    call: ApiCall<Nothing, Nothing, SelectRequest>,
) -> ApiResult<PromptPreviewJson> {
    let ask = call.body.check_limits()?;
    let Some(make) = call.serve_state.preview().cloned() else {
        return Err(HttpProblem::new(StatusCode::CONFLICT, "prompts cannot be made here"));
    };
    let ask = PromptRequest {
        task: ask.task,
        agent: ask.agent.filter(|agent| !agent.is_empty()),
        skills: ask.skills,
        paths: ask.paths.into_iter().map(Utf8PathBuf::from).collect(),
        event: ask.event,
        max_skills: ask.max.map(|max| max as usize),
        threshold: ask.threshold,
    };
    let made = make(ask).await.map_err(|error| match &error {
        PromptError::NoAgent(_) => HttpProblem::not_found(error.to_string())
            .hint("`GET /api/v1/skills?kind=agent` lists agents."),
        PromptError::Refused(_) => HttpProblem::new(StatusCode::CONFLICT, error.to_string()),
    })?;
    let messages = made.messages.iter().map(|message| flatten_message(&serde_json::json!(message)));
    let tools = made.tools.into_iter().map(|tool| PromptToolJson {
        name: tool.name,
        description: tool.description,
        parameters: tool.parameters,
    });
    Ok(PromptPreviewJson {
        agent: made.agent.name,
        model: made.model.to_string(),
        messages: messages.collect(),
        tools: tools.collect(),
        tokens: made.tokens,
        body: made.body,
    })
}

/// Flattens a message for people: its parts one after the other, with non-text parts as JSON.
fn flatten_message(message: &Value) -> PromptMessageJson {
    let text = match &message["content"] {
        Value::Array(parts) => parts.iter().map(part_text).collect::<Vec<_>>().join("\n"),
        _ => part_text(message),
    };
    PromptMessageJson { role: message["role"].as_str().unwrap_or_default().to_owned(), text }
}

fn part_text(part: &Value) -> String {
    match part["text"].as_str() {
        Some(text) => text.to_owned(),
        None => part.to_string(),
    }
}
