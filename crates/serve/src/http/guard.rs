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
use super::authority::{HttpAuthority, ServerAuthorities};
use super::pools::ConnectionSlot;
use super::problem::HttpProblem;
use super::token::AccessKeys;
use super::{HEALTH, HttpDaemon};
use crate::limits::{CODE_BODY_BYTES_MAX, HttpLimits};
use crate::serve_state::ServeState;

/// Headers that override the request method on servers that honour them.
const OVERRIDES: [&str; 3] = ["x-http-method-override", "x-http-method", "x-method-override"];

/// The middleware state for access checks.
pub(super) struct RequestGuard {
    serve_state: ServeState,
    keys: Arc<AccessKeys>,
    ours: ServerAuthorities,
    limits: HttpLimits,
}

/// The credentials a path requires. An open path also limits its bodies, because bodies of callers without a token are
/// kept in memory too.
enum PathAccess {
    Open { body_bytes_max: usize },
    Token,
}

impl RequestGuard {
    pub(super) fn new(daemon: &HttpDaemon) -> Self {
        RequestGuard {
            serve_state: daemon.serve_state.clone(),
            keys: Arc::clone(&daemon.keys),
            ours: ServerAuthorities::new(daemon.address, daemon.rules.names.clone()),
            limits: daemon.rules.limits,
        }
    }

    fn check_request(&self, request: &Request) -> Result<(), HttpProblem> {
        let headers = request.headers();
        let host = self.check_host(headers)?;
        self.check_target(request.uri(), &host)?;
        self.check_origin(request, &host)?;
        refuse_overrides(headers)?;
        check_content_type(headers)
    }

    /// Checks `Host`. A foreign name that resolves to this address (DNS rebinding) still belongs to another site.
    fn check_host(&self, headers: &HeaderMap) -> Result<HttpAuthority, HttpProblem> {
        let host = single_header(headers, &header::HOST)
            .ok_or_else(|| HttpProblem::bad_request("a request has exactly one `Host`"))?;
        let ours = host.parse().ok().filter(|host| self.ours.answers_to(host));
        ours.ok_or_else(|| {
            let detail = "this server does not answer to that name";
            HttpProblem::new(StatusCode::MISDIRECTED_REQUEST, detail).hint(
                "Use the address that `rep serve` has printed, or name this one with `--allowed-host`.",
            )
        })
    }

    /// Checks that an absolute request target matches `Host`; otherwise a proxy and this server could disagree about
    /// the target.
    fn check_target(&self, uri: &Uri, host: &HttpAuthority) -> Result<(), HttpProblem> {
        let said = match (uri.scheme_str(), uri.authority()) {
            (None, None) => None,
            (Some("http"), Some(said)) => Some(said.as_str().parse::<HttpAuthority>().ok()),
            _ => Some(None),
        };
        let agrees = said.is_none_or(|said| said.as_ref() == Some(host));
        if !agrees || !uri.path().starts_with('/') {
            return Err(HttpProblem::bad_request("this is no address of this server"));
        }
        if has_dot_segments(uri.path()) {
            return Err(HttpProblem::not_found("there is nothing at this address"));
        }
        Ok(())
    }

