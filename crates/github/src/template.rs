//! Prompt templates: text with placeholders such as `{{title}}`.
//!
//! A template is parsed once, and values are inserted in a single pass. So text in a value is never
//! treated as a placeholder, regardless of its author.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::stranger::{Origin, Removed, clean, fence, fence_code, line, line_of};

mod values;

pub use values::{Facts, Prompt, Remark, TaskFacts, prompt};

/// The text for a placeholder without a value.
pub const NONE: &str = "(none)";

/// The known placeholders.
const PLACEHOLDERS: [&str; 24] = [
    "actor",
    "base_branch",
    "body",
    "branch",
    "checks",
    "diff",
    "earlier",
    "entity",
    "event",
    "instruction",
    "limits",
    "location",
    "prompt",
    "repository",
    "run_id",
    "task_body",
    "task_id",
    "task_number",
    "task_source",
    "task_title",
    "thread",
    "title",
    "tools",
    "trigger",
];

/// Returns the known placeholders in alphabetical order.
pub fn placeholders() -> impl Iterator<Item = &'static str> {
    PLACEHOLDERS.into_iter()
}

/// A parsed template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Known(&'static str),
    /// The name, and its range in the template.
    Unknown(String, Range<usize>),
}

/// The value of a placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Text of the engine, or of the person who may instruct the agent. Hidden text is still
    /// removed.
    Own(String),
    /// Text of that person, and text they quote, which is fenced.
    Quoting(String, Origin, String),
    /// A name that the engine did not choose: sanitised to one line.
    Name(String),
    /// Untrusted text: fenced.
    Foreign(Origin, String),
    /// Untrusted code: fenced, with only invisible characters removed.
    ForeignCode(Origin, String),
    /// An untrusted line: quoted.
    ForeignLine(Origin, String),
    /// Several untrusted texts, each in its own fence.
    ForeignList(Vec<(Origin, String)>),
}

/// Values by placeholder.
pub type Values = BTreeMap<&'static str, Value>;

/// A template with values filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filled {
    pub text: String,
    /// The hidden text that was removed from the values, by placeholder.
    pub removed: Vec<(&'static str, Removed)>,
}

impl Template {
    /// Parses a template.
    pub fn parse(text: &str) -> Template {
        let mut pieces = Vec::new();
        let mut last = 0;
        let mut from = 0;
        while let Some((range, name)) = next_placeholder(text, from) {
            if last < range.start {
                pieces.push(Piece::Text(text[last..range.start].to_owned()));
            }
            pieces.push(match PLACEHOLDERS.iter().find(|known| **known == name) {
                Some(known) => Piece::Known(known),
                None => Piece::Unknown(name.to_owned(), range.clone()),
            });
            last = range.end;
            from = last;
        }
        if last < text.len() {
            pieces.push(Piece::Text(text[last..].to_owned()));
        }
        Template { pieces }
    }

    /// Returns the unknown placeholders with their ranges. They stay in the text unchanged.
    pub fn unknown(&self) -> Vec<(String, Range<usize>)> {
        let unknown = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Unknown(name, range) => Some((name.clone(), range.clone())),
            Piece::Text(_) | Piece::Known(_) => None,
        });
        unknown.collect()
    }

    /// Returns true for an empty template.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Fills in the values. The nonce makes fences that no value can close.
    pub fn fill(&self, values: &Values, nonce: &str) -> Filled {
        let mut filled = Filled { text: String::new(), removed: Vec::new() };
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => filled.text.push_str(text),
                Piece::Unknown(name, _) => filled.text.push_str(&format!("{{{{{name}}}}}")),
                Piece::Known(name) => {
                    let (text, removed) = shown(values.get(name), nonce);
                    filled.text.push_str(&text);
                    filled.removed.extend(removed.into_iter().map(|removed| (*name, removed)));
                }
            }
        }
        filled
    }
}

/// Finds the next `{{name}}`: letters, digits and underscores, with or without surrounding spaces.
fn next_placeholder(text: &str, from: usize) -> Option<(Range<usize>, &str)> {
    let mut from = from;
    loop {
        let start = from + text[from..].find("{{")?;
        let inner = start + 2;
        let end = inner + text[inner..].find("}}")?;
        let name = text[inner..end].trim();
        let fine = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !name.is_empty() && name.chars().all(fine) {
            return Some((start..end + 2, name));
        }
        from = start + 1;
    }
}

fn shown(value: Option<&Value>, nonce: &str) -> (String, Vec<Removed>) {
    let none = || (NONE.to_owned(), Vec::new());
    match value {
        None => none(),
        Some(Value::Own(text)) => {
            let clean = clean(text);
            if clean.text.trim().is_empty() {
                (NONE.to_owned(), clean.removed)
            } else {
                (clean.text, clean.removed)
            }
        }
        Some(Value::Quoting(own, origin, quoted)) => {
            let (own, mut removed) = shown(Some(&Value::Own(own.clone())), nonce);
            let fenced = fence(origin, quoted, nonce);
            removed.extend(fenced.removed);
            (format!("{own}\n\n{}", fenced.text), removed)
        }
        Some(Value::Name(text)) => match line(text) {
            text if text.is_empty() => none(),
            text => (text, Vec::new()),
        },
        Some(
            Value::Foreign(_, text) | Value::ForeignCode(_, text) | Value::ForeignLine(_, text),
        ) if text.trim().is_empty() => none(),
        Some(Value::Foreign(origin, text)) => {
            let fenced = fence(origin, text, nonce);
            (format!("\n{}", fenced.text), fenced.removed)
        }
        Some(Value::ForeignCode(origin, text)) => {
            let fenced = fence_code(origin, text, nonce);
            (format!("\n{}", fenced.text), fenced.removed)
        }
        Some(Value::ForeignLine(origin, text)) => {
            (line_of(origin, text, nonce), clean(text).removed)
        }
        Some(Value::ForeignList(texts)) if texts.is_empty() => none(),
        Some(Value::ForeignList(texts)) => {
            let fenced = texts.iter().map(|(origin, text)| fence(origin, text, nonce));
            let (texts, removed): (Vec<_>, Vec<_>) =
                fenced.map(|fenced| (fenced.text, fenced.removed)).unzip();
            (format!("\n{}", texts.join("\n")), removed.concat())
        }
    }
}
