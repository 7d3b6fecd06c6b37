//! The state shared by all runs: agents, skills, tools, models, limits. This is the entry point of
//! the library.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use camino::Utf8PathBuf;
use repertoire_model::breaker::CircuitBreakers;
use repertoire_model::prices::ModelPrices;
use repertoire_model::{ModelMessage, ModelName, ModelProvider, ToolSpec};
use repertoire_select::{SkillSelector, Task};
use repertoire_skill::catalog::Catalog;
use repertoire_skill::library::SkillLibrary;
use repertoire_skill::render::catalog::is_offered;
use repertoire_skill::skill::ContentDigest;
use repertoire_text::invisible::{self, InvisibleSummary};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

use crate::config::AgentConfig;
use crate::conversation::Conversation;
use crate::definition::{AgentDefinition, DEFAULT_AGENT};
use crate::effect::EffectLimit;
use crate::event::{AgentEvent, AgentRunStatus, EventEmitter, EventKind, EventSink};
use crate::limits::CONVERSATIONS_MAX;
use crate::middleware::{AgentTurn, MiddlewareNext, TurnError, TurnMiddleware, TurnOutcome};
use crate::run::{AgentRun, lock_unpoisoned};
use crate::spending::{LimitReached, RunBudget};
use crate::tool::Tool;
use crate::tools;
use repertoire_sandbox::confinement::LazySandbox;
use repertoire_sandbox::workplace::RunWorkplace;
use repertoire_text::clock::Clock;

mod backend_run;
mod builder;
mod options;

pub use builder::{SelectorFactory, SystemBuildError, SystemBuilder};
pub use options::{AgentRunError, RunOptions, RunReport};

/// Agents, skills, tools and models, ready to run. Cheap to clone.
#[derive(Clone)]
pub struct System {
    inner: Arc<SystemInner>,
}

/// A selector, and the generation of the catalog for which it was created.
type GenerationSelector = (u64, Arc<SkillSelector>);

#[derive(Clone)]
struct SystemInner {
    library: Arc<SkillLibrary>,
    /// True if there was no run since the skills were loaded.
    is_fresh: Arc<AtomicBool>,
    selector: Arc<Mutex<Option<GenerationSelector>>>,
    make_selector: SelectorFactory,
    provider: Arc<dyn ModelProvider>,
    prices: ModelPrices,
    breakers: Arc<CircuitBreakers>,
    config: AgentConfig,
    tools: Vec<Arc<dyn Tool>>,
    chain: Vec<Arc<dyn TurnMiddleware>>,
    work_dir: Utf8PathBuf,
    spill_dir: Utf8PathBuf,
    /// The temporary folder for output, if the caller did not name one. Deleted with the last
    /// system that uses it.
    _own_spill_dir: Option<Arc<tempfile::TempDir>>,
    /// Additional folders that may be read.
    readable: Vec<Utf8PathBuf>,
    environment: Vec<(String, String)>,
    sandbox: LazySandbox,
    sink: Option<EventSink>,
    clock: Arc<dyn Clock>,
    conversations: Arc<Mutex<Vec<StoredConversation>>>,
    /// Semaphores for agents whose definition limits concurrent runs.
    places_at_work: Arc<Mutex<BTreeMap<String, Arc<Semaphore>>>>,
}

/// A conversation in memory; the list is ordered by last use, oldest first.
struct StoredConversation {
    id: String,
    conversation: Arc<tokio::sync::Mutex<Conversation>>,
}

impl std::fmt::Debug for System {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("System").field("work_dir", &self.inner.work_dir).finish_non_exhaustive()
    }
}

/// The first request of a run, without sending it.
#[derive(Clone, Debug)]
pub struct RunPreview {
    pub model: ModelName,
    pub agent: AgentDefinition,
    pub messages: Vec<ModelMessage>,
    pub tools: Vec<ToolSpec>,
    /// The estimated number of tokens.
    pub tokens: u64,
    /// The exact body of the request.
    pub body: serde_json::Value,
}

/// The inputs of a run, top-level or delegated.
struct RunStart<'a> {
    agent: &'a str,
    task: String,
    options: RunOptions,
    events: EventEmitter,
    depth: u32,
    spending: Arc<RunBudget>,
    /// The chain of agents that delegated this run.
    above: Vec<String>,
    /// The model for agents that don't specify one.
    model: Option<ModelName>,
    asked: AgentOrigin,
    /// The effect limit of the delegating agent.
    limit: EffectLimit,
}

