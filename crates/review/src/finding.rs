//! What agents find, as values: from an answer to a finding that has a place and an id.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use crate::extract::Severity;
use serde::{Deserialize, Serialize};

use super::change::LineRange;

/// Something that an agent found, and the engine let in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Its name within the review: `F1`.
    pub id: String,
    /// Who found it.
    pub agent: String,
    /// When.
    pub phase: Phase,
    /// In a few words.
    pub title: String,
    /// Where.
    pub file: Utf8PathBuf,
    /// The lines.
    pub lines: LineRange,
    /// The function or type that they are in, if the agent said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The category, by its key in the line-up.
    pub category: String,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub description: String,
    /// What has to happen for it to do harm, and which harm.
    pub failure_scenario: String,
    /// How sure the agent is, from 0 to 1.
    pub confidence: f64,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
    /// The pattern that the agent says it is an instance of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// What agents of this kind say besides: `attack_vector`, `impact`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
}

/// What to do about a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fix {
    /// A replacement at one place, as a diff of few lines.
    Diff(String),
    /// What to tell an agent that shall mend it.
    Prompt(String),
}

/// A part of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Patterns run over the change.
    Patterns,
    /// Agents look at everything.
    Thorough,
    /// A few agents look at everything.
    Quick,
    /// Agents look for what the others did not see.
    Gaps,
    /// What findings of two categories mean together.
    Synthesis,
    /// Findings are checked.
    Validation,
}

impl Phase {
    /// The word for it.
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
