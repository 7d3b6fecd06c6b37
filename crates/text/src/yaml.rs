//! YAML 1.2 as frontmatter needs it: a tree with spans, within limits, and without the parts of the
//! language that only bombs use (anchors, aliases, tags, several documents).
//!
//! The grammar is `granit-parser`'s, and this is the only file that names it. Every scalar stays text;
//! what a plain scalar means is asked for with [`Scalar::kind`], so `version: 1.10` never becomes `1.1`.

use std::collections::HashSet;

use granit_parser::{ErrorKind as Grammar, Event, Parser, ScalarStyle, StructureStyle};

use crate::codes;
use crate::diagnostic::Code;
use crate::source::Span;

mod emit;
mod plain;
mod repair;

pub use emit::{emit, emit_scalar};
pub use repair::{Repair, Repaired, Unmended, repair};

/// Caps on one YAML text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Deepest nesting of lists and mappings.
    pub depth_max: usize,
    /// Most nodes: keys, scalars, lists and mappings together.
    pub nodes_max: usize,
    /// Most lines that are mended.
    pub repairs_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { depth_max: 16, nodes_max: 4_000, repairs_max: 256 }
    }
}

/// A value with its place in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it stands; for block collections, the place of the first entry.
    pub span: Span,
    /// What it is.
    pub value: Value,
}

/// The three shapes a value can have.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text, number, boolean or nothing.
    Scalar(Scalar),
    /// A list.
    Sequence(Vec<Node>, Flow),
    /// Keys and values in the order of the file.
    Mapping(Mapping),
}

/// Whether a collection was written on indented lines or in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Indented lines.
    Block,
    /// `[a, b]` or `{a: b}`.
    Brackets,
}

/// A scalar, never converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// The text after quotes, escapes and folding.
    pub text: String,
    /// How it was written.
    pub style: Style,
}

/// How a scalar was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// In single quotes.
    Single,
    /// In double quotes.
    Double,
    /// After `|`.
    Literal,
    /// After `>`.
    Folded,
}

/// What a scalar means under YAML 1.2's core schema.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScalarKind<'a> {
    /// Empty, `~` or `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Anything else, and everything quoted.
    Text(&'a str),
}

/// A mapping in the order of the file; keys are unique.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    /// The entries.
    pub entries: Vec<Entry>,
    /// How it was written.
    pub flow: Flow,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key's text.
    pub key: String,
    /// Where the key stands.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

/// Why a text was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The code of the diagnostic it becomes.
    pub code: &'static Code,
    /// What is wrong, naming the limit where one was passed.
    pub message: String,
    /// Where.
    pub span: Span,
    /// Whether a repair may help: true for syntax errors and for marks that may be meant as text.
    pub repairable: bool,
}

impl Error {
    /// Says why no repair helped, where that is for a limit; otherwise the first error says more.
    fn explained_by(self, unmended: Unmended) -> Self {
        match unmended {
            Unmended::TooMany { limit } => {
                let message = format!(
                    "{}; a repair would have to change more than {limit} lines, the limit",
                    self.message
                );
                Error { message, ..self }
            }
            Unmended::NothingToMend | Unmended::Refused => self,
        }
    }
}

impl Scalar {
    /// The meaning of the scalar.
    ///
    /// ```
    /// use repertoire_text::yaml::{Scalar, ScalarKind, Style};
    /// let plain = |text: &str| Scalar { text: text.into(), style: Style::Plain };
    /// assert_eq!(plain("no").kind(), ScalarKind::Text("no"));
    /// assert_eq!(plain("true").kind(), ScalarKind::Bool(true));
    /// assert_eq!(plain("0.7").kind(), ScalarKind::Float(0.7));
    /// ```
    pub fn kind(&self) -> ScalarKind<'_> {
        if self.style != Style::Plain {
            return ScalarKind::Text(&self.text);
        }
        match self.text.as_str() {
            "" | "~" | "null" | "Null" | "NULL" => ScalarKind::Null,
            "true" | "True" | "TRUE" => ScalarKind::Bool(true),
            "false" | "False" | "FALSE" => ScalarKind::Bool(false),
            text => number(text).unwrap_or(ScalarKind::Text(text)),
        }
    }
}

