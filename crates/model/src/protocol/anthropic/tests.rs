use super::*;
use crate::error::ModelError;
use crate::message::{ModelMessage, ToolCall, UserPart};
use crate::name::ModelName;
use crate::request::SamplingParams;
use crate::response::{ModelResponse, ResponseAssembler, ResponseDelta, StopReason, TokenUsage};

fn model(name: &str) -> ModelName {
    format!("anthropic/{name}").parse().unwrap()
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: "Does it.".into(),
        parameters: json!({ "type": "object" }),
    }
}

fn call(id: &str, arguments: &str) -> AssistantPart {
    AssistantPart::ToolCall(ToolCall {
        id: id.into(),
        name: "bash".into(),
        arguments: arguments.into(),
    })
}

fn result(id: &str, is_error: bool) -> ToolResult {
    ToolResult { call_id: id.into(), text: "out".into(), is_error }
}

/// One line for each field, and for each message.
fn shown(body: &Value) -> String {
    let mut lines = Vec::new();
    for (field, value) in body.as_object().unwrap() {
        match (field.as_str(), value) {
            ("messages" | "system" | "tools", Value::Array(items)) => {
                lines.extend(items.iter().map(|item| format!("{field}: {item}")));
            }
            _ => lines.push(format!("{field}: {value}")),
        }
    }
    lines.join("\n")
}

#[test]
fn a_whole_conversation_is_put_in_order() {
    let name = model("claude-haiku-4-5");
    let messages = [
        ModelMessage::system("Be brief."),
        ModelMessage::system("Be kind."),
        ModelMessage::user("List the files."),
        ModelMessage::Assistant {
            content: vec![
                AssistantPart::Thinking { text: "hm".into(), signature: Some("sig".into()) },
                AssistantPart::Thinking { text: "not signed".into(), signature: None },
                AssistantPart::RedactedThinking { data: "xyz".into() },
                AssistantPart::Text { text: " \n".into() },
                call("a", r#"{"command":"ls"}"#),
                call("b", r#"{"command":"#),
                call("c", ""),
            ],
        },
        ModelMessage::User {
            content: vec![
                UserPart::Text { text: "Hurry.".into() },
                UserPart::ToolResult(result("a", false)),
                UserPart::ToolResult(result("b", true)),
            ],
        },
        ModelMessage::tool_results(vec![ToolResult { text: String::new(), ..result("c", false) }]),
        ModelMessage::system("Little time is left."),
    ];
    let tools = [tool("bash"), tool("read")];
    let request = ModelRequest { tools: &tools, ..ModelRequest::new(&name, &messages) };
    insta::assert_snapshot!(shown(&build_body(&request, 64_000, AnswerDelivery::Streamed)), @r#"
    model: "claude-haiku-4-5"
    max_tokens: 64000
    stream: true
    system: {"type":"text","text":"Be brief."}
    system: {"type":"text","text":"Be kind.","cache_control":{"type":"ephemeral"}}
    tools: {"name":"bash","description":"Does it.","input_schema":{"type":"object"}}
    tools: {"name":"read","description":"Does it.","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}
    messages: {"role":"user","content":[{"type":"text","text":"List the files.","cache_control":{"type":"ephemeral"}}]}
    messages: {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"redacted_thinking","data":"xyz"},{"type":"tool_use","id":"a","name":"bash","input":{"command":"ls"}},{"type":"tool_use","id":"b","name":"bash","input":{"malformed_arguments":"{\"command\":"}},{"type":"tool_use","id":"c","name":"bash","input":{}}]}
    messages: {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"out"},{"type":"tool_result","tool_use_id":"b","content":"out","is_error":true},{"type":"tool_result","tool_use_id":"c"},{"type":"text","text":"Hurry."},{"type":"text","text":"<system-reminder>\nLittle time is left.\n</system-reminder>","cache_control":{"type":"ephemeral"}}]}
    "#);
}

