//! Plugins in Claude Code's cache: `CACHE/**/PLUGIN/VERSION/skills/NAME/SKILL.md`. Of several versions of a
//! plugin, the highest semantic version is used, then the newest.

use std::collections::BTreeMap;
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::Diagnostic;
use semver::Version;

use crate::codes;
use crate::profile::{Root, RootContents};
use crate::skill::{PluginInfo, Scope};

/// The maximum depth of a plugin's `skills` folder below the cache: marketplaces may be nested.
const DEPTH_MAX: usize = 5;
/// The maximum number of folders, and of entries in all of them, before the search stops.
const FOLDERS_MAX: usize = 4_000;
const ENTRIES_MAX: usize = 20_000;

/// The plugins of a cache.
#[derive(Clone, Debug, Default)]
pub struct CachedPlugins {
    /// One root for each plugin, ordered by the plugin's name.
    pub roots: Vec<Root>,
    /// Set if the limits stopped the search.
    pub cut: Option<Diagnostic>,
}

/// Searches a cache for plugins.
pub fn search_plugins(cache: &Utf8Path) -> CachedPlugins {
    let mut search = PluginSearch { entries: 0, folders: 0, found: Vec::new() };
    search.run(cache);
    let cut = search.is_over().then(|| limit_diagnostic(cache));
    CachedPlugins { roots: best_version_of_each(search.found), cut }
}

fn limit_diagnostic(cache: &Utf8Path) -> Diagnostic {
    let code = &codes::WALK_ENTRIES;
    let message = format!(
        "the plugin cache has more than {ENTRIES_MAX} entries, the limit, or {FOLDERS_MAX} folders; the rest was not searched"
    );
    Diagnostic::new(code, message).in_file(cache).help("Remove plugins that are not used.")
}

fn best_version_of_each(candidates: Vec<PluginCandidate>) -> Vec<Root> {
    let mut best: BTreeMap<String, PluginCandidate> = BTreeMap::new();
    for candidate in candidates {
        match best.entry(candidate.plugin.clone()) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(candidate);
            }
            std::collections::btree_map::Entry::Occupied(mut entry) => {
                if candidate.version_rank() > entry.get().version_rank() {
                    entry.insert(candidate);
                }
            }
        }
    }
    best.into_values()
        .map(|found| Root {
            dir: found.skills,
            scope: Scope::Plugin,
            holds: RootContents::Skills,
            plugin: Some(PluginInfo { name: found.plugin, version: found.version }),
            named: false,
        })
        .collect()
}

struct PluginCandidate {
    plugin: String,
    version: String,
    skills: Utf8PathBuf,
    modified: Option<SystemTime>,
}

impl PluginCandidate {
    /// A semantic version beats any other; then the higher version, the newer folder and the path decide.
    fn version_rank(&self) -> (Option<Version>, Option<SystemTime>, &Utf8Path) {
        let version = Version::parse(self.version.trim_start_matches('v')).ok();
        (version, self.modified, &self.skills)
    }
}

struct PluginSearch {
    entries: usize,
    folders: usize,
    found: Vec<PluginCandidate>,
}

impl PluginSearch {
    fn is_over(&self) -> bool {
        self.entries > ENTRIES_MAX || self.folders > FOLDERS_MAX
    }

    fn run(&mut self, cache: &Utf8Path) {
        let mut level = vec![cache.to_owned()];
        for _ in 0..DEPTH_MAX {
            let mut next = Vec::new();
            for dir in level {
                self.folders += 1;
                let mut children = self.folders_in(&dir);
                if self.is_over() {
                    return;
                }
                children.sort();
                let (skills, rest): (Vec<_>, Vec<_>) =
                    children.into_iter().partition(|child| child.file_name() == Some("skills"));
                self.found
                    .extend(skills.into_iter().filter_map(|skills| parse_candidate(cache, skills)));
                // Inside a version's folder only `skills` matters.
                if self.found.last().is_none_or(|last| last.skills.parent() != Some(&dir)) {
                    next.extend(rest);
                }
            }
            level = next;
        }
    }

    fn folders_in(&mut self, dir: &Utf8Path) -> Vec<Utf8PathBuf> {
        let Ok(entries) = dir.read_dir_utf8() else { return Vec::new() };
        let mut out = Vec::new();
        for entry in entries.take(ENTRIES_MAX + 1 - self.entries) {
            self.entries += 1;
            let Ok(entry) = entry else { continue };
            // Links are not followed here, except that a `skills` link becomes a root, which discovery checks
            // like any other.
            let is_folder = entry.file_type().is_ok_and(|kind| {
                kind.is_dir() || kind.is_symlink() && entry.file_name() == "skills"
            });
            if is_folder {
                out.push(entry.into_path());
            }
        }
        out
    }
}

fn parse_candidate(cache: &Utf8Path, skills: Utf8PathBuf) -> Option<PluginCandidate> {
    let version_dir = skills.parent()?;
    let plugin_dir = version_dir.parent().filter(|dir| dir.starts_with(cache) && *dir != cache)?;
    Some(PluginCandidate {
        plugin: plugin_dir.file_name()?.to_owned(),
        version: version_dir.file_name()?.to_owned(),
        modified: std::fs::metadata(&skills).and_then(|meta| meta.modified()).ok(),
        skills,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_semantic_version_wins_and_other_folders_are_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Utf8Path::from_path(dir.path()).unwrap();
        for path in [
            "market/superpowers/4.0.3/skills/brainstorming",
            "market/superpowers/4.0.10/skills/brainstorming",
            "market/superpowers/latest/skills/brainstorming",
            "other/nested/tools/1.0.0/skills/x",
            "market/empty/1.0.0/agents",
        ] {
            std::fs::create_dir_all(cache.join(path)).unwrap();
        }
        let found: Vec<(String, String)> = search_plugins(cache)
            .roots
            .into_iter()
            .map(|root| {
                (root.dir.strip_prefix(cache).unwrap().to_string(), root.plugin.unwrap().name)
            })
            .collect();
        assert_eq!(
            found,
            [
                ("market/superpowers/4.0.10/skills".to_owned(), "superpowers".to_owned()),
                ("other/nested/tools/1.0.0/skills".to_owned(), "tools".to_owned()),
            ]
        );
    }
}
