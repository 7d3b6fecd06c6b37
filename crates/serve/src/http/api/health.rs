//! The health check.

use http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Answer, Api, Call};

/// The health of the daemon.
#[derive(Debug, Serialize, JsonSchema)]
struct Health {
    /// Always `ok`.
    status: &'static str,
    /// The version of Repertoire.
    version: &'static str,
}

pub(super) fn add(api: Api) -> Api {
    api.add(Method::GET, "/healthz", "daemon", "Whether the daemon answers", health)
}

async fn health(_: Call) -> Answer<Health> {
    Ok(Health { status: "ok", version: env!("CARGO_PKG_VERSION") })
}
