//! Tools for clients that don't support the Skills extension. One tool per file, except the form
//! tools, which belong together; each has typed arguments and a typed result. [`TOOLS`] lists them.

mod form;
mod skill;
mod skill_resource;
mod skill_search;
mod workflow;
mod workflow_record;
mod workflow_start;
mod workflow_step;

use std::sync::{Arc, LazyLock};

use futures_util::future::BoxFuture;
use repertoire_agent::form::{FINDING, HAND_IN, VERDICT};
use repertoire_text::invisible;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::state::McpState;

/// All tools, in the order in which they are listed.
const TOOLS: &[ServedToolRow] = &[
    tool_row::<skill_search::SkillSearchTool>(),
    tool_row::<skill::SkillTool>(),
    tool_row::<skill_resource::SkillResourceTool>(),
    tool_row::<workflow_start::WorkflowStart>(),
    tool_row::<workflow_step::WorkflowStep>(),
    tool_row::<workflow_record::WorkflowRecord>(),
    tool_row::<form::ReviewFinding>(),
    tool_row::<form::PlanVerdict>(),
    tool_row::<form::HandIn>(),
];

/// The tools that fill in forms.
const OF_FORMS: &[&str] = &[FINDING, VERDICT, HAND_IN];

/// A tool that is served.
trait ServedTool {
    const NAME: &'static str;
    /// The display name.
    const TITLE: &'static str;
    /// The description for a model.
    const ABOUT: &'static str;
    const EFFECT: ServedToolEffect;
    type Arguments: DeserializeOwned + JsonSchema;
    type Output: Serialize + JsonSchema;

    /// Executes a call. Long operations stop when `cancel` is triggered.
    fn call(
        state: Arc<McpState>,
        arguments: Self::Arguments,
        cancel: CancellationToken,
    ) -> impl Future<Output = Result<ServedToolReply<Self::Output>, ServedToolError>> + Send;
}

/// The changes that a tool makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServedToolEffect {
    /// Changes nothing.
    Reads,
    /// Adds data, but never removes any.
    Adds,
}

/// The result of a tool: text for a model, and structured data for a program.
struct ServedToolReply<T> {
    text: String,
    output: T,
}

/// The reason why a call failed, and what to do next.
struct ServedToolError(String);

/// A type-erased tool.
struct ServedToolRow {
    name: &'static str,
    describe: fn() -> Tool,
    call: fn(Arc<McpState>, JsonObject, CancellationToken) -> BoxFuture<'static, CallToolResult>,
}

const fn tool_row<T: ServedTool + 'static>() -> ServedToolRow {
    ServedToolRow {
        name: T::NAME,
        describe: describe_tool::<T>,
        call: |state, given, cancel| Box::pin(call_typed::<T>(state, given, cancel)),
    }
}

/// Lists the tools. A server that was started for one form has only that form's form tools.
pub(super) fn list_tools(state: &McpState) -> Vec<Tool> {
    // Schemas don't change, so they are generated once.
    static ALL: LazyLock<Vec<Tool>> =
        LazyLock::new(|| TOOLS.iter().map(|row| (row.describe)()).collect());
    let Some(form) = &state.form else { return ALL.clone() };
    ALL.iter()
        .filter(|tool| !is_form_tool(tool) || form.tools().contains(&tool.name.as_ref()))
        .map(
            |tool| {
                if is_form_tool(tool) { form::bind_tool(form, tool.clone()) } else { tool.clone() }
            },
        )
        .collect()
}

fn is_form_tool(tool: &Tool) -> bool {
    OF_FORMS.contains(&tool.name.as_ref())
}

/// Finds a tool by its name.
pub(super) fn find_tool(state: &McpState, name: &str) -> Option<Tool> {
    list_tools(state).into_iter().find(|tool| tool.name == name)
}

