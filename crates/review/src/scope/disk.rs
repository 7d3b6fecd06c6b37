//! Gathers files outside of a repository, which are reviewed as a whole.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{EntryKind, entries};

use super::paths::Filter;
use super::pick::{Candidate, missed, skipped};
use super::{GatherLimits, Gathered, Scope, ScopeError, Tree, read, say, skip};
use crate::change::Skipped;
use crate::content::{self, RelatedTest};
use crate::limits::{REVIEW_WALK_DEPTH_MAX, REVIEW_WALK_FILES_MAX};
use crate::record::ScopeRecord;
use crate::rules::{self, Base};

/// Gathers the files at the named paths.
pub(super) fn gather(
    here: &Utf8Path,
    paths: &[Utf8PathBuf],
    limits: &GatherLimits,
) -> Result<Gathered, ScopeError> {
    let filter = Filter::new(here, here, paths)?;
    let mut walk = Walk::default();
    for folder in folders(here, &filter) {
        walk.folder(here, folder, 0);
    }
    // Named files are included even if the walk has reached its limit.
    walk.files.extend(filter.places().filter(|at| here.join(at).is_file()).map(Utf8PathBuf::from));
    for wanted in filter.wanted() {
        if !walk.files.iter().any(|path| wanted.takes(path)) {
            return Err(ScopeError::NoMatch { path: wanted.said.clone(), hint: "" });
        }
    }
    let mut warnings = Vec::new();
    let mut left: Vec<Skipped> = walk.left;
    let (first, _) = content::globs(&limits.priority_files);
    let mut taken: Vec<&Utf8PathBuf> =
        walk.files.iter().filter(|path| filter.takes(path)).collect();
    taken.sort_by_cached_key(|path| {
        let size = here.join(path).metadata().map_or(0, |metadata| metadata.len());
        (!first.is_match(path), size, *path)
    });
    let (mut files, mut bytes, mut odd) = (Vec::new(), 0, Vec::new());
    for path in taken {
        if let Some(reason) = skip::by_path(path).filter(|_| !filter.names(path)) {
            left.push(skipped(path, reason));
        } else if files.len() == limits.files_max {
            let max = skip::grouped(limits.files_max as u64);
            left.push(missed(path, format!("beyond the first {max} files")));
        } else {
            match read::whole_file(here, Candidate::on_disk(path.clone())) {
                Ok((file, _)) if bytes + file.text.len() as u64 > limits.bytes_max => {
                    let max = skip::grouped(limits.bytes_max);
                    left.push(missed(path, format!("beyond {max} bytes in all")));
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
    warnings.extend(say::not_utf8(odd.into_iter()));
    let change = super::finished(files, left, limits, &mut warnings);
    super::warn_of_many(&Scope::Files, &change, &mut warnings);
    warnings.extend(rules::without_base(here, &change));
    let there = walk.files.iter().map(Utf8PathBuf::as_path);
    let tests = content::related_tests(&change, there);
    let related_tests = tests.into_iter().filter_map(|(path, of)| test(here, path, of)).collect();
    Ok(Gathered {
        scope: ScopeRecord {
            words: say::words(&Scope::Files, "", &filter),
            ..ScopeRecord::default()
        },
        rules: Vec::new(),
        base_files: BTreeMap::new(),
        related_tests,
        tree: Tree::checkout(here.to_owned()),
        base: Base::None,
        change,
        warnings,
        touched: walk.files.into_iter().collect(),
    })
}

/// The folders to walk: named folders, the folders of named files, and the top folder if there are globs.
fn folders<'a>(here: &Utf8Path, filter: &'a Filter) -> BTreeSet<&'a Utf8Path> {
    let folder = |place: &'a Utf8Path| {
        if here.join(place).is_dir() { place } else { place.parent().unwrap_or(Utf8Path::new("")) }
    };
    let globs = filter.wanted().len() - filter.places().count();
    let top = (globs > 0).then_some(Utf8Path::new(""));
    filter.places().map(folder).chain(top).collect()
}

fn test(here: &Utf8Path, path: &Utf8Path, of: Utf8PathBuf) -> Option<RelatedTest> {
    let (file, _) = read::whole_file(here, Candidate::on_disk(path.to_owned())).ok()?;
    Some(RelatedTest { path: path.to_owned(), of, text: content::cut_test(&file.text) })
}

/// Collects the files below a folder. Hidden files and links are ignored.
#[derive(Default)]
struct Walk {
    files: BTreeSet<Utf8PathBuf>,
    left: Vec<Skipped>,
    full: bool,
}

impl Walk {
    fn folder(&mut self, top: &Utf8Path, folder: &Utf8Path, depth: usize) {
        if depth == REVIEW_WALK_DEPTH_MAX {
            self.left.push(missed(folder, format!("{depth} folders deep, which is too deep")));
            return;
        }
        let dir = top.join(folder);
        let Ok(entries) = entries(&dir) else {
            self.left.push(missed(folder, "the folder cannot be read"));
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
                    let max = skip::grouped(REVIEW_WALK_FILES_MAX as u64);
                    let reason = format!("{max} files were found; all that comes after is left");
                    self.left.push(missed(&path, reason));
                }
                return;
            }
            match kind {
                EntryKind::File => drop(self.files.insert(path)),
                EntryKind::Folder => self.folder(top, &path, depth + 1),
                EntryKind::Link | EntryKind::Other => {}
            }
        }
    }
}
