//! What a reviewer takes from a skill: the sections of a `SKILL.md` as data.
//!
//! A skill for reviews is prose with a structure: focus areas with a severity and their checks, patterns that prove
//! themselves, what not to flag, which files come first. A skill with a method is read for its approach, its steps and its
//! questions. [`ReviewSkill`] is that structure, and its YAML is that of the skills' documentation.
//!
//! [`extract`] reads it from the Markdown tree, by headings and by bold labels, from the skill itself and from the shared
//! files that its sections point to. It never fails: what is odd, cut or out of reach is a diagnostic.
//!
//! ```
//! use repertoire_skill::load::load;
//! use repertoire_review::extract::{Severity, extract, to_yaml};
//! use repertoire_skill::skill::Origin;
//! use repertoire_text::{Limits, Source};
//!
//! let text = "---\nname: reviewing-security\ndescription: Finds holes.\n---\n\
//!             ## Categories Checked\n\n**Injection (Critical):**\n- SQL from `+`\n";
//! let file = "reviewing-security/SKILL.md";
//! let loaded = load(Source::new(file, text), Origin::file(file), &Limits::default());
//! let found = extract(&loaded.skill.unwrap(), "reviewing-security");
//!
//! assert_eq!(found.skill.primary_agent.as_deref(), Some("security-agent"));
//! assert_eq!(found.skill.focus_areas[0].severity, Some(Severity::Critical));
//! assert_eq!(found.skill.focus_areas[0].checks, ["SQL from +"]);
//! assert!(to_yaml(&[found.skill]).starts_with("resolved_skills:\n  - name: \"reviewing-security\"\n"));
//! ```

use repertoire_text::Diagnostic;
use repertoire_text::fs::ReadError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::codes;
use repertoire_skill::skill::Skill;

mod areas;
mod found;
mod glob;
mod inline;
mod kind;
mod limits;
mod label;
mod methodology;
mod patterns;
mod pointer;
mod rules;
mod sections;
mod tree;
mod yaml;

pub use patterns::{Unusable, compile};
pub use pointer::{Base, Place, read_shared};
pub use yaml::to_yaml;

use found::Findings;
use pointer::Shared;
use tree::Document;

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

impl Pattern {
    /// A pattern of which only the name is known.
    fn named(id: String) -> Self {
        Pattern {
            id,
            pattern: None,
            description: String::new(),
            severity: None,
            files: Vec::new(),
            unusable: None,
        }
    }
}

/// What was taken from a skill, and what was found on the way.
#[derive(Clone, Debug)]
pub struct Extracted {
    /// The skill as a review sees it.
    pub skill: ReviewSkill,
    /// What is odd about it, in the order in which it was read.
    pub diagnostics: Vec<Diagnostic>,
}

/// Takes from a skill what a review wants of it. `reference` is how it was asked for. Shared files are read from the
/// disk, see [`read_shared`].
pub fn extract(skill: &Skill, reference: &str) -> Extracted {
    extract_with(skill, reference, &|place| read_shared(skill, place))
}

/// As [`extract`], with another way to read shared files.
pub fn extract_with(
    skill: &Skill,
    reference: &str,
    read: &dyn Fn(&Place) -> Result<String, ReadError>,
) -> Extracted {
    let (kind, primary_agent) = kind::classify(skill);
    let document = Document::read(&skill.source, skill.body);
    let subjects = kind::subjects(skill, primary_agent.as_deref());
    let mut shared = Shared::new(skill, read);
    let mut findings = Findings::default();
    let out = &mut findings;
    let mut found = ReviewSkill {
        name: skill.name.clone(),
        source: reference.to_owned(),
        kind,
        primary_agent,
        focus_areas: Vec::new(),
        auto_validated_patterns: Vec::new(),
        false_positive_rules: Vec::new(),
        priority_files: None,
        methodology: None,
    };
    match kind {
        ReviewKind::Methodology => {
            found.methodology = methodology::find(&document, out);
            if !kind::is_declared(skill) && is_for_reviews(&document) {
                let message = "its focus areas and patterns are not used: it is taken as a methodology; name it \
                               `reviewing-…`, or say `type: review`";
                out.about(&codes::REVIEW_UNUSED, message.to_owned(), &skill.source);
            }
        }
        ReviewKind::Review | ReviewKind::Command => {
            found.auto_validated_patterns = patterns::find(&document, &subjects, &mut shared, out);
            found.false_positive_rules =
                rules::false_positives(&document, &subjects, &mut shared, out);
        }
    }
    if kind == ReviewKind::Review {
        found.focus_areas = areas::find(&document, out);
        found.priority_files = rules::priority_files(&document, out);
    }
    if let Some(headings) = nothing_in(&found) {
        let message = format!("a review finds nothing in this skill; it looks for {headings}");
        out.about(&codes::REVIEW_EMPTY, message, &skill.source);
    }
    Extracted { skill: found, diagnostics: findings.finish(&skill.source) }
}

/// Whether a text has focus areas with a severity, or patterns.
fn is_for_reviews(document: &Document) -> bool {
    let unsaid = &mut Findings::default();
    areas::find(document, unsaid).iter().any(|area| area.severity.is_some())
        || patterns::has_table(document)
}

/// What was looked for, if none of it was found. A command need not have any of it.
fn nothing_in(skill: &ReviewSkill) -> Option<&'static str> {
    let is_empty = skill.focus_areas.is_empty()
        && skill.auto_validated_patterns.is_empty()
        && skill.false_positive_rules.is_empty()
        && skill.priority_files.is_none()
        && skill.methodology.is_none();
    match skill.kind {
        ReviewKind::Review => is_empty.then_some(sections::REVIEW_HEADINGS),
        ReviewKind::Methodology => is_empty.then_some(sections::METHOD_HEADINGS),
        ReviewKind::Command => None,
    }
}

#[cfg(test)]
mod documented_tests;
#[cfg(test)]
#[path = "extract/review_tests.rs"]
mod tests;
