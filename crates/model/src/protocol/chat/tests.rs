use super::*;
use crate::error::ModelError;
use crate::message::{ModelMessage, ToolResult, UserPart};
use crate::name::ModelName;
use crate::request::SamplingParams;
use crate::response::{ModelResponse, ResponseAssembler, StopReason, TokenUsage};

fn model(name: &str) -> ModelName {
    name.parse().unwrap()
}

fn call(id: &str, arguments: &str) -> AssistantPart {
    AssistantPart::ToolCall(ToolCall {
        id: id.into(),
        name: "bash".into(),
        arguments: arguments.into(),
    })
}

fn conversation() -> Vec<ModelMessage> {
    let result = |id: &str| ToolResult { call_id: id.into(), text: "out".into(), is_error: false };
    vec![
        ModelMessage::system("Be brief."),
        ModelMessage::system("Be kind."),
        ModelMessage::user("List the files."),
        ModelMessage::Assistant {
            content: vec![
                AssistantPart::Thinking { text: "hm".into(), signature: Some("sig".into()) },
                AssistantPart::Text { text: String::new() },
                call("a", r#"{ "command": "ls" }"#),
                call("b", "[1]"),
                call("c", ""),
            ],
        },
        ModelMessage::User {
            content: vec![
                UserPart::Text { text: "Hurry.".into() },
                UserPart::ToolResult(result("a")),
                UserPart::ToolResult(result("b")),
            ],
        },
        ModelMessage::tool_results(vec![result("c")]),
        ModelMessage::system("Little time is left."),
        ModelMessage::Assistant { content: vec![] },
        ModelMessage::assistant("Two files."),
    ]
}

/// One line for each field, and for each message.
fn shown(body: &Value) -> String {
    let mut lines = Vec::new();
    for (field, value) in body.as_object().unwrap() {
        match (field.as_str(), value) {
            ("messages" | "tools", Value::Array(items)) => {
                lines.extend(items.iter().map(|item| format!("{field}: {item}")));
            }
            _ => lines.push(format!("{field}: {value}")),
        }
    }
    lines.join("\n")
}

#[test]
fn a_whole_conversation_is_put_in_order() {
    let name = model("compat/qwen3:8b");
    let messages = conversation();
    let tools = [ToolSpec {
        name: "bash".into(),
        description: "Runs it.".into(),
        parameters: json!({ "type": "object" }),
    }];
    let request = ModelRequest {
        tools: &tools,
        max_tokens: Some(500),
        thinking: ThinkingMode::Budget(9000),
        sampling: SamplingParams { temperature: Some(0.5), top_p: Some(0.9) },
        ..ModelRequest::new(&name, &messages)
    };
    insta::assert_snapshot!(shown(&build_body(&request, u32::MAX, AnswerDelivery::Streamed)), @r#"
    model: "qwen3:8b"
    stream: true
    stream_options: {"include_usage":true}
    max_tokens: 500
    temperature: 0.5
    top_p: 0.9
    tools: {"type":"function","function":{"name":"bash","description":"Runs it.","parameters":{"type":"object"}}}
    messages: {"role":"system","content":"Be brief.\n\nBe kind."}
    messages: {"role":"user","content":"List the files."}
    messages: {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"bash","arguments":"{ \"command\": \"ls\" }"}},{"id":"b","type":"function","function":{"name":"bash","arguments":"{\"malformed_arguments\":\"[1]\"}"}},{"id":"c","type":"function","function":{"name":"bash","arguments":"{}"}}]}
    messages: {"role":"tool","tool_call_id":"a","content":"out"}
    messages: {"role":"tool","tool_call_id":"b","content":"out"}
    messages: {"role":"tool","tool_call_id":"c","content":"out"}
    messages: {"role":"user","content":"Hurry.\n\n<system-reminder>\nLittle time is left.\n</system-reminder>"}
    messages: {"role":"assistant","content":"Two files."}
    "#);
}

