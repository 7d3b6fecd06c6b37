//! Finds the files below a root that may be skills: in parallel, within limits, and in the same order
//! every time. Links are followed only where they cannot lead astray.

use std::sync::atomic::{AtomicUsize, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use rayon::prelude::*;
use repertoire_text::{Diagnostic, codes as text_codes};

use crate::codes;
use crate::dialect::is_skill_file;
use crate::limits::WalkLimits;

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

/// How a root is walked.
#[derive(Clone, Copy, Debug)]
pub struct WalkOptions<'a> {
    /// Caps.
    pub limits: WalkLimits,
    /// Whether the depth is the client's habit, so that deeper folders are not worth a word.
    pub depth_is_habit: bool,
    /// Whether single `*.md` files are of interest.
    pub flat_files: bool,
    /// Whether resource folders of skills are searched too.
    pub inside_resources: bool,
    /// Links may lead anywhere below this folder; `None` for anywhere at all.
    pub links_beneath: Option<&'a Utf8Path>,
}

/// A file that may be a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The path to show and to remember.
    pub path: Utf8PathBuf,
    /// The path to read, where `path` is a link that may be followed.
    pub target: Option<Utf8PathBuf>,
    /// Names of the files and folders beside it, sorted, for skills that are folders.
    pub siblings: Vec<String>,
}

/// What a walk found.
#[derive(Clone, Debug, Default)]
pub struct Walked {
    /// Files, sorted by path.
    pub candidates: Vec<Candidate>,
    /// What was passed over.
    pub diagnostics: Vec<Diagnostic>,
}

/// Walks a root that is known to be a folder.
pub fn walk(root: &Utf8Path, options: &WalkOptions<'_>) -> Walked {
    let mut out = Walked::default();
    let budget = AtomicUsize::new(options.limits.entries_max);
    let mut level = vec![Folder { dir: root.to_owned(), in_skill: false, linked: false }];
    for depth in 0..=options.limits.depth_max {
        if level.is_empty() {
            break;
        }
        let before = budget.load(Ordering::Relaxed);
        let mut listings: Vec<Listing> =
            level.par_iter().map(|folder| list(root, folder, options, &budget)).collect();
        let cut = listings.iter().any(|listing| listing.cut);
        if cut {
            // Which folders ran out first depends on the threads; once more, one after the other.
            budget.store(before, Ordering::Relaxed);
            listings = level.iter().map(|folder| list(root, folder, options, &budget)).collect();
            out.diagnostics.push(too_many(root, options.limits.entries_max));
        }
        level = Vec::new();
        for listing in listings {
            out.candidates.extend(listing.candidates);
            out.diagnostics.extend(listing.diagnostics);
            level.extend(listing.folders);
        }
        if cut {
            break;
        }
        level.sort_by(|a, b| a.dir.cmp(&b.dir));
        if depth == options.limits.depth_max && !options.depth_is_habit {
            // A skill's own folders are its resources; only folders that may hold skills are missed.
            let missed: Vec<&Folder> = level.iter().filter(|folder| !folder.in_skill).collect();
            if let Some(first) = missed.first() {
                out.diagnostics.push(too_deep(&first.dir, missed.len(), depth));
            }
        }
    }
    out.candidates.sort_by(|a, b| a.path.cmp(&b.path));
    out
}

/// A folder that is to be listed.
struct Folder {
    dir: Utf8PathBuf,
    in_skill: bool,
    linked: bool,
}

#[derive(Default)]
struct Listing {
    candidates: Vec<Candidate>,
    folders: Vec<Folder>,
    diagnostics: Vec<Diagnostic>,
    cut: bool,
}

/// What the listing of one folder is about to decide on.
struct Found {
    name: String,
    kind: std::fs::FileType,
}

fn list(
    root: &Utf8Path,
    folder: &Folder,
    options: &WalkOptions<'_>,
    budget: &AtomicUsize,
) -> Listing {
    let mut out = Listing::default();
    let mut entries = match read_entries(&folder.dir, budget, &mut out) {
        Ok(entries) => entries,
        // It went away after its parent was listed, as if a moment earlier.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return out,
        Err(error) => {
            let message = format!("the folder cannot be read: {error}");
            let code = &text_codes::UNREADABLE;
            out.diagnostics
                .push(Diagnostic::new(code, message).in_file(&folder.dir).help(code.remedy));
            return out;
        }
    };
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let skill_file = ["SKILL.md", "skill.md"]
        .into_iter()
        .find(|name| entries.iter().any(|entry| entry.name == *name));
    let in_skill = folder.in_skill || skill_file.is_some();
    for entry in &entries {
        let path = folder.dir.join(&entry.name);
        let is_link = entry.kind.is_symlink();
        if Some(entry.name.as_str()) == skill_file {
            let siblings = entries.iter().map(|entry| entry.name.clone()).collect();
            push_file(&mut out, path, is_link, siblings, options);
        } else if entry.kind.is_dir() || (is_link && path.is_dir()) {
            push_folder(&mut out, root, folder, path, is_link, in_skill, options);
        } else if options.flat_files && !in_skill && is_flat_name(&entry.name) {
            push_file(&mut out, path, is_link, Vec::new(), options);
        }
    }
    out
}

