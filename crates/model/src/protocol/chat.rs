//! OpenAI-compatible Chat Completions: pure functions between our types and its JSON.
//!
//! Fields that only OpenAI supports are sent to `openai/…` alone. Other servers get the smallest
//! sufficient body, and their answers are parsed leniently: see [`ChatDecoder`].

mod decode;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use self::decode::ChatDecoder;
use super::{AnswerDelivery, ModelProtocol, ModelService, ResponseDecoder};
use crate::endpoint::ServiceVariables;
use crate::message::{AssistantPart, ToolCall};
use crate::request::{ModelRequest, ResponseFormat, ThinkingMode, ToolChoice, ToolSpec};
use crate::turns::{NormalisedConversation, NormalisedTurn, arguments_to_send, effort_level};

/// Chat Completions, as OpenAI and compatible servers speak it.
pub(super) struct ChatProtocol {
    service: ModelService,
    service_name: &'static str,
    default_url: &'static str,
    needs_key: bool,
}

impl ChatProtocol {
    pub(super) const OPENAI: ChatProtocol = ChatProtocol {
        service: ModelService::OpenAi,
        service_name: "openai",
        default_url: "https://api.openai.com/v1",
        needs_key: true,
    };
    /// By default at the address of Ollama.
    pub(super) const COMPAT: ChatProtocol = ChatProtocol {
        service: ModelService::Compat,
        service_name: "compat",
        default_url: "http://127.0.0.1:11434/v1",
        needs_key: false,
    };
}

impl ModelProtocol for ChatProtocol {
    fn service(&self) -> ModelService {
        self.service
    }

    fn service_name(&self) -> &'static str {
        self.service_name
    }

    fn variables(&self) -> ServiceVariables {
        ServiceVariables {
            key: "OPENAI_API_KEY",
            base_url: "OPENAI_BASE_URL",
            default_url: self.default_url,
            needs_key: self.needs_key,
        }
    }

    fn name_form(&self) -> String {
        match self.service {
            ModelService::Compat => "compat/NAME (any OpenAI-compatible server)".to_owned(),
            _ => format!("{}/NAME", self.service_name),
        }
    }

    fn api_path(&self, base_path: &str) -> String {
        format!("{base_path}/chat/completions")
    }

    fn request_body(
        &self,
        request: &ModelRequest<'_>,
        output_tokens_max: Option<u32>,
        delivery: AnswerDelivery,
    ) -> Value {
        build_body(request, output_tokens_max.unwrap_or(u32::MAX), delivery)
    }

    fn new_decoder(&self, request: &ModelRequest<'_>) -> Box<dyn ResponseDecoder> {
        Box::new(ChatDecoder::new(request))
    }
}

/// Builds the body of a request. Without a limit in the request, none is sent and the model's own
/// applies; `output_tokens_max` only caps a requested limit.
fn build_body(
    request: &ModelRequest<'_>,
    output_tokens_max: u32,
    delivery: AnswerDelivery,
) -> Value {
    let stream = delivery == AnswerDelivery::Streamed;
    let mut body = Map::new();
    body.insert("model".into(), json!(request.model.model));
    body.insert("stream".into(), json!(stream));
    if stream {
        body.insert("stream_options".into(), json!({ "include_usage": true }));
    }
    add_limits(&mut body, request, output_tokens_max);
    add_tools(&mut body, request);
    let words;
    let mut conversation = NormalisedConversation::from_messages(request.messages);
    if let Some(format) = response_format(&request.format) {
        if is_format_in_prompt(request) {
            words = format_instructions(&request.format);
            conversation.system.push(&words);
        } else {
            body.insert("response_format".into(), format);
        }
    }
    body.insert("messages".into(), Value::Array(build_messages(&conversation)));
    Value::Object(body)
}

/// Returns true if the format is described in the prompt instead. Some servers constrain all output
/// to the schema, so the model could not call tools.
fn is_format_in_prompt(request: &ModelRequest<'_>) -> bool {
    request.model.service == ModelService::Compat && !request.tools.is_empty()
}

fn format_instructions(format: &ResponseFormat) -> String {
    let what = match format {
        ResponseFormat::Schema { schema, .. } => {
            format!(
                "one JSON value that is valid for this JSON Schema, and nothing else:\n{schema}"
            )
        }
        _ => "one JSON value and nothing else.".to_owned(),
    };
    format!("Call tools as you need them. When the work is done, answer with {what}")
}

