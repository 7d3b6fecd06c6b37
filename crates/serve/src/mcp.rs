//! The Model Context Protocol: skills for any agent that speaks it. This is the only place that names its SDK.

mod completion;
mod conformance;
mod copy;
mod cursor;
mod handler;
mod limits;
mod manifest;
mod mime;
mod name;
mod news;
mod prompts;
mod render;
mod resources;
mod sessions;
mod shelf;
mod skills;
mod state;
mod tools;
mod uri;

use std::sync::Arc;

use repertoire_agent::form::Form;
use rmcp::ServiceExt as _;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::house::House;
use conformance::Fixtures;
use handler::Handler;
use sessions::CappedSessions;
use state::State;

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

/// Serves one client on a pair of streams, until it goes. With a form, the client's tools are those that fill it in, and
/// they need not be told which.
///
/// # Errors
///
/// [`McpError`].
pub async fn stdio(
    house: House,
    form: Option<Form>,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    shutdown: CancellationToken,
) -> Result<(), McpError> {
    let state = Arc::new(State::new(house, Vec::new()).filling_in(form));
    state.warm();
    let handler = Handler::new(state, None);
    let session = handler
        .serve_with_ct((input, output), shutdown)
        .await
        .map_err(|error| McpError::Begin(error.to_string()))?;
    session.waiting().await.map_err(|error| McpError::Broken(error.to_string()))?;
    Ok(())
}

/// Calls one tool as a client would, and gives what the client would read: text, and whether it was done. Without such a tool
/// it gives the names of those that there are.
///
/// # Errors
///
/// The names, where there is no such tool.
pub async fn call(
    house: House,
    tool: &str,
    arguments: serde_json::Map<String, serde_json::Value>,
) -> Result<(String, bool), Vec<String>> {
    let state = Arc::new(State::new(house, Vec::new()));
    let Some(result) = tools::answer(&state, tool, arguments, CancellationToken::new()).await
    else {
        return Err(tools::list(&state).into_iter().map(|tool| tool.name.into_owned()).collect());
    };
    let texts = result.content.iter().filter_map(|block| block.as_text());
    let text: Vec<&str> = texts.map(|text| text.text.as_str()).collect();
    Ok((text.join("\n"), result.is_error != Some(true)))
}

/// What answers `/mcp`. Who may come in is decided before.
pub(crate) fn http_service(
    house: &House,
    conformance: bool,
    sessions_max: usize,
    shutdown: CancellationToken,
) -> StreamableHttpService<Handler, CappedSessions> {
    let mut extra = Vec::new();
    let mut fixtures = None;
    if conformance {
        // Without the skill the suite says what it misses.
        extra.extend(conformance::skill(house.data()).ok().flatten());
        let mut secret = [0; 32];
        fixtures = getrandom::fill(&mut secret).ok().map(|()| Arc::new(Fixtures::new(secret)));
    }
    let state = Arc::new(State::new(house.clone(), extra));
    state.warm();
    // Hosts are the guard's business, which also knows those that a user has allowed.
    let mut config = StreamableHttpServerConfig::default().disable_allowed_hosts();
    config.cancellation_token = shutdown;
    StreamableHttpService::new(
        move || Ok(Handler::new(Arc::clone(&state), fixtures.clone())),
        Arc::new(CappedSessions::new(sessions_max)),
        config,
    )
}
