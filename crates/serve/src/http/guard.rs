//! What a request has to be before anybody looks at it: for this address, from no other site, and with a token.
//!
//! Every check is made on headers that a page cannot forge. There are no cookies and no CORS, so that what a browser sends
//! for somebody else's page has no token, and gets no answer that this page could read.

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

/// Ways to say another method than the one in the first line, for servers that believe them.
const OVERRIDES: [&str; 3] = ["x-http-method-override", "x-http-method", "x-method-override"];

/// Who may come in.
pub(super) struct Guard {
    house: House,
    keys: Arc<Keys>,
    ours: Ours,
    limits: HttpLimits,
    conformance: bool,
}

/// The credentials that a path demands. An open path says how large its bodies may be: bodies of callers without a token are
/// kept in memory too.
enum Entrance {
    Open { body_bytes_max: usize },
    Token,
}

impl Guard {
    /// The guard of a daemon.
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

    /// A name that was made to lead here (DNS rebinding) is still another site's.
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

    /// An address in the first line must be the one of `Host`, or the two parties would understand different things.
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

    /// A browser says where a request comes from. From anywhere but this page, nothing is answered; only the page itself may
    /// be opened from elsewhere, in a tab of its own.
    fn origin(&self, request: &Request, host: &Authority) -> Result<(), Problem> {
        let headers = request.headers();
        let wrong = || {
            Problem::new(StatusCode::FORBIDDEN, "this server does not answer other sites")
                .hint("Open the link that `rep serve link` prints in a tab of its own.")
        };
        if headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD) {
            return Err(wrong());
        }
        let origin = headers.contains_key(header::ORIGIN);
        if origin && !only(headers, &header::ORIGIN).is_some_and(|from| self.is_same(from, host)) {
            return Err(wrong());
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
            return Err(wrong());
        }
        let site = HeaderName::from_static("sec-fetch-site");
        match (headers.contains_key(&site), only(headers, &site)) {
            (false, _) | (_, Some("same-origin" | "none")) => Ok(()),
            _ => Err(wrong()),
        }
    }

    /// Whether an origin is the one that the request goes to.
    fn is_same(&self, origin: &str, host: &Authority) -> bool {
        let said = match origin.split_once("://") {
            Some(("http", said)) => said,
            // Only what stands in front of this server can speak TLS.
            Some(("https", said)) if self.ours.is_named(host) => said,
            _ => return false,
        };
        said.parse::<Authority>().as_ref() == Ok(host)
    }

    /// Finds out what a request needs to be let in.
    fn entrance(&self, path: &str) -> Entrance {
        if self.conformance && path == MCP {
            // It serves a scratch folder on this machine only, and the suite sends large bodies.
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

/// The middleware in front of whatever is not the page: it asks for the token, and only then for the body.
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
        // Nothing of the body is read, so nothing can follow it.
        let mut response = too_large(&limits).into_response();
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        return response;
    }
    match gather(body, &limits).await {
        Ok(body) => next.run(Request::from_parts(head, Body::from(body))).await,
        Err(problem) => problem.into_response(),
    }
}

/// Moves the connection to those that have shown a token; `false` if there are too many.
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

/// The length that the head of a request announces.
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

/// The whole body, which is small and comes soon, or not at all.
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

/// A tab that a person opens by a link elsewhere. What it gets is the page without anything in it.
fn opens_page(request: &Request) -> bool {
    let says = |name: &'static str, value: &str| {
        only(request.headers(), &HeaderName::from_static(name)) == Some(value)
    };
    request.method() == Method::GET
        && request.uri().path() == "/"
        && says("sec-fetch-mode", "navigate")
        && says("sec-fetch-dest", "document")
}

/// Whether a path goes up, however that is written.
fn climbs(path: &str) -> bool {
    let plain =
        path.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/");
    plain.split(['/', '\\']).any(|part| matches!(part, "." | ".."))
}

/// What no client of ours sends: another protocol, another method than it says, a body in a code.
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

/// Whatever carries a body is JSON: a form of another site cannot be. A browser asks before it sends JSON to another site, and
/// is told no. What changes something without a body says that it would be JSON, too: the API sees to that, once it is known
/// that there is something to change.
fn content_type(headers: &HeaderMap) -> Result<(), Problem> {
    match has_body(headers) {
        true => json_only(headers),
        false => Ok(()),
    }
}

/// Refuses what is not JSON, or does not say so.
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

/// The one value of a header, if there is exactly one.
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
