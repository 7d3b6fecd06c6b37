//! Resolves a scope to the two states that are compared.

use super::{ReviewScope, ScopeError};
use crate::limits::REVIEW_NEAR_BRANCHES;
use crate::rules::ReviewBaseState;
use repertoire_git::repo::{GitClient, GitError, GitObjectId, TreeId};

/// The two compared states.
pub(super) struct ComparedStates {
    /// A description of the scope.
    pub(super) words: String,
    /// The commit of the old state, if it is one.
    pub(super) base_commit: Option<GitObjectId>,
    /// The commit of the new state, if it is one.
    pub(super) head_commit: Option<GitObjectId>,
    pub(super) from: TreeId,
    pub(super) to: TreeId,
    /// The state from which rules are read.
    pub(super) base: ReviewBaseState,
    /// True if the working directory contains the new state.
    pub(super) checked_out: bool,
    pub(super) warnings: Vec<String>,
}

impl ComparedStates {
    /// Resolves a scope.
    pub(super) async fn resolve_scope(
        git: &GitClient,
        scope: &ReviewScope,
    ) -> Result<ComparedStates, ScopeError> {
        match scope {
            ReviewScope::Uncommitted => {
                ComparedStates::for_working_dir(git, "uncommitted changes").await
            }
            ReviewScope::Files => ComparedStates::for_working_dir(git, "files").await,
            ReviewScope::Staged => {
                let index = git.tree_of_index().await.map_err(map_unmerged)?;
                let checked_out = count_uncommitted(git, &index).await? == Some(0);
                ComparedStates::since_head(git, "staged changes", index, checked_out).await
            }
            ReviewScope::Base(branch) => {
                let head = git.head_commit().await?;
                let tip = find_branch(git, branch).await?;
                ComparedStates::since_fork(git, format!("{branch}...HEAD"), &tip, head).await
            }
            ReviewScope::Fork { from, to } => {
                let words = format!("{from}...{to}");
                let (from, to) = (find_branch(git, from).await?, find_branch(git, to).await?);
                ComparedStates::since_fork(git, words, &from, to).await
            }
            ReviewScope::Range { from, to } => {
                let words = format!("{from}..{to}");
                let (from, to) = (find_branch(git, from).await?, find_branch(git, to).await?);
                ComparedStates::between_commits(git, words, from, to).await
            }
            ReviewScope::Commit(commit) => {
                let commit = find_branch(git, commit).await?;
                ComparedStates::for_commit(git, commit).await
            }
        }
    }

    async fn for_working_dir(git: &GitClient, words: &str) -> Result<ComparedStates, ScopeError> {
        let work = git.tree_of_work().await?;
        ComparedStates::since_head(git, words, work, true).await
    }

    async fn since_head(
        git: &GitClient,
        words: &str,
        to: TreeId,
        checked_out: bool,
    ) -> Result<ComparedStates, ScopeError> {
        let head = git.find_commit("HEAD").await?;
        let (from, base) = match &head {
            Some(head) => {
                let tree = git.tree_of(head).await?;
                (tree.clone(), ReviewBaseState::Tree(tree))
            }
            None => (git.empty_tree().await?, ReviewBaseState::None),
        };
        Ok(ComparedStates {
            words: words.to_owned(),
            base_commit: head,
            head_commit: None,
            from,
            to,
            base,
            checked_out,
            warnings: Vec::new(),
        })
    }

    async fn since_fork(
        git: &GitClient,
        words: String,
        from: &GitObjectId,
        to: GitObjectId,
    ) -> Result<ComparedStates, ScopeError> {
        match git.merge_base(from, &to).await? {
            Some(fork) => ComparedStates::between_commits(git, words, fork, to).await,
            None => Err(ScopeError::NothingShared { words, shallow: git.is_shallow().await? }),
        }
    }

    async fn between_commits(
        git: &GitClient,
        words: String,
        from: GitObjectId,
        to: GitObjectId,
    ) -> Result<ComparedStates, ScopeError> {
        let (before, after) = (git.tree_of(&from).await?, git.tree_of(&to).await?);
        let uncommitted = count_uncommitted(git, &after).await?;
        let mut warnings = Vec::new();
        let count = uncommitted.unwrap_or_default();
        if count > 0 && git.find_commit("HEAD").await?.as_ref() == Some(&to) {
            let files = if count == 1 { "1 file has" } else { &format!("{count} files have") };
            warnings.push(format!(
                "{files} uncommitted changes that are not looked at; commit them to have them reviewed"
            ));
        }
        Ok(ComparedStates {
            words,
            base_commit: Some(from),
            head_commit: Some(to),
            base: ReviewBaseState::Tree(before.clone()),
            from: before,
            to: after,
            checked_out: uncommitted == Some(0),
            warnings,
        })
    }

