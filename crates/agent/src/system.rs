//! Everything that runs share: agents, skills, tools, models, limits. This is the front door for programs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use camino::Utf8PathBuf;
use repertoire_model::breaker::Breakers;
use repertoire_model::prices::Prices;
use repertoire_model::{Message, ModelName, Provider, ToolSpec};
use repertoire_select::{Selector, Task};
use repertoire_skill::catalog::Catalog;
use repertoire_skill::library::Library;
use repertoire_skill::render::catalog::is_offered;
use repertoire_skill::skill::Digest;
use repertoire_text::invisible::{self, InvisibleSummary};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

use repertoire_text::clock::Clock;
use crate::config::Config;
use crate::conversation::Conversation;
use crate::definition::{DEFAULT_AGENT, Definition};
use crate::effect::EffectLimit;
use crate::event::{Event, EventKind, Events, Sink, Status};
use crate::limits::CONVERSATIONS_MAX;
use crate::middleware::{Middleware, Next, Outcome, Turn, TurnError};
use crate::run::{Run, lock};
use repertoire_sandbox::confinement::Probed;
use crate::spending::{LimitReached, Spending};
use crate::tool::Tool;
use crate::tools;
use repertoire_sandbox::workplace::Workplace;

mod builder;
mod handing_over;
mod options;

pub use builder::{BuildError, Builder, MakeSelector};
pub use options::{Report, RunError, RunOptions};

/// Agents, skills, tools and models, ready to run. Cloning it is cheap.
#[derive(Clone)]
pub struct System {
    inner: Arc<Inner>,
}

/// A selector, and the generation of the catalog that it was made for.
type MadeSelector = (u64, Arc<Selector>);

#[derive(Clone)]
struct Inner {
    library: Arc<Library>,
    /// Whether nobody has run anything since skills were read.
    is_fresh: Arc<AtomicBool>,
    selector: Arc<Mutex<Option<MadeSelector>>>,
    make_selector: MakeSelector,
    provider: Arc<dyn Provider>,
    prices: Prices,
    breakers: Arc<Breakers>,
    config: Config,
    tools: Vec<Arc<dyn Tool>>,
    chain: Vec<Arc<dyn Middleware>>,
    work_dir: Utf8PathBuf,
    spill_dir: Utf8PathBuf,
    /// The folder for output if the caller named none. It is removed with the last system that uses it.
    _own_spill_dir: Option<Arc<tempfile::TempDir>>,
    /// Folders outside of it that may be read.
    readable: Vec<Utf8PathBuf>,
    environment: Vec<(String, String)>,
    sandbox: Probed,
    sink: Option<Sink>,
    clock: Arc<dyn Clock>,
    conversations: Arc<Mutex<Vec<Kept>>>,
    /// How many runs an agent may have at once, where its definition says so.
    places_at_work: Arc<Mutex<BTreeMap<String, Arc<Semaphore>>>>,
}

/// A conversation in memory, the least recently used first.
struct Kept {
    id: String,
    conversation: Arc<tokio::sync::Mutex<Conversation>>,
}

impl std::fmt::Debug for System {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("System").field("work_dir", &self.inner.work_dir).finish_non_exhaustive()
    }
}

/// What would be sent, and why.
#[derive(Clone, Debug)]
pub struct Preview {
    /// The model.
    pub model: ModelName,
    /// The agent.
    pub agent: Definition,
    /// The messages.
    pub messages: Vec<Message>,
    /// The tools.
    pub tools: Vec<ToolSpec>,
    /// Tokens, as estimated.
    pub tokens: u64,
    /// The body of the request, to the byte.
    pub body: serde_json::Value,
}

/// What a run is made of, whoever asks for it.
struct Start<'a> {
    agent: &'a str,
    task: String,
    options: RunOptions,
    events: Events,
    depth: u32,
    spending: Arc<Spending>,
    /// The agents that wait for this one.
    above: Vec<String>,
    /// The model of those who ask for none.
    model: Option<ModelName>,
    asked: Asked,
    /// The limit of the agent that asks for it.
    limit: EffectLimit,
}