    /// Checks where a browser says the request comes from. Only this page's own requests are answered; just the page
    /// itself may be opened from elsewhere, in a tab of its own.
    fn check_origin(&self, request: &Request, host: &HttpAuthority) -> Result<(), HttpProblem> {
        let headers = request.headers();
        if headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD) {
            return Err(other_site_problem());
        }
        let origin = headers.contains_key(header::ORIGIN);
        if origin
            && !single_header(headers, &header::ORIGIN)
                .is_some_and(|from| self.is_same_origin(from, host))
        {
            return Err(other_site_problem());
        }
        if !origin && opens_page(request) {
            return Ok(());
        }
        let referer = headers.contains_key(header::REFERER);
        let page = || {
            let (scheme, rest) = single_header(headers, &header::REFERER)?.split_once("://")?;
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            Some(format!("{scheme}://{}", &rest[..end]))
        };
        if referer && !page().is_some_and(|from| self.is_same_origin(&from, host)) {
            return Err(other_site_problem());
        }
        let site = HeaderName::from_static("sec-fetch-site");
        match (headers.contains_key(&site), single_header(headers, &site)) {
            (false, _) | (_, Some("same-origin" | "none")) => Ok(()),
            _ => Err(other_site_problem()),
        }
    }

    /// Returns true if an origin is the one the request goes to.
    fn is_same_origin(&self, origin: &str, host: &HttpAuthority) -> bool {
        let said = match origin.split_once("://") {
            Some(("http", said)) => said,
            // TLS is only possible on a configured name, with a proxy in front of this server.
            Some(("https", said)) if self.ours.is_named(host) => said,
            _ => return false,
        };
        said.parse::<HttpAuthority>().as_ref() == Ok(host)
    }

    /// Determines the credentials a path requires.
    fn path_access(&self, path: &str) -> PathAccess {
        match path {
            SESSION => PathAccess::Open {
                body_bytes_max: self.limits.body_bytes_max.min(CODE_BODY_BYTES_MAX),
            },
            HEALTH => PathAccess::Open { body_bytes_max: 0 },
            _ => PathAccess::Token,
        }
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(), HttpProblem> {
        let shown =
            single_header(headers, &header::AUTHORIZATION).and_then(|value| value.split_once(' '));
        let shown = shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        if shown.is_some_and(|(_, token)| self.keys.is_valid(token, self.serve_state.now_ms())) {
            return Ok(());
        }
        Err(HttpProblem::new(StatusCode::UNAUTHORIZED, "a valid token is required")
            .hint("`rep serve link` prints a link that opens the page; programs send the token of its file."))
    }
}

fn other_site_problem() -> HttpProblem {
    HttpProblem::new(StatusCode::FORBIDDEN, "this server does not answer other sites")
        .hint("Open the link that `rep serve link` prints in a tab of its own.")
}

