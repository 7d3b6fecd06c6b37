//! The next task of a plan, by the plan's own rules.

use camino::Utf8Path;
use repertoire_plan::document::{Choice, Plan, Priority, parse, select_task};

use super::{PassedOver, Source, Task, bounded};
use crate::limits::{TASK_BODY_CHARS_MAX, TASK_TITLE_CHARS_MAX};

/// Returns the next task of a plan; if none can be started, what each open one waits for.
pub fn next(text: &str, path: &Utf8Path) -> (Option<Task>, Vec<PassedOver>) {
    let plan = parse(text, path);
    match select_task(&plan) {
        Choice::Task(id) => (task(&plan, id.as_str()), Vec::new()),
        Choice::Nothing => (None, Vec::new()),
        Choice::Stuck { waiting } => {
            let waiting = waiting.into_iter();
            (None, waiting.map(|(id, why)| PassedOver::new(name(id.as_str()), why)).collect())
        }
    }
}

fn name(id: &str) -> String {
    format!("{}-{id}", Source::Plan.as_str())
}

fn task(plan: &Plan, id: &str) -> Option<Task> {
    let found = plan.tasks.iter().find(|task| task.id.as_str() == id)?;
    let priority = match found.priority {
        Priority::Critical => 1,
        Priority::High => 3,
        Priority::Medium => super::PRIORITY_DEFAULT,
        Priority::Low => 8,
    };
    Some(Task {
        id: name(id),
        source: Source::Plan,
        title: bounded(&found.text, TASK_TITLE_CHARS_MAX),
        body: bounded(&found.details, TASK_BODY_CHARS_MAX),
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
        let (task, waiting) = next(text, Utf8Path::new("plan.md"));
        let task = task.unwrap();
        let plan = parse(text, Utf8Path::new("plan.md"));
        let Choice::Task(chosen) = select_task(&plan) else { panic!("something is open") };
        assert_eq!(task.id, format!("plan-{chosen}"));
        assert!(waiting.is_empty());
        assert_eq!(next("# Plan\n\n- [R] T001 First\n", Utf8Path::new("p.md")), (None, Vec::new()));
    }

    #[test]
    fn a_plan_that_is_stuck_says_what_waits() {
        let text = "# Plan\n\n- [~] T001 First\n- [ ] T002 Second (blocked by T001)\n";
        let (task, waiting) = next(text, Utf8Path::new("plan.md"));
        assert_eq!(task, None);
        assert_eq!(waiting.len(), 1, "{waiting:?}");
        assert_eq!(waiting[0].id, "plan-T002");
    }
}
