//! Templates of prompts: text with placeholders such as `{{title}}`.
//!
//! A template is cut into pieces when it is read, and values go in once. So what stands in a value is never a placeholder,
//! whoever wrote it.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::stranger::{Origin, Removed, clean, fence, fence_code, line, line_of};

mod values;

pub use values::{Facts, Prompt, Remark, TaskFacts, prompt};

/// What a placeholder without a value becomes.
pub const NONE: &str = "(none)";

/// The names that are filled in.
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

/// The names that are filled in, in the order of the alphabet.
pub fn placeholders() -> impl Iterator<Item = &'static str> {
    PLACEHOLDERS.into_iter()
}

/// A text with placeholders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Known(&'static str),
    /// The name, and where it stands in the template.
    Unknown(String, Range<usize>),
}

/// What goes into a placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Words of the engine, or of the person who may direct the agent. What nobody sees is taken out of them all the same.
    Own(String),
    /// Words of that person, and what they quote: that is fenced.
    Quoting(String, Origin, String),
    /// A name that the engine did not choose: one line.
    Name(String),
    /// A text of a stranger: it is fenced.
    Foreign(Origin, String),
    /// Code of a stranger: it is fenced, and shown as code is.
    ForeignCode(Origin, String),
    /// A line of a stranger: it is quoted.
    ForeignLine(Origin, String),
    /// Several texts of strangers, each in a fence of its own.
    ForeignList(Vec<(Origin, String)>),
}

/// Values by placeholder.
pub type Values = BTreeMap<&'static str, Value>;

/// A template that was filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filled {
    /// The text.
    pub text: String,
    /// What was taken out of the values, by placeholder.
    pub removed: Vec<(&'static str, Removed)>,
}

impl Template {
    /// Cuts a text into pieces.
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

    /// Placeholders that nothing fills in, and where they stand. They stay in the text as they are.
    pub fn unknown(&self) -> Vec<(String, Range<usize>)> {
        let unknown = |piece: &Piece| match piece {
            Piece::Unknown(name, range) => Some((name.clone(), range.clone())),
            Piece::Text(_) | Piece::Known(_) => None,
        };
        self.pieces.iter().filter_map(unknown).collect()
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Fills in the values. The nonce makes fences that no value can end.
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

/// The next `{{name}}`: letters, digits and underscores, with or without spaces around them.
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
            match clean.text.trim().is_empty() {
                true => (NONE.to_owned(), clean.removed),
                false => (clean.text, clean.removed),
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
