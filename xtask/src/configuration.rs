//! Generates `docs/configuration.md`: every key, from the table that `rep` itself uses.

use repertoire_cli::config::{KEYS, Key, SetBy, Shape, variable_of};
use repertoire_skill::profile::ProfileId;

use crate::markdown::{GENERATED, cell, header, row};

const INTRODUCTION: &str = include_str!("configuration.md");

pub(crate) fn page() -> String {
    let mut out = format!("{GENERATED}{INTRODUCTION}\n## Keys\n\n");
    let columns = ["key", "type", "default", "environment variable", "set by", "what it does"];
    out.push_str(&header(&columns));
    for key in KEYS {
        let name = format!("`{}`", key.name);
        let variable = format!("`{}`", variable_of(key.name));
        let by = match key.set_by {
            SetBy::Anyone => "you or a project",
            SetBy::UserOrConsentedProject => "you, or a project with your consent",
            SetBy::UserOrBaseBranch => "you or the base branch",
            SetBy::User => "you",
        };
        out.push_str(&row(&[&name, &shape(key), &default(key), &variable, by, &cell(key.about)]));
    }
    out
}

fn default(key: &Key) -> String {
    match key.default {
        "" => "not set".to_owned(),
        text => format!("`{text}`"),
    }
}

fn shape(key: &Key) -> String {
    match key.shape {
        Shape::Bool => "`true` or `false`".to_owned(),
        Shape::Number => "whole number".to_owned(),
        Shape::Share => "number from 0 to 1".to_owned(),
        Shape::Path => "path".to_owned(),
        Shape::Paths => "list of paths".to_owned(),
        Shape::Text => "text".to_owned(),
        Shape::Texts => "list of texts".to_owned(),
        Shape::Secret => "text, never shown".to_owned(),
        Shape::Amount => "number from 0".to_owned(),
        Shape::Duration => "time, as `90s`, `10m`, `1h`".to_owned(),
        Shape::Size => "size, as `512MiB`, `2GiB`, or a number of bytes".to_owned(),
        Shape::Model => "`service/model`".to_owned(),
        Shape::Rules => "list of rules".to_owned(),
        Shape::Table => "table".to_owned(),
        Shape::Word(words) => {
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        }
        Shape::Profile => {
            let words: Vec<String> =
                ProfileId::ALL.iter().map(|id| format!("`{}`", id.as_str())).collect();
            words.join(", ")
        }
    }
}
