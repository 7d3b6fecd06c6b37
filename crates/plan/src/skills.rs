//! Skills for a step: first those that the task names, then matching ones, up to a small limit,
//! each with its reasons.

use repertoire_journal::Payload;
use repertoire_journal::event::SelectedSkill;
use repertoire_journal::limits::NAMES_MAX;
use repertoire_select::selection::PickStrategy;
use repertoire_select::{Selection, SelectionSettings, SkillSelector, Task};
use repertoire_skill::activate::{
    Activation, ActivationBudget, ActivationRequest, ReferenceMode, activate_skills,
};
use repertoire_skill::catalog::{Catalog, CatalogEntry};
use repertoire_skill::openskills::{self, OpenSkillsStyle, SkillLocation};
use repertoire_skill::render::{catalog::is_offered, describe_skill, message};
use repertoire_skill::skill::Scope;
use repertoire_skill::trust::TrustLevel;

use super::prompt::TaskAssignment;
use super::request::SkillRules;
use super::state::PlanStepKind;
use crate::limits::REASONS_SHOWN;

/// The skills for a step, as they appear in its prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepSkills {
    /// The list of available skills, best matches first.
    pub available: String,
    /// The text of the selected skills.
    pub loaded: String,
    /// The events to record.
    pub events: Vec<Payload>,
    /// The names of the selected skills.
    pub names: Vec<String>,
}

/// The events for the skills that discovery found or could not load.
pub fn discovery_events(catalog: &Catalog) -> Vec<Payload> {
    let names = catalog.entries().iter().filter(|entry| is_offered(entry));
    let mut names: Vec<String> = names.map(|entry| entry.id.clone()).collect();
    let count = names.len() as u64;
    names.truncate(NAMES_MAX);
    let roots = catalog.roots().iter().filter(|report| report.found > 0);
    let locations = roots.map(|report| report.root.dir.to_string()).collect();
    let failed = catalog.broken().iter().map(|broken| Payload::SkillsLoadFailed {
        name: broken.path.to_string(),
        error: broken.reason.message.clone(),
    });
    let found = Payload::SkillsDiscovered { count, locations, names };
    std::iter::once(found).chain(failed.take(NAMES_MAX)).collect()
}

/// Selects and loads the skills for a step.
pub fn choose_skills(
    catalog: &Catalog,
    selector: &SkillSelector,
    assignment: &TaskAssignment,
    kind: PlanStepKind,
    rules: &SkillRules,
) -> StepSkills {
    if !rules.enabled {
        return StepSkills::default();
    }
    let max = match kind {
        PlanStepKind::Review => rules.review_max,
        _ => rules.impl_max,
    };
    let task = Task { hints: assignment.hints.clone(), ..Task::new(assignment.full_text()) };
    let settings =
        SelectionSettings { enabled: rules.chosen, max_skills: max, ..*selector.settings() };
    let selection = selector.with_settings(settings).select(&task);
    let (entries, mut errors) = resolve_picks(catalog, &selection, max);
    let budget =
        ActivationBudget { body_chars_max: rules.body_chars_max, ..ActivationBudget::default() };
    let references =
        if rules.references { ReferenceMode::Appended } else { ReferenceMode::OnDemand };
    let request = ActivationRequest { budget, references, ..ActivationRequest::default() };
    let activated = activate_skills(entries.iter().map(|(entry, _)| *entry), &request);
    let reason_of = |id: &str| {
        entries.iter().find(|(entry, _)| entry.id == id).map_or("", |(_, reason)| reason.as_str())
    };
    let loaded: Vec<String> =
        activated.activations.iter().map(|one| render_skill(one, reason_of(&one.id))).collect();
    errors.sort();
    let mut events = vec![Payload::SkillsSelected {
        step_kind: kind.as_str().to_owned(),
        task_label: assignment.label.clone(),
        skills: entries
            .iter()
            .map(|(entry, reason)| SelectedSkill { name: entry.id.clone(), reason: reason.clone() })
            .collect(),
        strategy: strategy_name(&selection, entries.is_empty()).to_owned(),
        errors,
    }];
    events.extend(
        activated.events.into_iter().map(|cut| Payload::SkillsTruncated {
            name: cut.name,
            max_chars: cut.max_chars as u64,
        }),
    );
    let names: Vec<String> = entries.iter().map(|(entry, _)| entry.id.clone()).collect();
    let available = render_available(catalog, selector, &task, &names, rules.listed_max);
    StepSkills { available, loaded: loaded.join("\n"), events, names }
}

