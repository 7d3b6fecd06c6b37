//! Looks up, adds and removes one entry in the text of a configuration file. Does no I/O.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ConfigFormat, jsonc_entry, toml_entry};

/// The reason why a text was not changed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum EntryEditError {
    /// The text has a syntax error.
    #[error("this is not {format}: {message}")]
    Syntax {
        format: &'static str,
        /// The parser's message, with the position.
        message: String,
    },
    /// There is something other than an object on the path to the list of servers.
    #[error("{key} is {found}, not an object")]
    NotAnObject {
        /// The path, or "the file".
        key: String,
        /// The type of the value, with its article.
        found: &'static str,
    },
    /// A duplicate key: clients differ in which one they use.
    #[error("`{0}` is there twice")]
    Twice(String),
    /// Another entry has the name.
    #[error("there is another entry called `{name}`: {found}")]
    Taken { name: String, found: Box<Value> },
    /// The syntax cannot be edited without changing other parts of the text.
    #[error("`{key}` is written in a form that cannot be changed without touching the rest")]
    Form { key: String },
}

/// The objects created for an entry, so that they can be removed with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CreatedObjects {
    /// The number of created objects around the entry, from the inside.
    #[serde(default)]
    pub(crate) objects: usize,
    /// True if the enclosing object was an empty pair of braces on one line.
    #[serde(default)]
    pub(crate) opened: bool,
}

/// The location of an entry in a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryLocation<'a> {
    pub(crate) format: ConfigFormat,
    /// The keys of the path to the list of servers.
    pub(crate) keys: &'a [String],
    pub(crate) name: &'a str,
}

impl EntryLocation<'_> {
    /// The entry, if there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if the text cannot be parsed or a key is duplicated.
    pub(crate) fn get_entry(&self, text: &str) -> Result<Option<Value>, EntryEditError> {
        match self.format {
            ConfigFormat::Json | ConfigFormat::Jsonc => jsonc_entry::get_entry(self, text),
            ConfigFormat::Toml => toml_entry::get_entry(self, text),
        }
    }

    /// The text with the entry added; `None` if it already contains it.
    ///
    /// # Errors
    ///
    /// Returns an error if the text cannot be edited or another entry has the name.
    pub(crate) fn add_entry(
        &self,
        text: &str,
        entry: &Value,
    ) -> Result<Option<(String, CreatedObjects)>, EntryEditError> {
        match self.get_entry(text)? {
            Some(found) if found == *entry => return Ok(None),
            Some(found) => {
                return Err(EntryEditError::Taken {
                    name: self.name.to_owned(),
                    found: Box::new(found),
                });
            }
            None => {}
        }
        match self.format {
            ConfigFormat::Json | ConfigFormat::Jsonc => jsonc_entry::add_entry(self, text, entry),
            ConfigFormat::Toml => toml_entry::add_entry(self, text, entry),
        }
        .map(Some)
    }

    /// The text without the entry, and without the objects created for it; `None` if there is no
    /// entry.
    ///
    /// # Errors
    ///
    /// Returns an error if the text cannot be edited.
    pub(crate) fn remove_entry(
        &self,
        text: &str,
        made: CreatedObjects,
    ) -> Result<Option<String>, EntryEditError> {
        if self.get_entry(text)?.is_none() {
            return Ok(None);
        }
        match self.format {
            ConfigFormat::Json | ConfigFormat::Jsonc => jsonc_entry::remove_entry(self, text, made),
            ConfigFormat::Toml => toml_entry::remove_entry(self, text),
        }
        .map(Some)
    }

    pub(super) fn unsupported_form(&self) -> EntryEditError {
        EntryEditError::Form { key: self.key_path(self.keys.len(), Some(self.name)) }
    }

    /// The path of the first `count` keys, with an optional name, joined with dots.
    pub(super) fn key_path(&self, count: usize, name: Option<&str>) -> String {
        let keys = self.keys.iter().take(count).map(String::as_str);
        keys.chain(name).collect::<Vec<_>>().join(".")
    }
}

/// A complete text with only the entry.
pub(super) fn render_file(
    format: ConfigFormat,
    keys: &[String],
    name: &str,
    entry: &Value,
) -> String {
    let place = EntryLocation { format, keys, name };
    match format {
        ConfigFormat::Json | ConfigFormat::Jsonc => jsonc_entry::render_file(&place, entry),
        ConfigFormat::Toml => toml_entry::render_table(&place, entry, "\n"),
    }
}

/// Returns true if a text is empty, so that its file can be deleted.
pub(super) fn is_bare(format: ConfigFormat, text: &str) -> bool {
    match format {
        ConfigFormat::Json | ConfigFormat::Jsonc => {
            text.chars().filter(|c| !c.is_whitespace()).eq("{}".chars()) || text.trim().is_empty()
        }
        ConfigFormat::Toml => text.trim().is_empty(),
    }
}
