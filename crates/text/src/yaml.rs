//! The subset of YAML 1.2 that frontmatter needs: a tree with spans, within limits, and without anchors, aliases, tags
//! and multiple documents, which legitimate frontmatter does not use.
//!
//! The grammar is `granit-parser`'s, and this is the only file that names it. Scalars stay text; [`YamlScalar::kind`]
//! interprets a plain scalar on demand, so `version: 1.10` never becomes `1.1`.

use std::collections::HashSet;

use granit_parser::{ErrorKind as Grammar, Event, Parser, ScalarStyle, StructureStyle};

use crate::codes;
use crate::diagnostic::DiagnosticCode;
use crate::source::Span;

mod emit;
mod fast_path;
mod repair;

pub use emit::{emit, emit_scalar};
pub use repair::{RepairFailure, RepairedYaml, YamlRepair, repair_text};

/// Limits on one YAML text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum nesting of lists and mappings.
    pub depth_max: usize,
    /// The maximum number of nodes: keys, scalars, lists and mappings together.
    pub nodes_max: usize,
    /// The maximum number of lines that are repaired.
    pub repairs_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { depth_max: 16, nodes_max: 4_000, repairs_max: 256 }
    }
}

/// A value with its position in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlNode {
    /// The position; for block collections, that of the first entry.
    pub span: Span,
    pub value: Value,
}

/// The shapes of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text, number, boolean or null.
    Scalar(YamlScalar),
    Sequence(Vec<YamlNode>, YamlFlow),
    /// Keys and values in the order of the file.
    Mapping(YamlMapping),
}

/// The notation of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YamlFlow {
    /// Indented lines.
    Block,
    /// `[a, b]` or `{a: b}`.
    Brackets,
}

/// A scalar as text, never converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlScalar {
    /// The text after quotes, escapes and folding are processed.
    pub text: String,
    pub style: YamlStyle,
}

/// The notation of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YamlStyle {
    /// Without quotes.
    Plain,
    Single,
    Double,
    /// After `|`.
    Literal,
    /// After `>`.
    Folded,
}

/// The interpretation of a scalar under YAML 1.2's core schema.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScalarKind<'a> {
    /// Empty, `~` or `null`.
    Null,
    Bool(bool),
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Anything else, and everything quoted.
    Text(&'a str),
}

/// A mapping in the order of the file. Keys are unique.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlMapping {
    pub entries: Vec<YamlEntry>,
    pub flow: YamlFlow,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlEntry {
    pub key: String,
    pub key_span: Span,
    pub value: YamlNode,
}

/// The reason why a text was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct YamlError {
    /// The code of the resulting diagnostic.
    pub code: &'static DiagnosticCode,
    /// A description of the problem, naming the limit if one was exceeded.
    pub message: String,
    pub span: Span,
    /// True if a repair may help: for syntax errors, and for markers that may be meant as text.
    pub repairable: bool,
}

impl YamlError {
    /// Adds the reason why a repair failed, if it was a limit. Otherwise the original error is more useful.
    fn explained_by(self, unmended: RepairFailure) -> Self {
        match unmended {
            RepairFailure::TooMany { limit } => {
                let message = format!(
                    "{}; a repair would have to change more than {limit} lines, the limit",
                    self.message
                );
                YamlError { message, ..self }
            }
            RepairFailure::NothingToMend | RepairFailure::Refused => self,
        }
    }
}

impl YamlScalar {
    /// Interprets the scalar.
    ///
    /// ```
    /// use repertoire_text::yaml::{YamlScalar, ScalarKind, YamlStyle};
    /// let plain = |text: &str| YamlScalar { text: text.into(), style: YamlStyle::Plain };
    /// assert_eq!(plain("no").kind(), ScalarKind::Text("no"));
    /// assert_eq!(plain("true").kind(), ScalarKind::Bool(true));
    /// assert_eq!(plain("0.7").kind(), ScalarKind::Float(0.7));
    /// ```
    pub fn kind(&self) -> ScalarKind<'_> {
        if self.style != YamlStyle::Plain {
            return ScalarKind::Text(&self.text);
        }
        match self.text.as_str() {
            "" | "~" | "null" | "Null" | "NULL" => ScalarKind::Null,
            "true" | "True" | "TRUE" => ScalarKind::Bool(true),
            "false" | "False" | "FALSE" => ScalarKind::Bool(false),
            text => parse_number(text).unwrap_or(ScalarKind::Text(text)),
        }
    }
}

