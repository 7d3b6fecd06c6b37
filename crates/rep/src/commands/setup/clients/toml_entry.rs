//! Edits entries in TOML: adds a table at the end of the file, and finds it again by its header.
//! Everything before it is unchanged.

use std::ops::Range;

use serde_json::{Map, Value};
use toml_edit::{Document, Item, Table, TableLike};

use super::entry_edit::{CreatedObjects, EntryEditError, EntryLocation};

pub(super) fn get_entry(
    place: &EntryLocation<'_>,
    text: &str,
) -> Result<Option<Value>, EntryEditError> {
    let document = parse_text(text)?;
    let Some(list) = find_server_table(place, document.as_table())? else { return Ok(None) };
    Ok(list.get(place.name).map(json_value))
}

pub(super) fn add_entry(
    place: &EntryLocation<'_>,
    text: &str,
    entry: &Value,
) -> Result<(String, CreatedObjects), EntryEditError> {
    let newline = match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    };
    let table = render_table(place, entry, newline);
    let edited = match text {
        "" => table,
        // Separate it with a blank line.
        text if text.ends_with('\n') => format!("{text}{newline}{table}"),
        // If the last line has no line break, keep it that way.
        text => format!("{text}{newline}{}", table.trim_end()),
    };
    let is_right = get_entry(place, &edited).is_ok_and(|found| found.as_ref() == Some(entry));
    if is_right && is_same_otherwise(place, text, &edited) {
        Ok((edited, CreatedObjects::default()))
    } else {
        Err(place.unsupported_form())
    }
}

pub(super) fn remove_entry(
    place: &EntryLocation<'_>,
    text: &str,
) -> Result<String, EntryEditError> {
    let document = parse_text(text)?;
    let list =
        find_server_table(place, document.as_table())?.ok_or_else(|| place.unsupported_form())?;
    let table =
        list.get(place.name).and_then(Item::as_table).ok_or_else(|| place.unsupported_form())?;
    let mut blocks = Vec::new();
    collect_blocks(table, text, &mut blocks).ok_or_else(|| place.unsupported_form())?;
    blocks.sort_by_key(|block: &Range<usize>| block.start);
    let (mut edited, mut at) = (String::with_capacity(text.len()), 0);
    for block in blocks {
        edited.push_str(&text[at..block.start.max(at)]);
        at = block.end.max(at);
    }
    edited.push_str(&text[at..]);
    let is_gone = get_entry(place, &edited).is_ok_and(|found| found.is_none());
    if is_gone && is_same_otherwise(place, &edited, text) {
        Ok(edited)
    } else {
        Err(place.unsupported_form())
    }
}

/// Renders the table with its header.
pub(super) fn render_table(place: &EntryLocation<'_>, entry: &Value, newline: &str) -> String {
    let keys = place.keys.iter().map(String::as_str).chain([place.name]);
    let path: Vec<String> = keys.map(|key| toml_edit::Key::new(key).to_string()).collect();
    let mut out = format!("[{}]{newline}", path.join("."));
    for (key, value) in entry.as_object().into_iter().flatten() {
        out.push_str(&format!("{} = {}{newline}", toml_edit::Key::new(key), toml_literal(value)));
    }
    out
}

fn toml_literal(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml_literal).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(entries) => {
            let pair =
                |(key, value)| format!("{} = {}", toml_edit::Key::new(key), toml_literal(value));
            let pairs: Vec<String> = entries.iter().map(pair).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        Value::String(text) => toml_edit::Value::from(text.as_str()).to_string(),
        value => value.to_string(),
    }
}

fn parse_text(text: &str) -> Result<Document<&str>, EntryEditError> {
    Document::parse(text).map_err(|error| {
        let line =
            error.span().map(|span| text[..span.start.min(text.len())].lines().count().max(1));
        let line = line.map_or_else(String::new, |line| format!(" on line {line}"));
        EntryEditError::Syntax {
            format: "TOML",
            message: format!("{}{line}", error.message().trim()),
        }
    })
}

