//! What a project's configuration can start or open.

use crate::scene::{Ran, Scene, ran};
use crate::{Guarantee, Tried};

pub(crate) fn guarantees() -> Vec<Guarantee> {
    vec![
        Guarantee {
            holds: "a variable of a check does not reach programs outside the sandbox",
            tried: Tried::InEverySituation,
            attack: a_variable_reaches_the_helper_of_the_sandbox,
        },
        Guarantee {
            holds: "a check sets only variables that are on the list, whatever was agreed to",
            tried: Tried::Once,
            attack: a_check_sets_variables_that_find_load_or_configure_programs,
        },
        Guarantee {
            holds: "a project's check runs only after the user has agreed, and again when it changes",
            tried: Tried::InEverySituation,
            attack: a_check_runs_without_consent,
        },
        Guarantee {
            holds: "a project's `network = true` needs a consent that showed it",
            tried: Tried::Once,
            attack: a_check_opens_the_network_with_an_older_consent,
        },
        Guarantee {
            holds: "every setting of a project that starts a program or widens the sandbox needs consent",
            tried: Tried::Once,
            attack: a_setting_acts_without_consent,
        },
        Guarantee {
            holds: "a project cannot agree for the user, or give itself more rights",
            tried: Tried::Once,
            attack: a_project_agrees_for_the_user,
        },
        Guarantee {
            holds: "a subfolder's settings need a consent of their own",
            tried: Tried::Once,
            attack: a_subfolder_uses_the_consent_of_its_parent,
        },
        Guarantee {
            holds: "settings are shown in full, with nothing hidden, before the user agrees",
            tried: Tried::Once,
            attack: a_command_hides_from_the_terminal,
        },
    ]
}

const CHECK: &str = "[plan.checks.a]\ncommand = \"touch ran\"\n";

/// Writes the project's settings. The file that shows that a check has run is ignored by git: a check that leaves other files
/// behind is no clean pass.
fn declare(scene: &Scene, settings: impl AsRef<[u8]>) {
    scene.write("project/.gitignore", "ran\n");
    scene.write("project/repertoire.toml", settings);
}

/// `rep verify` of a user who has agreed to everything below the project, so that only the settings themselves can stop it.
fn verify_as_owner(scene: &Scene) -> Ran {
    let mut command = scene.rep_command(&["verify"]);
    ran(&command.env("REPERTOIRE_TRUST_FOLDERS", scene.path("project")).output().unwrap())
}

/// The command that agrees, as the message gives it, without `rep`.
fn consenting_line(refused: &Ran) -> String {
    let line = refused.stderr.split_once("`rep trust --project --consent ");
    let digest = line.and_then(|(_, rest)| rest.split_once('`')).map(|(digest, _)| digest);
    let digest = digest.unwrap_or_else(|| panic!("no consent was asked for: {}", refused.stderr));
    format!("trust --project --consent {digest}")
}

#[track_caller]
fn assert_not_run(scene: &Scene, refused: &Ran) {
    assert!(!scene.exists("project/ran"), "the check has run: {}", refused.stderr);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("rep trust --project --consent sha256:"), "{}", refused.stderr);
}

/// The loader writes its own diary where this variable says, in every program that it starts.
fn a_variable_reaches_the_helper_of_the_sandbox(scene: &Scene) {
    let diary = scene.path("outside/diary");
    declare(
        scene,
        format!("{CHECK}env = {{ LD_DEBUG = \"libs\", LD_DEBUG_OUTPUT = \"{diary}\" }}\n"),
    );
    let refused = verify_as_owner(scene);
    let written: Vec<_> = std::fs::read_dir(scene.path("outside")).unwrap().collect();
    assert!(written.is_empty(), "written outside the sandbox: {written:?}");
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("repertoire.toml:3: `plan.checks.a.env.LD_DEBUG`"),
        "{}",
        refused.stderr
    );
}

fn a_check_sets_variables_that_find_load_or_configure_programs(scene: &Scene) {
    for variable in [
        "LD_PRELOAD",
        "DYLD_INSERT_LIBRARIES",
        "PATH",
        "HOME",
        "RUSTUP_HOME",
        "TMPDIR",
        "GIT_CONFIG_GLOBAL",
        "PYTHONSTARTUP",
        "NODE_OPTIONS",
        "BASH_ENV",
        "PERL5OPT",
        "RUSTC_WRAPPER",
        "UNHEARD_OF",
    ] {
        let text = format!("{CHECK}env = {{ {variable} = \"x\" }}\n");
        declare(scene, text);
        let refused = verify_as_owner(scene);
        assert!(!scene.exists("project/ran"), "{variable}");
        assert_eq!(refused.code, 2, "{variable}: {}", refused.stderr);
        assert!(refused.stderr.contains(&format!("env.{variable}`")), "{}", refused.stderr);
    }
    declare(scene, format!("{CHECK}env = {{ CI = \"1\" }}\n"));
    assert_eq!(verify_as_owner(scene).code, 0);
}

