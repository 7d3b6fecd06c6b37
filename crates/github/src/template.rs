//! Prompt templates: text with placeholders such as `{{title}}`.
//!
//! A template is parsed once, and values are inserted in a single pass. So text in a value is never
//! treated as a placeholder, regardless of its author.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::untrusted::{
    RemovedText, TextOrigin, fence_code, fence_text, quote_line_of, sanitise_line, sanitise_text,
};

mod values;

pub use values::{ModePrompt, PromptFacts, TaskFacts, ThreadRemark, render_prompt};

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
pub fn known_placeholders() -> impl Iterator<Item = &'static str> {
    PLACEHOLDERS.into_iter()
}

/// A parsed template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptTemplate {
    pieces: Vec<TemplatePiece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePiece {
    Text(String),
    Known(&'static str),
    /// The name, and its range in the template.
    Unknown(String, Range<usize>),
}

/// The value of a placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateValue {
    /// Text of the engine, or of the person who may instruct the agent. Hidden text is still
    /// removed.
    Own(String),
    /// Text of that person, and text they quote, which is fenced.
    Quoting(String, TextOrigin, String),
    /// A name that the engine did not choose: sanitised to one line.
    Name(String),
    /// Untrusted text: fenced.
    Foreign(TextOrigin, String),
    /// Untrusted code: fenced, with only invisible characters removed.
    ForeignCode(TextOrigin, String),
    /// An untrusted line: quoted.
    ForeignLine(TextOrigin, String),
    /// Several untrusted texts, each in its own fence.
    ForeignList(Vec<(TextOrigin, String)>),
}

/// Values by placeholder.
pub type TemplateValues = BTreeMap<&'static str, TemplateValue>;

/// A template with values filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilledTemplate {
    pub text: String,
    /// The hidden text that was removed from the values, by placeholder.
    pub removed: Vec<(&'static str, RemovedText)>,
}

impl PromptTemplate {
    /// Parses a template.
    pub fn parse(text: &str) -> PromptTemplate {
        let mut pieces = Vec::new();
        let mut last = 0;
        let mut from = 0;
        while let Some((range, name)) = next_placeholder(text, from) {
            if last < range.start {
                pieces.push(TemplatePiece::Text(text[last..range.start].to_owned()));
            }
            pieces.push(match PLACEHOLDERS.iter().find(|known| **known == name) {
                Some(known) => TemplatePiece::Known(known),
                None => TemplatePiece::Unknown(name.to_owned(), range.clone()),
            });
            last = range.end;
            from = last;
        }
        if last < text.len() {
            pieces.push(TemplatePiece::Text(text[last..].to_owned()));
        }
        PromptTemplate { pieces }
    }

    /// Returns the unknown placeholders with their ranges. They stay in the text unchanged.
    pub fn unknown_placeholders(&self) -> Vec<(String, Range<usize>)> {
        let unknown = self.pieces.iter().filter_map(|piece| match piece {
            TemplatePiece::Unknown(name, range) => Some((name.clone(), range.clone())),
            TemplatePiece::Text(_) | TemplatePiece::Known(_) => None,
        });
        unknown.collect()
    }

    /// Returns true for an empty template.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Fills in the values. The nonce makes fences that no value can close.
    pub fn fill_values(&self, values: &TemplateValues, nonce: &str) -> FilledTemplate {
        let mut filled = FilledTemplate { text: String::new(), removed: Vec::new() };
        for piece in &self.pieces {
            match piece {
                TemplatePiece::Text(text) => filled.text.push_str(text),
                TemplatePiece::Unknown(name, _) => filled.text.push_str(&format!("{{{{{name}}}}}")),
                TemplatePiece::Known(name) => {
                    let (text, removed) = render_value(values.get(name), nonce);
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

fn render_value(value: Option<&TemplateValue>, nonce: &str) -> (String, Vec<RemovedText>) {
    let none = || (NONE.to_owned(), Vec::new());
    match value {
        None => none(),
        Some(TemplateValue::Own(text)) => {
            let clean = sanitise_text(text);
            if clean.text.trim().is_empty() {
                (NONE.to_owned(), clean.removed)
            } else {
                (clean.text, clean.removed)
            }
        }
        Some(TemplateValue::Quoting(own, origin, quoted)) => {
            let (own, mut removed) = render_value(Some(&TemplateValue::Own(own.clone())), nonce);
            let fenced = fence_text(origin, quoted, nonce);
            removed.extend(fenced.removed);
            (format!("{own}\n\n{}", fenced.text), removed)
        }
        Some(TemplateValue::Name(text)) => match sanitise_line(text) {
            text if text.is_empty() => none(),
            text => (text, Vec::new()),
        },
        Some(
            TemplateValue::Foreign(_, text)
            | TemplateValue::ForeignCode(_, text)
            | TemplateValue::ForeignLine(_, text),
        ) if text.trim().is_empty() => none(),
        Some(TemplateValue::Foreign(origin, text)) => {
            let fenced = fence_text(origin, text, nonce);
            (format!("\n{}", fenced.text), fenced.removed)
        }
        Some(TemplateValue::ForeignCode(origin, text)) => {
            let fenced = fence_code(origin, text, nonce);
            (format!("\n{}", fenced.text), fenced.removed)
        }
        Some(TemplateValue::ForeignLine(origin, text)) => {
            (quote_line_of(origin, text, nonce), sanitise_text(text).removed)
        }
        Some(TemplateValue::ForeignList(texts)) if texts.is_empty() => none(),
        Some(TemplateValue::ForeignList(texts)) => {
            let fenced = texts.iter().map(|(origin, text)| fence_text(origin, text, nonce));
            let (texts, removed): (Vec<_>, Vec<_>) =
                fenced.map(|fenced| (fenced.text, fenced.removed)).unzip();
            (format!("\n{}", texts.join("\n")), removed.concat())
        }
    }
}
