//! Fenced blocks: info strings that are not shown, and blocks that GitHub draws as a picture instead of showing their text.

use super::{Counts, Hidden, formulas};

/// Languages whose name may stay behind a fence. All else there is not shown, so it goes.
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

/// Blocks that are drawn as maps and models.
const PICTURES: &[&str] = &["geojson", "topojson", "stl"];

/// Lines of a diagram that are not drawn, or that decide how something is drawn, by their first word.
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

/// A fence at the start of a line: what stands before it, its marks, and its info string.
struct Fence<'t> {
    before: &'t str,
    marks: &'t str,
    info: &'t str,
}

impl<'t> Fence<'t> {
    fn of(line: &'t str) -> Option<Self> {
        let is_before = |c: char| c.is_whitespace() || c.is_ascii_digit() || ">*+-.)".contains(c);
        let body = line.trim_start_matches(is_before);
        let mark = body.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = body.trim_start_matches(mark);
        let (before, marks) = (&line[..line.len() - body.len()], &body[..body.len() - info.len()]);
        let is_fence = marks.len() >= 3 && !(mark == '`' && info.contains('`'));
        is_fence.then_some(Fence { before, marks, info: info.trim() })
    }

    fn closes(&self, opening: &Fence<'_>) -> bool {
        self.info.is_empty() && self.marks.starts_with(opening.marks)
    }

    fn language(&self) -> String {
        let is_name = |c: char| c.is_alphanumeric() || "+#._-".contains(c);
        let word: String = self.info.chars().take_while(|c| is_name(*c)).collect();
        word.to_lowercase()
    }
}

/// Cleans fences and the blocks between them.
pub(super) fn without_hidden_text(text: &str, counts: &mut Counts) -> String {
    if !text.contains("```") && !text.contains("~~~") {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n');
    while let Some(line) = lines.next() {
        let Some(fence) = Fence::of(line.trim_end_matches('\n')) else {
            out.push_str(line);
            continue;
        };
        let mut block = Vec::new();
        let mut closing = None;
        for line in lines.by_ref() {
            if Fence::of(line.trim_end_matches('\n')).is_some_and(|end| end.closes(&fence)) {
                closing = Some(line);
                break;
            }
            block.push(line);
        }
        push_fence(&mut out, &fence, line.ends_with('\n'), counts);
        push_block(&mut out, &fence.language(), &block, counts);
        out.push_str(closing.unwrap_or_default());
    }
    out
}

fn push_fence(out: &mut String, fence: &Fence<'_>, is_ended: bool, counts: &mut Counts) {
    let language = fence.language();
    let is_known = LANGUAGES.contains(&language.as_str());
    let kept = if is_known { language.as_str() } else { "" };
    if fence.info.to_lowercase() != kept {
        counts.add(Hidden::FenceInfo);
    }
    out.push_str(&format!("{}{}{kept}", fence.before, fence.marks));
    if is_ended {
        out.push('\n');
    }
}

fn push_block(out: &mut String, language: &str, block: &[&str], counts: &mut Counts) {
    match language {
        "mermaid" => push_diagram(out, block, counts),
        "math" if formulas::hides_in_block(&block.concat()) => counts.add(Hidden::Formula),
        picture if PICTURES.contains(&picture) && !block.is_empty() => counts.add(Hidden::Picture),
        _ => block.iter().for_each(|line| out.push_str(line)),
    }
}

/// A diagram keeps the lines that name what is drawn.
fn push_diagram(out: &mut String, block: &[&str], counts: &mut Counts) {
    let mut is_inside = false;
    for line in block {
        let plain = line.trim_start_matches(|c: char| c.is_whitespace() || c == '>').to_lowercase();
        let word = plain.split(|c: char| c.is_whitespace() || c == ':' || c == '{').next();
        let is_hidden = plain.starts_with("%%")
            || word.is_some_and(|word| DIAGRAM_LINES.contains(&word))
            || is_inside;
        if plain.starts_with("accdescr") && plain.contains('{') {
            is_inside = true;
        }
        if plain.contains('}') {
            is_inside = false;
        }
        if is_hidden {
            counts.add(Hidden::Diagram);
            continue;
        }
        match line.split_once("%%") {
            None => out.push_str(line),
            Some((drawn, _)) => {
                counts.add(Hidden::Diagram);
                out.push_str(drawn.trim_end());
                out.push('\n');
            }
        }
    }
}
