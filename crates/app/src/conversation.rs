//! The conversation driver: runs agents in conversations that are recorded in the journal and can be
//! resumed, even after the process was killed during a run.
//!
//! A conversation is a run of the kind `conversation`, and each prompt is a step of it. Its messages
//! are recorded before every call of the model and at the end of a turn, and everything the agent
//! does as it happens. So a crash loses only the answer in progress; the next turn gets what happened
//! since the messages were recorded from the events.

use repertoire_text::layout::one_line;
use std::sync::{Arc, Mutex, PoisonError};

use camino::Utf8PathBuf;
use repertoire_agent::conversation::Conversation;
use repertoire_agent::event::EventSink;
use repertoire_agent::system::{AgentRunError, RunPreview, SystemBuildError, SystemBuilder};
use repertoire_agent::{AgentEvent, EventKind, RunOptions, RunReport, System};
use repertoire_model::TokenUsage;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_util::task::TaskTracker;

use crate::limits::FIRST_WORDS_CHARS_MAX;
use crate::usage::SkillUse;

mod checkpoint;
mod event;
mod recorder;
mod recovery;
mod state;
mod store;

use checkpoint::CheckpointSenders;
pub use event::{
    CONVERSATION_RECORD_VERSION, ConversationEvent, ConversationRequest, SavedConversation,
};
use recorder::{ConversationRecorder, TurnEnd, TurnRecord, write_turn};
pub use recovery::InterruptedRun;
pub use state::{ConversationFoldError, ConversationMetadata, ConversationState, UnfinishedTurn};
pub use store::{ConversationListEntry, ConversationStore, ConversationStoreError};

/// Runs agents in stored conversations.
#[derive(Clone, Debug)]
pub struct ConversationDriver {
    system: System,
    store: ConversationStore,
    checkpoints: CheckpointSenders,
    /// The tasks that write to the journal.
    writers: TaskTracker,
    /// The project in which conversations are started.
    folder: Option<Utf8PathBuf>,
}

/// An open conversation. No other process can open it until this is dropped.
#[derive(Debug)]
pub struct OpenConversation {
    driver: ConversationDriver,
    head: ConversationMetadata,
    usage: TokenUsage,
    /// Shared with the task that writes, which ends after this if a turn is dropped.
    recorder: Arc<tokio::sync::Mutex<ConversationRecorder>>,
    /// The state of the last run, if its process ended before the run did.
    interrupted: Option<InterruptedRun>,
    /// The skills used so far, with counts.
    used: SkillUse,
}

impl ConversationDriver {
    /// Creates a driver. It builds the system itself, because it adds a middleware that records the
    /// conversation.
    ///
    /// # Errors
    ///
    /// If the system cannot be built.
    pub fn new(builder: SystemBuilder, store: ConversationStore) -> Result<Self, SystemBuildError> {
        let checkpoints = CheckpointSenders::default();
        let system = builder.middleware(Arc::new(checkpoints.clone())).build()?;
        let writers = TaskTracker::new();
        Ok(ConversationDriver { system, store, checkpoints, writers, folder: None })
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

    /// Resumes a conversation by its id, the start or end of its id, or `last`.
    ///
    /// # Errors
    ///
    /// If there is none, another process has it open, or it cannot be read.
    pub async fn resume_conversation(
        &self,
        wanted: &str,
    ) -> Result<OpenConversation, ConversationStoreError> {
        let (recorder, head, state) = match &self.folder {
            Some(folder) if wanted == "last" => {
                let id = self.store.last_in(folder).await?;
                self.store.open_locked(id.as_str()).await?
            }
            _ => self.store.open_locked(wanted).await?,
        };
        let mut conversation = state.conversation;
        let recover = |turn| recovery::recover_run(&self.system, turn, &mut conversation);
        let interrupted = state.unfinished.map(recover);
        self.system.restore_conversation(conversation);
        Ok(OpenConversation {
            driver: self.clone(),
            head,
            usage: state.usage,
            recorder: Arc::new(tokio::sync::Mutex::new(recorder)),
            interrupted,
            used: SkillUse::default(),
        })
    }

    /// Starts a conversation. Nothing is recorded before the first prompt.
    pub fn begin_conversation(&self, agent: &str) -> OpenConversation {
        let now_ms = self.system.clock().now_ms();
        let head = ConversationMetadata {
            id: uuid::Uuid::now_v7().to_string(),
            agent: agent.to_owned(),
            folder: self.folder.as_ref().map(ToString::to_string).unwrap_or_default(),
            begun_ms: now_ms,
            updated_ms: now_ms,
            ..ConversationMetadata::default()
        };
        let recorder = ConversationRecorder::for_new(self.store.clone(), &head);
        OpenConversation {
            driver: self.clone(),
            head,
            usage: TokenUsage::default(),
            recorder: Arc::new(tokio::sync::Mutex::new(recorder)),
            interrupted: None,
            used: SkillUse::default(),
        }
    }

    /// Sends one prompt, in the conversation named in `options` or in a new one.
    ///
    /// # Errors
    ///
    /// If the conversation cannot be opened, or cannot be saved
    /// ([`ConversationStoreError::NotSaved`], with the report). A failed run is not an error but a
    /// report.
    pub async fn send_prompt(
        &self,
        agent: &str,
        prompt: &str,
        options: RunOptions,
    ) -> Result<RunReport, ConversationStoreError> {
        let mut talk = match &options.conversation {
            Some(wanted) => self.resume_conversation(wanted).await?,
            None => self.begin_conversation(agent),
        };
        talk.send_prompt(agent, prompt, options).await
    }

    /// Waits until everything is stored that turns have handed over, including turns that were
    /// dropped before their end. Call it before the runtime ends.
    pub async fn finish_writing(&self) {
        self.writers.close();
        self.writers.wait().await;
        self.writers.reopen();
    }
}

impl OpenConversation {
    pub fn id(&self) -> &str {
        &self.head.id
    }

