//! Resources for the conformance suite.

use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use super::content::PNG;
use super::parse_fixture;

pub(super) fn list_resources() -> Vec<Resource> {
    parse_fixture(json!([
        {
            "uri": "test://static-text", "name": "static-text",
            "description": "A text", "mimeType": "text/plain",
        },
        {
            "uri": "test://static-binary", "name": "static-binary",
            "description": "A picture", "mimeType": "image/png",
        },
        {
            "uri": "test://watched-resource", "name": "watched-resource",
            "description": "A text that somebody watches", "mimeType": "text/plain",
        },
    ]))
}

pub(super) fn list_templates() -> Vec<ResourceTemplate> {
    parse_fixture(json!([{
        "uriTemplate": "test://template/{id}/data", "name": "template",
        "description": "Something for every id", "mimeType": "application/json",
    }]))
}

pub(super) fn read_resource(uri: &str) -> Option<ReadResourceResult> {
    let contents = match uri {
        "test://static-text" => {
            ResourceContents::text("This is the content of the static text resource.", uri)
        }
        "test://watched-resource" => ResourceContents::text("Nothing has happened.", uri),
        "test://static-binary" => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
        _ => {
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
            let data = format!("Data for ID: {id}");
            let text = json!({ "id": id, "templateTest": true, "data": data }).to_string();
            ResourceContents::text(text, uri).with_mime_type("application/json")
        }
    };
    Some(ReadResourceResult::new(vec![contents]))
}
