//! Files of skills as resources of the base protocol: the files listed by the extension are read
//! here.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use repertoire_skill::resources as files;
use rmcp::ErrorData;
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use serde_json::json;

use super::limits::PAGE;
use super::skill_index::ServedSkills;
use super::{cursor, manifest, mime, skills, uri};
use crate::plain_text::is_plain;

/// Lists the `SKILL.md` of every listed skill.
pub(super) fn list_resources(
    shelf: &ServedSkills,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let listed = shelf.listed_skills();
    let (page, next) = cursor::page_after("resources", &listed, |book| &book.path, cursor, PAGE)?;
    let resources: Vec<Resource> =
        page.iter().map(|book| skills::own_resource(shelf, book)).collect();
    let mut result = ListResourcesResult::with_all_items(resources);
    result.next_cursor = next;
    Ok(result)
}

/// The URI template of all files.
pub(super) fn list_templates() -> ListResourceTemplatesResult {
    let file = ResourceTemplate::new("skill://{skill}/{+path}", "A file of a skill")
        .with_description("A skill's instructions (`SKILL.md`) or any other file of its folder");
    ListResourceTemplatesResult::with_all_items(vec![file])
}

/// Reads a file: as text if it is text, else in Base64.
pub(super) fn read_resource(
    shelf: &ServedSkills,
    address: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let contents = read_contents(shelf, address).ok_or_else(|| {
        let data = json!({ "uri": address });
        ErrorData::resource_not_found("no file of a skill is served at this address", Some(data))
    })?;
    Ok(ReadResourceResult::new(vec![contents]))
}

fn read_contents(shelf: &ServedSkills, address: &str) -> Option<ResourceContents> {
    let segments = uri::parse_uri(address).filter(|_| !address.ends_with('/'))?;
    let (book, below) = shelf.find_by_segments(&segments)?;
    if below == [uri::SKILL_FILE] {
        let text = shelf.served_text(book).text.to_string();
        return Some(ResourceContents::text(text, address).with_mime_type("text/markdown"));
    }
    let path = below.join("/");
    // Files that the extension would not list must not be readable either.
    shelf.manifest(book).ok()?;
    let bytes = files::read_resource_bytes(
        &shelf.entry(book).skill,
        path.as_str().into(),
        &manifest::FOLDER,
    )
    .ok()?;
    Some(match std::str::from_utf8(&bytes).ok().filter(|text| is_plain(text)) {
        Some(text) => {
            ResourceContents::text(text, address).with_mime_type(mime::mime_type(&path, true))
        }
        None => {
            let encoded = STANDARD.encode(&bytes);
            ResourceContents::blob(encoded, address).with_mime_type(mime::mime_type(&path, false))
        }
    })
}