/// The origin of a request for an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentOrigin {
    /// The user named the agent.
    ByName,
    /// A skill, another agent or a capability selected it.
    Otherwise,
}

impl System {
    /// Starts building a system.
    ///
    /// ```
    /// use repertoire_agent::{AgentConfig, System};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let here = camino::Utf8PathBuf::try_from(dir.path().to_path_buf())?;
    /// # for name in ["agents", "skills"] { std::fs::create_dir(here.join(name))?; }
    /// let system = System::builder()
    ///     .agents_from(here.join("agents"))
    ///     .skills_from(here.join("skills"))
    ///     .work_dir(&here)
    ///     .config(AgentConfig::default())
    ///     .build()?;
    /// assert_eq!(system.agent_names(), ["default"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> SystemBuilder {
        SystemBuilder::default()
    }

    /// Returns a system with the same skills, tools and models in another working folder, with
    /// other readable folders: for instance in a worktree, which must read the repository. The
    /// state is shared, so copies are cheap.
    #[must_use]
    pub fn in_dir(&self, dir: impl Into<Utf8PathBuf>, readable: Vec<Utf8PathBuf>) -> System {
        let inner = SystemInner {
            work_dir: dir.into(),
            readable,
            conversations: Arc::default(),
            ..SystemInner::clone(&self.inner)
        };
        System { inner: Arc::new(inner) }
    }

    /// Returns a copy with an additional environment variable for all programs that it starts.
    #[must_use]
    pub fn with_variable(&self, name: &str, value: &str) -> System {
        let mut inner = SystemInner::clone(&self.inner);
        inner.environment.retain(|(there, _)| there != name);
        inner.environment.push((name.to_owned(), value.to_owned()));
        System { inner: Arc::new(inner) }
    }

    /// The sandbox that confines programs.
    pub fn sandbox(&self) -> &LazySandbox {
        &self.inner.sandbox
    }

    /// The workplace of a conversation's programs.
    pub fn workplace_of(&self, conversation: &str) -> RunWorkplace {
        self.conversation_workplace(conversation)
    }

    /// Runs an agent on a task to completion. Never fails: errors are in the report.
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
    pub async fn run(
        &self,
        agent: &str,
        task: impl Into<String>,
        options: RunOptions,
    ) -> RunReport {
        let limits = options.limits.unwrap_or(self.inner.config.limits);
        let spending = Arc::new(RunBudget::new(limits));
        self.run_with_origin(agent, task.into(), options, AgentOrigin::ByName, spending).await
    }

    /// Like [`System::run`], with an explicit origin and budget.
    #[tracing::instrument(
        name = "agent_run",
        skip_all,
        fields(agent = %agent, error = tracing::field::Empty)
    )]
    pub(crate) async fn run_with_origin(
        &self,
        agent: &str,
        task: String,
        options: RunOptions,
        asked: AgentOrigin,
        spending: Arc<RunBudget>,
    ) -> RunReport {
        self.refresh();
        let id = uuid::Uuid::now_v7().to_string();
        let events =
            EventEmitter::new(&id, agent, self.inner.clock.clone(), self.event_sink(&options));
        let (above, model) = (Vec::new(), None);
        let depth = 0;
        let limit = EffectLimit::default();
        let start =
            RunStart { agent, task, options, events, depth, spending, above, model, asked, limit };
        let report = self.execute(start).await;
        if report.error.is_some() {
            tracing::Span::current().record("error", true);
        }
        report
    }

    /// Returns the first request that [`System::run`] would send, without sending it.
    ///
    /// # Errors
    ///
    /// Returns an error if the run could not start.
    pub async fn preview(
        &self,
        agent: &str,
        task: impl Into<String>,
        options: RunOptions,
    ) -> Result<RunPreview, AgentRunError> {
        self.refresh();
        let events = EventEmitter::new(
            "preview",
            agent,
            self.inner.clock.clone(),
            self.event_sink(&options),
        );
        let spending = Arc::new(RunBudget::new(self.inner.config.limits));
        // A preview must not change the conversation, so it works on a copy.
        let id = options.conversation.clone().unwrap_or_else(|| "preview".to_owned());
        let known = self.conversation(&id).await.unwrap_or_else(|| Conversation::new(id));
        let guard = Arc::new(tokio::sync::Mutex::new(known)).lock_owned().await;
        let task = task.into();
        let (above, model, asked) = (Vec::new(), None, AgentOrigin::ByName);
        let (depth, limit) = (0, EffectLimit::default());
        let start =
            RunStart { agent, task, options, events, depth, spending, above, model, asked, limit };
        let mut turn = self.build_turn(&start, guard);
        turn.preview = true;
        self.run_turn(&mut turn).await;
        if let Some(error) = turn.outcome.take().and_then(|outcome| outcome.error) {
            return Err(error.into());
        }
        let Some(model) = turn.model.clone() else {
            let message = "no model was chosen".to_owned();
            return Err(crate::middleware::TurnError::Panicked(message).into());
        };
        let request = crate::middleware::model_call::request(&turn, &model);
        let body = repertoire_model::client::body(&request, model.info.as_ref());
        Ok(RunPreview {
            model: model.name.clone(),
            agent: (*turn.agent).clone(),
            messages: turn.conversation.messages.clone(),
            tokens: turn.conversation.estimate_tokens(),
            body,
            tools: std::mem::take(&mut turn.specs),
        })
    }

    /// Runs an agent on behalf of another one: with only its task, under the same limits and
    /// permissions. The effects of the new run are at most those of the parent.
    pub(crate) async fn run_subagent(
        &self,
        parent: &AgentRun,
        agent: &str,
        task: String,
        options: RunOptions,
    ) -> RunReport {
        let options = RunOptions {
            permissions: options.permissions.or_else(|| Some(parent.permissions())),
            asker: parent.asker.clone(),
            cancel: parent.cancel.child_token(),
            ignore_project_rules: options.ignore_project_rules || parent.is_strangers,
            ..options
        };
        let events = parent.events.for_subagent(agent);
        let spending = Arc::new(parent.spending.for_subagent());
        let depth = parent.depth + 1;
        let (above, model) = (parent.at_work.clone(), parent.model.clone());
        let (asked, limit) = (AgentOrigin::Otherwise, parent.limit());
        let start =
            RunStart { agent, task, options, events, depth, spending, above, model, asked, limit };
        // `execute` can call itself through this function, so its future must be boxed.
        let report = Box::pin(self.execute(start)).await;
        lock_unpoisoned(&parent.denials).extend(report.denials.iter().cloned());
        report
    }

    async fn execute(&self, start: RunStart<'_>) -> RunReport {
        let begun = tokio::time::Instant::now();
        let id = start.options.conversation.clone();
        let id = id.unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
        let (_place, guard) = match self.acquire_run(&start, &id).await {
            Ok(begun) => begun,
            Err(error) => return report_not_started(&start, id, error),
        };
        let mut turn = self.build_turn(&start, guard);
        let backend = start.options.backend.clone();
        let name = backend.as_ref().map(|backend| backend.name());
        // A backend's session only knows the turns that took place there. If another backend takes
        // over, drop the session, so that the whole conversation is sent.
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
        let mut report = empty_report(&start, id);
        match backend {
            None => {
                let (outcome, answered) = self.run_turns(&mut turn).await;
                report.iterations = answered;
                report.status = outcome.status;
                report.text = outcome.text;
                report.structured = outcome.structured;
                report.error = outcome.error.map(AgentRunError::from);
                let spent = start.spending.spent();
                report.usage = spent.usage;
                report.cost_usd = spent.known_cost_usd();
            }
            Some(backend) => self.run_backend(&mut turn, &*backend, &mut report).await,
        }
        report.denials.extend(turn.run.denials());
        report.duration = begun.elapsed();
        let ledger = std::mem::take(&mut *lock_unpoisoned(&turn.run.ledger));
        report.skills = ledger.held().iter().map(|held| held.activation.id.clone()).collect();
        turn.conversation.ledger = ledger;
        turn.conversation.todos = turn.run.state.todos();
        turn.run.workplace.clean_up();
        start.events.emit(run_finished_event(&report));
        report
    }

    /// Waits for a concurrency permit and for the conversation, at most until the deadline of the
    /// run.
    async fn acquire_run(
        &self,
        start: &RunStart<'_>,
        id: &str,
    ) -> Result<(Option<OwnedSemaphorePermit>, OwnedMutexGuard<Conversation>), TurnError> {
        let ready = async {
            let place = match self.agent_semaphore(start) {
                Some(places) => places.acquire_owned().await.ok(),
                None => None,
            };
            (place, self.lock_conversation(id, start.depth).await)
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

    /// Runs turns until there is an outcome. Also returns the number of turns that the model
    /// answered.
    async fn run_turns(&self, turn: &mut AgentTurn) -> (TurnOutcome, u32) {
        let mut answered = 0;
        loop {
            turn.iteration += 1;
            turn.response = None;
            self.run_turn(turn).await;
            answered += u32::from(turn.response.is_some());
            if let Some(outcome) = turn.outcome.take() {
                return (outcome, answered);
            }
        }
    }

    #[tracing::instrument(name = "agent_turn", skip_all, fields(iteration = turn.iteration.max(1)))]
    async fn run_turn(&self, turn: &mut AgentTurn) {
        turn.iteration = turn.iteration.max(1);
        // The error boundary is the first link, so errors are always in `turn.outcome`.
        let _ = MiddlewareNext::from_chain(&self.inner.chain).run(turn).await;
    }

    fn build_turn(
        &self,
        start: &RunStart<'_>,
        conversation: OwnedMutexGuard<Conversation>,
    ) -> AgentTurn {
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
        let run = AgentRun {
            conversation: conversation.id.clone(),
            depth: start.depth,
            cancel: options.cancel.clone(),
            spending: start.spending.clone(),
            asker: options.asker.clone(),
            state: tools::ToolState::hiding_paths(permissions.hidden_paths()),
            ledger: Mutex::new(conversation.ledger.clone()),
            permissions: Mutex::new(permissions),
            limit: Mutex::new(start.limit.clone()),
            is_strangers: start.options.ignore_project_rules,
            at_work: start.above.iter().cloned().chain([start.agent.to_owned()]).collect(),
            model: options.model.clone().or(start.model.clone()),
            ..AgentRun::new(
                self.clone(),
                self.conversation_workplace(&conversation.id),
                start.events.clone(),
            )
        };
        run.state.set_todos(conversation.todos.clone());
        for held in conversation.ledger.held() {
            if held.activation.origin.is_folder() {
                run.workplace.add_readable(held.activation.origin.dir());
            }
        }
        AgentTurn {
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

    /// Creates the workplace of a conversation, with its own folder for large output and for
    /// private files of programs.
    fn conversation_workplace(&self, conversation: &str) -> RunWorkplace {
        let inner = &self.inner;
        let spill_dir = inner.spill_dir.join(conversation_folder(conversation));
        let mut place = RunWorkplace::new(&inner.work_dir, spill_dir, inner.sandbox.clone());
        place.environment = inner.environment.clone();
        place.limits = inner.config.tools;
        for dir in &inner.readable {
            place.readable.add(dir);
        }
        let catalog = self.catalog();
        // Skills that are trusted because of their location must not be modified by the agents that
        // follow them.
        for root in catalog.roots() {
            let dir = inner.work_dir.join(&root.root.dir);
            let holds_more = inner.work_dir.starts_with(&dir) || inner.spill_dir.starts_with(&dir);
            if dir.starts_with(&inner.work_dir) && !holds_more && dir.is_dir() {
                place.protected.push(dir);
            }
        }
        place
    }

    fn event_sink(&self, options: &RunOptions) -> EventSink {
        let (all, own) = (self.inner.sink.clone(), options.on_event.clone());
        Arc::new(move |event: &AgentEvent| {
            for sink in [&all, &own].into_iter().flatten() {
                sink(event);
            }
        })
    }

    /// Returns the semaphore that limits runs of an agent. `None` if a delegating agent has the
    /// same name: it already holds a permit, and waiting for another could deadlock.
    fn agent_semaphore(&self, start: &RunStart<'_>) -> Option<Arc<Semaphore>> {
        let agent = start.agent;
        if start.above.iter().any(|above| above == agent) {
            return None;
        }
        let catalog = self.catalog();
        let places = catalog.get_agent(agent)?.skill.execution.max_concurrent?.max(1);
        let mut known = lock_unpoisoned(&self.inner.places_at_work);
        let semaphore = known
            .entry(agent.to_owned())
            .or_insert_with(|| Arc::new(Semaphore::new(places as usize)));
        Some(semaphore.clone())
    }

    /// Locks a conversation, or starts it. Conversations of sub-agents are not stored.
    async fn lock_conversation(&self, id: &str, depth: u32) -> OwnedMutexGuard<Conversation> {
        let begin = || Arc::new(tokio::sync::Mutex::new(Conversation::new(id)));
        let conversation = if depth > 0 {
            begin()
        } else {
            let mut kept = lock_unpoisoned(&self.inner.conversations);
            let found = kept.iter().position(|kept| kept.id == id);
            let known = found.map(|at| kept.remove(at).conversation);
            let conversation = known.unwrap_or_else(begin);
            kept.push(StoredConversation { id: id.to_owned(), conversation: conversation.clone() });
            if kept.len() > CONVERSATIONS_MAX {
                kept.remove(0);
            }
            conversation
        };
        conversation.lock_owned().await
    }

    /// Returns a copy of a conversation, for saving it to disk.
    pub async fn conversation(&self, id: &str) -> Option<Conversation> {
        let known = {
            let kept = lock_unpoisoned(&self.inner.conversations);
            kept.iter().find(|kept| kept.id == id).map(|kept| kept.conversation.clone())
        };
        match known {
            Some(conversation) => Some(conversation.lock().await.clone()),
            None => None,
        }
    }

    /// Restores a conversation that was saved to disk.
    pub fn restore_conversation(&self, conversation: Conversation) {
        let mut kept = lock_unpoisoned(&self.inner.conversations);
        kept.retain(|kept| kept.id != conversation.id);
        let id = conversation.id.clone();
        kept.push(StoredConversation {
            id,
            conversation: Arc::new(tokio::sync::Mutex::new(conversation)),
        });
    }

    /// Reloads changed files from disk. Every run does this at its start, so edits apply
    /// immediately.
    pub fn refresh(&self) {
        if !self.inner.is_fresh.swap(false, Ordering::Relaxed) {
            self.inner.library.reload();
        }
    }

    /// The current skills and agents.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.inner.library.snapshot()
    }

    /// Returns the selector for a catalog, reusing the previous one if possible.
    pub fn selector(&self, catalog: &Catalog) -> Arc<SkillSelector> {
        let mut held = lock_unpoisoned(&self.inner.selector);
        let settings = self.inner.config.auto_trigger;
        let selector = match held.take() {
            Some((generation, selector)) if generation == catalog.generation() => selector,
            Some((_, selector)) => Arc::new(selector.reload(catalog)),
            None => Arc::new((self.inner.make_selector)(catalog, settings)),
        };
        *held = Some((catalog.generation(), selector.clone()));
        selector
    }

    /// Returns true if there is a skill that a model may select.
    pub fn has_skills(&self) -> bool {
        self.catalog().entries().iter().any(is_offered)
    }

    /// The names of all agents, including the built-in default.
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

    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.inner.tools
    }

    pub fn config(&self) -> &AgentConfig {
        &self.inner.config
    }

    pub fn prices(&self) -> &ModelPrices {
        &self.inner.prices
    }

    pub fn provider(&self) -> &dyn ModelProvider {
        &*self.inner.provider
    }

    pub(crate) fn breakers(&self) -> &CircuitBreakers {
        &self.inner.breakers
    }

    pub fn clock(&self) -> &dyn Clock {
        &*self.inner.clock
    }

    /// A random number from 0 to 1, for jitter: callers that failed together should not retry
    /// together.
    pub(crate) fn random_jitter(&self) -> f64 {
        let bits = uuid::Uuid::now_v7().as_u128() as u32;
        f64::from(bits) / f64::from(u32::MAX)
    }
}

/// The name of a conversation's folder. Ids are chosen by callers and may not be valid file names.
fn conversation_folder(conversation: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if !conversation.is_empty() && conversation.len() <= 64 && conversation.chars().all(is_plain) {
        return conversation.to_owned();
    }
    ContentDigest::hash_bytes(conversation.as_bytes()).to_string().replace(':', "-")
}

/// A report without results yet.
fn empty_report(start: &RunStart<'_>, conversation: String) -> RunReport {
    RunReport {
        run: start.events.run().to_owned(),
        conversation,
        status: AgentRunStatus::Failed,
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

/// Returns a warning if the task contains invisible characters. Tasks often quote untrusted text,
/// so these are removed.
fn warning_of_invisible_characters(task: &str) -> Option<EventKind> {
    let summary = InvisibleSummary::count_in(task);
    (!summary.is_empty()).then(|| {
        let message = format!("invisible characters were removed from the task: {summary}");
        EventKind::Warning { message }
    })
}

/// The report of a run that could not start before its deadline or was cancelled.
fn report_not_started(start: &RunStart<'_>, conversation: String, error: TurnError) -> RunReport {
    let (status, error) = (error.status(), Some(error.into()));
    let duration = start.spending.elapsed();
    let report = RunReport { status, error, duration, ..empty_report(start, conversation) };
    start.events.emit(run_finished_event(&report));
    report
}

fn run_finished_event(report: &RunReport) -> EventKind {
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
