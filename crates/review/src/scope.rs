//! What a review looks at: which files, which of their lines, and what else its agents should know.
//!
//! The two states that are compared are trees of git, also where one of them is on disk only: what is read, compared and
//! exported is the same, whatever happens to the files meanwhile. Nothing is left out without a reason in
//! [`Change::skipped`].

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};

use self::paths::Filter;
use self::pick::{Candidate, pick};
use self::resolve::Ends;
use super::change::{Change, ChangedFile, Skipped};
use super::content::{self, RelatedTest};
use super::record::ScopeRecord;
use super::rules::{self, Base, RuleFile};
use repertoire_git::repo::{Git, GitError, Mode, TreeChange, TreeEntry};
use crate::limits::{REVIEW_BYTES_MAX, REVIEW_FILES_MAX, REVIEW_FOLDER_FILES_WARN, REVIEW_FULL_CHARS_MAX, REVIEW_TEST_BYTES_MAX};

mod disk;
mod paths;
mod pick;
mod read;
mod resolve;
mod say;
pub(crate) mod skip;
mod tree;

pub use self::tree::Tree;

/// What is reviewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// What is on disk, compared with the last commit; untracked files included.
    Uncommitted,
    /// What is in the index, compared with the last commit.
    Staged,
    /// What the branch that is checked out has done since it left this one.
    Base(String),
    /// One commit, compared with its first parent.
    Commit(String),
    /// `from..to`: how two commits differ.
    Range {
        /// Before.
        from: String,
        /// After.
        to: String,
    },
    /// `from...to`: what `to` has done since it left `from`.
    Fork {
        /// The one that it left.
        from: String,
        /// The one that is looked at.
        to: String,
    },
    /// The files that are named: what is uncommitted in them, or all of them if nothing is.
    Files,
}

impl Scope {
    /// `a..b` and `a...b`; an end that is left out is `HEAD`. `None` if it is neither.
    pub fn range(text: &str) -> Option<Scope> {
        let end = |name: &str| if name.is_empty() { "HEAD".to_owned() } else { name.to_owned() };
        // A path is no range: `../a`, `a/../b`.
        if text.contains("../") || text.contains("/..") || text.trim_matches('.').is_empty() {
            return None;
        }
        if let Some((from, to)) = text.split_once("...") {
            return Some(Scope::Fork { from: end(from), to: end(to) });
        }
        let (from, to) = text.split_once("..")?;
        Some(Scope::Range { from: end(from), to: end(to) })
    }

    /// It, in words.
    fn words(&self) -> &'static str {
        match self {
            Scope::Uncommitted => "uncommitted changes",
            Scope::Staged => "staged changes",
            Scope::Base(_) => "a branch",
            Scope::Commit(_) => "a commit",
            Scope::Range { .. } | Scope::Fork { .. } => "a range of commits",
            Scope::Files => "files",
        }
    }
}