/// The entries of the picks with their reasons, up to the limit, and messages about what was left
/// out.
fn resolve_picks<'c>(
    catalog: &'c Catalog,
    selection: &Selection,
    max: usize,
) -> (Vec<(&'c CatalogEntry, String)>, Vec<String>) {
    let mut errors: Vec<String> = selection
        .unresolved
        .iter()
        .map(|unknown| match &unknown.nearest {
            Some(near) => format!("there is no skill `{}`; `{near}` may be meant", unknown.named),
            None => format!("there is no skill `{}`", unknown.named),
        })
        .collect();
    let mut entries = Vec::new();
    for pick in &selection.picks {
        if entries.len() == max {
            if pick.strategy == PickStrategy::Hint {
                errors.push(format!("`{}` was named, but at most {max} are loaded", pick.name));
            }
            continue;
        }
        let reasons = pick.reasons.iter().take(REASONS_SHOWN).map(ToString::to_string);
        let reason = reasons.collect::<Vec<_>>().join("; ");
        match catalog.get(&pick.name) {
            Some(entry) => entries.push((entry, reason)),
            None => errors.push(format!("`{}` is gone", pick.name)),
        }
    }
    (entries, errors)
}

/// The strategy as the plan driver records it: `hint`, `match` or `none`. A trigger counts as a
/// match.
fn strategy_name(selection: &Selection, is_empty: bool) -> &'static str {
    match selection.strategy() {
        _ if is_empty => "none",
        "hint" => "hint",
        _ => "match",
    }
}

/// A trusted skill is rendered in the format of OpenSkills. Any other is wrapped with its origin.
fn render_skill(activation: &Activation, reason: &str) -> String {
    if activation.trust != TrustLevel::Trusted {
        return format!("{}\n", message::render_auto_loaded(activation, reason).text);
    }
    let dir = activation.origin.dir().as_str();
    openskills::read_block(&activation.name, dir, activation.body.trim_end())
}

fn render_available(
    catalog: &Catalog,
    selector: &SkillSelector,
    task: &Task,
    chosen: &[String],
    listed_max: usize,
) -> String {
    let ranked = selector.rank(task, listed_max);
    let mut order: Vec<&str> = chosen.iter().map(String::as_str).collect();
    order.extend(ranked.iter().map(|ranked| ranked.name.as_str()));
    order.extend(catalog.entries().iter().map(|entry| entry.id.as_str()));
    let mut seen = std::collections::BTreeSet::new();
    let offered: Vec<&CatalogEntry> = order
        .into_iter()
        .filter(|id| seen.insert(*id))
        .filter_map(|id| catalog.get(id))
        .filter(|entry| is_offered(entry))
        .collect();
    if offered.is_empty() {
        return String::new();
    }
    let descriptions: Vec<String> =
        offered.iter().take(listed_max).map(|entry| describe_skill(entry)).collect();
    let listed: Vec<openskills::OpenSkillsEntry<'_>> = offered
        .iter()
        .zip(&descriptions)
        .map(|(entry, description)| openskills::OpenSkillsEntry {
            name: &entry.id,
            description,
            location: match entry.skill.origin.scope {
                Scope::Project => SkillLocation::Project,
                _ => SkillLocation::Global,
            },
        })
        .collect();
    let mut out = openskills::render_block(&listed, OpenSkillsStyle::Repertoire);
    if offered.len() > listed.len() {
        let more = offered.len() - listed.len();
        out.push_str(&format!(
            "\n\n{more} more skills are not listed; `rep match \"WHAT YOU NEED\"` finds them."
        ));
    }
    out
}
