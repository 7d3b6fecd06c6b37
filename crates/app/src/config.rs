//! The configuration. Layers, later ones winning: defaults, the user's file, the project's files,
//! the environment, flags. Every value keeps its origin, and an unknown key is an error with a
//! suggestion.
//!
//! The keys are a table, so that `rep config`, the documentation and the schema cannot disagree.
//!
//! Settings of a project that start programs are kept apart as a proposal until the user has agreed
//! to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_github::base::BaseCheckout;
use repertoire_model::ModelName;
use repertoire_select::SelectionSettings;
use repertoire_select::settings::StepKind;
use repertoire_skill::discover::DiscoveryRequest;
use repertoire_skill::name::nearest_name;
use repertoire_skill::profile::{ProfileId, Root, SearchDirectories};
use repertoire_skill::skill::{ContentDigest, Scope};
use repertoire_skill::trust::{TrustLock, TrustLockError};
use repertoire_text::duration::parse_duration;
use repertoire_text::{TextPosition, fs};
use schemars::JsonSchema;
use serde::Serialize;
use toml::Value;

use crate::env::AppEnvironment;
use crate::error::AppError;

mod github_settings;
mod keys;
mod proposal;

pub use keys::{ConfigKey, ConfigValueKind, KEYS, SetBy};
pub use proposal::SettingsProposal;

/// Name of the configuration file, in a project and in the user's configuration folder.
pub const FILE_NAME: &str = "repertoire.toml";
const FILE_BYTES_MAX: u64 = 1024 * 1024;

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
    pub name: &'static str,
    /// `None` if the key is not set and has no default.
    pub value: Option<Value>,
    pub origin: ConfigOrigin,
    /// The folder that relative paths start from.
    base: Utf8PathBuf,
    /// True if the value comes from the project's files, which may be untrusted.
    from_project: bool,
    /// `None` if the value does not come from a file.
    file: Option<SettingsFile>,
}

#[derive(Clone, Debug)]
struct SettingsFile {
    path: Utf8PathBuf,
    /// The name in messages, if the file was read from a commit.
    committed_as: Option<String>,
    text: Arc<str>,
}

impl SettingsFile {
    /// Returns the location of a line, for messages.
    fn format_location(&self, line: usize) -> String {
        match &self.committed_as {
            Some(name) => format!("{name}, line {line}"),
            None => format!("{}:{line}", self.path),
        }
    }
}

/// Files of a project as of a commit.
#[derive(Clone, Debug, Default)]
pub struct CommittedFiles {
    /// The commit, for messages.
    pub revision: String,
    /// The texts by path. `None` for a file that did not exist.
    pub texts: BTreeMap<Utf8PathBuf, Option<String>>,
}

impl ConfigSetting {
    /// Returns the value for display. Secrets are replaced by a placeholder.
    pub fn display_value(&self) -> Option<Value> {
        let is_secret =
            KEYS.iter().any(|key| key.name == self.name && key.shape == ConfigValueKind::Secret);
        if is_secret {
            self.value.as_ref().map(|_| Value::from("(set, not shown)"))
        } else {
            self.value.clone()
        }
    }
}

/// The effective configuration.
#[derive(Clone, Debug)]
pub struct RepConfig {
    settings: Vec<ConfigSetting>,
    /// Settings of the project that start programs and are not in force yet.
    proposed: Vec<ConfigSetting>,
    /// Digests of settings that the user agrees to with `--consent`.
    flag_consents: Vec<ContentDigest>,
    places: SearchDirectories,
    config_dir: Utf8PathBuf,
    flag_roots: Vec<Utf8PathBuf>,
}

/// The command-line flags that affect the configuration.
#[derive(Clone, Debug, Default)]
pub struct ConfigFlags {
    pub profile: Option<ProfileId>,
    pub roots: Vec<Utf8PathBuf>,
    pub consents: Vec<ContentDigest>,
}

/// The settings while the layers are read.
struct ConfigLayers {
    settings: Vec<ConfigSetting>,
    proposed: Vec<ConfigSetting>,
    /// Mistakes in files and variables, in reading order.
    problems: Vec<AppError>,
}

impl RepConfig {
    /// Loads the configuration from all layers.
    ///
    /// # Errors
    ///
    /// Returns the first mistake in a file or a variable.
    pub fn load(
        env: &AppEnvironment,
        here: &Utf8Path,
        flags: &ConfigFlags,
    ) -> Result<Self, AppError> {
        without_problems(Self::load_with(env, here, flags, &CommittedFiles::default()))
    }

