//! Lines of a terminal: wrapped, indented, coloured, and harmless.

use anstyle::Style;
use repertoire_text::terminal::printable;
use unicode_width::UnicodeWidthChar;

use repertoire_text::styles::Styles;
use crate::report::Look;
use crate::report::limits::{LINE_CHARS_MAX, TEXT_CHARS_MAX};
use crate::report::words;

/// Narrower than this, nothing can be read.
const WIDTH_MIN: usize = 30;

/// What is written, and how.
pub(super) struct Pen {
    out: String,
    width: usize,
    pub(super) styles: Styles,
}

impl Pen {
    pub(super) fn new(look: &Look) -> Self {
        Pen { out: String::new(), width: look.width.max(WIDTH_MIN), styles: look.styles }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    pub(super) fn done(self) -> String {
        self.out
    }

    pub(super) fn blank(&mut self) {
        if !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// One line.
    pub(super) fn line(&mut self, indent: &str, text: &str, style: Style) {
        self.put(indent, &[(&printable(text), style)]);
    }

    pub(super) fn heading(&mut self, text: &str) {
        self.line("", text, self.styles.strong);
        self.blank();
    }

    /// A severity and a title, which wraps.
    pub(super) fn titled(&mut self, severity: &str, style: Style, title: &str) {
        let room = self.width.saturating_sub(severity.len() + 2);
        let strong = self.styles.strong;
        for (at, line) in wrap(title, room).iter().enumerate() {
            match at {
                0 => self.put("", &[(severity, style), ("  ", Style::new()), (line, strong)]),
                _ => self.put(&" ".repeat(severity.len() + 2), &[(line, strong)]),
            }
        }
    }

    /// Two texts on one line.
    pub(super) fn pair(
        &mut self,
        indent: &str,
        first: &str,
        style: Style,
        second: &str,
        other: Style,
    ) {
        let (first, second) = (printable(first), printable(second));
        self.put(indent, &[(&first, style), ("  ", Style::new()), (&second, other)]);
    }

    /// A text that wraps beside a label. The style is that of the label, or of the text if there is none.
    pub(super) fn wrapped(&mut self, indent: &str, label: &str, text: &str, style: Style) {
        let room = self.width.saturating_sub(indent.len() + label.len());
        let text_style = if label.is_empty() { style } else { Style::new() };
        let hanging = format!("{indent}{}", " ".repeat(label.len()));
        for (at, line) in wrap(text, room).iter().enumerate() {
            match at {
                0 => self.put(indent, &[(label, style), (line, text_style)]),
                _ => self.put(&hanging, &[(line, text_style)]),
            }
        }
    }

    /// A text of several lines, each of which wraps, and a blank line after it.
    pub(super) fn paragraphs(&mut self, indent: &str, label: &str, text: &str) {
        let text = words::clip(text.trim(), TEXT_CHARS_MAX);
        if text.is_empty() {
            return;
        }
        let labelled = format!("{}{text}", printable(label));
        for line in labelled.lines() {
            match line.trim().is_empty() {
                true => self.blank(),
                false => self.wrapped(indent, "", line, Style::new()),
            }
        }
        self.blank();
    }

    /// A line of code after a gutter, cut to the width.
    pub(super) fn code(&mut self, gutter: &str, gutter_style: Style, text: &str, style: Style) {
        let text = words::visible(text).replace('\t', "    ");
        let room = self.width.saturating_sub(gutter.len());
        let text = cut(&text.replace('\n', "\\n"), room.min(LINE_CHARS_MAX));
        self.put("", &[(gutter, gutter_style), (text.trim_end(), style)]);
    }

    /// A line of code to be copied: it is as long as it is.
    pub(super) fn whole_code(&mut self, indent: &str, text: &str, style: Style) {
        let text = words::visible(text).replace('\n', "\\n");
        self.put(indent, &[(text.trim_end(), style)]);
    }

    /// All lines go through here: none of them must be a command to a build log.
    fn put(&mut self, indent: &str, parts: &[(&str, Style)]) {
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

fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Words in lines of a width, harmless.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace().map(printable) {
        let length = columns(&word);
        if used > 0 && used + 1 + length > width {
            lines.push(String::new());
            used = 0;
        }
        let Some(line) = lines.last_mut() else { continue };
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(&word);
        used += length;
    }
    lines
}

/// At most so many columns of a text.
fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}
