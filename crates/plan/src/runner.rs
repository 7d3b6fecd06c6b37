//! Drives one run, from claiming it until it stops.

use std::sync::Arc;

use crate::document::{self, PlanDocument};
use camino::{Utf8Path, Utf8PathBuf};
use repertoire_agent::{RunOptions, System};
use repertoire_journal::event::StepOutcome;
use repertoire_journal::run::{Run, RunStatus, RunStopRequest};
use repertoire_journal::{ClaimedRun, Event, Journal, JournalError, Payload, RunLease};
use repertoire_sandbox::workplace::RunWorkplace;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use self::heartbeat::{LeaseHeartbeat, StepStopReason};
use super::decide::{self, PlanDecision};
use super::learnings::LearningsFile;
use super::records::RunRecords;
use super::request::{PlanDeliveryMode, PlanRequest};
use super::skills;
use super::state::{PlanState, VerifiedAfter};
use super::watchdog::waiting_choices;
use crate::limits::PLAN_EVENTS_MAX;
use crate::worktree_setup::{SetupError, WorktreeSetup, set_up_worktree};
use repertoire_checks::declared::{self, CheckDefinition};
use repertoire_checks::memory::TriedFixes;
use repertoire_git::repo::{GitClient, GitError};
use repertoire_git::worktree::{
    BranchDelivery, BranchDeliveryResult, CheckoutRequirement, PreparedWorktree, RunWorktrees,
    WorktreeError, WorktreeOwner, WorktreePreparation, WorktreeRequest,
};

mod cleanup;
mod dead_letters;
mod finish;
mod heartbeat;
mod plan_file;
mod preview;
mod recover;
mod recovery_notes;
mod steps;

pub use preview::PlanPromptPreview;

/// Provides the agents and tools for runs.
pub trait PlanAgentProvider: Send + Sync {
    /// Sets up the agents for a run in its workspace.
    ///
    /// # Errors
    ///
    /// A message for the user about what is missing.
    fn agent_setup(
        &self,
        workspace: &Utf8Path,
        request: &PlanRequest,
    ) -> Result<PlanAgentSetup, String>;
}

/// The agents and tools that a run works with.
#[derive(Clone)]
pub struct PlanAgentSetup {
    /// Skills, tools and models of the workspace.
    pub system: System,
    /// The options for implementers.
    pub implementer: RunOptions,
    /// The options for reviewers.
    pub reviewer: RunOptions,
    /// The environment of git and of checks.
    pub environment: Vec<(String, String)>,
}

impl PlanAgentSetup {
    /// Git in a folder, confined by the sandbox of the workspace.
    pub(crate) fn git_in(&self, dir: &Utf8Path) -> GitClient {
        GitClient::new(dir, self.environment.clone(), self.system.sandbox().clone())
    }
}

/// The folders in which runs store their files.
#[derive(Clone, Debug)]
pub struct RunFolders {
    pub worktrees: Utf8PathBuf,
    /// Prompts, logs and reports, in one folder per run.
    pub runs: Utf8PathBuf,
    /// Learnings, in one file per workspace.
    pub learnings: Utf8PathBuf,
}

#[derive(Clone)]
pub struct PlanRunner {
    pub journal: Journal,
    pub agent_provider: Arc<dyn PlanAgentProvider>,
    pub places: RunFolders,
    /// An additional listener for agent events.
    pub on_agent_event: Option<repertoire_agent::event::EventSink>,
}

impl std::fmt::Debug for PlanRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner").field("places", &self.places).finish_non_exhaustive()
    }
}

/// The reason why a run was released before its end.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// Another worker has the run.
    #[error("the run was lost to another worker: {0}")]
    Lost(String),
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The run needs a person: something on disk is missing or wrong.
    #[error("{0}")]
    Stopped(String),
    /// The worker panicked. Another worker claims the run when the lease expires.
    #[error("the worker crashed: {0}")]
    Crashed(String),
}

impl From<GitError> for DriveError {
    fn from(error: GitError) -> Self {
        DriveError::Stopped(error.to_string())
    }
}

