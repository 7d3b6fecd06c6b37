//! The conversation driver: runs agents in conversations that are stored on disk and can be
//! resumed, even after the process was killed during a run.
//!
//! A conversation is written before every call of the model and at the end of a run. Events are
//! appended to a log as they come. So a crash loses only the answer in progress; the next run gets
//! what happened since the last write from the log.

use repertoire_text::layout::one_line;
use std::sync::{Arc, Mutex, PoisonError};

use camino::Utf8PathBuf;
use repertoire_agent::conversation::Conversation;
use repertoire_agent::event::EventSink;
use repertoire_agent::system::{AgentRunError, RunPreview, SystemBuildError, SystemBuilder};
use repertoire_agent::{AgentEvent, EventKind, RunOptions, RunReport, System};

use crate::limits::FIRST_WORDS_CHARS_MAX;
use crate::usage::SkillUse;

mod checkpoint;
mod recovery;
mod store;

use checkpoint::CheckpointWriters;
pub use recovery::InterruptedRun;
pub use store::{
    ConversationListEntry, ConversationLog, ConversationMetadata, ConversationStore,
    ConversationStoreError, FILE_VERSION, LockedConversation, UnfinishedRun,
};

/// Runs agents in stored conversations.
#[derive(Clone, Debug)]
pub struct ConversationDriver {
    system: System,
    store: ConversationStore,
    checkpoints: CheckpointWriters,
    /// The project in which conversations are started.
    folder: Option<Utf8PathBuf>,
}

/// An open conversation. No other process can open it until this is dropped.
#[derive(Debug)]
pub struct OpenConversation {
    driver: ConversationDriver,
    held: LockedConversation,
    /// The state of the last run, if its process ended before the run did.
    interrupted: Option<InterruptedRun>,
    /// The skills used so far, with counts.
    used: SkillUse,
}

impl ConversationDriver {
    /// Creates a driver. It builds the system itself, because it adds a middleware that writes
    /// checkpoints.
    ///
    /// # Errors
    ///
    /// If the system cannot be built.
    pub fn new(builder: SystemBuilder, store: ConversationStore) -> Result<Self, SystemBuildError> {
        let checkpoints = CheckpointWriters::default();
        let system = builder.middleware(Arc::new(checkpoints.clone())).build()?;
        Ok(ConversationDriver { system, store, checkpoints, folder: None })
    }

    /// Sets the project: conversations are started in it, and `last` is the latest of them.
    #[must_use]
    pub fn in_folder(self, folder: impl Into<Utf8PathBuf>) -> Self {
        ConversationDriver { folder: Some(folder.into()), ..self }
    }

    pub fn system(&self) -> &System {
        &self.system
    }

    pub fn store(&self) -> &ConversationStore {
        &self.store
    }

    /// Resumes a conversation by its id, the start of its id, or `last`.
    ///
    /// # Errors
    ///
    /// If there is none, another process has it open, or it cannot be read.
    pub fn resume_conversation(
        &self,
        wanted: &str,
    ) -> Result<OpenConversation, ConversationStoreError> {
        let (held, mut conversation) = match &self.folder {
            Some(folder) if wanted == "last" => {
                self.store.open_locked(&self.store.last_in(folder)?)?
            }
            _ => self.store.open_locked(wanted)?,
        };
        let interrupted = recovery::recover_run(&self.system, &held, &mut conversation);
        self.system.restore_conversation(conversation);
        Ok(OpenConversation { driver: self.clone(), held, interrupted, used: SkillUse::default() })
    }

    /// Starts a conversation.
    ///
    /// # Errors
    ///
    /// If its folder cannot be created.
    pub fn begin_conversation(
        &self,
        agent: &str,
    ) -> Result<OpenConversation, ConversationStoreError> {
        let id = uuid::Uuid::now_v7().to_string();
        let mut held = self.store.begin_conversation(&id, agent, self.system.clock().now_ms())?;
        held.head.folder = self.folder.as_ref().map(ToString::to_string).unwrap_or_default();
        let used = SkillUse::default();
        Ok(OpenConversation { driver: self.clone(), held, interrupted: None, used })
    }

    /// Sends one prompt, in the conversation named in `options` or in a new one.
    ///
    /// # Errors
    ///
    /// If the conversation cannot be opened or saved. A failed run is not an error but a report.
    pub async fn send_prompt(
        &self,
        agent: &str,
        prompt: &str,
        options: RunOptions,
    ) -> Result<RunReport, ConversationStoreError> {
        let mut talk = match &options.conversation {
            Some(wanted) => self.resume_conversation(wanted)?,
            None => self.begin_conversation(agent)?,
        };
        talk.send_prompt(agent, prompt, options).await
    }
}

impl OpenConversation {
    pub fn id(&self) -> &str {
        &self.held.head.id
    }

    /// The metadata of the conversation.
    pub fn head(&self) -> &ConversationMetadata {
        &self.held.head
    }

