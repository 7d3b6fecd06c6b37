//! What comes next: pure decisions over the state of a loop and its plan.

use std::collections::BTreeSet;

use repertoire_flow::plan::{self, Choice, Mark, Plan};
use repertoire_journal::Payload;
use repertoire_journal::event::{StepOutcome, TaskRef};

use super::request::PlanRequest;
use super::state::{
    After, Ended, FINAL_LABEL, FINAL_TASK, Kind, Past, PlanState, mark_word, reference,
};
use super::watchdog;
use crate::limits::{INTERRUPTIONS_MAX, NAMES_SHOWN};

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// An agent works on a task; on one of its own choice, if the plan's tasks cannot be told.
    Implement {
        /// The task.
        task: Option<TaskRef>,
    },
    /// Checks run.
    Verify {
        /// The task.
        task: Option<TaskRef>,
        /// What came before.
        after: After,
    },
    /// An agent reviews the work on a task.
    Review {
        /// The task.
        task: Option<TaskRef>,
    },
    /// Everything agrees that the work is done.
    Complete,
    /// It stops as asked; resuming goes on.
    Pause {
        /// Why.
        reason: String,
    },
    /// A person has to decide.
    Wait {
        /// Why.
        reason: String,
    },
    /// It cannot go on.
    Fail {
        /// Why, as `what:detail`.
        reason: String,
    },
}

/// What comes next.
pub fn next(state: &PlanState, plan: &Plan, request: &PlanRequest) -> Next {
    let bounds = &request.bounds;
    if let Some((kind, count)) = state.failures.iter().find(|(_, n)| **n >= bounds.failures_max) {
        let reason = format!("max_consecutive_failures:{}:{count}", kind.as_str());
        return Next::Fail { reason };
    }
    if state.interruptions >= INTERRUPTIONS_MAX {
        let task = state.last().and_then(|past| past.task.as_ref());
        let on = task.map_or(String::new(), |task| format!(" on \"{}\"", task.label));
        let reason = format!(
            "{} steps in a row{on} ended with their worker: look at what it does before it is tried again",
            state.interruptions
        );
        return Next::Wait { reason };
    }
    let next = match state.last() {
        None => pick(state, plan, request),
        Some(past) => follow(state, plan, request, past),
    };
    let rounds = state.iterations.saturating_sub(state.iterations_seen);
    match next {
        // What the last round did is still verified.
        Next::Implement { .. } | Next::Review { .. } if rounds >= bounds.iterations_max => {
            Next::Fail { reason: format!("iteration_limit_reached:{}", bounds.iterations_max) }
        }
        next => next,
    }
}

fn follow(state: &PlanState, plan: &Plan, request: &PlanRequest, past: &Past) -> Next {
    let task = past.task.clone();
    let is_open = |task: &Option<TaskRef>| match task {
        None => true,
        Some(task) => state.tasks.get(&task.id).is_some_and(|task| task.mark == Mark::Open),
    };
    let is_anew = |task: &Option<TaskRef>| {
        let known = task.as_ref().and_then(|task| state.tasks.get(&task.id));
        known.is_some_and(|task| task.begun.is_none())
    };
    let (Some(Ended::With(outcome)), false) = (past.ended, is_void(past)) else {
        // Nothing came of it, so it is done anew.
        return match (past.kind, past.after) {
            (Kind::Implementation, _) if !is_open(&task) => pick(state, plan, request),
            (Kind::Implementation, _) => Next::Implement { task },
            (Kind::Review, _) => Next::Review { task },
            (Kind::Verification, after) => {
                Next::Verify { task, after: after.unwrap_or(After::Implementation) }
            }
        };
    };
    let is_ok = outcome == StepOutcome::Ok;
    match (past.kind, past.after) {
        // What the agent itself says is blocked is not done, whatever it has changed; nor is what is to be tried again.
        (Kind::Implementation, _) if is_ok && is_open(&task) && !is_anew(&task) => {
            Next::Verify { task, after: After::Implementation }
        }
        (Kind::Verification, Some(After::Everything)) if is_ok => Next::Complete,
        (Kind::Verification, Some(After::Implementation)) if is_ok && request.review => {
            Next::Review { task }
        }
        (Kind::Review, _) if is_ok => Next::Verify { task, after: After::Review },
        // No verdict is no reason to work: the review is done again, until the watchdog or the failures end that.
        (Kind::Review, _) if outcome == StepOutcome::Failed => Next::Review { task },
        _ if !is_ok && task.is_some() && is_open(&task) => Next::Implement { task },
        _ => pick(state, plan, request),
    }
}

