//! Handles a client connection: each request is answered with the next turn of the script.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::net::TcpStream;

use crate::http::{Connection, Request};
use crate::protocol::{Carries, Event, Protocol};
use crate::recorded::Recorded;
use crate::script::{Fault, Turn};
use crate::server::State;

/// The state of the connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Keep,
    Close,
}

/// Serves a client until it disconnects or an answer is cut off.
pub(crate) async fn serve(stream: TcpStream, state: Arc<State>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut connection = Connection::new(stream);
    while let Some(request) = connection.request().await? {
        if answer(&mut connection, request, &state).await? == After::Close {
            break;
        }
    }
    Ok(())
}

async fn answer(to: &mut Connection, request: Request, state: &State) -> io::Result<After> {
    let protocol = Protocol::of_path(&request.path).filter(|_| request.method == "POST");
    let Some(protocol) = protocol else {
        let message = format!("there is nothing at {} {}", request.method, request.path);
        to.json(404, &Protocol::Chat.error("not_found_error", &message).to_string()).await?;
        return Ok(After::Keep);
    };
    let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
        let error = protocol.error("invalid_request_error", "the body is not JSON");
        to.json(400, &error.to_string()).await?;
        return Ok(After::Keep);
    };
    let Request { path, headers, .. } = request;
    let recorded = Recorded { path, headers, body, received: Instant::now() };
    let Some((turn, number)) = state.next(&recorded) else {
        let error = protocol.error("api_error", "the script has no more turns");
        to.json(500, &error.to_string()).await?;
        return Ok(After::Keep);
    };
    let model = &recorded.body["model"];
    if recorded.body["stream"] == true {
        stream(to, protocol, &turn, protocol.events(&turn, model, number)).await
    } else {
        whole(to, protocol, &turn, protocol.whole(&turn, model, number)).await
    }
}

/// Applies faults that precede the answer, whether streamed or not.
async fn before_headers(to: &mut Connection, fault: &Fault) -> io::Result<Option<After>> {
    match fault {
        Fault::Status { status, headers, body } => {
            let mut all = vec![("content-length", body.len().to_string())];
            if !headers.contains_key("content-type") {
                all.push(("content-type", "application/json".to_owned()));
            }
            all.extend(headers.iter().map(|(name, value)| (name.as_str(), value.clone())));
            to.head(*status, &all).await?;
            to.raw(body.as_bytes()).await?;
            Ok(Some(After::Keep))
        }
        Fault::StallBeforeHeaders => std::future::pending().await,
        _ => Ok(None),
    }
}

async fn stream(
    to: &mut Connection,
    protocol: Protocol,
    turn: &Turn,
    events: Vec<Event>,
) -> io::Result<After> {
    if let Some(fault) = &turn.fault
        && let Some(after) = before_headers(to, fault).await?
    {
        return Ok(after);
    }
    let kind = ("content-type", "text/event-stream".to_owned());
    to.head(200, &[kind, ("transfer-encoding", "chunked".to_owned())]).await?;
    let (events, end) = spoilt(protocol, turn.fault.as_ref(), events);
    for event in &events {
        if let Some(Fault::Slow { ms_per_event }) = turn.fault {
            tokio::time::sleep(Duration::from_millis(ms_per_event)).await;
        }
        to.chunk(event.wire.as_bytes()).await?;
    }
    match end {
        End::Whole => {
            to.chunk(b"").await?;
            Ok(After::Keep)
        }
        End::Cut => Ok(After::Close),
        End::Stall => std::future::pending().await,
    }
}

/// The end of a streamed answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Whole,
    Cut,
    Stall,
}

/// Applies a fault to the events, and returns how the stream ends.
fn spoilt(protocol: Protocol, fault: Option<&Fault>, mut events: Vec<Event>) -> (Vec<Event>, End) {
    match fault {
        Some(Fault::StallMidStream { after_events }) => {
            events.truncate(*after_events);
            (events, End::Stall)
        }
        Some(Fault::CutMidText) => {
            events.truncate(middle_index(&events, Carries::Text));
            (events, End::Cut)
        }
        Some(Fault::CutMidToolCall) => {
            events.truncate(middle_index(&events, Carries::Arguments));
            (events, End::Cut)
        }
        Some(Fault::ErrorInStream) => {
            events.truncate(events.len() / 2);
            events.push(protocol.error_event());
            (events, End::Whole)
        }
        Some(Fault::GarbageEvent) => {
            let wire = "data: {this is not JSON\n\n".to_owned();
            events.insert(1, Event { wire, carries: Carries::Other });
            (events, End::Whole)
        }
        Some(Fault::HugeEvent { bytes }) => {
            events.insert(1, protocol.text_event(&"x".repeat(*bytes)));
            (events, End::Whole)
        }
        _ => (events, End::Whole),
    }
}

/// The index of the middle one of the events that carry something; 1 if there are none.
fn middle_index(events: &[Event], carries: Carries) -> usize {
    let all: Vec<usize> = (0..events.len()).filter(|at| events[*at].carries == carries).collect();
    all.get(all.len() / 2).copied().unwrap_or(1)
}

/// Sends a complete (not streamed) answer. Faults that concern events are approximated.
async fn whole(
    to: &mut Connection,
    protocol: Protocol,
    turn: &Turn,
    answer: Value,
) -> io::Result<After> {
    let answer = answer.to_string();
    let Some(fault) = &turn.fault else {
        to.json(200, &answer).await?;
        return Ok(After::Keep);
    };
    if let Some(after) = before_headers(to, fault).await? {
        return Ok(after);
    }
    match fault {
        Fault::StallMidStream { .. } => {
            half(to, &answer).await?;
            std::future::pending().await
        }
        Fault::CutMidText | Fault::CutMidToolCall => {
            half(to, &answer).await?;
            return Ok(After::Close);
        }
        Fault::ErrorInStream => {
            to.json(200, &protocol.error("overloaded_error", "Overloaded").to_string()).await?;
        }
        Fault::GarbageEvent => to.json(200, "{this is not JSON").await?,
        Fault::HugeEvent { bytes } => {
            let padded = format!("{answer}{}", " ".repeat(*bytes));
            to.json(200, &padded).await?;
        }
        Fault::Slow { ms_per_event } => {
            tokio::time::sleep(Duration::from_millis(*ms_per_event)).await;
            to.json(200, &answer).await?;
        }
        _ => to.json(200, &answer).await?,
    }
    Ok(After::Keep)
}

/// Announces a whole body, and sends half of it.
async fn half(to: &mut Connection, body: &str) -> io::Result<()> {
    let kind = ("content-type", "application/json".to_owned());
    to.head(200, &[kind, ("content-length", body.len().to_string())]).await?;
    to.raw(&body.as_bytes()[..body.len() / 2]).await
}
