//! `rep workflow`: from the command line to the journal and back.

use std::sync::Arc;

use repertoire_journal::{Event, Journal, NewRun, Payload, Run, RunId, RunStatus, Target};
use serde_json::{Value, json};

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

/// The journal of a workspace.
struct OpenJournal {
    runtime: tokio::runtime::Runtime,
    journal: Journal,
}

impl OpenJournal {
    fn new(ws: &Workspace) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let target = Target::File(ws.path("data/journal.sqlite"));
        let journal = runtime.block_on(Journal::open(&target, Arc::new(|| 1_000))).unwrap();
        OpenJournal { runtime, journal }
    }

    fn run(&self, id: &str) -> Option<Run> {
        self.runtime.block_on(self.journal.run(&RunId::known(id))).unwrap()
    }

    fn events(&self, id: &str) -> Vec<Event> {
        self.runtime.block_on(self.journal.events(&RunId::known(id), 0, 0)).unwrap()
    }

    /// Appends an event of the run's kind, as another version might have done.
    fn append(&self, id: &str, name: &str, data: Value) {
        let payload = Payload::KindEvent { name: name.to_owned(), data };
        let (run, seq) = (RunId::known(id), self.run(id).unwrap().seq);
        self.runtime.block_on(self.journal.append_attended(&run, seq, vec![payload])).unwrap();
    }

    /// Creates a copy of a run that was just started, with a change in its first event.
    fn copy_started(&self, from: &str, to: &str, change: impl FnOnce(&mut Value)) {
        let run = self.run(from).unwrap();
        let Payload::KindEvent { name, mut data } = self.events(from).remove(1).payload else {
            panic!("it was not started");
        };
        change(&mut data);
        let new = NewRun {
            id: RunId::known(to),
            kind: run.kind,
            name: run.name,
            workspace: run.workspace,
            labels: run.labels,
            priority: run.priority,
            limits: run.limits,
            request: run.request,
        };
        let payloads = vec![Payload::KindEvent { name, data }];
        self.runtime.block_on(self.journal.create_attended(new, payloads)).unwrap();
    }
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
    assert_eq!(back["findings"]["items"][0]["scope"], "echo broken; exit 3");
    step(&ws, &run, &["--output", "again"]);
    assert_eq!(record(&ws, &run, &["C1=PASS", "--check", "tests"]).code, 0);
    step(&ws, &run, &["--outcome", "ok"]);
    let limit = step(&ws, &run, &["--at", "6"]);
    assert_eq!(limit.code, 1);
    let limit = view(&limit);
    assert_eq!(limit["status"], "waiting");
    let choices = limit["next"]["person"]["choices"].as_array().unwrap();
    let words: Vec<&str> = choices.iter().map(|one| one["choice"].as_str().unwrap()).collect();
    assert_eq!(words, ["continue", "abort"]);
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
    let journal = OpenJournal::new(&ws);
    journal.copy_started(&run, "later", |data| data["version"] = json!(99));
    let later = ws.rep("workflow step later");
    assert_eq!((later.code, later.stderr.contains("later version")), (3, true), "{later}");
    journal.copy_started(&run, "other", |data| data["reached"]["digest"] = json!("sha256:0"));
    let other = ws.rep("workflow step other --outcome ok --output x");
    assert_eq!((other.code, other.stderr.contains("another version")), (3, true), "{other}");
    journal.append(&run, "input", json!({ "input": 1 }));
    let damaged = ws.rep(&format!("workflow step {run} --outcome ok --output x"));
    assert_eq!(damaged.code, 3);
    assert!(damaged.stderr.contains("is damaged, and is left as it is"), "{}", damaged.stderr);
    assert_eq!(journal.events(&run).len(), 3);
    assert!(ws.rep("workflow runs").stdout.contains("is damaged"));
    assert_eq!(ws.rep(&format!("workflow runs rm --force {run}")).code, 0);
}

#[test]
fn a_run_with_damaged_columns_is_refused_before_its_step_is_printed() {
    let ws = workspace();
    start(&ws, &["--id", "hurt"]);
    ws.tamper("UPDATE run SET name = 'other'");
    for line in ["step hurt", "step hurt --at 1 --output x", "status hurt", "resume hurt"] {
        let refused = ws.rep(&format!("workflow {line}"));
        assert_eq!((refused.code, refused.stdout.as_str()), (3, ""), "{line}: {refused}");
        assert!(refused.stderr.contains("the columns of run hurt"), "{line}: {refused}");
        assert!(refused.stderr.contains("rep runs rm --force hurt"), "{line}: {refused}");
    }
}

