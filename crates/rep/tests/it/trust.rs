//! `rep trust`: who may stand before whom, before and after a person's word.

use insta::assert_snapshot;

use crate::workspace::{Workspace, keys};

/// A project with a skill that has the name of a built-in one.
fn rivals() -> Workspace {
    let ws = Workspace::new();
    ws.skill("project/.claude/skills/first-aid", "first-aid", "The project's. Use when hurt.");
    ws
}

#[test]
fn an_untrusted_skill_never_replaces_a_trusted_one_until_a_person_says_so() {
    let ws = rivals();
    assert_snapshot!(ws.rep("list"), @r#"
    .claude/skills · project
      first-aid     untrusted · does not replace [TMP]/pack/first-aid/SKILL.md

    [TMP]/pack · built in
      first-aid     Built in. Use when nothing else helps.

    1 skill, 0 agents, 1 shadowed
    [exit 0]
    "#);
    assert_snapshot!(ws.rep("trust first-aid"), @"
    trusted `first-aid` in .claude/skills/first-aid/SKILL.md, as it is now ([DIGEST])
    It now stands before the one in [TMP]/pack/first-aid/SKILL.md.
    [exit 0]
    ");
    assert_snapshot!(ws.rep("list"), @r#"
    .claude/skills · project
      first-aid     The project's. Use when hurt.

    [TMP]/pack · built in
      first-aid     shadowed by .claude/skills/first-aid/SKILL.md

    1 skill, 0 agents, 1 shadowed
    [exit 0]
    "#);
    assert_snapshot!(ws.rep("trust --revoke first-aid"), @r#"
    `first-aid` in .claude/skills/first-aid/SKILL.md is no longer trusted
    [exit 0]
    "#);
    let shown = ws.rep("show first-aid").stdout;
    assert!(shown.contains("Built in. Use when nothing else helps."), "{shown}");
}

#[test]
fn a_skill_that_changed_after_the_word_is_said_to_have_and_loses_its_place() {
    let ws = rivals();
    ws.skill("project/.claude/skills/lone", "lone", "Alone. Use when alone.");
    ws.rep("trust first-aid lone");
    ws.write("project/.claude/skills/first-aid/scripts/new.sh", "curl\n");
    ws.write("project/.claude/skills/lone/scripts/new.sh", "curl\n");
    assert_snapshot!(ws.rep("list"), @r#"
    .claude/skills · project
      lone          changed since trusted · Alone. Use when alone.
      first-aid     changed since trusted · does not replace [TMP]/pack/first-aid/SKILL.md

    [TMP]/pack · built in
      first-aid     Built in. Use when nothing else helps.

    2 skills, 0 agents, 1 shadowed
    [exit 0]
    "#);
    assert_snapshot!(ws.rep("trust"), @r#"
    trusted    first-aid  [TMP]/pack/first-aid/SKILL.md
    changed    first-aid  .claude/skills/first-aid/SKILL.md
    changed    lone       .claude/skills/lone/SKILL.md
    [exit 0]
    "#);
}

#[test]
fn trusting_again_after_a_change_renews_the_word() {
    let ws = rivals();
    ws.rep("trust first-aid");
    ws.write("project/.claude/skills/first-aid/scripts/new.sh", "curl\n");
    let again = ws.rep("trust first-aid");
    assert!(again.stdout.starts_with("trusted `first-aid` in .claude/skills"), "{again}");
    assert!(ws.rep("show first-aid").stdout.contains("The project's."));
}

#[test]
fn your_own_and_built_in_skills_need_no_word() {
    assert_snapshot!(Workspace::new().rep("trust first-aid"), @r#"
    `first-aid` in [TMP]/pack/first-aid/SKILL.md needs no word: it is your own or built in
    [exit 0]
    "#);
}

#[test]
fn one_of_several_that_wait_is_named_by_its_folder() {
    let ws = rivals();
    ws.skill("project/.agents/skills/first-aid", "first-aid", "Another. Use when hurt.");
    assert_snapshot!(ws.rep("trust first-aid"), @r#"
    [stderr]
    error: several skills called `first-aid` are not trusted: .agents/skills/first-aid/SKILL.md, .claude/skills/first-aid/SKILL.md
    hint: Name the one you mean by its path.
    [exit 1]
    "#);
    assert_snapshot!(ws.rep("trust .agents/skills/first-aid/"), @"
    trusted `first-aid` in .agents/skills/first-aid/SKILL.md, as it is now ([DIGEST])
    It now stands before the one in [TMP]/pack/first-aid/SKILL.md.
    [exit 0]
    ");
    assert_snapshot!(ws.rep("trust .agents/skills/none"), @r#"
    [stderr]
    error: there is no skill in `.agents/skills/none`
    hint: `rep list` shows every skill and its folder.
    [exit 1]
    "#);
}

#[test]
fn revoking_what_was_never_given_says_so() {
    assert_snapshot!(rivals().rep("trust --revoke .claude/skills/first-aid"), @r#"
    `first-aid` in .claude/skills/first-aid/SKILL.md was not trusted
    [exit 0]
    "#);
}

#[test]
fn a_name_that_is_not_there_writes_no_lock() {
    let ws = rivals();
    assert_eq!(ws.rep("trust first-aid nobody").code, 1);
    assert!(!ws.path("home/.config/repertoire/repertoire.lock").exists());
}

#[test]
fn revoke_needs_a_name() {
    assert_snapshot!(rivals().rep("trust --revoke"), @"
    [stderr]
    error: `--revoke` needs the name of a skill, or `--project`
    [exit 2]
    ");
}

#[test]
fn a_damaged_lock_stops_everything_and_is_never_overwritten() {
    let ws = rivals();
    let lock = "home/.config/repertoire/repertoire.lock";
    ws.write(lock, "{\"skills\": 7}");
    assert_snapshot!(ws.rep("list"), @r#"
    [stderr]
    error: [TMP]/home/.config/repertoire/repertoire.lock is damaged: invalid type: integer `7`, expected a map at line 1 column 12
    hint: Nothing is trusted until it can be read: mend it, or move it away to start anew.
    [exit 3]
    "#);
    assert_eq!(ws.rep("trust first-aid").code, 3);
    assert_eq!(ws.text(lock), "{\"skills\": 7}");
}

#[test]
fn a_lock_of_a_newer_version_stops_everything_and_is_never_overwritten() {
    let ws = rivals();
    let lock = "home/.config/repertoire/repertoire.lock";
    ws.write(lock, "{\"version\": 3}");
    let ran = ws.rep("trust first-aid");
    assert!(ran.code == 3 && ran.stderr.contains("written by a newer version"), "{ran}");
    assert_eq!(ws.text(lock), "{\"version\": 3}");
}

#[test]
#[cfg(unix)]
fn a_link_to_a_folder_that_leads_elsewhere_voids_the_word() {
    let ws = rivals();
    let skill = "project/.claude/skills/first-aid";
    ws.write(&format!("{skill}/v1/run.sh"), "true\n");
    ws.write(&format!("{skill}/v2/run.sh"), "curl\n");
    let link = ws.path(&format!("{skill}/scripts"));
    std::os::unix::fs::symlink("v1", &link).unwrap();
    assert_eq!(ws.rep("trust first-aid").code, 0);
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("v2", &link).unwrap();
    let list = ws.rep("trust").stdout;
    assert!(list.contains("changed    first-aid  .claude/skills"), "{list}");
}

#[test]
fn json_lists_everything_that_waits() {
    let list = rivals().json("--json trust", "trust.json");
    assert_eq!(keys(&list["skills"][0]), ["name", "path", "scope", "trust"]);
    let words: Vec<&str> = list["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["trust"].as_str().unwrap())
        .collect();
    assert_eq!(words, ["trusted", "untrusted"]);
}
