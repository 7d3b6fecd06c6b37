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
pub enum StepOutputError {
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
pub fn format_output(name: &str, value: &str, delimiter: &str) -> Result<String, StepOutputError> {
    if !starts_like_name(name) || !name.bytes().all(is_name_byte) {
        let name = repertoire_text::terminal::printable_line(name);
        return Err(StepOutputError::BadName { name });
    }
    let is_valid = delimiter.len() >= 16 && delimiter.bytes().all(is_name_byte);
    let value = truncate_bytes(value, OUTPUT_BYTES_MAX);
    if !is_valid || value.contains(delimiter) || name.contains(delimiter) {
        return Err(StepOutputError::BadDelimiter { name: name.to_owned() });
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
pub fn fit_summary(markdown: &str) -> String {
    truncate_bytes(markdown, SUMMARY_BYTES_MAX).into_owned()
}

/// Escapes text for a cell or line of Markdown, so that nothing in it is markup.
pub fn escape_markdown(text: &str) -> String {
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
pub enum WorkflowAnnotationLevel {
    Notice,
    Warning,
    Error,
}

/// An annotation that GitHub shows beside a file, or with the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowAnnotation<'a> {
    pub level: WorkflowAnnotationLevel,
    pub title: Option<&'a str>,
    /// The path of the file, relative to the repository.
    pub file: Option<&'a str>,
    /// The line, from 1.
    pub line: Option<u64>,
    pub message: &'a str,
}

impl WorkflowAnnotation<'_> {
    /// Returns the command that creates the annotation: one line without a line break at its end.
    pub fn to_command(&self) -> String {
        let name = match self.level {
            WorkflowAnnotationLevel::Notice => "notice",
            WorkflowAnnotationLevel::Warning => "warning",
            WorkflowAnnotationLevel::Error => "error",
        };
        let mut properties = Vec::new();
        if let Some(file) = self.file {
            properties.push(format!("file={}", escape_property(file)));
        }
        if let Some(line) = self.line {
            properties.push(format!("line={line}"));
        }
        if let Some(title) = self.title {
            properties.push(format!("title={}", escape_property(title)));
        }
        let space = if properties.is_empty() { "" } else { " " };
        let message: String = self.message.chars().take(ANNOTATION_CHARS_MAX).collect();
        format!("::{name}{space}{}::{}", properties.join(","), escape_data(&message))
    }
}

/// Returns the command that masks a value in the log from now on.
pub fn mask_command(value: &str) -> String {
    format!("::add-mask::{}", escape_data(value))
}

/// Returns the command after which the runner ignores commands until [`resume_commands_command`] is printed
/// with the same token.
///
/// The output of agents and checks is printed between the two. The token must be unpredictable.
pub fn stop_commands_command(token: &str) -> String {
    format!("::stop-commands::{}", escape_data(token))
}

/// Returns the command that ends the effect of [`stop_commands_command`].
pub fn resume_commands_command(token: &str) -> String {
    format!("::{}::", escape_data(token))
}

/// Escapes the message of a command.
fn escape_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a command.
fn escape_property(text: &str) -> String {
    escape_data(text).replace(':', "%3A").replace(',', "%2C")
}

fn truncate_bytes(text: &str, bytes_max: usize) -> Cow<'_, str> {
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
        let written = format_output("summary", "a\nb=c", DELIMITER).unwrap();
        assert_eq!(written, format!("summary<<{DELIMITER}\na\nb=c\n{DELIMITER}\n"));
    }

    #[test]
    fn a_value_cannot_set_other_outputs() {
        let value = format!("x\n{DELIMITER}\nmode<<x");
        assert!(matches!(
            format_output("a", &value, DELIMITER),
            Err(StepOutputError::BadDelimiter { .. })
        ));
        assert!(matches!(
            format_output("a", "x", "EOF"),
            Err(StepOutputError::BadDelimiter { .. })
        ));
        for name in ["", "a=b", "a\nb", "a<<b", "a b", "1a", "ä"] {
            assert!(
                matches!(format_output(name, "x", DELIMITER), Err(StepOutputError::BadName { .. })),
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_too_long_is_cut_and_says_so() {
        let long = "ä".repeat(SUMMARY_BYTES_MAX);
        let cut = fit_summary(&long);
        assert!(cut.len() <= SUMMARY_BYTES_MAX);
        assert!(cut.ends_with(&format!("(cut: {} bytes in all)", long.len())));
        assert!(format_output("a", &long, DELIMITER).unwrap().len() < OUTPUT_BYTES_MAX + 100);
    }

    #[test]
    fn escaped_text_is_one_line_without_markup() {
        assert_eq!(escape_markdown("a|b\n<i>[x](y)"), "a&#124;b &lt;i&gt;&#91;x&#93;&#40;y&#41;");
        assert!(!escape_markdown("![](http://e.example) @ada").contains(['!', '@', '[']));
    }

    #[test]
    fn a_command_is_one_line_and_one_command() {
        let annotation = WorkflowAnnotation {
            level: WorkflowAnnotationLevel::Error,
            title: Some("a,b:c"),
            file: Some("src/a,b.rs"),
            line: Some(7),
            message: "first\n::set-output name=x::100%\r",
        };
        assert_eq!(
            annotation.to_command(),
            "::error file=src/a%2Cb.rs,line=7,title=a%2Cb%3Ac::first%0A::set-output name=x::100%25%0D"
        );
        let plain = WorkflowAnnotation {
            level: WorkflowAnnotationLevel::Notice,
            title: None,
            file: None,
            line: None,
            message: "x",
        };
        assert_eq!(plain.to_command(), "::notice::x");
        assert_eq!(mask_command("a\nb"), "::add-mask::a%0Ab");
        assert_eq!(
            (stop_commands_command("t"), resume_commands_command("t")),
            ("::stop-commands::t".into(), "::t::".into())
        );
    }
}
