//! The HTTP daemon: a guard in front of everything, the API, the events, the page and `/mcp`.

pub mod api;
pub mod authority;
mod envelope;
pub mod events;
mod guard;
mod listen;
pub mod metrics;
pub mod openapi;
mod patience;
mod pools;
pub mod problem;
pub mod token;
pub mod traces;
pub mod whereabouts;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, StatusCode, Uri, header};
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;

use crate::house::House;
use crate::limits::{BACKLOG, HttpLimits};
use crate::page;
use authority::Authority;
use envelope::Envelope;
use guard::Guard;
pub use listen::{TooFewFiles, make_room};
use problem::Problem;
use token::Keys;
use traces::Tracer;

/// Where MCP is.
pub const MCP: &str = "/mcp";
/// Where whoever watches the daemon asks whether it is there; it needs no token.
pub const HEALTH: &str = "/healthz";

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
    /// What is allowed beyond the usual.
    pub rules: Rules,
}

/// What a daemon is told about its clients.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Names that it answers to, besides its own address.
    pub names: Vec<Authority>,
    /// How much they may send, and how long they may take.
    pub limits: HttpLimits,
    /// Who traces what they ask, if somebody collects that.
    pub tracer: Option<Tracer>,
}

/// Binds a socket. Port 0 takes any that is free; the address that comes back says which.
///
/// # Errors
///
/// When the address is in use, or not one of this machine's.
pub async fn bind(address: SocketAddr) -> std::io::Result<(TcpListener, SocketAddr)> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // As `TcpListener::bind` does, but with a longer queue: a burst of connections must not make a client's wait for a retry.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    let listener = socket.listen(BACKLOG)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Serves until told to stop; what is still open then has a moment to end.
///
/// # Errors
///
/// When the socket fails as a whole; one connection's failure is its own.
pub async fn serve(
    listener: TcpListener,
    daemon: Daemon,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let limits = daemon.rules.limits;
    let router = router(daemon, &shutdown);
    listen::listen(listener, router, limits, shutdown).await
}

/// Everything that is answered, behind the guard.
pub fn router(daemon: Daemon, shutdown: &CancellationToken) -> Router {
    let guard = Arc::new(Guard::new(&daemon));
    let limits = daemon.rules.limits;
    let tracer = daemon.rules.tracer.clone();
    let envelope = Arc::new(Envelope::new(limits.answer_timeout));
    let api = api::all(&daemon.house, &daemon.keys).into_router();
    let mcp = crate::mcp::http_service(
        &daemon.house,
        daemon.conformance,
        limits.mcp_sessions_max,
        shutdown.child_token(),
    );
    let mut routes = Router::new()
        .merge(api)
        .route_service(MCP, mcp)
        .method_not_allowed_fallback(wrong_method)
        // Whatever has an address here needs a token. What is found by no route is a part of the page, or nothing.
        .route_layer(axum::middleware::from_fn_with_state(Arc::clone(&guard), guard::admit));
    if let Some(tracer) = tracer {
        routes = routes.route_layer(axum::middleware::from_fn_with_state(tracer, traces::watch));
    }
    routes
        .fallback(asset)
        .layer(DefaultBodyLimit::max(limits.body_bytes_max))
        .layer(axum::middleware::from_fn_with_state(guard, guard::check))
        .layer(axum::middleware::from_fn_with_state(envelope, envelope::wrap))
}

async fn asset(method: Method, uri: Uri) -> Response {
    match page::asset(uri.path()) {
        None => Problem::not_found("there is nothing at this address").into_response(),
        Some(_) if !matches!(method, Method::GET | Method::HEAD) => {
            let mut response = wrong_method().await;
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET,HEAD"));
            response
        }
        Some(response) => response.into_response(),
    }
}

async fn wrong_method() -> Response {
    let detail = "this address does not know that method";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail).into_response()
}
