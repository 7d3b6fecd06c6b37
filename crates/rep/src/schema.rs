//! The shapes of `--json` output. They are published as JSON Schemas under `docs/schemas/` and only ever
//! gain fields.

use camino::Utf8Path;
use repertoire_select::eval::{Comparison, LabelProblem, Report};
use repertoire_select::selection::{Lack, NearMiss, Pick, Reason, Selection, Unresolved};
use repertoire_select::selector::{Explanation, Problem};
use repertoire_select::{Stage, Task};
use repertoire_skill::catalog::{Broken, Entry, RootReport};
use repertoire_skill::discover::RootState;
use repertoire_skill::lint::{FileReport, Summary};
use repertoire_skill::profile::Holds;
use repertoire_skill::render::json::SkillJson;
use repertoire_skill::render::message::Role;
use repertoire_skill::skill::{Dialect, Plugin, Scope};
use repertoire_skill::trust::Trust;
use repertoire_text::json::DiagnosticJson;
use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;

pub mod plan;
pub mod review;
pub mod runs;
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

/// One skill of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SkillRow {
    /// The name to ask for.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// The file.
    pub path: String,
    /// Where its root belongs.
    pub scope: Scope,
    /// The family of the file.
    pub dialect: Dialect,
    /// The digest of the file.
    pub digest: String,
    /// The file of the skill that stands before it, if any.
    pub shadowed_by: Option<String>,
    /// What it is for.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it may be given capabilities.
    pub trust: Trust,
    /// The plugin that it came with.
    pub plugin: Option<Plugin>,
}

impl SkillRow {
    pub(crate) fn of(entry: &Entry, shadowed_by: Option<&Utf8Path>) -> Self {
        let skill = &entry.skill;
        SkillRow {
            name: entry.id.clone(),
            description: skill.description.clone(),
            path: skill.origin.file.to_string(),
            scope: skill.origin.scope,
            dialect: skill.dialect,
            digest: skill.digest().to_string(),
            shadowed_by: shadowed_by.map(Utf8Path::to_string),
            kind: skill.kind.as_str().to_owned(),
            trust: entry.trust,
            plugin: skill.origin.plugin.clone(),
        }
    }
}

/// A file that could not be loaded.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BrokenJson {
    /// The file.
    pub path: String,
    /// Where its root belongs.
    pub scope: Scope,
    /// Why.
    pub reason: DiagnosticJson,
}

impl BrokenJson {
    pub(crate) fn of(broken: &Broken) -> Self {
        BrokenJson {
            path: broken.path.to_string(),
            scope: broken.scope,
            reason: DiagnosticJson::from(&broken.reason),
        }
    }
}

/// A root.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RootJson {
    /// The directory.
    pub path: String,
    /// Where it belongs.
    pub scope: Scope,
    /// What it holds.
    pub holds: Holds,
    /// What became of it.
    pub state: RootState,
    /// Files that may be skills.
    pub found: usize,
}

impl RootJson {
    pub(crate) fn of(report: &RootReport) -> Self {
        RootJson {
            path: report.root.dir.to_string(),
            scope: report.root.scope,
            holds: report.root.holds,
            state: report.state,
            found: report.found,
        }
    }
}

/// Counts of a list.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ListSummary {
    /// Skills in use.
    pub skills: usize,
    /// Agents in use.
    pub agents: usize,
    /// Skills that lost their name.
    pub shadowed: usize,
    /// Files that could not be loaded.
    pub broken: usize,
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
    /// The whole file.
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
            content: skill.text().to_owned(),
        }
    }
}

/// `rep trust --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TrustJson {
    /// Skills in use, and those that wait for a person's word, sorted by name.
    pub skills: Vec<TrustRow>,
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

/// A client's room for the list of skills.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BudgetJson {
    /// The client.
    pub client: String,
    /// Its room, in characters.
    pub chars_max: usize,
    /// What the list of skills needs.
    pub chars_needed: usize,
    /// How many skills fit with their whole descriptions.
    pub fit: usize,
    /// How many do not.
    pub cut: usize,
}

