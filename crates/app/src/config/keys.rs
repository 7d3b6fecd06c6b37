//! All configuration keys, as a table.

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigValueKind {
    /// `true` or `false`.
    Bool,
    /// A whole number from 0.
    Number,
    /// A number from 0 to 1.
    Share,
    /// A path. Relative paths start from the file's folder.
    Path,
    /// A list of paths.
    Paths,
    /// One of the profiles.
    Profile,
    /// A text.
    Text,
    /// A number from 0, with a fraction.
    Amount,
    /// A time such as `10m`.
    Duration,
    /// A number of bytes, or a text such as `512MiB`.
    Size,
    /// The name of a model, `service/model`.
    Model,
    /// One of the given words.
    Word(&'static [&'static str]),
    /// Permission rules such as `bash(git status:*)`. A project's rules are added to the user's.
    Rules,
    /// A table with keys of its own.
    Table,
    /// A list of texts.
    Texts,
    /// A text that is not displayed.
    Secret,
}

/// The sources that may set a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetBy {
    /// The user and every project: a preference, or a rule that forbids more.
    Anyone,
    /// The user, and a project once the user has agreed to the value: it starts programs, gives
    /// them network access, or lets them read more.
    UserOrConsentedProject,
    /// The user and the base branch. Only `rep github run` uses it, and that reads nothing from a
    /// pull request.
    UserOrBaseBranch,
    /// Only the user: it decides where data goes, raises a limit, weakens the sandbox, or grants
    /// trust.
    User,
}

/// A configuration key.
pub struct ConfigKey {
    pub name: &'static str,
    pub shape: ConfigValueKind,
    /// The default, as TOML. Empty for none.
    pub default: &'static str,
    /// A description for people.
    pub about: &'static str,
    pub set_by: SetBy,
}

const fn anyone_key(
    name: &'static str,
    shape: ConfigValueKind,
    default: &'static str,
    about: &'static str,
) -> ConfigKey {
    ConfigKey { name, shape, default, about, set_by: SetBy::Anyone }
}

const fn user_key(
    name: &'static str,
    shape: ConfigValueKind,
    default: &'static str,
    about: &'static str,
) -> ConfigKey {
    ConfigKey { name, shape, default, about, set_by: SetBy::User }
}

const fn acting_key(
    name: &'static str,
    shape: ConfigValueKind,
    default: &'static str,
    about: &'static str,
) -> ConfigKey {
    ConfigKey { name, shape, default, about, set_by: SetBy::UserOrConsentedProject }
}

const fn github_key(
    name: &'static str,
    shape: ConfigValueKind,
    default: &'static str,
    about: &'static str,
) -> ConfigKey {
    ConfigKey { name, shape, default, about, set_by: SetBy::UserOrBaseBranch }
}

