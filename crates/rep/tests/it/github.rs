//! `rep github run`: from an event to a comment, against a fake GitHub, with real git and an agent that does what the test says.

use repertoire_scripted::Script;
use serde_json::{Value, json};

use self::stage::{Stage, comment, dispatch, issue, on_issue};

mod act;
mod attacks;
mod merging;
mod stage;

/// Writes a file, and approves.
const WORKS: &str = "\
- unless: You review
  write: alpha.txt
  content: \"alpha\\n\"
- when: You review
  finish: {structured: {verdict: approve, summary: Good., findings: [], learning: null}}
- unless: You review
  text: I wrote alpha.txt. Thanks @ada, this fixes #31.
";

const ANSWERS: &str = "- text: It is blue.\n";

fn stage(agent: &str) -> Stage {
    let files = [("repertoire.toml", "[plan.checks.alpha]\ncommand = \"test -f README.md\"\n")];
    let stage = Stage::new(
        &files,
        |github| {
            github.issue(31, "Write alpha", "Please write alpha.", "stranger").user("stranger")
        },
        Script::new(),
    );
    stage.ws.write("agent.yaml", agent);
    stage
}

fn run(stage: &Stage, name: &str, event: &Value, more: &[&str]) -> crate::workspace::Ran {
    let backend = format!("scripted:{}", stage.ws.path("agent.yaml"));
    stage.handle(name, event, &[&["--backend", &backend], more].concat())
}

fn called(text: &str, author: &str) -> Value {
    comment(issue(31, "Write alpha", "Please write alpha.", "stranger"), text, author)
}

#[test]
fn a_question_is_answered_where_it_was_asked() {
    let stage = stage(ANSWERS);
    let ran = run(&stage, "issue_comment", &called("@repertoire what colour is it?", "ada"), &[]);
    assert_eq!(ran.code, 0, "{ran}");
    let comments = stage.github.comments(31);
    assert_eq!(comments.len(), 1, "{comments:?}");
    assert!(comments[0].contains("It is blue."), "{comments:?}");
    assert!(stage.github.labels(31).is_empty(), "the label of the run is gone");
    assert_eq!(
        (stage.output("conclusion"), stage.output("mode")),
        ("answered".into(), "tag".into())
    );
    assert!(stage.ws.text("summary.md").contains("Answered"), "{}", stage.ws.text("summary.md"));
    // Called again, it keeps to its one comment.
    let ran = run(&stage, "issue_comment", &called("@repertoire and now?", "ada"), &[]);
    assert_eq!((ran.code, stage.github.comments(31).len()), (0, 1), "{ran}");
    assert_eq!(stage.branches(), ["main"]);
}

