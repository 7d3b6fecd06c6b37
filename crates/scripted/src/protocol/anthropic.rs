//! Anthropic Messages.

use serde_json::{Value, json};

use super::{Carries, Event, arguments, call_id, pieces};
use crate::script::{Turn, Usage};

pub(super) fn events(turn: &Turn, model: &Value, number: usize) -> Vec<Event> {
    let mut events = vec![message_start(turn, model, number)];
    let mut index = 0;
    if let Some(thoughts) = &turn.thinking {
        let start = json!({ "type": "thinking", "thinking": "", "signature": "" });
        let mut deltas: Vec<_> = pieces(thoughts)
            .into_iter()
            .map(|piece| (json!({ "type": "thinking_delta", "thinking": piece }), Carries::Other))
            .collect();
        deltas.push((json!({ "type": "signature_delta", "signature": "c2ln" }), Carries::Other));
        block(&mut events, &mut index, start, deltas);
    }
    if let Some(text) = &turn.text {
        let start = json!({ "type": "text", "text": "" });
        let delta = |piece| (json!({ "type": "text_delta", "text": piece }), Carries::Text);
        block(&mut events, &mut index, start, pieces(text).into_iter().map(delta).collect());
    }
    for at in 0..turn.tools.len() {
        let (id, name) = (call_id(turn, number, at), &turn.tools[at].name);
        let start = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
        let delta = |piece| {
            (json!({ "type": "input_json_delta", "partial_json": piece }), Carries::Arguments)
        };
        let deltas = pieces(&arguments(turn, at)).into_iter().map(delta).collect();
        block(&mut events, &mut index, start, deltas);
    }
    let usage = json!({ "output_tokens": turn.usage.output_tokens });
    let delta = json!({ "stop_reason": stop_reason(turn), "stop_sequence": null });
    events.push(event(json!({ "type": "message_delta", "delta": delta, "usage": usage })));
    events.push(event(json!({ "type": "message_stop" })));
    events
}

pub(super) fn whole(turn: &Turn, model: &Value, number: usize) -> Value {
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
        "usage": usage(&turn.usage, turn.usage.output_tokens),
    })
}

pub(super) fn text_event(index: usize, text: &str) -> Event {
    let delta = json!({ "type": "text_delta", "text": text });
    let mut event = event(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
    event.carries = Carries::Text;
    event
}

fn message_start(turn: &Turn, model: &Value, number: usize) -> Event {
    let message = json!({
        "id": format!("msg_{number}"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": null,
        "usage": usage(&turn.usage, 1),
    });
    event(json!({ "type": "message_start", "message": message }))
}

fn block(events: &mut Vec<Event>, index: &mut usize, start: Value, deltas: Vec<(Value, Carries)>) {
    let start = json!({ "type": "content_block_start", "index": *index, "content_block": start });
    events.push(event(start));
    for (delta, carries) in deltas {
        let data = json!({ "type": "content_block_delta", "index": *index, "delta": delta });
        events.push(Event { carries, ..event(data) });
    }
    events.push(event(json!({ "type": "content_block_stop", "index": *index })));
    *index += 1;
}

fn event(data: Value) -> Event {
    let kind = data["type"].as_str().unwrap_or_default();
    Event { wire: format!("event: {kind}\ndata: {data}\n\n"), carries: Carries::Other }
}

fn stop_reason(turn: &Turn) -> &str {
    let usual = if turn.tools.is_empty() { "end_turn" } else { "tool_use" };
    turn.stop.as_deref().unwrap_or(usual)
}

fn usage(usage: &Usage, output_tokens: u64) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "output_tokens": output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    })
}
