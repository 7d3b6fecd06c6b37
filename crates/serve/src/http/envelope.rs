//! What every request and every answer has, whatever it is about: a number, a time in which it is answered, headers that
//! tell browsers to be careful, and an answer even where the code that should give one breaks.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use http::{HeaderName, HeaderValue, StatusCode, header};

use super::MCP;
use super::problem::Problem;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What browsers are told with every answer. A part that says more about itself keeps what it says.
const FIXED: [(HeaderName, &str); 7] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (header::CACHE_CONTROL, "no-store"),
];

/// Gives requests their numbers.
pub(super) struct Envelope {
    /// Tells the numbers of this daemon from those of the one before.
    prefix: u32,
    count: AtomicU64,
    answer_timeout: Duration,
}

impl Envelope {
    pub(super) fn new(answer_timeout: Duration) -> Self {
        let mut bytes = [0; 4];
        // Without random numbers there is no token either; a number that comes again does no harm.
        let _ = getrandom::fill(&mut bytes);
        Envelope { prefix: u32::from_be_bytes(bytes), count: AtomicU64::new(1), answer_timeout }
    }

    fn number(&self) -> String {
        format!("{:08x}-{:x}", self.prefix, self.count.fetch_add(1, Ordering::Relaxed))
    }
}

/// The middleware, outside all others.
pub(super) async fn wrap(
    State(envelope): State<Arc<Envelope>>,
    request: Request,
    next: Next,
) -> Response {
    let number = envelope.number();
    let is_mcp = request.uri().path() == MCP;
    let answer = AssertUnwindSafe(next.run(request)).catch_unwind();
    let answered = match is_mcp {
        true => answer.await,
        false => match tokio::time::timeout(envelope.answer_timeout, answer).await {
            Ok(answered) => answered,
            Err(_) => Ok(too_slow(envelope.answer_timeout).into_response()),
        },
    };
    let response = answered.unwrap_or_else(|_| broken().into_response());
    let mut response = Problem::number(response, &number);
    let headers = response.headers_mut();
    for (name, value) in FIXED {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    if let Ok(number) = HeaderValue::from_str(&number) {
        headers.insert(REQUEST_ID, number);
    }
    response
}

fn too_slow(limit: Duration) -> Problem {
    let detail = format!("the answer took more than {} seconds", limit.as_secs());
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
}

/// What broke is on standard error, where panics go; the number of the request is not a secret, the rest may be.
fn broken() -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "this request met a fault of the server")
        .hint("What broke is on the standard error of `rep serve`. Please report it.")
}
