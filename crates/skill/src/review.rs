//! What a reviewer takes from a skill: the sections of a `SKILL.md` as data.
//!
//! A skill for reviews is prose with a structure: focus areas with a severity and their checks, patterns that prove
//! themselves, what not to flag, which files come first. A skill with a method is read for its approach, its steps and its
//! questions. [`ReviewSkill`] is that structure, and its YAML is that of the skills' documentation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How bad something is. Later is worse.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Severity {
    /// It could be better.
    Suggestion,
    /// It is wrong, and does little harm.
    Minor,
    /// It will do harm.
    Major,
    /// It must not be shipped.
    Critical,
}

impl Severity {
    /// All, the worst first.
    pub const ALL: [Severity; 4] =
        [Severity::Critical, Severity::Major, Severity::Minor, Severity::Suggestion];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Critical => "Critical",
            Severity::Major => "Major",
            Severity::Minor => "Minor",
            Severity::Suggestion => "Suggestion",
        }
    }

    /// The severity of a word, in any case; `suggestions` counts as well.
    pub fn from_word(word: &str) -> Option<Self> {
        let word = word.trim();
        let is = |severity: &Severity| {
            let name = severity.as_str();
            word.eq_ignore_ascii_case(name)
                || word.strip_suffix('s').is_some_and(|one| one.eq_ignore_ascii_case(name))
        };
        Severity::ALL.into_iter().find(is)
    }
}

impl std::fmt::Display for Severity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a skill is to a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReviewKind {
    /// It tells one agent what to look for.
    Review,
    /// It tells every agent how to think.
    Methodology,
    /// It starts other reviews, and has nothing to tell an agent.
    Command,
}

/// A skill as a review sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewSkill {
    /// Its name.
    pub name: String,
    /// How it was asked for: `plugin:name`, mostly the name.
    pub source: String,
    /// What it is to a review.
    #[serde(rename = "type")]
    pub kind: ReviewKind,
    /// The agent that it speaks to; all of them if absent.
    pub primary_agent: Option<String>,
    /// What to look for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub focus_areas: Vec<FocusArea>,
    /// What proves itself where its pattern matches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auto_validated_patterns: Vec<Pattern>,
    /// What not to flag.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub false_positive_rules: Vec<String>,
    /// Which files come first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_files: Option<PriorityFiles>,
    /// How to think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub methodology: Option<Methodology>,
}

/// Something to look for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FocusArea {
    /// Its name.
    pub name: String,
    /// How bad its findings usually are; absent where the skill does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// What to check.
    pub checks: Vec<String>,
}

/// A pattern whose matches need no second opinion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pattern {
    /// Its name: `hardcoded_password`.
    pub id: String,
    /// The regular expression; absent where it takes a reader to see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// What it finds.
    pub description: String,
    /// How bad that is, where the skill says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// Globs of the files that it is for; all files if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Why the expression cannot be used; findings of this name are validated as any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusable: Option<String>,
}

/// Which files come first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PriorityFiles {
    /// Globs.
    pub patterns: Vec<String>,
}

/// How to think.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Methodology {
    /// In a sentence or two.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub approach: String,
    /// The attitude.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mindset: String,
    /// What to do, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// What to ask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<String>,
}
