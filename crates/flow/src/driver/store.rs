//! Workflow runs in the journal.

use camino::Utf8PathBuf;
use repertoire_journal::limits::PAGE_MAX;
use repertoire_journal::{
    DamagedRow, Event, Filter, Journal, JournalError, NewRun, Payload, Run, RunFolder,
    RunFolderError, RunId, RunKind, RunLock, RunRemovalError,
};
use serde_json::json;
use std::cmp::Reverse;
use std::time::Duration;

use super::events::{ReachedState, WorkflowRunEvent, WorkflowRunPhase, WorkflowRunRequest};
use super::fold;
use super::json_output::WorkflowRunListRow;
use super::{AnyWorkflowRun, ScriptRun, StoredWorkflowRun, WorkflowRunMetadata};
use crate::check::CheckedWorkflow;
use crate::engine::{self, EngineAction, EngineInput, EngineRefusal};
use crate::limits::{RUN_LOCK_POLL, RUN_LOCK_WAIT};
use crate::state::{STATE_VERSION, WorkflowRunId};

/// The workflow runs of a journal. Cheap to clone.
#[derive(Clone)]
pub struct WorkflowRunStore {
    journal: Journal,
    /// The folder with a folder for each run, for the locks of scripts.
    folders: Utf8PathBuf,
}

/// The parameters of a run to start, besides its workflow.
#[derive(Clone, Debug, Default)]
pub struct NewWorkflowRun {
    /// A unique id.
    pub id: String,
    /// The project it is started in.
    pub folder: Utf8PathBuf,
    pub request: WorkflowRunRequest,
}

/// An entry in the list of runs.
#[derive(Debug)]
pub enum WorkflowRunListEntry {
    Run(Box<WorkflowRunListRow>),
    /// A run that cannot be read.
    Broken {
        id: String,
        error: WorkflowRunError,
    },
}

/// An event to record, and the phase of the run after it.
pub(super) struct RecordedEvent {
    pub(super) payload: Payload,
    pub(super) phase: WorkflowRunPhase,
}

impl RecordedEvent {
    /// The event, and the change of the status that follows from it.
    fn into_payloads(self, before: &WorkflowRunPhase) -> Vec<Payload> {
        let change = self.phase.change_event(before);
        [self.payload].into_iter().chain(change).collect()
    }
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
    /// Other processes changed the run, or held its lock, for too long.
    #[error("run {id} is being changed by another process")]
    InUse { id: String },
    /// The run is of a script, which has no gates and asks no questions.
    #[error("run {id} is of a script, which has no gates and asks no questions")]
    OfScript { id: String },
    /// The run is of a workflow file.
    #[error("run {id} is not of a script")]
    NotOfScript { id: String },
    /// An event does not have the expected format.
    #[error("run {id} is damaged, and is left as it is: {message}")]
    Damaged { id: String, message: String },
    /// The run was recorded by a later version.
    #[error(
        "run {id} was written by a later version of this program (shape {version}, and {STATE_VERSION} is the latest known here)"
    )]
    Newer { id: String, version: u32 },
    /// The run was recorded by another version of this program.
    #[error("run {id} was written by another version of this program: {message}")]
    OtherVersion { id: String, message: String },
    /// The state or an event has become too large to be stored.
    #[error("the run would have {bytes} bytes, and {limit} is the limit; nothing was changed")]
    TooLarge {
        /// The size it would have.
        bytes: usize,
        limit: usize,
    },
    /// The engine refused the input.
    #[error(transparent)]
    Refused(#[from] EngineRefusal),
    /// The folder of the run cannot be used.
    #[error("{path}: {source}")]
    Io { path: Utf8PathBuf, source: std::io::Error },
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(JournalError),
}

impl From<JournalError> for WorkflowRunError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::NotFound { text, .. } => WorkflowRunError::NotFound { wanted: text },
            JournalError::Exists { run } => WorkflowRunError::Exists { id: run.to_string() },
            JournalError::TooLarge { size, limit, .. } => {
                WorkflowRunError::TooLarge { bytes: size, limit }
            }
            JournalError::Altered { run: Some(run), what } => {
                WorkflowRunError::Damaged { id: run.to_string(), message: what }
            }
            error => WorkflowRunError::Journal(error),
        }
    }
}

