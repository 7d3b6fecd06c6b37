//! Extracts the parts of a skill that a review uses, from the sections of its `SKILL.md`.
//!
//! A review skill is prose with a structure: focus areas with a severity and checks, patterns whose matches count as
//! validated, false-positive rules, and priority files. A methodology skill has an approach, steps and questions.
//! [`ReviewSkill`] holds that structure; its YAML form is the one in the skills' documentation.
//!
//! [`extract_review_skill`] reads it from the Markdown tree, by headings and bold labels, from the skill itself and from the shared
//! files that its sections refer to. It never fails: anything unusual, truncated or unreachable becomes a diagnostic.
//!
//! ```
//! use repertoire_skill::load::load_skill;
//! use repertoire_review::extract::{ReviewSeverity, extract_review_skill, to_yaml};
//! use repertoire_skill::skill::SkillOrigin;
//! use repertoire_text::{Limits, Source};
//!
//! let text = "---\nname: reviewing-security\ndescription: Finds holes.\n---\n\
//!             ## Categories Checked\n\n**Injection (Critical):**\n- SQL from `+`\n";
//! let file = "reviewing-security/SKILL.md";
//! let loaded = load_skill(Source::new(file, text), SkillOrigin::from_file(file), &Limits::default());
//! let found = extract_review_skill(&loaded.skill.unwrap(), "reviewing-security");
//!
//! assert_eq!(found.skill.primary_agent.as_deref(), Some("security-agent"));
//! assert_eq!(found.skill.focus_areas[0].severity, Some(ReviewSeverity::Critical));
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
mod collect;
mod document;
mod glob;
mod inline;
mod kind;
mod label;
mod limits;
mod methodology;
mod patterns;
mod pointer;
mod rules;
mod sections;
mod yaml;

pub use patterns::{UnusablePattern, compile_pattern};
pub use pointer::{SharedBase, SharedFileLocation, read_shared};
pub use yaml::to_yaml;

use collect::ReviewDiagnostics;
use document::MarkdownDocument;
use pointer::SharedFiles;

/// The severity of a finding, in ascending order.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum ReviewSeverity {
    /// The code could be better.
    Suggestion,
    /// The code is wrong, but does little harm.
    Minor,
    /// The code will do harm.
    Major,
    /// The change must not be shipped.
    Critical,
}

impl ReviewSeverity {
    /// All severities, worst first.
    pub const ALL: [ReviewSeverity; 4] = [
        ReviewSeverity::Critical,
        ReviewSeverity::Major,
        ReviewSeverity::Minor,
        ReviewSeverity::Suggestion,
    ];

    /// The name in skills and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            ReviewSeverity::Critical => "Critical",
            ReviewSeverity::Major => "Major",
            ReviewSeverity::Minor => "Minor",
            ReviewSeverity::Suggestion => "Suggestion",
        }
    }

    /// Parses a name, ignoring case. The plural is accepted as well (`Suggestions`).
    pub fn from_word(word: &str) -> Option<Self> {
        let word = word.trim();
        let is = |severity: &ReviewSeverity| {
            let name = severity.as_str();
            word.eq_ignore_ascii_case(name)
                || word.strip_suffix('s').is_some_and(|one| one.eq_ignore_ascii_case(name))
        };
        ReviewSeverity::ALL.into_iter().find(is)
    }
}

impl std::fmt::Display for ReviewSeverity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The role of a skill in a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReviewKind {
    /// Tells one agent what to look for.
    Review,
    /// Tells all agents how to proceed.
    Methodology,
    /// Starts other reviews, and has no instructions for agents.
    Command,
}

/// The parts of a skill that a review uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewSkill {
    /// The name of the skill.
    pub name: String,
    /// The reference by which it was requested: `plugin:name`, or usually the name.
    pub source: String,
    /// The role of the skill in a review.
    #[serde(rename = "type")]
    pub kind: ReviewKind,
    /// The agent that it addresses; all agents if absent.
    pub primary_agent: Option<String>,
    /// Areas to look at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub focus_areas: Vec<FocusArea>,
    /// Patterns whose matches count as validated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auto_validated_patterns: Vec<ReviewPattern>,
    /// Descriptions of code that must not be flagged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub false_positive_rules: Vec<String>,
    /// Files that take precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_files: Option<PriorityFiles>,
    /// The way to proceed, in a methodology skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub methodology: Option<ReviewMethodology>,
}

