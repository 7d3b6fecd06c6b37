//! `rep setup`: set, checked and taken back for every client, on files like those that people have.

use insta::assert_snapshot;

use crate::workspace::Workspace;

/// Each client, where its file is, and something that was in it before.
const FILES: &[(&str, &str, &str)] = &[
    (
        "claude",
        "project/.mcp.json",
        "{\n  \"mcpServers\": {\n    \"docs\": { \"command\": \"npx\" }\n  }\n}",
    ),
    (
        "codex",
        "home/.codex/config.toml",
        "# mine\r\nmodel = \"gpt-5\"\r\n\r\n[mcp_servers.docs]\r\ncommand = \"npx\" # why\r\n",
    ),
    (
        "opencode",
        "project/opencode.json",
        "{\n\t\"$schema\": \"https://opencode.ai/config.json\",\n\t// servers\n\t\"mcp\": {}\n}\n",
    ),
    ("gemini", "project/.gemini/settings.json", "{\"theme\":\"Dracula\"}"),
    (
        "cursor",
        "project/.cursor/mcp.json",
        "\u{feff}{\n    \"mcpServers\": {\n        // none yet\n    },\n}\n",
    ),
    (
        "vscode",
        "project/.vscode/mcp.json",
        "{\r\n  \"inputs\": [ ], // asked\r\n  \"servers\": {\r\n  }\r\n}\r\n",
    ),
];

#[test]
fn every_client_is_set_up_checked_and_left_as_it_was() {
    for (client, path, before) in FILES {
        let ws = Workspace::new();
        ws.write(path, before);
        let missing = ws.rep(&format!("setup {client} --check"));
        assert_eq!(missing.code, 1, "{missing}");
        let set = ws.rep(&format!("setup {client}"));
        assert_eq!(set.code, 0, "{set}");
        let after = ws.text(path);
        assert_ne!(after, *before);
        let check = ws.rep(&format!("setup {client} --check"));
        assert_eq!(check.code, 0, "{check}");
        assert!(check.stdout.contains("it answers as repertoire"), "{check}");
        let again = ws.rep(&format!("setup {client}"));
        assert!(again.stdout.contains(": already set up in "), "{again}");
        assert_eq!(ws.text(path), after);
        let removed = ws.rep(&format!("setup {client} --remove"));
        assert_eq!(removed.code, 0, "{removed}");
        assert_eq!(ws.text(path), *before, "{client}");
    }
}

#[test]
fn a_file_that_was_made_is_gone_with_the_entry() {
    let mut ws = Workspace::new();
    // `--check` starts a server, which may keep its index for later.
    ws.set("XDG_CACHE_HOME", ws.path("cache").as_str());
    let (project, home) = (ws.files("project"), ws.files("home"));
    for (client, path, _) in FILES {
        for scope in ["project", "user"] {
            if (*client, scope) == ("codex", "project") {
                continue;
            }
            let set = ws.rep(&format!("setup {client} --scope {scope}"));
            assert_eq!(set.code, 0, "{set}");
            let check = ws.rep(&format!("setup {client} --scope {scope} --check"));
            assert_eq!(check.code, 0, "{check}");
            let removed = ws.rep(&format!("setup {client} --scope {scope} --remove"));
            assert!(removed.stdout.contains(": deleted "), "{removed}");
        }
        assert!(!ws.path(path).exists());
    }
    assert_eq!(ws.files("project"), project);
    assert_eq!(ws.files("home"), home);
}

