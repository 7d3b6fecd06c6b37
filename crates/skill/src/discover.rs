//! Builds a catalog: finds the roots, walks them, reads the files and orders the skills.
//!
//! Files are read through a [`FileCache`], so that a reload reads only what has changed. If a file can no
//! longer be loaded, its last good version stays in use, with a diagnostic.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use rayon::prelude::*;
use repertoire_text::fs::{self, FileStamp, FolderHandle, ReadError};
use repertoire_text::{Diagnostic, SharedText, Source, codes as text_codes, frontmatter};

use crate::catalog::{Catalog, CatalogBuilder, RootReport};
use crate::codes;
use crate::dependencies::NearestNameCache;
use crate::dialect::is_skill_file;
use crate::limits::{SkillLimits, WalkLimits};
use crate::load::{SkillLoadResult, load_skill_with};
use crate::pack;
use crate::profile::{Profile, ProfileId, Root, RootContents, SearchDirectories};
use crate::skill::{Scope, Skill, SkillOrigin};
use crate::trust::TrustLock;
use crate::walk::{SkillCandidate, WalkOptions, WalkResult, is_refused_name, walk_folder};

/// The maximum size of the frontmatter that makes a single file a skill.
const FLAT_FRONTMATTER_BYTES_MAX: usize = 64 * 1024;

/// The options of discovery.
#[derive(Clone, Debug)]
pub struct DiscoveryRequest {
    /// The agent whose search paths and rules are followed.
    pub profile: &'static Profile,
    /// The directories to start from.
    pub places: SearchDirectories,
    /// Roots that the user named; they come first.
    pub extra_roots: Vec<Root>,
    /// Roots from the configuration, which replace those of the profile.
    pub roots: Option<Vec<Root>>,
    pub limits: SkillLimits,
    /// The trusted skills, used if `lock_path` is `None`.
    pub lock: TrustLock,
    /// The lock file with the trusted skills. It is read on every reload, because trust may be removed at any
    /// time.
    pub lock_path: Option<Utf8PathBuf>,
    /// True if the built-in pack is kept as files in the data folder.
    pub sync_pack: bool,
}

impl DiscoveryRequest {
    /// Creates a request with the profile's own roots, default limits and an empty lock.
    pub fn new(profile: ProfileId, places: SearchDirectories) -> Self {
        DiscoveryRequest {
            profile: profile.profile(),
            places,
            extra_roots: Vec::new(),
            roots: None,
            limits: SkillLimits::default(),
            lock: TrustLock::default(),
            lock_path: None,
            sync_pack: true,
        }
    }

    /// Returns all roots in order, whether they exist or not.
    pub fn all_roots(&self) -> Vec<Root> {
        self.find_roots().0
    }

    /// Returns a copy with the lock as it is on disk now. If it cannot be read, no skill is trusted, and the
    /// diagnostic says so.
    fn with_lock_from_disk(&self, path: &Utf8Path) -> (DiscoveryRequest, Option<Diagnostic>) {
        let (lock, found) = match TrustLock::read(path) {
            Ok(lock) => (lock, None),
            Err(error) => (TrustLock::default(), Some(error.to_diagnostic())),
        };
        (DiscoveryRequest { lock, lock_path: None, ..self.clone() }, found)
    }

    fn find_roots(&self) -> (Vec<Root>, Vec<Diagnostic>) {
        let (own, findings) = match &self.roots {
            Some(roots) => (roots.clone(), Vec::new()),
            None => self.profile.find_roots(&self.places),
        };
        (self.extra_roots.iter().cloned().chain(own).collect(), findings)
    }
}

/// The files that were read, so that the next discovery reads only changes.
#[derive(Debug, Default)]
pub struct FileCache {
    shelves: Vec<RootCache>,
    neighbours: NearestNameCache,
}

/// The cached files of one root. Roots may overlap, so two of them may contain the same path.
#[derive(Debug)]
struct RootCache {
    root: Root,
    /// Keyed by path as text: comparing paths by component is slower than reading the files.
    files: BTreeMap<String, CachedFile>,
}

/// A cached file. `text` is `None` if it could not be read or is not a skill.
#[derive(Clone, Debug)]
struct CachedFile {
    stamp: FileStamp,
    text: Option<SharedText>,
    skill: Option<Arc<Skill>>,
    diagnostics: Arc<[Diagnostic]>,
}

