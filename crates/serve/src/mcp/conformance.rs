//! Fixtures for the MCP conformance suite: tools, prompts, resources and a skill that exist only
//! for testing. They are available only with `rep serve --conformance`, and the product does not
//! depend on them.

mod asking;
mod content;
mod prompts;
mod resources;
mod talking;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use camino::Utf8Path;
use repertoire_skill::catalog::Entry;
use repertoire_skill::load::load;
use repertoire_skill::skill::Origin;
use repertoire_skill::trust::Trust;
use repertoire_text::{Limits, Source, fs};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, GetPromptRequestParams,
    GetPromptResponse, Prompt, ReadResourceResult, Resource, ResourceTemplate, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use tokio::sync::broadcast;

/// A change that a test requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Tools,
    Prompts,
}

/// The fixtures of the suite.
pub(super) struct Fixtures {
    changes: broadcast::Sender<Change>,
    subscribed: Mutex<BTreeSet<String>>,
    /// The key that authenticates the states clients send back.
    secret: [u8; 32],
}

impl Fixtures {
    pub(super) fn new(secret: [u8; 32]) -> Self {
        let (changes, _) = broadcast::channel(16);
        Fixtures { changes, subscribed: Mutex::default(), secret }
    }

    /// Subscribes to changes that tests request.
    pub(super) fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    pub(super) fn tools(&self) -> Vec<Tool> {
        content::NAMES
            .iter()
            .chain(talking::NAMES)
            .chain(asking::NAMES)
            .chain(TRIGGERS)
            .map(|name| tool(name, json!({ "type": "object", "properties": {} })))
            .chain([
                tool("json_schema_2020_12_tool", content::schema_2020_12()),
                tool("test_param_header", content::schema_with_header()),
            ])
            .collect()
    }

    /// Calls a tool; `None` if it is not a fixture.
    pub(super) async fn call(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<CallToolResponse, ErrorData>> {
        let name = request.name.as_ref();
        if let Some(result) = content::call(name, request.arguments.as_ref()) {
            return Some(Ok(result.into()));
        }
        if let Some(result) = asking::call(request, context, &self.secret) {
            return Some(result);
        }
        let change = match name {
            "test_trigger_tool_change" => Change::Tools,
            "test_trigger_prompt_change" => Change::Prompts,
            _ => return talking::call(request, context).await,
        };
        // There may be no receivers.
        let _ = self.changes.send(change);
        Some(Ok(CallToolResult::success(said("The list has changed.")).into()))
    }

    pub(super) fn prompts(&self) -> Vec<Prompt> {
        prompts::all()
    }

    /// Returns a prompt; `None` if it is not a fixture.
    pub(super) fn prompt(
        &self,
        request: &GetPromptRequestParams,
    ) -> Option<Result<GetPromptResponse, ErrorData>> {
        prompts::get(request)
    }

    pub(super) fn resources(&self) -> Vec<Resource> {
        resources::all()
    }

    pub(super) fn templates(&self) -> Vec<ResourceTemplate> {
        resources::templates()
    }

    /// Reads a resource; `None` if it is not a fixture.
    pub(super) fn read(&self, uri: &str) -> Option<ReadResourceResult> {
        resources::read(uri)
    }

    /// Records a subscription to a resource.
    pub(super) fn subscribe(&self, uri: String) {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).insert(uri);
    }

    pub(super) fn unsubscribe(&self, uri: &str) {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
    }
}

const TRIGGERS: &[&str] = &["test_trigger_tool_change", "test_trigger_prompt_change"];

fn tool(name: &'static str, schema: Value) -> Tool {
    let schema = schema.as_object().cloned().unwrap_or_default();
    Tool::new(name, "A tool that the conformance suite calls", schema)
}

/// A content with one text block.
fn said(text: impl Into<String>) -> Vec<rmcp::model::ContentBlock> {
    vec![rmcp::model::ContentBlock::text(text)]
}

/// Deserialises a value of the protocol.
fn made<T: for<'de> serde::Deserialize<'de>>(value: Value) -> T {
    serde_json::from_value(value).expect("the fixtures of this module fit the protocol")
}

const SKILL: &str = "---\nname: 00-conformance\ndescription: A skill that the conformance suite reads. Use when testing a client.\n\
    metadata:\n  purpose: test\n---\n\n# Conformance\n\nSee `references/notes.md`.\n";

/// Writes a skill with a sub-folder to disk, which the suite needs, and loads it.
///
/// # Errors
///
/// Returns an error if it cannot be written.
pub(super) fn skill(data: &Utf8Path) -> std::io::Result<Option<Entry>> {
    let dir = data.join("serve/conformance/00-conformance");
    let file = dir.join("SKILL.md");
    fs::write_atomic(&file, SKILL.as_bytes())?;
    fs::write_atomic(&dir.join("references/notes.md"), b"# Notes\n\nNothing to see.\n")?;
    let loaded = load(Source::new(file.clone(), SKILL), Origin::file(file), &Limits::default());
    let entry = |skill: repertoire_skill::skill::Skill| Entry {
        id: skill.name.clone(),
        skill: skill.into(),
        trust: Trust::Trusted,
    };
    Ok(loaded.skill.map(entry))
}