fn parse_number(text: &str) -> Option<ScalarKind<'_>> {
    let digits = text.trim_start_matches(['-', '+']);
    if text.len() - digits.len() > 1
        || !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
    {
        return None;
    }
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    // Numbers with a leading zero stay text: `007` and dates are usually names.
    if all_digits && digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    if all_digits {
        return text.parse().ok().map(ScalarKind::Int);
    }
    let float_like = digits.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
    text.parse().ok().filter(|_| float_like).map(ScalarKind::Float)
}

impl YamlMapping {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&YamlNode> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }
}

impl YamlNode {
    /// A node without a position, for values that were created rather than read.
    pub fn without_span(value: Value) -> Self {
        YamlNode { span: Span::default(), value }
    }

    /// A text node without a position.
    pub fn from_text(text: impl Into<String>) -> Self {
        YamlNode::without_span(Value::Scalar(YamlScalar {
            text: text.into(),
            style: YamlStyle::Plain,
        }))
    }

    /// The scalar's text, if this is a scalar.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(scalar) => Some(&scalar.text),
            Value::Sequence(..) | Value::Mapping(_) => None,
        }
    }

    /// The mapping, if this is one.
    pub fn as_mapping(&self) -> Option<&YamlMapping> {
        match &self.value {
            Value::Mapping(mapping) => Some(mapping),
            Value::Scalar(_) | Value::Sequence(..) => None,
        }
    }

    /// The items, if this is a list.
    pub fn as_sequence(&self) -> Option<&[YamlNode]> {
        match &self.value {
            Value::Sequence(items, _) => Some(items),
            Value::Scalar(_) | Value::Mapping(_) => None,
        }
    }

    /// Returns true if this is an empty or `null` scalar.
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar(scalar) if scalar.kind() == ScalarKind::Null)
    }

    /// The name of the value's shape, for messages.
    pub fn shape_name(&self) -> &'static str {
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

    /// Builds a tree from a JSON value. Text stays text: `emit` writes `"12"` with its quotes, and several lines as a
    /// block.
    ///
    /// ```
    /// use repertoire_text::yaml::{YamlNode, emit};
    /// let value = serde_json::json!({ "id": "12", "of": [1, null], "text": "one\ntwo" });
    /// let yaml = "id: \"12\"\nof:\n  - 1\n  - null\ntext: |-\n  one\n  two\n";
    /// assert_eq!(emit(&YamlNode::from_json(&value)), yaml);
    /// ```
    pub fn from_json(value: &serde_json::Value) -> Self {
        use serde_json::Value as Json;
        YamlNode::without_span(match value {
            Json::Null | Json::Bool(_) | Json::Number(_) => {
                return YamlNode::from_text(value.to_string());
            }
            Json::String(text) => {
                Value::Scalar(YamlScalar { text: text.clone(), style: YamlStyle::Literal })
            }
            Json::Array(items) => {
                Value::Sequence(items.iter().map(YamlNode::from_json).collect(), YamlFlow::Block)
            }
            Json::Object(fields) => {
                let entries = fields.iter().map(|(key, value)| YamlEntry {
                    key: key.clone(),
                    key_span: Span::default(),
                    value: YamlNode::from_json(value),
                });
                Value::Mapping(YamlMapping { entries: entries.collect(), flow: YamlFlow::Block })
            }
        })
    }

    /// Converts the value to JSON, with keys in the order of the file.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Scalar(scalar) => match scalar.kind() {
                ScalarKind::Null => serde_json::Value::Null,
                ScalarKind::Bool(value) => value.into(),
                ScalarKind::Int(value) => value.into(),
                ScalarKind::Float(value) => value.into(),
                ScalarKind::Text(value) => value.into(),
            },
            Value::Sequence(items, _) => items.iter().map(YamlNode::to_json).collect(),
            Value::Mapping(mapping) => mapping
                .entries
                .iter()
                .map(|entry| (entry.key.clone(), entry.value.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}

/// Parses YAML, and repairs common mistakes (see [`repair_text()`]). `fields` are the names that belong at the left margin;
/// such a field found elsewhere may be moved there.
pub fn parse_or_repair(
    text: &str,
    span: Span,
    limits: &Limits,
    fields: &[&str],
) -> Result<RepairedYaml, YamlError> {
    match parse(text, span, limits) {
        Ok(node) => Ok(RepairedYaml { node, repairs: Vec::new() }),
        Err(error) if error.repairable => {
            repair_text(text, span, limits, fields).map_err(|unmended| error.explained_by(unmended))
        }
        Err(error) => Err(error),
    }
}

/// Parses the YAML under `span` of `text`. Spans in the result are offsets into the whole text.
///
/// An empty text is a null scalar. The work is bounded by `limits` and by the length of the span.
pub fn parse(text: &str, span: Span, limits: &Limits) -> Result<YamlNode, YamlError> {
    let yaml = span.slice(text);
    match fast_path::parse_plain(yaml, span.start as usize, limits) {
        Some(node) => Ok(node),
        None => parse_by_grammar(yaml, span, limits),
    }
}

fn parse_by_grammar(yaml: &str, span: Span, limits: &Limits) -> Result<YamlNode, YamlError> {
    refuse_control_characters(yaml, span.start as usize)?;
    // Make the grammar's own limit wider than ours, so that ours produces the message.
    let guard = limits.depth_max.saturating_add(8);
    let options = granit_parser::options! {
        disallow_directives: true,
        flow_nesting_limit: guard,
        block_nesting_limit: guard,
    };
    let mut reader = YamlReader {
        yaml,
        parser: Parser::new_from_str_with_options(yaml, options),
        base: span.start as usize,
        end: yaml.len(),
        nodes: 0,
        limits,
    };
    reader.read_document()
}

struct YamlReader<'a> {
    yaml: &'a str,
    parser: Parser<'a, granit_parser::StrInput<'a>>,
    base: usize,
    end: usize,
    nodes: usize,
    limits: &'a Limits,
}