/// The middleware in front of everything.
pub(super) async fn guard_request(
    State(guard): State<Arc<RequestGuard>>,
    request: Request,
    next: Next,
) -> Response {
    match guard.check_request(&request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// The middleware in front of everything except the page: checks the token before reading the body.
pub(super) async fn admit_request(
    State(guard): State<Arc<RequestGuard>>,
    request: Request,
    next: Next,
) -> Response {
    let body_bytes_max = match guard.path_access(request.uri().path()) {
        PathAccess::Open { body_bytes_max } => body_bytes_max,
        PathAccess::Token => {
            if let Err(problem) = guard.check_token(request.headers()) {
                let mut response = problem.into_response();
                let scheme = HeaderValue::from_static("Bearer realm=\"rep serve\"");
                response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
                return response;
            }
            if !authenticate_connection(&request) {
                return too_many_connections();
            }
            guard.limits.body_bytes_max
        }
    };
    let limits = HttpLimits { body_bytes_max, ..guard.limits };
    let (head, body) = request.into_parts();
    if announced_bytes(&head.headers) > Some(body_bytes_max as u64) {
        // The body is not read, so the connection cannot be reused.
        let mut response = body_too_large(&limits).into_response();
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        return response;
    }
    match read_body(body, &limits).await {
        Ok(body) => next.run(Request::from_parts(head, Body::from(body))).await,
        Err(problem) => problem.into_response(),
    }
}

/// Moves the connection to the authenticated pool. Returns false if that pool is full.
fn authenticate_connection(request: &Request) -> bool {
    request.extensions().get::<Arc<ConnectionSlot>>().is_none_or(|seat| seat.authenticate())
}

fn too_many_connections() -> Response {
    let detail = "there are too many connections now";
    let problem = HttpProblem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        .hint("Close some, or raise `serve.connections_max`.");
    let mut response = problem.into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The announced length of the body.
fn announced_bytes(headers: &HeaderMap) -> Option<u64> {
    single_header(headers, &header::CONTENT_LENGTH)?.parse().ok()
}

fn body_too_large(limits: &HttpLimits) -> HttpProblem {
    let detail = match limits.body_bytes_max {
        0 => "a request to this address has no body".to_owned(),
        bytes_max => format!("a body has at most {bytes_max} bytes"),
    };
    HttpProblem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

/// Reads the whole body, within the limits on size and time.
async fn read_body(body: Body, limits: &HttpLimits) -> Result<Bytes, HttpProblem> {
    let reading = axum::body::to_bytes(body, limits.body_bytes_max);
    match tokio::time::timeout(limits.body_timeout, reading).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_too_large(&error) => Err(body_too_large(limits)),
        Ok(Err(_)) => Err(HttpProblem::bad_request("the body broke off")),
        Err(_) => {
            Err(HttpProblem::new(StatusCode::REQUEST_TIMEOUT, "the body took too long to come"))
        }
    }
}

fn is_too_large(error: &axum::Error) -> bool {
    let source = std::error::Error::source(error);
    source.is_some_and(|source| source.is::<http_body_util::LengthLimitError>())
}

/// Returns true for a tab that a person opens from a link elsewhere. The page it gets contains no data.
fn opens_page(request: &Request) -> bool {
    let says = |name: &'static str, value: &str| {
        single_header(request.headers(), &HeaderName::from_static(name)) == Some(value)
    };
    request.method() == Method::GET
        && request.uri().path() == "/"
        && says("sec-fetch-mode", "navigate")
        && says("sec-fetch-dest", "document")
}

/// Returns true if a path contains `.` or `..` components, including encoded ones.
fn has_dot_segments(path: &str) -> bool {
    let plain =
        path.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/");
    plain.split(['/', '\\']).any(|part| matches!(part, "." | ".."))
}

/// Refuses requests that none of our clients sends: protocol upgrades, method overrides, encoded bodies.
fn refuse_overrides(headers: &HeaderMap) -> Result<(), HttpProblem> {
    let upgrades = headers.get_all(header::UPGRADE).iter();
    let socket =
        |value: &HeaderValue| value.as_bytes().to_ascii_lowercase().starts_with(b"websocket");
    if upgrades.into_iter().any(socket) {
        return Err(HttpProblem::bad_request("there are no WebSockets here"));
    }
    if OVERRIDES.iter().any(|name| headers.contains_key(*name)) {
        return Err(HttpProblem::bad_request("the method is the one of the first line"));
    }
    let encoding = headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes);
    match encoding {
        None | Some(b"identity") => Ok(()),
        Some(_) => {
            let detail = "bodies are sent as they are, without an encoding";
            Err(HttpProblem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
        }
    }
}

/// Requires JSON for every body: a form on another site cannot send that, because a browser needs a CORS preflight,
/// which is refused. A request that changes something without a body must declare JSON too; the API checks this once
/// the route is known.
fn check_content_type(headers: &HeaderMap) -> Result<(), HttpProblem> {
    if has_body(headers) { require_json(headers) } else { Ok(()) }
}

/// Refuses requests that don't declare JSON.
pub(super) fn require_json(headers: &HeaderMap) -> Result<(), HttpProblem> {
    let kind = single_header(headers, &header::CONTENT_TYPE).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(HttpProblem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "bodies are `application/json` only"))
}

fn has_body(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH).map(HeaderValue::as_bytes);
    headers.contains_key(header::TRANSFER_ENCODING) || length.is_some_and(|length| length != b"0")
}

/// The value of a header, if it occurs exactly once.
fn single_header<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::has_dot_segments;

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
            assert!(has_dot_segments(path), "{path}");
        }
        for path in ["/", "/a..b", "/...", "/api/v1/skills/plugin:skill", "/a%2Fb", "/.well-known"]
        {
            assert!(!has_dot_segments(path), "{path}");
        }
    }
}