fn number(text: &str) -> Option<ScalarKind<'_>> {
    let digits = text.trim_start_matches(['-', '+']);
    if text.len() - digits.len() > 1
        || !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
    {
        return None;
    }
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    // A leading zero is kept as text: `007` and dates are names more often than numbers.
    if all_digits && digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    if all_digits {
        return text.parse().ok().map(ScalarKind::Int);
    }
    let float_like = digits.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
    text.parse().ok().filter(|_| float_like).map(ScalarKind::Float)
}

impl Mapping {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }
}

impl Node {
    /// A node that stands nowhere: for values that were made, not read.
    pub fn made(value: Value) -> Self {
        Node { span: Span::default(), value }
    }

    /// Text that stands nowhere.
    pub fn text(text: impl Into<String>) -> Self {
        Node::made(Value::Scalar(Scalar { text: text.into(), style: Style::Plain }))
    }

    /// The scalar's text, if this is a scalar.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(scalar) => Some(&scalar.text),
            Value::Sequence(..) | Value::Mapping(_) => None,
        }
    }

    /// The mapping, if this is one.
    pub fn as_mapping(&self) -> Option<&Mapping> {
        match &self.value {
            Value::Mapping(mapping) => Some(mapping),
            Value::Scalar(_) | Value::Sequence(..) => None,
        }
    }

    /// The items, if this is a list.
    pub fn as_sequence(&self) -> Option<&[Node]> {
        match &self.value {
            Value::Sequence(items, _) => Some(items),
            Value::Scalar(_) | Value::Mapping(_) => None,
        }
    }

    /// Whether this is an empty or `null` scalar.
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar(scalar) if scalar.kind() == ScalarKind::Null)
    }

    /// What people call this shape in a message.
    pub fn shape(&self) -> &'static str {
        match &self.value {
            Value::Scalar(scalar) => match scalar.kind() {
                ScalarKind::Null => "nothing",
                ScalarKind::Bool(_) => "a boolean",
                ScalarKind::Int(_) | ScalarKind::Float(_) => "a number",
                ScalarKind::Text(_) => "text",
            },
            Value::Sequence(..) => "a list",
            Value::Mapping(_) => "a mapping",
        }
    }

    /// The tree of a JSON value, in which text stays text: `emit` writes `"12"` with its quotes, and lines as a block.
    ///
    /// ```
    /// use repertoire_text::yaml::{Node, emit};
    /// let value = serde_json::json!({ "id": "12", "of": [1, null], "text": "one\ntwo" });
    /// let yaml = "id: \"12\"\nof:\n  - 1\n  - null\ntext: |-\n  one\n  two\n";
    /// assert_eq!(emit(&Node::from_json(&value)), yaml);
    /// ```
    pub fn from_json(value: &serde_json::Value) -> Self {
        use serde_json::Value as Json;
        Node::made(match value {
            Json::Null | Json::Bool(_) | Json::Number(_) => {
                return Node::text(value.to_string());
            }
            Json::String(text) => {
                Value::Scalar(Scalar { text: text.clone(), style: Style::Literal })
            }
            Json::Array(items) => {
                Value::Sequence(items.iter().map(Node::from_json).collect(), Flow::Block)
            }
            Json::Object(fields) => {
                let entry = |(key, value): (&String, &Json)| Entry {
                    key: key.clone(),
                    key_span: Span::default(),
                    value: Node::from_json(value),
                };
                Value::Mapping(Mapping {
                    entries: fields.iter().map(entry).collect(),
                    flow: Flow::Block,
                })
            }
        })
    }

    /// The value as JSON, keys in the order of the file.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Scalar(scalar) => match scalar.kind() {
                ScalarKind::Null => serde_json::Value::Null,
                ScalarKind::Bool(value) => value.into(),
                ScalarKind::Int(value) => value.into(),
                ScalarKind::Float(value) => value.into(),
                ScalarKind::Text(value) => value.into(),
            },
            Value::Sequence(items, _) => items.iter().map(Node::to_json).collect(),
            Value::Mapping(mapping) => mapping
                .entries
                .iter()
                .map(|entry| (entry.key.clone(), entry.value.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}

/// Parses, and mends what real files get wrong (see [`repair()`]). `fields` are the names that belong at
/// the left margin; a field found elsewhere may be moved there.
pub fn parse_or_repair(
    text: &str,
    span: Span,
    limits: &Limits,
    fields: &[&str],
) -> Result<Repaired, Error> {
    match parse(text, span, limits) {
        Ok(node) => Ok(Repaired { node, repairs: Vec::new() }),
        Err(error) if error.repairable => {
            repair(text, span, limits, fields).map_err(|unmended| error.explained_by(unmended))
        }
        Err(error) => Err(error),
    }
}

/// Parses the YAML under `span` of `text`; spans in the result are offsets into the whole text.
///
/// An empty text is a null scalar. The work is bounded by `limits` and by the length of the span.
pub fn parse(text: &str, span: Span, limits: &Limits) -> Result<Node, Error> {
    let yaml = span.slice(text);
    match plain::parse_plain(yaml, span.start as usize, limits) {
        Some(node) => Ok(node),
        None => parse_by_grammar(yaml, span, limits),
    }
}

fn parse_by_grammar(yaml: &str, span: Span, limits: &Limits) -> Result<Node, Error> {
    refuse_control_characters(yaml, span.start as usize)?;
    // The grammar's own guard only has to be wider than ours, so that ours gives the message.
    let guard = limits.depth_max.saturating_add(8);
    let options = granit_parser::options! {
        disallow_directives: true,
        flow_nesting_limit: guard,
        block_nesting_limit: guard,
    };
    let mut reader = Reader {
        yaml,
        parser: Parser::new_from_str_with_options(yaml, options),
        base: span.start as usize,
        end: yaml.len(),
        nodes: 0,
        limits,
    };
    reader.document()
}

struct Reader<'a> {
    yaml: &'a str,
    parser: Parser<'a, granit_parser::StrInput<'a>>,
    base: usize,
    end: usize,
    nodes: usize,
    limits: &'a Limits,
}

