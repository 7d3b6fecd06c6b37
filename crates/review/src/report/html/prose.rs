//! Splits model output into paragraphs, lists and code. No other Markdown is interpreted.

use minijinja::{Value, context};

use crate::report::limits::TEXT_CHARS_MAX;
use crate::report::phrases;
use crate::report::spans::{ProseSpan, split_spans};

/// The blocks of a text of several lines, for the macro `prose`.
pub(super) fn block_values(text: &str) -> Vec<Value> {
    let text = phrases::clip_text(text.trim(), TEXT_CHARS_MAX);
    let mut writer = BlockWriter::default();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            writer.close_block();
            let inner = lines.by_ref().take_while(|line| !line.trim_start().starts_with("```"));
            let text = inner.collect::<Vec<_>>().join("\n");
            writer.blocks.push(context! { kind => "code", text });
        } else if let Some(item) = strip_item_mark(trimmed) {
            writer.push_line(BlockKind::List, item);
        } else if trimmed.is_empty() {
            writer.close_block();
        } else {
            writer.push_line(BlockKind::Paragraph, trimmed);
        }
    }
    writer.close_block();
    writer.blocks
}

/// The spans of a text that is put on one line, for the macro `spans`.
pub(super) fn line_values(text: &str, chars_max: usize) -> Value {
    span_values(&phrases::to_one_line(text, chars_max))
}

/// The spans of a line. Text between backticks is code.
fn span_values(line: &str) -> Value {
    let spans = split_spans(line).into_iter().map(|span| match span {
        ProseSpan::Text(text) => context! { is_code => false, text },
        ProseSpan::Code(text) => context! { is_code => true, text },
    });
    Value::from(spans.collect::<Vec<Value>>())
}

fn strip_item_mark(line: &str) -> Option<&str> {
    ["- ", "* "].iter().find_map(|mark| line.strip_prefix(mark))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Paragraph,
    List,
}

#[derive(Default)]
struct BlockWriter {
    blocks: Vec<Value>,
    open: Option<(BlockKind, Vec<Value>)>,
}

impl BlockWriter {
    fn push_line(&mut self, kind: BlockKind, line: &str) {
        if self.open.as_ref().is_some_and(|(open, _)| *open != kind) {
            self.close_block();
        }
        let (_, lines) = self.open.get_or_insert_with(|| (kind, Vec::new()));
        lines.push(span_values(line));
    }

    fn close_block(&mut self) {
        let Some((kind, lines)) = self.open.take() else { return };
        let kind = match kind {
            BlockKind::Paragraph => "paragraph",
            BlockKind::List => "list",
        };
        self.blocks.push(context! { kind, lines });
    }
}

#[cfg(test)]
mod tests {
    use repertoire_text::html::page_environment;

    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let env = page_environment(&[
            ("macros.html", include_str!("macros.html")),
            ("test", "{% import 'macros.html' as macros %}{{ macros.prose(blocks) }}"),
        ]);
        let values = context! { blocks => block_values(text) };
        assert_eq!(env.get_template("test").unwrap().render(values).unwrap(), expect);
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
