//! Generates `docs/schemas/`: JSON Schemas of every `--json` output, and of the configuration file.

use anyhow::Result;
use repertoire_cli::config::{KEYS, Key, Shape};
use repertoire_skill::profile::ProfileId;
use serde_json::{Map, Value, json};

use crate::codegen::Generated;

pub(crate) const FOLDER: &str = "docs/schemas";

pub(crate) fn files() -> Result<Vec<Generated>> {
    let mut out = vec![file("repertoire.toml.json", &configuration())?];
    for (name, schema) in repertoire_cli::schema::all() {
        out.push(file(name, schema.as_value())?);
    }
    Ok(out)
}

fn file(name: &str, schema: &Value) -> Result<Generated> {
    let text = serde_json::to_string_pretty(schema)? + "\n";
    Ok(Generated { path: format!("{FOLDER}/{name}").into(), text })
}

/// The schema of `repertoire.toml`, with `walk.depth_max` as a key of the table `walk`.
fn configuration() -> Value {
    let mut top = Map::new();
    let mut tables: Vec<(&str, Map<String, Value>)> = Vec::new();
    for key in KEYS {
        match key.name.split_once('.') {
            None => {
                top.insert(key.name.to_owned(), property(key));
            }
            Some((table, name)) => {
                if tables.last().is_none_or(|(last, _)| *last != table) {
                    tables.push((table, Map::new()));
                }
                if let Some((_, keys)) = tables.last_mut() {
                    keys.insert(name.to_owned(), property(key));
                }
            }
        }
    }
    for (table, keys) in tables {
        top.insert(table.to_owned(), object(keys));
    }
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "repertoire.toml",
        "description": "The configuration of Repertoire, in a project or in the user's configuration folder.",
    });
    if let (Some(schema), Value::Object(top)) = (schema.as_object_mut(), object(top)) {
        schema.extend(top);
    }
    schema
}

fn object(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn property(key: &Key) -> Value {
    let mut out = match key.shape {
        Shape::Bool => json!({ "type": "boolean" }),
        Shape::Number => json!({ "type": "integer", "minimum": 0 }),
        Shape::Share => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        Shape::Path => json!({ "type": "string" }),
        Shape::Paths => json!({ "type": "array", "items": { "type": "string" } }),
        Shape::Text | Shape::Secret | Shape::Duration | Shape::Model => json!({ "type": "string" }),
        Shape::Size => json!({ "type": ["string", "integer"], "minimum": 0 }),
        Shape::Amount => json!({ "type": "number", "minimum": 0 }),
        Shape::Rules | Shape::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        Shape::Table => json!({ "type": "object", "additionalProperties": { "type": "object" } }),
        Shape::Word(words) => json!({ "type": "string", "enum": words }),
        Shape::Profile => {
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
