//! The skills of a catalog as they are served: each under a unique path, sorted. Names are assigned
//! for all skills at once; texts, files and digests are computed on demand and cached until a file
//! changes.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use repertoire_skill::catalog::{Catalog, CatalogEntry};
use repertoire_skill::render::catalog::is_offered;
use repertoire_text::yaml::Value;

use super::manifest::{NotServed, SkillManifest};
use super::name;
use super::served_text::ServedSkillText;
use super::uri;

/// The skills of a catalog as they are served.
pub(super) struct ServedSkills {
    catalog: Arc<Catalog>,
    extra: Arc<[CatalogEntry]>,
    /// Sorted by path.
    books: Vec<ServedSkill>,
    /// The indices of the listed ones, in the same order.
    listed: Vec<usize>,
}

/// A served skill.
pub(super) struct ServedSkill {
    /// The path: its name, after its plugin's if it has one.
    pub(super) path: String,
    place: SkillSource,
    copy: OnceLock<Arc<ServedSkillText>>,
    manifest: Mutex<Option<Arc<SkillManifest>>>,
}

#[derive(Clone, Copy)]
enum SkillSource {
    Catalog(usize),
    Extra(usize),
}

impl ServedSkills {
    /// Assigns the names. `extra` skills are served in addition to those of the catalog.
    pub(super) fn new(catalog: Arc<Catalog>, extra: Arc<[CatalogEntry]>) -> Self {
        let mut books: Vec<ServedSkill> = assign_paths(&catalog, &extra)
            .into_iter()
            .map(|(place, path)| ServedSkill {
                path,
                place,
                copy: OnceLock::new(),
                manifest: Mutex::new(None),
            })
            .collect();
        books.sort_by(|a, b| a.path.cmp(&b.path));
        let mut shelf = ServedSkills { catalog, extra, books, listed: Vec::new() };
        let offered = |at: &usize| is_offered(shelf.entry(&shelf.books[*at]));
        shelf.listed = (0..shelf.books.len()).filter(offered).collect();
        shelf
    }

    /// The generation of the catalog.
    pub(super) fn generation(&self) -> u64 {
        self.catalog.generation()
    }

    /// The listed skills, sorted by path. A skill that only users may invoke is served, but not
    /// listed.
    pub(super) fn listed_skills(&self) -> Vec<&ServedSkill> {
        self.listed.iter().map(|at| &self.books[*at]).collect()
    }

    /// Finds the skill of a URI, and the rest of the URI below its folder.
    pub(super) fn find_by_segments<'s>(
        &self,
        segments: &'s [String],
    ) -> Option<(&ServedSkill, &'s [String])> {
        let first = segments.first()?;
        let (path, rest) = if first.contains('.') {
            (format!("{first}/{}", segments.get(1)?), &segments[2..])
        } else {
            (first.clone(), &segments[1..])
        };
        let at = self.books.binary_search_by(|book| book.path.as_str().cmp(&path)).ok()?;
        Some((&self.books[at], rest))
    }

    /// Finds a skill by the URI of its `SKILL.md`.
    pub(super) fn find_by_uri(&self, uri: &str) -> Option<&ServedSkill> {
        let segments = uri::parse_uri(uri).filter(|_| !uri.ends_with('/'))?;
        let (book, rest) = self.find_by_segments(&segments)?;
        (rest == [uri::SKILL_FILE]).then_some(book)
    }

    /// The catalog entry of a skill.
    pub(super) fn entry(&self, book: &ServedSkill) -> &CatalogEntry {
        match book.place {
            SkillSource::Catalog(at) => &self.catalog.entries()[at],
            SkillSource::Extra(at) => &self.extra[at],
        }
    }

    /// The URI of a skill of the catalog.
    pub(super) fn uri_of(&self, entry: &CatalogEntry) -> Option<String> {
        let is_it = |book: &&ServedSkill| Arc::ptr_eq(&self.entry(book).skill, &entry.skill);
        self.books.iter().find(is_it).map(ServedSkill::uri)
    }

    /// The `SKILL.md` of a skill as it is served.
    pub(super) fn served_text(&self, book: &ServedSkill) -> Arc<ServedSkillText> {
        let make = || Arc::new(ServedSkillText::from_skill(&self.entry(book).skill, book.name()));
        Arc::clone(book.copy.get_or_init(make))
    }

    /// The current files of a skill.
    pub(super) fn manifest(&self, book: &ServedSkill) -> Result<Arc<SkillManifest>, NotServed> {
        let copy = self.served_text(book);
        let before = book.manifest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let now = SkillManifest::read_skill(&self.entry(book).skill, &copy, before.as_deref())?;
        let now = Arc::new(now);
        *book.manifest.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&now));
        Ok(now)
    }
}

