//! Appends the Markdown files of `references/` to a body, within the rest of its budget. They are plain text:
//! no arguments are filled in, and no commands are run.

use camino::Utf8PathBuf;
use repertoire_text::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ActivationRequest, TextBudget, TextCut, fit_text, make_finding, remove_invisible, render_marker,
};
use crate::codes;
use crate::limits::KEPT_CHARS_MIN;
use crate::resources::{self, ResourceGroup};
use crate::skill::Skill;

/// A reference that was requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillReference {
    /// The path relative to the skill's folder.
    #[schemars(with = "String")]
    pub path: Utf8PathBuf,
    /// The state of the reference in the body.
    pub state: ReferenceState,
}

/// The state of a reference in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReferenceState {
    /// The complete reference is in the body.
    Whole,
    /// The start of it is in the body.
    Cut(TextCut),
    /// The reference did not fit; this many characters were left.
    LeftOut(usize),
    /// The reference could not be read.
    Unreadable,
}

impl SkillReference {
    /// The limit that kept part or all of it out.
    pub(super) fn char_limit(&self) -> Option<usize> {
        match self.state {
            ReferenceState::Whole | ReferenceState::Unreadable => None,
            ReferenceState::Cut(cut) => Some(cut.limit),
            ReferenceState::LeftOut(room) => Some(room),
        }
    }
}

pub(super) fn append_references(
    skill: &Skill,
    request: &ActivationRequest<'_>,
    mut room: TextBudget,
    body: &mut String,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<SkillReference> {
    let found = resources::list_resources(skill, &request.limits);
    let references = found.of_group(ResourceGroup::References);
    let mut out = Vec::new();
    for path in references.filter(|path| path.extension() == Some("md")) {
        let file = skill.origin.dir().join(path);
        let heading = format!("\n\n## Reference: {path}\n\n");
        let least =
            heading.len() + render_marker(usize::MAX, usize::MAX, &file).len() + KEPT_CHARS_MIN;
        let state = match resources::read_resource(skill, path, &request.limits) {
            Err(error) => {
                diagnostics.push(error.to_diagnostic(&file));
                ReferenceState::Unreadable
            }
            Ok(text) => {
                let text = remove_invisible(text.trim().to_owned(), &file, diagnostics);
                let left = room.subtract_text(&heading);
                if !left.can_hold(&text) && room.char_limit() < least {
                    let message = format!("`{path}` does not fit the budget");
                    diagnostics
                        .push(make_finding(&codes::REFERENCE_LEFT_OUT, message).in_file(&file));
                    ReferenceState::LeftOut(room.char_limit())
                } else {
                    let (text, cut) = fit_text(text, left, &file);
                    room = left.subtract_text(&text);
                    body.push_str(&heading);
                    body.push_str(&text);
                    cut.map_or(ReferenceState::Whole, ReferenceState::Cut)
                }
            }
        };
        out.push(SkillReference { path: path.to_owned(), state });
    }
    out
}
