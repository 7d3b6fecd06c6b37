//! Workflow runs on disk.

use std::fs::{File, OpenOptions, TryLockError};
use std::thread::sleep;
use std::time::Duration;

use crate::check::{CheckedWorkflow, ThawError};
use crate::engine::{self, EngineInput, EngineRefusal};
use crate::state::{STATE_VERSION, WorkflowRunId, WorkflowRunState};
use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{self, ReadError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::scripts::{self, ScriptRun};
use crate::limits::{
    NEW_RUN_AGE_MAX, RUN_FILE_BYTES_MAX, RUN_LOCK_POLL, RUN_LOCK_WAIT, WORKFLOW_FILE_BYTES_MAX,
};
use repertoire_text::fs::make_private_dir;

const STATE: &str = "state.json";
const WORKFLOW: &str = "workflow.json";
const LOCK: &str = "lock";
/// The prefix of folders of runs that are being created. It is not valid in the id of a run.
const NEW_PREFIX: &str = ".new-";

/// The folder in which workflow runs are stored.
#[derive(Clone, Debug)]
pub struct WorkflowRunStore {
    dir: Utf8PathBuf,
}

/// A stored workflow run.
#[derive(Clone, Debug)]
pub struct StoredWorkflowRun {
    pub head: WorkflowRunMetadata,
    /// The workflow the run was started with.
    pub workflow: CheckedWorkflow,
    pub state: WorkflowRunState,
}

/// The metadata of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRunMetadata {
    /// The time it was started, in milliseconds since 1970.
    pub begun_ms: u64,
    /// The time of the last change, in milliseconds since 1970.
    pub updated_ms: u64,
    /// The project it was started in.
    pub folder: Utf8PathBuf,
    /// The run whose sub-agent started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// True if the skill was trusted when the run was started, so that its commands may be run.
    #[serde(default)]
    pub trusted: bool,
}

/// The parameters of a run to start, besides its workflow.
#[derive(Clone, Debug, Default)]
pub struct NewWorkflowRun {
    /// A unique id.
    pub id: String,
    pub head: WorkflowRunMetadata,
    /// Values of parameters, as they were typed.
    pub parameters: BTreeMap<String, String>,
}

/// An entry in the list of runs.
#[derive(Debug)]
pub enum WorkflowRunListEntry {
    /// A workflow run.
    Run {
        head: WorkflowRunMetadata,
        state: Box<WorkflowRunState>,
    },
    Script(Box<ScriptRun>),
    /// A folder that cannot be read.
    Broken {
        id: String,
        error: WorkflowRunError,
    },
}

/// The reason a stored run cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorkflowRunError {
    /// No run matches.
    #[error("there is no run `{wanted}`")]
    NotFound { wanted: String },
    /// The start of an id matches more than one run.
    #[error("`{wanted}` may be any of {}", matches.join(", "))]
    Ambiguous { wanted: String, matches: Vec<String> },
    /// The id is already in use.
    #[error("there is a run `{id}` already")]
    Exists { id: String },
    /// Another process held the lock for too long.
    #[error("run {id} is being changed by another process")]
    InUse { id: String },
    /// A file does not have the expected format.
    #[error("{path} is damaged, and is left as it is: {message}")]
    Damaged { path: Utf8PathBuf, message: String },
    /// A file was written by a later version.
    #[error(
        "{path} was written by a later version of this program (shape {version}, and {STATE_VERSION} is the latest known here)"
    )]
    Newer { path: Utf8PathBuf, version: u64 },
    /// The workflow was frozen by another version of this program.
    #[error("{path} was written by another version of this program: {message}")]
    OtherVersion { path: Utf8PathBuf, message: String },
    /// The state has become too large to be stored.
    #[error(
        "the run would have {bytes} bytes, and {RUN_FILE_BYTES_MAX} is the limit; nothing was changed"
    )]
    TooLarge {
        /// The size it would have.
        bytes: usize,
    },
    /// The engine refused the input.
    #[error(transparent)]
    Refused(#[from] EngineRefusal),
    /// A file operation failed.
    #[error("{path}: {source}")]
    Io { path: Utf8PathBuf, source: std::io::Error },
}