/// An area to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FocusArea {
    /// The name of the area.
    pub name: String,
    /// The usual severity of its findings; absent if the skill does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<ReviewSeverity>,
    /// The checks to make.
    pub checks: Vec<String>,
}

/// A pattern whose matches count as validated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewPattern {
    /// The id: `hardcoded_password`.
    pub id: String,
    /// The regular expression; absent if only a reader can recognise the pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// The description of the problem that it finds.
    pub description: String,
    /// The severity of a match, if the skill gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<ReviewSeverity>,
    /// Globs of the files that it applies to; all files if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The reason why the expression cannot be used. Findings of this pattern then need a validator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusable: Option<String>,
}

/// Files that take precedence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PriorityFiles {
    /// Globs of the files.
    pub patterns: Vec<String>,
}

/// A way to proceed in a review.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewMethodology {
    /// The approach, in a sentence or two.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub approach: String,
    /// The attitude to take.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mindset: String,
    /// The steps, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// Questions to ask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<String>,
}

impl ReviewPattern {
    /// A pattern of which only the id is known.
    fn with_id(id: String) -> Self {
        ReviewPattern {
            id,
            pattern: None,
            description: String::new(),
            severity: None,
            files: Vec::new(),
            unusable: None,
        }
    }
}

/// The result of [`extract_review_skill`].
#[derive(Clone, Debug)]
pub struct ReviewExtraction {
    pub skill: ReviewSkill,
    /// Problems in the skill, in the order in which they were found.
    pub diagnostics: Vec<Diagnostic>,
}

/// Extracts the parts of a skill that a review uses. `reference` is the name by which it was requested. Shared files
/// are read from disk by [`read_shared`].
pub fn extract_review_skill(skill: &Skill, reference: &str) -> ReviewExtraction {
    extract_review_skill_with(skill, reference, &|place| read_shared(skill, place))
}

/// As [`extract_review_skill`], but reads shared files through `read`.
pub fn extract_review_skill_with(
    skill: &Skill,
    reference: &str,
    read: &dyn Fn(&SharedFileLocation) -> Result<String, ReadError>,
) -> ReviewExtraction {
    let (kind, primary_agent) = kind::classify_skill(skill);
    let document = MarkdownDocument::parse(&skill.source, skill.body);
    let subjects = kind::subject_stems(skill, primary_agent.as_deref());
    let mut shared = SharedFiles::new(skill, read);
    let mut findings = ReviewDiagnostics::default();
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
            found.methodology = methodology::find_methodology(&document, out);
            if !kind::is_declared(skill) && is_for_reviews(&document) {
                let message = "its focus areas and patterns are not used: it is taken as a methodology; name it \
                               `reviewing-…`, or say `type: review`";
                out.add_for_file(&codes::REVIEW_UNUSED, message.to_owned(), &skill.source);
            }
        }
        ReviewKind::Review | ReviewKind::Command => {
            found.auto_validated_patterns =
                patterns::find_patterns(&document, &subjects, &mut shared, out);
            found.false_positive_rules =
                rules::find_false_positives(&document, &subjects, &mut shared, out);
        }
    }
    if kind == ReviewKind::Review {
        found.focus_areas = areas::find_areas(&document, out);
        found.priority_files = rules::find_priority_files(&document, out);
    }
    if let Some(headings) = missing_headings(&found) {
        let message = format!("a review finds nothing in this skill; it looks for {headings}");
        out.add_for_file(&codes::REVIEW_EMPTY, message, &skill.source);
    }
    ReviewExtraction { skill: found, diagnostics: findings.finish(&skill.source) }
}

/// Returns true if the document has focus areas with a severity, or patterns.
fn is_for_reviews(document: &MarkdownDocument) -> bool {
    let unsaid = &mut ReviewDiagnostics::default();
    areas::find_areas(document, unsaid).iter().any(|area| area.severity.is_some())
        || patterns::has_table(document)
}

/// Returns the expected headings if nothing was found in the skill. A command need not have any.
fn missing_headings(skill: &ReviewSkill) -> Option<&'static str> {
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
