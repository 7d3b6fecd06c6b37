//! Commands, as an argument list and as an equivalent shell line.

use std::collections::BTreeMap;
use std::str::Chars;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stateless::StatelessFlags;
use crate::state::{WorkflowRunId, WorkflowRunState};

/// A command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShellCommand {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The same as a shell line.
    pub line: String,
}

/// The way in which commands identify the step they are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepAddressing {
    /// By the run, whose state is stored.
    Run,
    /// By the number of the step, with the counters in the command. No state is stored and nothing is recorded.
    Stateless {
        /// The flags of the command line.
        flags: StatelessFlags,
        /// The parameters given on the command line, which are passed on.
        parameters: BTreeMap<String, String>,
    },
}

impl ShellCommand {
    /// Creates a command from its arguments.
    pub fn new<T: Into<String>>(argv: impl IntoIterator<Item = T>) -> Self {
        let argv: Vec<String> = argv.into_iter().map(Into::into).collect();
        let line = argv.iter().map(|word| quote_word(word)).collect::<Vec<_>>().join(" ");
        ShellCommand { argv, line }
    }

    /// Splits a line like a POSIX shell, without expansions. Returns `None` if a quote is not closed.
    pub fn split_line(line: &str) -> Option<Vec<String>> {
        let mut words = Vec::new();
        let mut word: Option<String> = None;
        let mut chars = line.chars();
        while let Some(char) = chars.next() {
            match char {
                ' ' | '\t' | '\n' => words.extend(word.take()),
                '\'' => read_quoted(&mut chars, word.get_or_insert_default())?,
                '"' => read_double_quoted(&mut chars, word.get_or_insert_default())?,
                '\\' => word.get_or_insert_default().push(chars.next()?),
                other => word.get_or_insert_default().push(other),
            }
        }
        words.extend(word);
        Some(words)
    }

    pub(super) fn step_arguments(run: &WorkflowRunId, state: &WorkflowRunState) -> Vec<String> {
        ["rep", "workflow", "step", run.as_str(), "--at", &state.turn.to_string()]
            .map(str::to_owned)
            .to_vec()
    }
}

impl StepAddressing {
    /// Returns true if commands identify a run.
    pub fn is_run(&self) -> bool {
        *self == StepAddressing::Run
    }
}

fn read_quoted(chars: &mut Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '\'' => return Some(()),
            other => word.push(other),
        }
    }
}

fn read_double_quoted(chars: &mut Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '"' => return Some(()),
            '\\' => match chars.next()? {
                special @ ('"' | '\\' | '$' | '`') => word.push(special),
                other => word.extend(['\\', other]),
            },
            other => word.push(other),
        }
    }
}

/// Quotes a word for a POSIX shell if necessary.
fn quote_word(word: &str) -> String {
    if !word.is_empty() && word.bytes().all(is_plain_byte) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn is_plain_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_./:=@,+%".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_quotes_what_a_shell_would_take_apart() {
        let command = ShellCommand::new(["rep", "a b", "it's", "$HOME", "", "k=v"]);
        assert_eq!(command.line, r"rep 'a b' 'it'\''s' '$HOME' '' k=v");
    }

    #[test]
    fn a_line_is_taken_apart_into_the_same_arguments() {
        let argv =
            ["rep", "a b", "it's", "$HOME", "", "k=v", "two\nlines", r"back\slash", "\"x\"", "…"];
        assert_eq!(ShellCommand::split_line(&ShellCommand::new(argv).line).unwrap(), argv);
        assert_eq!(
            ShellCommand::split_line(r#"a "b \"c\" \d" e\ f"#).unwrap(),
            ["a", r#"b "c" \d"#, "e f"]
        );
        assert_eq!(ShellCommand::split_line("an 'open quote"), None);
    }
}
