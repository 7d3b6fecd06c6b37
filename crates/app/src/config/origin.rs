//! Settings with their origins: the layer that a value comes from, and its place in a file, for messages.

use std::sync::Arc;

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::Serialize;
use toml::Value;

use super::{ConfigKey, ConfigValueKind, RepConfig, proposal};

/// The origin of a setting's value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase", tag = "kind", content = "at")]
pub enum ConfigOrigin {
    /// The built-in default.
    Default,
    /// A configuration file, with the line.
    File(String),
    /// An environment variable.
    Environment(String),
    /// A flag on the command line.
    Flag(String),
}

/// The value of a key, with its origin.
#[derive(Clone, Debug)]
pub struct ConfigSetting {
    pub key: &'static ConfigKey,
    /// `None` if the key is not set and has no default.
    pub value: Option<Value>,
    pub origin: ConfigOrigin,
    /// The folder that relative paths start from.
    pub(super) base: Utf8PathBuf,
    /// True if the value comes from the project's files, which may be untrusted.
    pub(super) from_project: bool,
    /// `None` if the value does not come from a file.
    pub(super) file: Option<SettingsFile>,
}

impl ConfigSetting {
    /// Returns the value for display. Secrets are replaced by a placeholder.
    pub fn display_value(&self) -> Option<Value> {
        if self.key.shape == ConfigValueKind::Secret {
            self.value.as_ref().map(|_| Value::from("(set, not shown)"))
        } else {
            self.value.clone()
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct SettingsFile {
    pub(super) path: Utf8PathBuf,
    /// The name in messages, if the file was read from a commit.
    pub(super) committed_as: Option<String>,
    pub(super) text: Arc<str>,
}

impl SettingsFile {
    /// Returns the location of a line, for messages.
    pub(super) fn format_location(&self, line: usize) -> String {
        match &self.committed_as {
            Some(name) => format!("{name}, line {line}"),
            None => format!("{}:{line}", self.path),
        }
    }

    /// Returns the line of a key. 1 if it is written in a way that this does not know.
    pub(super) fn line_of_key(&self, name: &str) -> usize {
        let last = name.rsplit('.').next().unwrap_or(name);
        let starts = |line: &str| {
            let rest = line.trim_start();
            rest.strip_prefix(last)
                .or_else(|| rest.strip_prefix(name))
                .is_some_and(|rest| rest.trim_start().starts_with('='))
                || rest.starts_with('[')
                    && rest
                        .trim_start_matches('[')
                        .strip_prefix(name)
                        .is_some_and(|rest| rest.starts_with([']', '.']))
        };
        self.text.lines().position(starts).map_or(1, |at| at + 1)
    }
}

impl RepConfig {
    /// Returns true if the value is not the default.
    pub fn is_set(&self, key: &ConfigKey) -> bool {
        self.get_setting(key).is_some_and(|setting| setting.origin != ConfigOrigin::Default)
    }

    /// Returns true if the value comes from the project's files, which may be untrusted.
    pub fn is_from_project(&self, key: &ConfigKey) -> bool {
        self.get_setting(key).is_some_and(|setting| setting.from_project)
    }

    /// Returns the origin of a value, for messages.
    pub fn describe_origin(&self, key: &ConfigKey) -> String {
        match self.get_setting(key).map(|setting| &setting.origin) {
            Some(ConfigOrigin::File(place)) => place.clone(),
            Some(ConfigOrigin::Environment(variable)) => format!("${variable}"),
            Some(ConfigOrigin::Flag(flag)) => flag.clone(),
            Some(ConfigOrigin::Default) | None => "the default".to_owned(),
        }
    }

    /// Returns the location of a part of a table, for messages. `path` leads into the table of the
    /// key.
    pub fn place_within(&self, key: &ConfigKey, path: &[&str]) -> String {
        let exact = |file: &SettingsFile| {
            let parts: Vec<&str> = key.name.split('.').chain(path.iter().copied()).collect();
            let line = proposal::line_within(&file.text, &parts)?;
            Some(file.format_location(line))
        };
        let file = self.get_setting(key).and_then(|setting| setting.file.as_ref());
        file.and_then(exact).unwrap_or_else(|| self.describe_origin(key))
    }

    pub(super) fn get_setting(&self, key: &ConfigKey) -> Option<&ConfigSetting> {
        self.settings.iter().find(|setting| setting.key == key)
    }
}
