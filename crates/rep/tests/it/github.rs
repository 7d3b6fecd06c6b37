//! `rep github run`: from an event to a comment, against a fake GitHub, with real git and an agent that does what the test says.

use repertoire_scripted::ModelScript;
use repertoire_scripted::github::FakeGitHub;
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
        ModelScript::new(),
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
    let patch = repertoire_text::fs::read_text(stage.output("patch_file").as_str().into(), 1 << 20)
        .unwrap();
    assert!(patch.contains("+++ b/alpha.txt\n") && patch.contains("+alpha\n"), "{patch}");
    // Who watches the log sees it happen.
    assert!(ran.stderr.contains("1 implementation: Work on issue 31"), "{ran}");
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
fn what_fails_is_a_dead_letter_that_leads_back_to_the_event() {
    let stage = stage(WORKS);
    stage.base("repertoire.toml", "[plan]\nattempts = 1\n[plan.checks.no]\ncommand = \"false\"\n");
    let event = called("@repertoire write alpha", "ada");
    let ran = run(&stage, "issue_comment", &event, &["--push"]);
    assert_eq!((ran.code, stage.output("conclusion")), (1, "failed".to_owned()), "{ran}");
    let memory = stage.ws.json("memory list --json", "memory.json");
    assert_eq!(memory["failures"].as_array().unwrap().len(), 1, "it is remembered: {memory}");
    let letters = stage.ws.json("dlq list --json", "dlq.json");
    let letter = &letters["letters"][0];
    assert_eq!(letters["letters"].as_array().unwrap().len(), 1, "{letters}");
    assert_eq!((&letter["class"], &letter["priority"]), (&json!("substantive"), &json!("medium")));
    let id = letter["id"].as_str().unwrap();
    // It goes wrong again, and waits again.
    let again = retried(&stage, id);
    assert_eq!(again.code, 1, "{again}");
    let letter = stage.ws.json(&format!("dlq show {id} --json"), "dlq-show.json");
    assert_eq!((&letter["status"], &letter["attempts"]), (&json!("queued"), &json!(1)), "{letter}");
    // Somebody puts it right.
    stage.base("repertoire.toml", "[plan.checks.no]\ncommand = \"true\"\n");
    let done = retried(&stage, id);
    assert_eq!((done.code, stage.output("conclusion")), (0, "done".to_owned()), "{done}");
    let letter = stage.ws.json(&format!("dlq show {id} --json"), "dlq-show.json");
    assert_eq!(letter["status"], "resolved", "{letter}");
    assert_eq!(stage.branches().len(), 2, "pushed, as it was to be: {:?}", stage.branches());
    assert_eq!(stage.ws.json("dlq list --json", "dlq.json")["letters"], json!([]));
    assert_eq!(stage.github.comments(31).len(), 1, "one comment for all of it");
}

/// Does what `rep runs dead-letters retry` says is to be done next.
fn retried(stage: &Stage, letter: &str) -> crate::workspace::Ran {
    let done = stage.ws.json(&format!("dlq retry {letter} --json"), "dlq-retry.json");
    let top = stage.ws.path("");
    let top = top.as_str().trim_end_matches('/');
    let command = done["command"].as_str().unwrap().replace("[TMP]", top);
    let backend = format!("scripted:{}", stage.ws.path("agent.yaml"));
    let words = command.split(' ').skip(1).chain(["--backend", &backend]);
    stage.ws.rep_with(&words.collect::<Vec<_>>())
}

#[test]
fn a_push_that_is_refused_waits_for_a_person_as_a_letter() {
    let agent = WORKS.replace("write: alpha.txt", "write: .github/workflows/x.yml");
    let stage = stage(&agent);
    let event = called("@repertoire write it", "ada");
    let ran = run(&stage, "issue_comment", &event, &["--push"]);
    assert_eq!((ran.code, stage.output("conclusion")), (1, "waiting".to_owned()), "{ran}");
    let letters = stage.ws.json("dlq list --json", "dlq.json");
    let letter = &letters["letters"][0];
    assert_eq!((&letter["class"], &letter["priority"]), (&json!("permanent"), &json!("high")));
    assert!(letter["reason"].as_str().unwrap().contains("only people change"), "{letter}");
}

