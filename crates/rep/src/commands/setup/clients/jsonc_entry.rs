//! Edits entries in JSON, with or without comments. The text is parsed for its ranges and then
//! spliced: an entry is inserted right after an opening brace, with a comma if others follow, so
//! that everything else stays contiguous.

use std::ops::Range;

use jsonc_parser::ast::{self, Object, ObjectProp};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{
    CollectOptions, CommentCollectionStrategy, ParseOptions, ParseResult, parse_to_ast,
};
use serde_json::{Map, Value};

use super::ConfigFormat;
use super::entry_edit::{CreatedObjects, EntryEditError, EntryLocation};

const BOM: char = '\u{feff}';
const INDENT: &str = "  ";

/// The objects on the path to an entry, from the outside.
struct ObjectPath<'t, 'a> {
    objects: Vec<&'t Object<'a>>,
    /// The properties that lead from each object to the next.
    props: Vec<&'t ObjectProp<'a>>,
}

pub(super) fn get_entry(
    place: &EntryLocation<'_>,
    text: &str,
) -> Result<Option<Value>, EntryEditError> {
    let text = text.trim_start_matches(BOM);
    let parsed = parse_text(place, text)?;
    let Some(way) = walk_objects(place, parsed.value.as_ref())? else { return Ok(None) };
    Ok(way.find_entry(place)?.map(|prop| json_value(&prop.value)))
}

pub(super) fn add_entry(
    place: &EntryLocation<'_>,
    text: &str,
    entry: &Value,
) -> Result<(String, CreatedObjects), EntryEditError> {
    let (bom, text) = split_bom(text);
    let parsed = parse_text(place, text)?;
    let Some(way) = walk_objects(place, parsed.value.as_ref())? else {
        let made = CreatedObjects { objects: place.keys.len() + 1, opened: false };
        return Ok((format!("{bom}{}{text}", render_file(place, entry).trim_end()), made));
    };
    // Create the missing objects of the path together with the entry.
    let here = way.objects.len() - 1;
    let missing = place.keys.get(here..).unwrap_or_default();
    let (key, value) = nest_entry(missing, place.name, entry);
    let target = way.objects[here];
    let layout = JsonLayout::detect(text, way.objects[0], target);
    let (at, chunk) = layout.insertion(target, &key, &value);
    let opened = layout.opens;
    let edited = format!("{}{chunk}{}", &text[..at], &text[at..]);
    let mut expected = parsed.value.as_ref().map_or(Value::Null, json_value);
    *object_at(&mut expected, &place.keys[..here]).entry(key).or_insert(Value::Null) = value;
    verify_edit(place, &edited, &expected)?;
    Ok((format!("{bom}{edited}"), CreatedObjects { objects: missing.len(), opened }))
}

pub(super) fn remove_entry(
    place: &EntryLocation<'_>,
    text: &str,
    made: CreatedObjects,
) -> Result<String, EntryEditError> {
    let (bom, text) = split_bom(text);
    let parsed = parse_text(place, text)?;
    let way =
        walk_objects(place, parsed.value.as_ref())?.ok_or_else(|| place.unsupported_form())?;
    let prop = way.find_entry(place)?.ok_or_else(|| place.unsupported_form())?;
    let comments = comment_ranges(&parsed);
    let is_only = |object: &Object<'_>| {
        object.properties.len() == 1
            && !comments.iter().any(|comment| {
                object.range.start <= comment.start && comment.end <= object.range.end
            })
    };
    // Remove the objects created for the entry too, unless they contain something else by now.
    let last = way.objects.len() - 1;
    let gone = (0..made.objects.min(way.objects.len()))
        .take_while(|up| is_only(way.objects[last - up]))
        .count();
    if gone == way.objects.len() {
        let range = way.objects[0].range;
        return Ok(format!("{bom}{}{}", &text[..range.start], &text[range.end..]));
    }
    let (object, prop) = match gone {
        0 => (way.objects[last], prop),
        gone => (way.objects[last - gone], way.props[last - gone]),
    };
    let opened = made.opened && gone == made.objects;
    let mut expected = parsed.value.as_ref().map_or(Value::Null, json_value);
    let depth = last - gone;
    object_at(&mut expected, &place.keys[..depth]).shift_remove(prop.name.as_str());
    for lead in [LeadingSpace::Cut, LeadingSpace::Kept] {
        let edited = remove_ranges(text, &removal_ranges(text, object, prop, opened, lead));
        if verify_edit(place, &edited, &expected).is_ok() {
            return Ok(format!("{bom}{edited}"));
        }
    }
    Err(place.unsupported_form())
}

