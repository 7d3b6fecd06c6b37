//! Finds problems of a plan beyond those that parsing reports.

use std::collections::BTreeMap;

use repertoire_text::source::Span;
use repertoire_text::{Diagnostic, DiagnosticCode, Severity};

use super::specs::file_of;
use super::{BlockerTarget, PlanDocument, PlanTask, TaskBlocker, TaskId, TaskMark};
use crate::codes;
use crate::limits::{PLAN_FINDINGS_MAX, PLAN_TASK_CHARS_MAX};

mod cycles;

/// Returns all problems of a plan, in file order. `known_skill` tells if a skill of that name exists, `exists` if a
/// file that a task refers to does.
pub fn check_plan(
    plan: &PlanDocument,
    known_skill: &dyn Fn(&str) -> bool,
    exists: &dyn Fn(&str) -> bool,
) -> Vec<Diagnostic> {
    let mut found = plan.diagnostics.clone();
    check_duplicate_texts(plan, &mut found);
    check_duplicate_labels(plan, &mut found);
    check_parents(plan, &mut found);
    for task in &plan.tasks {
        check_task(plan, task, &mut found);
        check_skill_hints(plan, &task.at.hints, known_skill, &mut found);
        for (reference, span) in &task.at.specs {
            let file = file_of(reference);
            if !exists(file) {
                let message = format!("there is no `{file}`");
                found.push(plan_diagnostic(plan, &codes::PLAN_MISSING_SPEC, *span, message));
            }
        }
    }
    for section in &plan.sections {
        check_skill_hints(plan, &section.at, known_skill, &mut found);
    }
    found.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
    found.truncate(PLAN_FINDINGS_MAX);
    found
}

/// Reports blockers with an unknown target, and cycles of blockers.
pub(super) fn check_blockers(plan: &PlanDocument) -> Vec<Diagnostic> {
    let own = plan.tasks.iter().flat_map(|task| &task.blocked_by);
    let all = own.chain(plan.sections.iter().flat_map(|section| &section.blocked_by));
    let unknown =
        all.filter(|blocker| blocker.on == BlockerTarget::Nothing).map(|blocker: &TaskBlocker| {
            let message = format!("`{}` names no task and no section", blocker.text);
            plan_diagnostic(plan, &codes::PLAN_UNKNOWN_BLOCKER, blocker.at, message)
        });
    let mut found: Vec<Diagnostic> = unknown.take(PLAN_FINDINGS_MAX).collect();
    found.extend(cycles::find_cycles(plan).into_iter().map(|cycle| {
        let message = format!("these wait for each other: {}", cycle.names.join(" → "));
        plan_diagnostic(plan, &codes::PLAN_BLOCKER_CYCLE, cycle.at, message)
    }));
    found
}

fn plan_diagnostic(
    plan: &PlanDocument,
    code: &'static DiagnosticCode,
    span: Span,
    message: impl Into<String>,
) -> Diagnostic {
    Diagnostic::new(code, message).at(&plan.source, span).help(code.remedy)
}

fn check_duplicate_texts(plan: &PlanDocument, found: &mut Vec<Diagnostic>) {
    let mut first: BTreeMap<&str, &PlanTask> = BTreeMap::new();
    for task in plan.tasks.iter().filter(|task| !task.text.is_empty() && !is_labelled(task)) {
        let Some(twin) = first.get(task.text.as_str()) else {
            first.insert(&task.text, task);
            continue;
        };
        let message = format!("this says the same as the task of line {}", twin.line);
        // The same words under another heading are common, and their order hardly changes.
        let severity =
            if twin.section == task.section { Severity::Warning } else { Severity::Info };
        found.push(
            plan_diagnostic(plan, &codes::PLAN_TWIN_TASKS, task.at.head, message)
                .severity(severity),
        );
        if found.len() > PLAN_FINDINGS_MAX {
            return;
        }
    }
}

fn check_duplicate_labels(plan: &PlanDocument, found: &mut Vec<Diagnostic>) {
    let mut first: BTreeMap<&str, &PlanTask> = BTreeMap::new();
    for task in &plan.tasks {
        let Some(label) = task.label.as_deref() else { continue };
        let Some(twin) = first.get(label) else {
            first.insert(label, task);
            continue;
        };
        let message = format!("the task of line {} has the label `{label}` as well", twin.line);
        found.push(plan_diagnostic(plan, &codes::PLAN_TWIN_TASKS, task.at.head, message));
        if found.len() > PLAN_FINDINGS_MAX {
            return;
        }
    }
}

/// Returns true if the task's id is its label.
fn is_labelled(task: &PlanTask) -> bool {
    let named = |label: &str| task.id.as_str().eq_ignore_ascii_case(&label.replace(' ', "-"));
    task.label.as_deref().is_some_and(named)
}

fn check_parents(plan: &PlanDocument, found: &mut Vec<Diagnostic>) {
    let by_id: BTreeMap<&TaskId, &PlanTask> =
        plan.tasks.iter().map(|task| (&task.id, task)).collect();
    for task in plan.tasks.iter().filter(|task| !task.mark.is_done()) {
        let parent = task.parent.as_ref().and_then(|parent| by_id.get(parent));
        let Some(parent) = parent.filter(|parent| parent.mark.is_done()) else { continue };
        if task.mark != TaskMark::ManualQa {
            let message = format!(
                "the task is ticked, but {} within it (line {}) is {}",
                task.id,
                task.line,
                task.mark.described()
            );
            found.push(plan_diagnostic(plan, &codes::PLAN_CHECKED_PARENT, parent.at.mark, message));
        }
    }
}

fn check_task(plan: &PlanDocument, task: &PlanTask, found: &mut Vec<Diagnostic>) {
    if task.text.is_empty() {
        found.push(plan_diagnostic(
            plan,
            &codes::PLAN_EMPTY_TASK,
            task.at.mark,
            "this task says nothing",
        ));
    }
    let chars = task.text.chars().count();
    if chars > PLAN_TASK_CHARS_MAX {
        let message = format!(
            "this task has {chars} characters; more than {PLAN_TASK_CHARS_MAX} do not fit one iteration"
        );
        found.push(plan_diagnostic(plan, &codes::PLAN_LONG_TASK, task.at.head, message));
    }
    for span in &task.at.coded_hints {
        let name = span.slice(plan.source.text()).to_owned();
        let message = format!("`{name}` is code, so it is not read as a skill");
        found.push(plan_diagnostic(plan, &codes::PLAN_CODED_HINT, *span, message));
    }
}

fn check_skill_hints(
    plan: &PlanDocument,
    hints: &[(String, Span)],
    known: &dyn Fn(&str) -> bool,
    found: &mut Vec<Diagnostic>,
) {
    for (name, span) in hints.iter().filter(|(name, _)| !known(name)) {
        let message = format!("there is no skill `{name}`");
        found.push(plan_diagnostic(plan, &codes::PLAN_UNKNOWN_SKILL, *span, message));
    }
}