#[test]
fn a_damaged_run_is_not_the_one_that_is_resumed() {
    let ws = workspace();
    for id in ["sound", "columns", "event"] {
        start(&ws, &["--id", id]);
    }
    ws.tamper(
        "UPDATE run SET name = 'other' WHERE id = 'columns'; \
         UPDATE event SET at_ms = at_ms + 1 WHERE seq = 1 AND run = 'event'",
    );
    let resumed = ws.rep("--json workflow resume");
    assert_eq!((resumed.code, &view(&resumed)["run"]), (0, &json!("sound")), "{resumed}");
    for id in ["columns", "event"] {
        assert!(resumed.stderr.contains(&format!("skipped run {id}: ")), "{resumed}");
        assert!(resumed.stderr.contains(&format!("`rep runs rm --force {id}`")), "{resumed}");
    }
}

#[test]
fn a_missing_or_unknown_parameter_is_wrong_use() {
    let ws = workspace();
    let missing = ws.rep("workflow start loop");
    assert_eq!((missing.code, missing.stderr.contains("--param topic=")), (2, true), "{missing}");
    let unknown = ws.rep("workflow start loop --param topics=x");
    assert_eq!((unknown.code, unknown.stderr.contains("`topic`")), (2, true), "{unknown}");
}

#[test]
fn the_journal_has_every_accepted_report_once_and_the_status_of_the_run() {
    let ws = workspace();
    let run = start(&ws, &[]);
    let journal = OpenJournal::new(&ws);
    let stands = |status: RunStatus, events: usize| {
        let row = journal.run(&run).unwrap();
        assert_eq!((row.status, journal.events(&run).len()), (status, events), "{row:?}");
        row
    };
    let row = stands(RunStatus::Running, 2);
    assert_eq!((row.kind.as_str(), row.name.as_str()), ("workflow", "loop"));
    assert_eq!(row.workspace, ws.path("project").as_str());
    for _ in 0..2 {
        assert_eq!(step(&ws, &run, &["--at", "1", "--output", "a"]).code, 0);
        stands(RunStatus::Running, 3);
    }
    assert_eq!(step(&ws, &run, &["--at", "1", "--output", "b"]).code, 1);
    stands(RunStatus::Running, 3);
    assert_eq!(step(&ws, &run, &["--error", "no luck"]).code, 1);
    let row = stands(RunStatus::Waiting, 5);
    assert!(row.reason.unwrap().contains("no luck"));
    assert_eq!(row.choices, ["continue", "abort"]);
    assert_eq!(ws.rep(&format!("workflow resume {run} --choice continue")).code, 0);
    stands(RunStatus::Running, 7);
    assert_eq!(ws.rep(&format!("workflow resume {run} --choice abort")).code, 1);
    stands(RunStatus::Cancelled, 9);
    let late = step(&ws, &run, &["--outcome", "ok"]);
    assert_eq!((late.code, late.stderr.contains("a person has ended it")), (1, true), "{late}");
    stands(RunStatus::Cancelled, 9);
}

#[test]
fn a_run_is_found_by_the_start_of_its_name_and_removed_with_its_folder() {
    let ws = workspace();
    assert!(ws.rep("workflow runs").stdout.contains("There are no runs of workflows"));
    assert!(!ws.path("data/journal.sqlite").exists(), "looking creates nothing");
    for id in ["mine", "mine-2", "other"] {
        start(&ws, &["--id", id]);
    }
    ws.write("data/runs/mine/notes.txt", "kept beside the record");
    let several = ws.rep("workflow step m");
    assert_eq!(several.code, 1);
    assert!(several.stderr.contains("`m` may be any of mine, mine-2"), "{several}");
    assert_eq!(view(&step(&ws, "o", &[]))["run"], "other");
    assert_eq!(view(&step(&ws, "mine", &[]))["run"], "mine");
    assert_eq!(ws.rep("workflow step ther").code, 1);
    let removed = ws.rep("workflow runs rm --force mine o");
    assert_eq!(removed.stderr, "removed mine\nremoved other\n");
    assert!(!ws.path("data/runs/mine").exists() && !ws.path("data/runs/other").exists());
    let journal = OpenJournal::new(&ws);
    assert!(journal.run("mine").is_none() && journal.run("mine-2").is_some());
    let twice = ws.rep("workflow runs rm --force mine-2 mine-2");
    assert_eq!((twice.code, twice.stderr.contains("removed mine-2\n")), (1, true), "{twice}");
    assert_eq!(start(&ws, &["--id", "mine"]), "mine");
}

