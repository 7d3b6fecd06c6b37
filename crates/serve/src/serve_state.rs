//! The state shared by all servers: the skills, kept up to date with the disk, the journal, and the
//! data of runs.

use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use futures_util::future::BoxFuture;
use repertoire_agent::form::AnswerForms;
use repertoire_agent::system::{RunPreview, SelectorFactory};
use repertoire_flow::driver::operations::{WorkflowOperations, WorkplaceFactory};
use repertoire_flow::driver::{WorkflowRunError, WorkflowRunStore};
use repertoire_git::repo::GitClient;
use repertoire_journal::{Journal, JournalError, RunId};
use repertoire_review::store::ReviewStore;
use repertoire_sandbox::confinement::LazySandbox;
use repertoire_select::{SelectionSettings, SkillSelector};
use repertoire_skill::catalog::Catalog;
use repertoire_skill::library::watch::{LibraryWatchHandle, WatchOptions};
use repertoire_skill::library::{LibraryReload, SkillLibrary};
use tokio::sync::{OnceCell, broadcast};

use crate::http::events::EventHub;
use crate::http::metrics::DaemonMetrics;

/// The capacity of the change channel; receivers that lag behind must query the state again.
const NEWS_MAX: usize = 256;

/// Returns the time in milliseconds since 1970.
pub type ServeClock = Arc<dyn Fn() -> u64 + Send + Sync>;

pub type JournalOpener =
    Arc<dyn Fn() -> BoxFuture<'static, Result<Journal, JournalError>> + Send + Sync>;

/// The required parts of a [`ServeState`].
pub struct ServeParts {
    pub library: Arc<SkillLibrary>,
    /// Creates a selector for a catalog.
    pub make_selector: SelectorFactory,
    pub settings: SelectionSettings,
    /// Opens the journal of runs, on first use.
    pub journal: JournalOpener,
    /// The folder that is served.
    pub project: Utf8PathBuf,
    /// The data folder of runs, reviews and workflows.
    pub data: Utf8PathBuf,
    /// Creates the workplaces of workflow programs.
    pub workplace: WorkplaceFactory,
    pub clock: ServeClock,
}

/// The state shared by all servers. Cheap to clone.
#[derive(Clone)]
pub struct ServeState {
    inner: Arc<ServeStateInner>,
}

struct ServeStateInner {
    parts: ServeParts,
    extras: ServeExtras,
    selector: Mutex<Option<(u64, Arc<SkillSelector>)>>,
    news: broadcast::Sender<CatalogNews>,
    journal: OnceCell<Journal>,
    hub: OnceCell<Arc<EventHub>>,
    figures: Arc<DaemonMetrics>,
}

/// Optional parts of a [`ServeState`].
#[derive(Default)]
pub struct ServeExtras {
    /// The environment of started programs, such as git.
    pub tools: Vec<(String, String)>,
    /// The sandbox for git.
    pub sandbox: LazySandbox,
    /// Builds prompt previews.
    pub preview: Option<PromptBuilder>,
    /// The user on whose behalf it runs, recorded as the origin of orders to runs.
    pub person: Option<String>,
}

/// Builds the prompt for an agent, without sending it.
pub type PromptBuilder =
    Arc<dyn Fn(PromptRequest) -> BoxFuture<'static, Result<RunPreview, PromptError>> + Send + Sync>;

/// A request for a prompt preview.
#[derive(Clone, Debug)]
pub struct PromptRequest {
    pub task: String,
    /// The agent; the default one if absent.
    pub agent: Option<String>,
    /// Skills requested by name.
    pub skills: Vec<String>,
    /// Paths that the task touches, relative to the project.
    pub paths: Vec<Utf8PathBuf>,
    /// The event that triggered the task.
    pub event: Option<String>,
    /// The maximum number of skills to pick; the configured one if absent.
    pub max_skills: Option<usize>,
    /// The selection threshold, from 0 to 1; the configured one if absent.
    pub threshold: Option<f32>,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum PromptError {
    #[error("{0}")]
    NoAgent(String),
    /// A preview is not possible here.
    #[error("{0}")]
    Refused(String),
}

/// A change that is not an event of a run.
#[derive(Clone, Debug)]
pub enum CatalogNews {
    /// The skills were reloaded.
    Skills(Arc<LibraryReload>),
}

impl ServeState {
    /// Creates the state. The disk is not watched before [`ServeState::watch`].
    pub fn new(parts: ServeParts) -> Self {
        ServeState::with_extras(parts, ServeExtras::default())
    }

    /// Like [`ServeState::new`], with optional parts.
    pub fn with_extras(parts: ServeParts, extras: ServeExtras) -> Self {
        let (news, _) = broadcast::channel(NEWS_MAX);
        let (selector, hub, figures) = (Mutex::new(None), OnceCell::new(), Arc::default());
        ServeState {
            inner: Arc::new(ServeStateInner {
                parts,
                extras,
                selector,
                news,
                journal: OnceCell::new(),
                hub,
                figures,
            }),
        }
    }

    /// The event hub. Starts reading the journal on first use.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal cannot be opened.
    pub async fn hub(&self) -> Result<Arc<EventHub>, JournalError> {
        let start = || async {
            let hub =
                EventHub::start_reading(self.journal().await?.clone(), self.subscribe()).await?;
            Ok(Arc::new(hub))
        };
        self.inner.hub.get_or_try_init(start).await.cloned()
    }

