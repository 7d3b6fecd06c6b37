mod shipped;

use serde_json::json;

use super::*;
use crate::step::{NextStepOption, ShellCommand};

/// work (1) → refine (2) → review (3) → gate (4) → look (5, until sure) → say (6).
fn workflow() -> CheckedWorkflow {
    let workflow = json!({
        "name": "small",
        "parameters": {
            "task": { "required": true, "description": "What to do." },
            "mode": { "choices": ["quick", "full"] },
        },
        "steps": [
            { "id": "work", "title": "Work", "actions": ["Task: {{ task }}"], "sets": ["mode"],
              "output": "The plan.", "next": "refine" },
            { "id": "refine", "title": "Refine", "actions": ["{{ mode }}: {{ state.outputs.work }}"],
              "next": "review" },
            { "id": "review", "title": "Review", "actions": ["Look."], "next": "gate" },
            { "id": "gate", "title": "Gate",
              "decide": { "gate": { "name": "Plan", "reviews": ["review"], "banner": "Look anew.",
                  "stop": "Nothing is built.", "reverify": "fresh", "fix": { "agent": "developer" } } },
              "next": { "ok": "look", "fail": "work" } },
            { "id": "look", "title": "Look", "actions": ["Look again."],
              "decide": { "confidence": { "until": "high", "max": 3 } },
              "next": { "ok": "say", "iterate": "look" } },
            { "id": "say", "title": "Say", "actions": ["Say it."], "next": "end" },
        ],
    });
    CheckedWorkflow::new(serde_json::from_value(workflow).unwrap()).unwrap()
}

fn shown(flags: StatelessFlags) -> StepView {
    stateless_view(&workflow(), &flags, &BTreeMap::new()).unwrap()
}

fn ways(view: &StepView) -> Vec<NextStepOption> {
    match &view.next {
        NextStep::Ways { ways, .. } => ways.clone(),
        other => panic!("{other:?}"),
    }
}

/// The command line of an outcome, without its beginning.
fn line(view: &StepView, outcome: &str) -> String {
    let ways = ways(view);
    let way = ways.iter().find(|way| way.outcome.as_deref() == Some(outcome));
    let line = &way.unwrap_or_else(|| panic!("no {outcome} in {ways:?}")).command.line;
    line.strip_prefix("rep workflow step small ").unwrap().to_owned()
}

/// Parses a command line like the CLI does.
fn flags_of(command: &ShellCommand) -> StatelessFlags {
    let words = &command.argv;
    let after =
        |flag: &str| words.iter().position(|word| word == flag).map(|at| words[at + 1].as_str());
    StatelessFlags {
        step: after("--step").unwrap().parse().unwrap(),
        total: after("--total-steps").map(|total| total.parse().unwrap()),
        iteration: after("--qr-iteration").map_or(1, |iteration| iteration.parse().unwrap()),
        fail: words.iter().any(|word| word == "--qr-fail"),
        status: after("--qr-status").map(|word| QrStatus::parse(word).unwrap()),
    }
}

#[test]
fn the_counter_goes_all_the_way_round_until_the_limit() {
    let mut flags = StatelessFlags::at_step(1);
    let mut failed = 0;
    for _ in 0..40 {
        let view = shown(flags.clone());
        assert_eq!(view.iteration, failed + 1, "{view:?}");
        let NextStep::Ways { ways, .. } = &view.next else {
            assert_eq!((view.step, failed, view.status.as_str()), (4, 4, "waiting"));
            assert_eq!(view.gate.unwrap().status, "limit");
            return;
        };
        failed += u32::from(view.step == 4);
        // The reviewer always finds something.
        let way = ways.iter().find(|way| way.outcome.as_deref() == Some("fail"));
        flags = flags_of(&way.unwrap_or(&ways[0]).command);
    }
    panic!("it never stopped");
}

#[test]
fn a_step_that_repairs_says_whose_findings_and_keeps_the_count() {
    let view = shown(StatelessFlags { iteration: 3, fail: true, ..StatelessFlags::at_step(1) });
    let findings = view.findings.as_ref().unwrap();
    assert_eq!((findings.name.as_str(), findings.fix.as_str()), ("Plan", "developer"));
    assert_eq!(line(&view, "ok"), "--step 2 --total-steps 6 --qr-iteration 3 --param mode=VALUE");
    assert!(
        crate::render::render_text(&view)
            .contains("the findings are in what the reviewer has answered")
    );
}

#[test]
fn the_step_before_a_gate_has_one_command_for_each_verdict() {
    let view = shown(StatelessFlags { iteration: 2, ..StatelessFlags::at_step(3) });
    assert_eq!(line(&view, "ok"), "--step 4 --total-steps 6 --qr-iteration 2 --qr-status pass");
    assert_eq!(line(&view, "fail"), "--step 4 --total-steps 6 --qr-iteration 2 --qr-status fail");
    let review = view.review.unwrap();
    assert_eq!((review.iteration, review.mode.as_str(), review.record), (2, "fresh", None));
}

#[test]
fn a_gate_believes_and_says_so() {
    let at = |status| StatelessFlags {
        iteration: 2,
        status: Some(status),
        ..StatelessFlags::at_step(4)
    };
    let passed = shown(at(QrStatus::Pass));
    let gate = passed.gate.clone().unwrap();
    assert_eq!(
        (gate.status.as_str(), gate.message.as_str()),
        ("pass", "Claimed, not recorded: passed.")
    );
    assert_eq!(line(&passed, "ok"), "--step 5 --total-steps 6");
    let failed = shown(at(QrStatus::Fail));
    assert_eq!(failed.gate.clone().unwrap().status, "fail");
    assert_eq!(line(&failed, "fail"), "--step 1 --total-steps 6 --qr-iteration 3 --qr-fail");
}

