//! Collects what the journal knows about the run behind a pull request, and merges the pull request
//! if it qualifies.

use std::collections::BTreeSet;

use crate::actor::RunAdmission;
use crate::client::ClientError;
use crate::event::EventName;
use repertoire_journal::RunId;
use repertoire_journal::event::StepOutcome;
use repertoire_journal::run::{Run, RunStatus, Step};
use repertoire_plan::PlanStepResult;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{AdmittedEvent, GitHubRunContext, WorkOrder};
use crate::automerge::{
    self, AutoMerge, AutoMergeRequest, CheckVerification, DeclaredCheckVerdict, MergeEvidence,
    MergeFact, MergeReport, PullOrigin,
};
use crate::publish::OpenedPull;
use repertoire_checks::declared;
use repertoire_git::repo::GitObjectId;
use repertoire_git::worktree::RunWorktrees;
use repertoire_plan::state::{PlanStepKind, VerifiedAfter};

/// The facts about the run that created a branch.
pub(super) struct OriginRunFacts {
    pub(super) made_by_us: MergeFact<bool>,
    pub(super) witness: MergeEvidence,
    pub(super) open_question: MergeFact<bool>,
}

impl GitHubRunContext<'_> {
    /// Returns the origin line of a pull request, for processes that look at it later; `None` if
    /// auto-merge is off.
    pub(super) async fn pull_origin(
        &self,
        call: &AdmittedEvent<'_>,
        wanted: &WorkOrder,
        run: Option<&RunId>,
    ) -> Option<PullOrigin> {
        let run = run.filter(|_| self.settings.auto_merge.enabled)?.clone();
        let is_pull = call.context.entity.as_ref().is_some_and(|entity| entity.is_pull);
        // Work on a pull request is about that pull request, which is not an issue to close.
        let issue = wanted.about.filter(|_| !is_pull);
        let asked_by = self.find_askers(call, issue).await.ok();
        Some(PullOrigin { run, issue, asked_by })
    }

    /// Returns all accounts that told the bot what to write: the actor, the one that re-ran the
    /// workflow, the authors of the text, and the one that made an issue a task. A schedule has no
    /// account.
    async fn find_askers(
        &self,
        call: &AdmittedEvent<'_>,
        issue: Option<u64>,
    ) -> Result<Vec<String>, ClientError> {
        let context = call.context;
        let actor = (context.event != EventName::Schedule).then_some(&context.actor);
        let said = context.said.as_ref().map(|said| &said.author);
        let opened = context.entity.as_ref().map(|entity| &entity.author);
        let here = actor.into_iter().chain(&context.rerun_by).chain(said).chain(opened);
        let mut all: BTreeSet<String> = here.map(|account| account.login.to_lowercase()).collect();
        if let Some(number) = issue {
            let triggers = &self.settings.triggers;
            let opened = self.client.get_issue(number).await?.user;
            let events = self.client.timeline(number).await?;
            let labels = [&triggers.task_label].into_iter().chain(&triggers.label);
            let labelled = labels.filter_map(|label| events.labelled(label));
            let users = labelled.filter_map(|event| event.actor.clone()).chain(opened);
            all.extend(users.map(|user| user.login.to_lowercase()));
        }
        Ok(all.into_iter().collect())
    }

    /// Merges a pull request that was just opened, if all conditions hold, and returns the report.
    pub(super) async fn merge_opened(
        &self,
        call: &AdmittedEvent<'_>,
        opened: &OpenedPull,
        (branch, commit): (&str, &GitObjectId),
        origin: &PullOrigin,
    ) -> MergeReport {
        let past = self.origin_run_facts(origin, branch, commit.as_str()).await;
        // A pull request that existed before may belong to another account. A later event checks it
        // by its text.
        let made_by_us = if opened.is_new { past.made_by_us } else { MergeFact::Known(false) };
        let asked = MergeFact::Known(call.admission == RunAdmission::Write);
        let request =
            self.merge_request(opened.number, origin, asked, OriginRunFacts { made_by_us, ..past });
        let settings = &self.settings.auto_merge;
        automerge::merge_if_allowed(self.client, &request, settings, &automerge::WallClock).await
    }

    pub(super) fn merge_request(
        &self,
        number: u64,
        origin: &PullOrigin,
        asked: MergeFact<bool>,
        past: OriginRunFacts,
    ) -> AutoMergeRequest {
        AutoMergeRequest {
            number,
            asked,
            asked_by: match &origin.asked_by {
                Some(logins) => MergeFact::Known(logins.clone()),
                None => {
                    MergeFact::Unknown("it could not be found out when it was opened".to_owned())
                }
            },
            made_by_us: past.made_by_us,
            own_login: self.settings.rules.bot_login.clone(),
            branch_prefix: self.settings.branch_prefix.clone(),
            witness: past.witness,
            open_question: past.open_question,
            issue: origin.issue,
        }
    }

    /// Returns the facts about the run that a pull request names. Only the journal is trusted; if
    /// it is not available, GitHub has to provide all evidence.
    pub(super) async fn origin_run_facts(
        &self,
        origin: &PullOrigin,
        branch: &str,
        head: &str,
    ) -> OriginRunFacts {
        match self.journal.run(&origin.run).await {
            Err(error) => {
                let why = error.to_string();
                OriginRunFacts {
                    made_by_us: MergeFact::Unknown(why.clone()),
                    open_question: MergeFact::Unknown(why.clone()),
                    witness: MergeEvidence::Nobody(why),
                }
            }
            Ok(None) => OriginRunFacts {
                made_by_us: MergeFact::Known(true),
                // A run with an open question does not open a pull request.
                open_question: MergeFact::Known(false),
                witness: MergeEvidence::Service,
            },
            Ok(Some(run)) => OriginRunFacts {
                made_by_us: MergeFact::Known(
                    run.worktree.as_ref().is_some_and(|it| it.branch == branch),
                ),
                open_question: MergeFact::Known(run.status != RunStatus::Completed),
                witness: match self.verify_commit(&run, head).await {
                    Ok(found) => MergeEvidence::Journal(found),
                    Err(why) => MergeEvidence::Nobody(why),
                },
            },
        }
    }

    /// Returns the result of the declared checks for a commit. If it was committed after them, they
    /// are run again in its worktree.
    async fn verify_commit(&self, run: &Run, head: &str) -> Result<CheckVerification, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let steps = self.journal.steps(&run.id).await.map_err(|error| text(&error))?;
        let found = steps.iter().rev().find_map(step_verification);
        let found = found.ok_or("no step of the run has run them")?;
        if found.commit == head || found.verdict != DeclaredCheckVerdict::Passed {
            return Ok(found);
        }
        let (Some(checked), Some(now)) =
            (GitObjectId::parse(&found.commit), GitObjectId::parse(head))
        else {
            return Ok(found);
        };
        // If a commit is not available locally, its tree cannot be compared.
        let (Ok(before), Ok(after)) =
            (self.checkout.tree_of(&checked).await, self.checkout.tree_of(&now).await)
        else {
            return Ok(found);
        };
        if before == after {
            return Ok(CheckVerification { commit: head.to_owned(), ..found });
        }
        Ok(self.verify_again(run, &now).await?.unwrap_or(found))
    }

    /// Runs all declared checks on a commit, if the run's own worktree is at that commit and clean.
    async fn verify_again(
        &self,
        run: &Run,
        head: &GitObjectId,
    ) -> Result<Option<CheckVerification>, String> {
        let worktrees =
            RunWorktrees::new(self.checkout.clone(), self.runner.places.worktrees.clone());
        let Ok(Some(worktree)) = worktrees.of_run(run.id.as_str()).await else { return Ok(None) };
        let is_at_it = async || {
            let at = worktree.git.head_commit().await;
            let clean = worktree.git.is_clean().await;
            at.is_ok_and(|at| at == *head) && clean.unwrap_or(false)
        };
        if !is_at_it().await {
            return Ok(None);
        }
        let all: Vec<_> =
            self.request.checks.iter().chain(&self.request.final_checks).cloned().collect();
        // Use the configuration of the base branch, not that of the worktree.
        let agent_setup =
            self.runner.agent_provider.agent_setup(self.checkout.dir(), self.request)?;
        let readable = vec![worktree.common_dir.clone()];
        let system = agent_setup.system.in_dir(&worktree.dir, readable);
        let mut place = system.workplace_of(run.id.as_str());
        place.environment = agent_setup.environment;
        let at_once = self.request.bounds.checks_at_once.max(1) as usize;
        // No cancellation: the work is done, and the checks have their own timeouts.
        let verdict =
            declared::run_checks(&all, &place, &CancellationToken::new(), &|_| {}, at_once).await;
        let verdict = verdict.map_err(|error| error.to_string())?;
        let passed = verdict.green && is_at_it().await;
        let verdict =
            if passed { DeclaredCheckVerdict::Passed } else { DeclaredCheckVerdict::Failed };
        Ok(Some(CheckVerification { verdict, full: true, commit: head.to_string() }))
    }
}

