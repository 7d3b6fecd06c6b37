//! Renders model output as paragraphs, lists and code. No other Markdown is interpreted.

use super::esc;
use crate::report::limits::TEXT_CHARS_MAX;
use crate::report::spans::{Span, spans};
use crate::report::words;

/// Renders a text of several lines.
pub(super) fn block(text: &str) -> String {
    let text = words::clip(text.trim(), TEXT_CHARS_MAX);
    let mut writer = Writer::default();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            writer.close();
            let inner = lines.by_ref().take_while(|line| !line.trim_start().starts_with("```"));
            let inner = inner.map(esc).collect::<Vec<_>>().join("\n");
            writer.out.push_str(&format!("<pre tabindex=\"0\">{inner}</pre>"));
        } else if let Some(item) = item(trimmed) {
            writer.open(Open::List);
            writer.out.push_str(&format!("<li>{}</li>", inline(item)));
        } else if trimmed.is_empty() {
            writer.close();
        } else {
            let goes_on = writer.open == Some(Open::Paragraph);
            writer.open(Open::Paragraph);
            writer.out.push_str(if goes_on { "\n" } else { "" });
            writer.out.push_str(&inline(trimmed));
        }
    }
    writer.close();
    writer.out
}

/// Renders a line, with text between backticks as code.
pub(super) fn inline(text: &str) -> String {
    let parts = spans(text).into_iter().map(|part| match part {
        Span::Text(text) => esc(text),
        Span::Code(code) => format!("<code>{}</code>", esc(code)),
    });
    parts.collect()
}

fn item(line: &str) -> Option<&str> {
    ["- ", "* "].iter().find_map(|mark| line.strip_prefix(mark))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Paragraph,
    List,
}

#[derive(Default)]
struct Writer {
    out: String,
    open: Option<Open>,
}

impl Writer {
    fn open(&mut self, open: Open) {
        if self.open == Some(open) {
            return;
        }
        self.close();
        self.out.push_str(match open {
            Open::Paragraph => "<p>",
            Open::List => "<ul>",
        });
        self.open = Some(open);
    }

    fn close(&mut self) {
        self.out.push_str(match self.open.take() {
            Some(Open::Paragraph) => "</p>",
            Some(Open::List) => "</ul>",
            None => "",
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(block(text), expect);
    }

    #[test]
    fn paragraphs_lists_and_code_are_understood() {
        check("one\ntwo\n\nthree", "<p>one\ntwo</p><p>three</p>");
        check(
            "so:\n- `a<b>`\n- c",
            "<p>so:</p><ul><li><code>a&lt;b&gt;</code></li><li>c</li></ul>",
        );
        check("```rust\na\n b\n```\nc", "<pre tabindex=\"0\">a\n b</pre><p>c</p>");
        check("```\nopen", "<pre tabindex=\"0\">open</pre>");
        check("", "");
    }

    #[test]
    fn markup_is_text() {
        check("</p><script>`", "<p>&lt;/p&gt;&lt;script&gt;`</p>");
        check("`` ` `` `", "<p><code>`</code> `</p>");
    }
}
