//! Parsed requests, and replies in GitHub's format.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A parsed request.
#[derive(Debug)]
pub(super) struct GitHubCall<'a> {
    pub(super) method: &'a str,
    /// The segments of the path, decoded.
    pub(super) parts: Vec<String>,
    pub(super) query: BTreeMap<String, String>,
    pub(super) body: Value,
    pub(super) accept: &'a str,
    /// The origin of the server, for links.
    pub(super) origin: &'a str,
    /// The path without the query, for links.
    pub(super) path: &'a str,
}

impl GitHubCall<'_> {
    /// A string of the body.
    pub(super) fn body_text(&self, key: &str) -> Option<String> {
        self.body[key].as_str().map(str::to_owned)
    }
}

#[derive(Debug)]
pub(super) struct GitHubReply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl GitHubReply {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        let kind = ("content-type".to_owned(), "application/json; charset=utf-8".to_owned());
        GitHubReply { status, headers: vec![kind], body: body.to_string() }
    }

    pub(super) fn text(body: String) -> Self {
        let kind = ("content-type".to_owned(), "text/plain; charset=utf-8".to_owned());
        GitHubReply { status: 200, headers: vec![kind], body }
    }

    pub(super) fn no_content() -> Self {
        GitHubReply { status: 204, headers: Vec::new(), body: String::new() }
    }

    /// An error in GitHub's format.
    pub(super) fn error(status: u16, message: &str) -> Self {
        let documentation = "https://docs.github.com/rest";
        let body = json!({
            "message": message, "documentation_url": documentation, "status": status.to_string(),
        });
        GitHubReply::json(status, &body)
    }

    pub(super) fn not_found() -> Self {
        GitHubReply::error(404, "Not Found")
    }

    /// A validation error for a field.
    pub(super) fn validation_error(
        resource: &str,
        field: &str,
        code: &str,
        message: Option<&str>,
    ) -> Self {
        let mut error = json!({ "resource": resource, "field": field, "code": code });
        if let Some(message) = message {
            error["message"] = json!(message);
        }
        let body = json!({
            "message": "Validation Failed", "errors": [error],
            "documentation_url": "https://docs.github.com/rest", "status": "422",
        });
        GitHubReply::json(422, &body)
    }

    /// A page of a list, with links to the others.
    pub(super) fn page(ask: &GitHubCall<'_>, items: Vec<Value>, page_size: usize) -> Self {
        GitHubReply::page_in(ask, items, page_size, |page, _| json!(page))
    }

    /// A page of a list that is nested in another object.
    pub(super) fn page_in(
        ask: &GitHubCall<'_>,
        items: Vec<Value>,
        page_size: usize,
        within: impl FnOnce(Vec<Value>, usize) -> Value,
    ) -> Self {
        let number = |key: &str| ask.query.get(key).and_then(|text| text.parse::<usize>().ok());
        let size = number("per_page").unwrap_or(30).clamp(1, 100).min(page_size.max(1));
        let page = number("page").unwrap_or(1).max(1);
        let (all, pages) = (items.len(), items.len().div_ceil(size).max(1));
        let shown: Vec<Value> = items.into_iter().skip((page - 1) * size).take(size).collect();
        let mut reply = GitHubReply::json(200, &within(shown, all));
        if page < pages {
            let (next, last) = (page_link(ask, page + 1, "next"), page_link(ask, pages, "last"));
            let links = format!("{next}, {last}");
            reply.headers.push(("link".to_owned(), links));
        }
        reply
    }
}

/// A link to another page of the same request.
fn page_link(ask: &GitHubCall<'_>, page: usize, rel: &str) -> String {
    let mut query = ask.query.clone();
    query.insert("page".to_owned(), page.to_string());
    let query: Vec<_> =
        query.iter().map(|(key, value)| format!("{key}={}", percent_encode(value))).collect();
    format!("<{}{}?{}>; rel=\"{rel}\"", ask.origin, ask.path, query.join("&"))
}

/// Decodes percent-encoding in a path or a query.
pub(super) fn percent_decode(text: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let pair = (byte == b'%').then(|| [bytes.next(), bytes.next()]);
        match pair {
            Some([Some(one), Some(two)]) => {
                let hex = [one, two];
                let hex = std::str::from_utf8(&hex).unwrap_or_default();
                out.push(u8::from_str_radix(hex, 16).unwrap_or(b'?'));
            }
            Some(_) => out.push(b'?'),
            None => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn percent_encode(text: &str) -> String {
    text.bytes().map(encoded_byte).collect()
}

fn encoded_byte(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}
