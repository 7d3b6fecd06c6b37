//! Loads the modes: those of trusted skills, and the built-in ones where no skill can be used.

use crate::trigger::EventTrigger;
use repertoire_skill::catalog::{Catalog, CatalogEntry};
use repertoire_skill::skill::{Scope, Skill, SkillKind};
use repertoire_skill::trust::TrustLevel;
use repertoire_text::{Diagnostic, Source, Span};

use super::sections::{TemplateSection, block_below};
use super::settings::ModeSettings;
use super::{GitHubMode, ModeOrigin, builtin, plain_name};
use crate::codes;
use crate::template::{PromptTemplate, known_placeholders};

/// The available modes, with warnings and diagnostics.
#[derive(Clone, Debug, Default)]
pub struct ModeSet {
    /// One mode per name, sorted by name.
    pub modes: Vec<GitHubMode>,
    /// Warnings about modes that could not be used as expected.
    pub warnings: Vec<String>,
    /// The diagnostics of the files.
    pub findings: Vec<Diagnostic>,
}

/// Loads all modes. Without a catalog skills are off, and only the built-in modes are used.
pub fn load_modes(catalog: Option<&Catalog>) -> ModeSet {
    let mut all = ModeSet::default();
    let Some(catalog) = catalog else {
        all.modes = builtin::builtin_modes();
        let warning = "skills are off: the modes that are part of the program act";
        all.warnings.push(warning.to_owned());
        return all;
    };
    for (name, entries) in group_by_name(catalog) {
        all.choose_usable(&name, &entries);
    }
    for mode in builtin::builtin_modes() {
        if !all.modes.iter().any(|known| known.name == mode.name) {
            all.warnings.push(format!(
                "no skill for the mode `{}` can be used: the one that is part of the program acts",
                mode.name
            ));
            all.modes.push(mode);
        }
    }
    all.modes.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

impl ModeSet {
    /// Returns the mode with a name, with or without the suffix `-mode`.
    pub fn get(&self, name: &str) -> Option<&GitHubMode> {
        self.modes.iter().find(|mode| mode.name == plain_name(name))
    }

    /// Adds the first usable mode of several with the same name.
    fn choose_usable(&mut self, name: &str, entries: &[&CatalogEntry]) {
        let mut skipped = Vec::new();
        for entry in entries {
            if entry.trust != TrustLevel::Trusted {
                self.findings.push(untrusted_diagnostic(entry));
                continue;
            }
            let (mode, findings) = read_mode(&entry.skill);
            self.findings.extend(findings);
            match mode {
                Some(mode) => {
                    let file = &entry.skill.origin.file;
                    self.warnings.extend(skipped.into_iter().map(|broken: String| {
                        format!("{broken} is broken: the mode `{name}` of {file} acts instead")
                    }));
                    self.modes.push(mode);
                    return;
                }
                None => skipped.push(entry.skill.origin.file.to_string()),
            }
        }
        let own = builtin::builtin_modes().iter().any(|mode| mode.name == name);
        if let (Some(broken), false) = (skipped.first(), own) {
            self.warnings.push(format!("the mode `{name}` of {broken} is broken and does not act"));
        }
    }
}

/// Groups the skills of type `mode` by the names of their modes, those with precedence first.
fn group_by_name(catalog: &Catalog) -> Vec<(String, Vec<&CatalogEntry>)> {
    let shadowed = catalog.shadowed().iter().map(|shadowed| &shadowed.entry);
    let entries = catalog.entries().iter().chain(shadowed);
    let mut named: Vec<(String, &CatalogEntry)> = entries
        .filter(|entry| entry.skill.kind == SkillKind::Mode)
        .map(|entry| (mode_name(&entry.skill), entry))
        .collect();
    named.sort_by(|(a, one), (b, other)| {
        a.cmp(b)
            .then_with(|| scope_rank(one).cmp(&scope_rank(other)))
            .then_with(|| one.id.cmp(&other.id))
    });
    let mut groups: Vec<(String, Vec<&CatalogEntry>)> = Vec::new();
    for (name, entry) in named {
        match groups.last_mut() {
            Some((last, entries)) if *last == name => entries.push(entry),
            _ => groups.push((name, vec![entry])),
        }
    }
    groups
}

fn mode_name(skill: &Skill) -> String {
    let said = ModeSettings::for_skill(skill).name();
    plain_name(said.as_deref().unwrap_or(&skill.name)).to_owned()
}

/// Returns the precedence of an entry: custom modes come before the shipped ones.
fn scope_rank(entry: &CatalogEntry) -> u8 {
    match entry.skill.origin.scope {
        Scope::Extra => 0,
        Scope::Project => 1,
        Scope::User => 2,
        Scope::Plugin => 3,
        Scope::Builtin => 4,
    }
}

/// Returns the diagnostics of a skill as a mode.
pub fn mode_diagnostics(skill: &Skill) -> Vec<Diagnostic> {
    read_mode(skill).1
}

/// Reads one mode.
pub(super) fn read_mode(skill: &Skill) -> (Option<GitHubMode>, Vec<Diagnostic>) {
    let mut settings = ModeSettings::for_skill(skill);
    let (tracking, execution) = (settings.read_tracking(), settings.read_execution());
    let priority = settings.read_priority();
    let mut findings = settings.findings;
    let triggers = read_triggers(skill, &mut findings);
    let system = read_template(skill, "System Prompt Template", &mut findings);
    let user = read_template(skill, "User Prompt Template", &mut findings);
    let (Some(system), Some(user)) = (system, user) else { return (None, findings) };
    let origin = ModeOrigin::Skill {
        skill: skill.name.clone(),
        scope: skill.origin.scope,
        file: skill.origin.file.clone(),
    };
    let mode = GitHubMode {
        name: mode_name(skill),
        origin,
        description: skill.description.clone(),
        triggers,
        priority,
        tools: skill.execution.required_tools.clone(),
        disallowed_tools: skill.execution.disallowed_tools.clone(),
        tracking,
        execution,
        system,
        user,
    };
    (Some(mode), findings)
}

fn read_triggers(skill: &Skill, findings: &mut Vec<Diagnostic>) -> Vec<EventTrigger> {
    let mut triggers: Vec<EventTrigger> = Vec::new();
    for name in &skill.triggers.events {
        match EventTrigger::parse(name) {
            Some(trigger) if !triggers.contains(&trigger) => triggers.push(trigger),
            Some(_) => {}
            None => {
                let known: Vec<String> =
                    EventTrigger::ALL.iter().map(|known| format!("`{}`", known.as_str())).collect();
                let message = format!("there is no trigger `{name}`");
                let found = Diagnostic::new(&codes::MODE_TRIGGER, message)
                    .in_file(&skill.origin.file)
                    .help(format!("use {}", known.join(", ")));
                findings.push(found);
            }
        }
    }
    if triggers.is_empty() {
        let message = format!("the mode `{}` has no trigger", skill.name);
        let found = Diagnostic::new(&codes::MODE_TRIGGERS_NONE, message);
        findings.push(found.in_file(&skill.origin.file));
    }
    triggers
}

fn read_template(
    skill: &Skill,
    heading: &str,
    findings: &mut Vec<Diagnostic>,
) -> Option<PromptTemplate> {
    let body = skill.body();
    let begin = skill.text().len() - body.len();
    let section = block_below(body, heading);
    let (text, at) = match section {
        TemplateSection::Block(text, at) => (text, begin + at),
        TemplateSection::Missing => {
            let message = format!("the mode `{}` has no section `## {heading}`", skill.name);
            let found = Diagnostic::new(&codes::MODE_SECTION, message).in_file(&skill.origin.file);
            findings.push(found.help(codes::MODE_SECTION.remedy));
            return None;
        }
        TemplateSection::Open(at) => {
            let message = format!("the block of `## {heading}` is not closed");
            let span = span(begin + at, begin + at);
            let found = Diagnostic::new(&codes::MODE_FENCE, message).at(&skill.source, span);
            findings.push(found.help(codes::MODE_FENCE.remedy));
            return None;
        }
    };
    let template = PromptTemplate::parse(text);
    findings.extend(placeholder_diagnostics(&skill.source, &template, at));
    Some(template)
}

/// Returns diagnostics for unknown placeholders.
fn placeholder_diagnostics(
    source: &Source,
    template: &PromptTemplate,
    at: usize,
) -> Vec<Diagnostic> {
    let finding = |(name, range): (String, std::ops::Range<usize>)| {
        let message = format!("nothing fills in `{{{{{name}}}}}`");
        let known: Vec<String> = known_placeholders().map(|known| format!("`{known}`")).collect();
        Diagnostic::new(&codes::MODE_PLACEHOLDER, message)
            .at(source, span(at + range.start, at + range.end))
            .help(format!("use {}", known.join(", ")))
    };
    template.unknown_placeholders().into_iter().map(finding).collect()
}

fn span(start: usize, end: usize) -> Span {
    Span::new(start, end)
}

fn untrusted_diagnostic(entry: &CatalogEntry) -> Diagnostic {
    let message = match entry.trust {
        TrustLevel::Changed => format!("the mode `{}` has changed since it was trusted", entry.id),
        TrustLevel::Untrusted | TrustLevel::Trusted => {
            format!("the mode `{}` is not trusted", entry.id)
        }
    };
    Diagnostic::new(&codes::MODE_UNTRUSTED, message)
        .in_file(&entry.skill.origin.file)
        .help(codes::MODE_UNTRUSTED.remedy)
}
