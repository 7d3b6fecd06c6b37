//! Parses script output in all its forms.

use proptest::prelude::*;

use super::{texts, way_lines};
use crate::external::{ScriptOutputError, StepNumbering, parse_output};
use crate::step::{DispatchView, StepView, ViewBlock};

#[track_caller]
fn read(output: &str) -> StepView {
    parse_output(output, StepNumbering::FromOne).unwrap()
}

const WORK: &str = r#"<step_header script="planner" phase="planning" step="5" total="13">Choose & "justify"</step_header>

<xml_format_mandate>
Read <current_action>, then <invoke_after>.
</xml_format_mandate>

<workflow>
<current_action>
Weigh a < b && c > d; keep Vec<String> as it is.

<forbidden>
  <action>Writing code -- it's too early</action>
  <action>Asking for leave</action>
</forbidden>
<state_banner checkpoint="PLAN" iteration="2" mode="fresh_review">
Look anew.
</state_banner>
<resource name="plan-format" purpose="shape">
# Plan
  - <overview>
</resource>
Then go on.
</current_action>

<invoke_after>
python3 -m skills.planner.planner --step 6 --total-steps 13
</invoke_after>

<next required="true">
Run: python3 -m skills.planner.planner --step 6 --total-steps 13
</next>
</workflow>
"#;

