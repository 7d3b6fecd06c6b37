//! Resolves blockers: a task by id, label or text, a phase by number, a section by title.

use repertoire_text::layout::one_line;
use std::collections::BTreeMap;

use super::{BlockerTarget, PlanDocument, PlanSection};
use crate::limits::PLAN_BLOCKERS_MAX;

/// Minimum number of characters for a prefix of a task's text to identify it.
const PREFIX_CHARS_MIN: usize = 8;
/// Maximum number of tasks a name may refer to; a name of more is too ambiguous to wait for.
const NAMED_MAX: usize = 50;
/// Maximum number of tasks in a range such as `T001-T009`.
const RANGE_MAX: u32 = 200;

/// Resolves every blocker of a plan. A blocker that names several targets becomes several blockers.
pub(super) fn resolve_blockers(plan: &mut PlanDocument) {
    let names = BlockerNames::from_plan(plan);
    let mut left = PLAN_BLOCKERS_MAX;
    let mut resolve = |blockers: &mut Vec<super::TaskBlocker>| {
        let mut out = Vec::with_capacity(blockers.len());
        for blocker in blockers.drain(..) {
            let mut targets = names.find_targets(&blocker.text);
            // An unresolved blocker blocks forever, so that nothing starts too early.
            if targets.is_empty() || targets.len() > left {
                targets.clear();
                targets.push(BlockerTarget::Nothing);
            }
            left = left.saturating_sub(targets.len());
            out.extend(targets.into_iter().map(|on| super::TaskBlocker { on, ..blocker.clone() }));
        }
        *blockers = out;
    };
    plan.tasks.iter_mut().for_each(|task| resolve(&mut task.blocked_by));
    plan.sections.iter_mut().for_each(|section| resolve(&mut section.blocked_by));
}

/// All names that blockers can refer to, in lower case.
struct BlockerNames {
    labels: BTreeMap<String, Vec<BlockerTarget>>,
    texts: BTreeMap<String, Vec<BlockerTarget>>,
    sections: BTreeMap<String, Vec<BlockerTarget>>,
}

impl BlockerNames {
    fn from_plan(plan: &PlanDocument) -> Self {
        let mut names = BlockerNames {
            labels: BTreeMap::new(),
            texts: BTreeMap::new(),
            sections: BTreeMap::new(),
        };
        for task in &plan.tasks {
            let on = BlockerTarget::Task(task.id.clone());
            for label in [Some(task.id.as_str()), task.label.as_deref()].into_iter().flatten() {
                let known = names.labels.entry(fold_text(label)).or_default();
                if known.len() < NAMED_MAX + 1 && !known.contains(&on) {
                    known.push(on.clone());
                }
            }
            let twins = names.texts.entry(fold_text(&task.text)).or_default();
            if twins.len() < NAMED_MAX + 1 {
                twins.push(on);
            }
        }
        for (at, section) in plan.sections.iter().enumerate() {
            let names_of = section_names(section);
            for name in names_of {
                names.sections.entry(name).or_default().push(BlockerTarget::Section(at));
            }
        }
        names
    }

    fn find_targets(&self, text: &str) -> Vec<BlockerTarget> {
        let wanted = fold_text(text.trim_start_matches('#'));
        let bare = wanted
            .strip_prefix("task ")
            .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let named = [Some(wanted.as_str()), bare].into_iter().flatten();
        for name in named {
            for names in [&self.labels, &self.texts, &self.sections] {
                if let Some(found) = names.get(name) {
                    return if found.len() > NAMED_MAX { Vec::new() } else { found.clone() };
                }
            }
        }
        if let Some(found) = normalise_phase(&wanted).and_then(|phase| self.sections.get(&phase)) {
            return found.clone();
        }
        let range = self.find_range(&wanted);
        if !range.is_empty() {
            return range;
        }
        self.find_by_prefix(&wanted)
    }

