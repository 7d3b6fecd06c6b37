//! Generates `docs/reference/events.md`: every event of the journal, from the schema of `rep runs events --json`.

use serde_json::Value;

use crate::markdown::{GENERATED, table_cell, table_header, table_row};

/// The schema that describes one event.
const SCHEMA: &str = "run-event.json";

const INTRODUCTION: &str = "\
# Events

The journal records every change of a run as one of these events. `rep runs events` prints them, `--type` selects some, and
`--json` prints one event per line ([schema](schemas/run-event.json)). Every event also has `v` (format version), `run`, `seq`
(position in the run, from 1) and `at_ms`. Fields marked `?` are optional.

";

pub(crate) fn render_page() -> String {
    let mut out = format!("{GENERATED}{INTRODUCTION}");
    out.push_str(&table_header(&["event", "meaning", "fields"]));
    for (_, schema) in
        repertoire_cli::schema::all_schemas().into_iter().filter(|(name, _)| *name == SCHEMA)
    {
        for event in schema.as_value()["oneOf"].as_array().into_iter().flatten() {
            out.push_str(&event_row(event));
        }
    }
    out
}

fn event_row(event: &Value) -> String {
    let name = event["properties"]["type"]["const"].as_str().unwrap_or_default();
    let about = event["description"].as_str().unwrap_or_default();
    table_row(&[&format!("`{name}`"), &table_cell(about), &describe_fields(event)])
}

fn describe_fields(event: &Value) -> String {
    let required: Vec<&str> =
        event["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let names = event["properties"].as_object().into_iter().flat_map(|fields| fields.keys());
    let names = names.filter(|name| *name != "type");
    let names = names.map(|name| match required.contains(&name.as_str()) {
        true => format!("`{name}`"),
        false => format!("`{name}?`"),
    });
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn lists_events_with_their_fields() {
        let page = super::render_page();
        assert!(page.contains("| `RUN_CREATED` |"), "{page}");
        assert!(page.contains("`kind`, `name`"), "{page}");
    }
}