#[test]
fn without_caching_there_are_no_marks() {
    let name = model("claude-haiku-4-5");
    let messages = [ModelMessage::system("Be brief."), ModelMessage::user("Hello.")];
    let tools = [tool("bash")];
    let request = ModelRequest {
        tools: &tools,
        caching: PromptCaching::Off,
        ..ModelRequest::new(&name, &messages)
    };
    assert!(
        !build_body(&request, 1, AnswerDelivery::Streamed).to_string().contains("cache_control")
    );
}

#[test]
fn a_long_conversation_has_four_marks() {
    let name = model("claude-haiku-4-5");
    let turn = || [ModelMessage::user("Hello."), ModelMessage::assistant("Yes?")];
    let messages: Vec<_> = std::iter::once(ModelMessage::system("Be brief."))
        .chain((0..5).flat_map(|_| turn()))
        .collect();
    let tools = [tool("bash")];
    let request = ModelRequest { tools: &tools, ..ModelRequest::new(&name, &messages) };
    let body = build_body(&request, 1, AnswerDelivery::Streamed);
    assert_eq!(body.to_string().matches("cache_control").count(), 4);
    let marked = |at: usize| !body["messages"][at]["content"][0]["cache_control"].is_null();
    assert_eq!((0..10).filter(|at| marked(*at)).collect::<Vec<_>>(), [6, 8]);
}

