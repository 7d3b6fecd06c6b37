//! The steps of a run: their preparation, execution and results.

use repertoire_agent::spending::RunLimits;
use repertoire_agent::{AgentRunStatus, RunOptions, RunReport};
use repertoire_journal::Payload;
use repertoire_journal::event::{StepOutcome, TaskRef};
use repertoire_journal::run::{RunStatus, RunUsage};
use repertoire_model::ResponseFormat;
use repertoire_select::SelectionSettings;
use repertoire_skill::skill::ContentDigest;
use repertoire_text::layout::one_line;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

use super::{DriveError, PlanRunSession};
use crate::decide;
use crate::limits::{DEFERRAL, DIFF_BYTES_MAX, RESULT_CHARS_MAX};
use crate::prompt::{self, PlanPromptContext, PlanReviewRange, TaskAssignment};
use crate::request::PlanStepAgent;
use crate::skills;
use crate::state::{PlanStepKind, VerifiedAfter};
use crate::step_result::{CheckResultSummary, PlanStepResult};
use crate::verdict::{self, PlanReviewDecision, PlanReviewVerdict};
use repertoire_checks::declared::{self, CheckStatus};
use repertoire_checks::verify::find_suspicions;
use repertoire_git::repo::{ChangeKind, DiffTarget, GitObjectId};

/// Maximum number of files named in a note.
const FILES_SHOWN: usize = 20;

/// Markers that agents print when they believe that everything is done.
const CLAIMS: &[&str] = &["<promise>COMPLETE</promise>", "[[COMPLETE]]", "<<COMPLETE>>"];

/// The result of an agent's step.
struct AgentStepResult {
    report: RunReport,
    spent: RunUsage,
    until_ms: Option<u64>,
}

