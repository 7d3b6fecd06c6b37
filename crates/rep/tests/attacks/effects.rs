//! Limits on what an agent may do, on every backend.

use repertoire_scripted::{ModelScript, RecordedRequest, ScriptedServer, ScriptedTurn};
use serde_json::{Value, json};

use crate::scene::{Ran, Scene, ran};
use crate::{Guarantee, Tried};

pub(crate) fn guarantees() -> Vec<Guarantee> {
    let each = |holds, attack| Guarantee { holds, tried: Tried::InEverySituation, attack };
    let once = |holds, attack| Guarantee { holds, tried: Tried::Once, attack };
    vec![
        each(
            "an agent without `bash` runs no command, by any of its tools or sub-agents",
            no_command_without_bash,
        ),
        each(
            "an agent without `write` and `edit` changes no file, by any of its tools or sub-agents",
            no_change_without_write,
        ),
        once(
            "an agent without `research` reaches no network, by any of its tools or sub-agents",
            no_network_without_research,
        ),
        once("an agent without `delegate` starts no other agent", no_agent_without_delegate),
        once(
            "without a sandbox the `git` tool runs no program of a repository",
            git_tool_without_sandbox,
        ),
        once(
            "agents that promise to change nothing are offered no tool that can",
            nothing_offered_that_changes,
        ),
        once("`disallowed_tools` hold with --backend claude", limits_hold_on_claude),
        once("`git`, `github` and `run_tests` are no free Bash on claude", no_free_bash_on_claude),
        once("explore starts and changes nothing on every agent CLI", explore_on_every_cli),
        once("a review starts and changes nothing on every agent CLI", review_on_every_cli),
        once(
            "an effect that a backend cannot be kept from stops the run, and is named",
            an_unremovable_effect_stops_the_run,
        ),
    ]
}

/// A model that answers from a script.
struct AnsweringModel {
    runtime: tokio::runtime::Runtime,
    server: ScriptedServer,
}

impl AnsweringModel {
    fn start(script: ModelScript) -> Self {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        let server = runtime.block_on(ScriptedServer::start(script));
        AnsweringModel { runtime, server }
    }

    fn requests(&self) -> Vec<RecordedRequest> {
        let _here = self.runtime.enter();
        self.server.requests()
    }

    /// Runs an agent of the scene with full access.
    fn run(&self, scene: &Scene, agent: &str) -> Ran {
        let args = ["run", "--no-auto", "--full-access", "-a", agent, "Do it."];
        let mut command = scene.rep_command(&args);
        command.env("ANTHROPIC_BASE_URL", self.server.url()).env("ANTHROPIC_API_KEY", "sk-test");
        ran(&command.output().unwrap())
    }
}

fn agent(scene: &Scene, name: &str, lists: &str) {
    let text = format!("---\nname: {name}\ndescription: Works.\n{lists}\n---\nWork.\n");
    scene.write(&format!("home/.claude/agents/{name}.md"), text);
}

/// Each of these calls is made by the agent itself, and by an agent without limits that it delegates to.
fn tried_by_agent_and_sub_agent(scene: &Scene, lists: &str, calls: &[(&str, Value)]) {
    agent(scene, "careful", lists);
    agent(scene, "free", "tools: '*'");
    let own = calls.iter().fold(ModelScript::new(), |script, (tool, arguments)| {
        script.turn(ScriptedTurn::tool(*tool, arguments.clone()))
    });
    AnsweringModel::start(own.turn(ScriptedTurn::text("Done."))).run(scene, "careful");
    let delegated = json!({"agent": "free", "task": "Do it."});
    let script = ModelScript::new().turn(ScriptedTurn::tool("delegate", delegated));
    let script = calls.iter().fold(script, |script, (tool, arguments)| {
        script.turn(ScriptedTurn::tool(*tool, arguments.clone()))
    });
    let script = script.turn(ScriptedTurn::text("Done.")).turn(ScriptedTurn::text("Done."));
    AnsweringModel::start(script).run(scene, "careful");
}

const ESCAPE: &str = "echo escaped > escaped";

