//! The event stream.

use axum::response::Response;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::runs::failed;
use super::{Answer, Api, Call, Nothing};
use crate::http::events::{Wanted, respond};
use crate::http::openapi::Shape;

/// A filter for events.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct Which {
    /// Only events of this run: its id, the start or end of it, its name, or `last`.
    run: Option<String>,
    /// Start after the event with this `id` instead of with new events. The header `Last-Event-ID` has the same
    /// effect.
    #[schemars(regex(pattern = r"^[0-9]{1,18}-[0-9]{1,18}$"))]
    after: Option<String>,
}

pub(super) fn add(api: Api) -> Api {
    api.get_other(
        "/api/v1/events",
        "events",
        "Hear what happens, as it happens, and go on where a connection was lost",
        Shape::text("text/event-stream"),
        hear,
    )
    .refuses(StatusCode::NOT_FOUND, "There is no such run.")
    .refuses(StatusCode::CONFLICT, "More than one run is called so.")
}

async fn hear(call: Call<Nothing, Which>) -> Answer<Response> {
    let after = Wanted::cursor(call.query.after.as_deref(), &call.headers)?;
    let run = match &call.query.run {
        None => None,
        Some(run) => {
            Some(call.house.journal().await.map_err(failed)?.find(run).await.map_err(failed)?.id)
        }
    };
    respond(&call.house, Wanted { after, run }).await
}
