//! Lists one folder: the files that may be skills, the folders that may hold some, and what is skipped.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{self, EntryKind, FolderEntry};
use repertoire_text::invisible;
use repertoire_text::{Diagnostic, codes as text_codes};

use super::{SkillCandidate, WalkOptions};
use crate::codes;
use crate::dialect::is_skill_file;

/// Folders that never hold skills.
pub(crate) const IGNORED: &[&str] = &[".git", "node_modules", "target"];

/// Folders of a skill that hold its resources; a `SKILL.md` in there is a template, not a skill.
const RESOURCE_FOLDERS: &[&str] = &[
    "references",
    "reference",
    "assets",
    "scripts",
    "examples",
    "resources",
    "templates",
    "evals",
];

/// A folder to list.
pub(super) struct WalkFolder {
    pub(super) dir: Utf8PathBuf,
    pub(super) in_skill: bool,
    /// The real path of the folder, if it is a link.
    pub(super) behind_link: Option<Utf8PathBuf>,
    /// True if it is a link or below one.
    linked: bool,
}

impl WalkFolder {
    pub(super) fn for_root(dir: &Utf8Path) -> Self {
        WalkFolder { dir: dir.to_owned(), in_skill: false, behind_link: None, linked: false }
    }
}

/// How much of a folder is read.
#[derive(Clone, Copy)]
pub(super) enum ReadQuota<'a> {
    /// Entries from a budget that all folders of a level share.
    Shared(&'a AtomicUsize),
    /// At most this many entries; if there are more, the listing is discarded.
    AtMost(usize),
    /// Only entries that may be a skill or hold one: at most `kept_max` of them, out of at most `read_max`.
    Useful { kept_max: usize, read_max: usize },
}

/// The contents of one folder.
#[derive(Default)]
pub(super) struct FolderListing {
    pub(super) candidates: Vec<SkillCandidate>,
    pub(super) folders: Vec<WalkFolder>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The number of entries that were read, and how many of them were examined.
    pub(super) read: usize,
    pub(super) kept: usize,
    /// True if the folder has more entries.
    pub(super) cut: bool,
    refused_names: Vec<String>,
    refused_links: Vec<Utf8PathBuf>,
    /// The targets of links in this folder, by their text, so that a thousand equal links are resolved once.
    link_targets: BTreeMap<Utf8PathBuf, Option<Utf8PathBuf>>,
}

/// The data that all listings of a walk share.
pub(super) struct FolderLister<'a> {
    pub(super) options: &'a WalkOptions<'a>,
    real_root: Utf8PathBuf,
    links_beneath: Option<Utf8PathBuf>,
}

/// The location of a link.
struct LinkPosition<'a> {
    folder: &'a WalkFolder,
    real_dir: Option<&'a Utf8Path>,
    in_skill: bool,
}

/// An entry of a folder.
struct NamedEntry {
    name: String,
    kind: EntryKind,
}

impl<'a> FolderLister<'a> {
    pub(super) fn new(root: &Utf8Path, options: &'a WalkOptions<'a>) -> Self {
        let links_beneath = options.links_beneath.map(real_path);
        FolderLister { options, real_root: real_path(root), links_beneath }
    }

