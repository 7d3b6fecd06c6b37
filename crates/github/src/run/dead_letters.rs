//! Dead letters of GitHub runs: failed work that waits for a person, and its retries.

use std::collections::{BTreeMap, BTreeSet};

use crate::comment::truncate_markdown;
use crate::event::GitHubEventContext;
use repertoire_journal::letter::{LetterPriority, LetterSource, NewLetter};
use repertoire_journal::limits::LETTER_BYTES_MAX;
use repertoire_journal::{DeadLetter, JournalError, LetterFilter, LetterStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{AdmittedEvent, GitHubOutcome, GitHubRunContext, RunConclusion};
use crate::limits::LETTER_QUESTION_CHARS_MAX;
use crate::tasks::QueuedTask;
use repertoire_checks::recover::FailureClass;

/// The parameters of a GitHub run, stored in the dead letter of an event so that the run can be
/// repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventRunParameters {
    /// The payload of the event.
    pub event: Value,
    /// GitHub's name of the event.
    pub event_name: String,
    /// The additional prompt of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The mode that was requested by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// True for continuous operation.
    #[serde(default)]
    pub continuous: bool,
    /// True if branches were pushed.
    #[serde(default)]
    pub push: bool,
    /// True if pull requests were opened.
    #[serde(default)]
    pub pull_request: bool,
}

impl EventRunParameters {
    /// Reads the parameters from a dead letter; `None` if it is not about an event.
    pub fn from_letter(letter: &DeadLetter) -> Option<EventRunParameters> {
        let is_event = letter.source == LetterSource::Event;
        let started: Option<EventRunParameters> = serde_json::from_value(letter.data.clone()).ok();
        started.filter(|started| is_event && started.event.is_object())
    }
}

/// The dead letters of tasks, by the ids of the tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskLetters {
    /// Tasks that must not be picked, with the reason.
    pub(super) held: BTreeMap<String, String>,
    /// The ids of letters that a person wants retried.
    again: BTreeMap<String, Vec<String>>,
    /// The ids of letters that are resolved when the task is done.
    open: BTreeMap<String, Vec<String>>,
}

impl TaskLetters {
    /// Returns the tasks that a person wants retried.
    pub(super) fn retried_tasks(&self) -> BTreeSet<String> {
        self.again.keys().cloned().collect()
    }

    fn add_letter(&mut self, letter: &DeadLetter) {
        let Some(task) = letter.data.pointer("/task/id").and_then(Value::as_str) else { return };
        let (task, id) = (task.to_owned(), letter.id.clone());
        let short = letter.short();
        let held = match letter.status {
            LetterStatus::Resolved => return,
            LetterStatus::Retrying => {
                self.again.entry(task.clone()).or_default().push(id.clone());
                None
            }
            // A transient problem may be over by now.
            LetterStatus::Queued if letter.class == FailureClass::Transient.as_str() => None,
            LetterStatus::Queued => Some(format!(
                "was given up before, and is not tried again until somebody edits it or says `rep runs dead-letters retry {short}`"
            )),
            LetterStatus::Abandoned => Some(format!(
                "is not to be done, somebody said (dead letter {short}); `rep runs dead-letters requeue {short}` takes that back"
            )),
        };
        if letter.status.is_open() {
            self.open.entry(task.clone()).or_default().push(id);
        }
        self.held.extend(held.map(|why| (task, why)));
    }

    /// Removes retried tasks from the held ones: a person's request overrides earlier failures.
    /// Issues are held by their labels instead, which people remove.
    fn without_retried(mut self) -> Self {
        self.held.retain(|task, _| !self.again.contains_key(task) && !task.starts_with("issue-"));
        self
    }
}

