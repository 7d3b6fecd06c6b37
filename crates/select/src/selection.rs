//! What selection answers: picks with reasons, near misses with what they lacked, or an abstention.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::settings::Stage;

/// How a skill came to be picked.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// Somebody named it.
    Hint,
    /// One of its triggers fired.
    Trigger,
    /// Its text fits the task.
    Match,
    /// A picked skill needs it.
    Need,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Strategy::Hint => "hint",
            Strategy::Trigger => "trigger",
            Strategy::Match => "match",
            Strategy::Need => "need",
        })
    }
}

/// A part of a skill's text.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Field {
    /// The name.
    Name,
    /// The description.
    Description,
    /// The body's headings.
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

/// One reason for a skill, or against it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Reason {
    /// It was named.
    Hint {
        /// As it was named.
        named: String,
    },
    /// It waits for the event.
    Event {
        /// The event.
        event: String,
    },
    /// It is for such paths.
    Path {
        /// The glob of the skill.
        glob: String,
        /// A path of the task that it matches.
        path: String,
    },
    /// The task has one of its phrases.
    Phrase {
        /// The phrase.
        phrase: String,
    },
    /// The task matches one of its patterns.
    Pattern {
        /// The pattern.
        pattern: String,
        /// What it matched.
        matched: String,
    },
    /// Skill and task share a word.
    Word {
        /// The word, as the task has it.
        word: String,
        /// The word that the skill has instead, where it is not the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        as_word: Option<String>,
        /// Where the skill has it.
        fields: Vec<Field>,
        /// Its share of the score by words, 0 to 1.
        weight: f32,
    },
    /// Skill and task mean similar things.
    Meaning {
        /// Closeness, -1 to 1.
        closeness: f32,
    },
    /// It answers one sentence of the task best.
    Sentence {
        /// The sentence, cut if it is long.
        sentence: String,
    },
    /// What was said before fits it.
    Conversation {
        /// How much that adds to the score.
        boost: f32,
    },
    /// It was used before.
    Usage {
        /// How often.
        times: u32,
        /// How much that adds to the score.
        boost: f32,
    },
    /// It is made for the agent that does the work.
    Agent {
        /// The agent.
        agent: String,
        /// How much that adds to the score.
        boost: f32,
    },
    /// A picked skill needs it.
    Need {
        /// The skill that needs it.
        by: String,
    },
    /// One of the phrases that speak against it is in the task.
    Not {
        /// The phrase.
        phrase: String,
    },
    /// Its description says that it is not for this.
    NotFor {
        /// Words of the task that stand in such a passage and nowhere else in the description.
        words: Vec<String>,
    },
}

impl Reason {
    /// The stage that found it.
    pub fn stage(&self) -> Stage {
        match self {
            Reason::Hint { .. } => Stage::Hints,
            Reason::Event { .. } => Stage::Events,
            Reason::Path { .. } => Stage::Paths,
            Reason::Phrase { .. } => Stage::Phrases,
            Reason::Pattern { .. } => Stage::Patterns,
            Reason::Word { .. } | Reason::Sentence { .. } => Stage::Words,
            Reason::Meaning { .. } => Stage::Meaning,
            Reason::Conversation { .. } | Reason::Usage { .. } | Reason::Agent { .. } => {
                Stage::Context
            }
            Reason::Not { .. } | Reason::NotFor { .. } => Stage::Negatives,
            Reason::Need { .. } => Stage::Needs,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Hint { named } => write!(f, "named as `{named}`"),
            Reason::Event { event } => write!(f, "started by the event `{event}`"),
            Reason::Path { glob, path } => write!(f, "`{path}` matches its paths `{glob}`"),
            Reason::Phrase { phrase } => write!(f, "trigger phrase \"{phrase}\""),
            Reason::Pattern { pattern, matched } => {
                write!(f, "trigger pattern /{pattern}/ matches \"{matched}\"")
            }
            Reason::Word { word, as_word, fields, .. } => {
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
            Reason::Meaning { closeness } => write!(f, "meaning {closeness:.2} close"),
            Reason::Sentence { sentence } => write!(f, "answers \"{sentence}\" best"),
            Reason::Conversation { boost } => write!(f, "fits the conversation (+{boost:.2})"),
            Reason::Usage { times, boost } => write!(f, "used {times} times before (+{boost:.2})"),
            Reason::Agent { agent, boost } => {
                write!(f, "made for the agent `{agent}` (+{boost:.2})")
            }
            Reason::Need { by } => write!(f, "needed by `{by}`"),
            Reason::Not { phrase } => write!(f, "not for \"{phrase}\", by its triggers"),
            Reason::NotFor { words } => {
                write!(f, "not for \"{}\", by its description", words.join(", "))
            }
        }
    }
}

/// A skill that was picked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pick {
    /// The skill.
    pub name: String,
    /// How likely it is to be right, 0 to 1.
    pub score: f32,
    /// How it came to be picked.
    pub strategy: Strategy,
    /// Why: triggers first, then words with the most telling first, then the rest.
    pub reasons: Vec<Reason>,
}

/// Why a skill was not picked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Lack {
    /// It did not reach what is asked.
    Score {
        /// What was asked.
        threshold: f32,
    },
    /// There was no more room.
    Room {
        /// Most skills that are picked.
        max_skills: usize,
    },
    /// It may only be used when it is named.
    Name,
    /// Skills are picked only when they are named.
    Enabled,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lack::Score { threshold } => write!(f, "under the threshold of {threshold:.2}"),
            Lack::Room { max_skills } => write!(f, "at most {max_skills} are picked"),
            Lack::Name => f.write_str("may only be used when it is named"),
            Lack::Enabled => f.write_str("skills are picked only when they are named"),
        }
    }
}

/// A skill that was nearly picked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NearMiss {
    /// The skill.
    pub name: String,
    /// How likely it is to be right, 0 to 1.
    pub score: f32,
    /// What kept it out.
    pub lacked: Lack,
    /// The telling words of the task that it does not have.
    pub missing: Vec<String>,
    /// What spoke for it and against it.
    pub reasons: Vec<Reason>,
}

/// A name in a hint that leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unresolved {
    /// As it was named.
    pub named: String,
    /// A skill that may be meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
}

/// Nothing was picked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Abstention {
    /// The skill that came nearest, if there is any.
    pub nearest: Option<String>,
    /// The best score that any skill reached.
    pub best: f32,
    /// What is asked of a score.
    pub threshold: f32,
    /// What that skill lacked.
    pub lacked: Option<Lack>,
}

/// The answer to a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Picked skills, the best first; what they need comes right after them.
    pub picks: Vec<Pick>,
    /// Skills that were nearly picked, the best first.
    pub near_misses: Vec<NearMiss>,
    /// Hints that lead nowhere.
    pub unresolved: Vec<Unresolved>,
    /// Set if nothing was picked.
    pub abstention: Option<Abstention>,
}

impl Selection {
    /// How the picks came about, in one word: that of the first pick, or `none`.
    pub fn strategy(&self) -> &'static str {
        match self.picks.first().map(|pick| pick.strategy) {
            Some(Strategy::Hint) => "hint",
            Some(Strategy::Trigger) => "trigger",
            Some(Strategy::Match | Strategy::Need) => "match",
            None => "none",
        }
    }
}
