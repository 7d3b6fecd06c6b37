//! What goes wrong with programs that tools start: each ends in bounded time with a clear result and no process left.

use std::time::{Duration, Instant};

use repertoire_agent::permission::{PermissionMode, RunPermissions};
use repertoire_agent::{AgentRunStatus, EventKind, RunOptions};
use repertoire_scripted::{ModelScript, ScriptedTurn};
use serde_json::{Value, json};

use crate::workspace::Workspace;

const BOUND: Duration = Duration::from_secs(20);

/// Runs one command, and gives what the model was told about it.
async fn command(arguments: Value) -> (Workspace, String) {
    let script = ModelScript::new()
        .turn(ScriptedTurn::tool("bash", arguments))
        .turn(ScriptedTurn::text("Done."));
    let workspace = Workspace::new(script).await;
    let options = RunOptions {
        permissions: Some(RunPermissions::new(PermissionMode::Full)),
        ..RunOptions::default()
    };
    let begun = Instant::now();
    let report = workspace.system().run("default", "Go", options).await;
    assert!(begun.elapsed() < BOUND, "it took {:?}", begun.elapsed());
    assert_eq!(
        (report.status, report.text.as_str()),
        (AgentRunStatus::Done, "Done."),
        "{report:?}"
    );
    let told = workspace.requests()[1].body["messages"][2]["content"][0].clone();
    let text = told["content"].as_str().map_or_else(|| told["content"].to_string(), str::to_owned);
    (workspace, text)
}

/// Whether a process with this argument is there.
fn is_running(argument: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| {
        let mut line = Vec::new();
        let file = std::fs::File::open(process.path().join("cmdline")).ok()?;
        std::io::Read::read_to_end(&mut std::io::Read::take(file, 64 * 1024), &mut line).ok()?;
        Some(line)
    });
    let mut lines = lines;
    lines.any(|line| String::from_utf8_lossy(&line).split('\0').any(|word| word == argument))
}

#[track_caller]
fn nothing_left(argument: &str) {
    for _ in 0..50 {
        if !is_running(argument) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("a process with {argument} is still there");
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_and_the_model_is_told() {
    let (_, told) = command(json!({"command": "sleep 987.001", "timeout_ms": 300})).await;
    assert!(told.contains("stopped after 0.3 s"), "{told}");
    nothing_left("987.001");
}

#[tokio::test]
async fn a_command_that_ignores_the_request_to_end_is_killed() {
    let command_line = "trap '' TERM; while :; do sleep 987.002; done";
    let (_, told) = command(json!({"command": command_line, "timeout_ms": 300})).await;
    assert!(told.contains("stopped after 0.3 s"), "{told}");
    nothing_left("987.002");
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipe_holds_up_nobody() {
    let (_, told) = command(json!({"command": "sleep 987.003 & echo done"})).await;
    assert!(told.contains("done"), "{told}");
    nothing_left("987.003");
}

#[tokio::test]
async fn a_hundred_megabytes_of_output_are_cut_and_kept_in_a_file() {
    let megabytes = "head -c 100000000 /dev/zero | tr '\\0' x";
    let (workspace, told) = command(json!({"command": megabytes})).await;
    assert!(told.len() < 40_000, "{}", told.len());
    assert!(told.contains("left out"), "{}", &told[..200]);
    let spilled = workspace.kinds().into_iter().find_map(|kind| match kind {
        EventKind::ToolResult { spilled, .. } => spilled,
        _ => None,
    });
    let file = std::fs::metadata(spilled.expect("the rest is in a file")).unwrap();
    assert!(file.len() >= 1_000_000 && file.len() <= 16 * 1024 * 1024, "{}", file.len());
}

#[tokio::test]
async fn a_run_that_is_stopped_takes_its_command_with_it() {
    let script =
        ModelScript::new().turn(ScriptedTurn::tool("bash", json!({"command": "sleep 987.004"})));
    let workspace = Workspace::new(script).await;
    let options = RunOptions {
        permissions: Some(RunPermissions::new(PermissionMode::Full)),
        ..RunOptions::default()
    };
    let cancel = options.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(400)).await;
        cancel.cancel();
    });
    let report = workspace.system().run("default", "Go", options).await;
    assert_eq!(report.status, AgentRunStatus::Cancelled);
    nothing_left("987.004");
}

#[tokio::test]
async fn calls_that_may_run_beside_each_other_do_and_answers_keep_their_order() {
    let script = ModelScript::new()
        .turn(
            ScriptedTurn::tool("read", json!({"path": "a.txt"}))
                .and_tool("read", json!({"path": "b.txt"}))
                .and_tool("bash", json!({"command": "echo three > c.txt"}))
                .and_tool("read", json!({"path": "c.txt"})),
        )
        .turn(ScriptedTurn::text("Done."));
    let workspace = Workspace::new(script).await;
    workspace.write("work/a.txt", "one").write("work/b.txt", "two");
    let options = RunOptions {
        permissions: Some(RunPermissions::new(PermissionMode::Full)),
        ..RunOptions::default()
    };
    workspace.system().run("default", "Go", options).await;
    let results = workspace.requests()[1].body["messages"][2]["content"].clone();
    let texts: Vec<String> =
        results.as_array().unwrap().iter().map(|part| part["content"].to_string()).collect();
    assert!(
        texts[0].contains("one") && texts[1].contains("two") && texts[3].contains("three"),
        "{texts:?}"
    );
}