impl From<WorktreeError> for DriveError {
    fn from(error: WorktreeError) -> Self {
        match error {
            WorktreeError::Fenced { .. } => DriveError::Lost(error.to_string()),
            other => DriveError::Stopped(other.to_string()),
        }
    }
}

impl From<SetupError> for DriveError {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::Worktree(error) => error.into(),
            SetupError::Check(error) => DriveError::Stopped(error.to_string()),
        }
    }
}

impl From<std::io::Error> for DriveError {
    fn from(error: std::io::Error) -> Self {
        DriveError::Stopped(error.to_string())
    }
}

impl PlanRunner {
    /// Drives a claimed run until it ends, waits, pauses, or is released because of `shutdown`.
    ///
    /// # Errors
    ///
    /// Fails if the run was lost to another worker, or the journal cannot be written. The journal
    /// contains the progress so far.
    #[tracing::instrument(name = "plan_run", skip_all, fields(run = %claimed.run.id))]
    pub async fn drive_run(
        &self,
        claimed: ClaimedRun,
        shutdown: &CancellationToken,
    ) -> Result<Run, DriveError> {
        let ClaimedRun { run, lease } = claimed;
        let work = shutdown.child_token();
        let heartbeat = LeaseHeartbeat::start(self.journal.clone(), lease.clone(), work.clone());
        // On the heap: a run's future holds those of its steps, which are too large for a stack.
        let driven = Box::pin(self.resume_run(&run, &lease, &work, shutdown, &heartbeat)).await;
        let stopped = match driven {
            Err(DriveError::Stopped(reason)) => reason,
            Err(error) => return Err(error),
            Ok(()) => {
                let run = self.current_run(&run).await?;
                self.settle_letter(&run, &lease.worker).await;
                return Ok(run);
            }
        };
        // A problem that a person has to fix makes the run wait, not fail.
        let choices = ["put that right, then resume it", "cancel it"].map(str::to_owned).to_vec();
        let waiting = Payload::RunWaiting { reason: stopped, choices };
        let mut payloads = Vec::new();
        if let Some(step) = self.current_run(&run).await?.open_step {
            payloads
                .push(Payload::StepInterrupted { step, reason: "it could not go on".to_owned() });
        }
        payloads.push(waiting);
        let run = self.journal.append(&lease, payloads).await?;
        self.settle_letter(&run, &lease.worker).await;
        Ok(run)
    }

    async fn current_run(&self, run: &Run) -> Result<Run, DriveError> {
        Ok(self.journal.run(&run.id).await?.unwrap_or_else(|| run.clone()))
    }

    async fn resume_run(
        &self,
        run: &Run,
        lease: &RunLease,
        work: &CancellationToken,
        shutdown: &CancellationToken,
        heartbeat: &LeaseHeartbeat,
    ) -> Result<(), DriveError> {
        let request: PlanRequest =
            serde_json::from_value(run.request.clone()).map_err(|error| {
                DriveError::Stopped(format!("what the run was asked for cannot be read: {error}"))
            })?;
        let workspace = Utf8Path::new(&run.workspace);
        let agent_setup =
            self.agent_provider.agent_setup(workspace, &request).map_err(DriveError::Stopped)?;
        let repository = agent_setup.git_in(workspace);
        let worktrees = RunWorktrees::new(repository, self.places.worktrees.clone());
        cleanup::kill_left_processes(lease).await;
        let worktree = worktrees.prepare_worktree(&worktree_request(run, lease, &request)).await?;
        let events = all_events(&self.journal, run).await?;
        let readable = vec![worktree.common_dir.clone()];
        let system = agent_setup.system.in_dir(&worktree.dir, readable);
        let system = system.with_variable(cleanup::MARK, &cleanup::process_mark(lease));
        let mut session = PlanRunSession {
            runner: self,
            lease,
            work,
            shutdown,
            heartbeat,
            run: Run { seq: events.last().map_or(run.seq, |event| event.seq), ..run.clone() },
            state: PlanState::replay(&events),
            git: worktree.git.clone(),
            records: RunRecords::open(&self.places.runs, run.id.as_str())?,
            learnings: LearningsFile::new(&self.places.learnings, &run.workspace),
            agent_setup: PlanAgentSetup { system, ..agent_setup },
            plan_text: String::new(),
            red: None,
            tried: TriedFixes::default(),
            request,
            worktrees,
            worktree,
        };
        session.begin_run().await?;
        session.run_steps().await
    }
}