    /// Loads the configuration without the settings that have mistakes, and returns these. For
    /// reports only.
    pub fn load_reporting(
        env: &AppEnvironment,
        here: &Utf8Path,
        flags: &ConfigFlags,
    ) -> (Self, Vec<AppError>) {
        Self::load_with(env, here, flags, &CommittedFiles::default())
    }

    /// Loads the configuration again, with files of the project as of a commit.
    pub fn as_of(&self, env: &AppEnvironment, before: &CommittedFiles) -> Result<Self, AppError> {
        let typed =
            self.get_setting("profile").filter(|set| matches!(set.origin, ConfigOrigin::Flag(_)));
        let profile = typed.map(|_| self.profile());
        let (roots, consents) = (self.flag_roots.clone(), self.flag_consents.clone());
        let flags = ConfigFlags { profile, roots, consents };
        without_problems(Self::load_with(env, &self.places.here, &flags, before))
    }

    /// Loads the configuration of a checkout of the base branch, with all settings in force: anyone
    /// who can write to that branch can also change the workflow that runs this program.
    pub fn of_base_branch(env: &AppEnvironment, house: &BaseCheckout) -> Result<Self, AppError> {
        let config = RepConfig::load(env, house.dir(), &ConfigFlags::default())?;
        Ok(config.with_proposal_in_force())
    }

    fn load_with(
        env: &AppEnvironment,
        here: &Utf8Path,
        flags: &ConfigFlags,
        before: &CommittedFiles,
    ) -> (Self, Vec<AppError>) {
        let config_dir = env.config_dir();
        let places = SearchDirectories {
            here: here.to_owned(),
            home: env.home().canonicalize_utf8().unwrap_or_else(|_| env.home()),
            pack: env.data_dir().join("skills"),
        };
        let mut layers = ConfigLayers {
            settings: default_settings(here),
            proposed: Vec::new(),
            problems: Vec::new(),
        };
        apply_file(&mut layers, config_dir.join(FILE_NAME), false);
        for dir in places.project_ancestors().into_iter().rev() {
            let path = dir.join(FILE_NAME);
            match before.texts.get(&path) {
                Some(Some(text)) => {
                    let name = path.strip_prefix(places.project_dir()).unwrap_or(&path);
                    let committed_as = Some(format!("{name} at {}", before.revision));
                    let file = SettingsFile { committed_as, text: text.as_str().into(), path };
                    apply_text(&mut layers, &file, true);
                }
                Some(None) => {}
                None => apply_file(&mut layers, path, true),
            }
        }
        apply_environment(&mut layers, env, here);
        let ConfigLayers { mut settings, mut proposed, problems } = layers;
        if let Some(profile) = flags.profile {
            let origin = ConfigOrigin::Flag("--profile".to_owned());
            set_setting(
                &mut settings,
                "profile",
                Value::from(profile.as_str()),
                origin,
                here,
                false,
            );
        }
        // Environment variables are the user's, so they override the project.
        let by_environment = |name: &str| {
            let mut all = settings.iter().filter(|setting| setting.name == name);
            all.any(|setting| matches!(setting.origin, ConfigOrigin::Environment(_)))
        };
        proposed.retain(|setting| !by_environment(setting.name));
        let (flag_roots, flag_consents) = (flags.roots.clone(), flags.consents.clone());
        let mut config =
            RepConfig { settings, proposed, flag_consents, places, config_dir, flag_roots };
        if let Some(dir) =
            config.get_path("skills_builtin_dir").or_else(|| config.get_path("skills_sync_dir"))
        {
            config.places.pack = dir;
        }
        (config, problems)
    }

    /// All keys with their values, in the order of [`KEYS`].
    pub fn settings(&self) -> &[ConfigSetting] {
        &self.settings
    }

    /// The working folder, the home folder and the folder of the built-in pack.
    pub fn places(&self) -> &SearchDirectories {
        &self.places
    }

    pub fn profile(&self) -> ProfileId {
        let word = self.get_value("profile").and_then(Value::as_str).unwrap_or_default();
        profile_of(word).unwrap_or_default()
    }

    /// Maximum number of characters of a skill's body that are loaded.
    pub fn body_chars_max(&self) -> usize {
        self.get_integer("skills_max_body_chars")
    }

    /// Returns true if references are loaded with a skill.
    pub fn load_references(&self) -> bool {
        self.get_bool("skills_load_references")
    }