#[test]
fn a_run_goes_on_as_it_was_started_whatever_becomes_of_its_file() {
    let ws = workspace();
    let run = start(&ws, &[]);
    ws.write("home/.agents/skills/loop/workflow.yaml", "steps: []");
    assert_eq!(view(&step(&ws, &run, &["--output", "x"]))["id"], "review");
    OpenJournal::new(&ws).copy_started(&run, "changed", |data| {
        let frozen = data["workflow"].as_str().unwrap().replace("Look.", "Look away.");
        data["workflow"] = json!(frozen);
    });
    let refused = step(&ws, "changed", &["--output", "x"]);
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
      --> ~/.agents/skills/loop/workflow.yaml:19:7
       |
    19 |       gate:
       |       ^^^^
       |
       = help: Give `banner`, `stop` and `reverify`.

    error[RS704]: there is no step `wrok`; is `work` meant?
      --> ~/.agents/skills/loop/workflow.yaml:26:28
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

/// A skill of the old kind: a script that prints its steps, escapes nothing, and loses its counter on the way.
const SCRIPT: &str = r#"
import argparse
p = argparse.ArgumentParser()
p.add_argument("--step", type=int, required=True)
p.add_argument("--total-steps", type=int, required=True)
p.add_argument("--qr-iteration", type=int, default=1)
p.add_argument("--qr-fail", action="store_true")
p.add_argument("--qr-status", choices=["pass", "fail"])
a = p.parse_args()
def call(n, more=""):
    return f"python3 scripts/old_way.py --step {n} --total-steps {a.total_steps}{more}"
print(f'<step_header script="old_way" step="{a.step}" total="{a.total_steps}">Step {a.step}</step_header>')
if a.step == 1:
    print("<current_action>\nWork where a < b && c\n</current_action>")
    print(f"<invoke_after>\n{call(2)}\n</invoke_after>")
elif a.step == 2:
    print(f"<current_action>\nReview {a.qr_iteration}\n</current_action>")
    print(f"<invoke_after><if_pass>{call(3)}</if_pass><if_fail>{call(1, ' --qr-fail --qr-iteration 2')}</if_fail></invoke_after>")
else:
    print("<current_action>\nAll is done\n</current_action>")
"#;

/// A skill whose text calls a script; the script itself is the test's.
fn script_skill(ws: &Workspace, folder: &str, call: &str) {
    let name = folder.rsplit('/').next().unwrap();
    let fields = format!("name: {name}\ndescription: Old. Use when testing.");
    ws.write(&format!("{folder}/SKILL.md"), format!("---\n{fields}\n---\n\nRun:\n\n    {call}\n"));
}

/// Whether scripts can be run here. Where CI runs, they can: it installs what they need.
#[expect(clippy::print_stderr, reason = "what is skipped is said aloud")]
fn has_python() -> bool {
    let found = std::process::Command::new("python3").arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED: there is no python3, so skills of scripts are not run");
    }
    found
}

#[test]
fn a_skill_of_scripts_runs_as_it_is_and_its_loop_ends() {
    if !has_python() {
        return;
    }
    let ws = Workspace::new();
    let folder = "home/.claude/skills/old-way";
    script_skill(&ws, folder, "python3 scripts/old_way.py --step 1 --total-steps 3");
    ws.write(&format!("{folder}/scripts/old_way.py"), SCRIPT);
    let started = view(&ws.rep("--json workflow start old-way --id old"));
    assert_eq!(started["actions"][0]["text"], "Work where a < b && c");
    assert_eq!((started["step"].as_u64(), started["total"].as_u64()), (Some(1), Some(3)));
    let again = step(&ws, "old", &["--at", "1"]);
    assert_eq!(step(&ws, "old", &["--at", "1"]).stdout, again.stdout);
    assert_eq!(step(&ws, "old", &["--at", "1", "--outcome", "fail"]).code, 1);
    for iteration in 2..=5 {
        assert_eq!(step(&ws, "old", &["--outcome", "fail"]).code, 0);
        let review = view(&step(&ws, "old", &["--outcome", "ok"]));
        assert_eq!(review["actions"][0]["text"], format!("Review {iteration}"));
    }
    let stopped = step(&ws, "old", &["--outcome", "fail"]);
    assert_eq!((stopped.code, view(&stopped)["status"].as_str()), (1, Some("waiting")));
    let resumed = view(&ws.rep("--json workflow resume old --choice continue"));
    assert_eq!((resumed["status"].as_str(), resumed["step"].as_u64()), (Some("active"), Some(1)));
    step(&ws, "old", &["--outcome", "ok"]);
    step(&ws, "old", &["--outcome", "ok"]);
    assert_eq!(view(&step(&ws, "old", &["--at", "13"]))["status"], "done");
    assert!(ws.rep("workflow runs").stdout.contains("done"));
    // A run that has ended is not ended again.
    let aborted = ws.rep("workflow resume old --choice abort");
    assert_eq!(aborted.code, 1);
    assert!(aborted.stderr.contains("the run waits for no decision"), "{aborted}");
    assert_eq!(view(&step(&ws, "old", &[]))["status"], "done");
    let recorded = ws.rep("workflow record old X=PASS");
    assert!(recorded.stderr.contains("run old is of a script"), "{recorded}");
    let listed = ws.json("--json workflow list", "workflow-list.json");
    assert_eq!(listed["workflows"][0]["kind"], "script");
}

