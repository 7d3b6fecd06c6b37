//! Gates of workflows.

use serde_json::Value;

use crate::scene::{Ran, Scene, ran};
use crate::{Guarantee, Tried};

pub(crate) fn guarantees() -> Vec<Guarantee> {
    let once = |holds, attack| Guarantee { holds, tried: Tried::Once, attack };
    vec![
        once(
            "a failed gate of an old script whose routing leads on stops for a person",
            a_failed_gate_of_a_script,
        ),
        once("routing that is not understood stops for a person", routing_not_understood),
        once("INCOMPLETE does not complete a workflow", incomplete_is_not_complete),
        once("the last step completes nothing if its routing says more", a_last_step_with_routing),
        once("a planner run passes no gate without a plan file", no_gate_without_a_plan),
        once("a planner run passes its gate with a plan that is valid", a_valid_plan_passes),
        once(
            "a gate that no declared check confirms needs a person, and is shown as self-reviewed",
            a_gate_without_checks,
        ),
        once(
            "a gate is accepted only by the answer to the engine's own question about it",
            an_answer_to_another_question,
        ),
        once(
            "a worker that has used up its questions cannot keep a person from being asked about a gate",
            a_worker_that_uses_up_the_questions,
        ),
        once(
            "a green check proves only the work that it has looked at: it is run again after a change",
            a_stale_green_check,
        ),
        once("a stale green check is told from a current one by `rep workflow gate`", a_stale_gate),
        once(
            "a change that git does not notice makes a green check stale",
            a_change_that_git_does_not_notice,
        ),
        once(
            "a change in a nested repository makes a green check stale",
            a_change_in_a_nested_repository,
        ),
        once(
            "without git, a green check is run again when the gate is left",
            a_stale_check_without_git,
        ),
        once(
            "a check that changes the work while it runs proves nothing",
            a_check_that_changes_the_work,
        ),
        once(
            "a person who skips failed items does not accept a check that has become red",
            a_stale_check_behind_a_choice,
        ),
        once("ignored files that a check writes keep it green", a_check_that_writes_ignored_files),
        once("a value in a check command begins no other command", a_value_that_is_a_command),
        once(
            "a workflow whose check uses what the worker sets is refused",
            a_check_that_the_worker_decides,
        ),
    ]
}

fn rep(scene: &Scene, args: &[&str]) -> Ran {
    ran(&scene.rep_command(args).output().unwrap())
}

/// The state of a run and the id of its step.
fn standing(scene: &Scene, run: &str) -> (String, String) {
    let ran = rep(scene, &["workflow", "status", run, "--json"]);
    let status: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match status.get("run").filter(|run| run.is_object()) {
        Some(run) => (text(&run["state"]), text(&run["step"])),
        None => (text(&status["status"]), text(&status["id"])),
    }
}

/// A skill whose script prints this for step 1, and a plain step for every other.
fn script_skill(scene: &Scene, name: &str, first: &str) {
    let skill = format!(
        "---\nname: {name}\ndescription: Steps of a script. Use when asked.\n---\n\n\
         `python3 scripts/{name}.py --step 1 --total-steps 3`\n"
    );
    scene.write(&format!("home/.claude/skills/{name}/SKILL.md"), skill);
    let script = format!(
        "import sys\nstep = sys.argv[sys.argv.index('--step') + 1]\n\
         if step == '1':\n    print('''{first}''')\nelse:\n    \
         print('STEP ' + step + '/3: More\\nDO:\\n  Work.\\n\\nNEXT: Step 3')\n"
    );
    scene.write(&format!("home/.claude/skills/{name}/scripts/{name}.py"), script);
}

