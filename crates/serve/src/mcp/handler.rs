//! One client's server.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::house::House;

/// Answers one client.
#[derive(Clone)]
pub(crate) struct Handler {
    house: House,
}

/// The arguments of `skill`.
#[derive(Debug, Deserialize, JsonSchema)]
struct SkillArguments {
    /// The name of the skill.
    name: String,
}

impl Handler {
    pub(super) fn new(house: House) -> Self {
        Handler { house }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let mut info = ServerConfig::default();
        info.capabilities = capabilities;
        info.server_info = Implementation::new("repertoire", env!("CARGO_PKG_VERSION"));
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = schemars::schema_for!(SkillArguments);
        let schema = schema.as_object().cloned().unwrap_or_default();
        let tool = Tool::new("skill", "Load a skill by its name", Arc::new(schema));
        let mut result = ListToolsResult::default();
        result.tools = vec![tool];
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let arguments: SkillArguments = serde_json::from_value(arguments)
            .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        let catalog = self.house.catalog();
        let result = match catalog.resolve(&arguments.name) {
            Ok(entry) => CallToolResult::success(vec![ContentBlock::text(entry.skill.text())]),
            Err(_) => CallToolResult::error(vec![ContentBlock::text("there is no such skill")]),
        };
        Ok(result.into())
    }
}
