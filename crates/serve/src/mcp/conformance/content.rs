//! Tools that answer at once with one kind of content each.

use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde_json::{Value, json};

use super::{parse_fixture, text_content};

/// The smallest image: one pixel.
pub(super) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
/// The smallest audio file: no samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

pub(super) const NAMES: &[&str] = &[
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
];

pub(super) fn call_tool(name: &str, arguments: Option<&JsonObject>) -> Option<CallToolResult> {
    let content = match name {
        "test_simple_text" => {
            json!([{ "type": "text", "text": "This is a simple text response for testing." }])
        }
        "test_image_content" => json!([image_block()]),
        "test_audio_content" => json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }]),
        "test_embedded_resource" => json!([resource_block(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content."
        )]),
        "test_multiple_content_types" => json!([
            { "type": "text", "text": "Multiple content types test:" },
            image_block(),
            resource_block(
                "test://mixed-content-resource",
                "application/json",
                "{\"test\":\"data\",\"value\":123}"
            ),
        ]),
        "test_error_handling" => {
            let text = "This tool intentionally returns an error for testing";
            return Some(CallToolResult::error(text_content(text)));
        }
        "json_schema_2020_12_tool" | "test_param_header" => {
            let given = arguments.map_or(Value::Null, |given| Value::Object(given.clone()));
            return Some(CallToolResult::success(text_content(given.to_string())));
        }
        _ => return None,
    };
    Some(CallToolResult::success(parse_fixture::<Vec<ContentBlock>>(content)))
}

fn image_block() -> Value {
    json!({ "type": "image", "data": PNG, "mimeType": "image/png" })
}

fn resource_block(uri: &str, mime: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": mime, "text": text } })
}

/// A schema with keywords of JSON Schema 2020-12 that must be preserved.
pub(super) fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

/// A schema with a parameter that is also sent as a header.
pub(super) fn schema_with_header() -> Value {
    json!({
        "type": "object",
        "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
    })
}
