//! The sequence of steps, driven by hand.

use camino::Utf8Path;
use repertoire_journal::run::RunUsage;
use serde_json::{Value, json};

use super::*;
use crate::plan_sync;

const PLAN: &str = "# Plan\n\n- [ ] Write the parser\n- [ ] Write the printer\n";

/// A run driven by hand: the test gives the outcomes of steps, and the next ones are computed.
struct Loop {
    request: PlanRequest,
    state: PlanState,
    text: String,
    steps: u32,
    /// All events that the journal would contain.
    told: Vec<Payload>,
}

impl Loop {
    fn new(text: &str) -> Self {
        let request = PlanRequest { plan: "PLAN.md".into(), ..PlanRequest::default() };
        let (state, told) = (PlanState::default(), Vec::new());
        let mut one = Loop { request, state, text: text.to_owned(), steps: 0, told };
        one.tell(plan_sync::first_read(text, Utf8Path::new("PLAN.md")));
        one
    }

    fn tell(&mut self, payload: Payload) {
        self.state.apply(&payload);
        self.told.push(payload);
    }

    fn next(&self) -> PlanDecision {
        let text = plan_sync::with_marks(&self.text, Utf8Path::new("PLAN.md"), &self.state);
        decide_next(
            &self.state,
            &document::parse_plan(&text, Utf8Path::new("PLAN.md")),
            &self.request,
        )
    }

    /// Performs the next step with this outcome. Returns its name and the events that followed.
    fn step(&mut self, outcome: StepOutcome, result: Value) -> String {
        self.take(outcome, None, result)
    }

    fn fail(&mut self, reason: &str, result: Value) -> String {
        self.take(StepOutcome::Failed, Some(reason.to_owned()), result)
    }

