//! Finds references to specifications: `(spec §3.2)`, `See specs/api.md#login`, `[spec](specs/api.md)`.

use std::ops::Range;

use super::opaque::{OpaqueKind, OpaqueParts};

/// Finds the references in a text; those that name a file come with their range.
pub(super) fn find_spec_refs(
    text: &str,
    opaque: &OpaqueParts,
) -> Vec<(String, Option<Range<usize>>)> {
    let mut found: Vec<(Range<usize>, bool)> = Vec::new();
    for target in &opaque.targets {
        let path = text[target.clone()].trim();
        if is_document(path) && !path.contains("://") {
            let start =
                target.start + (path.as_ptr() as usize - text[target.clone()].as_ptr() as usize);
            found.push((start..start + path.len(), true));
        }
    }
    let mut introduced = false;
    for (start, word) in word_offsets(text) {
        if opaque.kind_at(start) == Some(OpaqueKind::Link)
            || opaque.kind_at(start) == Some(OpaqueKind::Comment)
        {
            introduced = false;
            continue;
        }
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        if let Some(at) = word.find('§') {
            found.push(section_reference(text, start + at));
        } else if introduced && is_document(path_of(word)) {
            let path = path_of(word);
            let from = start + (path.as_ptr() as usize - word.as_ptr() as usize);
            found.push((from..from + path.len(), true));
        }
        // "See a.md and b.md" introduces both.
        introduced = ["see", "spec", "specs", "per", "ref", "refs"]
            .iter()
            .any(|key| bare.eq_ignore_ascii_case(key))
            || introduced && (is_document(path_of(word)) || bare.eq_ignore_ascii_case("and"));
    }
    found.sort_by_key(|(range, _)| range.start);
    found
        .into_iter()
        .map(|(range, is_file)| (text[range.clone()].to_owned(), is_file.then_some(range)))
        .collect()
}

/// The file of a reference, without its fragment.
pub(super) fn file_of(reference: &str) -> &str {
    reference.split('#').next().unwrap_or(reference)
}

pub(super) fn is_document(path: &str) -> bool {
    let file = file_of(path);
    let stem = file.strip_suffix(".md").or_else(|| file.strip_suffix(".markdown"));
    stem.is_some_and(|stem| !stem.is_empty())
}

/// Strips the punctuation around a word.
fn path_of(word: &str) -> &str {
    word.trim_matches(|c: char| !(c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '#')))
        .trim_end_matches('.')
}

/// The range of `§3.2`, with the word `spec` before it.
fn section_reference(text: &str, at: usize) -> (Range<usize>, bool) {
    let after = at + '§'.len_utf8();
    let blank = text[after..].bytes().take_while(|byte| *byte == b' ').count().min(1);
    let number: usize = text[after + blank..]
        .chars()
        .take_while(|c| c.is_alphanumeric() || matches!(c, '.' | '-'))
        .map(char::len_utf8)
        .sum();
    let end = text[..after + blank + number].trim_end_matches(['.', '-', ' ']).len();
    let before = text[..at].trim_end();
    let is_spec = before
        .get(before.len().saturating_sub(4)..)
        .is_some_and(|word| word.eq_ignore_ascii_case("spec"));
    (if is_spec { before.len() - 4..end } else { at..end }, false)
}

fn word_offsets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_whitespace().map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &[&str]) {
        let found: Vec<String> = find_spec_refs(text, &OpaqueParts::find_parts(text))
            .into_iter()
            .map(|(text, _)| text)
            .collect();
        assert_eq!(found, expect, "{text}");
    }

    #[test]
    fn references_are_found() {
        check("Parse it (spec §3.2)", &["spec §3.2"]);
        check("Parse it (See §3.2.)", &["§3.2"]);
        check("See specs/foo.md#section.", &["specs/foo.md#section"]);
        check("See `specs/foo.md` and b.md", &["specs/foo.md", "b.md"]);
        check("Do it [spec](specs/foo.md)", &["specs/foo.md"]);
        check("Write README.md", &[]);
        check("[x](https://a.b/c.md)", &[]);
        check("§", &["§"]);
    }
}
