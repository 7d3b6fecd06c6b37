//! The event stream.

use axum::response::Response;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::runs::journal_problem;
use super::{ApiBuilder, ApiCall, ApiResult, Nothing};
use crate::http::events::{EventSubscription, respond_with_events};
use crate::http::openapi::ResponseShape;

/// A filter for events.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct EventFilter {
    /// Only events of this run: its id, the start or end of it, its name, or `last`.
    run: Option<String>,
    /// Start after the event with this `id` instead of with new events. The header `Last-Event-ID` has the same
    /// effect.
    #[schemars(regex(pattern = r"^[0-9]{1,18}-[0-9]{1,18}$"))]
    after: Option<String>,
}

pub(super) fn add_endpoints(api: ApiBuilder) -> ApiBuilder {
    api.get_other(
        "/api/v1/events",
        "events",
        "Hear what happens, as it happens, and go on where a connection was lost",
        ResponseShape::text("text/event-stream"),
        stream_events,
    )
    .refuses(StatusCode::NOT_FOUND, "There is no such run.")
    .refuses(StatusCode::CONFLICT, "More than one run is called so.")
}

async fn stream_events(call: ApiCall<Nothing, EventFilter>) -> ApiResult<Response> {
    let after = EventSubscription::resume_cursor(call.query.after.as_deref(), &call.headers)?;
    let run = match &call.query.run {
        None => None,
        Some(run) => Some(
            call.serve_state
                .journal()
                .await
                .map_err(journal_problem)?
                .find_run(run)
                .await
                .map_err(journal_problem)?
                .id,
        ),
    };
    respond_with_events(&call.serve_state, EventSubscription { after, run }).await
}