#[test]
fn work_is_checked_reviewed_and_left_on_its_branch_unless_pushing_is_configured() {
    let stage = stage(WORKS);
    let ran = run(&stage, "issue_comment", &called("@repertoire write alpha", "ada"), &[]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(stage.output("conclusion"), "done", "{ran}");
    assert_eq!(stage.branches(), ["main"], "nothing was pushed");
    let said = &stage.github.comments(31)[0];
    assert!(said.contains("not pushed") && said.contains("alpha passed"), "{said}");
    assert!(!said.contains("@ada") && !said.contains("fixes #31"), "harmless: {said}");
    let branch = stage.output("branch_name");
    assert_eq!(stage.git(&["show", &format!("{branch}:alpha.txt")]), "alpha");
    assert!(stage.output("execution_file").ends_with(".jsonl"));
}

#[test]
fn a_branch_is_pushed_and_a_pull_request_opened_where_that_was_asked_for() {
    let stage = stage(WORKS);
    let event = on_issue("opened", issue(31, "Write alpha", "Please write alpha.", "ada"), "ada");
    let ran = run(&stage, "issues", &event, &["--pull-request"]);
    assert_eq!((ran.code, stage.output("conclusion")), (0, "done".to_owned()), "{ran}");
    assert_eq!(stage.output("mode"), "agent");
    let branch = stage.output("branch_name");
    assert!(branch.starts_with("repertoire/"), "{branch}");
    assert!(stage.branches().contains(&branch), "{:?}", stage.branches());
    let state = stage.github.state();
    let (number, pull) = state.pulls.iter().next().unwrap();
    let text = &state.issues[number].body;
    assert!(pull.draft && text.contains("For #31."), "{pull:?} {text}");
    assert_eq!(stage.output("pull_request"), number.to_string());
    // The token went to GitHub and nowhere else.
    let config = stage.ws.text("project/.git/config");
    assert!(
        !config.contains("extraheader") && !config.to_lowercase().contains("authorization"),
        "{config}"
    );
}

#[test]
fn what_fails_is_told_and_kept_as_a_dead_letter() {
    let stage =
        stage("- text: Done!\n- unless: You review\n  write: bad.txt\n  content: \"x\\n\"\n");
    stage.ws.write(
        "project/repertoire.toml",
        "[plan]\nattempts = 1\n[plan.checks.never]\ncommand = \"false\"\n",
    );
    stage.git(&["commit", "--quiet", "--all", "-m", "a check that fails"]);
    stage.git(&["push", "--quiet", "origin", "main"]);
    let ran = run(&stage, "workflow_dispatch", &dispatch(Some("write"), "ada"), &[]);
    assert_eq!((ran.code, stage.output("conclusion")), (1, "failed".to_owned()), "{ran}");
    let letters = stage.ws.rep("dlq list --json");
    assert!(letters.stdout.contains("\"event\""), "{letters}");
}

#[test]
fn a_dry_run_asks_who_may_and_does_nothing() {
    let stage = stage(ANSWERS);
    let ran = run(&stage, "issue_comment", &called("@repertoire hello", "ada"), &["--dry-run"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("would work for ada"), "{ran}");
    assert!(stage.github.writes().is_empty(), "{:?}", stage.github.writes());
}

#[test]
fn without_a_call_nothing_happens_and_the_step_is_green() {
    let stage = stage(ANSWERS);
    let ran = run(&stage, "issue_comment", &called("just talking", "ada"), &[]);
    assert_eq!((ran.code, stage.output("conclusion")), (0, "skipped".to_owned()), "{ran}");
    assert!(stage.github.writes().is_empty());
}

#[test]
fn tasks_are_done_one_after_another_and_what_failed_is_not_picked_again() {
    let agent = "\
- when: \"good task\"
  unless: You review
  write: good.txt
  content: \"good\\n\"
- when: \"bad task\"
  unless: You review
  write: bad.txt
  content: \"bad\\n\"
- when: You review
  finish: {structured: {verdict: approve, summary: Good., findings: [], learning: null}}
- unless: You review
  text: Done.
";
    let toml = "[plan]\nattempts = 1\n[plan.checks.good]\ncommand = \"test ! -f bad.txt\"\n\
                [github.continuous]\nenabled = true\ndelay = \"1s\"\n";
    let tasks = "# Tasks\n\n- [ ] [P2] a good task from the file #easy\n- [x] done before\n";
    let stage = Stage::new(
        &[("repertoire.toml", toml), ("TASKS.md", tasks)],
        |github| {
            github
                .issue(1, "a bad task", "Break it.", "ada")
                .label_by(1, "agent-task", "ada")
                .issue(2, "a good task", "Do it.", "ada")
                .label_by(2, "agent-task", "ada")
                .label(2, "priority-1")
                .issue(3, "a task of a stranger", "Do it.", "rita")
                .label_by(3, "agent-task", "rita")
        },
        Script::new(),
    );
    stage.ws.write("agent.yaml", agent);
    let ran = run(&stage, "schedule", &json!({ "schedule": "0 3 * * *" }), &["--push", "--json"]);
    let came: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran}"));
    let order: Vec<(&str, &str)> = came["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| (task["title"].as_str().unwrap(), task["conclusion"].as_str().unwrap()))
        .collect();
    let expected =
        [("a good task", "done"), ("a bad task", "failed"), ("a good task from the file", "done")];
    assert_eq!(order, expected, "{ran}");
    assert!(stage.github.labels(1).contains(&"agent-failed".to_owned()));
    assert!(stage.github.comments(2)[0].contains("Done"), "{:?}", stage.github.comments(2));
    assert!(stage.github.comments(3).is_empty());
    let branch = came["tasks"][2]["branch"].as_str().unwrap();
    assert!(stage.git(&["show", &format!("{branch}:TASKS.md")]).contains("- [x] [P2] a good task"));
    // Neither the one that failed nor, while its work is not merged, the order changes.
    let again = run(&stage, "schedule", &json!({ "schedule": "0 3 * * *" }), &["--json"]);
    assert!(!again.stdout.contains("\"a bad task\""), "{again}");
}