impl FileCache {
    /// Clears the stamps of these files, and of all files in these folders, so that they are read again even
    /// if they look unchanged.
    pub fn clear_stamps(&mut self, paths: &BTreeSet<Utf8PathBuf>) {
        if paths.is_empty() {
            return;
        }
        for (path, file) in self.shelves.iter_mut().flat_map(|shelf| &mut shelf.files) {
            if Utf8Path::new(path).ancestors().any(|above| paths.contains(above)) {
                file.stamp = FileStamp::default();
            }
        }
    }

    /// Clears all stamps, for when it is unknown what has changed.
    pub fn clear_all_stamps(&mut self) {
        for file in self.shelves.iter_mut().flat_map(|shelf| shelf.files.values_mut()) {
            file.stamp = FileStamp::default();
        }
    }

    /// Returns the cached files of each root. The lookup is by path, because a project may have thousands of
    /// roots.
    fn caches_of_roots(&self, roots: &[Root]) -> Vec<Option<&RootCache>> {
        let mut by_dir: BTreeMap<&str, Vec<&RootCache>> = BTreeMap::new();
        for shelf in &self.shelves {
            by_dir.entry(shelf.root.dir.as_str()).or_default().push(shelf);
        }
        let shelf = |root: &Root| {
            by_dir.get(root.dir.as_str())?.iter().copied().find(|shelf| shelf.root == *root)
        };
        roots.iter().map(shelf).collect()
    }
}

/// Discovers all skills without a cache.
pub fn discover_catalog(request: &DiscoveryRequest) -> Catalog {
    discover_with_cache(request, &mut FileCache::default())
}

/// Discovers all skills, reading only files that have changed since the cache was filled.
pub fn discover_with_cache(request: &DiscoveryRequest, cache: &mut FileCache) -> Catalog {
    let Some(path) = &request.lock_path else { return discover_with_lock(request, None, cache) };
    let (request, damage) = request.with_lock_from_disk(path);
    discover_with_lock(&request, damage, cache)
}

/// Discovers with the lock of the request. `damage` is set if the lock on disk could not be read.
fn discover_with_lock(
    request: &DiscoveryRequest,
    damage: Option<Diagnostic>,
    cache: &mut FileCache,
) -> Catalog {
    let mut builder = CatalogBuilder::new(request);
    damage.into_iter().for_each(|found| builder.add_diagnostic(found));
    let (roots, findings) = request.find_roots();
    findings.into_iter().for_each(|found| builder.add_diagnostic(found));
    let mut in_place = false;
    if request.sync_pack && roots.iter().any(|root| root.scope == Scope::Builtin) {
        match pack::sync_pack(&request.places.pack) {
            Ok(left_alone) => {
                left_alone.into_iter().for_each(|found| builder.add_diagnostic(found))
            }
            Err(diagnostic) => {
                builder.add_diagnostic(*diagnostic);
                in_place = true;
            }
        }
    }
    let mut seen = BTreeSet::new();
    let mut work: Vec<(usize, SkillCandidate)> = Vec::new();
    // Finding the repository reads several files, so do it once rather than for every root or skill.
    let project = request.places.project_dir();
    for (number, root) in roots.iter().enumerate() {
        let link_boundary = link_boundary(root, request.profile.id, project);
        let walked = match examine_root(root, link_boundary, &mut seen) {
            RootDecision::Walk => walk_root(root, request, link_boundary),
            RootDecision::Skip(..) if root.scope == Scope::Builtin && in_place => {
                let found = load_pack(root, request, &mut builder);
                builder.add_root(RootReport {
                    root: root.clone(),
                    state: RootState::InPlace,
                    found,
                });
                continue;
            }
            RootDecision::Skip(state, diagnostic) => {
                builder.add_root(RootReport { root: root.clone(), state, found: 0 });
                diagnostic.into_iter().for_each(|found| builder.add_diagnostic(found));
                continue;
            }
        };
        builder.add_root(RootReport {
            root: root.clone(),
            state: RootState::Searched,
            found: walked.candidates.len(),
        });
        walked.diagnostics.into_iter().for_each(|found| builder.add_diagnostic(found));
        work.extend(walked.candidates.into_iter().map(|candidate| (number, candidate)));
    }
    let known = cache.caches_of_roots(&roots);
    let project_boundary = ReadBoundary::open(project);
    let files: Vec<Option<CachedFile>> = work
        .par_iter()
        .map(|(number, candidate)| {
            let cached = known[*number].and_then(|shelf| shelf.files.get(candidate.path.as_str()));
            let root = &roots[*number];
            // Open plugin boundaries on demand: one open folder per plugin could exceed the limit on open
            // files.
            let boundary = match link_boundary(root, request.profile.id, project) {
                Some(dir) if dir == project => project_boundary.clone(),
                Some(dir) => ReadBoundary::open(dir),
                None => None,
            };
            read_file(root, candidate, (request, boundary.as_ref()), cached)
        })
        .collect();
    let mut shelves: Vec<RootCache> =
        roots.into_iter().map(|root| RootCache { root, files: BTreeMap::new() }).collect();
    for ((number, candidate), file) in work.into_iter().zip(files) {
        let Some(file) = file else { continue };
        let shelf = &mut shelves[number];
        builder.add_file(&candidate.path, shelf.root.scope, file.skill.clone(), &file.diagnostics);
        shelf.files.insert(candidate.path.into_string(), file);
    }
    cache.shelves = shelves;
    builder.finish(&mut cache.neighbours)
}

