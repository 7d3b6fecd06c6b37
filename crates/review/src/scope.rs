//! Gathers the scope of a review: the files, the changed lines, and the context that agents need.
//!
//! The two compared states are always git trees, even if one of them is the working directory. So what is read,
//! compared and exported stays consistent, even if files change meanwhile. Every file that is left out has a reason in
//! [`ReviewChange::skipped`].

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};

use self::candidates::{ReviewCandidate, pick_candidates};
use self::paths::ScopePathFilter;
use self::resolve::ComparedStates;
use super::change::{ReviewChange, ReviewedFile, SkippedFile};
use super::content::{self, RelatedTest};
use super::record::ScopeRecord;
use super::rules::{self, ReviewBaseState, RuleFile};
use crate::limits::{
    REVIEW_BYTES_MAX, REVIEW_FILES_MAX, REVIEW_FOLDER_FILES_WARN, REVIEW_FULL_CHARS_MAX,
    REVIEW_TEST_BYTES_MAX,
};
use repertoire_git::repo::{GitClient, GitError, TreeChange, TreeEntry, TreeEntryMode};

mod candidates;
mod disk;
mod messages;
mod paths;
mod read;
mod resolve;
pub(crate) mod skip;
mod tree;

pub use self::tree::ReviewTree;

/// The part of a repository that is reviewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReviewScope {
    /// The working directory, including untracked files, compared with `HEAD`.
    Uncommitted,
    /// The index, compared with `HEAD`.
    Staged,
    /// The changes of the checked-out branch since it forked from this one.
    Base(String),
    /// A commit, compared with its first parent.
    Commit(String),
    /// `from..to`: the difference between two commits.
    Range { from: String, to: String },
    /// `from...to`: the changes of `to` since it forked from `from`.
    Fork { from: String, to: String },
    /// The named files: their uncommitted changes, or the whole files if there are none.
    Files,
}

impl ReviewScope {
    /// Parses `a..b` or `a...b`. An empty end means `HEAD`. Returns `None` for anything else.
    pub fn parse_range(text: &str) -> Option<ReviewScope> {
        // `../a` and `a/../b` are paths.
        if text.contains("../") || text.contains("/..") || text.trim_matches('.').is_empty() {
            return None;
        }
        if let Some((from, to)) = text.split_once("...") {
            return Some(ReviewScope::Fork {
                from: revision_or_head(from),
                to: revision_or_head(to),
            });
        }
        let (from, to) = text.split_once("..")?;
        Some(ReviewScope::Range { from: revision_or_head(from), to: revision_or_head(to) })
    }

    /// A description for messages.
    fn kind_name(&self) -> &'static str {
        match self {
            ReviewScope::Uncommitted => "uncommitted changes",
            ReviewScope::Staged => "staged changes",
            ReviewScope::Base(_) => "a branch",
            ReviewScope::Commit(_) => "a commit",
            ReviewScope::Range { .. } | ReviewScope::Fork { .. } => "a range of commits",
            ReviewScope::Files => "files",
        }
    }
}

fn revision_or_head(name: &str) -> String {
    if name.is_empty() { "HEAD".to_owned() } else { name.to_owned() }
}

/// Limits and preferences for gathering.
#[derive(Clone, Debug)]
pub struct GatherLimits {
    pub files_max: usize,
    /// The maximum size of all files together.
    pub bytes_max: u64,
    /// The maximum number of characters of files that go into prompts as a whole.
    pub full_chars_max: usize,
    /// Globs of files that take precedence if not all files fit.
    pub priority_files: Vec<String>,
    /// The parent folder for a copy of a state that is not checked out; the system's temporary folder if `None`.
    pub scratch: Option<Utf8PathBuf>,
}

impl Default for GatherLimits {
    fn default() -> Self {
        GatherLimits {
            files_max: REVIEW_FILES_MAX,
            bytes_max: REVIEW_BYTES_MAX,
            full_chars_max: REVIEW_FULL_CHARS_MAX,
            priority_files: Vec::new(),
            scratch: None,
        }
    }
}

