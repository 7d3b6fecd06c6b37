//! `rep list`: roots, profiles, collisions, filters, and what cannot be listed.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use insta::assert_snapshot;
use unicode_width::UnicodeWidthStr;

use crate::workspace::{Workspace, keys, permissions_hold};

/// One of everything: two project roots, a home, a plugin in three versions, a pack, an agent, a draft.
fn crowded() -> Workspace {
    let ws = Workspace::new();
    ws.skill("project/.agents/skills/pdf", "pdf", "Agents folder. Use when a PDF is read.");
    ws.skill("project/.claude/skills/pdf", "pdf", "Claude folder. Use when a PDF is read.");
    ws.skill("project/.claude/skills/first-aid", "first-aid", "A stranger's. Use when hurt.");
    ws.write("project/.claude/skills/draft/SKILL.md", "---\nname: draft\n---\n\nNotes.\n");
    ws.write(
        "project/.claude/agents/keeper.md",
        "---\nname: keeper\ndescription: Knows the schema. Delegate questions about it.\n---\n\nYou know it.\n",
    );
    ws.skill("home/.claude/skills/notes", "notes", "Takes notes. Use when something is said.");
    for version in ["1.9.0", "1.10.0", "latest"] {
        let folder = format!("home/.claude/plugins/cache/market/tools/{version}/skills/fmt");
        ws.skill(&folder, "fmt", &format!("From {version}. Use when code is formatted."));
    }
    ws
}

