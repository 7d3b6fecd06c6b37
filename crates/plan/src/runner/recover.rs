//! Recovery within a run: repairs failures before an agent is asked, and learns from agents that
//! repaired them.

use std::collections::BTreeSet;

use camino::Utf8Path;
use repertoire_journal::event::{StepOutcome, TaskRef};
use repertoire_journal::run::RunUsage;
use repertoire_journal::{FixOutcome, Payload};
use serde_json::json;
use tokio::time::Instant;

use super::recovery_notes::recovery_notes;
use super::steps::as_millis;
use super::{DriveError, PlanRunSession};
use crate::lesson::{self, ProvenLesson};
use crate::request::RecoverySettings;
use crate::state::{PlanStepEnd, PlanStepKind, VerifiedAfter};
use crate::step_result::PlanStepResult;
use repertoire_checks::analyse::analyse_check;
use repertoire_checks::declared::{CheckDefinition, CheckRunResult, CheckRunVerdict};
use repertoire_checks::error::ParsedError;
use repertoire_checks::limits::LEARNT_FILES_MAX;
use repertoire_checks::memory::FailureMemory;
use repertoire_checks::recover::{
    self, RecoverRequest, RecoverResult, RecoverRules, RecoverState, WorkBackup, learn_fix,
};
use repertoire_checks::signature::compute_signature;
use repertoire_git::repo::{DiffTarget, GitObjectId};

