//! Tools for clients that know nothing of the Skills extension. One tool a file, but for those of forms, which are one thing;
//! with typed arguments and a typed result. [`TOOLS`] is the list of them.

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

use super::state::State;

/// All tools, in the order in which they are listed.
const TOOLS: &[Row] = &[
    row::<skill_search::SkillSearch>(),
    row::<skill::Skill>(),
    row::<skill_resource::SkillResource>(),
    row::<workflow_start::WorkflowStart>(),
    row::<workflow_step::WorkflowStep>(),
    row::<workflow_record::WorkflowRecord>(),
    row::<form::ReviewFinding>(),
    row::<form::PlanVerdict>(),
    row::<form::HandIn>(),
];

/// Those that fill in forms.
const OF_FORMS: &[&str] = &[FINDING, VERDICT, HAND_IN];

/// What a tool is.
trait ServedTool {
    /// Its name.
    const NAME: &'static str;
    /// Its name for people.
    const TITLE: &'static str;
    /// When to call it, for a model.
    const ABOUT: &'static str;
    /// What it changes.
    const EFFECT: Effect;
    /// What it is given.
    type Arguments: DeserializeOwned + JsonSchema;
    /// What it gives.
    type Output: Serialize + JsonSchema;

    /// Does the work. What takes long ends when `cancel` says so.
    fn call(
        state: Arc<State>,
        arguments: Self::Arguments,
        cancel: CancellationToken,
    ) -> impl Future<Output = Result<Reply<Self::Output>, Complaint>> + Send;
}

/// What a tool changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// Nothing.
    Reads,
    /// It adds to what there is, and takes nothing away.
    Adds,
}

/// What a tool gives: text for a model, and the same for a program.
struct Reply<T> {
    text: String,
    output: T,
}

/// Why a tool did not do what was asked, and what to do next.
struct Complaint(String);

/// A tool without its types.
struct Row {
    name: &'static str,
    describe: fn() -> Tool,
    call: fn(Arc<State>, JsonObject, CancellationToken) -> BoxFuture<'static, CallToolResult>,
}

const fn row<T: ServedTool + 'static>() -> Row {
    Row {
        name: T::NAME,
        describe: describe::<T>,
        call: |state, given, cancel| Box::pin(call::<T>(state, given, cancel)),
    }
}

/// The tools as they are listed. Of those that fill in forms, a server that was started for one form has the form's.
pub(super) fn list(state: &State) -> Vec<Tool> {
    // Schemas are made once; they do not change.
    static ALL: LazyLock<Vec<Tool>> =
        LazyLock::new(|| TOOLS.iter().map(|row| (row.describe)()).collect());
    let Some(form) = &state.form else { return ALL.clone() };
    let of_forms = |tool: &Tool| OF_FORMS.contains(&tool.name.as_ref());
    ALL.iter()
        .filter(|tool| !of_forms(tool) || form.tools().contains(&tool.name.as_ref()))
        .map(|tool| if of_forms(tool) { form::bound(form, tool.clone()) } else { tool.clone() })
        .collect()
}

/// One of them.
pub(super) fn find(state: &State, name: &str) -> Option<Tool> {
    list(state).into_iter().find(|tool| tool.name == name)
}

/// Calls a tool; `None` if there is none of that name.
pub(super) async fn answer(
    state: &Arc<State>,
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

fn describe<T: ServedTool>() -> Tool {
    let mut tool = Tool::new(T::NAME, T::ABOUT, flat_schema::<T::Arguments>());
    tool.title = Some(T::TITLE.to_owned());
    tool.output_schema = Some(Arc::new(schema::<T::Output>()));
    let reads = T::EFFECT == Effect::Reads;
    let hints = ToolAnnotations::with_title(T::TITLE).read_only(reads).destructive(false);
    tool.annotations = Some(hints.idempotent(reads).open_world(false));
    tool
}

/// A schema without references, which some clients do not follow in arguments.
fn flat_schema<T: JsonSchema>() -> JsonObject {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T>();
    schema.as_object().cloned().unwrap_or_default()
}

fn schema<T: JsonSchema>() -> JsonObject {
    let mut schema = schemars::schema_for!(T).as_object().cloned().unwrap_or_default();
    schema.values_mut().for_each(without_number_formats);
    schema
}

/// Clients complain about formats that are ours alone; the bounds say the same.
fn without_number_formats(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            let is_ours = |format: &Value| {
                format.as_str().is_some_and(|format| {
                    ["uint", "int", "float", "double"].iter().any(|ours| format.starts_with(ours))
                })
            };
            if object.get("format").is_some_and(is_ours) {
                object.remove("format");
            }
            object.values_mut().for_each(without_number_formats);
        }
        Value::Array(all) => all.iter_mut().for_each(without_number_formats),
        _ => {}
    }
}

async fn call<T: ServedTool>(
    state: Arc<State>,
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
    finished(T::call(state, arguments, cancel).await)
}

/// What a tool gives, as it is sent.
fn finished<T: Serialize>(done: Result<Reply<T>, Complaint>) -> CallToolResult {
    match done {
        Ok(reply) => {
            let mut result = CallToolResult::success(vec![visible(&reply.text)]);
            let mut output = serde_json::to_value(reply.output).expect("what tools give is JSON");
            invisible::remove_in_json(&mut output);
            result.structured_content = Some(output);
            result
        }
        Err(Complaint(text)) => CallToolResult::error(vec![visible(&text)]),
    }
}

/// A text for a model, without invisible characters.
fn visible(text: &str) -> ContentBlock {
    let (visible, summary) = invisible::removed(text);
    match summary.is_empty() {
        true => ContentBlock::text(visible),
        false => {
            ContentBlock::text(format!("{visible}\n[invisible characters removed: {summary}]"))
        }
    }
}

impl From<rmcp::ErrorData> for Complaint {
    fn from(error: rmcp::ErrorData) -> Self {
        Complaint(error.message.into_owned())
    }
}

/// Refuses a text that is longer than a tool takes.
fn within(what: &str, text: &str, bytes_max: usize) -> Result<(), Complaint> {
    match text.len() <= bytes_max {
        true => Ok(()),
        false => Err(Complaint(format!(
            "The {what} has {} bytes, and at most {bytes_max} are taken. Say it shorter.",
            text.len()
        ))),
    }
}