#[test]
fn skills_stand_by_root_in_the_order_of_the_profile_with_losers_and_broken_ones() {
    assert_snapshot!(crowded().rep("list"), @r#"
    .agents/skills · project
      pdf           untrusted · Agents folder. Use when a PDF is read.

    .claude/skills · project
      first-aid     untrusted · does not replace [TMP]/pack/first-aid/SKILL.md
      pdf           shadowed by .agents/skills/pdf/SKILL.md
      draft         broken: the skill has no `description` [RS103]

    .claude/agents · project
      keeper        agent · untrusted · Knows the schema. Delegate questions about it.

    ~/.claude/skills · yours
      notes         Takes notes. Use when something is said.

    ~/.claude/plugins/cache/market/tools/1.10.0/skills · plugin tools 1.10.0
      tools:fmt     untrusted · From 1.10.0. Use when code is formatted.

    [TMP]/pack · built in
      first-aid     Built in. Use when nothing else helps.

    4 skills, 1 agent, 2 shadowed, 1 broken
    [exit 0]
    "#);
}

#[test]
fn every_profile_has_its_own_roots_names_and_winners() {
    let ws = crowded();
    ws.skill("home/.claude/skills/pdf", "pdf", "At home. Use when a PDF is read.");
    ws.skill("project/.agent/skills/renamed", "given-name", "Universal. Use when renamed.");
    ws.skill("project/.codex/skills/pdf", "pdf", "Codex folder. Use when a PDF is read.");
    ws.skill("project/.gemini/skills/pdf", "pdf", "Gemini folder. Use when a PDF is read.");
    let show = |profile: &str| ws.rep(&format!("--profile {profile} list")).to_string();
    assert_snapshot!(show("repertoire"), @r#"
    .agents/skills · project
      pdf           untrusted · does not replace ~/.claude/skills/pdf/SKILL.md

    .claude/skills · project
      first-aid     untrusted · does not replace [TMP]/pack/first-aid/SKILL.md
      pdf           shadowed by ~/.claude/skills/pdf/SKILL.md
      draft         broken: the skill has no `description` [RS103]

    .agent/skills · project
      given-name    untrusted · Universal. Use when renamed.

    .codex/skills · project
      pdf           shadowed by ~/.claude/skills/pdf/SKILL.md

    .gemini/skills · project
      pdf           shadowed by ~/.claude/skills/pdf/SKILL.md

    .claude/agents · project
      keeper        agent · untrusted · Knows the schema. Delegate questions about it.

    ~/.claude/skills · yours
      notes         Takes notes. Use when something is said.
      pdf           At home. Use when a PDF is read.

    ~/.claude/plugins/cache/market/tools/1.10.0/skills · plugin tools 1.10.0
      tools:fmt     untrusted · From 1.10.0. Use when code is formatted.

    [TMP]/pack · built in
      first-aid     Built in. Use when nothing else helps.

    5 skills, 1 agent, 5 shadowed, 1 broken
    [exit 0]
    "#);
    assert_snapshot!(show("agentskills"), @r#"
    .agents/skills · project
      pdf           untrusted · Agents folder. Use when a PDF is read.

    .claude/skills · project
      first-aid     untrusted · A stranger's. Use when hurt.
      pdf           shadowed by .agents/skills/pdf/SKILL.md
      draft         broken: the skill has no `description` [RS103]

    ~/.claude/skills · yours
      notes         Takes notes. Use when something is said.
      pdf           shadowed by .agents/skills/pdf/SKILL.md

    3 skills, 0 agents, 2 shadowed, 1 broken
    [exit 0]
    "#);
    assert_snapshot!(show("openskills"), @r#"
    .agent/skills · project
      renamed       untrusted · Universal. Use when renamed.

    .claude/skills · project
      first-aid     untrusted · A stranger's. Use when hurt.
      pdf           untrusted · Claude folder. Use when a PDF is read.
      draft         broken: the skill has no `description` [RS103]

    ~/.claude/skills · yours
      notes         Takes notes. Use when something is said.
      pdf           shadowed by .claude/skills/pdf/SKILL.md

    4 skills, 0 agents, 1 shadowed, 1 broken
    [exit 0]
    "#);
    assert_snapshot!(show("claude"), @r#"
    ~/.claude/skills · yours
      notes         Takes notes. Use when something is said.
      pdf           At home. Use when a PDF is read.

    .claude/skills · project
      draft         untrusted · Notes.
      first-aid     untrusted · A stranger's. Use when hurt.
      pdf           shadowed by ~/.claude/skills/pdf/SKILL.md

    .claude/agents · project
      keeper        agent · untrusted · Knows the schema. Delegate questions about it.

    ~/.claude/plugins/cache/market/tools/1.10.0/skills · plugin tools 1.10.0
      tools:fmt     untrusted · From 1.10.0. Use when code is formatted.

    5 skills, 1 agent, 1 shadowed
    [exit 0]
    "#);
    assert_snapshot!(show("codex"), @r#"
    .codex/skills · project
      pdf           untrusted · Codex folder. Use when a PDF is read.

    .agents/skills · project
      pdf           untrusted · Agents folder. Use when a PDF is read.

    2 skills, 0 agents
    [exit 0]
    "#);
    assert_snapshot!(show("gemini"), @r#"
    .agents/skills · project
      pdf           untrusted · Agents folder. Use when a PDF is read.

    .gemini/skills · project
      pdf           shadowed by .agents/skills/pdf/SKILL.md

    1 skill, 0 agents, 1 shadowed
    [exit 0]
    "#);
}

#[test]
fn a_name_that_several_skills_keep_is_ambiguous_and_their_files_are_named() {
    let ws = Workspace::new();
    ws.skill("project/.codex/skills/pdf", "pdf", "One. Use when a PDF is read.");
    ws.skill("project/.agents/skills/pdf", "pdf", "Two. Use when a PDF is read.");
    assert_snapshot!(ws.rep("--profile codex show pdf"), @r#"
    [stderr]
    error: several skills are called `pdf`: .agents/skills/pdf/SKILL.md, .codex/skills/pdf/SKILL.md
    hint: Rename one of them, or name a plugin's as `plugin:skill`.
    [exit 1]
    "#);
}

#[test]
fn folders_above_are_searched_up_to_the_repository_and_no_further() {
    let ws = Workspace::new();
    ws.skill("project/deep/er/.agents/skills/near", "near", "Near. Use when near.");
    ws.skill("project/.agents/skills/top", "top", "Top. Use when at the top.");
    ws.skill(".agents/skills/outside", "outside", "Outside. Use never.");
    assert_snapshot!(ws.rep("-C deep/er list"), @r#"
    .agents/skills · project
      near          untrusted · Near. Use when near.

    [TMP]/project/.agents/skills · project
      top           untrusted · Top. Use when at the top.

    [TMP]/pack · built in
      first-aid     Built in. Use when nothing else helps.

    3 skills, 0 agents
    [exit 0]
    "#);
}

#[test]
fn json_has_the_published_keys_and_shadowed_and_broken_skills() {
    let ws = crowded();
    let list = ws.json("--json list", "list.json");
    assert_eq!(keys(&list), ["skills", "broken", "roots", "summary"]);
    for key in ["name", "description", "path", "scope", "dialect", "digest", "shadowed_by"] {
        assert!(keys(&list["skills"][0]).contains(&key), "{key}");
    }
    let rows: Vec<String> = list["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let by = row["shadowed_by"]
                .as_str()
                .map_or("-", |path| path.rsplit_once("[TMP]/").unwrap().1);
            let word = |key: &str| row[key].as_str().unwrap().to_owned();
            format!("{} {} {} {} {by}", word("name"), word("scope"), word("dialect"), word("trust"))
        })
        .collect();
    assert_snapshot!(rows.join("\n"), @r#"
    first-aid builtin agent-skills trusted -
    keeper project sub-agent untrusted -
    notes user agent-skills trusted -
    pdf project agent-skills untrusted -
    tools:fmt plugin agent-skills untrusted -
    first-aid project agent-skills untrusted pack/first-aid/SKILL.md
    pdf project agent-skills untrusted project/.agents/skills/pdf/SKILL.md
    "#);
    assert_eq!(list["broken"][0]["reason"]["code"], "RS103");
    assert_eq!(list["summary"]["broken"], 1);
}

#[test]
fn filters_narrow_the_list_and_say_how_far() {
    let ws = Workspace::new();
    let fields = |name: &str, rest: &str| {
        format!("name: {name}\ndescription: Does {name}. Use when asked.\n{rest}")
    };
    ws.skill_with(
        "home/.agents/skills/sql",
        &fields("sql", "tags: [Database, review]\npaths: 'db/**/*.sql'\n"),
    );
    ws.skill_with(
        "home/.agents/skills/hook",
        &fields("hook", "type: mode\ntriggers: [pull_request]\n"),
    );
    ws.write(
        "home/.claude/agents/scout.md",
        "---\nname: scout\ndescription: Scouts ahead. Delegate searches.\ncapabilities: [research]\n---\n\nYou scout.\n",
    );
    let names = |filter: &str| ws.rep(&format!("list --names {filter}")).stdout.replace('\n', " ");
    let shown: Vec<String> = [
        "",
        "SQL",
        "--scope builtin",
        "--type mode",
        "--tag database",
        "--event pull_request",
        "--capability research",
        "--path db/a/b.sql",
        "--path src/a.rs",
        "--scope plugin",
    ]
    .iter()
    .map(|filter| format!("{filter}: {}", names(filter)))
    .collect();
    assert_snapshot!(shown.join("\n"), @r#"
    : first-aid hook scout sql 
    SQL: sql 
    --scope builtin: first-aid 
    --type mode: hook 
    --tag database: sql 
    --event pull_request: hook 
    --capability research: scout 
    --path db/a/b.sql: sql 
    --path src/a.rs: 
    --scope plugin:
    "#);
    assert_snapshot!(ws.rep("list sql"), @r#"
    ~/.agents/skills · yours
      sql           Does sql. Use when asked.

    1 of 4 skills and agents
    [exit 0]
    "#);
    assert_snapshot!(ws.rep("list nothing-like-it"), @r#"
    No skill matches.
    [exit 0]
    "#);
    assert_snapshot!(ws.rep("list --scope elsewhere"), @r#"
    [stderr]
    error: invalid value 'elsewhere' for '--scope <SCOPE>'
      [possible values: builtin, user, project, plugin, extra]

    For more information, try '--help'.
    [exit 2]
    "#);
}

#[test]
fn a_root_that_is_named_comes_first_and_is_trusted() {
    let ws = crowded();
    ws.skill("mine/pdf", "pdf", "Mine. Use when a PDF is read.");
    assert_snapshot!(ws.rep("--root ../mine list pdf"), @"
    ../mine · named
      pdf           Mine. Use when a PDF is read.

    .agents/skills · project
      pdf           shadowed by ../mine/pdf/SKILL.md

    .claude/skills · project
      pdf           shadowed by ../mine/pdf/SKILL.md

    1 of 5 skills and agents
    [exit 0]
    ");
}

#[test]
fn a_folder_of_the_project_stays_the_projects_however_it_is_named() {
    let ws = Workspace::new();
    ws.skill("project/theirs/pdf", "pdf", "Theirs. Use when a PDF is read.");
    assert_snapshot!(ws.rep("--root theirs list pdf"), @"
    theirs · project
      pdf           untrusted · Theirs. Use when a PDF is read.

    1 of 2 skills and agents
    [exit 0]
    ");
}

#[test]
fn text_from_strangers_cannot_move_the_cursor() {
    let ws = Workspace::new();
    ws.write("project/repertoire.toml", "\"\\u001b[31mkey\" = 1\n");
    assert_snapshot!(ws.rep("list"), @r#"
    [stderr]
    error: [TMP]/project/repertoire.toml:1: `⟨U+001B⟩[31mkey` is not a configuration key
    hint: The keys are profile, skills_enabled, skills_dirs, extra_roots, skills_builtin_dir, skills_sync_dir, skills_sync_on_start, skills_max_selected_impl, skills_max_selected_review, auto_trigger.…, selection.…, skills_load_references, skills_max_body_chars, walk.…, limits.…, model, models, permissions.…, sandbox, sandbox_requires, trust.…, checks.…, mcp_servers, telemetry.…, serve.…, research.…, review.…, plan.…, database_url, queue.…, runs.…, github.….
    [exit 2]
    "#);
    assert!(!ws.rep("list").to_string().contains('\u{1b}'));
}

#[test]
fn folders_that_are_not_there_are_wrong_use() {
    let ws = Workspace::new();
    ws.write("project/file.md", "x");
    assert_snapshot!(ws.rep("--root nowhere list"), @r#"
    [stderr]
    error: `--root nowhere`: there is no such folder
    [exit 2]
    "#);
    assert_snapshot!(ws.rep("--root file.md list"), @r#"
    [stderr]
    error: `--root file.md`: this is not a folder
    hint: Name the folder that the file is in.
    [exit 2]
    "#);
    assert_snapshot!(ws.rep("-C nowhere list"), @r#"
    [stderr]
    error: `-C nowhere`: there is no such folder
    [exit 2]
    "#);
    assert_snapshot!(ws.rep("-C file.md list"), @r#"
    [stderr]
    error: `-C file.md`: this is not a folder
    hint: Name the folder that the file is in.
    [exit 2]
    "#);
}

#[test]
fn an_unknown_profile_lists_the_known_ones() {
    assert_snapshot!(Workspace::new().rep("--profile cursor list"), @r#"
    [stderr]
    error: invalid value 'cursor' for '--profile <PROFILE>'
      [possible values: repertoire, agentskills, openskills, claude, codex, gemini]

    For more information, try '--help'.
    [exit 2]
    "#);
}

#[test]
fn nothing_found_says_what_to_do() {
    assert_snapshot!(Workspace::new().rep("--profile gemini list"), @r#"
    No skills found. `rep new NAME` starts one; `rep doctor` shows where they are looked for.
    0 skills, 0 agents
    [exit 0]
    "#);
}

#[test]
fn compat_without_its_profile_is_wrong_use() {
    assert_snapshot!(Workspace::new().rep("list --compat"), @r#"
    [stderr]
    error: `--compat` goes with `--profile openskills` only
    hint: Add `--profile openskills`, or leave `--compat` out.
    [exit 2]
    "#);
}

#[test]
fn compat_prints_what_openskills_prints() {
    let ws = crowded();
    assert_snapshot!(ws.rep("--profile openskills list --compat"), @r#"
    Available Skills:

      draft                     (project)
        

      first-aid                 (project)
        A stranger's. Use when hurt.

      pdf                       (project)
        Claude folder. Use when a PDF is read.

      notes                     (global)
        Takes notes. Use when something is said.

    Summary: 3 project, 1 global (4 total)
    [exit 0]
    "#);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let ws = crowded();
    for number in 0..3_000 {
        let folder = format!("home/.claude/skills/s{number}");
        ws.skill(
            &folder,
            &format!("s{number}"),
            "Fills the pipe. Use when a pipe is to be filled up.",
        );
    }
    let mut child =
        ws.command(&["list"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut first).unwrap();
    drop(reader);
    let output = child.wait_with_output().unwrap();
    assert_eq!(first, ".agents/skills · project\n");
    assert_eq!(
        (output.status.code(), String::from_utf8(output.stderr).unwrap()),
        (Some(0), String::new())
    );
}

#[test]
fn lines_keep_to_a_narrow_terminal() {
    let mut ws = crowded();
    ws.set("COLUMNS", "48");
    ws.skill("home/.claude/skills/long", "long", &"Wide words. ".repeat(30));
    let ran = ws.rep("list");
    let rows = ran.stdout.lines().filter(|line| line.starts_with("  ") && !line.contains('/'));
    for line in rows {
        assert!(line.width() <= 48, "{line}");
    }
}

#[test]
fn the_same_disk_gives_the_same_bytes() {
    let ws = crowded();
    assert_eq!(ws.raw("--json list"), ws.raw("--json list"));
}

#[test]
#[cfg(unix)]
fn a_projects_root_that_leads_out_of_it_is_shown_and_not_searched() {
    let ws = Workspace::new();
    ws.skill("elsewhere/secret", "secret", "Not the project's. Use never.");
    std::fs::create_dir_all(ws.path("project/.claude")).unwrap();
    std::os::unix::fs::symlink(ws.path("elsewhere"), ws.path("project/.claude/skills")).unwrap();
    assert_snapshot!(ws.rep("list"), @"
    .claude/skills · project
      not searched: the root is a symbolic link that leads out of the project or plugin [RS006]

    [TMP]/pack · built in
      first-aid     Built in. Use when nothing else helps.

    1 skill, 0 agents
    [exit 0]
    ");
}

#[test]
#[cfg(unix)]
fn a_folder_that_cannot_be_read_costs_only_itself() {
    use std::os::unix::fs::PermissionsExt;
    let ws = Workspace::new();
    ws.skill("home/.claude/skills/good", "good", "Good. Use when all is well.");
    ws.skill("home/.claude/skills/shut", "shut", "Shut. Use when open.");
    let shut = ws.path("home/.claude/skills/shut/SKILL.md");
    std::fs::set_permissions(&shut, std::fs::Permissions::from_mode(0o000)).unwrap();
    let ran = ws.rep("list");
    assert_eq!(ran.code, 0);
    assert!(ran.stdout.contains("good"));
    let broken = ran.stdout.contains("broken: ") && ran.stdout.contains("[RS003]");
    assert_eq!(broken, permissions_hold(&shut), "{ran}");
}

#[test]
fn file_names_with_control_characters_cannot_reach_the_terminal() {
    let ws = Workspace::new();
    ws.skill("home/.claude/skills/ok", "ok", "\"Rings \\e[31m the \\a bell. Use when rung.\"");
    let ran = ws.rep("list");
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stdout.contains('\u{7}'), "{ran}");
}
