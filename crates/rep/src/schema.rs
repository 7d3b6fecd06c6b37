//! The types of `--json` output. They are published as JSON Schemas under `docs/reference/schemas/`. Fields
//! are only ever added.

use repertoire_select::eval::{EvalComparison, EvalReport, LabelProblem};
pub use repertoire_select::json::{ExplanationJson, MatchJson, StageJson};
pub use repertoire_skill::budget::ListingBudgetJson;
use repertoire_skill::catalog::CatalogEntry;
use repertoire_skill::lint::{FileReport, LintSummary};
use repertoire_skill::render::json::SkillJson;
pub use repertoire_skill::render::list::{BrokenJson, ListSummary, RootJson, SkillRow};
use repertoire_skill::render::message::SkillMessageRole;
use repertoire_skill::skill::Scope;
use repertoire_skill::trust::TrustLevel;
use repertoire_text::invisible;
use repertoire_text::json::DiagnosticJson;
use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;

pub mod github;
pub mod improve;
pub mod plan;
pub mod review;
pub mod runs;
pub mod serve;
pub mod verify;
pub mod workflow;

/// The output of `rep list --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListJson {
    /// Skills in use, sorted by name, followed by shadowed ones.
    pub skills: Vec<SkillRow>,
    /// Files that could not be loaded.
    pub broken: Vec<BrokenJson>,
    /// The roots, in search order.
    pub roots: Vec<RootJson>,
    /// Counts.
    pub summary: ListSummary,
}

/// The output of `rep lint --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LintJson {
    /// One entry for every checked file.
    pub files: Vec<LintFileJson>,
    /// Counts.
    pub summary: LintSummary,
}

/// The findings of one file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LintFileJson {
    /// The path of the file.
    pub path: String,
    /// The skill's name, if it could be loaded.
    pub name: Option<String>,
    /// The findings, in the order of the file.
    pub diagnostics: Vec<DiagnosticJson>,
}

impl LintFileJson {
    pub(crate) fn from_report(file: &FileReport) -> Self {
        LintFileJson {
            path: file.path.to_string(),
            name: file.name.clone(),
            diagnostics: file.diagnostics.iter().map(DiagnosticJson::from).collect(),
        }
    }
}

/// One skill in the output of `rep read --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReadJson {
    /// The name by which the skill can be requested.
    pub name: String,
    /// The folder that the skill's relative paths start from.
    pub base_dir: String,
    /// The digest of the file.
    pub digest: String,
    /// The trust in the skill. Only trusted skills get capabilities.
    pub trust: TrustLevel,
    /// The whole file, without invisible characters.
    pub content: String,
}

impl ReadJson {
    pub(crate) fn from_entry(entry: &CatalogEntry) -> Self {
        let skill = &entry.skill;
        ReadJson {
            name: entry.id.clone(),
            base_dir: skill.origin.dir().to_string(),
            digest: skill.digest().to_string(),
            trust: entry.trust,
            content: invisible::removed(skill.text()).0.into_owned(),
        }
    }
}

/// The output of `rep trust --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TrustJson {
    /// Skills in use and skills that wait to be trusted, sorted by name.
    pub skills: Vec<TrustRow>,
    /// The settings of this project that start programs; null if there are none.
    pub project: Option<TrustProjectJson>,
}

/// The settings of a project that start programs, and the user's consent.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TrustProjectJson {
    /// The folder that the consent is for.
    pub folder: String,
    /// The files that declare the settings.
    pub files: Vec<String>,
    /// The digest of the settings, for `--consent`.
    pub digest: String,
    /// The trust in the settings. They come into force only if trusted.
    pub trust: TrustLevel,
    /// The settings by key, each value as JSON.
    pub settings: std::collections::BTreeMap<String, serde_json::Value>,
}

/// The trust in one skill.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TrustRow {
    /// The name by which the skill can be requested.
    pub name: String,
    /// The path of the skill's file.
    pub path: String,
    /// The scope of the skill's root.
    pub scope: Scope,
    /// The trust in the skill. Only trusted skills get capabilities.
    pub trust: TrustLevel,
}

impl TrustRow {
    pub(crate) fn from_entry(entry: &CatalogEntry) -> Self {
        TrustRow {
            name: entry.id.clone(),
            path: entry.skill.origin.file.to_string(),
            scope: entry.skill.origin.scope,
            trust: entry.trust,
        }
    }
}

/// One skill in the output of `rep read --as … --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ActivationJson {
    /// The name by which the skill can be requested.
    pub name: String,
    /// The digest of the file.
    pub digest: String,
    /// The trust in the skill. Only trusted skills get capabilities.
    pub trust: TrustLevel,
    /// The role of the message, for the form `message`.
    pub role: Option<SkillMessageRole>,
    /// The text, with arguments substituted and cut to the budget.
    pub text: String,
    /// True if the text was cut.
    pub cut: bool,
    /// Findings of the activation.
    pub diagnostics: Vec<DiagnosticJson>,
}

