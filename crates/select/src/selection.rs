//! The result of a selection: picks with reasons, near misses with what they lacked, or an abstention.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::settings::SelectionStage;

/// The kind of evidence that led to a pick.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum PickStrategy {
    /// The user or the caller named the skill.
    Hint,
    /// One of the skill's triggers fired.
    Trigger,
    /// The skill's text fits the task.
    Match,
    /// A picked skill depends on it.
    Need,
}

impl fmt::Display for PickStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PickStrategy::Hint => "hint",
            PickStrategy::Trigger => "trigger",
            PickStrategy::Match => "match",
            PickStrategy::Need => "need",
        })
    }
}

/// A field of a skill's text.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Field {
    /// The name.
    Name,
    /// The description.
    Description,
    /// The headings of the body.
    Headings,
    /// The body.
    Body,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Field::Name => "name",
            Field::Description => "description",
            Field::Headings => "headings",
            Field::Body => "body",
        })
    }
}

/// A reason for or against a skill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum SelectionReason {
    /// The task names the skill.
    Hint {
        /// The name as it was written.
        named: String,
    },
    /// The skill declares the event that started the task.
    Event {
        /// The name of the event.
        event: String,
    },
    /// The task touches a path that the skill declares.
    Path {
        /// The glob of the skill.
        glob: String,
        /// A path of the task that the glob matches.
        path: String,
    },
    /// The task contains one of the skill's trigger phrases.
    Phrase {
        /// The phrase.
        phrase: String,
    },
    /// The task matches one of the skill's trigger patterns.
    Pattern {
        /// The pattern.
        pattern: String,
        /// The text that the pattern matched.
        matched: String,
    },
    /// Skill and task share a word.
    Word {
        /// The word as the task has it.
        word: String,
        /// The stem that the skill has instead, if it differs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        as_word: Option<String>,
        /// The fields of the skill that contain it.
        fields: Vec<Field>,
        /// The share of the score by words, 0 to 1.
        weight: f32,
    },
    /// Skill and task are close in meaning.
    Meaning {
        /// The cosine similarity, -1 to 1.
        closeness: f32,
    },
    /// The skill fits one sentence of the task best.
    Sentence {
        /// The beginning of the sentence.
        sentence: String,
    },
    /// The skill fits the conversation so far.
    Conversation {
        /// The amount added to the score.
        boost: f32,
    },
    /// The skill was used before.
    Usage {
        /// The number of earlier uses.
        times: u32,
        /// The amount added to the score.
        boost: f32,
    },
    /// The skill is made for the agent that runs the task.
    Agent {
        /// The name of the agent.
        agent: String,
        /// The amount added to the score.
        boost: f32,
    },
    /// A picked skill depends on this one.
    Need {
        /// The skill that depends on it.
        by: String,
    },
    /// The task contains a phrase of the skill's `triggers.not`.
    Not {
        /// The phrase.
        phrase: String,
    },
    /// The skill's description says that it is not for this task.
    NotFor {
        /// Words of the task that occur in such a passage and nowhere else in the description.
        words: Vec<String>,
    },
}

impl SelectionReason {
    /// The stage that found the reason.
    pub fn stage(&self) -> SelectionStage {
        match self {
            SelectionReason::Hint { .. } => SelectionStage::Hints,
            SelectionReason::Event { .. } => SelectionStage::Events,
            SelectionReason::Path { .. } => SelectionStage::Paths,
            SelectionReason::Phrase { .. } => SelectionStage::Phrases,
            SelectionReason::Pattern { .. } => SelectionStage::Patterns,
            SelectionReason::Word { .. } | SelectionReason::Sentence { .. } => {
                SelectionStage::Words
            }
            SelectionReason::Meaning { .. } => SelectionStage::Meaning,
            SelectionReason::Conversation { .. }
            | SelectionReason::Usage { .. }
            | SelectionReason::Agent { .. } => SelectionStage::Context,
            SelectionReason::Not { .. } | SelectionReason::NotFor { .. } => {
                SelectionStage::Negatives
            }
            SelectionReason::Need { .. } => SelectionStage::Needs,
        }
    }
}

