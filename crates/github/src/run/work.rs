//! One piece of work on GitHub: the plan loop does it, on a branch of its own, and says what came of it.

use std::collections::BTreeSet;

use repertoire_plan::document::Mark;
use repertoire_journal::run::{Limits, Run, RunStatus, Step};
use repertoire_journal::{Journal, JournalError, NewRun, Rules, RunId, Worker};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Conclusion;
use repertoire_git::repo::{Git, GitError, Oid};
use repertoire_checks::recover::Class;
use repertoire_plan::{DriveError, KIND, Places, PlanRequest, PlanState, Runner};

/// A piece of work.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// What people know it by.
    pub(super) name: String,
    /// What the plan loop is asked for.
    pub(super) request: PlanRequest,
    /// The commit that it begins on.
    pub(super) start: Oid,
    /// What it may use.
    pub(super) limits: Limits,
}

/// What came of it.
#[derive(Clone, Debug)]
pub(super) struct Worked {
    pub(super) run: Run,
    pub(super) conclusion: Conclusion,
    pub(super) reason: String,
    /// What kind of failure it was, if it was one.
    pub(super) class: Option<Class>,
    /// What the agent said in the end.
    pub(super) answer: Option<String>,
    /// The checks on the last commit, in words.
    pub(super) checks: Option<String>,
    /// The last commit, if anything was changed.
    pub(super) head: Option<Oid>,
}