impl ServedSkill {
    /// The name: the last segment of the path.
    pub(super) fn name(&self) -> &str {
        self.path.rsplit_once('/').map_or(self.path.as_str(), |(_, name)| name)
    }

    pub(super) fn uri(&self) -> String {
        uri::format_uri(&self.path, uri::SKILL_FILE)
    }
}

/// Assigns a path to every skill. Skills with a valid name come first, and among those the ones
/// whose catalog id has that name; then, in the order of the catalog, those whose name must be
/// corrected.
fn assign_paths(catalog: &Catalog, extra: &[CatalogEntry]) -> Vec<(SkillSource, String)> {
    let all: Vec<(SkillSource, &CatalogEntry)> = catalog
        .entries()
        .iter()
        .enumerate()
        .map(|(at, entry)| (SkillSource::Catalog(at), entry))
        .chain(extra.iter().enumerate().map(|(at, entry)| (SkillSource::Extra(at), entry)))
        .filter(|(_, entry)| !entry.skill.is_agent())
        .collect();
    let mut taken: HashSet<String> = HashSet::with_capacity(all.len());
    let mut paths = Vec::with_capacity(all.len());
    let mut later = Vec::new();
    for &(place, entry) in &all {
        let name = written_name(entry)
            .filter(|name| name::is_allowed(name) && bare_name(&entry.id) == *name);
        let path =
            name.map(|name| skill_path(entry, name)).filter(|path| taken.insert(path.clone()));
        match path {
            Some(path) => paths.push((place, path)),
            None => later.push((place, entry)),
        }
    }
    let (allowed, wrong): (Vec<_>, Vec<_>) =
        later.into_iter().partition(|(_, entry)| written_name(entry).is_some_and(name::is_allowed));
    for (place, entry) in allowed.into_iter().chain(wrong) {
        let name = name::correct_name(
            written_name(entry).unwrap_or(&entry.skill.name),
            entry.skill.origin.stem(),
        );
        let candidates =
            std::iter::once(name.clone()).chain((2..).map(|at| name::number_name(&name, at)));
        let free =
            candidates.map(|name| skill_path(entry, &name)).find(|path| taken.insert(path.clone()));
        paths.extend(free.map(|path| (place, path)));
    }
    paths
}

/// The name as written in the file.
fn written_name(entry: &CatalogEntry) -> Option<&str> {
    match &entry.skill.frontmatter.get("name")?.value {
        Value::Scalar(scalar) => Some(scalar.text.as_str()),
        Value::Sequence(..) | Value::Mapping(_) => None,
    }
}

fn bare_name(id: &str) -> &str {
    id.rsplit_once(':').map_or(id, |(_, name)| name)
}

/// The path of a skill. A plugin's skills are below `NAME.plugin`; the dot distinguishes it from
/// all skills.
fn skill_path(entry: &CatalogEntry, name: &str) -> String {
    match &entry.skill.origin.plugin {
        Some(plugin) => format!("{}.plugin/{name}", name::correct_name(&plugin.name, "")),
        None => name.to_owned(),
    }
}