/// Whether a step has to be done again as if it had never been.
fn is_void(past: &Past) -> bool {
    matches!(past.ended, Some(Ended::With(StepOutcome::Stopped)))
}

fn pick(state: &PlanState, plan: &Plan, request: &PlanRequest) -> Next {
    if let Some(reason) = &state.fallback {
        return match state.history.is_empty() || state.looked {
            true => Next::Implement { task: None },
            false => Next::Wait {
                reason: format!(
                    "the tasks of the plan cannot be told ({reason}), so nobody but you can say whether it is done"
                ),
            },
        };
    }
    let done = |mark| match request.review {
        true => mark == Mark::Reviewed,
        false => matches!(mark, Mark::Implemented | Mark::Reviewed),
    };
    let is_over = |mark| done(mark) || matches!(mark, Mark::Failed | Mark::Blocked);
    let ended = state.tasks.values().find(|task| task.fresh && is_over(task.mark));
    if let Some(task) = ended.filter(|_| request.once) {
        let reason =
            format!("one task was asked for: \"{}\" is {}", task.label, mark_word(task.mark));
        return Next::Pause { reason };
    }
    // What is implemented is finished before anything new is begun.
    if request.review
        && let Some((id, _)) = state.marked(Mark::Implemented).next()
    {
        return Next::Review { task: state.task_ref(id) };
    }
    match plan::select_task(plan) {
        Choice::Task(id) => {
            Next::Implement { task: state.task_ref(id.as_str()).or_else(|| task_of(plan, &id)) }
        }
        Choice::Stuck { waiting } => {
            let why = some(waiting.iter().map(|(_, why)| why.clone()));
            Next::Wait { reason: format!("every open task waits: {why}") }
        }
        Choice::Nothing => at_the_end(state, plan),
    }
}

/// No task is open and nothing waits for review.
fn at_the_end(state: &PlanState, plan: &Plan) -> Next {
    // The journal knows of every task; a file that has lost one does not make it done.
    let in_plan: BTreeSet<&str> = plan.tasks.iter().map(|task| task.id.as_str()).collect();
    let lost = state
        .marked(Mark::Open)
        .filter(|(id, _)| *id != FINAL_TASK && !in_plan.contains(id))
        .map(|(_, task)| format!("\"{}\" is open, but no longer in the plan", task.label));
    let held: Vec<String> = [Mark::Failed, Mark::Blocked]
        .into_iter()
        .flat_map(|mark| state.marked(mark))
        .map(|(_, task)| format!("\"{}\" is {}", task.label, mark_word(task.mark)))
        .chain(lost)
        .collect();
    if !held.is_empty() {
        let reason = format!("nothing is left to do by itself: {}", some(held.into_iter()));
        return Next::Wait { reason };
    }
    match state.tasks.get(FINAL_TASK).map(|task| task.mark) {
        Some(Mark::Open) => Next::Implement { task: state.task_ref(FINAL_TASK) },
        _ => Next::Verify { task: None, after: After::Everything },
    }
}

/// The first of them, for a sentence that a person reads.
pub(super) fn some(mut names: impl Iterator<Item = String>) -> String {
    let shown: Vec<String> = names.by_ref().take(NAMES_SHOWN).collect();
    match names.count() {
        0 => shown.join("; "),
        more => format!("{}; and {more} more", shown.join("; ")),
    }
}

