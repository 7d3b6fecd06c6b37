//! Stores reviews on disk: one folder per review, below one per workspace.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_skill::skill::ContentDigest;
use repertoire_text::fs;
use serde::{Deserialize, Serialize};

use super::change::ReviewChange;
use super::record::{ReviewRecord, VERSION};
use crate::limits::{REVIEW_RECORD_BYTES_MAX, REVIEWS_LISTED_MAX};
use repertoire_text::fs::make_private_dir;

const RECORD: &str = "review.json";
const CHANGE: &str = "change.json";
const PLACE: &str = "workspace.json";

/// The stored reviews of one workspace.
#[derive(Clone, Debug)]
pub struct ReviewStore {
    dir: Utf8PathBuf,
    workspace: Utf8PathBuf,
}

/// The content of `workspace.json`, which names the workspace of a folder.
#[derive(Debug, Serialize, Deserialize)]
struct WorkspaceRecord {
    workspace: Utf8PathBuf,
}

/// An error in loading or storing a review.
#[derive(Debug, thiserror::Error)]
pub enum ReviewStoreError {
    #[error("there is no review `{id}` of {workspace}")]
    NotFound { id: String, workspace: Utf8PathBuf },
    /// Several review ids begin with the given text.
    #[error("several reviews begin with `{id}`")]
    Ambiguous { id: String },
    /// The workspace has no reviews.
    #[error("there is no review of {workspace} yet")]
    None { workspace: Utf8PathBuf },
    #[error("{path} cannot be read: {problem}")]
    Unreadable { path: Utf8PathBuf, problem: String },
    /// The record was written by a later version.
    #[error(
        "{path} was written by a later version of Repertoire (record {version}, this one knows {VERSION})"
    )]
    Newer { path: Utf8PathBuf, version: u32 },
    #[error("{path} cannot be written: {source}")]
    Write { path: Utf8PathBuf, source: std::io::Error },
}

impl ReviewStore {
    /// Opens the reviews of a workspace below the folder `reviews`. Writes nothing.
    pub fn new(reviews: &Utf8Path, workspace: &Utf8Path) -> Self {
        let print = ContentDigest::hash_bytes(workspace.as_str().as_bytes()).to_string();
        let print = print.trim_start_matches("sha256:");
        let name: String = print.chars().take(16).collect();
        ReviewStore { dir: reviews.join(name), workspace: workspace.to_owned() }
    }

    /// Stores a review with its change. Returns the folder.
    ///
    /// # Errors
    ///
    /// Fails if the files cannot be written.
    pub fn save_review(
        &self,
        review: &ReviewRecord,
        change: &ReviewChange,
    ) -> Result<Utf8PathBuf, ReviewStoreError> {
        let dir = self.dir.join(&review.id);
        make_private_dir(&dir)
            .map_err(|source| ReviewStoreError::Write { path: dir.clone(), source })?;
        let place = WorkspaceRecord { workspace: self.workspace.clone() };
        write_json(&self.dir.join(PLACE), &place)?;
        write_json(&dir.join(CHANGE), change)?;
        // Write the record last: a folder with a record is complete.
        write_json(&dir.join(RECORD), review)?;
        Ok(dir)
    }

    /// The ids of the reviews, latest first.
    pub fn review_ids(&self) -> Vec<String> {
        let Ok(entries) = fs::list_entries(&self.dir) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.name.into_string().ok())
            .filter(|name| self.dir.join(name).join(RECORD).is_file())
            .collect();
        names.sort_by(|a, b| b.cmp(a));
        names.truncate(REVIEWS_LISTED_MAX);
        names
    }

    /// Loads a review by its id or the beginning of it; `last` is the latest one.
    ///
    /// # Errors
    ///
    /// Fails if there is no such review, the id is ambiguous, or the record cannot be read.
    pub fn load_review(&self, name: &str) -> Result<ReviewRecord, ReviewStoreError> {
        let id = self.find_id(name)?;
        let path = self.dir.join(id).join(RECORD);
        let review: ReviewRecord = read_json(&path)?;
        if review.version > VERSION {
            Err(ReviewStoreError::Newer { path, version: review.version })
        } else {
            Ok(review)
        }
    }

    /// Loads the change of a review.
    ///
    /// # Errors
    ///
    /// As [`ReviewStore::load_review`].
    pub fn load_change(&self, name: &str) -> Result<ReviewChange, ReviewStoreError> {
        read_json(&self.dir.join(self.find_id(name)?).join(CHANGE))
    }

    fn find_id(&self, name: &str) -> Result<String, ReviewStoreError> {
        let names = self.review_ids();
        let mut fitting = names.iter().filter(|known| name == "last" || known.starts_with(name));
        let workspace = self.workspace.clone();
        match (fitting.next(), fitting.next()) {
            (Some(_), Some(_)) if name != "last" => {
                Err(ReviewStoreError::Ambiguous { id: name.to_owned() })
            }
            (Some(found), _) => Ok(found.clone()),
            (None, _) if names.is_empty() => Err(ReviewStoreError::None { workspace }),
            (None, _) => Err(ReviewStoreError::NotFound { id: name.to_owned(), workspace }),
        }
    }
}

fn write_json(path: &Utf8Path, value: &impl Serialize) -> Result<(), ReviewStoreError> {
    let json = serde_json::to_vec_pretty(value).map_err(std::io::Error::other);
    json.and_then(|json| fs::write_atomic(path, &json))
        .map_err(|source| ReviewStoreError::Write { path: path.to_owned(), source })
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Utf8Path) -> Result<T, ReviewStoreError> {
    let wrong = |problem: String| ReviewStoreError::Unreadable { path: path.to_owned(), problem };
    let text =
        fs::read_text(path, REVIEW_RECORD_BYTES_MAX).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
}