#[test]
fn openai_is_told_what_only_it_understands() {
    let name = model("openai/gpt-5.4");
    let schema = json!({ "type": "object" });
    let request = ModelRequest {
        max_tokens: Some(500_000),
        thinking: ThinkingMode::Budget(9000),
        sampling: SamplingParams { temperature: Some(0.5), top_p: Some(0.9) },
        format: ResponseFormat::Schema { name: "a name!".into(), schema },
        ..ModelRequest::new(&name, &[])
    };
    insta::assert_snapshot!(shown(&build_body(&request, 128_000, AnswerDelivery::Whole)), @r#"
    model: "gpt-5.4"
    stream: false
    max_completion_tokens: 128000
    reasoning_effort: "medium"
    response_format: {"type":"json_schema","json_schema":{"name":"a_name_","schema":{"type":"object"}}}
    "#);
}

#[test]
fn budgets_become_efforts() {
    for (tokens, expect) in
        [(1, "low"), (2048, "low"), (2049, "medium"), (16_384, "medium"), (16_385, "high")]
    {
        assert_eq!(effort_level(tokens), expect);
    }
}

#[test]
fn a_choice_of_tools_needs_tools() {
    let name = model("compat/m");
    let tools =
        [ToolSpec { name: "bash".into(), description: String::new(), parameters: json!({}) }];
    let choice = |tools, tool_choice| {
        let request = ModelRequest { tools, tool_choice, ..ModelRequest::new(&name, &[]) };
        build_body(&request, 1, AnswerDelivery::Streamed).get("tool_choice").cloned()
    };
    assert_eq!(choice(&[], ToolChoice::None), None);
    assert_eq!(choice(&tools, ToolChoice::Auto), None);
    assert_eq!(choice(&tools, ToolChoice::None), Some(json!("none")));
    let bash = json!({ "type": "function", "function": { "name": "bash" } });
    assert_eq!(choice(&tools, ToolChoice::Tool("bash".into())), Some(bash));
}

fn decode(chunks: &[Value]) -> Result<ModelResponse, ModelError> {
    let name = model("compat/m");
    let messages = conversation();
    let mut decoder = ChatDecoder::new(&ModelRequest::new(&name, &messages));
    let mut out = Vec::new();
    for chunk in chunks {
        decoder.decode_event(&chunk.to_string(), &mut out)?;
    }
    decoder.finish(&mut out)?;
    let mut assembler = ResponseAssembler::default();
    out.iter().for_each(|delta| assembler.push(delta));
    Ok(assembler.finish().unwrap())
}

fn delta(delta: Value) -> Value {
    json!({ "choices": [{ "delta": delta, "finish_reason": null }] })
}

fn finish(reason: &str) -> Value {
    json!({ "choices": [{ "delta": {}, "finish_reason": reason }] })
}

/// The calls that come of these pieces, as `id name arguments`.
#[track_caller]
fn check_calls(pieces: &[Value], expect: &[&str]) {
    let mut chunks: Vec<Value> =
        pieces.iter().map(|piece| delta(json!({ "tool_calls": piece }))).collect();
    chunks.push(finish("stop"));
    let response = decode(&chunks).unwrap();
    let calls = response.message.tool_calls();
    let found: Vec<String> =
        calls.map(|call| format!("{} {} {}", call.id, call.name, call.arguments)).collect();
    assert_eq!(found, expect);
    assert_eq!(response.stop, StopReason::ToolUse);
}

#[test]
fn calls_are_understood_however_servers_send_them() {
    let whole = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    check_calls(
        &[
            json!([{ "index": 0, "id": "x", "function": whole("a", json!("")) }]),
            json!([{ "index": 1, "id": "y", "function": whole("b", json!("{")) }]),
            json!([{ "index": 0, "function": { "arguments": "{}" } }]),
            json!([{ "index": 1, "id": "", "function": { "name": "b", "arguments": "}" } }]),
        ],
        &["x a {}", "y b {}"],
    );
    // Whole, without id and index, with arguments as an object. Three calls were in the conversation before.
    check_calls(
        &[
            json!([{ "function": whole("a", json!({ "n": 1 })) }]),
            json!([{ "function": whole("a", json!({})) }]),
        ],
        &[r#"call_3 a {"n":1}"#, "call_4 a {}"],
    );
    // All with the same index.
    check_calls(
        &[
            json!([{ "index": 0, "id": "x", "function": whole("a", json!("{}")) }]),
            json!([{ "index": 0, "id": "y", "function": whole("a", json!("{}")) }]),
        ],
        &["x a {}", "y a {}"],
    );
    // In pieces without an index, the id only in the first.
    check_calls(
        &[
            json!([{ "id": "x", "function": whole("a", json!("{")) }]),
            json!([{ "function": { "arguments": "}" } }]),
        ],
        &["x a {}"],
    );
    // The name after the first arguments.
    check_calls(
        &[
            json!([{ "index": 0, "id": "x", "function": { "arguments": "{" } }]),
            json!([{ "index": 0, "function": { "name": "a", "arguments": "}" } }]),
        ],
        &["x a {}"],
    );
}

#[test]
fn reasons_to_stop_are_what_they_mean() {
    let text = || delta(json!({ "content": "hi" }));
    for (reason, expect) in [
        ("stop", StopReason::EndTurn),
        ("tool_calls", StopReason::EndTurn),
        ("length", StopReason::MaxTokens),
        ("content_filter", StopReason::Refusal),
        ("odd", StopReason::Other("odd".into())),
    ] {
        assert_eq!(decode(&[text(), finish(reason)]).unwrap().stop, expect);
    }
    let refusal = decode(&[delta(json!({ "refusal": "no" })), finish("stop")]).unwrap();
    assert_eq!((refusal.stop, refusal.message.text().as_str()), (StopReason::Refusal, "no"));
}

#[test]
fn thoughts_and_usage_are_read() {
    let usage = json!({
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "prompt_tokens_details": { "cached_tokens": 60, "cache_write_tokens": 10 },
    });
    let response = decode(&[
        delta(json!({ "reasoning_content": "hm" })),
        delta(json!({ "reasoning": ", yes", "content": null })),
        delta(json!({ "content": "hi" })),
        finish("stop"),
        json!({ "choices": [], "usage": usage }),
        json!({ "something": "new" }),
    ])
    .unwrap();
    let thoughts = AssistantPart::Thinking { text: "hm, yes".into(), signature: None };
    let text = AssistantPart::Text { text: "hi".into() };
    assert_eq!(response.message, ModelMessage::Assistant { content: vec![thoughts, text] });
    let usage = TokenUsage {
        input_tokens: 30,
        output_tokens: 7,
        cache_read_tokens: 60,
        cache_write_tokens: 10,
    };
    assert_eq!(response.usage, usage);
}

#[test]
fn an_answer_without_a_reason_to_stop_is_broken_off() {
    let error = decode(&[delta(json!({ "content": "hi" }))]).unwrap_err();
    assert_eq!(error, ModelError::BrokenOff { service: ModelService::Compat });
}

#[test]
fn errors_in_a_stream_have_their_kind() {
    let failed = |error: Value| decode(&[json!({ "error": error })]).unwrap_err();
    let limited = failed(json!({ "code": 429, "message": "slow down" }));
    assert!(matches!(limited, ModelError::RateLimited { status: 429, .. }), "{limited:?}");
    let server = failed(json!({ "code": 502, "message": "upstream" }));
    assert!(matches!(server, ModelError::Server { status: 502, .. }), "{server:?}");
    assert!(matches!(failed(json!("plain words")), ModelError::Server { .. }));
    let quota = failed(json!({ "type": "insufficient_quota", "message": "pay" }));
    assert!(matches!(quota, ModelError::UsageLimit { .. }), "{quota:?}");
    let long = failed(json!({ "code": "context_length_exceeded", "message": "shorter" }));
    assert!(matches!(long, ModelError::ContextTooLong { .. }), "{long:?}");
}

#[test]
fn a_shape_is_told_in_words_where_tools_and_a_forced_shape_exclude_each_other() {
    let format = ResponseFormat::Schema { name: "x".into(), schema: json!({ "type": "object" }) };
    let tools =
        [ToolSpec { name: "bash".into(), description: "Runs.".into(), parameters: json!({}) }];
    let messages = [ModelMessage::system("Be brief."), ModelMessage::user("Go.")];
    let sent = |name: &str, tools: &[ToolSpec]| {
        let (name, format) = (model(name), format.clone());
        build_body(
            &ModelRequest { tools, format, ..ModelRequest::new(&name, &messages) },
            9,
            AnswerDelivery::Whole,
        )
    };
    let told = sent("compat/llama3", &tools);
    assert!(told["response_format"].is_null());
    let system = told["messages"][0]["content"].as_str().unwrap();
    assert!(system.starts_with("Be brief.") && system.contains(r#"{"type":"object"}"#), "{system}");
    for forced in [sent("compat/llama3", &[]), sent("openai/gpt-5", &tools)] {
        assert_eq!(forced["response_format"]["type"], "json_schema");
        assert_eq!(forced["messages"][0]["content"], "Be brief.");
    }
}