/// How somebody came by an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A person named it.
    ByName,
    /// A skill, another agent or a capability led to it.
    Otherwise,
}

impl System {
    /// Begins to put a system together.
    ///
    /// ```
    /// use repertoire_agent::{Config, System};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let here = camino::Utf8PathBuf::try_from(dir.path().to_path_buf())?;
    /// # for name in ["agents", "skills"] { std::fs::create_dir(here.join(name))?; }
    /// let system = System::builder()
    ///     .agents_from(here.join("agents"))
    ///     .skills_from(here.join("skills"))
    ///     .work_dir(&here)
    ///     .config(Config::default())
    ///     .build()?;
    /// assert_eq!(system.agent_names(), ["default"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The same skills, tools and models at work in another folder, with others to read: in a worktree, for instance, which
    /// needs the repository. What is shared is shared, so fifty of them cost little more than one.
    #[must_use]
    pub fn in_dir(&self, dir: impl Into<Utf8PathBuf>, readable: Vec<Utf8PathBuf>) -> System {
        let inner = Inner {
            work_dir: dir.into(),
            readable,
            conversations: Arc::default(),
            ..Inner::clone(&self.inner)
        };
        System { inner: Arc::new(inner) }
    }

    /// The same, with a variable in the environment of all programs that it starts.
    #[must_use]
    pub fn with_variable(&self, name: &str, value: &str) -> System {
        let mut inner = Inner::clone(&self.inner);
        inner.environment.retain(|(there, _)| there != name);
        inner.environment.push((name.to_owned(), value.to_owned()));
        System { inner: Arc::new(inner) }
    }

    /// The sandbox that confines programs.
    pub fn sandbox(&self) -> &Probed {
        &self.inner.sandbox
    }

    /// Where programs of a run that has this id would work.
    pub fn workplace_of(&self, conversation: &str) -> Workplace {
        self.workplace(conversation)
    }

