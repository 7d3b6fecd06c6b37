//! Fixtures for the MCP conformance suite: tools, prompts, resources and a skill that exist only
//! for testing. The shipped server does not contain them.

mod client_requests;
mod content;
mod prompts;
mod resources;
mod server_messages;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use futures_util::future::BoxFuture;
use repertoire_serve::mcp::{ListChange, McpExtension};
use repertoire_skill::catalog::CatalogEntry;
use repertoire_skill::load::load_skill;
use repertoire_skill::skill::SkillOrigin;
use repertoire_skill::trust::TrustLevel;
use repertoire_text::{Limits, Source, fs};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, GetPromptRequestParams,
    GetPromptResponse, Prompt, ReadResourceResult, Resource, ResourceTemplate, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use tokio::sync::broadcast;

/// The fixtures of the suite.
pub(super) struct ConformanceFixtures {
    /// The folder for the skill.
    data: Utf8PathBuf,
    changes: broadcast::Sender<ListChange>,
    subscribed: Mutex<BTreeSet<String>>,
    /// The key that authenticates the states clients send back.
    secret: [u8; 32],
}

impl ConformanceFixtures {
    pub(super) fn new(data: &Utf8Path) -> Self {
        let (changes, _) = broadcast::channel(16);
        let secret = *b"a key that only this test knows!";
        ConformanceFixtures { data: data.to_owned(), changes, subscribed: Mutex::default(), secret }
    }

    async fn answer_call(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<CallToolResponse, ErrorData>> {
        let name = request.name.as_ref();
        if let Some(result) = content::call_tool(name, request.arguments.as_ref()) {
            return Some(Ok(result.into()));
        }
        if let Some(result) = client_requests::call_tool(request, context, &self.secret) {
            return Some(result);
        }
        let change = match name {
            "test_trigger_tool_change" => ListChange::Tools,
            "test_trigger_prompt_change" => ListChange::Prompts,
            _ => return server_messages::call_tool(request, context).await,
        };
        // There may be no receivers.
        let _ = self.changes.send(change);
        Some(Ok(CallToolResult::success(text_content("The list has changed.")).into()))
    }
}

impl McpExtension for ConformanceFixtures {
    fn skills(&self) -> Vec<CatalogEntry> {
        write_fixture_skill(&self.data).unwrap().into_iter().collect()
    }

    fn list_changes(&self) -> broadcast::Receiver<ListChange> {
        self.changes.subscribe()
    }

    fn tools(&self) -> Vec<Tool> {
        content::NAMES
            .iter()
            .chain(server_messages::NAMES)
            .chain(client_requests::NAMES)
            .chain(TRIGGERS)
            .map(|name| fixture_tool(name, json!({ "type": "object", "properties": {} })))
            .chain([
                fixture_tool("json_schema_2020_12_tool", content::schema_2020_12()),
                fixture_tool("test_param_header", content::schema_with_header()),
            ])
            .collect()
    }

    fn call_tool<'a>(
        &'a self,
        request: &'a CallToolRequestParams,
        context: &'a RequestContext<RoleServer>,
    ) -> BoxFuture<'a, Option<Result<CallToolResponse, ErrorData>>> {
        Box::pin(self.answer_call(request, context))
    }

    fn prompts(&self) -> Vec<Prompt> {
        prompts::list_prompts()
    }

    fn get_prompt(
        &self,
        request: &GetPromptRequestParams,
    ) -> Option<Result<GetPromptResponse, ErrorData>> {
        prompts::get_prompt(request)
    }

    fn resources(&self) -> Vec<Resource> {
        resources::list_resources()
    }

    fn resource_templates(&self) -> Vec<ResourceTemplate> {
        resources::list_templates()
    }

    fn read_resource(&self, uri: &str) -> Option<ReadResourceResult> {
        resources::read_resource(uri)
    }

    fn subscribe(&self, uri: String) {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).insert(uri);
    }

    fn unsubscribe(&self, uri: &str) {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
    }
}

const TRIGGERS: &[&str] = &["test_trigger_tool_change", "test_trigger_prompt_change"];

fn fixture_tool(name: &'static str, schema: Value) -> Tool {
    let schema = schema.as_object().cloned().unwrap_or_default();
    Tool::new(name, "A tool that the conformance suite calls", schema)
}

/// A content with one text block.
fn text_content(text: impl Into<String>) -> Vec<rmcp::model::ContentBlock> {
    vec![rmcp::model::ContentBlock::text(text)]
}

/// Deserialises a value of the protocol.
fn parse_fixture<T: for<'de> serde::Deserialize<'de>>(value: Value) -> T {
    serde_json::from_value(value).expect("the fixtures of this module fit the protocol")
}

const SKILL: &str = "---\nname: 00-conformance\ndescription: A skill that the conformance suite reads. Use when testing a client.\n\
    metadata:\n  purpose: test\n---\n\n# Conformance\n\nSee `references/notes.md`.\n";

/// Writes a skill with a sub-folder to disk, which the suite needs, and loads it.
fn write_fixture_skill(data: &Utf8Path) -> std::io::Result<Option<CatalogEntry>> {
    let dir = data.join("serve/conformance/00-conformance");
    let file = dir.join("SKILL.md");
    fs::write_atomic(&file, SKILL.as_bytes())?;
    fs::write_atomic(&dir.join("references/notes.md"), b"# Notes\n\nNothing to see.\n")?;
    let loaded = load_skill(
        Source::new(file.clone(), SKILL),
        SkillOrigin::from_file(file),
        &Limits::default(),
    );
    let entry = |skill: repertoire_skill::skill::Skill| CatalogEntry {
        id: skill.name.clone(),
        skill: skill.into(),
        trust: TrustLevel::Trusted,
    };
    Ok(loaded.skill.map(entry))
}
