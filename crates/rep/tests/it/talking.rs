//! A scripted model beside a workspace, for commands that talk to one.

use std::io::Write;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use repertoire_scripted::{ModelScript, RecordedRequest, ScriptedServer};

use crate::workspace::{Ran, Workspace};

/// A model that answers from a script, on this machine.
pub(crate) struct Model {
    runtime: tokio::runtime::Runtime,
    server: ScriptedServer,
}

impl Model {
    /// Starts it, and tells the workspace where it is.
    pub(crate) fn start(ws: &mut Workspace, script: ModelScript) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let server = runtime.block_on(ScriptedServer::start(script));
        ws.set("ANTHROPIC_BASE_URL", &server.url());
        ws.set("ANTHROPIC_API_KEY", "sk-test-secret");
        Model { runtime, server }
    }

    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        let _here = self.runtime.enter();
        self.server.requests()
    }

    /// Waits until it was asked so often.
    pub(crate) fn wait_for(&self, requests: usize) {
        let end = Instant::now() + Duration::from_secs(30);
        while self.requests().len() < requests {
            assert!(Instant::now() < end, "the model was never asked");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Runs a command with something to read.
pub(crate) fn with_input(ws: &Workspace, args: &[&str], input: &str) -> Ran {
    let mut child = begin(ws, args);
    // A command that does not read has closed its end.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    end(child)
}

/// Starts a command that goes on by itself.
pub(crate) fn begin(ws: &Workspace, args: &[&str]) -> Child {
    let mut command = ws.command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Waits for its end. A command that a signal ended has the exit code -1.
pub(crate) fn end(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    Ran {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap_or(-1),
    }
}

/// Sends a signal to a command.
pub(crate) fn signal(child: &Child, name: &str) {
    let status = std::process::Command::new("kill")
        .args([format!("-{name}"), child.id().to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

/// Output with times and ids made the same for every run.
pub(crate) fn tidy(ran: &Ran) -> String {
    let mut out = ran.to_string();
    for (pattern, with) in [
        (r"[0-9a-f]{8}-[0-9a-f]{4}(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})?", "[ID]"),
        (r"\d+\.\d s\b", "[TIME]"),
    ] {
        out = regex::Regex::new(pattern).unwrap().replace_all(&out, with).into_owned();
    }
    out
}
