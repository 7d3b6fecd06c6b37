//! A tool of an MCP server.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::BoxFuture;
use repertoire_model::ToolSpec;
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock, ToolAnnotations};
use rmcp::service::{Peer, RoleClient};
use serde_json::Value;

use super::McpLimits;
use super::words;
use crate::run::Run;
use crate::tool::{Access, Call, Output, Tool};

/// A tool of an MCP server.
#[derive(Debug)]
pub(super) struct ServerTool {
    name: String,
    server: String,
    theirs: String,
    spec: ToolSpec,
    access: Access,
    peer: Peer<RoleClient>,
    timeout: Duration,
}

impl ServerTool {
    /// Creates a tool with a unique name, and adds that name to `taken`.
    pub(super) fn new(
        server: &str,
        tool: &rmcp::model::Tool,
        peer: Peer<RoleClient>,
        limits: &McpLimits,
        taken: &mut BTreeSet<String>,
    ) -> Result<Self, String> {
        let shown = words::clean(&tool.name, 64);
        let schema = Value::Object((*tool.input_schema).clone());
        let bytes = schema.to_string().len();
        if bytes > limits.schema_bytes_max {
            let most = limits.schema_bytes_max;
            return Err(format!(
                "the tool `{shown}` of the MCP server `{server}` is left out: its schema has {bytes} bytes, the limit is {most}"
            ));
        }
        let name = words::name(server, &tool.name, taken);
        taken.insert(name.to_ascii_lowercase());
        let description = tool.description.as_deref().unwrap_or_default();
        Ok(ServerTool {
            spec: ToolSpec {
                name: name.clone(),
                description: words::clean(description, limits.description_chars_max),
                parameters: words::clean_schema(&schema, limits.description_chars_max),
            },
            name,
            server: server.to_owned(),
            theirs: tool.name.to_string(),
            access: tool.annotations.as_ref().map_or(Access::Execute, access_of),
            peer,
            timeout: limits.call,
        })
    }

    async fn ask(&self, call: Call<'_>) -> Output {
        let mut request = CallToolRequestParams::new(self.theirs.clone());
        if let Value::Object(arguments) = call.arguments {
            request = request.with_arguments(arguments.clone());
        }
        let server = &self.server;
        tokio::select! {
            result = self.peer.call_tool(request) => match result {
                Ok(result) => output(&result),
                Err(error) => {
                    Output::error(format!("the MCP server `{server}` did not answer the call: {error}"))
                }
            },
            () = tokio::time::sleep(self.timeout) => Output::error(format!(
                "the MCP server `{server}` did not answer within {} s",
                self.timeout.as_secs()
            )),
            () = call.run.cancel.cancelled() => Output::error("the run was stopped"),
        }
    }
}

impl Tool for ServerTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn spec(&self, _run: &Run) -> ToolSpec {
        self.spec.clone()
    }

    fn access(&self, _arguments: &Value) -> Access {
        self.access
    }

    fn subject(&self, arguments: &Value) -> String {
        subject(arguments)
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Output> {
        Box::pin(self.ask(call))
    }
}

/// Derives the access from the server's hints. A read-only tool is only classified as reading if it
/// stays within the server, since open-world tools can leak data. By the protocol, a missing
/// open-world hint means true.
fn access_of(hints: &ToolAnnotations) -> Access {
    match (hints.read_only_hint, hints.open_world_hint) {
        (Some(true), Some(false)) => Access::Read,
        (Some(true), _) => Access::Network,
        _ => Access::Execute,
    }
}

/// Returns all arguments: the important one is unknown, and the user must see everything when asked
/// for permission.
fn subject(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        other => other.to_string(),
    }
}

/// Converts a result to text, with placeholders for content that is not text.
fn output(result: &CallToolResult) -> Output {
    let mut parts: Vec<String> = result.content.iter().map(part).collect();
    if parts.is_empty()
        && let Some(value) = &result.structured_content
    {
        parts.push(value.to_string());
    }
    let text = parts.join("\n");
    if result.is_error == Some(true) { Output::error(text) } else { Output::ok(text) }
}

fn part(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[an image, {}]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[a sound, {}]", audio.mime_type),
        ContentBlock::Resource(_) => serde_json::to_string(block).unwrap_or_default(),
        ContentBlock::ResourceLink(link) => format!("[a link to {}]", link.uri),
        _ => "[something that is no text]".to_owned(),
    }
}
