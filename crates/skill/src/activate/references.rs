//! Appends the Markdown files of `references/` to a body, within the rest of its budget. They are plain text:
//! no arguments are filled in, and no commands are run.

use camino::Utf8PathBuf;
use repertoire_text::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Cut, Request, Room, finding, fit, marker, without_invisible};
use crate::codes;
use crate::limits::KEPT_CHARS_MIN;
use crate::resources::{self, Group};
use crate::skill::Skill;

/// A reference that was requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reference {
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
    Cut(Cut),
    /// The reference did not fit; this many characters were left.
    LeftOut(usize),
    /// The reference could not be read.
    Unreadable,
}

impl Reference {
    /// The limit that kept part or all of it out.
    pub(super) fn limit(&self) -> Option<usize> {
        match self.state {
            ReferenceState::Whole | ReferenceState::Unreadable => None,
            ReferenceState::Cut(cut) => Some(cut.limit),
            ReferenceState::LeftOut(room) => Some(room),
        }
    }
}

pub(super) fn append(
    skill: &Skill,
    request: &Request<'_>,
    mut room: Room,
    body: &mut String,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Reference> {
    let found = resources::list(skill, &request.limits);
    let references = found.of_group(Group::References);
    let mut out = Vec::new();
    for path in references.filter(|path| path.extension() == Some("md")) {
        let file = skill.origin.dir().join(path);
        let heading = format!("\n\n## Reference: {path}\n\n");
        let least = heading.len() + marker(usize::MAX, usize::MAX, &file).len() + KEPT_CHARS_MIN;
        let state = match resources::read(skill, path, &request.limits) {
            Err(error) => {
                diagnostics.push(error.to_diagnostic(&file));
                ReferenceState::Unreadable
            }
            Ok(text) => {
                let text = without_invisible(text.trim().to_owned(), &file, diagnostics);
                let left = room.minus(&heading);
                if !left.holds(&text) && room.limit() < least {
                    let message = format!("`{path}` does not fit the budget");
                    diagnostics.push(finding(&codes::REFERENCE_LEFT_OUT, message).in_file(&file));
                    ReferenceState::LeftOut(room.limit())
                } else {
                    let (text, cut) = fit(text, left, &file);
                    room = left.minus(&text);
                    body.push_str(&heading);
                    body.push_str(&text);
                    cut.map_or(ReferenceState::Whole, ReferenceState::Cut)
                }
            }
        };
        out.push(Reference { path: path.to_owned(), state });
    }
    out
}
