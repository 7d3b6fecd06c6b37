//! The conversation driver: runs agents in conversations that are kept on disk and can be taken up again, also after the
//! process was killed in the middle of a run.
//!
//! A conversation is written when the model is about to be asked, on every turn, and when a run has ended. Events
//! are added to a log as they come. So a crash loses the answer that was on its way; what had been done since the model
//! was last asked is told to the next run from the log.

use std::sync::{Arc, Mutex, PoisonError};

use camino::Utf8PathBuf;
use repertoire_agent::conversation::Conversation;
use repertoire_agent::event::Sink;
use repertoire_agent::system::{BuildError, Builder, Preview, RunError};
use repertoire_agent::{Event, EventKind, Report, RunOptions, System};

use crate::limits::FIRST_WORDS_CHARS_MAX;
use crate::usage::SkillUse;

mod checkpoint;
mod recovery;
mod store;

use checkpoint::Checkpoints;
pub use recovery::Interrupted;
pub use store::{AtWork, FILE_VERSION, Head, Held, Listed, Log, Store, StoreError};

/// Runs agents in conversations that are kept.
#[derive(Clone, Debug)]
pub struct Driver {
    system: System,
    store: Store,
    checkpoints: Checkpoints,
    /// The project that conversations are begun in.
    folder: Option<Utf8PathBuf>,
}

/// A conversation in progress. Nobody else can take it up until this is dropped.
#[derive(Debug)]
pub struct Talk {
    driver: Driver,
    held: Held,
    /// What the last run was at when its process ended.
    interrupted: Option<Interrupted>,
    /// Skills that were used so far, by count.
    used: SkillUse,
}

impl Driver {
    /// A driver on a system that is put together here, so that it can keep what happens on every turn.
    ///
    /// # Errors
    ///
    /// When the system cannot be put together.
    pub fn new(builder: Builder, store: Store) -> Result<Self, BuildError> {
        let checkpoints = Checkpoints::default();
        let system = builder.middleware(Arc::new(checkpoints.clone())).build()?;
        Ok(Driver { system, store, checkpoints, folder: None })
    }

    /// For a project: conversations are begun in it, and `last` is the last of them.
    #[must_use]
    pub fn in_folder(self, folder: impl Into<Utf8PathBuf>) -> Self {
        Driver { folder: Some(folder.into()), ..self }
    }

    /// The system.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// Where conversations are kept.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Takes up a conversation by its id, the start of it, or `last`.
    ///
    /// # Errors
    ///
    /// When there is none, somebody else has it, or it cannot be read.
    pub fn resume(&self, wanted: &str) -> Result<Talk, StoreError> {
        let (held, mut conversation) = match &self.folder {
            Some(folder) if wanted == "last" => self.store.open(&self.store.last_in(folder)?)?,
            _ => self.store.open(wanted)?,
        };
        let interrupted = recovery::recover(&self.system, &held, &mut conversation);
        self.system.restore(conversation);
        Ok(Talk { driver: self.clone(), held, interrupted, used: SkillUse::default() })
    }

    /// Begins a conversation.
    ///
    /// # Errors
    ///
    /// When its folder cannot be made.
    pub fn begin(&self, agent: &str) -> Result<Talk, StoreError> {
        let id = uuid::Uuid::now_v7().to_string();
        let mut held = self.store.begin(&id, agent, self.system.clock().now_ms())?;
        held.head.folder = self.folder.as_ref().map(ToString::to_string).unwrap_or_default();
        let used = SkillUse::default();
        Ok(Talk { driver: self.clone(), held, interrupted: None, used })
    }

    /// Says one thing, in the conversation that `options` name or in a new one.
    ///
    /// # Errors
    ///
    /// When the conversation cannot be taken up or kept. A run that fails is a report.
    pub async fn send(
        &self,
        agent: &str,
        prompt: &str,
        options: RunOptions,
    ) -> Result<Report, StoreError> {
        let mut talk = match &options.conversation {
            Some(wanted) => self.resume(wanted)?,
            None => self.begin(agent)?,
        };
        talk.send(agent, prompt, options).await
    }
}