fn no_command_without_bash(scene: &Scene) {
    scene.write("project/second", "x\n");
    scene.commit("Second");
    tried_by_agent_and_sub_agent(
        scene,
        "disallowed_tools: [bash]",
        &[
            ("run_tests", json!({"command": ESCAPE})),
            ("bash", json!({"command": ESCAPE})),
            ("Bash", json!({"command": ESCAPE})),
            // Letters that are flags here and take a value elsewhere, and a `--` that is a value.
            ("git", json!({"args": ["rebase", "-mx", ESCAPE, "HEAD~1"]})),
            ("git", json!({"args": ["rebase", "-nx", ESCAPE, "HEAD~1"]})),
            (
                "git",
                json!({"args": ["clone", "-nu", "echo x > escaped; git-upload-pack", ".", "y"]}),
            ),
            (
                "git",
                json!({"args": ["fetch", "-o", "--", "--upload-pack=echo x > escaped; git-upload-pack", "."]}),
            ),
        ],
    );
    assert!(!scene.exists("project/escaped"));
}

/// Without a sandbox, nothing of a repository runs because an agent looks at it or changes it with git.
fn git_tool_without_sandbox(scene: &Scene) {
    scene.write("project/second", "x\n");
    scene.commit("Second");
    let trap = |name: &str| format!("sh -c 'echo ran > {}; cat'", scene.path("outside").join(name));
    for key in ["filter.x.clean", "filter.x.smudge", "diff.x.textconv", "merge.x.driver"] {
        scene.git("project", &["config", key, &trap(key)]);
    }
    for key in ["core.fsmonitor", "core.sshCommand", "diff.external", "credential.helper"] {
        scene.git("project", &["config", key, &trap(key)]);
    }
    scene.write("project/.gitattributes", "* filter=x diff=x merge=x\n");
    scene.write("project/README.md", "# Changed\n");
    let escape = format!("echo ran > {}", scene.path("outside/rebase"));
    let calls = [
        json!(["status", "-v"]),
        json!(["diff"]),
        json!(["log", "-p"]),
        json!(["stash", "show", "-p"]),
        json!(["add", "."]),
        json!(["commit", "-qm", "x"]),
        json!(["checkout", "HEAD~1"]),
        json!(["rebase", "-mx", escape, "HEAD~1"]),
        json!(["fetch", "ssh://127.0.0.1:1/x"]),
    ];
    let script = calls.iter().fold(ModelScript::new(), |script, args| {
        script.turn(ScriptedTurn::tool("git", json!({"args": args, "timeout_ms": 5000})))
    });
    let model = AnsweringModel::start(script.turn(ScriptedTurn::text("Done.")));
    let mut command = scene.rep_command(&["run", "--no-auto", "--full-access", "Do it."]);
    command.env("ANTHROPIC_BASE_URL", model.server.url()).env("ANTHROPIC_API_KEY", "sk-test");
    let ran = ran(&command.env("REPERTOIRE_SANDBOX", "off").output().unwrap());
    assert_eq!(model.requests().len(), calls.len() + 1, "{ran:?}");
    let planted = scene.path("outside").read_dir_utf8().unwrap().flatten();
    let planted: Vec<String> = planted.map(|entry| entry.file_name().to_owned()).collect();
    assert_eq!(planted, [""; 0], "{ran:?}");
}

fn no_change_without_write(scene: &Scene) {
    scene.write("project/tracked", "before\n");
    scene.commit("Add a file");
    tried_by_agent_and_sub_agent(
        scene,
        "disallowed_tools: [write, edit]",
        &[
            ("bash", json!({"command": ESCAPE})),
            ("run_tests", json!({"command": ESCAPE})),
            ("write", json!({"path": "escaped", "content": "x"})),
            ("edit", json!({"path": "tracked", "old_string": "before", "new_string": "after"})),
            ("git", json!({"args": ["rm", "tracked"]})),
        ],
    );
    assert!(!scene.exists("project/escaped"));
    assert_eq!(scene.read("project/tracked").as_deref(), Some("before\n"));
    assert_eq!(scene.git("project", &["status", "--porcelain", "tracked"]), "");
}

