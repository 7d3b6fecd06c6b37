//! The HTTP daemon: a guard in front of everything, the API, the events, the page and `/mcp`.

pub mod api;
pub mod guard;
pub mod openapi;
pub mod problem;
pub mod token;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, Uri};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::house::House;
use crate::page;
use guard::Guard;
use problem::Problem;
use token::Keys;

/// The largest body of a request.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;

/// How the daemon listens, and who may come in.
pub struct Daemon {
    /// What is served.
    pub house: House,
    /// Who may come in.
    pub keys: Arc<Keys>,
    /// The address that it listens on, with the port that it was given.
    pub address: SocketAddr,
    /// Whether `/mcp` has the fixtures of the conformance suite, and needs no token.
    pub conformance: bool,
}

/// Binds a socket. Port 0 takes any that is free; the address that comes back says which.
///
/// # Errors
///
/// When the address is in use, or not one of this machine's.
pub async fn bind(address: SocketAddr) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Serves until told to stop.
///
/// # Errors
///
/// When the socket fails as a whole; one connection's failure is its own.
pub async fn serve(
    listener: TcpListener,
    daemon: Daemon,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let router = router(daemon, &shutdown);
    axum::serve(listener, router).with_graceful_shutdown(shutdown.cancelled_owned()).await
}

/// Everything that is answered, behind the guard.
pub fn router(daemon: Daemon, shutdown: &CancellationToken) -> Router {
    let guard = Arc::new(Guard::new(&daemon));
    let api = api::all(&daemon.house, &daemon.keys).into_router();
    let mcp = crate::mcp::http_service(&daemon.house, daemon.conformance, shutdown.child_token());
    Router::new()
        .merge(api)
        .route_service("/mcp", mcp)
        .fallback(asset)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(axum::middleware::from_fn_with_state(guard, guard::check))
}

async fn asset(uri: Uri) -> Response {
    match page::asset(uri.path()) {
        Some(response) => response.into_response(),
        None => {
            Problem::new(StatusCode::NOT_FOUND, "there is nothing at this address").into_response()
        }
    }
}
