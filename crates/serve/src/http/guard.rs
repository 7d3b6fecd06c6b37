//! What a request has to be before anybody looks at it: for this address, from no other site, with a token.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, Method, StatusCode, header};

use super::Daemon;
use super::problem::Problem;
use super::token::Keys;
use crate::house::House;

/// Who may come in.
pub struct Guard {
    house: House,
    keys: Arc<Keys>,
    address: SocketAddr,
    conformance: bool,
}

impl Guard {
    /// The guard of a daemon.
    pub fn new(daemon: &Daemon) -> Self {
        Guard {
            house: daemon.house.clone(),
            keys: Arc::clone(&daemon.keys),
            address: daemon.address,
            conformance: daemon.conformance,
        }
    }

    fn judge(&self, request: &Request) -> Result<(), Problem> {
        let headers = request.headers();
        self.host(headers)?;
        self.origin(headers)?;
        content_type(request.method(), headers)?;
        if self.is_open(request.uri().path()) { Ok(()) } else { self.token(headers) }
    }

    fn host(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let wrong = || {
            Problem::new(
                StatusCode::MISDIRECTED_REQUEST,
                "this server does not answer to that name",
            )
            .hint("Use the address that `rep serve` has printed.")
        };
        let host = only(headers, &header::HOST).ok_or_else(wrong)?;
        let authority: Authority = host.parse().map_err(|_| wrong())?;
        if self.is_ours(&authority) { Ok(()) } else { Err(wrong()) }
    }

    /// A browser says where a request comes from. From anywhere but this page, nothing is answered.
    fn origin(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let wrong =
            || Problem::new(StatusCode::FORBIDDEN, "this server does not answer other sites");
        if headers.contains_key(header::ORIGIN) {
            let origin = only(headers, &header::ORIGIN).ok_or_else(wrong)?;
            let authority = origin.strip_prefix("http://").ok_or_else(wrong)?;
            let authority: Authority = authority.parse().map_err(|_| wrong())?;
            if !self.is_ours(&authority) {
                return Err(wrong());
            }
        }
        match headers.get("sec-fetch-site").map(|site| site.as_bytes()) {
            None | Some(b"same-origin" | b"none") => Ok(()),
            Some(_) => Err(wrong()),
        }
    }

    /// Whether an authority is this server's: an address or `localhost`, and its port.
    fn is_ours(&self, authority: &Authority) -> bool {
        if authority.as_str().contains('@') || authority.port_u16() != Some(self.address.port()) {
            return false;
        }
        let host = authority.host();
        if host.eq_ignore_ascii_case("localhost") {
            return self.address.ip().is_loopback();
        }
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        bare.parse::<IpAddr>().is_ok_and(|ip| ip == self.address.ip())
    }

    fn is_open(&self, path: &str) -> bool {
        !(path.starts_with("/api/") || path == "/mcp" || path == "/metrics")
            || path == super::api::SESSION
            || self.conformance && path == "/mcp"
    }

    fn token(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let shown = only(headers, &header::AUTHORIZATION);
        let shown = shown.and_then(|value| value.strip_prefix("Bearer "));
        if shown.is_some_and(|token| self.keys.lets_in(token, self.house.now_ms())) {
            return Ok(());
        }
        Err(Problem::new(StatusCode::UNAUTHORIZED, "a token is needed, and this is none that is good")
            .hint("`rep serve link` prints a link that opens the page; programs send the token of its file."))
    }
}

/// The middleware.
pub async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let mut response = match guard.judge(&request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, http::HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, http::HeaderValue::from_static("no-referrer"));
    response
}

/// Whatever changes something, or carries a body, is JSON: a form of another site cannot be.
fn content_type(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::DELETE) {
        return Ok(());
    }
    let kind = only(headers, &header::CONTENT_TYPE).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "bodies are `application/json` only"))
}

/// The one value of a header, if there is exactly one.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}
