//! OpenAI Responses: the protocol of Codex, so that it can be benchmarked against others. Faults of
//! a stream are those of the other protocols.

use serde_json::{Value, json};

use super::{EventContent, WireEvent, call_arguments, call_id, split_text};
use crate::script::ScriptedTurn;

pub(super) fn turn_events(turn: &ScriptedTurn, model: &Value, number: usize) -> Vec<WireEvent> {
    let begun = response_json(turn, model, number, "in_progress", Vec::new());
    let mut events =
        vec![wire_event("response.created", json!({ "response": begun }), EventContent::Other)];
    let items = output_items(turn, number);
    for (at, item) in items.iter().enumerate() {
        let added = json!({ "output_index": at, "item": item });
        events.push(wire_event("response.output_item.added", added.clone(), EventContent::Other));
        if item["type"] == "message" {
            for piece in split_text(turn.text.as_deref().unwrap_or_default()) {
                events.push(text_delta(at, &item["id"], &piece));
            }
        }
        let carries =
            if item["type"] == "message" { EventContent::Other } else { EventContent::Arguments };
        events.push(wire_event("response.output_item.done", added, carries));
    }
    let done = response_json(turn, model, number, "completed", items);
    events.push(wire_event("response.completed", json!({ "response": done }), EventContent::Other));
    events
}

pub(super) fn complete_answer(turn: &ScriptedTurn, model: &Value, number: usize) -> Value {
    response_json(turn, model, number, "completed", output_items(turn, number))
}

pub(super) fn text_event(text: &str) -> WireEvent {
    text_delta(0, &json!("msg_0"), text)
}

fn text_delta(at: usize, item: &Value, text: &str) -> WireEvent {
    let data = json!({ "item_id": item, "output_index": at, "content_index": 0, "delta": text });
    wire_event("response.output_text.delta", data, EventContent::Text)
}

fn output_items(turn: &ScriptedTurn, number: usize) -> Vec<Value> {
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
            "arguments": call_arguments(turn, at),
            "status": "completed",
        }));
    }
    items
}

fn response_json(
    turn: &ScriptedTurn,
    model: &Value,
    number: usize,
    status: &str,
    output: Vec<Value>,
) -> Value {
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

fn wire_event(kind: &str, mut data: Value, carries: EventContent) -> WireEvent {
    data["type"] = json!(kind);
    WireEvent { wire: format!("event: {kind}\ndata: {data}\n\n"), carries }
}