#[test]
fn at_its_limit_a_gate_asks_a_person_and_one_more_time_asks_again() {
    let view = shown(StatelessFlags {
        iteration: 5,
        status: Some(QrStatus::Fail),
        ..StatelessFlags::at_step(4)
    });
    let NextStep::Person { choices, .. } = &view.next else { panic!("{:?}", view.next) };
    let words: Vec<&str> = choices.iter().map(|choice| choice.choice.as_str()).collect();
    assert_eq!(words, ["continue", "must-only", "skip", "abort"]);
    let flags = flags_of(&choices[0].command);
    assert_eq!((flags.step, flags.iteration, flags.fail), (1, 6, true));
    let again = shown(StatelessFlags {
        iteration: 6,
        status: Some(QrStatus::Fail),
        ..StatelessFlags::at_step(4)
    });
    assert!(matches!(again.next, NextStep::Person { .. }));
}

#[test]
fn a_step_until_sure_counts_and_ends() {
    let first = shown(StatelessFlags::at_step(5));
    assert_eq!(line(&first, "iterate"), "--step 5 --total-steps 6 --qr-iteration 2");
    assert_eq!(line(&first, "ok"), "--step 6 --total-steps 6");
    let last = shown(StatelessFlags { iteration: 3, ..StatelessFlags::at_step(5) });
    assert_eq!(ways(&last).len(), 1);
    assert_eq!(line(&last, "ok"), "--step 6 --total-steps 6");
}

#[test]
fn an_edge_for_the_rest_has_its_command_too() {
    let workflow = json!({
        "name": "small",
        "steps": [
            { "id": "ask", "title": "Ask", "actions": ["?"], "next": { "skip": "end", "default": "say" } },
            { "id": "say", "title": "Say", "actions": ["!"], "next": "end" },
        ],
    });
    let workflow = CheckedWorkflow::new(serde_json::from_value(workflow).unwrap()).unwrap();
    let view = stateless_view(&workflow, &StatelessFlags::at_step(1), &BTreeMap::new()).unwrap();
    let ways = ways(&view);
    assert_eq!((ways[0].to, ways[0].command.line.as_str()), (None, ""));
    assert_eq!((ways[1].to, ways[1].when.as_str()), (Some(2), "Anything else"));
    assert!(
        crate::render::render_text(&view).contains("skip · to the end\n    (nothing to run)\n")
    );
}

#[test]
fn the_last_step_completes() {
    let view = shown(StatelessFlags::at_step(6));
    assert!(matches!(view.next, NextStep::Complete { .. }), "{:?}", view.next);
}

#[test]
fn what_is_given_goes_on_and_what_is_not_is_named() {
    let text = |view: &StepView| crate::render::render_text(view);
    let unnamed = text(&shown(StatelessFlags::at_step(1)));
    assert!(unnamed.contains("Task: [task: What to do.]"), "{unnamed}");
    let later = text(&shown(StatelessFlags::at_step(2)));
    assert!(later.contains("[mode]: [what step 1, Work, has given]"), "{later}");
    let given = BTreeMap::from([("task".to_owned(), "it's this".to_owned())]);
    let view = stateless_view(&workflow(), &StatelessFlags::at_step(1), &given).unwrap();
    assert!(text(&view).contains("Task: it's this"));
    assert_eq!(
        line(&view, "ok"),
        r"--step 2 --total-steps 6 --param 'task=it'\''s this' --param mode=VALUE"
    );
}

#[test]
fn a_wrong_command_line_is_told_what_is_right() {
    let check = |flags: StatelessFlags, expect: &str| {
        let error = stateless_view(&workflow(), &flags, &BTreeMap::new()).unwrap_err();
        assert_eq!(error.to_string(), expect);
    };
    check(StatelessFlags::at_step(0), "there is no step 0: steps are numbered from 1 to 6");
    check(StatelessFlags::at_step(7), "there is no step 7: steps are numbered from 1 to 6");
    check(
        StatelessFlags { total: Some(13), ..StatelessFlags::at_step(1) },
        "the workflow has 6 steps, and --total-steps says 13",
    );
    check(
        StatelessFlags { iteration: 0, ..StatelessFlags::at_step(1) },
        "--qr-iteration starts at 1",
    );
    check(
        StatelessFlags::at_step(4),
        "step 4 (Gate) is a gate: say --qr-status pass or --qr-status fail",
    );
    check(
        StatelessFlags { status: Some(QrStatus::Pass), ..StatelessFlags::at_step(1) },
        "step 1 is no gate, so it takes no --qr-status; gates: 4",
    );
    check(
        StatelessFlags { fail: true, ..StatelessFlags::at_step(3) },
        "no gate leads back to step 3, so it takes no --qr-fail; it goes with: 1",
    );
    let given = BTreeMap::from([("mode".to_owned(), "slow".to_owned())]);
    let error = stateless_view(&workflow(), &StatelessFlags::at_step(1), &given).unwrap_err();
    assert_eq!(error.to_string(), "parameter `mode`: it has to be one of quick, full");
    let given = BTreeMap::from([("none".to_owned(), String::new())]);
    let error = stateless_view(&workflow(), &StatelessFlags::at_step(1), &given).unwrap_err();
    assert_eq!(error.to_string(), "the workflow has no parameter `none`");
}