    pub(super) fn list_folder(&self, folder: &WalkFolder, take: ReadQuota<'_>) -> FolderListing {
        let mut out = FolderListing::default();
        let mut entries = match read_entries(&folder.dir, take, &mut out) {
            Ok(entries) => entries,
            // A folder that vanished after it was found is not an error.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return out,
            Err(error) => {
                let message = format!("the folder cannot be read: {error}");
                let code = &text_codes::UNREADABLE;
                let found = Diagnostic::new(code, message).in_file(&folder.dir).help(code.remedy);
                out.diagnostics.push(found);
                return out;
            }
        };
        if out.cut && matches!(take, ReadQuota::AtMost(_)) {
            return out;
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        if let ReadQuota::Useful { kept_max, .. } = take {
            entries.truncate(kept_max);
        }
        out.kept = entries.len();
        self.classify_entries(folder, &entries, &mut out);
        out.diagnostics.extend(refused_names_diagnostic(&folder.dir, &out.refused_names));
        out.diagnostics.extend(refused_links_diagnostic(&out.refused_links));
        out
    }

    fn classify_entries(
        &self,
        folder: &WalkFolder,
        entries: &[NamedEntry],
        out: &mut FolderListing,
    ) {
        let skill_files: Vec<&str> =
            entries.iter().map(|entry| entry.name.as_str()).filter(|n| is_skill_file(n)).collect();
        let in_skill = folder.in_skill || !skill_files.is_empty();
        let has_links = entries.iter().any(|entry| entry.kind == EntryKind::Link);
        let real_dir = has_links.then(|| folder.dir.canonicalize_utf8().ok()).flatten();
        for entry in entries {
            let path = folder.dir.join(&entry.name);
            if skill_files.first() == Some(&entry.name.as_str()) {
                let siblings = entries.iter().map(|entry| entry.name.clone()).collect();
                self.push_file(out, folder, path, entry.kind, siblings);
            } else if skill_files.contains(&entry.name.as_str()) {
                out.diagnostics.push(second_file_diagnostic(&path, skill_files[0]));
            } else if entry.kind == EntryKind::Folder {
                self.push_folder(out, folder, path, in_skill);
            } else if self.options.flat_files && !in_skill && is_flat_name(&entry.name) {
                self.push_file(out, folder, path, entry.kind, Vec::new());
            } else if entry.kind == EntryKind::Link && (!in_skill || path.is_dir()) {
                let place = LinkPosition { folder, real_dir: real_dir.as_deref(), in_skill };
                self.push_link(out, &place, path);
            }
        }
    }

    fn push_file(
        &self,
        out: &mut FolderListing,
        folder: &WalkFolder,
        path: Utf8PathBuf,
        kind: EntryKind,
        siblings: Vec<String>,
    ) {
        let target = if kind == EntryKind::Link { self.allowed_target(&path) } else { None };
        if kind == EntryKind::Link && target.is_none() {
            out.refused_links.push(path);
        } else {
            let linked = folder.linked || target.is_some();
            out.candidates.push(SkillCandidate { path, target, linked, siblings });
        }
    }

    fn push_folder(
        &self,
        out: &mut FolderListing,
        folder: &WalkFolder,
        dir: Utf8PathBuf,
        in_skill: bool,
    ) {
        if self.is_of_interest(&dir, in_skill) {
            out.folders.push(WalkFolder {
                dir,
                in_skill,
                behind_link: None,
                linked: folder.linked,
            });
        }
    }

    fn is_of_interest(&self, dir: &Utf8Path, in_skill: bool) -> bool {
        let name = dir.file_name().unwrap_or("");
        let resources =
            in_skill && !self.options.inside_resources && RESOURCE_FOLDERS.contains(&name);
        !IGNORED.contains(&name) && !resources
    }

    fn push_link(&self, out: &mut FolderListing, place: &LinkPosition<'_>, path: Utf8PathBuf) {
        let in_skill = place.in_skill;
        if !self.is_of_interest(&path, in_skill) {
            return;
        }
        let Some(target) = self.cached_target(&mut out.link_targets, &path) else {
            out.refused_links.push(path);
            return;
        };
        let circular = place.real_dir.is_some_and(|dir| dir.starts_with(&target));
        // Only one hop: a link behind a link could lead the walk elsewhere.
        if place.folder.linked || circular {
            out.refused_links.push(path);
            return;
        }
        // A link to a folder inside the root is already found there under its own name.
        let found_already =
            self.options.limits.depth_max > 1 && target.starts_with(&self.real_root);
        if !found_already && target.is_dir() {
            let behind_link = Some(target);
            out.folders.push(WalkFolder { dir: path, in_skill, behind_link, linked: true });
        }
    }

    fn cached_target(
        &self,
        known: &mut BTreeMap<Utf8PathBuf, Option<Utf8PathBuf>>,
        link: &Utf8Path,
    ) -> Option<Utf8PathBuf> {
        let written = link.read_link_utf8().ok()?;
        known.entry(written).or_insert_with(|| self.allowed_target(link)).clone()
    }

    /// Returns the real path behind a link, if it may be followed.
    fn allowed_target(&self, link: &Utf8Path) -> Option<Utf8PathBuf> {
        let target = link.canonicalize_utf8().ok()?;
        let allowed = self.links_beneath.as_ref().is_none_or(|folder| target.starts_with(folder));
        allowed.then_some(target)
    }
}

/// Resolves links in a path; returns it unchanged if that fails.
fn real_path(dir: &Utf8Path) -> Utf8PathBuf {
    dir.canonicalize_utf8().unwrap_or_else(|_| dir.to_owned())
}

/// Returns true if a name could break out of a line or look like another: control characters, characters that
/// change the direction of text, and invisible characters.
pub(crate) fn is_refused_name(name: &str) -> bool {
    name.contains(['\n', '\r', '\t', '\u{feff}']) || !invisible::is_clean(name)
}

fn is_flat_name(name: &str) -> bool {
    name.ends_with(".md") && !is_skill_file(name) && !name.starts_with('.')
}

fn read_entries(
    dir: &Utf8Path,
    take: ReadQuota<'_>,
    out: &mut FolderListing,
) -> std::io::Result<Vec<NamedEntry>> {
    let mut entries = Vec::new();
    for entry in fs::list_entries(dir)? {
        let FolderEntry { name, kind } = entry?;
        if !may_read(take, out.read) {
            out.cut = true;
            break;
        }
        out.read += 1;
        if matches!(take, ReadQuota::Useful { .. }) && is_useless(&name, kind) {
            continue;
        }
        match name.into_string() {
            Ok(name) if !is_refused_name(&name) => entries.push(NamedEntry { kind, name }),
            Ok(name) => out.refused_names.push(name),
            Err(name) => out.refused_names.push(name.to_string_lossy().into_owned()),
        }
    }
    Ok(entries)
}

fn may_read(take: ReadQuota<'_>, read: usize) -> bool {
    match take {
        ReadQuota::Shared(left) => {
            let taken =
                left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            taken.is_ok()
        }
        ReadQuota::AtMost(most) | ReadQuota::Useful { read_max: most, .. } => read < most,
    }
}

/// Returns true for a regular file that is not Markdown.
fn is_useless(name: &OsStr, kind: EntryKind) -> bool {
    kind == EntryKind::File && std::path::Path::new(name).extension() != Some(OsStr::new("md"))
}

/// Formats the number of further items.
fn format_more(count: usize, what: &str) -> String {
    match count {
        0 | 1 => String::new(),
        _ => format!(" (and {} more {what})", count - 1),
    }
}

fn refused_links_diagnostic(links: &[Utf8PathBuf]) -> Option<Diagnostic> {
    let first = links.first()?;
    let code = &text_codes::LINK_LEAVES;
    let more = format_more(links.len(), "links beside it");
    let message = format!(
        "the symbolic link is broken, circular or leads out of the project; it was not followed{more}"
    );
    Some(Diagnostic::new(code, message).in_file(first).help(code.remedy))
}

fn refused_names_diagnostic(dir: &Utf8Path, names: &[String]) -> Option<Diagnostic> {
    let first = repertoire_text::terminal::printable_line(names.iter().min()?);
    let code = &codes::NAME_ON_DISK;
    let more = format_more(names.len(), "here");
    let message = format!("`{first}` was passed over because of its name{more}");
    Some(Diagnostic::new(code, message).in_file(dir).help(code.remedy))
}

fn second_file_diagnostic(path: &Utf8Path, first: &str) -> Diagnostic {
    let code = &codes::SHADOWED;
    let name = path.file_name().unwrap_or("");
    let message = format!("`{name}` is passed over, because `{first}` stands beside it");
    Diagnostic::new(code, message).in_file(path).help("Remove one of the two.")
}
