//! The next task of a plan, by the plan's own rules.

use camino::Utf8Path;
use repertoire_plan::document::{PlanDocument, TaskChoice, TaskPriority, parse_plan, select_task};

use super::{QueuedTask, SkippedTask, TaskSource, truncate_text};
use crate::limits::{TASK_BODY_CHARS_MAX, TASK_TITLE_CHARS_MAX};

/// Returns the next task of a plan; if none can be started, what each open one waits for.
pub fn next_plan_task(text: &str, path: &Utf8Path) -> (Option<QueuedTask>, Vec<SkippedTask>) {
    let plan = parse_plan(text, path);
    match select_task(&plan) {
        TaskChoice::Task(id) => (plan_task(&plan, id.as_str()), Vec::new()),
        TaskChoice::Nothing => (None, Vec::new()),
        TaskChoice::Stuck { waiting } => {
            let waiting = waiting.into_iter();
            (
                None,
                waiting.map(|(id, why)| SkippedTask::new(plan_task_id(id.as_str()), why)).collect(),
            )
        }
    }
}

fn plan_task_id(id: &str) -> String {
    format!("{}-{id}", TaskSource::Plan.as_str())
}

fn plan_task(plan: &PlanDocument, id: &str) -> Option<QueuedTask> {
    let found = plan.tasks.iter().find(|task| task.id.as_str() == id)?;
    let priority = match found.priority {
        TaskPriority::Critical => 1,
        TaskPriority::High => 3,
        TaskPriority::Medium => super::PRIORITY_DEFAULT,
        TaskPriority::Low => 8,
    };
    Some(QueuedTask {
        id: plan_task_id(id),
        source: TaskSource::Plan,
        title: truncate_text(&found.text, TASK_TITLE_CHARS_MAX),
        body: truncate_text(&found.details, TASK_BODY_CHARS_MAX),
        priority,
        labels: found.hints.clone(),
        created: None,
        position: 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_task_is_the_one_the_plan_would_choose() {
        let text = "# Plan\n\n- [x] T001 First\n- [ ] T002 Second (low)\n- [ ] T003 Third [high]\n  With details.\n";
        let (task, waiting) = next_plan_task(text, Utf8Path::new("plan.md"));
        let task = task.unwrap();
        let plan = parse_plan(text, Utf8Path::new("plan.md"));
        let TaskChoice::Task(chosen) = select_task(&plan) else { panic!("something is open") };
        assert_eq!(task.id, format!("plan-{chosen}"));
        assert!(waiting.is_empty());
        assert_eq!(
            next_plan_task("# Plan\n\n- [R] T001 First\n", Utf8Path::new("p.md")),
            (None, Vec::new())
        );
    }

    #[test]
    fn a_plan_that_is_stuck_says_what_waits() {
        let text = "# Plan\n\n- [~] T001 First\n- [ ] T002 Second (blocked by T001)\n";
        let (task, waiting) = next_plan_task(text, Utf8Path::new("plan.md"));
        assert_eq!(task, None);
        assert_eq!(waiting.len(), 1, "{waiting:?}");
        assert_eq!(waiting[0].id, "plan-T002");
    }
}
