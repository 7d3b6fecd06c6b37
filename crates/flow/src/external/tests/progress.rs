//! Runs of scripts that forget, loop and contradict themselves.

use super::files;
use crate::external::{
    ProgressError, ScriptProgress, ScriptStatus, StepNumbering, StepScript, advance_script,
    apply_shown_step as external_shown, build_command, detect_script, parse_output, resume_script,
};

fn planner() -> StepScript {
    detect_script(
        "x",
        "python3 planner.py --step 1 --total-steps 6",
        &files(&["scripts/planner.py"]),
    )
    .unwrap()
}

/// A script like the original: 2 works, 3 reviews, 4 is the gate. It loses its counter between them.
fn printed(call: &[String]) -> String {
    let has = |word: &str| call.iter().any(|given| given == word);
    let after =
        |word: &str| call.iter().position(|given| given == word).map(|at| call[at + 1].as_str());
    let step = after("--step").unwrap();
    let to =
        |step: usize, rest: &str| format!("python3 planner.py --step {step} --total-steps 6{rest}");
    let next = match step {
        "1" => to(2, ""),
        "2" => to(3, ""),
        "3" => format!(
            "<if_pass>{}</if_pass><if_fail>{}</if_fail>",
            to(4, " --qr-status pass"),
            to(4, " --qr-status fail")
        ),
        "4" if has("pass") => to(5, ""),
        // The original script always believed to be in the first iteration.
        "4" => to(2, " --qr-fail --qr-iteration 2"),
        "5" => to(6, ""),
        _ => {
            return format!(
                "<step_header script=\"planner\" step=\"{step}\" total=\"6\">T</step_header>\n<current_action>A</current_action>"
            );
        }
    };
    let gate = match (step, after("--qr-status")) {
        ("4", Some(status)) => format!("<gate_result status=\"{status}\">GATE</gate_result>"),
        _ => String::new(),
    };
    format!(
        "<step_header script=\"planner\" step=\"{step}\" total=\"6\">T</step_header>{gate}\n\
         <current_action>A</current_action>\n<invoke_after>{next}</invoke_after>"
    )
}

/// Runs until the run stops, with a reviewer that passes in this iteration. Returns the calls that were made.
fn run(passes_in: u32) -> (ScriptProgress, Vec<String>) {
    let script = planner();
    let mut progress = ScriptProgress::start_run(&script);
    let mut calls = Vec::new();
    while progress.standing == ScriptStatus::Active {
        assert!(calls.len() < 100, "it does not end: {calls:?}");
        let call = build_command(&script, &progress.call);
        calls.push(call[2..].join(" "));
        let view = parse_output(&printed(&call), StepNumbering::FromOne).unwrap();
        let outcome = match progress.call.step {
            3 if progress.iteration() >= passes_in => Some("ok"),
            3 => Some("fail"),
            _ => None,
        };
        progress = advance_script(&progress, &view, outcome).unwrap();
    }
    (progress, calls)
}

#[test]
fn the_counter_that_a_script_forgets_is_kept() {
    let (progress, calls) = run(3);
    assert_eq!(progress.standing, ScriptStatus::Done);
    assert_eq!(
        calls[3..],
        [
            "--step 4 --total-steps 6 --qr-status fail",
            "--step 2 --total-steps 6 --qr-iteration 2 --qr-fail",
            "--step 3 --total-steps 6 --qr-iteration 2",
            "--step 4 --total-steps 6 --qr-iteration 2 --qr-status fail",
            "--step 2 --total-steps 6 --qr-iteration 3 --qr-fail",
            "--step 3 --total-steps 6 --qr-iteration 3",
            "--step 4 --total-steps 6 --qr-iteration 3 --qr-status pass",
            "--step 5 --total-steps 6",
            "--step 6 --total-steps 6",
        ]
    );
}

#[test]
fn a_loop_without_end_stops_for_a_person_who_may_allow_one_more() {
    let (progress, calls) = run(99);
    let ScriptStatus::Stopped { step, iterations, .. } = &progress.standing else {
        panic!("{progress:?}")
    };
    assert_eq!((*step, *iterations), (4, 5));
    assert_eq!(calls.len(), 1 + 5 * 3);
    let more = resume_script(&progress).unwrap();
    assert_eq!(
        (more.call.step, more.iteration(), more.standing.clone()),
        (2, 6, ScriptStatus::Active)
    );
    assert!(more.call.flags.fail && more.call.flags.iteration == 6);
    assert_eq!(resume_script(&more), None);
}