fn add_limits(body: &mut Map<String, Value>, request: &ModelRequest<'_>, output_tokens_max: u32) {
    let is_openai = request.model.service == ModelService::OpenAi;
    if let Some(tokens) = request.max_tokens {
        let field = if is_openai { "max_completion_tokens" } else { "max_tokens" };
        body.insert(field.into(), json!(tokens.min(output_tokens_max)));
    }
    if let (ThinkingMode::Budget(tokens), true) = (request.thinking, is_openai) {
        // Reasoning models reject sampling parameters.
        body.insert("reasoning_effort".into(), json!(effort_level(tokens)));
        return;
    }
    if let Some(temperature) = request.sampling.temperature {
        body.insert("temperature".into(), json!(temperature));
    }
    if let Some(top_p) = request.sampling.top_p {
        body.insert("top_p".into(), json!(top_p));
    }
}

fn add_tools(body: &mut Map<String, Value>, request: &ModelRequest<'_>) {
    if request.tools.is_empty() {
        return;
    }
    body.insert("tools".into(), request.tools.iter().map(tool_definition).collect());
    let choice = match &request.tool_choice {
        ToolChoice::Auto => return,
        ToolChoice::None => json!("none"),
        ToolChoice::Tool(name) => json!({ "type": "function", "function": { "name": name } }),
    };
    body.insert("tool_choice".into(), choice);
}

fn tool_definition(spec: &ToolSpec) -> Value {
    // Assigned directly, since `json!` would serialise the schema again.
    let mut tool = json!({ "type": "function" });
    tool["function"] = json!({ "name": spec.name, "description": spec.description });
    tool["function"]["parameters"] = spec.parameters.clone();
    tool
}

fn response_format(format: &ResponseFormat) -> Option<Value> {
    match format {
        ResponseFormat::Text => None,
        ResponseFormat::Json => Some(json!({ "type": "json_object" })),
        ResponseFormat::Schema { name, schema } => {
            let schema = json!({ "name": schema_name(name), "schema": schema });
            Some(json!({ "type": "json_schema", "json_schema": schema }))
        }
    }
}

/// Replaces characters that are invalid in schema names: they consist of letters, digits, `_` and
/// `-`, at most 64.
fn schema_name(name: &str) -> String {
    let name: String = name.chars().take(64).map(name_char).collect();
    if name.is_empty() { "answer".to_owned() } else { name }
}

fn name_char(c: char) -> char {
    if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }
}

fn build_messages(conversation: &NormalisedConversation<'_>) -> Vec<Value> {
    let mut messages = Vec::new();
    if !conversation.system.is_empty() {
        messages.push(json!({ "role": "system", "content": conversation.system.join("\n\n") }));
    }
    for turn in &conversation.turns {
        match turn {
            NormalisedTurn::User { results, texts } => {
                messages.extend(results.iter().map(|result| {
                    json!({ "role": "tool", "tool_call_id": result.call_id, "content": result.text })
                }));
                if !texts.is_empty() {
                    messages.push(json!({ "role": "user", "content": texts.join("\n\n") }));
                }
            }
            NormalisedTurn::Assistant(parts) => messages.extend(assistant_message(parts)),
        }
    }
    messages
}

/// Converts an assistant turn. Thinking is not sent back: the protocol has no field for it.
fn assistant_message(parts: &[&AssistantPart]) -> Option<Value> {
    let text: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            AssistantPart::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let calls: Vec<Value> = parts
        .iter()
        .filter_map(|part| match part {
            AssistantPart::ToolCall(call) => Some(tool_call(call)),
            _ => None,
        })
        .collect();
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let content = if text.is_empty() { Value::Null } else { json!(text.join("\n\n")) };
    let mut message = json!({ "role": "assistant", "content": content });
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    Some(message)
}

/// Converts a tool call. Valid arguments are sent back as the model wrote them; servers that insert
/// them into a chat template fail on invalid ones.
fn tool_call(call: &ToolCall) -> Value {
    let as_written = call.parse_arguments().is_ok() && !call.arguments.trim().is_empty();
    let arguments =
        if as_written { call.arguments.clone() } else { arguments_to_send(call).to_string() };
    let function = json!({ "name": call.name, "arguments": arguments });
    json!({ "id": call.id, "type": "function", "function": function })
}