    fn take(&mut self, outcome: StepOutcome, reason: Option<String>, result: Value) -> String {
        let (kind, task, after) = match self.next() {
            PlanDecision::Implement { task } => (PlanStepKind::Implementation, task, None),
            PlanDecision::Verify { task, after } => (PlanStepKind::Verification, task, Some(after)),
            PlanDecision::Recover { task, after } => (PlanStepKind::Recovery, task, Some(after)),
            PlanDecision::Review { task } => (PlanStepKind::Review, task, None),
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
        let spent = RunUsage::default();
        self.tell(Payload::StepFinished { step, outcome, reason, head, spent, result });
        let concluded = conclude_step(&self.state, &self.request);
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
        matches!(one.next(), PlanDecision::Wait { reason } if reason.contains("\"Write the parser\" is failed"))
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
    assert_eq!(one.step(StepOutcome::Failed, none), "review A WATCHDOG_SIGNAL WATCHDOG_REWRITE");
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
        PlanDecision::Fail { reason: "max_consecutive_failures:verification:3".into() }
    );
}

#[test]
fn a_step_that_was_stopped_or_cut_short_is_done_again_and_counts_for_nothing() {
    let mut one = Loop::new("- [ ] A\n");
    assert_eq!(one.step(StepOutcome::Stopped, Value::Null), "implementation A");
    assert_eq!((one.state.iterations, one.state.tasks.values().next().unwrap().attempts), (0, 0));
    assert_eq!(one.ok(), "implementation A");
    assert_eq!(one.step(StepOutcome::Stopped, Value::Null), "verification A");
    assert_eq!(one.ok(), "verification A [implemented]");
}

#[test]
fn a_step_that_kills_its_worker_again_and_again_waits_for_a_person() {
    let mut one = Loop::new("- [ ] A\n");
    for step in 1..=INTERRUPTIONS_MAX {
        let PlanDecision::Implement { task } = one.next() else { panic!("{:?}", one.next()) };
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
    assert!(matches!(one.next(), PlanDecision::Wait { .. }));
}

#[test]
fn final_checks_that_kill_their_worker_again_and_again_wait_for_a_person() {
    let mut one = Loop::new("- [R] A\n");
    for step in 1..=INTERRUPTIONS_MAX {
        assert!(matches!(one.next(), PlanDecision::Verify { task: None, .. }), "{:?}", one.next());
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
    assert!(matches!(one.next(), PlanDecision::Wait { .. }), "{:?}", one.next());
    one.state.apply(&Payload::RunResumed { by: "me".into(), limits: None });
    assert!(matches!(one.next(), PlanDecision::Verify { .. }));
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
        matches!(one.next(), PlanDecision::Wait { reason } if reason.contains("\"Write the printer\" is open, but no longer in the plan"))
    );
}

#[test]
fn work_on_a_task_that_its_agent_calls_blocked_does_not_make_it_done() {
    let mut one = Loop::new("- [ ] A\n");
    let PlanDecision::Implement { task: Some(task) } = one.next() else { panic!() };
    one.ok();
    let (mark, reason) = ("blocked".to_owned(), "no key".to_owned());
    one.state.apply(&Payload::TaskMarked { task, mark, reason });
    assert!(
        matches!(one.next(), PlanDecision::Wait { reason } if reason.contains("\"A\" is blocked"))
    );
    one.state.apply(&Payload::RunResumed { by: "me".into(), limits: None });
    assert!(matches!(one.next(), PlanDecision::Wait { .. }));
    one.state.apply(&Payload::RunRetried { by: "me".into(), tasks: Vec::new() });
    assert_eq!(one.ok(), "implementation A");
}

#[test]
fn what_its_author_holds_back_is_tried_only_if_it_is_named() {
    let mut one = Loop::new("- [R] A\n- [~] B\n");
    one.state.apply(&Payload::RunRetried { by: "me".into(), tasks: Vec::new() });
    assert!(matches!(one.next(), PlanDecision::Wait { .. }));
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
    assert_eq!(one.next(), PlanDecision::Fail { reason: "iteration_limit_reached:2".into() });
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
        matches!(one.next(), PlanDecision::Pause { reason } if reason.contains("Write the parser"))
    );
    // Resuming allows one more.
    one.state.apply(&Payload::RunResumed { by: "me".into(), limits: None });
    for _ in 0..4 {
        one.ok();
    }
    assert!(
        matches!(one.next(), PlanDecision::Pause { reason } if reason.contains("Write the printer"))
    );
}

#[test]
fn a_plan_without_tasks_is_worked_on_once_and_then_somebody_has_to_look() {
    let mut one = Loop::new("Just do it.\n");
    assert_eq!(one.next(), PlanDecision::Implement { task: None });
    one.ok();
    one.ok();
    one.ok();
    one.ok();
    assert!(
        matches!(one.next(), PlanDecision::Wait { reason } if reason.contains("cannot be told"))
    );
    one.state.apply(&Payload::RunResumed { by: "me".into(), limits: None });
    assert_eq!(one.next(), PlanDecision::Implement { task: None });
}

#[test]
fn blocked_tasks_keep_a_run_from_being_complete() {
    let one = Loop::new("- [R] A\n- [~] B\n");
    assert!(
        matches!(one.next(), PlanDecision::Wait { reason } if reason.contains("\"B\" is blocked"))
    );
}

/// The possible outcomes of a step.
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
            if !matches!(next, PlanDecision::Implement { .. } | PlanDecision::Verify { .. } | PlanDecision::Review { .. }) {
                break next;
            }
            // When the list of outcomes is used up, everything succeeds, and the run still has to
            // end.
            let (outcome, result) = outcome(outcomes.next().unwrap_or(11));
            last_was_green = outcome == StepOutcome::Ok
                && matches!(next, PlanDecision::Verify { after: VerifiedAfter::Everything, .. });
            let said = one.step(outcome, result);
            if said.contains("RUN_WAITING") {
                break PlanDecision::Wait { reason: said };
            }
            proptest::prop_assert!(one.steps < 400, "it goes on and on: {next:?}");
        };
        if end == PlanDecision::Complete {
            let done = |mark: TaskMark| match mark {
                TaskMark::Reviewed | TaskMark::ManualQa => true,
                TaskMark::Implemented => !review,
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

#[test]
fn red_checks_are_mended_once_before_an_agent_is_asked_again() {
    let mut one = Loop::new(PLAN);
    one.request.improve = Some(crate::RecoverySettings::default());
    let changed = json!({ "changed": true });
    one.step(StepOutcome::Ok, changed.clone());
    // A task with failed checks is not reopened before recovery was tried.
    assert_eq!(one.fail("red", json!({ "notes": "E0308" })), "verification Write the parser");
    assert_eq!(one.step(StepOutcome::Ok, json!({})), "recovery Write the parser");
    assert_eq!(one.fail("red", json!({})), "verification Write the parser [open]");
    assert_eq!(one.step(StepOutcome::Ok, changed), "implementation Write the parser");
    assert_eq!(one.fail("red", json!({})), "verification Write the parser");
    assert_eq!(one.step(StepOutcome::SentBack, json!({})), "recovery Write the parser [open]");
    assert!(matches!(one.next(), PlanDecision::Implement { .. }), "{:?}", one.next());
}

#[test]
fn what_mended_the_checks_is_itself_checked() {
    let mut one = Loop::new(PLAN);
    one.request.improve = Some(crate::RecoverySettings::default());
    one.step(StepOutcome::Ok, json!({ "changed": true }));
    one.fail("red", json!({}));
    one.step(StepOutcome::Ok, json!({}));
    let verified = one.step(StepOutcome::Ok, json!({ "green": true }));
    assert_eq!(verified, "verification Write the parser [implemented]");
    assert!(matches!(one.next(), PlanDecision::Review { .. }), "{:?}", one.next());
}

#[test]
fn a_recovery_that_was_put_off_or_cut_short_is_tried_again_but_not_for_ever() {
    let mut one = Loop::new(PLAN);
    one.request.improve = Some(crate::RecoverySettings::default());
    one.step(StepOutcome::Ok, json!({ "changed": true }));
    for _ in 0..crate::limits::RECOVER_CUT_SHORT_MAX {
        assert_eq!(one.fail("red", json!({})), "verification Write the parser");
        assert_eq!(one.step(StepOutcome::Stopped, json!({})), "recovery Write the parser");
    }
    assert_eq!(one.fail("red", json!({})), "verification Write the parser [open]");
    assert!(matches!(one.next(), PlanDecision::Implement { .. }), "{:?}", one.next());
}
