//! The files of a skill.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use camino::Utf8Path;
use http::{Method, StatusCode};
use repertoire_skill::resources;
use repertoire_text::fs::ReadError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{ApiBuilder, ApiCall, ApiResult, run_blocking};
use super::{SkillNamePath, resolve_skill};
use crate::http::problem::HttpProblem;
use crate::limits::FILE_PART_BYTES_MAX;
use crate::plain_text::is_plain;

/// The requested file.
#[derive(Debug, Deserialize, JsonSchema)]
struct SkillFileQuery {
    /// The path below the skill's folder.
    path: String,
    /// The first byte of the part: `next` of the previous part; 0 by default.
    offset: Option<u64>,
}

/// The encoding of bytes in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum FileEncoding {
    /// Plain text.
    Text,
    /// Base64, because the bytes are not text.
    Base64,
}

/// A file of a skill, or a part of it.
#[derive(Debug, Serialize, JsonSchema)]
struct SkillFileJson {
    /// The name of the skill.
    skill: String,
    /// The path below the skill's folder.
    path: String,
    /// The size of the whole file.
    bytes: usize,
    /// The offset of this part.
    offset: usize,
    /// The encoding of `content`.
    encoding: FileEncoding,
    /// At most 524,288 bytes of the file.
    content: String,
    /// The `offset` of the next part; absent in the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
}

pub(super) fn add_endpoints(api: ApiBuilder) -> ApiBuilder {
    api.add(
        Method::GET,
        "/api/v1/skills/{name}/file",
        "skills",
        "A file beside a skill",
        show_skill_file,
    )
    .refuses(StatusCode::CONFLICT, "The file is too large.")
}

async fn show_skill_file(call: ApiCall<SkillNamePath, SkillFileQuery>) -> ApiResult<SkillFileJson> {
    run_blocking(move || {
        let catalog = call.serve_state.catalog();
        let entry = resolve_skill(&catalog, &call.path.name)?;
        let path = Utf8Path::new(&call.query.path);
        let limits = call.serve_state.library().request().limits.resources;
        let bytes = resources::read_resource_bytes(&entry.skill, path, &limits)
            .map_err(|error| read_problem(&entry.id, path, &error))?;
        let offset = call.query.offset.and_then(|offset| usize::try_from(offset).ok());
        let part = encode_part(&bytes, offset.unwrap_or(0));
        Ok(SkillFileJson {
            skill: entry.id.clone(),
            path: path.to_string(),
            bytes: bytes.len(),
            offset: part.offset,
            encoding: part.encoding,
            content: part.content,
            next: Some(part.end).filter(|end| *end < bytes.len()),
        })
    })
    .await
}

/// A part of a file, encoded for JSON.
struct EncodedPart {
    offset: usize,
    end: usize,
    encoding: FileEncoding,
    content: String,
}

/// The part that begins at `offset`. A text file is cut at character boundaries.
fn encode_part(bytes: &[u8], offset: usize) -> EncodedPart {
    let text = std::str::from_utf8(bytes).ok().filter(|text| is_plain(text));
    let Some(text) = text else {
        let offset = offset.min(bytes.len());
        let end = offset.saturating_add(FILE_PART_BYTES_MAX).min(bytes.len());
        let content = STANDARD.encode(&bytes[offset..end]);
        return EncodedPart { offset, end, encoding: FileEncoding::Base64, content };
    };
    let boundary = |at: usize| text.floor_char_boundary(at.min(text.len()));
    let offset = boundary(offset);
    let end = boundary(offset.saturating_add(FILE_PART_BYTES_MAX));
    EncodedPart { offset, end, encoding: FileEncoding::Text, content: text[offset..end].to_owned() }
}

fn read_problem(skill: &str, path: &Utf8Path, error: &ReadError) -> HttpProblem {
    let detail = format!("`{path}` of {skill} cannot be read: {error}");
    let status = match error {
        ReadError::TooLarge { .. } => StatusCode::CONFLICT,
        _ => StatusCode::NOT_FOUND,
    };
    HttpProblem::new(status, detail).hint("The skill itself names its files in `resources`.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_file_costs_a_third_more_than_its_bytes() {
        let zeros = vec![0_u8; 3 * FILE_PART_BYTES_MAX];
        let first = encode_part(&zeros, 0);
        assert_eq!(
            (first.encoding, first.offset, first.end),
            (FileEncoding::Base64, 0, FILE_PART_BYTES_MAX)
        );
        let json = serde_json::to_string(&first.content).unwrap();
        assert!(json.len() < FILE_PART_BYTES_MAX * 3 / 2, "{}", json.len());
        let last = encode_part(&zeros, 3 * FILE_PART_BYTES_MAX - 1);
        assert_eq!((last.end, last.content.as_str()), (zeros.len(), "AA=="));
        assert_eq!(encode_part(&zeros, usize::MAX).content, "");
    }

    #[test]
    fn parts_of_a_text_make_the_text() {
        let text = "aé".repeat(FILE_PART_BYTES_MAX / 2);
        let (mut whole, mut at) = (String::new(), 0);
        while at < text.len() {
            let part = encode_part(text.as_bytes(), at);
            assert_eq!((part.encoding, part.offset), (FileEncoding::Text, at));
            assert!(part.content.len() <= FILE_PART_BYTES_MAX && part.end > at);
            whole.push_str(&part.content);
            at = part.end;
        }
        assert_eq!(whole, text);
    }
}
