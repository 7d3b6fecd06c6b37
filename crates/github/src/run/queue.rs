//! Continuous operation: runs the plan loop for one task after the other, each on a fresh branch,
//! until there is a reason to stop.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::comment::Harmless;
use camino::Utf8PathBuf;
use repertoire_journal::run::Limits;
use repertoire_plan::limits::PLAN_BYTES_MAX;
use repertoire_text::fs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::allowance::{self, Allowance};
use super::basis::Basis;
use super::letters::TaskLetters;
use super::words;
use super::{Call, Conclusion, Desk, Outcome, TaskOutcome, Wanted};
use crate::grant::grant;
use crate::limits::{CLAIM_LEASE, TASKS_FILE_BYTES_MAX};
use crate::mode::Execution;
use crate::tasks::issues::{self, EndLabels, IssueRules, Report};
use crate::tasks::{self, PassedOver, Queue, Source, Task};
use crate::template::{Facts, TaskFacts, prompt};
use crate::tracking::{CommentKind, Saying, Tracking, TrackingSettings};
use repertoire_checks::recover::Class;

/// The number of consecutive failures after which the run stops, since a common cause is likely.
const FAILURES_MAX: usize = 3;

/// The settings of continuous operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Continuous {
    /// The sources of tasks, in this order.
    pub sources: Vec<Source>,
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

