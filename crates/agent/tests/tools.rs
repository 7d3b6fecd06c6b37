//! Tools that run programs, in every kind of sandbox that works on this machine.

use std::sync::Arc;

use camino::Utf8PathBuf;
use repertoire_agent::System;
use repertoire_agent::event::EventEmitter;
use repertoire_agent::run::AgentRun;
use repertoire_agent::tool::{ToolInvocation, ToolOutput};
use repertoire_agent::tools;
use repertoire_sandbox::confinement::Sandbox;
use repertoire_sandbox::workplace::RunWorkplace;
use repertoire_text::clock::SystemClock;
use serde_json::{Value, json};

fn run_in(folder: &tempfile::TempDir, sandbox: Sandbox) -> AgentRun {
    let outside =
        Utf8PathBuf::from_path_buf(folder.path().canonicalize().expect("a place to work"))
            .expect("UTF-8");
    std::fs::create_dir_all(outside.join("work")).expect("a place to work");
    let mut workplace = RunWorkplace::new(outside.join("work"), outside.join("spilled"), sandbox);
    let pairs = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("GIT_AUTHOR_NAME", "A")];
    let more =
        [("GIT_AUTHOR_EMAIL", "a@b"), ("GIT_COMMITTER_NAME", "A"), ("GIT_COMMITTER_EMAIL", "a@b")];
    let all = pairs.iter().chain(&more);
    workplace.environment = all.map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let system = System::builder().work_dir(outside.join("work")).build().expect("a system");
    let events = EventEmitter::new("r1", "tester", Arc::new(SystemClock), Arc::new(|_| {}));
    AgentRun::new(system, workplace, events)
}

async fn call(run: &AgentRun, tool: &str, arguments: Value) -> ToolOutput {
    let tools = tools::builtin_tools();
    let tool = tools::find(&tools, tool).expect("a tool");
    tool.call(ToolInvocation { id: "c1", arguments: &arguments, run }).await
}

#[tokio::test]
async fn commands_and_git_work_in_every_sandbox_and_stay_there() {
    let helper = [env!("CARGO_BIN_EXE_repertoire-agent-helper").to_owned()];
    let mut kinds = Sandbox::probe_all(&helper);
    kinds.push(Sandbox::None);
    for sandbox in kinds {
        let folder = tempfile::tempdir().unwrap();
        let enforced = sandbox.is_enforced();
        let what = sandbox.describe();
        let run = run_in(&folder, sandbox);
        let dir = run.workplace.dir.clone();
        let ok = async |tool: &str, arguments: Value| {
            let output = call(&run, tool, arguments).await;
            assert!(!output.is_error, "{what}: {}", output.text);
            output.text
        };
        assert_eq!(
            ok("bash", json!({"command": "echo text > a.txt; cat a.txt"})).await,
            "text",
            "{what}"
        );
        ok("git", json!({"args": ["init", "-q", "-b", "main"]})).await;
        ok("git", json!({"args": ["add", "a.txt"]})).await;
        ok("git", json!({"args": ["commit", "-q", "-m", "First"]})).await;
        ok("git", json!({"args": ["switch", "-q", "-c", "topic"]})).await;
        assert!(
            ok("git", json!({"args": ["log", "--format=%s"]})).await.contains("First"),
            "{what}"
        );
        let tests = ok("run_tests", json!({"command": "test -f a.txt"})).await;
        assert!(tests.starts_with("tests passed"), "{what}: {tests}");

        // A program may not leave a hook behind, in any of them.
        let hook = "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit";
        let output = call(&run, "bash", json!({"command": hook})).await;
        assert!(output.is_error, "{what}: {}", output.text);
        assert!(!dir.join(".git/hooks/pre-commit").exists(), "{what}");

        if enforced {
            let outside = format!("echo x > {}/escaped", folder.path().display());
            // It fails, or ends up in a folder of the sandbox's own.
            call(&run, "bash", json!({"command": outside})).await;
            assert!(!folder.path().join("escaped").exists(), "{what}");
        }
        let slow = call(&run, "bash", json!({"command": "sleep 20", "timeout_ms": 300})).await;
        assert!(slow.text.contains("stopped after 0.3 s"), "{what}: {}", slow.text);
        let code = call(&run, "bash", json!({"command": "exit 7"})).await;
        assert_eq!(code.text, "[exit code 7; no output]", "{what}");
    }
}
