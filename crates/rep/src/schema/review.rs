//! The shapes of `rep review … --json`. A review itself is the record that every report is made of,
//! `repertoire_review::record::Review`.

use repertoire_review::finding::Phase;
use repertoire_review::lineup::ModelTier;
use repertoire_review::record::PlannedPhase;
use repertoire_review::extract::ReviewSkill;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// `rep review skills --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReviewSkillsJson {
    /// What a review takes from each skill, in the order in which they were asked for.
    pub resolved_skills: Vec<ReviewSkill>,
}

/// `rep review --dry-run --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReviewPreviewJson {
    /// How many calls each phase will have, as far as that is known before.
    pub planned: Vec<PlannedPhase>,
    /// What agents would be asked before anybody has answered, phase by phase.
    pub questions: Vec<QuestionJson>,
}

/// What one agent would be asked.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QuestionJson {
    /// The phase.
    pub phase: Phase,
    /// The agent.
    pub agent: String,
    /// Which kind of model answers.
    pub tier: ModelTier,
    /// What it is told as the operator.
    pub system: String,
    /// What it is told as the task, to the byte.
    pub prompt: String,
    /// The JSON Schema that its answer is held to.
    pub schema: Value,
}
