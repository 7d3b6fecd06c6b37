//! The MCP server of one client: dispatches its requests.
#![expect(
    deprecated,
    reason = "logging and subscriptions of the protocol of 2025 are served to extensions"
)]

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, ErrorCode, ExtensionCapabilities, GetPromptRequestParams, GetPromptResponse,
    Implementation, JsonObject, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use serde_json::json;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::change_notifications::{self, ChangeSources};
use super::extension::McpExtension;
use super::state::McpState;
use super::{completion, prompts, resources, skills, tools};

const INSTRUCTIONS: &str = "Skills are instructions, templates and knowledge for one kind of work each. \
When a task calls for knowledge or a way of working that you may not have, describe it to `skill_search` before you begin; \
load what fits with `skill` and follow it, and read the files that it names with `skill_resource`. \
If `skill_search` finds nothing that fits, go on without.";

/// Handles the requests of one client.
pub(crate) struct McpHandler {
    state: Arc<McpState>,
    extension: Option<Arc<dyn McpExtension>>,
    /// Stops the change notifications when the client disconnects.
    gone: CancellationToken,
    _guard: DropGuard,
}

impl McpHandler {
    pub(super) fn new(state: Arc<McpState>, extension: Option<Arc<dyn McpExtension>>) -> Self {
        let gone = CancellationToken::new();
        let guard = gone.clone().drop_guard();
        McpHandler { state, extension, gone, _guard: guard }
    }

    fn change_sources(&self) -> ChangeSources {
        let extension = self.extension.as_ref().map(|extension| extension.list_changes());
        ChangeSources { serve_state: self.state.serve_state.subscribe(), extension }
    }

    fn tools(&self) -> Vec<Tool> {
        let extension = self.extension.iter().flat_map(|extension| extension.tools());
        tools::list_tools(&self.state).into_iter().chain(extension).collect()
    }
}

fn request_cursor(request: Option<PaginatedRequestParams>) -> Option<String> {
    request.and_then(|request| request.cursor)
}

impl ServerHandler for McpHandler {
    fn get_info(&self) -> ServerConfig {
        let settings: JsonObject =
            [("directoryRead".to_owned(), json!(true))].into_iter().collect();
        let extensions = ExtensionCapabilities::from([(skills::EXTENSION.to_owned(), settings)]);
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_completions()
            .enable_extensions_with(extensions)
            .build();
        if self.extension.is_some() {
            capabilities.logging = Some(JsonObject::new());
            if let Some(tools) = &mut capabilities.tools {
                tools.list_changed = Some(true);
            }
            if let Some(resources) = &mut capabilities.resources {
                resources.subscribe = Some(true);
            }
        }
        let mut info = ServerConfig::default();
        info.capabilities = capabilities;
        info.server_info = Implementation::new("repertoire", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(INSTRUCTIONS.to_owned());
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let extra = || self.extension.as_ref()?.tools().into_iter().find(|tool| tool.name == name);
        tools::find_tool(&self.state, name).or_else(extra)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(extension) = &self.extension
            && let Some(answer) = extension.call_tool(&request, &context).await
        {
            return answer;
        }
        let given = request.arguments.unwrap_or_default();
        match tools::call_tool(&self.state, &request.name, given, context.ct).await {
            Some(result) => Ok(result.into()),
            None => {
                let message = format!("there is no tool `{}`", request.name);
                Err(ErrorData::invalid_params(message, None))
            }
        }
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let cursor = request_cursor(request);
        let mut result = prompts::list_prompts(&self.state, cursor.as_deref())?;
        if let Some(extension) = self.extension.as_ref().filter(|_| cursor.is_none()) {
            result.prompts.splice(0..0, extension.prompts());
        }
        Ok(result)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if let Some(answer) = self.extension.as_ref().and_then(|all| all.get_prompt(&request)) {
            return answer;
        }
        let result =
            self.state.run_blocking(move |state| prompts::get_prompt(state, &request)).await??;
        Ok(result.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.state.run_blocking(move |state| completion::complete_argument(state, &request)).await?
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request_cursor(request);
        let is_first = cursor.is_none();
        let list = move |state: &McpState| {
            resources::list_resources(&state.served_skills(), cursor.as_deref())
        };
        let mut result = self.state.run_blocking(list).await??;
        if let Some(extension) = self.extension.as_ref().filter(|_| is_first) {
            result.resources.splice(0..0, extension.resources());
        }
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut result = resources::list_templates();
        result
            .resource_templates
            .extend(self.extension.iter().flat_map(|all| all.resource_templates()));
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if let Some(result) =
            self.extension.as_ref().and_then(|all| all.read_resource(&request.uri))
        {
            return Ok(result.into());
        }
        let read =
            move |state: &McpState| resources::read_resource(&state.served_skills(), &request.uri);
        Ok(self.state.run_blocking(read).await??.into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        let name = method.clone();
        let answer = self
            .state
            .run_blocking(move |state| {
                skills::answer_request(&state.served_skills(), &method, params)
            })
            .await?;
        answer
            .unwrap_or_else(|| Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, name, None)))
            .map(CustomResult::new)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        tokio::spawn(change_notifications::notify_peer(
            context.peer,
            self.change_sources(),
            self.gone.clone(),
        ));
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        // The SDK removes undeclared capabilities from the filter.
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        change_notifications::notify_subscription(context, self.change_sources()).await;
        Ok(())
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.require_extension("logging/setLevel").map(|_| ())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.require_extension("resources/subscribe")?.subscribe(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.require_extension("resources/unsubscribe")?.unsubscribe(&request.uri);
        Ok(())
    }
}

impl McpHandler {
    fn require_extension(&self, method: &'static str) -> Result<&dyn McpExtension, ErrorData> {
        let missing = || ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None);
        self.extension.as_deref().ok_or_else(missing)
    }
}
