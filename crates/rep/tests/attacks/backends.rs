//! External agents that outlive `rep`, and worktrees that are taken over from them.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::scene::{Scene, processes_with, stays_as_it_is, until};
use crate::{Guarantee, Tried};

pub(crate) fn guarantees() -> Vec<Guarantee> {
    let everywhere = |holds, attack| Guarantee { holds, tried: Tried::InEverySituation, attack };
    let once = |holds, attack| Guarantee { holds, tried: Tried::Once, attack };
    vec![
        everywhere("no command of claude runs on after kill -9 of rep", claude_after_kill),
        once("no command of opencode runs on after kill -9 of rep", opencode_after_kill),
        once("no command of codex runs on after kill -9 of rep", codex_after_kill),
        once("no command of gemini runs on after kill -9 of rep", gemini_after_kill),
        once(
            "no command of a program of the user's runs on after kill -9 of rep",
            command_after_kill,
        ),
        once("no command of an ACP agent runs on after kill -9 of rep", acp_after_kill),
        once("no command of claude runs on after SIGTERM to rep", claude_after_term),
        once("no MCP server runs on after kill -9 of rep", mcp_server_after_kill),
    ]
}

/// An agent whose shell leaves its session, forgets its environment, ignores signals and writes a line every 20 ms.
const AGENT: &str = "#!/bin/sh
setsid env -i sh -c '(trap \"\" TERM INT HUP; while :; do echo x >> \"$0\"; sleep 0.02; done) &' \"$PWD/alive\" > /dev/null 2>&1 &
trap '' TERM INT HUP
while :; do sleep 0.02; done
";

fn agent(scene: &Scene, program: &str, args: &[&str]) -> Command {
    scene.write_program(&format!("bin/{program}"), AGENT);
    let mut command = scene.rep_command(args);
    command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", scene.path("bin")));
    command
}

fn started(scene: &Scene, command: &mut Command) -> Child {
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = until(Duration::from_secs(20), || scene.exists("project/alive"));
    assert!(begun, "the agent did not start");
    child
}

fn nothing_is_left(scene: &Scene, deadline: Duration) {
    let (alive, bin) = (scene.path("project/alive"), scene.path("bin"));
    let left = || [processes_with(alive.as_str()), processes_with(bin.as_str())].concat();
    assert!(until(deadline, || left().is_empty()), "alive: {:?}", left());
    assert!(stays_as_it_is(&alive, Duration::from_millis(200)), "it writes on");
}

fn after_kill(scene: &Scene, program: &str, args: &[&str]) {
    let mut rep = started(scene, &mut agent(scene, program, args));
    rep.kill().unwrap();
    rep.wait().unwrap();
    nothing_is_left(scene, Duration::from_secs(1));
}

fn claude_after_kill(scene: &Scene) {
    after_kill(scene, "claude", &["run", "--no-auto", "--backend", "claude", "work"]);
}

fn opencode_after_kill(scene: &Scene) {
    after_kill(scene, "opencode", &["run", "--no-auto", "--backend", "opencode", "work"]);
}

fn codex_after_kill(scene: &Scene) {
    after_kill(scene, "codex", &["run", "--no-auto", "--backend", "codex", "work"]);
}

fn gemini_after_kill(scene: &Scene) {
    after_kill(scene, "gemini", &["run", "--no-auto", "--backend", "gemini", "work"]);
}

fn command_after_kill(scene: &Scene) {
    let backend = format!("command:{}", scene.path("bin/own"));
    after_kill(scene, "own", &["run", "--no-auto", "--backend", &backend, "work"]);
}

fn acp_after_kill(scene: &Scene) {
    let backend = format!("acp:{}", scene.path("bin/own"));
    after_kill(scene, "own", &["run", "--no-auto", "--backend", &backend, "work"]);
}

/// The agent ignores the request to end, so that it takes the grace time until it is killed.
fn claude_after_term(scene: &Scene) {
    let args = ["run", "--no-auto", "--backend", "claude", "work"];
    let mut rep = started(scene, &mut agent(scene, "claude", &args));
    let id = rustix::process::Pid::from_child(&rep);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    nothing_is_left(scene, Duration::from_secs(14));
    rep.wait().unwrap();
}

fn mcp_server_after_kill(scene: &Scene) {
    let server = format!("[mcp_servers.own]\ncommand = \"{}\"\n", scene.path("bin/server"));
    scene.write("home/.config/repertoire/repertoire.toml", server);
    // A server is started for the loop of `rep` itself, which needs a model: none answers here.
    let args = ["run", "--no-auto", "-m", "compat/none", "work"];
    let mut command = agent(scene, "server", &args);
    command.env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    let mut rep = started(scene, &mut command);
    rep.kill().unwrap();
    rep.wait().unwrap();
    nothing_is_left(scene, Duration::from_secs(1));
}
