//! What went wrong, as `application/problem+json` (RFC 9457).

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;

/// Why a request was not answered.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Problem {
    /// The status, as in the response's first line.
    pub status: u16,
    /// The status in words.
    pub title: String,
    /// What went wrong, in a sentence.
    pub detail: String,
    /// What to do next, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The number of the request, as in `x-request-id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl Problem {
    /// What went wrong, in a sentence.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Problem").to_owned();
        let detail = detail.into();
        Problem { status: status.as_u16(), title, detail, hint: None, request_id: None }
    }

    /// Nothing of that name.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::NOT_FOUND, detail)
    }

    /// A request that makes no sense.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }

    /// What to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Writes the number of the request into an answer that is a problem; others stay as they are.
    pub(super) fn number(mut response: Response, request_id: &str) -> Response {
        let Some(mut problem) = response.extensions_mut().remove::<Problem>() else {
            return response;
        };
        problem.request_id = Some(request_id.to_owned());
        let (mut head, _) = response.into_parts();
        head.headers.remove(header::CONTENT_LENGTH);
        let (_, body) = axum::Json(problem).into_response().into_parts();
        Response::from_parts(head, body)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, axum::Json(&self)).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response.extensions_mut().insert(self);
        response
    }
}
