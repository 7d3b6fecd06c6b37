//! The table of configuration keys. Adding a key is adding an entry here.
//!
//! An entry is `field("name"): Type = "default", SetBy, "description";`. The field is the name with `_` for `.`, the
//! type implements `ConfigValue`, and the default is TOML. Without a default the field is an `Option`.

use std::time::Duration;

use camino::Utf8PathBuf;
use repertoire_agent::permission::PermissionMode;
use repertoire_journal::QueueOrder;
use repertoire_model::{ApiSecret, ModelName};
use repertoire_plan::PlanDeliveryMode;
use repertoire_review::extract::ReviewSeverity;
use repertoire_review::record::ReviewDepth;
use repertoire_skill::profile::ProfileId;

use super::key_table::{
    ConfigKey, SetBy, accepts_value, config_keys, field_type, is_field_name, read_field,
};
use super::origin::ConfigSetting;
use super::value::{ByteCount, ConfigValue, RuleTexts, ShareNumber};
use super::words::{ReviewFailOn, SandboxSetting};

config_keys! {
    profile("profile"): ProfileId = "\"repertoire\"", User,
        "Whose order of roots and collision rule to follow.";
    skills_enabled("skills_enabled"): bool = "true", Anyone,
        "Whether skills are discovered at all.";
    skills_dirs("skills_dirs"): Vec<Utf8PathBuf>, Anyone,
        "Roots to search instead of the profile's own, in order.";
    extra_roots("extra_roots"): Vec<Utf8PathBuf> = "[]", Anyone,
        "Roots to search before all others.";
    skills_builtin_dir("skills_builtin_dir"): Utf8PathBuf, User,
        "A folder to use as the built-in pack, in place of the embedded one.";
    skills_sync_dir("skills_sync_dir"): Utf8PathBuf, User,
        "Where the built-in pack is kept as files; `skills` in the data folder by default.";
    skills_sync_on_start("skills_sync_on_start"): bool = "true", Anyone,
        "Whether the built-in pack is brought up to date when `rep` starts.";
    skills_max_selected_impl("skills_max_selected_impl"): usize = "2", Anyone,
        "Most skills selected for an implementation step.";
    skills_max_selected_review("skills_max_selected_review"): usize = "1", Anyone,
        "Most skills selected for a review step.";
    auto_trigger_enabled("auto_trigger.enabled"): bool = "true", Anyone,
        "Whether skills that the prompt does not name are picked automatically.";
    auto_trigger_confidence_threshold("auto_trigger.confidence_threshold"): ShareNumber = "0.6", Anyone,
        "How sure to be of a skill before it is picked; a skill's `triggers.confidence` may ask for more.";
    auto_trigger_max_skills("auto_trigger.max_skills"): usize = "3", Anyone,
        "Most skills picked for a task, besides those that it names and what they need.";
    selection_vectors("selection.vectors"): Utf8PathBuf, User,
        "A folder with word vectors (`vocab.txt`, `static.i8`, `static.scale.f32`) to use in place of the embedded ones.";
    skills_load_references("skills_load_references"): bool = "false", Anyone,
        "Whether files under `references/` are loaded with a skill.";
    skills_max_body_chars("skills_max_body_chars"): usize = "20000", Anyone,
        "Most characters of a body that are loaded.";
    walk_depth_max("walk.depth_max"): usize = "6", User,
        "How deep skills may stand below a root.";
    walk_entries_max("walk.entries_max"): usize = "20000", User,
        "How many entries are looked at below one root.";
    limits_file_bytes_max("limits.file_bytes_max"): u64 = "2097152", User,
        "Largest file that is read.";
    limits_frontmatter_bytes_max("limits.frontmatter_bytes_max"): usize = "65536", User,
        "Largest frontmatter that is parsed.";
    limits_depth("limits.depth"): u32 = "5", User,
        "How deep agents may delegate work.";
    limits_iterations("limits.iterations"): u32 = "50", User,
        "Most turns of one agent.";
    limits_tokens("limits.tokens"): u64, User,
        "Most tokens of a run, sub-agents included.";
    limits_cost("limits.cost"): f64, User,
        "Most US dollars of a run, sub-agents included.";
    limits_duration("limits.duration"): Duration = "\"1h\"", User,
        "Longest time of a run.";
    limits_command_memory("limits.command_memory"): ByteCount, User,
        "Maximum memory of a command and everything that it starts, as `4GiB`; 0 for no limit. By default a tenth of the machine's memory, but at least 2 GiB.";
    limits_command_processes("limits.command_processes"): u64 = "1024", User,
        "Maximum number of processes that a command or an external agent has at once; 0 for no limit.";
    limits_command_disk("limits.command_disk"): ByteCount = "\"2GiB\"", User,
        "Maximum size of the files that a command writes, as `4GiB`; 0 for no limit.";
    model("model"): ModelName = "\"anthropic/claude-haiku-4-5\"", Anyone,
        "The model of agents that ask for none: `anthropic/…`, `openai/…`, or `compat/…` for any OpenAI-compatible server.";
    models("models"): toml::Table, User,
        "Prices and sizes of models that are not known, or others than those that are: a table for each model.";
    permissions_mode("permissions.mode"): PermissionMode = "\"default\"", User,
        "What agents may do where no rule says otherwise.";
    permissions_allow("permissions.allow"): RuleTexts = "[]", User,
        "What agents may do without asking, such as `bash(git status:*)`.";
    permissions_ask("permissions.ask"): RuleTexts = "[]", Anyone,
        "What agents have to ask for.";
    permissions_deny("permissions.deny"): RuleTexts = "[]", Anyone,
        "What agents may not do.";
    sandbox("sandbox"): SandboxSetting = "\"auto\"", User,
        "Whether commands of agents run in a sandbox: where there is one, never, or not without.";
    sandbox_requires("sandbox_requires"): Vec<String>, User,
        "The guarantees that `sandbox = \"require\"` demands, such as `files-confined`; all of them if absent. See docs/reference/sandbox.md.";
    trust_settings("trust.settings"): Vec<String> = "[]", User,
        "Digests of projects' settings that you agree to, as `rep trust --project` shows them.";
    trust_folders("trust.folders"): Vec<Utf8PathBuf> = "[]", User,
        "Folders whose projects are yours: their settings may start programs without being asked about.";
    checks_env_allowed("checks.env_allowed"): Vec<String> = "[]", User,
        "Variables that checks may set in `env`, besides those of docs/reference/checks.md; a `*` at the end of a name stands for any ending.";
    mcp_servers("mcp_servers"): toml::Table, User,
        "MCP servers whose tools agents get: a table for each, as in `.mcp.json`.";
    telemetry_otlp_endpoint("telemetry.otlp_endpoint"): String, User,
        "A collector of OpenTelemetry traces that spans of runs, steps, model calls, tools and requests are sent to, such as `http://127.0.0.1:4318`; `OTEL_EXPORTER_OTLP_ENDPOINT` if absent.";
    serve_connections_max("serve.connections_max"): usize = "12288", User,
        "Maximum connections to `rep serve` that have shown a good token.";
    serve_unauthenticated_connections_max("serve.unauthenticated_connections_max"): usize = "1024", User,
        "Maximum connections to `rep serve` that have not shown a good token; beyond it the oldest of them is closed.";
    serve_mcp_sessions_max("serve.mcp_sessions_max"): usize = "1024", User,
        "Maximum MCP sessions of `rep serve`; beyond it the least recently used one is closed.";
    research_search_url("research.search_url"): String, User,
        "Where the `research` tool searches: an address with `{query}` that answers as SearXNG does (`format=json`).";
    review_depth("review.depth"): ReviewDepth = "\"quick\"", Anyone,
        "How deep reviews look.";
    review_skills("review.skills"): Vec<String>, Anyone,
        "Skills that tell reviewers what to look for; those of the built-in pack if absent.";
    review_skip_agents("review.skip_agents"): Vec<String> = "[]", Anyone,
        "Agents that take no part in reviews.";
    review_min_severity("review.min_severity"): ReviewSeverity = "\"suggestion\"", Anyone,
        "What reviews report at least.";
    review_fail_on("review.fail_on"): ReviewFailOn = "\"major\"", Anyone,
        "Findings from this severity on make `rep review` exit with 1.";
    review_instructions("review.instructions"): String, Anyone,
        "What every reviewer is told besides.";
    review_strong_model("review.strong_model"): ModelName, Anyone,
        "The model of reviewers that need the better one.";
    review_fast_model("review.fast_model"): ModelName, Anyone,
        "The model of reviewers that do with a cheaper one.";
    review_backend("review.backend"): String, User,
        "Who executes reviews, as `--backend`.";
    review_at_once("review.at_once"): usize = "4", User,
        "Reviewers at work at once.";
    review_max_cost("review.max_cost"): f64, User,
        "Most US dollars of a review.";
    review_max_tokens("review.max_tokens"): u64, User,
        "Most tokens of a review.";
    review_max_time("review.max_time"): Duration = "\"1h\"", User,
        "Longest time of a review.";
    review_call_time("review.call_time"): Duration = "\"15m\"", User,
        "Longest time of one reviewer.";
    plan_review("plan.review"): bool = "true", Anyone,
        "Whether work on a plan is reviewed before it counts.";
    plan_checks("plan.checks"): toml::Table, UserOrConsentedProject,
        "What has to hold after every change of a plan's run: a table for each, with `command`, and `timeout`, `critical`, `depends_on`, `retries`, `network`, `env`.";
    plan_final_checks("plan.final_checks"): toml::Table, UserOrConsentedProject,
        "What has to hold besides before a plan's run is complete.";
    plan_self_improve("plan.self_improve"): bool = "false", UserOrConsentedProject,
        "Whether red checks are mended with what helped before, and by the tools themselves, before an agent is asked again.";
    plan_self_improve_network("plan.self_improve_network"): bool = "false", User,
        "Whether that may reach the network, to install what a lock file names.";
    plan_agent("plan.agent"): String, Anyone,
        "The agent that works on plans; `default` if absent.";
    plan_review_agent("plan.review_agent"): String, Anyone,
        "The agent that reviews work on plans.";
    plan_backend("plan.backend"): String, User,
        "The backend that works on plans, as for `--backend`.";
    plan_review_backend("plan.review_backend"): String, User,
        "The backend that reviews work on plans, if it is another one.";
    plan_model("plan.model"): ModelName, Anyone,
        "The model that works on plans.";
    plan_review_model("plan.review_model"): ModelName, Anyone,
        "The model that reviews work on plans.";
    plan_instructions("plan.instructions"): Utf8PathBuf, Anyone,
        "A file that replaces the usual instructions of an implementation; `SPEC_PATH` and `PLAN_PATH` in it are filled in.";
    plan_attempts("plan.attempts"): u32 = "5", Anyone,
        "Attempts at a task before it is marked failed.";
    plan_failures("plan.failures"): u32 = "6", Anyone,
        "Failed steps of a kind in a row before a run fails.";
    plan_iterations("plan.iterations"): u32 = "200", Anyone,
        "Most implementations and reviews of a run.";
    plan_step_time("plan.step_time"): Duration = "\"1h\"", Anyone,
        "Longest time of one step of an agent.";
    plan_max_cost("plan.max_cost"): f64, User,
        "Most US dollars of a plan's run.";
    plan_max_tokens("plan.max_tokens"): u64, User,
        "Most tokens of a plan's run.";
    plan_max_time("plan.max_time"): Duration, User,
        "Longest time at work of a plan's run.";
    plan_ending("plan.ending"): PlanDeliveryMode = "\"keep\"", User,
        "Where the work goes when a plan is done.";
    plan_branch_prefix("plan.branch_prefix"): String = "\"rep/\"", Anyone,
        "What the branches of runs begin with.";
    plan_copy("plan.copy"): Vec<String> = "[]", UserOrConsentedProject,
        "Files that git does not know and a worktree needs, as globs, such as `.env`.";
    plan_setup("plan.setup"): String, UserOrConsentedProject,
        "A command that makes a new worktree ready.";
    database_url("database_url"): ApiSecret, User,
        "Where runs are recorded, as `postgres://…`; a file in the data folder if absent.";
    queue_order("queue.order"): QueueOrder = "\"fifo\"", User,
        "Which run a worker takes first, among those of the same priority.";
    queue_runs_max("queue.runs_max"): u32 = "3", User,
        "Most runs at work at once; 0 for no limit.";
    queue_workspace_runs_max("queue.workspace_runs_max"): u32 = "0", User,
        "Most runs at work at once in one workspace; 0 for no limit.";
    queue_lease("queue.lease"): Duration = "\"30s\"", User,
        "How long a worker may be silent before another one takes its runs over.";
    runs_keep_days("runs.keep_days"): u64 = "0", User,
        "How many days a run that is over is kept, with its files, after it last changed; 0 keeps all.";
    github_trigger_phrase("github.trigger_phrase"): String = "\"@repertoire\"", UserOrBaseBranch,
        "The phrase that calls the agent on GitHub, as a word of its own.";
    github_label_trigger("github.label_trigger"): String = "\"repertoire\"", UserOrBaseBranch,
        "The label that calls the agent when it is added.";
    github_assignee_trigger("github.assignee_trigger"): String, UserOrBaseBranch,
        "The account that calls the agent when it is assigned.";
    github_task_label("github.task_label"): String = "\"agent-task\"", UserOrBaseBranch,
        "The label of issues that are tasks.";
    github_bot_login("github.bot_login"): String = "\"github-actions[bot]\"", UserOrBaseBranch,
        "The account that the agent writes as; it never answers itself.";
    github_allowed_bots("github.allowed_bots"): Vec<String> = "[]", UserOrBaseBranch,
        "Bots that may call the agent; `*` for all, which is unwise.";
    github_allowed_non_write_users("github.allowed_non_write_users"): Vec<String> = "[]", UserOrBaseBranch,
        "People without write access who may ask questions; `*` for everybody, which is unwise.";
    github_base_branch("github.base_branch"): String, UserOrBaseBranch,
        "The branch that work begins on, if it is not the default branch.";
    github_branch_prefix("github.branch_prefix"): String = "\"repertoire/\"", UserOrBaseBranch,
        "What the branches of runs on GitHub begin with.";
    github_network_tools("github.network_tools"): Vec<String> = "[]", UserOrBaseBranch,
        "Tools that may leave the machine in runs on GitHub, if the mode names them too: `github`, `research`.";
    github_failed_label("github.failed_label"): String = "\"agent-failed\"", UserOrBaseBranch,
        "The label of tasks that failed; they are not picked again.";
    github_done_label("github.done_label"): String = "\"agent-done\"", UserOrBaseBranch,
        "The label of issues whose task is done and waits to be looked at; they are not picked again.";
    github_waiting_label("github.waiting_label"): String = "\"agent-waiting\"", UserOrBaseBranch,
        "The label of issues whose task has a question; they are not picked again until it is taken off.";
    github_push("github.push"): bool = "false", UserOrBaseBranch,
        "Whether branches of finished work are pushed.";
    github_pull_request("github.pull_request"): bool = "false", UserOrBaseBranch,
        "Whether pull requests are opened for branches that are pushed.";
    github_draft("github.draft"): bool = "true", UserOrBaseBranch,
        "Whether these are drafts; where pull requests are merged automatically, only if you set it.";
    github_auto_merge("github.auto_merge"): toml::Table, UserOrBaseBranch,
        "Whether and when pull requests of the agent are merged: `enabled`, `required_checks`, `required_approvals` and more, in docs/reference/auto-merge.md.";
    github_continuous_sources("github.continuous.sources"): Vec<String> = "[\"issue\", \"file\", \"plan\", \"prompt\"]", UserOrBaseBranch,
        "Where tasks come from, in this order.";
    github_continuous_tasks_file("github.continuous.tasks_file"): String = "\"TASKS.md\"", UserOrBaseBranch,
        "The list of boxes with tasks.";
    github_continuous_plan("github.continuous.plan"): String, UserOrBaseBranch,
        "A plan that is worked through as one task.";
    github_continuous_enabled("github.continuous.enabled"): bool = "false", UserOrBaseBranch,
        "Whether scheduled and dispatched runs work through tasks.";
    github_continuous_max_tasks("github.continuous.max_tasks"): u32, UserOrBaseBranch,
        "Most tasks of a run, if not as many as the mode says.";
    github_continuous_max_time("github.continuous.max_time"): Duration, UserOrBaseBranch,
        "How long all tasks of a run may take together.";
    github_continuous_max_cost("github.continuous.max_cost"): f64, UserOrBaseBranch,
        "Most US dollars of all tasks of a run together.";
    github_continuous_claim("github.continuous.claim"): Duration = "\"6h\"", UserOrBaseBranch,
        "How long the label of an active run keeps other runs from its task, unless the label is removed.";
    github_continuous_delay("github.continuous.delay"): Duration, UserOrBaseBranch,
        "The pause between two tasks, if not as long as the mode says.";
    github_continuous_stop_on_first_failure("github.continuous.stop_on_first_failure"): bool = "false", UserOrBaseBranch,
        "Whether the first task that fails ends the run.";
}
