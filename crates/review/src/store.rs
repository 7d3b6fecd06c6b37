//! Reviews on disk: a folder each, below one for the workspace.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_skill::skill::Digest;
use repertoire_text::fs;
use serde::{Deserialize, Serialize};

use super::change::Change;
use super::record::{Review, VERSION};
use repertoire_text::fs::make_private_dir;
use crate::limits::{REVIEW_RECORD_BYTES_MAX, REVIEWS_LISTED_MAX};

const RECORD: &str = "review.json";
const CHANGE: &str = "change.json";
const PLACE: &str = "workspace.json";

/// The reviews of one workspace.
#[derive(Clone, Debug)]
pub struct Reviews {
    dir: Utf8PathBuf,
    workspace: Utf8PathBuf,
}

/// Whose folder it is.
#[derive(Debug, Serialize, Deserialize)]
struct Place {
    workspace: Utf8PathBuf,
}

/// Why a review cannot be had or kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is none of that name.
    #[error("there is no review `{id}` of {workspace}")]
    NotFound {
        /// The name.
        id: String,
        /// The workspace.
        workspace: Utf8PathBuf,
    },
    /// Several begin so.
    #[error("several reviews begin with `{id}`")]
    Ambiguous {
        /// How they begin.
        id: String,
    },
    /// There is none at all.
    #[error("there is no review of {workspace} yet")]
    None {
        /// The workspace.
        workspace: Utf8PathBuf,
    },
    /// It cannot be read.
    #[error("{path} cannot be read: {problem}")]
    Unreadable {
        /// The file.
        path: Utf8PathBuf,
        /// Why not.
        problem: String,
    },
    /// A later version has written it.
    #[error(
        "{path} was written by a later version of Repertoire (record {version}, this one knows {VERSION})"
    )]
    Newer {
        /// The file.
        path: Utf8PathBuf,
        /// Its version.
        version: u32,
    },
    /// It cannot be written.
    #[error("{path} cannot be written: {source}")]
    Write {
        /// The file.
        path: Utf8PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

impl Reviews {
    /// The reviews of a workspace below a folder. Nothing is written yet.
    pub fn new(reviews: &Utf8Path, workspace: &Utf8Path) -> Self {
        let print = Digest::of(workspace.as_str().as_bytes()).to_string();
        let print = print.trim_start_matches("sha256:");
        let name: String = print.chars().take(16).collect();
        Reviews { dir: reviews.join(name), workspace: workspace.to_owned() }
    }

    /// Keeps a review with the change that it is about, and says where.
    ///
    /// # Errors
    ///
    /// When the disk does not take it.
    pub fn keep(&self, review: &Review, change: &Change) -> Result<Utf8PathBuf, StoreError> {
        let dir = self.dir.join(&review.id);
        let wrong = |path: &Utf8Path| {
            let path = path.to_owned();
            move |source| StoreError::Write { path, source }
        };
        make_private_dir(&dir).map_err(wrong(&dir))?;
        let place = Place { workspace: self.workspace.clone() };
        write(&self.dir.join(PLACE), &place)?;
        write(&dir.join(CHANGE), change)?;
        // Last: what has a record is whole.
        write(&dir.join(RECORD), review)?;
        Ok(dir)
    }

    /// The names of the reviews, the latest first.
    pub fn names(&self) -> Vec<String> {
        let Ok(entries) = fs::entries(&self.dir) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.name.into_string().ok())
            .filter(|name| self.dir.join(name).join(RECORD).is_file())
            .collect();
        names.sort_by(|a, b| b.cmp(a));
        names.truncate(REVIEWS_LISTED_MAX);
        names
    }

    /// A review by its name or how it begins; `last` is the latest.
    ///
    /// # Errors
    ///
    /// When there is none, or it cannot be read.
    pub fn load(&self, name: &str) -> Result<Review, StoreError> {
        let id = self.find(name)?;
        let path = self.dir.join(id).join(RECORD);
        let review: Review = read(&path)?;
        match review.version > VERSION {
            true => Err(StoreError::Newer { path, version: review.version }),
            false => Ok(review),
        }
    }

    /// The change that a review is about.
    ///
    /// # Errors
    ///
    /// As [`Reviews::load`].
    pub fn change(&self, name: &str) -> Result<Change, StoreError> {
        read(&self.dir.join(self.find(name)?).join(CHANGE))
    }

    fn find(&self, name: &str) -> Result<String, StoreError> {
        let names = self.names();
        let mut fitting = names.iter().filter(|known| name == "last" || known.starts_with(name));
        let workspace = self.workspace.clone();
        match (fitting.next(), fitting.next()) {
            (Some(_), Some(_)) if name != "last" => {
                Err(StoreError::Ambiguous { id: name.to_owned() })
            }
            (Some(found), _) => Ok(found.clone()),
            (None, _) if names.is_empty() => Err(StoreError::None { workspace }),
            (None, _) => Err(StoreError::NotFound { id: name.to_owned(), workspace }),
        }
    }
}

fn write(path: &Utf8Path, value: &impl Serialize) -> Result<(), StoreError> {
    let json = serde_json::to_vec_pretty(value).map_err(std::io::Error::other);
    json.and_then(|json| fs::write_atomic(path, &json))
        .map_err(|source| StoreError::Write { path: path.to_owned(), source })
}

fn read<T: serde::de::DeserializeOwned>(path: &Utf8Path) -> Result<T, StoreError> {
    let wrong = |problem: String| StoreError::Unreadable { path: path.to_owned(), problem };
    let text =
        fs::read_text(path, REVIEW_RECORD_BYTES_MAX).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
}
