//! The types of `rep review … --json`. A review itself is a
//! `repertoire_review::record::Review`, the record that every report is made from.

use repertoire_review::extract::ReviewSkill;
use repertoire_review::finding::Phase;
use repertoire_review::lineup::ModelTier;
use repertoire_review::record::PlannedPhase;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The output of `rep review skills --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReviewSkillsJson {
    /// The review data of each skill, in the requested order.
    pub resolved_skills: Vec<ReviewSkill>,
}

/// The output of `rep review --dry-run --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReviewPreviewJson {
    /// Number of calls in each phase, as far as it is known in advance.
    pub planned: Vec<PlannedPhase>,
    /// The first questions of each phase, before any answers.
    pub questions: Vec<ReviewQuestionJson>,
}

/// A question to one agent.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReviewQuestionJson {
    /// The phase.
    pub phase: Phase,
    /// The agent.
    pub agent: String,
    /// The tier of the model that answers.
    pub tier: ModelTier,
    /// The system prompt.
    pub system: String,
    /// The exact task prompt.
    pub prompt: String,
    /// The JSON Schema that the answer must match.
    pub schema: Value,
}
