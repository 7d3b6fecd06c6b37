//! Sending calls, with retries.

use std::time::Duration;

use repertoire_model::ApiSecret;
use reqwest::header::HeaderMap;
use reqwest::{Method, Response, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::GitHubClient;
use super::error::ClientError;
use super::limits::{ANSWER_BYTES_MAX, MESSAGE_CHARS_MAX, REFUSAL_BYTES_MAX};
use super::retry::{CallFailure, CallRepeatability, CallRetryAdvice, RateLimitHeaders};

/// A call to the API.
pub(super) struct ClientCall {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) body: Option<Value>,
    pub(super) accept: &'static str,
    pub(super) repeatable: CallRepeatability,
}

pub(super) const JSON: &str = "application/vnd.github+json";
pub(super) const DIFF: &str = "application/vnd.github.diff";

impl ClientCall {
    pub(super) fn get(url: Url) -> Self {
        ClientCall {
            method: Method::GET,
            url,
            body: None,
            accept: JSON,
            repeatable: CallRepeatability::Yes,
        }
    }

    /// An idempotent call that changes something.
    pub(super) fn change(method: Method, url: Url, body: Value) -> Self {
        ClientCall {
            method,
            url,
            body: Some(body),
            accept: JSON,
            repeatable: CallRepeatability::Yes,
        }
    }

    /// A call that is not idempotent.
    pub(super) fn once_only(method: Method, url: Url, body: Value) -> Self {
        let repeatable = CallRepeatability::AfterLooking;
        ClientCall { method, url, body: Some(body), accept: JSON, repeatable }
    }

    pub(super) fn delete(url: Url) -> Self {
        ClientCall { method: Method::DELETE, ..ClientCall::get(url) }
    }

    /// Returns the method and path, for error messages.
    fn describe(&self) -> String {
        format!("{} {}", self.method, self.url.path())
    }
}

/// A successful response.
pub(super) struct ClientResponse {
    what: String,
    pub(super) headers: HeaderMap,
    bytes: Vec<u8>,
    token: Option<ApiSecret>,
}

impl ClientResponse {
    pub(super) fn decode_json<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        serde_json::from_slice(&self.bytes).map_err(|error| self.unclear_error(error.to_string()))
    }

    pub(super) fn into_text(self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    pub(super) fn unclear_error(&self, message: String) -> ClientError {
        let error = ClientError::Unclear { what: self.what.clone(), message };
        scrub_error(self.token.as_ref(), error)
    }
}

/// The response, or the effect of an earlier attempt.
pub(super) enum CallResult<T> {
    Answered(ClientResponse),
    Found(T),
}

impl GitHubClient {
    /// Sends an idempotent call.
    pub(super) async fn send_call(&self, call: &ClientCall) -> Result<ClientResponse, ClientError> {
        let nothing = || std::future::ready(Ok(None::<std::convert::Infallible>));
        match self.send_or_find(call, nothing).await? {
            CallResult::Answered(answer) => Ok(answer),
            CallResult::Found(never) => match never {},
        }
    }

    /// Sends a call. Before a call that is not idempotent is repeated, `look` checks whether it had
    /// an effect.
    pub(super) async fn send_or_find<T, L, F>(
        &self,
        call: &ClientCall,
        look: L,
    ) -> Result<CallResult<T>, ClientError>
    where
        L: Fn() -> F,
        F: Future<Output = Result<Option<T>, ClientError>>,
    {
        let mut attempt = 1;
        loop {
            let (failure, error) = match self.send_once(call).await {
                Ok(answer) => return Ok(CallResult::Answered(answer)),
                Err(failed) => failed,
            };
            let random = (self.random)();
            let now_ms = (self.clock)();
            let advice =
                self.policy.advise_retry(&failure, call.repeatable, attempt, random, now_ms);
            match advice {
                CallRetryAdvice::Retry { after_ms } => sleep_ms(after_ms).await,
                CallRetryAdvice::Look { after_ms } => {
                    sleep_ms(after_ms).await;
                    if let Some(found) = look().await? {
                        return Ok(CallResult::Found(found));
                    }
                }
                CallRetryAdvice::Limited { until_ms } => {
                    let message = match failure {
                        CallFailure::Status { message, .. } => message,
                        _ => String::new(),
                    };
                    return Err(scrub_error(
                        self.token.as_ref(),
                        ClientError::Limited { what: call.describe(), until_ms, message },
                    ));
                }
                CallRetryAdvice::GiveUp => return Err(scrub_error(self.token.as_ref(), error)),
            }
            attempt += 1;
        }
    }