#[test]
fn what_is_known_and_what_is_set_up_is_listed() {
    let mut ws = Workspace::new();
    ws.write("bin/claude", "");
    ws.set("PATH", ws.path("bin").as_str());
    let program: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(ws.path("bin/claude"), program).unwrap();
    ws.write("project/.vscode/mcp.json", "{\"servers\": []}");
    ws.write("project/.mcp.json", "{\"mcpServers\": {\"repertoire\": {\"command\": \"x\"}}}");
    ws.rep("setup cursor");
    assert_snapshot!(ws.rep("setup"), @"
    claude    Claude Code  found, not set up
              ! .mcp.json has another entry called `repertoire`
    codex     Codex        not found
    opencode  opencode     not found
    gemini    Gemini CLI   not found
    cursor    Cursor       set up in .cursor/mcp.json
    vscode    VS Code      found, not set up
              ! [TMP]/project/.vscode/mcp.json: `servers` is a list, not an object
    [stderr]
    Set up a client with `rep setup CLIENT`; test it with `--check`, undo it with `--remove`.
    [exit 0]
    ");
    let listed = ws.json("--json setup", "setup.json");
    let file = |at: usize| &listed["clients"][at]["files"][0];
    assert_eq!((&file(0)["set_up"], &file(0)["foreign"]), (&false.into(), &true.into()));
    assert_eq!((&file(4)["set_up"], &file(4)["foreign"]), (&true.into(), &false.into()));
}

#[test]
fn what_programs_read_has_the_published_shapes() {
    let ws = Workspace::new();
    let print = ws.json("--json setup claude --print", "setup-print.json");
    assert_eq!(print["entry"]["args"][0], "mcp");
    assert_eq!(ws.json("--json setup claude --check", "setup-check.json")["ok"], false);
    assert_eq!(ws.json("--json setup claude", "setup-done.json")["done"], "made");
    assert_eq!(ws.json("--json setup claude --check", "setup-check.json")["ok"], true);
    assert_eq!(ws.json("--json setup claude --remove", "setup-done.json")["done"], "removed");
}

#[test]
fn an_entry_of_somebody_else_stays_and_one_that_was_replaced_comes_back() {
    let ws = Workspace::new();
    let text = "{\"mcpServers\": {\"github\": {\"command\": \"gh-mcp\"},\n  \"repertoire\": {\"command\": \"x\"}}}";
    ws.write("project/.mcp.json", text);
    assert_snapshot!(ws.rep("setup claude --remove --name github"), @r#"
    [stderr]
    error: the entry `github` of [TMP]/project/.mcp.json is not ours: {"command":"gh-mcp"}
    hint: Nothing was changed. `rep setup` removes only entries that start `rep mcp` or that it wrote; remove this one by hand.
    [exit 3]
    "#);
    assert_eq!(ws.rep("setup claude --remove").code, 3);
    assert_eq!(ws.text("project/.mcp.json"), text);
    assert_eq!(ws.rep("setup claude --replace").code, 0);
    assert_snapshot!(ws.rep("setup claude --remove"), @"
    Claude Code: restored the previous entry in .mcp.json
    [exit 0]
    ");
    assert_eq!(ws.text("project/.mcp.json"), text);
}

#[test]
fn what_is_printed_can_be_pasted() {
    let ws = Workspace::new();
    assert_snapshot!(ws.rep("setup claude --print --command rep"), @r#"
    {
      "mcpServers": {
        "repertoire": {
          "type": "stdio",
          "command": "rep",
          "args": ["mcp"]
        }
      }
    }
    [stderr]
    In .mcp.json:
    [exit 0]
    "#);
    assert_snapshot!(ws.rep("setup codex --print --command rep"), @r#"
    [mcp_servers.repertoire]
    command = "rep"
    args = ["mcp"]
    [stderr]
    In ~/.codex/config.toml:
    [exit 0]
    "#);
    assert_snapshot!(ws.rep("setup opencode --print --command rep --name skills"), @r#"
    {
      "mcp": {
        "skills": {
          "type": "local",
          "command": ["rep", "mcp"],
          "enabled": true
        }
      }
    }
    [stderr]
    In opencode.json:
    [exit 0]
    "#);
    assert!(!ws.path("project/.mcp.json").exists());
}

#[test]
fn a_broken_file_stays_untouched_and_is_named() {
    let check = |client: &str, path: &str, text: &str| {
        let ws = Workspace::new();
        ws.write(path, text);
        let ran = ws.rep(&format!("setup {client}"));
        assert_eq!(ws.text(path), text);
        assert!(ran.code == 3 && ran.stdout.is_empty(), "{ran}");
        ran.stderr
    };
    assert_snapshot!(check("claude", "project/.mcp.json", "{\"mcpServers\": "), @"
    error: [TMP]/project/.mcp.json: this is not JSON: Expected value after colon in object property on line 1 column 16
    hint: Nothing was changed. `rep setup claude --print` prints the entry to add by hand.
    ");
    assert_snapshot!(check("claude", "project/.mcp.json", "{\"mcpServers\": []}"), @"
    error: [TMP]/project/.mcp.json: `mcpServers` is a list, not an object
    hint: Nothing was changed. `rep setup claude --print` prints the entry to add by hand.
    ");
    assert_snapshot!(check("claude", "project/.mcp.json", "{\"mcpServers\": {\"repertoire\": {\"command\": \"x\"}}}"), @r#"
    error: [TMP]/project/.mcp.json: there is another entry called `repertoire`: {"command":"x"}
    hint: Replace it with `--replace`, or keep it and choose another name with `--name NAME`.
    "#);
    assert_snapshot!(check("codex", "home/.codex/config.toml", "mcp_servers = 1\n"), @"
    error: [TMP]/home/.codex/config.toml: `mcp_servers` is a value, not an object
    hint: Nothing was changed. `rep setup codex --print` prints the entry to add by hand.
    ");
}

#[test]
fn a_command_of_somebody_else_is_not_started() {
    let ws = Workspace::new();
    ws.write("project/trap.sh", "#!/bin/sh\ntouch sprung\n");
    let program: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(ws.path("project/trap.sh"), program).unwrap();
    let text =
        "{\"mcpServers\": {\"repertoire\": {\"command\": \"./trap.sh\", \"args\": [\"mcp\"]}}}";
    ws.write("project/.mcp.json", text);
    assert_snapshot!(ws.rep("setup claude --check"), @"
    [stderr]
    error: .mcp.json names `./trap.sh mcp`, which is not this program, so it was not started
    hint: `rep setup claude --replace` writes the entry anew.
    [exit 1]
    ");
    assert!(!ws.path("project/sprung").exists());
    let replaced = ws.rep("setup claude --replace");
    assert_eq!(replaced.code, 0, "{replaced}");
    assert_eq!(ws.rep("setup claude --check").code, 0);
}
