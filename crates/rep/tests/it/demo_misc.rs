//! `rep demo`, completions, the manual, help, colours: what belongs to no other command.

use insta::assert_snapshot;
use unicode_width::UnicodeWidthStr;

use crate::workspace::{Ran, Workspace};

/// A workspace in which the demo finds git and a temporary folder of its own.
fn stage() -> Workspace {
    let mut ws = Workspace::with_shipped_pack();
    std::fs::create_dir_all(ws.path("tmp")).unwrap();
    let temporary = ws.path("tmp").to_string();
    ws.set("TMPDIR", &temporary);
    ws.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    ws
}

/// The commands that a demo showed.
fn commands(ran: &Ran) -> Vec<&str> {
    ran.stdout.lines().filter(|line| line.starts_with("$ rep ")).collect()
}

#[track_caller]
fn leaves_no_trace(ws: &Workspace, ran: &Ran) {
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran}");
    // Where the program itself is, wherever that may be, is no trace.
    let shown = ran.stdout.replace(env!("CARGO_BIN_EXE_rep"), "rep");
    for trace in ["[TMP]", "rep-demo-", "/tmp/", "--resume", "\u{1b}"] {
        assert!(!shown.contains(trace), "{trace}: {ran}");
    }
    assert!(ran.stdout.lines().all(|line| line.trim_end() == line), "{ran}");
    assert_eq!(std::fs::read_dir(ws.path("tmp")).unwrap().count(), 0);
}

#[test]
fn the_demo_shows_six_steps_of_a_screen_each() {
    let mut ws = stage();
    for columns in ["80", "100"] {
        ws.set("COLUMNS", columns);
        let ran = ws.rep("demo");
        leaves_no_trace(&ws, &ran);
        assert_eq!(
            commands(&ran),
            [
                "$ rep list --scope project",
                "$ rep lint --fix .claude/skills",
                "$ rep match \"this migration locks the orders table, is the index safe?\"",
                "$ rep match \"write the changelog for version 2\" --why sql-review",
                "$ rep plan run --no-review --check \"test -s PLAN.md\"",
                "$ rep review --patterns-only",
            ]
        );
        for step in ran.stdout.split("\n$ rep ").skip(1) {
            let output = step.lines().skip(2).take_while(|line| !line.contains("/6 "));
            let on_screen = |line: &str| line.width().div_ceil(columns.parse().unwrap()).max(1);
            // The last line is the empty one before the next step.
            let shown = output.map(on_screen).sum::<usize>() - 1;
            assert!(shown < 24, "{shown} lines: {step}");
        }
        for line in ran.stdout.lines().filter(|line| line.contains("/6 ")) {
            assert_eq!(line.width().to_string(), columns, "{line}");
        }
    }
}

