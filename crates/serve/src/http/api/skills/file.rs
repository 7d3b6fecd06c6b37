//! The files beside a skill.

use camino::Utf8Path;
use http::{Method, StatusCode};
use repertoire_skill::resources;
use repertoire_text::fs::ReadError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{Answer, Api, Call, blocking};
use super::{NamePath, resolve};
use crate::http::problem::Problem;

/// Which file.
#[derive(Debug, Deserialize, JsonSchema)]
struct WhichFile {
    /// Its path below the skill's folder.
    path: String,
}

/// A file beside a skill.
#[derive(Debug, Serialize, JsonSchema)]
struct File {
    /// The skill.
    skill: String,
    /// Its path below the skill's folder.
    path: String,
    /// Its size.
    bytes: usize,
    /// Its text.
    content: String,
}

pub(super) fn add(api: Api) -> Api {
    api.add(Method::GET, "/api/v1/skills/{name}/file", "skills", "A file beside a skill", read)
        .refuses(StatusCode::CONFLICT, "The file is too large, or no text.")
}

async fn read(call: Call<NamePath, WhichFile>) -> Answer<File> {
    blocking(move || {
        let catalog = call.house.catalog();
        let entry = resolve(&catalog, &call.path.name)?;
        let path = Utf8Path::new(&call.query.path);
        let limits = call.house.library().request().limits.resources;
        let content = resources::read(&entry.skill, path, &limits)
            .map_err(|error| problem(&entry.id, path, &error))?;
        let (skill, path) = (entry.id.clone(), path.to_string());
        Ok(File { skill, path, bytes: content.len(), content })
    })
    .await
}

fn problem(skill: &str, path: &Utf8Path, error: &ReadError) -> Problem {
    let detail = format!("`{path}` of {skill} cannot be read: {error}");
    let status = match error {
        ReadError::TooLarge { .. } | ReadError::NotUtf8 { .. } => StatusCode::CONFLICT,
        _ => StatusCode::NOT_FOUND,
    };
    Problem::new(status, detail).hint("The skill itself names its files in `resources`.")
}
