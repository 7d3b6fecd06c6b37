//! Tools of MCP servers: configured programs that are started for a run, asked for their tools, and
//! stopped with it.
//!
//! Text from a server is untrusted: names are normalised, descriptions truncated and cleaned. A
//! server that does not start causes a warning, and never fails the run. Servers behind a URL are
//! not supported here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use futures_util::future::join_all;
use rmcp::service::{Peer, RoleClient};
use serde_json::Value;

use crate::event::{EventEmitter, EventKind};
use crate::tool::Tool;
use crate::tools::builtin_tools;

mod sanitise;
mod server;
mod tool;

use server::McpServerProcess;
use tool::McpTool;

/// Limits on MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct McpLimits {
    /// The time that a server has to start and list its tools.
    pub start: Duration,
    /// The timeout of a call.
    pub call: Duration,
    /// The time that a server has to exit after its stdin was closed.
    pub grace: Duration,
    /// The maximum number of tools of one server.
    pub tools_max: usize,
    /// The maximum length of a tool's description.
    pub description_chars_max: usize,
    /// The maximum size of the JSON Schema of a tool's arguments.
    pub schema_bytes_max: usize,
    /// The maximum length of a message from a server.
    pub message_bytes_max: usize,
}

impl Default for McpLimits {
    fn default() -> Self {
        McpLimits {
            start: Duration::from_secs(30),
            call: Duration::from_secs(120),
            grace: Duration::from_secs(2),
            tools_max: 128,
            description_chars_max: 2_000,
            schema_bytes_max: 64 * 1024,
            message_bytes_max: 8 * 1024 * 1024,
        }
    }
}

/// The configuration of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpServerConfig {
    /// A program that speaks the protocol on stdin and stdout.
    Program {
        command: String,
        args: Vec<String>,
        /// Environment variables, in addition to the few that every program needs.
        env: BTreeMap<String, String>,
    },
    /// A server on the network.
    Url(String),
}

/// An invalid server configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the MCP server `{name}` has {problem}")]
pub struct McpConfigError {
    pub name: String,
    pub problem: &'static str,
}

impl McpServerConfig {
    /// Parses an entry of an `mcpServers` object.
    ///
    /// # Errors
    ///
    /// Returns an error if it has neither a `command` nor a `url`, or if a field has the wrong
    /// type.
    pub fn from_json(name: &str, value: &Value) -> Result<Self, McpConfigError> {
        let wrong = |problem| McpConfigError { name: name.to_owned(), problem };
        if let Some(url) = value.get("url") {
            let url = url.as_str().ok_or_else(|| wrong("a `url` that is no text"))?;
            return Ok(McpServerConfig::Url(url.to_owned()));
        }
        let command =
            value.get("command").ok_or_else(|| wrong("neither a `command` nor a `url`"))?;
        let command = command.as_str().filter(|text| !text.is_empty());
        let command = command.ok_or_else(|| wrong("a `command` that is no text"))?.to_owned();
        let args = value.get("args").cloned().unwrap_or_else(|| Value::Array(Vec::new()));
        let args =
            serde_json::from_value(args).map_err(|_| wrong("`args` that are no list of texts"))?;
        let env =
            value.get("env").cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        let env = serde_json::from_value(env)
            .map_err(|_| wrong("an `env` that is no mapping of texts"))?;
        Ok(McpServerConfig::Program { command, args, env })
    }
}

/// The environment of the servers.
#[derive(Clone, Debug)]
pub struct McpEnvironment {
    /// The working folder.
    pub dir: Utf8PathBuf,
    /// The environment from which a few variables are passed on.
    pub environment: Vec<(String, String)>,
    pub limits: McpLimits,
}

/// The running servers. They are killed on drop.
#[derive(Debug, Default)]
pub struct McpServers {
    running: Vec<McpServerProcess>,
    tools: Vec<Arc<McpTool>>,
}

impl McpServers {
    /// Starts the servers concurrently. Failed servers and unusable tools cause warnings.
    pub async fn connect(
        configs: &BTreeMap<String, McpServerConfig>,
        place: &McpEnvironment,
        events: &EventEmitter,
    ) -> Self {
        let started =
            configs.iter().map(|(name, config)| McpServerProcess::start(name, config, place));
        let mut servers = McpServers::default();
        // Reserve the names of built-in tools: permission rules for those must not apply to a
        // server's tool.
        let mut names: BTreeSet<String> =
            builtin_tools().iter().map(|tool| tool.name().to_owned()).collect();
        for (name, started) in configs.keys().zip(join_all(started).await) {
            match started {
                Ok(server) => servers.add_server(server, name, &place.limits, &mut names, events),
                Err(error) => {
                    emit_warning(events, format!("the MCP server `{name}` is left out: {error}"))
                }
            }
        }
        servers
    }

    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.iter().map(|tool| Arc::clone(tool) as Arc<dyn Tool>).collect()
    }

    /// Stops the servers, with a grace period for each. Servers that are just dropped are killed at
    /// once.
    pub async fn close(self) {
        join_all(self.running.into_iter().map(McpServerProcess::stop)).await;
    }

    fn add_server(
        &mut self,
        server: McpServerProcess,
        name: &str,
        limits: &McpLimits,
        names: &mut BTreeSet<String>,
        events: &EventEmitter,
    ) {
        let peer: Peer<RoleClient> = server.peer();
        let offered = server.offered_tools();
        if offered.len() > limits.tools_max {
            let (offered, taken) = (offered.len(), limits.tools_max);
            emit_warning(
                events,
                format!(
                    "the MCP server `{name}` offers {offered} tools; the first {taken} are taken"
                ),
            );
        }
        for tool in offered.iter().take(limits.tools_max) {
            match McpTool::new(name, tool, peer.clone(), limits, names) {
                Ok(tool) => self.tools.push(Arc::new(tool)),
                Err(problem) => emit_warning(events, problem),
            }
        }
        self.running.push(server);
    }
}

fn emit_warning(events: &EventEmitter, message: String) {
    events.emit(EventKind::Warning { message });
}
