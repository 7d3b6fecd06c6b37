//! Does a piece of work on GitHub: runs the plan loop on a separate branch, and summarises the
//! result.

use std::collections::BTreeSet;

use repertoire_journal::run::{Limits, Run, RunStatus, Step};
use repertoire_journal::{ClaimRules, Journal, JournalError, NewRun, QueueWorker, RunId, RunKind};
use repertoire_plan::document::TaskMark;
use tokio_util::sync::CancellationToken;

use super::RunConclusion;
use repertoire_checks::declared::CheckStatus;
use repertoire_checks::recover::FailureClass;
use repertoire_git::repo::{GitClient, GitError, GitObjectId};
use repertoire_plan::{
    CheckResultSummary, DriveError, PlanRequest, PlanRunner, PlanState, PlanStepResult, RunFolders,
};

/// A piece of work.
#[derive(Clone, Debug)]
pub(super) struct WorkPiece {
    /// The name shown to people.
    pub(super) name: String,
    /// The request to the plan loop.
    pub(super) request: PlanRequest,
    /// The commit on which work starts.
    pub(super) start: GitObjectId,
    pub(super) limits: Limits,
}

/// The result of a piece of work.
#[derive(Clone, Debug)]
pub(super) struct WorkResult {
    pub(super) run: Run,
    pub(super) conclusion: RunConclusion,
    pub(super) reason: String,
    /// The class of the failure, if there was one.
    pub(super) class: Option<FailureClass>,
    /// The final answer of the agent.
    pub(super) answer: Option<String>,
    /// The results of the checks on the last commit, as text.
    pub(super) checks: Option<String>,
    /// The last commit, if anything was changed.
    pub(super) head: Option<GitObjectId>,
}