#[test]
fn a_counter_of_the_script_itself_is_ours_and_unknown_options_are_not_added() {
    let script = planner();
    let mut progress = ScriptProgress::start_run(&script);
    let again = "STEP 1/6: Look\nDO:\n  Look.\n\nINVOKE AFTER:\n  python3 planner.py --step 1 --total-steps 6 --confidence <yours> --iteration 1";
    let view = parse_output(again, StepNumbering::FromOne).unwrap();
    for _ in 0..2 {
        progress = advance_script(&progress, &view, None).unwrap();
    }
    assert_eq!(
        build_command(&script, &progress.call)[2..].join(" "),
        "--step 1 --total-steps 6 --confidence <yours> --iteration 3"
    );
}

#[test]
fn a_command_of_another_script_ends_this_one() {
    let view = parse_output(
        "STEP 1/6: T\nDO:\n  A\n\nNEXT:\n  python3 -m skills.planner.executor --step 1 --total-steps 9",
        StepNumbering::FromOne,
    );
    let after =
        advance_script(&ScriptProgress::start_run(&planner()), &view.unwrap(), None).unwrap();
    assert_eq!(after.standing, ScriptStatus::Done);
}

#[test]
fn a_run_is_kept_between_processes() {
    let (progress, _) = run(99);
    let kept = serde_json::to_string(&progress).unwrap();
    assert_eq!(serde_json::from_str::<ScriptProgress>(&kept).unwrap(), progress);
}

#[track_caller]
fn check_unrouted(progress: &ScriptProgress, expect: &str) {
    let ScriptStatus::Unrouted { about, wanted } = &progress.standing else {
        panic!("{progress:?}")
    };
    assert_eq!(about, expect);
    assert_eq!(wanted.as_ref().map(|call| call.step), Some(progress.call.step + 1));
}

#[test]
fn a_failed_gate_whose_script_leads_on_stops_for_a_person() {
    let start = ScriptProgress::start_run(&planner());
    let outputs = [
        // Older scripts print no `<DO>`.
        "<step_header script=\"planner\" step=\"1\" total=\"6\">Gate</step_header>\n\
         <gate_result status=\"fail\">GATE FAILED</gate_result>\n\
         <INVOKE_AFTER>\npython3 planner.py --step 2 --total-steps 6\n</INVOKE_AFTER>",
        "STEP 1/6: Gate\n<gate_result status=\"fail\">GATE FAILED</gate_result>\nDO:\n  A\nNEXT: Step 2",
        "<step_header script=\"planner\" step=\"1\" total=\"6\">Gate</step_header>\n\
         <gate_result status=\"FAIL\">x</gate_result><current_action>A</current_action>",
        "<step_header script=\"planner\" step=\"1\" total=\"6\">Gate</step_header>\n\
         <gate_result status=\"pass\">x</gate_result><gate_result status=\"fail\">y</gate_result>\n\
         <current_action>A</current_action><invoke_after>python3 planner.py --step 2 --total-steps 6</invoke_after>",
        "<step_header script=\"planner\" step=\"1\" total=\"6\">Gate</step_header>\n\
         <gate_result status=\"maybe\">x</gate_result>\n\
         <current_action>A</current_action><invoke_after>python3 planner.py --step 2 --total-steps 6</invoke_after>",
        "<step_header script=\"planner\" step=\"1\" total=\"6\">Gate</step_header>\n\
         <gate_result>x</gate_result>\n\
         <current_action>A</current_action><invoke_after>python3 planner.py --step 2 --total-steps 6</invoke_after>",
        "<step_header script=\"planner\" step=\"1\" total=\"6\">Gate</step_header>\n\
         <gate_result status=\"fail\">x</gate_result>\n\
         <current_action>A</current_action><invoke_after>python3 other.py --step 3 --total-steps 6</invoke_after>",
    ];
    for output in outputs {
        let view = parse_output(output, StepNumbering::FromOne).unwrap();
        let seen = external_shown(start.clone(), &view);
        assert!(matches!(seen.standing, ScriptStatus::Unrouted { .. }), "{output}\n{seen:?}");
        assert_eq!(advance_script(&seen, &view, None), Err(ProgressError::NotActive), "{output}");
        assert_eq!(resume_script(&seen).unwrap().call.step, 2);
    }
}

