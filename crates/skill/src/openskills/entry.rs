//! The values that every renderer takes.

/// Where a skill was found, in OpenSkills' two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Location {
    /// In the project's folder.
    Project,
    /// In the home folder.
    Global,
}

impl Location {
    /// The word that is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Location::Project => "project",
            Location::Global => "global",
        }
    }
}

/// One skill as it is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is for; empty if nothing says so.
    pub description: &'a str,
    /// Where it was found.
    pub location: Location,
}

/// Whose rules a text follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// OpenSkills to the byte, bugs included.
    Compat,
    /// The same shape, escaped, on one line each, and with our commands.
    Repertoire,
}

/// One line of text: runs of white space and control characters become one space.
pub(super) fn fold(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folded_text_is_one_clean_line() {
        assert_eq!(fold("\u{feff} a\r\n\tb \u{1b}[31mc\n"), "\u{feff} a b [31mc");
        assert_eq!(fold(" \n "), "");
    }
}
