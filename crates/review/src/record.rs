//! The record of a review: the files, findings, left-out findings with reasons, calls and cost. All outputs are
//! rendered from it.

use std::collections::BTreeMap;

use crate::extract::{ReviewKind, ReviewSeverity};
use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{FileStatus, LineRange, SkippedFile};
use super::finding::{FindingFix, Phase};

/// The version of the record format.
pub const VERSION: u32 = 1;

/// The agent name of findings that were found by a pattern instead of an agent.
pub const PATTERNS: &str = "patterns";

/// The record of a review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewRecord {
    /// The version of the record format.
    pub version: u32,
    /// The id of the review.
    pub id: String,
    /// The kind of files that were reviewed.
    pub subject: ReviewSubject,
    /// The depth of the review.
    pub depth: ReviewDepth,
    /// The commits and files that were reviewed.
    pub scope: ScopeRecord,
    /// The start time, in milliseconds since 1970.
    pub started_ms: u64,
    /// The duration, in milliseconds.
    pub duration_ms: u64,
    /// The reviewed files.
    pub files: Vec<FileRecord>,
    /// Files that were not reviewed.
    #[serde(default)]
    pub skipped: Vec<SkippedFile>,
    /// Files that were left out because an earlier review has seen the same change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchanged: Vec<FileRecord>,
    /// The lowest severity that is reported.
    #[serde(default = "everything")]
    pub min_severity: ReviewSeverity,
    /// The categories that were looked for, in the order of the line-up.
    pub categories: Vec<CategoryRecord>,
    /// Skills that took part.
    #[serde(default)]
    pub skills: Vec<SkillRecord>,
    /// Requested skills that could not be used.
    #[serde(default)]
    pub unresolved_skills: Vec<UnresolvedSkill>,
    /// Warnings for the reader.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The reported findings, sorted by severity, worst first.
    pub findings: Vec<ReportedFinding>,
    /// Findings of earlier reviews that are still open. They are not reported again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub still_open: Vec<ReportedFinding>,
    /// Insights from findings of two categories together.
    #[serde(default)]
    pub insights: Vec<ReviewInsight>,
    /// Recommended tests.
    #[serde(default)]
    pub test_recommendations: Vec<TestRecommendation>,
    /// Findings that are not reported, with the reasons.
    #[serde(default)]
    pub left_out: Vec<LeftOutFinding>,
    /// Claims of agents that a pattern matches, where it does not.
    #[serde(default)]
    pub false_claims: Vec<FalseClaim>,
    /// The calls of agents and validators.
    pub calls: Vec<ReviewCall>,
    /// The planned number of calls in each phase, in order.
    pub planned: Vec<PlannedPhase>,
}

/// The default of `min_severity`: the lowest severity.
fn everything() -> ReviewSeverity {
    ReviewSeverity::Suggestion
}

/// The kind of files that a review is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReviewSubject {
    /// Source code.
    #[default]
    Code,
    /// Documentation.
    Docs,
}

/// The depth of a review.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReviewDepth {
    /// Patterns only, without a model.
    Patterns,
    /// A few agents.
    #[default]
    Quick,
    /// All agents, including those of the gaps phase.
    Deep,
}

/// The commits and files that were reviewed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScopeRecord {
    /// A description: `uncommitted changes`, `main...HEAD`.
    pub words: String,
    /// The commit that the change is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The commit under review; absent if the change is not committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The branch that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// A reviewed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileRecord {
    /// The path of the file.
    #[schemars(with = "String")]
    pub path: Utf8PathBuf,
    /// The path before the change, if the file was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub old_path: Option<Utf8PathBuf>,
    /// The kind of change.
    pub status: FileStatus,
    /// The number of added lines.
    pub added: usize,
    /// The number of removed lines.
    pub removed: usize,
    /// A digest of the change, by which a later review recognises it.
    pub digest: String,
}

/// A category of findings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryRecord {
    /// The key: `test-coverage`.
    pub key: String,
    /// The display name: `Test Coverage`.
    pub title: String,
}

/// A skill that took part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillRecord {
    /// The name of the skill.
    pub name: String,
    /// The source, as it was requested.
    pub source: String,
    /// The role of the skill in a review.
    #[serde(rename = "type")]
    pub kind: ReviewKind,
    /// True if matches of its patterns count as validated.
    pub trusted: bool,
}

/// A requested skill that could not be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnresolvedSkill {
    /// The source, as it was requested.
    pub source: String,
    /// The reason why it could not be used.
    pub reason: String,
    /// The places that were searched.
    #[serde(default)]
    pub searched: Vec<String>,
}

