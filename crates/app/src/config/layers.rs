//! Reads the layers in their order: defaults, files, the environment. A mistake in one setting does not keep the
//! others from being read.

use std::sync::LazyLock;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::{TextPosition, fs};
use toml::Value;

use super::key_checks::{check_value, find_key};
use super::origin::SettingsFile;
use super::{ConfigKey, ConfigOrigin, ConfigSetting, ConfigValueKind, KEYS, SetBy, proposal};
use crate::env::AppEnvironment;
use crate::error::AppError;

const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The settings while the layers are read.
pub(super) struct ConfigLayers {
    /// One setting a key, in the order of [`KEYS`].
    pub(super) settings: Vec<ConfigSetting>,
    /// Settings of the project that need consent.
    pub(super) proposed: Vec<ConfigSetting>,
    /// Mistakes in files and variables, in reading order.
    pub(super) problems: Vec<AppError>,
}

impl ConfigLayers {
    pub(super) fn new(here: &Utf8Path) -> Self {
        ConfigLayers {
            settings: default_settings(here),
            proposed: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Applies a file, if it exists.
    pub(super) fn apply_file(&mut self, path: Utf8PathBuf, from_project: bool) {
        match fs::read_text(&path, FILE_BYTES_MAX) {
            Ok(text) => {
                let file = SettingsFile { path, committed_as: None, text: text.into() };
                self.apply_text(&file, from_project);
            }
            Err(fs::ReadError::NotFound) => {}
            Err(error) => {
                let message = format!("{path} cannot be read: {error}");
                self.problems.push(AppError::cannot_run(message));
            }
        }
    }

    pub(super) fn apply_text(&mut self, file: &SettingsFile, from_project: bool) {
        let parsed: Result<toml::Table, toml::de::Error> = file.text.parse();
        match parsed {
            Ok(table) => {
                for (name, value) in flatten_tables(table) {
                    if let Err(problem) = self.apply_setting(file, from_project, (&name, value)) {
                        self.problems.push(problem);
                    }
                }
            }
            Err(error) => {
                let line = error
                    .span()
                    .map_or(1, |span| TextPosition::of_offset(&file.text, span.start).line);
                let line = usize::try_from(line).unwrap_or(usize::MAX);
                let place = file.format_location(line);
                let message = format!("{place} is not valid TOML: {}", error.message());
                self.problems.push(AppError::wrong_usage(message));
            }
        }
    }

    fn apply_setting(
        &mut self,
        file: &SettingsFile,
        from_project: bool,
        (name, value): (&str, Value),
    ) -> Result<(), AppError> {
        let place = file.format_location(file.line_of_key(name));
        let key = find_key(name, &place)?;
        let value = match key.shape {
            ConfigValueKind::Rules if from_project => self.append_rules(key, value),
            _ => value,
        };
        if key.set_by == SetBy::User && from_project {
            return Err(AppError::wrong_usage(format!("{place}: `{name}` may not be set by a project")).hint(
                "Set it in your own `~/.config/repertoire/repertoire.toml`: projects may not decide this.",
            ));
        }
        check_value(key, &value, &place)?;
        self.put_setting(ConfigSetting {
            key,
            value: Some(value),
            origin: ConfigOrigin::File(place),
            base: file.path.parent().unwrap_or(Utf8Path::new(".")).to_owned(),
            from_project,
            file: Some(file.clone()),
        });
        Ok(())
    }

    /// Appends a project's rules to the user's, so that a project can forbid more but not less.
    fn append_rules(&self, key: &ConfigKey, value: Value) -> Value {
        let before = self.settings.iter().find(|setting| setting.key == key);
        let before = before.and_then(|setting| setting.value.as_ref()).and_then(Value::as_array);
        match value {
            Value::Array(own) => {
                Value::Array(before.into_iter().flatten().cloned().chain(own).collect())
            }
            other => other,
        }
    }

    /// Applies a setting. If it comes from a project and starts programs, it is only proposed.
    fn put_setting(&mut self, new: ConfigSetting) {
        self.proposed.retain(|setting| setting.key != new.key);
        if new.from_project && proposal::is_acting(new.key, new.value.as_ref()) {
            self.proposed.push(new);
        } else {
            replace_setting(&mut self.settings, new);
        }
    }

    pub(super) fn apply_environment(&mut self, env: &AppEnvironment, here: &Utf8Path) {
        for key in KEYS {
            let variable = variable_of(key.name);
            let Some(text) = env.var(&variable) else { continue };
            let value = read_variable(key.shape, text).unwrap_or_else(|| Value::from(text));
            match check_value(key, &value, &format!("${variable}")) {
                Ok(()) => self.set_by_user(key, value, ConfigOrigin::Environment(variable), here),
                Err(problem) => self.problems.push(problem),
            }
        }
        // Environment variables are the user's, so they override the project.
        let settings = &self.settings;
        let by_environment = |key: &ConfigKey| {
            let mut all = settings.iter().filter(|setting| setting.key == key);
            all.any(|setting| matches!(setting.origin, ConfigOrigin::Environment(_)))
        };
        self.proposed.retain(|setting| !by_environment(setting.key));
    }

    /// Applies a value of a variable or a flag.
    pub(super) fn set_by_user(
        &mut self,
        key: &'static ConfigKey,
        value: Value,
        origin: ConfigOrigin,
        here: &Utf8Path,
    ) {
        let (value, base) = (Some(value), here.to_owned());
        let new = ConfigSetting { key, value, origin, base, from_project: false, file: None };
        replace_setting(&mut self.settings, new);
    }
}

/// Replaces the setting of the same key.
pub(super) fn replace_setting(settings: &mut [ConfigSetting], new: ConfigSetting) {
    if let Some(old) = settings.iter_mut().find(|old| old.key == new.key) {
        *old = new;
    }
}

/// Returns the environment variable of a key.
pub fn variable_of(name: &str) -> String {
    format!("REPERTOIRE_{}", name.replace('.', "_").to_uppercase())
}

/// Reads the text of a variable. `None` if it is no value of this kind.
fn read_variable(kind: ConfigValueKind, text: &str) -> Option<Value> {
    match kind {
        ConfigValueKind::Bool => text.parse().map(Value::Boolean).ok(),
        ConfigValueKind::Number => text.parse().map(Value::Integer).ok(),
        ConfigValueKind::Share | ConfigValueKind::Amount => text.parse().map(Value::Float).ok(),
        ConfigValueKind::Rules | ConfigValueKind::Texts => {
            let items = text.split(';').map(str::trim).filter(|item| !item.is_empty());
            Some(Value::Array(items.map(Value::from).collect()))
        }
        ConfigValueKind::Table => parse_toml_value(text),
        ConfigValueKind::Path
        | ConfigValueKind::Profile
        | ConfigValueKind::Text
        | ConfigValueKind::Secret
        | ConfigValueKind::Duration
        | ConfigValueKind::Size
        | ConfigValueKind::Model
        | ConfigValueKind::Word(_) => Some(Value::from(text)),
        ConfigValueKind::Paths => {
            // An empty item would mean the working folder, which is never intended.
            let items = text.split(':').filter(|item| !item.is_empty());
            Some(Value::Array(items.map(Value::from).collect()))
        }
    }
}

/// Returns the defaults of all keys.
pub(super) fn default_settings(here: &Utf8Path) -> Vec<ConfigSetting> {
    static DEFAULTS: LazyLock<Vec<Option<Value>>> =
        LazyLock::new(|| KEYS.iter().map(|key| parse_toml_value(key.default)).collect());
    let settings = KEYS.iter().zip(DEFAULTS.iter()).map(|(key, value)| ConfigSetting {
        key,
        value: value.clone(),
        origin: ConfigOrigin::Default,
        base: here.to_owned(),
        from_project: false,
        file: None,
    });
    settings.collect()
}

fn parse_toml_value(text: &str) -> Option<Value> {
    let text = format!("value = {text}");
    text.parse::<toml::Table>().ok().and_then(|mut table| table.remove("value"))
}

/// Flattens tables: `[walk] depth_max` becomes `walk.depth_max`. `[skills.auto_trigger]` is an
/// alias of `[auto_trigger]`.
fn flatten_tables(table: toml::Table) -> Vec<(String, Value)> {
    let mut out = Vec::new();
    for (name, value) in table {
        let is_whole =
            KEYS.iter().any(|key| key.name == name && key.shape == ConfigValueKind::Table);
        match value {
            Value::Table(inner) if name == "skills" => {
                let (same, other): (toml::Table, toml::Table) =
                    inner.into_iter().partition(|(key, _)| key == "auto_trigger");
                out.extend(flatten_tables(same));
                out.extend(other.into_iter().map(|(key, value)| (format!("skills.{key}"), value)));
            }
            Value::Table(inner) if !is_whole => out.extend(flatten_nested(&name, inner)),
            value => out.push((name, value)),
        }
    }
    out
}

/// Flattens a table below `name`. Tables that are values themselves are kept whole.
fn flatten_nested(name: &str, table: toml::Table) -> Vec<(String, Value)> {
    let mut out = Vec::new();
    for (key, value) in table {
        let path = format!("{name}.{key}");
        let deeper = KEYS.iter().any(|key| {
            key.name.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with('.'))
        });
        match value {
            Value::Table(inner) if deeper => out.extend(flatten_nested(&path, inner)),
            value => out.push((path, value)),
        }
    }
    out
}
