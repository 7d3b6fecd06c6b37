//! The lines around an error, from the project's files.

use std::collections::BTreeMap;

use super::super::error::ParsedError;
use crate::limits::{ERROR_CONTEXT_CHARS_MAX, ERROR_CONTEXT_FILES_MAX, ERROR_CONTEXT_LINES};

/// Adds the surrounding lines to each error whose location is known and whose file can be read.
pub(super) fn add_context(errors: &mut [ParsedError], read: &dyn Fn(&str) -> Option<String>) {
    let mut files: BTreeMap<String, Option<String>> = BTreeMap::new();
    for error in errors {
        let (Some(file), Some(line)) = (&error.file, error.line) else { continue };
        if files.len() >= ERROR_CONTEXT_FILES_MAX && !files.contains_key(file) {
            continue;
        }
        let text = files.entry(file.clone()).or_insert_with(|| read(file));
        error.context = text.as_deref().map(|text| lines_around(text, line)).unwrap_or_default();
    }
}

/// The lines around `line`, which is marked.
fn lines_around(text: &str, line: u32) -> Vec<String> {
    let hit = usize::try_from(line).unwrap_or(usize::MAX);
    let first = hit.saturating_sub(ERROR_CONTEXT_LINES).max(1);
    let count = hit.saturating_add(ERROR_CONTEXT_LINES) - first + 1;
    let lines: Vec<(usize, &str)> =
        (first..).zip(text.lines().skip(first - 1)).take(count).collect();
    // The file has changed and no longer has this line.
    if hit == 0 || !lines.iter().any(|(number, _)| *number == hit) {
        return Vec::new();
    }
    let width = lines.last().map_or(1, |(number, _)| number.to_string().len());
    let shown = lines.into_iter().map(|(number, text)| {
        let mark = if number == hit { '>' } else { ' ' };
        let text: String = text.chars().take(ERROR_CONTEXT_CHARS_MAX).collect();
        format!("{mark} {number:width$} | {text}").trim_end().to_owned()
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_lines_on_each_side_and_the_place_itself_marked() {
        let text = (1..=20).map(|n| format!("line {n}\n")).collect::<String>();
        assert_eq!(
            lines_around(&text, 10),
            [
                "   7 | line 7",
                "   8 | line 8",
                "   9 | line 9",
                "> 10 | line 10",
                "  11 | line 11",
                "  12 | line 12",
                "  13 | line 13",
            ]
        );
        assert_eq!(lines_around("one\ntwo\n", 1), ["> 1 | one", "  2 | two"]);
        assert!(lines_around("one\n", 2).is_empty() && lines_around("", 0).is_empty());
        assert!(lines_around("one\n", u32::MAX).is_empty());
    }
}