impl<'a> Reader<'a> {
    fn document(&mut self) -> Result<Node, Error> {
        let mut root = None;
        while let Some((event, span)) = self.next()? {
            match event {
                Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
                Event::DocumentStart(explicit, _) if explicit || root.is_some() => {
                    return Err(refusal(
                        &codes::YAML_SEVERAL_DOCUMENTS,
                        "more than one YAML document between the `---` lines",
                        span,
                    ));
                }
                Event::DocumentStart(..) => {}
                event => root = Some(self.node(event, span, 0)?),
            }
        }
        Ok(root.unwrap_or_else(|| Node::text("")))
    }

    fn next(&mut self) -> Result<Option<(Event<'a>, Span)>, Error> {
        match self.parser.next_event() {
            None => Ok(None),
            Some(Ok((event, span))) => Ok(Some((event, self.span(&span)))),
            Some(Err(error)) => Err(self.grammar_error(&error)),
        }
    }

    fn span(&self, span: &granit_parser::Span) -> Span {
        let offset = |marker: &granit_parser::Marker| {
            self.base + marker.byte_offset().unwrap_or(self.end).min(self.end)
        };
        Span::new(offset(&span.start), offset(&span.end))
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, Error> {
        self.nodes += 1;
        if self.nodes > self.limits.nodes_max {
            let limit = self.limits.nodes_max;
            let message = format!("the frontmatter has more than {limit} values, the limit");
            return Err(refusal(&codes::YAML_TOO_MANY_NODES, message, span));
        }
        if depth > self.limits.depth_max {
            return Err(self.too_deep(span));
        }
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                refuse_properties(anchor, tag.as_deref(), span)?;
                if style == ScalarStyle::DoubleQuoted {
                    refuse_escaped_control_characters(&text, span)?;
                }
                let scalar = Scalar { text: text.into_owned(), style: style_of(style) };
                Ok(Node { span, value: Value::Scalar(scalar) })
            }
            Event::SequenceStart(style, anchor, tag) => {
                refuse_properties(anchor, tag.as_deref(), span)?;
                self.sequence(flow_of(style), span, depth + 1)
            }
            Event::MappingStart(style, anchor, tag) => {
                refuse_properties(anchor, tag.as_deref(), span)?;
                self.mapping(flow_of(style), span, depth + 1)
            }
            Event::Alias(_) => {
                Err(refusal(&codes::YAML_ALIAS, "YAML aliases are not accepted", span))
            }
            _ => Err(refusal(&codes::YAML_SYNTAX, "this is not a value", span)),
        }
    }

    fn sequence(&mut self, flow: Flow, span: Span, depth: usize) -> Result<Node, Error> {
        let mut items = Vec::new();
        while let Some((event, item_span)) = self.next()? {
            if event == Event::SequenceEnd {
                let span = Span { start: span.start, end: item_span.end };
                return Ok(Node { span, value: Value::Sequence(items, flow) });
            }
            items.push(self.node(event, item_span, depth)?);
        }
        Err(refusal(&codes::YAML_SYNTAX, "this list does not end", span))
    }

    fn mapping(&mut self, flow: Flow, span: Span, depth: usize) -> Result<Node, Error> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen = Keys::default();
        while let Some((event, key_span)) = self.next()? {
            if event == Event::MappingEnd {
                let span = Span { start: span.start, end: key_span.end };
                return Ok(Node { span, value: Value::Mapping(Mapping { entries, flow }) });
            }
            let key = self.node(event, key_span, depth)?;
            let Value::Scalar(Scalar { text: key, .. }) = key.value else {
                return Err(refusal(
                    &codes::YAML_KEY_NOT_TEXT,
                    "a list or mapping cannot be a key",
                    key_span,
                ));
            };
            if !seen.insert(&key, &entries) {
                let message = format!("`{}` is given twice", shorten(&key));
                return Err(Error {
                    repairable: false,
                    ..refusal(&codes::YAML_DUPLICATE_KEY, message, key_span)
                });
            }
            let Some((event, value_span)) = self.next()? else { break };
            let value = self.node(event, value_span, depth)?;
            entries.push(Entry { key, key_span, value });
        }
        Err(refusal(&codes::YAML_SYNTAX, "this mapping does not end", span))
    }

    /// The quote that is most likely the one left open: the last that starts a value before the place
    /// where the grammar gave up.
    fn opening_quote(&self, offset: usize) -> Span {
        let before = &self.yaml[..(offset - self.base).min(self.yaml.len())];
        let starts = [": \"", ": '", "- \"", "- '"];
        let at = starts.iter().filter_map(|start| before.rfind(start)).max();
        let start = self.base + at.map_or(before.len(), |at| at + 2);
        Span::new(start, start + usize::from(at.is_some()))
    }

    fn too_deep(&self, span: Span) -> Error {
        let limit = self.limits.depth_max;
        let message = format!("the frontmatter is nested deeper than {limit} levels, the limit");
        refusal(&codes::YAML_TOO_DEEP, message, span)
    }

    fn grammar_error(&self, error: &granit_parser::ScanError) -> Error {
        let marker = error.marker();
        let start = self.base + marker.byte_offset().unwrap_or(self.end).min(self.end);
        let span = Span::new(start, start);
        match error.kind() {
            Grammar::UnclosedQuotedScalar | Grammar::InvalidQuotedScalarIndent => Error {
                code: &codes::YAML_SYNTAX,
                message: "a quoted value is never closed".to_owned(),
                span: self.opening_quote(start),
                repairable: true,
            },
            Grammar::RecursionLimitExceeded => self.too_deep(span),
            Grammar::DirectiveDisallowed => Error {
                repairable: true,
                ..refusal(
                    &codes::YAML_SEVERAL_DOCUMENTS,
                    "YAML directives (`%NAME`) are not accepted",
                    span,
                )
            },
            kind => {
                Error { code: &codes::YAML_SYNTAX, message: explain(kind), span, repairable: true }
            }
        }
    }
}