/// The inputs of a review that come from the repository.
#[derive(Debug)]
pub struct ReviewInputs {
    /// A description of the scope, for the record.
    pub scope: ScopeRecord,
    pub change: ReviewChange,
    /// The repository's rules, as of before the change.
    pub rules: Vec<RuleFile>,
    /// Tests that belong to changed files, judging by their names.
    pub related_tests: Vec<RelatedTest>,
    pub warnings: Vec<String>,
    /// A folder with the state under review.
    pub tree: ReviewTree,
    /// The state before the change.
    pub base: ReviewBaseState,
    /// The review configuration and the project's `repertoire.toml`, as of before the change.
    pub base_files: BTreeMap<Utf8PathBuf, String>,
    /// All paths that the change touches, reviewed or not, including old names of renamed files; sorted, without
    /// duplicates. Outside a repository, all files that were found.
    pub touched: Vec<Utf8PathBuf>,
}

/// An error in gathering the scope.
#[derive(Debug, thiserror::Error)]
pub enum ScopeError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(
        "{dir} is in no git repository, and {what} can only be reviewed in one; name files or folders to have them \
         reviewed as they are"
    )]
    NoRepository {
        dir: Utf8PathBuf,
        /// A description of the requested scope.
        what: &'static str,
    },
    /// No paths are given for [`ReviewScope::Files`].
    #[error("no file is named; name files, folders or globs to review")]
    NoPaths,
    /// A path is outside of the reviewed folder.
    #[error("`{path}` is not below {top}; go there to review it")]
    Outside { path: Utf8PathBuf, top: Utf8PathBuf },
    /// A path matches no file.
    #[error("`{path}` matches no file{hint}; check the spelling, and from where the path counts")]
    NoMatch {
        path: Utf8PathBuf,
        /// A possible cause, or empty.
        hint: &'static str,
    },
    #[error("`{glob}` is not a glob: {why}")]
    Glob { glob: Utf8PathBuf, why: String },
    #[error("there is no branch, tag or commit `{name}`{}", did_you_mean(near))]
    NoSuchRevision {
        name: String,
        /// Branches with similar names.
        near: Vec<String>,
    },
    #[error("the two ends of `{words}` have no commit in common; {}", nothing_shared(*shallow))]
    NothingShared {
        /// A description of the range.
        words: String,
        /// True if the clone is shallow, so that the common commit may not have been fetched.
        shallow: bool,
    },
    /// The clone is shallow, and the parent of a commit was not fetched.
    #[error(
        "this clone is shallow, and what commit {commit} builds on is not in it, so what it changed is not known; fetch \
         it with `git fetch --deepen=1` (`fetch-depth: 2` for actions/checkout)"
    )]
    CutOff { commit: String },
    /// The index has unresolved conflicts.
    #[error("there are conflicts that are not resolved; resolve them and stage the files first")]
    Unmerged,
    /// A diff of git could not be parsed.
    #[error("the change of `{path}`: {source}")]
    Diff {
        /// The file, or the first of several.
        path: Utf8PathBuf,
        source: repertoire_git::diff::DiffParseError,
    },
    #[error("{path}: {source}")]
    Io { path: Utf8PathBuf, source: std::io::Error },
}

fn did_you_mean(near: &[String]) -> String {
    match near {
        [] => "; `git branch --all` lists the branches".to_owned(),
        near => format!("; did you mean `{}`?", near.join("` or `")),
    }
}

fn nothing_shared(shallow: bool) -> &'static str {
    if shallow {
        "this clone is shallow: fetch more of the history with `git fetch --deepen=1` (or a larger number, or \
         `--unshallow`; `fetch-depth: 2` or `0` for actions/checkout)"
    } else {
        "compare them as `a..b` instead"
    }
}

/// Gathers the scope of a review. `paths`, relative to the folder of `git`, restrict it.
pub async fn gather_inputs(
    git: &GitClient,
    scope: &ReviewScope,
    paths: &[Utf8PathBuf],
    limits: &GatherLimits,
) -> Result<ReviewInputs, ScopeError> {
    if *scope == ReviewScope::Files && paths.is_empty() {
        return Err(ScopeError::NoPaths);
    }
    let here = canonical_dir(git.dir())?;
    match git.work_tree_root().await {
        Ok(top) => {
            gather_in_repository(git, &canonical_dir(&top)?, &here, scope, paths, limits).await
        }
        Err(GitError::NotARepository { .. }) if *scope == ReviewScope::Files => {
            disk::gather_from_disk(&here, paths, limits)
        }
        Err(GitError::NotARepository { dir }) => {
            Err(ScopeError::NoRepository { dir, what: scope.kind_name() })
        }
        Err(error) => Err(error.into()),
    }
}