/// Calls a tool; `None` if there is no tool of that name.
pub(super) async fn call_tool(
    state: &Arc<McpState>,
    name: &str,
    given: JsonObject,
    cancel: CancellationToken,
) -> Option<CallToolResult> {
    let row = TOOLS.iter().find(|row| row.name == name)?;
    match &state.form {
        Some(form) if OF_FORMS.contains(&name) => {
            if !form.tools().contains(&name) {
                return None;
            }
            Some(form::call_bound(state, form.clone(), name == FINDING, given).await)
        }
        _ => Some((row.call)(Arc::clone(state), given, cancel).await),
    }
}

fn describe_tool<T: ServedTool>() -> Tool {
    let mut tool = Tool::new(T::NAME, T::ABOUT, flat_schema::<T::Arguments>());
    tool.title = Some(T::TITLE.to_owned());
    tool.output_schema = Some(Arc::new(output_schema::<T::Output>()));
    let reads = T::EFFECT == ServedToolEffect::Reads;
    let hints = ToolAnnotations::with_title(T::TITLE).read_only(reads).destructive(false);
    tool.annotations = Some(hints.idempotent(reads).open_world(false));
    tool
}

/// A schema without references, which some clients don't resolve in arguments.
fn flat_schema<T: JsonSchema>() -> JsonObject {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T>();
    schema.as_object().cloned().unwrap_or_default()
}

fn output_schema<T: JsonSchema>() -> JsonObject {
    let mut schema = schemars::schema_for!(T).as_object().cloned().unwrap_or_default();
    schema.values_mut().for_each(without_number_formats);
    schema
}

/// Removes non-standard number formats, about which clients complain; the bounds express the same.
fn without_number_formats(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.get("format").is_some_and(is_number_format) {
                object.remove("format");
            }
            object.values_mut().for_each(without_number_formats);
        }
        Value::Array(all) => all.iter_mut().for_each(without_number_formats),
        _ => {}
    }
}

fn is_number_format(format: &Value) -> bool {
    format.as_str().is_some_and(|format| {
        ["uint", "int", "float", "double"].iter().any(|ours| format.starts_with(ours))
    })
}

async fn call_typed<T: ServedTool>(
    state: Arc<McpState>,
    given: JsonObject,
    cancel: CancellationToken,
) -> CallToolResult {
    let arguments = match serde_json::from_value(Value::Object(given)) {
        Ok(arguments) => arguments,
        Err(error) => {
            let text = format!("The arguments do not fit: {error}. See the tool's schema.");
            return CallToolResult::error(vec![ContentBlock::text(text)]);
        }
    };
    tool_result(T::call(state, arguments, cancel).await)
}

/// Converts the result of a tool to the protocol's format.
fn tool_result<T: Serialize>(done: Result<ServedToolReply<T>, ServedToolError>) -> CallToolResult {
    match done {
        Ok(reply) => {
            let mut result = CallToolResult::success(vec![visible_block(&reply.text)]);
            let mut output = serde_json::to_value(reply.output).expect("what tools give is JSON");
            invisible::remove_in_json(&mut output);
            result.structured_content = Some(output);
            result
        }
        Err(ServedToolError(text)) => CallToolResult::error(vec![visible_block(&text)]),
    }
}

/// A text block without invisible characters.
fn visible_block(text: &str) -> ContentBlock {
    let (visible, summary) = invisible::removed(text);
    if summary.is_empty() {
        ContentBlock::text(visible)
    } else {
        ContentBlock::text(format!("{visible}\n[invisible characters removed: {summary}]"))
    }
}

impl From<rmcp::ErrorData> for ServedToolError {
    fn from(error: rmcp::ErrorData) -> Self {
        ServedToolError(error.message.into_owned())
    }
}

/// Rejects a text that is too long.
fn check_length(what: &str, text: &str, bytes_max: usize) -> Result<(), ServedToolError> {
    if text.len() <= bytes_max {
        return Ok(());
    }
    Err(ServedToolError(format!(
        "The {what} has {} bytes, and at most {bytes_max} are taken. Say it shorter.",
        text.len()
    )))
}
