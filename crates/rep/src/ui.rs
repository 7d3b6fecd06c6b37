//! Terminal output: colours, columns, wrapping, and the formatting of numbers.

use std::fmt::Display;
use std::io::Write;

use anstyle::{AnsiColor, Style};
use repertoire_text::invisible::{self, InvisibleSummary};
pub use repertoire_text::layout::text_width;
use repertoire_text::layout::{self, one_line, prefix_of_width};
use repertoire_text::terminal::{TerminalColour, printable_line};

/// The style of headings and names.
pub const STRONG: Style = Style::new().bold();
/// The style of less important text.
pub const FAINT: Style = Style::new().dimmed();
/// The style of good news.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// The style of errors.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// The style of warnings.
pub const WARN: Style = AnsiColor::Yellow.on_default();
/// The style of commands and names to type.
pub const ACCENT: Style = AnsiColor::Cyan.on_default();

/// The output streams of a command, with their settings.
pub struct TerminalUi<'a> {
    /// Standard output, for data.
    pub out: &'a mut dyn Write,
    /// Standard error, for messages.
    pub err: &'a mut dyn Write,
    /// True if `out` gets colour.
    pub colour: bool,
    /// True if `err` gets colour.
    pub err_colour: bool,
    /// Width of a line, in columns.
    pub columns: usize,
    /// True if data is printed as JSON.
    pub json: bool,
}

impl TerminalUi<'_> {
    /// Formats a text for `out` in a style, or unchanged if colour is off.
    pub fn paint(&self, style: Style, text: impl Display) -> String {
        if self.colour {
            format!("{}{text}{}", style.render(), style.render_reset())
        } else {
            text.to_string()
        }
    }

    /// Formats a text for `err` in a style, or unchanged if colour is off.
    pub fn paint_err(&self, style: Style, text: impl Display) -> String {
        if self.err_colour {
            format!("{}{text}{}", style.render(), style.render_reset())
        } else {
            text.to_string()
        }
    }

    /// The colour setting of `out`, for diagnostics.
    pub fn diagnostics_colour(&self) -> TerminalColour {
        if self.colour { TerminalColour::Always } else { TerminalColour::Never }
    }

    /// Prints a message to `err`, after flushing the data so far.
    pub fn print_note(&mut self, text: &str) -> std::io::Result<()> {
        self.out.flush()?;
        writeln!(self.err, "{text}")
    }

    /// Asks a question at the terminal, and returns true if the answer is yes.
    pub fn ask_yes_or_no(&mut self, question: &str) -> std::io::Result<bool> {
        let question = self.paint_err(STRONG, printable_line(question));
        let answer = self.read_answer(&format!("{question} [y]es / [n]o "))?;
        Ok(matches!(answer.as_str(), "y" | "yes"))
    }

    /// Asks a question at the terminal, and returns true unless the answer is no.
    pub fn ask_yes_by_default(&mut self, question: &str) -> std::io::Result<bool> {
        let question = self.paint_err(STRONG, printable_line(question));
        let answer = self.read_answer(&format!("{question} [Y]es / [n]o "))?;
        Ok(!matches!(answer.as_str(), "n" | "no"))
    }

    /// Asks a question at the terminal, and returns the answer in lower case.
    pub fn read_answer(&mut self, question: &str) -> std::io::Result<String> {
        Ok(self.read_line(question)?.to_lowercase())
    }

    /// Asks a question at the terminal, and returns the answer.
    pub fn read_line(&mut self, question: &str) -> std::io::Result<String> {
        self.out.flush()?;
        write!(self.err, "{question}")?;
        self.err.flush()?;
        let mut line = String::new();
        std::io::stdin().read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// Prints a warning to `err`, after flushing the data so far.
    pub fn print_warning(&mut self, text: &str) -> std::io::Result<()> {
        let head = self.paint_err(WARN, "warning:");
        self.print_note(&format!("{head} {}", printable_line(text)))
    }

    /// Warns that invisible characters were removed from a text.
    pub fn note_removed(&mut self, whose: &str, summary: &InvisibleSummary) -> std::io::Result<()> {
        self.warn_of_invisible(&format!("removed invisible characters from {whose}"), summary)
    }

    /// Warns that a text has invisible characters that are printed, because the output must be
    /// exact.
    pub fn note_printed(&mut self, whose: &str, text: &str) -> std::io::Result<()> {
        let what = format!("{whose} has invisible characters, printed as they are");
        self.warn_of_invisible(&what, &InvisibleSummary::count_in(text))
    }

    fn warn_of_invisible(&mut self, what: &str, summary: &InvisibleSummary) -> std::io::Result<()> {
        if summary.is_empty() { Ok(()) } else { self.print_warning(&format!("{what}: {summary}")) }
    }

    /// Prints a value as indented JSON.
    pub fn print_json(&mut self, value: &impl serde::Serialize) -> std::io::Result<()> {
        let json = serde_json::to_string_pretty(value).map_err(std::io::Error::from)?;
        writeln!(self.out, "{}", invisible::escaped_in_json(&json))
    }

    /// Prints a value as JSON on one line, and flushes, since a program may be reading along.
    pub fn print_json_line(&mut self, value: &impl serde::Serialize) -> std::io::Result<()> {
        let json = serde_json::to_string(value).map_err(std::io::Error::from)?;
        writeln!(self.out, "{}", invisible::escaped_in_json(&json))?;
        self.out.flush()
    }
}