/// The file as it is written.
#[derive(Serialize)]
struct WrittenRunFile<'a> {
    version: u32,
    head: &'a WorkflowRunMetadata,
    state: &'a WorkflowRunState,
}

/// The file as it is read.
#[derive(Deserialize)]
struct StoredRunFile {
    head: WorkflowRunMetadata,
    state: WorkflowRunState,
}

/// Only the version, to check whether the rest can be read.
#[derive(Deserialize)]
pub(super) struct RunFileVersion {
    pub(super) version: u64,
}

impl WorkflowRunStore {
    /// Creates a store in a folder, which is created when the first run is started.
    pub fn new(dir: impl Into<Utf8PathBuf>) -> Self {
        WorkflowRunStore { dir: dir.into() }
    }

    /// Starts a run. Its folder is created atomically.
    pub fn start(
        &self,
        workflow: &CheckedWorkflow,
        begin: &NewWorkflowRun,
    ) -> Result<StoredWorkflowRun, WorkflowRunError> {
        let state = engine::start(workflow, WorkflowRunId::new(&begin.id), &begin.parameters)?;
        let run = StoredWorkflowRun { head: begin.head.clone(), workflow: workflow.clone(), state };
        self.create_run_folder(&begin.id, |made| {
            write_file(&made.join(WORKFLOW), &workflow.freeze())?;
            write_state(made, &run.head, &run.state)
        })?;
        Ok(run)
    }

    /// Creates the folder of a run under a temporary name, and renames it when it is complete.
    pub(super) fn create_run_folder(
        &self,
        id: &str,
        fill: impl FnOnce(&Utf8Path) -> Result<(), WorkflowRunError>,
    ) -> Result<(), WorkflowRunError> {
        let place = self.run_folder(id);
        if place.exists() {
            return Err(WorkflowRunError::Exists { id: id.to_owned() });
        }
        // Another process may start a run with the same id at the same time, so each fills its own
        // folder.
        let made = self.dir.join(format!("{NEW_PREFIX}{}-{id}", std::process::id()));
        // The output of agents is confidential, as conversations are.
        make_private_dir(&made)
            .map_err(|source| WorkflowRunError::Io { path: made.clone(), source })?;
        self.sweep_new_folders(&made);
        let placed = fill(&made).and_then(|()| {
            std::fs::rename(&made, &place).map_err(|source| {
                if place.exists() {
                    WorkflowRunError::Exists { id: id.to_owned() }
                } else {
                    WorkflowRunError::Io { path: place.clone(), source }
                }
            })
        });
        if placed.is_err() {
            // Remove the incomplete run. If that fails, it does no harm.
            let _ = std::fs::remove_dir_all(&made);
        }
        placed
    }

    /// Removes folders left by processes that were killed while they started a run. Their age is
    /// measured by the modification time of our own new folder, because the clock of a network file
    /// system may differ.
    fn sweep_new_folders(&self, own: &Utf8Path) {
        let changed = |path: &Utf8Path| path.metadata().and_then(|data| data.modified()).ok();
        let (Some(now), Ok(entries)) = (changed(own), fs::list_entries(&self.dir)) else { return };
        let names = entries.filter_map(|entry| entry.ok()?.name.into_string().ok());
        for name in names.filter(|name| name.starts_with(NEW_PREFIX)) {
            let path = self.dir.join(name);
            let age = changed(&path).and_then(|then| now.duration_since(then).ok());
            if age.is_some_and(|age| age > NEW_RUN_AGE_MAX) {
                let _ = std::fs::remove_dir_all(&path);
            }
        }
    }

    /// Returns the folder of a run.
    pub(super) fn run_folder(&self, id: &str) -> Utf8PathBuf {
        self.dir.join(id)
    }

    /// Reads a run, by its id or the start of it.
    pub fn open_run(&self, wanted: &str) -> Result<StoredWorkflowRun, WorkflowRunError> {
        let place = self.dir.join(self.resolve_id(wanted)?);
        read_run(&place)
    }

