use repertoire_skill::skill::Scope;
use repertoire_text::fs;

use super::*;

fn load(files: &[(&str, &str)], vars: &[(&str, &str)]) -> Result<RepConfig, AppError> {
    let keep = tempfile::tempdir().unwrap();
    let here = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
    for (path, text) in files {
        fs::write_atomic(&here.join(path), text.as_bytes()).unwrap();
    }
    let mut all: BTreeMap<String, String> =
        vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    all.insert("HOME".into(), here.join("home").into());
    let env = AppEnvironment { here: here.clone(), moved: true, vars: all, rep_program: None };
    RepConfig::load(&env, &here, &ConfigFlags::default())
}

fn shown(result: Result<RepConfig, AppError>) -> String {
    let failure = result.unwrap_err();
    let text = failure.message.split_once("repertoire.toml").map_or("", |(_, rest)| rest);
    format!("{text} | {}", failure.hints.join(" "))
}

#[test]
fn later_layers_win_and_say_where_they_came_from() {
    let user = (
        "home/.config/repertoire/repertoire.toml",
        "skills_max_body_chars = 1\n[walk]\ndepth_max = 3\n",
    );
    let project = ("repertoire.toml", "skills_max_body_chars = 2\n");
    let config = load(&[user, project], &[("REPERTOIRE_WALK_DEPTH_MAX", "9")]).unwrap();
    assert_eq!((config.values().skills_max_body_chars, config.values().walk_depth_max), (2, 9));
    let origin = &config.get_setting(&KEY.walk_depth_max).unwrap().origin;
    assert_eq!(*origin, ConfigOrigin::Environment("REPERTOIRE_WALK_DEPTH_MAX".into()));
    assert!(
        matches!(&config.get_setting(&KEY.skills_max_body_chars).unwrap().origin, ConfigOrigin::File(at) if at.ends_with("repertoire.toml:1"))
    );
}

#[test]
fn wrong_keys_values_and_files_are_named_with_their_line() {
    let check = |text: &str, expect: &str| {
        assert_eq!(shown(load(&[("repertoire.toml", text)], &[])), expect);
    };
    check(
        "\nskill_dirs = []\n",
        ":2: `skill_dirs` is not a configuration key | Did you mean `skills_dirs`?",
    );
    check("skills_enabled = 1\n", ":1: `skills_enabled` is 1, but should be `true` or `false` | ");
    let user = ("home/.config/repertoire/repertoire.toml", "profile = \"x\"\n");
    assert_eq!(
        shown(load(&[user], &[])),
        ":1: `profile` is \"x\", but should be one of repertoire, agentskills, openskills, claude, codex, gemini | "
    );
    check(
        "profile = \"openskills\"\n",
        ":1: `profile` may not be set by a project | Set it in your own `~/.config/repertoire/repertoire.toml`: projects may not decide this.",
    );
    check(
        "skills_sync_dir = \"/x\"\n",
        ":1: `skills_sync_dir` may not be set by a project | Set it in your own `~/.config/repertoire/repertoire.toml`: projects may not decide this.",
    );
}

#[test]
fn a_list_of_tables_is_answered_with_the_right_heading() {
    let text = "\n[[plan.checks]]\ncommand = 'true'\n";
    assert_eq!(
        shown(load(&[("repertoire.toml", text)], &[])),
        ":2: `plan.checks` is a list, but should be a table | Write `[plan.checks.NAME]` instead of `[[plan.checks]]`."
    );
}

#[test]
fn a_project_may_forbid_more_and_allow_nothing() {
    let user = (
        "home/.config/repertoire/repertoire.toml",
        "[permissions]\ndeny = ['bash(rm:*)']\nallow = ['bash(git status:*)']\n",
    );
    let project = ("repertoire.toml", "[permissions]\ndeny = ['write']\n");
    let config = load(&[user, project], &[]).unwrap();
    assert_eq!(config.values().permissions_deny.0, ["bash(rm:*)", "write"]);
    for widening in [
        "[permissions]\nallow = ['bash']\n",
        "[permissions]\nmode = 'full'\n",
        "sandbox = 'off'\n",
        "[mcp_servers.x]\ncommand = 'x'\n",
        "[models.'openai/x']\ninput_usd = 0\n",
        "[limits]\ncost = 100.0\n",
    ] {
        let message = load(&[("repertoire.toml", widening)], &[]).unwrap_err().message;
        assert!(message.contains("may not be set by a project"), "{widening}: {message}");
    }
}

#[test]
fn the_longer_way_to_write_auto_trigger_is_understood() {
    let text = "[skills.auto_trigger]\nmax_skills = 7\n";
    assert_eq!(load(&[("repertoire.toml", text)], &[]).unwrap().selection_settings().max_skills, 7);
}

#[test]
fn an_empty_item_of_a_list_in_the_environment_is_no_folder() {
    let config = load(&[], &[("REPERTOIRE_EXTRA_ROOTS", "/x:")]).unwrap();
    assert_eq!(config.discovery_request().unwrap().extra_roots.len(), 1);
}

#[test]
fn folders_named_by_a_project_are_the_projects_own() {
    let config = load(&[("repertoire.toml", "skills_dirs = ['x', '~/y']\n")], &[]).unwrap();
    let roots = config.discovery_request().unwrap().roots.unwrap();
    let scopes: Vec<Scope> = roots.iter().map(|root| root.scope).collect();
    assert_eq!(scopes[..2], [Scope::Project, Scope::Project]);
    assert!(scopes[2..].contains(&Scope::User) && scopes.last() == Some(&Scope::Builtin));
    assert!(roots[1].dir.ends_with("home/y"));
}
