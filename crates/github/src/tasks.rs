//! The queue of tasks, from all sources, in one order.
//!
//! Each source has its own module: [`issues`], [`file`](mod@file), [`plan`], [`prompt`]. [`order_tasks`]
//! is pure: by source as configured, then by priority with 1 first, then the oldest. The id of a
//! task is that of its source or a digest of its content, never a line number, so that editing a
//! list does not mix up tasks.

use repertoire_text::layout::one_line;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub mod file;
pub mod issues;
pub mod plan;
pub mod prompt;

/// The sources of tasks.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum TaskSource {
    /// Issues with a label.
    Issue,
    /// A checkbox list such as `TASKS.md`.
    File,
    /// A plan.
    Plan,
    /// The prompt of the run.
    Prompt,
}

impl TaskSource {
    /// The default order.
    pub const ALL: [TaskSource; 4] =
        [TaskSource::Issue, TaskSource::File, TaskSource::Plan, TaskSource::Prompt];

    pub fn as_str(self) -> &'static str {
        match self {
            TaskSource::Issue => "issue",
            TaskSource::File => "file",
            TaskSource::Plan => "plan",
            TaskSource::Prompt => "prompt",
        }
    }
}

/// The default priority of a task.
pub const PRIORITY_DEFAULT: u8 = 5;

/// A task in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueuedTask {
    /// The id, such as `issue-31` or `file-9ac1e02b`. It is stable.
    pub id: String,
    /// The source of the task.
    pub source: TaskSource,
    /// The task in one line. Untrusted text if it comes from an issue.
    pub title: String,
    /// The rest of the text. Untrusted if it comes from an issue.
    pub body: String,
    /// The priority, from 1 (first) to 10.
    pub priority: u8,
    /// The labels of the task.
    pub labels: Vec<String>,
    /// The time it was created, as its source writes it.
    pub created: Option<String>,
    /// The order among tasks of the same age: the number of an issue, or the position in a file.
    pub position: u64,
}

impl QueuedTask {
    /// The number of the issue it comes from.
    pub fn issue_number(&self) -> Option<u64> {
        (self.source == TaskSource::Issue).then_some(self.position)
    }

    /// Returns true if a branch belongs to a run for this task: its name is the prefix, the name of
    /// the task and a hex suffix.
    pub fn is_branch(&self, prefix: &str, branch: &str) -> bool {
        let name = repertoire_git::worktree::slugify(&self.id);
        let rest = branch.strip_prefix(prefix).and_then(|rest| rest.strip_prefix(&name));
        let word = rest.and_then(|rest| rest.strip_prefix('-'));
        word.is_some_and(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_hexdigit()))
    }

    /// Returns the normalised text, to find duplicates.
    fn normalised_content(&self) -> String {
        one_line(&format!("{} {}", self.title, self.body)).to_lowercase()
    }
}

/// The tasks that may be picked, in order, and those that may not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskQueue {
    /// The tasks in the order in which they are done.
    pub tasks: Vec<QueuedTask>,
    /// The tasks that are not picked, with the reason.
    pub passed_over: Vec<SkippedTask>,
}

/// A task that is not picked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedTask {
    /// The id of the task.
    pub id: String,
    /// The reason, as half a sentence after the id.
    pub why: String,
}

impl SkippedTask {
    pub fn new(id: impl Into<String>, why: impl Into<String>) -> Self {
        SkippedTask { id: id.into(), why: why.into() }
    }
}

/// Orders tasks. Sources that are not listed are dropped; held tasks are passed over with their
/// reason; of several tasks with the same content only the first stays.
pub fn order_tasks(
    tasks: Vec<QueuedTask>,
    sources: &[TaskSource],
    held: &BTreeMap<String, String>,
) -> TaskQueue {
    let place = |source: TaskSource| sources.iter().position(|listed| *listed == source);
    let mut queue = TaskQueue::default();
    let mut keyed = Vec::new();
    for task in tasks {
        match (place(task.source), held.get(&task.id)) {
            (Some(_), Some(why)) => queue.passed_over.push(SkippedTask::new(task.id, why)),
            (Some(place), None) => keyed.push((place, task)),
            (None, _) => {}
        }
    }
    keyed.sort_by(|(place, task), (other_place, other)| {
        let key = |place: usize, task: &QueuedTask| (place, task.priority);
        key(*place, task)
            .cmp(&key(*other_place, other))
            .then_with(|| task.created.cmp(&other.created))
            .then_with(|| task.position.cmp(&other.position))
            .then_with(|| task.id.cmp(&other.id))
            .then_with(|| task.title.cmp(&other.title))
            .then_with(|| task.body.cmp(&other.body))
            .then_with(|| task.labels.cmp(&other.labels))
    });
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    for (_, task) in keyed {
        match seen.get(&task.normalised_content()) {
            Some(first) if *first == task.id => {}
            Some(first) => {
                let why = format!("says the same as {first}");
                queue.passed_over.push(SkippedTask::new(task.id, why));
            }
            None => {
                seen.insert(task.normalised_content(), task.id.clone());
                queue.tasks.push(task);
            }
        }
    }
    queue.passed_over.sort_by(|one, other| (&one.id, &one.why).cmp(&(&other.id, &other.why)));
    queue
}

