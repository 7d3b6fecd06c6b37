//! Continuous operation: runs the plan loop for one task after the other, each on a fresh branch,
//! until there is a reason to stop.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::comment::NeutraliseRules;
use camino::Utf8PathBuf;
use repertoire_journal::run::Limits;
use repertoire_plan::limits::PLAN_BYTES_MAX;
use repertoire_text::fs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::base_check::BaseState;
use super::budget::{self, ContinuousBudget};
use super::dead_letters::TaskLetters;
use super::render;
use super::{
    AdmittedEvent, GitHubOutcome, GitHubRunContext, RunConclusion, TaskOutcome, WorkOrder,
};
use crate::grant::decide_grant;
use crate::limits::{CLAIM_LEASE, TASKS_FILE_BYTES_MAX};
use crate::mode::ModeExecution;
use crate::tasks::issues::{self, IssueReport, IssueRules, OutcomeLabels};
use crate::tasks::{self, QueuedTask, SkippedTask, TaskQueue, TaskSource};
use crate::template::{PromptFacts, TaskFacts, render_prompt};
use crate::tracking::{CommentKind, CommentText, RunTracking, TrackingSettings};
use repertoire_checks::recover::FailureClass;

/// The number of consecutive failures after which the run stops, since a common cause is likely.
const FAILURES_MAX: usize = 3;

/// The settings of continuous operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ContinuousSettings {
    /// The sources of tasks, in this order.
    pub sources: Vec<TaskSource>,
    /// The file with the checkbox list.
    #[schemars(with = "String")]
    pub tasks_file: Utf8PathBuf,
    /// The plan, if there is one.
    #[schemars(with = "Option<String>")]
    pub plan: Option<Utf8PathBuf>,
    /// The maximum number of tasks in a run; that of the mode if absent.
    pub max_tasks: Option<u32>,
    /// The maximum time for all tasks of a run.
    pub max_time: Option<Duration>,
    /// The maximum cost of all tasks of a run, in US dollars.
    pub max_cost: Option<f64>,
    /// The pause between tasks; that of the mode if absent.
    pub delay: Option<Duration>,
    /// True if the first failure ends the run.
    pub stop_on_first_failure: bool,
    /// The label of issues whose task is done.
    pub done_label: String,
    /// The label of issues whose task waits for a person.
    pub waiting_label: String,
    /// The time for which the label of a working run keeps other runs away.
    pub claim: Duration,
}

impl Default for ContinuousSettings {
    fn default() -> Self {
        ContinuousSettings {
            sources: TaskSource::ALL.to_vec(),
            tasks_file: "TASKS.md".into(),
            plan: None,
            max_tasks: None,
            max_time: None,
            max_cost: None,
            delay: None,
            stop_on_first_failure: false,
            done_label: "agent-done".to_owned(),
            waiting_label: "agent-waiting".to_owned(),
            claim: CLAIM_LEASE,
        }
    }
}

/// The number of tasks, the pause between them, and the rule for failures.
#[derive(Clone, Copy, Debug)]
struct TaskPace {
    max: u32,
    delay: Duration,
    first_failure: bool,
}

impl TaskPace {
    fn new(rules: &ContinuousSettings, mode: &ModeExecution) -> Self {
        TaskPace {
            max: rules.max_tasks.or(mode.max_tasks).unwrap_or(1),
            delay: rules.delay.unwrap_or(Duration::from_millis(mode.delay_ms.unwrap_or_default())),
            first_failure: rules.stop_on_first_failure || mode.stop_on_first_failure,
        }
    }

    /// Returns the reason to stop before the next task, if there is one.
    fn stop_reason(&self, done: &[TaskOutcome]) -> Option<String> {
        let failed = |task: &TaskOutcome| task.conclusion == RunConclusion::Failed;
        let in_a_row = done.iter().rev().take_while(|task| failed(task)).count();
        if in_a_row >= FAILURES_MAX {
            return Some(format!("{in_a_row} tasks in a row failed: something common is broken"));
        }
        if self.first_failure && done.iter().any(failed) {
            return Some("a task failed, and `stop_on_first_failure` is set".to_owned());
        }
        let max = self.max;
        (done.len() >= max as usize).then(|| format!("{max} tasks are as many as one run does"))
    }
}

/// The pending tasks, and their dead letters.
struct PendingTasks {
    queue: TaskQueue,
    letters: TaskLetters,
}

