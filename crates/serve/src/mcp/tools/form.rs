//! What the tools that fill in forms have in common. A server that was started for one form offers its tools with the
//! form's own schema; any other takes the name of the form.

use repertoire_agent::form::{FINDING, Form, FormError, HAND_IN};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::state::State;
use super::{Complaint, Reply};

/// What became of an entry or an answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Taken {
    /// The form.
    form: String,
    /// How many entries it has, where it is a list that was added to.
    entries: Option<usize>,
    /// Whether the form is handed in.
    handed_in: bool,
}

/// Adds a finding to a form.
pub(super) fn add_finding(form: &Form, finding: JsonObject) -> Result<Reply<Taken>, Complaint> {
    let count = form.add("findings", &Value::Object(finding)).map_err(failed)?;
    let text = format!("Finding {count} is noted. Report the next one, or end with `{HAND_IN}`.");
    let output = Taken { form: form.id().to_owned(), entries: Some(count), handed_in: false };
    Ok(Reply { text, output })
}

/// Hands in an answer.
pub(super) fn hand_in(form: &Form, answer: JsonObject) -> Result<Reply<Taken>, Complaint> {
    form.hand_in(answer).map_err(failed)?;
    let output = Taken { form: form.id().to_owned(), entries: None, handed_in: true };
    Ok(Reply { text: "It is handed in. You are done.".to_owned(), output })
}

/// The form of that name.
pub(super) fn find(state: &State, id: &str) -> Result<Form, Complaint> {
    state.house.forms().form(id).map_err(failed)
}

fn failed(error: FormError) -> Complaint {
    let next = match &error {
        FormError::NoForm(_) => "Use the form that you were told, or answer without this tool.",
        FormError::Misfit(_) => "Put that right and call again.",
        FormError::NoList(_) => "Hand the whole answer in instead.",
        FormError::TooMuch => "Say less, or hand in what there is.",
        FormError::HandedIn => "There is nothing left to do.",
        FormError::Disk { .. } => "Answer without this tool.",
    };
    Complaint(format!("{error}. {next}"))
}

/// A tool of the one form that a server was started for: its arguments are the entry, or the answer, itself.
pub(super) fn bound(form: &Form, mut tool: Tool) -> Tool {
    let mut schema = form.schema().clone();
    if tool.name == FINDING {
        schema = schema["properties"]["findings"]["items"].clone();
    } else if tool.name == HAND_IN
        && let Some(required) = schema["required"].as_array_mut()
    {
        // They may all have been reported before.
        required.retain(|field| field != "findings");
    }
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    schema.insert("type".to_owned(), json!("object"));
    tool.input_schema = schema.into();
    tool
}

/// Calls a tool of the one form that a server was started for.
pub(super) fn call_bound(form: &Form, name: &str, mut given: JsonObject) -> CallToolResult {
    // An agent that names its form all the same means no field of the answer.
    if given.get("form").is_some_and(|id| id == form.id()) {
        given.remove("form");
    }
    let done = if name == FINDING { add_finding(form, given) } else { hand_in(form, given) };
    match done {
        Ok(reply) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(reply.text)]);
            result.structured_content = serde_json::to_value(reply.output).ok();
            result
        }
        Err(Complaint(text)) => CallToolResult::error(vec![ContentBlock::text(text)]),
    }
}