/// The table of servers, if there is one.
fn find_server_table<'d>(
    place: &EntryLocation<'_>,
    root: &'d Table,
) -> Result<Option<&'d dyn TableLike>, EntryEditError> {
    let mut here: &dyn TableLike = root;
    for (at, key) in place.keys.iter().enumerate() {
        let Some(item) = here.get(key) else { return Ok(None) };
        let found = match item {
            Item::ArrayOfTables(_) => "a list of tables",
            Item::Value(value) if value.is_array() => "a list",
            Item::Value(value) if value.is_str() => "a text",
            _ => "a value",
        };
        let key = || format!("`{}`", place.key_path(at + 1, None));
        here = item
            .as_table_like()
            .ok_or_else(|| EntryEditError::NotAnObject { key: key(), found })?;
    }
    Ok(Some(here))
}

/// Collects the lines of a table and its sub-tables, each with the preceding blank line.
fn collect_blocks(table: &Table, text: &str, blocks: &mut Vec<Range<usize>>) -> Option<()> {
    if !table.is_implicit() {
        if table.is_dotted() {
            return None;
        }
        let header = table.span()?;
        let values = table.iter().filter_map(|(_, item)| item.as_value()?.span());
        let end = values.map(|span| span.end).max().unwrap_or(header.end).max(header.end);
        blocks.push(line_block(text, header.start, end));
    }
    let mut inner = table.iter().filter_map(|(_, item)| match item {
        Item::Table(table) => Some(collect_blocks(table, text, blocks)),
        Item::ArrayOfTables(_) => Some(None),
        Item::None | Item::Value(_) => None,
    });
    inner.all(|gathered| gathered.is_some()).then_some(())
}

/// Extends a range to whole lines, plus the preceding line break if there is a blank line or the
/// file has no final line break.
fn line_block(text: &str, from: usize, to: usize) -> Range<usize> {
    let start = text[..from].rfind('\n').map_or(0, |at| at + 1);
    let end = text[to..].find('\n').map(|at| to + at + 1);
    let before = &text[..start];
    let shorter = before.strip_suffix("\r\n").or_else(|| before.strip_suffix('\n'));
    let start = match shorter {
        Some(shorter) if end.is_none() || shorter.is_empty() || shorter.ends_with('\n') => {
            shorter.len()
        }
        _ => start,
    };
    start..end.unwrap_or(text.len())
}

/// Returns true if two texts are equal except for the entry, which only the second one has.
fn is_same_otherwise(place: &EntryLocation<'_>, without: &str, with: &str) -> bool {
    let (Ok(without), Ok(with)) = (parse_text(without), parse_text(with)) else { return false };
    let mut with = json_value(&Item::Table(with.as_table().clone()));
    let mut without = json_value(&Item::Table(without.as_table().clone()));
    for value in [&mut with, &mut without] {
        let mut here = value;
        for key in place.keys {
            let Some(object) = here.as_object_mut() else { return false };
            // Treat a missing table of servers as empty.
            here = object.entry(key.clone()).or_insert_with(|| Value::Object(Map::new()));
        }
        if let Some(list) = here.as_object_mut() {
            list.shift_remove(place.name);
        }
    }
    with == without
}

fn json_value(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Table(table) => table_value(table),
        Item::ArrayOfTables(tables) => tables.iter().map(|table| table_value(table)).collect(),
        Item::Value(value) => match value {
            toml_edit::Value::String(text) => Value::from(text.value().as_str()),
            toml_edit::Value::Integer(number) => Value::from(*number.value()),
            toml_edit::Value::Boolean(boolean) => Value::from(*boolean.value()),
            toml_edit::Value::Float(number) => Value::from(*number.value()),
            toml_edit::Value::Datetime(time) => Value::from(time.value().to_string()),
            toml_edit::Value::Array(items) => {
                items.iter().map(|item| json_value(&Item::Value(item.clone()))).collect()
            }
            toml_edit::Value::InlineTable(table) => table_value(table),
        },
    }
}

fn table_value(table: &dyn TableLike) -> Value {
    Value::Object(table.iter().map(|(key, item)| (key.to_owned(), json_value(item))).collect())
}