#[test]
fn every_chapter_of_the_demo_runs_to_its_end() {
    let ws = stage();
    let listed = ws.rep("demo --list");
    assert_snapshot!(listed, @r#"
      rep demo            Find, fix, match, why, plan, review
      rep demo skills     Look at skills, and hand them to agents
      rep demo run        Have an agent do one task
      rep demo workflows  Follow a workflow whose gates the engine decides
      rep demo plans      Work through a plan, and read its record
      rep demo reviews    Have agents review a change, and check what they claim
      rep demo checks     Understand failed checks, and remember what fixed them
      rep demo github     Preview the response to a GitHub event
      rep demo mcp        Use the skills from an agent that you already have
      rep demo doctor     Find out why an agent does not see a skill
    [exit 0]
    "#);
    let chapters = listed.stdout.lines().filter_map(|line| line.strip_prefix("  rep demo "));
    let chapters: Vec<&str> = chapters.filter_map(|rest| rest.split(' ').next()).collect();
    let mut shown = Vec::new();
    for chapter in chapters.into_iter().filter(|chapter| !chapter.is_empty()) {
        let ran = ws.rep(&format!("demo {chapter}"));
        leaves_no_trace(&ws, &ran);
        assert!(!ran.stdout.contains("error: "), "{ran}");
        shown.extend(commands(&ran).into_iter().map(str::to_owned));
        if chapter == "run" {
            let at = |part: &str| ran.stdout.find(part).unwrap_or_else(|| panic!("{part}: {ran}"));
            // As on a terminal: what happened, the answer, what it took.
            assert!(at("⏺ Read") < at("`CREATE INDEX` without"), "{ran}");
            assert!(at("`CREATE INDEX` without") < at("0 tokens in"), "{ran}");
        }
    }
    assert_snapshot!(shown.join("\n"), @r#"
    $ rep show sql-review
    $ rep show --deps auto-merge
    $ rep read release-notes
    $ rep sync
    $ rep run --dry-run -a schema-keeper "is the index of this migration safe?"
    $ rep run --backend scripted:transcript.yaml "is the index of this migration safe?"
    $ rep runs --kind conversation
    $ rep workflow list
    $ rep workflow start sql-review --id orders-index --param migration=orders.sql --format text
    $ rep workflow record orders-index '{"id":"lock","check":"no lock on orders","severity":"MUST","status":"FAIL","finding":"line 3 locks it"}'
    $ rep workflow step orders-index --outcome ok --format text
    $ rep workflow step orders-index --at 2 --format text
    $ rep plan status
    $ rep plan run --check "test -s PLAN.md" --ending merge
    $ rep runs show last
    $ rep runs replay last
    $ rep review --backend scripted:reviewers.yaml
    $ rep verify --read test-output.txt
    $ rep verify memory teach d1943017ed10dfab --advice "the field is called attempts since version 2"
    $ rep verify memory show d19430
    $ rep github detect --event github-event.json --event-name issue_comment --permission write
    $ rep setup claude --print
    $ rep mcp --call skill_search '{"task": "is the index of this migration safe?"}'
    $ rep doctor
    "#);
    assert_eq!(ws.rep("demo nonsense").code, 2);
    assert_eq!(ws.rep("demo --list github").code, 2);
}

#[test]
fn the_demo_does_without_git_and_says_so_in_colours_only_when_asked() {
    let ws = Workspace::with_shipped_pack();
    let ran = ws.rep("--color never demo --no-pause");
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(ran.stdout.matches("This step needs git").count(), 2, "{ran}");
    assert!(!ran.stdout.contains('\u{1b}'));
    assert!(ws.rep("--color always demo").stdout.contains("\u{1b}["));
}

#[test]
fn the_demo_works_on_a_narrow_terminal_and_can_be_kept() {
    let mut ws = Workspace::with_shipped_pack();
    std::fs::create_dir_all(ws.path("tmp")).unwrap();
    let temporary = ws.path("tmp").to_string();
    ws.set("TMPDIR", &temporary);
    ws.set("COLUMNS", "40");
    let ran = ws.rep("demo --keep");
    assert_eq!(ran.code, 0, "{ran}");
    let headings = ran.stdout.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let headings: Vec<&str> = headings.collect();
    assert!(headings.len() == 6 && headings.iter().all(|line| line.width() <= 40), "{headings:?}");
    let kept = ran.stdout.lines().last().unwrap();
    assert!(kept.starts_with("The workspace is in [TMP]/tmp/rep-demo-"), "{kept}");
    assert_eq!(std::fs::read_dir(ws.path("tmp")).unwrap().count(), 1);
}

#[test]
fn colours_are_off_in_a_pipe_and_on_when_asked() {
    let mut ws = Workspace::new();
    assert!(!ws.rep("list").stdout.contains('\u{1b}'));
    assert!(ws.rep("--color always list").stdout.contains('\u{1b}'));
    ws.set("CLICOLOR_FORCE", "1");
    assert!(!ws.rep("list").stdout.contains('\u{1b}'), "NO_COLOR is stronger");
}

#[test]
fn the_manual_names_every_command() {
    let ws = Workspace::new();
    let page = ws.rep("completions man").stdout.replace('\\', "");
    let all = repertoire_cli::cli::build_clap_command();
    for command in all.get_subcommands().filter(|command| !command.is_hide_set()) {
        assert!(page.contains(&format!("rep-{}(1)", command.get_name())), "{}", command.get_name());
    }
    let ran = ws.rep("completions man --dir pages");
    assert_eq!(ran.code, 0, "{ran}");
    let page = ws.text("project/pages/rep-lint.1");
    assert!(page.contains("skills\\-ref") && page.contains(".TH rep-lint 1"), "{page}");
}

#[test]
fn pages_are_written_where_the_command_stands() {
    let ws = Workspace::new();
    std::fs::create_dir_all(ws.path("project/sub")).unwrap();
    ws.rep("-C sub completions man --dir pages");
    assert!(ws.path("project/sub/pages/rep.1").exists());
}

#[test]
fn help_is_one_screen_that_ends_with_examples_and_exit_codes() {
    assert_snapshot!(Workspace::new().rep("--help"), @r#"
    Find, check and serve skills for AI agents

    Usage: rep [OPTIONS] <COMMAND>

    Skills:
      list         List skills by root, including shadowed and broken ones [alias: ls]
      match        Pick the skills that a task needs, and explain why
      show         Show a skill, its dependencies, or documentation of all skills
      read         Print skills for an agent to read
      lint         Check skills, and apply safe fixes
      new          Create a new skill
      trust        Trust the current version of a skill from a project or plugin
      sync         Write the list of skills into AGENTS.md, or print it
      eval         Measure how well skills are picked for labelled queries

    Run:
      run          Have an agent do a task, with the skills that it needs
      chat         Chat with an agent
      agents       List agents and their tools, or show one agent
      setup        Connect an agent that you already have, over MCP

    Plans and reviews:
      plan         Run plans: checklists that agents work through
      review       Review a change: agents report findings, the engine checks them
      workflow     Run workflows: steps, reviews and gates that the engine enforces [alias: wf]
      verify       Run the declared checks, and report what failed and what to fix first
      runs         List, show and control runs of every kind
      github       Respond to GitHub events, or preview the response

    Serve:
      serve        Serve the web page, the API and MCP over HTTP on this machine
      mcp          Serve skills to one agent over MCP, on standard input and output
      daemon       Work on queued runs until stopped

    Maintain:
      init         Set up a project: write `repertoire.toml`, and connect the agents that are installed
      doctor       Explain which skills an agent sees, which it does not, and why
      config       Print the configuration and the origin of each value
      completions  Print completions for a shell, or the manual page
      demo         Try the main features in a temporary folder

    Options:
          --profile <PROFILE>  Emulate this agent's search paths, names and rules [possible values:
                               repertoire, agentskills, openskills, claude, codex, gemini]
          --root <DIR>         Search this folder too, before all others (may be repeated)
          --consent <DIGEST>   Agree to the project's settings that start programs, if they have this
                               digest (may be repeated); see `rep trust --project`
          --json               Print JSON
          --color <WHEN>       When to use colour [default: auto] [possible values: auto, always, never]
      -C <DIR>                 Work as if started in this folder
          --log...             Log to standard error what is done and how long it takes (twice: more)
      -h, --help               Print help
      -V, --version            Print version

    Examples:
      rep demo                     try it in a temporary folder
      rep init                     set up the project that you are in
      rep list                     list your skills, and those that do not load
      rep match "fill in a form"   see which skills a task needs, and why
      rep lint --fix .claude       check skills and fix what can be fixed safely
      rep run "fix the test"       have an agent do it, with the skills it needs
      rep plan run                 have an agent work through PLAN.md
      rep help runs show           help on one command

    Exit codes: 0 success, 1 negative answer, 2 usage error, 3 could not run.
    [exit 0]
    "#);
}

#[test]
fn every_command_explains_itself_within_the_width() {
    let ws = Workspace::new();
    for command in repertoire_cli::cli::build_clap_command().get_subcommands() {
        let ran = ws.rep(&format!("{} --help", command.get_name()));
        assert_eq!(ran.code, 0, "{ran}");
        for line in ran.stdout.lines() {
            assert!(line.width() <= 100, "{line}");
        }
    }
}

#[test]
fn wrong_commands_and_flags_are_wrong_use() {
    let ws = Workspace::new();
    assert_snapshot!(ws.rep("lits"), @r#"
    [stderr]
    error: there is no command `rep lits`
    hint: Did you mean `rep list`?
    hint: `rep --help` lists the commands.
    [exit 2]
    "#);
    assert_snapshot!(ws.rep("list --nmaes"), @r#"
    [stderr]
    error: unexpected argument '--nmaes' found

      tip: a similar argument exists: '--names'

    Usage: rep list --names [FILTER]

    For more information, try '--help'.
    [exit 2]
    "#);
    assert_eq!(ws.rep("").code, 2);
}

#[test]
fn the_version_is_that_of_the_package() {
    let ran = Workspace::new().rep("--version");
    assert_eq!((ran.stdout.trim(), ran.code), (concat!("rep ", env!("CARGO_PKG_VERSION")), 0));
}

#[test]
fn a_home_that_is_not_set_is_no_reason_to_stop() {
    let ws = Workspace::new();
    let output = ws.command(&["list"]).env_remove("HOME").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}

/// The fixture of reviews: a repository with a change that has planted defects, and what its models say.
fn under_review() -> Workspace {
    let mut ws = Workspace::with_shipped_pack();
    ws.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    let (project, fixture) =
        (ws.path("project"), concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/review"));
    std::fs::remove_dir_all(project.join(".git")).unwrap();
    let shell = |line: &str| {
        let mut command = std::process::Command::new("sh");
        command.args(["-euc", line]).current_dir(&project).env("FIXTURE", fixture);
        let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    shell("git init --quiet && cp -R \"$FIXTURE\"/before/. . && git add --all");
    shell("git -c user.name=Ada -c user.email=ada@example.org commit --quiet --message before");
    shell("cp -R \"$FIXTURE\"/after/. . && cp \"$FIXTURE\"/model.yaml ..");
    ws
}

#[test]
fn reviews_fit_their_published_schemas() {
    let ws = under_review();
    let review = ws.json("--json review --backend scripted:../model.yaml", "review.json");
    for part in ["findings", "insights", "left_out", "false_claims", "test_recommendations"] {
        assert!(!review[part].as_array().unwrap().is_empty(), "{part}");
    }
    assert_eq!(ws.json("--json review show last", "review.json"), review);
    let patterns = ws.json("--json review --patterns-only", "review.json");
    assert_eq!(patterns["calls"].as_array().unwrap().len(), 0);
    let deep =
        ws.json("--json review --backend scripted:../model.yaml --depth deep", "review.json");
    let all = ws.json("--json review list", "review-list.json");
    assert_eq!(all.as_array().unwrap().as_slice(), [deep, review], "patterns alone are not kept");
}

#[test]
fn what_reviews_begin_with_fits_its_published_schemas() {
    let ws = under_review();
    let preview = ws.json("--json review --dry-run --depth deep", "review-preview.json");
    let agents = |phase: &str| {
        let questions = preview["questions"].as_array().unwrap();
        questions.iter().filter(|question| question["phase"] == phase).count() as u64
    };
    let planned = preview["planned"].as_array().unwrap();
    for phase in ["thorough", "gaps"] {
        let calls = &planned.iter().find(|one| one["phase"] == phase).unwrap()["calls"];
        assert_eq!(calls.as_u64(), Some(agents(phase)), "{phase}");
        assert_ne!(agents(phase), 0, "{phase}");
    }
    let names = "reviewing-security,reviewing-documentation,systematic-debugging";
    let skills = ws.json(&format!("--json review skills {names}"), "review-skills.json");
    let kinds: Vec<&serde_json::Value> =
        skills["resolved_skills"].as_array().unwrap().iter().map(|skill| &skill["type"]).collect();
    assert_eq!(kinds, ["review", "command", "methodology"]);
}
