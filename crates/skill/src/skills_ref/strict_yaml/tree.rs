//! Builds a tree from tokens like ruamel's parser and strictyaml's constructor.

use repertoire_text::Span;
use repertoire_text::yaml::{
    Limits, Value, YamlEntry, YamlFlow, YamlMapping, YamlNode, YamlScalar, YamlStyle,
};

use super::StrictYamlError;
use super::scanner::{YamlToken, YamlTokenKind};

/// Builds the only document of a text; an empty text is an empty scalar.
pub(super) fn build_tree(
    tokens: &mut [YamlToken],
    base: usize,
    limits: &Limits,
) -> Result<YamlNode, StrictYamlError> {
    let mut builder = YamlTreeBuilder { tokens, next: 0, base, nodes: 0, limits };
    let root = match builder.peek() {
        YamlTokenKind::StreamEnd => builder.empty_node(),
        _ => builder.parse_node(IndentlessLists::Refused, 0)?,
    };
    if *builder.peek() == YamlTokenKind::DocumentEnd {
        builder.next += 1;
    }
    match builder.peek() {
        YamlTokenKind::StreamEnd => Ok(root),
        _ => Err(builder.refuse("this does not belong to the value above")),
    }
}

struct YamlTreeBuilder<'a> {
    tokens: &'a mut [YamlToken],
    next: usize,
    base: usize,
    nodes: usize,
    limits: &'a Limits,
}

/// Whether a list may start at the column of the key that it belongs to.
#[derive(Clone, Copy, PartialEq)]
enum IndentlessLists {
    Accepted,
    Refused,
}

