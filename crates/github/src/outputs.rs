//! The outputs of a workflow step: output values, the summary, and commands to the runner. Pure;
//! the caller writes the files.

use std::borrow::Cow;

/// The maximum size of a summary. The runner discards a summary above 1 MiB entirely.
pub const SUMMARY_BYTES_MAX: usize = 1024 * 1024 - 1024;
/// The maximum size of one output.
pub const OUTPUT_BYTES_MAX: usize = 256 * 1024;
/// The maximum length of an annotation.
pub const ANNOTATION_CHARS_MAX: usize = 4_000;

/// The reason an output cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    /// The name is not valid for an output.
    #[error("`{name}` cannot be the name of an output: letters, digits, `-` and `_` only")]
    BadName { name: String },
    /// The value contains the delimiter, or the delimiter is not valid.
    #[error("the output `{name}` cannot be told from its end; try another delimiter")]
    BadDelimiter { name: String },
}

/// Formats an output for the file in `GITHUB_OUTPUT`.
///
/// `delimiter` must be unpredictable: a value that contains it could set outputs of its own.
pub fn output(name: &str, value: &str, delimiter: &str) -> Result<String, OutputError> {
    if !starts_like_name(name) || !name.bytes().all(is_name_byte) {
        let name = repertoire_text::terminal::printable(name);
        return Err(OutputError::BadName { name });
    }
    let is_valid = delimiter.len() >= 16 && delimiter.bytes().all(is_name_byte);
    let value = bounded(value, OUTPUT_BYTES_MAX);
    if !is_valid || value.contains(delimiter) || name.contains(delimiter) {
        return Err(OutputError::BadDelimiter { name: name.to_owned() });
    }
    Ok(format!("{name}<<{delimiter}\n{value}\n{delimiter}\n"))
}

fn starts_like_name(name: &str) -> bool {
    name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// Truncates a summary to the runner's limit, with a note.
pub fn summary(markdown: &str) -> String {
    bounded(markdown, SUMMARY_BYTES_MAX).into_owned()
}

/// Escapes text for a cell or line of Markdown, so that nothing in it is markup.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in repertoire_text::invisible::removed(text).0.chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '(' | ')' | '#' | '|' | '!' | '~' | '@' | ':' => {
                out.push_str(&format!("&#{};", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

/// The level of an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Notice,
    Warning,
    Error,
}

/// An annotation that GitHub shows beside a file, or with the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation<'a> {
    pub level: Level,
    pub title: Option<&'a str>,
    /// The path of the file, relative to the repository.
    pub file: Option<&'a str>,
    /// The line, from 1.
    pub line: Option<u64>,
    pub message: &'a str,
}

impl Annotation<'_> {
    /// Returns the command that creates the annotation: one line without a line break at its end.
    pub fn command(&self) -> String {
        let name = match self.level {
            Level::Notice => "notice",
            Level::Warning => "warning",
            Level::Error => "error",
        };
        let mut properties = Vec::new();
        if let Some(file) = self.file {
            properties.push(format!("file={}", property(file)));
        }
        if let Some(line) = self.line {
            properties.push(format!("line={line}"));
        }
        if let Some(title) = self.title {
            properties.push(format!("title={}", property(title)));
        }
        let space = if properties.is_empty() { "" } else { " " };
        let message: String = self.message.chars().take(ANNOTATION_CHARS_MAX).collect();
        format!("::{name}{space}{}::{}", properties.join(","), data(&message))
    }
}

/// Returns the command that masks a value in the log from now on.
pub fn mask(value: &str) -> String {
    format!("::add-mask::{}", data(value))
}

/// Returns the command after which the runner ignores commands until [`resume_commands`] is printed
/// with the same token.
///
/// The output of agents and checks is printed between the two. The token must be unpredictable.
pub fn stop_commands(token: &str) -> String {
    format!("::stop-commands::{}", data(token))
}

/// Returns the command that ends the effect of [`stop_commands`].
pub fn resume_commands(token: &str) -> String {
    format!("::{}::", data(token))
}

/// Escapes the message of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

fn bounded(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    let note = format!("\n\n(cut: {} bytes in all)", text.len());
    let mut end = bytes_max.saturating_sub(note.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Cow::Owned(format!("{}{note}", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELIMITER: &str = "rep-0123456789abcdef";

    #[test]
    fn an_output_of_many_lines_ends_where_it_should() {
        let written = output("summary", "a\nb=c", DELIMITER).unwrap();
        assert_eq!(written, format!("summary<<{DELIMITER}\na\nb=c\n{DELIMITER}\n"));
    }

    #[test]
    fn a_value_cannot_set_other_outputs() {
        let value = format!("x\n{DELIMITER}\nmode<<x");
        assert!(matches!(output("a", &value, DELIMITER), Err(OutputError::BadDelimiter { .. })));
        assert!(matches!(output("a", "x", "EOF"), Err(OutputError::BadDelimiter { .. })));
        for name in ["", "a=b", "a\nb", "a<<b", "a b", "1a", "ä"] {
            assert!(
                matches!(output(name, "x", DELIMITER), Err(OutputError::BadName { .. })),
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_too_long_is_cut_and_says_so() {
        let long = "ä".repeat(SUMMARY_BYTES_MAX);
        let cut = summary(&long);
        assert!(cut.len() <= SUMMARY_BYTES_MAX);
        assert!(cut.ends_with(&format!("(cut: {} bytes in all)", long.len())));
        assert!(output("a", &long, DELIMITER).unwrap().len() < OUTPUT_BYTES_MAX + 100);
    }

    #[test]
    fn escaped_text_is_one_line_without_markup() {
        assert_eq!(escaped("a|b\n<i>[x](y)"), "a&#124;b &lt;i&gt;&#91;x&#93;&#40;y&#41;");
        assert!(!escaped("![](http://e.example) @ada").contains(['!', '@', '[']));
    }

    #[test]
    fn a_command_is_one_line_and_one_command() {
        let annotation = Annotation {
            level: Level::Error,
            title: Some("a,b:c"),
            file: Some("src/a,b.rs"),
            line: Some(7),
            message: "first\n::set-output name=x::100%\r",
        };
        assert_eq!(
            annotation.command(),
            "::error file=src/a%2Cb.rs,line=7,title=a%2Cb%3Ac::first%0A::set-output name=x::100%25%0D"
        );
        let plain =
            Annotation { level: Level::Notice, title: None, file: None, line: None, message: "x" };
        assert_eq!(plain.command(), "::notice::x");
        assert_eq!(mask("a\nb"), "::add-mask::a%0Ab");
        assert_eq!(
            (stop_commands("t"), resume_commands("t")),
            ("::stop-commands::t".into(), "::t::".into())
        );
    }
}