/// The output of `rep sync --print --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ToPromptJson {
    /// The text for the prompt.
    pub text: String,
    /// Number of skills with their full description.
    pub full: usize,
    /// Number of skills with a shortened description.
    pub shortened: usize,
    /// Number of skills with only their name.
    pub names_only: usize,
    /// Number of skills that are only counted.
    pub counted: usize,
}

/// The output of `rep sync --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SyncJson {
    /// The path of the file.
    pub path: String,
    /// The outcome for the file.
    pub outcome: SyncOutcome,
    /// Number of skills in the list.
    pub skills: usize,
}

/// The outcome of `rep sync` for the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SyncOutcome {
    /// The file was created.
    Created,
    /// The file was updated.
    Updated,
    /// The file was up to date.
    Unchanged,
    /// The file is not up to date, and `--check` left it unchanged.
    Stale,
}

/// The output of `rep new --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NewSkillJson {
    /// The normalised name.
    pub name: String,
    /// The file that was created.
    pub path: String,
}

/// The output of `rep show --deps --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DepsJson {
    /// The skills in topological order, each after its dependencies.
    pub order: Vec<String>,
    /// All dependencies of those skills.
    pub edges: Vec<DepsEdgeJson>,
    /// Dependency cycles, as lists of names.
    pub cycles: Vec<Vec<String>>,
}

/// A dependency between two skills.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DepsEdgeJson {
    /// The skill that has the dependency.
    pub from: String,
    /// The skill that it depends on.
    pub to: String,
    /// The required version.
    pub requirement: Option<String>,
    /// The state of the dependency.
    pub state: DepsEdgeState,
}

/// The state of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DepsEdgeState {
    /// The required skill exists.
    Met,
    /// The required skill does not exist.
    Missing,
    /// The required skill exists, but in a version that does not match.
    OtherVersion,
}

/// The output of `rep eval --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EvalJson {
    /// The files that queries were read from.
    pub files: Vec<String>,
    /// Files that were found but hold no labelled queries.
    pub not_labelled: Vec<String>,
    /// Number of skills that could have been picked.
    pub skills: usize,
    /// Queries that could not be read or counted.
    pub problems: Vec<LabelProblem>,
    /// Number of queries that were not counted because they name an unknown skill.
    pub unknown_skill: usize,
    /// The metrics; in a comparison, those of the second configuration.
    pub report: EvalReport,
    /// Metrics below the minimum given with `--min`.
    pub short: Vec<MissedMinimumJson>,
    /// The comparison of two configurations.
    pub comparison: Option<ComparisonJson>,
}

/// A metric below its required minimum.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MissedMinimumJson {
    /// The metric, or `queries`.
    pub metric: String,
    /// The measured value; null if no query measures it.
    pub value: Option<f64>,
    /// The required minimum.
    pub min: f64,
}

/// The comparison of two configurations.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ComparisonJson {
    /// The first configuration, as typed.
    pub before: String,
    /// The second configuration, as typed.
    pub after: String,
    /// The changes from the first to the second.
    pub changes: EvalComparison,
}

/// The output of `rep config --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConfigJson {
    /// All keys, in the order of the documentation.
    pub settings: Vec<SettingJson>,
}

/// One value of the configuration.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SettingJson {
    /// The key.
    pub key: String,
    /// The value; null if the key is not set and has no default.
    pub value: serde_json::Value,
    /// The origin of the value.
    pub origin: repertoire::config::ConfigOrigin,
    /// True if the value is in force; false for a setting of the project that starts programs and
    /// that the user has not agreed to.
    pub in_force: bool,
}

/// The output of `rep doctor --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DoctorJson {
    /// The profile in force.
    pub profile: String,
    /// The roots, in search order.
    pub roots: Vec<RootJson>,
    /// Counts of skills.
    pub summary: ListSummary,
    /// Skills that are not trusted, or have changed since they were.
    pub untrusted: Vec<String>,
    /// Skills that are never offered to a model.
    pub hidden: Vec<String>,
    /// The fit of the list of skills into the prompt budgets of common clients.
    pub budgets: Vec<ListingBudgetJson>,
    /// The environment of `rep run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<RunEnvironmentJson>,
    /// The journal of runs; absent if none exists yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<JournalJson>,
    /// Problems of the configuration and of skills that make commands fail or need a decision, one
    /// line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// All findings of the discovery.
    pub diagnostics: Vec<DiagnosticJson>,
}

