//! Checks that an answer is decoded identically however its bytes are split into chunks.

use futures_util::{StreamExt, stream};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::request::ModelRequest;
use crate::response::{ModelResponse, ResponseAssembler, StopReason};

/// The output of a model: pieces of text, and calls as a name with pieces of arguments.
type ModelOutput = (Vec<String>, Vec<(String, Vec<String>)>);

fn said() -> impl Strategy<Value = ModelOutput> {
    let text = prop::collection::vec(any::<String>(), 0..6);
    let call = ("[a-z]{1,8}", prop::collection::vec(any::<String>(), 0..5));
    (text, prop::collection::vec(call, 0..4))
}

fn anthropic_events((texts, calls): &ModelOutput, line_end: &str) -> String {
    let mut events = vec![json!({ "type": "message_start", "message": {} })];
    let mut block = |index: usize, start: Value, deltas: Vec<Value>| {
        events
            .push(json!({ "type": "content_block_start", "index": index, "content_block": start }));
        let delta =
            |delta| json!({ "type": "content_block_delta", "index": index, "delta": delta });
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    };
    let delta = |text: &String| json!({ "type": "text_delta", "text": text });
    block(0, json!({ "type": "text", "text": "" }), texts.iter().map(delta).collect());
    for (at, (name, pieces)) in calls.iter().enumerate() {
        let start =
            json!({ "type": "tool_use", "id": format!("c{at}"), "name": name, "input": {} });
        let delta = |json: &String| json!({ "type": "input_json_delta", "partial_json": json });
        block(at + 1, start, pieces.iter().map(delta).collect());
    }
    events.push(json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }));
    events.push(json!({ "type": "message_stop" }));
    let wire = |event: &Value| format!("event: x{line_end}data: {event}{line_end}{line_end}");
    events.iter().map(wire).collect()
}

fn chat_events((texts, calls): &ModelOutput, line_end: &str) -> String {
    let delta = |delta: Value| json!({ "choices": [{ "delta": delta }] }).to_string();
    let mut events: Vec<String> =
        texts.iter().map(|text| delta(json!({ "content": text }))).collect();
    for (at, (name, pieces)) in calls.iter().enumerate() {
        let start = json!({ "index": at, "id": format!("c{at}"), "function": { "name": name } });
        events.push(delta(json!({ "tool_calls": [start] })));
        for piece in pieces {
            let more = json!({ "index": at, "function": { "arguments": piece } });
            events.push(delta(json!({ "tool_calls": [more] })));
        }
    }
    events.push(json!({ "choices": [{ "delta": {}, "finish_reason": "length" }] }).to_string());
    events.push("[DONE]".to_owned());
    events.iter().map(|event| format!("data: {event}{line_end}{line_end}")).collect()
}

/// Splits the bytes at positions derived from the numbers.
fn cut(bytes: &[u8], sizes: &[usize]) -> Vec<Bytes> {
    let mut rest = bytes;
    let mut chunks = Vec::new();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, after) = rest.split_at((*size).min(rest.len()));
        chunks.push(Bytes::copy_from_slice(chunk));
        rest = after;
    }
    chunks
}

fn read(
    service: ModelService,
    chunks: Vec<Bytes>,
    decoder: Box<dyn ResponseDecoder>,
) -> Result<ModelResponse, ModelError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let pieces = decode_stream(service, stream::iter(chunks.into_iter().map(Ok)), decoder);
    runtime.block_on(async {
        let mut assembler = ResponseAssembler::default();
        let mut pieces = std::pin::pin!(pieces);
        while let Some(piece) = pieces.next().await {
            assembler.push(&piece?);
        }
        Ok(assembler.finish().expect("a stream without an error ends with a stop"))
    })
}

fn decoder(service: ModelService) -> Box<dyn ResponseDecoder> {
    let model = format!("{service}/m").parse().unwrap();
    service.protocol().new_decoder(&ModelRequest::new(&model, &[]))
}

fn check(
    service: ModelService,
    wire: &str,
    sizes: &[usize],
    said: &ModelOutput,
    stop: &StopReason,
) {
    let response = read(service, cut(wire.as_bytes(), sizes), decoder(service)).unwrap();
    assert_eq!(response.message.text(), said.0.concat());
    let calls: Vec<_> = response
        .message
        .tool_calls()
        .map(|call| (call.id.clone(), call.name.clone(), call.arguments.clone()))
        .collect();
    let expected: Vec<_> = said
        .1
        .iter()
        .enumerate()
        .map(|(at, (name, pieces))| (format!("c{at}"), name.clone(), pieces.concat()))
        .collect();
    assert_eq!(calls, expected);
    assert_eq!(&response.stop, stop);
}

#[test]
fn the_limit_on_an_event_is_not_one_on_the_answer() {
    let said = (vec!["x".repeat(EVENT_BYTES_MAX / 2); 5], vec![]);
    let service = ModelService::Compat;
    check(service, &chat_events(&said, "\n"), &[100_000], &said, &StopReason::MaxTokens);
    let endless = vec![Bytes::from(vec![b'x'; EVENT_BYTES_MAX / 2]); 3];
    let refused = read(service, endless, decoder(service));
    assert_eq!(refused, Err(too_large(service)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anthropic_is_read_alike_however_it_is_cut(
        said in said(),
        sizes in prop::collection::vec(1_usize..40, 1..8),
        line_end in prop::sample::select(vec!["\n", "\r\n"]),
    ) {
        check(ModelService::Anthropic, &anthropic_events(&said, line_end), &sizes, &said, &StopReason::EndTurn);
    }

    #[test]
    fn chat_is_read_alike_however_it_is_cut(
        said in said(),
        sizes in prop::collection::vec(1_usize..40, 1..8),
        line_end in prop::sample::select(vec!["\n", "\r\n"]),
    ) {
        check(ModelService::Compat, &chat_events(&said, line_end), &sizes, &said, &StopReason::MaxTokens);
    }

    #[test]
    fn an_answer_without_its_end_is_never_taken_for_whole(
        said in said(),
        kept in 0.0_f64..1.0,
    ) {
        for service in [ModelService::Anthropic, ModelService::Compat] {
            let wire = match service {
                ModelService::Anthropic => anthropic_events(&said, "\n"),
                _ => chat_events(&said, "\n"),
            };
            let stop = wire.find("stop_reason").or_else(|| wire.find("finish_reason")).unwrap();
            let end = (stop as f64 * kept) as usize;
            let chunks = vec![Bytes::copy_from_slice(&wire.as_bytes()[..end])];
            prop_assert_eq!(read(service, chunks, decoder(service)), Err(ModelError::BrokenOff { service }));
        }
    }

    #[test]
    fn bytes_of_any_kind_are_an_error_and_not_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for service in [ModelService::Anthropic, ModelService::Compat] {
            let chunks = vec![Bytes::copy_from_slice(&bytes)];
            prop_assert!(read(service, chunks, decoder(service)).is_err());
        }
    }
}
