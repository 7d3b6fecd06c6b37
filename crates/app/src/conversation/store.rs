//! Conversations in the journal: runs of the kind `conversation`, each with a folder for the lock of
//! the process that has it open.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_agent::RunReport;
use repertoire_agent::conversation::Conversation;
use repertoire_journal::{
    DamagedRow, Filter, Journal, JournalClock, JournalError, Run, RunFolder, RunFolderError, RunId,
    RunKind, RunRemovalError, Target,
};
use tokio::sync::OnceCell;

use super::recorder::ConversationRecorder;
use super::state::{ConversationFoldError, ConversationMetadata, ConversationState};
use crate::limits::ID_END_CHARS_MIN;

/// The number of conversations that an ambiguous id is explained with.
const AMBIGUOUS_SHOWN_MAX: usize = 5;

/// The conversations of a journal. Cheap to clone.
#[derive(Clone)]
pub struct ConversationStore {
    inner: Arc<ConversationStoreInner>,
}

struct ConversationStoreInner {
    journal: JournalSource,
    /// The folder of all runs.
    runs_dir: Utf8PathBuf,
}

/// A journal that the caller has opened, or one that is opened when it is first needed.
enum JournalSource {
    Opened(Journal),
    Later { target: Target, clock: JournalClock, opened: OnceCell<Journal> },
}

impl fmt::Debug for ConversationStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConversationStore").field("runs_dir", &self.inner.runs_dir).finish()
    }
}

/// The reason a stored conversation cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConversationStoreError {
    /// No conversation matches.
    #[error("there is no conversation `{wanted}`")]
    NotFound { wanted: String },
    /// No conversation was started in this project.
    #[error("no conversation was begun in {folder}")]
    NoneIn { folder: Utf8PathBuf },
    /// The part of an id matches more than one conversation.
    #[error("`{wanted}` may be any of {}", matches.join(", "))]
    Ambiguous { wanted: String, matches: Vec<String> },
    /// Another process has the conversation open.
    #[error("conversation {id} is in use by another process{}", pid.map(|pid| format!(" ({pid})")).unwrap_or_default())]
    InUse {
        id: String,
        /// The process id, if known.
        pid: Option<u32>,
    },
    /// A process that the lock does not reach, for instance on another host, has continued the
    /// conversation while it was open here.
    #[error("another process has continued conversation {id} in the meantime")]
    Continued { id: String },
    /// The events are not those of a conversation.
    #[error("conversation {id} is damaged, and is left as it is: {message}")]
    Damaged { id: String, message: String },
    /// The events were written by a later version.
    #[error("conversation {id} was written by a later version of this program ({message})")]
    Newer { id: String, message: String },
    /// The folder of the conversation cannot be used.
    #[error("{path}: {source}")]
    Io { path: Utf8PathBuf, source: std::io::Error },
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The task that writes to the journal panicked, or the runtime ended.
    #[error("the task that records the conversation has crashed")]
    WriterCrashed,
    /// The run has ended, but the conversation could not be saved. The next prompt saves it as well.
    #[error("the conversation could not be saved: {source}")]
    NotSaved {
        /// The report of the run, with its answer.
        report: Box<RunReport>,
        source: Box<ConversationStoreError>,
    },
}

impl ConversationStoreError {
    pub(super) fn from_folder(error: RunFolderError) -> Self {
        match error {
            RunFolderError::InUse { id, pid } => {
                ConversationStoreError::InUse { id: id.to_string(), pid }
            }
            RunFolderError::Io { path, source } => ConversationStoreError::Io { path, source },
        }
    }

    pub(super) fn from_append(error: JournalError) -> Self {
        match error {
            JournalError::Conflict { run, .. } => {
                ConversationStoreError::Continued { id: run.to_string() }
            }
            error => ConversationStoreError::Journal(error),
        }
    }

    fn from_removal(error: RunRemovalError) -> Self {
        match error {
            RunRemovalError::Folder(error) => ConversationStoreError::from_folder(error),
            RunRemovalError::Journal(error) => ConversationStoreError::from_append(error),
        }
    }

    fn from_fold(id: &RunId, error: ConversationFoldError) -> Self {
        let id = id.to_string();
        match error {
            ConversationFoldError::Damaged(message) => {
                ConversationStoreError::Damaged { id, message }
            }
            ConversationFoldError::Newer(message) => ConversationStoreError::Newer { id, message },
        }
    }
}

