use super::*;
use crate::state::{UserAnswer, WorkflowRunId};
use crate::step::{
    AgentView, DispatchView, FindingsView, GateView, ItemView, NextStep, NextStepOption, PROTOCOL,
    ReportView, ResourceView, ReviewView, SetView, ShellCommand, ViewBlock,
};
use crate::workflow::{ExpectedOutput, StateBanner};

mod arbitrary;
mod properties;
mod told;

/// A step in the middle of a review.
fn review_step() -> StepView {
    let step = |outcome: &str| {
        ShellCommand::new(["rep", "workflow", "step", "r7", "--at", "9", "--outcome", outcome])
    };
    StepView {
        protocol: PROTOCOL,
        workflow: "planner".into(),
        run: Some(WorkflowRunId::new("r7")),
        status: "active".into(),
        turn: 9,
        step: 6,
        total: 13,
        id: "qr_completeness".into(),
        title: "Review: is the plan complete?".into(),
        phase: Some("Review".into()),
        role: None,
        iteration: 2,
        gate: None,
        review: Some(ReviewView {
            gate: "gate_completeness".into(),
            name: "Plan completeness".into(),
            iteration: 2,
            mode: "fresh".into(),
            banner: "You see the plan for the first time.".into(),
            items: vec![ItemView {
                id: "C1".into(),
                severity: "MUST".into(),
                status: "TODO".into(),
                scope: "Milestones".into(),
                check: "Every file that is named exists, or is made by an earlier milestone".into(),
                finding: String::new(),
            }],
            checks: vec![ItemView {
                id: "tests".into(),
                severity: String::new(),
                status: "FAIL".into(),
                scope: "cargo test".into(),
                check: "The project's tests".into(),
                finding: "2 of 40 failed".into(),
            }],
            record: Some(ShellCommand::new(["rep", "workflow", "record", "r7", "ITEM…"])),
        }),
        findings: None,
        answers: vec![UserAnswer {
            id: "q1".into(),
            ask: "Which database?".into(),
            answer: "SQLite & nothing else".into(),
        }],
        actions: review_actions(),
        report: ReportView {
            set: vec![SetView {
                name: "mode".into(),
                takes: "quick | full".into(),
                description: "How deep to go.".into(),
            }],
            output: Some("The list of subsystems, one a line.".into()),
            ..ReportView::default()
        },
        next: NextStep::Ways {
            ways: vec![
                NextStepOption {
                    outcome: Some("ok".into()),
                    when: "Every item has a verdict".into(),
                    to: Some(7),
                    title: "Gate: plan completeness".into(),
                    command: step("ok"),
                },
                NextStepOption {
                    outcome: Some("fail".into()),
                    when: String::new(),
                    to: Some(5),
                    title: "Choose an approach".into(),
                    command: step("fail"),
                },
            ],
            on_error: None,
        },
    }
}

fn review_actions() -> Vec<ViewBlock> {
    vec![
        ViewBlock::StateBanner(StateBanner {
            checkpoint: "Plan completeness".into(),
            mode: "fresh review".into(),
            lines: vec!["Look with new eyes.".into()],
            iteration: Some(2),
        }),
        ViewBlock::Text(
            "Read the plan.\n\n1. List what has to hold.\n2. Check `a < b && c`.\n".into(),
        ),
        ViewBlock::Resource(ResourceView {
            name: "plan-format".into(),
            purpose: "The shape of the plan".into(),
            text: "# Plan\n- overview\n".into(),
        }),
        ViewBlock::Dispatch(DispatchView::Parallel {
            instruction: "Give each its own item.".into(),
            shared: "The plan is in plan.md.".into(),
            agents: vec![AgentView {
                id: "C1".into(),
                agent: "quality-reviewer".into(),
                model: Some("balanced".into()),
                task: "Check C1.\nQuote the lines.".into(),
                command: Some(ShellCommand::new([
                    "rep",
                    "workflow",
                    "start",
                    "planner/verify",
                    "--param",
                    "item=it's C1",
                ])),
                files: vec!["plan.md".into()],
                returns: "PASS or FAIL with evidence".into(),
                return_tokens_max: Some(1500),
                ..AgentView::default()
            }],
        }),
        ViewBlock::ExpectedOutput(ExpectedOutput {
            if_pass: "RESULT: PASS".into(),
            when_issues: "RESULT: FAIL".into(),
            categories: vec!["gap".into(), "contradiction".into()],
        }),
        ViewBlock::Forbidden(vec!["Do not repair the plan".into()]),
    ]
}

