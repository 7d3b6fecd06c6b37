//! `skill_resource`: reads a file of a skill.

use std::sync::Arc;

use camino::Utf8Path;
use repertoire_skill::resources;
use repertoire_text::fs::ReadError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::super::limits::{RESOURCE_CHARS_MAX, URI_BYTES_MAX};
use super::super::manifest::FOLDER;
use super::super::render;
use super::super::state::McpState;
use super::skill::find_skill;
use super::{ServedTool, ServedToolEffect, ServedToolError, ServedToolReply, check_length};

/// Reads a file of a skill.
pub(super) struct SkillResourceTool;

/// The file to read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SkillResourceArguments {
    /// The skill's name.
    skill: String,
    /// The file's path below the skill's folder, such as `references/forms.md`.
    path: String,
    /// The character to start at, for a file that did not fit.
    #[serde(default)]
    offset: usize,
}

/// The contents of a skill's file.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SkillResourceOutput {
    /// The skill's name.
    skill: String,
    /// The file's path below the skill's folder.
    path: String,
    /// The text from the offset on; wrapped in an element that says so if the skill is untrusted.
    text: String,
    /// The length of the file in characters.
    total_chars: usize,
    /// The offset of the rest, if the text is incomplete.
    next_offset: Option<usize>,
}

impl ServedTool for SkillResourceTool {
    const NAME: &'static str = "skill_resource";
    const TITLE: &'static str = "Read a file of a skill";
    const ABOUT: &'static str = "Reads a file that a skill names or that was listed when it was loaded: references, templates, scripts.";
    const EFFECT: ServedToolEffect = ServedToolEffect::Reads;
    type Arguments = SkillResourceArguments;
    type Output = SkillResourceOutput;

    async fn call(
        state: Arc<McpState>,
        asked: SkillResourceArguments,
        _: CancellationToken,
    ) -> Result<ServedToolReply<SkillResourceOutput>, ServedToolError> {
        check_length("path", &asked.path, URI_BYTES_MAX)?;
        state.run_blocking(move |state| read_file(state, &asked)).await?
    }
}

fn read_file(
    state: &McpState,
    asked: &SkillResourceArguments,
) -> Result<ServedToolReply<SkillResourceOutput>, ServedToolError> {
    let catalog = state.serve_state.catalog();
    let entry = find_skill(&catalog, &asked.skill)?;
    let skill = &entry.skill;
    let whole =
        resources::read_resource(skill, Utf8Path::new(&asked.path), &FOLDER).map_err(|error| {
            let what = format!("`{}` of `{}` cannot be read: {error}.", asked.path, entry.id);
            ServedToolError(match error {
                ReadError::NotUtf8 { .. } => {
                    format!(
                        "{what} It is not text; it is at {}.",
                        skill.origin.dir().join(&asked.path)
                    )
                }
                _ => format!("{what} {}", list_files(entry)),
            })
        })?;
    let total_chars = whole.chars().count();
    let text: String = whole.chars().skip(asked.offset).take(RESOURCE_CHARS_MAX).collect();
    let end = asked.offset.saturating_add(text.chars().count());
    let next_offset = (end < total_chars).then_some(end);
    let mut shown = text.clone();
    if let Some(next) = next_offset {
        shown.push_str(&format!(
            "\n[{next} of {total_chars} characters; read on with offset {next}.]\n"
        ));
    }
    let path = asked.path.clone();
    // Some clients show the model this field instead of the text, so it needs the same wrapping.
    let text = render::wrap_untrusted(entry, text);
    let output =
        SkillResourceOutput { skill: entry.id.clone(), path, text, total_chars, next_offset };
    Ok(ServedToolReply { text: render::wrap_untrusted(entry, shown), output })
}

/// Lists the existing files.
fn list_files(entry: &repertoire_skill::catalog::CatalogEntry) -> String {
    let files = resources::list_resources(&entry.skill, &FOLDER).files;
    if files.is_empty() {
        return "The skill has no other files.".to_owned();
    }
    let names: Vec<String> = files.iter().take(50).map(|file| format!("`{}`", file.path)).collect();
    format!("Its files are {}.", names.join(", "))
}
