//! Consent to the settings of a project that start programs: what is shown and asked, and what follows from the answer.

use insta::assert_snapshot;

use crate::workspace::{Workspace, keys};

const SETTINGS: &str = r#"
[plan]
setup = "npm ci"

[plan.checks.audit]
command = "true"
network = true

[plan.checks.test]
command = """
touch ran
echo tested"""
env = { RUST_LOG = "debug" }
"#;

fn fresh_clone() -> Workspace {
    let mut ws = Workspace::new();
    ws.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    ws.write("project/repertoire.toml", SETTINGS);
    // A check that leaves files which git does not ignore is not believed.
    ws.write("project/.gitignore", "/ran\n");
    ws
}

#[test]
fn without_a_terminal_nothing_runs_and_the_command_that_agrees_is_named() {
    let ws = fresh_clone();
    assert_snapshot!(ws.rep("verify"), @"
    [stderr]
    repertoire.toml wants to start programs on this machine:

        plan.checks.audit.command = true
        plan.checks.audit.network = true
        plan.checks.test.command =
          │ touch ran
          │ echo tested
        plan.checks.test.env.RUST_LOG = debug
        plan.setup = npm ci

    There is no sandbox here: commands can do everything that you can. With `network = true` a command
    can send everything that it can read to any host.
    error: nothing was run: settings of this project start programs, and you have not agreed to them
    hint: To agree to exactly these settings: `rep trust --project --consent [DIGEST]`
    hint: To agree for one command only, add the same `--consent` to it.
    [exit 3]
    ");
    assert!(!ws.path("project/ran").exists());
    assert_snapshot!(ws.rep("trust"), @"
    trusted    first-aid   [TMP]/pack/first-aid/SKILL.md
    untrusted  (settings)  repertoire.toml
    [stderr]
    hint: `rep trust --project` shows the settings that start programs, and asks.
    [exit 0]
    ");
}

#[test]
fn at_a_terminal_the_settings_are_shown_and_no_is_the_usual_answer() {
    let ws = fresh_clone();
    let (seen, code) = ws.at_a_terminal("verify", "\n");
    assert_snapshot!(seen, @"
    repertoire.toml wants to start programs on this machine:

        plan.checks.audit.command = true
        plan.checks.audit.network = true
        plan.checks.test.command =
          │ touch ran
          │ echo tested
        plan.checks.test.env.RUST_LOG = debug
        plan.setup = npm ci

    There is no sandbox here: commands can do everything that you can. With `network = true` a command
    can send everything that it can read to any host.
    Agree to these settings? [y]es, and remember it / [o]nce / [n]o error: nothing was run: you did not agree
    hint: Edit the settings, or run the command again to be asked again.
    ");
    assert_eq!(code, 3);
    assert!(!ws.path("project/ran").exists());
    assert!(!ws.path("home/.config/repertoire/repertoire.lock").exists());
}

#[test]
fn yes_is_remembered_until_a_setting_changes_and_once_is_not() {
    let ws = fresh_clone();
    let (seen, code) = ws.at_a_terminal("verify", "o\n");
    assert_eq!(code, 0, "{seen}");
    assert!(ws.path("project/ran").exists());
    assert_eq!(ws.rep("verify").code, 3);
    let (seen, code) = ws.at_a_terminal("verify", "y\n");
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("Remembered in ~/.config/repertoire/repertoire.lock"), "{seen}");
    assert_eq!(ws.rep("verify").code, 0);
    // The setup of worktrees is not used by `rep verify`, so it alone makes no question.
    let changed = SETTINGS.replace("npm ci", "npm install");
    ws.write("project/repertoire.toml", &changed);
    assert_eq!(ws.rep("verify").code, 0);
    ws.write("project/repertoire.toml", changed.replace("debug", "trace"));
    assert_snapshot!(ws.rep("verify"), @"
    [stderr]
    repertoire.toml wants to start programs, and has changed since you agreed to it:

        plan.checks.audit.command = true
        plan.checks.audit.network = true
        plan.checks.test.command =
          │ touch ran
          │ echo tested
      - plan.checks.test.env.RUST_LOG = debug
      + plan.checks.test.env.RUST_LOG = trace
      - plan.setup = npm ci
      + plan.setup = npm install

    There is no sandbox here: commands can do everything that you can. With `network = true` a command
    can send everything that it can read to any host.
    error: nothing was run: settings of this project that start programs have changed since you agreed to them
    hint: To agree to exactly these settings: `rep trust --project --consent [DIGEST]`
    hint: To agree for one command only, add the same `--consent` to it.
    [exit 3]
    ");
    ws.write("project/repertoire.toml", SETTINGS);
    assert_eq!(ws.rep("verify").code, 0);
    assert_snapshot!(ws.rep("trust --project --revoke"), @"
    the settings of [TMP]/project are no longer trusted
    [exit 0]
    ");
    assert_eq!(ws.rep("verify").code, 3);
}

#[test]
fn programs_find_the_digest_and_agree_with_it() {
    let ws = fresh_clone();
    let listed: serde_json::Value = serde_json::from_slice(&ws.raw("trust --json")).unwrap();
    let project = &listed["project"];
    assert_eq!(keys(project), ["folder", "files", "digest", "trust", "settings"]);
    assert_eq!(project["trust"], "untrusted");
    assert_eq!(project["settings"]["plan.checks.test.env.RUST_LOG"], "debug");
    ws.json("trust --json", "trust.json");
    let digest = project["digest"].as_str().unwrap();
    assert_eq!(ws.rep(&format!("verify --consent {digest}")).code, 0);
    assert_eq!(ws.rep("verify").code, 3);
    assert_snapshot!(ws.rep(&format!("trust --project --consent {digest}")), @"
    trusted the settings of [TMP]/project, as they are now ([DIGEST])
    [stderr]
    repertoire.toml starts programs, and you have agreed to this:

        plan.checks.audit.command = true
        plan.checks.audit.network = true
        plan.checks.test.command =
          │ touch ran
          │ echo tested
        plan.checks.test.env.RUST_LOG = debug
        plan.setup = npm ci

    There is no sandbox here: commands can do everything that you can. With `network = true` a command
    can send everything that it can read to any host.
    Remembered in ~/.config/repertoire/repertoire.lock; `rep trust --project --revoke` removes it.
    [exit 0]
    ");
    assert_eq!(ws.rep("verify").code, 0);
    let other = digest.replace(|c: char| c.is_ascii_digit(), "0").replace("sha000", "sha256");
    let refused = ws.rep(&format!("trust --project --consent {other}"));
    assert!(refused.code == 3 && refused.stderr.contains("is for other settings"), "{refused}");
    assert_eq!(ws.rep("verify --consent 1").code, 2);
}

#[test]
fn the_users_own_configuration_agrees_by_digest_and_by_folder() {
    let ws = fresh_clone();
    let listed: serde_json::Value = serde_json::from_slice(&ws.raw("trust --json")).unwrap();
    let digest = listed["project"]["digest"].as_str().unwrap();
    let user = "home/.config/repertoire/repertoire.toml";
    ws.write(user, format!("[trust]\nsettings = [\"{digest}\"]\n"));
    assert_eq!(ws.rep("verify").code, 0);
    ws.write(user, "[trust]\nsettings = [\"nonsense\"]\n");
    assert_snapshot!(ws.rep("verify"), @"
    [stderr]
    error: [TMP]/home/.config/repertoire/repertoire.toml:2: `trust.settings`: `nonsense`: a digest is `[DIGEST]` and 64 hexadecimal digits
    [exit 2]
    ");
    ws.write(user, "[trust]\nfolders = [\"~/../project\"]\n");
    assert_eq!(ws.rep("verify").code, 0);
    ws.write(user, "[trust]\nfolders = [\"~\"]\n");
    assert_eq!(ws.rep("verify").code, 3);
}

#[test]
fn settings_that_are_not_in_force_are_marked() {
    let ws = fresh_clone();
    let shown = ws.rep("config").stdout;
    let line = shown.lines().find(|line| line.starts_with("plan.setup")).unwrap();
    assert_snapshot!(line, @r#"plan.setup = "npm ci"                                         # repertoire.toml:3, not in force: see `rep trust --project`"#);
    let listed = ws.json("config --json", "config.json");
    let setup =
        listed["settings"].as_array().unwrap().iter().find(|one| one["key"] == "plan.setup");
    assert_eq!(setup.unwrap()["in_force"], false);
}

#[test]
fn a_variable_that_is_not_on_the_list_is_an_error_with_its_line() {
    let ws = fresh_clone();
    ws.write("project/repertoire.toml", SETTINGS.replace("RUST_LOG", "MY_FLAG"));
    assert_snapshot!(ws.rep("verify"), @r#"
    [stderr]
    error: [TMP]/project/repertoire.toml:13: `plan.checks.test.env.MY_FLAG`: it is not on the list of variables that checks may set
    hint: Set it in the command, where it holds inside the sandbox only: `command = "MY_FLAG=… …"`.
    hint: Or allow it in your own configuration: `checks.env_allowed = ["MY_FLAG"]`.
    [exit 2]
    "#);
    ws.write("project/repertoire.toml", SETTINGS.replace("RUST_LOG", "LD_PRELOAD"));
    assert_snapshot!(ws.rep("verify"), @r#"
    [stderr]
    error: [TMP]/project/repertoire.toml:13: `plan.checks.test.env.LD_PRELOAD`: it changes how programs are found, loaded or configured, so no check may set it
    hint: Set it in the command, where it holds inside the sandbox only: `command = "LD_PRELOAD=… …"`.
    [exit 2]
    "#);
    ws.write("project/repertoire.toml", SETTINGS.replace("RUST_LOG", "MY_FLAG"));
    let user = "home/.config/repertoire/repertoire.toml";
    ws.write(user, "checks.env_allowed = [\"MY_*\"]\ntrust.folders = [\"~/../project\"]\n");
    assert_eq!(ws.rep("verify").code, 0);
    ws.write(user, "checks.env_allowed = [\"PATH\"]\n");
    assert_snapshot!(ws.rep("verify"), @"
    [stderr]
    error: [TMP]/home/.config/repertoire/repertoire.toml:1: `checks.env_allowed`: `PATH`: it changes how programs are found, loaded or configured, so no check may set it
    [exit 2]
    ");
}

#[test]
fn trust_of_the_project_is_lasting_or_refused() {
    let ws = fresh_clone();
    for typed in ["o\n", "n\n"] {
        let (seen, code) = ws.at_a_terminal("trust --project", typed);
        assert!(seen.contains("Trust these settings? [y]es / [n]o "), "{seen}");
        assert!(seen.contains("error: not trusted: you did not agree"), "{seen}");
        assert_eq!(code, 3, "{seen}");
    }
    let refused = ws.rep("trust --project");
    assert!(refused.code == 3 && refused.stderr.contains("error: not trusted: "), "{refused}");
    assert!(!refused.stderr.contains("nothing was run"), "{refused}");
    assert_eq!(ws.rep("verify").code, 3);
    let (seen, code) = ws.at_a_terminal("trust --project", "y\n");
    assert!(code == 0 && seen.contains("trusted the settings of"), "{seen}");
    assert_eq!(ws.rep("verify").code, 0);
}