/// Formats a text on one line, escaped and truncated to a number of columns.
pub fn fit_columns(text: &str, columns: usize) -> String {
    // Fast path: most texts are plain ASCII, where every byte is one column.
    let simple = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && !text.contains("  ")
        && !text.starts_with(' ')
        && !text.ends_with(' ');
    if simple && text.len() <= columns {
        return text.to_owned();
    }
    if simple {
        return format!("{}…", text[..columns.saturating_sub(1)].trim_end());
    }
    let text = printable_line(&one_line(text));
    if text_width(&text) <= columns {
        return text;
    }
    format!("{}…", prefix_of_width(&text, columns.saturating_sub(1)).trim_end())
}

/// Pads a text with spaces to a number of columns.
pub fn pad_columns(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text_width(text))))
}

/// Wraps a text at words, and indents all lines but the first.
pub fn wrap_words(text: &str, columns: usize, indent: &str) -> String {
    layout::wrap_words(text, columns).join(&format!("\n{indent}"))
}

/// Escapes a text of several lines for a terminal: line breaks and tabs stay, invisible characters
/// become `⟨U+202E⟩`.
pub fn printable_lines(text: &str) -> String {
    invisible::shown(text).replace("\r\n", "\n")
}

/// Formats dollars with enough digits for the first non-zero one.
pub fn format_dollars(usd: f64) -> String {
    if usd == 0.0 || usd.abs() >= 0.0001 {
        return format!("${usd:.4}");
    }
    let zeros = (-usd.abs().log10()).ceil().clamp(0.0, 12.0) as usize;
    let text = format!("${usd:.digits$}", digits = zeros + 1);
    text.trim_end_matches('0').to_owned()
}

/// Formats as `1,234`.
pub fn format_thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats as `0.3 s`, `12 s`, `2 min 5 s`.
pub fn format_time(ms: u64) -> String {
    match ms {
        0..=9_999 => format!("{:.1} s", ms as f64 / 1000.0),
        10_000..=119_999 => format!("{} s", ms / 1000),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

/// Formats as `1 skill`, `2 skills`.
pub fn format_count(number: usize, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {one}s"),
    }
}

/// Joins the items with commas, or returns `none` if there are none.
pub(crate) fn join_or(items: &[String], none: &str) -> String {
    if items.is_empty() { none.to_owned() } else { items.join(", ") }
}

/// Quotes an argument so that a POSIX shell takes it literally.
pub fn quote_argument(arg: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    let is_literal_in_double_quotes = |c: char| !"\"$`\\!".contains(c) && !c.is_control();
    if !arg.is_empty() && arg.chars().all(is_plain) {
        arg.to_owned()
    } else if arg.chars().all(is_literal_in_double_quotes) {
        format!("\"{arg}\"")
    } else {
        format!("'{}'", arg.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_runs_nothing_of_a_quoted_argument() {
        for (arg, quoted) in [
            ("a-b.md", "a-b.md"),
            ("", r#""""#),
            ("two words", r#""two words""#),
            ("it's", r#""it's""#),
            ("a;b", r#""a;b""#),
            ("*", r#""*""#),
            ("$(touch x)", "'$(touch x)'"),
            ("`id`", "'`id`'"),
            ("it's $x", r"'it'\''s $x'"),
        ] {
            assert_eq!(quote_argument(arg), quoted);
        }
    }

    #[test]
    fn texts_are_cut_and_wrapped_by_columns_not_bytes() {
        assert_eq!(fit_columns("a  b\nc", 10), "a b c");
        assert_eq!(fit_columns("日本語テキスト", 7), "日本語…");
        assert_eq!(pad_columns("日本", 6), "日本  ");
        assert_eq!(wrap_words("one two three", 7, "  "), "one two\n  three");
    }

    #[test]
    fn escapes_of_a_model_do_not_reach_the_terminal() {
        assert_eq!(printable_lines("a\tb\r\n\u{1b}[2Jc\u{202e}"), "a\tb\n⟨U+001B⟩[2Jc⟨U+202E⟩");
    }

    #[test]
    fn figures_are_written_as_people_write_them() {
        let written = [0.0, 1.5, 0.0002, 0.00001, 0.000034].map(format_dollars);
        assert_eq!(written, ["$0.0000", "$1.5000", "$0.0002", "$0.00001", "$0.000034"]);
        assert_eq!(format_thousands(1_234_567), "1,234,567");
        assert_eq!(
            (format_thousands(7), format_thousands(123)),
            ("7".to_owned(), "123".to_owned())
        );
        assert_eq!(
            (format_time(312), format_time(125_000)),
            ("0.3 s".to_owned(), "2 min 5 s".to_owned())
        );
    }
}