impl PlanRunSession<'_> {
    /// Lets an agent work on a task.
    #[tracing::instrument(name = "plan_step", skip_all, fields(kind = "implementation", step = self.run.steps + 1))]
    pub(super) async fn implement_task(&mut self, task: Option<TaskRef>) -> Result<(), DriveError> {
        let kind = PlanStepKind::Implementation;
        let assignment =
            TaskAssignment::new(&self.parse_plan(), &self.state, &self.request, task.as_ref());
        let (around, mut payloads) = self.prompt_context(&assignment, kind);
        let prompt = prompt::implementation_prompt(&self.request, &assignment, &around);
        let head = self.git.head_commit().await?;
        let step = self.run.steps + 1;
        payloads.insert(
            0,
            self.step_started(step, kind, &task, assignment.attempt, &head, Value::Null),
        );
        self.append(payloads).await?;
        let step_agent = self.request.implementer.clone();
        let options = self.agent_setup.implementer.clone();
        let worked = self.run_agent(step, kind, &prompt, &step_agent, options).await?;
        self.check_lease().await?;
        let mut payloads = self.repair_worktree(&head).await?;
        payloads.extend(self.settle_plan(task.as_ref()));
        let words = task.as_ref().map_or("Work on the plan", |task| task.label.as_str());
        let is_work = self.changed_since(&head).await?;
        let message = if is_work { words } else { "plan: what the agent wrote there" };
        self.git.commit_all(&commit_message(message), None).await?;
        let now = self.git.head_commit().await?;
        let finished = self.implementation_result(step, &task, &worked, &head, &now).await?;
        if self.stopped_or_deferred(&finished, &worked).await? {
            return Ok(());
        }
        payloads.push(finished(StepOutcome::Ok));
        self.conclude_step(payloads).await
    }

    /// Runs all declared checks.
    #[tracing::instrument(name = "plan_step", skip_all, fields(kind = "verification", step = self.run.steps + 1))]
    pub(super) async fn verify_work(
        &mut self,
        task: Option<TaskRef>,
        after: VerifiedAfter,
    ) -> Result<(), DriveError> {
        let head = self.git.head_commit().await?;
        let step = self.run.steps + 1;
        let attempt = self.attempt_of(&task).max(1);
        let detail = json!({ "after": after.as_str() });
        let started =
            self.step_started(step, PlanStepKind::Verification, &task, attempt, &head, detail);
        self.append(vec![started]).await?;
        let begun = Instant::now();
        let verdict = self.run_checks(&self.checks_after(after)).await?;
        let spent = RunUsage { time_ms: as_millis(begun.elapsed()), ..RunUsage::default() };
        // If a check commits something, it has tested other files than those that are there now.
        let is_there = self.git.head_commit().await? == head;
        let is_green = verdict.green && is_there;
        // A suspicious pass (possible false positive) teaches nothing, but is reported with the
        // result.
        let odd = find_suspicions(&verdict.results, None);
        let learnt =
            if is_green && odd.is_empty() { self.learnt_event(&head).await? } else { None };
        let head = head.as_str().to_owned();
        let checks: Vec<_> = verdict.results.iter().map(CheckResultSummary::from).collect();
        let red: Vec<String> = verdict
            .results
            .iter()
            .filter(|result| result.status != CheckStatus::Passed)
            .map(|result| result.name.clone())
            .collect();
        let mut notes = declared::failure_notes(&verdict);
        if !is_there {
            notes.push_str("\nA check has committed something or checked something out.\n");
        }
        let mut result =
            PlanStepResult { green: Some(is_green), checks: Some(checks), ..Default::default() };
        if is_green {
            result.suspicions = odd;
        } else {
            result.failure = Some(failure_fingerprint(&notes));
            result.notes = Some(notes.clone());
            let improves = self.request.improve.is_some();
            result.failures = improves.then(|| self.failure_signatures(&verdict));
        }
        let result = result.to_value();
        if !is_green {
            self.records.write_file(&format!("{step:03}-verification.md"), &notes)?;
        }
        let reason = if verdict.green {
            (!is_there).then(|| "a check has changed what is checked out".to_owned())
        } else {
            Some(format!("checks are red: {}", red.join(", ")))
        };
        let finished = move |outcome| Payload::StepFinished {
            step,
            outcome,
            reason: reason.clone(),
            head: Some(head.clone()),
            spent,
            result: result.clone(),
        };
        if self.record_if_stopped(&finished).await? {
            return Ok(());
        }
        let outcome = if is_green { StepOutcome::Ok } else { StepOutcome::Failed };
        self.red = (!is_green && self.request.improve.is_some()).then_some(verdict);
        let mut payloads = vec![finished(outcome)];
        payloads.extend(learnt);
        payloads.extend(self.left_by_checks().await?);
        self.conclude_step(payloads).await
    }

    pub(super) async fn run_checks(
        &self,
        all: &[declared::CheckDefinition],
    ) -> Result<declared::CheckRunVerdict, DriveError> {
        let place = self.check_workplace();
        let at_once = self.request.bounds.checks_at_once.max(1) as usize;
        let verdict = declared::run_checks(all, &place, self.work, &|_| {}, at_once).await;
        verdict.map_err(|error| DriveError::Stopped(error.to_string()))
    }

    /// The commit before the work on a task.
    pub(super) fn base_of(&self, task: &Option<TaskRef>) -> GitObjectId {
        let known = task.as_ref().and_then(|task| self.state.tasks.get(&task.id));
        let base = known.and_then(|task| task.base.as_deref()).and_then(GitObjectId::parse);
        base.unwrap_or_else(|| self.worktree.base_oid.clone())
    }

    /// Lets another agent review the work on a task.
    #[tracing::instrument(name = "plan_step", skip_all, fields(kind = "review", step = self.run.steps + 1))]
    pub(super) async fn review_task(&mut self, task: Option<TaskRef>) -> Result<(), DriveError> {
        let kind = PlanStepKind::Review;
        let attempt = self.attempt_of(&task).max(1);
        let assignment =
            TaskAssignment::new(&self.parse_plan(), &self.state, &self.request, task.as_ref());
        // The attempt that was made, not the next one.
        let assignment = TaskAssignment { attempt, ..assignment };
        let (around, mut payloads) = self.prompt_context(&assignment, kind);
        let range = self.review_range(&task).await?;
        let prompt = prompt::review_prompt(&self.request, &assignment, &range, &around);
        let head = self.git.head_commit().await?;
        let step = self.run.steps + 1;
        let detail = json!({ "base": range.base, "head": range.head });
        payloads.insert(0, self.step_started(step, kind, &task, attempt, &head, detail));
        self.append(payloads).await?;
        let step_agent = self.request.reviewer.clone();
        let format = ResponseFormat::Schema {
            name: "verdict".to_owned(),
            schema: verdict::verdict_schema(),
        };
        let options = RunOptions { format: Some(format), ..self.agent_setup.reviewer.clone() };
        let worked = self.run_agent(step, kind, &prompt, &step_agent, options).await?;
        self.check_lease().await?;
        let mut payloads = self.repair_worktree(&head).await?;
        payloads.extend(self.settle_plan(None));
        let mended = self.changed_since(&head).await?;
        let words = task.as_ref().map_or("the work", |task| task.label.as_str());
        self.git.commit_all(&commit_message(&format!("Review: {words}")), None).await?;
        let now = self.git.head_commit().await?;
        let answer = PlanReviewVerdict::parse_answer(worked.report.structured.as_ref(), mended);
        let (outcome, reason, result) = review_outcome(&answer, &worked.report);
        let result = result.to_value();
        let spent = worked.spent;
        let finished = |outcome| Payload::StepFinished {
            step,
            outcome,
            reason: reason.clone(),
            head: Some(now.as_str().to_owned()),
            spent,
            result: result.clone(),
        };
        if self.stopped_or_deferred(&finished, &worked).await? {
            return Ok(());
        }
        payloads.push(finished(outcome));
        self.conclude_step(payloads).await
    }

    /// Reports new files of checks that git does not ignore, since they end up in the next commit.
    async fn left_by_checks(&self) -> Result<Option<Payload>, DriveError> {
        let changes = self.git.status().await?;
        let new = changes.into_iter().filter(|change| change.kind == ChangeKind::Untracked);
        let files: Vec<String> = new.map(|change| change.path).take(FILES_SHOWN).collect();
        let data = json!({ "files": files });
        Ok((!files.is_empty()).then(|| Payload::Note { name: "left_by_checks".to_owned(), data }))
    }

    pub(super) fn step_started(
        &self,
        step: u32,
        kind: PlanStepKind,
        task: &Option<TaskRef>,
        attempt: u32,
        head: &GitObjectId,
        detail: Value,
    ) -> Payload {
        Payload::StepStarted {
            step,
            kind: kind.as_str().to_owned(),
            task: task.clone(),
            attempt,
            iteration: self.state.iterations + u32::from(kind.is_agent()),
            head: Some(head.as_str().to_owned()),
            detail,
        }
    }

    pub(super) fn attempt_of(&self, task: &Option<TaskRef>) -> u32 {
        let known = task.as_ref().and_then(|task| self.state.tasks.get(&task.id));
        known.map_or(0, |task| task.attempts)
    }

    /// The context of a prompt, and the events of selecting its skills.
    fn prompt_context(
        &self,
        assignment: &TaskAssignment,
        kind: PlanStepKind,
    ) -> (PlanPromptContext, Vec<Payload>) {
        let system = &self.agent_setup.system;
        let catalog = system.catalog();
        let selector = system.selector(&catalog);
        let mut about = assignment.clone();
        if let Some(asked) = &self.request.asked {
            about.details.clone_from(asked.skill_topic());
        }
        let chosen = skills::choose_skills(&catalog, &selector, &about, kind, &self.request.skills);
        let events = chosen.events.clone();
        let mut around = PlanPromptContext::from_state(&self.state, &self.request, chosen);
        around.has_learnings_file = self.worktree.dir.join("LEARNINGS.md").is_file();
        around.learnings = self.learnings.read();
        (around, events)
    }

    /// Runs an agent with a prompt. Stores prompt and log.
    async fn run_agent(
        &mut self,
        step: u32,
        kind: PlanStepKind,
        prompt: &str,
        step_agent: &PlanStepAgent,
        options: RunOptions,
    ) -> Result<AgentStepResult, DriveError> {
        self.records.write_file(&format!("{step:03}-{}.prompt.md", kind.as_str()), prompt)?;
        let log = self.records.open_log(step, kind.as_str())?;
        let (own, listener) = (log.event_sink(), self.runner.on_agent_event.clone());
        let sink: repertoire_agent::event::EventSink = std::sync::Arc::new(move |event| {
            own(event);
            if let Some(listener) = &listener {
                listener(event);
            }
        });
        let options = RunOptions {
            conversation: Some(format!("{}-{step}", self.run.id)),
            // The prompt already contains the skills.
            selection: Some(SelectionSettings {
                enabled: false,
                max_skills: 0,
                ..SelectionSettings::default()
            }),
            limits: Some(self.step_limits()),
            on_event: Some(sink),
            cancel: self.work.clone(),
            ..options
        };
        let agent = step_agent.agent.as_deref().unwrap_or("default");
        let report = self.agent_setup.system.run(agent, prompt, options).await;
        let spent = spent_of_report(&report);
        Ok(AgentStepResult { until_ms: log.until_ms(), spent, report })
    }

    /// The rest of the budget, for one step.
    fn step_limits(&self) -> RunLimits {
        let (limits, spent) = (&self.run.limits, &self.run.spent);
        let step = self.request.bounds.step_ms_max;
        let time = limits.time_ms.map_or(step, |max| max.saturating_sub(spent.time_ms).min(step));
        RunLimits {
            tokens_max: limits.tokens.map(|max| max.saturating_sub(spent.total_tokens())),
            cost_usd_max: limits.cost_usd.map(|max| (max - spent.cost_usd()).max(0.0)),
            duration_max: Duration::from_millis(time),
            ..self.agent_setup.system.config().limits
        }
    }

    /// Repairs the worktree after an agent's step: the agent may have switched branches or
    /// rewritten history.
    async fn repair_worktree(&self, since: &GitObjectId) -> Result<Vec<Payload>, DriveError> {
        let mended = self.worktrees.repair_worktree(&self.worktree, since).await?;
        let data = json!({ "mended": mended });
        let note = Payload::Note { name: "worktree_put_right".to_owned(), data };
        Ok((!mended.is_empty()).then_some(note).into_iter().collect())
    }

    /// The result of an implementation.
    async fn implementation_result(
        &self,
        step: u32,
        task: &Option<TaskRef>,
        worked: &AgentStepResult,
        before: &GitObjectId,
        head: &GitObjectId,
    ) -> Result<impl Fn(StepOutcome) -> Payload + use<>, DriveError> {
        let known = task.as_ref().and_then(|task| self.state.tasks.get(&task.id));
        let oid = |text: Option<&String>| text.and_then(|text| GitObjectId::parse(text));
        let base = oid(known.and_then(|task| task.base.as_ref()));
        let base = base.unwrap_or_else(|| self.worktree.base_oid.clone());
        // Compare with the start of these attempts: changes for other tasks in between do not
        // belong to this one.
        let begun = oid(known.and_then(|task| task.begun.as_ref()));
        let changed = self.has_changes_between(begun.as_ref().unwrap_or(&base), head).await?;
        let moved = self.has_changes_between(before, head).await?;
        let print = self.git.diff_fingerprint(&base).await?;
        let report = &worked.report;
        let claims_done = CLAIMS.iter().any(|claim| report.text.contains(claim));
        let asked = self.request.asked.as_ref();
        let answered = asked.is_some_and(|asked| asked.answer)
            && report.error.is_none()
            && !changed
            && !report.text.trim().is_empty();
        let reason = match (&report.error, changed) {
            (Some(error), _) => Some(error.to_string()),
            (None, false) if answered => None,
            (None, false) => Some("no file was changed".to_owned()),
            (None, true) => None,
        };
        // An agent that could not run at all has not made an attempt.
        let agent_failed = report.status == AgentRunStatus::Failed && !moved;
        let result = PlanStepResult {
            changed,
            answered,
            agent_failed,
            diff: print.map(|print| print.as_str().to_owned()),
            claims_done,
            notes: reason.as_ref().map(|reason| unfinished_notes(reason, claims_done)),
            text: Some(text_tail(&report.text)),
            ..PlanStepResult::default()
        };
        let result = result.to_value();
        let spent = worked.spent;
        let head = head.as_str().to_owned();
        Ok(move |outcome| Payload::StepFinished {
            step,
            // A failure overrides an `Ok` from the caller.
            outcome: match (&reason, outcome) {
                (Some(_), StepOutcome::Ok) => StepOutcome::Failed,
                (_, outcome) => outcome,
            },
            reason: reason.clone(),
            head: Some(head.clone()),
            spent,
            result: result.clone(),
        })
    }

    /// Returns true if anything but the plan differs between two commits.
    async fn has_changes_between(
        &self,
        from: &GitObjectId,
        to: &GitObjectId,
    ) -> Result<bool, DriveError> {
        let of = DiffTarget::Commits { from: from.clone(), to: to.clone() };
        let diff = self.git.diff(&of, 0).await?;
        Ok(diff.files.iter().any(|file| self.request.plan != file.path))
    }

    async fn changed_since(&self, head: &GitObjectId) -> Result<bool, DriveError> {
        let diff = self.git.diff(&DiffTarget::Work { from: head.clone() }, 0).await?;
        Ok(diff.files.iter().any(|file| self.request.plan != file.path))
    }

    async fn review_range(&self, task: &Option<TaskRef>) -> Result<PlanReviewRange, DriveError> {
        let known = task.as_ref().and_then(|task| self.state.tasks.get(&task.id));
        let head = match known.and_then(|task| task.head.as_deref()).and_then(GitObjectId::parse) {
            Some(head) => head,
            None => self.git.head_commit().await?,
        };
        let base = known.and_then(|task| task.base.as_deref()).and_then(GitObjectId::parse);
        // A task that the agent chose itself has no recorded base.
        let base = match (base, task) {
            (Some(base), _) => base,
            (None, None) => self.worktree.base_oid.clone(),
            (None, Some(_)) => head.clone(),
        };
        let of = DiffTarget::Commits { from: base.clone(), to: head.clone() };
        let diff = self.git.diff(&of, DIFF_BYTES_MAX).await?;
        Ok(PlanReviewRange {
            base: base.as_str().to_owned(),
            head: head.as_str().to_owned(),
            diff: diff.text,
            is_cut: diff.cut,
        })
    }

    /// Records the end of the step and returns true if it was stopped, or has to wait for a rate
    /// limit.
    async fn stopped_or_deferred(
        &mut self,
        finished: &impl Fn(StepOutcome) -> Payload,
        worked: &AgentStepResult,
    ) -> Result<bool, DriveError> {
        if self.record_if_stopped(finished).await? {
            return Ok(true);
        }
        if worked.report.status != AgentRunStatus::Paused {
            return Ok(false);
        }
        let now = self.agent_setup.system.clock().now_ms();
        let until_ms = worked.until_ms.unwrap_or_else(|| now + as_millis(DEFERRAL));
        let reason = worked.report.error.as_ref().map_or_else(String::new, ToString::to_string);
        let deferred = Payload::RunDeferred { reason, until_ms };
        self.append(vec![finished(StepOutcome::Stopped), deferred]).await?;
        Ok(true)
    }

    /// Records the end of a step and all its consequences in one transaction. Then updates the plan
    /// file to match the journal.
    pub(super) async fn conclude_step(
        &mut self,
        mut payloads: Vec<Payload>,
    ) -> Result<(), DriveError> {
        let mut ahead = self.state.clone();
        for payload in &payloads {
            ahead.apply(payload);
        }
        payloads.extend(decide::conclude_step(&ahead, &self.request));
        self.append(payloads.clone()).await?;
        self.revert_failed_task(&payloads).await?;
        self.keep_plan(&payloads).await
    }

    /// Reverts the work on a task that was just marked failed, so that it does not break later
    /// tasks. The revert is a commit on top of the failed attempts.
    async fn revert_failed_task(&mut self, happened: &[Payload]) -> Result<(), DriveError> {
        let Some(base) = decide::base_of_failed_task(&self.state, happened)
            .and_then(|base| GitObjectId::parse(&base))
        else {
            return Ok(());
        };
        let tried = self.git.head_commit().await?;
        if !self.has_changes_between(&base, &tried).await? {
            return Ok(());
        }
        let tree = self.git.tree_of(&base).await?;
        let message = format!("Give up, and take back what was tried in {}", tried.short());
        let commit = self.git.commit_tree(&tree, &[&tried], &message).await?;
        self.git.reset_hard(&commit).await?;
        if self.run.status == RunStatus::Running {
            let data = json!({ "tried": tried.as_str() });
            self.append(vec![Payload::Note { name: "taken_back".to_owned(), data }]).await?;
        }
        Ok(())
    }
}