impl<'a> YamlReader<'a> {
    fn read_document(&mut self) -> Result<YamlNode, YamlError> {
        let mut root = None;
        while let Some((event, span)) = self.next_event()? {
            match event {
                Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
                Event::DocumentStart(explicit, _) if explicit || root.is_some() => {
                    return Err(error_at(
                        &codes::YAML_SEVERAL_DOCUMENTS,
                        "more than one YAML document between the `---` lines",
                        span,
                    ));
                }
                Event::DocumentStart(..) => {}
                event => root = Some(self.read_node(event, span, 0)?),
            }
        }
        Ok(root.unwrap_or_else(|| YamlNode::from_text("")))
    }

    fn next_event(&mut self) -> Result<Option<(Event<'a>, Span)>, YamlError> {
        match self.parser.next_event() {
            None => Ok(None),
            Some(Ok((event, span))) => Ok(Some((event, self.span_of(&span)))),
            Some(Err(error)) => Err(self.grammar_error(&error)),
        }
    }

    fn span_of(&self, span: &granit_parser::Span) -> Span {
        Span::new(self.offset_of(&span.start), self.offset_of(&span.end))
    }

    fn offset_of(&self, marker: &granit_parser::Marker) -> usize {
        self.base + marker.byte_offset().unwrap_or(self.end).min(self.end)
    }