impl From<RunFolderError> for WorkflowRunError {
    fn from(error: RunFolderError) -> Self {
        match error {
            RunFolderError::InUse { id, .. } => WorkflowRunError::InUse { id: id.to_string() },
            RunFolderError::Io { path, source } => WorkflowRunError::Io { path, source },
        }
    }
}

impl WorkflowRunStore {
    /// The runs of a journal. `folders` is the folder with a folder for each run, which is created
    /// when it is needed.
    pub fn new(journal: Journal, folders: impl Into<Utf8PathBuf>) -> Self {
        WorkflowRunStore { journal, folders: folders.into() }
    }

    /// Starts a run.
    ///
    /// # Errors
    ///
    /// [`WorkflowRunError`]; no run is stored then.
    pub async fn start(
        &self,
        workflow: &CheckedWorkflow,
        begin: &NewWorkflowRun,
    ) -> Result<StoredWorkflowRun, WorkflowRunError> {
        let id = WorkflowRunId::new(&begin.id);
        let state = engine::start(workflow, id, &begin.request.parameters)?;
        let event = WorkflowRunEvent::Start {
            version: STATE_VERSION,
            fingerprint: workflow.fingerprint().clone(),
            workflow: String::from_utf8(workflow.freeze()).expect("JSON is text"),
        };
        let recorded = RecordedEvent {
            payload: event.into_payload(&ReachedState::from_state(&state)?),
            phase: WorkflowRunPhase::from_state(workflow, &state),
        };
        let run = self.create_run(begin, &state.workflow, recorded).await?;
        Ok(StoredWorkflowRun {
            head: run_metadata(&run, &begin.request),
            workflow: workflow.clone(),
            state,
            seq: run.seq,
        })
    }

    /// Refuses an id that is in use. A run may still be created with it afterwards, which
    /// [`WorkflowRunStore::create_run`] notices.
    pub(super) async fn expect_free_id(&self, id: &str) -> Result<(), WorkflowRunError> {
        match self.journal.run(&RunId::known(id)).await? {
            Some(_) => Err(WorkflowRunError::Exists { id: id.to_owned() }),
            None => Ok(()),
        }
    }

    /// Records a new run with its first event.
    pub(super) async fn create_run(
        &self,
        begin: &NewWorkflowRun,
        name: &str,
        event: RecordedEvent,
    ) -> Result<Run, WorkflowRunError> {
        let new = NewRun {
            id: RunId::known(&begin.id),
            kind: RunKind::Workflow.as_str().to_owned(),
            name: name.to_owned(),
            workspace: begin.folder.to_string(),
            labels: Default::default(),
            priority: 0,
            limits: Default::default(),
            request: json!(begin.request),
        };
        let payloads = event.into_payloads(&WorkflowRunPhase::Active);
        Ok(self.journal.create_attended(new, payloads).await?)
    }