/// Returns an id made of a digest of the content.
fn content_id(source: TaskSource, content: &str) -> String {
    let digest = Sha256::digest(one_line(content).as_bytes());
    let hex: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{hex}", source.as_str())
}

/// Truncates a text with a note.
fn truncate_text(text: &str, chars_max: usize) -> String {
    crate::comment::truncate_markdown(text, chars_max)
}

/// Parses the digits of a priority such as `priority-3` or `P3`.
fn parse_priority(digits: &str) -> Option<u8> {
    let number = digits.parse().ok().filter(|number| (1..=10).contains(number));
    number.filter(|number: &u8| number.to_string() == digits)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    fn task(source: TaskSource, position: u64, priority: u8, created: Option<&str>) -> QueuedTask {
        QueuedTask {
            id: format!("{}-{position}", source.as_str()),
            source,
            title: format!("{} task {position}", source.as_str()),
            body: String::new(),
            priority,
            labels: Vec::new(),
            created: created.map(str::to_owned),
            position,
        }
    }

    fn ids(queue: &TaskQueue) -> Vec<&str> {
        queue.tasks.iter().map(|task| task.id.as_str()).collect()
    }

    #[test]
    fn sources_come_first_then_priority_then_age() {
        let tasks = vec![
            task(TaskSource::Prompt, 1, 1, None),
            task(TaskSource::File, 2, 5, None),
            task(TaskSource::File, 1, 5, None),
            task(TaskSource::Issue, 9, 5, Some("2026-01-01")),
            task(TaskSource::Issue, 3, 5, Some("2026-01-02")),
            task(TaskSource::Issue, 12, 2, Some("2026-02-01")),
            task(TaskSource::Plan, 1, 1, None),
        ];
        let queue = order_tasks(tasks.clone(), &TaskSource::ALL, &BTreeMap::new());
        let all = ["issue-12", "issue-9", "issue-3", "file-1", "file-2", "plan-1", "prompt-1"];
        assert_eq!(ids(&queue), all);
        let queue = order_tasks(tasks, &[TaskSource::Prompt, TaskSource::File], &BTreeMap::new());
        assert_eq!(ids(&queue), ["prompt-1", "file-1", "file-2"]);
    }

    #[test]
    fn what_is_held_back_is_passed_over_with_the_reason() {
        let held = BTreeMap::from([("file-1".to_owned(), "failed before".to_owned())]);
        let tasks = vec![task(TaskSource::File, 1, 1, None), task(TaskSource::File, 2, 5, None)];
        let queue = order_tasks(tasks, &TaskSource::ALL, &held);
        assert_eq!(ids(&queue), ["file-2"]);
        assert_eq!(queue.passed_over, [SkippedTask::new("file-1", "failed before")]);
    }

    #[test]
    fn two_tasks_with_the_same_content_are_one() {
        let mut same = task(TaskSource::File, 1, 1, None);
        same.title = "ISSUE  task 9".to_owned();
        let tasks = vec![same, task(TaskSource::Issue, 9, 5, None)];
        let queue = order_tasks(tasks, &TaskSource::ALL, &BTreeMap::new());
        assert_eq!(ids(&queue), ["issue-9"]);
        assert_eq!(queue.passed_over, [SkippedTask::new("file-1", "says the same as issue-9")]);
    }

    #[test]
    fn priorities_are_one_to_ten() {
        for (digits, expect) in [
            ("1", Some(1)),
            ("10", Some(10)),
            ("0", None),
            ("11", None),
            ("01", None),
            ("", None),
            ("+1", None),
        ] {
            assert_eq!(parse_priority(digits), expect, "{digits}");
        }
    }

    fn any_task() -> impl Strategy<Value = QueuedTask> {
        let source = prop::sample::select(TaskSource::ALL.to_vec());
        let created = prop::option::of("2026-0[1-3]-01");
        (source, 1..6u64, 1..11u8, created, "[ab]{1,2}").prop_map(
            |(source, at, rank, when, title)| QueuedTask {
                title,
                ..task(source, at, rank, when.as_deref())
            },
        )
    }

    proptest! {
        #[test]
        fn the_order_does_not_depend_on_how_tasks_were_found(
            tasks in prop::collection::vec(any_task(), 0..12),
            turn in 0..12usize,
        ) {
            let mut turned = tasks.clone();
            let at = turn.min(turned.len());
            turned.rotate_left(at);
            turned.reverse();
            let none = BTreeMap::new();
            prop_assert_eq!(
                order_tasks(tasks, &TaskSource::ALL, &none).tasks,
                order_tasks(turned, &TaskSource::ALL, &none).tasks
            );
        }

        #[test]
        fn every_task_is_picked_or_passed_over_once(
            tasks in prop::collection::vec(any_task(), 0..12),
        ) {
            let queue = order_tasks(tasks.clone(), &TaskSource::ALL, &BTreeMap::new());
            let contents: BTreeSet<String> = tasks.iter().map(QueuedTask::normalised_content).collect();
            prop_assert_eq!(queue.tasks.len(), contents.len());
            for pair in queue.tasks.windows(2) {
                let key = |task: &QueuedTask| (task.source, task.priority);
                prop_assert!(key(&pair[0]) <= key(&pair[1]));
            }
        }
    }
}