    fn read_node(
        &mut self,
        event: Event<'a>,
        span: Span,
        depth: usize,
    ) -> Result<YamlNode, YamlError> {
        self.nodes += 1;
        if self.nodes > self.limits.nodes_max {
            let limit = self.limits.nodes_max;
            let message = format!("the frontmatter has more than {limit} values, the limit");
            return Err(error_at(&codes::YAML_TOO_MANY_NODES, message, span));
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
                let scalar = YamlScalar { text: text.into_owned(), style: style_of(style) };
                Ok(YamlNode { span, value: Value::Scalar(scalar) })
            }
            Event::SequenceStart(style, anchor, tag) => {
                refuse_properties(anchor, tag.as_deref(), span)?;
                self.read_sequence(flow_of(style), span, depth + 1)
            }
            Event::MappingStart(style, anchor, tag) => {
                refuse_properties(anchor, tag.as_deref(), span)?;
                self.read_mapping(flow_of(style), span, depth + 1)
            }
            Event::Alias(_) => {
                Err(error_at(&codes::YAML_ALIAS, "YAML aliases are not accepted", span))
            }
            _ => Err(error_at(&codes::YAML_SYNTAX, "this is not a value", span)),
        }
    }

    fn read_sequence(
        &mut self,
        flow: YamlFlow,
        span: Span,
        depth: usize,
    ) -> Result<YamlNode, YamlError> {
        let mut items = Vec::new();
        while let Some((event, item_span)) = self.next_event()? {
            if event == Event::SequenceEnd {
                let span = Span { start: span.start, end: item_span.end };
                return Ok(YamlNode { span, value: Value::Sequence(items, flow) });
            }
            items.push(self.read_node(event, item_span, depth)?);
        }
        Err(error_at(&codes::YAML_SYNTAX, "this list does not end", span))
    }

    fn read_mapping(
        &mut self,
        flow: YamlFlow,
        span: Span,
        depth: usize,
    ) -> Result<YamlNode, YamlError> {
        let mut entries: Vec<YamlEntry> = Vec::new();
        let mut seen = SeenKeys::default();
        while let Some((event, key_span)) = self.next_event()? {
            if event == Event::MappingEnd {
                let span = Span { start: span.start, end: key_span.end };
                return Ok(YamlNode { span, value: Value::Mapping(YamlMapping { entries, flow }) });
            }
            let key = self.read_node(event, key_span, depth)?;
            let Value::Scalar(YamlScalar { text: key, .. }) = key.value else {
                return Err(error_at(
                    &codes::YAML_KEY_NOT_TEXT,
                    "a list or mapping cannot be a key",
                    key_span,
                ));
            };
            if !seen.insert(&key, &entries) {
                let message = format!("`{}` is given twice", shorten_text(&key));
                return Err(YamlError {
                    repairable: false,
                    ..error_at(&codes::YAML_DUPLICATE_KEY, message, key_span)
                });
            }
            let Some((event, value_span)) = self.next_event()? else { break };
            let value = self.read_node(event, value_span, depth)?;
            entries.push(YamlEntry { key, key_span, value });
        }
        Err(error_at(&codes::YAML_SYNTAX, "this mapping does not end", span))
    }

    /// The quote that was most likely left open: the last one that starts a value before the position where the grammar
    /// gave up.
    fn opening_quote(&self, offset: usize) -> Span {
        let before = &self.yaml[..(offset - self.base).min(self.yaml.len())];
        let starts = [": \"", ": '", "- \"", "- '"];
        let at = starts.iter().filter_map(|start| before.rfind(start)).max();
        let start = self.base + at.map_or(before.len(), |at| at + 2);
        Span::new(start, start + usize::from(at.is_some()))
    }

    fn too_deep(&self, span: Span) -> YamlError {
        let limit = self.limits.depth_max;
        let message = format!("the frontmatter is nested deeper than {limit} levels, the limit");
        error_at(&codes::YAML_TOO_DEEP, message, span)
    }

    fn grammar_error(&self, error: &granit_parser::ScanError) -> YamlError {
        let marker = error.marker();
        let start = self.base + marker.byte_offset().unwrap_or(self.end).min(self.end);
        let span = Span::new(start, start);
        match error.kind() {
            Grammar::UnclosedQuotedScalar | Grammar::InvalidQuotedScalarIndent => YamlError {
                code: &codes::YAML_SYNTAX,
                message: "a quoted value is never closed".to_owned(),
                span: self.opening_quote(start),
                repairable: true,
            },
            Grammar::RecursionLimitExceeded => self.too_deep(span),
            Grammar::DirectiveDisallowed => YamlError {
                repairable: true,
                ..error_at(
                    &codes::YAML_SEVERAL_DOCUMENTS,
                    "YAML directives (`%NAME`) are not accepted",
                    span,
                )
            },
            kind => YamlError {
                code: &codes::YAML_SYNTAX,
                message: explain_error(kind),
                span,
                repairable: true,
            },
        }
    }
}

