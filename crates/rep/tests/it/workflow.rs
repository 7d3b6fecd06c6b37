//! `rep workflow`: from the command line to the disk and back.

use serde_json::Value;

use crate::workspace::{Ran, Workspace};

const LOOP: &str = "\
parameters:
  topic: { required: true, description: What it is about. }
  depth: { type: integer, min: 1, max: 3, default: 1 }
checks:
  tests: { command: '{{ \"exit 0\" if depth == 1 else \"echo broken; exit 3\" }}', description: They pass. }
steps:
  - id: work
    title: Work
    actions: ['About {{ topic }}.']
    output: What was done.
    next: review
  - id: review
    title: Review
    actions: [Look.]
    next: gate
  - id: gate
    title: Gate
    decide:
      gate:
        name: The review
        reviews: [review]
        checks: [tests]
        schedule: [COULD, MUST]
        banner: Look afresh.
        stop: Do not go on.
        reverify: fresh
    next: { ok: end, fail: work }
";

/// A workspace with one workflow of the user's own.
fn workspace() -> Workspace {
    let ws = Workspace::new();
    ws.skill("home/.agents/skills/loop", "loop", "Goes round. Use when testing.");
    ws.write("home/.agents/skills/loop/workflow.yaml", LOOP);
    ws
}

fn start(ws: &Workspace, more: &[&str]) -> String {
    let args =
        [&["--json", "workflow", "start", "loop", "--param", "topic=<b> & 'c'"], more].concat();
    let ran = ws.rep_with(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let step: Value = serde_json::from_str(&ran.stdout).unwrap();
    step["run"].as_str().unwrap().to_owned()
}

fn step(ws: &Workspace, run: &str, more: &[&str]) -> Ran {
    ws.rep_with(&[&["--json", "workflow", "step", run], more].concat())
}

fn view(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr))
}

fn record(ws: &Workspace, run: &str, more: &[&str]) -> Ran {
    ws.rep_with(&[&["workflow", "record", run], more].concat())
}

const ITEM: &str = r#"{"id":"C1","scope":"all","check":"it holds","severity":"should"}"#;

/// At the gate of the first iteration, with one item recorded.
fn at_the_gate(ws: &Workspace, run: &str, verdict: &str) {
    assert_eq!(step(ws, run, &["--output", "done"]).code, 0);
    assert_eq!(record(ws, run, &[ITEM]).code, 0);
    assert_eq!(record(ws, run, &[verdict]).code, 0);
    assert_eq!(step(ws, run, &["--outcome", "ok"]).code, 0);
}

