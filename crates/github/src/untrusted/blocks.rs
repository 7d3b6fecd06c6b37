//! Fenced code blocks: info strings, which are not shown, and blocks that GitHub draws as an image
//! instead of showing their text.

use std::ops::Range;

use super::diagrams::{self, DiagramEdit};
use super::markup::TextEdit;
use super::{HiddenKind, formulas};

/// The languages that may stay in an info string. The rest of an info string is not shown, so it is
/// removed.
const LANGUAGES: &[&str] = &[
    "bash",
    "c",
    "clojure",
    "cmake",
    "console",
    "cpp",
    "cs",
    "csharp",
    "css",
    "csv",
    "cxx",
    "dart",
    "diff",
    "dockerfile",
    "elixir",
    "erlang",
    "fish",
    "fortran",
    "fsharp",
    "go",
    "graphql",
    "groovy",
    "haskell",
    "hcl",
    "html",
    "http",
    "ini",
    "java",
    "javascript",
    "js",
    "json",
    "json5",
    "jsonc",
    "jsx",
    "julia",
    "kotlin",
    "latex",
    "less",
    "log",
    "lua",
    "makefile",
    "markdown",
    "math",
    "md",
    "mermaid",
    "nix",
    "ocaml",
    "patch",
    "perl",
    "php",
    "plaintext",
    "powershell",
    "proto",
    "protobuf",
    "ps1",
    "py",
    "python",
    "r",
    "rb",
    "rs",
    "ruby",
    "rust",
    "sass",
    "scala",
    "scss",
    "sh",
    "shell",
    "sql",
    "suggestion",
    "svelte",
    "swift",
    "terraform",
    "tex",
    "text",
    "toml",
    "ts",
    "tsx",
    "txt",
    "typescript",
    "vim",
    "vue",
    "xml",
    "yaml",
    "yml",
    "zig",
    "zsh",
];

/// Blocks that are drawn as maps and 3D models.
const PICTURES: &[&str] = &["geojson", "topojson", "stl"];

/// The text in place of a diagram that is not understood.
const DIAGRAM_REMOVED: &str = "(a diagram that is not understood was removed)\n";

/// Returns the edits that sanitise a fenced block. `block` is the block with its fences, `content`
/// the ranges of its lines.
pub(super) fn edits_of_fenced(
    text: &str,
    block: &Range<usize>,
    content: &[Range<usize>],
) -> Vec<TextEdit> {
    let mut edits = Vec::new();
    let first_line = text[block.clone()].lines().next().unwrap_or_default();
    let marks = first_line.chars().take_while(|c| matches!(c, '`' | '~')).count();
    let info = &first_line[marks..];
    let language = language_of(info);
    let source: String = content.iter().map(|range| &text[range.clone()]).collect();
    let diagram = (language == "mermaid").then(|| diagrams::edits_of_diagram(&source));
    let known = if LANGUAGES.contains(&language.as_str()) { language.as_str() } else { "" };
    // The note in place of a diagram is no diagram.
    let kept = if diagram == Some(None) { "" } else { known };
    if info != kept {
        let is_hidden = info.trim().to_lowercase() != known;
        let range = block.start + marks..block.start + first_line.len();
        edits.push(TextEdit::new(range, kept, is_hidden.then_some(HiddenKind::FenceInfo)));
    }
    match diagram {
        Some(Some(parts)) => edits.extend(edits_of_mermaid(content, parts)),
        Some(None) => edits.extend(removal_of_mermaid(text, content)),
        None => {}
    }
    match language.as_str() {
        "math" if formulas::hides_in_block(&source) => {
            edits.extend(
                content.iter().map(|range| TextEdit::removal(range.clone(), HiddenKind::Formula)),
            );
        }
        picture if PICTURES.contains(&picture) => {
            edits.extend(
                content.iter().map(|range| TextEdit::removal(range.clone(), HiddenKind::Picture)),
            );
        }
        _ => {}
    }
    edits
}

fn language_of(info: &str) -> String {
    let is_name = |c: char| c.is_alphanumeric() || "+#._-".contains(c);
    let word: String = info.trim().chars().take_while(|c| is_name(*c)).collect();
    word.to_lowercase()
}

/// Returns the edits of a diagram, which are given in its source.
fn edits_of_mermaid(content: &[Range<usize>], parts: Vec<DiagramEdit>) -> Vec<TextEdit> {
    let in_text = |(range, with): (Range<usize>, String)| {
        let start = position_in(content, range.start)?;
        Some(TextEdit::new(start..start + range.len(), &with, Some(HiddenKind::Diagram)))
    };
    parts.into_iter().filter_map(in_text).collect()
}

/// Returns the edits that put a note in place of a diagram.
fn removal_of_mermaid(text: &str, content: &[Range<usize>]) -> Vec<TextEdit> {
    let [first, .., last] = content else {
        let removal = |range: &Range<usize>| {
            TextEdit::new(range.clone(), DIAGRAM_REMOVED, Some(HiddenKind::Diagram))
        };
        return content.iter().map(removal).collect();
    };
    let length: usize = content.iter().map(Range::len).sum();
    if length == last.end - first.start {
        let whole = first.start..last.end;
        return vec![TextEdit::new(whole, DIAGRAM_REMOVED, Some(HiddenKind::Diagram))];
    }
    // In a quotation or a list the line breaks stay, because the marks of the next line follow them.
    let mut notes = std::iter::once(DIAGRAM_REMOVED.trim_end());
    let removal = |range: &Range<usize>| {
        let end = range.start + text[range.clone()].trim_end_matches('\n').len();
        let note = notes.next().unwrap_or_default();
        TextEdit::new(range.start..end, note, Some(HiddenKind::Diagram))
    };
    content.iter().map(removal).collect()
}

/// Returns the position in a text of a position in the content of a block.
fn position_in(content: &[Range<usize>], mut at: usize) -> Option<usize> {
    for piece in content {
        if at < piece.len() {
            return Some(piece.start + at);
        }
        at -= piece.len();
    }
    None
}
