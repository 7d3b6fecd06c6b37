//! The configuration. Layers, later ones winning: defaults, the user's file, the project's files,
//! the environment, flags. Every value keeps its origin, and an unknown key is an error with a
//! suggestion.
//!
//! The keys are a table (`keys.rs`). From it come the typed values ([`ConfigValues`]), the keys ([`KEY`], [`KEYS`]),
//! the documentation and the schema, so that they cannot disagree.
//!
//! Settings of a project that start programs are kept apart as a proposal until the user has agreed
//! to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_github::base::BaseCheckout;
use repertoire_skill::profile::{ProfileId, SearchDirectories};
use repertoire_skill::skill::ContentDigest;
use toml::Value;

use crate::env::AppEnvironment;
use crate::error::AppError;

mod github_settings;
mod key_checks;
mod key_table;
mod keys;
mod layers;
mod origin;
mod proposal;
mod skill_settings;
mod value;
mod words;

pub use key_table::{ConfigKey, ConfigValueKind, SetBy};
pub use keys::{ConfigKeys, ConfigValues, KEY, KEYS};
use layers::ConfigLayers;
pub use layers::variable_of;
use origin::SettingsFile;
pub use origin::{ConfigOrigin, ConfigSetting};
pub use proposal::SettingsProposal;
pub use value::{ByteCount, RuleTexts, ShareNumber};
pub use words::{ReviewFailOn, SandboxSetting};

/// Name of the configuration file, in a project and in the user's configuration folder.
pub const FILE_NAME: &str = "repertoire.toml";

/// Files of a project as of a commit.
#[derive(Clone, Debug, Default)]
pub struct CommittedFiles {
    /// The commit, for messages.
    pub revision: String,
    /// The texts by path. `None` for a file that did not exist.
    pub texts: BTreeMap<Utf8PathBuf, Option<String>>,
}

/// The effective configuration.
#[derive(Clone, Debug)]
pub struct RepConfig {
    /// One setting a key, in the order of [`KEYS`].
    settings: Vec<ConfigSetting>,
    /// The values of `settings`.
    values: Arc<ConfigValues>,
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
        let typed = self
            .get_setting(&KEY.profile)
            .filter(|set| matches!(set.origin, ConfigOrigin::Flag(_)));
        let profile = typed.map(|_| self.values.profile);
        let (roots, consents) = (self.flag_roots.clone(), self.flag_consents.clone());
        let flags = ConfigFlags { profile, roots, consents };
        without_problems(Self::load_with(env, &self.places.here, &flags, before))
    }

    /// Loads the configuration of a checkout of the base branch, with all settings in force: anyone
    /// who can write to that branch can also change the workflow that runs this program.
    pub fn of_base_branch(
        env: &AppEnvironment,
        base_checkout: &BaseCheckout,
    ) -> Result<Self, AppError> {
        let config = RepConfig::load(env, base_checkout.dir(), &ConfigFlags::default())?;
        Ok(config.with_proposal_in_force())
    }

    fn load_with(
        env: &AppEnvironment,
        here: &Utf8Path,
        flags: &ConfigFlags,
        before: &CommittedFiles,
    ) -> (Self, Vec<AppError>) {
        let config_dir = env.config_dir();
        let mut places = SearchDirectories {
            here: here.to_owned(),
            home: env.home().canonicalize_utf8().unwrap_or_else(|_| env.home()),
            pack: env.data_dir().join("skills"),
        };
        let mut layers = ConfigLayers::new(here);
        layers.apply_file(config_dir.join(FILE_NAME), false);
        for dir in places.project_ancestors().into_iter().rev() {
            let path = dir.join(FILE_NAME);
            match before.texts.get(&path) {
                Some(Some(text)) => {
                    let name = path.strip_prefix(places.project_dir()).unwrap_or(&path);
                    let committed_as = Some(format!("{name} at {}", before.revision));
                    let file = SettingsFile { committed_as, text: text.as_str().into(), path };
                    layers.apply_text(&file, true);
                }
                Some(None) => {}
                None => layers.apply_file(path, true),
            }
        }
        layers.apply_environment(env, here);
        if let Some(profile) = flags.profile {
            let origin = ConfigOrigin::Flag("--profile".to_owned());
            layers.set_by_user(&KEY.profile, Value::from(profile.as_str()), origin, here);
        }
        let ConfigLayers { settings, proposed, problems } = layers;
        let values = ConfigValues::read(&settings, &places.home);
        if let Some(dir) = values.skills_builtin_dir.as_ref().or(values.skills_sync_dir.as_ref()) {
            places.pack.clone_from(dir);
        }
        let config = RepConfig {
            settings,
            values: Arc::new(values),
            proposed,
            flag_consents: flags.consents.clone(),
            places,
            config_dir,
            flag_roots: flags.roots.clone(),
        };
        (config, problems)
    }

    /// The effective values, with a typed field for every key.
    pub fn values(&self) -> &ConfigValues {
        &self.values
    }

    /// All keys with their values and origins, in the order of [`KEYS`].
    pub fn settings(&self) -> &[ConfigSetting] {
        &self.settings
    }

    /// The working folder, the home folder and the folder of the built-in pack.
    pub fn places(&self) -> &SearchDirectories {
        &self.places
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
    pub fn with_keys_in_force(self, keys: &[&ConfigKey]) -> Self {
        self.with_proposed(|key| keys.contains(&key))
    }

    fn with_proposed(mut self, comes_into_force: impl Fn(&ConfigKey) -> bool) -> Self {
        let (new, proposed) = std::mem::take(&mut self.proposed)
            .into_iter()
            .partition::<Vec<_>, _>(|setting| comes_into_force(setting.key));
        self.proposed = proposed;
        for new in new {
            layers::replace_setting(&mut self.settings, new);
        }
        self.values = Arc::new(ConfigValues::read(&self.settings, &self.places.home));
        self
    }

    /// Returns the digests that the user has agreed to, on the command line or in the user
    /// configuration.
    pub fn consented_digests(&self) -> Result<Vec<ContentDigest>, AppError> {
        let key = &KEY.trust_settings;
        let mut all = self.flag_consents.clone();
        for text in &self.values.trust_settings {
            let digest = text.parse().map_err(|error| {
                let origin = self.describe_origin(key);
                AppError::wrong_usage(format!("{origin}: `{}`: `{text}`: {error}", key.name))
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
        let folders = self.values.trust_folders.iter();
        folders.filter_map(|folder| folder.canonicalize_utf8().ok()).collect()
    }
}

/// Returns the configuration, or the first mistake in it.
fn without_problems((config, problems): (RepConfig, Vec<AppError>)) -> Result<RepConfig, AppError> {
    problems.into_iter().next().map_or(Ok(config), Err)
}

#[cfg(test)]
#[path = "config/config_tests.rs"]
mod tests;
