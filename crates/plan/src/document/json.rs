//! Plans for programs, with published schemas.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Format, Mark, Plan, Priority, Progress, Task, TaskId};

/// `rep plan status --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlanStatusJson {
    /// The plan's file.
    pub plan: String,
    /// Its title.
    pub title: Option<String>,
    /// Whose habits it follows.
    pub format: Format,
    /// Why its tasks cannot be told, if they cannot.
    pub fallback: Option<String>,
    /// How many tasks have each mark.
    pub progress: Progress,
    /// The task that comes next.
    pub next: Option<TaskId>,
    /// The sections that have tasks.
    pub sections: Vec<SectionJson>,
    /// The tasks, in file order.
    pub tasks: Vec<TaskJson>,
    /// Boxes in sections for people, which are no tasks.
    pub ignored_boxes: usize,
    /// Errors that `rep plan check` shows.
    pub errors: usize,
}

/// A section with tasks.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SectionJson {
    /// Its title.
    pub title: String,
    /// The number of `Phase N`.
    pub phase: Option<u32>,
    /// Its line, from 1.
    pub line: usize,
    /// What it waits for, as it is written.
    pub blocked_by: Vec<String>,
    /// How many of its own tasks have each mark.
    pub progress: Progress,
}

/// One task.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TaskJson {
    /// Its name: stays as long as its text stays.
    pub id: TaskId,
    /// The label that its author gave it.
    pub label: Option<String>,
    /// What is to be done.
    pub text: String,
    /// Where it stands.
    pub mark: Mark,
    /// The title of the section that it stands in.
    pub section: Option<String>,
    /// The task that it is a part of.
    pub parent: Option<TaskId>,
    /// How urgent it is.
    pub priority: Priority,
    /// What it waits for, as it is written.
    pub blocked_by: Vec<String>,
    /// What keeps it from being chosen now.
    pub waits_for: Vec<String>,
    /// Skills that are named for it.
    pub hints: Vec<String>,
    /// Parts of a specification that it names.
    pub spec_refs: Vec<String>,
    /// The lines below it.
    pub details: String,
    /// Whether it can be done beside others.
    pub parallel: bool,
    /// The user story that it belongs to.
    pub story: Option<String>,
    /// Its line, from 1.
    pub line: usize,
}

impl TaskJson {
    /// A task of a plan, and what it waits for.
    pub fn of(plan: &Plan, task: &Task, waits_for: Vec<String>) -> Self {
        TaskJson {
            id: task.id.clone(),
            label: task.label.clone(),
            text: task.text.clone(),
            mark: task.mark,
            section: task.section.map(|at| plan.sections[at].title.clone()),
            parent: task.parent.clone(),
            priority: task.priority,
            blocked_by: task.blocked_by.iter().map(|blocker| blocker.text.clone()).collect(),
            waits_for,
            hints: task.hints.clone(),
            spec_refs: task.spec_refs.clone(),
            details: task.details.clone(),
            parallel: task.parallel,
            story: task.story.clone(),
            line: task.line,
        }
    }
}

impl PlanStatusJson {
    /// A picture of a plan: the task that comes next, and how many errors were found in it.
    pub fn of(plan: &Plan, next: Option<TaskId>, errors: usize) -> Self {
        let sections = plan.sections.iter().enumerate().filter_map(|(at, section)| {
            let own = plan.tasks.iter().filter(|task| task.section == Some(at));
            let progress = Progress::of(own.clone());
            own.clone().next().map(|_| SectionJson {
                title: section.title.clone(),
                phase: section.phase,
                line: section.line,
                blocked_by: section.blocked_by.iter().map(|blocker| blocker.text.clone()).collect(),
                progress,
            })
        });
        let waits = |task: &Task| match task.mark {
            Mark::Open => plan.waits_for(&task.id),
            _ => Vec::new(),
        };
        PlanStatusJson {
            plan: plan.source().path().to_string(),
            title: plan.title.clone(),
            format: plan.format,
            fallback: plan.fallback.clone(),
            progress: plan.progress(),
            next,
            sections: sections.collect(),
            tasks: plan.tasks.iter().map(|task| TaskJson::of(plan, task, waits(task))).collect(),
            ignored_boxes: plan.sections.iter().map(|section| section.ignored_boxes).sum(),
            errors,
        }
    }
}