    /// The metrics.
    pub fn figures(&self) -> &Arc<DaemonMetrics> {
        &self.inner.figures
    }

    /// The event hub, if it was started.
    pub fn started_hub(&self) -> Option<&Arc<EventHub>> {
        self.inner.hub.get()
    }

    /// The builder of prompt previews, if available.
    pub fn preview(&self) -> Option<&PromptBuilder> {
        self.inner.extras.preview.as_ref()
    }

    /// The origin of orders received over HTTP: a token acts on behalf of its owner.
    pub fn order_origin(&self) -> String {
        format!("{} over HTTP", self.inner.extras.person.as_deref().unwrap_or("a user"))
    }

    /// Git in a folder.
    pub fn git_in(&self, dir: &Utf8Path) -> GitClient {
        let ServeExtras { tools, sandbox, .. } = &self.inner.extras;
        GitClient::new(dir, tools.clone(), sandbox.clone())
    }

    /// The folder with the folders of all runs.
    pub fn runs_dir(&self) -> Utf8PathBuf {
        self.data_dir().join("runs")
    }

    /// The folder with a run's output files.
    pub fn run_output_dir(&self, run: &RunId) -> Utf8PathBuf {
        self.runs_dir().join(run.as_str())
    }

    /// The folder with the worktrees of runs.
    pub fn worktrees_dir(&self) -> Utf8PathBuf {
        self.data_dir().join("worktrees")
    }

    /// Watches the disk until the result is dropped, and broadcasts changes.
    ///
    /// # Panics
    /// If the system cannot start a thread.
    pub fn watch(&self) -> LibraryWatchHandle {
        let news = self.inner.news.clone();
        self.inner.parts.library.watch(WatchOptions::default(), move |reload| {
            // There may be no receivers.
            let _ = news.send(CatalogNews::Skills(Arc::new(reload.clone())));
        })
    }

    /// Subscribes to changes.
    pub fn subscribe(&self) -> broadcast::Receiver<CatalogNews> {
        self.inner.news.subscribe()
    }

    /// The current skills.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.inner.parts.library.snapshot()
    }

    /// The library of skills.
    pub fn library(&self) -> &Arc<SkillLibrary> {
        &self.inner.parts.library
    }

    /// A selector for the current skills, with their catalog. Created on first use, and again after
    /// changes.
    pub fn selector(&self) -> (Arc<Catalog>, Arc<SkillSelector>) {
        let catalog = self.catalog();
        let mut made = self.inner.selector.lock().unwrap_or_else(PoisonError::into_inner);
        let selector = match &*made {
            Some((generation, selector)) if *generation == catalog.generation() => {
                Arc::clone(selector)
            }
            Some((_, before)) => Arc::new(before.reload(&catalog)),
            None => {
                let settings = self.inner.parts.settings;
                Arc::new((self.inner.parts.make_selector)(&catalog, settings))
            }
        };
        *made = Some((catalog.generation(), Arc::clone(&selector)));
        (catalog, selector)
    }

    /// The journal of runs. Opened on first use, so that clients that only read skills don't wait
    /// for a database.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be opened; the next call tries again.
    pub async fn journal(&self) -> Result<&Journal, JournalError> {
        self.inner.journal.get_or_try_init(|| (self.inner.parts.journal)()).await
    }

    /// The folder that is served.
    pub fn project(&self) -> &Utf8Path {
        &self.inner.parts.project
    }

    /// The data folder of runs, reviews and workflows.
    pub fn data_dir(&self) -> &Utf8Path {
        &self.inner.parts.data
    }

    /// The stored workflow runs.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal cannot be opened.
    pub async fn workflow_runs(&self) -> Result<WorkflowRunStore, WorkflowRunError> {
        let journal = self.journal().await?.clone();
        Ok(WorkflowRunStore::new(journal, self.data_dir().join("runs")))
    }

    /// The service that starts workflows, and records their results and decisions.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal cannot be opened.
    pub async fn workflow_operations(&self) -> Result<WorkflowOperations, WorkflowRunError> {
        let library = Arc::clone(&self.inner.parts.library);
        Ok(WorkflowOperations {
            runs: self.workflow_runs().await?,
            // Reload first: whether a workflow may be executed depends on the current files, not on
            // a snapshot.
            catalog: Arc::new(move || library.reload().catalog),
            folder: self.inner.parts.project.clone(),
            workplace: Arc::clone(&self.inner.parts.workplace),
        })
    }

    /// The forms for structured answers: `review_finding`, `plan_verdict` and `hand_in` fill them
    /// in.
    pub fn forms(&self) -> AnswerForms {
        AnswerForms::new(self.inner.parts.data.join("forms"), None)
    }

    /// The reviews of the served folder.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal cannot be opened.
    pub async fn reviews(&self) -> Result<ReviewStore, JournalError> {
        let journal = self.journal().await?.clone();
        Ok(ReviewStore::new(journal, &self.runs_dir(), self.project()))
    }

    /// The time in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        (self.inner.parts.clock)()
    }
}