#[test]
fn a_step_as_xml() {
    insta::assert_snapshot!(render_xml(&review_step()), @r#"
    <workflow protocol="1" run="r7" status="active" turn="9">
      <step_header script="planner" phase="Review" step="6" total="13" id="qr_completeness" iteration="2">Review: is the plan complete?</step_header>
      <review gate="gate_completeness" name="Plan completeness" iteration="2" mode="fresh">
        <banner>You see the plan for the first time.</banner>
        <items>
          <item id="C1" severity="MUST" status="TODO">
            <scope>Milestones</scope>
            <check>Every file that is named exists, or is made by an earlier milestone</check>
          </item>
        </items>
        <checks>
          <item id="tests" status="FAIL">
            <scope>cargo test</scope>
            <check>The project's tests</check>
            <finding>2 of 40 failed</finding>
          </item>
        </checks>
        <record>rep workflow record r7 'ITEM…'</record>
        <record_forms>
          <form for="a new item (severity MUST, SHOULD or COULD)">rep workflow record r7 '{"id":"C2","scope":"WHERE","check":"WHAT MUST HOLD","severity":"MUST"}'</form>
          <form for="it holds">rep workflow record r7 C1=PASS</form>
          <form for="it does not hold">rep workflow record r7 'C1=FAIL: FINDING'</form>
          <form for="runs a declared check; only such a run counts">rep workflow record r7 --check tests</form>
        </record_forms>
      </review>
      <user_answers>
        <answer id="q1" ask="Which database?">SQLite &amp; nothing else</answer>
      </user_answers>
      <current_action>
        <state_banner checkpoint="Plan completeness" iteration="2" mode="fresh review">
          <line>Look with new eyes.</line>
        </state_banner>
        <text>Read the plan.

    1. List what has to hold.
    2. Check `a &lt; b &amp;&amp; c`.
    </text>
        <resource name="plan-format" purpose="The shape of the plan"># Plan
    - overview
    </resource>
        <parallel_dispatch count="1">
          <mandatory>Start exactly 1 sub-agent.</mandatory>
          <instruction>Give each its own item.</instruction>
          <shared_context>The plan is in plan.md.</shared_context>
          <agents>
            <agent agent="quality-reviewer" mode="script" id="C1" model="balanced" return_tokens_max="1500">
              <task>Check C1.
    Quote the lines.</task>
              <invoke>rep workflow start planner/verify --param 'item=it'\''s C1'</invoke>
              <handoff_instruction>Begin the sub-agent's prompt with this line: Start by running: rep workflow start planner/verify --param 'item=it'\''s C1'
    It follows the steps that this gives it; add facts, and no steps of your own.</handoff_instruction>
              <files>
                <file>plan.md</file>
              </files>
              <returns>PASS or FAIL with evidence</returns>
            </agent>
          </agents>
          <wait>Wait until all of them have answered before you go on.</wait>
        </parallel_dispatch>
        <expected_output>
          <if_pass>RESULT: PASS</if_pass>
          <when_issues>RESULT: FAIL</when_issues>
          <categories>
            <category>gap</category>
            <category>contradiction</category>
          </categories>
        </expected_output>
        <forbidden>
          <action>Do not repair the plan</action>
        </forbidden>
      </current_action>
      <user_input_relay>
        <rule>A sub-agent that cannot go on without the user ends with its questions: at most 3, each with 2 to 3 options. Relay them with the command below, and start the sub-agent again with the answers.</rule>
        <ask>rep workflow ask r7 '{"id":"q1","ask":"QUESTION","options":["A","B"]}'</ask>
      </user_input_relay>
      <report>
        <set name="mode" takes="quick | full">How deep to go.</set>
        <output>The list of subsystems, one a line.</output>
        <long_values>What is long or has several lines goes by `--output @FILE` (or `--output -`, which reads it from input) and by `--set NAME=@FILE`.</long_values>
      </report>
      <invoke_after>
        <if_pass when="Every item has a verdict" step="7" title="Gate: plan completeness">rep workflow step r7 --at 9 --outcome ok</if_pass>
        <if_fail step="5" title="Choose an approach">rep workflow step r7 --at 9 --outcome fail</if_fail>
      </invoke_after>
      <next required="true">When current_action is done, run what invoke_after says, one of:
    ok: rep workflow step r7 --at 9 --outcome ok
    fail: rep workflow step r7 --at 9 --outcome fail</next>
    </workflow>
    "#);
}

#[test]
fn a_step_as_text() {
    insta::assert_snapshot!(render_text(&review_step()), @r#"
    STEP 6/13 · Review: is the plan complete? · Review
    planner · run r7 · turn 9 · visit 2

    REVIEW: Plan completeness (iteration 2, fresh)
      You see the plan for the first time.

      Items:
        [TODO] C1 MUST · Milestones: Every file that is named exists, or is made by an earlier
                         milestone

      Checks, which always block:
        [FAIL] tests · `cargo test`: The project's tests
            → 2 of 40 failed

      To record:
        # a new item (severity MUST, SHOULD or COULD)
        rep workflow record r7 '{"id":"C2","scope":"WHERE","check":"WHAT MUST HOLD","severity":"MUST"}'
        # it holds
        rep workflow record r7 C1=PASS
        # it does not hold
        rep workflow record r7 'C1=FAIL: FINDING'
        # runs a declared check; only such a run counts
        rep workflow record r7 --check tests

    THE USER HAS ANSWERED:
      q1: Which database?
        → SQLite & nothing else

    DO:

    == Plan completeness · iteration 2 · fresh review ==
    Look with new eyes.

    Read the plan.

    1. List what has to hold.
    2. Check `a < b && c`.

    Resource plan-format: The shape of the plan
        # Plan
        - overview

    Start exactly 1 sub-agent. Wait until all of them have answered before you go on.
    Give each its own item.
    All of them are told:
        The plan is in plan.md.

    1. C1 (quality-reviewer), model balanced
        Check C1.
        Quote the lines.
        May change only: plan.md
        Gives back: PASS or FAIL with evidence
        Answers in at most 1500 tokens.
        Its prompt begins with: Start by running:
          rep workflow start planner/verify --param 'item=it'\''s C1'

    What the answer looks like:
      if all is well:
        RESULT: PASS
      if something was found:
        RESULT: FAIL
      categories: gap, contradiction

    Forbidden:
      - Do not repair the plan

    A sub-agent that cannot go on without the user ends with its questions: at most 3, each with 2
    to 3 options. Relay them with the command below, and start the sub-agent again with the answers.
      rep workflow ask r7 '{"id":"q1","ask":"QUESTION","options":["A","B"]}'

    REPORT:
      --set mode=VALUE  quick | full. How deep to go.
      --output TEXT  The list of subsystems, one a line.
      What is long or has several lines goes by `--output @FILE` (or `--output -`, which reads it
      from input) and by `--set NAME=@FILE`.

    NEXT, one of:
      ok · Every item has a verdict · to step 7, Gate: plan completeness
        rep workflow step r7 --at 9 --outcome ok
      fail · to step 5, Choose an approach
        rep workflow step r7 --at 9 --outcome fail
    "#);
}

/// The smallest possible step.
fn last_step() -> StepView {
    StepView {
        run: None,
        turn: 1,
        step: 13,
        iteration: 1,
        phase: None,
        review: None,
        answers: Vec::new(),
        actions: vec![ViewBlock::Text("Say what was done.".into())],
        report: ReportView::default(),
        next: NextStep::Complete { message: "The workflow is complete.".into() },
        ..review_step()
    }
}

#[test]
fn the_format_is_explained_on_the_first_turn_only() {
    assert!(render_xml(&last_step()).starts_with("<workflow protocol=\"1\" "));
    assert!(render_xml(&last_step()).contains("<xml_format_mandate>"));
    assert!(!render_xml(&review_step()).contains("<xml_format_mandate>"));
}

#[test]
fn the_last_step_says_complete_and_gives_no_command() {
    let (xml, text) = (render_xml(&last_step()), render_text(&last_step()));
    assert!(text.ends_with("COMPLETE:\n  The workflow is complete.\n"), "{text}");
    assert!(!xml.contains("<invoke_after") && !xml.contains("<next"), "{xml}");
}

#[test]
fn characters_that_xml_cannot_hold_are_replaced_visibly() {
    let mut view = last_step();
    view.title = "a\u{0}b\u{1b}[31mc\u{ffff}\u{fffe}".into();
    let read = parse_xml(&render_xml(&view)).unwrap();
    assert_eq!(read.title, "a\u{fffd}b\u{fffd}[31mc\u{fffd}\u{fffd}");
}

#[test]
fn findings_that_a_sub_agent_repairs_are_passed_on_and_not_read() {
    let mut view = last_step();
    let findings = |fix: &str| FindingsView {
        gate: "gate_code".into(),
        name: "Code".into(),
        iteration: 2,
        fix: fix.into(),
        items: Vec::new(),
    };
    view.findings = Some(findings("developer"));
    assert!(
        render_xml(&view)
            .contains("<qr_report_passthrough>Hand these findings to the developer word for word.")
    );
    assert!(render_text(&view).contains("Hand these findings to the developer word for word."));
    view.findings = Some(findings("own"));
    assert!(
        !render_xml(&view).contains("passthrough") && !render_text(&view).contains("word for word")
    );
}

#[test]
fn sub_agents_are_told_how_to_ask_only_where_there_are_any() {
    let mut view = review_step();
    let form = r#"rep workflow ask r7 '{"id":"q1","ask":"QUESTION","options":["A","B"]}'"#;
    assert!(render_text(&view).contains(form) && render_xml(&view).contains("<user_input_relay>"));
    view.actions.retain(|block| !matches!(block, ViewBlock::Dispatch(_)));
    assert!(
        !render_text(&view).contains("workflow ask")
            && !render_xml(&view).contains("user_input_relay")
    );
}

#[test]
fn a_gate_says_its_verdict_and_what_blocks() {
    let mut view = last_step();
    view.gate = Some(GateView {
        name: "Code".into(),
        status: "fail".into(),
        iteration: 4,
        limit: 5,
        blocking_severity: "SHOULD".into(),
        message: "C1 blocks.".into(),
        blocking: vec!["C1".into()],
        passed_over: Vec::new(),
        stop: "Nothing is merged.".into(),
    });
    let text = render_text(&view);
    assert!(text.contains("GATE FAILED: Code (iteration 4 of 5)\n  C1 blocks.\n"), "{text}");
    assert!(
        text.contains("MUST and SHOULD block")
            && text.contains("Until it is passed: Nothing is merged.")
    );
    let xml = render_xml(&view);
    assert!(
        xml.contains(r#"<gate_result status="fail" name="Code" iteration="4" limit="5""#),
        "{xml}"
    );
    assert!(xml.contains("<severity_filter>MUST and SHOULD block"), "{xml}");
}

#[test]
fn a_document_that_is_not_ours_is_refused_with_the_place() {
    for (text, expect) in [
        ("", "there is no element in it"),
        ("<workflow protocol=\"1\">", "at byte 23: "),
        ("<a/><b/>", "a second root element"),
        ("<step_header/>", "<step_header> has no `workflow` around it"),
        ("<workflow/>", "<workflow> has no protocol"),
        ("<workflow protocol=\"x\"/>", "<workflow> has a bad protocol: `x`"),
        ("<workflow protocol=\"9\"/>", "protocol 9 is not known here; this program reads 1"),
        ("<workflow protocol=\"1\"/>", "<workflow> has no step_header"),
        ("<!DOCTYPE a><workflow/>", "a document type is not read"),
        ("<workflow>&nosuch;</workflow>", "an unknown entity `nosuch`"),
    ] {
        let said = parse_xml(text).unwrap_err().to_string();
        assert!(said.contains(expect), "{text}: {said}");
    }
    let deep = "<a>".repeat(STEP_XML_DEPTH_MAX + 1);
    assert_eq!(parse_xml(&deep), Err(StepParseError::TooDeep));
    let long = " ".repeat(STEP_XML_BYTES_MAX + 1);
    assert_eq!(parse_xml(&long), Err(StepParseError::TooLong { bytes: long.len() }));
}

#[test]
fn the_schema_names_every_part_of_a_step() {
    let schema = json_schema();
    for field in ["protocol", "actions", "report", "next", "gate", "review", "findings"] {
        assert!(schema["properties"].get(field).is_some(), "{field}");
    }
}

#[test]
fn a_large_step_is_read_back() {
    let mut view = review_step();
    let text = ViewBlock::Text("Look at `a < b` & \"c\".\n".repeat(400));
    view.actions.extend(std::iter::repeat_n(text, 4));
    assert!(render_xml(&view).len() > 40_000);
    assert_eq!(parse_xml(&render_xml(&view)).unwrap(), view);
}
