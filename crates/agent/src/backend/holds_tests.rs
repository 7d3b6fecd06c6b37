//! Checks every effect on every backend: the remaining effects, and what stops the run.

use camino::Utf8Path;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::backend::cli::CliDefinition;
use crate::backend::{
    BackendChoice, BackendJob, BackendKind, build_backend, claude, codex, gemini, opencode,
};
use crate::definition::ToolFilter;
use crate::effect::RunEffect::{ChangeFiles, Delegate, RunCommands, UseNetwork};
use repertoire_text::clock::SystemClock;

fn limit(disallowed: &[&str]) -> EffectLimit {
    let disallowed = disallowed.iter().map(|name| (*name).to_owned()).collect();
    EffectLimit::for_agent("careful", &ToolFilter { allowed: None, disallowed })
}

fn made(kind: BackendKind) -> Box<dyn Backend> {
    build_backend(BackendChoice { kind, program: Some("program".to_owned()), args: Vec::new() })
        .unwrap()
}

fn held(
    kind: BackendKind,
    mode: PermissionMode,
    limit: &EffectLimit,
) -> Result<BackendRestrictions, String> {
    let events = EventEmitter::new(
        "run",
        "careful",
        std::sync::Arc::new(SystemClock),
        std::sync::Arc::new(|_: &crate::event::AgentEvent| {}),
    );
    restrict_backend(&*made(kind), &RunPermissions::new(mode), limit, None, &events)
}

/// The disallowed tools that remove one effect each.
const REMOVALS: [(&str, RunEffect); 4] = [
    ("write", ChangeFiles),
    ("bash", RunCommands),
    ("research", UseNetwork),
    ("delegate", Delegate),
];

const OTHERS: [BackendKind; 7] = [
    BackendKind::Claude,
    BackendKind::Codex,
    BackendKind::Opencode,
    BackendKind::Gemini,
    BackendKind::Acp,
    BackendKind::Command,
    BackendKind::Scripted,
];

#[test]
fn every_effect_is_removed_on_every_backend_or_stops_the_run() {
    for kind in OTHERS {
        for mode in [PermissionMode::AcceptEdits, PermissionMode::Full] {
            for (tool, effect) in REMOVALS {
                match held(kind, mode, &limit(&[tool])) {
                    Ok(told) => {
                        assert!(!told.effects.has(effect), "{kind:?} {mode:?} {effect}");
                        let tools = told.tools.expect("a limited run has a list of tools");
                        assert!(!tools.iter().any(|name| name == tool), "{kind:?}: {tools:?}");
                    }
                    Err(message) => {
                        let stops = matches!(kind, BackendKind::Acp | BackendKind::Command)
                            || kind == BackendKind::Codex && effect == RunCommands;
                        assert!(stops, "{kind:?} {effect}: {message}");
                        let expect = format!("cannot be kept from {}", effect.gerund());
                        assert!(message.contains(&expect), "{message}");
                        assert!(message.contains("agent `careful`"), "{message}");
                        assert!(message.contains("--backend api"), "{message}");
                    }
                }
            }
        }
    }
}

#[test]
fn agents_that_change_nothing_start_on_every_cli() {
    let explore = limit(&["bash", "write", "edit", "git", "github", "research"]);
    for kind in [
        BackendKind::Claude,
        BackendKind::Codex,
        BackendKind::Opencode,
        BackendKind::Gemini,
        BackendKind::Scripted,
    ] {
        for mode in [
            PermissionMode::Default,
            PermissionMode::ReadOnly,
            PermissionMode::AcceptEdits,
            PermissionMode::Full,
        ] {
            let told = held(kind, mode, &explore).unwrap();
            assert!(
                EffectSet::from_effects(&[Delegate]).or(told.effects)
                    == EffectSet::from_effects(&[Delegate])
            );
        }
        let told = held(kind, PermissionMode::ReadOnly, &EffectLimit::default()).unwrap();
        assert_eq!(told.effects, EffectSet::NONE, "{kind:?}");
    }
    for kind in [BackendKind::Acp, BackendKind::Command] {
        let message = held(kind, PermissionMode::ReadOnly, &EffectLimit::default()).unwrap_err();
        assert!(message.contains("this run is read-only"), "{message}");
        assert!(held(kind, PermissionMode::Full, &explore).is_err());
        assert!(held(kind, PermissionMode::Default, &EffectLimit::default()).is_ok());
    }
}

#[test]
fn commands_without_a_sandbox_need_every_effect() {
    for kind in [BackendKind::Claude, BackendKind::Opencode, BackendKind::Gemini] {
        for disallowed in ["write", "research", "github"] {
            let told = held(kind, PermissionMode::Full, &limit(&[disallowed])).unwrap();
            assert!(!told.effects.has(RunCommands), "{kind:?} without {disallowed}");
            assert!(
                !told.has_tool("bash") && !told.has_tool("run_tests"),
                "{kind:?} without {disallowed}"
            );
        }
        let told = held(kind, PermissionMode::Full, &limit(&["delegate"])).unwrap();
        assert!(told.effects.has(RunCommands) && told.has_tool("bash"), "{kind:?}");
    }
}

