//! The health check.

use http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use super::{ApiBuilder, ApiCall, ApiResult};

/// The health of the daemon.
#[derive(Debug, Serialize, JsonSchema)]
struct DaemonHealth {
    /// Always `ok`.
    status: &'static str,
    /// The version of Repertoire.
    version: &'static str,
}

pub(super) fn add_endpoints(api: ApiBuilder) -> ApiBuilder {
    api.add(Method::GET, "/healthz", "daemon", "Whether the daemon answers", show_health)
}

async fn show_health(_: ApiCall) -> ApiResult<DaemonHealth> {
    Ok(DaemonHealth { status: "ok", version: env!("CARGO_PKG_VERSION") })
}
