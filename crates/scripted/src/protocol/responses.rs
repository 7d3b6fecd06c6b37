//! OpenAI Responses: the protocol of Codex, so that it can be benchmarked against others. Faults of
//! a stream are those of the other protocols.

use serde_json::{Value, json};

use super::{Carries, Event, arguments, call_id, pieces};
use crate::script::Turn;

pub(super) fn events(turn: &Turn, model: &Value, number: usize) -> Vec<Event> {
    let begun = response(turn, model, number, "in_progress", Vec::new());
    let mut events = vec![event("response.created", json!({ "response": begun }), Carries::Other)];
    let items = items(turn, number);
    for (at, item) in items.iter().enumerate() {
        let added = json!({ "output_index": at, "item": item });
        events.push(event("response.output_item.added", added.clone(), Carries::Other));
        if item["type"] == "message" {
            for piece in pieces(turn.text.as_deref().unwrap_or_default()) {
                events.push(text_delta(at, &item["id"], &piece));
            }
        }
        let carries = if item["type"] == "message" { Carries::Other } else { Carries::Arguments };
        events.push(event("response.output_item.done", added, carries));
    }
    let done = response(turn, model, number, "completed", items);
    events.push(event("response.completed", json!({ "response": done }), Carries::Other));
    events
}

pub(super) fn whole(turn: &Turn, model: &Value, number: usize) -> Value {
    response(turn, model, number, "completed", items(turn, number))
}

pub(super) fn text_event(text: &str) -> Event {
    text_delta(0, &json!("msg_0"), text)
}

fn text_delta(at: usize, item: &Value, text: &str) -> Event {
    let data = json!({ "item_id": item, "output_index": at, "content_index": 0, "delta": text });
    event("response.output_text.delta", data, Carries::Text)
}

fn items(turn: &Turn, number: usize) -> Vec<Value> {
    let mut items = Vec::new();
    if let Some(text) = &turn.text {
        let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
        items.push(json!({
            "type": "message",
            "id": format!("msg_{number}"),
            "role": "assistant",
            "status": "completed",
            "content": content,
        }));
    }
    for (at, tool) in turn.tools.iter().enumerate() {
        items.push(json!({
            "type": "function_call",
            "id": format!("fc_{number}_{at}"),
            "call_id": call_id(turn, number, at),
            "name": tool.name,
            "arguments": arguments(turn, at),
            "status": "completed",
        }));
    }
    items
}

fn response(turn: &Turn, model: &Value, number: usize, status: &str, output: Vec<Value>) -> Value {
    let usage = turn.usage;
    let input = usage.input_tokens + usage.cache_read_tokens;
    json!({
        "id": format!("resp_{number}"),
        "object": "response",
        "created_at": 0,
        "status": status,
        "model": model,
        "output": output,
        "error": null,
        "incomplete_details": null,
        "usage": {
            "input_tokens": input,
            "input_tokens_details": { "cached_tokens": usage.cache_read_tokens },
            "output_tokens": usage.output_tokens,
            "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": input + usage.output_tokens,
        },
    })
}

fn event(kind: &str, mut data: Value, carries: Carries) -> Event {
    data["type"] = json!(kind);
    Event { wire: format!("event: {kind}\ndata: {data}\n\n"), carries }
}
