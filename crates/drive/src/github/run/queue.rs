//! Continuous mode: task after task through the plan loop, each on a fresh branch, until there is a reason to stop.

use std::collections::BTreeSet;
use std::time::Duration;

use camino::Utf8PathBuf;
use repertoire_flow::limits::PLAN_BYTES_MAX;
use repertoire_github::comment::Harmless;
use repertoire_journal::letter::{LetterFilter, LetterSource, NewLetter, Priority};
use repertoire_text::fs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::words;
use super::{Call, Conclusion, Desk, Outcome, TaskOutcome, Wanted};
use crate::checks;
use crate::github::grant::grant;
use crate::github::tasks::issues::{self, IssueRules, Report};
use crate::github::tasks::{self, PassedOver, Queue, Source, Task};
use crate::github::template::{Facts, TaskFacts, prompt};
use crate::limits::TASKS_FILE_BYTES_MAX;

/// Tasks in a row that may fail before something common must be broken.
const FAILURES_MAX: usize = 3;

/// How tasks are worked through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Continuous {
    /// Where tasks come from, in this order.
    pub sources: Vec<Source>,
    /// The list of boxes.
    #[schemars(with = "String")]
    pub tasks_file: Utf8PathBuf,
    /// The plan, if there is one.
    #[schemars(with = "Option<String>")]
    pub plan: Option<Utf8PathBuf>,
    /// Most tasks of a run; the mode's own number if absent.
    pub max_tasks: Option<u32>,
    /// The pause between tasks; the mode's own if absent.
    pub delay: Option<Duration>,
    /// Whether the first failure ends the run.
    pub stop_on_first_failure: bool,
}

impl Default for Continuous {
    fn default() -> Self {
        Continuous {
            sources: Source::ALL.to_vec(),
            tasks_file: "TASKS.md".into(),
            plan: None,
            max_tasks: None,
            delay: None,
            stop_on_first_failure: false,
        }
    }
}

/// Whether to stop before the next task, and why.
fn stop(done: &[TaskOutcome], max: u32, first_failure: bool) -> Option<String> {
    let failed = |task: &TaskOutcome| task.conclusion == Conclusion::Failed;
    let in_a_row = done.iter().rev().take_while(|task| failed(task)).count();
    if in_a_row >= FAILURES_MAX {
        return Some(format!("{in_a_row} tasks in a row failed: something common is broken"));
    }
    if first_failure && done.iter().any(failed) {
        return Some("a task failed, and `stop_on_first_failure` is set".to_owned());
    }
    (done.len() >= max as usize).then(|| format!("{max} tasks are as many as one run does"))
}

