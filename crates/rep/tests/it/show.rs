//! `rep show`: one skill with everything known, and names that lead nowhere.

use insta::assert_snapshot;

use crate::workspace::{Workspace, keys};

fn rich() -> Workspace {
    let ws = Workspace::new();
    ws.skill_with(
        "project/.claude/skills/sql",
        "name: sql\ndescription: Reviews migrations for locks, data loss and missing indexes. Use when a migration is added, changed or removed.\n\
         version: 1.2.0\ndependencies: [first-aid, absent]\ntags: [db]\nreviewer: the team\nmetadata:\n  owner: {name: Ann}\n",
    );
    ws.write("project/.claude/skills/sql/scripts/run.sh", "#!/bin/sh\n");
    ws.write("project/.claude/skills/sql/references/locks.md", "# Locks\n");
    ws.skill("project/.agent/skills/sql", "sql", "Another. Use when another is meant.");
    ws
}

#[test]
fn everything_known_is_shown_with_the_place_of_each_field() {
    assert_snapshot!(rich().rep("show sql"), @r#"
    sql
      Reviews migrations for locks, data loss and missing indexes. Use when a migration is added,
      changed or removed.

      file       .claude/skills/sql/SKILL.md
      scope      project
      dialect    agent-skills
      type       custom
      trust      untrusted
      digest     [DIGEST]
      body       1 line, 77 characters, about 20 tokens

    Fields
      2:1    name                     sql
      3:1    description              Reviews migrations for locks, data loss and missing indexes. Use…
      4:1    version                  1.2.0
      5:1    dependencies             ["first-aid","absent"]
      6:1    tags                     ["db"]
      7:1    reviewer                 the team (kept, no effect here)
      8:1    metadata                 {"owner":{"name":"Ann"}}

    Depends on
      first-aid  there
      absent     missing

    Files
      references/locks.md  8 bytes, references
      scripts/run.sh       10 bytes, scripts

    Stands before
      .agent/skills/sql/SKILL.md

    warning[RS301]: `sql` depends on `absent`, which is not there
     --> [TMP]/project/.claude/skills/sql/SKILL.md:5:1
      |
    5 | dependencies: [first-aid, absent]
      | ^^^^^^^^^^^^
      |
      = help: Install it or remove the dependency.
    [exit 0]
    "#);
}

#[test]
fn long_descriptions_wrap_and_long_values_are_cut() {
    let mut ws = rich();
    ws.set("COLUMNS", "60");
    let ran = ws.rep("show sql");
    let (head, _) = ran.stdout.split_once("Depends on").unwrap();
    assert_snapshot!(head, @r#"
    sql
      Reviews migrations for locks, data loss and missing
      indexes. Use when a migration is added, changed or
      removed.

      file       .claude/skills/sql/SKILL.md
      scope      project
      dialect    agent-skills
      type       custom
      trust      untrusted
      digest     [DIGEST]
      body       1 line, 77 characters, about 20 tokens

    Fields
      2:1    name                     sql
      3:1    description              Reviews migrations for lo…
      4:1    version                  1.2.0
      5:1    dependencies             ["first-aid","absent"]
      6:1    tags                     ["db"]
      7:1    reviewer                 the team (kept, no effect here)
      8:1    metadata                 {"owner":{"name":"Ann"}}
    "#);
}

#[test]
fn json_is_the_whole_record() {
    let skill = rich().json("--json show sql", "show.json");
    assert_snapshot!(keys(&skill).join(" "), @"id name original_name description path root scope plugin trust dialect digest kind version author license compatibility metadata tags capabilities triggers tools dependencies execution claude unknown_fields fields body_chars resources");
}

#[test]
fn an_agent_is_found_by_name_too() {
    let ws = Workspace::new();
    ws.write(
        "project/.claude/agents/keeper.md",
        "---\nname: keeper\ndescription: Knows the schema.\ntools: Read, Grep\n---\n\nYou know it.\n",
    );
    assert_snapshot!(ws.rep("show keeper"), @r#"
    keeper
      Knows the schema.

      file       .claude/agents/keeper.md
      scope      project
      dialect    sub-agent
      type       custom
      trust      untrusted
      digest     [DIGEST]
      body       1 line, 13 characters, about 4 tokens

    Fields
      2:1    name                     keeper
      3:1    description              Knows the schema.
      4:1    tools                    Read, Grep
    [exit 0]
    "#);
}

#[test]
fn a_missing_name_says_where_it_was_looked_for() {
    assert_snapshot!(rich().rep("show nothing"), @r#"
    [stderr]
    error: skill `nothing` not found
    hint: Searched: .claude/skills, .agent/skills, [TMP]/pack
    hint: `rep list` shows every skill; `rep doctor` says why one is missing.
    [exit 1]
    "#);
}

#[test]
fn a_near_name_is_suggested() {
    assert_snapshot!(rich().rep("show frist-aid"), @r#"
    [stderr]
    error: skill `frist-aid` not found
    hint: Did you mean `first-aid`?
    hint: Searched: .claude/skills, .agent/skills, [TMP]/pack
    hint: `rep list` shows every skill; `rep doctor` says why one is missing.
    [exit 1]
    "#);
}

#[test]
fn other_spellings_of_a_name_find_it() {
    let ran = rich().rep_with(&["show", "First Aid"]);
    assert!(ran.stdout.starts_with("first-aid\n"), "{ran}");
}

#[test]
fn a_broken_skill_is_not_merely_missing() {
    let ws = Workspace::new();
    ws.write("project/.claude/skills/draft/SKILL.md", "---\nname: draft\n---\n\nNotes.\n");
    assert_snapshot!(ws.rep("show draft"), @r#"
    [stderr]
    error: skill `draft` not found
    hint: .claude/skills/draft/SKILL.md is broken: the skill has no `description`
    hint: Searched: .claude/skills, [TMP]/pack
    hint: `rep list` shows every skill; `rep doctor` says why one is missing.
    [exit 1]
    "#);
}

#[test]
fn plugin_references_name_the_paths_that_were_searched() {
    let ws = Workspace::new();
    ws.skill(
        "home/.claude/plugins/cache/market/tools/1.0.0/skills/fmt",
        "fmt",
        "Formats. Use when asked.",
    );
    let first = |line: &str| ws.rep(line).stdout.lines().next().unwrap_or_default().to_owned();
    assert_eq!(first("show tools:fmt"), "tools:fmt");
    assert_eq!(first("show fmt"), "tools:fmt");
    assert_snapshot!(ws.rep("show tools:fnt"), @r#"
    [stderr]
    error: skill `tools:fnt` not found
    hint: Did you mean `tools:fmt`?
    hint: Searched: [TMP]/home/.claude/plugins/cache/**/tools/*/skills/fnt/SKILL.md
    hint: `rep list` shows every skill; `rep doctor` says why one is missing.
    [exit 1]
    "#);
    assert_snapshot!(ws.rep("show other:fmt"), @r#"
    [stderr]
    error: skill `other:fmt` not found
    hint: Did you mean `tools:fmt`?
    hint: Searched: [TMP]/home/.claude/plugins/cache/**/other/*/skills/fmt/SKILL.md
    hint: `rep list` shows every skill; `rep doctor` says why one is missing.
    [exit 1]
    "#);
}

#[test]
fn a_bare_name_that_two_plugins_have_is_ambiguous() {
    let ws = Workspace::new();
    for plugin in ["left", "right"] {
        let folder = format!("home/.claude/plugins/cache/market/{plugin}/1.0.0/skills/fmt");
        ws.skill(&folder, "fmt", "Formats. Use when asked.");
    }
    assert_snapshot!(ws.rep("show fmt"), @r#"
    [stderr]
    error: several skills are called `fmt`: ~/.claude/plugins/cache/market/left/1.0.0/skills/fmt/SKILL.md, ~/.claude/plugins/cache/market/right/1.0.0/skills/fmt/SKILL.md
    hint: Rename one of them, or name a plugin's as `plugin:skill`.
    [exit 1]
    "#);
}

#[test]
fn no_name_at_all_is_wrong_use() {
    assert_snapshot!(Workspace::new().rep("show"), @r#"
    [stderr]
    error: the following required arguments were not provided:
      <NAME>

    Usage: rep show <NAME>

    For more information, try '--help'.
    [exit 2]
    "#);
}
