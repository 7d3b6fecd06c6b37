//! Handles a client connection: each request is answered with the next turn of the script.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::net::TcpStream;

use crate::http::{HttpConnection, RawRequest};
use crate::protocol::{EventContent, ModelProtocol, WireEvent};
use crate::recorded_request::RecordedRequest;
use crate::script::{ModelFault, ScriptedTurn};
use crate::server::ServerState;

/// The state of the connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionFate {
    Keep,
    Close,
}

/// Serves a client until it disconnects or an answer is cut off.
pub(crate) async fn serve_client(stream: TcpStream, state: Arc<ServerState>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut connection = HttpConnection::new(stream);
    while let Some(request) = connection.read_request().await? {
        if answer_request(&mut connection, request, &state).await? == ConnectionFate::Close {
            break;
        }
    }
    Ok(())
}

async fn answer_request(
    to: &mut HttpConnection,
    request: RawRequest,
    state: &ServerState,
) -> io::Result<ConnectionFate> {
    let protocol = ModelProtocol::from_path(&request.path).filter(|_| request.method == "POST");
    let Some(protocol) = protocol else {
        let message = format!("there is nothing at {} {}", request.method, request.path);
        to.send_json(404, &ModelProtocol::Chat.error_body("not_found_error", &message).to_string())
            .await?;
        return Ok(ConnectionFate::Keep);
    };
    let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
        let error = protocol.error_body("invalid_request_error", "the body is not JSON");
        to.send_json(400, &error.to_string()).await?;
        return Ok(ConnectionFate::Keep);
    };
    let RawRequest { path, headers, .. } = request;
    let recorded = RecordedRequest { path, headers, body, received: Instant::now() };
    let Some((turn, number)) = state.next_turn(&recorded) else {
        let error = protocol.error_body("api_error", "the script has no more turns");
        to.send_json(500, &error.to_string()).await?;
        return Ok(ConnectionFate::Keep);
    };
    let model = &recorded.body["model"];
    if recorded.body["stream"] == true {
        send_stream(to, protocol, &turn, protocol.events(&turn, model, number)).await
    } else {
        send_whole(to, protocol, &turn, protocol.complete_answer(&turn, model, number)).await
    }
}

/// Applies faults that precede the answer, whether streamed or not.
async fn apply_early_fault(
    to: &mut HttpConnection,
    fault: &ModelFault,
) -> io::Result<Option<ConnectionFate>> {
    match fault {
        ModelFault::Status { status, headers, body } => {
            let mut all = vec![("content-length", body.len().to_string())];
            if !headers.contains_key("content-type") {
                all.push(("content-type", "application/json".to_owned()));
            }
            all.extend(headers.iter().map(|(name, value)| (name.as_str(), value.clone())));
            to.send_head(*status, &all).await?;
            to.send_raw(body.as_bytes()).await?;
            Ok(Some(ConnectionFate::Keep))
        }
        ModelFault::StallBeforeHeaders => std::future::pending().await,
        _ => Ok(None),
    }
}

async fn send_stream(
    to: &mut HttpConnection,
    protocol: ModelProtocol,
    turn: &ScriptedTurn,
    events: Vec<WireEvent>,
) -> io::Result<ConnectionFate> {
    if let Some(fault) = &turn.fault
        && let Some(after) = apply_early_fault(to, fault).await?
    {
        return Ok(after);
    }
    let kind = ("content-type", "text/event-stream".to_owned());
    to.send_head(200, &[kind, ("transfer-encoding", "chunked".to_owned())]).await?;
    let (events, end) = apply_fault(protocol, turn.fault.as_ref(), events);
    for event in &events {
        if let Some(ModelFault::Slow { ms_per_event }) = turn.fault {
            tokio::time::sleep(Duration::from_millis(ms_per_event)).await;
        }
        to.send_chunk(event.wire.as_bytes()).await?;
    }
    match end {
        StreamEnd::Whole => {
            to.send_chunk(b"").await?;
            Ok(ConnectionFate::Keep)
        }
        StreamEnd::Cut => Ok(ConnectionFate::Close),
        StreamEnd::Stall => std::future::pending().await,
    }
}

