//! Descriptions of the scope, and warnings about what is not reviewed.

use camino::Utf8Path;

use super::ReviewScope;
use super::candidates::{DELETED, ReviewCandidate};
use super::paths::ScopePathFilter;
use crate::change::{FileStatus, SkippedFile};

/// Maximum number of file names in a warning.
const NAMES_SAID: usize = 10;

/// Describes the scope, with the paths that restrict it.
pub(super) fn describe_scope(scope: &ReviewScope, words: &str, filter: &ScopePathFilter) -> String {
    let everything = filter.named_places().any(|place| place.as_str().is_empty());
    let said = filter.wanted().iter().map(|wanted| wanted.display_path().to_string());
    match (scope, filter.wanted().is_empty() || everything) {
        (ReviewScope::Files, true) => "all files".to_owned(),
        (ReviewScope::Files, false) => join_names(said, 3),
        (_, true) => words.to_owned(),
        (_, false) => format!("{words} in {}", join_names(said, 3)),
    }
}

/// Returns a warning about deleted files, which are not reviewed.
pub(super) fn deleted_warning(skipped: &[SkippedFile]) -> Option<String> {
    let gone = skipped.iter().filter(|skipped| skipped.reason == DELETED);
    let gone: Vec<&Utf8Path> = gone.map(|skipped| skipped.path.as_path()).collect();
    let (files, them) = match gone.len() {
        0 => return None,
        1 => ("1 file was".to_owned(), "it"),
        count => (format!("{count} files were"), "them"),
    };
    let names = join_names(gone.iter().map(ToString::to_string), NAMES_SAID);
    Some(format!("{files} deleted; nobody looks at what went with {them}: {names}"))
}

/// Returns a warning about named files of which only the uncommitted changes are reviewed.
pub(super) fn only_uncommitted_warning(
    filter: &ScopePathFilter,
    candidates: &[ReviewCandidate],
) -> Option<String> {
    let partly = |file: &&ReviewCandidate| {
        let changed = matches!(file.status, FileStatus::Modified | FileStatus::Renamed);
        changed && filter.names_file(&file.path)
    };
    let names: Vec<String> =
        candidates.iter().filter(partly).map(|file| format!("`{}`", file.path)).collect();
    (!names.is_empty()).then(|| {
        let names = join_names(names.into_iter(), NAMES_SAID);
        format!("only the uncommitted changes of {names} are looked at")
    })
}

/// Returns a warning about files that are not valid UTF-8.
pub(super) fn not_utf8_warning<'a>(paths: impl Iterator<Item = &'a Utf8Path>) -> Option<String> {
    let names: Vec<String> = paths.map(|path| format!("`{path}`")).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    (!names.is_empty()).then(|| {
        let names = join_names(names.into_iter(), NAMES_SAID);
        format!("{names} {verb} not UTF-8; bytes that are no text are shown as `\u{fffd}`")
    })
}

/// Joins the first `max` names, with the number of further ones.
fn join_names(names: impl ExactSizeIterator<Item = String>, max: usize) -> String {
    let more = names.len().saturating_sub(max);
    let mut list = names.take(max).collect::<Vec<_>>().join(", ");
    if more > 0 {
        list.push_str(&format!(" and {more} more"));
    }
    list
}