    /// Returns the selection settings, before the command's own flags.
    pub fn selection_settings(&self) -> SelectionSettings {
        let threshold = self.get_value("auto_trigger.confidence_threshold").and_then(share_of);
        SelectionSettings {
            enabled: self.get_bool("auto_trigger.enabled"),
            threshold: threshold.unwrap_or(1.0) as f32,
            max_skills: self.get_integer("auto_trigger.max_skills"),
            ..SelectionSettings::default()
        }
    }

    /// Maximum number of skills for a step of a plan.
    pub fn max_skills_for(&self, step: StepKind) -> usize {
        self.get_integer(match step {
            StepKind::Implementation => "skills_max_selected_impl",
            StepKind::Review => "skills_max_selected_review",
        })
    }

    /// The folder with word vectors. `None` for the embedded ones.
    pub fn vectors_dir(&self) -> Option<Utf8PathBuf> {
        self.get_path("selection.vectors")
    }

    /// Path of the lock file, which records the skills that a person has trusted.
    pub fn lock_path(&self) -> Utf8PathBuf {
        self.config_dir.join("repertoire.lock")
    }

    /// The settings of the project that start programs and are not in force, if any.
    pub fn pending_proposal(&self) -> Option<SettingsProposal> {
        SettingsProposal::from_settings(&self.proposed)
    }

    /// The settings of the proposal, one per key.
    pub fn proposed(&self) -> &[ConfigSetting] {
        &self.proposed
    }

    /// Puts the proposed settings into force. Call it only if the user has agreed to them, or to
    /// show them.
    pub fn with_proposal_in_force(self) -> Self {
        self.with_proposed(|_| true)
    }

    /// Puts the proposed settings of the given keys into force; the others stay proposed. Call it
    /// only if the user has agreed to them.
    pub fn with_keys_in_force(self, keys: &[&str]) -> Self {
        self.with_proposed(|name| keys.contains(&name))
    }

    fn with_proposed(mut self, comes_into_force: impl Fn(&str) -> bool) -> Self {
        let (new, proposed) = std::mem::take(&mut self.proposed)
            .into_iter()
            .partition::<Vec<_>, _>(|setting| comes_into_force(setting.name));
        self.proposed = proposed;
        for new in new {
            if let Some(old) = self.settings.iter_mut().find(|old| old.name == new.name) {
                *old = new;
            }
        }
        self
    }

    /// Returns the digests that the user has agreed to, on the command line or in the user
    /// configuration.
    pub fn consented_digests(&self) -> Result<Vec<ContentDigest>, AppError> {
        const NAME: &str = "trust.settings";
        let mut all = self.flag_consents.clone();
        for text in self.get_texts(NAME) {
            let digest = text.parse().map_err(|error| {
                AppError::wrong_usage(format!(
                    "{}: `{NAME}`: `{text}`: {error}",
                    self.describe_origin(NAME)
                ))
            })?;
            all.push(digest);
        }
        Ok(all)
    }

    /// Returns true if `--consent` was given.
    pub fn has_consent_flag(&self) -> bool {
        !self.flag_consents.is_empty()
    }

    pub fn flag_consents(&self) -> &[ContentDigest] {
        &self.flag_consents
    }

    /// Returns the folders whose projects' settings count as the user's own, canonicalised.
    pub fn trusted_folders(&self) -> Vec<Utf8PathBuf> {
        let setting = self.get_setting("trust.folders");
        let list = setting.and_then(|setting| setting.value.as_ref()?.as_array());
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        let folder = |text: &str| Some(self.resolve_path(setting?, text));
        let folders = texts.filter_map(folder);
        folders.filter_map(|folder| folder.canonicalize_utf8().ok()).collect()
    }

    /// Returns the discovery request for this configuration. Fails if the lock file is damaged.
    pub fn discovery_request(&self) -> Result<DiscoveryRequest, AppError> {
        let path = self.lock_path();
        // A damaged lock stops a command at its start, while a running process continues without
        // trust.
        let lock = TrustLock::read(&path).map_err(|error| {
            AppError::cannot_run(error.to_string()).hint(TrustLockError::REMEDY)
        })?;
        Ok(DiscoveryRequest {
            lock,
            lock_path: Some(path),
            ..self.discovery_request_without_trust()
        })
    }

