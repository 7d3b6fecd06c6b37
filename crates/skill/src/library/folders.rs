//! Determines which folders to watch for a catalog, and what an event in one of them means.
//!
//! Only folders that discovery has searched are watched recursively: a link in an untrusted project that
//! discovery refuses to follow must not be followed here either. The nearest existing folder above each root
//! is watched as well, not recursively, so that a root that appears, disappears or is replaced is noticed.
//! The lock file is watched in the same way, because removing trust must take effect without a restart.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use notify::event::{EventKind, ModifyKind};
use notify::{Event, RecursiveMode};

use crate::catalog::Catalog;
use crate::discover::{DiscoveryRequest, RootState};
use crate::profile::RootBase;
use crate::walk::IGNORED;

/// The folders to watch, and the paths by which events refer to the roots.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WatchedFolders {
    spots: BTreeSet<WatchedPath>,
    watches: BTreeMap<Utf8PathBuf, WatchDepth>,
}

/// Whether a folder is watched recursively.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchDepth {
    Entries,
    Everything,
}

/// A root or a link below one: the real path, as in events, and the path that discovery uses.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WatchedPath {
    real: Utf8PathBuf,
    shown: Utf8PathBuf,
}

/// The meaning of a file system event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WatchEventMeaning {
    /// Files at or below these paths may have changed.
    Touched(Vec<Utf8PathBuf>),
    /// A root, or a folder above one, was created, removed or renamed.
    Moved,
    /// Events were lost, so any file may have changed.
    Lost,
}

impl WatchedFolders {
    /// Determines the folders to watch for a catalog.
    pub(super) fn for_catalog(request: &DiscoveryRequest, catalog: &Catalog) -> Self {
        let mut folders = WatchedFolders::default();
        for report in catalog.roots() {
            folders.add_root(&report.root.dir, report.state == RootState::Searched);
        }
        if request.roots.is_none() {
            let caches =
                request.profile.roots.iter().filter(|spec| spec.base == RootBase::PluginCache);
            for cache in caches {
                folders.add_root(&request.places.home.join(cache.path), true);
            }
        }
        if let Some(lock) = &request.lock_path {
            folders.add_root(lock, false);
            folders.add_link(lock);
        }
        for link in find_links(catalog) {
            folders.add_link(&link);
        }
        folders.drop_covered();
        folders
    }

    /// Iterates over the folders to watch, in order.
    pub(super) fn watches(&self) -> impl Iterator<Item = (&Utf8Path, RecursiveMode)> {
        self.watches.iter().map(|(dir, depth)| match depth {
            WatchDepth::Entries => (dir.as_path(), RecursiveMode::NonRecursive),
            WatchDepth::Everything => (dir.as_path(), RecursiveMode::Recursive),
        })
    }

    /// Interprets an event; `None` if it does not concern a skill.
    pub(super) fn interpret_event(&self, event: &Event) -> Option<WatchEventMeaning> {
        if event.need_rescan() {
            return Some(WatchEventMeaning::Lost);
        }
        if event.kind.is_access() {
            return None;
        }
        let mut touched = Vec::new();
        for path in event.paths.iter().filter_map(|path| Utf8Path::from_path(path)) {
            for spot in &self.spots {
                if spot.real.starts_with(path) {
                    if is_create_or_remove(event.kind) {
                        return Some(WatchEventMeaning::Moved);
                    }
                    touched.push(spot.shown.clone());
                } else if let Ok(rest) = path.strip_prefix(&spot.real)
                    && !rest.iter().any(|name| IGNORED.contains(&name))
                {
                    touched.push(spot.shown.join(rest));
                }
            }
        }
        (!touched.is_empty()).then_some(WatchEventMeaning::Touched(touched))
    }

    fn add_root(&mut self, shown: &Utf8Path, in_depth: bool) {
        let Ok(absolute) = camino::absolute_utf8(shown) else { return };
        if in_depth
            && let Ok(real) = absolute.canonicalize_utf8()
            && real.is_dir()
        {
            self.watches.insert(real.clone(), WatchDepth::Everything);
            self.spots.insert(WatchedPath { real, shown: shown.to_owned() });
        }
        let mut above = absolute.ancestors().skip(1);
        if let Some(above) = above.find(|dir| dir.is_dir())
            && let Ok(real) = above.canonicalize_utf8()
            && let Ok(rest) = absolute.strip_prefix(above)
        {
            self.spots.insert(WatchedPath { real: real.join(rest), shown: shown.to_owned() });
            self.watches.entry(real).or_insert(WatchDepth::Entries);
        }
    }

    /// Follows a link that discovery has followed. A file that is not a link is accepted as well.
    fn add_link(&mut self, link: &Utf8Path) {
        let Ok(real) = link.canonicalize_utf8() else { return };
        if real.is_dir() {
            self.watches.insert(real.clone(), WatchDepth::Everything);
        } else if let Some(dir) = real.parent() {
            self.watches.entry(dir.to_owned()).or_insert(WatchDepth::Entries);
        }
        self.spots.insert(WatchedPath { real, shown: link.to_owned() });
    }

