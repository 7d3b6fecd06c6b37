//! Selects the changed files that are reviewed.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};

use super::paths::ScopePathFilter;
use super::skip;
use crate::change::{FileStatus, SkippedFile};
use repertoire_git::repo::{GitObjectId, TreeChange, TreeEntry, TreeEntryMode, TreePath};

/// A file that may be reviewed.
pub(super) struct ReviewCandidate {
    pub(super) path: Utf8PathBuf,
    pub(super) old_path: Option<Utf8PathBuf>,
    pub(super) status: FileStatus,
    pub(super) source: CandidateSource,
}

/// The origin of a candidate's text.
pub(super) enum CandidateSource {
    /// A blob in git; all of its lines are reviewed.
    Blob(GitObjectId),
    /// Two blobs in git; the difference is reviewed.
    Blobs { old: GitObjectId, new: GitObjectId },
    /// A file on disk; all of its lines are reviewed.
    Disk,
}

impl ReviewCandidate {
    /// A whole file on disk.
    pub(super) fn on_disk(path: Utf8PathBuf) -> ReviewCandidate {
        ReviewCandidate {
            path,
            old_path: None,
            status: FileStatus::Whole,
            source: CandidateSource::Disk,
        }
    }
}

/// The reason for skipping a deleted file.
pub(super) const DELETED: &str = "deleted";

/// A file that is deliberately not reviewed.
pub(super) fn skipped_file(path: &Utf8Path, reason: impl Into<String>) -> SkippedFile {
    SkippedFile { path: path.to_owned(), reason: reason.into(), missed: false }
}

/// A file that would be reviewed but for a limit or its encoding.
pub(super) fn missed_file(path: &Utf8Path, reason: impl Into<String>) -> SkippedFile {
    SkippedFile { path: path.to_owned(), reason: reason.into(), missed: true }
}

/// Splits the changes into candidates and skipped files.
pub(super) fn pick_candidates(
    changes: &[TreeChange],
    filter: &ScopePathFilter,
) -> (Vec<ReviewCandidate>, Vec<SkippedFile>) {
    let (mut candidates, mut left) = (Vec::new(), Vec::new());
    for change in changes {
        let from = change.from.as_ref().map(|from| from.path.as_path());
        if !filter.matches_path(&change.name.path)
            && !from.is_some_and(|from| filter.matches_path(from))
        {
            continue;
        }
        match skip_reason(change, filter) {
            Some(reason) => left.push(reason),
            None => candidates.push(to_candidate(change)),
        }
    }
    (candidates, left)
}

fn to_candidate(change: &TreeChange) -> ReviewCandidate {
    let was_text = matches!(change.old_mode, TreeEntryMode::File | TreeEntryMode::Program);
    let old_path = change.from.as_ref().map(|from| from.path.clone());
    let (status, source) = match (was_text, &old_path) {
        (true, None) => (FileStatus::Modified, true),
        (true, Some(_)) => (FileStatus::Renamed, true),
        (false, _) => (FileStatus::Added, false),
    };
    let (old, new) = (change.old_blob.clone(), change.new_blob.clone());
    let source =
        if source { CandidateSource::Blobs { old, new } } else { CandidateSource::Blob(new) };
    ReviewCandidate { path: change.name.path.clone(), old_path, status, source }
}

/// Returns the reason for skipping a changed file.
fn skip_reason(change: &TreeChange, filter: &ScopePathFilter) -> Option<SkippedFile> {
    let from = change.from.as_ref().map(|from| &from.path);
    let same = change.old_blob == change.new_blob;
    let only = match from {
        Some(from) if same => Some(format!("only renamed (it was {from})")),
        None if same => Some("only its mode has changed".to_owned()),
        _ => None,
    };
    let path = &change.name.path;
    match (change.new_mode, only) {
        (TreeEntryMode::Absent, _) => Some(skipped_file(path, DELETED)),
        (TreeEntryMode::File | TreeEntryMode::Program, Some(only)) if change.name.exact => {
            Some(skipped_file(path, only))
        }
        (mode, _) => skip_reason_of_entry(&change.name, mode, filter),
    }
}

/// Returns the reason for skipping a file, whether it has changed or not.
fn skip_reason_of_entry(
    name: &TreePath,
    mode: TreeEntryMode,
    filter: &ScopePathFilter,
) -> Option<SkippedFile> {
    let path = &name.path;
    match mode {
        TreeEntryMode::Submodule => Some(skipped_file(path, "submodule")),
        TreeEntryMode::Link => Some(skipped_file(path, "symbolic link")),
        _ if !name.exact => Some(missed_file(path, "its name is not UTF-8")),
        _ => skip_reason_of_path(path, filter).map(|reason| skipped_file(path, reason)),
    }
}

/// As [`skip::by_path`], but a file that the user named is always reviewed.
fn skip_reason_of_path(path: &Utf8Path, filter: &ScopePathFilter) -> Option<&'static str> {
    skip::skip_reason_by_path(path).filter(|_| !filter.names_file(path))
}

/// Adds unchanged files, to be reviewed as a whole.
pub(super) fn add_unchanged(
    there: &[TreeEntry],
    filter: &ScopePathFilter,
    candidates: &mut Vec<ReviewCandidate>,
    left: &mut Vec<SkippedFile>,
) {
    let known: BTreeSet<Utf8PathBuf> = candidates
        .iter()
        .map(|candidate| candidate.path.clone())
        .chain(left.iter().map(|skipped| skipped.path.clone()))
        .collect();
    for entry in there {
        let path = &entry.name.path;
        if !filter.matches_path(path) {
            continue;
        }
        // A file that was only renamed or changed its mode is reviewed as a whole here.
        let renamed =
            |skipped: &SkippedFile| skipped.path == *path && skipped.reason.starts_with("only");
        let again = left.iter().position(renamed);
        if known.contains(path) && again.is_none() {
            continue;
        }
        if let Some(at) = again {
            left.remove(at);
        }
        match skip_reason_of_entry(&entry.name, entry.mode, filter) {
            Some(reason) => left.push(reason),
            None => candidates.push(ReviewCandidate {
                path: path.clone(),
                old_path: None,
                status: FileStatus::Whole,
                source: CandidateSource::Blob(entry.blob.clone()),
            }),
        }
    }
}

/// Adds files that git ignores but the user named.
pub(super) fn add_ignored(
    top: &Utf8Path,
    there: &[TreeEntry],
    filter: &ScopePathFilter,
    candidates: &mut Vec<ReviewCandidate>,
) {
    let known = |place: &Utf8Path| there.iter().any(|entry| entry.name.path == place);
    let files = filter.named_places().filter(|place| !known(place) && top.join(place).is_file());
    let files: BTreeSet<&Utf8Path> = files.collect();
    candidates.extend(files.into_iter().map(|place| ReviewCandidate::on_disk(place.to_owned())));
}