    /// Like [`RepConfig::discovery_request`], for commands that don't need trust, so that a damaged lock does
    /// not matter.
    pub fn discovery_request_without_trust(&self) -> DiscoveryRequest {
        let mut request = DiscoveryRequest::new(self.profile(), self.places.clone());
        request.limits.walk.depth_max = self.get_integer("walk.depth_max");
        request.limits.walk.entries_max = self.get_integer("walk.entries_max");
        request.limits.text.file_bytes_max = self.get_integer("limits.file_bytes_max") as u64;
        request.limits.text.frontmatter_bytes_max =
            self.get_integer("limits.frontmatter_bytes_max");
        request.sync_pack =
            self.get_bool("skills_sync_on_start") && self.get_path("skills_builtin_dir").is_none();
        request.extra_roots = self.flag_roots.iter().map(|dir| self.named_root(dir)).collect();
        request.extra_roots.extend(self.roots_of("extra_roots").unwrap_or_default());
        request.roots = self.roots_of("skills_dirs").map(|mut roots| {
            // A project's list replaces only the project's own folders; the user's folders and the
            // built-in pack stay.
            let by_project =
                self.get_setting("skills_dirs").is_some_and(|setting| setting.from_project);
            let own = request.profile.roots_at(&self.places).into_iter();
            roots.extend(own.filter(|root| {
                root.scope == Scope::Builtin || (by_project && root.scope != Scope::Project)
            }));
            roots
        });
        if !self.get_bool("skills_enabled") {
            request.roots = Some(Vec::new());
            request.extra_roots.clear();
        }
        request
    }

    /// Returns the root for `--root`. Naming a folder does not imply trust: a folder inside the
    /// project keeps the project scope, so its skills must still be trusted by a person.
    fn named_root(&self, dir: &Utf8Path) -> Root {
        let project = self.places.project_dir();
        let real = dir.canonicalize_utf8().unwrap_or_else(|_| dir.to_owned());
        let inside = project != self.places.home && real.starts_with(project);
        let scope = if inside { Scope::Project } else { Scope::Extra };
        Root { scope, ..Root::named_by_user(dir) }
    }

    /// The text of a key, if set.
    pub fn get_text(&self, name: &str) -> Option<&str> {
        self.get_value(name)?.as_str()
    }

    /// The number of a key, if set.
    pub fn get_number(&self, name: &str) -> Option<f64> {
        self.get_value(name).and_then(share_of)
    }

    /// The size of a key in bytes, if set.
    pub fn get_bytes(&self, name: &str) -> Option<u64> {
        self.get_value(name).and_then(size_of)
    }