/// Starts a script and tries to leave its first step.
fn tried_to_leave(scene: &Scene, name: &str) {
    let started = rep(scene, &["workflow", "start", name, "--id", name]);
    assert!(
        started.stdout.contains("STEP 1") || started.stdout.contains("step=\"1\""),
        "{started:?}"
    );
    rep(scene, &["workflow", "step", name, "--at", "1"]);
    rep(scene, &["workflow", "step", name, "--at", "1", "--outcome", "ok"]);
    assert_eq!(standing(scene, name), ("waiting".to_owned(), "step-1".to_owned()));
    let resumed = rep(scene, &["workflow", "resume", name, "--choice", "continue"]);
    assert_eq!(standing(scene, name).1, "step-2", "a person may go on: {resumed:?}");
}

fn a_failed_gate_of_a_script(scene: &Scene) {
    script_skill(
        scene,
        "oldgate",
        "<step_header script=\"oldgate\" step=\"1\" total=\"3\">Review Gate</step_header>\n\
         <gate_result status=\"fail\">GATE FAILED</gate_result>\n\
         <INVOKE_AFTER>\npython3 scripts/oldgate.py --step 2 --total-steps 3\n</INVOKE_AFTER>",
    );
    tried_to_leave(scene, "oldgate");
}

fn routing_not_understood(scene: &Scene) {
    script_skill(scene, "lost", "STEP 1/3: Lost\nDO:\n  Work.\n\nNEXT: wherever you like");
    tried_to_leave(scene, "lost");
}

fn incomplete_is_not_complete(scene: &Scene) {
    script_skill(
        scene,
        "unfinished",
        "<step_header script=\"unfinished\" step=\"1\" total=\"3\">Work</step_header>\n\
         <current_action>Work.</current_action>\n\
         <invoke_after>INCOMPLETE: ask the user how to go on</invoke_after>",
    );
    tried_to_leave(scene, "unfinished");
}

fn a_last_step_with_routing(scene: &Scene) {
    script_skill(
        scene,
        "last",
        "<step_header script=\"last\" step=\"3\" total=\"3\">Review</step_header>\n\
         <current_action>Review.</current_action>\n\
         <invoke_after>If the reviewer found anything, return to step 1; otherwise hand over to the user</invoke_after>",
    );
    rep(scene, &["workflow", "start", "last", "--id", "last"]);
    rep(scene, &["workflow", "step", "last", "--outcome", "ok"]);
    assert_eq!(standing(scene, "last").0, "waiting");
}

/// Goes by hand to the first gate of the planner, with every item recorded as passed by whoever does the work.
fn to_the_first_gate(scene: &Scene) {
    rep(scene, &["workflow", "start", "planner", "--id", "p", "--param", "task=Build it"]);
    for turn in ["1", "2", "3", "4"] {
        rep(scene, &["workflow", "step", "p", "--at", turn, "--output", "Something."]);
    }
    rep(scene, &["workflow", "step", "p", "--at", "5", "--set", "plan_kind=code"]);
    let item = r#"{"id":"C1","check":"It is complete","severity":"MUST","status":"PASS"}"#;
    rep(scene, &["workflow", "record", "p", item]);
    rep(scene, &["workflow", "step", "p", "--at", "6"]);
    assert_eq!(standing(scene, "p").1, "gate_completeness");
}

fn no_gate_without_a_plan(scene: &Scene) {
    to_the_first_gate(scene);
    rep(scene, &["workflow", "record", "p", "--check", "plan=PASS"]);
    rep(scene, &["workflow", "step", "p", "--at", "7"]);
    let (_, step) = standing(scene, "p");
    assert_ne!(step, "developer_fills_diffs");
    scene.write("project/plan.md", "# Plan: nothing to do\n");
    rep(scene, &["workflow", "step", "p", "--at", "7"]);
    assert_ne!(standing(scene, "p").1, "developer_fills_diffs");
}

fn a_valid_plan_passes(scene: &Scene) {
    scene.write("project/plan.md", "# Plan: it works\n\n## Tasks\n- [ ] M-001: Build it\n");
    to_the_first_gate(scene);
    let left = rep(scene, &["workflow", "step", "p", "--at", "7"]);
    assert_eq!(standing(scene, "p").1, "developer_fills_diffs", "{left:?}");
}