impl Default for Continuous {
    fn default() -> Self {
        Continuous {
            sources: Source::ALL.to_vec(),
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
struct Pace {
    max: u32,
    delay: Duration,
    first_failure: bool,
}

impl Pace {
    fn new(rules: &Continuous, mode: &Execution) -> Self {
        Pace {
            max: rules.max_tasks.or(mode.max_tasks).unwrap_or(1),
            delay: rules.delay.unwrap_or(Duration::from_millis(mode.delay_ms.unwrap_or_default())),
            first_failure: rules.stop_on_first_failure || mode.stop_on_first_failure,
        }
    }

    /// Returns the reason to stop before the next task, if there is one.
    fn stop(&self, done: &[TaskOutcome]) -> Option<String> {
        let failed = |task: &TaskOutcome| task.conclusion == Conclusion::Failed;
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
struct Waiting {
    queue: Queue,
    letters: TaskLetters,
}

/// A task of a run, with its context.
struct Turn<'a> {
    task: &'a Task,
    earlier: &'a [TaskOutcome],
    max: u32,
    limits: Limits,
    letters: &'a TaskLetters,
}

/// A task that was worked on.
struct Worked {
    outcome: TaskOutcome,
    notes: Vec<String>,
    cost_usd: f64,
    class: Option<Class>,
}

impl Desk<'_> {
    /// Works through the pending tasks.
    pub(super) async fn work_through(
        &self,
        call: &Call<'_>,
        shutdown: &CancellationToken,
    ) -> Outcome {
        let mut outcome = match self.waiting(call).await {
            Ok(waiting) => self.tasks(call, &waiting, shutdown).await,
            Err(why) => Outcome::new(Conclusion::Failed, why),
        };
        // A failure before the first task is in no other letter yet.
        let is_kept = !outcome.tasks.is_empty() || shutdown.is_cancelled();
        if !outcome.conclusion.is_fine() && !is_kept {
            self.bury(call, &mut outcome).await;
        }
        outcome.notes.extend(call.warnings.iter().cloned());
        outcome
    }

    async fn tasks(
        &self,
        call: &Call<'_>,
        waiting: &Waiting,
        shutdown: &CancellationToken,
    ) -> Outcome {
        let queue = &waiting.queue;
        let passed = queue.passed_over.iter().map(|one| format!("{} {}", one.id, one.why));
        let notes: Vec<String> = passed.collect();
        let mut outcome = if queue.tasks.is_empty() {
            Outcome::new(Conclusion::Skipped, "no task waits that may be picked")
        } else {
            match self.basis(shutdown).await {
                Basis::Green => self.one_after_another(call, waiting, shutdown).await,
                Basis::Red(why) => Outcome::new(Conclusion::Failed, why),
                Basis::Stopped => Outcome::new(Conclusion::Waiting, "somebody stopped it"),
            }
        };
        outcome.notes.extend(notes);
        outcome
    }

    async fn one_after_another(
        &self,
        call: &Call<'_>,
        waiting: &Waiting,
        shutdown: &CancellationToken,
    ) -> Outcome {
        let rules = &self.settings.continuous;
        let pace = Pace::new(rules, &call.mode.execution);
        let mut left = Allowance::new(rules, Instant::now());
        let (mut done, mut notes) = (Vec::<TaskOutcome>::new(), Vec::new());
        let (mut why, mut limited, mut passed) = (None, None, 0);
        for task in &waiting.queue.tasks {
            let now = Instant::now();
            why = pace.stop(&done).or_else(|| left.used_up(now)).or(limited.take());
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
            let (max, limits) = (pace.max, left.of_task(self.limits, Instant::now()));
            let turn = Turn { task, earlier: &done, max, limits, letters: &waiting.letters };
            match self.task(call, &turn, shutdown).await {
                Ok(worked) => {
                    left.spend(worked.cost_usd);
                    limited = (worked.class == Some(Class::Transient))
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
        let mut outcome = ended(done, waiting.queue.tasks.len() - passed, why);
        outcome.notes.extend(notes);
        outcome
    }

    /// Does a task, unless another run claimed it first.
    async fn task(
        &self,
        call: &Call<'_>,
        turn: &Turn<'_>,
        shutdown: &CancellationToken,
    ) -> Result<Worked, PassedOver> {
        let (task, rules) = (turn.task, self.issue_rules(call, turn.letters));
        let work = self.done_and_told(call, turn, &rules, shutdown);
        let Some(number) = task.issue() else { return Ok(work.await) };
        match issues::claim(self.client, number, &rules).await {
            Ok(None) => {}
            Ok(Some(why)) => return Err(PassedOver::new(&task.id, why)),
            Err(error) => {
                return Err(PassedOver::new(&task.id, format!("could not be taken: {error}")));
            }
        }
        let claim = self.claim(call, number, &rules);
        let (claim, errors) = Tracking::begin(self.client.clone(), claim, Saying::default()).await;
        let (mut worked, ended) = claim.around(work, |_| Default::default()).await;
        let errors = errors.iter().chain(&ended.errors);
        worked.notes.extend(errors.map(|error| format!("{}: {error}", task.id)));
        Ok(worked)
    }

    /// Returns the settings of the claim: only a label. The comment is written at the end.
    fn claim(&self, call: &Call<'_>, number: u64, rules: &IssueRules) -> TrackingSettings {
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

    async fn done_and_told(
        &self,
        call: &Call<'_>,
        turn: &Turn<'_>,
        rules: &IssueRules,
        shutdown: &CancellationToken,
    ) -> Worked {
        let task = turn.task;
        let mut outcome = self.deliver(call, self.wanted_of(call, turn), shutdown).await;
        if outcome.conclusion == Conclusion::Answered {
            outcome.conclusion = Conclusion::Waiting;
            outcome.class = Some(Class::Permanent);
            outcome.reason = "nothing was changed; what the agent said needs a decision".to_owned();
        }
        // A user who stops the run does not want the task dropped.
        let is_stopped = outcome.conclusion == Conclusion::Waiting && shutdown.is_cancelled();
        self.tell(call, task, rules, is_stopped, &mut outcome).await;
        if !is_stopped {
            self.keep_task(task, &mut outcome, turn.letters).await;
        }
        let notes = outcome.notes.iter().map(|note| format!("{}: {note}", task.id)).collect();
        Worked {
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
    async fn cost_of(&self, outcome: &Outcome) -> f64 {
        let Some(run) = &outcome.run else { return 0.0 };
        let run = self.journal.run(run).await.ok().flatten();
        run.map_or(0.0, |run| run.spent.cost_usd())
    }

    fn wanted_of(&self, call: &Call<'_>, turn: &Turn<'_>) -> Wanted {
        let task = turn.task;
        let grant = grant(call.mode, &call.admission, &self.settings.network);
        let facts = TaskFacts {
            id: task.id.clone(),
            source: task.source.as_str().to_owned(),
            title: task.title.clone(),
            body: task.body.clone(),
            author: (task.source == Source::Issue).then(|| "whoever opened the issue".to_owned()),
            number: format!("{} of at most {}", turn.earlier.len() + 1, turn.max),
            earlier: turn.earlier.iter().map(describe_earlier).collect(),
        };
        let limits = allowance::words(&turn.limits);
        let facts = Facts { task: Some(facts), limits, ..self.facts(call, &grant) };
        let prompt = prompt(call.mode, call.context, &self.settings.triggers, &facts);
        let plan =
            (task.source == Source::Plan).then(|| self.settings.continuous.plan.clone()).flatten();
        let tick = (task.source == Source::File)
            .then(|| (self.settings.continuous.tasks_file.clone(), task.id.clone()));
        Wanted {
            name: task.id.clone(),
            title: task.title.clone(),
            prompt,
            grant,
            answer: false,
            plan,
            tick,
            topic: format!("{}\n{}", task.title, task.body),
            about: task.issue(),
            limits: turn.limits,
        }
    }

    /// Reports the outcome at the source of a task.
    async fn tell(
        &self,
        call: &Call<'_>,
        task: &Task,
        rules: &IssueRules,
        is_stopped: bool,
        outcome: &mut Outcome,
    ) {
        let Some(number) = task.issue() else { return };
        let run = outcome.run.as_ref().map(ToString::to_string);
        let run = run.unwrap_or_else(|| format!("{}:{}", self.nonce, task.id));
        let (phrases, secrets) = (self.phrases(), self.secrets());
        let harmless = Harmless { triggers: &phrases, secrets: &secrets, image_host: None };
        let ours = words::comment(outcome, call.context.run.url.as_deref(), &harmless);
        let report = Report {
            outcome: match (outcome.conclusion, outcome.class) {
                _ if is_stopped => issues::Outcome::Stopped,
                (Conclusion::Done, _) => issues::Outcome::Done,
                (Conclusion::Failed, _) => issues::Outcome::Failed,
                (_, Some(Class::Transient)) => issues::Outcome::Stopped,
                _ => issues::Outcome::Waiting,
            },
            run: &run,
            ours: &ours,
            theirs: outcome.answer.as_deref().unwrap_or_default(),
            chars_max: call.mode.tracking.comment_limit,
        };
        let told = issues::report(self.client, number, rules, &report, &harmless).await;
        outcome.notes.extend(told.err().map(|error| error.to_string()));
    }

    fn issue_rules(&self, call: &Call<'_>, letters: &TaskLetters) -> IssueRules {
        let (settings, continuous) = (self.settings, &self.settings.continuous);
        IssueRules {
            task_label: settings.triggers.task_label.clone(),
            ended: EndLabels {
                done: continuous.done_label.clone(),
                failed: settings.failed_label.clone(),
                waiting: continuous.waiting_label.clone(),
            },
            working_label: call.mode.tracking.status_label.clone(),
            lease: continuous.claim,
            who: settings.rules.clone(),
            again: letters.again(),
        }
    }

    /// Returns all pending tasks, in order.
    async fn waiting(&self, call: &Call<'_>) -> Result<Waiting, String> {
        let letters = self.task_letters().await.map_err(|error| error.to_string())?;
        let sources = &self.settings.continuous.sources;
        let (mut all, mut passed_over) = (Vec::new(), Vec::new());
        for source in sources {
            let (tasks, passed) = self.of_source(*source, call, &letters).await?;
            all.extend(tasks);
            passed_over.extend(passed);
        }
        let held = self.held(&all, &letters).await?;
        let mut queue = tasks::order(all, sources, &held);
        queue.passed_over.extend(passed_over);
        Ok(Waiting { queue, letters })
    }

    async fn of_source(
        &self,
        source: Source,
        call: &Call<'_>,
        letters: &TaskLetters,
    ) -> Result<(Vec<Task>, Vec<PassedOver>), String> {
        let (rules, house) = (&self.settings.continuous, self.house.dir());
        let text = |error: &dyn std::fmt::Display| error.to_string();
        match source {
            Source::Issue => issues::tasks(self.client, &self.issue_rules(call, letters))
                .await
                .map_err(|error| text(&error)),
            Source::File => {
                let found = fs::read_text_beneath(house, &rules.tasks_file, TASKS_FILE_BYTES_MAX);
                Ok((found.map(|text| tasks::file::tasks(&text)).unwrap_or_default(), Vec::new()))
            }
            Source::Plan => {
                let Some(path) = &rules.plan else { return Ok(Default::default()) };
                let plan = fs::read_text_beneath(house, path, PLAN_BYTES_MAX as u64)
                    .map_err(|error| format!("the plan `{path}` cannot be read: {error}"))?;
                let (next, passed) = tasks::plan::next(&plan, path);
                Ok((next.into_iter().collect(), passed))
            }
            Source::Prompt => {
                let task = self.settings.triggers.prompt.as_deref().and_then(tasks::prompt::task);
                Ok((task.into_iter().collect(), Vec::new()))
            }
        }
    }

    /// Returns the tasks that must not be picked, with the reason. Issues have labels for that;
    /// other tasks have dead letters, and branches that wait for a review.
    async fn held(
        &self,
        all: &[Task],
        letters: &TaskLetters,
    ) -> Result<BTreeMap<String, String>, String> {
        let mut held = letters.held.clone();
        let others: Vec<&Task> = all.iter().filter(|task| task.issue().is_none()).collect();
        if others.is_empty() {
            return Ok(held);
        }
        let prefix = &self.settings.branch_prefix;
        let branches = self.house.remote_branches(self.remote, prefix).await;
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
fn ended(done: Vec<TaskOutcome>, waiting: usize, why: Option<String>) -> Outcome {
    let count = |conclusion| done.iter().filter(|task| task.conclusion == conclusion).count();
    let (finished, failed) = (count(Conclusion::Done), count(Conclusion::Failed));
    let asks = done.len() - finished - failed;
    let left = waiting - done.len();
    let because = why.map_or(String::new(), |why| format!("; stopped because {why}"));
    let reason = format!("{finished} done, {failed} failed, {asks} waiting, {left} left{because}");
    let conclusion = match (failed, asks) {
        (0, 0) => Conclusion::Done,
        (0, _) => Conclusion::Waiting,
        _ => Conclusion::Failed,
    };
    Outcome { tasks: done, ..Outcome::new(conclusion, reason) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(conclusions: &[Conclusion]) -> Vec<TaskOutcome> {
        let one = |conclusion: &Conclusion| TaskOutcome {
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
        use Conclusion::{Done, Failed};
        let stop = |done: &[Conclusion], max, first_failure| {
            let pace = Pace { max, delay: Duration::ZERO, first_failure };
            pace.stop(&some(done))
        };
        assert_eq!(stop(&[], 1, true), None);
        assert!(stop(&[Done], 1, false).unwrap().contains("1 tasks"));
        assert_eq!(stop(&[Failed, Failed, Done], 9, false), None);
        assert!(stop(&[Done, Failed, Failed, Failed], 9, false).unwrap().contains("common"));
        assert!(stop(&[Failed, Done], 9, true).unwrap().contains("stop_on_first_failure"));
    }

    #[test]
    fn one_failure_is_enough_for_red() {
        use Conclusion::{Done, Failed, Waiting};
        for (all, expected) in
            [(vec![Done, Done], Done), (vec![Done, Waiting], Waiting), (vec![Done, Failed], Failed)]
        {
            assert_eq!(ended(some(&all), 3, None).conclusion, expected);
        }
        assert_eq!(ended(some(&[Done]), 3, None).reason, "1 done, 0 failed, 0 waiting, 2 left");
    }
}
