//! Errors as `application/problem+json` (RFC 9457).

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;

/// The reason why a request failed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HttpProblem {
    /// The HTTP status.
    pub status: u16,
    /// The name of the status.
    pub title: String,
    /// An explanation, in one sentence.
    pub detail: String,
    /// A suggestion what to do next, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The id of the request, as in `x-request-id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl HttpProblem {
    /// Creates a problem; `detail` is one sentence.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Problem").to_owned();
        let detail = detail.into();
        HttpProblem { status: status.as_u16(), title, detail, hint: None, request_id: None }
    }

    /// Creates a problem with status 404.
    pub fn not_found(detail: impl Into<String>) -> Self {
        HttpProblem::new(StatusCode::NOT_FOUND, detail)
    }

    /// Creates a problem with status 400.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        HttpProblem::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Adds a suggestion what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the request id to a response that is a problem; other responses are unchanged.
    pub(super) fn add_request_id(mut response: Response, request_id: &str) -> Response {
        let Some(mut problem) = response.extensions_mut().remove::<HttpProblem>() else {
            return response;
        };
        problem.request_id = Some(request_id.to_owned());
        let (mut head, _) = response.into_parts();
        head.headers.remove(header::CONTENT_LENGTH);
        let (_, body) = axum::Json(problem).into_response().into_parts();
        Response::from_parts(head, body)
    }
}

impl IntoResponse for HttpProblem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, axum::Json(&self)).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response.extensions_mut().insert(self);
        response
    }
}
