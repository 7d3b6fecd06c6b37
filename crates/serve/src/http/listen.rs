//! Accepts connections, limits their number and duration, and shuts them down.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::pools::{ConnectionPools, ConnectionSlot};
use super::write_timeout::WriteTimeoutStream;
use crate::limits::HttpLimits;

/// The pause after the system refused another connection.
const NO_ROOM_PAUSE: Duration = Duration::from_millis(10);
/// The number of files a process needs besides its connections.
const OTHER_FILES: u64 = 512;

/// The system's limit on open files is lower than the configuration needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFewFiles {
    /// The number of files the process may open.
    pub allowed: u64,
    /// The number the configuration needs.
    pub wanted: u64,
}

/// Raises the process's limit on open files as far as the connections need it and the system allows. Beyond the limit,
/// connections wait until others end.
///
/// # Errors
///
/// [`TooFewFiles`] if the system allows less.
pub fn raise_file_limit(limits: &HttpLimits) -> Result<(), TooFewFiles> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let connections = limits.connections_max.saturating_add(limits.unauthenticated_connections_max);
    let wanted = (connections as u64).saturating_add(OTHER_FILES);
    let Some(current) = limit.current.filter(|current| *current < wanted) else { return Ok(()) };
    let most = limit.maximum.unwrap_or(wanted).min(wanted).max(current);
    limit.current = Some(most);
    let allowed = if setrlimit(Resource::Nofile, limit).is_ok() { most } else { current };
    if allowed < wanted { Err(TooFewFiles { allowed, wanted }) } else { Ok(()) }
}

/// Accepts connections until `shutdown` is cancelled, and then waits for the open ones up to `stop_timeout`.
///
/// # Errors
///
/// If the socket fails as a whole; the failure of a single connection is not an error.
pub async fn accept_connections(
    listener: TcpListener,
    router: Router,
    limits: HttpLimits,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let mut open = JoinSet::new();
    let pools = ConnectionPools::new(&limits);
    loop {
        let taken = tokio::select! {
            () = shutdown.cancelled() => break,
            Some(_) = open.join_next() => continue,
            taken = listener.accept() => taken,
        };
        match taken {
            Ok((stream, _)) => {
                let seat = pools.add_connection();
                let number = seat.number();
                let attended =
                    serve_connection(stream, router.clone(), seat, limits, shutdown.clone());
                pools.set_abort_handle(number, open.spawn(attended));
            }
            Err(error) if is_connection_error(&error) => {}
            // Most likely too many open files: end unauthenticated connections to make room.
            Err(_) => {
                pools.end_oldest_connections();
                tokio::time::sleep(NO_ROOM_PAUSE).await;
            }
        }
    }
    drop(listener);
    let ending = async { while open.join_next().await.is_some() {} };
    // An event stream never ends by itself, and must not keep the process alive.
    if tokio::time::timeout(limits.stop_timeout, ending).await.is_err() {
        open.shutdown().await;
    }
    Ok(())
}

/// Serves all requests of a connection.
async fn serve_connection(
    stream: TcpStream,
    router: Router,
    seat: Arc<ConnectionSlot>,
    limits: HttpLimits,
    shutdown: CancellationToken,
) {
    // Events are small and must be sent without delay.
    let _ = stream.set_nodelay(true);
    let stream = TokioIo::new(WriteTimeoutStream::new(stream, limits.write_timeout));
    let service = router.map_request(move |mut request: http::Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&seat));
        request
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_headers(limits.headers_max)
        .max_header_size(limits.head_bytes_max)
        .serve_connection(stream, TowerToHyperService::new(service));
    tokio::pin!(connection);
    tokio::select! {
        // Errors of a connection only concern its client.
        _ = &mut connection => return,
        () = shutdown.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

fn is_connection_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    )
}
