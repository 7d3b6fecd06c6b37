//! A tool of an MCP server.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::BoxFuture;
use repertoire_model::ToolSpec;
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock, ToolAnnotations};
use rmcp::service::{Peer, RoleClient};
use serde_json::Value;

use super::McpLimits;
use super::sanitise;
use crate::run::AgentRun;
use crate::tool::{Tool, ToolAccess, ToolInvocation, ToolOutput};

/// A tool of an MCP server.
#[derive(Debug)]
pub(super) struct McpTool {
    name: String,
    server: String,
    theirs: String,
    spec: ToolSpec,
    access: ToolAccess,
    peer: Peer<RoleClient>,
    timeout: Duration,
}

impl McpTool {
    /// Creates a tool with a unique name, and adds that name to `taken`.
    pub(super) fn new(
        server: &str,
        tool: &rmcp::model::Tool,
        peer: Peer<RoleClient>,
        limits: &McpLimits,
        taken: &mut BTreeSet<String>,
    ) -> Result<Self, String> {
        let shown = sanitise::clean_text(&tool.name, 64);
        let schema = Value::Object((*tool.input_schema).clone());
        let bytes = schema.to_string().len();
        if bytes > limits.schema_bytes_max {
            let most = limits.schema_bytes_max;
            return Err(format!(
                "the tool `{shown}` of the MCP server `{server}` is left out: its schema has {bytes} bytes, the limit is {most}"
            ));
        }
        let name = sanitise::unique_tool_name(server, &tool.name, taken);
        taken.insert(name.to_ascii_lowercase());
        let description = tool.description.as_deref().unwrap_or_default();
        Ok(McpTool {
            spec: ToolSpec {
                name: name.clone(),
                description: sanitise::clean_text(description, limits.description_chars_max),
                parameters: sanitise::clean_schema(&schema, limits.description_chars_max),
            },
            name,
            server: server.to_owned(),
            theirs: tool.name.to_string(),
            access: tool.annotations.as_ref().map_or(ToolAccess::Execute, access_from_hints),
            peer,
            timeout: limits.call,
        })
    }

    async fn call_server(&self, call: ToolInvocation<'_>) -> ToolOutput {
        let mut request = CallToolRequestParams::new(self.theirs.clone());
        if let Value::Object(arguments) = call.arguments {
            request = request.with_arguments(arguments.clone());
        }
        let server = &self.server;
        tokio::select! {
            result = self.peer.call_tool(request) => match result {
                Ok(result) => convert_result(&result),
                Err(error) => {
                    ToolOutput::error(format!("the MCP server `{server}` did not answer the call: {error}"))
                }
            },
            () = tokio::time::sleep(self.timeout) => ToolOutput::error(format!(
                "the MCP server `{server}` did not answer within {} s",
                self.timeout.as_secs()
            )),
            () = call.run.cancel.cancelled() => ToolOutput::error("the run was stopped"),
        }
    }
}

impl Tool for McpTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn spec(&self, _run: &AgentRun) -> ToolSpec {
        self.spec.clone()
    }

    fn access(&self, _arguments: &Value) -> ToolAccess {
        self.access
    }

    fn subject(&self, arguments: &Value) -> String {
        arguments_text(arguments)
    }

    fn call<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(self.call_server(call))
    }
}

/// Derives the access from the server's hints. A read-only tool is only classified as reading if it
/// stays within the server, since open-world tools can leak data. By the protocol, a missing
/// open-world hint means true.
fn access_from_hints(hints: &ToolAnnotations) -> ToolAccess {
    match (hints.read_only_hint, hints.open_world_hint) {
        (Some(true), Some(false)) => ToolAccess::Read,
        (Some(true), _) => ToolAccess::Network,
        _ => ToolAccess::Execute,
    }
}

/// Returns all arguments: the important one is unknown, and the user must see everything when asked
/// for permission.
fn arguments_text(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        other => other.to_string(),
    }
}

/// Converts a result to text, with placeholders for content that is not text.
fn convert_result(result: &CallToolResult) -> ToolOutput {
    let mut parts: Vec<String> = result.content.iter().map(content_text).collect();
    if parts.is_empty()
        && let Some(value) = &result.structured_content
    {
        parts.push(value.to_string());
    }
    let text = parts.join("\n");
    if result.is_error == Some(true) { ToolOutput::error(text) } else { ToolOutput::ok(text) }
}

fn content_text(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[an image, {}]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[a sound, {}]", audio.mime_type),
        ContentBlock::Resource(_) => serde_json::to_string(block).unwrap_or_default(),
        ContentBlock::ResourceLink(link) => format!("[a link to {}]", link.uri),
        _ => "[something that is no text]".to_owned(),
    }
}