impl Desk<'_> {
    /// Works through what is waiting.
    pub(super) async fn work_through(
        &self,
        call: &Call<'_>,
        shutdown: &CancellationToken,
    ) -> Outcome {
        let queue = match self.queue().await {
            Ok(queue) => queue,
            Err(why) => return Outcome::new(Conclusion::Failed, why),
        };
        let notes: Vec<String> =
            queue.passed_over.iter().map(|one| format!("{} {}", one.id, one.why)).collect();
        let mut outcome = self.tasks(call, &queue, shutdown).await;
        outcome.notes.extend(notes);
        outcome
    }

    async fn tasks(&self, call: &Call<'_>, queue: &Queue, shutdown: &CancellationToken) -> Outcome {
        if queue.tasks.is_empty() {
            return Outcome::new(Conclusion::Skipped, "no task waits that may be picked");
        }
        if let Some(red) = self.red_base(shutdown).await {
            return Outcome::new(Conclusion::Failed, red);
        }
        let (rules, mode) = (&self.settings.continuous, &call.mode.execution);
        let max = rules.max_tasks.or(mode.max_tasks).unwrap_or(1);
        let delay = rules.delay.unwrap_or(Duration::from_millis(mode.delay_ms.unwrap_or_default()));
        let first_failure = rules.stop_on_first_failure || mode.stop_on_first_failure;
        let mut done: Vec<TaskOutcome> = Vec::new();
        let mut why = None;
        for task in &queue.tasks {
            why = stop(&done, max, first_failure)
                .or_else(|| shutdown.is_cancelled().then(|| "somebody stopped it".to_owned()));
            if why.is_some() {
                break;
            }
            if !done.is_empty() && !delay.is_zero() {
                tokio::select! {
                    () = tokio::time::sleep(delay) => {}
                    () = shutdown.cancelled() => continue,
                }
            }
            done.push(self.task(call, task, &done, max, shutdown).await);
        }
        ended(done, queue.tasks.len(), why)
    }

    /// Work on a red base proves nothing.
    async fn red_base(&self, shutdown: &CancellationToken) -> Option<String> {
        let all: Vec<_> =
            self.request.checks.iter().chain(&self.request.final_checks).cloned().collect();
        let station = match self.runner.crew.station(self.house.dir(), self.request) {
            Ok(station) => station,
            Err(why) => return Some(why),
        };
        let mut place = station.system.in_dir(self.house.dir(), Vec::new()).workplace_of("base");
        place.environment = station.environment;
        let at_once = self.request.bounds.checks_at_once.max(1) as usize;
        match checks::run_checks(&all, &place, shutdown, &|_| {}, at_once).await {
            Ok(verdict) if verdict.green => None,
            Ok(verdict) => Some(format!(
                "the base branch `{}` is red, and work on it would prove nothing: {}",
                self.ground.base_ref,
                checks::notes(&verdict)
            )),
            Err(error) => Some(error.to_string()),
        }
    }

    async fn task(
        &self,
        call: &Call<'_>,
        task: &Task,
        earlier: &[TaskOutcome],
        max: u32,
        shutdown: &CancellationToken,
    ) -> TaskOutcome {
        let wanted = self.wanted_of(call, task, earlier, max);
        let mut outcome = self.deliver(call, wanted, shutdown).await;
        if outcome.conclusion == Conclusion::Answered {
            outcome.conclusion = Conclusion::Waiting;
        }
        self.tell(call, task, &mut outcome).await;
        TaskOutcome {
            id: task.id.clone(),
            title: task.title.clone(),
            conclusion: outcome.conclusion,
            reason: outcome.reason,
            branch: outcome.branch,
            pull_request: outcome.pull_request,
        }
    }

    fn wanted_of(&self, call: &Call<'_>, task: &Task, earlier: &[TaskOutcome], max: u32) -> Wanted {
        let grant = grant(call.mode, &call.admission, &self.settings.network);
        let line = |one: &TaskOutcome| {
            let branch = one.branch.as_deref().unwrap_or("no branch");
            format!("{} {}, {branch}", one.id, one.conclusion.as_str())
        };
        let facts = TaskFacts {
            id: task.id.clone(),
            source: task.source.as_str().to_owned(),
            title: task.title.clone(),
            body: task.body.clone(),
            author: (task.source == Source::Issue).then(|| "whoever opened the issue".to_owned()),
            number: format!("{} of at most {max}", earlier.len() + 1),
            earlier: earlier.iter().map(line).collect(),
        };
        let facts = Facts { task: Some(facts), ..self.facts(call, &grant) };
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
            about: task.issue(),
        }
    }

    /// Says at the source of a task how it ended, and keeps what failed for a person.
    async fn tell(&self, call: &Call<'_>, task: &Task, outcome: &mut Outcome) {
        if let Some(number) = task.issue() {
            let run = outcome.run.as_ref().map(ToString::to_string);
            let run = run.unwrap_or_else(|| format!("{}:{}", self.nonce, task.id));
            let (phrases, secrets) = (self.phrases(), self.secrets());
            let rules = Harmless { triggers: &phrases, secrets: &secrets, image_host: None };
            let ours = words::comment(outcome, call.context.run.url.as_deref(), &rules);
            let report = Report {
                outcome: match outcome.conclusion {
                    Conclusion::Done => issues::Outcome::Done,
                    Conclusion::Failed => issues::Outcome::Failed,
                    _ => issues::Outcome::Waiting,
                },
                run: &run,
                ours: &ours,
                theirs: outcome.answer.as_deref().unwrap_or_default(),
                chars_max: call.mode.tracking.comment_limit,
            };
            let told =
                issues::report(self.client, number, &self.issue_rules(), &report, &rules).await;
            outcome.notes.extend(told.err().map(|error| error.to_string()));
        }
        if outcome.conclusion == Conclusion::Failed {
            let letter = NewLetter {
                scope: self.scope.to_owned(),
                source: LetterSource::Task,
                title: task.title.clone(),
                priority: if task.priority <= 3 { Priority::High } else { Priority::Medium },
                class: "substantive".to_owned(),
                reason: outcome.reason.clone(),
                question: "what would let this task succeed?".to_owned(),
                run: outcome.run.clone(),
                data: json!({ "task": task }),
                by: self.worker.name.clone(),
            };
            if let Err(error) = self.journal.bury(letter).await {
                outcome.notes.push(format!("it could not be kept as a dead letter: {error}"));
            }
        }
    }

    pub(super) fn issue_rules(&self) -> IssueRules {
        let rules = &self.settings.rules;
        IssueRules {
            task_label: self.settings.triggers.task_label.clone(),
            failed_label: self.settings.failed_label.clone(),
            own_login: rules.bot_login.clone(),
            allowed_bots: rules.allowed_bots.clone(),
            // Who may only ask questions cannot have work done by a label either.
            allowed_users: Vec::new(),
        }
    }

    /// Everything that waits, in one order.
    async fn queue(&self) -> Result<Queue, String> {
        let rules = &self.settings.continuous;
        let mut all: Vec<Task> = Vec::new();
        let mut passed_over: Vec<PassedOver> = Vec::new();
        for source in &rules.sources {
            match source {
                Source::Issue => {
                    let found = issues::tasks(self.client, &self.issue_rules()).await;
                    let (tasks, passed) = found.map_err(|error| error.to_string())?;
                    all.extend(tasks);
                    passed_over.extend(passed);
                }
                Source::File => {
                    let text = fs::read_text_beneath(
                        self.house.dir(),
                        &rules.tasks_file,
                        TASKS_FILE_BYTES_MAX,
                    );
                    all.extend(text.map(|text| tasks::file::tasks(&text)).unwrap_or_default());
                }
                Source::Plan => {
                    if let Some(path) = &rules.plan {
                        let text =
                            fs::read_text_beneath(self.house.dir(), path, PLAN_BYTES_MAX as u64)
                                .map_err(|error| {
                                    format!("the plan `{path}` cannot be read: {error}")
                                })?;
                        let (next, passed) = tasks::plan::next(&text, path);
                        all.extend(next);
                        passed_over.extend(passed);
                    }
                }
                Source::Prompt => all
                    .extend(self.settings.triggers.prompt.as_deref().and_then(tasks::prompt::task)),
            }
        }
        let failed = self.failed().await?;
        let mut queue = tasks::order(all, &rules.sources, &failed);
        queue.passed_over.extend(passed_over);
        Ok(queue)
    }

    /// Tasks that are dead letters: what is not an issue has no label to say so.
    async fn failed(&self) -> Result<BTreeSet<String>, String> {
        let scope = Some(self.scope.to_owned());
        let filter = LetterFilter { scope, ..LetterFilter::default() };
        let page = self.journal.letters(&filter).await.map_err(|error| error.to_string())?;
        let open = page.items.iter().filter(|letter| letter.status.is_open());
        let id = |data: &serde_json::Value| Some(data.get("task")?.get("id")?.as_str()?.to_owned());
        let ids = open.filter_map(|letter| id(&letter.data));
        Ok(ids.filter(|id| !id.starts_with("issue-")).collect())
    }
}

/// What a run over several tasks came to.
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
        assert_eq!(stop(&[], 1, true), None);
        assert!(stop(&some(&[Done]), 1, false).unwrap().contains("1 tasks"));
        assert_eq!(stop(&some(&[Failed, Failed, Done]), 9, false), None);
        assert!(stop(&some(&[Done, Failed, Failed, Failed]), 9, false).unwrap().contains("common"));
        assert!(stop(&some(&[Failed, Done]), 9, true).unwrap().contains("stop_on_first_failure"));
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
