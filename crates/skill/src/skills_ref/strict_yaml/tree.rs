//! Builds a tree from tokens like ruamel's parser and strictyaml's constructor.

use repertoire_text::Span;
use repertoire_text::yaml::{Entry, Flow, Limits, Mapping, Node, Scalar, Style, Value};

use super::Refusal;
use super::scanner::{Token, TokenKind};

/// Builds the only document of a text; an empty text is an empty scalar.
pub(super) fn build(tokens: &mut [Token], base: usize, limits: &Limits) -> Result<Node, Refusal> {
    let mut builder = Builder { tokens, next: 0, base, nodes: 0, limits };
    let root = match builder.peek() {
        TokenKind::StreamEnd => builder.empty(),
        _ => builder.node(Indentless::Refused, 0)?,
    };
    if *builder.peek() == TokenKind::DocumentEnd {
        builder.next += 1;
    }
    match builder.peek() {
        TokenKind::StreamEnd => Ok(root),
        _ => Err(builder.refuse("this does not belong to the value above")),
    }
}

struct Builder<'a> {
    tokens: &'a mut [Token],
    next: usize,
    base: usize,
    nodes: usize,
    limits: &'a Limits,
}

/// Whether a list may start at the column of the key that it belongs to.
#[derive(Clone, Copy, PartialEq)]
enum Indentless {
    Accepted,
    Refused,
}

impl Builder<'_> {
    fn node(&mut self, indentless: Indentless, depth: usize) -> Result<Node, Refusal> {
        self.count(depth)?;
        let start = self.token().start;
        match self.peek() {
            TokenKind::Scalar { .. } => Ok(self.scalar()),
            TokenKind::MappingStart { .. } => {
                self.next += 1;
                self.mapping(start, depth + 1)
            }
            TokenKind::SequenceStart => {
                self.next += 1;
                self.sequence(start, depth + 1)
            }
            TokenKind::Entry if indentless == Indentless::Accepted => {
                self.indentless_sequence(start, depth + 1)
            }
            _ => Err(self.refuse("a value is expected here")),
        }
    }

    fn count(&mut self, depth: usize) -> Result<(), Refusal> {
        self.nodes += 1;
        if self.nodes > self.limits.nodes_max {
            let limit = self.limits.nodes_max;
            return Err(self.refuse(format!("more than {limit} values, the limit")));
        }
        if depth > self.limits.depth_max {
            let limit = self.limits.depth_max;
            return Err(self.refuse(format!("nested deeper than {limit} levels, the limit")));
        }
        Ok(())
    }

    fn scalar(&mut self) -> Node {
        let span = self.span_from(self.token().start);
        let taken = std::mem::replace(&mut self.tokens[self.next].kind, TokenKind::BlockEnd);
        self.next += 1;
        let TokenKind::Scalar { text, style } = taken else { return self.empty() };
        Node { span, value: Value::Scalar(Scalar { text, style }) }
    }

    /// Returns the node of an omitted value.
    fn empty(&self) -> Node {
        let at = self.base + self.token().start;
        let scalar = Scalar { text: String::new(), style: Style::Plain };
        Node { span: Span::new(at, at), value: Value::Scalar(scalar) }
    }

    fn sequence(&mut self, start: usize, depth: usize) -> Result<Node, Refusal> {
        let mut items = Vec::new();
        while *self.peek() == TokenKind::Entry {
            self.next += 1;
            items.push(match self.peek() {
                TokenKind::Entry | TokenKind::BlockEnd => self.empty(),
                _ => self.node(Indentless::Refused, depth)?,
            });
        }
        if *self.peek() != TokenKind::BlockEnd {
            return Err(self.refuse("this is indented where it cannot belong to the list above"));
        }
        self.next += 1;
        Ok(self.sequence_of(items, start))
    }

    fn indentless_sequence(&mut self, start: usize, depth: usize) -> Result<Node, Refusal> {
        let mut items = Vec::new();
        while *self.peek() == TokenKind::Entry {
            self.next += 1;
            items.push(match self.peek() {
                TokenKind::Entry | TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => {
                    self.empty()
                }
                _ => self.node(Indentless::Refused, depth)?,
            });
        }
        Ok(self.sequence_of(items, start))
    }

    fn sequence_of(&self, items: Vec<Node>, start: usize) -> Node {
        let start = self.base + start;
        let end = items.last().map_or(start, |item| item.span.end as usize);
        Node { span: Span::new(start, end), value: Value::Sequence(items, Flow::Block) }
    }

    fn mapping(&mut self, start: usize, depth: usize) -> Result<Node, Refusal> {
        let mut building = Building::default();
        loop {
            let key = match self.peek() {
                TokenKind::Key => {
                    self.next += 1;
                    self.node_or_empty(depth)?
                }
                TokenKind::Value => self.empty(),
                TokenKind::BlockEnd => break,
                _ => {
                    let message = "this is indented where it cannot belong to the line above";
                    return Err(self.refuse(message));
                }
            };
            let mut column = None;
            let value = if *self.peek() == TokenKind::Value {
                self.next += 1;
                if let TokenKind::MappingStart { column: found } = self.peek() {
                    column = Some(*found);
                }
                self.node_or_empty(depth)?
            } else {
                self.empty()
            };
            let value = if depth == 1 { field_value(value) } else { value };
            let at = key.span.start as usize - self.base;
            building.add(key, value, column).map_err(|message| Refusal::new(at, message))?;
        }
        self.next += 1;
        let entries = building.finish(depth);
        let start = self.base + start;
        let end = entries.last().map_or(start, |entry| entry.value.span.end as usize);
        let mapping = Mapping { entries, flow: Flow::Block };
        Ok(Node { span: Span::new(start, end), value: Value::Mapping(mapping) })
    }

    fn node_or_empty(&mut self, depth: usize) -> Result<Node, Refusal> {
        match self.peek() {
            TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => Ok(self.empty()),
            _ => self.node(Indentless::Accepted, depth),
        }
    }

    fn peek(&self) -> &TokenKind {
        &self.token().kind
    }

    fn token(&self) -> &Token {
        // The last token ends the stream and is never passed.
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn span_from(&self, start: usize) -> Span {
        Span::new(self.base + start, self.base + self.token().end)
    }

    fn refuse(&self, message: impl Into<String>) -> Refusal {
        Refusal::new(self.token().start, message)
    }
}