fn task_of(plan: &Plan, id: &plan::TaskId) -> Option<TaskRef> {
    plan.task(id).map(reference)
}

/// What follows from the step that has just ended: marks, what is learnt, and what the watchdog sees.
pub fn conclude(state: &PlanState, request: &PlanRequest) -> Vec<Payload> {
    let Some(past) = state.last() else { return Vec::new() };
    let mut out = Vec::new();
    if let Some((task, mark, reason)) = marking(state, request, past) {
        if mark == Mark::Failed {
            let note = format!("\"{}\" failed: {reason}", task.label);
            out.push(Payload::Learned { task: Some(task.clone()), note });
        }
        out.push(Payload::TaskMarked { task, mark: mark_word(mark).to_owned(), reason });
    }
    if past.kind == Kind::Review
        && let Some(note) = past.text("learning").filter(|note| !note.trim().is_empty())
    {
        out.push(Payload::Learned { task: past.task.clone(), note: note.trim().to_owned() });
    }
    let has_failed = out
        .iter()
        .any(|payload| matches!(payload, Payload::TaskMarked { mark, .. } if mark == "failed"));
    // A task that is given up is nothing to try in other words.
    if !has_failed && past.is_bad() {
        out.extend(watchdog::act(state, request));
    }
    out
}

fn marking(
    state: &PlanState,
    request: &PlanRequest,
    past: &Past,
) -> Option<(TaskRef, Mark, String)> {
    let Some(Ended::With(outcome)) = past.ended else { return None };
    let is_ok = outcome == StepOutcome::Ok;
    if past.after == Some(After::Everything) {
        let task = TaskRef { id: FINAL_TASK.to_owned(), label: FINAL_LABEL.to_owned() };
        return (!is_ok && outcome != StepOutcome::Stopped)
            .then(|| again(state, request, task, "the final checks are red".to_owned()));
    }
    let task = past.task.clone()?;
    let reason = past.reason.clone();
    let or = |words: &str| reason.clone().unwrap_or_else(|| words.to_owned());
    match (past.kind, past.after, outcome) {
        (_, _, StepOutcome::Stopped) => None,
        (Kind::Verification, Some(After::Review), StepOutcome::Ok) => {
            Some((task, Mark::Reviewed, "reviewed, and the checks are green".to_owned()))
        }
        (Kind::Verification, _, StepOutcome::Ok) => {
            Some((task, Mark::Implemented, "implemented, and the checks are green".to_owned()))
        }
        (Kind::Verification, ..) => Some(again(state, request, task, or("the checks are red"))),
        (Kind::Review, _, StepOutcome::SentBack) => {
            Some(again(state, request, task, or("the reviewer sent it back")))
        }
        (Kind::Implementation, _, StepOutcome::Failed) if is_used_up(state, request, &task) => {
            Some((task, Mark::Failed, or("the agent failed")))
        }
        _ => None,
    }
}

/// Open again, or failed if its attempts are used up.
fn again(
    state: &PlanState,
    request: &PlanRequest,
    task: TaskRef,
    reason: String,
) -> (TaskRef, Mark, String) {
    let mark = if is_used_up(state, request, &task) { Mark::Failed } else { Mark::Open };
    (task, mark, reason)
}