impl GitHubRunContext<'_> {
    /// Stores an event that could not be handled as a dead letter. A run that retries a letter
    /// updates that one instead.
    pub(super) async fn add_event_letter(
        &self,
        call: &AdmittedEvent<'_>,
        outcome: &mut GitHubOutcome,
    ) {
        if self.letter.is_some() {
            return;
        }
        let class = outcome.class.unwrap_or(FailureClass::Substantive);
        let is_continuous = call.mode.execution.supports_continuous;
        let title = match &call.context.entity {
            Some(entity) => entity.title.as_str(),
            None if is_continuous => "working through tasks",
            None => "a prompt",
        };
        let priority = match class {
            FailureClass::Transient => LetterPriority::Low,
            // All tasks are blocked.
            _ if is_continuous => LetterPriority::High,
            FailureClass::Permanent => LetterPriority::High,
            FailureClass::Mechanical | FailureClass::Known | FailureClass::Substantive => {
                LetterPriority::Medium
            }
        };
        let started = EventRunParameters {
            event: letter_event(self.event, call.context),
            event_name: call.context.event.as_str().to_owned(),
            prompt: self.settings.triggers.prompt.clone(),
            mode: self.settings.mode.clone(),
            continuous: is_continuous,
            push: self.settings.push,
            pull_request: self.settings.pull_request,
        };
        let letter = self.new_letter(outcome, LetterSource::Event, title, priority);
        self.store_letter(NewLetter { data: json!(started), ..letter }, outcome).await;
    }

    fn new_letter(
        &self,
        outcome: &GitHubOutcome,
        source: LetterSource,
        title: &str,
        priority: LetterPriority,
    ) -> NewLetter {
        let class = outcome.class.unwrap_or(FailureClass::Substantive);
        NewLetter {
            scope: self.scope.to_owned(),
            source,
            title: title.to_owned(),
            priority,
            class: class.as_str().to_owned(),
            reason: outcome.reason.clone(),
            question: open_question(class).to_owned(),
            run: outcome.run.clone(),
            data: Value::Null,
            by: self.worker.name.clone(),
        }
    }

    async fn store_letter(&self, letter: NewLetter, outcome: &mut GitHubOutcome) {
        if let Err(error) = self.journal.bury(letter).await {
            outcome.notes.push(format!("it could not be kept as a dead letter: {error}"));
        }
    }

    /// Updates the letter that this run retried with its outcome.
    pub async fn update_letter(&self, outcome: &mut GitHubOutcome) {
        let Some(letter) = self.letter else { return };
        // Tasks that were started have their own letters.
        let is_handled =
            matches!(outcome.conclusion, RunConclusion::Done | RunConclusion::Answered)
                || !outcome.tasks.is_empty();
        let to = if is_handled { LetterStatus::Resolved } else { LetterStatus::Queued };
        let turned = self.set_letter_status(letter, to, &outcome.reason).await;
        outcome.notes.extend(turned.err().map(|error| error.to_string()));
    }

    async fn set_letter_status(
        &self,
        id: &str,
        to: LetterStatus,
        why: &str,
    ) -> Result<(), JournalError> {
        self.journal.set_letter_status(id, to, &self.worker.name, why).await.map(drop)
    }

    /// Reads the dead letters of tasks of this repository.
    pub(super) async fn task_letters(&self) -> Result<TaskLetters, JournalError> {
        let statuses = vec![LetterStatus::Queued, LetterStatus::Retrying, LetterStatus::Abandoned];
        let scope = Some(self.scope.to_owned());
        let mut filter = LetterFilter { scope, statuses, ..LetterFilter::default() };
        let mut letters = TaskLetters::default();
        loop {
            let page = self.journal.list_letters(&filter).await?;
            page.items.iter().for_each(|letter| letters.add_letter(letter));
            match page.next {
                Some(next) => filter.after = next,
                None => return Ok(letters.without_retried()),
            }
        }
    }

    /// Stores a failed task as a dead letter, and resolves the letters of a completed one.
    pub(super) async fn update_task_letters(
        &self,
        task: &QueuedTask,
        outcome: &mut GitHubOutcome,
        known: &TaskLetters,
    ) {
        let (to, which) = if outcome.conclusion.is_fine() {
            (LetterStatus::Resolved, known.open.get(&task.id))
        } else {
            (LetterStatus::Queued, known.again.get(&task.id))
        };
        let which = which.cloned().unwrap_or_default();
        let is_known = !which.is_empty();
        for letter in which {
            let turned = self.set_letter_status(&letter, to, &outcome.reason).await;
            outcome.notes.extend(turned.err().map(|error| error.to_string()));
        }
        if outcome.conclusion.is_fine() || is_known {
            return;
        }
        let priority = match (outcome.class, task.priority) {
            (Some(FailureClass::Transient), _) => LetterPriority::Low,
            (_, 1..=3) => LetterPriority::High,
            (_, 4..=6) => LetterPriority::Medium,
            _ => LetterPriority::Low,
        };
        let letter = self.new_letter(outcome, LetterSource::Task, &task.title, priority);
        let letter = NewLetter { data: json!({ "task": task }), ..letter };
        // The answer of an agent that changed nothing says what it needs.
        let asks = outcome.answer.as_deref().filter(|_| outcome.branch.is_none());
        let asks = asks.map(|answer| truncate_markdown(answer, LETTER_QUESTION_CHARS_MAX));
        let question = asks.unwrap_or_else(|| letter.question.clone());
        self.store_letter(NewLetter { question, ..letter }, outcome).await;
    }
}

/// Returns the question whose answer would let the work continue.
fn open_question(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Transient => "is what it waits for to be had again?",
        FailureClass::Permanent => "has somebody put right what stopped it?",
        FailureClass::Mechanical | FailureClass::Known | FailureClass::Substantive => {
            "what has to change, in what is asked for or in the code, so that checks and review agree?"
        }
    }
}

/// The maximum characters of a text and items of a list, from limits that rarely cut anything to
/// ones that always fit.
const CUTS: [(usize, usize); 5] =
    [(65_536, 1_000), (16_384, 300), (4_096, 100), (1_024, 100), (256, 30)];

/// The maximum size of an event in a letter. It leaves room for the other fields and for redaction
/// marks.
const EVENT_BYTES_MAX: usize = LETTER_BYTES_MAX / 4 * 3;