/// Returns the result of the declared checks in a step of the plan loop, if it ran them.
fn step_verification(step: &Step) -> Option<CheckVerification> {
    if step.kind != PlanStepKind::Verification.as_str() {
        return None;
    }
    let result = PlanStepResult::of_step(step);
    let is_green = step.outcome == Some(StepOutcome::Ok) && result.green == Some(true);
    let ran = result.checks.is_some_and(|all| !all.is_empty());
    let verdict = match (is_green, ran) {
        (true, true) => DeclaredCheckVerdict::Passed,
        // Without declared checks, green is meaningless.
        (true, false) => DeclaredCheckVerdict::Inconclusive,
        (false, _) => DeclaredCheckVerdict::Failed,
    };
    let after = step.detail.get("after").and_then(Value::as_str);
    Some(CheckVerification {
        verdict,
        full: after == Some(VerifiedAfter::Everything.as_str()),
        commit: step.head_after.clone()?,
    })
}

/// Returns the settings with the remaining waiting time.
pub(super) fn with_remaining_wait(settings: &AutoMerge, waited_seconds: u64) -> AutoMerge {
    let wait_seconds = settings.wait_seconds.saturating_sub(waited_seconds);
    AutoMerge { wait_seconds, ..settings.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use repertoire_journal::run::{RunUsage, StepStatus};
    use serde_json::json;

    fn step(kind: &str, outcome: StepOutcome, after: &str, result: Value) -> Step {
        Step {
            run: RunId::known("a"),
            number: 1,
            kind: kind.to_owned(),
            task: None,
            attempt: 1,
            iteration: 1,
            status: StepStatus::Finished,
            outcome: Some(outcome),
            reason: None,
            token: 1,
            worker: None,
            head_before: None,
            head_after: Some("c1".to_owned()),
            spent: RunUsage::default(),
            started_ms: 0,
            ended_ms: None,
            detail: json!({ "after": after }),
            result,
        }
    }

    #[track_caller]
    fn says(step: Step, expect: Option<(DeclaredCheckVerdict, bool)>) {
        let found = step_verification(&step);
        assert_eq!(found.as_ref().map(|found| (found.verdict, found.full)), expect);
        assert!(found.is_none_or(|found| found.commit == "c1"));
    }

    #[test]
    fn the_verdict_is_the_last_verifications() {
        use StepOutcome::{Failed, Ok, Stopped};
        let check = |status: &str| json!({ "name": "test", "status": status, "exit_code": 0, "attempts": 1, "duration_ms": 9 });
        let green = json!({ "green": true, "checks": [check("passed")] });
        let red = json!({ "green": false, "checks": [check("failed")] });
        let none = json!({ "green": true, "checks": [] });
        let of = |outcome, after, result| step("verification", outcome, after, result);
        says(of(Ok, "everything", green.clone()), Some((DeclaredCheckVerdict::Passed, true)));
        says(of(Ok, "review", green.clone()), Some((DeclaredCheckVerdict::Passed, false)));
        says(of(Ok, "everything", none), Some((DeclaredCheckVerdict::Inconclusive, true)));
        says(of(Failed, "everything", red), Some((DeclaredCheckVerdict::Failed, true)));
        says(of(Stopped, "everything", green.clone()), Some((DeclaredCheckVerdict::Failed, true)));
        says(step("review", Ok, "everything", green), None);
    }
}
