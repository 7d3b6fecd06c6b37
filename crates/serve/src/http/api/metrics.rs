//! Metrics for Prometheus.

use axum::response::{IntoResponse as _, Response};
use http::header;

use super::runs::failed;
use super::{Answer, Api, Call};
use crate::http::metrics::MEDIA_TYPE;
use crate::http::openapi::Shape;

pub(super) fn add(api: Api) -> Api {
    let shape = Shape::text(MEDIA_TYPE);
    api.get_other("/metrics", "daemon", "Figures for Prometheus", shape, metrics)
}

async fn metrics(call: Call) -> Answer<Response> {
    let text = call.house.figures().text(&call.house).await.map_err(failed)?;
    let kind = format!("{MEDIA_TYPE}; version=1.0.0; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
