//! `rep init`: what it writes into real folders, and what it leaves alone.

use insta::assert_snapshot;

use crate::workspace::Workspace;

/// A Rust project on a machine with Claude Code and Codex.
fn project() -> Workspace {
    let ws = Workspace::new();
    ws.write("project/Cargo.toml", "[package]\nname = \"shop\"\n");
    ws.write("home/.claude/settings.json", "{}");
    ws.write("home/.codex/config.toml", "model = \"gpt-5\"\n");
    ws
}

#[test]
fn a_project_is_set_up_with_what_is_suggested() {
    let ws = project();
    let ran = ws.rep("init --yes");
    assert_snapshot!(ran, @r#"
    repertoire.toml
      # Settings of this project for Repertoire. `rep config --explain` describes every key.

      # Commands that must succeed after every change of a plan; `rep verify` runs them too.
      [plan.checks.cargo-test]
      command = "cargo test"

    wrote repertoire.toml
    Claude Code: created .mcp.json
    Codex: added to ~/.codex/config.toml

    Next
      rep new NAME      create the project's first skill
      rep match "TASK"  see which skills a task needs
      rep verify        run the checks; it shows them and asks for your consent once
      rep doctor        see which skills your agents see
    [stderr]
    Claude Code may ask you to approve servers of a project; `claude mcp list` shows whether it is waiting.
    Test it with `rep setup claude --check`.
    Test it with `rep setup codex --check`.
    [exit 0]
    "#);
    let checks = ws.rep("config --json").stdout;
    assert!(checks.contains("cargo test"), "{checks}");
    assert!(ws.text("project/.mcp.json").contains("repertoire"));
    let codex = ws.text("home/.codex/config.toml");
    assert!(codex.starts_with("model = \"gpt-5\"\n") && codex.contains("[mcp_servers.repertoire]"));
    // Again: nothing is left to do.
    let (file, entry) = (ws.bytes("project/repertoire.toml"), ws.bytes("project/.mcp.json"));
    assert_snapshot!(ws.rep("init --yes"), @r#"
    repertoire.toml exists and is not changed.
    No clients to set up; `rep setup` lists those that are supported.

    Next
      rep new NAME      create the project's first skill
      rep match "TASK"  see which skills a task needs
      rep doctor        see which skills your agents see
    [exit 0]
    "#);
    assert_eq!(ws.bytes("project/repertoire.toml"), file);
    assert_eq!(ws.bytes("project/.mcp.json"), entry);
}

#[test]
fn flags_answer_what_would_be_asked() {
    let ws = project();
    ws.skill("project/.claude/skills/notes", "notes", "Takes notes. Use when a meeting begins.");
    let args =
        ["init", "--yes", "--check", "test -f \"a b\"", "--check", "true", "--client", "claude"];
    assert_snapshot!(ws.rep_with(&args), @r#"
    repertoire.toml
      # Settings of this project for Repertoire. `rep config --explain` describes every key.

      # Commands that must succeed after every change of a plan; `rep verify` runs them too.
      [plan.checks.test]
      command = 'test -f "a b"'

      [plan.checks.true]
      command = "true"

    wrote repertoire.toml
    Claude Code: created .mcp.json

    Next
      rep lint          check the project's skills
      rep match "TASK"  see which skills a task needs
      rep verify        run the checks; it shows them and asks for your consent once
      rep doctor        see which skills your agents see
    [stderr]
    Claude Code may ask you to approve servers of a project; `claude mcp list` shows whether it is waiting.
    Test it with `rep setup claude --check`.
    [exit 0]
    "#);
    assert_eq!(ws.text("home/.codex/config.toml"), "model = \"gpt-5\"\n");
    let verified = ws.rep("verify");
    assert!(verified.stderr.contains("plan.checks.true.command = true"), "{verified}");

    let ws = project();
    assert_eq!(ws.rep("init --yes --no-checks --no-clients").code, 0);
    assert!(!ws.path("project/.mcp.json").exists());
    assert_eq!(ws.rep("config").code, 0);
    assert!(ws.text("project/repertoire.toml").lines().all(|l| l.is_empty() || l.starts_with('#')));
}

#[test]
fn a_file_that_is_there_stays() {
    let ws = project();
    ws.write("project/repertoire.toml", "extra_roots = [] # mine\n");
    let ran = ws.rep("init --yes --check true --no-clients");
    assert!(
        ran.code == 0 && ran.stderr.contains("add the checks to repertoire.toml by hand"),
        "{ran}"
    );
    assert_eq!(ws.text("project/repertoire.toml"), "extra_roots = [] # mine\n");
}

#[test]
fn the_file_goes_to_the_root_of_the_project() {
    let ws = project();
    std::fs::create_dir_all(ws.path("project/src")).unwrap();
    let ran = ws.rep("-C src init --yes --no-clients");
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ws.path("project/repertoire.toml").exists());
    assert!(!ws.path("project/src/repertoire.toml").exists());
}

#[test]
fn a_client_that_cannot_be_set_up_does_not_stop_the_others() {
    let ws = project();
    ws.write("project/.mcp.json", "{ this is not JSON");
    let ran = ws.rep("init --yes");
    assert_eq!(ran.code, 3, "{ran}");
    assert!(ran.stderr.contains(".mcp.json"), "{ran}");
    assert!(ws.text("home/.codex/config.toml").contains("[mcp_servers.repertoire]"));
    assert_eq!(ws.text("project/.mcp.json"), "{ this is not JSON");
}

#[test]
fn without_a_terminal_nothing_is_asked_and_nothing_written() {
    let ws = project();
    assert_snapshot!(ws.rep("init"), @r#"
    [stderr]
    error: `rep init` asks questions, and this is not a terminal
    hint: `rep init --yes` accepts what is suggested; see `rep init --help`.
    [exit 2]
    "#);
    assert!(!ws.path("project/repertoire.toml").exists());
    assert_eq!(ws.rep("init --yes --client nonsense").code, 2);
    assert_eq!(ws.rep("init --yes --json").code, 2);
}

#[test]
fn suggested_checks_come_from_the_build_files() {
    for (file, text, expected) in [
        ("package.json", r#"{"scripts": {"test": "vitest"}}"#, Some("npm test")),
        (
            "package.json",
            r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#,
            None,
        ),
        ("package.json", "not JSON", None),
        ("go.mod", "module shop\n", Some("go test ./...")),
        ("Makefile", "all:\ntest: all\n\tprove\n", Some("make test")),
        ("README.md", "# Shop\n", None),
    ] {
        let ws = Workspace::new();
        ws.write(&format!("project/{file}"), text);
        assert_eq!(ws.rep("init --yes --no-clients").code, 0);
        let written = ws.text("project/repertoire.toml");
        let declared = written.lines().find_map(|line| line.strip_prefix("command = "));
        let expected = expected.map(|command| format!("\"{command}\""));
        assert_eq!(declared, expected.as_deref(), "{file}: {written}");
    }
}
