//! Deserialises a YAML tree into the types of a workflow, with a span for every error.

use std::fmt;

use repertoire_skill::name::nearest_name;
use repertoire_text::Span;
use repertoire_text::yaml::{ScalarKind, Value, YamlEntry, YamlMapping, YamlNode};
use serde::de::{
    self, DeserializeSeed, EnumAccess, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

#[derive(Debug)]
pub(super) struct WorkflowYamlError {
    pub(super) message: String,
    pub(super) span: Option<Span>,
}

impl WorkflowYamlError {
    fn with_span(self, span: Span) -> Self {
        WorkflowYamlError { span: self.span.or(Some(span)), ..self }
    }
}

impl fmt::Display for WorkflowYamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for WorkflowYamlError {}

impl de::Error for WorkflowYamlError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        WorkflowYamlError { message: message.to_string(), span: None }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        de::Error::custom(unknown_name_message("field", field, expected))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        de::Error::custom(if expected.contains(&BLOCK) {
            unknown_block_message(variant, expected)
        } else {
            unknown_name_message("word", variant, expected)
        })
    }

    fn invalid_type(given: Unexpected<'_>, expected: &dyn Expected) -> Self {
        de::Error::custom(wrong_type_message(given, expected))
    }

    fn invalid_value(given: Unexpected<'_>, expected: &dyn Expected) -> Self {
        de::Error::custom(wrong_type_message(given, expected))
    }

    fn missing_field(field: &'static str) -> Self {
        de::Error::custom(format_args!("`{field}` is missing"))
    }
}

/// A variant that only the enum of blocks has, used to recognise that enum.
const BLOCK: &str = "orchestrator_constraint";

/// The message for an unknown block: a sentence with a colon looks like a block to YAML.
fn unknown_block_message(given: &str, kinds: &'static [&'static str]) -> String {
    let hint = match nearest_name(given, kinds.iter().copied()) {
        Some(near) => format!("is `{near}` meant?"),
        None => "text with a colon is quoted, or written after `|`".to_owned(),
    };
    format!("`{}` is no kind of block; {hint}", shorten_quote(given))
}

/// The message for a value of the wrong type.
fn wrong_type_message(given: Unexpected<'_>, expected: &dyn Expected) -> String {
    let expected = describe_type(&expected.to_string());
    let hint = match (expected.as_str(), given) {
        ("a list", Unexpected::Str(_)) => "; begin each entry with `- `",
        _ => "",
    };
    let given = match given {
        Unexpected::Str(text) => match text.trim_end().lines().count() {
            0 | 1 => format!("the text `{}`", shorten_quote(text.trim_end())),
            lines => format!("a text of {lines} lines"),
        },
        Unexpected::Bool(value) => format!("`{value}`"),
        Unexpected::Unsigned(number) => format!("the number {number}"),
        Unexpected::Signed(number) => format!("the number {number}"),
        Unexpected::Float(number) => format!("the number {number}"),
        Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a mapping".to_owned(),
        other => other.to_string(),
    };
    format!("{expected} is expected here, and this is {given}{hint}")
}

/// Translates serde's description of a type into the terms of YAML.
fn describe_type(expected: &str) -> String {
    let words = match expected {
        "a sequence" => "a list",
        "a string" | "a borrowed string" | "a character" => "a text",
        "a map" => "a mapping",
        "a boolean" => "`true` or `false`",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        _ if expected.starts_with("struct ") => "a mapping of fields",
        _ if expected.starts_with("enum ") => "a word, or a mapping with one key",
        other => other,
    };
    words.to_owned()
}

/// The maximum length of a quoted text.
const QUOTED_CHARS_MAX: usize = 40;

/// Shortens a text for quoting.
fn shorten_quote(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

fn unknown_name_message(what: &str, given: &str, expected: &'static [&'static str]) -> String {
    let hint = match nearest_name(given, expected.iter().copied()) {
        Some(near) => format!("; is `{near}` meant?"),
        None => format!("; known are {}", expected.join(", ")),
    };
    format!("`{}` is no known {what} here{hint}", shorten_quote(given))
}

/// A serde deserializer for a node.
#[derive(Clone, Copy)]
pub(super) struct NodeDeserializer<'de>(pub(super) &'de YamlNode);

