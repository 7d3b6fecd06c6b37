//! Parses metadata that authors write beside their tasks: `blocked by: T001`, `skills: a, b`, `priority: high`, on a
//! line of its own or within a text.

use std::ops::Range;

use super::TaskPriority;

/// A line with metadata of its task or section.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MetadataLine {
    /// References to blockers.
    Blocked(Vec<(String, Range<usize>)>),
    /// Names of skills.
    Skills(Vec<(String, Range<usize>)>),
    Priority(TaskPriority),
    /// A reference to a specification: the whole line, because it may name requirements.
    Spec(Range<usize>),
}

const BLOCKED: [&str; 7] = [
    "blocked by",
    "blocked-by",
    "blocked_by",
    "depends on",
    "depends-on",
    "depends_on",
    "dependencies",
];

/// Maximum length of a quoted text.
const QUOTED_CHARS_MAX: usize = 500;

/// Parses a line without its bullet; ranges are relative to the line.
pub(super) fn parse_metadata_line(line: &str) -> Option<MetadataLine> {
    let start = line.len() - line.trim_start_matches(is_ornament).len();
    let body = &line[start..];
    let is_key = |key: &str| {
        body.get(..key.len()).is_some_and(|found| found.eq_ignore_ascii_case(key))
            && body[key.len()..].starts_with(|c: char| !c.is_alphanumeric())
    };
    let keys = BLOCKED.iter().chain(&[
        "skills",
        "skill",
        "priority",
        "requirements",
        "specs",
        "spec",
        "see",
    ]);
    let key = *keys.into_iter().find(|key| is_key(key))?;
    let after = body[key.len()..].trim_start_matches(['*', '_']);
    let has_colon = after.starts_with(':');
    let after = after.trim_start_matches(':').trim_start_matches(is_ornament);
    let from = line.len() - after.len();
    let end = line.trim_end_matches(is_ornament).len().max(from);
    let rest = &line[from..end];
    match key {
        key if BLOCKED.contains(&key) && has_colon => {
            Some(MetadataLine::Blocked(split_refs(rest, from)))
        }
        key if BLOCKED.contains(&key) => {
            let (refs, _) = parse_label_refs(rest, from);
            (!refs.is_empty()).then_some(MetadataLine::Blocked(refs))
        }
        "skills" | "skill" if has_colon => Some(MetadataLine::Skills(split_words(rest, from))),
        "priority" if has_colon => {
            first_word(rest).and_then(TaskPriority::from_word).map(MetadataLine::Priority)
        }
        "requirements" if has_colon => Some(MetadataLine::Spec(start..end)),
        "see" => Some(MetadataLine::Spec(start..end)),
        "specs" | "spec" if has_colon => Some(MetadataLine::Spec(start..end)),
        _ => None,
    }
}

fn is_ornament(c: char) -> bool {
    matches!(c, '*' | '_') || c.is_whitespace()
}

/// Returns the offset of the references in a lower-case text such as `blocked by: T001`, and true if a colon precedes
/// them.
pub(super) fn find_blocker_refs(lower: &str) -> Option<(usize, bool)> {
    let key = BLOCKED.iter().find(|key| lower.starts_with(**key))?;
    let rest = &lower[key.len()..];
    let blanks = rest.len() - rest.trim_start().len();
    match rest[blanks..].strip_prefix(':') {
        Some(after) => Some((lower.len() - after.len(), true)),
        None => (blanks > 0).then_some((key.len() + blanks, false)),
    }
}

fn first_word(text: &str) -> Option<&str> {
    let word = text.trim_start().split(|c: char| !c.is_ascii_alphanumeric()).next()?;
    (!word.is_empty()).then_some(word)
}

/// Splits a list at commas and whitespace.
fn split_words(text: &str, from: usize) -> Vec<(String, Range<usize>)> {
    let mut out = Vec::new();
    let mut at = 0;
    for word in text.split(|c: char| c.is_whitespace() || c == ',') {
        let name =
            word.trim_matches(|c: char| matches!(c, '`' | '@' | '*' | '_' | '.' | '[' | ']'));
        if !name.is_empty() {
            let start = from + at + (name.as_ptr() as usize - word.as_ptr() as usize);
            out.push((name.to_owned(), start..start + name.len()));
        }
        at += word.len() + 1;
    }
    out
}

/// Splits a list of references: quoted texts, or the texts between commas, semicolons and `and`.
pub(super) fn split_refs(text: &str, from: usize) -> Vec<(String, Range<usize>)> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if let Some((inner, used)) = parse_quoted(rest) {
            let start = at + (inner.as_ptr() as usize - rest.as_ptr() as usize);
            out.push((inner.trim().to_owned(), from + start..from + start + inner.len()));
            at += used;
            continue;
        }
        let first = rest.chars().next().map_or(1, char::len_utf8);
        if rest.starts_with(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '&')) {
            at += first;
            continue;
        }
        let stops = |at: &usize| {
            let rest = &rest.as_bytes()[*at..];
            matches!(rest[0], b',' | b';') || rest.starts_with(b" and ") || rest.starts_with(b" & ")
        };
        let piece = &rest[..(0..rest.len()).find(stops).unwrap_or(rest.len())];
        let piece_used = piece.len();
        let word = piece.strip_prefix("and ").unwrap_or(piece);
        let word = word
            .trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '`' | '[' | ']'));
        let word = word.trim_end_matches('.');
        let nothing = ["none", "nothing", "n/a", "-", "—", "–", "no dependencies"];
        if !word.is_empty() && !nothing.iter().any(|none| word.eq_ignore_ascii_case(none)) {
            let start = from + at + (word.as_ptr() as usize - rest.as_ptr() as usize);
            out.push((word.to_owned(), start..start + word.len()));
        }
        at += piece_used.max(first);
    }
    out
}