/// A reported finding, merged from one or more findings about the same lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedFinding {
    /// The id within the report: `R1`.
    pub id: String,
    /// The fingerprint, which stays the same when lines move.
    pub fingerprint: String,
    /// The fingerprints of its lines, by which a later finding about the same lines is recognised.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub line_prints: Vec<String>,
    /// A short title.
    pub title: String,
    /// The path of the file.
    #[schemars(with = "String")]
    pub file: Utf8PathBuf,
    /// The cited lines.
    pub lines: LineRange,
    /// The categories. The first one is that of the leading finding.
    pub categories: Vec<String>,
    /// The severity after validation.
    pub severity: ReviewSeverity,
    /// The description of the problem.
    pub description: String,
    /// The input or event that triggers the problem, and the harm that it does.
    pub failure_scenario: String,
    /// The highest confidence of the agents, from 0 to 1.
    pub confidence: f64,
    /// A suggested fix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<FindingFix>,
    /// The id of the pattern that matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Additional fields of the agent's category, by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
    /// Findings of other categories about the same lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<RelatedFinding>,
    /// The names of the agents that found it.
    pub agents: Vec<String>,
    /// The result of its validation.
    pub validation: FindingValidation,
    /// The ids of the findings that were merged.
    pub members: Vec<String>,
    /// The cited lines with some context.
    pub excerpt: Vec<ExcerptLine>,
}

impl ReportedFinding {
    /// Returns `2 agents` or `3+ agents` if more than one agent found it.
    pub fn agents_badge(&self) -> Option<&'static str> {
        let agents = self.agents.iter().filter(|agent| *agent != PATTERNS).count();
        match agents {
            0 | 1 => None,
            2 => Some("2 agents"),
            _ => Some("3+ agents"),
        }
    }

    /// The rule id for tools such as code scanning: the category, and the pattern if there is one.
    pub fn rule_id(&self) -> String {
        rule_id(self.categories.first().map_or("review", String::as_str), self.pattern.as_deref())
    }
}

/// Builds a rule id: `category`, or `category/pattern`.
pub fn rule_id(category: &str, pattern: Option<&str>) -> String {
    match pattern {
        Some(pattern) => format!("{category}/{pattern}"),
        None => category.to_owned(),
    }
}

/// A finding of another category about the same lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RelatedFinding {
    /// A short title.
    pub title: String,
    /// The key of the category.
    pub category: String,
    /// The severity after validation.
    pub severity: ReviewSeverity,
    /// The description of the problem.
    pub description: String,
}

/// A line of the excerpt around a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExcerptLine {
    /// The line number, from 1.
    pub number: u32,
    /// The text of the line, truncated if it is very long.
    pub text: String,
    /// True if the finding cites the line.
    pub cited: bool,
    /// True if the change added the line.
    pub added: bool,
}

/// The result of validating a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum FindingValidation {
    /// A pattern matches, so no validator was asked.
    Pattern,
    /// A validator confirmed the finding.
    Valid {
        /// The validator's reason.
        reason: String,
    },
    /// A validator confirmed the finding with a lower severity.
    Downgraded {
        /// The severity before.
        from: ReviewSeverity,
        /// The validator's reason.
        reason: String,
    },
    /// Findings of this severity are not validated at this depth.
    Accepted,
    /// A validator should have checked the finding, but there is no verdict.
    Unverified {
        /// The reason why there is no verdict.
        reason: String,
    },
}

/// An insight from findings of two categories together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewInsight {
    /// The id within the report: `I1`.
    pub id: String,
    /// A short title.
    pub title: String,
    /// The keys of the two categories.
    pub categories: [String; 2],
    /// The explanation of how the findings act together.
    pub insight: String,
    /// The severity after validation.
    pub severity: ReviewSeverity,
    /// The file in which it shows most.
    #[schemars(with = "String")]
    pub file: Utf8PathBuf,
    /// The line number in the file.
    pub line: u32,
    /// The ids of the reported findings that it is based on.
    pub related: Vec<String>,
    /// The result of its validation.
    pub validation: FindingValidation,
}

/// A recommended test that would have caught a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestRecommendation {
    /// A description of the test.
    pub test: String,
    /// The id of the reported finding that it would have caught.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catches: Option<String>,
    /// The file in which the test belongs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub file: Option<Utf8PathBuf>,
}

