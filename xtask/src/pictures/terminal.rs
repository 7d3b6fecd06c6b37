//! Lines of a terminal with their styles, from the escape sequences of a program's output.

use repertoire_text::layout::text_width;

/// The foreground colour of a text: one of the 8 colours of a terminal, or its bright variant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TerminalInk {
    #[default]
    Default,
    Colour(u8),
    Bright(u8),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TerminalStyle {
    pub(super) ink: TerminalInk,
    pub(super) bold: bool,
    pub(super) faint: bool,
}

/// A text in one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TerminalSpan {
    pub(super) text: String,
    pub(super) style: TerminalStyle,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TerminalLine {
    pub(super) spans: Vec<TerminalSpan>,
}

impl TerminalLine {
    /// A line with a prompt and a command.
    pub(super) fn prompt(args: &[&str]) -> Self {
        let words = args.iter().map(|arg| repertoire_cli::ui::quote_argument(arg));
        let command = words.fold("rep".to_owned(), |line, word| format!("{line} {word}"));
        let mut line = TerminalLine::default();
        let prompt = TerminalStyle { ink: TerminalInk::Colour(2), bold: true, faint: false };
        line.push_text("$ ", prompt);
        line.push_text(&command, TerminalStyle { bold: true, ..TerminalStyle::default() });
        line
    }

    fn push_text(&mut self, text: &str, style: TerminalStyle) {
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.text.push_str(text),
            _ if text.is_empty() => {}
            _ => self.spans.push(TerminalSpan { text: text.to_owned(), style }),
        }
    }
}

/// Parses the lines of an output. Escape sequences other than styles are left out.
pub(super) fn parse_output(text: &str) -> Vec<TerminalLine> {
    let mut style = TerminalStyle::default();
    text.lines().map(|line| parse_line(line, &mut style)).collect()
}

fn parse_line(text: &str, style: &mut TerminalStyle) -> TerminalLine {
    let mut line = TerminalLine::default();
    let mut rest = text;
    while let Some((plain, escape)) = rest.split_once("\u{1b}[") {
        line.push_text(plain, *style);
        let end = escape.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(escape.len());
        let (codes, after) = escape.split_at(end);
        if after.starts_with('m') {
            codes.split(';').for_each(|code| apply_code(code, style));
        }
        rest = after.get(1..).unwrap_or_default();
    }
    line.push_text(rest, *style);
    line
}

fn apply_code(code: &str, style: &mut TerminalStyle) {
    match code.parse::<u8>().unwrap_or(0) {
        0 => *style = TerminalStyle::default(),
        1 => style.bold = true,
        2 => style.faint = true,
        22 => (style.bold, style.faint) = (false, false),
        code @ 30..=37 => style.ink = TerminalInk::Colour(code - 30),
        39 => style.ink = TerminalInk::Default,
        code @ 90..=97 => style.ink = TerminalInk::Bright(code - 90),
        _ => {}
    }
}

/// Breaks lines that are longer than the terminal is wide, as a terminal does.
pub(super) fn wrap_lines(lines: Vec<TerminalLine>, columns: usize) -> Vec<TerminalLine> {
    let mut out = Vec::new();
    for line in lines {
        let mut current = TerminalLine::default();
        let mut used = 0;
        for span in line.spans {
            for c in span.text.chars() {
                let mut buffer = [0; 4];
                let c = &*c.encode_utf8(&mut buffer);
                let width = text_width(c);
                if used + width > columns {
                    out.push(std::mem::take(&mut current));
                    used = 0;
                }
                current.push_text(c, span.style);
                used += width;
            }
        }
        out.push(current);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_last_until_they_are_reset() {
        let lines =
            parse_output("a \u{1b}[1m\u{1b}[31mb\u{1b}[0m c\n\u{1b}[2md\ne\u{1b}[0m\u{1b}[Kf");
        let spans: Vec<Vec<&str>> = lines
            .iter()
            .map(|line| line.spans.iter().map(|span| span.text.as_str()).collect())
            .collect();
        assert_eq!(spans, [vec!["a ", "b", " c"], vec!["d"], vec!["e", "f"]]);
        let red = TerminalStyle { ink: TerminalInk::Colour(1), bold: true, faint: false };
        assert_eq!(lines[0].spans[1].style, red);
        assert!(lines[2].spans[0].style.faint && !lines[2].spans[1].style.faint);
    }

    #[test]
    fn long_lines_continue_on_the_next() {
        let lines = wrap_lines(parse_output("abcd\u{1b}[1mef\u{1b}[0m\n\nx"), 5);
        let texts: Vec<String> =
            lines.iter().map(|l| l.spans.iter().map(|s| s.text.as_str()).collect()).collect();
        assert_eq!(texts, ["abcde", "f", "", "x"]);
    }
}
