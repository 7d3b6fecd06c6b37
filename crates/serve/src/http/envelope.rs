//! Common handling of all requests and responses: request ids, a timeout, security headers, and a response even if a
//! handler panics.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use http::{HeaderName, HeaderValue, StatusCode, header};
use tracing::Instrument as _;

use super::MCP;
use super::problem::HttpProblem;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Security headers of every response. A handler that sets one of them keeps its own value.
const FIXED: [(HeaderName, &str); 7] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (header::CACHE_CONTROL, "no-store"),
];

/// Assigns request ids.
pub(super) struct RequestEnvelope {
    /// A random prefix that distinguishes request ids of this process from those of an earlier one.
    prefix: u32,
    count: AtomicU64,
    answer_timeout: Duration,
}

impl RequestEnvelope {
    pub(super) fn new(answer_timeout: Duration) -> Self {
        let mut bytes = [0; 4];
        // Without random numbers there is no token either; a repeated request id does no harm.
        let _ = getrandom::fill(&mut bytes);
        RequestEnvelope {
            prefix: u32::from_be_bytes(bytes),
            count: AtomicU64::new(1),
            answer_timeout,
        }
    }

    fn next_request_id(&self) -> String {
        format!("{:08x}-{:x}", self.prefix, self.count.fetch_add(1, Ordering::Relaxed))
    }
}

/// The outermost middleware.
pub(super) async fn wrap_request(
    State(envelope): State<Arc<RequestEnvelope>>,
    request: Request,
    next: Next,
) -> Response {
    let number = envelope.next_request_id();
    let is_mcp = request.uri().path() == MCP;
    // The path only: a query may hold a login code.
    let span = tracing::info_span!(
        "request",
        id = %number,
        method = %request.method(),
        path = %request.uri().path(),
        traceparent = request.headers().get("traceparent").and_then(|value| value.to_str().ok()),
        route = tracing::field::Empty,
        status = tracing::field::Empty
    );
    let answer = AssertUnwindSafe(next.run(request)).catch_unwind().instrument(span.clone());
    let answered = if is_mcp {
        answer.await
    } else {
        match tokio::time::timeout(envelope.answer_timeout, answer).await {
            Ok(answered) => answered,
            Err(_) => Ok(timeout_problem(envelope.answer_timeout).into_response()),
        }
    };
    let response = answered.unwrap_or_else(|_| panic_problem().into_response());
    span.record("status", response.status().as_u16());
    let mut response = HttpProblem::add_request_id(response, &number);
    let headers = response.headers_mut();
    for (name, value) in FIXED {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    if let Ok(number) = HeaderValue::from_str(&number) {
        headers.insert(REQUEST_ID, number);
    }
    response
}

/// The middleware that adds the matched route to the span of a request. It runs as a route layer, because the route is
/// not known before.
pub(super) async fn record_route(
    route: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    if let Some(route) = route {
        tracing::Span::current().record("route", route.as_str());
    }
    next.run(request).await
}

fn timeout_problem(limit: Duration) -> HttpProblem {
    let detail = format!("the answer took more than {} seconds", limit.as_secs());
    HttpProblem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
}

/// The problem for a panic. Details go to standard error only, since they may be secret; the request id is not.
fn panic_problem() -> HttpProblem {
    HttpProblem::new(StatusCode::INTERNAL_SERVER_ERROR, "this request met a fault of the server")
        .hint("What broke is on the standard error of `rep serve`. Please report it.")
}