    /// The list of a key. Empty if not set.
    pub fn get_texts(&self, name: &str) -> Vec<String> {
        let list = self.get_value(name).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// The table of a key, if set.
    pub fn get_table(&self, name: &str) -> Option<&toml::Table> {
        self.get_value(name)?.as_table()
    }

    /// Returns true if the value is not the default.
    pub fn is_set(&self, name: &str) -> bool {
        self.get_setting(name).is_some_and(|setting| setting.origin != ConfigOrigin::Default)
    }

    /// Returns true if the value comes from the project's files, which may be untrusted.
    pub fn is_from_project(&self, name: &str) -> bool {
        self.get_setting(name).is_some_and(|setting| setting.from_project)
    }

    /// Returns the origin of a value, for messages.
    pub fn describe_origin(&self, name: &str) -> String {
        match self.get_setting(name).map(|setting| &setting.origin) {
            Some(ConfigOrigin::File(place)) => place.clone(),
            Some(ConfigOrigin::Environment(variable)) => format!("${variable}"),
            Some(ConfigOrigin::Flag(flag)) => flag.clone(),
            Some(ConfigOrigin::Default) | None => "the default".to_owned(),
        }
    }

    /// Returns the location of a part of a table, for messages. `path` leads into the table of the
    /// key.
    pub fn place_within(&self, name: &str, path: &[&str]) -> String {
        let exact = |file: &SettingsFile| {
            let parts: Vec<&str> = name.split('.').chain(path.iter().copied()).collect();
            let line = proposal::line_within(&file.text, &parts)?;
            Some(file.format_location(line))
        };
        let file = self.get_setting(name).and_then(|setting| setting.file.as_ref());
        file.and_then(exact).unwrap_or_else(|| self.describe_origin(name))
    }

    fn get_setting(&self, name: &str) -> Option<&ConfigSetting> {
        self.settings.iter().find(|setting| setting.name == name)
    }

    fn get_value(&self, name: &str) -> Option<&Value> {
        self.get_setting(name)?.value.as_ref()
    }

    pub fn get_bool(&self, name: &str) -> bool {
        self.get_value(name).and_then(Value::as_bool).unwrap_or(false)
    }

    /// The whole number of a key, or 0 if not set.
    pub fn get_integer(&self, name: &str) -> usize {
        let number = self.get_value(name).and_then(Value::as_integer).unwrap_or(0);
        usize::try_from(number).unwrap_or(0)
    }

    pub fn get_path(&self, name: &str) -> Option<Utf8PathBuf> {
        let setting = self.get_setting(name)?;
        let text = setting.value.as_ref()?.as_str()?;
        Some(self.resolve_path(setting, text))
    }

    fn resolve_path(&self, setting: &ConfigSetting, text: &str) -> Utf8PathBuf {
        match text.strip_prefix("~/") {
            Some(rest) => self.places.home.join(rest),
            None => setting.base.join(text),
        }
    }

    fn roots_of(&self, name: &str) -> Option<Vec<Root>> {
        let setting = self.get_setting(name)?;
        let list = setting.value.as_ref()?.as_array()?;
        let root = |text: &str| {
            let dir = self.resolve_path(setting, text);
            let scope = match (setting.from_project, dir.starts_with(&self.places.home)) {
                (true, _) => Scope::Project,
                (false, true) if !dir.starts_with(&self.places.here) => Scope::User,
                (false, _) => Scope::Extra,
            };
            Root { scope, ..Root::named_by_user(dir) }
        };
        Some(list.iter().filter_map(Value::as_str).map(root).collect())
    }
}

fn default_settings(here: &Utf8Path) -> Vec<ConfigSetting> {
    KEYS.iter()
        .map(|key| ConfigSetting {
            name: key.name,
            value: default_of(key),
            origin: ConfigOrigin::Default,
            base: here.to_owned(),
            from_project: false,
            file: None,
        })
        .collect()
}

fn default_of(key: &ConfigKey) -> Option<Value> {
    toml_value(key.default)
}

fn toml_value(text: &str) -> Option<Value> {
    let text = format!("value = {text}");
    text.parse::<toml::Table>().ok().and_then(|mut table| table.remove("value"))
}

fn set_setting(
    settings: &mut [ConfigSetting],
    name: &str,
    value: Value,
    origin: ConfigOrigin,
    base: &Utf8Path,
    from_project: bool,
) {
    if let Some(setting) = settings.iter_mut().find(|setting| setting.name == name) {
        setting.value = Some(value);
        setting.origin = origin;
        setting.base = base.to_owned();
        setting.from_project = from_project;
        setting.file = None;
    }
}

impl ConfigLayers {
    /// Applies a setting from a file. If it comes from a project and starts programs, it is only
    /// proposed.
    fn put_setting(&mut self, key: &ConfigKey, new: ConfigSetting) {
        self.proposed.retain(|setting| setting.name != key.name);
        if new.from_project && proposal::is_acting(key, new.value.as_ref()) {
            self.proposed.push(new);
        } else if let Some(old) = self.settings.iter_mut().find(|old| old.name == key.name) {
            *old = new;
        }
    }
}

/// Returns the configuration, or the first mistake in it.
fn without_problems((config, problems): (RepConfig, Vec<AppError>)) -> Result<RepConfig, AppError> {
    problems.into_iter().next().map_or(Ok(config), Err)
}

fn apply_file(layers: &mut ConfigLayers, path: Utf8PathBuf, from_project: bool) {
    match fs::read_text(&path, FILE_BYTES_MAX) {
        Ok(text) => {
            let file = SettingsFile { path, committed_as: None, text: text.into() };
            apply_text(layers, &file, from_project);
        }
        Err(fs::ReadError::NotFound) => {}
        Err(error) => {
            let message = format!("{path} cannot be read: {error}");
            layers.problems.push(AppError::cannot_run(message));
        }
    }
}

fn apply_text(layers: &mut ConfigLayers, file: &SettingsFile, from_project: bool) {
    let parsed: Result<toml::Table, toml::de::Error> = file.text.parse();
    match parsed {
        Ok(table) => {
            for (name, value) in flatten_tables(table) {
                if let Err(problem) = apply_setting(layers, file, from_project, (&name, value)) {
                    layers.problems.push(problem);
                }
            }
        }
        Err(error) => {
            let line =
                error.span().map_or(1, |span| TextPosition::of_offset(&file.text, span.start).line);
            let line = usize::try_from(line).unwrap_or(usize::MAX);
            let message =
                format!("{} is not valid TOML: {}", file.format_location(line), error.message());
            layers.problems.push(AppError::wrong_usage(message));
        }
    }
}

fn apply_setting(
    layers: &mut ConfigLayers,
    file: &SettingsFile,
    from_project: bool,
    (name, value): (&str, Value),
) -> Result<(), AppError> {
    let place = file.format_location(line_of(&file.text, name));
    let key = known_key(name, &place)?;
    let value = match key.shape {
        ConfigValueKind::Rules if from_project => append_rules(&layers.settings, key.name, value),
        _ => value,
    };
    if key.set_by == SetBy::User && from_project {
        return Err(AppError::wrong_usage(format!("{place}: `{name}` may not be set by a project")).hint(
            "Set it in your own `~/.config/repertoire/repertoire.toml`: projects may not decide this.",
        ));
    }
    check_value(key, &value, &place)?;
    let new = ConfigSetting {
        name: key.name,
        value: Some(value),
        origin: ConfigOrigin::File(place),
        base: file.path.parent().unwrap_or(Utf8Path::new(".")).to_owned(),
        from_project,
        file: Some(file.clone()),
    };
    layers.put_setting(key, new);
    Ok(())
}

/// Appends a project's rules to the user's, so that a project can forbid more but not less.
fn append_rules(settings: &[ConfigSetting], name: &str, value: Value) -> Value {
    let before = settings.iter().find(|setting| setting.name == name);
    let before = before.and_then(|setting| setting.value.as_ref()).and_then(Value::as_array);
    match value {
        Value::Array(own) => {
            Value::Array(before.into_iter().flatten().cloned().chain(own).collect())
        }
        other => other,
    }
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

fn line_of(text: &str, name: &str) -> usize {
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
    text.lines().position(starts).map_or(1, |at| at + 1)
}

fn apply_environment(layers: &mut ConfigLayers, env: &AppEnvironment, here: &Utf8Path) {
    for key in KEYS {
        let variable = variable_of(key.name);
        let Some(text) = env.var(&variable) else { continue };
        let value = match key.shape {
            ConfigValueKind::Bool => text.parse().map(Value::Boolean).ok(),
            ConfigValueKind::Number => text.parse().map(Value::Integer).ok(),
            ConfigValueKind::Share => text.parse().map(Value::Float).ok(),
            ConfigValueKind::Amount => text.parse().map(Value::Float).ok(),
            ConfigValueKind::Rules | ConfigValueKind::Texts => {
                let items = text.split(';').map(str::trim).filter(|item| !item.is_empty());
                Some(Value::Array(items.map(Value::from).collect()))
            }
            ConfigValueKind::Table => toml_value(text),
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
        };
        let value = value.unwrap_or_else(|| Value::from(text));
        let place = format!("${variable}");
        match check_value(key, &value, &place) {
            Ok(()) => {
                let origin = ConfigOrigin::Environment(variable);
                set_setting(&mut layers.settings, key.name, value, origin, here, false);
            }
            Err(problem) => layers.problems.push(problem),
        }
    }
}

/// Returns the environment variable of a key.
pub fn variable_of(name: &str) -> String {
    format!("REPERTOIRE_{}", name.replace('.', "_").to_uppercase())
}

fn known_key(name: &str, place: &str) -> Result<&'static ConfigKey, AppError> {
    KEYS.iter().find(|key| key.name == name).ok_or_else(|| {
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

fn check_value(key: &ConfigKey, value: &Value, place: &str) -> Result<(), AppError> {
    let (right, expected) = match key.shape {
        ConfigValueKind::Bool => (value.is_bool(), "`true` or `false`".to_owned()),
        ConfigValueKind::Number => {
            (value.as_integer().is_some_and(|n| n >= 0), "a whole number from 0".to_owned())
        }
        ConfigValueKind::Share => {
            let number = share_of(value);
            (number.is_some_and(|n| (0.0..=1.0).contains(&n)), "a number from 0 to 1".to_owned())
        }
        ConfigValueKind::Text | ConfigValueKind::Secret => (value.is_str(), "a text".to_owned()),
        ConfigValueKind::Texts => (is_list_of_strings(value), "a list of texts".to_owned()),
        ConfigValueKind::Amount => {
            (share_of(value).is_some_and(|n| n >= 0.0), "a number from 0".to_owned())
        }
        ConfigValueKind::Duration => (
            value.as_str().is_some_and(|text| parse_duration(text).is_ok()),
            "a time, as `90s`, `10m` or `1h`".to_owned(),
        ),
        ConfigValueKind::Size => (
            size_of(value).is_some(),
            "a size, as `512MiB`, `2GiB` or a number of bytes".to_owned(),
        ),
        ConfigValueKind::Model => (
            value.as_str().is_some_and(|text| text.parse::<ModelName>().is_ok()),
            "the name of a model: anthropic/NAME, openai/NAME or compat/NAME".to_owned(),
        ),
        ConfigValueKind::Word(words) => (
            value.as_str().is_some_and(|word| words.contains(&word)),
            format!("one of {}", words.join(", ")),
        ),
        ConfigValueKind::Rules => {
            (is_list_of_strings(value), "a list of rules, as `bash(git status:*)`".to_owned())
        }
        ConfigValueKind::Table => (value.is_table(), "a table".to_owned()),
        ConfigValueKind::Path => (value.is_str(), "a path".to_owned()),
        ConfigValueKind::Paths => (is_list_of_strings(value), "a list of paths".to_owned()),
        ConfigValueKind::Profile => {
            let words: Vec<&str> = ProfileId::ALL.iter().map(|id| id.as_str()).collect();
            (
                value.as_str().is_some_and(|word| profile_of(word).is_some()),
                format!("one of {}", words.join(", ")),
            )
        }
    };
    if right {
        return Ok(());
    }
    let name = key.name;
    if key.shape == ConfigValueKind::Table && value.is_array() {
        return Err(AppError::wrong_usage(format!(
            "{place}: `{name}` is a list, but should be {expected}"
        ))
        .hint(format!("Write `[{name}.NAME]` instead of `[[{name}]]`.")));
    }
    Err(AppError::wrong_usage(format!("{place}: `{name}` is {value}, but should be {expected}")))
}

fn is_list_of_strings(value: &Value) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(Value::is_str))
}

/// Returns the value as a float. An integer such as `1` is accepted, too.
fn share_of(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|number| number as f64))
}