    fn drop_covered(&mut self) {
        let deep = |dir: &Utf8Path| self.watches.get(dir) == Some(&WatchDepth::Everything);
        let is_covered = |dir: &&Utf8PathBuf| dir.ancestors().skip(1).any(deep);
        let covered: Vec<Utf8PathBuf> = self.watches.keys().filter(is_covered).cloned().collect();
        for dir in covered {
            self.watches.remove(&dir);
        }
    }
}

fn is_create_or_remove(kind: EventKind) -> bool {
    match kind {
        EventKind::Any | EventKind::Create(_) | EventKind::Remove(_) => true,
        EventKind::Modify(kind) => matches!(kind, ModifyKind::Name(_)),
        EventKind::Access(_) | EventKind::Other => false,
    }
}

/// Finds the links that lead from a root to a skill: the file itself, or a folder on the way to it.
fn find_links(catalog: &Catalog) -> BTreeSet<Utf8PathBuf> {
    let mut looked_at = BTreeSet::new();
    let mut links = BTreeSet::new();
    for origin in catalog.all_entries().map(|entry| &entry.skill.origin) {
        let below_root = origin.file.ancestors().take_while(|path| *path != origin.root);
        for path in below_root.take_while(|path| looked_at.insert(path.to_path_buf())) {
            if path.is_symlink() {
                links.insert(path.to_owned());
            }
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use notify::event::{AccessKind, CreateKind, DataChange, Flag, RenameMode};

    use super::*;
    use crate::discover::discover_catalog;
    use crate::profile::{ProfileId, SearchDirectories};

    fn folders() -> WatchedFolders {
        let spot = |real: &str, shown: &str| WatchedPath { real: real.into(), shown: shown.into() };
        let spots =
            [spot("/real/skills", "skills"), spot("/p/.claude/skills", "/p/.claude/skills")];
        WatchedFolders { spots: spots.into(), watches: BTreeMap::new() }
    }

    #[track_caller]
    fn check(kind: EventKind, path: &str, expect: Option<WatchEventMeaning>) {
        assert_eq!(folders().interpret_event(&Event::new(kind).add_path(path.into())), expect);
    }

    const WRITTEN: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));

    fn touched(path: &str) -> Option<WatchEventMeaning> {
        Some(WatchEventMeaning::Touched(vec![path.into()]))
    }

    #[test]
    fn a_change_below_a_root_is_told_under_the_name_that_discovery_uses() {
        check(WRITTEN, "/real/skills/a/SKILL.md", touched("skills/a/SKILL.md"));
        check(WRITTEN, "/p/.claude/skills/a.md", touched("/p/.claude/skills/a.md"));
    }

    #[test]
    fn looking_changes_nothing_and_neighbours_and_ignored_folders_do_not_matter() {
        check(EventKind::Access(AccessKind::Any), "/real/skills/a/SKILL.md", None);
        check(WRITTEN, "/real/skills2/a/SKILL.md", None);
        check(WRITTEN, "/p/README.md", None);
        for folder in [".git", "node_modules", "target"] {
            check(WRITTEN, &format!("/real/skills/a/{folder}/x.md"), None);
        }
    }

    #[test]
    fn a_root_or_a_folder_above_it_that_comes_or_goes_moves_the_watch() {
        let created = EventKind::Create(CreateKind::Folder);
        let renamed = EventKind::Modify(ModifyKind::Name(RenameMode::From));
        check(created, "/p/.claude", Some(WatchEventMeaning::Moved));
        check(renamed, "/p/.claude/skills", Some(WatchEventMeaning::Moved));
        check(WRITTEN, "/real/skills", touched("skills"));
    }

    #[test]
    fn lost_events_are_told() {
        let event = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        assert_eq!(folders().interpret_event(&event), Some(WatchEventMeaning::Lost));
    }

    #[test]
    #[cfg(unix)]
    fn a_root_that_discovery_refuses_is_not_watched_in_depth() {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8PathBuf::from_path_buf(keep.path().canonicalize().unwrap()).unwrap();
        std::fs::create_dir_all(dir.join("project/.claude")).unwrap();
        std::fs::create_dir(dir.join("outside")).unwrap();
        std::os::unix::fs::symlink(dir.join("outside"), dir.join("project/.claude/skills"))
            .unwrap();
        let places = SearchDirectories {
            here: dir.join("project"),
            home: dir.join("home"),
            pack: dir.join("pack"),
        };
        let request = DiscoveryRequest::new(ProfileId::Claude, places);
        let folders = WatchedFolders::for_catalog(&request, &discover_catalog(&request));
        let watched: Vec<_> = folders.watches.into_iter().collect();
        let entries = |path: &Utf8Path| (path.to_owned(), WatchDepth::Entries);
        assert_eq!(watched, [entries(&dir), entries(&dir.join("project/.claude"))]);
    }
}
