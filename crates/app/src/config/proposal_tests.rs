use repertoire_skill::skill::ContentDigest;

use super::*;
use crate::config::KEYS;
use crate::config::layers::ConfigLayers;
use crate::config::origin::SettingsFile;

fn layers(files: &[(&str, &str)]) -> ConfigLayers {
    let mut layers = ConfigLayers::new("/project".into());
    for (path, text) in files {
        let text = (*text).into();
        let file = SettingsFile { path: (*path).into(), committed_as: None, text };
        layers.apply_text(&file, true);
    }
    layers
}

fn digest(text: &str) -> Option<ContentDigest> {
    let proposal =
        SettingsProposal::from_settings(&layers(&[("/project/repertoire.toml", text)]).proposed);
    proposal.map(|proposal| proposal.settings.digest())
}

const BEFORE: &str = r#"
skills_max_body_chars = 1
[plan]
self_improve = true
setup = "npm ci"
copy = [".env"]
[plan.checks.test]
command = "cargo test"
timeout = "5m"
network = true
env = { CI = "1" }
[plan.final_checks.audit]
command = "cargo audit"
"#;

#[test]
fn every_change_of_an_acting_setting_changes_the_digest() {
    let before = digest(BEFORE).unwrap();
    for (old, new) in [
        ("self_improve = true", "self_improve = false"),
        ("npm ci", "npm install"),
        ("setup = \"npm ci\"", ""),
        ("\".env\"", "\".env\", \"key.pem\""),
        ("cargo test", "cargo test "),
        ("[plan.checks.test]", "[plan.checks.test2]"),
        ("[plan.checks.test]", "[plan.final_checks.test]"),
        ("network = true", "network = false"),
        ("network = true", ""),
        ("CI = \"1\"", "CI = \"2\""),
        ("CI = \"1\"", "CI = \"1\", DEBUG = \"1\""),
        ("CI = \"1\"", "DEBUG = \"1\""),
        ("env =", "new_field ="),
        ("[plan.final_checks.audit]\ncommand = \"cargo audit\"", ""),
        ("command = \"cargo audit\"", "command = \"cargo audit\"\nnetwork = true"),
    ] {
        assert!(BEFORE.contains(old), "{old}");
        assert_ne!(digest(&BEFORE.replacen(old, new, 1)), Some(before), "{old} → {new}");
    }
}

#[test]
fn every_acting_key_is_proposed_and_counts() {
    let acting = KEYS.iter().filter(|key| key.set_by == SetBy::UserOrConsentedProject);
    let mut seen = Vec::new();
    for key in acting {
        let texts = match key.name {
            "plan.self_improve" => ["plan.self_improve = true", ""],
            "plan.copy" => ["plan.copy = ['a']", "plan.copy = ['b']"],
            "plan.setup" => ["plan.setup = 'a'", "plan.setup = 'b'"],
            "plan.checks" => ["plan.checks.x.command = 'a'", "plan.checks.x.command = 'b'"],
            "plan.final_checks" => {
                ["plan.final_checks.x.command = 'a'", "plan.final_checks.x.command = 'b'"]
            }
            other => panic!("{other} is new: add two values of it here"),
        };
        let [a, b] = texts.map(digest);
        assert!(a.is_some() && a != b, "{}", key.name);
        seen.push(a);
    }
    let count = seen.len();
    seen.sort_by_key(|digest| digest.map(|digest| digest.to_string()));
    seen.dedup();
    assert_eq!(seen.len(), count);
}

#[test]
fn what_does_not_act_changes_nothing() {
    let before = digest(BEFORE);
    for (old, new) in [
        ("skills_max_body_chars = 1", "skills_max_body_chars = 2"),
        ("[plan]", "# A comment.\n[plan]\nattempts = 2"),
        ("timeout = \"5m\"", "retries = 2\ncritical = false\ndepends_on = []"),
        ("command = \"cargo audit\"", "command = 'cargo audit'\nnetwork = false"),
    ] {
        assert!(BEFORE.contains(old), "{old}");
        assert_eq!(digest(&BEFORE.replacen(old, new, 1)), before, "{old} → {new}");
    }
    assert_eq!(digest("[plan]\nself_improve = false\ncopy = []\nreview = false\n"), None);
}

#[test]
fn keys_with_dots_are_not_taken_for_tables() {
    let dotted = digest("[plan.checks]\n'a.command' = { command = 'x' }\n");
    let nested = digest("[plan.checks.a.command]\ncommand = 'x'\n");
    assert!(dotted.is_some() && dotted != nested);
}

#[test]
fn the_nearest_file_counts_and_a_user_keeps_what_a_project_does_not_replace() {
    let root = ("/project/repertoire.toml", "[plan]\nsetup = 'a'\ncopy = ['x']\n");
    let near = ("/project/sub/repertoire.toml", "[plan]\nsetup = 'b'\ncopy = []\n");
    let layers = layers(&[root, near]);
    let proposal = SettingsProposal::from_settings(&layers.proposed).unwrap();
    assert_eq!(proposal.folder, "/project/sub");
    assert_eq!(proposal.settings.iter().collect::<Vec<_>>(), [("plan.setup", "\"b\"")]);
}

#[test]
fn lines_are_found_through_tables() {
    let text = "[plan.checks.a]\ncommand = 'x'\n\n[plan.checks.b]\ncommand = 'x'\nenv = { CI = '1',\n  PATH = '/x' }\n";
    let line = |path: &[&str]| line_within(text, path);
    assert_eq!(line(&["plan", "checks", "b"]), Some(4));
    assert_eq!(line(&["plan", "checks", "b", "env", "PATH"]), Some(7));
    assert_eq!(line(&["plan", "checks", "c"]), None);
}

/// A new key that projects may set must be added to one of these lists deliberately.
#[test]
fn a_project_sets_preferences_and_nothing_that_acts_without_consent() {
    let by = |who: SetBy| -> Vec<&str> {
        KEYS.iter().filter(|key| key.set_by == who).map(|key| key.name).collect()
    };
    assert_eq!(
        by(SetBy::UserOrConsentedProject),
        ["plan.checks", "plan.final_checks", "plan.self_improve", "plan.copy", "plan.setup"]
    );
    assert!(by(SetBy::UserOrBaseBranch).iter().all(|name| name.starts_with("github.")));
    insta::assert_snapshot!(by(SetBy::Anyone).join("\n"), @"
    skills_enabled
    skills_dirs
    extra_roots
    skills_sync_on_start
    skills_max_selected_impl
    skills_max_selected_review
    auto_trigger.enabled
    auto_trigger.confidence_threshold
    auto_trigger.max_skills
    skills_load_references
    skills_max_body_chars
    model
    permissions.ask
    permissions.deny
    review.depth
    review.skills
    review.skip_agents
    review.min_severity
    review.fail_on
    review.instructions
    review.strong_model
    review.fast_model
    plan.review
    plan.agent
    plan.review_agent
    plan.model
    plan.review_model
    plan.instructions
    plan.attempts
    plan.failures
    plan.iterations
    plan.step_time
    plan.branch_prefix
    ");
}
