//! `rep config` and what configuration does: layers, origins, and values that cannot be.

use insta::assert_snapshot;

use crate::workspace::Workspace;

const USER: &str = "home/.config/repertoire/repertoire.toml";
const PROJECT: &str = "project/repertoire.toml";

#[test]
fn later_layers_win_and_every_value_says_where_it_came_from() {
    let mut ws = Workspace::with_shipped_pack();
    ws.write(USER, "skills_max_body_chars = 1\nprofile = \"claude\"\n\n[walk]\ndepth_max = 3\n");
    ws.write(PROJECT, "# ours\nskills_max_body_chars = 2\nextra_roots = [\"tools/skills\"]\n");
    ws.write("project/deep/repertoire.toml", "skills_load_references = true\n");
    ws.set("REPERTOIRE_WALK_ENTRIES_MAX", "99");
    assert_snapshot!(ws.rep("--profile codex -C deep config"), @r#"
    profile = "codex"                                             # --profile
    skills_enabled = true                                         # default
    skills_dirs = (not set)                                       # default
    extra_roots = ["tools/skills"]                                # [TMP]/project/repertoire.toml:3
    skills_builtin_dir = (not set)                                # default
    skills_sync_dir = (not set)                                   # default
    skills_sync_on_start = true                                   # default
    skills_max_selected_impl = 2                                  # default
    skills_max_selected_review = 1                                # default
    auto_trigger.enabled = true                                   # default
    auto_trigger.confidence_threshold = 0.6                       # default
    auto_trigger.max_skills = 3                                   # default
    selection.vectors = (not set)                                 # default
    skills_load_references = true                                 # repertoire.toml:1
    skills_max_body_chars = 2                                     # [TMP]/project/repertoire.toml:2
    walk.depth_max = 3                                            # ~/.config/repertoire/repertoire.toml:5
    walk.entries_max = 99                                         # $REPERTOIRE_WALK_ENTRIES_MAX
    limits.file_bytes_max = 2097152                               # default
    limits.frontmatter_bytes_max = 65536                          # default
    limits.depth = 5                                              # default
    limits.iterations = 50                                        # default
    limits.tokens = (not set)                                     # default
    limits.cost = (not set)                                       # default
    limits.duration = "1h"                                        # default
    limits.command_memory = (not set)                             # default
    limits.command_processes = 1024                               # default
    limits.command_disk = "2GiB"                                  # default
    model = "anthropic/claude-haiku-4-5"                          # default
    models = (not set)                                            # default
    permissions.mode = "default"                                  # default
    permissions.allow = []                                        # default
    permissions.ask = []                                          # default
    permissions.deny = []                                         # default
    sandbox = "off"                                               # $REPERTOIRE_SANDBOX
    sandbox_requires = (not set)                                  # default
    trust.settings = []                                           # default
    trust.folders = []                                            # default
    checks.env_allowed = []                                       # default
    mcp_servers = (not set)                                       # default
    telemetry.otlp_endpoint = (not set)                           # default
    serve.connections_max = 12288                                 # default
    serve.unauthenticated_connections_max = 1024                  # default
    serve.mcp_sessions_max = 1024                                 # default
    research.search_url = (not set)                               # default
    review.depth = "quick"                                        # default
    review.skills = (not set)                                     # default
    review.skip_agents = []                                       # default
    review.min_severity = "suggestion"                            # default
    review.fail_on = "major"                                      # default
    review.instructions = (not set)                               # default
    review.strong_model = (not set)                               # default
    review.fast_model = (not set)                                 # default
    review.backend = (not set)                                    # default
    review.at_once = 4                                            # default
    review.max_cost = (not set)                                   # default
    review.max_tokens = (not set)                                 # default
    review.max_time = "1h"                                        # default
    review.call_time = "15m"                                      # default
    plan.review = true                                            # default
    plan.checks = (not set)                                       # default
    plan.final_checks = (not set)                                 # default
    plan.self_improve = false                                     # default
    plan.self_improve_network = false                             # default
    plan.agent = (not set)                                        # default
    plan.review_agent = (not set)                                 # default
    plan.backend = (not set)                                      # default
    plan.review_backend = (not set)                               # default
    plan.model = (not set)                                        # default
    plan.review_model = (not set)                                 # default
    plan.instructions = (not set)                                 # default
    plan.attempts = 5                                             # default
    plan.failures = 6                                             # default
    plan.iterations = 200                                         # default
    plan.step_time = "1h"                                         # default
    plan.max_cost = (not set)                                     # default
    plan.max_tokens = (not set)                                   # default
    plan.max_time = (not set)                                     # default
    plan.ending = "keep"                                          # default
    plan.branch_prefix = "rep/"                                   # default
    plan.copy = []                                                # default
    plan.setup = (not set)                                        # default
    database_url = (not set)                                      # default
    queue.order = "fifo"                                          # default
    queue.runs_max = 3                                            # default
    queue.workspace_runs_max = 0                                  # default
    queue.lease = "30s"                                           # default
    runs.keep_days = 0                                            # default
    github.trigger_phrase = "@repertoire"                         # default
    github.label_trigger = "repertoire"                           # default
    github.assignee_trigger = (not set)                           # default
    github.task_label = "agent-task"                              # default
    github.bot_login = "github-actions[bot]"                      # default
    github.allowed_bots = []                                      # default
    github.allowed_non_write_users = []                           # default
    github.base_branch = (not set)                                # default
    github.branch_prefix = "repertoire/"                          # default
    github.network_tools = []                                     # default
    github.failed_label = "agent-failed"                          # default
    github.done_label = "agent-done"                              # default
    github.waiting_label = "agent-waiting"                        # default
    github.push = false                                           # default
    github.pull_request = false                                   # default
    github.draft = true                                           # default
    github.auto_merge = (not set)                                 # default
    github.continuous.sources = ["issue", "file", "plan", "prompt"]  # default
    github.continuous.tasks_file = "TASKS.md"                     # default
    github.continuous.plan = (not set)                            # default
    github.continuous.enabled = false                             # default
    github.continuous.max_tasks = (not set)                       # default
    github.continuous.max_time = (not set)                        # default
    github.continuous.max_cost = (not set)                        # default
    github.continuous.claim = "6h"                                # default
    github.continuous.delay = (not set)                           # default
    github.continuous.stop_on_first_failure = false               # default
    [exit 0]
    "#);
}

#[test]
fn json_carries_the_origin_of_each_value() {
    let ws = Workspace::with_shipped_pack();
    ws.write(PROJECT, "skills_max_body_chars = 2\n");
    let config = ws.json("--json config", "config.json");
    let settings = config["settings"].as_array().unwrap();
    let chars = settings.iter().find(|row| row["key"] == "skills_max_body_chars").unwrap();
    assert_eq!(
        *chars,
        serde_json::json!({
            "key": "skills_max_body_chars", "value": 2,
            "origin": {"kind": "file", "at": "[TMP]/project/repertoire.toml:1"},
            "in_force": true,
        })
    );
}

#[test]
fn each_key_can_be_explained() {
    let ran = Workspace::with_shipped_pack().rep("config --explain");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines.len().is_multiple_of(2) && lines.len() > 20);
    assert_snapshot!(lines[..4].join("\n"), @r#"
    profile = "repertoire"                                        # default
        Whose order of roots and collision rule to follow. (or $REPERTOIRE_PROFILE)
    skills_enabled = true                                         # default
        Whether skills are discovered at all. (or $REPERTOIRE_SKILLS_ENABLED)
    "#);
}

/// The message for a project's file.
fn complaint(text: &str) -> String {
    let ws = Workspace::new();
    ws.write(PROJECT, text);
    ws.rep("list").to_string()
}

#[test]
fn files_that_make_no_sense_are_named_with_the_line_and_a_way_out() {
    assert_snapshot!(complaint("a = 1\nskills_max_body_chars = \n"), @r#"
    [stderr]
    error: [TMP]/project/repertoire.toml:2 is not valid TOML: string values must be quoted, expected literal string
    [exit 2]
    "#);
    assert_snapshot!(complaint("\nskill_dirs = []\n"), @r#"
    [stderr]
    error: [TMP]/project/repertoire.toml:2: `skill_dirs` is not a configuration key
    hint: Did you mean `skills_dirs`?
    [exit 2]
    "#);
    assert_snapshot!(complaint("[walk]\ndepth = 3\n"), @"
    [stderr]
    error: [TMP]/project/repertoire.toml:2: `walk.depth` is not a configuration key
    hint: The keys are walk.depth_max, walk.entries_max.
    [exit 2]
    ");
    assert_snapshot!(complaint("colour = \"red\"\n"), @"
    [stderr]
    error: [TMP]/project/repertoire.toml:1: `colour` is not a configuration key
    hint: The keys are profile, skills_enabled, skills_dirs, extra_roots, skills_builtin_dir, skills_sync_dir, skills_sync_on_start, skills_max_selected_impl, skills_max_selected_review, auto_trigger.…, selection.…, skills_load_references, skills_max_body_chars, walk.…, limits.…, model, models, permissions.…, sandbox, sandbox_requires, trust.…, checks.…, mcp_servers, telemetry.…, serve.…, research.…, review.…, plan.…, database_url, queue.…, runs.…, github.….
    [exit 2]
    ");
    assert_snapshot!(complaint("skills_enabled = \"yes\"\n"), @r#"
    [stderr]
    error: [TMP]/project/repertoire.toml:1: `skills_enabled` is "yes", but should be `true` or `false`
    [exit 2]
    "#);
    assert_snapshot!(complaint("skills_max_body_chars = -1\n"), @r#"
    [stderr]
    error: [TMP]/project/repertoire.toml:1: `skills_max_body_chars` is -1, but should be a whole number from 0
    [exit 2]
    "#);
    assert_snapshot!(complaint("profile = \"cursor\"\n"), @"
    [stderr]
    error: [TMP]/project/repertoire.toml:1: `profile` may not be set by a project
    hint: Set it in your own `~/.config/repertoire/repertoire.toml`: projects may not decide this.
    [exit 2]
    ");
    assert_snapshot!(complaint("skills_sync_dir = \"/etc\"\n"), @"
    [stderr]
    error: [TMP]/project/repertoire.toml:1: `skills_sync_dir` may not be set by a project
    hint: Set it in your own `~/.config/repertoire/repertoire.toml`: projects may not decide this.
    [exit 2]
    ");
    assert_snapshot!(complaint("skills_dirs = \"skills\"\n"), @r#"
    [stderr]
    error: [TMP]/project/repertoire.toml:1: `skills_dirs` is "skills", but should be a list of paths
    [exit 2]
    "#);
}

#[test]
fn a_variable_that_makes_no_sense_is_named() {
    let mut ws = Workspace::new();
    ws.set("REPERTOIRE_SKILLS_ENABLED", "perhaps");
    assert_snapshot!(ws.rep("list"), @r#"
    [stderr]
    error: $REPERTOIRE_SKILLS_ENABLED: `skills_enabled` is "perhaps", but should be `true` or `false`
    [exit 2]
    "#);
}

#[test]
fn a_configuration_that_is_a_folder_cannot_be_read() {
    let ws = Workspace::new();
    std::fs::create_dir_all(ws.path(PROJECT)).unwrap();
    assert_snapshot!(ws.rep("list"), @r#"
    [stderr]
    error: [TMP]/project/repertoire.toml cannot be read: this is a folder, not a regular file
    [exit 3]
    "#);
}

#[test]
fn skills_that_are_switched_off_are_said_to_be() {
    let ws = Workspace::new();
    ws.write(PROJECT, "skills_enabled = false\n");
    assert_snapshot!(ws.rep("list"), @r#"
    Skills are switched off by `skills_enabled`; `rep config` says where that is set.
    0 skills, 0 agents
    [exit 0]
    "#);
    assert_snapshot!(ws.rep("show first-aid"), @r#"
    [stderr]
    error: skill `first-aid` not found
    hint: Skills are switched off by `skills_enabled`; `rep config` says where that is set.
    [exit 1]
    "#);
    assert_snapshot!(ws.rep("doctor"), @"
    Roots (profile repertoire: the first that is trusted wins)

    Skills
      0 skills and 0 agents in use

    Room in a prompt (if all of them were offered, in a window of 200,000 tokens)
      Claude Code   ✓ nothing to offer (0 of 8000 characters)
      Codex         ✓ nothing to offer (0 of 16000 characters)
      Copilot CLI   ✓ nothing to offer (0 of 15000 characters)

    Running agents (`rep run`, with anthropic/claude-haiku-4-5)
      ! no sandbox: it is switched off
      ! services: none is set up: ANTHROPIC_API_KEY, OPENAI_API_KEY, or OPENAI_BASE_URL for a server of
        your own
      · agents of others: none on PATH

    Skills are switched off by `skills_enabled`; `rep config` says where that is set.
    [exit 0]
    ");
}

#[test]
fn folders_of_the_configuration_take_the_place_of_the_profiles_own() {
    let ws = Workspace::new();
    ws.skill("project/.claude/skills/usual", "usual", "Usual. Use when usual.");
    ws.skill("project/ours/special", "special", "Special. Use when special.");
    ws.skill("home/own/mine", "mine", "Mine. Use when mine.");
    ws.write(PROJECT, "skills_dirs = [\"ours\", \"~/own\", \"gone\"]\n");
    assert_snapshot!(ws.rep("list"), @"
    ours · project
      special       untrusted · Special. Use when special.

    ~/own · project
      not searched: a project may only name folders of its own [RS006]

    gone · project
      not searched: the root is not there [RS313]

    [TMP]/pack · built in
      first-aid     Built in. Use when nothing else helps.

    2 skills, 0 agents
    [exit 0]
    ");
}

#[test]
fn limits_of_the_configuration_hold() {
    let ws = Workspace::new();
    ws.skill("home/.claude/skills/a/b/c/deep", "deep", "Deep. Use when deep.");
    ws.skill("home/.claude/skills/flat", "flat", "Flat. Use when flat.");
    ws.write(PROJECT, "[walk]\ndepth_max = 2\n[limits]\nfile_bytes_max = 10\n");
    assert_snapshot!(ws.rep("list"), @"
    [stderr]
    error: [TMP]/project/repertoire.toml:4: `limits.file_bytes_max` may not be set by a project
    hint: Set it in your own `~/.config/repertoire/repertoire.toml`: projects may not decide this.
    [exit 2]
    ");
}
