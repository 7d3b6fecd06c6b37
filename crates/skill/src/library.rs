//! A catalog that follows changes on disk. Readers take the current snapshot without waiting. A reload builds
//! the next snapshot from the files that have changed, and swaps it in atomically.
//!
//! Snapshots are immutable: a reader works with the same one until it takes another.

mod folders;
pub mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::Diagnostic;

use crate::catalog::{Catalog, CatalogEntry, have_same_findings};
use crate::codes;
use crate::discover::{DiscoveryRequest, FileCache, discover_with_cache};

/// A catalog that can be reloaded while it is in use.
#[derive(Debug)]
pub struct SkillLibrary {
    request: DiscoveryRequest,
    current: ArcSwap<Catalog>,
    cache: Mutex<FileCache>,
}

/// The result of a reload. All names are sorted.
#[derive(Clone, Debug)]
pub struct LibraryReload {
    /// The snapshot that is current now.
    pub catalog: Arc<Catalog>,
    /// True if the snapshot was replaced.
    pub replaced: bool,
    /// Skills that did not exist before.
    pub added: Vec<String>,
    /// Skills that no longer exist.
    pub removed: Vec<String>,
    /// Skills whose file, text or trust changed, or that can be loaded again.
    pub changed: Vec<String>,
    /// Skills whose file can no longer be loaded, so that the last good version stays in use.
    pub broken: Vec<String>,
    /// New findings, and the reasons why folders cannot be watched.
    pub findings: Vec<Diagnostic>,
}

/// Files that are read again even if their stamps are unchanged.
#[derive(Debug, PartialEq, Eq)]
enum SuspectFiles {
    Paths(BTreeSet<Utf8PathBuf>),
    All,
}

impl SkillLibrary {
    /// Opens a library with a first discovery.
    pub fn open(request: DiscoveryRequest) -> Self {
        let mut cache = FileCache::default();
        let catalog = discover_with_cache(&request, &mut cache);
        SkillLibrary { request, current: ArcSwap::from_pointee(catalog), cache: Mutex::new(cache) }
    }

    /// The options of discovery.
    pub fn request(&self) -> &DiscoveryRequest {
        &self.request
    }

    /// The current snapshot. This never waits for a reload.
    pub fn snapshot(&self) -> Arc<Catalog> {
        self.current.load_full()
    }

    /// Scans every root again and reads the files that have changed. If nothing has, the snapshot stays
    /// current; otherwise the next generation replaces it.
    pub fn reload(&self) -> LibraryReload {
        self.reload_suspecting(&SuspectFiles::Paths(BTreeSet::new()))
    }

    fn reload_suspecting(&self, suspects: &SuspectFiles) -> LibraryReload {
        // A panic during an earlier reload left the old cache in place, which is still valid.
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        match suspects {
            SuspectFiles::Paths(paths) => cache.clear_stamps(paths),
            SuspectFiles::All => cache.clear_all_stamps(),
        }
        let found = discover_with_cache(&self.request, &mut cache);
        let before = self.snapshot();
        if found.has_same_content(&before) {
            return LibraryReload::without_changes(before);
        }
        let after = Arc::new(found.with_generation(before.generation() + 1));
        self.current.store(Arc::clone(&after));
        LibraryReload::between_catalogs(&before, after)
    }
}

impl LibraryReload {
    fn without_changes(catalog: Arc<Catalog>) -> Self {
        LibraryReload {
            catalog,
            replaced: false,
            added: Vec::new(),
            removed: Vec::new(),
            changed: Vec::new(),
            broken: Vec::new(),
            findings: Vec::new(),
        }
    }

    fn between_catalogs(before: &Catalog, after: Arc<Catalog>) -> Self {
        let mut out =
            LibraryReload { replaced: true, ..LibraryReload::without_changes(Arc::clone(&after)) };
        let (old, new) =
            (CatalogSkillStates::from_catalog(before), CatalogSkillStates::from_catalog(&after));
        for (name, states) in &new.by_name {
            match old.by_name.get(name) {
                None => out.added.push(name.id.to_owned()),
                Some(known) if known == states => {}
                Some(_) if states.iter().any(CatalogSkillState::is_kept) => {
                    out.broken.push(name.id.to_owned())
                }
                Some(_) => out.changed.push(name.id.to_owned()),
            }
        }
        let gone = old.by_name.keys().filter(|name| !new.by_name.contains_key(name));
        out.removed = gone.map(|name| name.id.to_owned()).collect();
        let known: BTreeSet<_> = before.diagnostics().iter().map(Diagnostic::sort_key).collect();
        let is_new = |found: &&Diagnostic| !known.contains(&found.sort_key());
        out.findings = after.diagnostics().iter().filter(is_new).cloned().collect();
        out
    }
}

/// The skills of a snapshot by name. Some profiles keep several skills of one name.
struct CatalogSkillStates<'a> {
    by_name: BTreeMap<SkillKey<'a>, Vec<CatalogSkillState<'a>>>,
}

/// The key of a skill. Agents are a separate namespace.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct SkillKey<'a> {
    id: &'a str,
    is_agent: bool,
}

/// The state of a skill that a reload compares. `kept` holds the findings that keep a newer text out.
struct CatalogSkillState<'a> {
    entry: &'a CatalogEntry,
    kept: &'a [Diagnostic],
}

impl<'a> CatalogSkillStates<'a> {
    fn from_catalog(catalog: &'a Catalog) -> Self {
        let is_kept = |found: &&Diagnostic| found.code == &codes::KEPT_LAST_GOOD;
        let kept = catalog.diagnostics().iter().filter(is_kept);
        let kept: BTreeSet<&Utf8Path> = kept.filter_map(|found| found.path.as_deref()).collect();
        let mut by_name: BTreeMap<SkillKey<'a>, Vec<CatalogSkillState<'a>>> = BTreeMap::new();
        for entry in catalog.entries() {
            let name = SkillKey { id: &entry.id, is_agent: entry.skill.is_agent() };
            let file = entry.skill.origin.file.as_path();
            let kept = if kept.contains(file) { catalog.findings_in(file) } else { &[] };
            by_name.entry(name).or_default().push(CatalogSkillState { entry, kept });
        }
        CatalogSkillStates { by_name }
    }
}

impl CatalogSkillState<'_> {
    fn is_kept(&self) -> bool {
        !self.kept.is_empty()
    }
}

impl PartialEq for CatalogSkillState<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.entry.is_same(other.entry) && have_same_findings(self.kept, other.kept)
    }
}