/// How much is gathered.
#[derive(Clone, Debug)]
pub struct GatherLimits {
    /// Most files.
    pub files_max: usize,
    /// Most bytes of all of them.
    pub bytes_max: u64,
    /// Most characters of files that go into prompts as a whole.
    pub full_chars_max: usize,
    /// Globs of files that come first where there is not room for all.
    pub priority_files: Vec<String>,
    /// Where a copy of a state that is not checked out is put; the system's folder for such things if absent.
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

/// All that a review starts from.
#[derive(Debug)]
pub struct Gathered {
    /// What is looked at, in words and commits.
    pub scope: ScopeRecord,
    /// The files.
    pub change: Change,
    /// Rules of the repository, as they were before the change.
    pub rules: Vec<RuleFile>,
    /// Tests that belong to the files by their names.
    pub related_tests: Vec<RelatedTest>,
    /// What people should know.
    pub warnings: Vec<String>,
    /// Where the reviewed state can be read.
    pub tree: Tree,
    /// Where the state before the change is.
    pub base: Base,
    /// The repository's own configuration of reviews, and that of the project (`repertoire.toml`), as they were before
    /// the change.
    pub base_files: BTreeMap<Utf8PathBuf, String>,
    /// All that the change touches, whether it is looked at or not, with the names that files had before; in order, each
    /// once. Outside a repository, what was found.
    pub touched: Vec<Utf8PathBuf>,
}

/// Why there is nothing to review.
#[derive(Debug, thiserror::Error)]
pub enum ScopeError {
    /// git said no.
    #[error(transparent)]
    Git(#[from] GitError),
    /// There is no repository.
    #[error(
        "{dir} is in no git repository, and {what} can only be reviewed in one; name files or folders to have them \
         reviewed as they are"
    )]
    NoRepository {
        /// The folder.
        dir: Utf8PathBuf,
        /// What was asked for.
        what: &'static str,
    },
    /// No file was named.
    #[error("no file is named; name files, folders or globs to review")]
    NoPaths,
    /// A path is elsewhere.
    #[error("`{path}` is not below {top}; go there to review it")]
    Outside {
        /// The path.
        path: Utf8PathBuf,
        /// The folder that is reviewed.
        top: Utf8PathBuf,
    },
    /// A path leads nowhere.
    #[error("`{path}` matches no file{hint}; check the spelling, and from where the path counts")]
    NoMatch {
        /// The path.
        path: Utf8PathBuf,
        /// What may be the reason.
        hint: &'static str,
    },
    /// Not a glob.
    #[error("`{glob}` is not a glob: {why}")]
    Glob {
        /// The text.
        glob: Utf8PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// There is no such branch.
    #[error("there is no branch, tag or commit `{name}`{}", did_you_mean(near))]
    NoSuchRevision {
        /// What was asked for.
        name: String,
        /// Branches that may have been meant.
        near: Vec<String>,
    },
    /// Two commits have no history in common.
    #[error("the two ends of `{words}` have no commit in common; {}", nothing_shared(*shallow))]
    NothingShared {
        /// What was asked for.
        words: String,
        /// Whether there may be one that was not fetched.
        shallow: bool,
    },
    /// What a commit builds on was not fetched.
    #[error(
        "this clone is shallow, and what commit {commit} builds on is not in it, so what it changed is not known; fetch \
         it with `git fetch --deepen=1` (`fetch-depth: 2` for actions/checkout)"
    )]
    CutOff {
        /// The commit.
        commit: String,
    },
    /// The index has conflicts.
    #[error("there are conflicts that are not resolved; resolve them and stage the files first")]
    Unmerged,
    /// A diff of git is not understood.
    #[error("the change of `{path}`: {source}")]
    Diff {
        /// The file, or the first of several.
        path: Utf8PathBuf,
        /// What is wrong with it.
        source: super::diff::DiffError,
    },
    /// The disk said no.
    #[error("{path}: {source}")]
    Io {
        /// Where.
        path: Utf8PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

fn did_you_mean(near: &[String]) -> String {
    match near {
        [] => "; `git branch --all` lists the branches".to_owned(),
        near => format!("; did you mean `{}`?", near.join("` or `")),
    }
}

fn nothing_shared(shallow: bool) -> &'static str {
    match shallow {
        true => {
            "this clone is shallow: fetch more of the history with `git fetch --deepen=1` (or a larger number, or \
             `--unshallow`; `fetch-depth: 2` or `0` for actions/checkout)"
        }
        false => "compare them as `a..b` instead",
    }
}

/// Finds out what is to be reviewed. Paths, as they count from the folder of `git`, narrow it down.
pub async fn gather(
    git: &Git,
    scope: &Scope,
    paths: &[Utf8PathBuf],
    limits: &GatherLimits,
) -> Result<Gathered, ScopeError> {
    if *scope == Scope::Files && paths.is_empty() {
        return Err(ScopeError::NoPaths);
    }
    let here = real(git.dir())?;
    match git.top().await {
        Ok(top) => in_repository(git, &real(&top)?, &here, scope, paths, limits).await,
        Err(GitError::NotARepository { .. }) if *scope == Scope::Files => {
            disk::gather(&here, paths, limits)
        }
        Err(GitError::NotARepository { dir }) => {
            Err(ScopeError::NoRepository { dir, what: scope.words() })
        }
        Err(error) => Err(error.into()),
    }
}

fn real(dir: &Utf8Path) -> Result<Utf8PathBuf, ScopeError> {
    dir.canonicalize_utf8().map_err(|source| ScopeError::Io { path: dir.to_owned(), source })
}

async fn in_repository(
    git: &Git,
    top: &Utf8PathBuf,
    here: &Utf8Path,
    scope: &Scope,
    paths: &[Utf8PathBuf],
    limits: &GatherLimits,
) -> Result<Gathered, ScopeError> {
    let filter = Filter::new(here, top, paths)?;
    let mut ends = Ends::of(git, scope).await?;
    let mut warnings = std::mem::take(&mut ends.warnings);
    let changes = git.tree_changes(&ends.from, &ends.to).await?;
    let touched = touched(&changes);
    let there = listing(git, &ends, scope, &mut warnings).await?;
    let (mut candidates, mut skipped) = pick(&changes, &filter);
    if *scope == Scope::Files {
        pick::unchanged(&there, &filter, &mut candidates, &mut skipped);
        pick::ignored(top, &there, &filter, &mut candidates);
    }
    check_paths(top, &filter, &candidates, &skipped, &there, &mut warnings)?;
    warnings.extend(say::deleted(&skipped));
    if *scope == Scope::Files {
        warnings.extend(say::only_uncommitted(&filter, &candidates));
    }
    let generated = read::leave_out_generated(git, &ends, &filter, &mut candidates).await?;
    skipped.extend(generated);
    let files =
        read::read(git, top, &ends, candidates, limits, &mut skipped, &mut warnings).await?;
    let change = finished(files, skipped, limits, &mut warnings);
    warn_of_many(scope, &change, &mut warnings);
    let related_tests = tests_of(git, &change, &there).await?;
    warnings.extend(match &ends.base {
        Base::Tree(_) => rules::touched(touched.iter().map(Utf8PathBuf::as_path)),
        Base::None => rules::without_base(top, &change),
    });
    let tree = match ends.checked_out {
        true => Tree::checkout(top.clone()),
        false => Tree::export(git, &ends.to, limits.scratch.as_deref()).await?,
    };
    let record = ScopeRecord {
        words: say::words(scope, &ends.words, &filter),
        base: ends.base_commit.as_ref().map(ToString::to_string),
        head: ends.head_commit.as_ref().map(ToString::to_string),
        branch: git.branch().await?,
    };
    let folder = here.strip_prefix(top).unwrap_or(Utf8Path::new(""));
    Ok(Gathered {
        scope: record,
        rules: rules::rules_for(git, &ends.base, &change, &mut warnings).await?,
        base_files: rules::base_files(git, &ends.base, folder, &mut warnings).await?,
        base: ends.base,
        change,
        related_tests,
        warnings,
        tree,
        touched,
    })
}