impl YamlTreeBuilder<'_> {
    fn parse_node(
        &mut self,
        indentless: IndentlessLists,
        depth: usize,
    ) -> Result<YamlNode, StrictYamlError> {
        self.count_node(depth)?;
        let start = self.current_token().start;
        match self.peek() {
            YamlTokenKind::Scalar { .. } => Ok(self.parse_scalar()),
            YamlTokenKind::MappingStart { .. } => {
                self.next += 1;
                self.parse_mapping(start, depth + 1)
            }
            YamlTokenKind::SequenceStart => {
                self.next += 1;
                self.parse_sequence(start, depth + 1)
            }
            YamlTokenKind::Entry if indentless == IndentlessLists::Accepted => {
                self.parse_indentless_sequence(start, depth + 1)
            }
            _ => Err(self.refuse("a value is expected here")),
        }
    }

    fn count_node(&mut self, depth: usize) -> Result<(), StrictYamlError> {
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

    fn parse_scalar(&mut self) -> YamlNode {
        let span = self.span_from(self.current_token().start);
        let taken = std::mem::replace(&mut self.tokens[self.next].kind, YamlTokenKind::BlockEnd);
        self.next += 1;
        let YamlTokenKind::Scalar { text, style } = taken else { return self.empty_node() };
        YamlNode { span, value: Value::Scalar(YamlScalar { text, style }) }
    }

    /// Returns the node of an omitted value.
    fn empty_node(&self) -> YamlNode {
        let at = self.base + self.current_token().start;
        let scalar = YamlScalar { text: String::new(), style: YamlStyle::Plain };
        YamlNode { span: Span::new(at, at), value: Value::Scalar(scalar) }
    }

    fn parse_sequence(&mut self, start: usize, depth: usize) -> Result<YamlNode, StrictYamlError> {
        let mut items = Vec::new();
        while *self.peek() == YamlTokenKind::Entry {
            self.next += 1;
            items.push(match self.peek() {
                YamlTokenKind::Entry | YamlTokenKind::BlockEnd => self.empty_node(),
                _ => self.parse_node(IndentlessLists::Refused, depth)?,
            });
        }
        if *self.peek() != YamlTokenKind::BlockEnd {
            return Err(self.refuse("this is indented where it cannot belong to the list above"));
        }
        self.next += 1;
        Ok(self.sequence_of(items, start))
    }

    fn parse_indentless_sequence(
        &mut self,
        start: usize,
        depth: usize,
    ) -> Result<YamlNode, StrictYamlError> {
        let mut items = Vec::new();
        while *self.peek() == YamlTokenKind::Entry {
            self.next += 1;
            items.push(match self.peek() {
                YamlTokenKind::Entry
                | YamlTokenKind::Key
                | YamlTokenKind::Value
                | YamlTokenKind::BlockEnd => self.empty_node(),
                _ => self.parse_node(IndentlessLists::Refused, depth)?,
            });
        }
        Ok(self.sequence_of(items, start))
    }

    fn sequence_of(&self, items: Vec<YamlNode>, start: usize) -> YamlNode {
        let start = self.base + start;
        let end = items.last().map_or(start, |item| item.span.end as usize);
        YamlNode { span: Span::new(start, end), value: Value::Sequence(items, YamlFlow::Block) }
    }

    fn parse_mapping(&mut self, start: usize, depth: usize) -> Result<YamlNode, StrictYamlError> {
        let mut building = YamlMappingBuilder::default();
        loop {
            let key = match self.peek() {
                YamlTokenKind::Key => {
                    self.next += 1;
                    self.parse_node_or_empty(depth)?
                }
                YamlTokenKind::Value => self.empty_node(),
                YamlTokenKind::BlockEnd => break,
                _ => {
                    let message = "this is indented where it cannot belong to the line above";
                    return Err(self.refuse(message));
                }
            };
            let mut column = None;
            let value = if *self.peek() == YamlTokenKind::Value {
                self.next += 1;
                if let YamlTokenKind::MappingStart { column: found } = self.peek() {
                    column = Some(*found);
                }
                self.parse_node_or_empty(depth)?
            } else {
                self.empty_node()
            };
            let value = if depth == 1 { field_value(value) } else { value };
            let at = key.span.start as usize - self.base;
            building
                .add_entry(key, value, column)
                .map_err(|message| StrictYamlError::new(at, message))?;
        }
        self.next += 1;
        let entries = building.finish(depth);
        let start = self.base + start;
        let end = entries.last().map_or(start, |entry| entry.value.span.end as usize);
        let mapping = YamlMapping { entries, flow: YamlFlow::Block };
        Ok(YamlNode { span: Span::new(start, end), value: Value::Mapping(mapping) })
    }

    fn parse_node_or_empty(&mut self, depth: usize) -> Result<YamlNode, StrictYamlError> {
        match self.peek() {
            YamlTokenKind::Key | YamlTokenKind::Value | YamlTokenKind::BlockEnd => {
                Ok(self.empty_node())
            }
            _ => self.parse_node(IndentlessLists::Accepted, depth),
        }
    }

    fn peek(&self) -> &YamlTokenKind {
        &self.current_token().kind
    }

    fn current_token(&self) -> &YamlToken {
        // The last token ends the stream and is never passed.
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn span_from(&self, start: usize) -> Span {
        Span::new(self.base + start, self.base + self.current_token().end)
    }

    fn refuse(&self, message: impl Into<String>) -> StrictYamlError {
        StrictYamlError::new(self.current_token().start, message)
    }
}

/// A mapping under construction, with the checks of `StrictYAMLConstructor.construct_mapping`.
#[derive(Default)]
struct YamlMappingBuilder {
    entries: Vec<YamlEntry>,
    merged: Option<Vec<YamlEntry>>,
    mapping_column: Option<i64>,
}

impl YamlMappingBuilder {
    fn add_entry(
        &mut self,
        key: YamlNode,
        value: YamlNode,
        column: Option<i64>,
    ) -> Result<(), String> {
        let key_span = key.span;
        let Value::Scalar(key) = key.value else {
            return Err("a list or mapping cannot be a key".to_owned());
        };
        if key.style == YamlStyle::Plain && key.text == "<<" {
            return self.merge_entries(value);
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
        self.entries.push(YamlEntry { key: key.text, key_span, value });
        Ok(())
    }

    /// Merges the entries of the mapping, or list of mappings, after the plain key `<<`.
    fn merge_entries(&mut self, value: YamlNode) -> Result<(), String> {
        let refusal = || "`<<` must be followed by a mapping or a list of mappings".to_owned();
        if self.merged.is_some() {
            return Err("`<<` is given twice".to_owned());
        }
        let sources = match value.value {
            Value::Sequence(items, _) if !items.is_empty() => items,
            mapping @ Value::Mapping(_) => vec![YamlNode { span: value.span, value: mapping }],
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
    fn finish(mut self, depth: usize) -> Vec<YamlEntry> {
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
fn field_value(node: YamlNode) -> YamlNode {
    match &node.value {
        Value::Scalar(YamlScalar { style: YamlStyle::Plain, text })
            if text == "=" || text == "<<" =>
        {
            YamlNode { span: node.span, value: Value::Sequence(Vec::new(), YamlFlow::Block) }
        }
        _ => node,
    }
}