/// The reason a piece of work could not be started or recorded.
#[derive(Debug, thiserror::Error)]
pub(super) enum WorkError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Base(#[from] crate::base::BaseError),
    #[error(transparent)]
    Worktree(#[from] repertoire_git::worktree::WorktreeError),
    #[error(transparent)]
    Checks(#[from] repertoire_checks::declared::CheckError),
    #[error(transparent)]
    Setup(#[from] repertoire_plan::worktree_setup::SetupError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The lease of the run was lost.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// The request cannot be serialised.
    #[error("what is asked for cannot be written down: {0}")]
    Request(#[from] serde_json::Error),
    /// Another worker claimed the run.
    #[error("somebody else took the run {0} before it was begun")]
    Taken(RunId),
}

/// The dependencies for doing work.
#[derive(Clone, Copy)]
pub(super) struct WorkContext<'a> {
    pub(super) journal: &'a Journal,
    pub(super) runner: &'a PlanRunner,
    pub(super) worker: &'a QueueWorker,
    /// The repository, in the folder from which skills and configuration are read.
    pub(super) checkout: &'a GitClient,
    /// Called for every run before it starts.
    pub(super) on_run: &'a (dyn Fn(&RunId) + Sync),
}

impl WorkContext<'_> {
    /// Does a piece of work.
    pub(super) async fn do_work(
        &self,
        piece: WorkPiece,
        shutdown: &CancellationToken,
    ) -> Result<WorkResult, WorkError> {
        let id = RunId::new();
        // The plan loop starts from a branch, but the commit may not be on one.
        let start = format!("repertoire-start/{}", id.short());
        self.checkout
            .set_branch(&start, &piece.start, None, "where a run on GitHub begins")
            .await?;
        let worked = self.work_from(id, &start, piece, shutdown).await;
        // A leftover branch does no harm.
        let _ = self.checkout.delete_branch(&start).await;
        worked
    }

    async fn work_from(
        &self,
        id: RunId,
        start: &str,
        piece: WorkPiece,
        shutdown: &CancellationToken,
    ) -> Result<WorkResult, WorkError> {
        let request = PlanRequest {
            base_branch: Some(start.to_owned()),
            // The base checkout is separate, so changes in it are not a user's work.
            allow_dirty: true,
            ..piece.request
        };
        let new = NewRun {
            id: id.clone(),
            kind: RunKind::Task.as_str().to_owned(),
            name: piece.name,
            workspace: self.checkout.dir().to_string(),
            // Only this process has the checkout, so no other worker may claim the run.
            labels: BTreeSet::from([format!("github:{id}")]),
            priority: 0,
            limits: piece.limits,
            request: serde_json::to_value(&request)?,
        };
        self.journal.create(new).await?;
        (self.on_run)(&id);
        let mut worker = self.worker.clone();
        worker.kinds.insert(RunKind::Task.as_str().to_owned());
        worker.labels.insert(format!("github:{id}"));
        let claimed = self.journal.claim_run(&id, &worker, &ClaimRules::default()).await?;
        let claimed = claimed.ok_or_else(|| WorkError::Taken(id.clone()))?;
        let run = self.isolated_runner(&id).drive_run(claimed, shutdown).await?;
        let steps = self.journal.steps(&run.id).await?;
        let changed =
            run.worktree.as_ref().zip(steps.iter().rev().find_map(|step| step.head_after.clone()));
        let head = changed
            .filter(|(worktree, head)| worktree.base != *head)
            .and_then(|(_, head)| GitObjectId::parse(&head));
        let (conclusion, reason) = conclude_run(&run, &steps, self.has_failed(&run.id).await?);
        let class = failure_class(&run, conclusion);
        let answer = steps.iter().rev().find_map(answer_of_step);
        Ok(WorkResult {
            conclusion,
            reason,
            class,
            answer,
            checks: describe_checks(&steps),
            head,
            run,
        })
    }

    /// Returns the runner with a separate folder for learnings. Learnings of other runs may contain
    /// untrusted text, which must not reach other tasks.
    fn isolated_runner(&self, run: &RunId) -> PlanRunner {
        let learnings = self.runner.places.runs.join(run.as_str()).join("learnings");
        let places = RunFolders { learnings, ..self.runner.places.clone() };
        PlanRunner { places, ..self.runner.clone() }
    }

    /// Returns true if the loop gave up a task of the run.
    async fn has_failed(&self, run: &RunId) -> Result<bool, JournalError> {
        let (mut state, mut after) = (PlanState::default(), 0);
        loop {
            let page = self.journal.events(run, after, 0).await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            page.iter().for_each(|event| state.apply(&event.payload));
        }
        // Ignore tasks of a plan that failed in earlier runs.
        let has_failed = state.tasks_with_mark(TaskMark::Failed).any(|(_, task)| task.touched);
        Ok(has_failed)
    }
}

/// Returns the answer of the agent in an implementation step.
fn answer_of_step(step: &Step) -> Option<String> {
    let text = PlanStepResult::of_step(step).text?;
    let text = text.trim();
    (step.kind == "implementation" && !text.is_empty()).then(|| text.to_owned())
}

/// Describes the last checks.
fn describe_checks(steps: &[Step]) -> Option<String> {
    let last = steps.iter().rev().find(|step| step.kind == "verification")?;
    let all: Vec<String> =
        PlanStepResult::of_step(last).checks?.iter().map(describe_check).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn describe_check(check: &CheckResultSummary) -> String {
    let status = match check.status {
        CheckStatus::Passed => "passed",
        CheckStatus::Failed => "failed",
        CheckStatus::TimedOut => "timed out",
        CheckStatus::Skipped(_) => "skipped",
    };
    format!("{} {status}", check.name)
}

/// Converts the result of a plan run to a conclusion with a reason.
fn conclude_run(run: &Run, steps: &[Step], has_failed: bool) -> (RunConclusion, String) {
    let reason = run.reason.clone().unwrap_or_default();
    let is_answer = steps.last().is_some_and(|step| PlanStepResult::of_step(step).answered);
    match run.status {
        RunStatus::Completed if is_answer => {
            (RunConclusion::Answered, "nothing was changed".to_owned())
        }
        RunStatus::Completed => {
            (RunConclusion::Done, text_or(&reason, "plan, review and checks agree"))
        }
        RunStatus::Failed => (RunConclusion::Failed, text_or(&reason, "the run failed")),
        // A task that was given up leaves the run waiting for a person.
        RunStatus::Waiting if has_failed => (RunConclusion::Failed, last_failure(steps, &reason)),
        RunStatus::Waiting => (RunConclusion::Waiting, text_or(&reason, "a person has to decide")),
        RunStatus::Queued | RunStatus::Running => {
            (RunConclusion::Waiting, text_or(&reason, "it was stopped, and can be taken up again"))
        }
        RunStatus::Paused | RunStatus::Cancelled => {
            (RunConclusion::Waiting, text_or(&reason, "somebody stopped it"))
        }
    }
}

/// Returns the class of the failure, by what can be done about it.
fn failure_class(run: &Run, conclusion: RunConclusion) -> Option<FailureClass> {
    match (conclusion, run.status) {
        (RunConclusion::Failed, _) => Some(FailureClass::Substantive),
        // The run is deferred, or its worker was told to stop.
        (RunConclusion::Waiting, RunStatus::Queued | RunStatus::Running) => {
            Some(FailureClass::Transient)
        }
        (RunConclusion::Waiting, _) => Some(FailureClass::Permanent),
        _ => None,
    }
}

fn last_failure(steps: &[Step], or: &str) -> String {
    let reasons = steps.iter().rev().filter_map(|step| step.reason.clone());
    reasons.into_iter().find(|reason| !reason.is_empty()).unwrap_or_else(|| or.to_owned())
}

fn text_or(reason: &str, usual: &str) -> String {
    if reason.is_empty() { usual.to_owned() } else { reason.to_owned() }
}
