//! The state shared by all servers: the skills, kept up to date with the disk, the journal, and the
//! data of runs.

use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use futures_util::future::BoxFuture;
use repertoire_agent::form::Forms;
use repertoire_agent::system::{MakeSelector, Preview};
use repertoire_flow::driver::Runs;
use repertoire_flow::driver::desk::{Desk, MakeWorkplace};
use repertoire_git::repo::Git;
use repertoire_journal::{Journal, JournalError, RunId};
use repertoire_review::store::Reviews;
use repertoire_sandbox::confinement::Probed;
use repertoire_select::{Selector, Settings};
use repertoire_skill::catalog::Catalog;
use repertoire_skill::library::watch::{WatchOptions, Watching};
use repertoire_skill::library::{Library, Reload};
use tokio::sync::{OnceCell, broadcast};

use crate::http::events::Hub;
use crate::http::metrics::Figures;

/// The capacity of the change channel; receivers that lag behind must query the state again.
const NEWS_MAX: usize = 256;

/// Returns the time in milliseconds since 1970.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

pub type OpenJournal =
    Arc<dyn Fn() -> BoxFuture<'static, Result<Journal, JournalError>> + Send + Sync>;

/// The required parts of a [`House`].
pub struct Parts {
    pub library: Arc<Library>,
    /// Creates a selector for a catalog.
    pub make_selector: MakeSelector,
    pub settings: Settings,
    /// Opens the journal of runs, on first use.
    pub journal: OpenJournal,
    /// The folder that is served.
    pub project: Utf8PathBuf,
    /// The data folder of runs, reviews and workflows.
    pub data: Utf8PathBuf,
    /// Creates the workplaces of workflow programs.
    pub workplace: MakeWorkplace,
    pub clock: Clock,
}

/// The state shared by all servers. Cheap to clone.
#[derive(Clone)]
pub struct House {
    inner: Arc<Inner>,
}

struct Inner {
    parts: Parts,
    extras: Extras,
    selector: Mutex<Option<(u64, Arc<Selector>)>>,
    news: broadcast::Sender<News>,
    journal: OnceCell<Journal>,
    hub: OnceCell<Arc<Hub>>,
    figures: Arc<Figures>,
}

/// Optional parts of a [`House`].
#[derive(Default)]
pub struct Extras {
    /// The environment of started programs, such as git.
    pub tools: Vec<(String, String)>,
    /// The sandbox for git.
    pub sandbox: Probed,
    /// Builds prompt previews.
    pub preview: Option<MakePrompt>,
    /// The user on whose behalf it runs, recorded as the origin of orders to runs.
    pub person: Option<String>,
}

/// Builds the prompt for an agent, without sending it.
pub type MakePrompt =
    Arc<dyn Fn(PromptAsk) -> BoxFuture<'static, Result<Preview, PromptError>> + Send + Sync>;

/// A request for a prompt preview.
#[derive(Clone, Debug)]
pub struct PromptAsk {
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
pub enum News {
    /// The skills were reloaded.
    Skills(Arc<Reload>),
}

impl House {
    /// Creates the state. The disk is not watched before [`House::watch`].
    pub fn new(parts: Parts) -> Self {
        House::with(parts, Extras::default())
    }

    /// Like [`House::new`], with optional parts.
    pub fn with(parts: Parts, extras: Extras) -> Self {
        let (news, _) = broadcast::channel(NEWS_MAX);
        let (selector, hub, figures) = (Mutex::new(None), OnceCell::new(), Arc::default());
        House {
            inner: Arc::new(Inner {
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
    pub async fn hub(&self) -> Result<Arc<Hub>, JournalError> {
        let start = || async {
            let hub = Hub::start(self.journal().await?.clone(), self.news()).await?;
            Ok(Arc::new(hub))
        };
        self.inner.hub.get_or_try_init(start).await.cloned()
    }

    /// The metrics.
    pub fn figures(&self) -> &Arc<Figures> {
        &self.inner.figures
    }

    /// The event hub, if it was started.
    pub fn hub_if_there(&self) -> Option<&Arc<Hub>> {
        self.inner.hub.get()
    }

    /// The builder of prompt previews, if available.
    pub fn preview(&self) -> Option<&MakePrompt> {
        self.inner.extras.preview.as_ref()
    }

    /// The origin of orders received over HTTP: a token acts on behalf of its owner.
    pub fn by(&self) -> String {
        format!("{} over HTTP", self.inner.extras.person.as_deref().unwrap_or("a user"))
    }

    /// Git in a folder.
    pub fn git(&self, dir: &Utf8Path) -> Git {
        let Extras { tools, sandbox, .. } = &self.inner.extras;
        Git::new(dir, tools.clone(), sandbox.clone())
    }

    /// The folder with a run's output files.
    pub fn left_behind(&self, run: &RunId) -> Utf8PathBuf {
        self.data().join("runs").join(run.as_str())
    }

    /// The folder with the worktrees of runs.
    pub fn worktrees(&self) -> Utf8PathBuf {
        self.data().join("worktrees")
    }

    /// Watches the disk until the result is dropped, and broadcasts changes.
    ///
    /// # Panics
    /// If the system cannot start a thread.
    pub fn watch(&self) -> Watching {
        let news = self.inner.news.clone();
        self.inner.parts.library.watch(WatchOptions::default(), move |reload| {
            // There may be no receivers.
            let _ = news.send(News::Skills(Arc::new(reload.clone())));
        })
    }

    /// Subscribes to changes.
    pub fn news(&self) -> broadcast::Receiver<News> {
        self.inner.news.subscribe()
    }

    /// The current skills.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.inner.parts.library.snapshot()
    }

    /// The library of skills.
    pub fn library(&self) -> &Arc<Library> {
        &self.inner.parts.library
    }

    /// A selector for the current skills, with their catalog. Created on first use, and again after
    /// changes.
    pub fn selector(&self) -> (Arc<Catalog>, Arc<Selector>) {
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
    pub fn data(&self) -> &Utf8Path {
        &self.inner.parts.data
    }

    /// The stored workflow runs.
    pub fn workflows(&self) -> Runs {
        Runs::new(self.inner.parts.data.join("workflows"))
    }

    /// The service that starts workflows, and records their results and decisions.
    pub fn desk(&self) -> Desk {
        let library = Arc::clone(&self.inner.parts.library);
        Desk {
            runs: self.workflows(),
            // Reload first: whether a workflow may be executed depends on the current files, not on
            // a snapshot.
            catalog: Arc::new(move || library.reload().catalog),
            folder: self.inner.parts.project.clone(),
            workplace: Arc::clone(&self.inner.parts.workplace),
            now_ms: Arc::clone(&self.inner.parts.clock),
        }
    }

    /// The forms for structured answers: `review_finding`, `plan_verdict` and `hand_in` fill them
    /// in.
    pub fn forms(&self) -> Forms {
        Forms::new(self.inner.parts.data.join("forms"), None)
    }

    /// The reviews of the served folder.
    pub fn reviews(&self) -> Reviews {
        Reviews::new(&self.inner.parts.data.join("reviews"), &self.inner.parts.project)
    }

    /// The time in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        (self.inner.parts.clock)()
    }
}
