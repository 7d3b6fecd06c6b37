//! Stored reviews. A review is a run of the journal; its record and its change are files in the folder of the run, and
//! the journal holds their digests.

mod recorder;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_journal::run_folder::{RunFolder, RunFolderError};
use repertoire_journal::{
    DamagedRow, Filter, Journal, JournalError, Run, RunId, RunKind, RunStatus,
};
use repertoire_skill::skill::ContentDigest;
use repertoire_text::fs;

use super::change::ReviewChange;
use super::record::{ReviewRecord, VERSION};
use super::run_event::{ReviewEvent, ReviewResult};
use crate::limits::{REVIEW_RECORD_BYTES_MAX, REVIEWS_LISTED_MAX};

pub use recorder::ReviewRecorder;

const RECORD: &str = "review.json";
const CHANGE: &str = "change.json";

/// The stored reviews of one workspace.
#[derive(Clone)]
pub struct ReviewStore {
    journal: Journal,
    /// The folder of all runs.
    runs: Utf8PathBuf,
    workspace: Utf8PathBuf,
}

/// An error in loading or storing a review.
#[derive(Debug, thiserror::Error)]
pub enum ReviewStoreError {
    #[error("there is no review `{id}` of {workspace}")]
    NotFound { id: String, workspace: Utf8PathBuf },
    /// Several review ids begin or end with the given text.
    #[error("several reviews begin with `{id}`")]
    Ambiguous { id: String },
    /// The workspace has no reviews.
    #[error("there is no review of {workspace} yet")]
    None { workspace: Utf8PathBuf },
    #[error("{path} cannot be read: {problem}")]
    Unreadable { path: Utf8PathBuf, problem: String },
    /// The file does not have the digest that the journal recorded.
    #[error("{path} was changed after the review: its digest is not the recorded one")]
    Changed { path: Utf8PathBuf },
    /// The record was written by a later version.
    #[error(
        "{path} was written by a later version of Repertoire (record {version}, this one knows {VERSION})"
    )]
    Newer { path: Utf8PathBuf, version: u32 },
    #[error("{path} cannot be written: {source}")]
    Write { path: Utf8PathBuf, source: std::io::Error },
    #[error(transparent)]
    Folder(#[from] RunFolderError),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl ReviewStore {
    /// The reviews of a workspace. `runs` is the folder of all runs. Writes nothing.
    pub fn new(journal: Journal, runs: &Utf8Path, workspace: &Utf8Path) -> Self {
        ReviewStore { journal, runs: runs.to_owned(), workspace: workspace.to_owned() }
    }

    /// The ids of the reviews that have a record, latest first.
    ///
    /// # Errors
    ///
    /// Fails if the journal cannot be used.
    pub async fn review_ids(&self) -> Result<Vec<String>, ReviewStoreError> {
        let ids = self.finished_ids(REVIEWS_LISTED_MAX).await?;
        Ok(ids.into_iter().map(|id| id.to_string()).collect())
    }

    /// Loads a review by its id, or the beginning or end of it; `last` is the latest one.
    ///
    /// # Errors
    ///
    /// Fails if there is no such review, the id is ambiguous, or the record cannot be read or was
    /// changed.
    pub async fn load_review(&self, name: &str) -> Result<ReviewRecord, ReviewStoreError> {
        let id = self.find_id(name).await?;
        let (path, digest) = self.recorded_file(&id, RECORD, |result| result.record_digest).await?;
        let review: ReviewRecord = read_recorded(path.clone(), digest).await?;
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
    pub async fn load_change(&self, name: &str) -> Result<ReviewChange, ReviewStoreError> {
        let id = self.find_id(name).await?;
        let (path, digest) = self.recorded_file(&id, CHANGE, |result| result.change_digest).await?;
        read_recorded(path, digest).await
    }

    /// The path of a file of a review, with the digest that its last event holds.
    async fn recorded_file(
        &self,
        id: &RunId,
        file: &str,
        digest_of: fn(ReviewResult) -> String,
    ) -> Result<(Utf8PathBuf, String), ReviewStoreError> {
        let path = self.folder(id).path().join(file);
        let last = self.journal.last_kind_event(id).await?;
        match last.as_ref().and_then(|event| ReviewEvent::from_payload(&event.payload)) {
            Some(ReviewEvent::ReviewFinished(result)) => Ok((path, digest_of(result))),
            _ => {
                let problem = "the journal has no digest of it".to_owned();
                Err(ReviewStoreError::Unreadable { path, problem })
            }
        }
    }

    fn folder(&self, id: &RunId) -> RunFolder {
        RunFolder::new(&self.runs, id)
    }

    /// The ids of the latest completed runs, damaged ones last. A completed review has a record.
    async fn finished_ids(&self, runs_max: usize) -> Result<Vec<RunId>, ReviewStoreError> {
        let limit = u32::try_from(runs_max).unwrap_or(u32::MAX);
        let page = self.journal.runs(&Filter { limit, ..self.finished_filter() }).await?;
        Ok(ids_of_page(page.items, page.damaged).collect())
    }

    fn finished_filter(&self) -> Filter {
        Filter {
            statuses: vec![RunStatus::Completed],
            kind: Some(RunKind::Review.as_str().to_owned()),
            workspace: Some(self.workspace.to_string()),
            ..Filter::default()
        }
    }

    async fn find_id(&self, name: &str) -> Result<RunId, ReviewStoreError> {
        if name == "last" {
            let workspace = self.workspace.clone();
            let last = self.finished_ids(1).await?.into_iter().next();
            return last.ok_or(ReviewStoreError::None { workspace });
        }
        // One query finds a whole id, or a part of one that no review of another workspace has.
        match self.journal.find_run_of_kind(RunKind::Review, name).await {
            Ok(run) if self.is_finished_here(&run) && is_part_of_id(&run.id, name) => Ok(run.id),
            Ok(_) | Err(JournalError::NotFound { .. } | JournalError::Ambiguous { .. }) => {
                self.search_id(name).await
            }
            Err(error) => Err(error.into()),
        }
    }

    fn is_finished_here(&self, run: &Run) -> bool {
        run.status == RunStatus::Completed && run.workspace == self.workspace.as_str()
    }

    /// Searches all reviews of this workspace for a part of an id.
    async fn search_id(&self, part: &str) -> Result<RunId, ReviewStoreError> {
        let mut filter = self.finished_filter();
        let mut fitting = Vec::new();
        let mut is_empty = true;
        loop {
            let page = self.journal.runs(&filter).await?;
            is_empty &= page.items.is_empty() && page.damaged.is_empty();
            let ids = ids_of_page(page.items, page.damaged);
            fitting.extend(ids.filter(|id| is_part_of_id(id, part)));
            filter.before = page.next;
            if filter.before.is_none() || fitting.len() > 1 {
                break;
            }
        }
        let (id, workspace) = (part.to_owned(), self.workspace.clone());
        match fitting.len() {
            0 if is_empty => Err(ReviewStoreError::None { workspace }),
            0 => Err(ReviewStoreError::NotFound { id, workspace }),
            1 => Ok(fitting.remove(0)),
            _ => Err(ReviewStoreError::Ambiguous { id }),
        }
    }
}

fn ids_of_page(runs: Vec<Run>, damaged: Vec<DamagedRow>) -> impl Iterator<Item = RunId> {
    let damaged = damaged.into_iter().map(|row| RunId::known(row.id));
    runs.into_iter().map(|run| run.id).chain(damaged)
}

fn is_part_of_id(id: &RunId, part: &str) -> bool {
    id.as_str().starts_with(part) || id.as_str().ends_with(part)
}

/// Returns an id that sorts by time: the timestamp of a UUID v7 and four random digits.
pub fn new_review_id() -> String {
    let id = uuid::Uuid::now_v7().simple().to_string();
    format!("{}-{}", &id[..12], &id[28..])
}

/// Reads a file on the blocking thread pool, and checks its digest.
async fn read_recorded<T: serde::de::DeserializeOwned + Send + 'static>(
    path: Utf8PathBuf,
    digest: String,
) -> Result<T, ReviewStoreError> {
    let wrong =
        |path: &Utf8Path, problem| ReviewStoreError::Unreadable { path: path.to_owned(), problem };
    let place = path.clone();
    let read = move || {
        let text = fs::read_text(&path, REVIEW_RECORD_BYTES_MAX)
            .map_err(|error| wrong(&path, error.to_string()))?;
        if ContentDigest::hash_bytes(text.as_bytes()).to_string() != digest {
            return Err(ReviewStoreError::Changed { path });
        }
        serde_json::from_str(&text).map_err(|error| wrong(&path, error.to_string()))
    };
    let read = tokio::task::spawn_blocking(read).await;
    read.unwrap_or_else(|error| Err(wrong(&place, error.to_string())))
}