fn worktree_request<'a>(
    run: &'a Run,
    lease: &RunLease,
    request: &'a PlanRequest,
) -> WorktreeRequest<'a> {
    WorktreeRequest {
        run: run.id.as_str(),
        name: &run.name,
        base: request.base_branch.clone(),
        branch_prefix: &request.branch_prefix,
        owner: WorktreeOwner { worker: lease.worker.clone(), token: lease.token },
        checkout: if request.allow_dirty {
            CheckoutRequirement::Any
        } else {
            CheckoutRequirement::Clean
        },
    }
}

fn describe_preparation(how: &WorktreePreparation) -> String {
    match how {
        WorktreePreparation::Created => "created".to_owned(),
        WorktreePreparation::Adopted => "adopted".to_owned(),
        WorktreePreparation::Repaired(what) => format!("repaired: {}", what.join("; ")),
    }
}

/// The name of a branch without the prefix of run branches.
fn plain_name(branch: &str) -> String {
    branch.rsplit('/').next().unwrap_or(branch).to_owned()
}

/// Delivers the work of a run as requested, and returns the event to record.
///
/// # Errors
///
/// Fails if it cannot be merged. Nothing has changed then.
pub async fn deliver_work(
    worktrees: &RunWorktrees,
    worktree: &PreparedWorktree,
    ending: PlanDeliveryMode,
    name: &str,
) -> Result<Payload, WorktreeError> {
    let into = worktree.base_branch.clone();
    let wanted = match ending {
        PlanDeliveryMode::Keep => BranchDelivery::Keep,
        PlanDeliveryMode::Branch => BranchDelivery::Branch { name: plain_name(&worktree.branch) },
        PlanDeliveryMode::Merge => BranchDelivery::Merge { into },
        PlanDeliveryMode::Squash => BranchDelivery::Squash { into, message: name.to_owned() },
    };
    let (branch, commit) = match worktrees.deliver_branch(worktree, &wanted).await? {
        BranchDeliveryResult::Kept { branch } => (branch, None),
        BranchDeliveryResult::Merged { into, oid }
        | BranchDeliveryResult::Branched { name: into, oid } => (into, Some(oid)),
        BranchDeliveryResult::AlreadyMerged { into } => (into, None),
        BranchDeliveryResult::Nothing => (worktree.base_branch.clone(), None),
    };
    Ok(Payload::Delivered {
        strategy: ending.as_str().to_owned(),
        branch,
        commit: commit.map(|oid| oid.as_str().to_owned()),
    })
}

pub(super) async fn all_events(journal: &Journal, run: &Run) -> Result<Vec<Event>, JournalError> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.seq);
        let page = journal.events(&run.id, after, EVENTS_AT_ONCE).await?;
        let is_last = page.len() < EVENTS_AT_ONCE as usize;
        events.extend(page);
        if is_last {
            return Ok(events);
        }
    }
}

/// Page size for reading events.
const EVENTS_AT_ONCE: u32 = 1_000;

/// A run that is being driven.
struct PlanRunSession<'a> {
    runner: &'a PlanRunner,
    lease: &'a RunLease,
    /// Cancels the current step.
    work: &'a CancellationToken,
    /// Requests the release of the run.
    shutdown: &'a CancellationToken,
    heartbeat: &'a LeaseHeartbeat,
    run: Run,
    request: PlanRequest,
    state: PlanState,
    agent_setup: PlanAgentSetup,
    worktrees: RunWorktrees,
    worktree: PreparedWorktree,
    git: GitClient,
    records: RunRecords,
    learnings: LearningsFile,
    /// The plan as the engine last wrote it.
    plan_text: String,
    /// The last results of the checks, if they failed.
    red: Option<declared::CheckRunVerdict>,
    /// Fixes tried since this worker claimed the run.
    tried: TriedFixes,
}