/// The outcome of a review.
fn review_outcome(
    answer: &Result<PlanReviewVerdict, verdict::VerdictError>,
    report: &RunReport,
) -> (StepOutcome, Option<String>, PlanStepResult) {
    match (answer, &report.error) {
        (Ok(verdict), None) => {
            let outcome = match verdict.verdict {
                PlanReviewDecision::Approve | PlanReviewDecision::Fixed => StepOutcome::Ok,
                PlanReviewDecision::SendBack => StepOutcome::SentBack,
            };
            let is_back = outcome == StepOutcome::SentBack;
            let reason = is_back.then(|| match verdict.summary.trim() {
                "" => "the reviewer sent it back".to_owned(),
                summary => format!("the reviewer sent it back: {summary}"),
            });
            let notes = is_back.then(|| verdict.implementer_notes());
            let learning = verdict.learning.clone();
            let verdict = Some(verdict.clone());
            (outcome, reason, PlanStepResult { verdict, notes, learning, ..Default::default() })
        }
        // An agent that was interrupted may have changed its verdict later.
        (Ok(_), Some(error)) => {
            (StepOutcome::Failed, Some(error.to_string()), PlanStepResult::default())
        }
        (Err(_), Some(error))
            if report.status != AgentRunStatus::Failed || report.text.is_empty() =>
        {
            let agent_failed = report.status == AgentRunStatus::Failed;
            let result = PlanStepResult { agent_failed, ..PlanStepResult::default() };
            (StepOutcome::Failed, Some(error.to_string()), result)
        }
        (Err(problem), error) => {
            let said = text_tail(&report.text);
            // The backend that validated the answer has the more precise message.
            let why = error.as_ref().map(|error| format!("the reviewer gave no verdict: {error}"));
            (
                StepOutcome::Failed,
                Some(why.unwrap_or_else(|| problem.to_string())),
                PlanStepResult { malformed: true, text: Some(said), ..PlanStepResult::default() },
            )
        }
    }
}