/// A task of a run, with its context.
struct TaskTurn<'a> {
    task: &'a QueuedTask,
    earlier: &'a [TaskOutcome],
    max: u32,
    limits: Limits,
    letters: &'a TaskLetters,
}

/// A task that was worked on.
struct WorkedTask {
    outcome: TaskOutcome,
    notes: Vec<String>,
    cost_usd: f64,
    class: Option<FailureClass>,
}

impl GitHubRunContext<'_> {
    /// Works through the pending tasks.
    pub(super) async fn work_through(
        &self,
        call: &AdmittedEvent<'_>,
        shutdown: &CancellationToken,
    ) -> GitHubOutcome {
        let mut outcome = match self.find_pending(call).await {
            Ok(waiting) => self.work_through_pending(call, &waiting, shutdown).await,
            Err(why) => GitHubOutcome::new(RunConclusion::Failed, why),
        };
        // A failure before the first task is in no other letter yet.
        let is_kept = !outcome.tasks.is_empty() || shutdown.is_cancelled();
        if !outcome.conclusion.is_fine() && !is_kept {
            self.add_event_letter(call, &mut outcome).await;
        }
        outcome.notes.extend(call.warnings.iter().cloned());
        outcome
    }

    async fn work_through_pending(
        &self,
        call: &AdmittedEvent<'_>,
        waiting: &PendingTasks,
        shutdown: &CancellationToken,
    ) -> GitHubOutcome {
        let queue = &waiting.queue;
        let passed = queue.passed_over.iter().map(|one| format!("{} {}", one.id, one.why));
        let notes: Vec<String> = passed.collect();
        let mut outcome = if queue.tasks.is_empty() {
            GitHubOutcome::new(RunConclusion::Skipped, "no task waits that may be picked")
        } else {
            match self.check_base(shutdown).await {
                BaseState::Green => self.work_one_by_one(call, waiting, shutdown).await,
                BaseState::Red(why) => GitHubOutcome::new(RunConclusion::Failed, why),
                BaseState::Stopped => {
                    GitHubOutcome::new(RunConclusion::Waiting, "somebody stopped it")
                }
            }
        };
        outcome.notes.extend(notes);
        outcome
    }

    async fn work_one_by_one(
        &self,
        call: &AdmittedEvent<'_>,
        waiting: &PendingTasks,
        shutdown: &CancellationToken,
    ) -> GitHubOutcome {
        let rules = &self.settings.continuous;
        let pace = TaskPace::new(rules, &call.mode.execution);
        let mut left = ContinuousBudget::new(rules, Instant::now());
        let (mut done, mut notes) = (Vec::<TaskOutcome>::new(), Vec::new());
        let (mut why, mut limited, mut passed) = (None, None, 0);
        for task in &waiting.queue.tasks {
            let now = Instant::now();
            why = pace.stop_reason(&done).or_else(|| left.used_up(now)).or(limited.take());
            why = why.or_else(|| shutdown.is_cancelled().then(|| "somebody stopped it".to_owned()));
            if why.is_some() {
                break;
            }
            if !done.is_empty() && !pace.delay.is_zero() {
                tokio::select! {
                    () = tokio::time::sleep(pace.delay) => {}
                    () = shutdown.cancelled() => continue,
                }
                // The pause counts towards the time budget.
                why = left.used_up(Instant::now());
                if why.is_some() {
                    break;
                }
            }
            let (max, limits) = (pace.max, left.limits_of_task(self.limits, Instant::now()));
            let turn = TaskTurn { task, earlier: &done, max, limits, letters: &waiting.letters };
            match self.claim_and_work(call, &turn, shutdown).await {
                Ok(worked) => {
                    left.spend(worked.cost_usd);
                    limited = (worked.class == Some(FailureClass::Transient))
                        .then(|| format!("work cannot go on just now: {}", worked.outcome.reason));
                    notes.extend(worked.notes);
                    done.push(worked.outcome);
                }
                Err(one) => {
                    passed += 1;
                    notes.push(format!("{} {}", one.id, one.why));
                }
            }
        }
        let mut outcome = summarise_tasks(done, waiting.queue.tasks.len() - passed, why);
        outcome.notes.extend(notes);
        outcome
    }

    /// Does a task, unless another run claimed it first.
    async fn claim_and_work(
        &self,
        call: &AdmittedEvent<'_>,
        turn: &TaskTurn<'_>,
        shutdown: &CancellationToken,
    ) -> Result<WorkedTask, SkippedTask> {
        let (task, rules) = (turn.task, self.issue_rules(call, turn.letters));
        let work = self.work_and_report(call, turn, &rules, shutdown);
        let Some(number) = task.issue_number() else { return Ok(work.await) };
        match issues::claim_issue(self.client, number, &rules).await {
            Ok(None) => {}
            Ok(Some(why)) => return Err(SkippedTask::new(&task.id, why)),
            Err(error) => {
                return Err(SkippedTask::new(&task.id, format!("could not be taken: {error}")));
            }
        }
        let claim = self.claim_settings(call, number, &rules);
        let (claim, errors) =
            RunTracking::begin_tracking(self.client.clone(), claim, CommentText::default()).await;
        let (mut worked, ended) = claim.track_work(work, |_| Default::default()).await;
        let errors = errors.iter().chain(&ended.errors);
        worked.notes.extend(errors.map(|error| format!("{}: {error}", task.id)));
        Ok(worked)
    }

    /// Returns the settings of the claim: only a label. The comment is written at the end.
    fn claim_settings(
        &self,
        call: &AdmittedEvent<'_>,
        number: u64,
        rules: &IssueRules,
    ) -> TrackingSettings {
        TrackingSettings {
            number,
            own_login: rules.who.bot_login.clone(),
            comment: CommentKind::None,
            mode: call.mode.name.clone(),
            run: self.nonce.to_owned(),
            label: rules.working_label.clone(),
            answer_chars_max: call.mode.tracking.comment_limit,
            triggers: Vec::new(),
            secrets: Vec::new(),
        }
    }

    async fn work_and_report(
        &self,
        call: &AdmittedEvent<'_>,
        turn: &TaskTurn<'_>,
        rules: &IssueRules,
        shutdown: &CancellationToken,
    ) -> WorkedTask {
        let task = turn.task;
        let mut outcome = self.deliver_work(call, self.task_work_order(call, turn), shutdown).await;
        if outcome.conclusion == RunConclusion::Answered {
            outcome.conclusion = RunConclusion::Waiting;
            outcome.class = Some(FailureClass::Permanent);
            outcome.reason = "nothing was changed; what the agent said needs a decision".to_owned();
        }
        // A user who stops the run does not want the task dropped.
        let is_stopped = outcome.conclusion == RunConclusion::Waiting && shutdown.is_cancelled();
        self.report_at_source(call, task, rules, is_stopped, &mut outcome).await;
        if !is_stopped {
            self.update_task_letters(task, &mut outcome, turn.letters).await;
        }
        let notes = outcome.notes.iter().map(|note| format!("{}: {note}", task.id)).collect();
        WorkedTask {
            notes,
            cost_usd: self.cost_of(&outcome).await,
            class: outcome.class,
            outcome: TaskOutcome {
                id: task.id.clone(),
                title: task.title.clone(),
                conclusion: outcome.conclusion,
                reason: outcome.reason,
                branch: outcome.branch,
                pull_request: outcome.pull_request,
            },
        }
    }

    /// Returns the cost of a piece of work, as far as it is known.
    async fn cost_of(&self, outcome: &GitHubOutcome) -> f64 {
        let Some(run) = &outcome.run else { return 0.0 };
        let run = self.journal.run(run).await.ok().flatten();
        run.map_or(0.0, |run| run.spent.cost_usd())
    }

    fn task_work_order(&self, call: &AdmittedEvent<'_>, turn: &TaskTurn<'_>) -> WorkOrder {
        let task = turn.task;
        let grant = decide_grant(call.mode, &call.admission, &self.settings.network);
        let facts = TaskFacts {
            id: task.id.clone(),
            source: task.source.as_str().to_owned(),
            title: task.title.clone(),
            body: task.body.clone(),
            author: (task.source == TaskSource::Issue)
                .then(|| "whoever opened the issue".to_owned()),
            number: format!("{} of at most {}", turn.earlier.len() + 1, turn.max),
            earlier: turn.earlier.iter().map(describe_earlier).collect(),
        };
        let limits = budget::describe_limits(&turn.limits);
        let facts = PromptFacts { task: Some(facts), limits, ..self.prompt_facts(call, &grant) };
        let prompt = render_prompt(call.mode, call.context, &self.settings.triggers, &facts);
        let plan = (task.source == TaskSource::Plan)
            .then(|| self.settings.continuous.plan.clone())
            .flatten();
        let tick = (task.source == TaskSource::File)
            .then(|| (self.settings.continuous.tasks_file.clone(), task.id.clone()));
        WorkOrder {
            name: task.id.clone(),
            title: task.title.clone(),
            prompt,
            grant,
            answer: false,
            plan,
            tick,
            topic: format!("{}\n{}", task.title, task.body),
            about: task.issue_number(),
            limits: turn.limits,
        }
    }

    /// Reports the outcome at the source of a task.
    async fn report_at_source(
        &self,
        call: &AdmittedEvent<'_>,
        task: &QueuedTask,
        rules: &IssueRules,
        is_stopped: bool,
        outcome: &mut GitHubOutcome,
    ) {
        let Some(number) = task.issue_number() else { return };
        let run = outcome.run.as_ref().map(ToString::to_string);
        let run = run.unwrap_or_else(|| format!("{}:{}", self.nonce, task.id));
        let (phrases, secrets) = (self.trigger_phrases(), self.all_secrets());
        let harmless = NeutraliseRules { triggers: &phrases, secrets: &secrets, image_host: None };
        let ours = render::render_comment(outcome, call.context.run.url.as_deref(), &harmless);
        let report = IssueReport {
            outcome: match (outcome.conclusion, outcome.class) {
                _ if is_stopped => issues::IssueOutcome::Stopped,
                (RunConclusion::Done, _) => issues::IssueOutcome::Done,
                (RunConclusion::Failed, _) => issues::IssueOutcome::Failed,
                (_, Some(FailureClass::Transient)) => issues::IssueOutcome::Stopped,
                _ => issues::IssueOutcome::Waiting,
            },
            run: &run,
            ours: &ours,
            theirs: outcome.answer.as_deref().unwrap_or_default(),
            chars_max: call.mode.tracking.comment_limit,
        };
        let told = issues::report_outcome(self.client, number, rules, &report, &harmless).await;
        outcome.notes.extend(told.err().map(|error| error.to_string()));
    }

    fn issue_rules(&self, call: &AdmittedEvent<'_>, letters: &TaskLetters) -> IssueRules {
        let (settings, continuous) = (self.settings, &self.settings.continuous);
        IssueRules {
            task_label: settings.triggers.task_label.clone(),
            ended: OutcomeLabels {
                done: continuous.done_label.clone(),
                failed: settings.failed_label.clone(),
                waiting: continuous.waiting_label.clone(),
            },
            working_label: call.mode.tracking.status_label.clone(),
            lease: continuous.claim,
            who: settings.rules.clone(),
            again: letters.retried_tasks(),
        }
    }

    /// Returns all pending tasks, in order.
    async fn find_pending(&self, call: &AdmittedEvent<'_>) -> Result<PendingTasks, String> {
        let letters = self.task_letters().await.map_err(|error| error.to_string())?;
        let sources = &self.settings.continuous.sources;
        let (mut all, mut passed_over) = (Vec::new(), Vec::new());
        for source in sources {
            let (tasks, passed) = self.find_in_source(*source, call, &letters).await?;
            all.extend(tasks);
            passed_over.extend(passed);
        }
        let held = self.find_held(&all, &letters).await?;
        let mut queue = tasks::order_tasks(all, sources, &held);
        queue.passed_over.extend(passed_over);
        Ok(PendingTasks { queue, letters })
    }

    async fn find_in_source(
        &self,
        source: TaskSource,
        call: &AdmittedEvent<'_>,
        letters: &TaskLetters,
    ) -> Result<(Vec<QueuedTask>, Vec<SkippedTask>), String> {
        let (rules, checkout) = (&self.settings.continuous, self.checkout.dir());
        let text = |error: &dyn std::fmt::Display| error.to_string();
        match source {
            TaskSource::Issue => {
                issues::find_issue_tasks(self.client, &self.issue_rules(call, letters))
                    .await
                    .map_err(|error| text(&error))
            }
            TaskSource::File => {
                let found =
                    fs::read_text_beneath(checkout, &rules.tasks_file, TASKS_FILE_BYTES_MAX);
                Ok((
                    found.map(|text| tasks::file::open_tasks(&text)).unwrap_or_default(),
                    Vec::new(),
                ))
            }
            TaskSource::Plan => {
                let Some(path) = &rules.plan else { return Ok(Default::default()) };
                let plan = fs::read_text_beneath(checkout, path, PLAN_BYTES_MAX as u64)
                    .map_err(|error| format!("the plan `{path}` cannot be read: {error}"))?;
                let (next, passed) = tasks::plan::next_plan_task(&plan, path);
                Ok((next.into_iter().collect(), passed))
            }
            TaskSource::Prompt => {
                let task = self.settings.triggers.prompt.as_deref().and_then(tasks::prompt::task);
                Ok((task.into_iter().collect(), Vec::new()))
            }
        }
    }

    /// Returns the tasks that must not be picked, with the reason. Issues have labels for that;
    /// other tasks have dead letters, and branches that wait for a review.
    async fn find_held(
        &self,
        all: &[QueuedTask],
        letters: &TaskLetters,
    ) -> Result<BTreeMap<String, String>, String> {
        let mut held = letters.held.clone();
        let others: Vec<&QueuedTask> =
            all.iter().filter(|task| task.issue_number().is_none()).collect();
        if others.is_empty() {
            return Ok(held);
        }
        let prefix = &self.settings.branch_prefix;
        let branches = self.checkout.remote_branches(self.remote, prefix).await;
        let branches = branches
            .map_err(|error| format!("the branches of the remote cannot be listed: {error}"))?;
        for task in others {
            if let Some(branch) = branches.iter().find(|branch| task.is_branch(prefix, branch)) {
                let why = format!(
                    "has been worked on in the branch `{branch}`; merge or delete it to have it picked again"
                );
                held.insert(task.id.clone(), why);
            }
        }
        Ok(held)
    }
}