    /// Runs an agent on a task to its end. It never fails halfway: what goes wrong is in the report.
    ///
    /// ```no_run
    /// # async fn example(system: repertoire_agent::System) -> Result<(), Box<dyn std::error::Error>> {
    /// use repertoire_agent::RunOptions;
    ///
    /// let task = "Analyze this Danish tender for compliance";
    /// let report = system.run("technical-analyst", task, RunOptions::default()).await;
    /// assert_eq!(report.skills, ["danish-tender-guidelines"]);
    /// println!("{}", report.into_answer()?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run(&self, agent: &str, task: impl Into<String>, options: RunOptions) -> Report {
        let limits = options.limits.unwrap_or(self.inner.config.limits);
        let spending = Arc::new(Spending::new(limits));
        self.run_asked(agent, task.into(), options, Asked::ByName, spending).await
    }

    /// As [`System::run`], for an agent that somebody came by in this way, from this purse.
    pub(crate) async fn run_asked(
        &self,
        agent: &str,
        task: String,
        options: RunOptions,
        asked: Asked,
        spending: Arc<Spending>,
    ) -> Report {
        self.refresh();
        let id = uuid::Uuid::now_v7().to_string();
        let events = Events::new(&id, agent, self.inner.clock.clone(), self.sink(&options));
        let (above, model) = (Vec::new(), None);
        let depth = 0;
        let limit = EffectLimit::default();
        let start =
            Start { agent, task, options, events, depth, spending, above, model, asked, limit };
        self.execute(start).await
    }

    /// What [`System::run`] would send first, without sending it.
    ///
    /// # Errors
    ///
    /// When the run could not begin.
    pub async fn preview(
        &self,
        agent: &str,
        task: impl Into<String>,
        options: RunOptions,
    ) -> Result<Preview, RunError> {
        self.refresh();
        let events = Events::new("preview", agent, self.inner.clock.clone(), self.sink(&options));
        let spending = Arc::new(Spending::new(self.inner.config.limits));
        // A preview must not change the conversation that it looks at.
        let id = options.conversation.clone().unwrap_or_else(|| "preview".to_owned());
        let known = self.conversation(&id).await.unwrap_or_else(|| Conversation::new(id));
        let guard = Arc::new(tokio::sync::Mutex::new(known)).lock_owned().await;
        let task = task.into();
        let (above, model, asked) = (Vec::new(), None, Asked::ByName);
        let (depth, limit) = (0, EffectLimit::default());
        let start =
            Start { agent, task, options, events, depth, spending, above, model, asked, limit };
        let mut turn = self.turn(&start, guard);
        turn.preview = true;
        self.one_turn(&mut turn).await;
        if let Some(error) = turn.outcome.take().and_then(|outcome| outcome.error) {
            return Err(error.into());
        }
        let Some(model) = turn.model.clone() else {
            let message = "no model was chosen".to_owned();
            return Err(crate::middleware::TurnError::Panicked(message).into());
        };
        let request = crate::middleware::model_call::request(&turn, &model);
        let body = repertoire_model::client::body(&request, model.info.as_ref());
        Ok(Preview {
            model: model.name.clone(),
            agent: (*turn.agent).clone(),
            messages: turn.conversation.messages.clone(),
            tokens: turn.conversation.tokens(),
            body,
            tools: std::mem::take(&mut turn.specs),
        })
    }

    /// Runs an agent for another one: with nothing but its task, within the same limits and permissions. The effects of the
    /// new run are at most those of the agent that asks for it.
    pub(crate) async fn run_for(
        &self,
        parent: &Run,
        agent: &str,
        task: String,
        options: RunOptions,
    ) -> Report {
        let options = RunOptions {
            permissions: options.permissions.or_else(|| Some(parent.permissions())),
            asker: parent.asker.clone(),
            cancel: parent.cancel.child_token(),
            ignore_project_rules: options.ignore_project_rules || parent.is_strangers,
            ..options
        };
        let events = parent.events.child(agent);
        let spending = Arc::new(parent.spending.child());
        let depth = parent.depth + 1;
        let (above, model) = (parent.at_work.clone(), parent.model.clone());
        let (asked, limit) = (Asked::Otherwise, parent.limit());
        let start =
            Start { agent, task, options, events, depth, spending, above, model, asked, limit };
        // A future that contains itself has to be on the heap.
        let report = Box::pin(self.execute(start)).await;
        lock(&parent.denials).extend(report.denials.iter().cloned());
        report
    }

    async fn execute(&self, start: Start<'_>) -> Report {
        let begun = tokio::time::Instant::now();
        let id = start.options.conversation.clone();
        let id = id.unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
        let (_place, guard) = match self.begin(&start, &id).await {
            Ok(begun) => begun,
            Err(error) => return never_begun(&start, id, error),
        };
        let mut turn = self.turn(&start, guard);
        let backend = start.options.backend.clone();
        let name = backend.as_ref().map(|backend| backend.name());
        // A session knows nothing of what was said elsewhere: who takes the conversation over is told all of it.
        if turn.conversation.session_at.as_deref().or(name) != name || name.is_none() {
            turn.conversation.session = None;
        }
        start.events.emit(EventKind::RunStarted {
            conversation: id.clone(),
            backend: name.unwrap_or("api").to_owned(),
            model: start.options.model.as_ref().map(ToString::to_string),
            session: turn.conversation.session.clone(),
        });
        if let Some(warning) = warning_of_invisible_characters(&start.task) {
            start.events.emit(warning);
        }
        let mut report = nothing_yet(&start, id);
        match backend {
            None => {
                let (outcome, answered) = self.turns(&mut turn).await;
                report.iterations = answered;
                report.status = outcome.status;
                report.text = outcome.text;
                report.structured = outcome.structured;
                report.error = outcome.error.map(RunError::from);
                let spent = start.spending.spent();
                report.usage = spent.usage;
                report.cost_usd = spent.known_cost_usd();
            }
            Some(backend) => self.hand_over(&mut turn, &*backend, &mut report).await,
        }
        report.denials.extend(turn.run.denials());
        report.duration = begun.elapsed();
        let ledger = std::mem::take(&mut *lock(&turn.run.ledger));
        report.skills = ledger.held().iter().map(|held| held.activation.id.clone()).collect();
        turn.conversation.ledger = ledger;
        turn.conversation.todos = turn.run.state.todos();
        turn.run.workplace.clean_up();
        start.events.emit(finished(&report));
        report
    }

    /// Waits for a place at work and for the conversation, but no longer than the run may last.
    async fn begin(
        &self,
        start: &Start<'_>,
        id: &str,
    ) -> Result<(Option<OwnedSemaphorePermit>, OwnedMutexGuard<Conversation>), TurnError> {
        let ready = async {
            let place = match self.place_at_work(start) {
                Some(places) => places.acquire_owned().await.ok(),
                None => None,
            };
            (place, self.take_up(id, start.depth).await)
        };
        let max_s = start.spending.limits().duration_max.as_secs();
        tokio::select! {
            biased;
            ready = tokio::time::timeout_at(start.spending.deadline(), ready) => {
                ready.map_err(|_| LimitReached::Duration { max_s }.into())
            }
            () = start.options.cancel.cancelled() => Err(TurnError::Cancelled),
        }
    }

    /// Turn after turn, until there is an outcome; and how many of them the model answered.
    async fn turns(&self, turn: &mut Turn) -> (Outcome, u32) {
        let mut answered = 0;
        loop {
            turn.iteration += 1;
            turn.response = None;
            self.one_turn(turn).await;
            answered += u32::from(turn.response.is_some());
            if let Some(outcome) = turn.outcome.take() {
                return (outcome, answered);
            }
        }
    }

    async fn one_turn(&self, turn: &mut Turn) {
        turn.iteration = turn.iteration.max(1);
        // The error boundary is the first link, so nothing comes out of here but through the turn.
        let _ = Next::all(&self.inner.chain).run(turn).await;
    }

    fn turn(&self, start: &Start<'_>, conversation: OwnedMutexGuard<Conversation>) -> Turn {
        let options = &start.options;
        let config = &self.inner.config;
        let task = Task {
            hints: options.skills.clone(),
            paths: options.paths.clone(),
            event: options.event.clone(),
            usage: config.usage.clone(),
            ..Task::new(invisible::removed(&start.task).0)
        };
        let permissions = options.permissions.clone().unwrap_or(config.permissions.clone());
        let permissions = permissions.in_dir(&self.inner.work_dir);
        let run = Run {
            conversation: conversation.id.clone(),
            depth: start.depth,
            cancel: options.cancel.clone(),
            spending: start.spending.clone(),
            asker: options.asker.clone(),
            state: tools::State::hiding(permissions.hidden()),
            ledger: Mutex::new(conversation.ledger.clone()),
            permissions: Mutex::new(permissions),
            limit: Mutex::new(start.limit.clone()),
            is_strangers: start.options.ignore_project_rules,
            at_work: start.above.iter().cloned().chain([start.agent.to_owned()]).collect(),
            model: options.model.clone().or(start.model.clone()),
            ..Run::new(self.clone(), self.workplace(&conversation.id), start.events.clone())
        };
        run.state.set_todos(conversation.todos.clone());
        for held in conversation.ledger.held() {
            if held.activation.origin.is_folder() {
                run.workplace.add_readable(held.activation.origin.dir());
            }
        }
        Turn {
            run: Arc::new(run),
            agent_name: start.agent.to_owned(),
            asked: start.asked,
            agent: Arc::default(),
            task,
            options: Arc::new(options.clone()),
            conversation,
            iteration: 0,
            attempt: 1,
            tools: Vec::new(),
            specs: Vec::new(),
            specs_of: None,
            specs_tokens: 0,
            injections: Vec::new(),
            model: None,
            preview: false,
            response: None,
            reshaped: 0,
            outcome: None,
        }
    }

    /// Every conversation has a folder of its own for large output and for the private files of its programs.
    fn workplace(&self, conversation: &str) -> Workplace {
        let inner = &self.inner;
        let spill_dir = inner.spill_dir.join(folder_of(conversation));
        let mut place = Workplace::new(&inner.work_dir, spill_dir, inner.sandbox.clone());
        place.environment = inner.environment.clone();
        place.limits = inner.config.tools;
        for dir in &inner.readable {
            place.readable.add(dir);
        }
        let catalog = self.catalog();
        // Skills that are trusted by where they are must not be rewritten by who follows them.
        for root in catalog.roots() {
            let dir = inner.work_dir.join(&root.root.dir);
            let holds_more = inner.work_dir.starts_with(&dir) || inner.spill_dir.starts_with(&dir);
            if dir.starts_with(&inner.work_dir) && !holds_more && dir.is_dir() {
                place.protected.push(dir);
            }
        }
        place
    }

    fn sink(&self, options: &RunOptions) -> Sink {
        let (all, own) = (self.inner.sink.clone(), options.on_event.clone());
        Arc::new(move |event: &Event| {
            for sink in [&all, &own].into_iter().flatten() {
                sink(event);
            }
        })
    }

    /// An agent that delegates to itself, at once or in the end, waits for itself: it has its place already.
    fn place_at_work(&self, start: &Start<'_>) -> Option<Arc<Semaphore>> {
        let agent = start.agent;
        if start.above.iter().any(|above| above == agent) {
            return None;
        }
        let catalog = self.catalog();
        let places = catalog.agent(agent)?.skill.execution.max_concurrent?.max(1);
        let mut known = lock(&self.inner.places_at_work);
        let semaphore = || Arc::new(Semaphore::new(places as usize));
        Some(known.entry(agent.to_owned()).or_insert_with(semaphore).clone())
    }

    /// Takes a conversation up, or begins it. A sub-agent's is kept by nobody.
    async fn take_up(&self, id: &str, depth: u32) -> OwnedMutexGuard<Conversation> {
        let begin = || Arc::new(tokio::sync::Mutex::new(Conversation::new(id)));
        let conversation = if depth > 0 {
            begin()
        } else {
            let mut kept = lock(&self.inner.conversations);
            let found = kept.iter().position(|kept| kept.id == id);
            let known = found.map(|at| kept.remove(at).conversation);
            let conversation = known.unwrap_or_else(begin);
            kept.push(Kept { id: id.to_owned(), conversation: conversation.clone() });
            if kept.len() > CONVERSATIONS_MAX {
                kept.remove(0);
            }
            conversation
        };
        conversation.lock_owned().await
    }

    /// A conversation as it stands, to be kept on disk.
    pub async fn conversation(&self, id: &str) -> Option<Conversation> {
        let known = {
            let kept = lock(&self.inner.conversations);
            kept.iter().find(|kept| kept.id == id).map(|kept| kept.conversation.clone())
        };
        match known {
            Some(conversation) => Some(conversation.lock().await.clone()),
            None => None,
        }
    }

    /// Puts back a conversation that was kept on disk.
    pub fn restore(&self, conversation: Conversation) {
        let mut kept = lock(&self.inner.conversations);
        kept.retain(|kept| kept.id != conversation.id);
        let id = conversation.id.clone();
        kept.push(Kept { id, conversation: Arc::new(tokio::sync::Mutex::new(conversation)) });
    }

    /// Reads what has changed on disk. A run does this when it begins, so edits are live.
    pub fn refresh(&self) {
        if !self.inner.is_fresh.swap(false, Ordering::Relaxed) {
            self.inner.library.reload();
        }
    }

    /// The skills and agents as they stand.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.inner.library.snapshot()
    }

    /// The selector for a catalog.
    pub fn selector(&self, catalog: &Catalog) -> Arc<Selector> {
        let mut held = lock(&self.inner.selector);
        let settings = self.inner.config.auto_trigger;
        let selector = match held.take() {
            Some((generation, selector)) if generation == catalog.generation() => selector,
            Some((_, selector)) => Arc::new(selector.reload(catalog)),
            None => Arc::new((self.inner.make_selector)(catalog, settings)),
        };
        *held = Some((catalog.generation(), selector.clone()));
        selector
    }

    /// Whether there is a skill that a model may choose.
    pub fn has_skills(&self) -> bool {
        self.catalog().entries().iter().any(is_offered)
    }

    /// The names of all agents, the built-in default among them.
    pub fn agent_names(&self) -> Vec<String> {
        let catalog = self.catalog();
        let agents = catalog.entries().iter().filter(|entry| entry.skill.is_agent());
        let mut names: Vec<String> = agents.map(|entry| entry.id.clone()).collect();
        if !names.iter().any(|name| name == DEFAULT_AGENT) {
            names.push(DEFAULT_AGENT.to_owned());
        }
        names.sort();
        names.dedup();
        names
    }

    /// All tools.
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.inner.tools
    }

    /// How it behaves.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// What is known of models.
    pub fn prices(&self) -> &Prices {
        &self.inner.prices
    }

    /// Who is asked.
    pub fn provider(&self) -> &dyn Provider {
        &*self.inner.provider
    }

    pub(crate) fn breakers(&self) -> &Breakers {
        &self.inner.breakers
    }

    /// The clock.
    pub fn clock(&self) -> &dyn Clock {
        &*self.inner.clock
    }

    /// A number from 0 to 1, so that callers who failed together do not come back together.
    pub(crate) fn random(&self) -> f64 {
        let bits = uuid::Uuid::now_v7().as_u128() as u32;
        f64::from(bits) / f64::from(u32::MAX)
    }
}

