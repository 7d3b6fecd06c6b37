//! Generates `docs/reference/configuration.md`: every key, from the table that `rep` itself uses.

use repertoire::config::{ConfigKey, ConfigValueKind, KEYS, SetBy, variable_of};
use repertoire_skill::profile::ProfileId;

use crate::markdown::{GENERATED, table_cell, table_header, table_row};

const INTRODUCTION: &str = include_str!("configuration.md");

pub(crate) fn render_page() -> String {
    let mut out = format!("{GENERATED}{INTRODUCTION}\n## Keys\n\n");
    let columns = ["key", "type", "default", "environment variable", "set by", "description"];
    out.push_str(&table_header(&columns));
    for key in KEYS {
        let name = format!("`{}`", key.name);
        let variable = format!("`{}`", variable_of(key.name));
        let by = match key.set_by {
            SetBy::Anyone => "user or project",
            SetBy::UserOrConsentedProject => "user, or project with consent",
            SetBy::UserOrBaseBranch => "user or base branch",
            SetBy::User => "user",
        };
        out.push_str(&table_row(&[
            &name,
            &describe_shape(key),
            &describe_default(key),
            &variable,
            by,
            &table_cell(key.about),
        ]));
    }
    out
}

fn describe_default(key: &ConfigKey) -> String {
    match key.default {
        "" => "not set".to_owned(),
        text => format!("`{text}`"),
    }
}

fn describe_shape(key: &ConfigKey) -> String {
    match key.shape {
        ConfigValueKind::Bool => "boolean".to_owned(),
        ConfigValueKind::Number => "integer".to_owned(),
        ConfigValueKind::Share => "number from 0 to 1".to_owned(),
        ConfigValueKind::Path => "path".to_owned(),
        ConfigValueKind::Paths => "list of paths".to_owned(),
        ConfigValueKind::Text => "string".to_owned(),
        ConfigValueKind::Texts => "list of strings".to_owned(),
        ConfigValueKind::Secret => "string, never shown".to_owned(),
        ConfigValueKind::Amount => "number, 0 or more".to_owned(),
        ConfigValueKind::Duration => "duration, such as `90s`, `10m`, `1h`".to_owned(),
        ConfigValueKind::Size => "size, such as `512MiB`, `2GiB`, or a number of bytes".to_owned(),
        ConfigValueKind::Model => "`service/model`".to_owned(),
        ConfigValueKind::Rules => "list of rules".to_owned(),
        ConfigValueKind::Table => "table".to_owned(),
        ConfigValueKind::Word(words) => {
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        }
        ConfigValueKind::Profile => {
            let words: Vec<String> =
                ProfileId::ALL.iter().map(|id| format!("`{}`", id.as_str())).collect();
            words.join(", ")
        }
    }
}