fn unfinished_notes(reason: &str, claims_done: bool) -> String {
    if claims_done {
        format!(
            "The last attempt said that everything is done, but: {reason}. The engine looks at the files, not at \
             what is said."
        )
    } else {
        format!("The last attempt did not succeed: {reason}.")
    }
}

/// A fingerprint of a failure, in which all numbers are the same, so that durations do not matter.
fn failure_fingerprint(notes: &str) -> String {
    let plain: String = notes.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let mut folded = plain.replace("00", "0");
    while folded.contains("00") {
        folded = folded.replace("00", "0");
    }
    ContentDigest::hash_bytes(folded.as_bytes()).to_string()
}

fn spent_of_report(report: &RunReport) -> RunUsage {
    let usage = &report.usage;
    let cost = report.cost_usd.unwrap_or_default().max(0.0);
    RunUsage {
        cost_micro_usd: (cost * 1e6).round() as u64,
        unpriced: report.cost_usd.is_none() && usage.total() > 0,
        input_tokens: usage.total().saturating_sub(usage.output_tokens),
        output_tokens: usage.output_tokens,
        time_ms: as_millis(report.duration),
    }
}

/// A commit message with a short first line.
fn commit_message(text: &str) -> String {
    let line = one_line(text);
    match line.char_indices().nth(70) {
        Some((at, _)) => format!("{}…\n\n{line}", &line[..at]),
        None => line,
    }
}

fn text_tail(text: &str) -> String {
    let count = text.chars().count();
    text.chars().skip(count.saturating_sub(RESULT_CHARS_MAX)).collect()
}

pub(super) fn as_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
