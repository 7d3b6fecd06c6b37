//! The page: files that are part of the binary. They hold nothing that is secret, and ask for nothing from elsewhere.

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};

#[derive(rust_embed::RustEmbed)]
#[folder = "src/page/"]
struct Assets;

/// What the page may do: load its own parts, and talk to this server. Nothing else, whatever a skill's text says.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The file of that path, if there is one; `/` is the page itself.
pub fn asset(path: &str) -> Option<Response<Body>> {
    let name = match path.trim_start_matches('/') {
        "" => "index.html",
        name => name,
    };
    let file = Assets::get(name)?;
    let kind = match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    let mut response = Response::new(Body::from(file.data));
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Some(response)
}