#[test]
fn a_script_runs_once_for_a_report_that_comes_several_times_at_once() {
    if !has_python() {
        return;
    }
    let ws = Workspace::new();
    let folder = "home/.claude/skills/old-way";
    script_skill(&ws, folder, "python3 scripts/old_way.py --step 1 --total-steps 3");
    let marking = format!("open('ran', 'a').write('.')\n{SCRIPT}");
    ws.write(&format!("{folder}/scripts/old_way.py"), marking);
    assert_eq!(ws.rep("workflow start old-way --id old").code, 0);
    let again = ws.rep("workflow start old-way --id old");
    assert!(again.stderr.contains("there is a run `old` already"), "{again}");
    assert_eq!(ws.text("project/ran"), ".", "an id that is taken runs nothing");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let next = step(&ws, "old", &["--at", "1"]);
                assert_eq!((next.code, view(&next)["turn"].as_u64()), (0, Some(2)), "{next}");
            });
        }
    });
    assert_eq!(ws.text("project/ran"), "..", "once for the start, and once for the report");
    assert_eq!(OpenJournal::new(&ws).events("old").len(), 3);
}

#[test]
fn a_script_of_a_stranger_is_not_run() {
    let ws = Workspace::new();
    let folder = "project/.claude/skills/old-way";
    script_skill(&ws, folder, "python3 scripts/old_way.py --step 1 --total-steps 3");
    ws.write(&format!("{folder}/scripts/old_way.py"), "open('mark', 'w')");
    let started = ws.rep("workflow start old-way");
    assert_eq!(started.code, 1);
    assert!(started.stderr.contains("is not trusted"), "{}", started.stderr);
    assert!(!ws.path("project/mark").exists());
}

