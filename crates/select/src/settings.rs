//! The settings of selection: the threshold, the number of picks, and the stages to run.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of evidence. Each stage can be switched off or run alone.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum SelectionStage {
    /// Skills that the task names, by `@name` or otherwise.
    Hints,
    /// Names of events.
    Events,
    /// Globs matched against the paths that a task touches.
    Paths,
    /// Trigger phrases in the task.
    Phrases,
    /// Regular expressions matched against the task.
    Patterns,
    /// Words that skill and task share.
    Words,
    /// Similarity of meaning.
    Meaning,
    /// The conversation, earlier uses and the agent.
    Context,
    /// Phrases and passages that speak against a skill.
    Negatives,
    /// Dependencies of picked skills.
    Needs,
}

impl SelectionStage {
    /// All stages, in the order in which they run.
    pub const ALL: [SelectionStage; 10] = [
        SelectionStage::Hints,
        SelectionStage::Events,
        SelectionStage::Paths,
        SelectionStage::Phrases,
        SelectionStage::Patterns,
        SelectionStage::Words,
        SelectionStage::Meaning,
        SelectionStage::Context,
        SelectionStage::Negatives,
        SelectionStage::Needs,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            SelectionStage::Hints => "hints",
            SelectionStage::Events => "events",
            SelectionStage::Paths => "paths",
            SelectionStage::Phrases => "phrases",
            SelectionStage::Patterns => "patterns",
            SelectionStage::Words => "words",
            SelectionStage::Meaning => "meaning",
            SelectionStage::Context => "context",
            SelectionStage::Negatives => "negatives",
            SelectionStage::Needs => "needs",
        }
    }

    /// Looks up a stage by name.
    pub fn from_name(name: &str) -> Option<SelectionStage> {
        SelectionStage::ALL.into_iter().find(|stage| stage.as_str() == name)
    }
}

impl fmt::Display for SelectionStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageSet(u16);

impl StageSet {
    pub const ALL: StageSet = StageSet(u16::MAX);

    /// Creates a set of the given stages.
    pub fn only(stages: impl IntoIterator<Item = SelectionStage>) -> StageSet {
        StageSet(stages.into_iter().fold(0, |all, stage| all | 1 << stage as u16))
    }

    /// Removes a stage from the set.
    pub fn without(self, stage: SelectionStage) -> StageSet {
        StageSet(self.0 & !(1 << stage as u16))
    }

    /// Returns true if the set contains a stage.
    pub fn has(self, stage: SelectionStage) -> bool {
        self.0 & 1 << stage as u16 != 0
    }
}

/// A kind of step in a plan, each with its own limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StepKind {
    /// Doing the work.
    Implementation,
    /// Reviewing the work.
    Review,
}

/// The settings of a selector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelectionSettings {
    /// True if skills may be picked without being named.
    pub enabled: bool,
    /// The minimum score of a pick, 0 to 1. A skill's `triggers.confidence` may raise it, but not lower it.
    pub threshold: f32,
    /// The maximum number of picks, not counting dependencies and named skills.
    pub max_skills: usize,
    /// The maximum number of near misses to report.
    pub near_misses: usize,
    /// The stages that run.
    pub stages: StageSet,
}

impl Default for SelectionSettings {
    fn default() -> Self {
        SelectionSettings {
            enabled: true,
            threshold: 0.6,
            max_skills: 3,
            near_misses: 3,
            stages: StageSet::ALL,
        }
    }
}