/// The environment of `rep run`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunEnvironmentJson {
    /// A description of the sandbox for the programs of agents.
    pub sandbox: String,
    /// True if the sandbox is enforced.
    pub sandbox_is_enforced: bool,
    /// The guarantees of the sandbox, by the names used in `sandbox_requires`.
    pub sandbox_guarantees: Vec<String>,
    /// Limitations of the sandbox, and how to remove them.
    pub sandbox_lacks: Vec<String>,
    /// The model of agents that name none.
    pub model: String,
    /// Model services that are configured.
    pub services: Vec<String>,
    /// External agent CLIs on PATH.
    pub agent_clis: Vec<String>,
}

/// The journal of runs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JournalJson {
    /// `sqlite` or `postgres`.
    pub store: String,
    /// The file; null for a database, whose address may hold a password.
    pub place: Option<String>,
    /// The reason why the journal cannot be used, if it cannot.
    pub problem: Option<String>,
    /// Number of runs that wait for a person.
    pub waiting: usize,
    /// Number of running runs: a worker has them, or the process that began them is still there, or
    /// they are workflows that can go on.
    pub running: usize,
    /// Runs with damaged entries, among them events and steps. `rep runs replay --verify` names what
    /// is damaged, and `rep runs rm --force` removes such a run.
    pub damaged: Vec<repertoire_journal::DamagedRow>,
}

/// The output of `rep agents --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AgentsJson {
    /// The agents, sorted by name.
    pub agents: Vec<AgentJson>,
}

/// One agent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentJson {
    /// The name by which the agent can be requested.
    pub name: String,
    /// The agent's purpose.
    pub description: String,
    /// The agent's model; null for the configured one.
    pub model: Option<String>,
    /// The tools that the agent names, with patterns; null for all tools.
    pub tools: Option<Vec<String>>,
    /// Tools that the agent never gets.
    pub disallowed_tools: Vec<String>,
    /// Skills that are always loaded.
    pub skills: Vec<String>,
    /// Number of tokens for thinking; null for none.
    pub thinking_tokens: Option<u32>,
    /// Maximum number of turns; null for the configured limit.
    pub max_iterations: Option<u32>,
    /// The agent's capabilities, for `rep run --skill --capability`.
    pub capabilities: Vec<String>,
    /// The trust in the agent's file.
    pub trust: TrustLevel,
    /// The scope of the agent's root; null for the built-in agent, which has no file.
    pub scope: Option<Scope>,
    /// The path of the agent's file; null for the built-in agent.
    pub path: Option<String>,
    /// Tools that the agent names but that don't exist; filled in only if one agent is requested.
    pub unknown_tools: Vec<String>,
    /// The reason why the agent cannot run, if it cannot.
    pub problem: Option<String>,
}

/// The output of `rep agents --tools --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ToolListJson {
    /// The agent whose tools these are, if one was named.
    pub agent: Option<String>,
    /// The tools.
    pub tools: Vec<ToolRowJson>,
}

/// One tool.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ToolRowJson {
    /// The name.
    pub name: String,
    /// The access that the tool needs: none, reads, writes, executes, network. It may depend on the
    /// call.
    pub access: String,
    /// A one-sentence description.
    pub about: String,
    /// True if the tool is offered.
    pub available: bool,
    /// The reason why the tool is not offered, if it is not.
    pub why_not: Option<String>,
}

/// The output of `rep runs --kind conversation --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConversationsJson {
    /// The conversations, the newest first.
    pub conversations: Vec<ConversationJson>,
    /// Conversations that cannot be read.
    pub broken: Vec<BrokenConversationJson>,
}

/// One conversation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConversationJson {
    /// The id.
    pub id: String,
    /// The agent that the conversation was started with.
    pub agent: String,
    /// The start of the first prompt.
    pub first: String,
    /// The project that the conversation was started in; null if unknown.
    pub folder: Option<String>,
    /// Number of the user's turns.
    pub turns: u32,
    /// Time of the start, in milliseconds since 1970.
    pub begun_ms: u64,
    /// Time of the last write, in milliseconds since 1970.
    pub updated_ms: u64,
    /// The cost in US dollars, as far as prices are known.
    pub cost_usd: f64,
    /// True if some prices are unknown.
    pub cost_is_partial: bool,
    /// True if a run is in progress, or was when its process ended.
    pub at_work: bool,
}

impl ConversationJson {
    pub(crate) fn from_head(head: &repertoire::conversation::ConversationMetadata) -> Self {
        ConversationJson {
            id: head.id.clone(),
            agent: head.agent.clone(),
            first: head.first.clone(),
            folder: Some(head.folder.clone()).filter(|folder| !folder.is_empty()),
            turns: head.turns,
            begun_ms: head.begun_ms,
            updated_ms: head.updated_ms,
            cost_usd: head.cost_usd,
            cost_is_partial: head.cost_is_partial,
            at_work: head.at_work,
        }
    }
}