const UNCHECKED: &str = "\
description: Work and a gate.
steps:
  - id: work
    title: Work
    next: look
  - id: look
    title: Look
    next: gate
  - id: gate
    title: Gate
    decide:
      gate:
        name: The work
        reviews: [look]
        banner: Look.
        stop: Nothing else.
        reverify: fresh
    next: { ok: end, fail: work }
";

/// A worker asks another question under the name of the engine's.
fn an_answer_to_another_question(scene: &Scene) {
    to_the_unchecked_gate(scene);
    let asked = r#"{"id":"accept-gate","ask":"Which indentation do you accept: tabs?","options":["accept","use spaces"]}"#;
    rep(scene, &["workflow", "ask", "u", asked]);
    rep(scene, &["workflow", "resume", "u", "--answer", "accept-gate=accept"]);
    rep(scene, &["workflow", "step", "u", "--at", "3"]);
    assert_eq!(standing(scene, "u"), ("waiting".to_owned(), "gate".to_owned()));
}

/// A worker that has asked as often as it may does not keep the engine from asking.
fn a_worker_that_uses_up_the_questions(scene: &Scene) {
    to_the_unchecked_gate(scene);
    for id in ["a", "b", "c"] {
        let asked = format!(r#"{{"id":"{id}","ask":"Which?","options":["x","y"]}}"#);
        rep(scene, &["workflow", "ask", "u", &asked]);
        rep(scene, &["workflow", "resume", "u", "--answer", &format!("{id}=x")]);
    }
    rep(scene, &["workflow", "step", "u", "--at", "3"]);
    assert_eq!(standing(scene, "u"), ("waiting".to_owned(), "gate".to_owned()));
}

fn a_gate_without_checks(scene: &Scene) {
    to_the_unchecked_gate(scene);
    rep(scene, &["workflow", "step", "u", "--at", "3"]);
    assert_eq!(standing(scene, "u"), ("waiting".to_owned(), "gate".to_owned()));
    rep(scene, &["workflow", "resume", "u", "--answer", "accept-gate=accept"]);
    rep(scene, &["workflow", "step", "u", "--at", "3"]);
    assert_eq!(standing(scene, "u").0, "done");
}

fn to_the_unchecked_gate(scene: &Scene) {
    let skill = "---\nname: unchecked\ndescription: Work and a gate. Use when asked.\n---\nWork.\n";
    scene.write("home/.claude/skills/unchecked/SKILL.md", skill);
    scene.write("home/.claude/skills/unchecked/workflow.yaml", UNCHECKED);
    rep(scene, &["workflow", "start", "unchecked", "--id", "u"]);
    rep(scene, &["workflow", "step", "u", "--at", "1"]);
    let item = r#"{"id":"C1","check":"It is done","severity":"MUST","status":"PASS"}"#;
    rep(scene, &["workflow", "record", "u", item]);
    let gate = rep(scene, &["workflow", "step", "u", "--at", "2"]);
    assert!(gate.stdout.contains("self-reviewed"), "{gate:?}");
}

/// A trusted workflow of two steps whose gate needs the check `tests`, and fails this often before a person is asked.
fn checked_skill(scene: &Scene, name: &str, head: &str, work: &str, limit: u32) {
    let skill =
        format!("---\nname: {name}\ndescription: Work with a gate. Use when asked.\n---\nWork.\n");
    scene.write(&format!("home/.claude/skills/{name}/SKILL.md"), skill);
    let workflow = format!(
        "description: Work and a gate.\n{head}steps:\n  - id: work\n    title: Work\n{work}    next: gate\n  \
         - id: gate\n    title: Gate\n    decide:\n      gate:\n        name: The work\n        reviews: [work]\n        \
         checks: [tests]\n        banner: Look.\n        stop: Nothing else.\n        reverify: fresh\n        \
         limit: {limit}\n    next: {{ ok: end, fail: work }}\n"
    );
    scene.write(&format!("home/.claude/skills/{name}/workflow.yaml"), workflow);
    rep(scene, &["trust", name]);
}

/// A run at its gate, with a green check and an item that has this status.
fn at_the_green_gate(scene: &Scene, command: &str, status: &str) {
    let head = format!("checks:\n  tests: {{ command: {command:?} }}\n");
    checked_skill(scene, "stale", &head, "", if status == "FAIL" { 1 } else { 3 });
    rep(scene, &["workflow", "start", "stale", "--id", "g"]);
    let item = format!(
        r#"{{"id":"C1","check":"It is done","severity":"MUST","status":"{status}","finding":"seen"}}"#
    );
    rep(scene, &["workflow", "record", "g", &item]);
    let ran = rep(scene, &["workflow", "record", "g", "--check", "tests"]);
    assert!(ran.stdout.contains("PASS  check"), "{ran:?}");
    rep(scene, &["workflow", "step", "g", "--at", "1"]);
    assert_eq!(standing(scene, "g").1, "gate");
}

fn remove(scene: &Scene, file: &str) {
    std::fs::remove_file(scene.path(file)).unwrap();
}

fn a_stale_green_check(scene: &Scene) {
    scene.write("project/ok-file", "");
    at_the_green_gate(scene, "test -e ok-file", "PASS");
    remove(scene, "project/ok-file");
    scene.write("project/README.md", "broken\n");
    let left = rep(scene, &["workflow", "step", "g", "--at", "2"]);
    assert_eq!(standing(scene, "g").1, "work", "{left:?}");
    assert!(left.stdout.contains("the work is not known to be the same"), "{left:?}");
    // The same work as before passes.
    scene.write("project/ok-file", "");
    rep(scene, &["workflow", "record", "g", "C1=PASS"]);
    rep(scene, &["workflow", "record", "g", "--check", "tests"]);
    rep(scene, &["workflow", "step", "g", "--at", "3"]);
    let left = rep(scene, &["workflow", "step", "g", "--at", "4"]);
    assert_eq!(standing(scene, "g").0, "done", "{left:?}");
}

fn a_stale_gate(scene: &Scene) {
    scene.write("project/ok-file", "");
    at_the_green_gate(scene, "test -e ok-file", "PASS");
    assert_eq!(rep(scene, &["workflow", "gate", "g"]).code, 0);
    remove(scene, "project/ok-file");
    let gate = rep(scene, &["workflow", "gate", "g"]);
    assert_eq!(gate.code, 1, "{gate:?}");
    assert!(gate.stderr.contains("rep workflow record g --check tests"), "{gate:?}");
}

/// A worker excludes a file where git looks and a reader of the work does not, and hides another change from the index.
fn a_change_that_git_does_not_notice(scene: &Scene) {
    scene.write("project/ok-file", "");
    scene.write("project/.git/info/exclude", "ok-file\n");
    scene.git("project", &["update-index", "--assume-unchanged", "README.md"]);
    at_the_green_gate(scene, "grep -q project README.md && test -e ok-file", "PASS");
    scene.write("project/README.md", "# A pr-ject\n");
    let left = rep(scene, &["workflow", "step", "g", "--at", "2"]);
    assert_eq!(standing(scene, "g").1, "work", "{left:?}");
    scene.write("project/README.md", "# A project\n");
    rep(scene, &["workflow", "record", "g", "C1=PASS"]);
    rep(scene, &["workflow", "record", "g", "--check", "tests"]);
    rep(scene, &["workflow", "step", "g", "--at", "3"]);
    remove(scene, "project/ok-file");
    let left = rep(scene, &["workflow", "step", "g", "--at", "4"]);
    assert_ne!(standing(scene, "g").0, "done", "{left:?}");
}

fn a_change_in_a_nested_repository(scene: &Scene) {
    scene.write("project/vendor/deep/ok-file", "");
    scene.git("project/vendor", &["init", "--quiet"]);
    let identity = ["-c", "user.name=A", "-c", "user.email=a@example.com"];
    let commit = ["commit", "--quiet", "--allow-empty", "--message", "Start"];
    scene.git("project/vendor", &[&identity[..], &commit[..]].concat());
    at_the_green_gate(scene, "test -e vendor/deep/ok-file", "PASS");
    remove(scene, "project/vendor/deep/ok-file");
    let left = rep(scene, &["workflow", "step", "g", "--at", "2"]);
    assert_eq!(standing(scene, "g").1, "work", "{left:?}");
}

fn a_stale_check_without_git(scene: &Scene) {
    std::fs::rename(scene.path("project/.git"), scene.path("outside/git")).unwrap();
    scene.write("project/ok-file", "");
    at_the_green_gate(scene, "test -e ok-file", "PASS");
    remove(scene, "project/ok-file");
    let left = rep(scene, &["workflow", "step", "g", "--at", "2"]);
    assert_eq!(standing(scene, "g").1, "work", "{left:?}");
}

fn a_check_that_changes_the_work(scene: &Scene) {
    at_the_green_gate(scene, "date +%N > report.txt", "PASS");
    rep(scene, &["workflow", "step", "g", "--at", "2"]);
    assert_eq!(standing(scene, "g"), ("waiting".to_owned(), "gate".to_owned()));
}

fn a_stale_check_behind_a_choice(scene: &Scene) {
    scene.write("project/ok-file", "");
    at_the_green_gate(scene, "test -e ok-file", "FAIL");
    rep(scene, &["workflow", "step", "g", "--at", "2"]);
    assert_eq!(standing(scene, "g").0, "waiting");
    remove(scene, "project/ok-file");
    let skipped = rep(scene, &["workflow", "resume", "g", "--choice", "skip"]);
    assert_eq!(standing(scene, "g").0, "waiting", "{skipped:?}");
    scene.write("project/ok-file", "");
    rep(scene, &["workflow", "resume", "g", "--choice", "skip"]);
    assert_eq!(standing(scene, "g").0, "done");
}

fn a_check_that_writes_ignored_files(scene: &Scene) {
    scene.write("project/.gitignore", "target/\n");
    // It fails when it is run a second time.
    at_the_green_gate(scene, "mkdir target && date > target/built", "PASS");
    let left = rep(scene, &["workflow", "step", "g", "--at", "2"]);
    assert_eq!(standing(scene, "g").0, "done", "{left:?}");
}

/// The value comes with the start of the run, and is still only a word.
fn a_value_that_is_a_command(scene: &Scene) {
    checked_skill(
        scene,
        "words",
        "parameters: { target: {} }\nchecks:\n  tests: { command: \"test -e nothing-{{ target }}\" }\n",
        "",
        3,
    );
    let started = rep(scene, &["workflow", "start", "words", "--id", "t", "-p", "target=x; true"]);
    assert_eq!(started.code, 0, "{started:?}");
    let ran = rep(scene, &["workflow", "record", "t", "--check", "tests"]);
    assert!(ran.stdout.contains("FAIL  check"), "{ran:?}");
}

fn a_check_that_the_worker_decides(scene: &Scene) {
    checked_skill(
        scene,
        "chosen",
        "parameters: { target: {} }\nchecks:\n  tests: { command: \"test -e nothing-{{ target }}\" }\n",
        "    sets: [target]\n",
        3,
    );
    let checked = rep(scene, &["workflow", "check", "chosen"]);
    assert!(checked.code == 1 && format!("{checked:?}").contains("RS712"), "{checked:?}");
    rep(scene, &["workflow", "start", "chosen", "--id", "c"]);
    rep(scene, &["workflow", "step", "c", "--at", "1", "--set", "target=x; true"]);
    let ran = rep(scene, &["workflow", "record", "c", "--check", "tests"]);
    assert!(!ran.stdout.contains("PASS  check"), "{ran:?}");
}
