//! Keeps the plan file consistent with the journal. The journal decides on the marks of tasks, and
//! the file shows them. An agent may add tasks and mark its own as blocked, but can neither tick
//! off nor remove a task. A person may do all of that.

use std::collections::{BTreeMap, BTreeSet};

use crate::document::{self, PlanDocument, TaskMark};
use camino::Utf8Path;
use repertoire_journal::Payload;
use repertoire_journal::event::TaskSeen;
use repertoire_skill::skill::ContentDigest;

use super::decide::join_some;
use super::state::{FINAL_TASK, PlanState, REMOVED, mark_word, task_reference};

/// Maximum length of a note in a plan.
const NOTE_CHARS_MAX: usize = 200;

/// A plan file after its reconciliation.
#[derive(Clone, Debug, PartialEq)]
pub struct ReconciledPlan {
    /// The text to write.
    pub text: String,
    /// The events to record.
    pub events: Vec<Payload>,
}

/// The event of reading a plan for the first time in a run. Its existing marks are accepted.
pub fn first_read(text: &str, path: &Utf8Path) -> Payload {
    let plan = document::parse_plan(text, path);
    match &plan.fallback {
        Some(reason) => Payload::PlanFallback { reason: reason.clone() },
        None => Payload::PlanRead { digest: digest_text(text), tasks: seen_tasks(&plan) },
    }
}

/// The text with the marks that the journal has for its tasks.
pub fn with_marks(text: &str, path: &Utf8Path, state: &PlanState) -> String {
    let mark_of = |task: &document::PlanTask| Some(state.tasks.get(task.id.as_str())?.mark);
    document::mark_tasks(text, path, mark_of)
}

/// The text with a note below each task that has just failed.
pub fn with_notes(text: &str, happened: &[Payload]) -> String {
    let mut text = text.to_owned();
    for payload in happened {
        if let Payload::TaskMarked { task, mark, reason } = payload
            && mark == mark_word(TaskMark::Failed)
            && let Ok(noted) = document::append_note(
                &text,
                &document::TaskId::new(&task.id),
                &format!("failed: {}", one_line(reason)),
            )
        {
            text = noted;
        }
    }
    text
}

fn one_line(text: &str) -> String {
    let line = repertoire_text::layout::one_line(text);
    line.chars().take(NOTE_CHARS_MAX).collect()
}

/// The message for the commit of a plan.
pub fn commit_message(happened: &[Payload]) -> String {
    let marked = happened.iter().filter_map(|payload| match payload {
        Payload::TaskMarked { task, mark, .. } => {
            Some(format!("{} is {mark}", one_line(&task.label)))
        }
        _ => None,
    });
    match marked.collect::<Vec<_>>().as_slice() {
        [] => "plan: bring the marks up to date".to_owned(),
        marked => format!("plan: {}", marked.join("; ")),
    }
}

/// Reconciles the plan after an agent's step. `before` is the text that the engine wrote, `after`
/// the current one. `own` is the task that the agent worked on, the only one that it may mark as
/// blocked.
pub fn reconcile_plan(
    before: &str,
    after: Option<&str>,
    path: &Utf8Path,
    state: &PlanState,
    own: Option<&str>,
) -> ReconciledPlan {
    let Some(after) = after else {
        return restore_plan(
            before,
            path,
            state,
            "the plan was gone or could not be read".to_owned(),
        );
    };
    if after == before || state.fallback.is_some() {
        return ReconciledPlan { text: after.to_owned(), events: Vec::new() };
    }
    let (old, new) = (document::parse_plan(before, path), document::parse_plan(after, path));
    if let Some(reason) = &new.fallback {
        let reason = format!("its tasks could no longer be told: {reason}");
        return restore_plan(before, path, state, reason);
    }
    let there: BTreeMap<&document::TaskId, &document::PlanTask> =
        new.tasks.iter().map(|task| (&task.id, task)).collect();
    let is_kept =
        |task: &document::PlanTask| there.get(&task.id).is_some_and(|new| still_asks(task, new));
    let mut lost = old.tasks.iter().filter(|task| !is_kept(task)).peekable();
    if lost.peek().is_some() {
        let lost = join_some(lost.map(|task| task.text.clone()));
        let reason = format!("tasks were missing or asked for something else: {lost}");
        return restore_plan(before, path, state, reason);
    }
    let mut events = Vec::new();
    let mut wrongly: Vec<String> = Vec::new();
    let mut added = Vec::new();
    for task in &new.tasks {
        let Some(known) = state.tasks.get(task.id.as_str()) else {
            // A task that an agent adds is open, whatever its mark.
            let mark =
                if task.mark == TaskMark::ManualQa { TaskMark::ManualQa } else { TaskMark::Open };
            let mark = mark_word(mark).to_owned();
            added.push(TaskSeen { task: task_reference(task), mark });
            continue;
        };
        let is_own = own == Some(task.id.as_str());
        if is_own && task.mark == TaskMark::Blocked && known.mark == TaskMark::Open {
            let reason = "the agent says that it is blocked".to_owned();
            events.push(task_marked(task, mark_word(TaskMark::Blocked), reason));
        } else if task.mark != known.mark {
            wrongly.push(format!("\"{}\" as {}", task.text, mark_word(task.mark)));
        }
    }
    if !added.is_empty() {
        events.push(Payload::PlanRead { digest: digest_text(after), tasks: added });
    }
    let mut known = state.clone();
    events.iter().for_each(|event| known.apply(event));
    if !wrongly.is_empty() {
        let wrongly = join_some(wrongly.into_iter());
        let reason = format!("marks were changed that are the engine's: {wrongly}");
        events.push(Payload::PlanRestored { reason });
    }
    ReconciledPlan { text: with_marks(after, path, &known), events }
}

