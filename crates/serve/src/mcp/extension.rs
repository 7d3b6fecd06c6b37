//! A hook for programs that serve more over MCP than skills. `rep` uses none.

use futures_util::future::BoxFuture;
use repertoire_skill::catalog::CatalogEntry;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse, Prompt,
    ReadResourceResult, Resource, ResourceTemplate, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use tokio::sync::broadcast;

/// A list of an extension that has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListChange {
    Tools,
    Prompts,
}

/// Tools, prompts, resources and skills that are served in addition to Repertoire's own.
///
/// A server with an extension also declares the capabilities that Repertoire itself does not need:
/// logging, subscriptions to resources, and changes of the tools.
pub trait McpExtension: Send + Sync {
    /// Skills besides those of the catalog.
    fn skills(&self) -> Vec<CatalogEntry>;

    /// Subscribes to changes of the extension's lists.
    fn list_changes(&self) -> broadcast::Receiver<ListChange>;

    fn tools(&self) -> Vec<Tool>;

    /// Calls a tool; `None` if it does not belong to the extension.
    fn call_tool<'a>(
        &'a self,
        request: &'a CallToolRequestParams,
        context: &'a RequestContext<RoleServer>,
    ) -> BoxFuture<'a, Option<Result<CallToolResponse, ErrorData>>>;

    fn prompts(&self) -> Vec<Prompt>;

    /// Returns a prompt; `None` if it does not belong to the extension.
    fn get_prompt(
        &self,
        request: &GetPromptRequestParams,
    ) -> Option<Result<GetPromptResponse, ErrorData>>;

    fn resources(&self) -> Vec<Resource>;

    fn resource_templates(&self) -> Vec<ResourceTemplate>;

    /// Reads a resource; `None` if it does not belong to the extension.
    fn read_resource(&self, uri: &str) -> Option<ReadResourceResult>;

    /// Records a subscription to a resource.
    fn subscribe(&self, uri: String);

    fn unsubscribe(&self, uri: &str);
}
