//! The settings of skills: where they are searched, and how they are selected.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_select::SelectionSettings;
use repertoire_select::settings::StepKind;
use repertoire_skill::discover::DiscoveryRequest;
use repertoire_skill::profile::Root;
use repertoire_skill::skill::Scope;
use repertoire_skill::trust::{TrustLock, TrustLockError};

use super::{ConfigKey, KEY, RepConfig};
use crate::error::AppError;

impl RepConfig {
    /// Returns the selection settings, before the command's own flags.
    pub fn selection_settings(&self) -> SelectionSettings {
        let values = self.values();
        SelectionSettings {
            enabled: values.auto_trigger_enabled,
            threshold: values.auto_trigger_confidence_threshold.0 as f32,
            max_skills: values.auto_trigger_max_skills,
            ..SelectionSettings::default()
        }
    }

    /// Maximum number of skills for a step of a plan.
    pub fn max_skills_for(&self, step: StepKind) -> usize {
        match step {
            StepKind::Implementation => self.values().skills_max_selected_impl,
            StepKind::Review => self.values().skills_max_selected_review,
        }
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
        let values = self.values();
        let mut request = DiscoveryRequest::new(values.profile, self.places.clone());
        request.limits.walk.depth_max = values.walk_depth_max;
        request.limits.walk.entries_max = values.walk_entries_max;
        request.limits.text.file_bytes_max = values.limits_file_bytes_max;
        request.limits.text.frontmatter_bytes_max = values.limits_frontmatter_bytes_max;
        request.sync_pack = values.skills_sync_on_start && values.skills_builtin_dir.is_none();
        request.extra_roots = self.flag_roots.iter().map(|dir| self.named_root(dir)).collect();
        request.extra_roots.extend(self.configured_roots(&KEY.extra_roots, &values.extra_roots));
        request.roots = values.skills_dirs.as_ref().map(|dirs| {
            let mut roots = self.configured_roots(&KEY.skills_dirs, dirs);
            // A project's list replaces only the project's own folders; the user's folders and the
            // built-in pack stay.
            let by_project = self.is_from_project(&KEY.skills_dirs);
            let own = request.profile.roots_at(&self.places).into_iter();
            roots.extend(own.filter(|root| {
                root.scope == Scope::Builtin || (by_project && root.scope != Scope::Project)
            }));
            roots
        });
        if !values.skills_enabled {
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

    /// Returns the roots for the folders of a key.
    fn configured_roots(&self, key: &ConfigKey, dirs: &[Utf8PathBuf]) -> Vec<Root> {
        let from_project = self.is_from_project(key);
        let root = |dir: &Utf8PathBuf| {
            let scope = match (from_project, dir.starts_with(&self.places.home)) {
                (true, _) => Scope::Project,
                (false, true) if !dir.starts_with(&self.places.here) => Scope::User,
                (false, _) => Scope::Extra,
            };
            Root { scope, ..Root::named_by_user(dir) }
        };
        dirs.iter().map(root).collect()
    }
}