#[test]
fn a_dry_run_asks_who_may_and_does_nothing() {
    let stage = stage(ANSWERS);
    let ran = run(&stage, "issue_comment", &called("@repertoire hello", "ada"), &["--dry-run"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("would work for ada"), "{ran}");
    assert!(stage.github.write_calls().is_empty(), "{:?}", stage.github.write_calls());
}

#[test]
fn without_a_call_nothing_happens_and_the_step_is_green() {
    let stage = stage(ANSWERS);
    let ran = run(&stage, "issue_comment", &called("just talking", "ada"), &[]);
    assert_eq!((ran.code, stage.output("conclusion")), (0, "skipped".to_owned()), "{ran}");
    assert!(stage.github.write_calls().is_empty());
}

/// What a run over tasks came to: titles and results, in order.
fn picked(came: &Value) -> Vec<(String, String)> {
    let text = |task: &Value, field: &str| task[field].as_str().unwrap().to_owned();
    let tasks = came["tasks"].as_array().unwrap().iter();
    tasks.map(|task| (text(task, "title"), text(task, "conclusion"))).collect()
}

/// Lets the clock start a run over the tasks of a stage.
fn by_the_clock(stage: &Stage, more: &[&str]) -> Value {
    let event = json!({ "schedule": "0 3 * * *" });
    let ran = run(stage, "schedule", &event, &[&["--json"], more].concat());
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran}"))
}

fn notes(came: &Value) -> String {
    came["notes"].as_array().unwrap().iter().map(|note| format!("{note}\n")).collect()
}

/// Does good tasks well and bad ones badly, as the check sees it.
const GOOD_AND_BAD: &str = "\
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

const CONTINUOUS: &str = "[plan]\nattempts = 1\n[plan.checks.good]\ncommand = \"test ! -f bad.txt\"\n\
    [github.continuous]\nenabled = true\ndelay = \"1s\"\n";

fn with_tasks(toml: &str, tasks: &str, github: impl FnOnce(FakeGitHub) -> FakeGitHub) -> Stage {
    let stage =
        Stage::new(&[("repertoire.toml", toml), ("TASKS.md", tasks)], github, ModelScript::new());
    stage.ws.write("agent.yaml", GOOD_AND_BAD);
    stage
}

