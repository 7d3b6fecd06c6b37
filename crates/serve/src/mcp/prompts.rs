//! Skills as prompts: those that users may invoke, with their arguments.

use repertoire_skill::activate::ResourceListingMode;
use repertoire_skill::catalog::CatalogEntry;
use repertoire_skill::render::describe_skill;
use rmcp::ErrorData;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResult, JsonObject, ListPromptsResult, Prompt, PromptArgument,
    PromptMessage, Role,
};
use serde_json::Value;

use super::limits::{ARGUMENTS_BYTES_MAX, PROMPTS_PAGE};
use super::state::McpState;
use super::{cursor, render};

/// The argument of a skill that does not name its arguments.
const REST: &str = "arguments";

/// Lists the skills that a user may invoke.
pub(super) fn list_prompts(
    state: &McpState,
    cursor: Option<&str>,
) -> Result<ListPromptsResult, ErrorData> {
    let catalog = state.serve_state.catalog();
    let mut callable: Vec<&CatalogEntry> =
        catalog.entries().iter().filter(|entry| is_callable(entry)).collect();
    // Skills with an ambiguous name are not listed, since they cannot be invoked by it.
    callable.retain(|entry| catalog.get(&entry.id).is_some());
    let (page, next) =
        cursor::page_after("prompts", &callable, |entry| &entry.id, cursor, PROMPTS_PAGE)?;
    let mut result =
        ListPromptsResult::with_all_items(page.iter().map(|entry| build_prompt(entry)).collect());
    result.next_cursor = next;
    Ok(result)
}

/// Renders a skill for the conversation.
pub(super) fn get_prompt(
    state: &McpState,
    request: &GetPromptRequestParams,
) -> Result<GetPromptResult, ErrorData> {
    let catalog = state.serve_state.catalog();
    let entry = catalog.get(&request.name).filter(|entry| is_callable(entry)).ok_or_else(|| {
        let message = format!("there is no prompt `{}`", request.name);
        ErrorData::invalid_params(message, None)
    })?;
    let arguments = format_arguments(entry, request.arguments.as_ref())?;
    let (_, text) =
        render::render_skill(&state.serve_state, entry, &arguments, ResourceListingMode::Listed);
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(describe_skill(entry)))
}

fn is_callable(entry: &CatalogEntry) -> bool {
    !entry.skill.claude.hidden_from_user && !entry.skill.is_agent()
}

fn build_prompt(entry: &CatalogEntry) -> Prompt {
    let claude = &entry.skill.claude;
    let hint = claude.argument_hint.as_deref();
    let mut arguments: Vec<PromptArgument> = claude
        .arguments
        .iter()
        .map(|name| PromptArgument::new(name.as_str()).with_required(false))
        .collect();
    if arguments.is_empty() {
        let about = hint.unwrap_or("What the skill is given after its name");
        arguments.push(PromptArgument::new(REST).with_description(about).with_required(false));
    }
    Prompt::new(entry.id.as_str(), Some(describe_skill(entry)), Some(arguments))
}

/// Formats arguments as they would be written after the skill's name.
fn format_arguments(entry: &CatalogEntry, given: Option<&JsonObject>) -> Result<String, ErrorData> {
    let none = JsonObject::new();
    let given = given.unwrap_or(&none);
    let text = |name: &str| match given.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => {
            let message = format!("the argument `{name}` is not text");
            Err(ErrorData::invalid_params(message, None))
        }
    };
    let names = &entry.skill.claude.arguments;
    if let Some(unknown) = given.keys().find(|key| !names.contains(key) && *key != REST) {
        let message = format!("`{}` has no argument `{unknown}`", entry.id);
        return Err(ErrorData::invalid_params(message, None));
    }
    let mut words = Vec::new();
    for name in names {
        words.push(quote_word(&text(name)?.unwrap_or_default()));
    }
    // Drop trailing arguments that were not given.
    while words.last().is_some_and(|word| word == "\"\"") {
        words.pop();
    }
    words.extend(text(REST)?);
    let line = words.join(" ");
    if line.len() > ARGUMENTS_BYTES_MAX {
        let message = format!("arguments have at most {ARGUMENTS_BYTES_MAX} bytes");
        return Err(ErrorData::invalid_params(message, None));
    }
    Ok(line)
}

/// Quotes a word if necessary.
fn quote_word(word: &str) -> String {
    if !word.is_empty() && word.chars().all(is_plain_char) {
        word.to_owned()
    } else {
        format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

fn is_plain_char(c: char) -> bool {
    c.is_alphanumeric() || "-_./:@+=,".contains(c)
}