/// An entry in the list of conversations.
#[derive(Debug)]
pub enum ConversationListEntry {
    /// A readable conversation.
    Conversation(ConversationMetadata),
    /// An unreadable conversation.
    Broken { id: String, error: ConversationStoreError },
}

impl ConversationStore {
    /// Creates a store in a journal. `runs_dir` is the folder of the folders of all runs; it need
    /// not exist yet.
    pub fn new(journal: Journal, runs_dir: impl Into<Utf8PathBuf>) -> Self {
        let journal = JournalSource::Opened(journal);
        let inner = ConversationStoreInner { journal, runs_dir: runs_dir.into() };
        ConversationStore { inner: Arc::new(inner) }
    }

    /// Like [`ConversationStore::new`], with a journal that is opened when it is first needed. Until
    /// something is stored, a file that is missing stays missing.
    pub fn open_later(
        target: Target,
        clock: JournalClock,
        runs_dir: impl Into<Utf8PathBuf>,
    ) -> Self {
        let journal = JournalSource::Later { target, clock, opened: OnceCell::new() };
        let inner = ConversationStoreInner { journal, runs_dir: runs_dir.into() };
        ConversationStore { inner: Arc::new(inner) }
    }

    /// The folder of a conversation.
    pub fn folder(&self, id: &RunId) -> RunFolder {
        RunFolder::new(&self.inner.runs_dir, id)
    }