fn no_network_without_research(scene: &Scene) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reach = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached > reached");
    let address = format!("http://127.0.0.1:{port}/x.git");
    tried_by_agent_and_sub_agent(
        scene,
        "disallowed_tools: [research]",
        &[
            ("bash", json!({"command": reach, "network": true})),
            ("run_tests", json!({"command": reach})),
            ("git", json!({"args": ["ls-remote", address], "timeout_ms": 1000})),
        ],
    );
    assert!(!scene.exists("project/reached"));
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "somebody has called");
}

fn no_agent_without_delegate(scene: &Scene) {
    agent(scene, "careful", "disallowed_tools: [delegate]");
    agent(scene, "free", "tools: '*'");
    let forked = "---\nname: forked\ndescription: Works apart. Use when asked.\ncontext: fork\nagent: free\n---\nWork.\n";
    scene.write("home/.claude/skills/forked/SKILL.md", forked);
    let script = ModelScript::new()
        .turn(ScriptedTurn::tool("delegate", json!({"agent": "free", "task": "Do it."})))
        .turn(ScriptedTurn::text("Done."));
    let model = AnsweringModel::start(script);
    model.run(scene, "careful");
    let requests = model.requests();
    assert_eq!(requests.len(), 2, "another agent was started");
    assert!(!offered(&requests[0]).iter().any(|name| name == "delegate"));
}

/// The names of the tools that a request offers.
fn offered(request: &RecordedRequest) -> Vec<String> {
    let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap_or_default().to_owned()).collect()
}

fn nothing_offered_that_changes(scene: &Scene) {
    for agent in ["explore", "code-reviewer", "planner", "researcher", "quality-reviewer"] {
        let model = AnsweringModel::start(ModelScript::new().turn(ScriptedTurn::text("Done.")));
        model.run(scene, agent);
        let requests = model.requests();
        let tools = offered(&requests[0]);
        assert!(tools.iter().any(|name| name == "read"), "{agent}: {tools:?}");
        for tool in ["write", "edit"] {
            assert!(!tools.iter().any(|name| name == tool), "{agent} is offered {tool}");
        }
        let commands = tools.iter().any(|name| name == "bash" || name == "run_tests");
        assert!(!commands || agent == "quality-reviewer", "{agent}: {tools:?}");
        let all = requests[0].body["tools"].as_array().unwrap();
        let git = all.iter().find(|tool| tool["name"] == "git");
        if let Some(git) = git {
            let about = git["description"].as_str().unwrap();
            assert!(!about.contains("commit") && !about.contains("push"), "{agent}: {about}");
        }
    }
}

/// A folder of programs with the names of agent CLIs, each of which writes down how it was asked.
fn recording_clis(scene: &Scene) -> String {
    let record = "#!/bin/bash\n\
        { printf '%s\\n' \"$@\"; printf '%s\\n' \"$OPENCODE_CONFIG_CONTENT\"; \
        for word in \"$@\"; do [ -f \"$word\" ] && cat \"$word\"; done; } > \"$HOME/asked-$(basename \"$0\")\" 2>/dev/null\n\
        cat > /dev/null\n";
    for name in ["claude", "codex", "opencode", "gemini"] {
        scene.write_program(&format!("home/bin/{name}"), record);
    }
    format!("{}:/usr/local/bin:/usr/bin:/bin", scene.path("home/bin"))
}

/// How a CLI was asked to run an agent, a line an argument; `None` if it was not started.
fn asked(scene: &Scene, backend: &str, args: &[&str]) -> (Option<String>, Ran) {
    let path = recording_clis(scene);
    let mut command = scene.rep_command(args);
    let ran = ran(&command.env("PATH", path).output().unwrap());
    (scene.read(&format!("home/asked-{backend}")), ran)
}

fn run_asked(scene: &Scene, backend: &str, agent: &str) -> String {
    let args = ["run", "--no-auto", "--full-access", "--backend", backend, "-a", agent, "Look."];
    let (asked, ran) = asked(scene, backend, &args);
    asked.unwrap_or_else(|| panic!("{backend} was not started: {ran:?}"))
}

/// The line after an option.
fn after<'a>(asked: &'a str, option: &str) -> &'a str {
    let mut lines = asked.lines().skip_while(|line| *line != option);
    lines.nth(1).unwrap_or_else(|| panic!("no {option}: {asked}"))
}

