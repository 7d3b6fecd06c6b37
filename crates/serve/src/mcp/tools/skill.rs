//! `skill`: loads a skill.

use std::sync::Arc;

use repertoire_skill::activate::Listing;
use repertoire_skill::catalog::{Catalog, Entry};
use repertoire_skill::render::tool_result::not_found;
use repertoire_skill::trust::Trust;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::super::limits::ARGUMENTS_BYTES_MAX;
use super::super::render;
use super::super::state::State;
use super::{Complaint, Effect, Reply, ServedTool, within};

/// Loads a skill.
pub(super) struct Skill;

/// The skill to load.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
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
pub(super) struct Loaded {
    /// The name of the skill.
    name: String,
    /// The URI among this server's resources.
    uri: Option<String>,
    /// The file of the skill.
    path: String,
    /// The digest of that file.
    digest: String,
    /// The user's trust in the skill.
    trust: Trust,
    /// The instructions, with arguments substituted; wrapped in an element that says so if the
    /// skill is untrusted.
    body: String,
    /// True if the instructions were truncated.
    cut: bool,
    /// The other files of the skill.
    resources: Vec<String>,
}

impl ServedTool for Skill {
    const NAME: &'static str = "skill";
    const TITLE: &'static str = "Load a skill";
    const ABOUT: &'static str = "Loads a skill: instructions, templates and knowledge for one kind of work. Load one before you begin \
        work that it is for, and follow it. Its text comes back with the list of its files.";
    const EFFECT: Effect = Effect::Reads;
    type Arguments = Arguments;
    type Output = Loaded;

    async fn call(
        state: Arc<State>,
        asked: Arguments,
        _: CancellationToken,
    ) -> Result<Reply<Loaded>, Complaint> {
        within("argument", &asked.arguments, ARGUMENTS_BYTES_MAX)?;
        state.reading(move |state| load(state, &asked)).await?
    }
}

/// Finds a skill by name, if a model may use it on its own. Also applies to its files.
pub(super) fn find<'c>(catalog: &'c Catalog, name: &str) -> Result<&'c Entry, Complaint> {
    let resolved = catalog.resolve(name);
    let entry = resolved.map_err(|error| Complaint(not_found(&error, catalog.entries())))?;
    let id = &entry.id;
    match &entry.skill {
        skill if skill.is_agent() => Err(Complaint(format!("`{id}` is an agent, not a skill."))),
        skill if skill.claude.disable_model_invocation => {
            Err(Complaint(format!("The skill `{id}` may only be used when a person names it.")))
        }
        _ => Ok(entry),
    }
}

fn load(state: &State, asked: &Arguments) -> Result<Reply<Loaded>, Complaint> {
    let catalog = state.house.catalog();
    let entry = find(&catalog, &asked.name)?;
    let listing = if asked.include_resources { Listing::Listed } else { Listing::Skipped };
    let (activation, text) = render::skill(&state.house, entry, &asked.arguments, listing);
    let shelf = state.shelf();
    let output = Loaded {
        name: entry.id.clone(),
        uri: shelf.uri_of(entry),
        path: entry.skill.origin.file.to_string(),
        digest: activation.digest.to_string(),
        trust: entry.trust,
        cut: activation.cut.is_some(),
        // Some clients show the model this field instead of the text, so it needs the same
        // wrapping.
        body: render::wrapped(entry, activation.body),
        resources: activation
            .resources
            .iter()
            .flatten()
            .map(|file| file.path.to_string())
            .collect(),
    };
    Ok(Reply { text, output })
}