/// The result of examining a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RootState {
    /// The root was searched.
    Searched,
    /// The root does not exist.
    Missing,
    /// The root is the same folder as an earlier one.
    Duplicate,
    /// The root is a link out of the project, or not a folder.
    Refused,
    /// The root is the built-in pack, which could not be written to disk and is used from memory.
    #[serde(rename = "in-place")]
    InPlace,
}

enum RootDecision {
    Walk,
    Skip(RootState, Option<Diagnostic>),
}

fn examine_root(
    root: &Root,
    link_boundary: Option<&Utf8Path>,
    seen: &mut BTreeSet<(String, RootContents)>,
) -> RootDecision {
    if is_refused_name(root.dir.as_str()) {
        let code = &codes::NAME_ON_DISK;
        let message =
            format!("the root `{}` has control characters", root.dir.as_str().escape_debug());
        let found = Diagnostic::new(code, message).help(code.remedy);
        return RootDecision::Skip(RootState::Refused, Some(found));
    }
    let Ok(real) = root.dir.canonicalize_utf8() else {
        if root.dir.is_symlink() {
            let code = &text_codes::LINK_LEAVES;
            let message = "the root is a symbolic link that is broken or circular";
            let found = Diagnostic::new(code, message).in_file(&root.dir).help(code.remedy);
            return RootDecision::Skip(RootState::Refused, Some(found));
        }
        let code = &codes::ROOT_MISSING;
        let missing =
            || Diagnostic::new(code, "the root is not there").in_file(&root.dir).help(code.remedy);
        return RootDecision::Skip(RootState::Missing, root.named.then(missing));
    };
    if !real.is_dir() {
        let code = &text_codes::NOT_A_FILE;
        let message = "the root is not a folder";
        let found = Diagnostic::new(code, message).in_file(&root.dir).help("Name a folder.");
        return RootDecision::Skip(RootState::Refused, Some(found));
    }
    if let Some(boundary) = link_boundary
        && !real.starts_with(boundary.canonicalize_utf8().unwrap_or_else(|_| boundary.to_owned()))
    {
        let code = &text_codes::LINK_LEAVES;
        let (message, help) = if root.dir.starts_with(boundary) {
            ("the root is a symbolic link that leads out of the project or plugin", code.remedy)
        } else {
            ("a project may only name folders of its own", "Name it in your own configuration.")
        };
        let found = Diagnostic::new(code, message).in_file(&root.dir).help(help);
        return RootDecision::Skip(RootState::Refused, Some(found));
    }
    if seen.insert((real.into_string(), root.holds)) {
        RootDecision::Walk
    } else {
        RootDecision::Skip(RootState::Duplicate, None)
    }
}

/// Returns the folder that links beneath a root must not leave. Only the user's own folders may link
/// anywhere.
fn link_boundary<'a>(
    root: &'a Root,
    profile: ProfileId,
    project: &'a Utf8Path,
) -> Option<&'a Utf8Path> {
    match root.scope {
        Scope::Project if profile == ProfileId::Openskills => None,
        Scope::Project => Some(project),
        Scope::Plugin => root.dir.parent(),
        Scope::Builtin | Scope::User | Scope::Extra => None,
    }
}

