//! Connections: how many there are, how long they may take, and how they end.

use std::io;
use std::time::Duration;

use axum::Router;
use http::StatusCode;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::patience::Patient;
use super::problem::Problem;
use crate::limits::HttpLimits;

/// How long to wait when the system has no room for another connection.
const NO_ROOM_PAUSE: Duration = Duration::from_millis(100);
/// Files that a process needs besides its connections.
const OTHER_FILES: u64 = 512;

/// Lets this process have as many connections as the limits promise: a shell's usual limit is a quarter of that. What the
/// system does not give is met one connection at a time.
pub fn make_room() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = HttpLimits::default().connections_max as u64 + OTHER_FILES;
    if let Some(current) = limit.current.filter(|current| *current < wanted) {
        let most = limit.maximum.unwrap_or(wanted).min(wanted);
        limit.current = Some(most.max(current));
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// Takes connections until told to stop, and then gives those that are open a moment to end.
pub(super) async fn listen(
    listener: TcpListener,
    router: Router,
    limits: HttpLimits,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let mut open = JoinSet::new();
    loop {
        let taken = tokio::select! {
            () = shutdown.cancelled() => break,
            Some(_) = open.join_next() => continue,
            taken = listener.accept() => taken,
        };
        match taken {
            Ok((stream, _)) if open.len() >= limits.connections_max => refuse(&stream),
            Ok((stream, _)) => {
                open.spawn(attend(stream, router.clone(), limits, shutdown.clone()));
            }
            Err(error) if is_of_one_connection(&error) => {}
            // Too many open files, most likely: those that end make room.
            Err(_) => tokio::time::sleep(NO_ROOM_PAUSE).await,
        }
    }
    drop(listener);
    let ending = async { while open.join_next().await.is_some() {} };
    // A stream of events has no end of its own, and must not keep the process.
    if tokio::time::timeout(limits.stop_timeout, ending).await.is_err() {
        open.shutdown().await;
    }
    Ok(())
}

/// One connection, with all its requests.
async fn attend(
    stream: TcpStream,
    router: Router,
    limits: HttpLimits,
    shutdown: CancellationToken,
) {
    // Events are small and should come at once.
    let _ = stream.set_nodelay(true);
    let stream = TokioIo::new(Patient::new(stream, limits.write_timeout));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_headers(limits.headers_max)
        .max_header_size(limits.head_bytes_max)
        .serve_connection(stream, TowerToHyperService::new(router));
    tokio::pin!(connection);
    tokio::select! {
        // What breaks off is the client's affair.
        _ = &mut connection => return,
        () = shutdown.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Says no without waiting: whether the other end hears it is its affair.
fn refuse(stream: &TcpStream) {
    let _ = stream.try_write(full().as_bytes());
}

/// What a connection beyond the limit is told. Nobody has read a request, so it has no number.
fn full() -> String {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    let problem = Problem::new(status, "there are too many connections now");
    let body = serde_json::to_string(&problem).unwrap_or_default();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\ncache-control: no-store\r\n\
         x-content-type-options: nosniff\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    )
}