impl PlanRunSession<'_> {
    /// Records events: first in the journal, then in the state.
    async fn append(&mut self, payloads: Vec<Payload>) -> Result<(), DriveError> {
        let learnt = payloads.iter().filter_map(|payload| match payload {
            Payload::Learned { note, .. } => Some(note.clone()),
            _ => None,
        });
        let learnt: Vec<String> = learnt.collect();
        let seen = self.run.seq;
        self.run = self.store_events(payloads).await.map_err(drive_error)?;
        // Also applies events that people added in the meantime, which come first.
        self.apply_new_events(seen).await?;
        if !learnt.is_empty() {
            self.learnings.add(&learnt)?;
        }
        Ok(())
    }

    /// Appends events to the journal. If it refuses them because of memory events, retries without
    /// these: otherwise the step could never be recorded, and every worker would fail in the same
    /// way.
    async fn store_events(&self, mut payloads: Vec<Payload>) -> Result<Run, JournalError> {
        let journal = &self.runner.journal;
        let whole = journal.append(self.lease, payloads.clone()).await;
        match whole {
            Err(error @ (JournalError::TooLarge { .. } | JournalError::Refused { .. }))
                if payloads.iter().any(is_memory_event) =>
            {
                payloads.retain(|payload| !is_memory_event(payload));
                let data = json!({ "reason": error.to_string() });
                payloads.insert(0, Payload::Note { name: "not_remembered".to_owned(), data });
                journal.append(self.lease, payloads).await
            }
            whole => whole,
        }
    }

    /// Confirms the lease before writing to the branch: a worker that was suspended while an agent
    /// worked may have lost the run.
    async fn check_lease(&self) -> Result<(), DriveError> {
        self.runner.journal.renew_lease(self.lease).await.map(drop).map_err(drive_error)
    }

    async fn begin_run(&mut self) -> Result<(), DriveError> {
        let mut payloads = vec![Payload::RunStarted { worker: self.lease.worker.clone() }];
        if self.run.worktree.is_none() {
            payloads.push(Payload::WorktreeProviderSelected { provider: "git".to_owned() });
        }
        payloads.push(Payload::WorktreeCreated {
            path: self.worktree.dir.to_string(),
            branch: self.worktree.branch.clone(),
            base_branch: self.worktree.base_branch.clone(),
            base: self.worktree.base_oid.as_str().to_owned(),
            how: describe_preparation(&self.worktree.how),
        });
        if self.request.skills.enabled {
            payloads.extend(skills::discovery_events(&self.agent_setup.system.catalog()));
        }
        self.append(std::mem::take(&mut payloads)).await?;
        self.revert_interrupted_recovery().await?;
        let mut of_plan = self.take_up_plan()?;
        let hooks = self.git.hooks_left_out().await?;
        if !hooks.is_empty() && self.run.worktree.is_none() {
            let data = json!({ "hooks": hooks });
            payloads.push(Payload::Note { name: "hooks_left_out".to_owned(), data });
        }
        if !payloads.is_empty() {
            self.append(payloads).await?;
        }
        while !of_plan.is_empty() {
            let rest = of_plan.split_off(of_plan.len().min(PLAN_EVENTS_MAX));
            self.append(std::mem::replace(&mut of_plan, rest)).await?;
        }
        self.clear_half_written().await?;
        self.set_up().await?;
        self.keep_plan(&[]).await
    }

    /// Sets up a new worktree: copies files and runs the setup command.
    async fn set_up(&mut self) -> Result<(), DriveError> {
        let check =
            self.request.setup.as_ref().map(|command| CheckDefinition::new("setup", command));
        let setup = WorktreeSetup { copy: self.request.copy.clone(), check };
        let place = self.check_workplace();
        let done = set_up_worktree(
            &self.worktrees,
            &mut self.worktree,
            &setup,
            &place,
            self.work,
            &|_| {},
        )
        .await?;
        match done.verdict.filter(|verdict| !verdict.green) {
            // The setup was cancelled, not failed. The next worker runs it again.
            _ if self.work.is_cancelled() => Ok(()),
            Some(verdict) => Err(DriveError::Stopped(declared::describe_setup_failure(&verdict))),
            None => Ok(()),
        }
    }

    /// The workplace of checks. Does not contain variables that give an agent access to its model.
    fn check_workplace(&self) -> RunWorkplace {
        let mut place = self.agent_setup.system.workplace_of(self.run.id.as_str());
        place.environment = self.agent_setup.environment.clone();
        place.environment.push((cleanup::MARK.to_owned(), cleanup::process_mark(self.lease)));
        place
    }

    fn parse_plan(&self) -> PlanDocument {
        document::parse_plan(&self.plan_text, &self.request.plan)
    }

    /// Runs step after step until the run stops.
    async fn run_steps(&mut self) -> Result<(), DriveError> {
        loop {
            match self.heartbeat.stop_reason() {
                Some(StepStopReason::Lost(reason)) => return Err(DriveError::Lost(reason)),
                Some(StepStopReason::Cancel) => return self.end_cancelled().await,
                None => {}
            }
            let run = self.runner.journal.run(&self.run.id).await?;
            let wish = run.as_ref().and_then(|run| run.wish);
            if let Some(run) = run {
                let seen = self.run.seq;
                self.run = run;
                self.apply_new_events(seen).await?;
            }
            match wish {
                Some(RunStopRequest::Cancel) => return self.end_cancelled().await,
                Some(RunStopRequest::Pause) => {
                    let reason = "somebody paused it".to_owned();
                    return self.end_run(Payload::RunPaused { reason }).await;
                }
                None if self.shutdown.is_cancelled() => return self.release_run().await,
                None => {}
            }
            let next = decide::decide_next(&self.state, &self.parse_plan(), &self.request);
            if let Some(reason) =
                over_budget(&self.run, &next).or_else(|| self.unpriced_reason(&next))
            {
                let choices =
                    vec!["resume it with higher limits".to_owned(), "cancel it".to_owned()];
                return self.end_run(Payload::RunWaiting { reason, choices }).await;
            }
            match next {
                PlanDecision::Implement { task } => Box::pin(self.implement_task(task)).await?,
                PlanDecision::Verify { task, after } => {
                    Box::pin(self.verify_work(task, after)).await?;
                }
                PlanDecision::Recover { task, after } => {
                    Box::pin(self.recover_checks(task, after)).await?;
                }
                PlanDecision::Review { task } => Box::pin(self.review_task(task)).await?,
                PlanDecision::Complete if self.is_as_checked().await? => {
                    return self.complete_run().await;
                }
                PlanDecision::Complete => {
                    Box::pin(self.verify_work(None, VerifiedAfter::Everything)).await?;
                }
                PlanDecision::Pause { reason } => {
                    return self.end_run(Payload::RunPaused { reason }).await;
                }
                PlanDecision::Fail { reason } => {
                    return self.end_run(Payload::RunFailed { reason }).await;
                }
                PlanDecision::Wait { reason } => {
                    return self
                        .end_run(Payload::RunWaiting { reason, choices: waiting_choices() })
                        .await;
                }
            }
            if self.run.status != RunStatus::Running {
                return self.record_report().await;
            }
        }
    }

    /// Applies the events after `seen` that other processes have recorded.
    async fn apply_new_events(&mut self, mut seen: u64) -> Result<(), DriveError> {
        while seen < self.run.seq {
            let missed = self.runner.journal.events(&self.run.id, seen, EVENTS_AT_ONCE).await?;
            let Some(last) = missed.last() else { break };
            seen = last.seq;
            missed.iter().for_each(|event| self.state.apply(&event.payload));
        }
        Ok(())
    }

    /// The reason to wait if a cost limit cannot be enforced, because some usage has no price.
    /// Resuming the run accepts that.
    fn unpriced_reason(&self, next: &PlanDecision) -> Option<String> {
        let is_agent = matches!(next, PlanDecision::Implement { .. } | PlanDecision::Review { .. });
        let is_unknown = is_agent && self.run.spent.unpriced && self.state.iterations_seen == 0;
        let max = self.run.limits.cost_usd.filter(|_| is_unknown)?;
        Some(format!(
            "budget:cost: some of the work has no known price, so the limit of ${max} cannot be kept; resume it if that \
             is all right, with a limit in tokens or time"
        ))
    }

    /// Returns true if `HEAD` is still the commit that the final checks ran on. A person may have
    /// resolved a conflict since.
    async fn is_as_checked(&self) -> Result<bool, DriveError> {
        let checked = self.state.last_step().and_then(|past| past.began_on.clone());
        Ok(checked.as_deref() == Some(self.git.head_commit().await?.as_str()))
    }

    async fn end_cancelled(&mut self) -> Result<(), DriveError> {
        self.end_run(Payload::RunCancelled { reason: "somebody cancelled it".to_owned() }).await
    }

    async fn release_run(&mut self) -> Result<(), DriveError> {
        self.runner.journal.release_run(self.lease, "the worker stops").await.map_err(drive_error)
    }

    /// Records the step as stopped if the run was cancelled or the worker shuts down. Returns true
    /// if so.
    async fn record_if_stopped(
        &mut self,
        finished: impl Fn(StepOutcome) -> Payload,
    ) -> Result<bool, DriveError> {
        self.record_if_stopped_with(Vec::new(), finished).await
    }

    /// Like [`Session::stopped`], but records `payloads` as well.
    async fn record_if_stopped_with(
        &mut self,
        mut payloads: Vec<Payload>,
        finished: impl Fn(StepOutcome) -> Payload,
    ) -> Result<bool, DriveError> {
        match self.heartbeat.stop_reason() {
            Some(StepStopReason::Lost(reason)) => return Err(DriveError::Lost(reason)),
            None if !self.shutdown.is_cancelled() => return Ok(false),
            Some(StepStopReason::Cancel) | None => {}
        }
        payloads.push(finished(StepOutcome::Stopped));
        self.append(payloads).await?;
        Ok(true)
    }
}

