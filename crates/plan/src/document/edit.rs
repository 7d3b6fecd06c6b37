//! Edits a plan file: sets a box or adds a line. Every other byte is preserved.

use camino::Utf8Path;
use repertoire_text::layout::one_line;

use super::{PlanDocument, PlanTask, TaskId, TaskMark, parse_plan};
use crate::limits::PLAN_NOTE_BYTES_MAX;

/// The reason why a plan was not changed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanEditError {
    /// The plan has no such task, or no longer has it.
    #[error("the plan has no task `{id}`")]
    UnknownTask { id: TaskId },
    /// There is no place below the task where a note would leave all tasks unchanged.
    #[error("a note below task `{id}` would change what the plan says")]
    NoPlace { id: TaskId },
    #[error("the note is empty")]
    EmptyNote,
}

/// Sets the box of a task.
pub fn mark_task(text: &str, id: &TaskId, mark: TaskMark) -> Result<String, PlanEditError> {
    let plan = parse_plan(text, Utf8Path::new(""));
    let task = find_task(&plan, id)?;
    if task.mark == mark && task.at.known {
        return Ok(text.to_owned());
    }
    let range = task.at.mark.range();
    Ok(format!("{}{}{}", &text[..range.start], mark.symbol(), &text[range.end..]))
}

/// Sets the box of every task for which `mark_of` returns a mark.
pub fn mark_tasks(
    text: &str,
    path: &Utf8Path,
    mark_of: impl Fn(&PlanTask) -> Option<TaskMark>,
) -> String {
    let plan = parse_plan(text, path);
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    // Tasks are in file order.
    for task in &plan.tasks {
        if let Some(mark) = mark_of(task).filter(|mark| *mark != task.mark) {
            let range = task.at.mark.range();
            out.push_str(&text[from..range.start]);
            out.push_str(mark.symbol());
            from = range.end;
        }
    }
    out.push_str(&text[from..]);
    out
}

/// Adds a note as a nested item below a task, after the author's own lines, with the file's indentation and line
/// ending. The note becomes a single line, and never a task or a blocker.
pub fn append_note(text: &str, id: &TaskId, note: &str) -> Result<String, PlanEditError> {
    let plan = parse_plan(text, Utf8Path::new(""));
    let task = find_task(&plan, id)?;
    let note = to_one_line(note);
    if note.is_empty() {
        return Err(PlanEditError::EmptyNote);
    }
    let ending = line_ending(text);
    let before = task_facts(&plan);
    for place in [task.at.own_end, task.at.text_end] {
        for prefix in ["", "note: "] {
            let line = format!("{ending}{}- {prefix}{note}", task.at.nested);
            let edited = format!("{}{line}{}", &text[..place], &text[place..]);
            let after = parse_plan(&edited, Utf8Path::new(""));
            let shown = after.task(id).is_some_and(|task| task.details.contains(&note));
            let sections = after.sections.len() == plan.sections.len();
            // A code block swallows a note inserted into it, and only its text shows this.
            let in_code = after.task(id).is_some_and(|task| is_in_code(&task.details, &note));
            if shown && sections && !in_code && task_facts(&after) == before {
                return Ok(edited);
            }
        }
    }
    Err(PlanEditError::NoPlace { id: id.clone() })
}

/// The facts about every task that a note must not change.
fn task_facts(plan: &PlanDocument) -> Vec<(TaskId, TaskMark, String, usize, usize)> {
    let facts = |task: &PlanTask| {
        let (blockers, hints) = (task.blocked_by.len(), task.hints.len());
        (task.id.clone(), task.mark, task.text.clone(), blockers, hints + task.spec_refs.len())
    };
    plan.tasks.iter().map(facts).collect()
}

fn find_task<'a>(plan: &'a PlanDocument, id: &TaskId) -> Result<&'a PlanTask, PlanEditError> {
    plan.task(id).ok_or_else(|| PlanEditError::UnknownTask { id: id.clone() })
}

/// Puts the note on one line and cuts it to [`PLAN_NOTE_BYTES_MAX`].
fn to_one_line(note: &str) -> String {
    let (note, _) = repertoire_text::invisible::removed(note);
    let mut note = one_line(&note);
    if note.len() > PLAN_NOTE_BYTES_MAX {
        let mut end = PLAN_NOTE_BYTES_MAX - '…'.len_utf8();
        while !note.is_char_boundary(end) {
            end -= 1;
        }
        note.truncate(end);
        note.push('…');
    }
    note
}

/// The first line ending of the file.
fn line_ending(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Returns true if the last line that contains the note is in an open code fence.
fn is_in_code(details: &str, note: &str) -> bool {
    let mut open: Option<super::lines::CodeFence> = None;
    let mut inside = false;
    for line in details.lines() {
        let body = line.trim_start();
        if body.contains(note) {
            inside = open.is_some();
        }
        open = match open {
            Some(fence) if fence.is_closed_by(body) => None,
            Some(fence) => Some(fence),
            None => super::lines::CodeFence::opened_by(body),
        };
    }
    inside
}
