//! Generates `docs/reference/schemas/`: JSON Schemas of every `--json` output, and of the configuration file; and
//! `docs/reference/schemas.md`, the list of them.

use anyhow::Result;
use repertoire::config::{ConfigKey, ConfigValueKind, KEYS};
use repertoire_skill::profile::ProfileId;
use serde_json::{Map, Value, json};

use crate::codegen::GeneratedFile;
use crate::markdown::{GENERATED, table_cell, table_header, table_row};

pub(crate) const FOLDER: &str = "docs/reference/schemas";

pub(crate) fn generate_schemas() -> Result<Vec<GeneratedFile>> {
    let mut out = vec![schema_file("repertoire.toml.json", &configuration_schema())?];
    for (name, schema) in repertoire_cli::schema::all_schemas() {
        out.push(schema_file(name, schema.as_value())?);
    }
    Ok(out)
}

const INTRODUCTION: &str = "\
# JSON Schemas

Every `--json` output, `repertoire.toml` and `workflow.yaml` has a JSON Schema (draft 2020-12). Objects only gain fields: a
reader should ignore fields that it does not know.

";

/// The list of all schemas.
pub(crate) fn render_page() -> String {
    let mut out = format!("{GENERATED}{INTRODUCTION}");
    out.push_str(&table_header(&["schema", "describes"]));
    out.push_str(&schema_row("repertoire.toml.json", &configuration_schema()));
    for (name, schema) in repertoire_cli::schema::all_schemas() {
        out.push_str(&schema_row(name, schema.as_value()));
    }
    out
}

fn schema_row(name: &str, schema: &Value) -> String {
    let about = describe_schema(schema);
    let first = about.split("\n\n").next().unwrap_or_default();
    table_row(&[&format!("[`{name}`](schemas/{name})"), &table_cell(first)])
}

/// The description of a schema, or of the entries of a list.
fn describe_schema(schema: &Value) -> String {
    if let Some(about) = schema["description"].as_str() {
        return about.to_owned();
    }
    let entry = schema["items"]["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    let about = entry.and_then(|entry| schema["$defs"][entry]["description"].as_str());
    about.map(|about| format!("A list. Entries: {about}")).unwrap_or_default()
}

fn schema_file(name: &str, schema: &Value) -> Result<GeneratedFile> {
    let text = serde_json::to_string_pretty(schema)? + "\n";
    Ok(GeneratedFile { path: format!("{FOLDER}/{name}").into(), text })
}

/// The schema of `repertoire.toml`, with `walk.depth_max` as a key of the table `walk`.
fn configuration_schema() -> Value {
    let mut top = Map::new();
    let mut tables: Vec<(&str, Map<String, Value>)> = Vec::new();
    for key in KEYS {
        match key.name.split_once('.') {
            None => {
                top.insert(key.name.to_owned(), key_schema(key));
            }
            Some((table, name)) => {
                if tables.last().is_none_or(|(last, _)| *last != table) {
                    tables.push((table, Map::new()));
                }
                if let Some((_, keys)) = tables.last_mut() {
                    keys.insert(name.to_owned(), key_schema(key));
                }
            }
        }
    }
    for (table, keys) in tables {
        top.insert(table.to_owned(), object_schema(keys));
    }
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "repertoire.toml",
        "description": "The configuration of Repertoire, in a project or in the user's configuration folder.",
    });
    if let (Some(schema), Value::Object(top)) = (schema.as_object_mut(), object_schema(top)) {
        schema.extend(top);
    }
    schema
}

fn object_schema(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn key_schema(key: &ConfigKey) -> Value {
    let mut out = match key.shape {
        ConfigValueKind::Bool => json!({ "type": "boolean" }),
        ConfigValueKind::Number => json!({ "type": "integer", "minimum": 0 }),
        ConfigValueKind::Share => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        ConfigValueKind::Path => json!({ "type": "string" }),
        ConfigValueKind::Paths => json!({ "type": "array", "items": { "type": "string" } }),
        ConfigValueKind::Text
        | ConfigValueKind::Secret
        | ConfigValueKind::Duration
        | ConfigValueKind::Model => json!({ "type": "string" }),
        ConfigValueKind::Size => json!({ "type": ["string", "integer"], "minimum": 0 }),
        ConfigValueKind::Amount => json!({ "type": "number", "minimum": 0 }),
        ConfigValueKind::Rules | ConfigValueKind::Texts => {
            json!({ "type": "array", "items": { "type": "string" } })
        }
        ConfigValueKind::Table => {
            json!({ "type": "object", "additionalProperties": { "type": "object" } })
        }
        ConfigValueKind::Word(words) => json!({ "type": "string", "enum": words }),
        ConfigValueKind::Profile => {
            let words: Vec<&str> = ProfileId::ALL.iter().map(|id| id.as_str()).collect();
            json!({ "type": "string", "enum": words })
        }
    };
    out["description"] = Value::from(key.about);
    // All defaults are written the same in TOML and JSON.
    if let Ok(default) = serde_json::from_str::<Value>(key.default) {
        out["default"] = default;
    }
    out
}