/// A complete text with only the entry.
pub(super) fn render_file(place: &EntryLocation<'_>, entry: &Value) -> String {
    let (key, value) = nest_entry(place.keys, place.name, entry);
    let layout = JsonLayout {
        newline: "\n",
        base: String::new(),
        indent: INDENT.to_owned(),
        unit: INDENT.to_owned(),
        many: true,
        opens: false,
        after: 0,
    };
    format!("{{\n{INDENT}{}\n}}\n", layout.format_property(&key, &value))
}

fn split_bom(text: &str) -> (&str, &str) {
    text.split_at(text.len() - text.trim_start_matches(BOM).len())
}

fn parse_text<'a>(
    place: &EntryLocation<'_>,
    text: &'a str,
) -> Result<ParseResult<'a>, EntryEditError> {
    let lenient = place.format == ConfigFormat::Jsonc;
    let options = ParseOptions {
        allow_comments: lenient,
        allow_trailing_commas: lenient,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let collect = CollectOptions { comments: CommentCollectionStrategy::Separate, tokens: false };
    let parsed = parse_to_ast(text, &collect, &options)
        .map_err(|error| EntryEditError::Syntax { format: "JSON", message: error.to_string() })?;
    let has_comments = parsed.comments.as_ref().is_some_and(|comments| !comments.is_empty());
    if parsed.value.is_none() && has_comments {
        let message = "there is nothing but comments".to_owned();
        return Err(EntryEditError::Syntax { format: "JSON", message });
    }
    Ok(parsed)
}

fn comment_ranges(parsed: &ParseResult<'_>) -> Vec<jsonc_parser::common::Range> {
    let all = parsed.comments.iter().flat_map(|comments| comments.values());
    all.flat_map(|comments| comments.iter().map(|comment| comment.range())).collect()
}

/// Follows the path to the entry as far as objects exist; `None` if the text is empty.
fn walk_objects<'t, 'a>(
    place: &EntryLocation<'_>,
    root: Option<&'t ast::Value<'a>>,
) -> Result<Option<ObjectPath<'t, 'a>>, EntryEditError> {
    let Some(root) = root else { return Ok(None) };
    let mut way = ObjectPath { objects: vec![expect_object(place, 0, root)?], props: Vec::new() };
    for (at, key) in place.keys.iter().enumerate() {
        let Some(prop) = find_unique(way.objects[at], key, || place.key_path(at + 1, None))? else {
            break;
        };
        way.objects.push(expect_object(place, at + 1, &prop.value)?);
        way.props.push(prop);
    }
    Ok(Some(way))
}

impl<'t, 'a> ObjectPath<'t, 'a> {
    /// The entry, if the path leads to one.
    fn find_entry(
        &self,
        place: &EntryLocation<'_>,
    ) -> Result<Option<&'t ObjectProp<'a>>, EntryEditError> {
        match self.objects.get(place.keys.len()) {
            None => Ok(None),
            Some(object) => find_unique(object, place.name, || {
                place.key_path(place.keys.len(), Some(place.name))
            }),
        }
    }
}

fn expect_object<'t, 'a>(
    place: &EntryLocation<'_>,
    depth: usize,
    value: &'t ast::Value<'a>,
) -> Result<&'t Object<'a>, EntryEditError> {
    let found = match value {
        ast::Value::Object(object) => return Ok(object),
        ast::Value::Array(_) => "a list",
        ast::Value::StringLit(_) => "a text",
        ast::Value::NumberLit(_) => "a number",
        ast::Value::BooleanLit(_) => "true or false",
        ast::Value::NullKeyword(_) => "null",
    };
    let key = if depth == 0 {
        "the file".to_owned()
    } else {
        format!("`{}`", place.key_path(depth, None))
    };
    Err(EntryEditError::NotAnObject { key, found })
}

fn find_unique<'t, 'a>(
    object: &'t Object<'a>,
    key: &str,
    path: impl Fn() -> String,
) -> Result<Option<&'t ObjectProp<'a>>, EntryEditError> {
    let mut found = object.properties.iter().filter(|prop| prop.name.as_str() == key);
    match (found.next(), found.next()) {
        (prop, None) => Ok(prop),
        _ => Err(EntryEditError::Twice(path())),
    }
}

