//! Metrics for Prometheus.

use axum::response::{IntoResponse as _, Response};
use http::header;

use super::runs::journal_problem;
use super::{ApiBuilder, ApiCall, ApiResult};
use crate::http::metrics::MEDIA_TYPE;
use crate::http::openapi::ResponseShape;

pub(super) fn add_endpoints(api: ApiBuilder) -> ApiBuilder {
    let shape = ResponseShape::text(MEDIA_TYPE);
    api.get_other("/metrics", "daemon", "Figures for Prometheus", shape, show_metrics)
}

async fn show_metrics(call: ApiCall) -> ApiResult<Response> {
    let text =
        call.serve_state.figures().render_text(&call.serve_state).await.map_err(journal_problem)?;
    let kind = format!("{MEDIA_TYPE}; version=1.0.0; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
