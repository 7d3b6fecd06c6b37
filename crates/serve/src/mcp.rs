//! The Model Context Protocol: skills for any agent that speaks it. This is the only place that names its SDK.

mod handler;

use std::sync::Arc;

use rmcp::ServiceExt as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::house::House;
use handler::Handler;

/// Why a session on standard input and output ended.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// Nothing that was understood came before anything else.
    #[error("the client did not begin a session: {0}")]
    Begin(String),
    /// The task that served it is gone.
    #[error("the session broke off: {0}")]
    Broken(String),
}

/// Serves one client on a pair of streams, until it goes.
///
/// # Errors
///
/// [`McpError`].
pub async fn stdio(
    house: House,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    shutdown: CancellationToken,
) -> Result<(), McpError> {
    let handler = Handler::new(house);
    let session = handler
        .serve_with_ct((input, output), shutdown)
        .await
        .map_err(|error| McpError::Begin(error.to_string()))?;
    session.waiting().await.map_err(|error| McpError::Broken(error.to_string()))?;
    Ok(())
}

/// What answers `/mcp`. Who may come in is decided before.
pub(crate) fn http_service(
    house: &House,
    _conformance: bool,
    shutdown: CancellationToken,
) -> StreamableHttpService<Handler, LocalSessionManager> {
    let house = house.clone();
    let mut config = StreamableHttpServerConfig::default();
    config.cancellation_token = shutdown;
    StreamableHttpService::new(
        move || Ok(Handler::new(house.clone())),
        Arc::new(LocalSessionManager::default()),
        config,
    )
}
