//! Invisible characters in the files of a skill: `SKILL.md`, references, scripts and every other text file.
//!
//! Lint reports them, and `rep trust` shows them before a skill is trusted. Files that are no text, or larger than
//! [`HIDDEN_TEXT_FILE_BYTES_MAX`], are not searched.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::invisible::{self, InvisibleCharacter, InvisibleSummary};
use repertoire_text::{Diagnostic, Severity, Source};

use crate::codes;
use crate::limits::{HIDDEN_TEXT_FILE_BYTES_MAX, ResourceLimits};
use crate::resources;
use crate::skill::Skill;

/// Bytes that are searched for a NUL, which marks a file that is no text.
const SNIFF_BYTES: usize = 8_192;

/// The invisible characters of one file of a skill.
#[derive(Clone, Debug)]
pub struct HiddenText {
    /// The file, below the skill's folder.
    pub path: Utf8PathBuf,
    /// How many there are of each kind.
    pub summary: InvisibleSummary,
    /// The line of the first one, from 1.
    pub line: usize,
    /// The finding that lint reports.
    pub diagnostic: Diagnostic,
}

/// Searches every text file of a skill's folder, `SKILL.md` first.
pub fn find_in_skill(skill: &Skill, limits: &ResourceLimits) -> Vec<HiddenText> {
    let own = Utf8Path::new(skill.origin.file.file_name().unwrap_or_default());
    let first = find_in_text(own, &skill.source);
    first.into_iter().chain(find_in_resources(skill, limits)).collect()
}

/// Searches the files beside `SKILL.md`.
pub fn find_in_resources(skill: &Skill, limits: &ResourceLimits) -> Vec<HiddenText> {
    let listed = resources::list(skill, limits).files;
    let small = listed.iter().filter(|file| file.bytes <= HIDDEN_TEXT_FILE_BYTES_MAX);
    small.filter_map(|file| find_in_resource(skill, &file.path, limits)).collect()
}

fn find_in_resource(skill: &Skill, path: &Utf8Path, limits: &ResourceLimits) -> Option<HiddenText> {
    let bytes = resources::read_bytes(skill, path, limits).ok()?;
    if bytes[..bytes.len().min(SNIFF_BYTES)].contains(&0) {
        return None;
    }
    // One byte that is no text must not hide the rest of the file.
    let text = String::from_utf8_lossy(&bytes);
    (!invisible::is_clean(&text)).then_some(())?;
    find_in_text(path, &Source::new(skill.origin.dir().join(path), text.into_owned()))
}

/// Searches one text. `path` is its place below the skill's folder.
pub fn find_in_text(path: &Utf8Path, source: &Source) -> Option<HiddenText> {
    let mut found = invisible::find(source.text()).peekable();
    let first = *found.peek()?;
    let mut summary = InvisibleSummary::default();
    found.for_each(|one| summary.add(one.kind));
    let line = source.text()[..first.span.start as usize].matches('\n').count() + 1;
    let diagnostic = diagnostic(source, &first, &summary);
    Some(HiddenText { path: path.to_owned(), summary, line, diagnostic })
}

fn diagnostic(
    source: &Source,
    first: &InvisibleCharacter,
    summary: &InvisibleSummary,
) -> Diagnostic {
    let marker = invisible::marker(first.char);
    let message = match summary.total() {
        1 => format!("the file has an invisible character: {marker}, a {}", first.kind.name()),
        _ => format!("the file has invisible characters: {summary}; the first is {marker}"),
    };
    let code = &codes::HIDDEN_TEXT;
    let severity = match summary.kinds().any(|(kind, _)| kind.can_carry_text()) {
        true => Severity::Error,
        false => Severity::Warning,
    };
    Diagnostic::new(code, message).at(source, first.span).help(code.remedy).severity(severity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_finding_counts_the_kinds_of_a_file() {
        let check = |text: &str, expected: &str, severity: Severity| {
            let found = find_in_text("a.md".into(), &Source::new("s/a.md", text)).unwrap();
            assert_eq!(found.diagnostic.message, expected);
            assert_eq!(found.diagnostic.severity, severity);
        };
        let message = "the file has an invisible character: ⟨U+200B⟩, a zero-width character";
        check("a\u{200b}b", message, Severity::Warning);
        let message = "the file has invisible characters: 1 tag character, 1 soft hyphen; the first is ⟨U+00AD⟩";
        check("a\u{ad}b\nc\u{e0041}", message, Severity::Error);
        assert!(find_in_text("a.md".into(), &Source::new("s/a.md", "👩\u{200d}🔬")).is_none());
    }
}