    /// Applies an input to a run, and stores the new state before it returns.
    pub fn apply_input(
        &self,
        wanted: &str,
        input: &EngineInput,
        now_ms: u64,
    ) -> Result<StoredWorkflowRun, WorkflowRunError> {
        let id = self.resolve_id(wanted)?;
        let place = self.dir.join(&id);
        let _held = acquire_lock(&place, &id)?;
        let run = read_run(&place)?;
        let state = engine::advance_run(&run.workflow, &run.state, input)?;
        if state == run.state {
            return Ok(run);
        }
        let head = WorkflowRunMetadata { updated_ms: now_ms, ..run.head };
        sweep_temporary_files(&place);
        write_state(&place, &head, &state)?;
        Ok(StoredWorkflowRun { head, state, ..run })
    }

    /// Lists all runs, the latest first.
    pub fn list_runs(&self) -> Result<Vec<WorkflowRunListEntry>, WorkflowRunError> {
        let mut all: Vec<WorkflowRunListEntry> = self
            .list_ids()?
            .into_iter()
            .filter_map(|id| match read_listed(&self.run_folder(&id)) {
                Ok(listed) => Some(listed),
                // The run was removed in the meantime.
                Err(WorkflowRunError::NotFound { .. }) => None,
                Err(error) => Some(WorkflowRunListEntry::Broken { id, error }),
            })
            .collect();
        all.sort_by_key(|listed| match listed {
            WorkflowRunListEntry::Run { head, state } => {
                (0, std::cmp::Reverse(head.updated_ms), state.run.to_string())
            }
            WorkflowRunListEntry::Script(run) => {
                (0, std::cmp::Reverse(run.head.updated_ms), run.run.to_string())
            }
            WorkflowRunListEntry::Broken { id, .. } => (1, std::cmp::Reverse(0), id.clone()),
        });
        Ok(all)
    }

    /// Deletes a run.
    pub fn remove_run(&self, wanted: &str) -> Result<String, WorkflowRunError> {
        let id = self.resolve_id(wanted)?;
        let place = self.dir.join(&id);
        let _held = acquire_lock(&place, &id)?;
        std::fs::remove_dir_all(&place)
            .map_err(|source| WorkflowRunError::Io { path: place, source })?;
        Ok(id)
    }

    /// Returns the full id for an id or the start of exactly one.
    pub fn resolve_id(&self, wanted: &str) -> Result<String, WorkflowRunError> {
        let not_found = || WorkflowRunError::NotFound { wanted: wanted.to_owned() };
        if !engine::is_id(wanted) {
            return Err(not_found());
        }
        if self.dir.join(wanted).is_dir() {
            return Ok(wanted.to_owned());
        }
        let mut matches: Vec<String> =
            self.list_ids()?.into_iter().filter(|name| name.starts_with(wanted)).collect();
        match matches.len() {
            0 => Err(not_found()),
            1 => Ok(matches.remove(0)),
            _ => Err(WorkflowRunError::Ambiguous { wanted: wanted.to_owned(), matches }),
        }
    }

    fn list_ids(&self) -> Result<Vec<String>, WorkflowRunError> {
        let entries = match fs::list_entries(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(WorkflowRunError::Io { path: self.dir.clone(), source }),
        };
        let mut names: Vec<String> = entries
            .filter_map(Result::ok)
            .filter_map(|entry| entry.name.into_string().ok())
            .filter(|name| engine::is_id(name))
            .collect();
        names.sort();
        Ok(names)
    }
}

fn read_listed(place: &Utf8Path) -> Result<WorkflowRunListEntry, WorkflowRunError> {
    if place.join(scripts::SCRIPT).is_file() {
        return scripts::read_run(place).map(|run| WorkflowRunListEntry::Script(Box::new(run)));
    }
    let (head, state) = read_state(place)?;
    Ok(WorkflowRunListEntry::Run { head, state: Box::new(state) })
}

