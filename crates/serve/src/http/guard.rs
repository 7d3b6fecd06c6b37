//! The checks a request has to pass before it is handled: right host, not from another site, valid token.
//!
//! Every check is made on headers that a page cannot forge. There are no cookies and no CORS, so a request that a
//! browser sends for another site's page carries no token, and that page could not read the response.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};

use super::api::SESSION;
use super::authority::{Authority, Ours};
use super::pools::Seat;
use super::problem::Problem;
use super::token::Keys;
use super::{Daemon, HEALTH, MCP};
use crate::house::House;
use crate::limits::{CODE_BODY_BYTES_MAX, HttpLimits};

/// Headers that override the request method on servers that honour them.
const OVERRIDES: [&str; 3] = ["x-http-method-override", "x-http-method", "x-method-override"];

/// The middleware state for access checks.
pub(super) struct Guard {
    house: House,
    keys: Arc<Keys>,
    ours: Ours,
    limits: HttpLimits,
    conformance: bool,
}

/// The credentials a path requires. An open path also limits its bodies, because bodies of callers without a token are
/// kept in memory too.
enum Entrance {
    Open { body_bytes_max: usize },
    Token,
}

impl Guard {
    pub(super) fn new(daemon: &Daemon) -> Self {
        Guard {
            house: daemon.house.clone(),
            keys: Arc::clone(&daemon.keys),
            ours: Ours::new(daemon.address, daemon.rules.names.clone()),
            limits: daemon.rules.limits,
            conformance: daemon.conformance,
        }
    }

    fn judge(&self, request: &Request) -> Result<(), Problem> {
        let headers = request.headers();
        let host = self.host(headers)?;
        self.target(request.uri(), &host)?;
        self.origin(request, &host)?;
        tricks(headers)?;
        content_type(headers)
    }

    /// Checks `Host`. A foreign name that resolves to this address (DNS rebinding) still belongs to another site.
    fn host(&self, headers: &HeaderMap) -> Result<Authority, Problem> {
        let host = only(headers, &header::HOST)
            .ok_or_else(|| Problem::bad_request("a request has exactly one `Host`"))?;
        let ours = host.parse().ok().filter(|host| self.ours.answers_to(host));
        ours.ok_or_else(|| {
            let detail = "this server does not answer to that name";
            Problem::new(StatusCode::MISDIRECTED_REQUEST, detail).hint(
                "Use the address that `rep serve` has printed, or name this one with `--allowed-host`.",
            )
        })
    }

    /// Checks that an absolute request target matches `Host`; otherwise a proxy and this server could disagree about
    /// the target.
    fn target(&self, uri: &Uri, host: &Authority) -> Result<(), Problem> {
        let said = match (uri.scheme_str(), uri.authority()) {
            (None, None) => None,
            (Some("http"), Some(said)) => Some(said.as_str().parse::<Authority>().ok()),
            _ => Some(None),
        };
        let agrees = said.is_none_or(|said| said.as_ref() == Some(host));
        if !agrees || !uri.path().starts_with('/') {
            return Err(Problem::bad_request("this is no address of this server"));
        }
        if climbs(uri.path()) {
            return Err(Problem::not_found("there is nothing at this address"));
        }
        Ok(())
    }

    /// Checks where a browser says the request comes from. Only this page's own requests are answered; just the page
    /// itself may be opened from elsewhere, in a tab of its own.
    fn origin(&self, request: &Request, host: &Authority) -> Result<(), Problem> {
        let headers = request.headers();
        if headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD) {
            return Err(other_site());
        }
        let origin = headers.contains_key(header::ORIGIN);
        if origin && !only(headers, &header::ORIGIN).is_some_and(|from| self.is_same(from, host)) {
            return Err(other_site());
        }
        if !origin && opens_page(request) {
            return Ok(());
        }
        let referer = headers.contains_key(header::REFERER);
        let page = || {
            let (scheme, rest) = only(headers, &header::REFERER)?.split_once("://")?;
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            Some(format!("{scheme}://{}", &rest[..end]))
        };
        if referer && !page().is_some_and(|from| self.is_same(&from, host)) {
            return Err(other_site());
        }
        let site = HeaderName::from_static("sec-fetch-site");
        match (headers.contains_key(&site), only(headers, &site)) {
            (false, _) | (_, Some("same-origin" | "none")) => Ok(()),
            _ => Err(other_site()),
        }
    }

    /// Returns true if an origin is the one the request goes to.
    fn is_same(&self, origin: &str, host: &Authority) -> bool {
        let said = match origin.split_once("://") {
            Some(("http", said)) => said,
            // TLS is only possible on a configured name, with a proxy in front of this server.
            Some(("https", said)) if self.ours.is_named(host) => said,
            _ => return false,
        };
        said.parse::<Authority>().as_ref() == Ok(host)
    }

    /// Determines the credentials a path requires.
    fn entrance(&self, path: &str) -> Entrance {
        if self.conformance && path == MCP {
            // In conformance mode only a scratch folder is served, on this machine, and the suite sends large bodies.
            return Entrance::Open { body_bytes_max: self.limits.body_bytes_max };
        }
        match path {
            SESSION => Entrance::Open {
                body_bytes_max: self.limits.body_bytes_max.min(CODE_BODY_BYTES_MAX),
            },
            HEALTH => Entrance::Open { body_bytes_max: 0 },
            _ => Entrance::Token,
        }
    }

    fn token(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let shown = only(headers, &header::AUTHORIZATION).and_then(|value| value.split_once(' '));
        let shown = shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        if shown.is_some_and(|(_, token)| self.keys.lets_in(token, self.house.now_ms())) {
            return Ok(());
        }
        Err(Problem::new(StatusCode::UNAUTHORIZED, "a valid token is required")
            .hint("`rep serve link` prints a link that opens the page; programs send the token of its file."))
    }
}

