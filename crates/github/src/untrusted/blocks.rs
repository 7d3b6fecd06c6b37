//! Fenced code blocks: info strings, which are not shown, and blocks that GitHub draws as an image
//! instead of showing their text.

use std::ops::Range;

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

/// The first words of diagram lines that are not drawn, or that only change the style.
const DIAGRAM_LINES: &[&str] = &[
    "%%",
    "acctitle",
    "accdescr",
    "click",
    "style",
    "classdef",
    "class",
    "linkstyle",
    "cssclass",
    "link",
    "links",
    "callback",
    "href",
    "properties",
];

/// The maximum length of a name in a diagram. The names of nodes with a label are not drawn.
const DIAGRAM_NAME_CHARS_MAX: usize = 24;

/// The maximum number of words in such a name.
const DIAGRAM_NAME_WORDS_MAX: usize = 3;

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
    let kept = if LANGUAGES.contains(&language.as_str()) { language.as_str() } else { "" };
    if info != kept {
        let is_hidden = info.trim().to_lowercase() != kept;
        let range = block.start + marks..block.start + first_line.len();
        edits.push(TextEdit::new(range, kept, is_hidden.then_some(HiddenKind::FenceInfo)));
    }
    let lines = || content.iter().flat_map(|range| lines_of(text, range.clone()));
    let source: String = content.iter().map(|range| &text[range.clone()]).collect();
    match language.as_str() {
        "mermaid" => edits.extend(hidden_diagram_lines(text, lines())),
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

fn lines_of(text: &str, range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut at = range.start;
    text[range].split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        start..at
    })
}

/// Returns the removals of diagram lines that are not drawn.
fn hidden_diagram_lines(text: &str, lines: impl Iterator<Item = Range<usize>>) -> Vec<TextEdit> {
    let mut edits = Vec::new();
    let (mut is_description, mut is_settings) = (false, false);
    for (number, range) in lines.enumerate() {
        let line = &text[range.clone()];
        let plain = line.trim().to_lowercase();
        let is_ruler = plain == "---" && (number == 0 || is_settings);
        if is_ruler {
            is_settings = number == 0;
        }
        let word = plain.split(|c: char| c.is_whitespace() || c == ':' || c == '{').next();
        let is_hidden = is_ruler
            || is_settings
            || is_description
            || plain.starts_with("%%")
            || word.is_some_and(|word| DIAGRAM_LINES.contains(&word))
            || has_long_name(line);
        if plain.starts_with("accdescr") && plain.contains('{') {
            is_description = true;
        }
        if plain.contains('}') {
            is_description = false;
        }
        if is_hidden {
            edits.push(TextEdit::removal(range, HiddenKind::Diagram));
        } else if let Some(at) = line.find("%%") {
            let start = range.start + line[..at].trim_end().len();
            let end = range.start + line.trim_end_matches('\n').len();
            edits.push(TextEdit::removal(start..end, HiddenKind::Diagram));
        }
    }
    edits
}

fn has_long_name(line: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    line.split(|c: char| !is_name(c)).any(|name| {
        let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        name.chars().count() > DIAGRAM_NAME_CHARS_MAX && name.chars().any(char::is_alphanumeric)
            || words.count() > DIAGRAM_NAME_WORDS_MAX
    })
}
