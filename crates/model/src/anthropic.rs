//! Anthropic Messages (version 2023-06-01), as pure functions between our values and its JSON.
//!
//! An answer of a given shape is asked for with a tool, [`STRUCTURED_OUTPUT`], whose arguments are the answer: that
//! works with every model and every server that speaks the protocol. The decoder gives the arguments of its call as
//! text, and what the model says around it as thoughts. The shape has to be an object, as all arguments are.

mod decode;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

pub use self::decode::Decoder;
use crate::limits::THINKING_TOKENS_MIN;
use crate::message::{AssistantPart, ToolResult};
use crate::request::{Caching, Request, ResponseFormat, Thinking, ToolChoice, ToolSpec};
use crate::turns::{Conversation, Turn, arguments_sent_back};

/// The version of the protocol, as its header wants it.
pub const VERSION: &str = "2023-06-01";

/// The tool whose arguments are an answer of a given shape.
pub const STRUCTURED_OUTPUT: &str = "structured_output";

/// The body of a request. `output_tokens_max` is the model's limit, for requests without one of their own.
pub fn body(request: &Request<'_>, output_tokens_max: u32, stream: bool) -> Value {
    let conversation = Conversation::of(request.messages);
    let mut body = Map::new();
    body.insert("model".into(), json!(request.model.model));
    add_budget(&mut body, request, output_tokens_max);
    body.insert("stream".into(), json!(stream));
    let system = system_blocks(&conversation, request.caching);
    if !system.is_empty() {
        body.insert("system".into(), json!(system));
    }
    add_tools(&mut body, request);
    body.insert("messages".into(), json!(messages(&conversation, request.caching)));
    Value::Object(body)
}

/// The limits on tokens, and what thinking does not go together with.
fn add_budget(body: &mut Map<String, Value>, request: &Request<'_>, output_tokens_max: u32) {
    let answer = request.max_tokens.unwrap_or(output_tokens_max);
    let sampling = request.sampling;
    match request.thinking {
        Thinking::Off => {
            body.insert("max_tokens".into(), json!(answer));
            if let Some(temperature) = sampling.temperature {
                body.insert("temperature".into(), json!(temperature.clamp(0.0, 1.0)));
            } else if let Some(top_p) = sampling.top_p {
                body.insert("top_p".into(), json!(top_p));
            }
        }
        Thinking::Budget(budget) => {
            let budget = budget.max(THINKING_TOKENS_MIN);
            let tokens = if answer > budget { answer } else { budget.saturating_add(answer) };
            body.insert("max_tokens".into(), json!(tokens));
            let thinking = json!({ "type": "enabled", "budget_tokens": budget });
            body.insert("thinking".into(), thinking);
        }
    }
}

fn system_blocks(conversation: &Conversation<'_>, caching: Caching) -> Vec<Value> {
    let texts = conversation.system.iter();
    let mut blocks: Vec<Value> =
        texts.map(|text| json!({ "type": "text", "text": text })).collect();
    mark_last(&mut blocks, caching);
    blocks
}

fn add_tools(body: &mut Map<String, Value>, request: &Request<'_>) {
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    let shape = structured_output(&request.format);
    let shaped = shape.is_some();
    tools.extend(shape);
    if tools.is_empty() {
        return;
    }
    mark_last(&mut tools, request.caching);
    body.insert("tools".into(), json!(tools));
    if let Some(choice) = tool_choice(request, shaped) {
        body.insert("tool_choice".into(), choice);
    }
}

fn tool(spec: &ToolSpec) -> Value {
    json!({ "name": spec.name, "description": spec.description, "input_schema": spec.parameters })
}

fn structured_output(format: &ResponseFormat) -> Option<Value> {
    let schema = match format {
        ResponseFormat::Text => return None,
        ResponseFormat::Json => json!({ "type": "object" }),
        ResponseFormat::Schema { schema, .. } => schema.clone(),
    };
    Some(json!({
        "name": STRUCTURED_OUTPUT,
        "description": "Gives the final answer. Call it once, when the work is done, with the whole answer as its \
                        arguments.",
        "input_schema": schema,
    }))
}

/// With thinking a tool cannot be forced, so the model is then only offered the shape.
fn tool_choice(request: &Request<'_>, shaped: bool) -> Option<Value> {
    let thinks = request.thinking != Thinking::Off;
    match &request.tool_choice {
        ToolChoice::Auto if shaped && request.tools.is_empty() && !thinks => {
            Some(forced(STRUCTURED_OUTPUT))
        }
        ToolChoice::None if shaped && !thinks => Some(forced(STRUCTURED_OUTPUT)),
        ToolChoice::None if !shaped => Some(json!({ "type": "none" })),
        ToolChoice::Tool(name) if !thinks => Some(forced(name)),
        ToolChoice::Auto | ToolChoice::None | ToolChoice::Tool(_) => None,
    }
}

fn forced(name: &str) -> Value {
    json!({ "type": "tool", "name": name })
}

fn messages(conversation: &Conversation<'_>, caching: Caching) -> Vec<Value> {
    let turns = &conversation.turns;
    let users = turns.iter().enumerate().filter(|(_, turn)| matches!(turn, Turn::User { .. }));
    let marked: Vec<usize> = users.map(|(at, _)| at).rev().take(2).collect();
    let mut messages = Vec::new();
    for (at, turn) in turns.iter().enumerate() {
        let (role, mut blocks) = match turn {
            Turn::User { results, texts } => ("user", user_blocks(results, texts)),
            Turn::Assistant(parts) => {
                ("assistant", parts.iter().filter_map(|part| block(part)).collect())
            }
        };
        if marked.contains(&at) {
            mark_last(&mut blocks, caching);
        }
        if !blocks.is_empty() {
            push_turn(&mut messages, role, blocks);
        }
    }
    messages
}

/// Adds a turn, to the last one if a turn between them had nothing that could be sent.
fn push_turn(messages: &mut Vec<Value>, role: &str, blocks: Vec<Value>) {
    match messages.last_mut() {
        Some(last) if last["role"] == role => {
            if let Some(content) = last["content"].as_array_mut() {
                content.extend(blocks);
            }
        }
        _ => messages.push(json!({ "role": role, "content": blocks })),
    }
}

fn user_blocks(results: &[&ToolResult], texts: &[std::borrow::Cow<'_, str>]) -> Vec<Value> {
    let results = results.iter().map(|result| tool_result(result));
    results.chain(texts.iter().map(|text| json!({ "type": "text", "text": text }))).collect()
}

fn tool_result(result: &ToolResult) -> Value {
    let mut block = json!({ "type": "tool_result", "tool_use_id": result.call_id });
    if !result.text.is_empty() {
        block["content"] = json!(result.text);
    }
    if result.is_error {
        block["is_error"] = json!(true);
    }
    block
}

/// Thoughts without a signature are another provider's, or were cut; Anthropic would refuse them.
fn block(part: &AssistantPart) -> Option<Value> {
    Some(match part {
        AssistantPart::Text { text } => json!({ "type": "text", "text": text }),
        AssistantPart::Thinking { text, signature } => {
            json!({ "type": "thinking", "thinking": text, "signature": signature.as_ref()? })
        }
        AssistantPart::RedactedThinking { data } => {
            json!({ "type": "redacted_thinking", "data": data })
        }
        AssistantPart::ToolCall(call) => {
            let input = arguments_sent_back(call);
            json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
        }
    })
}

fn mark_last(blocks: &mut [Value], caching: Caching) {
    if let (Caching::On, Some(last)) = (caching, blocks.last_mut()) {
        last["cache_control"] = json!({ "type": "ephemeral" });
    }
}
