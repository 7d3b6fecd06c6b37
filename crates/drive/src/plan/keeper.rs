//! Keeps the plan file and the journal of one mind: the journal says how far tasks are, and the file shows it. An agent may add
//! tasks and say that one is blocked; it cannot tick one off, and it cannot lose one.

use camino::Utf8Path;
use repertoire_flow::plan::{self, Mark, Plan};
use repertoire_journal::Payload;
use repertoire_journal::event::{TaskRef, TaskSeen};
use repertoire_skill::skill::Digest;

use super::state::{PlanState, mark_word};

/// Longest note in a plan.
const NOTE_CHARS_MAX: usize = 200;

/// A plan file that was put right.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// Its text as it has to be.
    pub text: String,
    /// What to record.
    pub events: Vec<Payload>,
}

/// The events of reading a plan for the first time in a run. Who wrote it may have ticked off what they like.
pub fn first_read(text: &str, path: &Utf8Path) -> Payload {
    let plan = plan::parse(text, path);
    match &plan.fallback {
        Some(reason) => Payload::PlanFallback { reason: reason.clone() },
        None => Payload::PlanRead { digest: digest(text), tasks: seen(&plan) },
    }
}

/// The file with the marks that the journal has for its tasks.
pub fn with_marks(text: &str, path: &Utf8Path, state: &PlanState) -> String {
    let mut text = text.to_owned();
    let plan = plan::parse(&text, path);
    for task in &plan.tasks {
        let Some(known) = state.tasks.get(task.id.as_str()) else { continue };
        if known.mark != task.mark
            && let Ok(marked) = plan::mark(&text, &task.id, known.mark)
        {
            text = marked;
        }
    }
    text
}

/// The file with a line below each task that has just failed.
pub fn with_notes(text: &str, happened: &[Payload]) -> String {
    let mut text = text.to_owned();
    for payload in happened {
        if let Payload::TaskMarked { task, mark, reason } = payload
            && mark == mark_word(Mark::Failed)
            && let Ok(noted) = plan::append_note(
                &text,
                &plan::TaskId::new(&task.id),
                &format!("failed: {}", one_line(reason)),
            )
        {
            text = noted;
        }
    }
    text
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(NOTE_CHARS_MAX).collect()
}

/// What the commit of a plan is about.
pub fn message(happened: &[Payload]) -> String {
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

/// What becomes of the plan after an agent was at work: `before` is how the engine left it, `after` how it was found.
pub fn reconcile(before: &str, after: Option<&str>, path: &Utf8Path, state: &PlanState) -> Kept {
    let restored = |reason: &str| Kept {
        text: with_marks(before, path, state),
        events: vec![Payload::PlanRestored { reason: reason.to_owned() }],
    };
    let Some(after) = after else { return restored("the plan was gone or could not be read") };
    if after == before || state.fallback.is_some() {
        return Kept { text: after.to_owned(), events: Vec::new() };
    }
    let (old, new) = (plan::parse(before, path), plan::parse(after, path));
    if let Some(reason) = &new.fallback {
        return restored(&format!("its tasks could no longer be told: {reason}"));
    }
    let lost: Vec<&str> = old
        .tasks
        .iter()
        .filter(|task| new.task(&task.id).is_none())
        .map(|task| task.text.as_str())
        .collect();
    if !lost.is_empty() {
        return restored(&format!("tasks were missing: {}", lost.join("; ")));
    }
    let mut events = Vec::new();
    let mut wrongly: Vec<String> = Vec::new();
    let mut known = state.clone();
    for task in &new.tasks {
        let reference = TaskRef { id: task.id.as_str().to_owned(), label: task.text.clone() };
        let expected = match state.tasks.get(&reference.id) {
            Some(known) => known.mark,
            // What an agent adds is still to be done, whatever it says.
            None if task.mark == Mark::ManualQa => Mark::ManualQa,
            None => Mark::Open,
        };
        let says_blocked = task.mark == Mark::Blocked && expected == Mark::Open;
        let payload = if says_blocked {
            let reason = "the agent says that it is blocked".to_owned();
            Payload::TaskMarked {
                task: reference,
                mark: mark_word(Mark::Blocked).to_owned(),
                reason,
            }
        } else if !state.tasks.contains_key(&reference.id) {
            let mark = mark_word(expected).to_owned();
            let tasks = vec![TaskSeen { task: reference, mark }];
            Payload::PlanRead { digest: digest(after), tasks }
        } else {
            if task.mark != expected {
                wrongly.push(format!("\"{}\" as {}", task.text, mark_word(task.mark)));
            }
            continue;
        };
        known.apply(&payload);
        events.push(payload);
    }
    if !wrongly.is_empty() {
        let reason = format!("marks were changed that are the engine's: {}", wrongly.join("; "));
        events.push(Payload::PlanRestored { reason });
    }
    Kept { text: with_marks(after, path, &known), events }
}

fn seen(plan: &Plan) -> Vec<TaskSeen> {
    let tasks = plan.tasks.iter().map(|task| TaskSeen {
        task: TaskRef { id: task.id.as_str().to_owned(), label: task.text.clone() },
        mark: mark_word(task.mark).to_owned(),
    });
    tasks.collect()
}

fn digest(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string()
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

    fn names(kept: &Kept) -> Vec<&'static str> {
        kept.events.iter().map(Payload::name).collect()
    }

    #[test]
    fn a_mark_that_an_agent_sets_is_taken_back() {
        let lie = PLAN.replace("[ ] Write", "[R] Write").replace("[x] Read", "[R] Read");
        let kept = reconcile(PLAN, Some(&lie), path(), &state());
        assert_eq!(kept.text, PLAN);
        assert_eq!(names(&kept), ["PLAN_RESTORED"]);
    }

    #[test]
    fn a_task_that_an_agent_removes_comes_back() {
        let kept = reconcile(PLAN, Some("# Plan\n\n- [x] Read the file\n"), path(), &state());
        assert_eq!((kept.text.as_str(), names(&kept)), (PLAN, vec!["PLAN_RESTORED"]));
        let kept = reconcile(PLAN, None, path(), &state());
        assert_eq!(kept.text, PLAN);
    }

    #[test]
    fn a_task_that_an_agent_adds_is_open_and_one_that_it_cannot_do_is_blocked() {
        let more = format!("{PLAN}- [x] Write the printer\n")
            .replace("[ ] Write the p", "[~] Write the p");
        let kept = reconcile(PLAN, Some(&more), path(), &state());
        assert_eq!(names(&kept), ["TASK_MARKED", "PLAN_READ"]);
        assert_eq!(kept.text, more.replace("- [x] Write the printer", "- [ ] Write the printer"));
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
        assert_eq!(message(&happened), "plan: Write the parser is failed");
    }

    #[test]
    fn words_around_tasks_may_change() {
        let noted = PLAN.replace("# Plan\n", "# Plan\n\nA note.\n");
        let kept = reconcile(PLAN, Some(&noted), path(), &state());
        assert_eq!((kept.text, kept.events), (noted, Vec::new()));
    }
}
