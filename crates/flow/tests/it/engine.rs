//! What the engine does with reports: counting, bounds, values, confidence, cases and errors.

use repertoire_flow::engine::{EngineInput, PersonChoice, StepReport, start};
use repertoire_flow::state::{WorkflowRunId, WorkflowRunStatus};
use repertoire_flow::step::{StepAddressing, build_view};
use repertoire_flow::workflow::ConfidenceLevel;
use repertoire_flow::{CheckedWorkflow, check::ThawError};
use serde_json::json;

use crate::support::{Run, about, checked, error, facts, map, output, report, sets, sure};

const LINE: &str = "
steps:
  - { id: one, title: One, actions: [Do one], next: two }
  - { id: two, title: Two, actions: [Do two], next: end }
";

const LOOP: &str = "
steps:
  - { id: work, title: Work, actions: [Work], next: look }
  - id: look
    title: Look
    actions: [Look]
    loop: { max: 3 }
    next: { ok: end, again: work }
";

#[test]
fn a_step_that_is_reported_twice_counts_once() {
    let mut run = Run::of(LINE);
    let first = about(1, EngineInput::leave_step());
    run.says(&first);
    let after = run.state.clone();
    run.says(&first);
    assert_eq!(run.state, after);
    assert_eq!((run.at().as_str(), run.state.turn), ("two", 2));
}

#[test]
fn the_last_report_twice_is_as_good_as_once() {
    let mut run = Run::of(LINE);
    run.done().says(&about(2, EngineInput::leave_step()));
    assert_eq!(run.at(), "done");
    let after = run.state.clone();
    run.says(&about(2, EngineInput::leave_step()));
    assert_eq!(run.state, after);
}

#[test]
fn a_report_that_made_the_run_wait_can_be_repeated() {
    let mut run = Run::of(LOOP);
    for _ in 0..2 {
        run.done().leaves("again");
    }
    run.done().says(&about(6, EngineInput::leave_with("again")));
    let waiting = run.at();
    assert_eq!(waiting, "look: step `look` was gone through as often as it may");
    run.says(&about(6, EngineInput::leave_with("again")));
    assert_eq!(run.at(), waiting);
    assert_eq!(
        run.refuses(&about(6, EngineInput::leave_with("ok"))),
        "the run waits for a person: step `look` was gone through as often as it may"
    );
}

#[test]
fn a_report_about_another_turn_is_refused() {
    let mut run = Run::of(LOOP);
    run.says(&about(1, EngineInput::leave_step()));
    let late = about(1, output("something else"));
    assert_eq!(
        run.refuses(&late),
        "turn 1 is over, and was ended by another report; the run is at turn 2, step `look`"
    );
    assert_eq!(
        run.refuses(&about(9, EngineInput::leave_step())),
        "there was no turn 9 yet; the run is at turn 2, step `look`"
    );
}

#[test]
fn a_run_that_is_over_takes_no_reports() {
    let mut run = Run::of(LINE);
    run.done().done();
    assert_eq!(run.refuses(&EngineInput::leave_step()), "the run is over (it is complete)");
    let mut run = Run::of(LINE);
    run.chooses(PersonChoice::Abort);
    assert_eq!(run.refuses(&EngineInput::leave_step()), "the run is over (a person has ended it)");
    run.chooses(PersonChoice::Abort);
    assert_eq!((run.at().as_str(), run.state.decisions.len()), ("aborted", 1));
}

#[test]
fn an_outcome_has_to_be_one_that_the_step_has() {
    let mut run = Run::of(LOOP);
    run.done();
    assert_eq!(run.refuses(&EngineInput::leave_step()), "say how step `look` ended: ok, again");
    assert_eq!(
        run.refuses(&EngineInput::leave_with("fail")),
        "step `look` cannot end with `fail`; possible: ok, again"
    );
}

#[test]
fn what_default_takes_is_a_word_and_no_forgery() {
    let mut run = Run::of(
        "
steps:
  - { id: one, title: One, actions: [Do], next: { ok: end, default: two } }
  - { id: two, title: Two, actions: [Do], next: end }
",
    );
    for word in ["default", "two words", "a\n</step>", "", "A"] {
        assert!(run.refuses(&EngineInput::leave_with(word)).contains("cannot end with"), "{word}");
    }
    run.leaves("something-else");
    assert_eq!(run.at(), "two");
}

