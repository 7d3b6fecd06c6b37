//! Finds the files below a root that may be skills: in parallel, within limits, and always in the same order.
//! Links are followed only if they stay within the allowed folder.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use rayon::prelude::*;
use repertoire_text::Diagnostic;

use crate::codes;
use crate::limits::{WALK_READS_PER_ENTRY, WalkLimits};

mod list;

use list::{FolderLister, FolderListing, ReadQuota, WalkFolder};
pub(crate) use list::{IGNORED, is_refused_name};

/// The options of a walk.
#[derive(Clone, Copy, Debug)]
pub struct WalkOptions<'a> {
    pub limits: WalkLimits,
    /// True if the depth is a rule of the client, so that deeper folders are not reported.
    pub depth_is_habit: bool,
    /// True if single `*.md` files are candidates.
    pub flat_files: bool,
    /// True if resource folders of skills are searched as well.
    pub inside_resources: bool,
    /// The folder that links must not leave; `None` if they may lead anywhere.
    pub links_beneath: Option<&'a Utf8Path>,
}

/// A file that may be a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillCandidate {
    /// The path to show and to record.
    pub path: Utf8PathBuf,
    /// The path to read, if `path` is a link that may be followed.
    pub target: Option<Utf8PathBuf>,
    /// True if the file was reached through a link, its own or that of a folder above it.
    pub linked: bool,
    /// The names of the files and folders beside it, sorted, for skills that are folders.
    pub siblings: Vec<String>,
}

/// The result of a walk.
#[derive(Clone, Debug, Default)]
pub struct WalkResult {
    /// The files, sorted by path.
    pub candidates: Vec<SkillCandidate>,
    /// Reports of what was skipped.
    pub diagnostics: Vec<Diagnostic>,
}

/// Walks a root that is known to be a folder.
pub fn walk_folder(root: &Utf8Path, options: &WalkOptions<'_>) -> WalkResult {
    let limits = options.limits;
    let mut walk = RootWalk {
        lister: FolderLister::new(root, options),
        entries_left: limits.entries_max,
        reads_left: limits.entries_max.saturating_mul(WALK_READS_PER_ENTRY),
        late: VecDeque::new(),
        cut: 0,
        links: BTreeMap::new(),
        out: WalkResult::default(),
    };
    walk.descend(vec![WalkFolder::for_root(root)], 0);
    walk.search_late_folders();
    if let Some(folders) = walk.missed_folders() {
        walk.out.diagnostics.push(entries_diagnostic(root, limits.entries_max, folders));
    }
    walk.out.diagnostics.extend(walk.links.values().filter_map(repeated_link_diagnostic));
    walk.out.candidates.sort_unstable_by(|a, b| a.path.as_str().cmp(b.path.as_str()));
    walk.out
}

/// A walk in progress. Small folders come first: one that is larger than its share of the remaining entries
/// waits until all others have been searched, so that one flooded folder cannot hide skills in another.
struct RootWalk<'a> {
    lister: FolderLister<'a>,
    /// The number of entries that may still be kept.
    entries_left: usize,
    /// The number of entries that may still be read from disk, kept or not.
    reads_left: usize,
    /// Folders that wait, with their depth.
    late: VecDeque<(usize, WalkFolder)>,
    /// The number of folders that were searched only in part.
    cut: usize,
    /// For each target of links, the first link and the number of links.
    links: BTreeMap<Utf8PathBuf, (Utf8PathBuf, usize)>,
    out: WalkResult,
}