impl PlanRunSession<'_> {
    /// Tries fixes that worked before and automatic fixes of tools. A verification follows, as
    /// after all work.
    #[tracing::instrument(name = "plan_step", skip_all, fields(kind = "recovery", step = self.run.steps + 1))]
    pub(super) async fn recover_checks(
        &mut self,
        task: Option<TaskRef>,
        after: VerifiedAfter,
    ) -> Result<(), DriveError> {
        let Some(rules) = self.request.improve.clone() else {
            return Err(DriveError::Stopped("nothing says how red checks are mended".to_owned()));
        };
        let head = self.git.head_commit().await?;
        let step = self.run.steps + 1;
        let attempt = self.attempt_of(&task).max(1);
        // If this worker dies, the next one restores the files from this backup.
        let backup = WorkBackup::take(&self.git).await?;
        self.git.keep_commit(&self.backup_ref(step), &backup.commit).await?;
        let detail = json!({ "after": after.as_str(), "backup": backup.commit.as_str() });
        let started =
            self.step_started(step, PlanStepKind::Recovery, &task, attempt, &head, detail);
        self.append(vec![started]).await?;
        let begun = Instant::now();
        let recovered = match self.run_recovery(&task, after, &rules).await {
            Ok(recovered) => recovered,
            Err(error) => {
                // The attempt is rolled back as far as possible. A person decides about the rest,
                // so keep no backup to restore.
                self.git.drop_commit(&self.backup_ref(step)).await?;
                return Err(error);
            }
        };
        self.check_lease().await?;
        let spent = RunUsage { time_ms: as_millis(begun.elapsed()), ..RunUsage::default() };
        let is_green = recovered.state == RecoverState::Green;
        let worked = recovered.attempts.iter().filter(|one| one.outcome == FixOutcome::Worked);
        let what: Vec<&str> = worked.map(|one| one.strategy.as_str()).collect();
        // A successful fix is kept, even if other failures remain.
        if !what.is_empty() {
            self.git.commit_all(&format!("Mend the checks: {}", what.join(", ")), None).await?;
        }
        let now = self.git.head_commit().await?.as_str().to_owned();
        let notes = (!is_green).then(|| recovery_notes(&recovered));
        let reason = state_reason(&recovered.state);
        let failures = self.failure_signatures(&recovered.verdict);
        let result = PlanStepResult {
            attempts: recovered.attempts.clone(),
            notes,
            failures: Some(failures),
            ..PlanStepResult::default()
        };
        let result = result.to_value();
        let finished = move |outcome| Payload::StepFinished {
            step,
            outcome,
            reason: reason.clone(),
            head: Some(now.clone()),
            spent,
            result: result.clone(),
        };
        self.record_recovery(recovered.state, recovered.payloads, finished).await?;
        self.git.drop_commit(&self.backup_ref(step)).await?;
        Ok(())
    }

    /// Records the end of a recovery. Confirmed outcomes of fixes are recorded even if the run is
    /// stopped now.
    async fn record_recovery(
        &mut self,
        state: RecoverState,
        mut payloads: Vec<Payload>,
        finished: impl Fn(StepOutcome) -> Payload,
    ) -> Result<(), DriveError> {
        if self.record_if_stopped_with(payloads.clone(), &finished).await? {
            return Ok(());
        }
        match state {
            RecoverState::Green => payloads.push(finished(StepOutcome::Ok)),
            RecoverState::Red { .. } => payloads.push(finished(StepOutcome::SentBack)),
            RecoverState::Deferred { until_ms, reason } => {
                payloads.push(finished(StepOutcome::Stopped));
                payloads.push(Payload::RunDeferred { reason, until_ms });
                return self.append(payloads).await;
            }
            RecoverState::Permanent { reason } => {
                payloads.push(finished(StepOutcome::Stopped));
                let choices = super::waiting_choices();
                payloads.push(Payload::RunWaiting { reason, choices });
                return self.append(payloads).await;
            }
        }
        self.conclude_step(payloads).await
    }

    /// The name of the ref that keeps the backup while a recovery step is in progress.
    fn backup_ref(&self, step: u32) -> String {
        format!("backup/{}-{step}", self.run.id)
    }

    /// Reverts the interrupted recovery of a worker that died: its change was neither inspected nor
    /// verified.
    pub(super) async fn revert_interrupted_recovery(&mut self) -> Result<(), DriveError> {
        let Some(past) = self.state.last_step().filter(|past| past.kind == PlanStepKind::Recovery)
        else {
            return Ok(());
        };
        let (name, is_cut) =
            (self.backup_ref(past.number), past.ended == Some(PlanStepEnd::Interrupted));
        let Some(commit) = self.git.kept_commit(&name).await? else { return Ok(()) };
        if is_cut {
            let backup = WorkBackup::load_commit(&self.git, commit).await?;
            let found = WorkBackup::take(&self.git).await?;
            if !backup.is_same(&found) {
                // Keep the current state as well, since it may contain a person's work.
                self.git.keep_commit(&format!("{name}-found"), &found.commit).await?;
                let restored = backup.restore(&self.git).await;
                restored.map_err(|error| DriveError::Stopped(error.to_string()))?;
                let data =
                    json!({ "backup": backup.commit.as_str(), "found": found.commit.as_str() });
                let name = "attempt_taken_back".to_owned();
                self.append(vec![Payload::Note { name, data }]).await?;
            }
        }
        Ok(self.git.drop_commit(&name).await?)
    }

    async fn run_recovery(
        &mut self,
        task: &Option<TaskRef>,
        after: VerifiedAfter,
        rules: &RecoverySettings,
    ) -> Result<RecoverResult, DriveError> {
        let place = self.check_workplace();
        let all = self.checks_after(after);
        // A worker that has just claimed the run has no results yet.
        let verdict = match self.red.take() {
            Some(verdict) => verdict,
            None => self.run_checks(&all).await?,
        };
        let memory = self.failure_memory(rules);
        let base = self.base_of(task);
        let dir = self.worktree.dir.clone();
        let analyse = move |result: &CheckRunResult| errors_of(result, &dir);
        let clock = || self.agent_setup.system.clock().now_ms();
        let request = RecoverRequest {
            git: &self.git,
            workplace: &place,
            checks: &all,
            verdict: &verdict,
            analyse: &analyse,
            memory: &memory,
            rules: &RecoverRules {
                attempts_max: rules.attempts_max,
                network: rules.network,
                parallel: self.request.bounds.checks_at_once.max(1) as usize,
                ..RecoverRules::default()
            },
            tried: std::mem::take(&mut self.tried),
            base: &base,
            declared: &self.worktree.base_oid,
            cancel: self.work,
            on_event: &|_| {},
            clock: &clock,
            jitter: compute_jitter(self.run.id.as_str(), self.run.steps),
        };
        let recovered = recover::recover_failures(request).await;
        let recovered = recovered.map_err(|error| DriveError::Stopped(error.to_string()))?;
        self.tried.clone_from(&recovered.tried);
        Ok(recovered)
    }

    fn failure_memory(&self, rules: &RecoverySettings) -> FailureMemory {
        FailureMemory::new(self.runner.journal.clone(), &rules.scope)
    }

    /// The checks that have to pass after a step.
    pub(super) fn checks_after(&self, after: VerifiedAfter) -> Vec<CheckDefinition> {
        let mut all = self.request.checks.clone();
        if after == VerifiedAfter::Everything {
            all.extend(self.request.final_checks.iter().cloned());
        }
        all
    }

    /// The signatures of the errors of failed critical checks. The next change of an agent is
    /// compared with them.
    pub(super) fn failure_signatures(&self, verdict: &CheckRunVerdict) -> BTreeSet<String> {
        let red = verdict.results.iter().filter(|result| recover::has_failed(result));
        let red: Vec<&CheckRunResult> = red.filter(|result| result.critical).collect();
        // The missing part may contain the failure that is fixed next.
        if red.iter().any(|result| result.is_cut()) {
            return BTreeSet::new();
        }
        let errors = red.into_iter().flat_map(|result| errors_of(result, &self.worktree.dir));
        errors.map(|error| compute_signature(&error).to_string()).collect()
    }

    /// The fix that can be learnt from an agent's change, now that the checks pass.
    pub(super) async fn learnt_event(
        &self,
        head: &GitObjectId,
    ) -> Result<Option<Payload>, DriveError> {
        let Some(rules) = &self.request.improve else { return Ok(None) };
        let Some(lesson) = lesson::find_lesson(&self.state.history, self.request.review) else {
            return Ok(None);
        };
        let Some(diff) = self.lesson_patch(&lesson, head).await? else { return Ok(None) };
        let learnt = learn_fix(&lesson.failures, &BTreeSet::new(), &diff);
        Ok(learnt.ok().map(|learnt| Payload::FixTried {
            scope: rules.scope.clone(),
            signature: learnt.signature,
            fix: learnt.fix,
            outcome: FixOutcome::Worked,
            reason: "an agent mended it, and the checks are green".to_owned(),
        }))
    }

    /// The patch of a lesson, without the plan. `None` if the same files have changed since, since
    /// then it is unknown if the change alone would have been right.
    async fn lesson_patch(
        &self,
        lesson: &ProvenLesson,
        head: &GitObjectId,
    ) -> Result<Option<String>, DriveError> {
        let (Some(from), Some(to)) =
            (GitObjectId::parse(&lesson.from), GitObjectId::parse(&lesson.to))
        else {
            return Ok(None);
        };
        let files = self.files_between(&from, &to).await?;
        let since = self.files_between(&to, head).await?;
        if files.is_empty() || files.len() > LEARNT_FILES_MAX || !files.is_disjoint(&since) {
            return Ok(None);
        }
        let paths: Vec<&Utf8Path> = files.iter().map(Utf8Path::new).collect();
        let (from, to) = (self.git.tree_of(&from).await?, self.git.tree_of(&to).await?);
        Ok(String::from_utf8(self.git.patch_of(&from, &to, &paths).await?).ok())
    }

    /// The files that differ between two commits, except the plan, which the engine updates itself.
    async fn files_between(
        &self,
        from: &GitObjectId,
        to: &GitObjectId,
    ) -> Result<BTreeSet<String>, DriveError> {
        let of = DiffTarget::Commits { from: from.clone(), to: to.clone() };
        let files = self.git.diff(&of, 0).await?.files.into_iter();
        let names = files.flat_map(|file| file.from.into_iter().chain([file.path]));
        Ok(names.filter(|path| self.request.plan != *path).collect())
    }
}

/// The errors in the output of a check.
fn errors_of(result: &CheckRunResult, dir: &Utf8Path) -> Vec<ParsedError> {
    let read = |file: &str| {
        let path = Utf8Path::new(file);
        repertoire_text::fs::read_text_beneath(dir, path, crate::limits::CONTEXT_BYTES_MAX).ok()
    };
    analyse_check(result, &read).errors
}

fn state_reason(state: &RecoverState) -> Option<String> {
    match state {
        RecoverState::Green => None,
        RecoverState::Red { reason }
        | RecoverState::Deferred { reason, .. }
        | RecoverState::Permanent { reason } => Some(reason.clone()),
    }
}

/// A pseudo-random number from 0 to 1 that differs between runs, but is the same in a replay.
fn compute_jitter(run: &str, step: u32) -> f64 {
    let sum = run
        .bytes()
        .fold(u64::from(step), |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    (sum % 1_000) as f64 / 1_000.0
}
