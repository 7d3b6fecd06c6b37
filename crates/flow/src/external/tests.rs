use super::*;
use crate::step::{NextStep, StepView, ViewBlock};

mod output;
mod progress;

fn files(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[track_caller]
fn check_detect(body: &str, expect: &str) {
    let files = files(&["scripts/analyze.py", "scripts/planner.py", "scripts/lib/util.py"]);
    let found = detect_script("decision-critic", body, &files).map(|script| {
        let call = build_command(&script, &ScriptCall::first_call(&script)).join(" ");
        match script.working_dir {
            Some(folder) => format!("{folder}: {call}"),
            None => call,
        }
    });
    assert_eq!(found.unwrap_or_else(|| "none".to_owned()), expect, "{body}");
}

#[test]
fn the_call_is_found_in_the_text_of_a_skill() {
    check_detect(
        "Run it.\n\n```bash\npython3 scripts/analyze.py --step 1 --total-steps 5\n```\n",
        "python3 scripts/analyze.py --step 1 --total-steps 5",
    );
    check_detect(
        "Start with `python3 scripts/analyze.py --step 1 --total-steps 5` at once.",
        "python3 scripts/analyze.py --step 1 --total-steps 5",
    );
    check_detect(
        "| plan | `<invoke working-dir=\".claude/skills/scripts\" cmd=\"python3 -m skills.planner.planner --step 1 --total-steps 13\" />` |",
        ".claude/skills/scripts: python3 -m skills.planner.planner --step 1 --total-steps 13",
    );
    check_detect(
        "python3 ${extensionPath}/scripts/analyze.py \\\n  --step 1 --total-steps 7 --decision \"<the decision>\"",
        "python3 scripts/analyze.py --step 1 --total-steps 7 --decision <the decision>",
    );
    check_detect(
        "python planner.py --phase planning --step=1 --total-steps=4",
        "python scripts/planner.py --step 1 --total-steps 4 --phase planning",
    );
    check_detect(
        "python3 scripts/analyze.py --step-number 0 --total-steps 14",
        "python3 scripts/analyze.py --step-number 0 --total-steps 14",
    );
    check_detect(
        "python3 scripts/analyze.py --step N --total-steps M, so\npython3 scripts/analyze.py --step 1 --total-steps 4",
        "python3 scripts/analyze.py --step 1 --total-steps 4",
    );
}

#[test]
fn what_is_not_in_the_folder_or_no_step_is_not_called() {
    check_detect("python3 /etc/evil.py --step 1 --total-steps 2", "none");
    check_detect("python3 ../other/scripts/x.py --step 1 --total-steps 2", "none");
    check_detect("python3 scripts/analyze.py --help", "none");
    check_detect("Use python. A pythonic way --step by step.", "none");
    check_detect("", "none");
}

#[test]
fn a_script_with_the_name_of_the_skill_is_found_without_words() {
    let found =
        detect_script("decision-critic", "No call.", &files(&["scripts/decision_critic.py"]));
    assert_eq!(found.unwrap().argv, ["python3", "scripts/decision_critic.py"]);
}

#[test]
fn all_scripts_of_a_skill_are_found_each_once() {
    let body = "`python3 -m a.planner --step 1 --total-steps 13`, then\n\
                `python3 -m a.executor --step 1 --total-steps 9`, and `python3 -m a.planner --step 2 --total-steps 13`";
    let found = detect_scripts("x", body, &[]);
    let names: Vec<&str> = found.iter().map(|script| script.argv[2].as_str()).collect();
    assert_eq!(names, ["a.planner", "a.executor"]);
}

#[test]
fn a_call_says_what_it_has_to_and_no_more() {
    let script =
        detect_script("x", "python3 -m a.b --mode quick --step 0 --total-steps 4", &[]).unwrap();
    assert_eq!(script.numbering, StepNumbering::FromZero);
    let flags = QrFlags { iteration: 3, fail: true, status: Some(QrStatus::Fail) };
    let call = ScriptCall { step: 2, total: None, flags, arguments: files(&["--mode", "full"]) };
    assert_eq!(
        build_command(&script, &call).join(" "),
        "python3 -m a.b --step 1 --total-steps 4 --qr-iteration 3 --qr-fail --qr-status fail --mode full"
    );
}

#[test]
fn placeholders_are_the_callers_to_fill_in() {
    for word in ["<your_confidence>", "$PLAN_FILE", "[text]", "{n}"] {
        assert!(is_placeholder(word), "{word}");
    }
    for word in ["high", "3", "--mode", "a<b"] {
        assert!(!is_placeholder(word), "{word}");
    }
}

fn way_lines(view: &StepView) -> Vec<String> {
    match &view.next {
        NextStep::Ways { ways, .. } => ways
            .iter()
            .map(|way| {
                let to = way.to.map_or_else(|| "?".to_owned(), |to| to.to_string());
                format!("{} → {to}", way.outcome.as_deref().unwrap_or_default())
            })
            .collect(),
        NextStep::Complete { .. } => vec!["complete".to_owned()],
        NextStep::Person { about, .. } => vec![format!("person: {about}")],
        other => panic!("{other:?}"),
    }
}

fn texts(view: &StepView) -> Vec<&str> {
    let text = |block: &'_ ViewBlock| matches!(block, ViewBlock::Text(_));
    view.actions
        .iter()
        .filter(|block| text(block))
        .filter_map(
            |block| if let ViewBlock::Text(text) = block { Some(text.as_str()) } else { None },
        )
        .collect()
}