/// Why a piece of work could not be begun or recorded.
#[derive(Debug, thiserror::Error)]
pub(super) enum WorkError {
    /// The repository cannot be used.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The configuration of the base branch cannot be used.
    #[error(transparent)]
    Base(#[from] crate::base::BaseError),
    /// The worktree cannot be used.
    #[error(transparent)]
    Worktree(#[from] repertoire_git::worktree::WorktreeError),
    /// The checks cannot be run.
    #[error(transparent)]
    Checks(#[from] repertoire_checks::declared::CheckError),
    /// The worktree cannot be set up.
    #[error(transparent)]
    Setup(#[from] repertoire_plan::worktree_setup::SetupError),
    /// A file cannot be written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The run was lost.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// What is asked for cannot be written down.
    #[error("what is asked for cannot be written down: {0}")]
    Request(#[from] serde_json::Error),
    /// Somebody else has the run.
    #[error("somebody else took the run {0} before it was begun")]
    Taken(RunId),
}

/// Who does the work, and where it is recorded.
#[derive(Clone, Copy)]
pub(super) struct Bench<'a> {
    pub(super) journal: &'a Journal,
    pub(super) runner: &'a Runner,
    pub(super) worker: &'a Worker,
    /// The repository, as the folder that skills and configuration are read from.
    pub(super) house: &'a Git,
    /// Hears of every run before it begins.
    pub(super) on_run: &'a (dyn Fn(&RunId) + Sync),
}

impl Bench<'_> {
    /// Does a piece of work.
    pub(super) async fn work(
        &self,
        piece: Piece,
        shutdown: &CancellationToken,
    ) -> Result<Worked, WorkError> {
        let id = RunId::new();
        // The loop begins on branches, and the commit may be on none.
        let start = format!("repertoire-start/{}", id.short());
        self.house.set_branch(&start, &piece.start, None, "where a run on GitHub begins").await?;
        let worked = self.work_from(id, &start, piece, shutdown).await;
        // A leftover branch is untidy and harms nothing.
        let _ = self.house.delete_branch(&start).await;
        worked
    }

    async fn work_from(
        &self,
        id: RunId,
        start: &str,
        piece: Piece,
        shutdown: &CancellationToken,
    ) -> Result<Worked, WorkError> {
        let request = PlanRequest {
            base_branch: Some(start.to_owned()),
            // The house is a checkout of its own: what lies there is nobody's work.
            allow_dirty: true,
            ..piece.request
        };
        let new = NewRun {
            id: id.clone(),
            kind: KIND.to_owned(),
            name: piece.name,
            workspace: self.house.dir().to_string(),
            // Nobody else has this checkout.
            labels: BTreeSet::from([format!("github:{id}")]),
            priority: 0,
            limits: piece.limits,
            request: serde_json::to_value(&request)?,
        };
        self.journal.create(new).await?;
        (self.on_run)(&id);
        let mut worker = self.worker.clone();
        worker.kinds.insert(KIND.to_owned());
        worker.labels.insert(format!("github:{id}"));
        let claimed = self.journal.claim_run(&id, &worker, &Rules::default()).await?;
        let claimed = claimed.ok_or_else(|| WorkError::Taken(id.clone()))?;
        let run = self.alone(&id).drive(claimed, shutdown).await?;
        let steps = self.journal.steps(&run.id).await?;
        let changed =
            run.worktree.as_ref().zip(steps.iter().rev().find_map(|step| step.head_after.clone()));
        let head = changed
            .filter(|(worktree, head)| worktree.base != *head)
            .and_then(|(_, head)| Oid::parse(&head));
        let (conclusion, reason) = conclude(&run, &steps, self.has_failed(&run.id).await?);
        let class = class(&run, conclusion);
        let answer = steps.iter().rev().find_map(said);
        Ok(Worked { conclusion, reason, class, answer, checks: checks(&steps), head, run })
    }

    /// Who does the work, without what other runs wrote down for later ones: that may be words of a stranger, which nobody
    /// but their own task may hear.
    fn alone(&self, run: &RunId) -> Runner {
        let learnings = self.runner.places.runs.join(run.as_str()).join("learnings");
        let places = Places { learnings, ..self.runner.places.clone() };
        Runner { places, ..self.runner.clone() }
    }

    /// Whether the loop gave a task of the run up.
    async fn has_failed(&self, run: &RunId) -> Result<bool, JournalError> {
        let (mut state, mut after) = (PlanState::default(), 0);
        loop {
            let page = self.journal.events(run, after, 0).await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            page.iter().for_each(|event| state.apply(&event.payload));
        }
        // A plan may have tasks that failed long ago.
        let has_failed = state.marked(Mark::Failed).any(|(_, task)| task.touched);
        Ok(has_failed)
    }
}

/// What an agent said in an implementation.
fn said(step: &Step) -> Option<String> {
    let text = step.result.get("text").and_then(Value::as_str)?.trim();
    (step.kind == "implementation" && !text.is_empty()).then(|| text.to_owned())
}

/// The last checks, in words.
fn checks(steps: &[Step]) -> Option<String> {
    let last = steps.iter().rev().find(|step| step.kind == "verification")?;
    let one = |check: &Value| {
        let name = check.get("name")?.as_str()?;
        let status = check.get("status")?;
        let status =
            status.as_str().map_or_else(|| "skipped".to_owned(), |word| word.replace('_', " "));
        Some(format!("{name} {status}"))
    };
    let all: Vec<String> = last.result.get("checks")?.as_array()?.iter().filter_map(one).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// How a run of the plan loop ended, as people on GitHub understand it.
fn conclude(run: &Run, steps: &[Step], has_failed: bool) -> (Conclusion, String) {
    let reason = run.reason.clone().unwrap_or_default();
    let is_answer =
        steps.last().is_some_and(|step| step.result.get("answered") == Some(&Value::Bool(true)));
    match run.status {
        RunStatus::Completed if is_answer => {
            (Conclusion::Answered, "nothing was changed".to_owned())
        }
        RunStatus::Completed => (Conclusion::Done, or(&reason, "plan, review and checks agree")),
        RunStatus::Failed => (Conclusion::Failed, or(&reason, "the run failed")),
        // A task that was given up leaves a run that waits for a person.
        RunStatus::Waiting if has_failed => (Conclusion::Failed, last_failure(steps, &reason)),
        RunStatus::Waiting => (Conclusion::Waiting, or(&reason, "a person has to decide")),
        RunStatus::Queued | RunStatus::Running => {
            (Conclusion::Waiting, or(&reason, "it was stopped, and can be taken up again"))
        }
        RunStatus::Paused | RunStatus::Cancelled => {
            (Conclusion::Waiting, or(&reason, "somebody stopped it"))
        }
    }
}

/// What kind of failure it was, by what can be done about it.
fn class(run: &Run, conclusion: Conclusion) -> Option<Class> {
    match (conclusion, run.status) {
        (Conclusion::Failed, _) => Some(Class::Substantive),
        // It waits for a time, or its worker was told to stop.
        (Conclusion::Waiting, RunStatus::Queued | RunStatus::Running) => Some(Class::Transient),
        (Conclusion::Waiting, _) => Some(Class::Permanent),
        _ => None,
    }
}

fn last_failure(steps: &[Step], or: &str) -> String {
    let reasons = steps.iter().rev().filter_map(|step| step.reason.clone());
    reasons.into_iter().find(|reason| !reason.is_empty()).unwrap_or_else(|| or.to_owned())
}

fn or(reason: &str, usual: &str) -> String {
    if reason.is_empty() { usual.to_owned() } else { reason.to_owned() }
}