/// A finding that is not reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOutFinding {
    /// A short title; may be empty if the answer was malformed.
    pub title: String,
    /// The path of the file, as the agent wrote it.
    pub file: String,
    /// The lines, as the agent cited them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LineRange>,
    /// The severity, as the agent rated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<ReviewSeverity>,
    /// The name of the agent.
    pub agent: String,
    /// The phase in which it was found.
    pub phase: Phase,
    /// The fingerprint, if it was computed before the finding was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The rule id, if it was known before the finding was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The reason, as a code.
    pub why: LeftOutReason,
    /// The reason, as text.
    pub reason: String,
}

/// A reason for leaving out a finding.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LeftOutReason {
    /// The answer does not match the schema.
    Malformed,
    /// The file is not part of the change.
    NotInTheChange,
    /// The file has no such lines.
    NoSuchLines,
    /// The lines are not part of the change.
    OutsideTheDiff,
    /// The failure scenario is missing.
    NoFailureScenario,
    /// The same agent has reported the same before.
    Repeated,
    /// The finding is too close to an earlier one, which the gaps phase excludes.
    SkipZone,
    /// The severity is too low for the phase.
    TooMild,
    /// The agent exceeded its maximum number of findings.
    TooMany,
    /// A validator rejected it.
    Invalid,
    /// An insight refers to findings that do not exist or were rejected, or that are not of both categories.
    Unfounded,
    /// A false-positive rule applies to it.
    FalsePositiveRule,
    /// A comment or the ignore file suppresses it.
    Suppressed,
    /// An earlier review has reported it.
    Known,
    /// The severity is below the requested minimum.
    BelowMinimum,
}

/// A false claim of an agent that a pattern matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FalseClaim {
    /// The id of the finding.
    pub finding: String,
    /// The name of the agent.
    pub agent: String,
    /// The id of the pattern.
    pub pattern: String,
    /// The reason why the claim is false.
    pub reason: String,
}

/// The planned number of calls in a phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedPhase {
    /// The phase.
    pub phase: Phase,
    /// The number of calls; 0 for validation, whose calls depend on the findings.
    pub calls: u32,
}

/// A call of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewCall {
    /// The phase.
    pub phase: Phase,
    /// The name of the agent, pair of categories or batch.
    pub agent: String,
    /// The tier of the model.
    pub tier: super::lineup::ModelTier,
    /// The model, if one was configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The outcome of the call.
    pub outcome: CallOutcome,
    /// The reason if the call did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The number of findings, insights or verdicts in the answer.
    pub answered: u32,
    /// The number of them that were accepted.
    pub admitted: u32,
    /// The duration, in milliseconds.
    pub duration_ms: u64,
    /// All tokens but the output tokens, including cached ones.
    pub input_tokens: u64,
    /// The output tokens.
    pub output_tokens: u64,
    /// The cost in US dollars, if the price of the model is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CallOutcome {
    /// The agent answered.
    Completed,
    /// The agent did not answer, or the answer does not match the schema.
    Failed,
    /// There was nothing to ask.
    Skipped,
    /// The call was not made because the allowance is used up or the review was interrupted.
    Unasked,
}

impl CallOutcome {
    /// Returns true if the review is incomplete because of this outcome.
    pub fn is_missing(self) -> bool {
        matches!(self, CallOutcome::Failed | CallOutcome::Unasked)
    }

    /// Returns true if an agent was called.
    pub fn is_made(self) -> bool {
        matches!(self, CallOutcome::Completed | CallOutcome::Failed)
    }
}

impl ReviewRecord {
    /// Returns true if there is nothing to report.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.insights.is_empty()
    }

    /// The highest severity of the reported findings and insights.
    pub fn worst_severity(&self) -> Option<ReviewSeverity> {
        let findings = self.findings.iter().map(|finding| finding.severity);
        findings.chain(self.insights.iter().map(|insight| insight.severity)).max()
    }

    /// The calls without a usable answer.
    pub fn failed_calls(&self) -> impl Iterator<Item = &ReviewCall> {
        self.calls.iter().filter(|call| call.outcome.is_missing())
    }

    /// The number of calls that were made.
    pub fn calls_made(&self) -> usize {
        self.calls.iter().filter(|call| call.outcome.is_made()).count()
    }

    /// The known cost in US dollars, and whether it is complete.
    pub fn cost_usd(&self) -> (f64, bool) {
        let made = self.calls.iter().filter(|call| call.input_tokens + call.output_tokens > 0);
        let (mut sum, mut whole) = (0.0, true);
        for call in made {
            sum += call.cost_usd.unwrap_or_default();
            whole &= call.cost_usd.is_some();
        }
        (sum, whole)
    }
}
