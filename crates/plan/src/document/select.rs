//! Selects the next task: the most urgent open task that is not blocked, and the first in the file among equals. Pure.

use std::collections::BTreeMap;

use super::{BlockerTarget, PlanDocument, PlanTask, TaskBlocker, TaskId, TaskMark};

/// The result of selecting the next task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskChoice {
    Task(TaskId),
    Nothing,
    /// There are open tasks, but all of them wait for something.
    Stuck {
        /// Each open task with the reason.
        waiting: Vec<(TaskId, String)>,
    },
}

/// Selects the next task by priority, then in file order, among the open tasks that are not blocked. A task comes
/// after the tasks nested in it.
pub fn select_task(plan: &PlanDocument) -> TaskChoice {
    let state = PlanCompletion::from_plan(plan);
    let mut open: Vec<usize> =
        (0..plan.tasks.len()).filter(|at| plan.tasks[*at].mark == TaskMark::Open).collect();
    open.sort_by_key(|at| (plan.tasks[*at].priority, *at));
    match open.iter().find(|at| state.can_begin(**at)) {
        Some(at) => TaskChoice::Task(plan.tasks[*at].id.clone()),
        None if open.is_empty() => TaskChoice::Nothing,
        None => {
            open.sort_unstable();
            let why = |at: usize| (plan.tasks[at].id.clone(), state.waiting_reasons(at).join("; "));
            TaskChoice::Stuck { waiting: open.into_iter().map(why).collect() }
        }
    }
}

pub(super) fn blocking_reasons(plan: &PlanDocument, id: &TaskId) -> Vec<String> {
    let state = PlanCompletion::from_plan(plan);
    state.by_id.get(id).map(|at| state.waiting_reasons(*at)).unwrap_or_default()
}

/// Completion of tasks and sections, computed once.
struct PlanCompletion<'a> {
    plan: &'a PlanDocument,
    by_id: BTreeMap<&'a TaskId, usize>,
    /// True for tasks that are done, including everything nested in them.
    complete: Vec<bool>,
    /// The first nested task that is not done.
    open_child: Vec<Option<usize>>,
    /// For each section with its subsections, the number of tasks that are not done, and of all tasks.
    sections: Vec<(usize, usize)>,
}

impl<'a> PlanCompletion<'a> {
    fn from_plan(plan: &'a PlanDocument) -> Self {
        let by_id: BTreeMap<&TaskId, usize> =
            plan.tasks.iter().enumerate().map(|(at, task)| (&task.id, at)).collect();
        let mut complete: Vec<bool> = plan.tasks.iter().map(is_complete_itself).collect();
        let mut open_child = vec![None; plan.tasks.len()];
        // Nested tasks come after the task they are in, so go backwards.
        for (at, task) in plan.tasks.iter().enumerate().rev() {
            let parent = task.parent.as_ref().and_then(|parent| by_id.get(parent));
            if let Some(parent) = parent
                && !complete[at]
                && task.mark != TaskMark::ManualQa
            {
                complete[*parent] = false;
                open_child[*parent] = Some(at);
            }
        }
        let mut sections = vec![(0, 0); plan.sections.len()];
        for (at, task) in plan.tasks.iter().enumerate() {
            let mut above = task.section.filter(|_| task.mark != TaskMark::ManualQa);
            while let Some(section) = above {
                sections[section].0 += usize::from(!complete[at]);
                sections[section].1 += 1;
                above = plan.sections[section].parent;
            }
        }
        PlanCompletion { plan, by_id, complete, open_child, sections }
    }

    fn can_begin(&self, at: usize) -> bool {
        let task = &self.plan.tasks[at];
        !task.text.is_empty()
            && self.open_child[at].is_none()
            && self.all_blockers(at).all(|blocker| !self.is_blocking(blocker))
    }

    /// The blockers of a task, of the tasks it is nested in, and of the sections above.
    fn all_blockers(&self, at: usize) -> impl Iterator<Item = &'a TaskBlocker> {
        let plan = self.plan;
        let parent = |at: &usize| {
            plan.tasks[*at].parent.as_ref().and_then(|parent| self.by_id.get(parent)).copied()
        };
        let above = std::iter::successors(plan.tasks[at].section, |at| plan.sections[*at].parent);
        std::iter::successors(Some(at), parent)
            .flat_map(|at| &plan.tasks[at].blocked_by)
            .chain(above.flat_map(|at| &plan.sections[at].blocked_by))
    }

    fn is_blocking(&self, blocker: &TaskBlocker) -> bool {
        match &blocker.on {
            BlockerTarget::Task(id) => self.by_id.get(id).is_none_or(|at| !self.complete[*at]),
            BlockerTarget::Section(at) => self.sections[*at].0 > 0,
            BlockerTarget::Nothing => true,
        }
    }

    fn waiting_reasons(&self, at: usize) -> Vec<String> {
        let task = &self.plan.tasks[at];
        let mut out = Vec::new();
        if task.text.is_empty() {
            out.push("says nothing".to_owned());
        }
        if let Some(child) = self.open_child[at] {
            out.push(format!("waits for {}, which is within it", self.describe_task(child)));
        }
        for blocker in self.all_blockers(at).filter(|blocker| self.is_blocking(blocker)) {
            let reason = self.describe_blocker(blocker);
            if !out.contains(&reason) && out.len() < REASONS_MAX {
                out.push(reason);
            }
        }
        out
    }

    fn describe_blocker(&self, blocker: &TaskBlocker) -> String {
        match &blocker.on {
            BlockerTarget::Task(id) => match self.by_id.get(id) {
                Some(at) => format!("waits for {}", self.describe_task(*at)),
                None => format!("waits for {id}"),
            },
            BlockerTarget::Section(at) => {
                let (open, all) = self.sections[*at];
                let title = &self.plan.sections[*at].title;
                format!("waits for \"{title}\" ({} of {all} done)", all - open)
            }
            BlockerTarget::Nothing => {
                format!("waits for \"{}\", which names no task and no section", blocker.text)
            }
        }
    }

    fn describe_task(&self, at: usize) -> String {
        let task = &self.plan.tasks[at];
        let state = match self.open_child[at] {
            Some(_) if task.mark.is_done() => "not complete",
            _ => task.mark.described(),
        };
        format!("{} ({state})", task.id)
    }
}

/// Maximum number of reasons given for one task.
const REASONS_MAX: usize = 10;

/// Returns true if the task is done according to its own box. A task for people is done if a person has ticked it.
fn is_complete_itself(task: &PlanTask) -> bool {
    task.mark.is_done() || task.mark == TaskMark::ManualQa && task.at.ticked
}