#[test]
fn a_script_that_has_changed_since_it_was_trusted_is_not_run_again() {
    if !has_python() {
        return;
    }
    let ws = Workspace::new();
    let folder = "project/.claude/skills/old-way";
    script_skill(&ws, folder, "python3 scripts/old_way.py --step 1 --total-steps 3");
    ws.write(&format!("{folder}/scripts/old_way.py"), SCRIPT);
    let trusted = ws.rep("trust old-way");
    assert_eq!(trusted.code, 0, "{}", trusted.stderr);
    assert_eq!(ws.rep("workflow start old-way --id old").code, 0);
    ws.write(&format!("{folder}/scripts/old_way.py"), format!("open('mark', 'w')\n{SCRIPT}"));
    let refused = step(&ws, "old", &["--at", "1"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("is not trusted"), "{}", refused.stderr);
    assert!(!ws.path("project/mark").exists());
    // It can be looked at, and ended.
    assert_eq!(step(&ws, "old", &[]).code, 0);
    for _ in 0..2 {
        assert_eq!(view(&ws.rep("--json workflow resume old --choice abort"))["status"], "aborted");
    }
    assert_eq!(ws.rep("trust old-way").code, 0);
    assert_eq!(step(&ws, "old", &["--at", "1"]).code, 1);
    assert_eq!(ws.rep("workflow resume old --choice continue").code, 1);
    assert!(!ws.path("project/mark").exists(), "a run that was ended runs nothing");
}

#[test]
fn a_check_that_was_run_before_the_run_went_on_does_not_count() {
    let ws = workspace();
    let slow = LOOP.replace("exit 0", "touch ran; while [ ! -e over ]; do sleep 0.05; done");
    ws.write("home/.agents/skills/loop/workflow.yaml", slow);
    let run = start(&ws, &[]);
    step(&ws, &run, &["--output", "x"]);
    record(&ws, &run, &[ITEM]);
    let late = std::thread::scope(|scope| {
        let late = scope.spawn(|| record(&ws, &run, &["--check", "tests"]));
        let started = std::time::Instant::now();
        while !ws.path("project/ran").exists() && started.elapsed().as_secs() < 60 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(step(&ws, &run, &["--outcome", "ok"]).code, 0);
        ws.write("project/over", "");
        late.join().unwrap()
    });
    assert_eq!(late.code, 1, "{}", late.stderr);
    assert!(late.stderr.contains("turn 2 is over"), "{}", late.stderr);
}

#[test]
fn what_agents_report_does_nothing_to_a_terminal() {
    let ws = workspace();
    let run = start(&ws, &[]);
    assert_eq!(step(&ws, &run, &["--error", "bad \x1b]0;title\x07 \u{202e}end"]).code, 1);
    for command in ["status", "gate", "step --format text", "step --format xml", "resume"] {
        let (command, more) = command.split_once(' ').unwrap_or((command, ""));
        let shown = ws.rep(format!("workflow {command} {run} {more}").trim());
        for text in [&shown.stdout, &shown.stderr] {
            assert!(!text.contains(['\x1b', '\x07']), "{command}: {text:?}");
        }
    }
    assert!(!ws.rep("workflow runs").stdout.contains('\x1b'));
}

#[test]
fn a_run_is_shown_with_its_step_its_parameters_and_what_was_reported() {
    let ws = workspace();
    start(&ws, &["--id", "mine"]);
    let reported = step(&ws, "mine", &["--output", "It is made."]);
    assert_eq!(reported.code, 0, "{reported}");
    let shown = ws.rep("runs show mine").stdout;
    for line in [
        "  step       review (turn 2)\n",
        "  parameter  topic = <b> & 'c'\n",
        "  begins at step work\n",
        "  the step is done; now at step review, turn 2\n",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert!(!shown.contains("fingerprint"), "{shown}");
}

#[test]
fn a_start_that_fails_leaves_nothing() {
    let ws = workspace();
    let run = start(&ws, &["--id", "mine"]);
    let again = ws.rep("workflow start loop --param topic=x --id mine");
    assert_eq!(again.code, 1);
    assert!(again.stderr.contains("there is a run `mine` already"), "{}", again.stderr);
    let runs = ws.json("--json workflow runs", "workflow-runs.json");
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(1));
    assert_eq!(runs["broken"].as_array().map(Vec::len), Some(0));
    assert_eq!(run, "mine");
}

#[test]
fn words_that_stand_for_something_are_not_said_themselves() {
    let ws = workspace();
    let run = start(&ws, &[]);
    let said = step(&ws, &run, &["--at", "1", "--outcome", "ok", "--output", "TEXT"]);
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("stands for what you have to say"), "{}", said.stderr);
    assert_eq!(step(&ws, &run, &["--error", "WHY"]).code, 2);
    assert_eq!(ws.rep("workflow start loop -p topic=").code, 2);
    assert_eq!(view(&step(&ws, &run, &[]))["turn"], 1);
}

