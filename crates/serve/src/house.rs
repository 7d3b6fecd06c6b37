//! Everything that is served, in one place: skills that keep up with the disk, the journal, and what runs leave behind.

use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use futures_util::future::BoxFuture;
use repertoire_agent::form::Forms;
use repertoire_sandbox::confinement::Probed;
use repertoire_agent::system::{MakeSelector, Preview};
use repertoire_git::repo::Git;
use repertoire_review::store::Reviews;
use repertoire_flow::driver::Runs;
use repertoire_flow::driver::desk::{Desk, MakeWorkplace};
use repertoire_journal::{Journal, JournalError, RunId};
use repertoire_select::{Selector, Settings};
use repertoire_skill::catalog::Catalog;
use repertoire_skill::library::watch::{WatchOptions, Watching};
use repertoire_skill::library::{Library, Reload};
use tokio::sync::{OnceCell, broadcast};

use crate::http::events::Hub;
use crate::http::metrics::Figures;

/// News that nobody has taken are forgotten beyond this many: whoever is slower asks again.
const NEWS_MAX: usize = 256;

/// Milliseconds since 1970.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Opens the journal.
pub type OpenJournal =
    Arc<dyn Fn() -> BoxFuture<'static, Result<Journal, JournalError>> + Send + Sync>;

/// What a house is made of.
pub struct Parts {
    /// The skills.
    pub library: Arc<Library>,
    /// Makes a selector over a catalog.
    pub make_selector: MakeSelector,
    /// How selection behaves.
    pub settings: Settings,
    /// Opens the journal of runs, when somebody first asks about them.
    pub journal: OpenJournal,
    /// The folder that is served.
    pub project: Utf8PathBuf,
    /// Where runs, reviews and workflows keep what they need.
    pub data: Utf8PathBuf,
    /// Where programs of workflows are executed.
    pub workplace: MakeWorkplace,
    /// The time.
    pub clock: Clock,
}

/// Everything that is served. Cloning it is cheap.
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

/// What a house may have besides.
#[derive(Default)]
pub struct Extras {
    /// The environment of programs that are started, such as git.
    pub tools: Vec<(String, String)>,
    /// The sandbox that confines git.
    pub sandbox: Probed,
    /// Makes the prompt that an agent would be given.
    pub preview: Option<MakePrompt>,
    /// Who it is served for, as runs are told who gave an order.
    pub person: Option<String>,
}

/// Makes the prompt that an agent would be given, and sends nothing.
pub type MakePrompt =
    Arc<dyn Fn(PromptAsk) -> BoxFuture<'static, Result<Preview, PromptError>> + Send + Sync>;

/// What a prompt is wanted for.
#[derive(Clone, Debug)]
pub struct PromptAsk {
    /// What is to be done.
    pub task: String,
    /// The agent; the default one if nobody says.
    pub agent: Option<String>,
    /// Skills that are asked for by name.
    pub skills: Vec<String>,
    /// Paths that the task touches, relative to the project.
    pub paths: Vec<Utf8PathBuf>,
    /// The event that started it.
    pub event: Option<String>,
    /// Most skills to pick; as configured if nobody says.
    pub max_skills: Option<usize>,
    /// How sure to be of a pick, 0 to 1; as configured if nobody says.
    pub threshold: Option<f32>,
}

/// Why there is no prompt.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PromptError {
    /// There is no such agent.
    #[error("{0}")]
    NoAgent(String),
    /// A prompt cannot be made here.
    #[error("{0}")]
    Refused(String),
}

/// Something that changed and that no run tells of.
#[derive(Clone, Debug)]
pub enum News {
    /// The skills were read again.
    Skills(Arc<Reload>),
}

impl House {
    /// Puts a house together. Nothing is watched before [`House::watch`].
    pub fn new(parts: Parts) -> Self {
        House::with(parts, Extras::default())
    }

    /// As [`House::new`], with more.
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