/// The end of a streamed answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamEnd {
    Whole,
    Cut,
    Stall,
}

/// Applies a fault to the events, and returns how the stream ends.
fn apply_fault(
    protocol: ModelProtocol,
    fault: Option<&ModelFault>,
    mut events: Vec<WireEvent>,
) -> (Vec<WireEvent>, StreamEnd) {
    match fault {
        Some(ModelFault::StallMidStream { after_events }) => {
            events.truncate(*after_events);
            (events, StreamEnd::Stall)
        }
        Some(ModelFault::CutMidText) => {
            events.truncate(middle_index(&events, EventContent::Text));
            (events, StreamEnd::Cut)
        }
        Some(ModelFault::CutMidToolCall) => {
            events.truncate(middle_index(&events, EventContent::Arguments));
            (events, StreamEnd::Cut)
        }
        Some(ModelFault::ErrorInStream) => {
            events.truncate(events.len() / 2);
            events.push(protocol.error_event());
            (events, StreamEnd::Whole)
        }
        Some(ModelFault::GarbageEvent) => {
            let wire = "data: {this is not JSON\n\n".to_owned();
            events.insert(1, WireEvent { wire, carries: EventContent::Other });
            (events, StreamEnd::Whole)
        }
        Some(ModelFault::HugeEvent { bytes }) => {
            events.insert(1, protocol.text_event(&"x".repeat(*bytes)));
            (events, StreamEnd::Whole)
        }
        _ => (events, StreamEnd::Whole),
    }
}

/// The index of the middle one of the events that carry something; 1 if there are none.
fn middle_index(events: &[WireEvent], carries: EventContent) -> usize {
    let all: Vec<usize> = (0..events.len()).filter(|at| events[*at].carries == carries).collect();
    all.get(all.len() / 2).copied().unwrap_or(1)
}

/// Sends a complete (not streamed) answer. Faults that concern events are approximated.
async fn send_whole(
    to: &mut HttpConnection,
    protocol: ModelProtocol,
    turn: &ScriptedTurn,
    answer: Value,
) -> io::Result<ConnectionFate> {
    let answer = answer.to_string();
    let Some(fault) = &turn.fault else {
        to.send_json(200, &answer).await?;
        return Ok(ConnectionFate::Keep);
    };
    if let Some(after) = apply_early_fault(to, fault).await? {
        return Ok(after);
    }
    match fault {
        ModelFault::StallMidStream { .. } => {
            send_half(to, &answer).await?;
            std::future::pending().await
        }
        ModelFault::CutMidText | ModelFault::CutMidToolCall => {
            send_half(to, &answer).await?;
            return Ok(ConnectionFate::Close);
        }
        ModelFault::ErrorInStream => {
            to.send_json(200, &protocol.error_body("overloaded_error", "Overloaded").to_string())
                .await?;
        }
        ModelFault::GarbageEvent => to.send_json(200, "{this is not JSON").await?,
        ModelFault::HugeEvent { bytes } => {
            let padded = format!("{answer}{}", " ".repeat(*bytes));
            to.send_json(200, &padded).await?;
        }
        ModelFault::Slow { ms_per_event } => {
            tokio::time::sleep(Duration::from_millis(*ms_per_event)).await;
            to.send_json(200, &answer).await?;
        }
        _ => to.send_json(200, &answer).await?,
    }
    Ok(ConnectionFate::Keep)
}

/// Announces a whole body, and sends half of it.
async fn send_half(to: &mut HttpConnection, body: &str) -> io::Result<()> {
    let kind = ("content-type", "application/json".to_owned());
    to.send_head(200, &[kind, ("content-length", body.len().to_string())]).await?;
    to.send_raw(&body.as_bytes()[..body.len() / 2]).await
}
