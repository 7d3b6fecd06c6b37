//! The shapes of `--json` output. They are published as JSON Schemas under `docs/schemas/` and only ever
//! gain fields.

use repertoire_select::eval::{Comparison, LabelProblem, Report};
pub use repertoire_select::json::{MatchJson, StageJson, WhyJson};
pub use repertoire_skill::budget::BudgetJson;
use repertoire_skill::catalog::Entry;
use repertoire_skill::lint::{FileReport, Summary};
use repertoire_skill::render::json::SkillJson;
pub use repertoire_skill::render::list::{BrokenJson, ListSummary, RootJson, SkillRow};
use repertoire_skill::render::message::Role;
use repertoire_skill::skill::Scope;
use repertoire_skill::trust::Trust;
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

/// `rep list --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListJson {
    /// Skills in use, sorted by name, then those that lost their name to another.
    pub skills: Vec<SkillRow>,
    /// Files that could not be loaded.
    pub broken: Vec<BrokenJson>,
    /// The roots, in their order.
    pub roots: Vec<RootJson>,
    /// Counts.
    pub summary: ListSummary,
}

/// `rep lint --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LintJson {
    /// One for every file looked at.
    pub files: Vec<FileJson>,
    /// Counts.
    pub summary: Summary,
}

/// What was found about one file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FileJson {
    /// The file.
    pub path: String,
    /// The skill's name, if it could be loaded.
    pub name: Option<String>,
    /// Findings in the order of the file.
    pub diagnostics: Vec<DiagnosticJson>,
}

impl FileJson {
    pub(crate) fn of(file: &FileReport) -> Self {
        FileJson {
            path: file.path.to_string(),
            name: file.name.clone(),
            diagnostics: file.diagnostics.iter().map(DiagnosticJson::from).collect(),
        }
    }
}

/// One skill of `rep read --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReadJson {
    /// The name it was asked for by.
    pub name: String,
    /// The folder that its relative paths start at.
    pub base_dir: String,
    /// The digest of the file.
    pub digest: String,
    /// Whether it may be given capabilities.
    pub trust: Trust,
    /// The whole file, without invisible characters.
    pub content: String,
}

impl ReadJson {
    pub(crate) fn of(entry: &Entry) -> Self {
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

/// `rep trust --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TrustJson {
    /// Skills in use, and those that wait for a person's word, sorted by name.
    pub skills: Vec<TrustRow>,
    /// The settings of this project that start programs; null if there are none.
    pub project: Option<TrustProjectJson>,
}

/// The settings of a project that start programs, and whether the user has agreed to them.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TrustProjectJson {
    /// The folder that the consent is for.
    pub folder: String,
    /// The files that declare the settings.
    pub files: Vec<String>,
    /// The digest of the settings, for `--consent`.
    pub digest: String,
    /// Whether the settings come into force.
    pub trust: Trust,
    /// The settings by their key, each value as JSON.
    pub settings: std::collections::BTreeMap<String, serde_json::Value>,
}

/// Whether one skill is trusted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TrustRow {
    /// The name to ask for.
    pub name: String,
    /// The file.
    pub path: String,
    /// Where its root belongs.
    pub scope: Scope,
    /// Whether it may be given capabilities.
    pub trust: Trust,
}

impl TrustRow {
    pub(crate) fn of(entry: &Entry) -> Self {
        TrustRow {
            name: entry.id.clone(),
            path: entry.skill.origin.file.to_string(),
            scope: entry.skill.origin.scope,
            trust: entry.trust,
        }
    }
}

/// One skill of `rep read --as … --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ActivationJson {
    /// The name it was asked for by.
    pub name: String,
    /// The digest of the file.
    pub digest: String,
    /// Whether it may be given capabilities.
    pub trust: Trust,
    /// Who the text speaks as, for messages.
    pub role: Option<Role>,
    /// The text, with arguments filled in and cut to the budget.
    pub text: String,
    /// Whether something was cut.
    pub cut: bool,
    /// What was found on the way.
    pub diagnostics: Vec<DiagnosticJson>,
}

