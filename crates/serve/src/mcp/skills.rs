//! The Skills extension (`io.modelcontextprotocol/skills`, version 1): `skills/list`, `skills/get` and
//! `resources/directory/read`.

use std::collections::BTreeMap;

use rmcp::ErrorData;
use rmcp::model::Resource;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::limits::{PAGE, TTL_MS};
use super::manifest::{NotServed, SkillManifest};
use super::skill_index::{ServedSkill, ServedSkills};
use super::{cursor, mime, uri};

pub(super) const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// The `_meta` key for the skills that a page has left out.
const LEFT_OUT: &str = "dev.repertoire/left-out";

/// Answers a request of the extension; `None` if the method does not belong to it.
pub(super) fn answer_request(
    shelf: &ServedSkills,
    method: &str,
    params: Option<Value>,
) -> Option<Result<Value, ErrorData>> {
    let params = params.unwrap_or(Value::Null);
    Some(match method {
        "skills/list" => parse_params(params).and_then(|params| list_skills(shelf, params)),
        "skills/get" => parse_params(params).and_then(|params| get_skill(shelf, params)),
        "resources/directory/read" => {
            parse_params(params).and_then(|params| read_directory(shelf, params))
        }
        _ => return None,
    })
}

#[derive(Default, Deserialize)]
struct ListSkillsParams {
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct GetSkillParams {
    uri: String,
}

#[derive(Deserialize)]
struct ReadDirectoryParams {
    uri: String,
    cursor: Option<String>,
}

/// A skill in wire format.
#[derive(Serialize)]
struct SkillEntry<'s> {
    uri: String,
    frontmatter: &'s Map<String, Value>,
    resources: Vec<SkillFileEntry>,
}

/// A file in wire format.
#[derive(Serialize)]
struct SkillFileEntry {
    uri: String,
    digest: String,
    size: u64,
}

/// A skill that is left out of a page, and why.
#[derive(Serialize)]
struct LeftOutSkill {
    uri: String,
    reason: String,
}

fn parse_params<P: for<'de> Deserialize<'de>>(params: Value) -> Result<P, ErrorData> {
    let params = if params.is_null() { json!({}) } else { params };
    serde_json::from_value(params).map_err(|error| {
        ErrorData::invalid_params(format!("the parameters do not fit: {error}"), None)
    })
}

fn list_skills(shelf: &ServedSkills, params: ListSkillsParams) -> Result<Value, ErrorData> {
    let listed = shelf.listed_skills();
    let (page, next) =
        cursor::page_after("skills", &listed, |book| &book.path, params.cursor.as_deref(), PAGE)?;
    let mut skills = Vec::with_capacity(page.len());
    let mut left_out = Vec::new();
    for book in page {
        match skill_json(shelf, book) {
            Ok(skill) => skills.push(skill),
            Err(refused) => {
                left_out.push(LeftOutSkill { uri: book.uri(), reason: refused.to_string() });
            }
        }
    }
    let mut result = complete_result();
    result.insert("skills".to_owned(), Value::Array(skills));
    if let Some(next) = next {
        result.insert("nextCursor".to_owned(), next.into());
    }
    if !left_out.is_empty() {
        result.insert("_meta".to_owned(), json!({ LEFT_OUT: left_out }));
    }
    Ok(Value::Object(result))
}

fn get_skill(shelf: &ServedSkills, params: GetSkillParams) -> Result<Value, ErrorData> {
    let Some(book) = shelf.find_by_uri(&params.uri) else {
        return Err(unknown_uri("no skill is served at this address", &params.uri));
    };
    let skill = skill_json(shelf, book).map_err(|refused| {
        unknown_uri(&format!("this skill is not served: {refused}"), &params.uri)
    })?;
    let mut result = complete_result();
    result.insert("skill".to_owned(), skill);
    Ok(Value::Object(result))
}