#[test]
fn a_run_goes_from_its_start_through_its_gate_to_its_end() {
    let ws = workspace();
    let run = start(&ws, &[]);
    at_the_gate(&ws, &run, "C1=PASS");
    let open = step(&ws, &run, &["--at", "3"]);
    assert_eq!(open.code, 1);
    assert!(open.stderr.contains("no verdict yet of check `tests`"), "{}", open.stderr);
    let ran = record(&ws, &run, &["--check", "tests"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ws.rep(&format!("workflow gate {run}")).code, 0);
    let end = view(&step(&ws, &run, &["--at", "3"]));
    assert_eq!(end["status"], "done");
    assert_eq!(ws.rep(&format!("workflow status {run}")).code, 0);
}

#[test]
fn the_same_report_twice_counts_once_and_another_is_refused() {
    let ws = workspace();
    let run = start(&ws, &[]);
    let first = step(&ws, &run, &["--at", "1", "--output", "a"]);
    let again = step(&ws, &run, &["--at", "1", "--output", "a"]);
    assert_eq!((first.stdout, first.code), (again.stdout, again.code));
    let other = step(&ws, &run, &["--at", "1", "--output", "b"]);
    assert_eq!(other.code, 1);
    assert!(other.stderr.contains("turn 1 is over"), "{}", other.stderr);
    let asked = view(&step(&ws, &run, &[]));
    assert_eq!((asked["turn"].as_u64(), asked["id"].as_str()), (Some(2), Some("review")));
}

#[test]
fn a_gate_believes_records_and_not_words() {
    let ws = workspace();
    let run = start(&ws, &[]);
    at_the_gate(&ws, &run, "C1=FAIL: it does not");
    record(&ws, &run, &["--check", "tests"]);
    let claimed = step(&ws, &run, &["--outcome", "ok"]);
    assert_eq!(claimed.code, 1);
    assert!(claimed.stderr.contains("is computed, and is `fail`"), "{}", claimed.stderr);
    let lowered = record(&ws, &run, &[r#"{"id":"C1","severity":"COULD"}"#]);
    assert!(lowered.stderr.contains("does not become COULD"), "{}", lowered.stderr);
    let changed = record(&ws, &run, &["C1=PASS"]);
    assert!(changed.stderr.contains("has failed in this iteration"), "{}", changed.stderr);
    let claimed = record(&ws, &run, &["--check", "tests=PASS"]);
    assert!(claimed.stderr.contains("only a run of it counts"), "{}", claimed.stderr);
    let back = view(&step(&ws, &run, &["--at", "3"]));
    assert_eq!(back["id"], "work");
    assert_eq!(back["findings"]["items"][0]["finding"], "it does not");
    // The next reviewer looks afresh.
    let review = view(&step(&ws, &run, &["--output", "again"]));
    assert_eq!(review["review"]["mode"], "fresh");
    assert_eq!(review["review"]["items"][0]["status"], "TODO");
    assert!(!review.to_string().contains("it does not"));
    let status = ws.rep(&format!("workflow status {run}")).stdout;
    assert!(!status.contains("it does not"));
    assert!(ws.rep(&format!("workflow status {run} --findings")).stdout.contains("it does not"));
}

#[test]
fn at_the_limit_a_person_decides_and_a_red_check_is_nobodys_to_accept() {
    let ws = workspace();
    let run = start(&ws, &["--param", "depth=2"]);
    at_the_gate(&ws, &run, "C1=PASS");
    assert_eq!(record(&ws, &run, &["--check", "tests"]).code, 0);
    let back = view(&step(&ws, &run, &["--at", "3"]));
    assert_eq!(back["findings"]["items"][0]["finding"], "exit code 3\nbroken");
    step(&ws, &run, &["--output", "again"]);
    assert_eq!(record(&ws, &run, &["C1=PASS", "--check", "tests"]).code, 0);
    step(&ws, &run, &["--outcome", "ok"]);
    let limit = step(&ws, &run, &["--at", "6"]);
    assert_eq!(limit.code, 1);
    let limit = view(&limit);
    assert_eq!(limit["status"], "waiting");
    let choices = limit["next"]["person"]["choices"].as_array().unwrap();
    let words: Vec<&str> = choices.iter().map(|one| one["choice"].as_str().unwrap()).collect();
    assert_eq!(words, ["continue", "must-only", "skip", "abort"]);
    let skipped = ws.rep(&format!("workflow resume {run} --choice skip"));
    assert!(skipped.stderr.contains("cannot be accepted: `tests`"), "{}", skipped.stderr);
    let resumed = ws.rep(&format!("--json workflow resume {run} --choice continue --note later"));
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    let status = ws.json(&format!("--json workflow status {run}"), "workflow-status.json");
    assert_eq!(status["decisions"][0]["choice"], "continue");
    assert_eq!(status["decisions"][0]["note"], "later");
}

#[test]
fn a_sub_agent_asks_and_is_asked_again_with_the_answer() {
    let ws = workspace();
    let run = start(&ws, &[]);
    let asked = ws.rep_with(&[
        "--json",
        "workflow",
        "ask",
        &run,
        r#"{"id":"q1","ask":"Which one?","options":["this","that"]}"#,
    ]);
    assert_eq!(view(&asked)["next"]["person"]["questions"][0]["ask"], "Which one?");
    assert_eq!(step(&ws, &run, &["--output", "x"]).code, 1);
    let answered = ws.rep_with(&["--json", "workflow", "resume", &run, "--answer", "q1=that"]);
    let answered = view(&answered);
    assert_eq!(answered["answers"][0]["answer"], "that");
    assert_eq!(answered["turn"], 1);
}

#[test]
fn lost_and_damaged_state_is_told_apart_and_left_as_it_is() {
    let ws = workspace();
    let missing = ws.rep("workflow step nothing --outcome ok");
    assert_eq!((missing.code, missing.stderr.contains("there is no run `nothing`")), (1, true));
    let run = start(&ws, &[]);
    let file = format!("data/workflows/{run}/state.json");
    ws.write(&file, "{\"version\":1,");
    let damaged = ws.rep(&format!("workflow step {run} --outcome ok --output x"));
    assert_eq!(damaged.code, 3);
    assert!(damaged.stderr.contains("is damaged, and is left as it is"), "{}", damaged.stderr);
    assert_eq!(ws.text(&file), "{\"version\":1,");
    assert!(ws.rep("workflow runs").stdout.contains("is damaged"));
    std::fs::remove_file(ws.path(&file)).unwrap();
    assert_eq!(ws.rep(&format!("workflow step {run}")).code, 3);
    ws.write(&file, "{\"version\":99}");
    assert!(ws.rep(&format!("workflow step {run}")).stderr.contains("later version"));
}

#[test]
fn a_run_goes_on_as_it_was_started_whatever_becomes_of_its_file() {
    let ws = workspace();
    let run = start(&ws, &[]);
    ws.write("home/.agents/skills/loop/workflow.yaml", "steps: []");
    assert_eq!(view(&step(&ws, &run, &["--output", "x"]))["id"], "review");
    let frozen = format!("data/workflows/{run}/workflow.json");
    let changed = ws.text(&frozen).replace("Look.", "Look away.");
    ws.write(&frozen, changed);
    let refused = step(&ws, &run, &["--outcome", "ok"]);
    assert!(refused.stderr.contains("is not the workflow that the run was started with"));
}

#[test]
fn a_project_that_nobody_trusts_runs_no_command() {
    let ws = Workspace::new();
    ws.skill("project/.agents/skills/loop", "loop", "Goes round. Use when testing.");
    ws.write("project/.agents/skills/loop/workflow.yaml", LOOP);
    let run = start(&ws, &[]);
    step(&ws, &run, &["--output", "x"]);
    let ran = record(&ws, &run, &["--check", "tests"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("is not trusted"), "{}", ran.stderr);
}

#[test]
fn lists_and_checks_have_their_schemas() {
    let ws = workspace();
    let run = start(&ws, &[]);
    let list = ws.json("--json workflow list", "workflow-list.json");
    assert_eq!(list["workflows"][0]["name"], "loop");
    assert_eq!(list["workflows"][0]["steps"], 3);
    ws.json("--json workflow show loop", "workflow-show.json");
    ws.json("--json workflow check loop", "workflow-check.json");
    ws.json("--json workflow runs", "workflow-runs.json");
    ws.json(&format!("--json workflow step {run}"), "workflow-step.json");
    ws.json(&format!("--json workflow gate {run}"), "workflow-gate.json");
}

#[test]
fn what_is_wrong_with_a_workflow_is_shown_in_its_file_by_check_lint_and_start() {
    let ws = workspace();
    let broken =
        LOOP.replace("fail: work", "fail: wrok").replace("        stop: Do not go on.\n", "");
    ws.write("home/.agents/skills/loop/workflow.yaml", broken);
    let check = ws.rep("workflow check loop");
    assert_eq!(check.code, 1);
    insta::assert_snapshot!(check.stdout, @"
    error[RS711]: gate `gate` lacks its stop condition (`stop`)
      --> [TMP]/home/.agents/skills/loop/workflow.yaml:19:7
       |
    19 |       gate:
       |       ^^^^
       |
       = help: Give `banner`, `stop` and `reverify`.

    error[RS704]: there is no step `wrok`; is `work` meant?
      --> [TMP]/home/.agents/skills/loop/workflow.yaml:26:28
       |
    26 |     next: { ok: end, fail: wrok }
       |                            ^^^^
       |
       = help: Name a step of the workflow, or `end`.

    1 workflow: 2 errors, 0 warnings
    ");
    let lint = ws.rep("lint");
    assert!(lint.stdout.contains("RS711") && lint.stdout.contains("RS704"), "{}", lint.stdout);
    let start = ws.rep("workflow start loop --param topic=x");
    assert_eq!(start.code, 1);
    assert!(start.stderr.contains("RS704"));
    assert!(ws.rep("workflow list").stdout.contains("broken"));
}

#[test]
fn the_stateless_form_answers_from_the_same_model() {
    let ws = workspace();
    let line = "--json workflow step loop --step 3 --total-steps 3 --qr-iteration 2 --qr-status fail -p topic=x";
    let gate = view(&ws.rep(line));
    assert_eq!(gate["gate"]["iteration"], 2);
    let back =
        "--json workflow step loop --step 1 --total-steps 3 --qr-fail --qr-iteration 2 -p topic=x";
    let work = view(&ws.rep(back));
    let command = work["next"]["ways"]["ways"][0]["command"]["line"].as_str().unwrap();
    assert!(command.contains("--qr-iteration 2"), "{command}");
    let wrong = ws.rep("workflow step loop --step 4 --total-steps 3 -p topic=x");
    assert_eq!((wrong.code, wrong.stderr.contains("from 1 to 3")), (2, true));
}

#[test]
fn a_workflow_to_start_from_passes_its_own_check_and_lint() {
    let ws = Workspace::new();
    assert_eq!(ws.rep("new tidy-up --workflow").code, 0);
    assert_eq!(ws.rep("workflow check tidy-up").code, 0);
    let lint = ws.rep("lint --strict");
    assert_eq!(lint.code, 0, "{}", lint.stdout);
    assert_eq!(ws.rep("workflow start tidy-up --param task=x").code, 0);
}