fn asked(cli: CliDefinition, job: &BackendJob) -> String {
    let asked = (cli.ask)(job, &[], Utf8Path::new("/private"));
    format!("{:?} {:?} {:?}", asked.args, asked.environment, asked.files)
}

fn job(freedom: AgentFreedom, told: BackendRestrictions) -> BackendJob {
    BackendJob {
        prompt: "Look.".to_owned(),
        system: String::new(),
        dir: "/project".into(),
        environment: Vec::new(),
        model: None,
        session: None,
        schema: None,
        form: None,
        freedom,
        told,
        max_cost_usd: None,
        max_iterations: None,
        mcp_servers: None,
        ignore_project_rules: false,
        idle: std::time::Duration::from_secs(1),
        absolute: std::time::Duration::from_secs(1),
        cancel: CancellationToken::new(),
        usage: repertoire_sandbox::process::UsageLimits::default(),
    }
}

/// The command line of a CLI for an agent with these tools disallowed, in a mode.
fn line(
    cli: CliDefinition,
    kind: BackendKind,
    mode: PermissionMode,
    disallowed: &[&str],
) -> String {
    let told = held(kind, mode, &limit(disallowed)).unwrap();
    asked(cli, &job(freedom_of_mode(&RunPermissions::new(mode)), told))
}

#[test]
fn command_lines_remove_what_an_agent_may_not_do() {
    let nothing: &[&str] = &["bash", "write", "edit", "git", "github", "research", "delegate"];
    let claude = line(claude::CLI, BackendKind::Claude, PermissionMode::Full, nothing);
    let tools = claude.split("\"--tools\", \"").nth(1).unwrap().split('"').next().unwrap();
    for tool in ["Bash", "Edit", "Write", "NotebookEdit", "Task", "WebFetch", "WebSearch"] {
        assert!(!tools.split(',').any(|name| name == tool), "{tools}");
    }
    assert!(tools.split(',').any(|name| name == "Read"), "{tools}");
    let denied = claude.split("\"--disallowedTools\", \"").nth(1).unwrap();
    assert!(denied.starts_with("Edit,Write,NotebookEdit,Bash,WebFetch,WebSearch,Task"), "{claude}");
    let codex = line(codex::CLI, BackendKind::Codex, PermissionMode::Full, nothing);
    for word in ["\"read-only\"", "--ignore-user-config", "multi_agent", "web_search"] {
        assert!(codex.contains(word), "{word}: {codex}");
    }
    assert!(!codex.contains("danger"), "{codex}");
    let opencode = line(opencode::CLI, BackendKind::Opencode, PermissionMode::Full, nothing);
    assert!(opencode.contains("--pure"), "{opencode}");
    for tool in ["bash", "edit", "webfetch", "websearch", "task"] {
        assert!(!opencode.contains(&format!(r#"\"{tool}\":\"allow\""#)), "{tool}: {opencode}");
    }
    assert!(opencode.contains(r#"\"*\":\"deny\""#), "{opencode}");
    let gemini = line(gemini::CLI, BackendKind::Gemini, PermissionMode::Full, nothing);
    for tool in ["run_shell_command", "write_file", "replace", "web_fetch", "invoke_agent"] {
        assert!(!gemini.contains(tool), "{tool}: {gemini}");
    }
    assert!(gemini.contains("read_file") && gemini.contains("--policy"), "{gemini}");
    assert!(gemini.contains("--allowed-mcp-server-names"), "{gemini}");
}

#[test]
fn codex_commands_have_no_network_and_only_read_where_the_agent_may_not_do_more() {
    let quiet =
        line(codex::CLI, BackendKind::Codex, PermissionMode::AcceptEdits, &["github", "research"]);
    assert!(quiet.contains("workspace-write"), "{quiet}");
    assert!(quiet.contains("sandbox_workspace_write.network_access=false"), "{quiet}");
    let reading = line(codex::CLI, BackendKind::Codex, PermissionMode::Full, &["write", "edit"]);
    assert!(reading.contains("\"read-only\""), "{reading}");
}

#[test]
fn git_github_and_run_tests_do_not_become_a_free_bash() {
    for tool in ["git", "github", "run_tests"] {
        let lists = ToolFilter {
            allowed: Some(vec!["read".to_owned(), tool.to_owned()]),
            disallowed: Vec::new(),
        };
        let told =
            held(BackendKind::Claude, PermissionMode::Full, &EffectLimit::for_agent("a", &lists))
                .unwrap();
        let line = asked(claude::CLI, &job(AgentFreedom::Full, told));
        let tools = line.split("\"--tools\", \"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(tools, "Read", "{tool}: {line}");
    }
}