fn is_flat_name(name: &str) -> bool {
    name.ends_with(".md") && !is_skill_file(name) && !name.starts_with('.')
}

fn read_entries(
    dir: &Utf8Path,
    budget: &AtomicUsize,
    out: &mut Listing,
) -> std::io::Result<Vec<Found>> {
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let left = budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        if left.is_err() {
            out.cut = true;
            break;
        }
        match entry.file_name().into_string() {
            Ok(name) if !name.chars().any(char::is_control) => {
                entries.push(Found { kind: entry.file_type()?, name });
            }
            Ok(name) => out.diagnostics.push(refused_name(dir, &name.escape_debug().to_string())),
            Err(name) => out.diagnostics.push(refused_name(dir, &name.to_string_lossy())),
        }
    }
    Ok(entries)
}

fn push_file(
    out: &mut Listing,
    path: Utf8PathBuf,
    is_link: bool,
    siblings: Vec<String>,
    options: &WalkOptions<'_>,
) {
    if !is_link {
        out.candidates.push(Candidate { path, target: None, siblings });
        return;
    }
    match allowed_target(&path, options) {
        Some(target) => out.candidates.push(Candidate { path, target: Some(target), siblings }),
        None => out.diagnostics.push(link_leaves(&path)),
    }
}

fn push_folder(
    out: &mut Listing,
    root: &Utf8Path,
    folder: &Folder,
    path: Utf8PathBuf,
    is_link: bool,
    in_skill: bool,
    options: &WalkOptions<'_>,
) {
    let name = path.file_name().unwrap_or("");
    let resources = in_skill && !options.inside_resources && RESOURCE_FOLDERS.contains(&name);
    if IGNORED.contains(&name) || resources {
        return;
    }
    if !is_link {
        out.folders.push(Folder { dir: path, in_skill, linked: folder.linked });
        return;
    }
    // One hop only: what stands behind a link may not send the walk elsewhere.
    let target = if folder.linked { None } else { allowed_target(&path, options) };
    let Some(target) = target else {
        out.diagnostics.push(link_leaves(&path));
        return;
    };
    let real_root = root.canonicalize_utf8().unwrap_or_else(|_| root.to_owned());
    let circular = path.canonicalize_utf8().is_ok_and(|real| {
        path.parent()
            .and_then(|parent| parent.canonicalize_utf8().ok())
            .is_some_and(|parent| parent.starts_with(&real))
    });
    // A link to a folder inside the root is found there under its own name already.
    if !circular && (options.limits.depth_max == 1 || !target.starts_with(&real_root)) {
        out.folders.push(Folder { dir: path, in_skill, linked: true });
    }
}

/// The real path behind a link, if it may be followed.
fn allowed_target(link: &Utf8Path, options: &WalkOptions<'_>) -> Option<Utf8PathBuf> {
    let target = link.canonicalize_utf8().ok()?;
    match options.links_beneath {
        None => Some(target),
        Some(folder) => {
            let folder = folder.canonicalize_utf8().ok()?;
            target.starts_with(folder).then_some(target)
        }
    }
}

fn link_leaves(path: &Utf8Path) -> Diagnostic {
    let code = &text_codes::LINK_LEAVES;
    let message =
        "the symbolic link is broken, circular or leads out of the project; it was not followed";
    Diagnostic::new(code, message).in_file(path).help(code.remedy)
}

fn refused_name(dir: &Utf8Path, name: &str) -> Diagnostic {
    let code = &codes::NAME_ON_DISK;
    let message = format!("`{name}` was passed over because of its name");
    Diagnostic::new(code, message).in_file(dir).help(code.remedy)
}

fn too_many(root: &Utf8Path, limit: usize) -> Diagnostic {
    let code = &codes::WALK_ENTRIES;
    let message =
        format!("the root has more than {limit} entries, the limit; the rest was not searched");
    Diagnostic::new(code, message).in_file(root).help(code.remedy)
}

fn too_deep(dir: &Utf8Path, folders: usize, limit: usize) -> Diagnostic {
    let code = &codes::WALK_DEEP;
    let more = match folders {
        1 => String::new(),
        _ => format!(" (and {} more folders)", folders - 1),
    };
    let message =
        format!("this folder is deeper than {limit} levels, the limit, and was not searched{more}");
    Diagnostic::new(code, message).in_file(dir).help(code.remedy)
}