/// Returns the event for a dead letter: with repository and sender, which Actions may have passed
/// in variables, and with long texts and lists truncated.
fn letter_event(event: &str, context: &GitHubEventContext) -> Value {
    let mut event: Value = serde_json::from_str(event).unwrap_or_else(|_| json!({}));
    if let Value::Object(fields) = &mut event {
        let repository = json!({ "full_name": context.repository.full_name() });
        fields.entry("repository").or_insert(repository);
        fields.entry("sender").or_insert_with(|| json!({ "login": context.actor.login }));
    }
    for (chars_max, items_max) in CUTS {
        if event.to_string().len() <= EVENT_BYTES_MAX {
            break;
        }
        shorten_value(&mut event, chars_max, items_max);
    }
    event
}

fn shorten_value(value: &mut Value, chars_max: usize, items_max: usize) {
    match value {
        Value::String(text) if text.chars().count() > chars_max => {
            *text = truncate_markdown(text, chars_max)
        }
        Value::Array(items) => {
            items.truncate(items_max);
            items.iter_mut().for_each(|item| shorten_value(item, chars_max, items_max));
        }
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| shorten_value(field, chars_max, items_max));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{ActionsEnvironment, read_event};

    fn surroundings(name: &str) -> ActionsEnvironment {
        let vars = [
            ("GITHUB_EVENT_NAME", name),
            ("GITHUB_REPOSITORY", "octo/repo"),
            ("GITHUB_ACTOR", "ada"),
        ];
        ActionsEnvironment::from_pairs(vars)
    }

    #[test]
    fn an_event_is_kept_so_that_it_can_be_read_anywhere() {
        let event = json!({ "schedule": "0 3 * * *" }).to_string();
        let context = read_event(&event, &surroundings("schedule")).unwrap();
        let kept = letter_event(&event, &context).to_string();
        let bare = ActionsEnvironment {
            event_name: Some("schedule".to_owned()),
            ..ActionsEnvironment::default()
        };
        let again = read_event(&kept, &bare).unwrap();
        assert_eq!((&again.repository.owner, &again.actor), (&"octo".to_owned(), &context.actor));
    }

    #[test]
    fn a_huge_event_is_shortened_and_still_says_who_wants_what() {
        let files: Vec<Value> = (0..5_000)
            .map(|number| json!({ "path": format!("{number}/{}", "x".repeat(90)) }))
            .collect();
        let event = json!({
            "action": "created",
            "repository": { "full_name": "octo/repo" },
            "sender": { "login": "ada" },
            "issue": { "number": 7, "title": "T", "body": "y".repeat(900_000), "user": { "login": "eve" } },
            "comment": { "id": 1, "body": "@repertoire go", "user": { "login": "ada" } },
            "files": files,
        })
        .to_string();
        let context = read_event(&event, &surroundings("issue_comment")).unwrap();
        let kept = letter_event(&event, &context).to_string();
        assert!(kept.len() <= EVENT_BYTES_MAX, "{}", kept.len());
        let again = read_event(&kept, &surroundings("issue_comment")).unwrap();
        assert_eq!(again.said.unwrap().text, "@repertoire go");
        let body = again.entity.unwrap().body;
        assert!(body.starts_with("yyy") && body.len() < 70_000, "{}", body.len());
    }

    fn letter(status: LetterStatus, class: FailureClass, id: &str, task: &str) -> DeadLetter {
        let letter = json!({
            "id": id, "scope": "s", "source": "task", "title": "t", "priority": "high", "class": class.as_str(),
            "reason": "r", "question": "q", "run": null, "data": { "task": { "id": task } }, "status": status,
            "times": 1, "attempts": 0, "history": [], "created_ms": 0, "updated_ms": 0,
        });
        serde_json::from_value(letter).unwrap()
    }

    #[test]
    fn letters_hold_tasks_back_until_somebody_wants_them_tried_again() {
        use LetterStatus::{Abandoned, Queued, Resolved, Retrying};
        let mut letters = TaskLetters::default();
        for (status, class, task) in [
            (Queued, FailureClass::Substantive, "file-1"),
            (Abandoned, FailureClass::Substantive, "file-2"),
            (Retrying, FailureClass::Substantive, "file-3"),
            (Resolved, FailureClass::Substantive, "file-4"),
            (Queued, FailureClass::Transient, "file-5"),
            (Queued, FailureClass::Substantive, "issue-6"),
            (Queued, FailureClass::Substantive, "file-7"),
            (Retrying, FailureClass::Substantive, "file-7"),
        ] {
            letters.add_letter(&letter(status, class, &format!("of-{task}"), task));
        }
        let letters = letters.without_retried();
        let held: Vec<&str> = letters.held.keys().map(String::as_str).collect();
        assert_eq!(held, ["file-1", "file-2"]);
        assert!(letters.held["file-1"].contains("rep runs dead-letters retry"));
        assert!(letters.held["file-2"].contains("rep runs dead-letters requeue"));
        assert_eq!(letters.retried_tasks(), ["file-3", "file-7"].map(str::to_owned).into());
        assert!(letters.open.contains_key("file-5") && !letters.open.contains_key("file-2"));
    }
}