pub static KEYS: &[ConfigKey] = &[
    user_key(
        "profile",
        ConfigValueKind::Profile,
        "\"repertoire\"",
        "Whose order of roots and collision rule to follow.",
    ),
    anyone_key(
        "skills_enabled",
        ConfigValueKind::Bool,
        "true",
        "Whether skills are discovered at all.",
    ),
    anyone_key(
        "skills_dirs",
        ConfigValueKind::Paths,
        "",
        "Roots to search instead of the profile's own, in order.",
    ),
    anyone_key("extra_roots", ConfigValueKind::Paths, "[]", "Roots to search before all others."),
    user_key(
        "skills_builtin_dir",
        ConfigValueKind::Path,
        "",
        "A folder to use as the built-in pack, in place of the embedded one.",
    ),
    user_key(
        "skills_sync_dir",
        ConfigValueKind::Path,
        "",
        "Where the built-in pack is kept as files; `skills` in the data folder by default.",
    ),
    anyone_key(
        "skills_sync_on_start",
        ConfigValueKind::Bool,
        "true",
        "Whether the built-in pack is brought up to date when `rep` starts.",
    ),
    anyone_key(
        "skills_max_selected_impl",
        ConfigValueKind::Number,
        "2",
        "Most skills selected for an implementation step.",
    ),
    anyone_key(
        "skills_max_selected_review",
        ConfigValueKind::Number,
        "1",
        "Most skills selected for a review step.",
    ),
    anyone_key(
        "auto_trigger.enabled",
        ConfigValueKind::Bool,
        "true",
        "Whether skills are picked that nobody named.",
    ),
    anyone_key(
        "auto_trigger.confidence_threshold",
        ConfigValueKind::Share,
        "0.6",
        "How sure to be of a skill before it is picked; a skill's `triggers.confidence` may ask for more.",
    ),
    anyone_key(
        "auto_trigger.max_skills",
        ConfigValueKind::Number,
        "3",
        "Most skills picked for a task, besides those that it names and what they need.",
    ),
    user_key(
        "selection.vectors",
        ConfigValueKind::Path,
        "",
        "A folder with word vectors (`vocab.txt`, `static.i8`, `static.scale.f32`) to use in place of the embedded ones.",
    ),
    anyone_key(
        "skills_load_references",
        ConfigValueKind::Bool,
        "false",
        "Whether files under `references/` are loaded with a skill.",
    ),
    anyone_key(
        "skills_max_body_chars",
        ConfigValueKind::Number,
        "20000",
        "Most characters of a body that are loaded.",
    ),
    user_key(
        "walk.depth_max",
        ConfigValueKind::Number,
        "6",
        "How deep skills may stand below a root.",
    ),
    user_key(
        "walk.entries_max",
        ConfigValueKind::Number,
        "20000",
        "How many entries are looked at below one root.",
    ),
    user_key(
        "limits.file_bytes_max",
        ConfigValueKind::Number,
        "2097152",
        "Largest file that is read.",
    ),
    user_key(
        "limits.frontmatter_bytes_max",
        ConfigValueKind::Number,
        "65536",
        "Largest frontmatter that is parsed.",
    ),
    user_key("limits.depth", ConfigValueKind::Number, "5", "How deep agents may delegate work."),
    user_key("limits.iterations", ConfigValueKind::Number, "50", "Most turns of one agent."),
    user_key(
        "limits.tokens",
        ConfigValueKind::Number,
        "",
        "Most tokens of a run, sub-agents included.",
    ),
    user_key(
        "limits.cost",
        ConfigValueKind::Amount,
        "",
        "Most US dollars of a run, sub-agents included.",
    ),
    user_key("limits.duration", ConfigValueKind::Duration, "\"1h\"", "Longest time of a run."),
    user_key(
        "limits.command_memory",
        ConfigValueKind::Size,
        "",
        "Maximum memory of a command and everything that it starts, as `4GiB`; 0 for no limit. By default a tenth of the machine's memory, but at least 2 GiB.",
    ),
    user_key(
        "limits.command_processes",
        ConfigValueKind::Number,
        "1024",
        "Maximum number of processes that a command or an external agent has at once; 0 for no limit.",
    ),
    user_key(
        "limits.command_disk",
        ConfigValueKind::Size,
        "\"2GiB\"",
        "Maximum size of the files that a command writes, as `4GiB`; 0 for no limit.",
    ),
    anyone_key(
        "model",
        ConfigValueKind::Model,
        "\"anthropic/claude-haiku-4-5\"",
        "The model of agents that ask for none: `anthropic/…`, `openai/…`, or `compat/…` for any OpenAI-compatible server.",
    ),
    user_key(
        "models",
        ConfigValueKind::Table,
        "",
        "Prices and sizes of models that are not known, or others than those that are: a table for each model.",
    ),
    user_key(
        "permissions.mode",
        ConfigValueKind::Word(&["default", "read-only", "accept-edits", "full"]),
        "\"default\"",
        "What agents may do where no rule says otherwise.",
    ),
    user_key(
        "permissions.allow",
        ConfigValueKind::Rules,
        "[]",
        "What agents may do without asking, such as `bash(git status:*)`.",
    ),
    anyone_key("permissions.ask", ConfigValueKind::Rules, "[]", "What agents have to ask for."),
    anyone_key("permissions.deny", ConfigValueKind::Rules, "[]", "What agents may not do."),
    user_key(
        "sandbox",
        ConfigValueKind::Word(&["auto", "off", "require"]),
        "\"auto\"",
        "Whether commands of agents run in a sandbox: where there is one, never, or not without.",
    ),
    user_key(
        "sandbox_requires",
        ConfigValueKind::Texts,
        "",
        "The guarantees that `sandbox = \"require\"` demands, such as `files-confined`; all of them if absent. See sandbox.md.",
    ),
    user_key(
        "trust.settings",
        ConfigValueKind::Texts,
        "[]",
        "Digests of projects' settings that you agree to, as `rep trust --project` shows them.",
    ),
    user_key(
        "trust.folders",
        ConfigValueKind::Paths,
        "[]",
        "Folders whose projects are yours: their settings may start programs without being asked about.",
    ),
    user_key(
        "checks.env_allowed",
        ConfigValueKind::Texts,
        "[]",
        "Variables that checks may set in `env`, besides those of docs/verification.md; a `*` at the end of a name stands for any ending.",
    ),
    user_key(
        "mcp_servers",
        ConfigValueKind::Table,
        "",
        "MCP servers whose tools agents get: a table for each, as in `.mcp.json`.",
    ),
    user_key(
        "telemetry.otlp_endpoint",
        ConfigValueKind::Text,
        "",
        "A collector of OpenTelemetry traces that spans of runs, steps, model calls, tools and requests are sent to, such as `http://127.0.0.1:4318`; `OTEL_EXPORTER_OTLP_ENDPOINT` if absent.",
    ),
    user_key(
        "serve.connections_max",
        ConfigValueKind::Number,
        "12288",
        "Maximum connections to `rep serve` that have shown a good token.",
    ),
    user_key(
        "serve.unauthenticated_connections_max",
        ConfigValueKind::Number,
        "1024",
        "Maximum connections to `rep serve` that have not shown a good token; beyond it the oldest of them is closed.",
    ),
    user_key(
        "serve.mcp_sessions_max",
        ConfigValueKind::Number,
        "1024",
        "Maximum MCP sessions of `rep serve`; beyond it the least recently used one is closed.",
    ),
    user_key(
        "research.search_url",
        ConfigValueKind::Text,
        "",
        "Where the `research` tool searches: an address with `{query}` that answers as SearXNG does (`format=json`).",
    ),
    anyone_key(
        "review.depth",
        ConfigValueKind::Word(&["quick", "deep"]),
        "\"quick\"",
        "How deep reviews look.",
    ),
    anyone_key(
        "review.skills",
        ConfigValueKind::Texts,
        "",
        "Skills that tell reviewers what to look for; those of the built-in pack if absent.",
    ),
    anyone_key(
        "review.skip_agents",
        ConfigValueKind::Texts,
        "[]",
        "Agents that take no part in reviews.",
    ),
    anyone_key(
        "review.min_severity",
        ConfigValueKind::Word(&["critical", "major", "minor", "suggestion"]),
        "\"suggestion\"",
        "What reviews report at least.",
    ),
    anyone_key(
        "review.fail_on",
        ConfigValueKind::Word(&["critical", "major", "minor", "suggestion", "never"]),
        "\"major\"",
        "Findings from this severity on make `rep review` exit with 1.",
    ),
    anyone_key(
        "review.instructions",
        ConfigValueKind::Text,
        "",
        "What every reviewer is told besides.",
    ),
    anyone_key(
        "review.strong_model",
        ConfigValueKind::Model,
        "",
        "The model of reviewers that need the better one.",
    ),
    anyone_key(
        "review.fast_model",
        ConfigValueKind::Model,
        "",
        "The model of reviewers that do with a cheaper one.",
    ),
    user_key("review.backend", ConfigValueKind::Text, "", "Who executes reviews, as `--backend`."),
    user_key("review.at_once", ConfigValueKind::Number, "4", "Reviewers at work at once."),
    user_key("review.max_cost", ConfigValueKind::Amount, "", "Most US dollars of a review."),
    user_key("review.max_tokens", ConfigValueKind::Number, "", "Most tokens of a review."),
    user_key("review.max_time", ConfigValueKind::Duration, "\"1h\"", "Longest time of a review."),
    user_key(
        "review.call_time",
        ConfigValueKind::Duration,
        "\"15m\"",
        "Longest time of one reviewer.",
    ),
    anyone_key(
        "plan.review",
        ConfigValueKind::Bool,
        "true",
        "Whether work on a plan is reviewed before it counts.",
    ),
    acting_key(
        "plan.checks",
        ConfigValueKind::Table,
        "",
        "What has to hold after every change of a plan's run: a table for each, with `command`, and `timeout`, `critical`, `depends_on`, `retries`, `network`, `env`.",
    ),
    acting_key(
        "plan.final_checks",
        ConfigValueKind::Table,
        "",
        "What has to hold besides before a plan's run is complete.",
    ),
    acting_key(
        "plan.self_improve",
        ConfigValueKind::Bool,
        "false",
        "Whether red checks are mended with what helped before, and by the tools themselves, before an agent is asked again.",
    ),
    user_key(
        "plan.self_improve_network",
        ConfigValueKind::Bool,
        "false",
        "Whether that may reach the network, to install what a lock file names.",
    ),
    anyone_key(
        "plan.agent",
        ConfigValueKind::Text,
        "",
        "The agent that works on plans; `default` if absent.",
    ),
    anyone_key(
        "plan.review_agent",
        ConfigValueKind::Text,
        "",
        "The agent that reviews work on plans.",
    ),
    user_key(
        "plan.backend",
        ConfigValueKind::Text,
        "",
        "Who executes work on plans, as `--backend`.",
    ),
    user_key(
        "plan.review_backend",
        ConfigValueKind::Text,
        "",
        "Who executes reviews, if it is somebody else.",
    ),
    anyone_key("plan.model", ConfigValueKind::Model, "", "The model that works on plans."),
    anyone_key(
        "plan.review_model",
        ConfigValueKind::Model,
        "",
        "The model that reviews work on plans.",
    ),
    anyone_key(
        "plan.instructions",
        ConfigValueKind::Path,
        "",
        "A file that replaces the usual instructions of an implementation; `SPEC_PATH` and `PLAN_PATH` in it are filled in.",
    ),
    anyone_key(
        "plan.attempts",
        ConfigValueKind::Number,
        "5",
        "Attempts at a task before it is marked failed.",
    ),
    anyone_key(
        "plan.failures",
        ConfigValueKind::Number,
        "6",
        "Failed steps of a kind in a row before a run fails.",
    ),
    anyone_key(
        "plan.iterations",
        ConfigValueKind::Number,
        "200",
        "Most implementations and reviews of a run.",
    ),
    anyone_key(
        "plan.step_time",
        ConfigValueKind::Duration,
        "\"1h\"",
        "Longest time of one step of an agent.",
    ),
    user_key("plan.max_cost", ConfigValueKind::Amount, "", "Most US dollars of a plan's run."),
    user_key("plan.max_tokens", ConfigValueKind::Number, "", "Most tokens of a plan's run."),
    user_key(
        "plan.max_time",
        ConfigValueKind::Duration,
        "",
        "Longest time at work of a plan's run.",
    ),
    user_key(
        "plan.ending",
        ConfigValueKind::Word(&["keep", "merge", "squash", "branch"]),
        "\"keep\"",
        "Where the work goes when a plan is done.",
    ),
    anyone_key(
        "plan.branch_prefix",
        ConfigValueKind::Text,
        "\"rep/\"",
        "What the branches of runs begin with.",
    ),
    acting_key(
        "plan.copy",
        ConfigValueKind::Texts,
        "[]",
        "Files that git does not know and a worktree needs, as globs, such as `.env`.",
    ),
    acting_key(
        "plan.setup",
        ConfigValueKind::Text,
        "",
        "A command that makes a new worktree ready.",
    ),
    user_key(
        "database_url",
        ConfigValueKind::Secret,
        "",
        "Where runs are recorded, as `postgres://…`; a file in the data folder if absent.",
    ),
    user_key(
        "queue.order",
        ConfigValueKind::Word(&["fifo", "newest"]),
        "\"fifo\"",
        "Which run a worker takes first, among those of the same priority.",
    ),
    user_key(
        "queue.runs_max",
        ConfigValueKind::Number,
        "3",
        "Most runs at work at once; 0 for no limit.",
    ),
    user_key(
        "queue.workspace_runs_max",
        ConfigValueKind::Number,
        "0",
        "Most runs at work at once in one workspace; 0 for no limit.",
    ),
    user_key(
        "queue.lease",
        ConfigValueKind::Duration,
        "\"30s\"",
        "How long a worker may be silent before another one takes its runs over.",
    ),
    user_key(
        "runs.keep_days",
        ConfigValueKind::Number,
        "0",
        "How many days a run that is over is kept, with its files, after it last changed; 0 keeps all.",
    ),
    github_key(
        "github.trigger_phrase",
        ConfigValueKind::Text,
        "\"@repertoire\"",
        "The phrase that calls the agent on GitHub, as a word of its own.",
    ),
    github_key(
        "github.label_trigger",
        ConfigValueKind::Text,
        "\"repertoire\"",
        "The label that calls the agent when it is added.",
    ),
    github_key(
        "github.assignee_trigger",
        ConfigValueKind::Text,
        "",
        "The account that calls the agent when it is assigned.",
    ),
    github_key(
        "github.task_label",
        ConfigValueKind::Text,
        "\"agent-task\"",
        "The label of issues that are tasks.",
    ),
    github_key(
        "github.bot_login",
        ConfigValueKind::Text,
        "\"github-actions[bot]\"",
        "The account that the agent writes as; it never answers itself.",
    ),
    github_key(
        "github.allowed_bots",
        ConfigValueKind::Texts,
        "[]",
        "Bots that may call the agent; `*` for all, which is unwise.",
    ),
    github_key(
        "github.allowed_non_write_users",
        ConfigValueKind::Texts,
        "[]",
        "People without write access who may ask questions; `*` for everybody, which is unwise.",
    ),
    github_key(
        "github.base_branch",
        ConfigValueKind::Text,
        "",
        "The branch that work begins on, if it is not the default branch.",
    ),
    github_key(
        "github.branch_prefix",
        ConfigValueKind::Text,
        "\"repertoire/\"",
        "What the branches of runs on GitHub begin with.",
    ),
    github_key(
        "github.network_tools",
        ConfigValueKind::Texts,
        "[]",
        "Tools that may leave the machine in runs on GitHub, if the mode names them too: `github`, `research`.",
    ),
    github_key(
        "github.failed_label",
        ConfigValueKind::Text,
        "\"agent-failed\"",
        "The label of tasks that failed; they are not picked again.",
    ),
    github_key(
        "github.done_label",
        ConfigValueKind::Text,
        "\"agent-done\"",
        "The label of issues whose task is done and waits to be looked at; they are not picked again.",
    ),
    github_key(
        "github.waiting_label",
        ConfigValueKind::Text,
        "\"agent-waiting\"",
        "The label of issues whose task has a question; they are not picked again until it is taken off.",
    ),
    github_key(
        "github.push",
        ConfigValueKind::Bool,
        "false",
        "Whether branches of finished work are pushed.",
    ),
    github_key(
        "github.pull_request",
        ConfigValueKind::Bool,
        "false",
        "Whether pull requests are opened for branches that are pushed.",
    ),
    github_key(
        "github.draft",
        ConfigValueKind::Bool,
        "true",
        "Whether these are drafts; where pull requests are merged automatically, only if you set it.",
    ),
    github_key(
        "github.auto_merge",
        ConfigValueKind::Table,
        "",
        "Whether and when pull requests of the agent are merged: `enabled`, `required_checks`, `required_approvals` and more, in docs/auto-merge.md.",
    ),
    github_key(
        "github.continuous.sources",
        ConfigValueKind::Texts,
        "[\"issue\", \"file\", \"plan\", \"prompt\"]",
        "Where tasks come from, in this order.",
    ),
    github_key(
        "github.continuous.tasks_file",
        ConfigValueKind::Text,
        "\"TASKS.md\"",
        "The list of boxes with tasks.",
    ),
    github_key(
        "github.continuous.plan",
        ConfigValueKind::Text,
        "",
        "A plan that is worked through as one task.",
    ),
    github_key(
        "github.continuous.enabled",
        ConfigValueKind::Bool,
        "false",
        "Whether scheduled and dispatched runs work through tasks.",
    ),
    github_key(
        "github.continuous.max_tasks",
        ConfigValueKind::Number,
        "",
        "Most tasks of a run, if not as many as the mode says.",
    ),
    github_key(
        "github.continuous.max_time",
        ConfigValueKind::Duration,
        "",
        "How long all tasks of a run may take together.",
    ),
    github_key(
        "github.continuous.max_cost",
        ConfigValueKind::Amount,
        "",
        "Most US dollars of all tasks of a run together.",
    ),
    github_key(
        "github.continuous.claim",
        ConfigValueKind::Duration,
        "\"6h\"",
        "How long the label of a run at work keeps other runs from its task, if nobody takes it off.",
    ),
    github_key(
        "github.continuous.delay",
        ConfigValueKind::Duration,
        "",
        "The pause between two tasks, if not as long as the mode says.",
    ),
    github_key(
        "github.continuous.stop_on_first_failure",
        ConfigValueKind::Bool,
        "false",
        "Whether the first task that fails ends the run.",
    ),
];
