//! The state shared by all runs: agents, skills, tools, models, limits. This is the entry point of
//! the library. `execution` carries a run out, and `conversations` keeps those in memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use camino::Utf8PathBuf;
use repertoire_model::breaker::CircuitBreakers;
use repertoire_model::prices::ModelPrices;
use repertoire_model::{ModelMessage, ModelName, ModelProvider, ToolSpec};
use repertoire_select::SkillSelector;
use repertoire_skill::catalog::Catalog;
use repertoire_skill::library::SkillLibrary;
use repertoire_skill::render::catalog::is_offered;
use tokio::sync::Semaphore;

use crate::config::AgentConfig;
use crate::conversation::Conversation;
use crate::definition::{AgentDefinition, DEFAULT_AGENT};
use crate::effect::EffectLimit;
use crate::event::{EventEmitter, EventSink};
use crate::middleware::TurnMiddleware;
use crate::run::{AgentRun, lock_unpoisoned};
use crate::spending::RunBudget;
use crate::tool::Tool;
use repertoire_sandbox::confinement::LazySandbox;
use repertoire_sandbox::workplace::RunWorkplace;
use repertoire_text::clock::Clock;

mod backend_run;
mod builder;
mod conversations;
mod execution;
mod options;

pub use builder::{SelectorFactory, SystemBuildError, SystemBuilder};
use conversations::StoredConversation;
use execution::RunStart;
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