/// `rep match --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MatchJson {
    /// The task's text.
    pub task: String,
    /// How the picks came about: by a hint, a trigger, a match, or `none`.
    pub strategy: String,
    /// Picked skills, the best first; what they need comes right after them.
    pub picks: Vec<Pick>,
    /// Skills that were nearly picked.
    pub near_misses: Vec<NearMiss>,
    /// Whether nothing was picked.
    pub abstained: bool,
    /// The best score that any skill reached.
    pub best: f32,
    /// The skill that reached it, if nothing was picked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
    /// What that skill lacked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lacked: Option<Lack>,
    /// Picks that are not trusted: they can be read, and get no capability.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untrusted: Vec<String>,
    /// What is asked of a score.
    pub threshold: f32,
    /// Names in hints that lead nowhere.
    pub unresolved: Vec<Unresolved>,
    /// How many skills there are.
    pub skills: usize,
    /// How long the selection took, in microseconds, without reading skills.
    pub took_us: u64,
    /// With `--explain`: every stage's word on the skills that came nearest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explained: Vec<WhyJson>,
}

impl MatchJson {
    pub(crate) fn of(task: &Task, selection: Selection, threshold: f32) -> Self {
        let best_pick = selection.picks.iter().map(|pick| pick.score).fold(0.0, f32::max);
        MatchJson {
            task: task.text.clone(),
            strategy: selection.strategy().to_owned(),
            abstained: selection.abstention.is_some(),
            best: selection.abstention.as_ref().map_or(best_pick, |abstention| abstention.best),
            lacked: selection.abstention.as_ref().and_then(|abstention| abstention.lacked.clone()),
            nearest: selection.abstention.and_then(|abstention| abstention.nearest),
            threshold,
            picks: selection.picks,
            near_misses: selection.near_misses,
            unresolved: selection.unresolved,
            untrusted: Vec::new(),
            skills: 0,
            took_us: 0,
            explained: Vec::new(),
        }
    }
}

/// `rep match --why NAME --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WhyJson {
    /// The skill.
    pub name: String,
    /// Whether it was picked.
    pub picked: bool,
    /// How likely it is to be right, 0 to 1.
    pub score: f32,
    /// What is asked of it.
    pub threshold: f32,
    /// Its place by words and meaning, from 1, if it is among the best.
    pub rank: Option<usize>,
    /// What kept it out.
    pub lacked: Option<Lack>,
    /// Telling words of the task that it does not have.
    pub missing: Vec<String>,
    /// How likely words and meaning alone make it, 0 to 1.
    pub by_text: f32,
    /// How likely its triggers alone make it, 0 to 1.
    pub by_triggers: f32,
    /// What every stage says.
    pub stages: Vec<StageJson>,
    /// Triggers that it declares and that cannot be used.
    pub problems: Vec<Problem>,
    /// The picked skill that needs it, if it is picked for that.
    pub needed_by: Option<String>,
}

/// One stage's word on a skill.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StageJson {
    /// The stage.
    pub stage: Stage,
    /// What it says, in its own unit.
    pub score: f32,
    /// Why.
    pub reasons: Vec<Reason>,
}

impl From<Explanation> for WhyJson {
    fn from(why: Explanation) -> Self {
        let stages = why.stages.into_iter().map(|one| StageJson {
            stage: one.stage,
            score: one.score,
            reasons: one.reasons,
        });
        WhyJson {
            name: why.name,
            picked: why.lacked.is_none(),
            score: why.score,
            threshold: why.threshold,
            rank: why.rank,
            lacked: why.lacked,
            missing: why.missing,
            by_text: why.by_text,
            by_triggers: why.by_triggers,
            problems: why.problems,
            needed_by: why.needed_by,
            stages: stages.collect(),
        }
    }
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
    pub(crate) fn of(head: &repertoire_drive::conversation::Head) -> Self {
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
        ("plan-next.json", schema_for!(plan::PlanNextJson)),
        ("plan-status.json", schema_for!(plan::PlanStatusJson)),
        ("plan-check.json", schema_for!(plan::PlanCheckJson)),
        ("plan-prompt.json", schema_for!(plan::PlanPromptJson)),
        ("review.json", repertoire_drive::review::report::json::schema()),
        ("review-list.json", schema_for!(Vec<repertoire_drive::review::record::Review>)),
        ("review-skills.json", schema_for!(review::ReviewSkillsJson)),
        ("review-preview.json", schema_for!(review::ReviewPreviewJson)),
        ("runs.json", schema_for!(runs::RunsJson)),
        ("runs-show.json", schema_for!(runs::RunJson)),
        ("runs-order.json", schema_for!(repertoire_journal::Run)),
        ("runs-diff.json", schema_for!(runs::RunDiffJson)),
        ("runs-merge.json", schema_for!(runs::DeliveredJson)),
        ("runs-prune.json", schema_for!(runs::PruneJson)),
        ("run-event.json", schema_for!(repertoire_journal::Event)),
        ("replay.json", schema_for!(runs::ReplayJson)),
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
