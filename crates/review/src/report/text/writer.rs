//! Writes terminal lines: wrapped, indented, coloured, and without control characters.

use anstyle::Style;
use repertoire_text::layout::{prefix_of_width, text_width, wrap_words};
use repertoire_text::terminal::printable_line;

use crate::report::ReportTextLayout;
use crate::report::limits::{LINE_CHARS_MAX, TEXT_CHARS_MAX};
use crate::report::phrases;
use repertoire_text::styles::Styles;

/// Minimum width. Narrower text is unreadable.
const WIDTH_MIN: usize = 30;

/// A text under construction, with its width and colours.
pub(super) struct ReportTextWriter {
    out: String,
    width: usize,
    pub(super) styles: Styles,
}

impl ReportTextWriter {
    pub(super) fn new(look: &ReportTextLayout) -> Self {
        ReportTextWriter {
            out: String::new(),
            width: look.width.max(WIDTH_MIN),
            styles: look.styles,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    pub(super) fn into_text(self) -> String {
        self.out
    }

    pub(super) fn write_blank(&mut self) {
        if !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    pub(super) fn write_line(&mut self, indent: &str, text: &str, style: Style) {
        self.write_parts(indent, &[(&printable_line(text), style)]);
    }

    pub(super) fn write_heading(&mut self, text: &str) {
        self.write_line("", text, self.styles.strong);
        self.write_blank();
    }

    /// Writes a severity and a title, wrapped to the width.
    pub(super) fn write_title(&mut self, severity: &str, style: Style, title: &str) {
        let room = self.width.saturating_sub(severity.len() + 2);
        let strong = self.styles.strong;
        for (at, line) in wrap_words(title, room).iter().enumerate() {
            match at {
                0 => {
                    self.write_parts("", &[(severity, style), ("  ", Style::new()), (line, strong)])
                }
                _ => self.write_parts(&" ".repeat(severity.len() + 2), &[(line, strong)]),
            }
        }
    }

    /// Writes two texts on one line.
    pub(super) fn write_pair(
        &mut self,
        indent: &str,
        first: &str,
        style: Style,
        second: &str,
        other: Style,
    ) {
        let (first, second) = (printable_line(first), printable_line(second));
        self.write_parts(indent, &[(&first, style), ("  ", Style::new()), (&second, other)]);
    }

    /// Writes a text, wrapped beside its label. The style applies to the label, or to the text if the label is empty.
    pub(super) fn write_wrapped(&mut self, indent: &str, label: &str, text: &str, style: Style) {
        let room = self.width.saturating_sub(indent.len() + label.len());
        let text_style = if label.is_empty() { style } else { Style::new() };
        let hanging = format!("{indent}{}", " ".repeat(label.len()));
        for (at, line) in wrap_words(text, room).iter().enumerate() {
            match at {
                0 => self.write_parts(indent, &[(label, style), (line, text_style)]),
                _ => self.write_parts(&hanging, &[(line, text_style)]),
            }
        }
    }

    /// Writes a text of several lines, each wrapped, and a blank line after it.
    pub(super) fn write_paragraphs(&mut self, indent: &str, label: &str, text: &str) {
        let text = phrases::clip_text(text.trim(), TEXT_CHARS_MAX);
        if text.is_empty() {
            return;
        }
        let labelled = format!("{}{text}", printable_line(label));
        for line in labelled.lines() {
            if line.trim().is_empty() {
                self.write_blank();
            } else {
                self.write_wrapped(indent, "", line, Style::new());
            }
        }
        self.write_blank();
    }

    /// Writes a line of code after a gutter, truncated to the width.
    pub(super) fn write_code(
        &mut self,
        gutter: &str,
        gutter_style: Style,
        text: &str,
        style: Style,
    ) {
        let text = phrases::visible(text).replace('\t', "    ");
        let room = self.width.saturating_sub(gutter.len());
        let text = truncate_to_width(&text.replace('\n', "\\n"), room.min(LINE_CHARS_MAX));
        self.write_parts("", &[(gutter, gutter_style), (text.trim_end(), style)]);
    }

    /// Writes a line of code that users may copy, so it is neither wrapped nor truncated.
    pub(super) fn write_whole_code(&mut self, indent: &str, text: &str, style: Style) {
        let text = phrases::visible(text).replace('\n', "\\n");
        self.write_parts(indent, &[(text.trim_end(), style)]);
    }

    /// Writes a line. All output goes through here, so that no line can be a workflow command in a CI log.
    fn write_parts(&mut self, indent: &str, parts: &[(&str, Style)]) {
        let mut line = indent.to_owned();
        for (text, style) in parts {
            let mut text = text.replace("##[", "#\\u{23}[");
            if line.trim().is_empty() && text.trim_start().starts_with("::") {
                text = text.replacen(':', "\\u{3a}", 1);
            }
            if !text.is_empty() {
                line.push_str(&format!("{}{text}{}", style.render(), style.render_reset()));
            }
        }
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }
}

/// Truncates a text to a number of columns.
fn truncate_to_width(text: &str, width: usize) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    format!("{}…", prefix_of_width(text, width.saturating_sub(1)))
}
