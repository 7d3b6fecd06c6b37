//! What selection may be told: how sure to be, how many to pick, and which stages to run.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of evidence. Each can be switched off, and seen alone.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Skills that were named, by `@name` or otherwise.
    Hints,
    /// Names of events.
    Events,
    /// Globs over the paths that a task touches.
    Paths,
    /// Phrases in the task.
    Phrases,
    /// Regular expressions over the task.
    Patterns,
    /// Words that skill and task share.
    Words,
    /// Closeness of meaning.
    Meaning,
    /// What was said and used before.
    Context,
    /// Phrases and passages that speak against a skill.
    Negatives,
    /// Skills that a picked skill needs.
    Needs,
}

impl Stage {
    /// Every stage, in the order in which they run.
    pub const ALL: [Stage; 10] = [
        Stage::Hints,
        Stage::Events,
        Stage::Paths,
        Stage::Phrases,
        Stage::Patterns,
        Stage::Words,
        Stage::Meaning,
        Stage::Context,
        Stage::Negatives,
        Stage::Needs,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::Hints => "hints",
            Stage::Events => "events",
            Stage::Paths => "paths",
            Stage::Phrases => "phrases",
            Stage::Patterns => "patterns",
            Stage::Words => "words",
            Stage::Meaning => "meaning",
            Stage::Context => "context",
            Stage::Negatives => "negatives",
            Stage::Needs => "needs",
        }
    }

    /// The stage of a name.
    pub fn from_name(name: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|stage| stage.as_str() == name)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Some of the stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages(u16);

impl Stages {
    /// All of them.
    pub const ALL: Stages = Stages(u16::MAX);

    /// These and no others.
    pub fn only(stages: impl IntoIterator<Item = Stage>) -> Stages {
        Stages(stages.into_iter().fold(0, |all, stage| all | 1 << stage as u16))
    }

    /// All of these but one.
    pub fn without(self, stage: Stage) -> Stages {
        Stages(self.0 & !(1 << stage as u16))
    }

    /// Whether a stage is among them.
    pub fn has(self, stage: Stage) -> bool {
        self.0 & 1 << stage as u16 != 0
    }
}

/// A kind of step in a plan, each with a limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StepKind {
    /// Doing the work.
    Implementation,
    /// Looking at what was done.
    Review,
}

/// How to select.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Whether skills are picked that nobody named.
    pub enabled: bool,
    /// How sure to be of a pick, 0 to 1. A skill's own `triggers.confidence` may ask for
    /// more, never for less.
    pub threshold: f32,
    /// Most skills to pick. What they need comes on top.
    pub max_skills: usize,
    /// How many near misses to tell of.
    pub near_misses: usize,
    /// Which evidence counts.
    pub stages: Stages,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            enabled: true,
            threshold: 0.6,
            max_skills: 3,
            near_misses: 3,
            stages: Stages::ALL,
        }
    }
}