/// The fields of every result of the extension: it is complete, and this client may cache it for a
/// while.
fn complete_result() -> Map<String, Value> {
    let fields = [
        ("resultType", json!("complete")),
        ("ttlMs", json!(TTL_MS)),
        ("cacheScope", json!("private")),
    ];
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn skill_json(shelf: &ServedSkills, book: &ServedSkill) -> Result<Value, NotServed> {
    let copy = shelf.served_text(book);
    let manifest = shelf.manifest(book)?;
    let own = SkillFileEntry {
        uri: book.uri(),
        digest: copy.digest.to_string(),
        size: copy.text.len() as u64,
    };
    let others = manifest.files.iter().map(|file| SkillFileEntry {
        uri: uri::format_uri(&book.path, file.path.as_str()),
        digest: file.digest.to_string(),
        size: file.bytes,
    });
    let resources = std::iter::once(own).chain(others).collect();
    let skill = SkillEntry { uri: book.uri(), frontmatter: &copy.frontmatter, resources };
    Ok(serde_json::to_value(skill).expect("maps with text keys are JSON"))
}

/// "Invalid params" for a URI.
fn unknown_uri(message: &str, uri: &str) -> ErrorData {
    ErrorData::invalid_params(message.to_owned(), Some(json!({ "uri": uri })))
}

fn read_directory(shelf: &ServedSkills, params: ReadDirectoryParams) -> Result<Value, ErrorData> {
    let not_one = || unknown_uri("no folder of a skill is served at this address", &params.uri);
    let segments = uri::parse_uri(&params.uri).ok_or_else(not_one)?;
    let (book, below) = shelf.find_by_segments(&segments).ok_or_else(not_one)?;
    let manifest = shelf.manifest(book).map_err(|refused| {
        unknown_uri(&format!("this skill is not served: {refused}"), &params.uri)
    })?;
    let children: Vec<(String, Resource)> =
        folder_children(shelf, book, &manifest, &below.join("/")).into_iter().collect();
    if children.is_empty() {
        return Err(not_one());
    }
    // Include the URI in the list's name, so that a cursor is only valid for its own folder.
    let list = format!("directory {}", segments.join("/"));
    let (page, next) =
        cursor::page_after(&list, &children, |(name, _)| name, params.cursor.as_deref(), PAGE)?;
    let mut result = complete_result();
    let page: Vec<&Resource> = page.iter().map(|(_, resource)| resource).collect();
    result.insert("resources".to_owned(), json!(page));
    if let Some(next) = next {
        result.insert("nextCursor".to_owned(), next.into());
    }
    Ok(Value::Object(result))
}

/// The direct children of a skill's folder, by name; empty if there is no such folder.
fn folder_children(
    shelf: &ServedSkills,
    book: &ServedSkill,
    manifest: &SkillManifest,
    folder: &str,
) -> BTreeMap<String, Resource> {
    let mut children = BTreeMap::new();
    if folder.is_empty() {
        children.insert(uri::SKILL_FILE.to_owned(), own_resource(shelf, book));
    }
    for file in &manifest.files {
        let path = file.path.as_str();
        let below = if folder.is_empty() {
            Some(path)
        } else {
            path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'))
        };
        let Some(below) = below else { continue };
        let (name, resource) = match below.split_once('/') {
            None => {
                let mut resource = Resource::new(uri::format_uri(&book.path, path), below);
                resource.mime_type = mime::mime_by_extension(path).map(str::to_owned);
                (below, resource.with_size(file.bytes))
            }
            Some((name, _)) => {
                let uri = uri::format_uri(&book.path, &format!("{folder}/{name}"));
                (name, Resource::new(uri, name).with_mime_type(mime::FOLDER))
            }
        };
        children.insert(name.to_owned(), resource);
    }
    children
}

/// A skill's `SKILL.md` as a resource.
pub(super) fn own_resource(shelf: &ServedSkills, book: &ServedSkill) -> Resource {
    let copy = shelf.served_text(book);
    Resource::new(book.uri(), book.name())
        .with_description(copy.text_field("description"))
        .with_mime_type("text/markdown")
        .with_size(copy.text.len() as u64)
}