#[test]
fn a_loop_without_a_way_out_stops_for_a_person_who_may_allow_once_more() {
    let mut run = Run::of(LOOP);
    for _ in 0..2 {
        run.done().leaves("again");
    }
    run.done().leaves("again").chooses(PersonChoice::Continue).done().leaves("again");
    assert_eq!(run.at(), "look: step `look` was gone through as often as it may");
    assert_eq!(
        run.refuses(&crate::support::choose(PersonChoice::Skip)),
        "`skip` is no choice here; possible: continue, take:ok, abort"
    );
    run.chooses(PersonChoice::Take("ok".into()));
    assert_eq!(run.at(), "done");
    let choices: Vec<&str> = run.state.decisions.iter().map(|made| made.choice.as_str()).collect();
    assert_eq!(choices, ["continue", "take:ok"]);
}

#[test]
fn a_loop_with_a_way_out_takes_it_at_its_bound() {
    let yaml = LOOP.replace("{ max: 3 }", "{ max: 3, at_limit: ok }");
    let mut run = Run::of(&yaml);
    for _ in 0..2 {
        run.done().leaves("again");
    }
    run.done().leaves("again");
    assert_eq!(run.at(), "done");
    assert!(run.way().ends_with("look-ok!"), "{}", run.way());
}

#[test]
fn the_way_out_is_free_before_the_bound() {
    let mut run = Run::of(LOOP);
    run.done().leaves("ok");
    assert_eq!((run.at().as_str(), run.way().as_str()), ("done", "work-ok look-ok"));
}

const VALUES: &str = "
parameters:
  task: { required: true, description: What to do }
  mode: { choices: [quick, full] }
  waves: { type: work }
  depth: { type: integer, default: 2, max: 5 }
steps:
  - { id: plan, title: Plan, actions: ['{{ task }}'], sets: [mode, waves], output: The plan, next: build }
  - { id: build, title: Build, actions: ['{{ state.outputs.plan }} {{ mode }}'], sets: [depth], next: end }
";

#[test]
fn parameters_are_checked_at_the_start() {
    let flow = checked(VALUES);
    let refused = |given: &[(&str, &str)]| {
        start(&flow, WorkflowRunId::new("r"), &map(given)).expect_err("this is refused").to_string()
    };
    assert_eq!(refused(&[]), "parameter `task` is needed: What to do");
    assert_eq!(
        refused(&[("task", "x"), ("taks", "x")]),
        "there is no parameter `taks`; there are `task`, `mode`, `waves`, `depth`"
    );
    assert_eq!(
        refused(&[("task", "x"), ("mode", "slow")]),
        "parameter `mode`: it has to be one of quick, full"
    );
    assert_eq!(
        refused(&[("task", "x"), ("depth", "6")]),
        "parameter `depth`: it has to be at most 5"
    );
}

