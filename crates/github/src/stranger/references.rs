//! Definitions that nothing refers to, which are not shown: footnotes and addresses of links.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::{Counts, Hidden};

/// The start of `[^name]: text` or `[name]: address`.
static DEFINITION: LazyLock<Regex> = LazyLock::new(|| regex(r"^[ \t>*+\-.)0-9]*\[([^\[\]]+)\]:"));
/// Something that can refer to a definition.
static REFERENCE: LazyLock<Regex> = LazyLock::new(|| regex(r"\[([^\[\]]+)\](?P<is>:?)"));
/// Code, in which nothing refers to anything.
static CODE: LazyLock<Regex> = LazyLock::new(|| regex(r"``[^\n]*?``|`[^`\n]*`"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns of this program are written right")
}

/// Removes footnotes and addresses that no text refers to.
pub(super) fn without_unreferenced(text: &str, counts: &mut Counts) -> String {
    if !text.contains("]:") {
        return text.to_owned();
    }
    let parts = parts(text);
    let used = used_names(&parts);
    let mut out = String::with_capacity(text.len());
    for part in &parts {
        match &part.name {
            Some(name) if !used.contains(name) => counts.add(match name.starts_with('^') {
                true => Hidden::Footnote,
                false => Hidden::Reference,
            }),
            _ => out.push_str(part.text),
        }
    }
    out
}

/// A definition with the lines that belong to it, or other text.
struct Part<'t> {
    name: Option<String>,
    text: &'t str,
}

fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    let (mut start, mut name, mut at) = (0, None, 0);
    let mut is_after_blank = false;
    for line in text.split_inclusive('\n') {
        let found = DEFINITION.captures(line).filter(|found| is_definition(line, found));
        let is_blank = line.trim().is_empty();
        let is_indented =
            line.starts_with("    ") || line.starts_with('\t') || line.starts_with("  ");
        // A footnote goes on with lines that are indented, or that follow without an empty line. An address ends with
        // its line.
        let is_footnote = |name: &String| name.starts_with('^');
        let goes_on = name.as_ref().is_some_and(is_footnote)
            && (is_blank || is_indented || !is_after_blank)
            && !line.trim_start().starts_with('#');
        if found.is_some() || !goes_on {
            if start < at {
                parts.push(Part { name: name.take(), text: &text[start..at] });
            }
            start = at;
            name = found.map(|found| folded(&found[1]));
        }
        is_after_blank = is_blank;
        at += line.len();
    }
    parts.push(Part { name, text: &text[start..] });
    parts
}

/// An address has one word behind the colon; what has more is a paragraph.
fn is_definition(line: &str, found: &regex::Captures<'_>) -> bool {
    let whole = found.get(0).expect("a match has a whole");
    let rest = line[whole.end()..].trim();
    found[1].starts_with('^') || (!rest.is_empty() && rest.split_whitespace().count() == 1)
}

/// Names that text refers to, or a definition that is itself referred to.
fn used_names(parts: &[Part<'_>]) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    let mut left: Vec<&Part<'_>> = parts.iter().collect();
    loop {
        let (reached, rest): (Vec<_>, Vec<_>) = left
            .into_iter()
            .partition(|part| part.name.as_ref().is_none_or(|name| used.contains(name)));
        if reached.is_empty() {
            return used;
        }
        for part in reached {
            used.extend(references(part));
        }
        left = rest;
    }
}

fn references(part: &Part<'_>) -> Vec<String> {
    let text = CODE.replace_all(part.text, " ");
    let own = part.name.as_deref();
    let names = REFERENCE.captures_iter(&text);
    names.map(|found| folded(&found[1])).filter(|name| Some(name.as_str()) != own).collect()
}

/// Names are compared without regard to case and blanks.
fn folded(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
