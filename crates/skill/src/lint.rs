//! Lint: finds errors and likely surprises in files that may well load.
//!
//! A rule is one file in `rules/` with its documentation, its check and its table test. This module lists the
//! rules and decides which rule set runs which. Some rules check a single skill, others all skills that are
//! linted together.

use repertoire_text::{Code, Diagnostic, Severity, Source, codes as text_codes};

use crate::catalog::Entry;
use crate::codes;
use crate::depend::{self, Known};
use crate::profile::ProfileId;
use crate::skill::Skill;
use crate::skills_ref;

mod body;
mod rules;
mod run;
mod tools;

pub use run::{Companions, Comparison, FileReport, LintRequest, Report, Summary, fix, lint};
pub use tools::KNOWN_TOOLS;

/// The set of rules to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleSet {
    /// Exactly the findings of skills-ref 0.1.1.
    AgentSkills,
    /// The rules of Claude Code and its upload.
    Claude,
    /// All rules.
    Repertoire,
}

impl From<ProfileId> for RuleSet {
    fn from(profile: ProfileId) -> Self {
        match profile {
            ProfileId::Agentskills => RuleSet::AgentSkills,
            ProfileId::Claude => RuleSet::Claude,
            ProfileId::Repertoire
            | ProfileId::Openskills
            | ProfileId::Codex
            | ProfileId::Gemini => RuleSet::Repertoire,
        }
    }
}

/// The skill that a rule checks.
pub(crate) struct Subject<'a> {
    skill: &'a Skill,
    /// The names of the files beside the skill's file, if the skill is a folder.
    siblings: &'a [String],
    body: body::Body<'a>,
}

/// A rule about a single skill.
pub(crate) struct Rule {
    check: fn(&Subject<'_>, &mut Vec<Diagnostic>),
    claude: bool,
}

/// Returns every code that a rule, a reader or a walk can report, ordered by id.
pub fn all_codes() -> Vec<&'static Code> {
    let mut all: Vec<&'static Code> = text_codes::ALL.iter().chain(codes::ALL).copied().collect();
    all.sort_by_key(|code| code.id);
    all
}

/// Checks one loaded skill.
pub fn check_skill(skill: &Skill, siblings: &[String], rules: RuleSet) -> Vec<Diagnostic> {
    let subject = Subject { skill, siblings, body: body::Body::scan(skill) };
    let mut out = Vec::new();
    for rule in rules::ALL {
        if rules == RuleSet::Repertoire || rule.claude {
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
pub fn check_together(entries: &[Entry], known: &Known) -> Vec<Diagnostic> {
    let mut out = depend::check(entries, known);
    rules::trigger_duplicate::check(entries, &mut out);
    out
}

/// Returns true if any diagnostic is an error. Warnings and information do not fail a check.
pub fn is_failure(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|found| found.severity == Severity::Error)
}
