//! Checks of what a layer sets: the key exists, and the value can be read as one of it. Mistakes are named with their
//! place and a suggestion.

use repertoire_skill::name::nearest_name;
use repertoire_skill::profile::ProfileId;
use toml::Value;

use super::{ConfigKey, ConfigValueKind, KEYS};
use crate::error::AppError;

/// Returns the key of a name.
pub(super) fn find_key(name: &str, place: &str) -> Result<&'static ConfigKey, AppError> {
    KEYS.iter().copied().find(|key| key.name == name).ok_or_else(|| {
        let failure =
            AppError::wrong_usage(format!("{place}: `{name}` is not a configuration key"));
        match nearest_name(name, KEYS.iter().map(|key| key.name)) {
            Some(near) => failure.hint(format!("Did you mean `{near}`?")),
            None => failure.hint(format!("The keys are {}.", keys_near(name).join(", "))),
        }
    })
}

/// Suggests keys: those of the same section, or else all, with each section shortened to one entry.
fn keys_near(name: &str) -> Vec<String> {
    let wanted = section_of(name);
    let names = KEYS.iter().map(|key| key.name);
    let beside: Vec<String> = names
        .clone()
        .filter(|name| wanted.is_some() && section_of(name) == wanted)
        .map(str::to_owned)
        .collect();
    if !beside.is_empty() {
        return beside;
    }
    let mut all: Vec<String> = names
        .map(|name| {
            section_of(name).map_or_else(|| name.to_owned(), |section| format!("{section}.…"))
        })
        .collect();
    all.dedup();
    all
}

fn section_of(name: &str) -> Option<&str> {
    name.split_once('.').map(|(section, _)| section)
}

/// Fails if the key cannot have this value.
pub(super) fn check_value(key: &ConfigKey, value: &Value, place: &str) -> Result<(), AppError> {
    if (key.accepts)(value) {
        return Ok(());
    }
    let (name, expected) = (key.name, describe_expected(key.shape));
    if key.shape == ConfigValueKind::Table && value.is_array() {
        return Err(AppError::wrong_usage(format!(
            "{place}: `{name}` is a list, but should be {expected}"
        ))
        .hint(format!("Write `[{name}.NAME]` instead of `[[{name}]]`.")));
    }
    Err(AppError::wrong_usage(format!("{place}: `{name}` is {value}, but should be {expected}")))
}

fn describe_expected(kind: ConfigValueKind) -> String {
    let text = match kind {
        ConfigValueKind::Bool => "`true` or `false`",
        ConfigValueKind::Number => "a whole number from 0",
        ConfigValueKind::Share => "a number from 0 to 1",
        ConfigValueKind::Text | ConfigValueKind::Secret => "a text",
        ConfigValueKind::Texts => "a list of texts",
        ConfigValueKind::Amount => "a number from 0",
        ConfigValueKind::Duration => "a time, as `90s`, `10m` or `1h`",
        ConfigValueKind::Size => "a size, as `512MiB`, `2GiB` or a number of bytes",
        ConfigValueKind::Model => "the name of a model: anthropic/NAME, openai/NAME or compat/NAME",
        ConfigValueKind::Rules => "a list of rules, as `bash(git status:*)`",
        ConfigValueKind::Table => "a table",
        ConfigValueKind::Path => "a path",
        ConfigValueKind::Paths => "a list of paths",
        ConfigValueKind::Word(words) => return format!("one of {}", words.join(", ")),
        ConfigValueKind::Profile => {
            let words: Vec<&str> = ProfileId::ALL.iter().map(|id| id.as_str()).collect();
            return format!("one of {}", words.join(", "));
        }
    };
    text.to_owned()
}
