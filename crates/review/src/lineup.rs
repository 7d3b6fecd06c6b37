//! The line-up of a review, as data: agents, phases, model tiers, synthesis pairs and validation rules.
//!
//! The built-in pack has two line-ups, `review/code.yaml` and `review/docs.yaml`. Files of the same shape add agents,
//! or replace an agent of the same name: [`load_lineup`] reads a file, [`merge_lineups`] lays it over another line-up, and [`check_lineup`]
//! validates the result.

use crate::extract::ReviewSeverity;
use repertoire_skill::pack;
use serde::{Deserialize, Serialize};

use super::finding::Phase;
use super::record::{PlannedPhase, ReviewDepth, ReviewSubject};

mod check;
pub mod limits;
mod load;
mod merge;
#[cfg(test)]
mod pack_tests;
#[cfg(test)]
mod tests;

pub use check::{LineupProblem, check_lineup};
pub use load::{LineupError, load_lineup};
pub use merge::{LineupSource, MergedLineup, merge_lineups};

/// The agents and rules of a review.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewLineup {
    /// The kind of files that it reviews.
    pub subject: ReviewSubject,
    #[serde(default)]
    pub phases: LineupPhases,
    /// Instructions for every agent, before its own.
    #[serde(default)]
    pub instructions: String,
    /// Additional instructions for the gaps phase.
    #[serde(default)]
    pub gaps_instructions: String,
    /// The agents. Reports list categories in this order.
    #[serde(default)]
    pub agents: Vec<ReviewAgent>,
    #[serde(default)]
    pub synthesis: SynthesisRules,
    #[serde(default)]
    pub validation: ValidationRules,
}

/// The phases of each depth, in the order in which they run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineupPhases {
    #[serde(default)]
    pub quick: Vec<Phase>,
    #[serde(default)]
    pub deep: Vec<Phase>,
}

/// A class of models. The configuration maps each tier to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelTier {
    Strong,
    Fast,
}

impl ModelTier {
    /// The name in line-up files.
    pub fn as_str(self) -> &'static str {
        match self {
            ModelTier::Strong => "strong",
            ModelTier::Fast => "fast",
        }
    }
}

/// A review agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewAgent {
    /// The name, which ends in `-agent`: `security-agent`.
    pub name: String,
    /// The key of the category: `security`.
    pub category: String,
    /// The display name of the category: `Security`.
    pub title: String,
    pub instructions: String,
    /// The model of the thorough phase. The agent takes no part in a phase without a model.
    #[serde(default)]
    pub thorough: Option<ModelTier>,
    /// The model of the gaps phase.
    #[serde(default)]
    pub gaps: Option<ModelTier>,
    #[serde(default)]
    pub quick: Option<ModelTier>,
    /// The model that validates findings of this category.
    pub validator: ModelTier,
    #[serde(default)]
    pub receives: Vec<AgentInput>,
    /// Code that must not be flagged in this category.
    #[serde(default)]
    pub false_positives: Vec<String>,
    /// Additional fields of its findings.
    #[serde(default)]
    pub details: Vec<FindingDetail>,
}

/// An input of an agent besides the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentInput {
    RelatedTests,
    /// The full text of the repository's rules. Other agents get only the paths.
    Rules,
}

/// An additional field of an agent's findings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FindingDetail {
    /// The key: `attack_vector`.
    pub name: String,
    /// The description of the field in the answer's schema.
    pub ask: String,
}

/// The synthesis phase, which asks what findings of two categories mean together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SynthesisRules {
    /// The name of the agent: `synthesis-agent`.
    #[serde(default)]
    pub agent: String,
    #[serde(default)]
    pub quick: Option<ModelTier>,
    #[serde(default)]
    pub deep: Option<ModelTier>,
    #[serde(default)]
    pub instructions: String,
    #[serde(default)]
    pub pairs: Vec<CategoryPair>,
    /// Additional questions that apply if a skill takes part.
    #[serde(default)]
    pub skill_questions: Vec<SkillQuestion>,
}

/// Two categories, and the question about their findings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CategoryPair {
    pub categories: [String; 2],
    pub question: String,
    /// The depths at which the question is asked.
    pub depths: Vec<ReviewDepth>,
}

/// A question that is added if a skill takes part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillQuestion {
    /// The name of the skill.
    pub skill: String,
    /// The question, added to every pair that contains the category of the skill's agent.
    pub question: String,
}