/// Accepts all changes that a person has made to the plan between steps.
pub fn accept_edits(
    before: &str,
    after: Option<&str>,
    path: &Utf8Path,
    state: &PlanState,
) -> ReconciledPlan {
    let Some(after) = after else {
        return restore_plan(
            before,
            path,
            state,
            "the plan was gone or could not be read".to_owned(),
        );
    };
    if after == before {
        return ReconciledPlan { text: with_marks(before, path, state), events: Vec::new() };
    }
    let new = document::parse_plan(after, path);
    if let Some(reason) = &new.fallback {
        let reason = format!("its tasks could no longer be told: {reason}");
        return restore_plan(before, path, state, reason);
    }
    if state.fallback.is_some() {
        return ReconciledPlan { text: after.to_owned(), events: vec![first_read(after, path)] };
    }
    let why = || "somebody changed the plan".to_owned();
    let there: BTreeSet<&str> = new.tasks.iter().map(|task| task.id.as_str()).collect();
    let gone = state.order.iter().filter(|id| !there.contains(id.as_str()) && *id != FINAL_TASK);
    let mut events: Vec<Payload> = gone
        .filter_map(|id| state.task_ref(id))
        .map(|task| Payload::TaskMarked { task, mark: REMOVED.to_owned(), reason: why() })
        .collect();
    let unknown = new.tasks.iter().filter(|task| !state.tasks.contains_key(task.id.as_str()));
    let added: Vec<TaskSeen> = unknown.map(as_seen).collect();
    if !added.is_empty() {
        events.push(Payload::PlanRead { digest: digest_text(after), tasks: added });
    }
    for task in &new.tasks {
        let known = state.tasks.get(task.id.as_str());
        if known.is_some_and(|known| known.mark != task.mark) {
            events.push(task_marked(task, mark_word(task.mark), why()));
        }
    }
    ReconciledPlan { text: after.to_owned(), events }
}

/// Discards the current text, and records why.
fn restore_plan(
    before: &str,
    path: &Utf8Path,
    state: &PlanState,
    reason: String,
) -> ReconciledPlan {
    let events = vec![Payload::PlanRestored { reason }];
    ReconciledPlan { text: with_marks(before, path, state), events }
}

/// Returns true if a task still has all of its content. The text must be the same, since the id
/// alone does not identify the content; lines may be added below it.
fn still_asks(old: &document::PlanTask, new: &document::PlanTask) -> bool {
    let lines: BTreeSet<&str> = new.details.lines().map(str::trim).collect();
    old.text == new.text && old.details.lines().all(|line| lines.contains(line.trim()))
}

fn task_marked(task: &document::PlanTask, mark: &str, reason: String) -> Payload {
    Payload::TaskMarked { task: task_reference(task), mark: mark.to_owned(), reason }
}

fn seen_tasks(plan: &PlanDocument) -> Vec<TaskSeen> {
    plan.tasks.iter().map(as_seen).collect()
}

fn as_seen(task: &document::PlanTask) -> TaskSeen {
    TaskSeen { task: task_reference(task), mark: mark_word(task.mark).to_owned() }
}

