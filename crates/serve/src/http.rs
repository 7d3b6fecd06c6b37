//! The HTTP daemon: a guard in front of everything, the API, the events, the web page and `/mcp`.

pub mod address_file;
pub mod api;
pub mod authority;
mod envelope;
pub mod events;
mod guard;
mod listen;
pub mod metrics;
pub mod openapi;
mod pools;
pub mod problem;
pub mod token;
mod write_timeout;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, StatusCode, Uri, header};
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;

use crate::limits::{BACKLOG, HttpLimits};
use crate::mcp::McpExtension;
use crate::page;
use crate::serve_state::ServeState;
use authority::HttpAuthority;
use envelope::RequestEnvelope;
use guard::RequestGuard;
pub use listen::{TooFewFiles, accept_connections, raise_file_limit};
use problem::HttpProblem;
use token::AccessKeys;

/// The path of MCP.
pub const MCP: &str = "/mcp";
/// The path of the health check, which needs no token.
pub const HEALTH: &str = "/healthz";

/// The configuration of the HTTP daemon.
pub struct HttpDaemon {
    /// The state that is served.
    pub serve_state: ServeState,
    /// The accepted tokens.
    pub keys: Arc<AccessKeys>,
    /// The address it listens on, with the actual port.
    pub address: SocketAddr,
    /// Tools and resources that `/mcp` serves in addition to skills.
    pub extension: Option<Arc<dyn McpExtension>>,
    pub rules: ClientRules,
}

/// The daemon's rules for its clients.
#[derive(Clone, Debug, Default)]
pub struct ClientRules {
    /// Host names it answers to, besides its own address.
    pub names: Vec<HttpAuthority>,
    /// Size and time limits.
    pub limits: HttpLimits,
}

/// Binds a socket. Port 0 takes any free port; the returned address holds the actual one.
///
/// # Errors
///
/// If the address is in use, or does not belong to this machine.
pub async fn bind_listener(address: SocketAddr) -> std::io::Result<(TcpListener, SocketAddr)> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Like `TcpListener::bind`, but with a longer queue, so that a burst of connections does not force clients to
    // retry.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    let listener = socket.listen(BACKLOG)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Serves until `shutdown` is cancelled; connections that are still open then get a grace period.
///
/// # Errors
///
/// If the socket fails as a whole; the failure of a single connection is not an error.
pub async fn serve_http(
    listener: TcpListener,
    daemon: HttpDaemon,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let limits = daemon.rules.limits;
    let router = build_router(daemon, &shutdown);
    listen::accept_connections(listener, router, limits, shutdown).await
}

/// Builds the router of all routes, behind the guard.
pub fn build_router(daemon: HttpDaemon, shutdown: &CancellationToken) -> Router {
    let guard = Arc::new(RequestGuard::new(&daemon));
    let limits = daemon.rules.limits;
    let envelope = Arc::new(RequestEnvelope::new(limits.answer_timeout));
    let api = api::build_api(&daemon.serve_state, &daemon.keys).into_router();
    let mcp = crate::mcp::http_service(
        &daemon.serve_state,
        daemon.extension.clone(),
        limits.mcp_sessions_max,
        shutdown.child_token(),
    );
    Router::new()
        .merge(api)
        .route_service(MCP, mcp)
        .method_not_allowed_fallback(refuse_method)
        // Every route needs a token. A path without a route is an asset of the page, or not found.
        .route_layer(axum::middleware::from_fn_with_state(Arc::clone(&guard), guard::admit_request))
        .route_layer(axum::middleware::from_fn(envelope::record_route))
        .fallback(serve_asset)
        .layer(DefaultBodyLimit::max(limits.body_bytes_max))
        .layer(axum::middleware::from_fn_with_state(guard, guard::guard_request))
        .layer(axum::middleware::from_fn_with_state(envelope, envelope::wrap_request))
}

async fn serve_asset(method: Method, uri: Uri) -> Response {
    match page::asset_response(uri.path()) {
        None => HttpProblem::not_found("there is nothing at this address").into_response(),
        Some(_) if !matches!(method, Method::GET | Method::HEAD) => {
            let mut response = refuse_method().await;
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET,HEAD"));
            response
        }
        Some(response) => response.into_response(),
    }
}

async fn refuse_method() -> Response {
    let detail = "this address does not know that method";
    HttpProblem::new(StatusCode::METHOD_NOT_ALLOWED, detail).into_response()
}