/// `rep to-prompt --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PromptJson {
    /// The text for the prompt.
    pub text: String,
    /// Skills with their whole description.
    pub full: usize,
    /// Skills with a part of it.
    pub shortened: usize,
    /// Skills with their name only.
    pub names_only: usize,
    /// Skills that are only counted.
    pub counted: usize,
}

/// `rep sync --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SyncJson {
    /// The file.
    pub path: String,
    /// What became of it.
    pub outcome: SyncOutcome,
    /// How many skills it lists.
    pub skills: usize,
}

/// What became of a file that lists skills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SyncOutcome {
    /// It was not there before.
    Created,
    /// It was changed.
    Updated,
    /// It was right already.
    Unchanged,
    /// It is not right, and `--check` left it so.
    Stale,
}

/// `rep new --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NewJson {
    /// The name as it is written.
    pub name: String,
    /// The file that was made.
    pub path: String,
}

/// `rep deps --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DepsJson {
    /// Skills, each after what it needs.
    pub order: Vec<String>,
    /// Every dependency of those skills.
    pub edges: Vec<EdgeJson>,
    /// Circles, as the names along them.
    pub cycles: Vec<Vec<String>>,
}

/// One dependency.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EdgeJson {
    /// The skill that needs.
    pub from: String,
    /// The skill that is needed.
    pub to: String,
    /// The version that is asked for.
    pub requirement: Option<String>,
    /// How it is met.
    pub state: EdgeState,
}

/// How a dependency is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EdgeState {
    /// It is there.
    Met,
    /// It is not there.
    Missing,
    /// It is there in a version that will not do.
    OtherVersion,
}

/// `rep eval --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EvalJson {
    /// The files that queries were read from.
    pub files: Vec<String>,
    /// Files that were found and hold no labelled queries.
    pub not_labelled: Vec<String>,
    /// How many skills could have been picked.
    pub skills: usize,
    /// What could not be read or counted.
    pub problems: Vec<LabelProblem>,
    /// How many queries were not counted because they name a skill that is not there.
    pub unknown_skill: usize,
    /// The figures; of the second configuration where two are compared.
    pub report: Report,
    /// What was asked for with `--min` and not reached.
    pub short: Vec<ShortJson>,
    /// Two configurations side by side.
    pub comparison: Option<ComparisonJson>,
}

/// A figure that is lower than was asked.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ShortJson {
    /// The metric, or `queries`.
    pub metric: String,
    /// Its value; null where no query measures it.
    pub value: Option<f64>,
    /// What was asked.
    pub min: f64,
}

/// Two configurations side by side.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ComparisonJson {
    /// The first configuration, as it was typed.
    pub before: String,
    /// The second, as it was typed.
    pub after: String,
    /// What changes from the first to the second.
    pub changes: Comparison,
}

/// `rep config --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConfigJson {
    /// Every key, in the order of the documentation.
    pub settings: Vec<SettingJson>,
}

/// One value of the configuration.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SettingJson {
    /// The key.
    pub key: String,
    /// The value; null where there is no default.
    pub value: serde_json::Value,
    /// Where it came from.
    pub origin: crate::config::Origin,
    /// Whether it holds: false for a setting of the project that starts programs and that the user has not agreed to.
    pub in_force: bool,
}

/// `rep doctor --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DoctorJson {
    /// The profile in force.
    pub profile: String,
    /// The roots, in their order.
    pub roots: Vec<RootJson>,
    /// Counts of skills.
    pub summary: ListSummary,
    /// Skills that are not trusted, or have changed since they were.
    pub untrusted: Vec<String>,
    /// Skills that a model is never offered.
    pub hidden: Vec<String>,
    /// How the list of skills fits the budgets of common clients.
    pub budgets: Vec<BudgetJson>,
    /// What `rep run` would work with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<RunningJson>,
    /// Where runs are recorded; absent where nobody has run anything yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<JournalJson>,
    /// Problems of the configuration and of skills that make commands fail or need a decision, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// Findings of all kinds.
    pub diagnostics: Vec<DiagnosticJson>,
}