fn walk_root(
    root: &Root,
    request: &DiscoveryRequest,
    link_boundary: Option<&Utf8Path>,
) -> WalkResult {
    let configured = request.limits.walk;
    let depth_max = match root.holds {
        RootContents::Skills => request.profile.depth_max.unwrap_or(configured.depth_max),
        RootContents::Agents => 2,
    };
    let options = WalkOptions {
        limits: WalkLimits { depth_max, ..configured },
        depth_is_habit: request.profile.depth_max.is_some() || root.holds == RootContents::Agents,
        flat_files: request.profile.flat_files || root.holds == RootContents::Agents,
        inside_resources: false,
        links_beneath: link_boundary,
    };
    let mut walked = walk_folder(&root.dir, &options);
    if root.holds == RootContents::Agents {
        walked.candidates.retain(|found| found.siblings.is_empty());
    }
    walked
}

/// A folder that contains every file that is read through it, even if a file is replaced by a link after it
/// was listed.
#[derive(Clone)]
pub(crate) struct ReadBoundary {
    folder: Arc<FolderHandle>,
    /// A folder at or beneath the boundary as file paths spell it, and its path relative to the boundary.
    dir: Utf8PathBuf,
    inner: Utf8PathBuf,
}

impl ReadBoundary {
    /// Opens a boundary for paths that begin with the boundary itself.
    pub(crate) fn open(dir: &Utf8Path) -> Option<Self> {
        let folder = Arc::new(FolderHandle::open(dir).ok()?);
        Some(ReadBoundary { folder, dir: dir.to_owned(), inner: Utf8PathBuf::new() })
    }

    /// Opens a boundary for paths that begin with a folder beneath it, which may be spelled differently.
    pub(crate) fn open_above(boundary: &Utf8Path, dir: &Utf8Path) -> Option<Self> {
        let folder = Arc::new(FolderHandle::open(boundary).ok()?);
        let real = dir.canonicalize_utf8().ok()?;
        let inner = real.strip_prefix(folder.real_path().ok()?).ok()?.to_owned();
        Some(ReadBoundary { folder, dir: dir.to_owned(), inner })
    }

    /// Returns the path of a file relative to the boundary; `None` if it is spelled differently.
    fn relative_path(&self, path: &Utf8Path) -> Option<Utf8PathBuf> {
        let rest = path.as_str().strip_prefix(self.dir.as_str().trim_end_matches('/'))?;
        Some(self.inner.join(rest.strip_prefix('/')?))
    }
}

/// Reads a file that a walk found, with the stamp of the version that was read.
pub(crate) fn read_candidate(
    candidate: &SkillCandidate,
    boundary: Option<&ReadBoundary>,
    bytes_max: u64,
) -> Result<(String, FileStamp), ReadError> {
    // Check a link's target before opening it, because opening a device may have side effects.
    candidate.target.as_deref().map_or(Ok(()), fs::refuse_irregular)?;
    let within = boundary.and_then(|at| Some((&at.folder, at.relative_path(&candidate.path)?)));
    match within {
        Some((folder, relative)) => {
            let found = folder.find(&relative)?;
            Ok((found.read_text(bytes_max)?, found.stamp()))
        }
        None => fs::read_stamped(candidate.target.as_deref().unwrap_or(&candidate.path), bytes_max),
    }
}

/// Reads a file, or takes it from the cache. Returns `None` if it is gone since it was listed.
fn read_file(
    root: &Root,
    candidate: &SkillCandidate,
    (request, boundary): (&DiscoveryRequest, Option<&ReadBoundary>),
    cached: Option<&CachedFile>,
) -> Option<CachedFile> {
    let real = candidate.target.as_deref().unwrap_or(&candidate.path);
    if let Some(file) = cached
        && FileStamp::of_file(real) == Some(file.stamp)
    {
        return Some(file.clone());
    }
    let read = read_candidate(candidate, boundary, request.limits.text.file_bytes_max);
    let (text, stamp) = match read {
        Ok(read) => read,
        Err(error) => return record_unreadable(&error, candidate, cached),
    };
    if let Some(file) = cached
        && file.text.as_deref() == Some(text.as_str())
    {
        return Some(CachedFile { stamp, ..file.clone() });
    }
    let is_flat = !candidate.path.file_name().is_some_and(is_skill_file);
    let was_skill = cached.is_some_and(|file| file.skill.is_some());
    if is_flat && !looks_like_a_skill(&text) && !(was_skill && frontmatter_is_broken(&text)) {
        let none: Arc<[Diagnostic]> = Arc::default();
        return Some(CachedFile { stamp, text: None, skill: None, diagnostics: none });
    }
    let origin = SkillOrigin {
        file: candidate.path.clone(),
        root: root.dir.clone(),
        scope: root.scope,
        plugin: root.plugin.clone(),
    };
    let source = Source::new(candidate.path.clone(), text);
    let text = source.shared_text();
    let missing = request.profile.missing_description;
    let SkillLoadResult { skill, diagnostics } =
        load_skill_with(source, origin, &request.limits.text, missing);
    let file = CachedFile {
        stamp,
        text: Some(text),
        skill: skill.map(Arc::new),
        diagnostics: diagnostics.into(),
    };
    Some(keep_last_good(file, cached, &candidate.path))
}

