//! A review as a value: what was looked at, what was found, what was left out and why, and what it cost. Every output is
//! made of it.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use crate::extract::{ReviewKind, Severity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{FileStatus, LineRange, Skipped};
use super::finding::{Fix, Phase};

/// The version of the record.
pub const VERSION: u32 = 1;

/// The name of whoever runs patterns, who is no agent.
pub const PATTERNS: &str = "patterns";

/// A review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Review {
    /// The version of the record.
    pub version: u32,
    /// Its name.
    pub id: String,
    /// What kind of files it is for.
    pub subject: Subject,
    /// How deep it looked.
    pub depth: Depth,
    /// What was looked at.
    pub scope: ScopeRecord,
    /// When it began, in milliseconds since 1970.
    pub started_ms: u64,
    /// How long it took.
    pub duration_ms: u64,
    /// The files.
    pub files: Vec<FileRecord>,
    /// Files that were not looked at.
    #[serde(default)]
    pub skipped: Vec<Skipped>,
    /// Files whose change an earlier review has seen as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchanged: Vec<FileRecord>,
    /// What was reported at least.
    #[serde(default = "everything")]
    pub min_severity: Severity,
    /// Categories that were looked for, in order.
    pub categories: Vec<CategoryRecord>,
    /// Skills that took part.
    #[serde(default)]
    pub skills: Vec<SkillRecord>,
    /// Skills that were asked for and did not.
    #[serde(default)]
    pub unresolved_skills: Vec<Unresolved>,
    /// What a reader should know.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// What was found, the worst first.
    pub findings: Vec<Reported>,
    /// What earlier reviews have reported and nobody has mended; it is not repeated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub still_open: Vec<Reported>,
    /// What findings mean together.
    #[serde(default)]
    pub insights: Vec<Insight>,
    /// Tests that would have caught something.
    #[serde(default)]
    pub test_recommendations: Vec<TestRecommendation>,
    /// What was found and is not reported.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// Patterns that agents claimed and that do not match.
    #[serde(default)]
    pub false_claims: Vec<FalseClaim>,
    /// Who was asked what.
    pub calls: Vec<Call>,
    /// How many calls were planned, by phase in order.
    pub planned: Vec<PlannedPhase>,
}

fn everything() -> Severity {
    Severity::Suggestion
}

/// What kind of files a review is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// Code.
    #[default]
    Code,
    /// Documentation.
    Docs,
}

/// How deep a review looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Depth {
    /// Patterns alone, without a model.
    Patterns,
    /// A few agents.
    #[default]
    Quick,
    /// All of them, and those that look for gaps.
    Deep,
}

/// What was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScopeRecord {
    /// In words: `uncommitted changes`, `main...HEAD`.
    pub words: String,
    /// The commit that it is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The commit that is looked at; absent if it is not one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The branch that is checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// A file that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileRecord {
    /// Its path.
    #[schemars(with = "String")]
    pub path: Utf8PathBuf,
    /// Its path before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub old_path: Option<Utf8PathBuf>,
    /// What happened to it.
    pub status: FileStatus,
    /// Lines that came.
    pub added: usize,
    /// Lines that went.
    pub removed: usize,
    /// Stands for its change, so that a later review knows it.
    pub digest: String,
}

/// A category that was looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryRecord {
    /// Its key: `test-coverage`.
    pub key: String,
    /// Its name: `Test Coverage`.
    pub title: String,
}

/// A skill that took part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillRecord {
    /// Its name.
    pub name: String,
    /// How it was asked for.
    pub source: String,
    /// What it is to a review.
    #[serde(rename = "type")]
    pub kind: ReviewKind,
    /// Whether its patterns are believed.
    pub trusted: bool,
}

/// A skill that was asked for and cannot take part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unresolved {
    /// How it was asked for.
    pub source: String,
    /// Why not.
    pub reason: String,
    /// Where it was looked for.
    #[serde(default)]
    pub searched: Vec<String>,
}

/// Something that is reported: one finding, or several that are about the same lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reported {
    /// Its name within the report: `R1`.
    pub id: String,
    /// Stands for it, also when lines have moved.
    pub fingerprint: String,
    /// Stand for its lines, so that another answer about them is known as the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub line_prints: Vec<String>,
    /// In a few words.
    pub title: String,
    /// Where.
    #[schemars(with = "String")]
    pub file: Utf8PathBuf,
    /// The lines.
    pub lines: LineRange,
    /// The categories, the first one that of the finding which speaks for the others.
    pub categories: Vec<String>,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub description: String,
    /// What has to happen for it to do harm, and which harm.
    pub failure_scenario: String,
    /// How sure the agents are, from 0 to 1.
    pub confidence: f64,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
    /// The pattern that matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// What agents say besides.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
    /// What others found in the same lines, in other categories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Also>,
    /// Who found it.
    pub agents: Vec<String>,
    /// Why it is believed.
    pub validation: Validation,
    /// The findings that it is made of.
    pub members: Vec<String>,
    /// The lines themselves, with a few around them.
    pub excerpt: Vec<ExcerptLine>,
}

impl Reported {
    /// `2 agents`, if it was more than one.
    pub fn badge(&self) -> Option<&'static str> {
        let agents = self.agents.iter().filter(|agent| *agent != PATTERNS).count();
        match agents {
            0 | 1 => None,
            2 => Some("2 agents"),
            _ => Some("3+ agents"),
        }
    }

    /// The name of the rule for tools that want one: the pattern, or the category.
    pub fn rule(&self) -> String {
        rule(self.categories.first().map_or("review", String::as_str), self.pattern.as_deref())
    }
}

