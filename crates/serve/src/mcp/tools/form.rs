//! The tools that fill in forms: `review_finding`, `plan_verdict` and `hand_in`. A server that was
//! started for one form offers its tools with the form's own schema; otherwise the tools take the
//! id of the form.

use std::sync::Arc;

use repertoire_agent::form::{AnswerForm, FINDING, FormError, HAND_IN, VERDICT};
use rmcp::model::{CallToolResult, JsonObject, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::super::state::McpState;
use super::{ServedTool, ServedToolEffect, ServedToolError, ServedToolReply, tool_result};

/// Defines a tool that takes the id of a form and one object.
macro_rules! form_tool {
    ($tool:ident, $arguments:ident, $name:expr, $title:literal, $about:literal, $(#[$what:meta])* $field:ident, $fill:expr) => {
        #[doc = $about]
        pub(super) struct $tool;

        /// The content to submit, and its form.
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[schemars(rename = "Arguments")]
        pub(super) struct $arguments {
            /// The id of the form to fill in.
            form: String,
            $(#[$what])*
            $field: JsonObject,
        }

        impl ServedTool for $tool {
            const NAME: &'static str = $name;
            const TITLE: &'static str = $title;
            const ABOUT: &'static str = $about;
            const EFFECT: ServedToolEffect = ServedToolEffect::Adds;
            type Arguments = $arguments;
            type Output = FormSubmission;

            async fn call(
                state: Arc<McpState>,
                asked: $arguments,
                _: CancellationToken,
            ) -> Result<ServedToolReply<FormSubmission>, ServedToolError> {
                // Blocking, since it may wait for the form's lock.
                state.run_blocking(move |state| $fill(&find_form(state, &asked.form)?, asked.$field)).await?
            }
        }
    };
}

form_tool!(
    ReviewFinding,
    FindingArguments,
    FINDING,
    "Report a finding",
    "Reports one finding of a review, as you find it, on the form that you were told.",
    /// The finding, matching the form's schema.
    finding,
    add_finding
);
form_tool!(
    PlanVerdict,
    VerdictArguments,
    VERDICT,
    "Give a verdict",
    "Hands in your verdict on a step of a plan, on the form that you were told.",
    /// The verdict, matching the form's schema.
    verdict,
    hand_in
);
form_tool!(
    HandIn,
    AnswerArguments,
    HAND_IN,
    "Hand in an answer",
    "Hands in your answer on the form that you were told; findings that you have reported before are part of it.",
    /// The answer, matching the form's schema.
    answer,
    hand_in
);

/// The state of the form after a submission.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FormSubmission {
    /// The id of the form.
    form: String,
    /// The number of entries so far, if an entry was added.
    entries: Option<usize>,
    /// True if the form is submitted.
    handed_in: bool,
}

/// Adds a finding to a form.
fn add_finding(
    form: &AnswerForm,
    finding: JsonObject,
) -> Result<ServedToolReply<FormSubmission>, ServedToolError> {
    let count = form.add_entry("findings", &Value::Object(finding)).map_err(form_error)?;
    let text = format!("Finding {count} is noted. Report the next one, or end with `{HAND_IN}`.");
    let output =
        FormSubmission { form: form.id().to_owned(), entries: Some(count), handed_in: false };
    Ok(ServedToolReply { text, output })
}

/// Submits an answer.
fn hand_in(
    form: &AnswerForm,
    answer: JsonObject,
) -> Result<ServedToolReply<FormSubmission>, ServedToolError> {
    form.hand_in(answer).map_err(form_error)?;
    let output = FormSubmission { form: form.id().to_owned(), entries: None, handed_in: true };
    Ok(ServedToolReply { text: "It is handed in. You are done.".to_owned(), output })
}

/// Finds a form by its id.
fn find_form(state: &McpState, id: &str) -> Result<AnswerForm, ServedToolError> {
    state.serve_state.forms().find(id).map_err(form_error)
}

fn form_error(error: FormError) -> ServedToolError {
    let next = match &error {
        FormError::NoForm(_) => "Use the form that you were told, or answer without this tool.",
        FormError::Misfit(_) => "Put that right and call again.",
        FormError::NoList(_) => "Hand the whole answer in instead.",
        FormError::TooMuch => "Say less, or hand in what there is.",
        FormError::HandedIn => "There is nothing left to do.",
        FormError::Disk { .. } => "Answer without this tool.",
    };
    ServedToolError(format!("{error}. {next}"))
}

/// Adapts a tool to the one form of the server: its arguments are the entry or the answer itself.
pub(super) fn bind_tool(form: &AnswerForm, mut tool: Tool) -> Tool {
    let mut schema = form.schema().clone();
    if tool.name == FINDING {
        schema = schema["properties"]["findings"]["items"].clone();
    } else if tool.name == HAND_IN
        && let Some(required) = schema["required"].as_array_mut()
    {
        // They may all have been reported already.
        required.retain(|field| field != "findings");
    }
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    schema.insert("type".to_owned(), json!("object"));
    tool.input_schema = schema.into();
    tool
}

/// Calls a tool of the one form of the server.
pub(super) async fn call_bound(
    state: &Arc<McpState>,
    form: AnswerForm,
    is_finding: bool,
    mut given: JsonObject,
) -> CallToolResult {
    // If the agent passes the form's id anyway, it is not a field of the answer.
    if given.get("form").is_some_and(|id| id == form.id()) {
        given.remove("form");
    }
    let fill = if is_finding { add_finding } else { hand_in };
    let done = state.run_blocking(move |_| fill(&form, given)).await;
    tool_result(done.unwrap_or_else(|error| Err(error.into())))
}