impl<'de> de::Deserializer<'de> for NodeDeserializer<'de> {
    type Error = WorkflowYamlError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WorkflowYamlError> {
        let span = self.0.span;
        let result = match &self.0.value {
            Value::Scalar(scalar) => match scalar.kind() {
                ScalarKind::Null => visitor.visit_unit(),
                ScalarKind::Bool(value) => visitor.visit_bool(value),
                ScalarKind::Int(value) => visitor.visit_i64(value),
                ScalarKind::Float(value) => visitor.visit_f64(value),
                ScalarKind::Text(text) => visitor.visit_borrowed_str(text),
            },
            Value::Sequence(items, _) => visitor.visit_seq(SequenceItems(items.iter())),
            Value::Mapping(mapping) => visitor.visit_map(MappingFields::new(mapping)),
        };
        result.map_err(|error| error.with_span(span))
    }

    /// Accepts any scalar as text, even one that looks like a number.
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WorkflowYamlError> {
        match &self.0.value {
            Value::Scalar(scalar) if !self.0.is_null() => visitor
                .visit_borrowed_str(&scalar.text)
                .map_err(|error: WorkflowYamlError| error.with_span(self.0.span)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, WorkflowYamlError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, WorkflowYamlError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, WorkflowYamlError> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, WorkflowYamlError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WorkflowYamlError> {
        let span = self.0.span;
        let result = match &self.0.value {
            Value::Scalar(scalar) => visitor.visit_enum(scalar.text.as_str().into_deserializer()),
            Value::Mapping(mapping) => match mapping.entries.as_slice() {
                [entry] => visitor.visit_enum(VariantEntry(entry)),
                entries => Err(de::Error::custom(format_args!(
                    "one key is expected here, and there are {}",
                    entries.len()
                ))),
            },
            Value::Sequence(..) => Err(de::Error::custom("a word or a mapping is expected here")),
        };
        result.map_err(|error: WorkflowYamlError| error.with_span(span))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, WorkflowYamlError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct
    }
}

struct SequenceItems<'de>(std::slice::Iter<'de, YamlNode>);

impl<'de> SeqAccess<'de> for SequenceItems<'de> {
    type Error = WorkflowYamlError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, WorkflowYamlError> {
        let Some(node) = self.0.next() else { return Ok(None) };
        seed.deserialize(NodeDeserializer(node))
            .map(Some)
            .map_err(|error| error.with_span(node.span))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct MappingFields<'de> {
    entries: std::slice::Iter<'de, YamlEntry>,
    value: Option<&'de YamlNode>,
}

impl<'de> MappingFields<'de> {
    fn new(mapping: &'de YamlMapping) -> Self {
        MappingFields { entries: mapping.entries.iter(), value: None }
    }
}

impl<'de> MapAccess<'de> for MappingFields<'de> {
    type Error = WorkflowYamlError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, WorkflowYamlError> {
        let Some(entry) = self.entries.next() else { return Ok(None) };
        self.value = Some(&entry.value);
        seed.deserialize(KeyDeserializer(entry))
            .map(Some)
            .map_err(|error| error.with_span(entry.key_span))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, WorkflowYamlError> {
        let node = self.value.take().ok_or_else(|| de::Error::custom("a value without a key"))?;
        seed.deserialize(NodeDeserializer(node)).map_err(|error| error.with_span(node.span))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}

/// A deserializer for the key of a mapping: always text, or a unit variant where an enum is expected.
struct KeyDeserializer<'de>(&'de YamlEntry);

impl<'de> de::Deserializer<'de> for KeyDeserializer<'de> {
    type Error = WorkflowYamlError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WorkflowYamlError> {
        visitor.visit_borrowed_str(&self.0.key)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WorkflowYamlError> {
        visitor.visit_enum(self.0.key.as_str().into_deserializer())
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, WorkflowYamlError> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// `kind: value`, as a variant of an enum.
struct VariantEntry<'de>(&'de YamlEntry);

impl<'de> EnumAccess<'de> for VariantEntry<'de> {
    type Error = WorkflowYamlError;
    type Variant = NodeDeserializer<'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, NodeDeserializer<'de>), WorkflowYamlError> {
        let kind = seed
            .deserialize(KeyDeserializer(self.0))
            .map_err(|error| error.with_span(self.0.key_span))?;
        Ok((kind, NodeDeserializer(&self.0.value)))
    }
}

impl<'de> VariantAccess<'de> for NodeDeserializer<'de> {
    type Error = WorkflowYamlError;

    fn unit_variant(self) -> Result<(), WorkflowYamlError> {
        if self.0.is_null() {
            Ok(())
        } else {
            Err(WorkflowYamlError {
                message: "nothing is expected here".into(),
                span: Some(self.0.span),
            })
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, WorkflowYamlError> {
        seed.deserialize(self).map_err(|error| error.with_span(self.0.span))
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, WorkflowYamlError> {
        de::Deserializer::deserialize_any(self, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WorkflowYamlError> {
        de::Deserializer::deserialize_any(self, visitor)
    }
}