    /// The only task or section whose text starts with this prefix.
    fn find_by_prefix(&self, wanted: &str) -> Vec<BlockerTarget> {
        if wanted.chars().count() < PREFIX_CHARS_MIN {
            return Vec::new();
        }
        let matching = |names: &BTreeMap<String, Vec<BlockerTarget>>| {
            let mut found =
                names.range(wanted.to_owned()..).take_while(|(name, _)| name.starts_with(wanted));
            match (found.next(), found.next()) {
                (Some((_, found)), None) if found.len() == 1 => found.clone(),
                _ => Vec::new(),
            }
        };
        let tasks = matching(&self.texts);
        if tasks.is_empty() { matching(&self.sections) } else { tasks }
    }

    /// Resolves `t001-t004` to all existing tasks in the range. Empty if one of the ends does not exist.
    fn find_range(&self, wanted: &str) -> Vec<BlockerTarget> {
        let ends = ["..", "–", "-", " to "].iter().find_map(|sign| wanted.split_once(sign));
        let Some((from, to)) = ends.map(|(from, to)| (from.trim(), to.trim())) else {
            return Vec::new();
        };
        let (Some((head, digits, first)), Some((to_head, _, last))) =
            (split_label(from), split_label(to))
        else {
            return Vec::new();
        };
        let known = self.labels.contains_key(from) && self.labels.contains_key(to);
        if !known
            || (head != to_head && !to_head.is_empty())
            || last < first
            || last - first > RANGE_MAX
        {
            return Vec::new();
        }
        let label = |number: u32| format!("{head}{number:0digits$}");
        (first..=last)
            .filter_map(|number| self.labels.get(&label(number)))
            .flatten()
            .cloned()
            .collect()
    }
}

/// Splits a label into its prefix, the number of digits, and the number.
fn split_label(label: &str) -> Option<(String, usize, u32)> {
    let digits = label.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (head, number) = label.split_at(label.len() - digits);
    number.parse::<u32>().ok().map(|number| (head.to_owned(), digits, number))
}

/// The names of a section: its title, the title without its number, and the number.
fn section_names(section: &PlanSection) -> Vec<String> {
    let title = fold_text(&section.title);
    let mut names = vec![title.clone()];
    if let Some(phase) = section.phase {
        names.extend([format!("phase {phase}"), phase.to_string()]);
    }
    let number = title.split(['.', ':', ' ', ')']).next().unwrap_or_default();
    if !number.is_empty() && number.len() <= 4 && number.bytes().all(|byte| byte.is_ascii_digit()) {
        names.push(number.to_owned());
        names.push(
            title[number.len()..]
                .trim_start_matches(['.', ':', ')', ' ', '-', '–', '—'])
                .to_owned(),
        );
    }
    if let Some((before, after)) = title.split_once(':') {
        names.extend([before.trim().to_owned(), after.trim().to_owned()]);
    }
    if let Some(at) = title.find("user story ") {
        let number: String =
            title[at + 11..].chars().take_while(char::is_ascii_digit).take(4).collect();
        if !number.is_empty() {
            names.extend([format!("user story {number}"), format!("us{number}")]);
        }
    }
    names.retain(|name| !name.is_empty());
    names.sort();
    names.dedup();
    names
}

/// Normalises `phase-2`, `phase 2 (setup)` and `phase 2 complete` to `phase 2`.
fn normalise_phase(wanted: &str) -> Option<String> {
    let rest = wanted.strip_prefix("phase")?.trim_start_matches([' ', '-', '_']);
    let number: String = rest.chars().take_while(char::is_ascii_digit).take(6).collect();
    let after = &rest[number.len()..];
    (!number.is_empty() && !after.starts_with(char::is_alphanumeric))
        .then(|| format!("phase {}", number.trim_start_matches('0')))
}

fn fold_text(text: &str) -> String {
    one_line(text).to_lowercase()
}