fn digest_text(text: &str) -> String {
    ContentDigest::hash_bytes(text.as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "# Plan\n\n- [ ] Write the parser\n- [x] Read the file\n";

    fn path() -> &'static Utf8Path {
        Utf8Path::new("PLAN.md")
    }

    fn state() -> PlanState {
        let mut state = PlanState::default();
        state.apply(&first_read(PLAN, path()));
        state
    }

    /// Reconciles the plan after an agent that worked on its first task.
    fn left(after: Option<&str>) -> ReconciledPlan {
        let state = state();
        reconcile_plan(PLAN, after, path(), &state, Some(&state.order[0]))
    }

    fn names(kept: &ReconciledPlan) -> Vec<&'static str> {
        kept.events.iter().map(Payload::name).collect()
    }

    #[test]
    fn a_mark_that_an_agent_sets_is_taken_back() {
        let lie = PLAN.replace("[ ] Write", "[R] Write").replace("[x] Read", "[R] Read");
        let kept = left(Some(&lie));
        assert_eq!(kept.text, PLAN);
        assert_eq!(names(&kept), ["PLAN_RESTORED"]);
    }

    #[test]
    fn a_task_that_an_agent_removes_comes_back() {
        let kept = left(Some("# Plan\n\n- [x] Read the file\n"));
        assert_eq!((kept.text.as_str(), names(&kept)), (PLAN, vec!["PLAN_RESTORED"]));
        let kept = left(None);
        assert_eq!(kept.text, PLAN);
    }

    #[test]
    fn a_task_that_an_agent_adds_is_open_and_one_that_it_cannot_do_is_blocked() {
        let more = format!("{PLAN}- [x] Write the printer\n")
            .replace("[ ] Write the p", "[~] Write the p");
        let kept = left(Some(&more));
        assert_eq!(names(&kept), ["TASK_MARKED", "PLAN_READ"]);
        assert_eq!(kept.text, more.replace("- [x] Write the printer", "- [ ] Write the printer"));
    }

    #[test]
    fn a_task_that_an_agent_makes_easier_is_as_it_was() {
        let plan = "- [ ] T1 Write the parser\n  - with tests\n- [ ] T2 Write the printer\n";
        let mut state = PlanState::default();
        state.apply(&first_read(plan, path()));
        let left = |after: &str| reconcile_plan(plan, Some(after), path(), &state, Some("T1"));
        for (from, to) in [("the parser", "a comment"), ("  - with tests\n", "")] {
            let kept = left(&plan.replace(from, to));
            assert_eq!((kept.text.as_str(), names(&kept)), (plan, vec!["PLAN_RESTORED"]));
        }
        let noted = plan.replace("tests\n", "tests\n  - see the grammar\n");
        assert_eq!(left(&noted), ReconciledPlan { text: noted, events: Vec::new() });
    }

    #[test]
    fn an_agent_calls_its_own_task_blocked_and_no_other() {
        let plan = "- [ ] A\n- [ ] B\n";
        let mut state = PlanState::default();
        state.apply(&first_read(plan, path()));
        let kept =
            reconcile_plan(plan, Some("- [~] A\n- [~] B\n"), path(), &state, Some(&state.order[0]));
        assert_eq!(kept.text, "- [~] A\n- [ ] B\n");
        assert_eq!(names(&kept), ["TASK_MARKED", "PLAN_RESTORED"]);
        // A reviewer has no task of its own.
        let kept = reconcile_plan(plan, Some("- [~] A\n- [ ] B\n"), path(), &state, None);
        assert_eq!((kept.text.as_str(), names(&kept)), (plan, vec!["PLAN_RESTORED"]));
    }

    #[test]
    fn a_thousand_tasks_more_are_one_event() {
        let more: String = (0..1_500).map(|n| format!("- [R] Task {n}\n")).collect();
        let kept = left(Some(&format!("{PLAN}{more}")));
        assert_eq!(names(&kept), ["PLAN_READ"]);
        assert_eq!(kept.text, format!("{PLAN}{}", more.replace("[R]", "[ ]")));
    }

    #[test]
    fn what_a_person_changes_counts() {
        let mut state = state();
        let after = "# Plan\n\n- [R] Write the parser\n- [~] Write the printer\n";
        let kept = accept_edits(PLAN, Some(after), path(), &state);
        assert_eq!(names(&kept), ["TASK_MARKED", "PLAN_READ", "TASK_MARKED"]);
        kept.events.iter().for_each(|event| state.apply(event));
        let marks: Vec<_> = state.tasks.values().map(|t| (t.label.as_str(), t.mark)).collect();
        assert!(marks.contains(&("Write the parser", TaskMark::Reviewed)), "{marks:?}");
        assert!(marks.contains(&("Write the printer", TaskMark::Blocked)), "{marks:?}");
        assert_eq!((marks.len(), kept.text.as_str()), (2, after));
        let kept = accept_edits(PLAN, Some("nothing\n"), path(), &self::state());
        assert_eq!((kept.text.as_str(), names(&kept)), (PLAN, vec!["PLAN_RESTORED"]));
    }

    #[test]
    fn a_task_that_failed_says_why_below_it_and_in_the_commit() {
        let task = state().task_ref(&state().order[0]).unwrap();
        let (mark, reason) = ("failed".to_owned(), "checks are red:\n test".to_owned());
        let happened = [Payload::TaskMarked { task, mark, reason }];
        let mut known = state();
        known.apply(&happened[0]);
        let text = with_marks(&with_notes(PLAN, &happened), path(), &known);
        assert_eq!(
            text,
            "# Plan\n\n- [!] Write the parser\n  - failed: checks are red: test\n- [x] Read the file\n"
        );
        assert_eq!(commit_message(&happened), "plan: Write the parser is failed");
    }

    #[test]
    fn words_around_tasks_may_change() {
        let noted = PLAN.replace("# Plan\n", "# Plan\n\nA note.\n");
        let kept = left(Some(&noted));
        assert_eq!((kept.text, kept.events), (noted, Vec::new()));
    }
}