/// Returns true for events that only feed the memory of failures and fixes.
fn is_memory_event(payload: &Payload) -> bool {
    matches!(payload, Payload::FailureSeen { .. } | Payload::FixTried { .. })
}

fn drive_error(error: JournalError) -> DriveError {
    match error {
        JournalError::Fenced { .. } => DriveError::Lost(error.to_string()),
        // Any other worker would get the same error, so a person has to look at the run.
        JournalError::TooLarge { .. }
        | JournalError::Fold { .. }
        | JournalError::Refused { .. } => DriveError::Stopped(error.to_string()),
        other => other.into(),
    }
}

/// The limit that the next step would exceed, if any. Checks cost time but no money, and ending a
/// run costs neither.
fn over_budget(run: &Run, next: &PlanDecision) -> Option<String> {
    let (limits, spent) = (&run.limits, &run.spent);
    let is_agent = matches!(next, PlanDecision::Implement { .. } | PlanDecision::Review { .. });
    if let Some(max) = limits.cost_usd.filter(|max| is_agent && spent.cost_usd() >= *max) {
        return Some(format!("budget:cost: ${:.4} of ${max} is spent", spent.cost_usd()));
    }
    if let Some(max) = limits.tokens.filter(|max| is_agent && spent.total_tokens() >= *max) {
        return Some(format!("budget:tokens: {} of {max} tokens are used", spent.total_tokens()));
    }
    let is_step =
        is_agent || matches!(next, PlanDecision::Verify { .. } | PlanDecision::Recover { .. });
    let max = limits.time_ms.filter(|max| is_step && spent.time_ms >= *max)?;
    Some(format!("budget:time: {} of {} s at work are used", spent.time_ms / 1000, max / 1000))
}