/// What `rep run` would work with.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunningJson {
    /// What keeps programs of agents in their place.
    pub sandbox: String,
    /// Whether anything does.
    pub sandbox_is_enforced: bool,
    /// The guarantees that hold, by the names that `sandbox_requires` knows.
    pub sandbox_guarantees: Vec<String>,
    /// What it does not do, and what would help.
    pub sandbox_lacks: Vec<String>,
    /// The model of agents that ask for none.
    pub model: String,
    /// Services that are set up.
    pub services: Vec<String>,
    /// Agents of others on the path.
    pub agent_clis: Vec<String>,
}

/// Where runs are recorded.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JournalJson {
    /// `sqlite` or `postgres`.
    pub store: String,
    /// The file; null for a database, whose address may hold a password.
    pub place: Option<String>,
    /// Why it cannot be used, if so.
    pub problem: Option<String>,
    /// Runs that wait for a person.
    pub waiting: usize,
    /// Runs that workers have.
    pub running: usize,
}

/// `rep agents --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AgentsJson {
    /// The agents, sorted by name.
    pub agents: Vec<AgentJson>,
}

/// One agent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentJson {
    /// The name to ask for.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its model; null for the configured one.
    pub model: Option<String>,
    /// The tools that it names, with patterns; null for every tool.
    pub tools: Option<Vec<String>>,
    /// Tools that it does not get in any case.
    pub disallowed_tools: Vec<String>,
    /// Skills that are loaded in any case.
    pub skills: Vec<String>,
    /// Tokens for thinking; null for none.
    pub thinking_tokens: Option<u32>,
    /// Most turns; null for the configured limit.
    pub max_iterations: Option<u32>,
    /// What it can do, for `rep exec --capability`.
    pub capabilities: Vec<String>,
    /// Whether a person has agreed to its file.
    pub trust: Trust,
    /// Where its root belongs; null for the one that has no file.
    pub scope: Option<Scope>,
    /// The file.
    pub path: Option<String>,
    /// Tools that it names and that there are not; known where one agent is asked for.
    pub unknown_tools: Vec<String>,
    /// Why it cannot run, if so.
    pub problem: Option<String>,
}

/// `rep tools --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ToolsJson {
    /// The agent whose tools these are, if one was named.
    pub agent: Option<String>,
    /// The tools.
    pub tools: Vec<ToolJson>,
}

/// One tool.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ToolJson {
    /// The name.
    pub name: String,
    /// What it touches: none, reads, writes, executes, network. It may depend on the call.
    pub access: String,
    /// What it does.
    pub about: String,
    /// Whether it is offered.
    pub available: bool,
    /// Why not, if so.
    pub why_not: Option<String>,
}

/// `rep conversations --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConversationsJson {
    /// Conversations, the newest first.
    pub conversations: Vec<ConversationJson>,
    /// Those that cannot be read.
    pub broken: Vec<BrokenConversationJson>,
}

/// One conversation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConversationJson {
    /// The id.
    pub id: String,
    /// The agent that it was begun with.
    pub agent: String,
    /// The start of the first prompt.
    pub first: String,
    /// The project that it was begun in; null if nobody knows.
    pub folder: Option<String>,
    /// How often the user spoke.
    pub turns: u32,
    /// When it was begun, in milliseconds since 1970.
    pub begun_ms: u64,
    /// When it was written last.
    pub updated_ms: u64,
    /// What it has cost, as far as prices are known.
    pub cost_usd: f64,
    /// Whether some price was not known.
    pub cost_is_partial: bool,
    /// Whether a run is at work, or was when its process ended.
    pub at_work: bool,
}

impl ConversationJson {
    pub(crate) fn of(head: &repertoire::conversation::Head) -> Self {
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
            at_work: head.at_work.is_some(),
        }
    }
}

/// A conversation that cannot be read.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BrokenConversationJson {
    /// The id.
    pub id: String,
    /// Why.
    pub reason: String,
}