#[test]
fn a_run_that_was_started_before_its_skill_was_trusted_can_be_finished_after() {
    let ws = Workspace::new();
    ws.skill("project/.agents/skills/loop", "loop", "Goes round. Use when testing.");
    ws.write("project/.agents/skills/loop/workflow.yaml", LOOP);
    let run = start(&ws, &[]);
    at_the_gate(&ws, &run, "C1=PASS");
    assert_eq!(record(&ws, &run, &["--check", "tests"]).code, 1);
    assert_eq!(ws.rep("trust loop").code, 0);
    let ran = record(&ws, &run, &["--check", "tests"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn nothing_is_decided_for_a_run_that_was_not_named_where_there_are_several() {
    let ws = workspace();
    let first = start(&ws, &["--id", "first"]);
    let second = start(&ws, &["--id", "second"]);
    let looked = ws.rep("workflow resume");
    assert!(looked.stderr.contains("also open here"), "{}", looked.stderr);
    let decided = ws.rep("workflow resume --choice abort");
    assert_eq!(decided.code, 2);
    assert!(decided.stderr.contains(&first) && decided.stderr.contains(&second));
    OpenJournal::new(&ws).append("second", "input", json!({}));
    let looked = ws.rep("workflow resume");
    assert!(looked.stderr.contains("skipped run second: "), "{}", looked.stderr);
}

#[test]
fn at_the_limit_a_person_sees_what_failed_and_only_what_can_be_chosen() {
    let ws = workspace();
    let run = start(&ws, &[]);
    at_the_gate(&ws, &run, "C1=FAIL: it does not");
    record(&ws, &run, &["--check", "tests"]);
    step(&ws, &run, &["--at", "3"]);
    step(&ws, &run, &["--output", "again"]);
    let must = r#"{"id":"C1","severity":"MUST"}"#;
    assert_eq!(record(&ws, &run, &[must]).code, 0);
    assert_eq!(record(&ws, &run, &["C1=FAIL: still not", "--check", "tests"]).code, 0);
    step(&ws, &run, &["--outcome", "ok"]);
    let limit = view(&step(&ws, &run, &["--at", "6"]));
    assert_eq!(limit["review"]["items"][0]["finding"], "still not");
    let choices = limit["next"]["person"]["choices"].as_array().unwrap();
    let words: Vec<&str> = choices.iter().map(|one| one["choice"].as_str().unwrap()).collect();
    assert_eq!(words, ["continue", "skip", "abort"]);
}

#[test]
fn what_a_script_takes_along_is_what_was_said() {
    if !has_python() {
        return;
    }
    let ws = Workspace::new();
    let folder = "home/.claude/skills/thinker";
    script_skill(
        &ws,
        folder,
        "python3 scripts/thinker.py --step 1 --total-steps 2 --thoughts \"\"",
    );
    ws.write(
        &format!("{folder}/scripts/thinker.py"),
        r#"
import sys
step = sys.argv[sys.argv.index("--step") + 1]
thoughts = sys.argv[sys.argv.index("--thoughts") + 1]
print(f'<step_header script="thinker" step="{step}" total="2">Think</step_header>')
print(f"<current_action>\nthoughts: {thoughts}\n</current_action>")
if step == "1":
    print('<invoke_after>\npython3 scripts/thinker.py --step 2 --total-steps 2 --thoughts "your thoughts so far"\n</invoke_after>')
"#,
    );
    let started = view(&ws.rep("--json workflow start thinker --id t"));
    let command = started["next"]["ways"]["ways"][0]["command"]["line"].as_str().unwrap();
    assert!(command.ends_with("--set thoughts=VALUE"), "{command}");
    let next = step(&ws, "t", &["--at", "1", "--set", "thoughts=it is the cache"]);
    assert_eq!(view(&next)["actions"][0]["text"], "thoughts: it is the cache", "{}", next.stderr);
    assert_eq!(step(&ws, "t", &["--at", "1", "--set", "thoughts=other"]).code, 1);
    assert_eq!(step(&ws, "t", &["--output", "x"]).code, 2);
}

#[test]
fn the_schema_for_editors_takes_what_the_checker_takes_and_refuses_what_it_cannot_read() {
    use repertoire_text::Span;
    use repertoire_text::yaml::{Limits, parse};
    let ws = Workspace::with_shipped_pack();
    let schema: Value = serde_json::from_str(&ws.rep("workflow schema").stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let limits = Limits { depth_max: 32, nodes_max: 20_000, repairs_max: 0 };
    let json = |text: &str| parse(text, Span::new(0, text.len()), &limits).unwrap().to_json();
    let checked = ws.json("--json workflow check", "workflow-check.json");
    let files = checked["workflows"].as_array().unwrap();
    assert!(files.len() >= 24, "{}", files.len());
    for file in files {
        let path = file["path"].as_str().unwrap().replace("[TMP]/", "");
        let wrong: Vec<String> = validator
            .iter_errors(&json(&ws.text(&path)))
            .map(|error| format!("{path}{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(wrong, Vec::<String>::new());
    }
    for (from, to) in [
        ("    title: Work\n", ""),
        ("    title: Work\n", "    titel: Work\n"),
        ("reverify: fresh", "reverify: sometimes"),
        ("type: integer", "type: whole"),
        ("next: review", "next: [review]"),
    ] {
        let broken = LOOP.replace(from, to);
        assert!(!validator.is_valid(&json(&broken)), "{to}");
    }
    assert!(validator.is_valid(&json(LOOP)));
}