fn read_run(place: &Utf8Path) -> Result<StoredWorkflowRun, WorkflowRunError> {
    let (head, state) = read_state(place)?;
    let path = place.join(WORKFLOW);
    let frozen = fs::read_text(&path, WORKFLOW_FILE_BYTES_MAX).map_err(|error| {
        WorkflowRunError::Damaged { path: path.clone(), message: error.to_string() }
    })?;
    let workflow = CheckedWorkflow::thaw(frozen.as_bytes(), &state.fingerprint).map_err(
        |error| match error {
            ThawError::Changed => {
                let message = "it is not the workflow that the run was started with".to_owned();
                WorkflowRunError::Damaged { path, message }
            }
            ThawError::OtherVersion(message) => WorkflowRunError::OtherVersion { path, message },
        },
    )?;
    Ok(StoredWorkflowRun { head, workflow, state })
}

fn read_state(
    place: &Utf8Path,
) -> Result<(WorkflowRunMetadata, WorkflowRunState), WorkflowRunError> {
    let path = place.join(STATE);
    let damaged = |message: String| WorkflowRunError::Damaged { path: path.clone(), message };
    let text = match fs::read_text(&path, RUN_FILE_BYTES_MAX) {
        Ok(text) => text,
        Err(ReadError::NotFound) if !place.exists() => {
            let wanted = place.file_name().unwrap_or_default().to_owned();
            return Err(WorkflowRunError::NotFound { wanted });
        }
        // A folder without a state was never acknowledged, or has lost its state. Neither may
        // continue.
        Err(error) => return Err(damaged(error.to_string())),
    };
    let version: RunFileVersion =
        serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    if version.version > u64::from(STATE_VERSION) {
        return Err(WorkflowRunError::Newer { path, version: version.version });
    }
    let read: StoredRunFile =
        serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    Ok((read.head, read.state))
}

fn write_state(
    place: &Utf8Path,
    head: &WorkflowRunMetadata,
    state: &WorkflowRunState,
) -> Result<(), WorkflowRunError> {
    let written = WrittenRunFile { version: STATE_VERSION, head, state };
    let bytes = serde_json::to_vec(&written)
        .map_err(|error| WorkflowRunError::Io { path: place.join(STATE), source: error.into() })?;
    // Don't acknowledge a state that is too large to be read again.
    if bytes.len() as u64 > RUN_FILE_BYTES_MAX {
        return Err(WorkflowRunError::TooLarge { bytes: bytes.len() });
    }
    write_file(&place.join(STATE), &bytes)
}

pub(super) fn write_file(path: &Utf8Path, bytes: &[u8]) -> Result<(), WorkflowRunError> {
    fs::write_atomic(path, bytes)
        .map_err(|source| WorkflowRunError::Io { path: path.to_owned(), source })
}

/// Removes temporary files of processes that were killed while they wrote. Only the holder of the
/// lock writes, so none is in use.
fn sweep_temporary_files(place: &Utf8Path) {
    let Ok(entries) = fs::list_entries(place) else { return };
    let names = entries.filter_map(|entry| entry.ok()?.name.into_string().ok());
    for name in names.filter(|name| fs::is_temporary_name(name)) {
        // If this fails, the file does no harm.
        let _ = std::fs::remove_file(place.join(name));
    }
}

/// Acquires the lock of a run. The lock file is never replaced; a lock on the state file would be
/// lost with every atomic write.
pub(super) fn acquire_lock(place: &Utf8Path, id: &str) -> Result<File, WorkflowRunError> {
    let path = place.join(LOCK);
    let io = |source| WorkflowRunError::Io { path: path.clone(), source };
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(
        |source| match source.kind() {
            std::io::ErrorKind::NotFound => WorkflowRunError::NotFound { wanted: id.to_owned() },
            _ => io(source),
        },
    )?;
    let mut waited = Duration::ZERO;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if waited < RUN_LOCK_WAIT => {
                sleep(RUN_LOCK_POLL);
                waited += RUN_LOCK_POLL;
            }
            Err(TryLockError::WouldBlock) => {
                return Err(WorkflowRunError::InUse { id: id.to_owned() });
            }
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
    }
}
