//! Tools that send messages to the client while they run: logs, progress, and requests of the
//! protocol before 2026-07-28.
#![expect(deprecated, reason = "the suite tests what the protocol of 2025 had")]

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities,
    CreateMessageRequestParams, ElicitRequestParams, LoggingLevel, LoggingMessageNotificationParam,
    ProgressNotificationParam,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use super::{parse_fixture, text_content};

/// The delay between messages, so that a client receives them separately.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) const NAMES: &[&str] = &[
    "test_tool_with_logging",
    "test_logging_tool",
    "test_tool_with_progress",
    "test_reconnection",
    "test_sampling",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_missing_capability",
];

pub(super) async fn call_tool(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let result = match request.name.as_ref() {
        "test_tool_with_logging" => send_logs(context).await,
        "test_logging_tool" => match context.meta.log_level() {
            Some(_) => send_logs(context).await,
            None => CallToolResult::success(text_content("Nothing was logged.")),
        },
        "test_tool_with_progress" => send_progress(context).await,
        "test_reconnection" => {
            tokio::time::sleep(2 * PAUSE).await;
            CallToolResult::success(text_content("Still here."))
        }
        "test_sampling" => request_sampling(context, text_argument(request, "prompt")).await,
        "test_elicitation" => {
            request_elicitation(context, text_argument(request, "message"), contact_schema()).await
        }
        "test_elicitation_sep1034_defaults" => {
            request_elicitation(context, "Please check", defaults_schema()).await
        }
        "test_elicitation_sep1330_enums" => {
            request_elicitation(context, "Please choose", choices_schema()).await
        }
        "test_missing_capability" => return Some(needs_sampling(context)),
        _ => return None,
    };
    Some(Ok(result.into()))
}

fn text_argument<'a>(request: &'a CallToolRequestParams, key: &str) -> &'a str {
    let arguments = request.arguments.as_ref();
    arguments.and_then(|all| all.get(key)).and_then(Value::as_str).unwrap_or_default()
}

async fn send_logs(context: &RequestContext<RoleServer>) -> CallToolResult {
    for text in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(text));
        // Ignore errors: the client may have disconnected.
        let _ = context.peer.notify_logging_message(message).await;
        tokio::time::sleep(PAUSE).await;
    }
    CallToolResult::success(text_content("Three messages were logged."))
}

async fn send_progress(context: &RequestContext<RoleServer>) -> CallToolResult {
    for done in [0.0, 50.0, 100.0] {
        if let Some(token) = context.meta.get_progress_token() {
            let step = ProgressNotificationParam::new(token, done).with_total(100.0);
            let _ = context.peer.notify_progress(step).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
    CallToolResult::success(text_content("All done."))
}

async fn request_sampling(context: &RequestContext<RoleServer>, prompt: &str) -> CallToolResult {
    let request: CreateMessageRequestParams = parse_fixture(json!({
        "messages": [{ "role": "user", "content": { "type": "text", "text": prompt } }],
        "maxTokens": 100,
    }));
    match context.peer.create_message(request).await {
        Ok(answer) => {
            let answer = answer.message.content.first().and_then(|part| part.as_text());
            let text = answer.map_or("", |text| text.text.as_str());
            CallToolResult::success(text_content(format!("LLM response: {text}")))
        }
        Err(error) => {
            CallToolResult::error(text_content(format!("The client gave no answer: {error}")))
        }
    }
}

async fn request_elicitation(
    context: &RequestContext<RoleServer>,
    message: &str,
    schema: Value,
) -> CallToolResult {
    let request: ElicitRequestParams =
        parse_fixture(json!({ "mode": "form", "message": message, "requestedSchema": schema }));
    match context.peer.create_elicitation(request).await {
        Ok(answer) => {
            let (action, content) = (json!(answer.action), json!(answer.content));
            let action = action.as_str().unwrap_or_default();
            CallToolResult::success(text_content(format!(
                "Elicitation completed: action={action}, content={content}"
            )))
        }
        Err(error) => {
            CallToolResult::error(text_content(format!("The client gave no answer: {error}")))
        }
    }
}

fn needs_sampling(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let declared = context.client_capabilities().unwrap_or_default();
    if declared.sampling.is_some() {
        return Ok(CallToolResult::success(text_content("Sampling is declared.")).into());
    }
    let needed = ClientCapabilities::builder().enable_sampling().build();
    Err(ErrorData::missing_required_client_capability(needed))
}

fn contact_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "User's response" },
            "email": { "type": "string", "description": "User's email address" },
        },
        "required": ["username", "email"],
    })
}

fn defaults_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": {
                "type": "string", "enum": ["active", "inactive", "pending"], "default": "active",
            },
            "verified": { "type": "boolean", "default": true },
        },
    })
}

fn choices_schema() -> Value {
    let plain = json!(["option1", "option2", "option3"]);
    let titled = json!([
        { "const": "value1", "title": "First" },
        { "const": "value2", "title": "Second" },
        { "const": "value3", "title": "Third" },
    ]);
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": plain },
            "titledSingle": { "type": "string", "oneOf": titled },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
            "titledMulti": { "type": "array", "items": { "anyOf": titled } },
        },
    })
}
