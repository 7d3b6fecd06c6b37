//! Findings of agents, after the engine has accepted them and given them an id.

use std::collections::BTreeMap;

use crate::extract::ReviewSeverity;
use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use super::change::LineRange;

/// A problem that an agent reported and the engine accepted. It is not validated yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReviewFinding {
    /// The id within the review: `F1`.
    pub id: String,
    /// The name of the agent that reported it.
    pub agent: String,
    pub phase: Phase,
    pub title: String,
    pub file: Utf8PathBuf,
    pub lines: LineRange,
    /// The enclosing function or type, from the source or else from the agent's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The key of the category in the line-up.
    pub category: String,
    pub severity: ReviewSeverity,
    pub description: String,
    /// The input or event that triggers the problem, and the harm that it does.
    pub failure_scenario: String,
    /// The agent's confidence, from 0 to 1.
    pub confidence: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<FindingFix>,
    /// The id of the pattern that the agent claims to have seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Additional fields of the agent's category: `attack_vector`, `impact`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
}

/// A suggested fix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingFix {
    /// A replacement at one place, as a short diff.
    Diff(String),
    /// Instructions for an agent that will fix the problem.
    Prompt(String),
}

/// A phase of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Patterns are searched in the change, without a model.
    Patterns,
    /// All agents of a deep review look at the whole change.
    Thorough,
    /// A few agents look at the whole change.
    Quick,
    /// Agents look for problems that the thorough phase missed.
    Gaps,
    /// An agent looks for effects of findings from two categories together.
    Synthesis,
    /// Validators check the findings.
    Validation,
}

impl Phase {
    /// The name in files and events.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Patterns => "patterns",
            Phase::Thorough => "thorough",
            Phase::Quick => "quick",
            Phase::Gaps => "gaps",
            Phase::Synthesis => "synthesis",
            Phase::Validation => "validation",
        }
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
