//! The Anthropic Messages API (version 2023-06-01): pure functions between our types and its JSON.
//!
//! Structured answers are requested with a tool, [`STRUCTURED_OUTPUT`], whose arguments are the
//! answer: that works with every model and server that supports the protocol. The decoder returns
//! the arguments of its call as text, and text around the call as thinking. The schema must be an
//! object, like all arguments.

mod decode;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use self::decode::AnthropicDecoder;
use super::{AnswerDelivery, ModelProtocol, ModelService, ResponseDecoder};
use crate::endpoint::ServiceVariables;
use crate::limits::{OUTPUT_TOKENS_DEFAULT, THINKING_TOKENS_MIN};
use crate::message::{AssistantPart, ToolResult};
use crate::request::{
    ModelRequest, PromptCaching, ResponseFormat, ThinkingMode, ToolChoice, ToolSpec,
};
use crate::turns::{NormalisedConversation, NormalisedTurn, arguments_to_send, effort_level};

/// The tool whose arguments are a structured answer.
const STRUCTURED_OUTPUT: &str = "structured_output";

/// The Messages API.
pub(super) struct AnthropicProtocol;

impl ModelProtocol for AnthropicProtocol {
    fn service(&self) -> ModelService {
        ModelService::Anthropic
    }

    fn service_name(&self) -> &'static str {
        "anthropic"
    }

    fn variables(&self) -> ServiceVariables {
        ServiceVariables {
            key: "ANTHROPIC_API_KEY",
            base_url: "ANTHROPIC_BASE_URL",
            default_url: "https://api.anthropic.com",
            needs_key: true,
        }
    }

    /// The base URL is usually given without the version, unlike those of other services.
    fn api_path(&self, base_path: &str) -> String {
        format!("{}/v1/messages", base_path.strip_suffix("/v1").unwrap_or(base_path))
    }

    fn fixed_headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn key_header(&self, key: &str) -> (&'static str, String) {
        ("x-api-key", key.to_owned())
    }

    fn request_body(
        &self,
        request: &ModelRequest<'_>,
        output_tokens_max: Option<u32>,
        delivery: AnswerDelivery,
    ) -> Value {
        build_body(request, output_tokens_max.unwrap_or(OUTPUT_TOKENS_DEFAULT), delivery)
    }

    fn new_decoder(&self, request: &ModelRequest<'_>) -> Box<dyn ResponseDecoder> {
        Box::new(AnthropicDecoder::new(request))
    }
}

/// Builds the body of a request. `output_tokens_max` is the model's limit, for requests that set
/// none.
fn build_body(
    request: &ModelRequest<'_>,
    output_tokens_max: u32,
    delivery: AnswerDelivery,
) -> Value {
    let conversation = NormalisedConversation::from_messages(request.messages);
    let mut body = Map::new();
    body.insert("model".into(), json!(request.model.model));
    add_budget(&mut body, request, output_tokens_max);
    body.insert("stream".into(), json!(delivery == AnswerDelivery::Streamed));
    let system = system_blocks(&conversation, request.caching);
    if !system.is_empty() {
        body.insert("system".into(), Value::Array(system));
    }
    add_tools(&mut body, request);
    let messages = build_messages(&conversation, request.caching);
    body.insert("messages".into(), Value::Array(messages));
    Value::Object(body)
}

/// The thinking mode of a model, which determines the parameters that it accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThinkingGeneration {
    /// Thinks on request, within a token budget. Also applies to other vendors' models that speak
    /// the protocol.
    Budgeted,
    /// Decides itself how much to think, guided by an effort level. Accepts neither sampling
    /// parameters nor a forced tool.
    Adaptive,
}

impl ThinkingGeneration {
    fn of_request(request: &ModelRequest<'_>) -> Self {
        const BUDGETED: [&str; 5] =
            ["claude-2", "claude-3", "claude-opus-4", "claude-sonnet-4", "claude-haiku-4"];
        const ADAPTIVE: [&str; 2] = ["claude-opus-4-7", "claude-opus-4-8"];
        let name = request.model.model.as_str();
        let is_one_of = |names: &[&str]| names.iter().any(|start| name.starts_with(start));
        if name.starts_with("claude-") && (!is_one_of(&BUDGETED) || is_one_of(&ADAPTIVE)) {
            ThinkingGeneration::Adaptive
        } else {
            ThinkingGeneration::Budgeted
        }
    }
}

/// Adds the token limit, the thinking settings, and the sampling parameters.
fn add_budget(body: &mut Map<String, Value>, request: &ModelRequest<'_>, output_tokens_max: u32) {
    let answer = request.max_tokens.unwrap_or(output_tokens_max);
    let (tokens, thinking) = match (request.thinking, ThinkingGeneration::of_request(request)) {
        (ThinkingMode::Off, ThinkingGeneration::Budgeted) => {
            add_sampling(body, request);
            (answer, None)
        }
        (ThinkingMode::Off, ThinkingGeneration::Adaptive) => (answer, None),
        (ThinkingMode::Budget(budget), ThinkingGeneration::Budgeted) => {
            let budget = budget.max(THINKING_TOKENS_MIN);
            let thinking = json!({ "type": "enabled", "budget_tokens": budget });
            (raise_limit(budget, answer), Some(thinking))
        }
        (ThinkingMode::Budget(budget), ThinkingGeneration::Adaptive) => {
            body.insert("output_config".into(), json!({ "effort": effort_level(budget) }));
            (raise_limit(budget, answer), Some(json!({ "type": "adaptive" })))
        }
    };
    body.insert("max_tokens".into(), json!(tokens));
    body.extend(thinking.map(|thinking| ("thinking".to_owned(), thinking)));
}