#[test]
fn routing_that_is_not_understood_stops_for_a_person() {
    let start = ScriptProgress::start_run(&planner());
    let outputs = [
        "STEP 1/6: T\nDO:\n  A\n",
        "STEP 1/6: T\nDO:\n  A\nNEXT: on",
        "<step_header script=\"planner\" step=\"1\" total=\"6\">T</step_header>\n<current_action>A</current_action>",
        "<step_header script=\"planner\" step=\"1\" total=\"6\">T</step_header>\n<current_action>A</current_action>\n\
         <invoke_after>Tell the user.</invoke_after>",
    ];
    for output in outputs {
        let view = parse_output(output, StepNumbering::FromOne).unwrap();
        let seen = external_shown(start.clone(), &view);
        assert!(matches!(seen.standing, ScriptStatus::Unrouted { .. }), "{output}\n{seen:?}");
    }
}

#[test]
fn a_review_whose_script_knows_only_a_pass_does_not_pass_by_itself() {
    let start = ScriptProgress::start_run(&planner());
    let head = "<step_header script=\"planner\" step=\"1\" total=\"6\">QR</step_header>\n<current_action>A</current_action>";
    let pass = "<if_pass>python3 planner.py --step 2 --total-steps 6</if_pass>";
    for routing in [pass.to_owned(), format!("{pass}<if_fail>Ask somebody.</if_fail>")] {
        let view = parse_output(
            &format!("{head}<invoke_after>{routing}</invoke_after>"),
            StepNumbering::FromOne,
        );
        let view = view.unwrap();
        assert!(matches!(
            advance_script(&start, &view, None),
            Err(ProgressError::OutcomeNeeded { .. })
        ));
        let failed = advance_script(&start, &view, Some("fail")).unwrap();
        assert!(matches!(failed.standing, ScriptStatus::Unrouted { .. }), "{failed:?}");
        assert_eq!(advance_script(&start, &view, Some("ok")).unwrap().call.step, 2);
    }
    let line = "python3 planner.py --step 2 --total-steps 6 --qr-status";
    let two =
        format!("{head}<invoke_after>\npassed: {line} pass\nfailed: {line} fail\n</invoke_after>");
    let view = parse_output(&two, StepNumbering::FromOne).unwrap();
    assert!(matches!(
        advance_script(&start, &view, None),
        Err(ProgressError::OutcomeNeeded { .. })
    ));
    let failed = advance_script(&start, &view, Some("fail")).unwrap();
    assert_eq!(failed.call.flags.status, Some(crate::step::QrStatus::Fail));
}

#[test]
fn what_does_not_fit_is_refused() {
    let start = ScriptProgress::start_run(&planner());
    let shown = |text: &str| parse_output(text, StepNumbering::FromOne).unwrap();
    let line = "python3 planner.py --total-steps 6 --step";
    let other = shown("STEP 3/6: T\nDO:\n  A\nNEXT: Step 4");
    assert_eq!(
        advance_script(&start, &other, None),
        Err(ProgressError::OtherStep { asked: 1, shown: 3 })
    );
    let far = shown(&format!("STEP 1/6: T\nDO:\n  A\nNEXT:\n  {line} 9"));
    check_unrouted(
        &advance_script(&start, &far, None).unwrap(),
        "the script leads to step 9, and has 6",
    );
    let nowhere = shown(&format!("STEP 1/6: T\nDO:\n  A\nNEXT:\n  {line} <n>"));
    let about = format!("the script's next command names no step: {line} <n>");
    check_unrouted(&advance_script(&start, &nowhere, None).unwrap(), &about);
    let negative = shown(&format!("STEP 1/6: T\nDO:\n  A\nNEXT:\n  {line} -1"));
    let about = format!("the script's next command names no step: {line} -1");
    check_unrouted(&advance_script(&start, &negative, None).unwrap(), &about);
    let two = shown(&format!("STEP 1/6: T\nDO:\n  A\nNEXT:\n  a: {line} 2\n  b: {line} 3"));
    let possible = files(&["to-2", "to-3"]);
    assert_eq!(
        advance_script(&start, &two, None),
        Err(ProgressError::OutcomeNeeded { possible: possible.clone() })
    );
    let given = "ok".to_owned();
    assert_eq!(
        advance_script(&start, &two, Some("ok")),
        Err(ProgressError::NoSuchOutcome { given, possible })
    );
    let mut done = start;
    done.standing = ScriptStatus::Done;
    assert_eq!(advance_script(&done, &two, Some("to-2")), Err(ProgressError::NotActive));
}
