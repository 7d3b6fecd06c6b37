//! Instructions for agents besides the step itself.

use super::super::{parse_xml, render_text, render_text_within, render_xml};
use super::{last_step, review_step};
use crate::state::UserQuestion;
use crate::step::{
    ChoiceView, FindingsView, ItemView, NextStep, ReportView, ShellCommand, StepView,
};

/// A step at which a person has to decide.
fn waiting(questions: Vec<UserQuestion>) -> StepView {
    let resume = ["rep", "workflow", "resume", "r7"];
    StepView {
        status: "waiting".into(),
        actions: Vec::new(),
        review: None,
        next: NextStep::Person {
            about: "The gate has failed 5 times.".into(),
            choices: vec![ChoiceView {
                choice: "skip".into(),
                meaning: "Accept everything that failed.".into(),
                command: ShellCommand::new(resume.into_iter().chain(["--choice", "skip"])),
            }],
            questions,
            command: None,
        },
        ..review_step()
    }
}

#[test]
fn an_agent_is_told_to_leave_a_choice_to_the_user() {
    let view = waiting(Vec::new());
    insta::assert_snapshot!(render_text(&view), @"
    STEP 6/13 · Review: is the plan complete? · Review
    planner · run r7 · turn 9 · visit 2 · waiting

    THE USER HAS ANSWERED:
      q1: Which database?
        → SQLite & nothing else

    A PERSON HAS TO DECIDE:
      If you are an agent, stop here: show all of this to the user, with every choice, and wait for
      what they say. Do not choose yourself, whichever choice looks right.

      The gate has failed 5 times.

      skip: Accept everything that failed.
        rep workflow resume r7 --choice skip
    ");
    let xml = render_xml(&view);
    let rule = "<needs_user_input>\n    <rule>If you are an agent, stop here: show all of this to the user";
    assert!(xml.contains(rule), "{xml}");
    assert!(xml.contains("Do not choose yourself"), "{xml}");
    assert_eq!(parse_xml(&xml), Ok(view));
}

#[test]
fn an_agent_is_told_to_put_questions_word_for_word() {
    let view = waiting(vec![UserQuestion {
        id: "q1".into(),
        ask: "Which database?".into(),
        options: vec!["SQLite".into(), "none".into()],
    }]);
    for said in [render_xml(&view), render_text_within(&view, 500)] {
        assert!(said.contains("put these questions to the user word for word"), "{said}");
        assert!(!said.contains("Do not choose yourself"), "{said}");
    }
    assert_eq!(parse_xml(&render_xml(&view)), Ok(view));
}

#[test]
fn what_is_long_goes_by_a_file_where_something_is_handed_over() {
    let mut view = review_step();
    let says = |view: &StepView, what: &str| {
        let (xml, text) = (render_xml(view), render_text_within(view, 500));
        assert_eq!(xml.contains(what), text.contains(what), "{xml}{text}");
        text.contains(what)
    };
    assert!(says(&view, "`--output @FILE` (or `--output -`") && says(&view, "`--set NAME=@FILE`"));
    view.report.set.clear();
    assert!(says(&view, "`--output @FILE`, or by `--output -`") && !says(&view, "--set NAME"));
    assert_eq!(parse_xml(&render_xml(&view)).as_ref(), Ok(&view));
    view.report = ReportView::default();
    assert!(!says(&view, "@FILE"));
    // Without a run there is no `--output`.
    assert!(!says(&StepView { run: None, ..review_step() }, "@FILE"));
}

#[test]
fn the_form_for_a_new_item_has_an_id_that_is_free() {
    let mut view = review_step();
    let review = view.review.as_mut().expect("it has a review");
    let item = |id: &str, status: &str| ItemView {
        id: id.into(),
        status: status.into(),
        ..review.items[0].clone()
    };
    review.items = vec![item("C2", "PASS"), item("C1", "TODO"), item("lock", "TODO")];
    let shown = render_text(&view);
    assert!(shown.contains(r#"record r7 '{"id":"C3","#), "{shown}");
    // The sample verdict is about an item that has none yet.
    assert!(shown.contains("record r7 C1=PASS") && shown.contains("'C1=FAIL: FINDING'"), "{shown}");
    view.review.as_mut().expect("it has a review").items.clear();
    let shown = render_text(&view);
    assert!(shown.contains(r#"{"id":"C1","#) && shown.contains("record r7 C1=PASS"), "{shown}");
}

#[test]
fn a_red_check_that_is_to_be_repaired_shows_its_command() {
    let mut view = last_step();
    let red = ItemView {
        id: "tests".into(),
        severity: String::new(),
        status: "FAIL".into(),
        scope: "test -s NOTES.md".into(),
        check: "The project's tests pass.".into(),
        finding: String::new(),
    };
    view.findings = Some(FindingsView {
        gate: "gate".into(),
        name: "Code".into(),
        iteration: 2,
        fix: "own".into(),
        items: vec![red.clone(), ItemView { scope: String::new(), ..red }],
    });
    let text = render_text(&view);
    let lines = "    [FAIL] tests · `test -s NOTES.md`: The project's tests pass.\n    [FAIL] tests: The project's tests pass.\n";
    assert!(text.contains(lines), "{text}");
}

#[test]
fn a_run_that_a_person_has_ended_is_not_complete() {
    let view = StepView {
        status: "aborted".into(),
        next: NextStep::Complete { message: "A person has ended the run.".into() },
        ..last_step()
    };
    let (xml, text) = (render_xml(&view), render_text(&view));
    let ended = r#"<workflow_ended by="person">A person has ended the run.</workflow_ended>"#;
    assert!(xml.contains(ended) && !xml.contains("workflow_complete"), "{xml}");
    let ended = "\nENDED BY A PERSON, NOT COMPLETE:\n  A person has ended the run.\n";
    assert!(text.ends_with(ended), "{text}");
    assert_eq!(parse_xml(&xml), Ok(view));
}

#[test]
fn text_fits_the_columns_that_there_are() {
    let mut view = review_step();
    view.title = "Is everything that the plan names there, and is nothing there twice?".into();
    view.review.as_mut().expect("it has a review").name = "Plan ".repeat(20);
    for columns in [50, 80, 120] {
        let text = render_text_within(&view, columns);
        let is_command = |line: &str| line.trim_start().starts_with("rep workflow ");
        let wide = |line: &&str| !is_command(line) && line.chars().count() > columns;
        assert_eq!(text.lines().find(wide), None, "{text}");
    }
    assert!(render_text_within(&view, 120).lines().any(|line| line.chars().count() > 96));
    assert_eq!(render_text(&view), render_text_within(&view, 96));
}