#[test]
fn a_step_hands_over_what_it_sets_and_its_output() {
    let mut run = Run::with(VALUES, &[("task", "it")]);
    let full = |mode: &str, text: Option<&str>| {
        report(StepReport {
            set: map(&[("mode", mode), ("waves", r#"[{"id":"a"}]"#)]),
            output: text.map(str::to_owned),
            ..StepReport::default()
        })
    };
    assert_eq!(
        run.refuses(&sets(&[("mode", "quick")])),
        "step `plan` sets `waves`; report `--set waves=…`"
    );
    assert_eq!(run.refuses(&sets(&[("depth", "1")])), "step `plan` does not set `depth`");
    assert_eq!(
        run.refuses(&full("slow", Some("p"))),
        "parameter `mode`: it has to be one of quick, full"
    );
    assert_eq!(run.refuses(&full("quick", None)), "step `plan` hands over an output: The plan");
    assert_eq!(
        run.refuses(&full("quick", Some("  "))),
        "step `plan` hands over an output: The plan"
    );
    let long = "x".repeat(65 * 1024);
    assert!(run.refuses(&full("quick", Some(&long))).contains("hand over a path instead"));
    assert!(!run.state.parameters.contains_key("mode"));
    run.says(&full("quick", Some("the plan")));
    assert_eq!(run.state.parameters["mode"], json!("quick"));
    let seen = build_view(&run.flow, &run.state, &StepAddressing::Run).expect("it can be shown");
    assert!(format!("{:?}", seen.actions).contains("the plan quick"));
    // What a default says need not be said again.
    run.done();
    assert_eq!(run.at(), "done");
}

#[test]
fn work_that_shares_a_file_is_refused() {
    let run = Run::with(VALUES, &[("task", "it")]);
    let work = r#"[{"id":"a","files":["src/x.rs"]},{"id":"b","files":["src/../src//x.rs"]}]"#;
    assert_eq!(
        run.refuses(&sets(&[("mode", "quick"), ("waves", work)])),
        "parameter `waves`: `a` and `b` of wave 1 both change `src/x.rs`; put one of them into a later wave"
    );
    let folder = r#"[{"id":"a","files":["src/"]},{"id":"b","files":["./src/x.rs"]}]"#;
    assert!(run.refuses(&sets(&[("mode", "quick"), ("waves", folder)])).contains("both change"));
}

const SURE: &str = "
steps:
  - id: look
    title: Look
    actions: [Look]
    decide: { confidence: { until: high, max: 3 } }
    next: { ok: tell, iterate: look }
  - { id: tell, title: Tell, actions: [Tell], next: end }
";

#[test]
fn a_step_is_gone_through_again_until_the_agent_is_sure() {
    let mut run = Run::of(SURE);
    assert_eq!(
        run.refuses(&EngineInput::leave_step()),
        "say how sure you are: exploring, low, medium, high or certain"
    );
    run.says(&sure(ConfidenceLevel::Low));
    assert_eq!((run.at().as_str(), run.state.visit_count()), ("look", 2));
    run.says(&sure(ConfidenceLevel::Certain));
    assert_eq!(run.at(), "tell");
    assert_eq!(
        run.refuses(&sure(ConfidenceLevel::High)),
        "step `tell` does not ask how sure you are"
    );
}

#[test]
fn a_claim_about_a_computed_outcome_has_to_be_right() {
    let run = Run::of(SURE);
    let claim = report(StepReport {
        outcome: Some("ok".into()),
        confidence: Some(ConfidenceLevel::Low),
        ..StepReport::default()
    });
    assert_eq!(
        run.refuses(&claim),
        "the outcome of step `look` is computed, and is `iterate`, not `ok`"
    );
}

#[test]
fn at_its_bound_a_confidence_step_goes_on_and_says_so() {
    let mut run = Run::of(SURE);
    for _ in 0..3 {
        run.says(&sure(ConfidenceLevel::Exploring));
    }
    assert_eq!(run.at(), "tell");
    assert_eq!(run.way(), "look-iterate look-iterate look-ok!");
}

const FACTS: &str = "
steps:
  - id: look
    title: Look
    actions: [Look]
    decide:
      confidence:
        until: high
        max: 5
        questions:
          evidence: { ask: Is there evidence? }
          framing: { ask: Is it the right question?, partial: false }
        levels: { high: 2, medium: 1.5, low: 1 }
    next: { ok: end, iterate: look }
";

#[test]
fn confidence_is_computed_from_facts() {
    let mut run = Run::of(FACTS);
    assert_eq!(
        run.refuses(&facts(&[("evidence", "yes")])),
        "answer `framing` with yes, partial or no"
    );
    assert_eq!(
        run.refuses(&facts(&[("evidence", "yes"), ("framing", "partial")])),
        "`partial` is no answer to `framing`; possible: yes, no"
    );
    assert_eq!(
        run.refuses(&facts(&[("evidence", "yes"), ("framing", "yes"), ("luck", "yes")])),
        "step `look` does not ask for fact `luck`"
    );
    assert_eq!(
        run.refuses(&sure(ConfidenceLevel::Certain)),
        "step `look` does not ask how sure you are"
    );
    run.says(&facts(&[("evidence", "Partial"), ("framing", "yes")]));
    assert_eq!(run.way(), "look-iterate");
    run.says(&facts(&[("evidence", "yes"), ("framing", "yes")]));
    assert_eq!(run.at(), "done");
}

const CASES: &str = "
parameters:
  mode: { choices: [quick, full, odd], default: full }
steps:
  - id: plan
    title: Plan
    actions: [Plan]
    sets: [mode]
    decide:
      cases: { when: [ { if: 'mode == \"quick\"', outcome: skip }, { if: 'mode in [\"odd\"]', outcome: odd } ] }
    next: { ok: design, skip: tell, odd: end }
  - { id: design, title: Design, actions: [Design], next: tell }
  - { id: tell, title: Tell, actions: [Tell], next: end }
";

#[test]
fn cases_are_decided_by_what_was_just_set() {
    for (mode, at) in [("quick", "tell"), ("full", "design"), ("odd", "done")] {
        let mut run = Run::of(CASES);
        run.says(&sets(&[("mode", mode)]));
        assert_eq!(run.at(), at, "{mode}");
    }
    let run = Run::of(CASES);
    assert_eq!(
        run.refuses(&EngineInput::leave_with("skip")),
        "the outcome of step `plan` is computed, and is `ok`, not `skip`"
    );
}

const MENDED: &str = "
steps:
  - { id: work, title: Work, actions: [Work], loop: { max: 2 }, on_error: mend, next: end }
  - id: mend
    title: Mend
    actions: ['{% if state.error is defined %}Why: {{ state.error }}{% endif %}']
    next: work
";

#[test]
fn an_error_leads_to_the_step_that_mends_it_which_is_told_why() {
    let mut run = Run::of(MENDED);
    run.says(&about(1, error("no network")));
    assert_eq!((run.at().as_str(), run.way().as_str()), ("mend", "work-error"));
    let seen = build_view(&run.flow, &run.state, &StepAddressing::Run).expect("it can be shown");
    assert!(format!("{:?}", seen.actions).contains("Why: no network"));
    let after = run.state.clone();
    run.says(&about(1, error("no network")));
    assert_eq!(run.state, after);
    // Errors use up the bound too.
    run.done().says(&error("no network"));
    assert_eq!(run.at(), "work: step `work` was gone through as often as it may");
    run.chooses(PersonChoice::Continue);
    assert_eq!(run.at(), "mend");
}

#[test]
fn an_error_without_a_way_stops_for_a_person() {
    let mut run = Run::of(LINE);
    run.says(&error("no disk"));
    assert_eq!(run.at(), "one: the step could not be carried out: no disk");
    run.says(&error("no disk"));
    assert!(run.refuses(&error("another")).starts_with("the run waits for a person"));
    run.chooses(PersonChoice::Continue);
    assert_eq!((run.at().as_str(), run.state.visit_count(), run.state.turn), ("one", 2, 2));
    assert!(run.refuses(&error(&"x".repeat(20_000))).contains("is the limit"));
}

#[test]
fn trying_again_after_an_error_uses_up_no_bound() {
    let mut run = Run::of(LOOP);
    run.done();
    for _ in 0..4 {
        run.says(&error("no disk")).chooses(PersonChoice::Continue);
    }
    let mut other = Run::of(LOOP);
    other.done();
    for _ in 0..10 {
        for run in [&mut run, &mut other]
            .into_iter()
            .filter(|run| run.state.status == WorkflowRunStatus::Active)
        {
            run.says(&if run.state.step.as_str() == "look" {
                EngineInput::leave_with("again")
            } else {
                EngineInput::leave_step()
            });
        }
    }
    assert_eq!(run.at(), other.at());
    assert_eq!(run.state.visits["look"], other.state.visits["look"] + 4);
}

#[test]
fn a_run_goes_on_with_the_workflow_that_it_was_started_with() {
    let run = Run::of(LINE);
    let other = checked(LOOP);
    let refused =
        repertoire_flow::engine::advance_run(&other, &run.state, &EngineInput::leave_step());
    assert_eq!(
        refused.expect_err("another workflow").to_string(),
        "this is not the workflow that the run was started with"
    );
    let frozen = run.flow.freeze();
    let thawed = CheckedWorkflow::thaw(&frozen, run.flow.fingerprint()).expect("it is the same");
    assert_eq!(thawed.workflow(), run.flow.workflow());
    assert_eq!(thawed.freeze(), frozen);
    let next =
        repertoire_flow::engine::advance_run(&thawed, &run.state, &EngineInput::leave_step());
    assert_eq!(next.expect("it goes on").status, WorkflowRunStatus::Active);
    let changed = String::from_utf8_lossy(&frozen).replace("Do one", "Do none");
    assert_eq!(
        CheckedWorkflow::thaw(changed.as_bytes(), run.flow.fingerprint()).err(),
        Some(ThawError::Changed)
    );
    let garbage = b"{}";
    let digest = repertoire_flow::state::WorkflowFingerprint::from_bytes(garbage);
    assert!(matches!(CheckedWorkflow::thaw(garbage, &digest), Err(ThawError::OtherVersion(_))));
}

/// What runs keep is read for as long as there are runs: a field that is renamed needs its old name too.
#[test]
fn a_workflow_that_was_frozen_earlier_is_still_read() {
    let frozen = include_str!("frozen-1.json").trim_end();
    let digest = repertoire_flow::state::WorkflowFingerprint::from_bytes(frozen.as_bytes());
    let thawed = CheckedWorkflow::thaw(frozen.as_bytes(), &digest).expect("it can be read");
    let state = repertoire_flow::engine::start(&thawed, WorkflowRunId::new("r"), &map(&[]));
    assert_eq!(state.expect("it starts").step.as_str(), "scope");
    let newer = frozen.replacen("\"format\":1", "\"format\":2", 1);
    let digest = repertoire_flow::state::WorkflowFingerprint::from_bytes(newer.as_bytes());
    assert_eq!(
        CheckedWorkflow::thaw(newer.as_bytes(), &digest).err(),
        Some(ThawError::OtherVersion("format 2, and 1 is known here".to_owned()))
    );
}