    /// Appends an event to a run that was in the phase `before`. Returns `None` if another process
    /// has changed the run since it was read.
    pub(super) async fn append_event(
        &self,
        id: &WorkflowRunId,
        after_seq: u64,
        before: &WorkflowRunPhase,
        event: RecordedEvent,
    ) -> Result<Option<Run>, WorkflowRunError> {
        let payloads = event.into_payloads(before);
        let id = RunId::known(id.as_str());
        match self.journal.append_attended(&id, after_seq, payloads).await {
            Ok(run) => Ok(Some(run)),
            Err(JournalError::Conflict { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a run, by its id or the start of it.
    ///
    /// # Errors
    ///
    /// If there is no such run, or it cannot be read.
    pub async fn open_any(&self, wanted: &str) -> Result<AnyWorkflowRun, WorkflowRunError> {
        let not_found = || WorkflowRunError::NotFound { wanted: wanted.to_owned() };
        if !engine::is_id(wanted) {
            return Err(not_found());
        }
        // The whole id is the usual case.
        if let Some(run) = self.read_run(wanted).await? {
            return Ok(run);
        }
        let id = self.resolve_id(wanted).await?;
        self.read_run(&id).await?.ok_or_else(not_found)
    }

    /// Reads a run of a workflow file, by its id or the start of it.
    ///
    /// # Errors
    ///
    /// As [`WorkflowRunStore::open_any`].
    pub async fn open_run(&self, wanted: &str) -> Result<StoredWorkflowRun, WorkflowRunError> {
        match self.open_any(wanted).await? {
            AnyWorkflowRun::Workflow(run) => Ok(*run),
            AnyWorkflowRun::Script(run) => {
                Err(WorkflowRunError::OfScript { id: run.run.to_string() })
            }
        }
    }

    /// Reads a run of a script, by its id or the start of it.
    ///
    /// # Errors
    ///
    /// As [`WorkflowRunStore::open_any`].
    pub async fn open_script(&self, wanted: &str) -> Result<ScriptRun, WorkflowRunError> {
        match self.open_any(wanted).await? {
            AnyWorkflowRun::Script(run) => Ok(*run),
            AnyWorkflowRun::Workflow(run) => {
                Err(WorkflowRunError::NotOfScript { id: run.state.run.to_string() })
            }
        }
    }

    /// Applies an input to a run, and records it before it returns.
    ///
    /// # Errors
    ///
    /// [`WorkflowRunError`]; the run is unchanged then.
    pub async fn apply_input(
        &self,
        wanted: &str,
        input: &EngineInput,
    ) -> Result<StoredWorkflowRun, WorkflowRunError> {
        let run = self.open_run(wanted).await?;
        self.continue_run(run, input).await
    }

    /// Like [`WorkflowRunStore::apply_input`], for a run that was just read. If another process has
    /// changed it since, the input is applied to the run as it is then. An input without a turn is
    /// about the turn that was read, so it never lands on a later step; only records of a review do
    /// not depend on the turn.
    ///
    /// # Errors
    ///
    /// [`WorkflowRunError`]; the run is unchanged then.
    pub async fn continue_run(
        &self,
        mut run: StoredWorkflowRun,
        input: &EngineInput,
    ) -> Result<StoredWorkflowRun, WorkflowRunError> {
        let begun = tokio::time::Instant::now();
        let mut input = input.clone();
        loop {
            let state = engine::advance_run(&run.workflow, &run.state, &input)?;
            if state == run.state {
                return Ok(run);
            }
            let event = WorkflowRunEvent::Input { input: input.clone() };
            let recorded = RecordedEvent {
                payload: event.into_payload(&ReachedState::from_state(&state)?),
                phase: WorkflowRunPhase::from_state(&run.workflow, &state),
            };
            let before = WorkflowRunPhase::from_state(&run.workflow, &run.state);
            let appended = self.append_event(&state.run, run.seq, &before, recorded).await?;
            if let Some(row) = appended {
                run.head.updated_ms = row.updated_ms;
                return Ok(StoredWorkflowRun { state, seq: row.seq, ..run });
            }
            if begun.elapsed() >= RUN_LOCK_WAIT {
                return Err(WorkflowRunError::InUse { id: run.state.run.to_string() });
            }
            if !matches!(input.action, EngineAction::Record { .. }) {
                input.at = input.at.or(Some(run.state.turn));
            }
            run = self.open_run(run.state.run.as_str()).await?;
        }
    }

    /// Lists all runs, the latest first.
    ///
    /// # Errors
    ///
    /// If the journal cannot be read.
    pub async fn list_runs(&self) -> Result<Vec<WorkflowRunListEntry>, WorkflowRunError> {
        let kind = Some(RunKind::Workflow.as_str().to_owned());
        let mut filter = Filter { kind, ..Filter::default() };
        let mut all = Vec::new();
        loop {
            let page = self.journal.runs(&filter).await?;
            for run in page.items {
                match self.journal.last_kind_event(&run.id).await {
                    Ok(last) => all.push(list_entry(run, last)),
                    Err(error) => {
                        let what = error.run_problem().ok_or(error)?;
                        all.push(damaged_entry(DamagedRow { id: run.id.to_string(), what }));
                    }
                }
            }
            all.extend(page.damaged.into_iter().map(damaged_entry));
            filter.before = page.next;
            if filter.before.is_none() {
                break;
            }
        }
        all.sort_by_key(|listed| match listed {
            WorkflowRunListEntry::Run(row) => (0, Reverse(row.updated_ms), row.run.clone()),
            WorkflowRunListEntry::Broken { id, .. } => (1, Reverse(0), id.clone()),
        });
        Ok(all)
    }

    /// Deletes a run with its folder.
    ///
    /// # Errors
    ///
    /// If there is no such run, or a script of it is running.
    pub async fn remove_run(&self, wanted: &str) -> Result<String, WorkflowRunError> {
        let id = self.resolve_id(wanted).await?;
        let begun = tokio::time::Instant::now();
        loop {
            let Some(run) = self.journal.run(&RunId::known(&id)).await? else { return Ok(id) };
            match self.journal.remove_run(&self.folders, &run).await {
                Ok(()) => return Ok(id),
                // Another process is carrying out a step.
                Err(
                    RunRemovalError::Folder(RunFolderError::InUse { .. })
                    | RunRemovalError::Journal(JournalError::Conflict { .. }),
                ) if begun.elapsed() < RUN_LOCK_WAIT => tokio::time::sleep(RUN_LOCK_POLL).await,
                Err(RunRemovalError::Folder(error)) => return Err(error.into()),
                Err(RunRemovalError::Journal(error)) => return Err(error.into()),
            }
        }
    }

    /// Returns the full id for an id or the start of exactly one.
    ///
    /// # Errors
    ///
    /// [`WorkflowRunError::NotFound`] or [`WorkflowRunError::Ambiguous`].
    pub async fn resolve_id(&self, wanted: &str) -> Result<String, WorkflowRunError> {
        let not_found = || WorkflowRunError::NotFound { wanted: wanted.to_owned() };
        if !engine::is_id(wanted) {
            return Err(not_found());
        }
        let ids = self.journal.ids_with_prefix(RunKind::Workflow, wanted).await?;
        let mut matches: Vec<String> = ids.iter().map(ToString::to_string).collect();
        match matches.len() {
            0 => Err(not_found()),
            1 => Ok(matches.remove(0)),
            _ if matches.iter().any(|id| id == wanted) => Ok(wanted.to_owned()),
            _ => Err(WorkflowRunError::Ambiguous { wanted: wanted.to_owned(), matches }),
        }
    }

    /// Locks a run for this process, and waits for another process that holds the lock. Only
    /// programs that must not run twice at the same time need it.
    pub(super) async fn lock_run(&self, id: &str) -> Result<RunLock, WorkflowRunError> {
        let folder = RunFolder::new(&self.folders, &RunId::known(id));
        let mut waited = Duration::ZERO;
        loop {
            match folder.try_acquire_lock() {
                Ok(lock) => return Ok(lock),
                Err(RunFolderError::InUse { .. }) if waited < RUN_LOCK_WAIT => {
                    tokio::time::sleep(RUN_LOCK_POLL).await;
                    waited += RUN_LOCK_POLL;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads the run with this id; `None` if there is none, or it is of another kind.
    async fn read_run(&self, id: &str) -> Result<Option<AnyWorkflowRun>, WorkflowRunError> {
        let run = RunId::known(id);
        // The row is read only to be verified: nothing can be added to a run whose row is damaged.
        if self.journal.run(&run).await?.is_none() {
            return Ok(None);
        }
        let mut events = self.journal.events(&run, 0, PAGE_MAX).await?;
        while events.len() % PAGE_MAX as usize == 0
            && let Some(last) = events.last()
        {
            let more = self.journal.events(&run, last.seq, PAGE_MAX).await?;
            if more.is_empty() {
                break;
            }
            events.extend(more);
        }
        match events.first().map(|event| &event.payload) {
            None => Ok(None),
            Some(Payload::RunCreated { kind, .. }) if *kind != RunKind::Workflow.as_str() => {
                Ok(None)
            }
            Some(_) => fold::fold_run(id, events).map(Some),
        }
    }
}

/// Returns the metadata of a run that was just created.
pub(super) fn run_metadata(run: &Run, request: &WorkflowRunRequest) -> WorkflowRunMetadata {
    WorkflowRunMetadata {
        begun_ms: run.created_ms,
        updated_ms: run.updated_ms,
        folder: Utf8PathBuf::from(&run.workspace),
        parent: request.parent.clone(),
        trusted: request.trusted,
    }
}

fn list_entry(run: Run, last: Option<Event>) -> WorkflowRunListEntry {
    let id = run.id.to_string();
    match fold::read_reached_state(&id, last) {
        Ok(reached) => {
            WorkflowRunListEntry::Run(Box::new(WorkflowRunListRow::from_journal(run, reached)))
        }
        Err(error) => WorkflowRunListEntry::Broken { id, error },
    }
}

fn damaged_entry(row: DamagedRow) -> WorkflowRunListEntry {
    let DamagedRow { id, what } = row;
    let error = WorkflowRunError::Damaged { id: id.clone(), message: what };
    WorkflowRunListEntry::Broken { id, error }
}