#[test]
fn tasks_are_done_one_after_another_and_what_failed_is_not_picked_again() {
    let tasks = "# Tasks\n\n- [ ] [P2] a good task from the file #easy\n- [x] done before\n";
    let stage = with_tasks(CONTINUOUS, tasks, |github| {
        github
            .issue(1, "a bad task", "Break it.", "ada")
            .label_by(1, "agent-task", "ada")
            .issue(2, "a good task", "Do it.", "ada")
            .label_by(2, "agent-task", "ada")
            .label(2, "priority-1")
            .issue(3, "a task of a stranger", "Do it.", "rita")
            .label_by(3, "agent-task", "rita")
    });
    let came = by_the_clock(&stage, &["--pull-request"]);
    let expected = [
        ("a good task", "done"),
        ("a bad task", "failed"),
        // Nothing of the bad one is in its prompt: it would do that instead.
        ("a good task from the file", "done"),
    ];
    let expected = expected.map(|(title, end)| (title.to_owned(), end.to_owned()));
    assert_eq!(picked(&came), expected, "{came}");
    let labels = |number| stage.github.labels(number);
    assert_eq!(labels(1), ["agent-task", "agent-failed"]);
    assert_eq!(labels(2), ["agent-task", "priority-1", "agent-done"]);
    let claims = stage
        .github
        .write_calls()
        .iter()
        .filter(|line| line.ends_with("/agent:continuous"))
        .count();
    assert_eq!(claims, 2, "each issue was claimed while it was worked on");
    assert!(stage.github.comments(2)[0].contains("Done"), "{:?}", stage.github.comments(2));
    assert!(stage.github.comments(3).is_empty());
    let branch = came["tasks"][2]["branch"].as_str().unwrap();
    assert!(stage.git(&["show", &format!("{branch}:TASKS.md")]).contains("- [x] [P2] a good task"));
    let (pulls, branches) = (stage.github.state().pulls.len(), stage.branches());
    assert_eq!(pulls, 2);
    // Their work waits to be looked at, or was given up: a second run has nothing to do.
    let again = by_the_clock(&stage, &["--pull-request"]);
    assert_eq!((picked(&again), &again["conclusion"]), (Vec::new(), &json!("skipped")), "{again}");
    assert_eq!((stage.github.state().pulls.len(), stage.branches()), (pulls, branches.clone()));
    assert_eq!(stage.github.comments(1).len(), 1);
    let why = notes(&again);
    for part in [
        "issue-1 has the label `agent-failed`",
        "issue-2 has the label `agent-done`",
        &branches[1][..15],
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
}

#[test]
fn a_task_that_was_given_up_is_picked_again_when_somebody_says_so() {
    let stage = with_tasks(CONTINUOUS, "- [ ] a bad task of the file\n", |github| {
        github.issue(1, "a bad task", "Break it.", "ada").label_by(1, "agent-task", "ada")
    });
    let came = by_the_clock(&stage, &[]);
    let both = ["a bad task", "a bad task of the file"];
    let failed = both.map(|title| (title.to_owned(), "failed".to_owned()));
    assert_eq!(picked(&came), failed, "{came}");
    assert_eq!(picked(&by_the_clock(&stage, &[])), [], "neither is picked again by itself");
    let letters = stage.ws.json("dlq list --json", "dlq.json");
    let ids: Vec<&str> = letters["letters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), 2, "{letters}");
    // What is dropped is not wanted any more, and does not come back by itself either.
    stage.ws.rep(&format!("runs dead-letters drop {}", ids[0]));
    stage.ws.rep(&format!("runs dead-letters drop {}", ids[1]));
    assert_eq!(picked(&by_the_clock(&stage, &[])), []);
    for id in &ids {
        stage.ws.rep(&format!("runs dead-letters requeue {id}"));
        assert_eq!(stage.ws.rep(&format!("runs dead-letters retry {id}")).code, 0);
    }
    stage.base("repertoire.toml", &CONTINUOUS.replace("test ! -f bad.txt", "true"));
    let again = by_the_clock(&stage, &[]);
    assert_eq!(picked(&again), both.map(|title| (title.to_owned(), "done".to_owned())), "{again}");
    assert_eq!(stage.github.labels(1), ["agent-task", "agent-done"]);
    let all = stage.ws.json("dlq list --all --json", "dlq.json");
    for letter in all["letters"].as_array().unwrap() {
        assert_eq!(letter["status"], "resolved", "{all}");
    }
}

#[test]
fn a_plan_has_failed_when_a_task_of_it_was_given_up_whatever_waits_for_that() {
    let toml = format!("{CONTINUOUS}plan = \"PLAN.md\"\n");
    let stage = with_tasks(&toml, "", |github| github);
    stage.base("PLAN.md", "- [ ] T001 a bad task\n- [ ] T002 a good task (blocked by T001)\n");
    let came = by_the_clock(&stage, &[]);
    assert_eq!(picked(&came), [("a bad task".to_owned(), "failed".to_owned())], "{came}");
    let letters = stage.ws.json("dlq list --json", "dlq.json");
    assert_eq!(letters["letters"][0]["class"], "substantive", "{letters}");
    assert_eq!(picked(&by_the_clock(&stage, &[])), []);
}

#[test]
fn a_red_base_is_told_and_kept_and_a_base_that_needs_setting_up_is_not_red() {
    let toml = format!("{CONTINUOUS}[plan.checks.ready]\ncommand = \"test -f ready.txt\"\n");
    let stage = with_tasks(&toml, "- [ ] a good task\n", |github| github);
    let came = by_the_clock(&stage, &[]);
    assert_eq!((&came["conclusion"], picked(&came)), (&json!("failed"), Vec::new()), "{came}");
    assert!(came["reason"].as_str().unwrap().contains("`main` is red"), "{came}");
    let letters = stage.ws.json("dlq list --json", "dlq.json");
    let letter = &letters["letters"][0];
    assert_eq!((&letter["source"], &letter["priority"]), (&json!("event"), &json!("high")));
    stage.base(
        "repertoire.toml",
        &toml.replace("[plan]\n", "[plan]\nsetup = \"touch ready.txt\"\n"),
    );
    stage.base(".gitignore", "ready.txt\n");
    // The letter knows of the clock; nothing else of the surroundings is needed.
    let done = retried(&stage, letter["id"].as_str().unwrap());
    assert_eq!((done.code, stage.output("conclusion")), (0, "done".to_owned()), "{done}");
    assert_eq!(stage.ws.json("dlq list --json", "dlq.json")["letters"], json!([]));
    let left = stage.git(&["branch", "--list", "repertoire-*"]);
    assert_eq!(left, "", "nothing stays of the check");
}

#[test]
fn a_run_over_tasks_ends_when_its_time_is_used_up() {
    let toml = CONTINUOUS.replace("delay = \"1s\"", "delay = \"3s\"\nmax_time = \"2s\"");
    let stage = with_tasks(&toml, "- [ ] a good task\n- [ ] another good task\n", |github| github);
    let came = by_the_clock(&stage, &[]);
    let reason = came["reason"].as_str().unwrap();
    assert!(picked(&came).len() <= 1 && reason.contains("time of the run is used up"), "{came}");
}

#[test]
fn who_may_only_ask_starts_no_work_on_tasks() {
    let toml = format!("[github]\nallowed_non_write_users = [\"rita\"]\n{CONTINUOUS}");
    let stage = with_tasks(&toml, "- [ ] a good task\n", |github| github);
    let ran = run(&stage, "workflow_dispatch", &dispatch(None, "rita"), &[]);
    assert_eq!((ran.code, stage.output("conclusion")), (0, "refused".to_owned()), "{ran}");
    assert!(ran.stdout.contains("works through tasks"), "{ran}");
    assert!(stage.github.write_calls().is_empty());
    assert_eq!(stage.ws.json("dlq list --json", "dlq.json")["letters"], json!([]));
}
