//! One entry of a configuration file: looked up, put in, and taken out again. Nothing here touches a disk.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Format, jsonc, tables};

/// Why a text was not changed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum EditError {
    /// Not written in its format.
    #[error("this is not {format}: {message}")]
    Syntax {
        /// The format.
        format: &'static str,
        /// What the parser says, with the place.
        message: String,
    },
    /// Something else stands where a list of servers, or the way to it, should be.
    #[error("{key} is {found}, not an object")]
    NotAnObject {
        /// The keys to it, or the whole file.
        key: String,
        /// What it is, with its article.
        found: &'static str,
    },
    /// A key that is there twice: which of them counts, only the client knows.
    #[error("`{0}` is there twice")]
    Twice(String),
    /// Another entry has the name.
    #[error("there is another entry called `{name}`: {found}")]
    Taken {
        /// The name.
        name: String,
        /// What it is.
        found: Box<Value>,
    },
    /// A form of writing that cannot be changed without touching the rest.
    #[error("`{key}` is written in a form that cannot be changed without touching the rest")]
    Form {
        /// The keys to it.
        key: String,
    },
}

/// What had to be made for an entry, so that it can be taken away again with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// How many of the objects around it, from the inside.
    #[serde(default)]
    pub objects: usize,
    /// Whether the object that it is in was an empty pair of braces on one line.
    #[serde(default)]
    pub opened: bool,
}

/// The place of an entry in a text.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// How the text is written.
    pub format: Format,
    /// The keys to the list of servers.
    pub keys: &'a [String],
    /// The name of the entry.
    pub name: &'a str,
}

impl Place<'_> {
    /// The entry, if there is one.
    ///
    /// # Errors
    ///
    /// [`EditError`].
    pub fn get(&self, text: &str) -> Result<Option<Value>, EditError> {
        match self.format {
            Format::Json | Format::Jsonc => jsonc::get(self, text),
            Format::Toml => tables::get(self, text),
        }
    }

    /// The text with the entry; nothing if it is there already.
    ///
    /// # Errors
    ///
    /// [`EditError`].
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

    /// The text without the entry, and without what was made for it; nothing if it is not there.
    ///
    /// # Errors
    ///
    /// [`EditError`].
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

    /// The first keys, as people write them.
    pub(super) fn key(&self, count: usize, name: Option<&str>) -> String {
        let keys = self.keys.iter().take(count).map(String::as_str);
        keys.chain(name).collect::<Vec<_>>().join(".")
    }
}

/// A text that holds nothing but the entry.
pub(super) fn whole(format: Format, keys: &[String], name: &str, entry: &Value) -> String {
    let place = Place { format, keys, name };
    match format {
        Format::Json | Format::Jsonc => jsonc::whole(&place, entry),
        Format::Toml => tables::whole(&place, entry, "\n"),
    }
}

/// Whether a text holds nothing at all, so that a file of it can go.
pub(super) fn is_bare(format: Format, text: &str) -> bool {
    match format {
        Format::Json | Format::Jsonc => {
            text.chars().filter(|c| !c.is_whitespace()).eq("{}".chars()) || text.trim().is_empty()
        }
        Format::Toml => text.trim().is_empty(),
    }
}
