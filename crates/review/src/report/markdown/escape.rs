//! Escapes model output for Markdown: code and lists are kept, everything else becomes plain text.
//!
//! Escaping is not enough against automatic links: Markdown renderers link addresses, `@name` mentions a user, and `#1`
//! refers to an issue. Such words are put into code spans.

use crate::report::limits::TEXT_CHARS_MAX;
use crate::report::phrases;
use crate::report::spans::{ProseSpan, split_spans};
use repertoire_text::layout::one_line;

/// Escapes a text on one line.
pub(super) fn escape_line(text: &str) -> String {
    escape_inline(&normalise_line(text), MarkdownContext::Text)
}

/// Escapes a text on one line for a table cell.
pub(super) fn escape_cell(text: &str) -> String {
    escape_inline(&normalise_line(text), MarkdownContext::Cell)
}

/// A code span on one line.
pub(super) fn code_span(text: &str) -> String {
    wrap_code(&normalise_line(text), MarkdownContext::Text)
}

/// Escapes a text of several lines: paragraphs, lists and code blocks.
pub(super) fn escape_block(text: &str) -> String {
    let text =
        phrases::visible(&phrases::clip_text(text.trim(), TEXT_CHARS_MAX)).replace('\t', "    ");
    let mut parts: Vec<String> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let start = line.trim_start();
        if start.starts_with("```") && !start.trim_start_matches('`').contains('`') {
            let inner = lines.by_ref().take_while(|line| !line.trim_start().starts_with("```"));
            let inner = inner.collect::<Vec<_>>().join("\n");
            parts.push(format!("\n{}\n", code_block("text", &inner)));
        } else {
            parts.push(escape_text_line(line));
        }
    }
    squeeze_blank_lines(&parts.join("\n"))
}

/// A code block. Its fence is longer than any run of backticks within.
pub(super) fn code_block(language: &str, text: &str) -> String {
    let text = phrases::visible(text);
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// Collapses consecutive blank lines.
fn squeeze_blank_lines(text: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    for line in text.lines() {
        if !(line.is_empty() && out.last().is_none_or(|last| last.is_empty())) {
            out.push(line);
        }
    }
    out.join("\n").trim_end().to_owned()
}

/// Escapes a line of a paragraph, or a list item.
fn escape_text_line(line: &str) -> String {
    let line = line.trim();
    for mark in ["- ", "* ", "+ "] {
        if let Some(rest) = line.strip_prefix(mark) {
            return format!("- {}", escape_inline(rest.trim_start(), MarkdownContext::Text));
        }
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    match line[digits..].strip_prefix(". ") {
        Some(rest) if (1..=3).contains(&digits) => {
            format!(
                "{}. {}",
                &line[..digits],
                escape_inline(rest.trim_start(), MarkdownContext::Text)
            )
        }
        _ => escape_inline(line, MarkdownContext::Text),
    }
}

fn normalise_line(text: &str) -> String {
    let text = phrases::visible(&phrases::clip_text(text, TEXT_CHARS_MAX));
    one_line(&text)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MarkdownContext {
    Text,
    Cell,
}

/// Escapes a text, with text between backticks as code.
fn escape_inline(text: &str, place: MarkdownContext) -> String {
    let parts = split_spans(text).into_iter().map(|part| match part {
        ProseSpan::Text(text) => escape_plain(text, place),
        ProseSpan::Code(code) => wrap_code(code, place),
    });
    parts.collect()
}

/// A code span within a line.
fn wrap_code(text: &str, place: MarkdownContext) -> String {
    if text.trim().is_empty() {
        return String::new();
    }
    // A bar ends a table cell even within a code span.
    let text = match place {
        MarkdownContext::Cell => text.replace('|', "\\|"),
        MarkdownContext::Text => text.to_owned(),
    };
    let longest = longest_run(&text);
    let marks = "`".repeat(longest + 1);
    match longest {
        0 => format!("{marks}{text}{marks}"),
        _ => format!("{marks} {text} {marks}"),
    }
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

fn escape_plain(text: &str, place: MarkdownContext) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for piece in text.split_inclusive(' ') {
        let word = piece.trim_end_matches(' ');
        if is_active(word) {
            out.push_str(&wrap_code(word, place));
        } else {
            out.push_str(&escape_word(word));
        }
        out.push_str(&piece[word.len()..]);
    }
    out
}

/// Returns true if a Markdown renderer would turn the word into a link, a mention or a reference.
fn is_active(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let refers = |at: usize| word[at + 1..].starts_with(|c: char| c.is_ascii_digit());
    lower.contains("://")
        || lower.contains("www.")
        || word.contains('@')
        || word.match_indices('#').any(|(at, _)| refers(at))
        || lower
            .strip_prefix("gh-")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn escape_word(word: &str) -> String {
    let mut out = String::with_capacity(word.len() + 4);
    for (at, c) in word.char_indices() {
        let anywhere =
            matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '|' | '~' | '$');
        // These have a meaning only at the start of a line or before a bracket.
        let at_start = at == 0 && matches!(c, '#' | '+' | '-' | '=' | ':' | '!');
        let numbered =
            matches!(c, '.' | ')') && at > 0 && word[..at].bytes().all(|b| b.is_ascii_digit());
        if anywhere || at_start || numbered {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(escape_block(text), expect);
    }

    #[test]
    fn code_and_lists_stay_what_they_are() {
        check("Call `f(*x)` twice", "Call `f(*x)` twice");
        check("- one\n* two\n1. three", "- one\n- two\n1. three");
        check("so:\n```rust\nlet a = `b`;\n```\nyes", "so:\n\n```text\nlet a = `b`;\n```\n\nyes");
        check("an end-to-end test, e.g. this-one.", "an end-to-end test, e.g. this-one.");
    }

    #[test]
    fn markup_is_text() {
        check("# no heading", "\\# no heading");
        check("a *b* _c_ <b> | [x](y)", "a \\*b\\* \\_c\\_ \\<b\\> \\| \\[x\\](y)");
        check("===", "\\===");
        check("> quote", "\\> quote");
        check("![a](b)", "\\!\\[a\\](b)");
        check("1) one", "1\\) one");
        check("$a$ ~~b~~ &amp;", "\\$a\\$ \\~\\~b\\~\\~ \\&amp;");
    }

    #[test]
    fn words_that_do_something_are_code() {
        check("ask @everyone or see #12", "ask `@everyone` or see `#12`");
        check("at https://a.example/x_y now", "at `https://a.example/x_y` now");
        check("a#b GH-7 www.b.example", "a#b `GH-7` `www.b.example`");
    }

    #[test]
    fn fences_are_longer_than_what_is_within() {
        assert_eq!(code_block("", "a ```` b"), "`````\na ```` b\n`````");
        assert_eq!(code_span("a`b"), "`` a`b ``");
        check("```\nnever closed", "```text\nnever closed\n```");
        check("one ` only", "one \\` only");
    }

    #[test]
    fn bars_do_not_end_a_cell() {
        assert_eq!(escape_cell("a|b `c|d`\ne"), "a\\|b `c\\|d` e");
    }
}