/// Describes an earlier task of the run, for the prompt of the next one.
fn describe_earlier(task: &TaskOutcome) -> String {
    let branch = task.branch.as_deref().unwrap_or("no branch");
    format!("{} {}, {branch}", task.id, task.conclusion.as_str())
}

/// Returns the outcome of a run over several tasks.
fn summarise_tasks(done: Vec<TaskOutcome>, waiting: usize, why: Option<String>) -> GitHubOutcome {
    let count = |conclusion| done.iter().filter(|task| task.conclusion == conclusion).count();
    let (finished, failed) = (count(RunConclusion::Done), count(RunConclusion::Failed));
    let asks = done.len() - finished - failed;
    let left = waiting - done.len();
    let because = why.map_or(String::new(), |why| format!("; stopped because {why}"));
    let reason = format!("{finished} done, {failed} failed, {asks} waiting, {left} left{because}");
    let conclusion = match (failed, asks) {
        (0, 0) => RunConclusion::Done,
        (0, _) => RunConclusion::Waiting,
        _ => RunConclusion::Failed,
    };
    GitHubOutcome { tasks: done, ..GitHubOutcome::new(conclusion, reason) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(conclusions: &[RunConclusion]) -> Vec<TaskOutcome> {
        let one = |conclusion: &RunConclusion| TaskOutcome {
            id: "issue-1".to_owned(),
            title: "x".to_owned(),
            conclusion: *conclusion,
            reason: String::new(),
            branch: None,
            pull_request: None,
        };
        conclusions.iter().map(one).collect()
    }

    #[test]
    fn a_run_ends_by_itself() {
        use RunConclusion::{Done, Failed};
        let stop = |done: &[RunConclusion], max, first_failure| {
            let pace = TaskPace { max, delay: Duration::ZERO, first_failure };
            pace.stop_reason(&some(done))
        };
        assert_eq!(stop(&[], 1, true), None);
        assert!(stop(&[Done], 1, false).unwrap().contains("1 tasks"));
        assert_eq!(stop(&[Failed, Failed, Done], 9, false), None);
        assert!(stop(&[Done, Failed, Failed, Failed], 9, false).unwrap().contains("common"));
        assert!(stop(&[Failed, Done], 9, true).unwrap().contains("stop_on_first_failure"));
    }

    #[test]
    fn one_failure_is_enough_for_red() {
        use RunConclusion::{Done, Failed, Waiting};
        for (all, expected) in
            [(vec![Done, Done], Done), (vec![Done, Waiting], Waiting), (vec![Done, Failed], Failed)]
        {
            assert_eq!(summarise_tasks(some(&all), 3, None).conclusion, expected);
        }
        assert_eq!(
            summarise_tasks(some(&[Done]), 3, None).reason,
            "1 done, 0 failed, 0 waiting, 2 left"
        );
    }
}
