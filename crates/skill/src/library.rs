//! A catalog that keeps up with the disk. Readers take the current snapshot without ever waiting; a
//! reload makes the next one from the files that have changed and puts it in place in one step.
//!
//! Nothing is changed inside a snapshot: whoever holds one works with it until taking another.

mod folders;
pub mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::Diagnostic;

use crate::catalog::{Catalog, Entry, same_findings};
use crate::codes;
use crate::discover::{FileCache, Request, discover_again};

/// A catalog that can be reloaded while it is read.
#[derive(Debug)]
pub struct Library {
    request: Request,
    current: ArcSwap<Catalog>,
    cache: Mutex<FileCache>,
}

/// What a reload found. All names are in order.
#[derive(Clone, Debug)]
pub struct Reload {
    /// The snapshot that is in place now.
    pub catalog: Arc<Catalog>,
    /// Whether it is a new one.
    pub replaced: bool,
    /// Skills that were not there before.
    pub added: Vec<String>,
    /// Skills that have gone.
    pub removed: Vec<String>,
    /// Skills whose file, text or trust is another now, or that can be loaded again.
    pub changed: Vec<String>,
    /// Skills whose file can no longer be loaded, so that the last good version stays in use.
    pub broken: Vec<String>,
    /// What was found wrong that was not before, and what kept a folder from being watched.
    pub findings: Vec<Diagnostic>,
}

/// Files whose stamps are not to be believed.
#[derive(Debug, PartialEq, Eq)]
enum Suspects {
    Paths(BTreeSet<Utf8PathBuf>),
    All,
}

impl Library {
    /// Discovers for the first time.
    pub fn open(request: Request) -> Self {
        let mut cache = FileCache::default();
        let catalog = discover_again(&request, &mut cache);
        Library { request, current: ArcSwap::from_pointee(catalog), cache: Mutex::new(cache) }
    }

    /// What is discovered.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The current snapshot; this never waits for a reload.
    pub fn snapshot(&self) -> Arc<Catalog> {
        self.current.load_full()
    }

    /// Looks at every root again and reads the files that have changed. If nothing has, the snapshot
    /// stays in place; otherwise the next generation replaces it.
    pub fn reload(&self) -> Reload {
        self.reload_suspecting(&Suspects::Paths(BTreeSet::new()))
    }

    fn reload_suspecting(&self, suspects: &Suspects) -> Reload {
        // A panic leaves the old cache in place, which is as good as before.
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        match suspects {
            Suspects::Paths(paths) => cache.distrust(paths),
            Suspects::All => cache.distrust_all(),
        }
        let found = discover_again(&self.request, &mut cache);
        let before = self.snapshot();
        if found.same_content(&before) {
            return Reload::nothing(before);
        }
        let after = Arc::new(found.with_generation(before.generation() + 1));
        self.current.store(Arc::clone(&after));
        Reload::between(&before, after)
    }
}

impl Reload {
    fn nothing(catalog: Arc<Catalog>) -> Self {
        Reload {
            catalog,
            replaced: false,
            added: Vec::new(),
            removed: Vec::new(),
            changed: Vec::new(),
            broken: Vec::new(),
            findings: Vec::new(),
        }
    }

    fn between(before: &Catalog, after: Arc<Catalog>) -> Self {
        let mut out = Reload { replaced: true, ..Reload::nothing(Arc::clone(&after)) };
        let (old, new) = (States::of(before), States::of(&after));
        for (name, states) in &new.by_name {
            match old.by_name.get(name) {
                None => out.added.push(name.id.to_owned()),
                Some(known) if known == states => {}
                Some(_) if states.iter().any(State::is_kept) => out.broken.push(name.id.to_owned()),
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

/// The skills of a snapshot by name. Some profiles keep several of one name.
struct States<'a> {
    by_name: BTreeMap<Name<'a>, Vec<State<'a>>>,
}

/// Agents have names of their own.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Name<'a> {
    id: &'a str,
    is_agent: bool,
}

/// What may change about a skill. `kept` are the findings that keep a newer text of it out.
struct State<'a> {
    entry: &'a Entry,
    kept: &'a [Diagnostic],
}

impl<'a> States<'a> {
    fn of(catalog: &'a Catalog) -> Self {
        let is_kept = |found: &&Diagnostic| found.code == &codes::KEPT_LAST_GOOD;
        let kept = catalog.diagnostics().iter().filter(is_kept);
        let kept: BTreeSet<&Utf8Path> = kept.filter_map(|found| found.path.as_deref()).collect();
        let mut by_name: BTreeMap<Name<'a>, Vec<State<'a>>> = BTreeMap::new();
        for entry in catalog.entries() {
            let name = Name { id: &entry.id, is_agent: entry.skill.is_agent() };
            let file = entry.skill.origin.file.as_path();
            let kept = if kept.contains(file) { catalog.findings_in(file) } else { &[] };
            by_name.entry(name).or_default().push(State { entry, kept });
        }
        States { by_name }
    }
}

impl State<'_> {
    fn is_kept(&self) -> bool {
        !self.kept.is_empty()
    }
}

impl PartialEq for State<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.entry.is_same(other.entry) && same_findings(self.kept, other.kept)
    }
}
