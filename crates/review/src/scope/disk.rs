//! Gathers files outside of a repository, which are reviewed as a whole.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{EntryKind, list_entries};

use super::candidates::{ReviewCandidate, missed_file, skipped_file};
use super::paths::ScopePathFilter;
use super::{
    GatherLimits, ReviewInputs, ReviewScope, ReviewTree, ScopeError, messages, read, skip,
};
use crate::change::SkippedFile;
use crate::content::{self, RelatedTest};
use crate::limits::{REVIEW_WALK_DEPTH_MAX, REVIEW_WALK_FILES_MAX};
use crate::record::ScopeRecord;
use crate::rules::{self, ReviewBaseState};

/// Gathers the files at the named paths.
pub(super) fn gather_from_disk(
    here: &Utf8Path,
    paths: &[Utf8PathBuf],
    limits: &GatherLimits,
) -> Result<ReviewInputs, ScopeError> {
    let filter = ScopePathFilter::new(here, here, paths)?;
    let mut walk = DiskWalk::default();
    for folder in folders_to_walk(here, &filter) {
        walk.walk_folder(here, folder, 0);
    }
    // Named files are included even if the walk has reached its limit.
    walk.files
        .extend(filter.named_places().filter(|at| here.join(at).is_file()).map(Utf8PathBuf::from));
    for wanted in filter.wanted() {
        if !walk.files.iter().any(|path| wanted.matches_path(path)) {
            return Err(ScopeError::NoMatch { path: wanted.said.clone(), hint: "" });
        }
    }
    let mut warnings = Vec::new();
    let mut left: Vec<SkippedFile> = walk.left;
    let (first, _) = content::compile_globs(&limits.priority_files);
    let mut taken: Vec<&Utf8PathBuf> =
        walk.files.iter().filter(|path| filter.matches_path(path)).collect();
    taken.sort_by_cached_key(|path| {
        let size = here.join(path).metadata().map_or(0, |metadata| metadata.len());
        (!first.is_match(path), size, *path)
    });
    let (mut files, mut bytes, mut odd) = (Vec::new(), 0, Vec::new());
    for path in taken {
        if let Some(reason) = skip::skip_reason_by_path(path).filter(|_| !filter.names_file(path)) {
            left.push(skipped_file(path, reason));
        } else if files.len() == limits.files_max {
            let max = skip::group_digits(limits.files_max as u64);
            left.push(missed_file(path, format!("beyond the first {max} files")));
        } else {
            match read::read_whole_file(here, ReviewCandidate::on_disk(path.clone())) {
                Ok((file, _)) if bytes + file.text.len() as u64 > limits.bytes_max => {
                    let max = skip::group_digits(limits.bytes_max);
                    left.push(missed_file(path, format!("beyond {max} bytes in all")));
                }
                Ok((file, exact)) => {
                    bytes += file.text.len() as u64;
                    odd.extend((!exact).then_some(path.as_path()));
                    files.push(file);
                }
                Err(reason) => left.push(reason),
            }
        }
    }
    warnings.extend(messages::not_utf8_warning(odd.into_iter()));
    let change = super::finish_change(files, left, limits, &mut warnings);
    super::warn_of_many(&ReviewScope::Files, &change, &mut warnings);
    warnings.extend(rules::without_base_warning(here, &change));
    let there = walk.files.iter().map(Utf8PathBuf::as_path);
    let tests = content::related_tests(&change, there);
    let related_tests =
        tests.into_iter().filter_map(|(path, of)| read_related_test(here, path, of)).collect();
    Ok(ReviewInputs {
        scope: ScopeRecord {
            words: messages::describe_scope(&ReviewScope::Files, "", &filter),
            ..ScopeRecord::default()
        },
        rules: Vec::new(),
        base_files: BTreeMap::new(),
        related_tests,
        tree: ReviewTree::from_checkout(here.to_owned()),
        base: ReviewBaseState::None,
        change,
        warnings,
        touched: walk.files.into_iter().collect(),
    })
}

/// The folders to walk: named folders, the folders of named files, and the top folder if there are globs.
fn folders_to_walk<'a>(here: &Utf8Path, filter: &'a ScopePathFilter) -> BTreeSet<&'a Utf8Path> {
    let folder = |place: &'a Utf8Path| {
        if here.join(place).is_dir() { place } else { place.parent().unwrap_or(Utf8Path::new("")) }
    };
    let globs = filter.wanted().len() - filter.named_places().count();
    let top = (globs > 0).then_some(Utf8Path::new(""));
    filter.named_places().map(folder).chain(top).collect()
}

fn read_related_test(here: &Utf8Path, path: &Utf8Path, of: Utf8PathBuf) -> Option<RelatedTest> {
    let (file, _) = read::read_whole_file(here, ReviewCandidate::on_disk(path.to_owned())).ok()?;
    Some(RelatedTest { path: path.to_owned(), of, text: content::truncate_test(&file.text) })
}

/// Collects the files below a folder. Hidden files and links are ignored.
#[derive(Default)]
struct DiskWalk {
    files: BTreeSet<Utf8PathBuf>,
    left: Vec<SkippedFile>,
    full: bool,
}

impl DiskWalk {
    fn walk_folder(&mut self, top: &Utf8Path, folder: &Utf8Path, depth: usize) {
        if depth == REVIEW_WALK_DEPTH_MAX {
            self.left.push(missed_file(folder, format!("{depth} folders deep, which is too deep")));
            return;
        }
        let dir = top.join(folder);
        let Ok(entries) = list_entries(&dir) else {
            self.left.push(missed_file(folder, "the folder cannot be read"));
            return;
        };
        let named = entries.flatten().filter_map(|entry| {
            let name = entry.name.into_string().ok()?;
            (!name.starts_with('.')).then(|| (folder.join(name), entry.kind))
        });
        let mut named: Vec<_> = named.collect();
        named.sort_by(|a, b| a.0.cmp(&b.0));
        for (path, kind) in named {
            if self.files.len() == REVIEW_WALK_FILES_MAX {
                if !std::mem::replace(&mut self.full, true) {
                    let max = skip::group_digits(REVIEW_WALK_FILES_MAX as u64);
                    let reason = format!("{max} files were found; all that comes after is left");
                    self.left.push(missed_file(&path, reason));
                }
                return;
            }
            match kind {
                EntryKind::File => drop(self.files.insert(path)),
                EntryKind::Folder => self.walk_folder(top, &path, depth + 1),
                EntryKind::Link | EntryKind::Other => {}
            }
        }
    }
}