    /// Returns the journal, opened or created if necessary.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    pub async fn journal(&self) -> Result<&Journal, ConversationStoreError> {
        match &self.inner.journal {
            JournalSource::Opened(journal) => Ok(journal),
            JournalSource::Later { target, clock, opened } => {
                let open = || Journal::open(target, clock.clone());
                Ok(opened.get_or_try_init(open).await?)
            }
        }
    }

    /// Returns the journal, or `None` if nothing was ever stored. Readers don't create a journal.
    async fn existing_journal(&self) -> Result<Option<&Journal>, ConversationStoreError> {
        match &self.inner.journal {
            JournalSource::Later { target: Target::File(path), .. } if !path.exists() => Ok(None),
            _ => self.journal().await.map(Some),
        }
    }

    /// Lists all conversations, the latest first.
    ///
    /// # Errors
    ///
    /// If the journal cannot be read. An unreadable conversation is an entry of the list.
    pub async fn list(&self) -> Result<Vec<ConversationListEntry>, ConversationStoreError> {
        let Some(journal) = self.existing_journal().await? else { return Ok(Vec::new()) };
        let kind = Some(RunKind::Conversation.as_str().to_owned());
        let mut filter = Filter { kind, ..Filter::default() };
        let mut entries = BTreeMap::new();
        loop {
            let page = journal.runs(&filter).await?;
            entries.extend(page.items.iter().map(|run| (run.id.to_string(), list_entry(run))));
            entries
                .extend(page.damaged.into_iter().map(|row| (row.id.clone(), damaged_entry(row))));
            match page.next {
                Some(next) => filter.before = Some(next),
                None => break,
            }
        }
        let latest = self.latest_ids(None).await?;
        Ok(latest.iter().filter_map(|id| entries.remove(id.as_str())).collect())
    }

    /// Returns the ids of all conversations, or of those of a project, the latest first.
    async fn latest_ids(
        &self,
        folder: Option<&Utf8Path>,
    ) -> Result<Vec<RunId>, ConversationStoreError> {
        match self.existing_journal().await? {
            Some(journal) => {
                let folder = folder.map(Utf8Path::as_str);
                Ok(journal.list_latest_ids(RunKind::Conversation, folder).await?)
            }
            None => Ok(Vec::new()),
        }
    }

    /// Returns the full id for an id, the start or end of one, or `last`.
    ///
    /// # Errors
    ///
    /// If no conversation matches, or more than one does.
    pub async fn resolve_id(&self, wanted: &str) -> Result<RunId, ConversationStoreError> {
        let not_found = || ConversationStoreError::NotFound { wanted: wanted.to_owned() };
        let Some(journal) = self.existing_journal().await? else { return Err(not_found()) };
        // The whole id is the usual case, and the first of those that start with it.
        let exact =
            journal.ids_with_prefix(RunKind::Conversation, wanted).await?.into_iter().next();
        if let Some(id) = exact.filter(|id| id.as_str() == wanted) {
            return Ok(id);
        }
        let mut ids = self.latest_ids(None).await?.into_iter();
        if wanted == "last" {
            return ids.next().ok_or_else(not_found);
        }
        let mut matches: Vec<RunId> = ids.filter(|id| is_part_of_id(id.as_str(), wanted)).collect();
        match matches.len() {
            1 if !wanted.is_empty() => Ok(matches.remove(0)),
            0 | 1 => Err(not_found()),
            _ => {
                matches.truncate(AMBIGUOUS_SHOWN_MAX);
                let matches = matches.iter().map(ToString::to_string).collect();
                Err(ConversationStoreError::Ambiguous { wanted: wanted.to_owned(), matches })
            }
        }
    }

    /// Returns the id of the latest conversation of a project.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub async fn last_in(&self, folder: &Utf8Path) -> Result<RunId, ConversationStoreError> {
        let latest = self.latest_ids(Some(folder)).await?.into_iter().next();
        latest.ok_or_else(|| ConversationStoreError::NoneIn { folder: folder.to_owned() })
    }

    /// Reads a conversation without locking it.
    ///
    /// # Errors
    ///
    /// If there is none, or it cannot be read.
    pub async fn read_conversation(
        &self,
        wanted: &str,
    ) -> Result<(ConversationMetadata, Conversation), ConversationStoreError> {
        let id = self.resolve_id(wanted).await?;
        let (head, state) = self.load_state(&id).await?;
        Ok((head, state.conversation))
    }

    /// Folds the events of a conversation.
    async fn load_state(
        &self,
        id: &RunId,
    ) -> Result<(ConversationMetadata, ConversationState), ConversationStoreError> {
        let journal = self.journal().await?;
        let mut state = ConversationState::default();
        let mut seq = 0;
        loop {
            let events = journal.events(id, seq, 0).await?;
            let Some(last) = events.last() else { break };
            seq = last.seq;
            for event in events {
                state.apply(event).map_err(|error| ConversationStoreError::from_fold(id, error))?;
            }
        }
        let not_found = || ConversationStoreError::NotFound { wanted: id.to_string() };
        let run = state.run().ok_or_else(not_found)?;
        let head = ConversationMetadata::from_run(run)
            .map_err(|error| ConversationStoreError::from_fold(id, error))?;
        Ok((head, state))
    }

    /// Opens and locks an existing conversation.
    pub(super) async fn open_locked(
        &self,
        wanted: &str,
    ) -> Result<
        (ConversationRecorder, ConversationMetadata, ConversationState),
        ConversationStoreError,
    > {
        let id = self.resolve_id(wanted).await?;
        let lock = self.folder(&id).acquire_lock().map_err(ConversationStoreError::from_folder)?;
        let (head, state) = self.load_state(&id).await?;
        let recorder = ConversationRecorder::for_stored(self.clone(), lock, &head, &state);
        Ok((recorder, head, state))
    }

    /// Deletes a conversation that is not open, with its folder.
    ///
    /// # Errors
    ///
    /// If there is none, a process has it open, or an operation fails.
    pub async fn remove(&self, wanted: &str) -> Result<RunId, ConversationStoreError> {
        let id = self.resolve_id(wanted).await?;
        let journal = self.journal().await?;
        if let Some(run) = journal.run(&id).await? {
            let removed = journal.remove_run(&self.inner.runs_dir, &run).await;
            removed.map_err(ConversationStoreError::from_removal)?;
        }
        Ok(id)
    }
}

/// Ids are shown by their start here and by their end in the list of all runs.
fn is_part_of_id(id: &str, part: &str) -> bool {
    id.starts_with(part) || (part.len() >= ID_END_CHARS_MIN && id.ends_with(part))
}

fn list_entry(run: &Run) -> ConversationListEntry {
    match ConversationMetadata::from_run(run) {
        Ok(head) => ConversationListEntry::Conversation(head),
        Err(error) => {
            let error = ConversationStoreError::from_fold(&run.id, error);
            ConversationListEntry::Broken { id: run.id.to_string(), error }
        }
    }
}

fn damaged_entry(row: DamagedRow) -> ConversationListEntry {
    let DamagedRow { id, what } = row;
    let error = ConversationStoreError::Damaged { id: id.clone(), message: what };
    ConversationListEntry::Broken { id, error }
}