fn other_site() -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "this server does not answer other sites")
        .hint("Open the link that `rep serve link` prints in a tab of its own.")
}

/// The middleware in front of everything.
pub(super) async fn check(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    match guard.judge(&request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// The middleware in front of everything except the page: checks the token before reading the body.
pub(super) async fn admit(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let body_bytes_max = match guard.entrance(request.uri().path()) {
        Entrance::Open { body_bytes_max } => body_bytes_max,
        Entrance::Token => {
            if let Err(problem) = guard.token(request.headers()) {
                let mut response = problem.into_response();
                let scheme = HeaderValue::from_static("Bearer realm=\"rep serve\"");
                response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
                return response;
            }
            if !is_seated(&request) {
                return no_room();
            }
            guard.limits.body_bytes_max
        }
    };
    let limits = HttpLimits { body_bytes_max, ..guard.limits };
    let (head, body) = request.into_parts();
    if announced_bytes(&head.headers) > Some(body_bytes_max as u64) {
        // The body is not read, so the connection cannot be reused.
        let mut response = too_large(&limits).into_response();
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        return response;
    }
    match gather(body, &limits).await {
        Ok(body) => next.run(Request::from_parts(head, Body::from(body))).await,
        Err(problem) => problem.into_response(),
    }
}

/// Moves the connection to the authenticated pool. Returns false if that pool is full.
fn is_seated(request: &Request) -> bool {
    request.extensions().get::<Arc<Seat>>().is_none_or(|seat| seat.authenticate())
}

fn no_room() -> Response {
    let detail = "there are too many connections now";
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        .hint("Close some, or raise `serve.connections_max`.");
    let mut response = problem.into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The announced length of the body.
fn announced_bytes(headers: &HeaderMap) -> Option<u64> {
    only(headers, &header::CONTENT_LENGTH)?.parse().ok()
}

fn too_large(limits: &HttpLimits) -> Problem {
    let detail = match limits.body_bytes_max {
        0 => "a request to this address has no body".to_owned(),
        bytes_max => format!("a body has at most {bytes_max} bytes"),
    };
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

/// Reads the whole body, within the limits on size and time.
async fn gather(body: Body, limits: &HttpLimits) -> Result<Bytes, Problem> {
    let reading = axum::body::to_bytes(body, limits.body_bytes_max);
    match tokio::time::timeout(limits.body_timeout, reading).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_too_large(&error) => Err(too_large(limits)),
        Ok(Err(_)) => Err(Problem::bad_request("the body broke off")),
        Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body took too long to come")),
    }
}

fn is_too_large(error: &axum::Error) -> bool {
    let source = std::error::Error::source(error);
    source.is_some_and(|source| source.is::<http_body_util::LengthLimitError>())
}

/// Returns true for a tab that a person opens from a link elsewhere. The page it gets contains no data.
fn opens_page(request: &Request) -> bool {
    let says = |name: &'static str, value: &str| {
        only(request.headers(), &HeaderName::from_static(name)) == Some(value)
    };
    request.method() == Method::GET
        && request.uri().path() == "/"
        && says("sec-fetch-mode", "navigate")
        && says("sec-fetch-dest", "document")
}

/// Returns true if a path contains `.` or `..` components, including encoded ones.
fn climbs(path: &str) -> bool {
    let plain =
        path.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/");
    plain.split(['/', '\\']).any(|part| matches!(part, "." | ".."))
}

/// Refuses requests that none of our clients sends: protocol upgrades, method overrides, encoded bodies.
fn tricks(headers: &HeaderMap) -> Result<(), Problem> {
    let upgrades = headers.get_all(header::UPGRADE).iter();
    let socket =
        |value: &HeaderValue| value.as_bytes().to_ascii_lowercase().starts_with(b"websocket");
    if upgrades.into_iter().any(socket) {
        return Err(Problem::bad_request("there are no WebSockets here"));
    }
    if OVERRIDES.iter().any(|name| headers.contains_key(*name)) {
        return Err(Problem::bad_request("the method is the one of the first line"));
    }
    let encoding = headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes);
    match encoding {
        None | Some(b"identity") => Ok(()),
        Some(_) => {
            let detail = "bodies are sent as they are, without an encoding";
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
        }
    }
}

/// Requires JSON for every body: a form on another site cannot send that, because a browser needs a CORS preflight,
/// which is refused. A request that changes something without a body must declare JSON too; the API checks this once
/// the route is known.
fn content_type(headers: &HeaderMap) -> Result<(), Problem> {
    if has_body(headers) { json_only(headers) } else { Ok(()) }
}

/// Refuses requests that don't declare JSON.
pub(super) fn json_only(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = only(headers, &header::CONTENT_TYPE).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "bodies are `application/json` only"))
}

fn has_body(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH).map(HeaderValue::as_bytes);
    headers.contains_key(header::TRANSFER_ENCODING) || length.is_some_and(|length| length != b"0")
}

/// The value of a header, if it occurs exactly once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::climbs;

    #[test]
    fn a_path_that_climbs_is_seen_however_it_is_written() {
        for path in [
            "/..",
            "/a/../b",
            "/%2e%2e/x",
            "/.%2E/x",
            "/a%2f..%2Fb",
            "/a\\..\\b",
            "/./",
            "/%5c..%5c",
        ] {
            assert!(climbs(path), "{path}");
        }
        for path in ["/", "/a..b", "/...", "/api/v1/skills/plugin:skill", "/a%2Fb", "/.well-known"]
        {
            assert!(!climbs(path), "{path}");
        }
    }
}