/// Returns the record of a file that was listed but cannot be read. It has no stamp, so that the next
/// discovery tries again. A path that is no longer a regular file does not keep its last good version.
fn record_unreadable(
    error: &ReadError,
    candidate: &SkillCandidate,
    cached: Option<&CachedFile>,
) -> Option<CachedFile> {
    let broken = CachedFile {
        stamp: FileStamp::default(),
        text: None,
        skill: None,
        diagnostics: Arc::from([error.to_diagnostic(&candidate.path)]),
    };
    match error {
        ReadError::NotFound => None,
        ReadError::NotRegular { .. } | ReadError::PathRefused | ReadError::LinkLeaves => {
            Some(broken)
        }
        ReadError::TooLarge { .. } | ReadError::NotUtf8 { .. } | ReadError::Io(_) => {
            Some(keep_last_good(broken, cached, &candidate.path))
        }
    }
}

/// Returns true if a Markdown file outside a skill's folder declares a `name` or `type` in its frontmatter.
pub fn looks_like_a_skill(text: &str) -> bool {
    let Ok(parts) = frontmatter::split(text, FLAT_FRONTMATTER_BYTES_MAX) else { return false };
    let yaml = parts.yaml.slice(text);
    yaml.lines().any(|line| line.starts_with("name:") || line.starts_with("type:"))
}

/// Returns true if the frontmatter is missing or not closed, which indicates an unfinished edit. A complete
/// one without a name is an ordinary page.
fn frontmatter_is_broken(text: &str) -> bool {
    frontmatter::split(text, FLAT_FRONTMATTER_BYTES_MAX).is_err()
}

fn keep_last_good(new: CachedFile, old: Option<&CachedFile>, path: &Utf8Path) -> CachedFile {
    let Some(good) = old.and_then(|file| file.skill.clone()) else { return new };
    if new.skill.is_some() {
        return new;
    }
    let code = &codes::KEPT_LAST_GOOD;
    let message = "the file can no longer be loaded; its last good version stays in use";
    let mut diagnostics = new.diagnostics.to_vec();
    diagnostics.push(Diagnostic::new(code, message).in_file(path).help(code.remedy));
    CachedFile { skill: Some(good), diagnostics: diagnostics.into(), ..new }
}

/// Loads the embedded pack without touching the disk. Returns the number of its skills.
fn load_pack(root: &Root, request: &DiscoveryRequest, builder: &mut CatalogBuilder<'_>) -> usize {
    let mut count = 0;
    for path in pack::list_pack_files() {
        let flat = !Utf8Path::new(path.as_ref()).file_name().is_some_and(is_skill_file);
        let Some(bytes) = pack::read_pack_file(&path) else { continue };
        let Ok(text) = std::str::from_utf8(&bytes) else { continue };
        if !path.ends_with(".md") || (flat && !looks_like_a_skill(text)) {
            continue;
        }
        let file = root.dir.join(path.as_ref());
        let origin = SkillOrigin {
            file: file.clone(),
            root: root.dir.clone(),
            scope: root.scope,
            plugin: None,
        };
        let source = Source::new(file.clone(), text);
        let missing = request.profile.missing_description;
        let loaded = load_skill_with(source, origin, &request.limits.text, missing);
        builder.add_file(&file, root.scope, loaded.skill.map(Arc::new), &loaded.diagnostics);
        count += 1;
    }
    count
}