/// Which keys a mapping has had. Nearly all mappings are small, and then looking beats hashing.
#[derive(Default)]
struct Keys(HashSet<String>);

impl Keys {
    const SMALL: usize = 24;

    fn insert(&mut self, key: &str, entries: &[Entry]) -> bool {
        if entries.len() < Self::SMALL {
            return !entries.iter().any(|entry| entry.key == key);
        }
        if self.0.is_empty() {
            self.0.extend(entries.iter().map(|entry| entry.key.clone()));
        }
        self.0.insert(key.to_owned())
    }
}

/// Our words for the grammar errors that real files have; the parser's own for the rest.
fn explain(kind: &Grammar) -> String {
    let words = match kind {
        Grammar::MappingValueNotAllowed | Grammar::InvalidColonPlacement => {
            "a `: ` inside an unquoted value starts a new field here, which is not allowed"
        }
        Grammar::UnknownAnchor | Grammar::MissingAnchorOrAliasName => {
            "a value that starts with `*` or `&` is read as a YAML alias or anchor"
        }
        Grammar::TabNotAllowed
        | Grammar::TabInBlockIndentation
        | Grammar::TabInIndentation
        | Grammar::TabAtBlockScalarStart => "a tab is used for indentation, which YAML forbids",
        Grammar::UnclosedQuotedScalar => "a quoted value is never closed",
        Grammar::UnclosedFlowCollection { .. }
        | Grammar::UnexpectedEofFlowSequence
        | Grammar::UnexpectedEofFlowMapping => "a `[` or `{` is never closed",
        Grammar::ExpectedBlockMappingKey
        | Grammar::InvalidIndentation
        | Grammar::ExpectedBlockSequenceEntry => {
            "this line is indented where it cannot belong to the line above"
        }
        Grammar::SimpleKeyExpected | Grammar::InvalidSimpleKey => {
            "this line is neither a `field: value` nor part of the value above"
        }
        Grammar::UnknownQuotedScalarEscape => "unknown escape in a double-quoted value",
        other => return format!("not valid YAML: {other}"),
    };
    words.to_owned()
}