    /// The metadata of the conversation.
    pub fn head(&self) -> &ConversationMetadata {
        &self.head
    }

    /// The tokens used by all turns.
    pub fn usage(&self) -> TokenUsage {
        self.usage
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
    /// [`ConversationStoreError::NotSaved`] with the report if the conversation cannot be saved.
    pub async fn send_prompt(
        &mut self,
        agent: &str,
        prompt: &str,
        options: RunOptions,
    ) -> Result<RunReport, ConversationStoreError> {
        let system = self.driver.system.clone();
        let mut recorder = self.recorder.clone().lock_owned().await;
        self.begin_turn(prompt);
        recorder.begin_turn(&self.head.first, prompt);
        let (sender, receiver) = unbounded_channel();
        let writer = self.driver.writers.spawn(write_turn(recorder, receiver));
        if options.backend.is_some() {
            // An external agent calls its model itself, so there is no checkpoint during its run.
            let _ = sender.send(TurnRecord::Checkpoint(self.current_conversation().await));
        }
        let used = Arc::new(Mutex::new(SkillUse::default()));
        let options = RunOptions {
            conversation: Some(self.id().to_owned()),
            on_event: Some(recording_sink(sender.clone(), used.clone(), options.on_event.clone())),
            ..options
        };
        let watch = self.driver.checkpoints.watch_conversation(self.id(), sender.clone());
        let task = match self.interrupted.take().and_then(|before| before.resume_note()) {
            None => prompt.to_owned(),
            Some(before) => format!("{before}\n\n{prompt}"),
        };
        let report = system.run(agent, task, options).await;
        drop(watch);
        let end = TurnEnd::from_report(&report, self.current_conversation().await);
        let _ = sender.send(TurnRecord::Ended(Box::new(end)));
        self.end_turn(&report);
        let used = std::mem::take(&mut *used.lock().unwrap_or_else(PoisonError::into_inner));
        for (skill, uses) in used.skills {
            *self.used.skills.entry(skill).or_default() += uses;
        }
        let written = writer.await.unwrap_or(Err(ConversationStoreError::WriterCrashed));
        match written {
            Ok(()) => Ok(report),
            Err(error) => {
                let (report, source) = (Box::new(report), Box::new(error));
                Err(ConversationStoreError::NotSaved { report, source })
            }
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

    /// The conversation in memory; empty before the first turn.
    async fn current_conversation(&self) -> Conversation {
        let known = self.driver.system.conversation(self.id()).await;
        known.unwrap_or_else(|| Conversation::new(self.id()))
    }

    fn begin_turn(&mut self, prompt: &str) {
        let head = &mut self.head;
        if head.first.is_empty() {
            // Piped input beside a task is material, not part of the title.
            let task = prompt.split("<stdin>").next().filter(|task| !task.trim().is_empty());
            let words = one_line(task.unwrap_or(prompt));
            head.first = words.chars().take(FIRST_WORDS_CHARS_MAX).collect();
        }
        head.turns = head.turns.saturating_add(1);
        head.updated_ms = self.driver.system.clock().now_ms();
        head.at_work = true;
    }

    fn end_turn(&mut self, report: &RunReport) {
        let head = &mut self.head;
        head.at_work = false;
        head.updated_ms = self.driver.system.clock().now_ms();
        head.cost_usd += report.cost_usd.unwrap_or_default();
        head.cost_is_partial |= report.cost_usd.is_none();
        state::add_usage(&mut self.usage, report.usage);
    }
}

/// Returns a sink that hands events to the recorder and forwards them.
fn recording_sink(
    records: UnboundedSender<TurnRecord>,
    used: Arc<Mutex<SkillUse>>,
    own: Option<EventSink>,
) -> EventSink {
    Arc::new(move |event: &AgentEvent| {
        // Don't record the chunks of an answer: the complete answer follows.
        if !matches!(event.kind, EventKind::Text { .. } | EventKind::Thinking { .. }) {
            used.lock().unwrap_or_else(PoisonError::into_inner).count_event(event);
            // The receiver is gone after the end of the turn.
            let _ = records.send(TurnRecord::Agent(event.clone()));
        }
        if let Some(own) = &own {
            own(event);
        }
    })
}

/// The example of the documentation, so that it is compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/reference/conversations.md")]
struct DocumentedConversations;