impl RootWalk<'_> {
    /// Searches some folders of one depth, and everything below them.
    fn descend(&mut self, mut level: Vec<WalkFolder>, mut depth: usize) {
        let options = self.lister.options;
        while !level.is_empty() && depth <= options.limits.depth_max {
            let listings = self.list_level(level, depth);
            level = self.collect_listings(listings);
            depth += 1;
        }
        if options.depth_is_habit {
            return;
        }
        // A skill's own folders are its resources, so only folders that may hold skills are reported.
        let missed: Vec<&WalkFolder> = level.iter().filter(|folder| !folder.in_skill).collect();
        if let Some(first) = missed.first() {
            self.out.diagnostics.push(depth_diagnostic(&first.dir, missed.len(), depth - 1));
        }
    }

    fn list_level(&mut self, level: Vec<WalkFolder>, depth: usize) -> Vec<FolderListing> {
        let left = AtomicUsize::new(self.entries_left.min(self.reads_left));
        let before = left.load(Ordering::Relaxed);
        let listings: Vec<FolderListing> = level
            .par_iter()
            .map(|folder| self.lister.list_folder(folder, ReadQuota::Shared(&left)))
            .collect();
        let read = before - left.into_inner();
        self.reads_left -= read;
        if !listings.iter().any(|listing| listing.cut) {
            self.entries_left -= read;
            return listings;
        }
        // The folder that exceeds the limit first depends on the threads: list them again, one after the other.
        self.list_fairly(level, depth)
    }

    fn list_fairly(&mut self, level: Vec<WalkFolder>, depth: usize) -> Vec<FolderListing> {
        let share = (self.entries_left / level.len()).max(1);
        let mut out = Vec::new();
        for folder in level {
            let most = share.min(self.entries_left).min(self.reads_left);
            let listing = self.lister.list_folder(&folder, ReadQuota::AtMost(most));
            self.reads_left -= listing.read.min(self.reads_left);
            if listing.cut {
                self.late.push_back((depth, folder));
            } else {
                self.entries_left -= listing.read;
                out.push(listing);
            }
        }
        out
    }

    /// Searches the folders that waited, as far as the limit allows. Entries that cannot be a skill or hold
    /// one are skipped and do not count.
    fn search_late_folders(&mut self) {
        while let Some((depth, folder)) = self.late.pop_front() {
            // Half is reserved for the folders inside this one.
            let kept_max = self.entries_left.div_ceil(2);
            if kept_max == 0 || self.reads_left == 0 {
                self.late.push_front((depth, folder));
                return;
            }
            let take = ReadQuota::Useful { kept_max, read_max: self.reads_left };
            let listing = self.lister.list_folder(&folder, take);
            self.reads_left -= listing.read.min(self.reads_left);
            self.entries_left -= listing.kept;
            self.cut += 1;
            let level = self.collect_listings(vec![listing]);
            self.descend(level, depth + 1);
        }
    }

    /// Returns the number of folders that were not searched in full; `None` if all were.
    fn missed_folders(&self) -> Option<usize> {
        Some(self.late.len() + self.cut).filter(|folders| *folders > 0)
    }

    /// Collects the results and returns the folders to search next.
    fn collect_listings(&mut self, listings: Vec<FolderListing>) -> Vec<WalkFolder> {
        let mut level = Vec::new();
        for listing in listings {
            self.out.candidates.extend(listing.candidates);
            self.out.diagnostics.extend(listing.diagnostics);
            for folder in listing.folders {
                if self.is_first_link(&folder) {
                    level.push(folder);
                }
            }
        }
        level.sort_unstable_by(|a, b| a.dir.as_str().cmp(b.dir.as_str()));
        level
    }

    /// Returns true if a folder is not behind a link, or behind the first link that leads to it. Clients that
    /// search no deeper than the root name a skill after the link, so there every link counts.
    fn is_first_link(&mut self, folder: &WalkFolder) -> bool {
        let Some(target) = &folder.behind_link else { return true };
        if self.lister.options.limits.depth_max == 1 {
            return true;
        }
        let entry = self.links.entry(target.clone());
        let (_, count) = entry.or_insert_with(|| (folder.dir.clone(), 0));
        *count += 1;
        *count == 1
    }
}

fn repeated_link_diagnostic((link, count): &(Utf8PathBuf, usize)) -> Option<Diagnostic> {
    let more = count.checked_sub(1).filter(|more| *more > 0)?;
    let code = &codes::LINK_AGAIN;
    let links = if more == 1 { "link leads" } else { "links lead" };
    let message =
        format!("{more} more {links} to the folder behind this one; it was searched once");
    Some(Diagnostic::new(code, message).in_file(link).help(code.remedy))
}

fn entries_diagnostic(root: &Utf8Path, limit: usize, folders: usize) -> Diagnostic {
    let code = &codes::WALK_ENTRIES;
    let folders = match folders {
        1 => "the largest folder was not searched in full".to_owned(),
        _ => format!("the {folders} largest folders were not searched in full"),
    };
    let message = format!("the root has more than {limit} entries, the limit; {folders}");
    Diagnostic::new(code, message).in_file(root).help(code.remedy)
}

fn depth_diagnostic(dir: &Utf8Path, folders: usize, limit: usize) -> Diagnostic {
    let code = &codes::WALK_DEEP;
    let more = match folders {
        1 => String::new(),
        _ => format!(" (and {} more folders)", folders - 1),
    };
    let message =
        format!("this folder is deeper than {limit} levels, the limit, and was not searched{more}");
    Diagnostic::new(code, message).in_file(dir).help(code.remedy)
}
