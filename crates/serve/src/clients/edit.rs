//! Looks up, adds and removes one entry in the text of a configuration file. Does no I/O.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Format, jsonc, tables};

/// The reason why a text was not changed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum EditError {
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
pub struct Made {
    /// The number of created objects around the entry, from the inside.
    #[serde(default)]
    pub objects: usize,
    /// True if the enclosing object was an empty pair of braces on one line.
    #[serde(default)]
    pub opened: bool,
}

/// The location of an entry in a text.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub format: Format,
    /// The keys of the path to the list of servers.
    pub keys: &'a [String],
    pub name: &'a str,
}

impl Place<'_> {
    /// The entry, if there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if the text cannot be parsed or a key is duplicated.
    pub fn get(&self, text: &str) -> Result<Option<Value>, EditError> {
        match self.format {
            Format::Json | Format::Jsonc => jsonc::get(self, text),
            Format::Toml => tables::get(self, text),
        }
    }

    /// The text with the entry added; `None` if it already contains it.
    ///
    /// # Errors
    ///
    /// Returns an error if the text cannot be edited or another entry has the name.
    pub fn set(&self, text: &str, entry: &Value) -> Result<Option<(String, Made)>, EditError> {
        match self.get(text)? {
            Some(found) if found == *entry => return Ok(None),
            Some(found) => {
                return Err(EditError::Taken {
                    name: self.name.to_owned(),
                    found: Box::new(found),
                });
            }
            None => {}
        }
        match self.format {
            Format::Json | Format::Jsonc => jsonc::set(self, text, entry),
            Format::Toml => tables::set(self, text, entry),
        }
        .map(Some)
    }

    /// The text without the entry, and without the objects created for it; `None` if there is no
    /// entry.
    ///
    /// # Errors
    ///
    /// Returns an error if the text cannot be edited.
    pub fn remove(&self, text: &str, made: Made) -> Result<Option<String>, EditError> {
        if self.get(text)?.is_none() {
            return Ok(None);
        }
        match self.format {
            Format::Json | Format::Jsonc => jsonc::remove(self, text, made),
            Format::Toml => tables::remove(self, text),
        }
        .map(Some)
    }

    pub(super) fn form(&self) -> EditError {
        EditError::Form { key: self.key(self.keys.len(), Some(self.name)) }
    }

    /// The path of the first `count` keys, with an optional name, joined with dots.
    pub(super) fn key(&self, count: usize, name: Option<&str>) -> String {
        let keys = self.keys.iter().take(count).map(String::as_str);
        keys.chain(name).collect::<Vec<_>>().join(".")
    }
}

/// A complete text with only the entry.
pub(super) fn whole(format: Format, keys: &[String], name: &str, entry: &Value) -> String {
    let place = Place { format, keys, name };
    match format {
        Format::Json | Format::Jsonc => jsonc::whole(&place, entry),
        Format::Toml => tables::whole(&place, entry, "\n"),
    }
}

/// Returns true if a text is empty, so that its file can be deleted.
pub(super) fn is_bare(format: Format, text: &str) -> bool {
    match format {
        Format::Json | Format::Jsonc => {
            text.chars().filter(|c| !c.is_whitespace()).eq("{}".chars()) || text.trim().is_empty()
        }
        Format::Toml => text.trim().is_empty(),
    }
}