/// A conversation that cannot be read.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BrokenConversationJson {
    /// The id.
    pub id: String,
    /// The reason why it cannot be read.
    pub reason: String,
}

/// Returns all published schemas with their file names.
pub fn all_schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("list.json", schema_for!(ListJson)),
        ("show.json", schema_for!(SkillJson)),
        ("lint.json", schema_for!(LintJson)),
        ("eval.json", schema_for!(EvalJson)),
        ("match.json", schema_for!(MatchJson)),
        ("why.json", schema_for!(ExplanationJson)),
        ("read.json", schema_for!(Vec<ReadJson>)),
        ("activation.json", schema_for!(Vec<ActivationJson>)),
        ("to-prompt.json", schema_for!(ToPromptJson)),
        ("sync.json", schema_for!(SyncJson)),
        ("new.json", schema_for!(NewSkillJson)),
        ("deps.json", schema_for!(DepsJson)),
        ("trust.json", schema_for!(TrustJson)),
        ("config.json", schema_for!(ConfigJson)),
        ("doctor.json", schema_for!(DoctorJson)),
        ("event.json", schema_for!(repertoire_agent::AgentEvent)),
        ("exec.json", schema_for!(repertoire_agent::executor::SkillResult)),
        ("agents.json", schema_for!(AgentsJson)),
        ("tools.json", schema_for!(ToolListJson)),
        ("conversations.json", schema_for!(ConversationsJson)),
        ("github-detect.json", schema_for!(github::GithubDetectJson)),
        ("github-run.json", schema_for!(repertoire_github::run::GitHubOutcome)),
        ("plan-next.json", schema_for!(plan::PlanNextJson)),
        ("plan-status.json", schema_for!(plan::PlanStatusJson)),
        ("plan-check.json", schema_for!(plan::PlanCheckJson)),
        ("plan-prompt.json", schema_for!(plan::PlanPromptJson)),
        ("review.json", repertoire_review::report::json::record_schema()),
        ("review-list.json", schema_for!(Vec<repertoire_review::record::ReviewRecord>)),
        ("review-skills.json", schema_for!(review::ReviewSkillsJson)),
        ("review-preview.json", schema_for!(review::ReviewPreviewJson)),
        ("verify.json", schema_for!(repertoire_checks::verify::VerificationReport)),
        ("verify-read.json", schema_for!(verify::VerifyReadJson)),
        ("runs.json", schema_for!(runs::RunsListJson)),
        ("runs-show.json", schema_for!(runs::RunJson)),
        ("runs-order.json", schema_for!(repertoire_journal::Run)),
        ("runs-diff.json", schema_for!(runs::RunDiffJson)),
        ("runs-merge.json", schema_for!(runs::DeliveredJson)),
        ("runs-prune.json", schema_for!(runs::PruneJson)),
        ("runs-rm.json", schema_for!(runs::RunsRemovedJson)),
        ("run-event.json", schema_for!(repertoire_journal::Event)),
        ("replay.json", schema_for!(runs::ReplayJson)),
        ("replay-verify.json", schema_for!(runs::VerifiedRunsJson)),
        ("memory.json", schema_for!(improve::MemoryJson)),
        ("memory-show.json", schema_for!(improve::FailureJson)),
        ("memory-export.json", schema_for!(improve::MemoryFile)),
        ("memory-import.json", schema_for!(improve::MemoryImportResult)),
        ("memory-forget.json", schema_for!(improve::MemoryForgetJson)),
        ("dlq.json", schema_for!(improve::DeadLettersJson)),
        ("dlq-show.json", schema_for!(repertoire_journal::DeadLetter)),
        ("dlq-retry.json", schema_for!(improve::LetterRetryJson)),
        ("serve.json", schema_for!(serve::ServeJson)),
        ("setup.json", schema_for!(serve::SetupListJson)),
        ("setup-done.json", schema_for!(serve::SetupDoneJson)),
        ("setup-print.json", schema_for!(serve::SetupPrintJson)),
        ("setup-check.json", schema_for!(serve::SetupCheckJson)),
        ("workflow-list.json", schema_for!(workflow::WorkflowsJson)),
        ("workflow-show.json", schema_for!(workflow::WorkflowJson)),
        ("workflow-check.json", schema_for!(workflow::WorkflowCheckJson)),
        ("workflow-gate.json", schema_for!(workflow::GateJson)),
        ("workflow-status.json", schema_for!(workflow::StatusJson)),
        ("workflow-runs.json", schema_for!(workflow::WorkflowRunsListJson)),
        ("workflow-step.json", schema_for!(repertoire_flow::StepView)),
        ("workflow.json", repertoire_flow::file::workflow_schema()),
    ]
}