/// Raises the limit of the answer above the thinking budget, since thinking counts towards it.
fn raise_limit(budget: u32, answer: u32) -> u32 {
    if answer > budget { answer } else { budget.saturating_add(answer) }
}

/// Adds the temperature or else top-p: some models reject both at once.
fn add_sampling(body: &mut Map<String, Value>, request: &ModelRequest<'_>) {
    if let Some(temperature) = request.sampling.temperature {
        body.insert("temperature".into(), json!(temperature.clamp(0.0, 1.0)));
    } else if let Some(top_p) = request.sampling.top_p {
        body.insert("top_p".into(), json!(top_p));
    }
}

fn system_blocks(conversation: &NormalisedConversation<'_>, caching: PromptCaching) -> Vec<Value> {
    let texts = conversation.system.iter();
    let mut blocks: Vec<Value> =
        texts.map(|text| json!({ "type": "text", "text": text })).collect();
    mark_last(&mut blocks, caching);
    blocks
}

fn add_tools(body: &mut Map<String, Value>, request: &ModelRequest<'_>) {
    let mut tools: Vec<Value> = request.tools.iter().map(tool_definition).collect();
    let shape = structured_output_tool(&request.format);
    let shaped = shape.is_some();
    tools.extend(shape);
    if tools.is_empty() {
        return;
    }
    mark_last(&mut tools, request.caching);
    body.insert("tools".into(), Value::Array(tools));
    if let Some(choice) = tool_choice(request, shaped) {
        body.insert("tool_choice".into(), choice);
    }
}

fn tool_definition(spec: &ToolSpec) -> Value {
    // Assigned directly, since `json!` would serialise the schema again.
    let mut tool = json!({ "name": spec.name, "description": spec.description });
    tool["input_schema"] = spec.parameters.clone();
    tool
}

fn structured_output_tool(format: &ResponseFormat) -> Option<Value> {
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

/// Selects the tool choice. Where a tool cannot be forced, it is only offered.
fn tool_choice(request: &ModelRequest<'_>, shaped: bool) -> Option<Value> {
    let can_force = request.thinking == ThinkingMode::Off
        && ThinkingGeneration::of_request(request) == ThinkingGeneration::Budgeted;
    let shape_only = shaped
        && (request.tool_choice == ToolChoice::None
            || (request.tool_choice == ToolChoice::Auto && request.tools.is_empty()));
    match &request.tool_choice {
        _ if shape_only => can_force.then(|| forced_choice(STRUCTURED_OUTPUT)),
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({ "type": "none" })),
        ToolChoice::Tool(name) => can_force.then(|| forced_choice(name)),
    }
}

fn forced_choice(name: &str) -> Value {
    json!({ "type": "tool", "name": name })
}

fn build_messages(conversation: &NormalisedConversation<'_>, caching: PromptCaching) -> Vec<Value> {
    let turns = &conversation.turns;
    let users =
        turns.iter().enumerate().filter(|(_, turn)| matches!(turn, NormalisedTurn::User { .. }));
    // Mark the last two user turns: the older one is where the previous request wrote its cache.
    let marked: Vec<usize> = users.map(|(at, _)| at).rev().take(2).collect();
    let mut messages = Vec::new();
    for (at, turn) in turns.iter().enumerate() {
        let (role, mut blocks) = match turn {
            NormalisedTurn::User { results, texts } => ("user", user_blocks(results, texts)),
            NormalisedTurn::Assistant(parts) => {
                ("assistant", parts.iter().filter_map(|part| content_block(part)).collect())
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

/// Adds a turn. Merges it with the previous one if both have the same role, because an empty turn
/// between them was dropped.
fn push_turn(messages: &mut Vec<Value>, role: &str, blocks: Vec<Value>) {
    match messages.last_mut() {
        Some(last) if last["role"] == role => {
            if let Some(content) = last["content"].as_array_mut() {
                content.extend(blocks);
            }
        }
        _ => {
            let mut message = json!({ "role": role });
            message["content"] = Value::Array(blocks);
            messages.push(message);
        }
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

/// Converts a part to a content block. Thinking without a signature is from another provider or was
/// truncated; Anthropic would reject it.
fn content_block(part: &AssistantPart) -> Option<Value> {
    Some(match part {
        AssistantPart::Text { text } => json!({ "type": "text", "text": text }),
        AssistantPart::Thinking { text, signature } => {
            json!({ "type": "thinking", "thinking": text, "signature": signature.as_ref()? })
        }
        AssistantPart::RedactedThinking { data } => {
            json!({ "type": "redacted_thinking", "data": data })
        }
        AssistantPart::ToolCall(call) => {
            let mut block = json!({ "type": "tool_use", "id": call.id, "name": call.name });
            block["input"] = arguments_to_send(call);
            block
        }
    })
}

fn mark_last(blocks: &mut [Value], caching: PromptCaching) {
    if let (PromptCaching::On, Some(last)) = (caching, blocks.last_mut()) {
        last["cache_control"] = json!({ "type": "ephemeral" });
    }
}
