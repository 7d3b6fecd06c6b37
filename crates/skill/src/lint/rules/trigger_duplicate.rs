//! Finds the same keyword or pattern in two skills, which then cannot be told apart by it. Events may be
//! shared, since several skills may handle one event.

use std::collections::BTreeMap;

use repertoire_text::Diagnostic;

use crate::catalog::CatalogEntry;
use crate::codes;

pub(in crate::lint) fn check(entries: &[CatalogEntry], out: &mut Vec<Diagnostic>) {
    let mut owners: BTreeMap<String, &CatalogEntry> = BTreeMap::new();
    for entry in entries {
        let triggers = &entry.skill.triggers;
        let keywords = triggers.keywords.iter().map(|word| ("keyword", word));
        let patterns = triggers.patterns.iter().map(|word| ("pattern", word));
        for (what, trigger) in keywords.chain(patterns) {
            let key = format!("{what} {}", trigger.to_lowercase());
            match owners.get(&key) {
                None => {
                    owners.insert(key, entry);
                }
                Some(owner) if owner.id == entry.id => {}
                Some(owner) => out.push(duplicate_diagnostic(entry, owner, what, trigger)),
            }
        }
    }
}

fn duplicate_diagnostic(
    entry: &CatalogEntry,
    owner: &CatalogEntry,
    what: &str,
    trigger: &str,
) -> Diagnostic {
    let code = &codes::TRIGGER_DUPLICATE;
    let message = format!("the {what} `{trigger}` is also a trigger of `{}`", owner.id);
    let found = Diagnostic::new(code, message).help(code.remedy);
    let skill = &entry.skill;
    match skill.frontmatter.entries.iter().find(|field| field.key == "triggers") {
        Some(field) => found.at(&skill.source, field.key_span),
        None => found.in_file(skill.source.path()),
    }
}