    /// The state of the last run, if its process ended before the run did.
    pub fn interrupted(&self) -> Option<&InterruptedRun> {
        self.interrupted.as_ref()
    }

    /// The skills that were loaded since the conversation was opened.
    pub fn used_skills(&self) -> &SkillUse {
        &self.used
    }

    /// Sends a prompt and waits for the end of the run. The conversation is saved, whatever the
    /// outcome of the run.
    ///
    /// # Errors
    ///
    /// If the conversation cannot be saved.
    pub async fn send_prompt(
        &mut self,
        agent: &str,
        prompt: &str,
        options: RunOptions,
    ) -> Result<RunReport, ConversationStoreError> {
        let system = self.driver.system.clone();
        let log = self.held.open_log()?;
        self.begin_run(prompt, log.initial_bytes());
        if options.backend.is_some() {
            // An external agent calls its model itself, so no checkpoint is written during its run.
            let state = system.conversation(self.id()).await;
            self.held.save(&state.unwrap_or_else(|| Conversation::new(self.id())))?;
        }
        let kept =
            Arc::new(Mutex::new(RunRecorder { log, used: SkillUse::default(), failed: None }));
        let options = RunOptions {
            conversation: Some(self.id().to_owned()),
            on_event: Some(recording_sink(kept.clone(), options.on_event.clone())),
            ..options
        };
        let watch = self.driver.checkpoints.watch_conversation(self.held.dir(), &self.held.head);
        let task = match self.interrupted.take().and_then(|before| before.resume_note()) {
            None => prompt.to_owned(),
            Some(before) => format!("{before}\n\n{prompt}"),
        };
        let report = system.run(agent, task, options).await;
        let checkpointed = watch.finish();
        let state = system.conversation(self.id()).await;
        let state = state.unwrap_or_else(|| Conversation::new(self.id()));
        self.end_run(&report);
        self.held.save(&state)?;
        checkpointed?;
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        for (skill, uses) in std::mem::take(&mut kept.used.skills) {
            *self.used.skills.entry(skill).or_default() += uses;
        }
        match kept.failed.take() {
            Some(source) => Err(ConversationStoreError::Io {
                path: self.held.dir().join("events.jsonl"),
                source,
            }),
            None => Ok(report),
        }
    }

    /// Returns the first request that [`OpenConversation::send_prompt`] would send.
    ///
    /// # Errors
    ///
    /// If the run could not start.
    pub async fn preview_prompt(
        &self,
        agent: &str,
        prompt: &str,
        options: RunOptions,
    ) -> Result<RunPreview, AgentRunError> {
        let options = RunOptions { conversation: Some(self.id().to_owned()), ..options };
        let before = self.interrupted.as_ref().and_then(InterruptedRun::resume_note);
        let task = match before {
            None => prompt.to_owned(),
            Some(before) => format!("{before}\n\n{prompt}"),
        };
        self.driver.system.preview(agent, task, options).await
    }

    fn begin_run(&mut self, prompt: &str, log_bytes: u64) {
        let head = &mut self.held.head;
        if head.first.is_empty() {
            // Piped input beside a task is material, not part of the title.
            let task = prompt.split("<stdin>").next().filter(|task| !task.trim().is_empty());
            let words = one_line(task.unwrap_or(prompt));
            head.first = words.chars().take(FIRST_WORDS_CHARS_MAX).collect();
        }
        head.turns = head.turns.saturating_add(1);
        head.updated_ms = self.driver.system.clock().now_ms();
        head.at_work = Some(UnfinishedRun { prompt: prompt.to_owned(), log_bytes });
    }

    fn end_run(&mut self, report: &RunReport) {
        let head = &mut self.held.head;
        head.at_work = None;
        head.updated_ms = self.driver.system.clock().now_ms();
        head.cost_usd += report.cost_usd.unwrap_or_default();
        head.cost_is_partial |= report.cost_usd.is_none();
        head.usage.input_tokens += report.usage.input_tokens;
        head.usage.output_tokens += report.usage.output_tokens;
        head.usage.cache_read_tokens += report.usage.cache_read_tokens;
        head.usage.cache_write_tokens += report.usage.cache_write_tokens;
    }
}

/// The data collected during a run.
struct RunRecorder {
    log: ConversationLog,
    used: SkillUse,
    /// The first error of the log; the run continues, and the caller gets the error at the end.
    failed: Option<std::io::Error>,
}

/// Returns a sink that logs events and forwards them.
fn recording_sink(kept: Arc<Mutex<RunRecorder>>, own: Option<EventSink>) -> EventSink {
    Arc::new(move |event: &AgentEvent| {
        // Don't log the chunks of an answer: the complete answer follows.
        if !matches!(event.kind, EventKind::Text { .. } | EventKind::Thinking { .. }) {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.used.count_event(event);
            if let Err(error) = kept.log.append_event(event) {
                kept.failed.get_or_insert(error);
            }
        }
        if let Some(own) = &own {
            own(event);
        }
    })
}
