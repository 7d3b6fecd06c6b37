//! The values that every renderer takes.

/// The place where a skill was found, in OpenSkills' terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkillLocation {
    /// The project's folder.
    Project,
    /// The home folder.
    Global,
}

impl SkillLocation {
    pub fn as_str(self) -> &'static str {
        match self {
            SkillLocation::Project => "project",
            SkillLocation::Global => "global",
        }
    }
}

/// A skill as it is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSkillsEntry<'a> {
    pub name: &'a str,
    /// Empty if the skill has no description.
    pub description: &'a str,
    pub location: SkillLocation,
}

/// The rules that a rendered text follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenSkillsStyle {
    /// OpenSkills to the byte, bugs included.
    Compat,
    /// The same format, but escaped, with each entry on one line, and with our commands.
    Repertoire,
}

/// Joins a text into one line: runs of white space and control characters become one space.
pub(super) fn fold_whitespace(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folded_text_is_one_clean_line() {
        assert_eq!(fold_whitespace("\u{feff} a\r\n\tb \u{1b}[31mc\n"), "\u{feff} a b [31mc");
        assert_eq!(fold_whitespace(" \n "), "");
    }
}