fn limits_hold_on_claude(scene: &Scene) {
    for (disallowed, tools) in [
        ("bash", &["Bash"] as &[&str]),
        ("write, edit", &["Write", "Edit", "NotebookEdit", "Bash"]),
        ("research", &["WebFetch", "WebSearch", "Bash"]),
        ("delegate", &["Task", "Agent"]),
    ] {
        agent(scene, "careful", &format!("disallowed_tools: [{disallowed}]"));
        let asked = run_asked(scene, "claude", "careful");
        let left = after(&asked, "--tools");
        assert!(left.split(',').any(|name| name == "Read"), "{left}");
        for tool in tools {
            assert!(!left.split(',').any(|name| name == *tool), "without {disallowed}: {left}");
        }
    }
}

fn no_free_bash_on_claude(scene: &Scene) {
    for tool in ["git", "github", "run_tests"] {
        agent(scene, "careful", &format!("tools: [read, {tool}]"));
        let asked = run_asked(scene, "claude", "careful");
        assert_eq!(after(&asked, "--tools"), "Read", "{tool}");
    }
}

/// Fails if a CLI was left any way to change something.
fn expect_no_effect(backend: &str, asked: &str) {
    match backend {
        "claude" => {
            let left = after(asked, "--tools");
            for tool in ["Bash", "Edit", "Write", "NotebookEdit", "WebFetch", "WebSearch"] {
                assert!(!left.split(',').any(|name| name == tool), "{left}");
            }
        }
        "codex" => {
            assert_eq!(after(asked, "-s"), "read-only", "{asked}");
            assert!(asked.contains("--ignore-user-config"), "{asked}");
            assert!(asked.contains("web_search=\"disabled\""), "{asked}");
        }
        "opencode" => {
            assert!(asked.contains("--pure") && asked.contains(r#""*":"deny""#), "{asked}");
            for tool in ["bash", "edit", "webfetch", "task"] {
                assert!(!asked.contains(&format!(r#""{tool}":"allow""#)), "{tool}: {asked}");
            }
        }
        _ => {
            assert!(asked.contains(r#"decision = "deny""#), "{asked}");
            assert!(after(asked, "--approval-mode") == "plan", "{asked}");
            for tool in ["run_shell_command", "write_file", "replace", "web_fetch", "invoke_agent"]
            {
                assert!(!asked.contains(tool), "{tool}: {asked}");
            }
        }
    }
}

const CLIS: [&str; 4] = ["claude", "codex", "opencode", "gemini"];

fn explore_on_every_cli(scene: &Scene) {
    for backend in CLIS {
        expect_no_effect(backend, &run_asked(scene, backend, "explore"));
    }
}

fn review_on_every_cli(scene: &Scene) {
    scene.write("project/README.md", "# A changed project\n");
    for backend in CLIS {
        let (asked, ran) = asked(scene, backend, &["review", "--backend", backend]);
        let asked = asked.unwrap_or_else(|| panic!("{backend} was not started: {ran:?}"));
        expect_no_effect(backend, &asked);
    }
}

fn an_unremovable_effect_stops_the_run(scene: &Scene) {
    scene.write_program("project/agent.sh", "#!/bin/sh\ntouch started\n");
    for backend in ["command:./agent.sh", "acp:./agent.sh"] {
        let args =
            ["run", "--no-auto", "--full-access", "--backend", backend, "-a", "explore", "x"];
        let ran = ran(&scene.rep_command(&args).output().unwrap());
        assert!(!scene.exists("project/started"), "{backend}");
        assert_ne!(ran.code, 0);
        assert!(ran.stderr.contains("cannot be kept from changing files"), "{}", ran.stderr);
        assert!(ran.stderr.contains("agent `explore`"), "{}", ran.stderr);
    }
    agent(scene, "writer", "disallowed_tools: [bash]");
    let args =
        ["run", "--no-auto", "--accept-edits", "--backend", "codex", "-a", "writer", "Write."];
    let (asked, ran) = asked(scene, "codex", &args);
    assert_eq!(asked, None);
    assert!(ran.stderr.contains("codex cannot be kept from running commands"), "{}", ran.stderr);
}