/// The name of a rule: the category, and the pattern if there is one.
pub fn rule(category: &str, pattern: Option<&str>) -> String {
    match pattern {
        Some(pattern) => format!("{category}/{pattern}"),
        None => category.to_owned(),
    }
}

/// What somebody else found in the same lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Also {
    /// In a few words.
    pub title: String,
    /// Its category.
    pub category: String,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub description: String,
}

/// A line of the file around a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExcerptLine {
    /// Its number.
    pub number: u32,
    /// Its text.
    pub text: String,
    /// Whether the finding is about it.
    pub cited: bool,
    /// Whether the change brought it.
    pub added: bool,
}

/// Why a finding is believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Validation {
    /// Its pattern matches.
    Pattern,
    /// A validator agreed.
    Valid {
        /// Why.
        reason: String,
    },
    /// A validator agreed, and thought it less bad.
    Downgraded {
        /// What it was.
        from: Severity,
        /// Why.
        reason: String,
    },
    /// Nobody is asked about findings of its severity at this depth.
    Accepted,
    /// Somebody should have said something, and did not.
    Unverified {
        /// Why not.
        reason: String,
    },
}

/// What findings of two categories mean together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Insight {
    /// Its name: `I1`.
    pub id: String,
    /// In a few words.
    pub title: String,
    /// The categories.
    pub categories: [String; 2],
    /// What it means.
    pub insight: String,
    /// How bad it is.
    pub severity: Severity,
    /// Where it shows most.
    #[schemars(with = "String")]
    pub file: Utf8PathBuf,
    /// The line.
    pub line: u32,
    /// The findings behind it, as they are reported.
    pub related: Vec<String>,
    /// Why it is believed.
    pub validation: Validation,
}

/// A test that would have caught something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestRecommendation {
    /// What to test.
    pub test: String,
    /// The finding that it would have caught, as it is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catches: Option<String>,
    /// Where it belongs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub file: Option<Utf8PathBuf>,
}

/// Something that was found and is not reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// In a few words, as far as there are any.
    pub title: String,
    /// Where, as it was said.
    pub file: String,
    /// The lines, as they were said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LineRange>,
    /// How bad it was said to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// Who found it.
    pub agent: String,
    /// When.
    pub phase: Phase,
    /// Stands for it, if it got that far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The name of its rule for tools that want one, if it got that far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why it is left out.
    pub why: Why,
    /// The same in words.
    pub reason: String,
}

/// Why a finding is left out.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It does not have the shape that was asked for.
    Malformed,
    /// The file is not part of the change.
    NotInTheChange,
    /// The file has no such lines.
    NoSuchLines,
    /// The lines are not part of the change.
    OutsideTheDiff,
    /// It does not say what goes wrong.
    NoFailureScenario,
    /// Its agent has said the same already.
    Repeated,
    /// It is about what another agent has found.
    SkipZone,
    /// It is not bad enough for its phase.
    TooMild,
    /// Its agent found more than it may.
    TooMany,
    /// A validator did not agree.
    Invalid,
    /// What it is about does not exist, or is not of both categories.
    Unfounded,
    /// A false-positive rule is about it.
    FalsePositiveRule,
    /// Somebody has said that it is meant so.
    Suppressed,
    /// It has been reported before.
    Known,
    /// It is below the severity that was asked for.
    BelowMinimum,
}

/// A pattern that an agent claimed and that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FalseClaim {
    /// The finding.
    pub finding: String,
    /// Who claimed it.
    pub agent: String,
    /// The pattern.
    pub pattern: String,
    /// Why it does not hold.
    pub reason: String,
}

/// How many calls a phase was planned to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedPhase {
    /// The phase.
    pub phase: Phase,
    /// Calls; those of a validation are known when there is something to validate.
    pub calls: u32,
}

/// One call of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    /// The phase.
    pub phase: Phase,
    /// Who: an agent, a pair of categories, a batch.
    pub agent: String,
    /// Which kind of model.
    pub tier: super::lineup::ModelTier,
    /// The model, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What became of it.
    pub outcome: CallOutcome,
    /// Why, where it did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it answered with: findings, insights, verdicts.
    pub answered: u32,
    /// How many of them were let in.
    pub admitted: u32,
    /// How long it took.
    pub duration_ms: u64,
    /// Tokens that went in.
    pub input_tokens: u64,
    /// Tokens that came out.
    pub output_tokens: u64,
    /// What it cost in US dollars, where the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CallOutcome {
    /// It answered.
    Completed,
    /// It did not, or not in a shape that can be read.
    Failed,
    /// There was nothing to ask.
    Skipped,
    /// Nobody was asked, and somebody should have been: nothing was left to spend, or the review was interrupted.
    Unasked,
}

impl CallOutcome {
    /// Whether something is missing from the review because of it.
    pub fn is_missing(self) -> bool {
        matches!(self, CallOutcome::Failed | CallOutcome::Unasked)
    }

    /// Whether anybody was asked.
    pub fn is_made(self) -> bool {
        matches!(self, CallOutcome::Completed | CallOutcome::Failed)
    }
}

impl Review {
    /// Whether there is nothing to report.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.insights.is_empty()
    }

    /// The worst that is reported.
    pub fn worst(&self) -> Option<Severity> {
        let findings = self.findings.iter().map(|finding| finding.severity);
        findings.chain(self.insights.iter().map(|insight| insight.severity)).max()
    }

    /// Calls whose answers are missing.
    pub fn failed_calls(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| call.outcome.is_missing())
    }

    /// Calls that were made.
    pub fn calls_made(&self) -> usize {
        self.calls.iter().filter(|call| call.outcome.is_made()).count()
    }

    /// What it cost, and whether that is all of it.
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
