//! Commands: as a list of arguments, and as a line that a shell takes apart into the same.

use std::collections::BTreeMap;
use std::str::Chars;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stateless::Flags;
use crate::state::{RunId, State};

/// A command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Command {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The same as a line for a shell.
    pub line: String,
}

/// How commands name what they are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// By the run, whose state is kept.
    Run,
    /// By the number of the step, with the counters in the command: nothing is kept, and nothing recorded.
    Stateless {
        /// What the command line has said.
        flags: Flags,
        /// The parameters that it has given, which go on with it.
        parameters: BTreeMap<String, String>,
    },
}

impl Command {
    /// A command of these arguments.
    pub fn new<T: Into<String>>(argv: impl IntoIterator<Item = T>) -> Self {
        let argv: Vec<String> = argv.into_iter().map(Into::into).collect();
        let line = argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        Command { argv, line }
    }

    /// A line taken apart as a POSIX shell does it, without anything that a shell would fill in. None if a quote is open.
    pub fn split(line: &str) -> Option<Vec<String>> {
        let mut words = Vec::new();
        let mut word: Option<String> = None;
        let mut chars = line.chars();
        while let Some(char) = chars.next() {
            match char {
                ' ' | '\t' | '\n' => words.extend(word.take()),
                '\'' => quoted_part(&mut chars, word.get_or_insert_default())?,
                '"' => double_quoted_part(&mut chars, word.get_or_insert_default())?,
                '\\' => word.get_or_insert_default().push(chars.next()?),
                other => word.get_or_insert_default().push(other),
            }
        }
        words.extend(word);
        Some(words)
    }

    pub(super) fn step(run: &RunId, state: &State) -> Vec<String> {
        ["rep", "workflow", "step", run.as_str(), "--at", &state.turn.to_string()]
            .map(str::to_owned)
            .to_vec()
    }
}

impl Addressing {
    /// Whether commands name a run.
    pub fn is_run(&self) -> bool {
        *self == Addressing::Run
    }
}

fn quoted_part(chars: &mut Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '\'' => return Some(()),
            other => word.push(other),
        }
    }
}

fn double_quoted_part(chars: &mut Chars<'_>, word: &mut String) -> Option<()> {
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

/// A word that a POSIX shell reads as it is.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@,+%".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_quotes_what_a_shell_would_take_apart() {
        let command = Command::new(["rep", "a b", "it's", "$HOME", "", "k=v"]);
        assert_eq!(command.line, r"rep 'a b' 'it'\''s' '$HOME' '' k=v");
    }

    #[test]
    fn a_line_is_taken_apart_into_the_same_arguments() {
        let argv =
            ["rep", "a b", "it's", "$HOME", "", "k=v", "two\nlines", r"back\slash", "\"x\"", "…"];
        assert_eq!(Command::split(&Command::new(argv).line).unwrap(), argv);
        assert_eq!(Command::split(r#"a "b \"c\" \d" e\ f"#).unwrap(), ["a", r#"b "c" \d"#, "e f"]);
        assert_eq!(Command::split("an 'open quote"), None);
    }
}