/// Every published schema with its file name.
pub fn all() -> Vec<(&'static str, Schema)> {
    vec![
        ("list.json", schema_for!(ListJson)),
        ("show.json", schema_for!(SkillJson)),
        ("lint.json", schema_for!(LintJson)),
        ("eval.json", schema_for!(EvalJson)),
        ("match.json", schema_for!(MatchJson)),
        ("why.json", schema_for!(WhyJson)),
        ("read.json", schema_for!(Vec<ReadJson>)),
        ("activation.json", schema_for!(Vec<ActivationJson>)),
        ("to-prompt.json", schema_for!(PromptJson)),
        ("sync.json", schema_for!(SyncJson)),
        ("new.json", schema_for!(NewJson)),
        ("deps.json", schema_for!(DepsJson)),
        ("trust.json", schema_for!(TrustJson)),
        ("config.json", schema_for!(ConfigJson)),
        ("doctor.json", schema_for!(DoctorJson)),
        ("event.json", schema_for!(repertoire_agent::Event)),
        ("exec.json", schema_for!(repertoire_agent::executor::SkillResult)),
        ("agents.json", schema_for!(AgentsJson)),
        ("tools.json", schema_for!(ToolsJson)),
        ("conversations.json", schema_for!(ConversationsJson)),
        ("github-detect.json", schema_for!(github::DetectJson)),
        ("github-run.json", schema_for!(repertoire_github::run::Outcome)),
        ("plan-next.json", schema_for!(plan::PlanNextJson)),
        ("plan-status.json", schema_for!(plan::PlanStatusJson)),
        ("plan-check.json", schema_for!(plan::PlanCheckJson)),
        ("plan-prompt.json", schema_for!(plan::PlanPromptJson)),
        ("review.json", repertoire_review::report::json::schema()),
        ("review-list.json", schema_for!(Vec<repertoire_review::record::Review>)),
        ("review-skills.json", schema_for!(review::ReviewSkillsJson)),
        ("review-preview.json", schema_for!(review::ReviewPreviewJson)),
        ("verify.json", schema_for!(repertoire_checks::verify::Verification)),
        ("verify-read.json", schema_for!(verify::VerifyReadJson)),
        ("runs.json", schema_for!(runs::RunsJson)),
        ("runs-show.json", schema_for!(runs::RunJson)),
        ("runs-order.json", schema_for!(repertoire_journal::Run)),
        ("runs-diff.json", schema_for!(runs::RunDiffJson)),
        ("runs-merge.json", schema_for!(runs::DeliveredJson)),
        ("runs-prune.json", schema_for!(runs::PruneJson)),
        ("run-event.json", schema_for!(repertoire_journal::Event)),
        ("replay.json", schema_for!(runs::ReplayJson)),
        ("memory.json", schema_for!(improve::MemoryJson)),
        ("memory-show.json", schema_for!(improve::FailureJson)),
        ("memory-export.json", schema_for!(improve::Exchanged)),
        ("memory-import.json", schema_for!(improve::Imported)),
        ("memory-forget.json", schema_for!(improve::ForgottenJson)),
        ("dlq.json", schema_for!(improve::LettersJson)),
        ("dlq-show.json", schema_for!(repertoire_journal::DeadLetter)),
        ("dlq-retry.json", schema_for!(improve::RetriedJson)),
        ("serve.json", schema_for!(serve::ServeJson)),
        ("setup.json", schema_for!(serve::SetupListJson)),
        ("setup-done.json", schema_for!(serve::SetupDoneJson)),
        ("setup-print.json", schema_for!(serve::SetupPrintJson)),
        ("setup-check.json", schema_for!(serve::SetupCheckJson)),
        ("workflow-list.json", schema_for!(workflow::WorkflowsJson)),
        ("workflow-show.json", schema_for!(workflow::WorkflowJson)),
        ("workflow-check.json", schema_for!(workflow::CheckJson)),
        ("workflow-gate.json", schema_for!(workflow::GateJson)),
        ("workflow-status.json", schema_for!(workflow::StatusJson)),
        ("workflow-runs.json", schema_for!(workflow::RunsJson)),
        ("workflow-step.json", schema_for!(repertoire_flow::StepView)),
        ("workflow.json", repertoire_flow::file::schema()),
    ]
}
