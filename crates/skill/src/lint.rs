//! Lint: what is wrong, or will surprise somebody, in files that may well load.
//!
//! A rule is one file in `rules/` with its documentation, its check and its table test; this file only
//! lists them and says which rule set runs which. Rules about one skill see that skill; rules about
//! several see all that are looked at together.

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

/// Which rules are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleSet {
    /// Exactly the verdict of skills-ref 0.1.1.
    AgentSkills,
    /// What Claude Code and its upload accept.
    Claude,
    /// Everything that we know.
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

/// A skill under examination.
pub(crate) struct Subject<'a> {
    skill: &'a Skill,
    /// Names beside the skill's file, where it is a folder.
    siblings: &'a [String],
    body: body::Body<'a>,
}

/// One rule about one skill.
pub(crate) struct Rule {
    check: fn(&Subject<'_>, &mut Vec<Diagnostic>),
    claude: bool,
}

/// Every code that any rule, reader or walk can report, by id.
pub fn all_codes() -> Vec<&'static Code> {
    let mut all: Vec<&'static Code> = text_codes::ALL.iter().chain(codes::ALL).copied().collect();
    all.sort_by_key(|code| code.id);
    all
}

/// Findings about one skill that was loaded.
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

/// The verdict of skills-ref on a text, as diagnostics.
pub fn check_reference(source: &Source, folder: &str) -> Vec<Diagnostic> {
    skills_ref::validate(source.text(), folder)
        .iter()
        .map(|finding| finding.to_diagnostic(source))
        .collect()
}

/// Findings about several skills together, where those in `known` may be depended on as well.
pub fn check_together(entries: &[Entry], known: &Known) -> Vec<Diagnostic> {
    let mut out = depend::check(entries, known);
    rules::trigger_duplicate::check(entries, &mut out);
    out
}

/// Whether a check fails: errors decide; warnings and information do not.
pub fn is_failure(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|found| found.severity == Severity::Error)
}
