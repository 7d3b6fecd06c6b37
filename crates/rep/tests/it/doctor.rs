//! `rep doctor`: what an agent would see, what it would not, and why.

use insta::assert_snapshot;

use crate::workspace::{Workspace, keys};

fn mixed() -> Workspace {
    let ws = Workspace::new();
    ws.skill("project/.claude/skills/pdf", "pdf", "Reads PDF files. Use when asked.");
    ws.skill("project/.claude/skills/first-aid", "first-aid", "A stranger's. Use when hurt.");
    ws.write("project/.claude/skills/draft/SKILL.md", "---\nname: draft\n---\n\nNotes.\n");
    ws.skill_with(
        "home/.claude/skills/quiet",
        "name: quiet\ndescription: Quiet. Use never.\ndisable-model-invocation: true\n",
    );
    ws
}

#[test]
fn a_healthy_place_is_ok() {
    assert_snapshot!(Workspace::new().rep("doctor"), @"
    Roots (profile repertoire: the first that is trusted wins)
      ✓ [TMP]/pack  1 file
      · 18 more roots not there, see --verbose

    Skills
      1 skill and 0 agents in use

    Room in a prompt (if all of them were offered, in a window of 200,000 tokens)
      Claude Code   ✓ the one description fits (51 of 8000 characters)
      Codex         ✓ the one description fits (59 of 16000 characters)
      Copilot CLI   ✓ the one description fits (107 of 15000 characters)

    Running agents (`rep run`, with anthropic/claude-haiku-4-5)
      ! no sandbox: it is switched off
      ! services: none is set up: ANTHROPIC_API_KEY, OPENAI_API_KEY, or OPENAI_BASE_URL for a server of
        your own
      · agents of others: none on PATH

    ok: nothing stands in the way of the skills
    ! running agents needs a key, a server of your own, or an agent of others on PATH
    [exit 0]
    ");
}

#[test]
fn what_is_wrong_is_listed_with_what_to_do() {
    assert_snapshot!(mixed().rep("doctor"), @"
    Roots (profile repertoire: the first that is trusted wins)
      ✓ .claude/skills  3 files, 2 of them skills or agents
      ✓ ~/.claude/skills  1 file
      ✓ [TMP]/pack  1 file
      · 16 more roots not there, see --verbose

    Skills
      3 skills and 0 agents in use, 1 shadowed by others of the same name, 1 broken
      1 not trusted: pdf
        (no hooks, no commands, no wider tools; see `rep trust`)
      1 never offered to a model: quiet
        (disable-model-invocation)

    Room in a prompt (if all of them were offered, in a window of 200,000 tokens)
      Claude Code   ✓ all 2 descriptions fit (90 of 8000 characters)
      Codex         ✓ all 2 descriptions fit (106 of 16000 characters)
      Copilot CLI   ✓ all 2 descriptions fit (202 of 15000 characters)

    Running agents (`rep run`, with anthropic/claude-haiku-4-5)
      ! no sandbox: it is switched off
      ! services: none is set up: ANTHROPIC_API_KEY, OPENAI_API_KEY, or OPENAI_BASE_URL for a server of
        your own
      · agents of others: none on PATH

    Findings (`rep lint` shows the lines)
      RS103 .claude/skills/draft/SKILL.md: the skill has no `description`
            Add a `description` that says what the skill does and when to use it.
      RS314 .claude/skills/first-aid/SKILL.md: `first-aid` is not trusted, so it does not replace the
            one in [TMP]/pack/first-aid/SKILL.md
            Rename it, or look at it and say `rep trust`.
    [exit 1]
    ");
}

#[test]
fn verbose_names_every_root_that_is_not_there() {
    let ran = mixed().rep("--profile openskills doctor --verbose");
    assert_snapshot!(ran, @"
    Roots (profile openskills: the first wins)
      · .agent/skills  not there
      · ~/.agent/skills  not there
      ✓ .claude/skills  3 files, 2 of them skills or agents
      ✓ ~/.claude/skills  1 file

    Skills
      3 skills and 0 agents in use, 1 broken
      2 not trusted: first-aid, pdf
        (no hooks, no commands, no wider tools; see `rep trust`)
      1 never offered to a model: quiet
        (disable-model-invocation)

    Room in a prompt (if all of them were offered, in a window of 200,000 tokens)
      Claude Code   ✓ all 2 descriptions fit (80 of 8000 characters)
      Codex         ✓ all 2 descriptions fit (96 of 16000 characters)
      Copilot CLI   ✓ all 2 descriptions fit (192 of 15000 characters)

    Running agents (`rep run`, with anthropic/claude-haiku-4-5)
      ! no sandbox: it is switched off
      ! services: none is set up: ANTHROPIC_API_KEY, OPENAI_API_KEY, or OPENAI_BASE_URL for a server of
        your own
      · agents of others: none on PATH

    Findings (`rep lint` shows the lines)
      RS103 .claude/skills/draft/SKILL.md: the skill has no `description`
            Add a `description` that says what the skill does and when to use it.
    [exit 1]
    ");
}

#[test]
fn every_profile_states_its_rule() {
    let ws = mixed();
    let lines: Vec<String> = ["repertoire", "claude", "codex"]
        .iter()
        .map(|profile| ws.rep(&format!("--profile {profile} doctor")).stdout)
        .map(|text| text.lines().next().unwrap().to_owned())
        .collect();
    assert_snapshot!(lines.join("\n"), @r#"
    Roots (profile repertoire: the first that is trusted wins)
    Roots (profile claude: the first wins)
    Roots (profile codex: all of one name are kept)
    "#);
}

#[test]
fn more_descriptions_than_fit_are_counted() {
    let ws = Workspace::new();
    for number in 0..30 {
        let name = format!("s{number:02}");
        let description =
            format!("Does {name}. Use when asked. {}", "Many more words. ".repeat(40));
        ws.skill(&format!("home/.claude/skills/{name}"), &name, description.trim());
    }
    let ran = ws.rep("doctor");
    let (_, room) = ran.stdout.split_once("Room in a prompt").unwrap();
    assert_snapshot!(room, @"
     (if all of them were offered, in a window of 200,000 tokens)
      Claude Code   ! 11 descriptions whole, 20 cut or dropped (21411 of 8000 characters)
      Codex         ! 1 description whole, 30 cut or dropped (21659 of 16000 characters)
      Copilot CLI   ! 20 descriptions whole, 11 cut or dropped (23147 of 15000 characters)

    Running agents (`rep run`, with anthropic/claude-haiku-4-5)
      ! no sandbox: it is switched off
      ! services: none is set up: ANTHROPIC_API_KEY, OPENAI_API_KEY, or OPENAI_BASE_URL for a server of
        your own
      · agents of others: none on PATH

    ok: nothing stands in the way of the skills
    ! running agents needs a key, a server of your own, or an agent of others on PATH
    ");
}

#[test]
fn json_is_the_whole_report() {
    let report = mixed().json("--json doctor", "doctor.json");
    assert_eq!(
        keys(&report),
        ["profile", "roots", "summary", "untrusted", "hidden", "budgets", "running", "diagnostics"]
    );
    assert_eq!(report["untrusted"], serde_json::json!(["pdf"]));
    assert_eq!(report["hidden"], serde_json::json!(["quiet"]));
}

#[test]
fn a_data_folder_that_cannot_be_written_costs_nothing_but_a_warning() {
    let ws = Workspace::with_shipped_pack();
    std::fs::remove_dir(ws.path("data")).unwrap();
    ws.write("data", "a file where the folder should be");
    let ran = ws.rep("doctor");
    assert!(ran.stdout.contains("RS316"), "{ran}");
    assert_eq!(ws.rep("show error-analyzer").code, 0);
}

#[test]
fn problems_that_stop_commands_are_named() {
    let mut ws = Workspace::new();
    ws.set("REPERTOIRE_SANDBOX_REQUIRES", "files-confined,network-off");
    ws.write(
        "project/repertoire.toml",
        "profile = 'codex'\n[plan.checks.test]\ncommand = 'true'\nretry = 1\n",
    );
    ws.write(
        "home/.claude/skills/hid/SKILL.md",
        "---\nname: hid\ndescription: Hides. Use never.\n---\n\nBody\u{e0041}.\n",
    );
    let ran = ws.rep("doctor");
    assert_eq!(ran.code, 1, "{ran}");
    assert!(!ran.stdout.contains("ok:"), "{ran}");
    let (_, problems) = ran.stdout.split_once("Problems\n").unwrap();
    for expected in [
        "repertoire.toml:1: `profile` may not be set by a project",
        "`plan.checks.test`: unknown field `retry`",
        "$REPERTOIRE_SANDBOX_REQUIRES: sandbox_requires: ",
        "`sandbox_requires` has no effect without",
        "wait for your consent: `rep trust --project`",
        "errors in ~/.claude/skills/hid/SKILL.md: `rep lint` shows them",
    ] {
        let problems = problems.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(problems.contains(expected), "{expected}\n{problems}");
    }
    let report = ws.json("--json doctor", "doctor.json");
    assert_eq!(report["problems"].as_array().unwrap().len(), 6);
}
