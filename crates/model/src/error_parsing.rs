//! Converts servers' error responses to [`ModelError`]s.

use repertoire_text::invisible::is_invisible;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::error::ModelError;
use crate::limits::{MESSAGE_CHARS_MAX, RETRY_WAIT_MS_MAX};
use crate::protocol::ModelService;
use crate::retry_headers::{retry_after_ms, usage_reset_ms};
use crate::secret::ApiSecret;

/// Parses JSON from a server.
pub(crate) fn parse_json(service: ModelService, data: &str) -> Result<Value, ModelError> {
    serde_json::from_str(data).map_err(|error| {
        let start: String = data.chars().take(60).collect();
        ModelError::Protocol { service, message: format!("{error} in `{start}`") }
    })
}

/// Converts an error within an answer: an object with a type or code and a message.
pub(crate) fn stream_error(service: ModelService, error: &Value) -> ModelError {
    let message = error["message"].as_str().or(error.as_str()).unwrap_or("an error without words");
    let message = message.to_owned();
    let kind = error["type"].as_str().or(error["code"].as_str()).unwrap_or_default();
    let status = error["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0);
    let said = ErrorText::new(error, &message);
    match (kind, status) {
        _ if said.is_usage_limit() => {
            ModelError::UsageLimit { service, message, resets_at_ms: None }
        }
        _ if said.is_too_long() => ModelError::ContextTooLong { message },
        ("rate_limit_error" | "rate_limit_exceeded", _) | (_, 429) => {
            ModelError::RateLimited { service, status: 429, message, retry_after_ms: None }
        }
        ("authentication_error" | "permission_error", _) | (_, 401 | 403) => {
            ModelError::Unauthorised { service, status: status.max(401), message }
        }
        ("invalid_request_error" | "not_found_error", _) | (_, 400 | 404 | 422) => {
            ModelError::Rejected { service, status: status.max(400), message }
        }
        _ => ModelError::Server { service, status, message, retry_after_ms: None },
    }
}

/// A response with an error status.
pub(crate) struct FailedResponse<'a> {
    pub(crate) status: u16,
    pub(crate) headers: &'a HeaderMap,
    /// The start of the body; empty if it could not be read.
    pub(crate) body: &'a str,
    /// The time of the response, in milliseconds since 1970.
    pub(crate) now_ms: u64,
}

/// Converts an error status.
pub(crate) fn status_error(service: ModelService, failed: &FailedResponse<'_>) -> ModelError {
    let FailedResponse { status, headers, body, now_ms } = *failed;
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    let message = error_message(&json, body);
    let said = ErrorText::new(&json["error"], &message);
    let retry_after_ms = retry_after_ms(headers, now_ms);
    let is_limit = match status {
        402 => true,
        403 => said.is_usage_limit(),
        429 => said.is_usage_limit_after(retry_after_ms),
        400 | 401 => said.is_certain_usage_limit(),
        _ => false,
    };
    let long_wait = retry_after_ms.filter(|wait| *wait > RETRY_WAIT_MS_MAX);
    let resets_at_ms = usage_reset_ms(headers, now_ms).or(long_wait.map(|wait| now_ms + wait));
    match status {
        _ if is_limit => ModelError::UsageLimit { service, message, resets_at_ms },
        429 if resets_at_ms.is_some_and(|at| at > now_ms + RETRY_WAIT_MS_MAX) => {
            ModelError::UsageLimit { service, message, resets_at_ms }
        }
        429 => {
            let until_reset = resets_at_ms.map(|at| at.saturating_sub(now_ms));
            let retry_after_ms = retry_after_ms.or(until_reset);
            ModelError::RateLimited { service, status, message, retry_after_ms }
        }
        408 => ModelError::RateLimited { service, status, message, retry_after_ms },
        401 | 403 => ModelError::Unauthorised { service, status, message },
        413 => ModelError::ContextTooLong { message },
        400 | 422 if said.is_too_long() => ModelError::ContextTooLong { message },
        500.. => ModelError::Server { service, status, message, retry_after_ms },
        300..400 => ModelError::Rejected { service, status, message: redirect_message(headers) },
        _ => ModelError::Rejected { service, status, message },
    }
}

fn redirect_message(headers: &HeaderMap) -> String {
    let to = headers.get("location").and_then(|to| to.to_str().ok()).unwrap_or("another place");
    let to = to.split(['?', '#']).next().unwrap_or_default();
    format!("it sends us to {to}; redirections are not followed, so set the address that is meant")
}

/// An error message in lower case, for classification.
struct ErrorText {
    kind: String,
    words: String,
}

impl ErrorText {
    fn new(error: &Value, message: &str) -> Self {
        let kind = format!("{} {}", lower_text(&error["type"]), lower_text(&error["code"]));
        ErrorText { kind, words: message.to_lowercase() }
    }

    fn has_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.words.contains(word))
    }

    /// Returns true if the account's usage limit is meant, rather than the request rate.
    fn is_usage_limit(&self) -> bool {
        const WORDS: [&str; 5] = ["quota", "usage limit", "credit", "limit reached", "billing"];
        let is_speed = self.has_any(&["rate limit", "per minute", "per second"]);
        self.is_certain_usage_limit() || (!is_speed && self.has_any(&WORDS))
    }

    /// Returns true if the usage limit is meant beyond doubt. A request rejected for other reasons
    /// may well contain some of the words of [`Self::is_usage_limit`].
    fn is_certain_usage_limit(&self) -> bool {
        const KINDS: [&str; 3] = ["insufficient_quota", "billing", "usage_limit"];
        let is_kind = KINDS.iter().any(|kind| self.kind.contains(kind));
        is_kind || self.words.contains("credit balance")
    }

    /// Like [`Self::is_usage_limit`], but a server that mentions a quota and requests a short delay
    /// means the rate.
    fn is_usage_limit_after(&self, retry_after_ms: Option<u64>) -> bool {
        let is_short = retry_after_ms.is_some_and(|wait| wait <= RETRY_WAIT_MS_MAX);
        self.is_usage_limit() && (!is_short || self.kind.contains("insufficient_quota"))
    }

    fn is_too_long(&self) -> bool {
        const WORDS: [&str; 9] = [
            "prompt is too long",
            "context length",
            "context_length",
            "context window",
            "context size",
            "context limit",
            "maximum context",
            "too many tokens",
            "input is too long",
        ];
        let kinds = ["context_length_exceeded", "exceed_context_size", "request_too_large"];
        kinds.iter().any(|kind| self.kind.contains(kind)) || self.has_any(&WORDS)
    }
}

fn lower_text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_lowercase()
}

/// The human-readable message of an error response.
fn error_message(json: &Value, body: &str) -> String {
    let places =
        ["/error/message", "/message", "/error", "/detail", "/detail/0/msg", "/0/error/message"];
    let found = places.iter().find_map(|place| json.pointer(place)?.as_str());
    let text = found.unwrap_or(body).trim();
    if text.is_empty() { "no reason given".to_owned() } else { text.to_owned() }
}

/// Cleans a server's message for display: one line, printable, short, and without the key.
pub(crate) fn clean_message(text: &str, key: Option<&ApiSecret>) -> String {
    let text = key.map_or_else(|| text.to_owned(), |key| key.scrub(text));
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || is_invisible(c))
        .filter(|w| !w.is_empty())
        .collect();
    let line = words.join(" ");
    match line.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
