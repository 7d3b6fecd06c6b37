//! Selects the changed files that are reviewed.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};

use super::paths::Filter;
use super::skip;
use crate::change::{FileStatus, Skipped};
use repertoire_git::repo::{Mode, Name, Oid, TreeChange, TreeEntry};

/// A file that may be reviewed.
pub(super) struct Candidate {
    pub(super) path: Utf8PathBuf,
    pub(super) old_path: Option<Utf8PathBuf>,
    pub(super) status: FileStatus,
    pub(super) source: Source,
}

/// The origin of a candidate's text.
pub(super) enum Source {
    /// A blob in git; all of its lines are reviewed.
    Blob(Oid),
    /// Two blobs in git; the difference is reviewed.
    Blobs { old: Oid, new: Oid },
    /// A file on disk; all of its lines are reviewed.
    Disk,
}

impl Candidate {
    /// A whole file on disk.
    pub(super) fn on_disk(path: Utf8PathBuf) -> Candidate {
        Candidate { path, old_path: None, status: FileStatus::Whole, source: Source::Disk }
    }
}

/// The reason for skipping a deleted file.
pub(super) const DELETED: &str = "deleted";

/// A file that is deliberately not reviewed.
pub(super) fn skipped(path: &Utf8Path, reason: impl Into<String>) -> Skipped {
    Skipped { path: path.to_owned(), reason: reason.into(), missed: false }
}

/// A file that would be reviewed but for a limit or its encoding.
pub(super) fn missed(path: &Utf8Path, reason: impl Into<String>) -> Skipped {
    Skipped { path: path.to_owned(), reason: reason.into(), missed: true }
}

/// Splits the changes into candidates and skipped files.
pub(super) fn pick(changes: &[TreeChange], filter: &Filter) -> (Vec<Candidate>, Vec<Skipped>) {
    let (mut candidates, mut left) = (Vec::new(), Vec::new());
    for change in changes {
        let from = change.from.as_ref().map(|from| from.path.as_path());
        if !filter.takes(&change.name.path) && !from.is_some_and(|from| filter.takes(from)) {
            continue;
        }
        match reason(change, filter) {
            Some(reason) => left.push(reason),
            None => candidates.push(candidate(change)),
        }
    }
    (candidates, left)
}

fn candidate(change: &TreeChange) -> Candidate {
    let was_text = matches!(change.old_mode, Mode::File | Mode::Program);
    let old_path = change.from.as_ref().map(|from| from.path.clone());
    let (status, source) = match (was_text, &old_path) {
        (true, None) => (FileStatus::Modified, true),
        (true, Some(_)) => (FileStatus::Renamed, true),
        (false, _) => (FileStatus::Added, false),
    };
    let (old, new) = (change.old_blob.clone(), change.new_blob.clone());
    let source = if source { Source::Blobs { old, new } } else { Source::Blob(new) };
    Candidate { path: change.name.path.clone(), old_path, status, source }
}

/// Returns the reason for skipping a changed file.
fn reason(change: &TreeChange, filter: &Filter) -> Option<Skipped> {
    let from = change.from.as_ref().map(|from| &from.path);
    let same = change.old_blob == change.new_blob;
    let only = match from {
        Some(from) if same => Some(format!("only renamed (it was {from})")),
        None if same => Some("only its mode has changed".to_owned()),
        _ => None,
    };
    let path = &change.name.path;
    match (change.new_mode, only) {
        (Mode::Absent, _) => Some(skipped(path, DELETED)),
        (Mode::File | Mode::Program, Some(only)) if change.name.exact => Some(skipped(path, only)),
        (mode, _) => by_entry(&change.name, mode, filter),
    }
}

/// Returns the reason for skipping a file, whether it has changed or not.
fn by_entry(name: &Name, mode: Mode, filter: &Filter) -> Option<Skipped> {
    let path = &name.path;
    match mode {
        Mode::Submodule => Some(skipped(path, "submodule")),
        Mode::Link => Some(skipped(path, "symbolic link")),
        _ if !name.exact => Some(missed(path, "its name is not UTF-8")),
        _ => by_path(path, filter).map(|reason| skipped(path, reason)),
    }
}

/// As [`skip::by_path`], but a file that the user named is always reviewed.
fn by_path(path: &Utf8Path, filter: &Filter) -> Option<&'static str> {
    skip::by_path(path).filter(|_| !filter.names(path))
}

/// Adds unchanged files, to be reviewed as a whole.
pub(super) fn unchanged(
    there: &[TreeEntry],
    filter: &Filter,
    candidates: &mut Vec<Candidate>,
    left: &mut Vec<Skipped>,
) {
    let known: BTreeSet<Utf8PathBuf> = candidates
        .iter()
        .map(|candidate| candidate.path.clone())
        .chain(left.iter().map(|skipped| skipped.path.clone()))
        .collect();
    for entry in there {
        let path = &entry.name.path;
        if !filter.takes(path) {
            continue;
        }
        // A file that was only renamed or changed its mode is reviewed as a whole here.
        let renamed =
            |skipped: &Skipped| skipped.path == *path && skipped.reason.starts_with("only");
        let again = left.iter().position(renamed);
        if known.contains(path) && again.is_none() {
            continue;
        }
        if let Some(at) = again {
            left.remove(at);
        }
        match by_entry(&entry.name, entry.mode, filter) {
            Some(reason) => left.push(reason),
            None => candidates.push(Candidate {
                path: path.clone(),
                old_path: None,
                status: FileStatus::Whole,
                source: Source::Blob(entry.blob.clone()),
            }),
        }
    }
}

/// Adds files that git ignores but the user named.
pub(super) fn ignored(
    top: &Utf8Path,
    there: &[TreeEntry],
    filter: &Filter,
    candidates: &mut Vec<Candidate>,
) {
    let known = |place: &Utf8Path| there.iter().any(|entry| entry.name.path == place);
    let files = filter.places().filter(|place| !known(place) && top.join(place).is_file());
    let files: BTreeSet<&Utf8Path> = files.collect();
    candidates.extend(files.into_iter().map(|place| Candidate::on_disk(place.to_owned())));
}
