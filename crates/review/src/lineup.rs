//! Who reviews: agents, phases, kinds of models, pairs and questions, as data.
//!
//! The line-ups of the built-in pack are `review/code.yaml` and `review/docs.yaml`. Files of the same shape add agents, or
//! put another one in the place of one that has the same name: [`load`] reads a file, [`merge`] puts it on top of another
//! one, and [`check`] looks at the whole.

use repertoire_skill::pack;
use crate::extract::Severity;
use serde::{Deserialize, Serialize};

use super::finding::Phase;
use super::record::{Depth, PlannedPhase, Subject};

mod check;
pub mod limits;
mod load;
mod merge;
#[cfg(test)]
mod pack_tests;
#[cfg(test)]
mod tests;

pub use check::{Problem, check};
pub use load::{LineupError, load};
pub use merge::{Merged, Source, merge};

/// Who reviews, and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lineup {
    /// What kind of files it is for.
    pub subject: Subject,
    /// The phases by depth, in order.
    #[serde(default)]
    pub phases: Phases,
    /// What every agent is told, before its own instructions.
    #[serde(default)]
    pub instructions: String,
    /// What agents that look for gaps are told besides.
    #[serde(default)]
    pub gaps_instructions: String,
    /// The agents, in the order of the report.
    #[serde(default)]
    pub agents: Vec<Agent>,
    /// What findings of two categories mean together.
    #[serde(default)]
    pub synthesis: Synthesis,
    /// How findings are checked.
    #[serde(default)]
    pub validation: ValidationRules,
}

/// The phases by depth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phases {
    /// Of a quick review.
    #[serde(default)]
    pub quick: Vec<Phase>,
    /// Of a deep one.
    #[serde(default)]
    pub deep: Vec<Phase>,
}

/// Which kind of model does the work. The configuration says which model that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelTier {
    /// The better one.
    Strong,
    /// The cheaper one.
    Fast,
}

impl ModelTier {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            ModelTier::Strong => "strong",
            ModelTier::Fast => "fast",
        }
    }
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Its name: `security-agent`.
    pub name: String,
    /// The key of its category: `security`.
    pub category: String,
    /// The name of its category: `Security`.
    pub title: String,
    /// What it looks for.
    pub instructions: String,
    /// The model of the thorough phase; it does not take part if absent.
    #[serde(default)]
    pub thorough: Option<ModelTier>,
    /// The model of the phase that looks for gaps.
    #[serde(default)]
    pub gaps: Option<ModelTier>,
    /// The model of a quick review.
    #[serde(default)]
    pub quick: Option<ModelTier>,
    /// The model that checks its findings.
    pub validator: ModelTier,
    /// What it is given besides the change.
    #[serde(default)]
    pub receives: Vec<Receives>,
    /// What not to flag in its category.
    #[serde(default)]
    pub false_positives: Vec<String>,
    /// What its findings say besides.
    #[serde(default)]
    pub details: Vec<Detail>,
}

/// What an agent is given besides the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Receives {
    /// Tests of the files that have changed.
    RelatedTests,
    /// The whole text of the repository's rules; others are told their paths.
    Rules,
}

/// Something that the findings of an agent say besides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Detail {
    /// Its key: `attack_vector`.
    pub name: String,
    /// What belongs there.
    pub ask: String,
}

/// What findings of two categories mean together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Synthesis {
    /// The name of the agent: `synthesis-agent`.
    #[serde(default)]
    pub agent: String,
    /// The model of a quick review.
    #[serde(default)]
    pub quick: Option<ModelTier>,
    /// The model of a deep one.
    #[serde(default)]
    pub deep: Option<ModelTier>,
    /// What it does.
    #[serde(default)]
    pub instructions: String,
    /// The pairs.
    #[serde(default)]
    pub pairs: Vec<Pair>,
    /// Questions that come with a skill.
    #[serde(default)]
    pub skill_questions: Vec<SkillQuestion>,
}

/// Two categories and a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// The keys of the categories.
    pub categories: [String; 2],
    /// What is asked.
    pub question: String,
    /// In which reviews.
    pub depths: Vec<Depth>,
}