#[test]
fn tags_without_escaping_are_read() {
    let view = read(WORK);
    assert_eq!((view.workflow.as_str(), view.phase.as_deref()), ("planner", Some("planning")));
    assert_eq!((view.step, view.total, view.title.as_str()), (5, 13, r#"Choose & "justify""#));
    assert_eq!(way_lines(&view), ["ok → 6"]);
    assert_eq!(view.iteration, 2);
    assert_eq!(texts(&view), ["Weigh a < b && c > d; keep Vec<String> as it is.", "Then go on."]);
    let ViewBlock::Forbidden(forbidden) = &view.actions[1] else { panic!("{:?}", view.actions) };
    assert_eq!(forbidden, &["Writing code -- it's too early", "Asking for leave"]);
    let ViewBlock::Resource(resource) = &view.actions[3] else { panic!("{:?}", view.actions) };
    assert_eq!(resource.text, "# Plan\n  - <overview>");
}

#[test]
fn a_step_of_a_script_is_rendered_like_any_other() {
    let view = read(WORK);
    let xml = crate::render::render_xml(&view);
    assert_eq!(crate::render::parse_xml(&xml).as_ref(), Ok(&view));
    assert_eq!(read(&xml), view);
}

#[test]
fn a_pair_of_commands_gives_two_outcomes() {
    let view = read(
        "<step_header script=\"x\" step=\"6\" total=\"13\">QR</step_header>\n<current_action>\nReview.\n</current_action>\n\
         <invoke_after>\n<if_pass>python3 x.py --step 7 --total-steps 13 --qr-status pass</if_pass>\n\
         <if_fail>python3 x.py --step 7 --total-steps 13 --qr-status fail</if_fail>\n</invoke_after>\n",
    );
    assert_eq!(way_lines(&view), ["ok → 7", "fail → 7"]);
}

#[test]
fn a_gate_tells_its_verdict() {
    let view = read(
        "<step_header script=\"x\" step=\"7\" total=\"13\">Code Gate</step_header>\n\
         <gate_result status=\"fail\">GATE FAILED (iteration 4 of 5)</gate_result>\n\
         <current_action>\nGo back.\n</current_action>\n\
         <invoke_after>\npython3 x.py --step 5 --total-steps 13 --qr-fail --qr-iteration 5\n</invoke_after>",
    );
    let gate = view.gate.as_ref().unwrap();
    assert_eq!((gate.name.as_str(), gate.status.as_str(), gate.iteration), ("Code", "fail", 4));
    assert_eq!(gate.blocking_severity, "SHOULD");
    assert_eq!(way_lines(&view), ["ok → 5"]);
}

#[test]
fn the_tags_of_the_manual_are_read_too() {
    let view = read(
        "STEP 2/4: Look\n<DO>\nLook at it.\n</DO>\n<NEXT>python3 scripts/a.py --step 3 --total-steps 4</NEXT>",
    );
    assert_eq!((view.title.as_str(), texts(&view)), ("Look", vec!["Look at it."]));
    assert_eq!(way_lines(&view), ["ok → 3"]);
    let view = read(
        "STEP 2/4: Look\n<DO>\nLook.\n</DO>\n<INVOKE_AFTER>\n<invoke working-dir=\"a\" cmd=\"python3 -m a.b --step 3 --total-steps 4\" />\n</INVOKE_AFTER>",
    );
    assert_eq!(way_lines(&view), ["ok → 3"]);
}

#[track_caller]
fn check_text(output: &str, numbering: StepNumbering, expect: (usize, &str, &[&str])) {
    let view = parse_output(output, numbering).unwrap();
    let ways = way_lines(&view);
    let ways: Vec<&str> = ways.iter().map(String::as_str).collect();
    assert_eq!((view.step, view.title.as_str(), ways.as_slice()), expect, "{output}");
}

#[test]
fn plain_text_is_read() {
    use StepNumbering::{FromOne, FromZero};
    let with = |head: &str, tail: &str| {
        format!("{head}\n  In short\n\nDO:\n  Read it.\n    Closely.\n\n{tail}")
    };
    let line = "python3 scripts/a.py --step";
    check_text(
        &with("STEP 1/4: Begin", &format!("INVOKE AFTER:\n  {line} 2 --total-steps 4\n")),
        FromOne,
        (1, "Begin", &["ok → 2"]),
    );
    check_text(
        &with("STEP 1/4: Begin", "NEXT: Step 2 - Go on"),
        FromOne,
        (1, "Begin", &["ok → 2"]),
    );
    check_text(
        &with("STEP 4/4: End", "COMPLETE: Say what was found."),
        FromOne,
        (4, "End", &["complete"]),
    );
    check_text(
        &with("=== Step 3 of 7 - Mid ===", &format!("NEXT:\n{line} 4 --total-steps 7")),
        FromOne,
        (3, "Mid", &["ok → 4"]),
    );
    // Numbers from 0 become numbers from 1, in the header and in the commands.
    check_text(
        &with("DEEPTHINK - STEP 0/14: Begin", &format!("INVOKE AFTER: {line} 1 --total-steps 14")),
        FromOne,
        (1, "Begin", &["ok → 2"]),
    );
    check_text(&with("STEP 13/14: End", "COMPLETE"), FromZero, (14, "End", &["complete"]));
    // Scripts that share a helper print COMPLETE one step early when they count from 1.
    check_text(&with("STEP 1/2: Begin", "COMPLETE"), FromOne, (1, "Begin", &["ok → 2"]));
    check_text(
        &with("STEP 2/5: Found it", "COMPLETE: nothing is wrong"),
        FromOne,
        (2, "Found it", &["complete"]),
    );
    let view = parse_output(&with("STEP 1/4: Begin", "NEXT: Step 2"), FromOne).unwrap();
    assert_eq!(texts(&view), ["Read it.\n  Closely."]);
}

/// Parses routing in both forms, at a step of three.
#[track_caller]
fn check_routing(step: usize, routing: &str, expect: &str) {
    let tags = format!(
        "<step_header script=\"x\" step=\"{step}\" total=\"3\">T</step_header>\n<current_action>A</current_action>\n\
         <invoke_after>{routing}</invoke_after>"
    );
    let text = format!("STEP {step}/3: T\nDO:\n  A.\nNEXT: {routing}");
    for output in [tags, text] {
        let lines = way_lines(&read(&output));
        assert_eq!(lines.len(), 1, "{output}");
        assert!(lines[0].starts_with(expect), "{output}: {lines:?}");
    }
}

#[test]
fn routing_that_is_not_understood_never_completes() {
    for step in [1, 2, 3] {
        for routing in [
            "INCOMPLETE: ask the user how to go on",
            "NOT COMPLETE",
            "If the review is COMPLETE, hand over; otherwise ask",
            "If the reviewer found anything, return to step 1; otherwise hand over to the user",
            "COMPLETE the list with the user",
            "COMPLETELY rewrite it",
            "COMPLETE, unless the tests fail: then step 1",
            "Step 2 if the tests pass, otherwise ask",
            "Ask the user.",
        ] {
            check_routing(step, routing, "person: what comes after step");
        }
    }
    for routing in [
        "COMPLETE",
        "COMPLETE: say what was found",
        "WORKFLOW COMPLETE - Return the step above.",
        "",
    ] {
        check_routing(3, routing, "complete");
    }
    check_routing(1, "", "person: the script does not say");
    check_routing(1, "COMPLETE", "complete");
}

#[test]
fn several_commands_are_told_apart_by_where_they_lead() {
    let view = read(
        "<step_header script=\"d\" step=\"4\" total=\"14\">Plan</step_header>\n<current_action>\nPlan.\n</current_action>\n\
         <invoke_after>\nIf the mode is quick:\n  python3 d.py --step 11 --total-steps 14\n\
         If not sure: python3 d.py --step 4 --total-steps 14 --iteration 2\n\
         Otherwise:\n  python3 d.py --step 5 --total-steps 14\n</invoke_after>",
    );
    assert_eq!(way_lines(&view), ["to-11 → 11", "iterate → 4", "to-5 → 5"]);
    let crate::step::NextStep::Ways { ways, .. } = &view.next else { panic!() };
    assert_eq!(ways[0].when, "If the mode is quick:");
    assert_eq!(ways[1].when, "If not sure:");
}

#[test]
fn work_for_sub_agents_is_read() {
    let view = read(
        "<step_header script=\"x\" step=\"1\" total=\"2\">Hand out</step_header>\n<current_action>\n\
         <subagent_dispatch agent=\"developer\" mode=\"script\">\n  <context>\n    <var name=\"PLAN\">the plan's path</var>\n  </context>\n\
         <invoke>python3 -m a.fill --step 1 --total-steps 4 --plan $PLAN</invoke>\n</subagent_dispatch>\n\
         <parallel_dispatch agent=\"explore\" count=\"2\">\n<agents>\n<agent id=\"minimal\">Less.</agent>\n<agent id=\"removal\">Nothing.</agent>\n</agents>\n\
         <template><invoke working-dir=\"s\" cmd=\"python3 -m a.look --step 1 --total-steps 2\" /></template>\n</parallel_dispatch>\n\
         <parallel_dispatch>\nAs many as you like.\n</parallel_dispatch>\n</current_action>",
    );
    let ViewBlock::Dispatch(DispatchView::Single(one)) = &view.actions[0] else {
        panic!("{view:?}")
    };
    assert_eq!(one.context, [("PLAN".to_owned(), "the plan's path".to_owned())]);
    assert!(one.command.as_ref().unwrap().line.ends_with("--plan $PLAN"));
    let ViewBlock::Dispatch(DispatchView::Parallel { agents, .. }) = &view.actions[1] else {
        panic!("{view:?}")
    };
    let told: Vec<_> = agents.iter().map(|one| (one.id.as_str(), one.task.as_str())).collect();
    assert_eq!(told, [("minimal", "Less."), ("removal", "Nothing.")]);
    assert!(texts(&view)[0].contains("As many as you like."), "{view:?}");
    assert_eq!(way_lines(&view), ["person: the script does not say what comes after step 1"]);
}

#[test]
fn what_is_no_step_is_said_to_be_none() {
    let error =
        |output: &str| parse_output(output, StepNumbering::FromOne).unwrap_err().to_string();
    assert_eq!(error(" \n"), "the script has printed nothing");
    assert!(error("Traceback (most recent call last):\n…").contains("it begins: Traceback"));
    let long = "x".repeat(crate::limits::SCRIPT_OUTPUT_BYTES_MAX + 1);
    let error = parse_output(&long, StepNumbering::FromOne).unwrap_err();
    assert_eq!(error, ScriptOutputError::TooLong { bytes: long.len() });
}

#[test]
fn many_open_tags_do_not_take_long() {
    let head = "STEP 1/2: Open\n<current_action>";
    for tag in ["<forbidden>", "<forbidden ", "<if>", "python --step ", "<current_action>"] {
        let output = format!("{head}{}</forbidden></current_action>", tag.repeat(30_000));
        assert_eq!(read(&output).step, 1, "{tag}");
    }
}

proptest! {
    #[test]
    fn reading_any_output_never_panics(
        parts in proptest::collection::vec(prop_oneof![
            Just("<step_header script=\"a\" step=\"1\" total=\"3\">".to_owned()),
            Just("</step_header>".to_owned()), Just("<current_action>".to_owned()),
            Just("</current_action>".to_owned()), Just("<invoke_after>".to_owned()),
            Just("</invoke_after>".to_owned()), Just("<if_pass>".to_owned()), Just("</if_pass>".to_owned()),
            Just("python3 a.py --step 2 '".to_owned()), Just("\nSTEP 1/2".to_owned()), Just("\nDO:\n".to_owned()),
            Just("\nNEXT: ".to_owned()), Just("<forbidden a='".to_owned()), Just("<routing><case result=>".to_owned()),
            any::<String>(),
        ], 0..12)
    ) {
        let _ = parse_output(&parts.concat(), StepNumbering::FromZero);
    }
}