#[test]
fn a_turn_with_nothing_to_send_joins_its_neighbours() {
    let name = model("claude-haiku-4-5");
    let thoughts = AssistantPart::Thinking { text: "hm".into(), signature: None };
    let messages = [
        ModelMessage::user("One."),
        ModelMessage::Assistant { content: vec![thoughts] },
        ModelMessage::user("Two."),
    ];
    let request =
        ModelRequest { caching: PromptCaching::Off, ..ModelRequest::new(&name, &messages) };
    insta::assert_snapshot!(shown(&build_body(&request, 8, AnswerDelivery::Whole)), @r#"
    model: "claude-haiku-4-5"
    max_tokens: 8
    stream: false
    messages: {"role":"user","content":[{"type":"text","text":"One."},{"type":"text","text":"Two."}]}
    "#);
}

/// The fields that decide how a model thinks and what it may call.
#[track_caller]
fn check_mode(request: &ModelRequest<'_>, expect: Value) {
    let body = build_body(request, 8000, AnswerDelivery::Streamed);
    let fields = ["max_tokens", "thinking", "output_config", "temperature", "top_p", "tool_choice"];
    let found: Map<String, Value> = fields
        .iter()
        .filter_map(|field| Some(((*field).to_owned(), body.get(*field)?.clone())))
        .collect();
    assert_eq!(Value::Object(found), expect);
}

#[test]
fn thinking_takes_a_budget_or_an_effort_and_no_sampling() {
    let (old, new, other) = (model("claude-haiku-4-5"), model("claude-opus-5-5"), model("glm-5"));
    let sampling = SamplingParams { temperature: Some(1.5), top_p: Some(0.9) };
    let request =
        |model, thinking| ModelRequest { thinking, sampling, ..ModelRequest::new(model, &[]) };
    let budget = ThinkingMode::Budget;
    let enabled = |tokens| json!({ "type": "enabled", "budget_tokens": tokens });
    check_mode(
        &request(&old, ThinkingMode::Off),
        json!({ "max_tokens": 8000, "temperature": 1.0 }),
    );
    check_mode(
        &request(&old, budget(4000)),
        json!({ "max_tokens": 8000, "thinking": enabled(4000) }),
    );
    check_mode(
        &request(&old, budget(8000)),
        json!({ "max_tokens": 16_000, "thinking": enabled(8000) }),
    );
    check_mode(
        &request(&other, budget(5)),
        json!({ "max_tokens": 8000, "thinking": enabled(1024) }),
    );
    check_mode(&request(&new, ThinkingMode::Off), json!({ "max_tokens": 8000 }));
    check_mode(
        &request(&new, budget(10_000)),
        json!({
            "max_tokens": 18_000,
            "thinking": { "type": "adaptive" },
            "output_config": { "effort": "medium" },
        }),
    );
}

#[test]
fn a_shape_is_forced_only_where_it_is_all_that_is_asked_for() {
    let (old, new) = (model("claude-haiku-4-5"), model("claude-sonnet-5-5"));
    let tools = [tool("bash")];
    let shaped =
        |model| ModelRequest { format: ResponseFormat::Json, ..ModelRequest::new(model, &[]) };
    let forced = |name: &str| {
        let choice = json!({ "type": "tool", "name": name });
        json!({ "max_tokens": 8000, "tool_choice": choice })
    };
    let free = json!({ "max_tokens": 8000 });
    check_mode(&shaped(&old), forced(STRUCTURED_OUTPUT));
    check_mode(&shaped(&new), free.clone());
    check_mode(&ModelRequest { tools: &tools, ..shaped(&old) }, free.clone());
    let none = ModelRequest { tools: &tools, tool_choice: ToolChoice::None, ..shaped(&old) };
    check_mode(&none, forced(STRUCTURED_OUTPUT));
    let none = ModelRequest { format: ResponseFormat::Text, ..none };
    check_mode(&none, json!({ "max_tokens": 8000, "tool_choice": { "type": "none" } }));
    let bash = || ToolChoice::Tool("bash".into());
    let request = ModelRequest::new(&old, &[]);
    check_mode(&ModelRequest { tools: &tools, tool_choice: bash(), ..request }, forced("bash"));
    let request = ModelRequest::new(&new, &[]);
    check_mode(&ModelRequest { tools: &tools, tool_choice: bash(), ..request }, free);
}

fn decode(format: ResponseFormat, events: &[Value]) -> Result<ModelResponse, ModelError> {
    let name = model("claude-haiku-4-5");
    let mut decoder =
        AnthropicDecoder::new(&ModelRequest { format, ..ModelRequest::new(&name, &[]) });
    let mut out = Vec::new();
    for event in events {
        decoder.decode_event(&event.to_string(), &mut out)?;
    }
    decoder.finish(&mut out)?;
    let mut assembler = ResponseAssembler::default();
    out.iter().for_each(|delta| assembler.push(delta));
    Ok(assembler.finish().unwrap())
}

fn stop(reason: &str) -> Value {
    json!({ "type": "message_delta", "delta": { "stop_reason": reason } })
}

fn text_delta(text: &str) -> Value {
    let delta = json!({ "type": "text_delta", "text": text });
    json!({ "type": "content_block_delta", "index": 0, "delta": delta })
}

fn tool_start(index: usize, name: &str) -> Value {
    let block = json!({ "type": "tool_use", "id": format!("t{index}"), "name": name, "input": {} });
    json!({ "type": "content_block_start", "index": index, "content_block": block })
}

fn tool_delta(index: usize, json: &str) -> Value {
    let delta = json!({ "type": "input_json_delta", "partial_json": json });
    json!({ "type": "content_block_delta", "index": index, "delta": delta })
}

#[test]
fn unknown_events_are_passed_over_and_a_missing_end_is_forgiven() {
    let events = [
        json!({ "type": "ping" }),
        json!({ "type": "brand_new", "index": -1 }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "new" } }),
        text_delta("hi"),
        json!({ "type": "content_block_delta", "index": 7, "delta": { "type": "new" } }),
        tool_delta(9, "{}"),
        stop("end_turn"),
    ];
    let response = decode(ResponseFormat::Text, &events).unwrap();
    assert_eq!(response.message, ModelMessage::assistant("hi"));
}

#[test]
fn thoughts_that_are_kept_from_us_keep_their_signature() {
    let block = json!({ "type": "thinking", "thinking": "" });
    let delta = json!({ "type": "signature_delta", "signature": "sig" });
    let events = [
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        stop("end_turn"),
    ];
    let response = decode(ResponseFormat::Text, &events).unwrap();
    let part = AssistantPart::Thinking { text: String::new(), signature: Some("sig".into()) };
    assert_eq!(response.message, ModelMessage::Assistant { content: vec![part] });
}