fn canonical_dir(dir: &Utf8Path) -> Result<Utf8PathBuf, ScopeError> {
    dir.canonicalize_utf8().map_err(|source| ScopeError::Io { path: dir.to_owned(), source })
}

async fn gather_in_repository(
    git: &GitClient,
    top: &Utf8PathBuf,
    here: &Utf8Path,
    scope: &ReviewScope,
    paths: &[Utf8PathBuf],
    limits: &GatherLimits,
) -> Result<ReviewInputs, ScopeError> {
    let filter = ScopePathFilter::new(here, top, paths)?;
    let mut ends = ComparedStates::resolve_scope(git, scope).await?;
    let mut warnings = std::mem::take(&mut ends.warnings);
    let changes = git.tree_changes(&ends.from, &ends.to).await?;
    let touched = touched_paths(&changes);
    let there = list_files(git, &ends, scope, &mut warnings).await?;
    let (mut candidates, mut skipped) = pick_candidates(&changes, &filter);
    if *scope == ReviewScope::Files {
        candidates::add_unchanged(&there, &filter, &mut candidates, &mut skipped);
        candidates::add_ignored(top, &there, &filter, &mut candidates);
    }
    check_paths(top, &filter, &candidates, &skipped, &there, &mut warnings)?;
    warnings.extend(messages::deleted_warning(&skipped));
    if *scope == ReviewScope::Files {
        warnings.extend(messages::only_uncommitted_warning(&filter, &candidates));
    }
    let generated = read::leave_out_generated(git, &ends, &filter, &mut candidates).await?;
    skipped.extend(generated);
    let files =
        read::read_candidates(git, top, &ends, candidates, limits, &mut skipped, &mut warnings)
            .await?;
    let change = finish_change(files, skipped, limits, &mut warnings);
    warn_of_many(scope, &change, &mut warnings);
    let related_tests = read_related_tests(git, &change, &there).await?;
    warnings.extend(match &ends.base {
        ReviewBaseState::Tree(_) => {
            rules::touched_warning(touched.iter().map(Utf8PathBuf::as_path))
        }
        ReviewBaseState::None => rules::without_base_warning(top, &change),
    });
    let tree = if ends.checked_out {
        ReviewTree::from_checkout(top.clone())
    } else {
        ReviewTree::export_tree(git, &ends.to, limits.scratch.as_deref()).await?
    };
    let record = ScopeRecord {
        words: messages::describe_scope(scope, &ends.words, &filter),
        base: ends.base_commit.as_ref().map(ToString::to_string),
        head: ends.head_commit.as_ref().map(ToString::to_string),
        branch: git.current_branch().await?,
    };
    let folder = here.strip_prefix(top).unwrap_or(Utf8Path::new(""));
    Ok(ReviewInputs {
        scope: record,
        rules: rules::read_rules(git, &ends.base, &change, &mut warnings).await?,
        base_files: rules::read_base_files(git, &ends.base, folder, &mut warnings).await?,
        base: ends.base,
        change,
        related_tests,
        warnings,
        tree,
        touched,
    })
}

/// All paths of a change, including old names of renamed files.
fn touched_paths(changes: &[TreeChange]) -> Vec<Utf8PathBuf> {
    let names = changes.iter().flat_map(|change| [Some(&change.name), change.from.as_ref()]);
    let paths: BTreeSet<&Utf8PathBuf> = names.flatten().map(|name| &name.path).collect();
    paths.into_iter().cloned().collect()
}

/// Lists all files of the state under review. If there are too many, only [`Scope::Files`] fails; other scopes just
/// lack related tests.
async fn list_files(
    git: &GitClient,
    ends: &ComparedStates,
    scope: &ReviewScope,
    warnings: &mut Vec<String>,
) -> Result<Vec<TreeEntry>, ScopeError> {
    match git.tree_entries(&ends.to).await {
        Err(GitError::TooMuch { .. }) if *scope != ReviewScope::Files => {
            warnings.push("the repository has too many files to look for related tests".to_owned());
            Ok(Vec::new())
        }
        entries => Ok(entries?),
    }
}