/// The rules of the validation phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidationRules {
    /// The instructions of validators.
    #[serde(default)]
    pub instructions: String,
    /// The model that validates insights.
    #[serde(default)]
    pub insights: Option<ModelTier>,
    /// The lowest severity that a quick review validates. Findings below it are accepted as they are.
    #[serde(default)]
    pub quick_from: Option<ReviewSeverity>,
    /// Code that must not be flagged in any category.
    #[serde(default)]
    pub false_positives: Vec<String>,
}

/// Returns the line-up of the built-in pack.
///
/// ```
/// use repertoire_review::lineup::{builtin_lineup, check_lineup};
/// use repertoire_review::record::{ReviewDepth, ReviewSubject};
///
/// let lineup = builtin_lineup(ReviewSubject::Code);
/// assert!(check_lineup(&lineup).is_empty());
/// assert_eq!(lineup.planned_phases(ReviewDepth::Quick).iter().map(|phase| phase.calls).sum::<u32>(), 7);
/// ```
pub fn builtin_lineup(subject: ReviewSubject) -> ReviewLineup {
    let file = match subject {
        ReviewSubject::Code => "review/code.yaml",
        ReviewSubject::Docs => "review/docs.yaml",
    };
    let bytes = pack::read_pack_file(file).expect("the pack is embedded, and has both line-ups");
    let text = str::from_utf8(&bytes).expect("the line-ups of the pack are text");
    load_lineup(text, file.into()).expect("the line-ups of the pack are read by a test")
}

impl ReviewLineup {
    /// Returns the agent with this name.
    pub fn find_agent(&self, name: &str) -> Option<&ReviewAgent> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    /// Returns the first agent of a category. It determines the title and the validator of the category.
    pub fn agent_of_category(&self, category: &str) -> Option<&ReviewAgent> {
        self.agents.iter().find(|agent| agent.category == category)
    }

    /// The phases of a depth, in the order in which they run.
    pub fn phases_at(&self, depth: ReviewDepth) -> &[Phase] {
        match depth {
            ReviewDepth::Patterns => &[Phase::Patterns],
            ReviewDepth::Quick => &self.phases.quick,
            ReviewDepth::Deep => &self.phases.deep,
        }
    }

    /// The agents that take part in a phase, with their model tiers.
    pub fn agents_in(&self, phase: Phase) -> impl Iterator<Item = (&ReviewAgent, ModelTier)> {
        self.agents.iter().filter_map(move |agent| Some((agent, agent.tier_in(phase)?)))
    }

    /// The synthesis pairs of a depth.
    pub fn pairs_at(&self, depth: ReviewDepth) -> impl Iterator<Item = &CategoryPair> {
        self.synthesis.pairs.iter().filter(move |pair| pair.depths.contains(&depth))
    }

    /// The number of calls in each phase. Validation is left out because its calls depend on the findings.
    pub fn planned_phases(&self, depth: ReviewDepth) -> Vec<PlannedPhase> {
        let planned = |&phase: &Phase| {
            let calls = u32::try_from(self.calls_in(phase, depth)?).unwrap_or(u32::MAX);
            Some(PlannedPhase { phase, calls })
        };
        self.phases_at(depth).iter().filter_map(planned).collect()
    }

    /// The number of calls in a phase; `None` if the phase has none, or if they depend on the findings.
    fn calls_in(&self, phase: Phase, depth: ReviewDepth) -> Option<usize> {
        match phase {
            Phase::Patterns | Phase::Validation => None,
            Phase::Synthesis => Some(self.pairs_at(depth).count()),
            Phase::Thorough | Phase::Gaps | Phase::Quick => Some(self.agents_in(phase).count()),
        }
    }
}

impl SynthesisRules {
    /// The model tier at a depth.
    pub fn tier_at(&self, depth: ReviewDepth) -> Option<ModelTier> {
        match depth {
            ReviewDepth::Patterns => None,
            ReviewDepth::Quick => self.quick,
            ReviewDepth::Deep => self.deep,
        }
    }
}

impl CategoryPair {
    /// Returns true if the pair has the same two categories, in either order.
    pub fn has_categories(&self, other: &[String; 2]) -> bool {
        let [a, b] = &self.categories;
        let [c, d] = other;
        (a, b) == (c, d) || (a, b) == (d, c)
    }
}

impl ReviewAgent {
    /// The model tier in a phase; `None` if the agent takes no part in it.
    pub fn tier_in(&self, phase: Phase) -> Option<ModelTier> {
        match phase {
            Phase::Thorough => self.thorough,
            Phase::Gaps => self.gaps,
            Phase::Quick => self.quick,
            Phase::Patterns | Phase::Synthesis | Phase::Validation => None,
        }
    }
}