/// A mapping under construction, with the checks of `StrictYAMLConstructor.construct_mapping`.
#[derive(Default)]
struct Building {
    entries: Vec<Entry>,
    merged: Option<Vec<Entry>>,
    mapping_column: Option<i64>,
}

impl Building {
    fn add(&mut self, key: Node, value: Node, column: Option<i64>) -> Result<(), String> {
        let key_span = key.span;
        let Value::Scalar(key) = key.value else {
            return Err("a list or mapping cannot be a key".to_owned());
        };
        if key.style == Style::Plain && key.text == "<<" {
            return self.merge(value);
        }
        if self.entries.iter().any(|entry| entry.key == key.text) {
            return Err(format!("`{}` is given twice", key.text));
        }
        // Mappings that are values of the same mapping must start at the same column.
        if let Some(column) = column
            && *self.mapping_column.get_or_insert(column) != column
        {
            return Err("the mapping below is indented unlike the one before it".to_owned());
        }
        self.entries.push(Entry { key: key.text, key_span, value });
        Ok(())
    }

    /// Merges the entries of the mapping, or list of mappings, after the plain key `<<`.
    fn merge(&mut self, value: Node) -> Result<(), String> {
        let refusal = || "`<<` must be followed by a mapping or a list of mappings".to_owned();
        if self.merged.is_some() {
            return Err("`<<` is given twice".to_owned());
        }
        let sources = match value.value {
            Value::Sequence(items, _) if !items.is_empty() => items,
            mapping @ Value::Mapping(_) => vec![Node { span: value.span, value: mapping }],
            _ => return Err(refusal()),
        };
        let mut merged = Vec::new();
        for source in sources {
            let Value::Mapping(mapping) = source.value else { return Err(refusal()) };
            merged.extend(mapping.entries);
        }
        self.merged = Some(merged);
        Ok(())
    }

    /// Returns the entries, own ones first. At the top level ruamel loses the merged ones: they are not yet
    /// constructed when it copies them.
    fn finish(mut self, depth: usize) -> Vec<Entry> {
        let merged = self.merged.take().filter(|_| depth > 1).unwrap_or_default();
        for entry in merged {
            if !self.entries.iter().any(|own| own.key == entry.key) {
                self.entries.push(entry);
            }
        }
        self.entries
    }
}

/// Converts the value of a field. The plain scalars `=` and `<<` have types of their own in strictyaml, which
/// are not strings. They are represented by an empty list, which block style cannot express.
fn field_value(node: Node) -> Node {
    match &node.value {
        Value::Scalar(Scalar { style: Style::Plain, text }) if text == "=" || text == "<<" => {
            Node { span: node.span, value: Value::Sequence(Vec::new(), Flow::Block) }
        }
        _ => node,
    }
}