fn is_used_up(state: &PlanState, request: &PlanRequest, task: &TaskRef) -> bool {
    let attempts = state.tasks.get(&task.id).map_or(0, |task| task.attempts);
    attempts >= request.bounds.attempts_max
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;
    use repertoire_journal::run::Spent;
    use serde_json::{Value, json};

    use super::*;
    use crate::plan::keeper;

    const PLAN: &str = "# Plan\n\n- [ ] Write the parser\n- [ ] Write the printer\n";

    /// A loop that is driven by hand: what steps come to is given, what follows is worked out.
    struct Loop {
        request: PlanRequest,
        state: PlanState,
        text: String,
        steps: u32,
        /// Everything that the journal would have.
        told: Vec<Payload>,
    }

    impl Loop {
        fn new(text: &str) -> Self {
            let request = PlanRequest { plan: "PLAN.md".into(), ..PlanRequest::default() };
            let (state, told) = (PlanState::default(), Vec::new());
            let mut one = Loop { request, state, text: text.to_owned(), steps: 0, told };
            one.tell(keeper::first_read(text, Utf8Path::new("PLAN.md")));
            one
        }

        fn tell(&mut self, payload: Payload) {
            self.state.apply(&payload);
            self.told.push(payload);
        }

        fn next(&self) -> Next {
            let text = keeper::with_marks(&self.text, Utf8Path::new("PLAN.md"), &self.state);
            next(&self.state, &plan::parse(&text, Utf8Path::new("PLAN.md")), &self.request)
        }

        /// Does what comes next, with this outcome, and says in a word what it was and what was concluded.
        fn step(&mut self, outcome: StepOutcome, result: Value) -> String {
            self.take(outcome, None, result)
        }

        fn fail(&mut self, reason: &str, result: Value) -> String {
            self.take(StepOutcome::Failed, Some(reason.to_owned()), result)
        }

        fn take(&mut self, outcome: StepOutcome, reason: Option<String>, result: Value) -> String {
            let (kind, task, after) = match self.next() {
                Next::Implement { task } => (Kind::Implementation, task, None),
                Next::Verify { task, after } => (Kind::Verification, task, Some(after)),
                Next::Review { task } => (Kind::Review, task, None),
                other => return format!("{other:?}"),
            };
            self.steps += 1;
            let step = self.steps;
            let detail = after.map_or(Value::Null, |after| json!({ "after": after.as_str() }));
            let name = task.as_ref().map_or("-".to_owned(), |task| task.label.clone());
            self.tell(Payload::StepStarted {
                step,
                kind: kind.as_str().to_owned(),
                task,
                attempt: 1,
                iteration: 1,
                head: Some(format!("c{step}")),
                detail,
            });
            let head = Some(format!("c{step}"));
            let spent = Spent::default();
            self.tell(Payload::StepFinished { step, outcome, reason, head, spent, result });
            let concluded = conclude(&self.state, &self.request);
            let mut said = format!("{} {name}", kind.as_str());
            for payload in concluded {
                self.tell(payload.clone());
                said.push_str(&match &payload {
                    Payload::TaskMarked { mark, .. } => format!(" [{mark}]"),
                    other => format!(" {}", other.name()),
                });
            }
            said
        }

        fn ok(&mut self) -> String {
            self.step(StepOutcome::Ok, json!({ "changed": true }))
        }

        fn red(&mut self, failure: &str) -> String {
            self.step(StepOutcome::Failed, json!({ "failure": failure, "notes": failure }))
        }
    }

    #[test]
    fn a_task_is_implemented_verified_reviewed_and_verified_again() {
        let mut one = Loop::new("- [ ] A\n");
        let told: Vec<String> = (0..6).map(|_| one.ok()).collect();
        assert_eq!(
            told,
            [
                "implementation A",
                "verification A [implemented]",
                "review A",
                "verification A [reviewed]",
                "verification -",
                "Complete",
            ]
        );
    }

    #[test]
    fn without_review_an_implemented_task_is_done() {
        let mut one = Loop::new("- [ ] A\n- [x] B\n");
        one.request.review = false;
        let told: Vec<String> = (0..4).map(|_| one.ok()).collect();
        let expected =
            ["implementation A", "verification A [implemented]", "verification -", "Complete"];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_waits_for_review_comes_before_anything_new() {
        let mut one = Loop::new("- [ ] A\n- [x] B\n");
        assert_eq!(one.ok(), "review B");
        assert_eq!(one.ok(), "verification B [reviewed]");
        assert_eq!(one.ok(), "implementation A");
    }

    #[test]
    fn work_that_is_sent_back_is_open_again() {
        let mut one = Loop::new("- [ ] A\n");
        one.ok();
        one.ok();
        let back = one.step(StepOutcome::SentBack, json!({ "notes": "no test" }));
        assert_eq!(back, "review A [open]");
        assert_eq!(one.state.notes.as_deref(), Some("no test"));
        assert_eq!(one.ok(), "implementation A");
        assert_eq!(one.ok(), "verification A [implemented]");
        assert_eq!(one.state.notes, None);
    }

    #[test]
    fn a_repair_by_the_reviewer_that_breaks_the_checks_opens_the_task() {
        let mut one = Loop::new("- [ ] A\n");
        one.ok();
        one.ok();
        one.ok();
        assert_eq!(one.red("x"), "verification A [open]");
        assert_eq!(one.ok(), "implementation A");
    }

    #[test]
    fn red_final_checks_are_a_task_of_their_own_and_keep_the_run_open() {
        let mut one = Loop::new("- [R] A\n");
        assert_eq!(one.red("x"), "verification - [open]");
        assert_eq!(one.ok(), "implementation Make the final checks pass");
        assert_eq!(one.ok(), "verification Make the final checks pass [implemented]");
        assert_eq!(one.ok(), "review Make the final checks pass");
        assert_eq!(one.ok(), "verification Make the final checks pass [reviewed]");
        assert_eq!(one.red("y"), "verification - [open]");
    }

    #[test]
    fn a_task_that_used_up_its_attempts_is_failed_and_not_picked_again() {
        let mut one = Loop::new(PLAN);
        one.request.bounds.attempts_max = 2;
        one.ok();
        assert_eq!(one.red("x"), "verification Write the parser [open]");
        one.ok();
        assert_eq!(one.red("y"), "verification Write the parser LEARNED [failed]");
        assert_eq!(one.ok(), "implementation Write the printer");
        one.ok();
        one.ok();
        one.ok();
        assert!(
            matches!(one.next(), Next::Wait { reason } if reason.contains("\"Write the parser\" is failed"))
        );
        one.state.apply(&Payload::RunRetried { by: "me".into(), tasks: Vec::new() });
        assert_eq!(one.ok(), "implementation Write the parser");
    }

    #[test]
    fn the_same_failure_thrice_rewrites_the_prompt_twice_and_then_waits() {
        let mut one = Loop::new("- [ ] A\n");
        one.request.bounds.attempts_max = 100;
        one.request.bounds.failures_max = 100;
        let mut told = Vec::new();
        for _ in 0..9 {
            one.ok();
            told.push(one.red("the same"));
        }
        let acted: Vec<&str> = told
            .iter()
            .filter_map(|line| line.split_once(" WATCHDOG_SIGNAL "))
            .map(|(_, act)| act)
            .collect();
        assert_eq!(acted, ["WATCHDOG_REWRITE", "WATCHDOG_REWRITE", "RUN_WAITING"]);
    }

    #[test]
    fn nothing_changed_twice_is_no_progress() {
        let mut one = Loop::new("- [ ] A\n");
        let idle = json!({ "changed": false, "notes": "no file was changed" });
        assert_eq!(one.step(StepOutcome::Failed, idle.clone()), "implementation A");
        let second = one.step(StepOutcome::Failed, idle);
        assert_eq!(second, "implementation A WATCHDOG_SIGNAL WATCHDOG_REWRITE");
        assert!(one.state.rewrite.as_deref().unwrap().contains("changed no file"));
    }

    #[test]
    fn an_agent_that_cannot_work_costs_no_attempt_and_waits_for_a_person_at_once() {
        let mut one = Loop::new("- [ ] A\n");
        let broken = json!({ "changed": false, "agent_failed": true });
        assert_eq!(one.fail("no key", broken.clone()), "implementation A");
        let second = one.fail("no key", broken);
        assert_eq!(second, "implementation A WATCHDOG_SIGNAL RUN_WAITING");
        assert_eq!(one.state.tasks.values().next().unwrap().attempts, 0);
    }

    #[test]
    fn the_same_difference_again_after_it_was_sent_back_is_seen() {
        let mut one = Loop::new("- [ ] A\n");
        let work = json!({ "changed": true, "diff": "d" });
        one.step(StepOutcome::Ok, work.clone());
        one.red("x");
        one.step(StepOutcome::Ok, work);
        assert_eq!(one.red("y"), "verification A [open] WATCHDOG_SIGNAL WATCHDOG_REWRITE");
    }

    #[test]
    fn a_reviewer_without_a_verdict_is_asked_again_and_then_told_how() {
        let mut one = Loop::new("- [x] A\n");
        let none = json!({ "malformed": true });
        assert_eq!(one.step(StepOutcome::Failed, none.clone()), "review A");
        assert_eq!(
            one.step(StepOutcome::Failed, none),
            "review A WATCHDOG_SIGNAL WATCHDOG_REWRITE"
        );
        assert_eq!(one.ok(), "review A");
    }

    #[test]
    fn failures_in_a_row_end_a_run() {
        let mut one = Loop::new(PLAN);
        one.request.bounds.failures_max = 3;
        one.request.bounds.attempts_max = 100;
        for number in 0..3 {
            one.ok();
            one.red(&number.to_string());
        }
        assert_eq!(
            one.next(),
            Next::Fail { reason: "max_consecutive_failures:verification:3".into() }
        );
    }

    #[test]
    fn a_step_that_was_stopped_or_cut_short_is_done_again_and_counts_for_nothing() {
        let mut one = Loop::new("- [ ] A\n");
        assert_eq!(one.step(StepOutcome::Stopped, Value::Null), "implementation A");
        assert_eq!(
            (one.state.iterations, one.state.tasks.values().next().unwrap().attempts),
            (0, 0)
        );
        assert_eq!(one.ok(), "implementation A");
        assert_eq!(one.step(StepOutcome::Stopped, Value::Null), "verification A");
        assert_eq!(one.ok(), "verification A [implemented]");
    }

    #[test]
    fn a_step_that_kills_its_worker_again_and_again_waits_for_a_person() {
        let mut one = Loop::new("- [ ] A\n");
        for step in 1..=INTERRUPTIONS_MAX {
            let Next::Implement { task } = one.next() else { panic!("{:?}", one.next()) };
            one.state.apply(&Payload::StepStarted {
                step,
                kind: "implementation".into(),
                task,
                attempt: 1,
                iteration: 1,
                head: None,
                detail: Value::Null,
            });
            one.state.apply(&Payload::StepInterrupted { step, reason: "gone".into() });
        }
        assert!(matches!(one.next(), Next::Wait { .. }));
    }

    #[test]
    fn final_checks_that_kill_their_worker_again_and_again_wait_for_a_person() {
        let mut one = Loop::new("- [R] A\n");
        for step in 1..=INTERRUPTIONS_MAX {
            assert!(matches!(one.next(), Next::Verify { task: None, .. }), "{:?}", one.next());
            one.state.apply(&Payload::StepStarted {
                step,
                kind: "verification".into(),
                task: None,
                attempt: 1,
                iteration: 1,
                head: None,
                detail: json!({ "after": "everything" }),
            });
            one.state.apply(&Payload::StepInterrupted { step, reason: "gone".into() });
        }
        assert!(matches!(one.next(), Next::Wait { .. }), "{:?}", one.next());
        one.state.apply(&Payload::RunResumed { by: "me".into(), limits: None });
        assert!(matches!(one.next(), Next::Verify { .. }));
    }

    #[test]
    fn a_task_that_the_file_has_lost_is_not_done() {
        let mut one = Loop::new(PLAN);
        one.text = "# Plan\n\n- [R] Write the parser\n".to_owned();
        for id in one.state.order.clone().iter().take(1) {
            let task = one.state.task_ref(id).unwrap();
            let (mark, reason) = ("reviewed".to_owned(), String::new());
            one.state.apply(&Payload::TaskMarked { task, mark, reason });
        }
        assert!(
            matches!(one.next(), Next::Wait { reason } if reason.contains("\"Write the printer\" is open, but no longer in the plan"))
        );
    }

    #[test]
    fn work_on_a_task_that_its_agent_calls_blocked_does_not_make_it_done() {
        let mut one = Loop::new("- [ ] A\n");
        let Next::Implement { task: Some(task) } = one.next() else { panic!() };
        one.ok();
        let (mark, reason) = ("blocked".to_owned(), "no key".to_owned());
        one.state.apply(&Payload::TaskMarked { task, mark, reason });
        assert!(matches!(one.next(), Next::Wait { reason } if reason.contains("\"A\" is blocked")));
        one.state.apply(&Payload::RunResumed { by: "me".into(), limits: None });
        assert!(matches!(one.next(), Next::Wait { .. }));
        one.state.apply(&Payload::RunRetried { by: "me".into(), tasks: Vec::new() });
        assert_eq!(one.ok(), "implementation A");
    }

    #[test]
    fn what_its_author_holds_back_is_tried_only_if_it_is_named() {
        let mut one = Loop::new("- [R] A\n- [~] B\n");
        one.state.apply(&Payload::RunRetried { by: "me".into(), tasks: Vec::new() });
        assert!(matches!(one.next(), Next::Wait { .. }));
        let tasks = vec![one.state.order[1].clone()];
        one.state.apply(&Payload::RunRetried { by: "me".into(), tasks });
        assert_eq!(one.ok(), "implementation B");
    }

    #[test]
    fn a_strict_reviewer_uses_up_attempts_and_does_not_fail_the_run() {
        let mut one = Loop::new(PLAN);
        one.request.bounds.attempts_max = 4;
        one.request.bounds.failures_max = 3;
        let mut said = String::new();
        for number in 0..4 {
            one.ok();
            one.ok();
            said = one.step(StepOutcome::SentBack, json!({ "notes": format!("no {number}") }));
        }
        assert_eq!(said, "review Write the parser LEARNED [failed]");
        assert_eq!(one.ok(), "implementation Write the printer");
    }

    #[test]
    fn a_person_who_resumes_grants_as_many_rounds_again() {
        let mut one = Loop::new(PLAN);
        one.request.bounds.iterations_max = 2;
        for _ in 0..4 {
            one.ok();
        }
        assert_eq!(one.next(), Next::Fail { reason: "iteration_limit_reached:2".into() });
        one.state.apply(&Payload::RunResumed { by: "me".into(), limits: None });
        assert_eq!(one.ok(), "implementation Write the printer");
    }

    #[test]
    fn a_reviewer_that_cannot_work_waits_for_a_person() {
        let mut one = Loop::new("- [x] A\n");
        let broken = json!({ "agent_failed": true });
        assert_eq!(one.fail("no key", broken.clone()), "review A");
        assert_eq!(one.fail("no key", broken), "review A WATCHDOG_SIGNAL RUN_WAITING");
    }

    #[test]
    fn one_task_is_enough_if_one_was_asked_for() {
        let mut one = Loop::new(PLAN);
        one.request.once = true;
        for _ in 0..4 {
            one.ok();
        }
        assert!(
            matches!(one.next(), Next::Pause { reason } if reason.contains("Write the parser"))
        );
        // Who resumes asks for one more.
        one.state.apply(&Payload::RunResumed { by: "me".into(), limits: None });
        for _ in 0..4 {
            one.ok();
        }
        assert!(
            matches!(one.next(), Next::Pause { reason } if reason.contains("Write the printer"))
        );
    }

    #[test]
    fn a_plan_without_tasks_is_worked_on_once_and_then_somebody_has_to_look() {
        let mut one = Loop::new("Just do it.\n");
        assert_eq!(one.next(), Next::Implement { task: None });
        one.ok();
        one.ok();
        one.ok();
        one.ok();
        assert!(matches!(one.next(), Next::Wait { reason } if reason.contains("cannot be told")));
        one.state.apply(&Payload::RunResumed { by: "me".into(), limits: None });
        assert_eq!(one.next(), Next::Implement { task: None });
    }

    #[test]
    fn blocked_tasks_keep_a_run_from_being_complete() {
        let one = Loop::new("- [R] A\n- [~] B\n");
        assert!(matches!(one.next(), Next::Wait { reason } if reason.contains("\"B\" is blocked")));
    }

    /// What a step may come to, whoever does it.
    fn outcome(kind: u8) -> (StepOutcome, Value) {
        match kind {
            0 => (StepOutcome::Failed, json!({ "changed": false, "notes": "n", "failure": "f" })),
            1 => (StepOutcome::Failed, json!({ "changed": true, "diff": "d", "malformed": true })),
            2 => (StepOutcome::SentBack, json!({ "notes": "again" })),
            3 => (StepOutcome::Stopped, Value::Null),
            4 => (StepOutcome::Failed, json!({ "agent_failed": true })),
            _ => (StepOutcome::Ok, json!({ "changed": true })),
        }
    }

    proptest::proptest! {
        #[test]
        fn every_loop_ends_and_only_what_is_done_is_complete(
            marks in proptest::collection::vec(0..5_usize, 1..5),
            outcomes in proptest::collection::vec(0..12_u8, 300),
            review in proptest::bool::ANY,
        ) {
            let words = ["[ ]", "[x]", "[R]", "[~]", "[ ]?"];
            let lines = marks.iter().enumerate().map(|(at, mark)| format!("- {} T{at}\n", words[*mark]));
            let mut one = Loop::new(&lines.collect::<String>());
            one.request.review = review;
            one.request.bounds.attempts_max = 3;
            let mut outcomes = outcomes.into_iter();
            let mut last_was_green = false;
            let end = loop {
                let next = one.next();
                if !matches!(next, Next::Implement { .. } | Next::Verify { .. } | Next::Review { .. }) {
                    break next;
                }
                // Whoever is left at the end of the list does everything right, and still it has to end.
                let (outcome, result) = outcome(outcomes.next().unwrap_or(11));
                last_was_green = outcome == StepOutcome::Ok
                    && matches!(next, Next::Verify { after: After::Everything, .. });
                let said = one.step(outcome, result);
                if said.contains("RUN_WAITING") {
                    break Next::Wait { reason: said };
                }
                proptest::prop_assert!(one.steps < 400, "it goes on and on: {next:?}");
            };
            if end == Next::Complete {
                let done = |mark: Mark| match mark {
                    Mark::Reviewed | Mark::ManualQa => true,
                    Mark::Implemented => !review,
                    _ => false,
                };
                proptest::prop_assert!(one.state.tasks.values().all(|task| done(task.mark)));
                proptest::prop_assert!(last_was_green);
            }
        }

        #[test]
        fn a_loop_that_is_taken_up_from_its_events_goes_on_as_if_nothing_had_happened(
            outcomes in proptest::collection::vec(0..12_u8, 1..40),
        ) {
            let mut one = Loop::new("- [ ] A\n- [x] B\n- [ ] C (blocked by: A)\n");
            for kind in outcomes {
                let (outcome, result) = outcome(kind);
                if one.step(outcome, result).contains("RUN_WAITING") {
                    break;
                }
                let mut again = PlanState::default();
                for payload in &one.told {
                    again.apply(payload);
                }
                proptest::prop_assert_eq!(&again, &one.state);
            }
        }
    }
}