fn refusal(code: &'static Code, message: impl Into<String>, span: Span) -> Error {
    Error { code, message: message.into(), span, repairable: false }
}

fn refuse_properties(
    anchor: usize,
    tag: Option<&granit_parser::Tag>,
    span: Span,
) -> Result<(), Error> {
    if anchor != 0 {
        return Err(refusal(&codes::YAML_ANCHOR, "YAML anchors are not accepted", span));
    }
    let Some(tag) = tag else { return Ok(()) };
    // `!word` is almost always prose ("!important"); `!!type` and `!<uri>` are meant as tags.
    let prose_like = tag.original_handle() == "!";
    Err(Error {
        repairable: prose_like,
        ..refusal(&codes::YAML_TAG, "YAML tags are not accepted", span)
    })
}

/// Everything that YAML calls not printable, but for surrogates, which no text has.
fn is_forbidden(c: char) -> bool {
    let written = matches!(c, '\t' | '\n' | '\r' | '\u{85}');
    (c.is_control() && !written) || matches!(c, '\u{fffe}' | '\u{ffff}')
}

fn refuse_control_characters(yaml: &str, base: usize) -> Result<(), Error> {
    match yaml.char_indices().find(|(_, c)| is_forbidden(*c)) {
        None => Ok(()),
        Some((at, c)) => {
            let span = Span::new(base + at, base + at + c.len_utf8());
            Err(control_character(c, "", span))
        }
    }
}

fn refuse_escaped_control_characters(text: &str, span: Span) -> Result<(), Error> {
    match text.chars().find(|c| is_forbidden(*c)) {
        None => Ok(()),
        Some(c) => Err(control_character(c, " as an escape", span)),
    }
}

fn control_character(c: char, how: &str, span: Span) -> Error {
    let code = u32::from(c);
    let message = format!("the frontmatter holds the control character U+{code:04X}{how}");
    refusal(&codes::CONTROL_CHARACTER, message, span)
}

fn style_of(style: ScalarStyle) -> Style {
    match style {
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted => Style::Single,
        ScalarStyle::DoubleQuoted => Style::Double,
        ScalarStyle::Literal => Style::Literal,
        ScalarStyle::Folded => Style::Folded,
    }
}

fn flow_of(style: StructureStyle) -> Flow {
    match style {
        StructureStyle::Block => Flow::Block,
        StructureStyle::Flow => Flow::Brackets,
    }
}

/// A text that is short enough for a message.
pub fn shorten(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    if text.chars().count() <= CHARS_MAX {
        return text.to_owned();
    }
    text.chars().take(CHARS_MAX).chain(['…']).collect()
}

#[cfg(test)]
#[path = "yaml/yaml_tests.rs"]
mod tests;