/// Parses a number of bytes, such as `512MiB`, `2GB` or `1048576`.
fn size_of(value: &Value) -> Option<u64> {
    if let Some(number) = value.as_integer() {
        return u64::try_from(number).ok();
    }
    let text = value.as_str()?.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: u64 = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "k" | "kib" => 1024,
        "m" | "mib" => 1024 * 1024,
        "g" | "gib" => 1024 * 1024 * 1024,
        _ => return None,
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(factor)
}

fn profile_of(word: &str) -> Option<ProfileId> {
    ProfileId::ALL.iter().copied().find(|id| id.as_str() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_both_kinds() {
        let size = |text: &str| size_of(&Value::from(text));
        assert_eq!(size("2GiB"), Some(2_147_483_648));
        assert_eq!(size("512 MB"), Some(512_000_000));
        assert_eq!(size("64k"), Some(65_536));
        assert_eq!(size_of(&Value::from(7)), Some(7));
        for wrong in ["", "GiB", "-1", "1.5GiB", "2 parsecs", "99999999999999999999"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
    }

    fn load(files: &[(&str, &str)], vars: &[(&str, &str)]) -> Result<RepConfig, AppError> {
        let keep = tempfile::tempdir().unwrap();
        let here = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
        for (path, text) in files {
            fs::write_atomic(&here.join(path), text.as_bytes()).unwrap();
        }
        let mut all: std::collections::BTreeMap<String, String> =
            vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        all.insert("HOME".into(), here.join("home").into());
        let env = AppEnvironment { here: here.clone(), moved: true, vars: all, rep_program: None };
        RepConfig::load(&env, &here, &ConfigFlags::default())
    }

    fn shown(result: Result<RepConfig, AppError>) -> String {
        let failure = result.unwrap_err();
        let text = failure.message.split_once("repertoire.toml").map_or("", |(_, rest)| rest);
        format!("{text} | {}", failure.hints.join(" "))
    }

    #[test]
    fn later_layers_win_and_say_where_they_came_from() {
        let user = (
            "home/.config/repertoire/repertoire.toml",
            "skills_max_body_chars = 1\n[walk]\ndepth_max = 3\n",
        );
        let project = ("repertoire.toml", "skills_max_body_chars = 2\n");
        let config = load(&[user, project], &[("REPERTOIRE_WALK_DEPTH_MAX", "9")]).unwrap();
        assert_eq!((config.body_chars_max(), config.get_integer("walk.depth_max")), (2, 9));
        let origin = &config.get_setting("walk.depth_max").unwrap().origin;
        assert_eq!(*origin, ConfigOrigin::Environment("REPERTOIRE_WALK_DEPTH_MAX".into()));
        assert!(
            matches!(&config.get_setting("skills_max_body_chars").unwrap().origin, ConfigOrigin::File(at) if at.ends_with("repertoire.toml:1"))
        );
    }

    #[test]
    fn wrong_keys_values_and_files_are_named_with_their_line() {
        let check = |text: &str, expect: &str| {
            assert_eq!(shown(load(&[("repertoire.toml", text)], &[])), expect);
        };
        check(
            "\nskill_dirs = []\n",
            ":2: `skill_dirs` is not a configuration key | Did you mean `skills_dirs`?",
        );
        check(
            "skills_enabled = 1\n",
            ":1: `skills_enabled` is 1, but should be `true` or `false` | ",
        );
        let user = ("home/.config/repertoire/repertoire.toml", "profile = \"x\"\n");
        assert_eq!(
            shown(load(&[user], &[])),
            ":1: `profile` is \"x\", but should be one of repertoire, agentskills, openskills, claude, codex, gemini | "
        );
        check(
            "profile = \"openskills\"\n",
            ":1: `profile` may not be set by a project | Set it in your own `~/.config/repertoire/repertoire.toml`: projects may not decide this.",
        );
        check(
            "skills_sync_dir = \"/x\"\n",
            ":1: `skills_sync_dir` may not be set by a project | Set it in your own `~/.config/repertoire/repertoire.toml`: projects may not decide this.",
        );
    }

    #[test]
    fn a_list_of_tables_is_answered_with_the_right_heading() {
        let text = "\n[[plan.checks]]\ncommand = 'true'\n";
        assert_eq!(
            shown(load(&[("repertoire.toml", text)], &[])),
            ":2: `plan.checks` is a list, but should be a table | Write `[plan.checks.NAME]` instead of `[[plan.checks]]`."
        );
    }

    #[test]
    fn a_project_may_forbid_more_and_allow_nothing() {
        let user = (
            "home/.config/repertoire/repertoire.toml",
            "[permissions]\ndeny = ['bash(rm:*)']\nallow = ['bash(git status:*)']\n",
        );
        let project = ("repertoire.toml", "[permissions]\ndeny = ['write']\n");
        let config = load(&[user, project], &[]).unwrap();
        assert_eq!(config.get_texts("permissions.deny"), ["bash(rm:*)", "write"]);
        for widening in [
            "[permissions]\nallow = ['bash']\n",
            "[permissions]\nmode = 'full'\n",
            "sandbox = 'off'\n",
            "[mcp_servers.x]\ncommand = 'x'\n",
            "[models.'openai/x']\ninput_usd = 0\n",
            "[limits]\ncost = 100.0\n",
        ] {
            let message = load(&[("repertoire.toml", widening)], &[]).unwrap_err().message;
            assert!(message.contains("may not be set by a project"), "{widening}: {message}");
        }
    }

    #[test]
    fn the_longer_way_to_write_auto_trigger_is_understood() {
        let text = "[skills.auto_trigger]\nmax_skills = 7\n";
        assert_eq!(
            load(&[("repertoire.toml", text)], &[]).unwrap().selection_settings().max_skills,
            7
        );
    }

    #[test]
    fn an_empty_item_of_a_list_in_the_environment_is_no_folder() {
        let config = load(&[], &[("REPERTOIRE_EXTRA_ROOTS", "/x:")]).unwrap();
        assert_eq!(config.discovery_request().unwrap().extra_roots.len(), 1);
    }

    #[test]
    fn folders_named_by_a_project_are_the_projects_own() {
        let config = load(&[("repertoire.toml", "skills_dirs = ['x', '~/y']\n")], &[]).unwrap();
        let roots = config.discovery_request().unwrap().roots.unwrap();
        let scopes: Vec<Scope> = roots.iter().map(|root| root.scope).collect();
        assert_eq!(scopes[..2], [Scope::Project, Scope::Project]);
        assert!(scopes[2..].contains(&Scope::User) && scopes.last() == Some(&Scope::Builtin));
        assert!(roots[1].dir.ends_with("home/y"));
    }
}