    async fn send_once(
        &self,
        call: &ClientCall,
    ) -> Result<ClientResponse, (CallFailure, ClientError)> {
        let limit = Duration::from_millis(self.timeout_ms);
        match tokio::time::timeout(limit, self.exchange_call(call)).await {
            Ok(done) => done,
            Err(_) => {
                let limit_ms = self.timeout_ms;
                Err((
                    CallFailure::NoAnswer,
                    ClientError::TimedOut { what: call.describe(), limit_ms },
                ))
            }
        }
    }

    async fn exchange_call(
        &self,
        call: &ClientCall,
    ) -> Result<ClientResponse, (CallFailure, ClientError)> {
        let what = call.describe();
        let mut request = self
            .http
            .request(call.method.clone(), call.url.clone())
            .headers(self.headers.clone())
            .header("accept", call.accept);
        if let Some(body) = &call.body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = request.send().await.map_err(|error| {
            let failure =
                if error.is_connect() { CallFailure::NotSent } else { CallFailure::NoAnswer };
            (failure, ClientError::Network { what: what.clone(), message: root_cause(error) })
        })?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        if !(200..300).contains(&status) {
            // The message is useful, but failing to read it is not worth another error.
            let bytes = read_body(response, REFUSAL_BYTES_MAX).await.unwrap_or_default();
            return Err(error_of_status(what, status, &headers, &bytes));
        }
        match read_body(response, ANSWER_BYTES_MAX).await {
            Ok(bytes) => Ok(ClientResponse { what, headers, bytes, token: self.token.clone() }),
            Err(BodyError::TooLong) => {
                let message = format!("it has more than {ANSWER_BYTES_MAX} bytes");
                Err((CallFailure::Unclear, ClientError::Unclear { what, message }))
            }
            Err(BodyError::Broken(message)) => {
                Err((CallFailure::NoAnswer, ClientError::Network { what, message }))
            }
        }
    }
}

fn scrub_error(token: Option<&ApiSecret>, error: ClientError) -> ClientError {
    match token {
        Some(token) => error.map_texts(|text| token.scrub(text)),
        None => error,
    }
}

async fn sleep_ms(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

enum BodyError {
    TooLong,
    Broken(String),
}

async fn read_body(mut response: Response, bytes_max: usize) -> Result<Vec<u8>, BodyError> {
    let mut bytes = Vec::new();
    while let Some(chunk) =
        response.chunk().await.map_err(|error| BodyError::Broken(root_cause(error)))?
    {
        if bytes.len() + chunk.len() > bytes_max {
            return Err(BodyError::TooLong);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Returns the root cause of an error, without the URL, which the error already contains.
fn root_cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut deepest: &dyn std::error::Error = &error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

/// Converts an error status to a failure and an error.
fn error_of_status(
    what: String,
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
) -> (CallFailure, ClientError) {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let number = |name: &str| text(name).and_then(|value| value.trim().parse().ok());
    let allowance = RateLimitHeaders {
        remaining: number("x-ratelimit-remaining"),
        reset_s: number("x-ratelimit-reset"),
        retry_after_s: number("retry-after"),
    };
    let message = error_message(status, body);
    let failure = CallFailure::Status { status, allowance, message: message.clone() };
    let error = match status {
        401 => ClientError::Unauthorised { what, message },
        403 => {
            let needs = text("x-accepted-github-permissions")
                .map(repertoire_text::terminal::printable_line);
            ClientError::Forbidden { what, needs: needs.filter(|needs| !needs.is_empty()), message }
        }
        404 => ClientError::NotFound { what },
        500..=599 => ClientError::Server { what, status, message },
        _ => ClientError::Refused { what, status, message },
    };
    (failure, error)
}

/// Returns GitHub's error message with the errors of single fields.
fn error_message(status: u16, body: &[u8]) -> String {
    if (300..400).contains(&status) {
        return "it has moved; use its new name".to_owned();
    }
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        return "no message".to_owned();
    };
    let mut out = body["message"].as_str().unwrap_or("no message").to_owned();
    for error in body["errors"].as_array().into_iter().flatten().take(5) {
        let part = |key: &str| error[key].as_str().unwrap_or_default();
        let said = match (error.as_str(), error["message"].as_str()) {
            (Some(text), _) | (None, Some(text)) => text.to_owned(),
            (None, None) => format!("{} {} {}", part("resource"), part("field"), part("code")),
        };
        out.push_str("; ");
        out.push_str(said.trim());
    }
    repertoire_text::terminal::printable_line(&out).chars().take(MESSAGE_CHARS_MAX).collect()
}
