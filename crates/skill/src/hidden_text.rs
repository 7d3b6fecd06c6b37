//! Finds invisible characters in the files of a skill: `SKILL.md`, references, scripts and every other text
//! file.
//!
//! Lint reports them, and `rep trust` shows them before a skill is trusted. Binary files, and files larger
//! than [`HIDDEN_TEXT_FILE_BYTES_MAX`], are not searched.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::invisible::{self, InvisibleCharacter, InvisibleKind, InvisibleSummary};
use repertoire_text::{Diagnostic, Severity, Source};

use crate::codes;
use crate::limits::{HIDDEN_TEXT_FILE_BYTES_MAX, ResourceLimits};
use crate::resources;
use crate::skill::Skill;

/// The number of bytes that are searched for a NUL, which marks a binary file.
const SNIFF_BYTES: usize = 8_192;

/// The invisible characters of one kind in one file of a skill.
#[derive(Clone, Debug)]
pub struct HiddenText {
    /// The path relative to the skill's folder.
    pub path: Utf8PathBuf,
    pub kind: InvisibleKind,
    /// The kind and the number of its characters, for display.
    pub summary: InvisibleSummary,
    /// The line of the first one, from 1.
    pub line: usize,
    /// The number of lines with such characters.
    pub lines: usize,
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
    let listed = resources::list_resources(skill, limits).files;
    let small = listed.iter().filter(|file| file.bytes <= HIDDEN_TEXT_FILE_BYTES_MAX);
    small.flat_map(|file| find_in_resource(skill, &file.path, limits)).collect()
}

fn find_in_resource(skill: &Skill, path: &Utf8Path, limits: &ResourceLimits) -> Vec<HiddenText> {
    let Ok(bytes) = resources::read_resource_bytes(skill, path, limits) else { return Vec::new() };
    if bytes[..bytes.len().min(SNIFF_BYTES)].contains(&0) {
        return Vec::new();
    }
    // A single invalid byte must not hide the rest of the file.
    let text = String::from_utf8_lossy(&bytes);
    if invisible::is_clean(&text) {
        return Vec::new();
    }
    find_in_text(path, &Source::new(skill.origin.dir().join(path), text.into_owned()))
}

/// Searches one text, and returns one item per kind. Kinds that can carry text come first. `path` is relative
/// to the skill's folder.
pub fn find_in_text(path: &Utf8Path, source: &Source) -> Vec<HiddenText> {
    let text = source.text();
    let mut kinds: BTreeMap<(bool, InvisibleKind), InvisibleKindTally> = BTreeMap::new();
    let (mut line, mut counted) = (1, 0);
    for one in invisible::find(text) {
        let start = one.span.start as usize;
        line += text[counted..start].matches('\n').count();
        counted = start;
        let new = || InvisibleKindTally {
            first: one,
            line,
            last_line: 0,
            lines: 0,
            summary: InvisibleSummary::default(),
        };
        let found = kinds.entry((!one.kind.can_carry_text(), one.kind)).or_insert_with(new);
        found.lines += usize::from(found.last_line != line);
        found.last_line = line;
        found.summary.add(one.kind);
    }
    let item = |found: InvisibleKindTally| HiddenText {
        path: path.to_owned(),
        kind: found.first.kind,
        diagnostic: hidden_text_diagnostic(source, &found),
        line: found.line,
        lines: found.lines,
        summary: found.summary,
    };
    kinds.into_values().map(item).collect()
}

/// The characters of one kind found so far.
struct InvisibleKindTally {
    first: InvisibleCharacter,
    line: usize,
    last_line: usize,
    lines: usize,
    summary: InvisibleSummary,
}

fn hidden_text_diagnostic(source: &Source, found: &InvisibleKindTally) -> Diagnostic {
    let InvisibleKindTally { first, summary, lines, .. } = found;
    let marker = invisible::marker_of(first.char);
    let message = match (summary.total(), *lines) {
        (1, _) => format!("the file has an invisible character: {marker}, a {}", first.kind.name()),
        (_, 1) => format!("the file has invisible characters: {summary}; the first is {marker}"),
        (_, lines) => format!(
            "the file has invisible characters: {summary} on {lines} lines; the first is {marker}"
        ),
    };
    let code = &codes::HIDDEN_TEXT;
    let severity = if first.kind.can_carry_text() { Severity::Error } else { Severity::Warning };
    Diagnostic::new(code, message).at(source, first.span).help(code.remedy).severity(severity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_a_finding_at_its_first_place_and_those_that_carry_text_come_first() {
        let check = |text: &str, expected: &[(usize, &str, Severity)]| {
            let found = find_in_text("a.md".into(), &Source::new("s/a.md", text));
            let found: Vec<(usize, &str, Severity)> = found
                .iter()
                .map(|one| (one.line, one.diagnostic.message.as_ref(), one.diagnostic.severity))
                .collect();
            assert_eq!(found, expected);
        };
        let message = "the file has an invisible character: ⟨U+200B⟩, a zero-width character";
        check("a\u{200b}b", &[(1, message, Severity::Warning)]);
        let tags = "the file has invisible characters: 2 tag characters; the first is ⟨U+E0041⟩";
        let bidi = "the file has an invisible character: ⟨U+202E⟩, a bidirectional control";
        let hyphens =
            "the file has invisible characters: 3 soft hyphens on 2 lines; the first is ⟨U+00AD⟩";
        check(
            "a\u{ad}b\u{ad}\n\u{202e}\nc\u{e0041}\u{e0042}\nd\u{ad}e",
            &[
                (3, tags, Severity::Error),
                (2, bidi, Severity::Error),
                (1, hyphens, Severity::Warning),
            ],
        );
        check("👩\u{200d}🔬", &[]);
    }
}