impl fmt::Display for SelectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectionReason::Hint { named } => write!(f, "named as `{named}`"),
            SelectionReason::Event { event } => write!(f, "started by the event `{event}`"),
            SelectionReason::Path { glob, path } => {
                write!(f, "`{path}` matches its paths `{glob}`")
            }
            SelectionReason::Phrase { phrase } => write!(f, "trigger phrase \"{phrase}\""),
            SelectionReason::Pattern { pattern, matched } => {
                write!(f, "trigger pattern /{pattern}/ matches \"{matched}\"")
            }
            SelectionReason::Word { word, as_word, fields, .. } => {
                write!(f, "\"{word}\"")?;
                if let Some(as_word) = as_word {
                    write!(f, " (as \"{as_word}\")")?;
                }
                f.write_str(" in ")?;
                for (at, field) in fields.iter().enumerate() {
                    let between = if at == 0 { "" } else { ", " };
                    write!(f, "{between}{field}")?;
                }
                Ok(())
            }
            SelectionReason::Meaning { closeness } => write!(f, "meaning {closeness:.2} close"),
            SelectionReason::Sentence { sentence } => write!(f, "answers \"{sentence}\" best"),
            SelectionReason::Conversation { boost } => {
                write!(f, "fits the conversation (+{boost:.2})")
            }
            SelectionReason::Usage { times, boost } => {
                write!(f, "used {times} times before (+{boost:.2})")
            }
            SelectionReason::Agent { agent, boost } => {
                write!(f, "made for the agent `{agent}` (+{boost:.2})")
            }
            SelectionReason::Need { by } => write!(f, "needed by `{by}`"),
            SelectionReason::Not { phrase } => write!(f, "not for \"{phrase}\", by its triggers"),
            SelectionReason::NotFor { words } => {
                write!(f, "not for \"{}\", by its description", words.join(", "))
            }
        }
    }
}

/// A skill that was picked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SelectionPick {
    /// The name of the skill.
    pub name: String,
    /// The probability that the skill is right, 0 to 1.
    pub score: f32,
    /// The kind of evidence that led to the pick.
    pub strategy: PickStrategy,
    /// The reasons: triggers first, then words by weight, then the rest.
    pub reasons: Vec<SelectionReason>,
}

/// The reason why a skill was not picked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum RejectionReason {
    /// The score is below the threshold.
    Score {
        /// The threshold that applied.
        threshold: f32,
    },
    /// The maximum number of picks was reached.
    Room {
        /// The maximum number of picks.
        max_skills: usize,
    },
    /// The skill may only be used if it is named.
    Name,
    /// Automatic selection is switched off: skills are picked only if they are named.
    Enabled,
}

impl fmt::Display for RejectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RejectionReason::Score { threshold } => {
                write!(f, "under the threshold of {threshold:.2}")
            }
            RejectionReason::Room { max_skills } => write!(f, "at most {max_skills} are picked"),
            RejectionReason::Name => f.write_str("may only be used when it is named"),
            RejectionReason::Enabled => f.write_str("skills are picked only when they are named"),
        }
    }
}

/// A skill that was nearly picked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NearMiss {
    /// The name of the skill.
    pub name: String,
    /// The probability that the skill is right, 0 to 1.
    pub score: f32,
    /// The condition that kept the skill out.
    pub lacked: RejectionReason,
    /// Distinctive words of the task that the skill does not contain.
    pub missing: Vec<String>,
    /// The reasons for and against the skill.
    pub reasons: Vec<SelectionReason>,
}

/// A name in a hint that does not identify a single skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnresolvedHint {
    /// The name as it was written.
    pub named: String,
    /// The skill that was probably meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
}

/// The best result of a selection without picks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SelectionAbstention {
    /// The skill with the best score, if any skill was considered.
    pub nearest: Option<String>,
    /// The best score of any skill.
    pub best: f32,
    /// The minimum score for a pick.
    pub threshold: f32,
    /// The condition that the nearest skill failed.
    pub lacked: Option<RejectionReason>,
}

/// The result of a selection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// The picked skills, best first; the dependencies of a pick follow it directly.
    pub picks: Vec<SelectionPick>,
    /// Skills that were nearly picked, best first.
    pub near_misses: Vec<NearMiss>,
    /// Names in hints that do not identify a single skill.
    pub unresolved: Vec<UnresolvedHint>,
    /// Set if no skill was picked.
    pub abstention: Option<SelectionAbstention>,
}

impl Selection {
    /// The strategy of the first pick, or `none`.
    pub fn strategy(&self) -> &'static str {
        match self.picks.first().map(|pick| pick.strategy) {
            Some(PickStrategy::Hint) => "hint",
            Some(PickStrategy::Trigger) => "trigger",
            Some(PickStrategy::Match | PickStrategy::Need) => "match",
            None => "none",
        }
    }
}