    async fn for_commit(
        git: &GitClient,
        commit: GitObjectId,
    ) -> Result<ComparedStates, ScopeError> {
        let parents = git.parent_commits(&commit).await?;
        let from = match parents.first() {
            Some(parent) => git.tree_of(parent).await?,
            None if git.is_cut_off(&commit).await? => {
                return Err(ScopeError::CutOff { commit: commit.short().to_owned() });
            }
            None => git.empty_tree().await?,
        };
        let mut warnings = Vec::new();
        if parents.len() > 1 {
            warnings.push(format!(
                "{} is a merge; it is compared with its first parent",
                commit.short()
            ));
        }
        let to = git.tree_of(&commit).await?;
        Ok(ComparedStates {
            words: format!("commit {}", commit.short()),
            base_commit: parents.into_iter().next(),
            head_commit: Some(commit),
            base: ReviewBaseState::Tree(from.clone()),
            from,
            checked_out: count_uncommitted(git, &to).await? == Some(0),
            to,
            warnings,
        })
    }
}

/// The number of files in the working directory that differ from a state, if `HEAD` has that state; `None` otherwise.
/// Uses `git status`, which writes no objects to the repository.
async fn count_uncommitted(git: &GitClient, state: &TreeId) -> Result<Option<usize>, ScopeError> {
    let Some(head) = git.find_commit("HEAD").await? else { return Ok(None) };
    if git.tree_of(&head).await? == *state { Ok(Some(git.status().await?.len())) } else { Ok(None) }
}

fn map_unmerged(error: GitError) -> ScopeError {
    match &error {
        GitError::Failed { said, .. } if said.contains("unmerged") => ScopeError::Unmerged,
        _ => error.into(),
    }
}

/// Resolves a name: as a local branch, any revision, or a branch of `origin`.
async fn find_branch(git: &GitClient, name: &str) -> Result<GitObjectId, ScopeError> {
    let name = if name.is_empty() { "HEAD" } else { name };
    for revision in
        [format!("refs/heads/{name}"), name.to_owned(), format!("refs/remotes/origin/{name}")]
    {
        match git.find_commit(&revision).await {
            Ok(Some(oid)) => return Ok(oid),
            // git fails on a text that is not a valid revision: treat it as not found.
            Ok(None) | Err(GitError::Failed { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if name == "HEAD" {
        return Err(GitError::Unborn { dir: git.dir().to_owned() }.into());
    }
    let near = similar_branches(name, git.list_branches().await?);
    Err(ScopeError::NoSuchRevision { name: name.to_owned(), near })
}

/// The branches with the most similar names, nearest first.
fn similar_branches(name: &str, branches: Vec<String>) -> Vec<String> {
    let wanted = name.to_lowercase();
    let ranked = branches.into_iter().filter_map(|branch| rank_branch(&wanted, branch));
    let mut ranked: Vec<(usize, String)> = ranked.collect();
    ranked.sort();
    ranked.into_iter().take(REVIEW_NEAR_BRANCHES).map(|(_, branch)| branch).collect()
}

/// Returns the edit distance of a branch, if its name is similar to the one that was given (in lower case).
fn rank_branch(wanted: &str, branch: String) -> Option<(usize, String)> {
    let here = branch.strip_prefix("origin/").unwrap_or(&branch).to_lowercase();
    let last = here.rsplit('/').next().unwrap_or(&here);
    let distance = edit_distance(wanted, &here).min(edit_distance(wanted, last));
    let holds = wanted.len() > 2 && (here.contains(wanted) || wanted.contains(&here));
    // Allow two edits at least, since two transposed letters count as two.
    let letters = wanted.chars().count();
    let close = holds || distance <= (letters / 3).max(2).min(letters.saturating_sub(1));
    close.then_some((distance, branch))
}

/// The Levenshtein distance.
fn edit_distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut corner = at;
        row[0] = at + 1;
        for (column, against) in other.iter().enumerate() {
            let changed = corner + usize::from(letter != *against);
            corner = row[column + 1];
            row[column + 1] = changed.min(corner + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let branches =
            || ["main", "develop", "feature/login", "origin/release-2"].map(str::to_owned);
        for (name, found) in [
            ("mian", vec!["main"]),
            ("Main", vec!["main"]),
            ("login", vec!["feature/login"]),
            ("release2", vec!["origin/release-2"]),
            ("xyz", vec![]),
        ] {
            assert_eq!(similar_branches(name, branches().to_vec()), found, "{name}");
        }
    }
}