impl Talk {
    /// The id.
    pub fn id(&self) -> &str {
        &self.held.head.id
    }

    /// What is known of the conversation.
    pub fn head(&self) -> &Head {
        &self.held.head
    }

    /// What the last run was at when its process ended, if it did not end by itself.
    pub fn interrupted(&self) -> Option<&Interrupted> {
        self.interrupted.as_ref()
    }

    /// Skills that were put into the conversation since it was taken up.
    pub fn used(&self) -> &SkillUse {
        &self.used
    }

    /// Says one thing and waits for the end of the run. The conversation is kept, however the run ends.
    ///
    /// # Errors
    ///
    /// When it cannot be kept.
    pub async fn send(
        &mut self,
        agent: &str,
        prompt: &str,
        options: RunOptions,
    ) -> Result<Report, StoreError> {
        let system = self.driver.system.clone();
        let log = self.held.log()?;
        self.begin_run(prompt, log.bytes());
        if options.backend.is_some() {
            // Somebody else's agent asks its model itself, so nothing is written while it is at work.
            let state = system.conversation(self.id()).await;
            self.held.save(&state.unwrap_or_else(|| Conversation::new(self.id())))?;
        }
        let kept = Arc::new(Mutex::new(Kept { log, used: SkillUse::default(), failed: None }));
        let options = RunOptions {
            conversation: Some(self.id().to_owned()),
            on_event: Some(listening(kept.clone(), options.on_event.clone())),
            ..options
        };
        let watch = self.driver.checkpoints.watch(self.held.dir(), &self.held.head);
        let task = match self.interrupted.take().and_then(|before| before.told()) {
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
            Some(source) => {
                Err(StoreError::Io { path: self.held.dir().join("events.jsonl"), source })
            }
            None => Ok(report),
        }
    }

    /// What [`Talk::send`] would send first.
    ///
    /// # Errors
    ///
    /// When the run could not begin.
    pub async fn preview(
        &self,
        agent: &str,
        prompt: &str,
        options: RunOptions,
    ) -> Result<Preview, RunError> {
        let options = RunOptions { conversation: Some(self.id().to_owned()), ..options };
        let before = self.interrupted.as_ref().and_then(Interrupted::told);
        let task = match before {
            None => prompt.to_owned(),
            Some(before) => format!("{before}\n\n{prompt}"),
        };
        self.driver.system.preview(agent, task, options).await
    }

    fn begin_run(&mut self, prompt: &str, log_bytes: u64) {
        let head = &mut self.held.head;
        if head.first.is_empty() {
            // What was piped in beside a task is material, and no title.
            let task = prompt.split("<stdin>").next().filter(|task| !task.trim().is_empty());
            let words = task.unwrap_or(prompt).split_whitespace().collect::<Vec<_>>().join(" ");
            head.first = words.chars().take(FIRST_WORDS_CHARS_MAX).collect();
        }
        head.turns = head.turns.saturating_add(1);
        head.updated_ms = self.driver.system.clock().now_ms();
        head.at_work = Some(AtWork { prompt: prompt.to_owned(), log_bytes });
    }

    fn end_run(&mut self, report: &Report) {
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

/// What is kept of a run while it goes on.
struct Kept {
    log: Log,
    used: SkillUse,
    /// The first line that could not be added; the run goes on, and its caller is told in the end.
    failed: Option<std::io::Error>,
}

/// Keeps events and hands them on.
fn listening(kept: Arc<Mutex<Kept>>, own: Option<Sink>) -> Sink {
    Arc::new(move |event: &Event| {
        // Pieces of an answer are not kept: the whole of it follows.
        if !matches!(event.kind, EventKind::Text { .. } | EventKind::Thinking { .. }) {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.used.note(event);
            if let Err(error) = kept.log.add(event) {
                kept.failed.get_or_insert(error);
            }
        }
        if let Some(own) = &own {
            own(event);
        }
    })
}
