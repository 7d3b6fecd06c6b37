//! Anthropic Messages.

use serde_json::{Value, json};

use super::{EventContent, WireEvent, call_arguments, call_id, split_text};
use crate::script::{ScriptedTurn, ScriptedUsage};

pub(super) fn turn_events(turn: &ScriptedTurn, model: &Value, number: usize) -> Vec<WireEvent> {
    let mut events = vec![message_start(turn, model, number)];
    let mut index = 0;
    if let Some(thoughts) = &turn.thinking {
        let start = json!({ "type": "thinking", "thinking": "", "signature": "" });
        let mut deltas: Vec<_> = split_text(thoughts)
            .into_iter()
            .map(|piece| {
                (json!({ "type": "thinking_delta", "thinking": piece }), EventContent::Other)
            })
            .collect();
        deltas
            .push((json!({ "type": "signature_delta", "signature": "c2ln" }), EventContent::Other));
        push_block(&mut events, &mut index, start, deltas);
    }
    if let Some(text) = &turn.text {
        let start = json!({ "type": "text", "text": "" });
        let delta = |piece| (json!({ "type": "text_delta", "text": piece }), EventContent::Text);
        push_block(
            &mut events,
            &mut index,
            start,
            split_text(text).into_iter().map(delta).collect(),
        );
    }
    for at in 0..turn.tools.len() {
        let (id, name) = (call_id(turn, number, at), &turn.tools[at].name);
        let start = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
        let delta = |piece| {
            (json!({ "type": "input_json_delta", "partial_json": piece }), EventContent::Arguments)
        };
        let deltas = split_text(&call_arguments(turn, at)).into_iter().map(delta).collect();
        push_block(&mut events, &mut index, start, deltas);
    }
    let usage = json!({ "output_tokens": turn.usage.output_tokens });
    let delta = json!({ "stop_reason": stop_reason(turn), "stop_sequence": null });
    events.push(wire_event(json!({ "type": "message_delta", "delta": delta, "usage": usage })));
    events.push(wire_event(json!({ "type": "message_stop" })));
    events
}

pub(super) fn complete_answer(turn: &ScriptedTurn, model: &Value, number: usize) -> Value {
    let mut content = Vec::new();
    if let Some(thoughts) = &turn.thinking {
        content.push(json!({ "type": "thinking", "thinking": thoughts, "signature": "c2ln" }));
    }
    if let Some(text) = &turn.text {
        content.push(json!({ "type": "text", "text": text }));
    }
    for (at, tool) in turn.tools.iter().enumerate() {
        let id = call_id(turn, number, at);
        let block =
            json!({ "type": "tool_use", "id": id, "name": tool.name, "input": tool.arguments });
        content.push(block);
    }
    json!({
        "id": format!("msg_{number}"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop_reason(turn),
        "stop_sequence": null,
        "usage": usage_json(&turn.usage, turn.usage.output_tokens),
    })
}

pub(super) fn text_event(index: usize, text: &str) -> WireEvent {
    let delta = json!({ "type": "text_delta", "text": text });
    let mut event =
        wire_event(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
    event.carries = EventContent::Text;
    event
}

fn message_start(turn: &ScriptedTurn, model: &Value, number: usize) -> WireEvent {
    let message = json!({
        "id": format!("msg_{number}"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": null,
        "usage": usage_json(&turn.usage, 1),
    });
    wire_event(json!({ "type": "message_start", "message": message }))
}

fn push_block(
    events: &mut Vec<WireEvent>,
    index: &mut usize,
    start: Value,
    deltas: Vec<(Value, EventContent)>,
) {
    let start = json!({ "type": "content_block_start", "index": *index, "content_block": start });
    events.push(wire_event(start));
    for (delta, carries) in deltas {
        let data = json!({ "type": "content_block_delta", "index": *index, "delta": delta });
        events.push(WireEvent { carries, ..wire_event(data) });
    }
    events.push(wire_event(json!({ "type": "content_block_stop", "index": *index })));
    *index += 1;
}

fn wire_event(data: Value) -> WireEvent {
    let kind = data["type"].as_str().unwrap_or_default();
    WireEvent { wire: format!("event: {kind}\ndata: {data}\n\n"), carries: EventContent::Other }
}

fn stop_reason(turn: &ScriptedTurn) -> &str {
    let usual = if turn.tools.is_empty() { "end_turn" } else { "tool_use" };
    turn.stop.as_deref().unwrap_or(usual)
}

fn usage_json(usage: &ScriptedUsage, output_tokens: u64) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "output_tokens": output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    })
}