fn a_check_runs_without_consent(scene: &Scene) {
    declare(scene, CHECK);
    let refused = scene.rep("verify");
    assert_not_run(scene, &refused);
    assert!(refused.stderr.contains("plan.checks.a.command = touch ran"), "{}", refused.stderr);
    let agreed = scene.rep(&consenting_line(&refused));
    assert_eq!(agreed.code, 0, "{}", agreed.stderr);
    // Comments, limits and preferences may change; a command may not.
    declare(scene, format!("# New.\n{CHECK}timeout = \"1m\"\n"));
    let passed = scene.rep("verify");
    assert_eq!(passed.code, 0, "{}", passed.stderr);
    std::fs::remove_file(scene.path("project/ran")).unwrap();
    declare(scene, CHECK.replace("ran", "./ran"));
    let changed = scene.rep("verify");
    assert_not_run(scene, &changed);
    assert!(changed.stderr.contains("- plan.checks.a.command = touch ran"), "{}", changed.stderr);
    assert!(changed.stderr.contains("+ plan.checks.a.command = touch ./ran"), "{}", changed.stderr);
    let line = consenting_line(&changed);
    let (_, digest) = line.rsplit_once(' ').unwrap();
    assert_eq!(scene.rep(&format!("verify --consent {digest}")).code, 0);
    std::fs::remove_file(scene.path("project/ran")).unwrap();
    assert_not_run(scene, &scene.rep("verify"));
}

fn a_check_opens_the_network_with_an_older_consent(scene: &Scene) {
    declare(scene, CHECK);
    let line = consenting_line(&scene.rep("verify"));
    assert_eq!(scene.rep(&line).code, 0);
    declare(scene, format!("{CHECK}network = true\n"));
    let (_, digest) = line.rsplit_once(' ').unwrap();
    for line in ["verify".to_owned(), format!("verify --consent {digest}"), line.clone()] {
        let refused = scene.rep(&line);
        assert_not_run(scene, &refused);
        assert!(refused.stderr.contains("+ plan.checks.a.network = true"), "{}", refused.stderr);
    }
}

fn a_setting_acts_without_consent(scene: &Scene) {
    scene.write("project/PLAN.md", "# P\n\n- [ ] one\n");
    scene.write("project/agent.yaml", "turns:\n  - text: Done.\n");
    for setting in [
        "setup = \"touch ran\"",
        "copy = [\".env\"]",
        "self_improve = true",
        "checks.a.command = \"touch ran\"",
        "final_checks.a.command = \"touch ran\"",
    ] {
        declare(scene, format!("[plan]\n{setting}\n"));
        scene.commit("Settings");
        let refused = scene.rep("plan run --backend scripted:agent.yaml");
        assert_not_run(scene, &refused);
        let shown = setting.replace('"', "");
        let (key, _) = shown.split_once(" = ").unwrap();
        assert!(refused.stderr.contains(&format!("plan.{key} = ")), "{}", refused.stderr);
        assert!(!scene.exists("data/worktrees"), "{setting}");
    }
}

fn a_project_agrees_for_the_user(scene: &Scene) {
    declare(scene, CHECK);
    let refused = scene.rep("verify");
    assert_not_run(scene, &refused);
    let line = consenting_line(&refused);
    let (_, digest) = line.rsplit_once(' ').unwrap();
    let (project, settings) =
        (scene.path("project"), "{\"plan.checks.a.command\": \"\\\"touch ran\\\"\"}");
    let lock = format!(
        "{{\"version\": 2, \"projects\": {{\"{project}\": {{\"digest\": \"{digest}\", \"settings\": {settings}}}}}}}"
    );
    for place in
        ["repertoire.lock", ".repertoire/repertoire.lock", ".config/repertoire/repertoire.lock"]
    {
        scene.write(&format!("project/{place}"), &lock);
    }
    assert_not_run(scene, &scene.rep("verify"));
    for own in [
        format!("trust.settings = [\"{digest}\"]"),
        format!("trust.folders = [\"{project}\"]"),
        "checks.env_allowed = [\"*\"]".to_owned(),
        "sandbox = \"off\"".to_owned(),
        "permissions.mode = \"full\"".to_owned(),
        "permissions.allow = [\"bash\"]".to_owned(),
        "mcp_servers.x.command = \"touch ran\"".to_owned(),
        "database_url = \"postgres://evil.example/x\"".to_owned(),
        "research.search_url = \"https://evil.example/{query}\"".to_owned(),
        "plan.backend = \"command:touch ran\"".to_owned(),
        "plan.self_improve_network = true".to_owned(),
    ] {
        declare(scene, format!("{own}\n{CHECK}"));
        let refused = scene.rep(&format!("verify --consent {digest}"));
        assert!(!scene.exists("project/ran"), "{own}");
        assert_eq!(refused.code, 2, "{own}: {}", refused.stderr);
        assert!(refused.stderr.contains("may not be set by a project"), "{}", refused.stderr);
    }
}

fn a_subfolder_uses_the_consent_of_its_parent(scene: &Scene) {
    declare(scene, CHECK);
    assert_eq!(scene.rep(&consenting_line(&scene.rep("verify"))).code, 0);
    scene.write("project/sub/repertoire.toml", "[plan.checks.b]\ncommand = \"touch ran\"\n");
    let refused = scene.rep("-C sub verify");
    assert_not_run(scene, &refused);
    assert_eq!(scene.rep("verify").code, 0);
}

fn a_command_hides_from_the_terminal(scene: &Scene) {
    let long = "x".repeat(500);
    declare(
        scene,
        format!(
            "[plan.checks.a]\ncommand = \"touch ran # \\u001b[2K\\r\\u202e\\u200b\\nplan.setup = nothing # {long}END\"\n"
        ),
    );
    let refused = scene.rep("verify");
    assert_not_run(scene, &refused);
    let shown = &refused.stderr;
    assert!(!shown.contains(['\u{1b}', '\r', '\u{202e}', '\u{200b}']), "{shown:?}");
    assert!(
        shown.contains("│ touch ran # ") && shown.contains("│ plan.setup = nothing"),
        "{shown}"
    );
    assert!(shown.replace("\n    ↪ │ ", "").contains(&format!("{long}END")), "{shown}");
    assert!(!shown.lines().any(|line| line.trim_start().starts_with("plan.setup")), "{shown}");
}