/// All paths of a change, also those that files had before it.
fn touched(changes: &[TreeChange]) -> Vec<Utf8PathBuf> {
    let names = changes.iter().flat_map(|change| [Some(&change.name), change.from.as_ref()]);
    let paths: BTreeSet<&Utf8PathBuf> = names.flatten().map(|name| &name.path).collect();
    paths.into_iter().cloned().collect()
}

/// All files of the reviewed state. Only a review of files cannot do without them.
async fn listing(
    git: &Git,
    ends: &Ends,
    scope: &Scope,
    warnings: &mut Vec<String>,
) -> Result<Vec<TreeEntry>, ScopeError> {
    match git.tree_entries(&ends.to).await {
        Err(GitError::TooMuch { .. }) if *scope != Scope::Files => {
            warnings.push("the repository has too many files to look for related tests".to_owned());
            Ok(Vec::new())
        }
        entries => Ok(entries?),
    }
}

/// Every path that was named has to be one; if nothing has changed there, that is said.
fn check_paths(
    top: &Utf8Path,
    filter: &Filter,
    candidates: &[Candidate],
    skipped: &[Skipped],
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
        if changed.iter().any(|path| wanted.takes(path)) {
            continue;
        }
        let known = there.iter().any(|entry| wanted.takes(&entry.name.path));
        if known {
            warnings.push(format!("nothing has changed in `{}`", wanted.said));
            continue;
        }
        let on_disk = filter.places().any(|place| wanted.takes(place) && top.join(place).exists());
        let hint = if on_disk { " that git knows of (it is empty or ignored)" } else { "" };
        return Err(ScopeError::NoMatch { path: wanted.said.clone(), hint });
    }
    Ok(())
}

/// The files in order, each with its tier.
fn finished(
    mut files: Vec<ChangedFile>,
    mut skipped: Vec<Skipped>,
    limits: &GatherLimits,
    warnings: &mut Vec<String>,
) -> Change {
    files.sort_by(|a, b| a.path.cmp(&b.path));
    skipped.sort_by(|a, b| a.path.cmp(&b.path));
    let (first, wrong) = content::globs(&limits.priority_files);
    warnings.extend(wrong.iter().map(|glob| format!("`{glob}` is not a glob; it is left out")));
    let mut change = Change { files, skipped };
    content::assign_tiers(&mut change, &first, limits.full_chars_max);
    change
}

fn warn_of_many(scope: &Scope, change: &Change, warnings: &mut Vec<String>) {
    let count = change.files.len();
    if *scope == Scope::Files && count > REVIEW_FOLDER_FILES_WARN {
        warnings.push(format!(
            "{count} files are reviewed at once; a review of at most {REVIEW_FOLDER_FILES_WARN} finds more in each"
        ));
    }
}

async fn tests_of(
    git: &Git,
    change: &Change,
    there: &[TreeEntry],
) -> Result<Vec<RelatedTest>, ScopeError> {
    let files: BTreeMap<&Utf8Path, &TreeEntry> = there
        .iter()
        .filter(|entry| entry.name.exact && matches!(entry.mode, Mode::File | Mode::Program))
        .map(|entry| (entry.name.path.as_path(), entry))
        .collect();
    let found = content::related_tests(change, files.keys().copied());
    let objects: Vec<String> = found.iter().map(|(path, _)| files[path].blob.to_string()).collect();
    let sizes = git.sizes(&objects).await?.into_iter().flatten();
    let small: Vec<_> = sizes.filter(|(_, size)| *size <= REVIEW_TEST_BYTES_MAX).collect();
    let blobs = git.blobs(&small).await?;
    let test = |(path, of): (&Utf8Path, Utf8PathBuf)| {
        let text = std::str::from_utf8(blobs.get(&files[path].blob)?).ok()?;
        Some(RelatedTest { path: path.to_owned(), of, text: content::cut_test(text) })
    };
    Ok(found.into_iter().filter_map(test).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_told_from_paths() {
        let range = |from: &str, to: &str| Scope::Range { from: from.into(), to: to.into() };
        let fork = |from: &str, to: &str| Scope::Fork { from: from.into(), to: to.into() };
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
            assert_eq!(Scope::range(text), scope, "{text}");
        }
    }
}
