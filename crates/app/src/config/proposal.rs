//! The settings of a project that need consent: they start programs, give them network access, or
//! let them read more. They are in force only once the user has agreed to them.
//!
//! The digest that the user agrees to is computed from the same values that come into force, so
//! they cannot change in between.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_skill::trust::ActingSettings;
use repertoire_text::TextPosition;
use toml::Value;
use toml::de::DeTable;

use super::{ConfigKey, ConfigSetting, SetBy};

/// Keys whose tables are checks.
const CHECK_TABLES: &[&str] = &["plan.checks", "plan.final_checks"];
/// Fields of a check that only decide when and how often it runs. They may change without a new
/// consent.
const HARMLESS_CHECK_FIELDS: &[&str] = &["timeout", "critical", "depends_on", "retries"];

/// The settings of a project that need consent, as its files declare them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsProposal {
    /// The folder of the innermost file that declares some of them. The settings are the same in
    /// all folders below it, down to the next file.
    pub folder: Utf8PathBuf,
    /// The files, outermost first.
    pub files: Vec<Utf8PathBuf>,
    pub settings: ActingSettings,
}

impl SettingsProposal {
    pub(super) fn from_settings(proposed: &[ConfigSetting]) -> Option<Self> {
        let files: BTreeSet<&Utf8Path> =
            proposed.iter().filter_map(|one| Some(one.file.as_ref()?.path.as_path())).collect();
        // All files lie on one path from the project's root, so the longest folder is the
        // innermost.
        let folder = files.iter().filter_map(|file| file.parent());
        let folder = folder.max_by_key(|folder| folder.as_str().len())?;
        let mut settings = ActingSettings::default();
        for setting in proposed {
            if let Some(value) = &setting.value {
                add_setting(&mut settings, setting.key.name, value);
            }
        }
        let folder = folder.canonicalize_utf8().unwrap_or_else(|_| folder.to_owned());
        Some(SettingsProposal {
            folder,
            files: files.into_iter().map(Utf8Path::to_owned).collect(),
            settings,
        })
    }

    /// Returns true if the settings include one of these keys.
    pub fn concerns(&self, keys: &[&ConfigKey]) -> bool {
        let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
        !self.settings.select_keys(&names).is_empty()
    }

    /// Returns true if every file lies in one of these folders, which must be canonical.
    pub fn lies_in(&self, folders: &[Utf8PathBuf]) -> bool {
        let lies = |file: &Utf8PathBuf| {
            let file = file.canonicalize_utf8();
            file.is_ok_and(|file| folders.iter().any(|folder| file.starts_with(folder)))
        };
        !self.files.is_empty() && self.files.iter().all(lies)
    }
}

/// Returns true if a project's value needs the user's consent. Empty values and `false` don't,
/// since they only switch something off.
pub(super) fn is_acting(key: &ConfigKey, value: Option<&Value>) -> bool {
    let switches_off = match value {
        Some(Value::Boolean(on)) => !on,
        Some(Value::Array(list)) => list.is_empty(),
        Some(Value::Table(table)) => table.is_empty(),
        Some(Value::String(text)) => text.trim().is_empty(),
        _ => false,
    };
    key.set_by == SetBy::UserOrConsentedProject && !switches_off
}

/// Adds a key with its value; tables are added field by field.
fn add_setting(settings: &mut ActingSettings, key: &str, value: &Value) {
    match value {
        Value::Table(checks) if CHECK_TABLES.contains(&key) && !checks.is_empty() => {
            for (name, check) in checks {
                add_check(settings, &format!("{key}.{}", quote_key_part(name)), check);
            }
        }
        Value::Table(fields) if !fields.is_empty() => {
            for (name, field) in fields {
                add_setting(settings, &format!("{key}.{}", quote_key_part(name)), field);
            }
        }
        value => settings.insert(key, as_json(value)),
    }
}

fn add_check(settings: &mut ActingSettings, key: &str, check: &Value) {
    let Value::Table(fields) = check else { return settings.insert(key, as_json(check)) };
    for (name, field) in fields {
        let closes_network = name == "network" && *field == Value::Boolean(false);
        if !HARMLESS_CHECK_FIELDS.contains(&name.as_str()) && !closes_network {
            add_setting(settings, &format!("{key}.{}", quote_key_part(name)), field);
        }
    }
}

/// Formats a value canonically on one line.
fn as_json(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| value.to_string())
}

/// Quotes a part of a key unless it is plain, so that the key `a.b` differs from `b` in the table
/// `a`.
fn quote_key_part(part: &str) -> String {
    let is_plain = !part.is_empty()
        && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if is_plain { part.to_owned() } else { as_json(&Value::from(part)) }
}

/// Returns the line of a key, given its path through the tables of a file.
pub(super) fn line_within(text: &str, path: &[&str]) -> Option<usize> {
    let parsed = DeTable::parse(text).ok()?;
    let mut table = parsed.get_ref();
    let (last, above) = path.split_last()?;
    for part in above {
        let (_, value) = table.iter().find(|(key, _)| key.get_ref() == part)?;
        table = value.get_ref().as_table()?;
    }
    let (key, _) = table.iter().find(|(key, _)| key.get_ref() == last)?;
    Some(TextPosition::of_offset(text, key.span().start).line as usize)
}

#[cfg(test)]
#[path = "proposal_tests.rs"]
mod tests;