/// Parses a quoted text at the start. Returns it with its length in bytes, including the quotes.
fn parse_quoted(text: &str) -> Option<(&str, usize)> {
    let open = text.chars().next()?;
    let close = match open {
        '"' | '`' | '\'' => open,
        '“' | '„' => '”',
        '«' => '»',
        _ => return None,
    };
    let inner = &text[open.len_utf8()..];
    let end = inner.char_indices().take(QUOTED_CHARS_MAX).find(|(_, c)| *c == close)?.0;
    Some((&inner[..end], open.len_utf8() + end + close.len_utf8()))
}

/// Parses references at the start of prose: only those that cannot be ordinary words. Also returns where they end.
pub(super) fn parse_label_refs(text: &str, from: usize) -> (Vec<(String, Range<usize>)>, usize) {
    let mut out = Vec::new();
    let mut at = 0;
    let mut end = 0;
    loop {
        let rest = &text[at..];
        let (inner, used) = match parse_quoted(rest) {
            Some(found) => found,
            None => match label_bytes(rest) {
                0 => break,
                used => (&rest[..used], used),
            },
        };
        let start = from + at + (inner.as_ptr() as usize - rest.as_ptr() as usize);
        out.push((inner.to_owned(), start..start + inner.len()));
        at += used;
        end = at;
        let after = text[at..].trim_start();
        let Some(next) = [",", "and ", "& "]
            .iter()
            .find_map(|joint| after.strip_prefix(joint))
            .map(str::trim_start)
        else {
            break;
        };
        at = text.len() - next.len();
    }
    (out, end)
}

/// The length in bytes of a label at the start: `T001`, `1.2`, `AUTH-3`, `Task 3`, `Phase 2`, `#4`.
fn label_bytes(text: &str) -> usize {
    let lower = text.get(..6).unwrap_or(text).to_ascii_lowercase();
    for word in ["phase ", "task "] {
        if lower.starts_with(word) {
            let number =
                text[word.len()..].bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
            let number = text[word.len()..word.len() + number].trim_end_matches('.').len();
            return if number > 0 { word.len() + number } else { 0 };
        }
    }
    let token = text
        .bytes()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'#'))
        .count();
    let token = text[..token].trim_end_matches(['.', '-']);
    let has_digit = token.bytes().any(|byte| byte.is_ascii_digit());
    let starts =
        token.starts_with(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '#');
    if has_digit && starts { token.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(refs: &[(String, Range<usize>)]) -> Vec<&str> {
        refs.iter().map(|(text, _)| text.as_str()).collect()
    }

    #[track_caller]
    fn blocked(line: &str, expect: &[&str]) {
        match parse_metadata_line(line) {
            Some(MetadataLine::Blocked(refs)) => {
                assert_eq!(texts(&refs), expect, "{line}");
                for (text, range) in refs {
                    assert_eq!(line[range].trim(), text, "{line}");
                }
            }
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn lines_that_name_blockers_are_read() {
        blocked("Depends on: T001, T002", &["T001", "T002"]);
        blocked("**Depends on**: T001 and 1.2", &["T001", "1.2"]);
        blocked("**Blocked by:** Phase 1.", &["Phase 1"]);
        blocked("blocked-by: \"the first, of all\", x", &["the first, of all", "x"]);
        blocked("Depends on T001, Task 3", &["T001", "Task 3"]);
        blocked("Depends on: none", &[]);
        blocked("Dependencies: `T001`", &["T001"]);
        assert_eq!(parse_metadata_line("Depends on the weather"), None);
        assert_eq!(parse_metadata_line("dependency: x"), None);
        assert_eq!(parse_metadata_line("skillset: x"), None);
    }

    #[test]
    fn lines_that_name_skills_priorities_and_requirements_are_read() {
        let Some(MetadataLine::Skills(skills)) = parse_metadata_line("Skills: `a-b`, @c d") else {
            panic!()
        };
        assert_eq!(texts(&skills), ["a-b", "c", "d"]);
        assert_eq!(&"Skills: `a-b`, @c d"[skills[1].1.clone()], "c");
        assert_eq!(
            parse_metadata_line("priority: HIGH (soon)"),
            Some(MetadataLine::Priority(TaskPriority::High))
        );
        assert_eq!(parse_metadata_line("priority: soon"), None);
        let line = "_Requirements: 1.2, 2.1_";
        let Some(MetadataLine::Spec(range)) = parse_metadata_line(line) else { panic!() };
        assert_eq!(&line[range], "Requirements: 1.2, 2.1");
    }

    #[test]
    fn words_of_prose_are_no_labels() {
        let of = |text: &str| text[..label_bytes(text)].to_owned();
        assert_eq!(of("T001."), "T001");
        assert_eq!(of("1.2, then"), "1.2");
        assert_eq!(of("Phase 2 being done"), "Phase 2");
        assert_eq!(of("task 3"), "task 3");
        assert_eq!(of("the weather"), "");
        assert_eq!(of("task force"), "");
        assert_eq!(of("T001-T004"), "T001-T004");
    }
}