/// Wraps the entry in the missing objects.
fn nest_entry(missing: &[String], name: &str, entry: &Value) -> (String, Value) {
    match missing.split_first() {
        None => (name.to_owned(), entry.clone()),
        Some((first, rest)) => {
            let (key, value) = nest_entry(rest, name, entry);
            (first.clone(), Value::Object(Map::from_iter([(key, value)])))
        }
    }
}

/// The layout of a text around an object.
struct JsonLayout {
    newline: &'static str,
    /// The indentation of the line with the opening brace.
    base: String,
    /// The indentation inside of the object.
    indent: String,
    unit: String,
    /// True if the object spans several lines.
    many: bool,
    /// True for an empty pair of braces that will span several lines.
    opens: bool,
    /// The position for inserting a property.
    after: usize,
}

impl JsonLayout {
    fn detect(text: &str, root: &Object<'_>, target: &Object<'_>) -> Self {
        let newline = match text.find('\n') {
            Some(at) if text[..at].ends_with('\r') => "\r\n",
            _ => "\n",
        };
        let inside = |object: &Object<'_>| &text[object.range.start..object.range.end];
        let unit = root.properties.first().and_then(|prop| line_indent(text, prop.range.start));
        let unit = unit.filter(|unit| !unit.is_empty() && unit.len() <= 16).unwrap_or(INDENT);
        let line = text[..target.range.start].rfind('\n').map_or(0, |at| at + 1);
        let base = blank_prefix(&text[line..target.range.start]);
        let first = target.properties.first();
        let indent = first.and_then(|prop| line_indent(text, prop.range.start));
        let indent = indent.map_or_else(|| format!("{base}{unit}"), str::to_owned);
        let has_lines = inside(target).contains('\n');
        let opens = !has_lines && target.properties.is_empty() && inside(root).contains('\n');
        JsonLayout {
            newline,
            base: base.to_owned(),
            indent,
            unit: unit.to_owned(),
            many: has_lines || opens,
            opens,
            after: after_brace(text, target.range.start),
        }
    }

    /// Returns the text to insert, and its position.
    fn insertion(&self, target: &Object<'_>, key: &str, value: &Value) -> (usize, String) {
        let property = self.format_property(key, value);
        let comma = if target.properties.is_empty() { "" } else { "," };
        let JsonLayout { newline, base, indent, .. } = self;
        let chunk = match (self.many, self.opens) {
            (false, _) => format!("{property}{comma}"),
            (true, false) => format!("{newline}{indent}{property}{comma}"),
            (true, true) => format!("{newline}{indent}{property}{newline}{base}"),
        };
        (self.after, chunk)
    }

    fn format_property(&self, key: &str, value: &Value) -> String {
        let key = Value::from(key);
        if !self.many {
            return format!("{key}:{value}");
        }
        let mut out = format!("{key}: ");
        self.format_value(value, &self.indent, &mut out);
        out
    }

    /// Formats a value: objects with a key per line, lists on one line, since they are short.
    fn format_value(&self, value: &Value, indent: &str, out: &mut String) {
        match value {
            Value::Object(object) if !object.is_empty() => {
                let inner = format!("{indent}{}", self.unit);
                out.push('{');
                for (at, (key, value)) in object.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    out.push_str(&format!(
                        "{comma}{}{inner}{}: ",
                        self.newline,
                        Value::from(key.as_str())
                    ));
                    self.format_value(value, &inner, out);
                }
                out.push_str(&format!("{}{indent}}}", self.newline));
            }
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                out.push_str(&format!("[{}]", items.join(", ")));
            }
            value => out.push_str(&value.to_string()),
        }
    }
}

/// The position after an opening brace and the comments on its line.
fn after_brace(text: &str, brace: usize) -> usize {
    let mut at = brace + 1;
    loop {
        let rest = &text[at..];
        let comment = rest.trim_start_matches([' ', '\t']);
        let from = at + rest.len() - comment.len();
        if comment.starts_with("//") {
            let end = comment.find(['\n', '\r']).unwrap_or(comment.len());
            return from + end;
        }
        match comment.strip_prefix("/*").and_then(|inside| inside.find("*/")) {
            Some(end) => at = from + 2 + end + 2,
            None => return at,
        }
    }
}

/// The indentation before a position, if it is the first on its line.
fn line_indent(text: &str, at: usize) -> Option<&str> {
    let line = text[..at].rfind('\n')? + 1;
    let before = &text[line..at];
    (blank_prefix(before) == before).then_some(before)
}

