//! Renders model output as paragraphs, lists and code. No other Markdown is interpreted.

use super::esc;
use crate::report::limits::TEXT_CHARS_MAX;
use crate::report::phrases;
use crate::report::spans::{ProseSpan, split_spans};

/// Renders a text of several lines.
pub(super) fn render_block(text: &str) -> String {
    let text = phrases::clip_text(text.trim(), TEXT_CHARS_MAX);
    let mut writer = ProseWriter::default();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            writer.close_element();
            let inner = lines.by_ref().take_while(|line| !line.trim_start().starts_with("```"));
            let inner = inner.map(esc).collect::<Vec<_>>().join("\n");
            writer.out.push_str(&format!("<pre tabindex=\"0\">{inner}</pre>"));
        } else if let Some(item) = strip_item_mark(trimmed) {
            writer.open_element(OpenElement::List);
            writer.out.push_str(&format!("<li>{}</li>", render_inline(item)));
        } else if trimmed.is_empty() {
            writer.close_element();
        } else {
            let goes_on = writer.open == Some(OpenElement::Paragraph);
            writer.open_element(OpenElement::Paragraph);
            writer.out.push_str(if goes_on { "\n" } else { "" });
            writer.out.push_str(&render_inline(trimmed));
        }
    }
    writer.close_element();
    writer.out
}

/// Renders a line, with text between backticks as code.
pub(super) fn render_inline(text: &str) -> String {
    let parts = split_spans(text).into_iter().map(|part| match part {
        ProseSpan::Text(text) => esc(text),
        ProseSpan::Code(code) => format!("<code>{}</code>", esc(code)),
    });
    parts.collect()
}

fn strip_item_mark(line: &str) -> Option<&str> {
    ["- ", "* "].iter().find_map(|mark| line.strip_prefix(mark))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenElement {
    Paragraph,
    List,
}

#[derive(Default)]
struct ProseWriter {
    out: String,
    open: Option<OpenElement>,
}

impl ProseWriter {
    fn open_element(&mut self, open: OpenElement) {
        if self.open == Some(open) {
            return;
        }
        self.close_element();
        self.out.push_str(match open {
            OpenElement::Paragraph => "<p>",
            OpenElement::List => "<ul>",
        });
        self.open = Some(open);
    }

    fn close_element(&mut self) {
        self.out.push_str(match self.open.take() {
            Some(OpenElement::Paragraph) => "</p>",
            Some(OpenElement::List) => "</ul>",
            None => "",
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(render_block(text), expect);
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
