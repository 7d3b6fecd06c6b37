//! The Model Context Protocol: skills for any agent that supports it. This is the only module that
//! uses its SDK.

mod change_notifications;
mod completion;
mod cursor;
mod extension;
mod handler;
mod limits;
mod manifest;
mod mime;
mod name;
mod prompts;
mod render;
mod resources;
mod served_text;
mod sessions;
mod skill_index;
mod skills;
mod state;
mod tools;
mod uri;

use std::sync::Arc;

use repertoire_agent::form::AnswerForm;
use rmcp::ServiceExt as _;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::serve_state::ServeState;
pub use extension::{ListChange, McpExtension};
use handler::McpHandler;
use sessions::CappedSessions;
use state::McpState;

/// The reason why a session on stdin and stdout ended.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// The client did not send a valid `initialize` request.
    #[error("the client did not begin a session: {0}")]
    Begin(String),
    /// The task that served the session failed.
    #[error("the session broke off: {0}")]
    Broken(String),
}

/// Serves one client on a pair of streams until it disconnects. With a form, the client gets only
/// the tools that fill it in, without an argument for the form's id.
///
/// # Errors
///
/// Returns an error if the session could not start or broke off.
pub async fn serve_stdio(
    serve_state: ServeState,
    form: Option<AnswerForm>,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    shutdown: CancellationToken,
) -> Result<(), McpError> {
    let state = Arc::new(McpState::new(serve_state, Vec::new()).with_form(form));
    state.warm_up();
    let handler = McpHandler::new(state, None);
    let session = handler
        .serve_with_ct((input, output), shutdown)
        .await
        .map_err(|error| McpError::Begin(error.to_string()))?;
    session.waiting().await.map_err(|error| McpError::Broken(error.to_string()))?;
    Ok(())
}

/// Calls one tool as a client would, and returns its text and whether it succeeded.
///
/// # Errors
///
/// Returns the names of the existing tools if there is no such tool.
pub async fn call_tool(
    serve_state: ServeState,
    tool: &str,
    arguments: serde_json::Map<String, serde_json::Value>,
) -> Result<(String, bool), Vec<String>> {
    let state = Arc::new(McpState::new(serve_state, Vec::new()));
    let Some(result) = tools::call_tool(&state, tool, arguments, CancellationToken::new()).await
    else {
        return Err(tools::list_tools(&state)
            .into_iter()
            .map(|tool| tool.name.into_owned())
            .collect());
    };
    let texts = result.content.iter().filter_map(|block| block.as_text());
    let text: Vec<&str> = texts.map(|text| text.text.as_str()).collect();
    Ok((text.join("\n"), result.is_error != Some(true)))
}

/// The service for `/mcp`. Requests are authenticated before they reach it.
pub(crate) fn http_service(
    serve_state: &ServeState,
    extension: Option<Arc<dyn McpExtension>>,
    sessions_max: usize,
    shutdown: CancellationToken,
) -> StreamableHttpService<McpHandler, CappedSessions> {
    let extra = extension.as_ref().map(|extension| extension.skills()).unwrap_or_default();
    let state = Arc::new(McpState::new(serve_state.clone(), extra));
    state.warm_up();
    // The guard checks hosts, since it also knows those that the user has allowed.
    let mut config = StreamableHttpServerConfig::default().disable_allowed_hosts();
    config.cancellation_token = shutdown;
    StreamableHttpService::new(
        move || Ok(McpHandler::new(Arc::clone(&state), extension.clone())),
        Arc::new(CappedSessions::new(sessions_max)),
        config,
    )
}
