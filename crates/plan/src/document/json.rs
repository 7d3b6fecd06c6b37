//! The JSON form of plans, with published schemas.

use schemars::JsonSchema;
use serde::Serialize;

use super::{PlanDocument, PlanFormat, PlanTask, TaskId, TaskMark, TaskMarkCounts, TaskPriority};

/// The output of `rep plan status --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlanStatusJson {
    /// The plan's file.
    pub plan: String,
    /// The plan's title.
    pub title: Option<String>,
    /// The conventions the plan follows.
    pub format: PlanFormat,
    /// The reason why the tasks cannot be determined, if they cannot.
    pub fallback: Option<String>,
    /// The number of tasks with each mark.
    pub progress: TaskMarkCounts,
    /// The task that comes next.
    pub next: Option<TaskId>,
    /// The sections that have tasks.
    pub sections: Vec<SectionJson>,
    /// The tasks, in file order.
    pub tasks: Vec<TaskJson>,
    /// The number of boxes in sections for people, which are not tasks.
    pub ignored_boxes: usize,
    /// The number of errors that `rep plan check` shows.
    pub errors: usize,
}

/// A section with tasks.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SectionJson {
    /// The section's title.
    pub title: String,
    /// The number in `Phase N`.
    pub phase: Option<u32>,
    /// The section's line, starting at 1.
    pub line: usize,
    /// The section's blockers, as written.
    pub blocked_by: Vec<String>,
    /// The number of its own tasks with each mark.
    pub progress: TaskMarkCounts,
}

/// A task.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TaskJson {
    /// The task's id, stable as long as its text does not change.
    pub id: TaskId,
    /// The label given by the author.
    pub label: Option<String>,
    /// The text of the task.
    pub text: String,
    /// The mark in the task's box.
    pub mark: TaskMark,
    /// The title of the section the task is in.
    pub section: Option<String>,
    /// The task this one is nested in.
    pub parent: Option<TaskId>,
    /// The task's priority.
    pub priority: TaskPriority,
    /// The task's blockers, as written.
    pub blocked_by: Vec<String>,
    /// The reasons why the task cannot be chosen now.
    pub waits_for: Vec<String>,
    /// Skills named for the task.
    pub hints: Vec<String>,
    /// References to parts of a specification.
    pub spec_refs: Vec<String>,
    /// The lines below the task.
    pub details: String,
    /// True if the task can be done in parallel with others.
    pub parallel: bool,
    /// The user story the task belongs to.
    pub story: Option<String>,
    /// The task's line, starting at 1.
    pub line: usize,
}

impl TaskJson {
    pub fn from_task(plan: &PlanDocument, task: &PlanTask, waits_for: Vec<String>) -> Self {
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
    /// Builds the status of a plan from the task that comes next and the number of errors found in it.
    pub fn from_plan(plan: &PlanDocument, next: Option<TaskId>, errors: usize) -> Self {
        let sections = plan.sections.iter().enumerate().filter_map(|(at, section)| {
            let own = plan.tasks.iter().filter(|task| task.section == Some(at));
            let progress = TaskMarkCounts::count_tasks(own.clone());
            own.clone().next().map(|_| SectionJson {
                title: section.title.clone(),
                phase: section.phase,
                line: section.line,
                blocked_by: section.blocked_by.iter().map(|blocker| blocker.text.clone()).collect(),
                progress,
            })
        });
        let waits = |task: &PlanTask| match task.mark {
            TaskMark::Open => plan.blocking_reasons(&task.id),
            _ => Vec::new(),
        };
        PlanStatusJson {
            plan: plan.source().path().to_string(),
            title: plan.title.clone(),
            format: plan.format,
            fallback: plan.fallback.clone(),
            progress: plan.count_marks(),
            next,
            sections: sections.collect(),
            tasks: plan
                .tasks
                .iter()
                .map(|task| TaskJson::from_task(plan, task, waits(task)))
                .collect(),
            ignored_boxes: plan.sections.iter().map(|section| section.ignored_boxes).sum(),
            errors,
        }
    }
}
