//! Chat Completions.

use serde_json::{Value, json};

use super::{EventContent, WireEvent, call_arguments, call_id, split_text};
use crate::script::ScriptedTurn;

pub(super) fn turn_events(turn: &ScriptedTurn, model: &Value, number: usize) -> Vec<WireEvent> {
    let chunk = |delta: Value, carries| chunk_event(model, number, delta, Value::Null, carries);
    let mut events =
        vec![chunk(json!({ "role": "assistant", "content": "" }), EventContent::Other)];
    for piece in split_text(turn.thinking.as_deref().unwrap_or_default()) {
        events.push(chunk(json!({ "reasoning_content": piece }), EventContent::Other));
    }
    for piece in split_text(turn.text.as_deref().unwrap_or_default()) {
        events.push(chunk(json!({ "content": piece }), EventContent::Text));
    }
    for (at, tool) in turn.tools.iter().enumerate() {
        let function = json!({ "name": tool.name, "arguments": "" });
        let id = call_id(turn, number, at);
        let call = json!({ "index": at, "id": id, "type": "function", "function": function });
        events.push(chunk(json!({ "tool_calls": [call] }), EventContent::Other));
        for piece in split_text(&call_arguments(turn, at)) {
            let call = json!({ "index": at, "function": { "arguments": piece } });
            events.push(chunk(json!({ "tool_calls": [call] }), EventContent::Arguments));
        }
    }
    events.push(self::chunk_event(
        model,
        number,
        json!({}),
        json!(finish_reason(turn)),
        EventContent::Other,
    ));
    let mut last = chunk_json(model, number, json!([]));
    last["usage"] = usage_json(turn);
    events.push(wire_event(&last.to_string(), EventContent::Other));
    events.push(wire_event("[DONE]", EventContent::Other));
    events
}

pub(super) fn complete_answer(turn: &ScriptedTurn, model: &Value, number: usize) -> Value {
    let mut message = json!({ "role": "assistant", "content": turn.text });
    if let Some(thoughts) = &turn.thinking {
        message["reasoning_content"] = json!(thoughts);
    }
    if !turn.tools.is_empty() {
        let call = |(at, tool): (usize, &crate::script::ScriptedToolUse)| {
            let function = json!({ "name": tool.name, "arguments": call_arguments(turn, at) });
            json!({ "id": call_id(turn, number, at), "type": "function", "function": function })
        };
        message["tool_calls"] = turn.tools.iter().enumerate().map(call).collect();
    }
    let choice = json!({ "index": 0, "message": message, "finish_reason": finish_reason(turn) });
    json!({
        "id": format!("chatcmpl-{number}"),
        "object": "chat.completion",
        "model": model,
        "choices": [choice],
        "usage": usage_json(turn),
    })
}

pub(super) fn text_event(text: &str) -> WireEvent {
    chunk_event(&Value::Null, 0, json!({ "content": text }), Value::Null, EventContent::Text)
}

fn chunk_event(
    model: &Value,
    number: usize,
    delta: Value,
    finish: Value,
    carries: EventContent,
) -> WireEvent {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    wire_event(&chunk_json(model, number, json!([choice])).to_string(), carries)
}

fn chunk_json(model: &Value, number: usize, choices: Value) -> Value {
    json!({
        "id": format!("chatcmpl-{number}"),
        "object": "chat.completion.chunk",
        "model": model,
        "choices": choices,
    })
}

fn wire_event(data: &str, carries: EventContent) -> WireEvent {
    WireEvent { wire: format!("data: {data}\n\n"), carries }
}

fn finish_reason(turn: &ScriptedTurn) -> &str {
    let usual = if turn.tools.is_empty() { "stop" } else { "tool_calls" };
    turn.stop.as_deref().unwrap_or(usual)
}

/// The usage. Cached tokens are included in the prompt tokens.
fn usage_json(turn: &ScriptedTurn) -> Value {
    let usage = turn.usage;
    let prompt = usage.input_tokens + usage.cache_read_tokens;
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": usage.output_tokens,
        "total_tokens": prompt + usage.output_tokens,
        "prompt_tokens_details": { "cached_tokens": usage.cache_read_tokens },
    })
}