fn blank_prefix(text: &str) -> &str {
    let rest = text.trim_start_matches([' ', '\t']);
    &text[..text.len() - rest.len()]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LeadingSpace {
    Cut,
    Kept,
}

/// The ranges to cut for a property: the property, the preceding line break, and one comma.
fn removal_ranges(
    text: &str,
    object: &Object<'_>,
    prop: &ObjectProp<'_>,
    opened: bool,
    lead: LeadingSpace,
) -> Vec<Range<usize>> {
    let at = object.properties.iter().position(|other| other.range == prop.range).unwrap_or(0);
    let before = at.checked_sub(1).map(|at| &object.properties[at]);
    let is_last = at + 1 == object.properties.len();
    let range = prop.range;
    let start = text[..range.start].trim_end_matches([' ', '\t', '\r', '\n']).len();
    let has_line = text[start..range.start].contains('\n');
    let start = if lead == LeadingSpace::Cut && (has_line || before.is_some()) {
        start
    } else {
        range.start
    };
    let mut cuts: Vec<Range<usize>> = std::iter::once(start..range.end).collect();
    if let Some(comma) = find_comma(text, range.end, object.range.end) {
        cuts.push(comma..comma + 1);
    } else if let Some(before) = before.filter(|_| is_last)
        && let Some(comma) = find_comma(text, before.range.end, range.start)
    {
        cuts.push(comma..comma + 1);
    }
    if opened && object.properties.len() == 1 {
        let rest = &text[range.end..object.range.end];
        let line = rest.find('\n').filter(|at| rest[..*at].trim().is_empty());
        if let Some(line) = line {
            let blank = blank_prefix(&rest[line + 1..]).len();
            let base = text[..object.range.start].rfind('\n').map_or(0, |at| at + 1);
            let base = blank_prefix(&text[base..object.range.start]).len();
            cuts.push(range.end..range.end + line + 1 + blank.min(base));
        }
    }
    cuts
}

/// The comma between two positions with only whitespace and comments between them.
fn find_comma(text: &str, from: usize, to: usize) -> Option<usize> {
    let mut at = from;
    while at < to {
        let rest = &text[at..to];
        if let Some(comment) = rest.strip_prefix("//") {
            at += 2 + comment.find('\n').unwrap_or(comment.len());
        } else if let Some(comment) = rest.strip_prefix("/*") {
            at += 2 + comment.find("*/").map_or(comment.len(), |end| end + 2);
        } else if rest.starts_with(',') {
            return Some(at);
        } else {
            let next = rest.chars().next()?;
            if !next.is_whitespace() {
                return None;
            }
            at += next.len_utf8();
        }
    }
    None
}

fn remove_ranges(text: &str, ranges: &[Range<usize>]) -> String {
    let mut ranges = ranges.to_vec();
    ranges.sort_by_key(|range| range.start);
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for range in ranges {
        out.push_str(&text[at..range.start.max(at)]);
        at = at.max(range.end);
    }
    out.push_str(&text[at..]);
    out
}

/// Checks that an edited text has the expected value, since edits by ranges are error-prone.
fn verify_edit(
    place: &EntryLocation<'_>,
    text: &str,
    expected: &Value,
) -> Result<(), EntryEditError> {
    let parsed = parse_text(place, text).map_err(|_| place.unsupported_form())?;
    let is_expected = parsed.value.as_ref().map(json_value).as_ref() == Some(expected);
    if is_expected { Ok(()) } else { Err(place.unsupported_form()) }
}

/// The object at a path of a value.
fn object_at<'v>(value: &'v mut Value, keys: &[String]) -> &'v mut Map<String, Value> {
    let mut here = value;
    for key in keys {
        here = &mut here[key.as_str()];
    }
    if !here.is_object() {
        *here = Value::Object(Map::new());
    }
    here.as_object_mut().expect("it was just made one")
}

fn json_value(value: &ast::Value<'_>) -> Value {
    match value {
        ast::Value::StringLit(text) => Value::from(text.value.as_ref()),
        // Numbers that are too large are kept as text, which suffices for comparisons.
        ast::Value::NumberLit(number) => {
            serde_json::from_str(number.value).unwrap_or_else(|_| Value::from(number.value))
        }
        ast::Value::BooleanLit(boolean) => Value::from(boolean.value),
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::Array(array) => array.elements.iter().map(json_value).collect(),
        ast::Value::Object(object) => {
            let props = object.properties.iter();
            props.map(|prop| (prop.name.as_str().to_owned(), json_value(&prop.value))).collect()
        }
    }
}
