//! `skill`: loads a skill.

use std::sync::Arc;

use repertoire_skill::activate::ResourceListingMode;
use repertoire_skill::catalog::{Catalog, CatalogEntry};
use repertoire_skill::render::tool_result::not_found;
use repertoire_skill::trust::TrustLevel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::super::limits::ARGUMENTS_BYTES_MAX;
use super::super::render;
use super::super::state::McpState;
use super::{ServedTool, ServedToolEffect, ServedToolError, ServedToolReply, check_length};

/// Loads a skill.
pub(super) struct SkillTool;

/// The skill to load.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadSkillArguments {
    /// The skill's name, as returned by `skill_search`.
    name: String,
    /// The arguments of the skill, if it takes any.
    #[serde(default)]
    arguments: String,
    /// True to list the skill's files.
    #[serde(default = "yes")]
    include_resources: bool,
}

fn yes() -> bool {
    true
}

/// A loaded skill.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LoadedSkillOutput {
    /// The name of the skill.
    name: String,
    /// The URI among this server's resources.
    uri: Option<String>,
    /// The file of the skill.
    path: String,
    /// The digest of that file.
    digest: String,
    /// The user's trust in the skill.
    trust: TrustLevel,
    /// The instructions, with arguments substituted; wrapped in an element that says so if the
    /// skill is untrusted.
    body: String,
    /// True if the instructions were truncated.
    cut: bool,
    /// The other files of the skill.
    resources: Vec<String>,
}

impl ServedTool for SkillTool {
    const NAME: &'static str = "skill";
    const TITLE: &'static str = "Load a skill";
    const ABOUT: &'static str = "Loads a skill: instructions, templates and knowledge for one kind of work. Load one before you begin \
        work that it is for, and follow it. Its text comes back with the list of its files.";
    const EFFECT: ServedToolEffect = ServedToolEffect::Reads;
    type Arguments = LoadSkillArguments;
    type Output = LoadedSkillOutput;

    async fn call(
        state: Arc<McpState>,
        asked: LoadSkillArguments,
        _: CancellationToken,
    ) -> Result<ServedToolReply<LoadedSkillOutput>, ServedToolError> {
        check_length("argument", &asked.arguments, ARGUMENTS_BYTES_MAX)?;
        state.run_blocking(move |state| load_skill(state, &asked)).await?
    }
}

/// Finds a skill by name, if a model may use it on its own. Also applies to its files.
pub(super) fn find_skill<'c>(
    catalog: &'c Catalog,
    name: &str,
) -> Result<&'c CatalogEntry, ServedToolError> {
    let resolved = catalog.resolve(name);
    let entry = resolved.map_err(|error| ServedToolError(not_found(&error, catalog.entries())))?;
    let id = &entry.id;
    match &entry.skill {
        skill if skill.is_agent() => {
            Err(ServedToolError(format!("`{id}` is an agent, not a skill.")))
        }
        skill if skill.claude.disable_model_invocation => Err(ServedToolError(format!(
            "The skill `{id}` may only be used when a person names it."
        ))),
        _ => Ok(entry),
    }
}

fn load_skill(
    state: &McpState,
    asked: &LoadSkillArguments,
) -> Result<ServedToolReply<LoadedSkillOutput>, ServedToolError> {
    let catalog = state.serve_state.catalog();
    let entry = find_skill(&catalog, &asked.name)?;
    let listing = if asked.include_resources {
        ResourceListingMode::Listed
    } else {
        ResourceListingMode::Skipped
    };
    let (activation, text) =
        render::render_skill(&state.serve_state, entry, &asked.arguments, listing);
    let shelf = state.served_skills();
    let output = LoadedSkillOutput {
        name: entry.id.clone(),
        uri: shelf.uri_of(entry),
        path: entry.skill.origin.file.to_string(),
        digest: activation.digest.to_string(),
        trust: entry.trust,
        cut: activation.cut.is_some(),
        // Some clients show the model this field instead of the text, so it needs the same
        // wrapping.
        body: render::wrap_untrusted(entry, activation.body),
        resources: activation
            .resources
            .iter()
            .flatten()
            .map(|file| file.path.to_string())
            .collect(),
    };
    Ok(ServedToolReply { text, output })
}
