//! Lint: finds errors and likely surprises in files that may well load.
//!
//! A rule is one file in `rules/` with its documentation, its check and its table test. This module lists the
//! rules and decides which rule set runs which. Some rules check a single skill, others all skills that are
//! linted together.

use repertoire_text::{Diagnostic, DiagnosticCode, Severity, Source, codes as text_codes};

use crate::catalog::CatalogEntry;
use crate::codes;
use crate::dependencies::{self, KnownSkills};
use crate::profile::ProfileId;
use crate::skill::Skill;
use crate::skills_ref;

mod body;
mod rules;
mod run;
mod tools;

pub use run::{
    CompanionCheck, FileReport, LintReport, LintRequest, LintSummary, SkillComparison, apply_fixes,
    lint_paths,
};
pub use tools::KNOWN_TOOLS;

/// The set of rules to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LintRuleSet {
    /// Exactly the findings of skills-ref 0.1.1.
    AgentSkills,
    /// The rules of Claude Code and its upload.
    Claude,
    /// All rules.
    Repertoire,
}

impl From<ProfileId> for LintRuleSet {
    fn from(profile: ProfileId) -> Self {
        match profile {
            ProfileId::Agentskills => LintRuleSet::AgentSkills,
            ProfileId::Claude => LintRuleSet::Claude,
            ProfileId::Repertoire
            | ProfileId::Openskills
            | ProfileId::Codex
            | ProfileId::Gemini => LintRuleSet::Repertoire,
        }
    }
}

/// The skill that a rule checks.
pub(crate) struct LintSubject<'a> {
    skill: &'a Skill,
    /// The names of the files beside the skill's file, if the skill is a folder.
    siblings: &'a [String],
    body: body::BodyScan<'a>,
}

/// A rule about a single skill.
pub(crate) struct LintRule {
    check: fn(&LintSubject<'_>, &mut Vec<Diagnostic>),
    claude: bool,
}

/// Returns every code that a rule, a reader or a walk can report, ordered by id.
pub fn all_codes() -> Vec<&'static DiagnosticCode> {
    let mut all: Vec<&'static DiagnosticCode> =
        text_codes::ALL.iter().chain(codes::ALL).copied().collect();
    all.sort_by_key(|code| code.id);
    all
}

/// Checks one loaded skill.
pub fn check_skill(skill: &Skill, siblings: &[String], rules: LintRuleSet) -> Vec<Diagnostic> {
    let subject = LintSubject { skill, siblings, body: body::BodyScan::scan(skill) };
    let mut out = Vec::new();
    for rule in rules::ALL {
        if rules == LintRuleSet::Repertoire || rule.claude {
            (rule.check)(&subject, &mut out);
        }
    }
    out
}

/// Returns the findings of skills-ref about a text, as diagnostics.
pub fn check_reference(source: &Source, folder: &str) -> Vec<Diagnostic> {
    skills_ref::validate(source.text(), folder)
        .iter()
        .map(|finding| finding.to_diagnostic(source))
        .collect()
}

/// Checks several skills together. Skills in `known` may be depended on as well.
pub fn check_together(entries: &[CatalogEntry], known: &KnownSkills) -> Vec<Diagnostic> {
    let mut out = dependencies::check_dependencies(entries, known);
    rules::trigger_duplicate::check(entries, &mut out);
    out
}

/// Returns true if any diagnostic is an error. Warnings and information do not fail a check.
pub fn is_failure(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|found| found.severity == Severity::Error)
}