/// The name of a conversation's folder. Ids may be anything that a caller thinks of.
fn folder_of(conversation: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if !conversation.is_empty() && conversation.len() <= 64 && conversation.chars().all(is_plain) {
        return conversation.to_owned();
    }
    Digest::of(conversation.as_bytes()).to_string().replace(':', "-")
}

/// The report of a run of which nothing is known yet.
fn nothing_yet(start: &Start<'_>, conversation: String) -> Report {
    Report {
        run: start.events.run().to_owned(),
        conversation,
        status: Status::Failed,
        text: String::new(),
        structured: None,
        error: None,
        usage: Default::default(),
        cost_usd: None,
        iterations: 0,
        duration: Default::default(),
        denials: Vec::new(),
        session: None,
        skills: Vec::new(),
    }
}

/// Tasks often quote text of others, so they lose what people cannot see.
fn warning_of_invisible_characters(task: &str) -> Option<EventKind> {
    let summary = InvisibleSummary::of(task);
    let message = || format!("invisible characters were removed from the task: {summary}");
    (!summary.is_empty()).then(|| EventKind::Warning { message: message() })
}

/// The report of a run that waited for others until it was too late.
fn never_begun(start: &Start<'_>, conversation: String, error: TurnError) -> Report {
    let (status, error) = (error.status(), Some(error.into()));
    let duration = start.spending.elapsed();
    let report = Report { status, error, duration, ..nothing_yet(start, conversation) };
    start.events.emit(finished(&report));
    report
}

fn finished(report: &Report) -> EventKind {
    EventKind::RunFinished {
        status: report.status,
        text: report.text.clone(),
        structured: report.structured.clone(),
        error: report.error.as_ref().map(ToString::to_string),
        usage: report.usage,
        cost_usd: report.cost_usd,
        iterations: report.iterations,
        duration_ms: u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
        denials: report.denials.clone(),
        session: report.session.clone(),
    }
}