/// The keys that a mapping has had. Nearly all mappings are small, and then a linear search beats hashing.
#[derive(Default)]
struct SeenKeys(HashSet<String>);

impl SeenKeys {
    const SMALL: usize = 24;

    fn insert(&mut self, key: &str, entries: &[YamlEntry]) -> bool {
        if entries.len() < Self::SMALL {
            return !entries.iter().any(|entry| entry.key == key);
        }
        if self.0.is_empty() {
            self.0.extend(entries.iter().map(|entry| entry.key.clone()));
        }
        self.0.insert(key.to_owned())
    }
}

/// Describes grammar errors that occur in real files; for others, uses the parser's own message.
fn explain_error(kind: &Grammar) -> String {
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

fn error_at(code: &'static DiagnosticCode, message: impl Into<String>, span: Span) -> YamlError {
    YamlError { code, message: message.into(), span, repairable: false }
}

fn refuse_properties(
    anchor: usize,
    tag: Option<&granit_parser::Tag>,
    span: Span,
) -> Result<(), YamlError> {
    if anchor != 0 {
        return Err(error_at(&codes::YAML_ANCHOR, "YAML anchors are not accepted", span));
    }
    let Some(tag) = tag else { return Ok(()) };
    // `!word` is almost always prose ("!important"); `!!type` and `!<uri>` are meant as tags.
    let prose_like = tag.original_handle() == "!";
    Err(YamlError {
        repairable: prose_like,
        ..error_at(&codes::YAML_TAG, "YAML tags are not accepted", span)
    })
}

/// Returns true for all characters that YAML calls non-printable, except surrogates, which text cannot contain.
fn is_forbidden(c: char) -> bool {
    let written = matches!(c, '\t' | '\n' | '\r' | '\u{85}');
    (c.is_control() && !written) || matches!(c, '\u{fffe}' | '\u{ffff}')
}

fn refuse_control_characters(yaml: &str, base: usize) -> Result<(), YamlError> {
    match yaml.char_indices().find(|(_, c)| is_forbidden(*c)) {
        None => Ok(()),
        Some((at, c)) => {
            let span = Span::new(base + at, base + at + c.len_utf8());
            Err(control_character(c, "", span))
        }
    }
}

fn refuse_escaped_control_characters(text: &str, span: Span) -> Result<(), YamlError> {
    match text.chars().find(|c| is_forbidden(*c)) {
        None => Ok(()),
        Some(c) => Err(control_character(c, " as an escape", span)),
    }
}

fn control_character(c: char, how: &str, span: Span) -> YamlError {
    let code = u32::from(c);
    let message = format!("the frontmatter holds the control character U+{code:04X}{how}");
    error_at(&codes::CONTROL_CHARACTER, message, span)
}

fn style_of(style: ScalarStyle) -> YamlStyle {
    match style {
        ScalarStyle::Plain => YamlStyle::Plain,
        ScalarStyle::SingleQuoted => YamlStyle::Single,
        ScalarStyle::DoubleQuoted => YamlStyle::Double,
        ScalarStyle::Literal => YamlStyle::Literal,
        ScalarStyle::Folded => YamlStyle::Folded,
    }
}

fn flow_of(style: StructureStyle) -> YamlFlow {
    match style {
        StructureStyle::Block => YamlFlow::Block,
        StructureStyle::Flow => YamlFlow::Brackets,
    }
}

/// Shortens a text for a message.
pub fn shorten_text(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    if text.chars().count() <= CHARS_MAX {
        return text.to_owned();
    }
    text.chars().take(CHARS_MAX).chain(['…']).collect()
}

#[cfg(test)]
#[path = "yaml/yaml_tests.rs"]
mod tests;
