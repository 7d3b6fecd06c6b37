//! Executes a run: waiting for its turn, building it, its loop, and its report.

use std::sync::{Arc, Mutex};

use repertoire_model::ModelName;
use repertoire_select::Task;
use repertoire_text::invisible::{self, InvisibleSummary};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

use super::{AgentOrigin, AgentRunError, RunOptions, RunReport, System};
use crate::conversation::Conversation;
use crate::effect::EffectLimit;
use crate::event::{AgentEvent, AgentRunStatus, EventEmitter, EventKind, EventSink};
use crate::middleware::{AgentTurn, MiddlewareNext, TurnError, TurnOutcome};
use crate::run::{AgentRun, lock_unpoisoned};
use crate::spending::{LimitReached, RunBudget};
use crate::tools;

/// The inputs of a run, top-level or delegated.
pub(super) struct RunStart<'a> {
    pub(super) agent: &'a str,
    pub(super) task: String,
    pub(super) options: RunOptions,
    pub(super) events: EventEmitter,
    pub(super) depth: u32,
    pub(super) spending: Arc<RunBudget>,
    /// The chain of agents that delegated this run.
    pub(super) above: Vec<String>,
    /// The model for agents that don't specify one.
    pub(super) model: Option<ModelName>,
    pub(super) asked: AgentOrigin,
    /// The effect limit of the delegating agent.
    pub(super) limit: EffectLimit,
}

impl System {
    pub(super) async fn execute(&self, start: RunStart<'_>) -> RunReport {
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
    pub(super) async fn run_turn(&self, turn: &mut AgentTurn) {
        turn.iteration = turn.iteration.max(1);
        // The error boundary is the first link, so errors are always in `turn.outcome`.
        let _ = MiddlewareNext::from_chain(&self.inner.chain).run(turn).await;
    }

    pub(super) fn build_turn(
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

    pub(super) fn event_sink(&self, options: &RunOptions) -> EventSink {
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