#[test]
fn a_shape_beside_other_calls_leaves_the_turn_to_the_tools() {
    let events = [
        text_delta("I look first."),
        tool_start(1, "bash"),
        tool_delta(1, "{}"),
        tool_start(2, STRUCTURED_OUTPUT),
        tool_delta(2, r#"{"n":"#),
        tool_delta(2, "3}"),
        stop("tool_use"),
    ];
    let response = decode(ResponseFormat::Json, &events).unwrap();
    assert_eq!(response.stop, StopReason::ToolUse);
    assert_eq!(response.message.text(), r#"I look first.{"n":3}"#);
    let response = decode(ResponseFormat::Text, &events).unwrap();
    assert_eq!(response.message.tool_calls().count(), 2);
}

#[test]
fn an_answer_in_plain_text_where_a_shape_was_offered_is_kept() {
    let response = decode(ResponseFormat::Json, &[text_delta(r#"{"n":3}"#), stop("end_turn")]);
    assert_eq!(response.unwrap().message.text(), r#"{"n":3}"#);
}

#[test]
fn errors_in_a_stream_have_their_kind() {
    let service = ModelService::Anthropic;
    let failed = |kind: &str| {
        let error = json!({ "type": kind, "message": "m" });
        decode(ResponseFormat::Text, &[json!({ "type": "error", "error": error })]).unwrap_err()
    };
    let message = || "m".to_owned();
    let retry_after_ms = None;
    let server = ModelError::Server { service, status: 0, message: message(), retry_after_ms };
    assert_eq!(failed("overloaded_error"), server);
    assert_eq!(failed("api_error"), server);
    let limited =
        ModelError::RateLimited { service, status: 429, message: message(), retry_after_ms };
    assert_eq!(failed("rate_limit_error"), limited);
    let refused = ModelError::Rejected { service, status: 400, message: message() };
    assert_eq!(failed("invalid_request_error"), refused);
    let locked = ModelError::Unauthorised { service, status: 401, message: message() };
    assert_eq!(failed("authentication_error"), locked);
}

#[test]
fn later_usage_replaces_earlier() {
    let usage = json!({
        "input_tokens": 5,
        "cache_read_input_tokens": 7,
        "cache_creation_input_tokens": 2,
        "output_tokens": 1,
    });
    let end = json!({
        "type": "message_delta",
        "delta": { "stop_reason": "end_turn" },
        "usage": { "output_tokens": 40 },
    });
    let start = json!({ "type": "message_start", "message": { "usage": usage } });
    let response = decode(ResponseFormat::Text, &[start, end]).unwrap();
    let usage = TokenUsage {
        input_tokens: 5,
        output_tokens: 40,
        cache_read_tokens: 7,
        cache_write_tokens: 2,
    };
    assert_eq!(response.usage, usage);
}

#[test]
fn too_many_calls_are_refused() {
    let starts: Vec<_> = (0..300).map(|index| tool_start(index, "bash")).collect();
    let error = decode(ResponseFormat::Text, &starts).unwrap_err();
    assert!(matches!(error, ModelError::Protocol { .. }), "{error}");
}

#[test]
fn a_whole_answer_gives_the_same_pieces() {
    let name = model("claude-haiku-4-5");
    let mut decoder = AnthropicDecoder::new(&ModelRequest::new(&name, &[]));
    let mut out = Vec::new();
    let content = json!([
        { "type": "text", "text": "hi" },
        { "type": "tool_use", "id": "t", "name": "bash", "input": { "command": "ls" } },
    ]);
    let answer = json!({ "content": content, "stop_reason": "tool_use" });
    decoder.decode_answer(&answer, &mut out).unwrap();
    let json = r#"{"command":"ls"}"#.to_owned();
    let expect = [
        ResponseDelta::Text("hi".into()),
        ResponseDelta::ToolCallStart { index: 1, id: "t".into(), name: "bash".into() },
        ResponseDelta::ToolCallArguments { index: 1, json },
        ResponseDelta::Stop(StopReason::ToolUse),
    ];
    assert_eq!(out, expect);
}
