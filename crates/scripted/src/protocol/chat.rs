//! Chat Completions.

use serde_json::{Value, json};

use super::{Carries, Event, arguments, call_id, pieces};
use crate::script::Turn;

pub(super) fn events(turn: &Turn, model: &Value, number: usize) -> Vec<Event> {
    let chunk = |delta: Value, carries| chunk(model, number, delta, Value::Null, carries);
    let mut events = vec![chunk(json!({ "role": "assistant", "content": "" }), Carries::Other)];
    for piece in pieces(turn.thinking.as_deref().unwrap_or_default()) {
        events.push(chunk(json!({ "reasoning_content": piece }), Carries::Other));
    }
    for piece in pieces(turn.text.as_deref().unwrap_or_default()) {
        events.push(chunk(json!({ "content": piece }), Carries::Text));
    }
    for (at, tool) in turn.tools.iter().enumerate() {
        let function = json!({ "name": tool.name, "arguments": "" });
        let id = call_id(turn, number, at);
        let call = json!({ "index": at, "id": id, "type": "function", "function": function });
        events.push(chunk(json!({ "tool_calls": [call] }), Carries::Other));
        for piece in pieces(&arguments(turn, at)) {
            let call = json!({ "index": at, "function": { "arguments": piece } });
            events.push(chunk(json!({ "tool_calls": [call] }), Carries::Arguments));
        }
    }
    events.push(self::chunk(model, number, json!({}), json!(finish_reason(turn)), Carries::Other));
    let mut last = frame(model, number, json!([]));
    last["usage"] = usage(turn);
    events.push(event(&last.to_string(), Carries::Other));
    events.push(event("[DONE]", Carries::Other));
    events
}

pub(super) fn whole(turn: &Turn, model: &Value, number: usize) -> Value {
    let mut message = json!({ "role": "assistant", "content": turn.text });
    if let Some(thoughts) = &turn.thinking {
        message["reasoning_content"] = json!(thoughts);
    }
    if !turn.tools.is_empty() {
        let call = |(at, tool): (usize, &crate::script::ToolUse)| {
            let function = json!({ "name": tool.name, "arguments": arguments(turn, at) });
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
        "usage": usage(turn),
    })
}

pub(super) fn text_event(text: &str) -> Event {
    chunk(&Value::Null, 0, json!({ "content": text }), Value::Null, Carries::Text)
}

fn chunk(model: &Value, number: usize, delta: Value, finish: Value, carries: Carries) -> Event {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    event(&frame(model, number, json!([choice])).to_string(), carries)
}

fn frame(model: &Value, number: usize, choices: Value) -> Value {
    json!({
        "id": format!("chatcmpl-{number}"),
        "object": "chat.completion.chunk",
        "model": model,
        "choices": choices,
    })
}

fn event(data: &str, carries: Carries) -> Event {
    Event { wire: format!("data: {data}\n\n"), carries }
}

fn finish_reason(turn: &Turn) -> &str {
    let usual = if turn.tools.is_empty() { "stop" } else { "tool_calls" };
    turn.stop.as_deref().unwrap_or(usual)
}

/// The usage. Cached tokens are included in the prompt tokens.
fn usage(turn: &Turn) -> Value {
    let usage = turn.usage;
    let prompt = usage.input_tokens + usage.cache_read_tokens;
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": usage.output_tokens,
        "total_tokens": prompt + usage.output_tokens,
        "prompt_tokens_details": { "cached_tokens": usage.cache_read_tokens },
    })
}