/// Checks that every named path exists. Warns about paths without changes.
fn check_paths(
    top: &Utf8Path,
    filter: &ScopePathFilter,
    candidates: &[ReviewCandidate],
    skipped: &[SkippedFile],
    there: &[TreeEntry],
    warnings: &mut Vec<String>,
) -> Result<(), ScopeError> {
    let changed: BTreeSet<&Utf8Path> = candidates
        .iter()
        .flat_map(|candidate| [Some(candidate.path.as_path()), candidate.old_path.as_deref()])
        .flatten()
        .chain(skipped.iter().map(|skipped| skipped.path.as_path()))
        .collect();
    for wanted in filter.wanted() {
        if changed.iter().any(|path| wanted.matches_path(path)) {
            continue;
        }
        let known = there.iter().any(|entry| wanted.matches_path(&entry.name.path));
        if known {
            warnings.push(format!("nothing has changed in `{}`", wanted.said));
            continue;
        }
        let on_disk = filter
            .named_places()
            .any(|place| wanted.matches_path(place) && top.join(place).exists());
        let hint = if on_disk { " that git knows of (it is empty or ignored)" } else { "" };
        return Err(ScopeError::NoMatch { path: wanted.said.clone(), hint });
    }
    Ok(())
}

/// Sorts the files and assigns their tiers.
fn finish_change(
    mut files: Vec<ReviewedFile>,
    mut skipped: Vec<SkippedFile>,
    limits: &GatherLimits,
    warnings: &mut Vec<String>,
) -> ReviewChange {
    files.sort_by(|a, b| a.path.cmp(&b.path));
    skipped.sort_by(|a, b| a.path.cmp(&b.path));
    let (first, wrong) = content::compile_globs(&limits.priority_files);
    warnings.extend(wrong.iter().map(|glob| format!("`{glob}` is not a glob; it is left out")));
    let mut change = ReviewChange { files, skipped };
    content::assign_tiers(&mut change, &first, limits.full_chars_max);
    change
}

fn warn_of_many(scope: &ReviewScope, change: &ReviewChange, warnings: &mut Vec<String>) {
    let count = change.files.len();
    if *scope == ReviewScope::Files && count > REVIEW_FOLDER_FILES_WARN {
        warnings.push(format!(
            "{count} files are reviewed at once; a review of at most {REVIEW_FOLDER_FILES_WARN} finds more in each"
        ));
    }
}

async fn read_related_tests(
    git: &GitClient,
    change: &ReviewChange,
    there: &[TreeEntry],
) -> Result<Vec<RelatedTest>, ScopeError> {
    let files: BTreeMap<&Utf8Path, &TreeEntry> = there
        .iter()
        .filter(|entry| {
            entry.name.exact && matches!(entry.mode, TreeEntryMode::File | TreeEntryMode::Program)
        })
        .map(|entry| (entry.name.path.as_path(), entry))
        .collect();
    let found = content::related_tests(change, files.keys().copied());
    let objects: Vec<String> = found.iter().map(|(path, _)| files[path].blob.to_string()).collect();
    let sizes = git.object_sizes(&objects).await?.into_iter().flatten();
    let small: Vec<_> = sizes.filter(|(_, size)| *size <= REVIEW_TEST_BYTES_MAX).collect();
    let blobs = git.read_blobs(&small).await?;
    let test = |(path, of): (&Utf8Path, Utf8PathBuf)| {
        let text = std::str::from_utf8(blobs.get(&files[path].blob)?).ok()?;
        Some(RelatedTest { path: path.to_owned(), of, text: content::truncate_test(text) })
    };
    Ok(found.into_iter().filter_map(test).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_told_from_paths() {
        let range = |from: &str, to: &str| ReviewScope::Range { from: from.into(), to: to.into() };
        let fork = |from: &str, to: &str| ReviewScope::Fork { from: from.into(), to: to.into() };
        for (text, scope) in [
            ("main..topic", Some(range("main", "topic"))),
            ("v1.2..HEAD~1", Some(range("v1.2", "HEAD~1"))),
            ("main...", Some(fork("main", "HEAD"))),
            ("..topic", Some(range("HEAD", "topic"))),
            ("main", None),
            ("../a.rs", None),
            ("src/../a.rs", None),
            ("..", None),
        ] {
            assert_eq!(ReviewScope::parse_range(text), scope, "{text}");
        }
    }
}