/// A question that comes with a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillQuestion {
    /// The skill.
    pub skill: String,
    /// What is asked of every pair that its category is part of.
    pub question: String,
}

/// How findings are checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidationRules {
    /// What a validator does.
    #[serde(default)]
    pub instructions: String,
    /// The model that checks insights.
    #[serde(default)]
    pub insights: Option<ModelTier>,
    /// A quick review checks findings from this severity on, and takes the others as they are.
    #[serde(default)]
    pub quick_from: Option<Severity>,
    /// What not to flag in any category.
    #[serde(default)]
    pub false_positives: Vec<String>,
}

/// The line-up of the built-in pack.
///
/// ```
/// use repertoire_review::lineup::{builtin, check};
/// use repertoire_review::record::{Depth, Subject};
///
/// let lineup = builtin(Subject::Code);
/// assert!(check(&lineup).is_empty());
/// assert_eq!(lineup.planned(Depth::Quick).iter().map(|phase| phase.calls).sum::<u32>(), 7);
/// ```
pub fn builtin(subject: Subject) -> Lineup {
    let file = match subject {
        Subject::Code => "review/code.yaml",
        Subject::Docs => "review/docs.yaml",
    };
    let bytes = pack::read(file).expect("the pack is embedded, and has both line-ups");
    let text = str::from_utf8(&bytes).expect("the line-ups of the pack are text");
    load(text, file.into()).expect("the line-ups of the pack are read by a test")
}

impl Lineup {
    /// The agent of a name.
    pub fn agent(&self, name: &str) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    /// The first agent of a category: it has the category's title, its validator and its false positives.
    pub fn of_category(&self, category: &str) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.category == category)
    }

    /// The phases of a depth, in order.
    pub fn phases_at(&self, depth: Depth) -> &[Phase] {
        match depth {
            Depth::Patterns => &[Phase::Patterns],
            Depth::Quick => &self.phases.quick,
            Depth::Deep => &self.phases.deep,
        }
    }

    /// The agents that take part in a phase, each with its model.
    pub fn agents_in(&self, phase: Phase) -> impl Iterator<Item = (&Agent, ModelTier)> {
        self.agents.iter().filter_map(move |agent| Some((agent, agent.tier(phase)?)))
    }

    /// The pairs that are asked about at a depth.
    pub fn pairs_at(&self, depth: Depth) -> impl Iterator<Item = &Pair> {
        self.synthesis.pairs.iter().filter(move |pair| pair.depths.contains(&depth))
    }

    /// How many calls the phases of a depth come to. Those of a validation depend on what is found, and are left out.
    pub fn planned(&self, depth: Depth) -> Vec<PlannedPhase> {
        let calls = |phase: Phase| match phase {
            Phase::Patterns | Phase::Validation => None,
            Phase::Synthesis => Some(self.pairs_at(depth).count()),
            Phase::Thorough | Phase::Gaps | Phase::Quick => Some(self.agents_in(phase).count()),
        };
        let planned = |&phase: &Phase| {
            let calls = u32::try_from(calls(phase)?).unwrap_or(u32::MAX);
            Some(PlannedPhase { phase, calls })
        };
        self.phases_at(depth).iter().filter_map(planned).collect()
    }
}

impl Synthesis {
    /// The model at a depth.
    pub fn tier(&self, depth: Depth) -> Option<ModelTier> {
        match depth {
            Depth::Patterns => None,
            Depth::Quick => self.quick,
            Depth::Deep => self.deep,
        }
    }
}

impl Pair {
    /// Whether it is about the same two categories, in any order.
    pub fn is_about(&self, other: &[String; 2]) -> bool {
        let [a, b] = &self.categories;
        let [c, d] = other;
        (a, b) == (c, d) || (a, b) == (d, c)
    }
}

impl Agent {
    /// The model for a phase; `None` if it takes no part in it.
    pub fn tier(&self, phase: Phase) -> Option<ModelTier> {
        match phase {
            Phase::Thorough => self.thorough,
            Phase::Gaps => self.gaps,
            Phase::Quick => self.quick,
            Phase::Patterns | Phase::Synthesis | Phase::Validation => None,
        }
    }
}