    /// What happens, for everybody who listens. It is read from the first time on that somebody does.
    ///
    /// # Errors
    ///
    /// When the journal cannot be used.
    pub async fn hub(&self) -> Result<Arc<Hub>, JournalError> {
        let start = || async {
            let hub = Hub::start(self.journal().await?.clone(), self.news()).await?;
            Ok(Arc::new(hub))
        };
        self.inner.hub.get_or_try_init(start).await.cloned()
    }

    /// What is counted.
    pub fn figures(&self) -> &Arc<Figures> {
        &self.inner.figures
    }

    /// The hub, if anybody has listened yet.
    pub fn hub_if_there(&self) -> Option<&Arc<Hub>> {
        self.inner.hub.get()
    }

    /// Makes the prompt that an agent would be given, where that can be done.
    pub fn preview(&self) -> Option<&MakePrompt> {
        self.inner.extras.preview.as_ref()
    }

    /// Who gives the orders that come over HTTP: whoever has the token acts for the person that it was made for.
    pub fn by(&self) -> String {
        format!("{} over HTTP", self.inner.extras.person.as_deref().unwrap_or("a user"))
    }

    /// Git in a folder.
    pub fn git(&self, dir: &Utf8Path) -> Git {
        let Extras { tools, sandbox, .. } = &self.inner.extras;
        Git::new(dir, tools.clone(), sandbox.clone())
    }

    /// Where a run leaves files for people.
    pub fn left_behind(&self, run: &RunId) -> Utf8PathBuf {
        self.data().join("runs").join(run.as_str())
    }

    /// Where runs work.
    pub fn worktrees(&self) -> Utf8PathBuf {
        self.data().join("worktrees")
    }

    /// Follows the disk until the result is dropped, and tells everybody who listens.
    ///
    /// # Panics
    /// If the system cannot start a thread.
    pub fn watch(&self) -> Watching {
        let news = self.inner.news.clone();
        self.inner.parts.library.watch(WatchOptions::default(), move |reload| {
            // Nobody may be listening.
            let _ = news.send(News::Skills(Arc::new(reload.clone())));
        })
    }

    /// What changes from now on.
    pub fn news(&self) -> broadcast::Receiver<News> {
        self.inner.news.subscribe()
    }

    /// The skills as they are now.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.inner.parts.library.snapshot()
    }

    /// The library that the skills come from.
    pub fn library(&self) -> &Arc<Library> {
        &self.inner.parts.library
    }

    /// A selector over the skills as they are now, and these. It is made when it is first needed, and again when they change.
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

    /// The journal of runs. It is opened when it is first asked for: who only reads skills is not kept by a database.
    ///
    /// # Errors
    ///
    /// When it cannot be opened; the next time it is tried again.
    pub async fn journal(&self) -> Result<&Journal, JournalError> {
        self.inner.journal.get_or_try_init(|| (self.inner.parts.journal)()).await
    }

    /// The folder that is served.
    pub fn project(&self) -> &Utf8Path {
        &self.inner.parts.project
    }

    /// Where runs, reviews and workflows keep what they need.
    pub fn data(&self) -> &Utf8Path {
        &self.inner.parts.data
    }

    /// Runs of workflows.
    pub fn workflows(&self) -> Runs {
        Runs::new(self.inner.parts.data.join("workflows"))
    }

    /// Where workflows are started, reported about and decided.
    pub fn desk(&self) -> Desk {
        let library = Arc::clone(&self.inner.parts.library);
        Desk {
            runs: self.workflows(),
            // Whether something may be executed is decided by what is on the disk now, not by when it was last looked at.
            catalog: Arc::new(move || library.reload().catalog),
            folder: self.inner.parts.project.clone(),
            workplace: Arc::clone(&self.inner.parts.workplace),
            now_ms: Arc::clone(&self.inner.parts.clock),
        }
    }

    /// Forms that agents hand answers in on: `review_finding`, `plan_verdict` and `hand_in` fill them in.
    pub fn forms(&self) -> Forms {
        Forms::new(self.inner.parts.data.join("forms"), None)
    }

    /// Reviews of the folder that is served.
    pub fn reviews(&self) -> Reviews {
        Reviews::new(&self.inner.parts.data.join("reviews"), &self.inner.parts.project)
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        (self.inner.parts.clock)()
    }
}
