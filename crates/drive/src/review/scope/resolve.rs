//! Which two states are compared.

use camino::Utf8PathBuf;

use super::{Scope, ScopeError};
use crate::git::{Git, GitError, Oid, TreeId};
use crate::limits::REVIEW_NEAR_BRANCHES;
use crate::review::rules::Base;

/// Two states of the files, and what is to be known about them.
pub(super) struct Ends {
    /// What is looked at, in words.
    pub(super) words: String,
    /// The commit that it is compared with.
    pub(super) base_commit: Option<Oid>,
    /// The commit that is looked at.
    pub(super) head_commit: Option<Oid>,
    pub(super) from: TreeId,
    pub(super) to: TreeId,
    /// Where the rules are read.
    pub(super) base: Base,
    /// What is on disk now.
    pub(super) work: TreeId,
    pub(super) warnings: Vec<String>,
}

impl Ends {
    /// Finds out what a scope compares.
    pub(super) async fn of(
        git: &Git,
        top: &Utf8PathBuf,
        scope: &Scope,
    ) -> Result<Ends, ScopeError> {
        let work = git.tree_of_work().await?;
        match scope {
            Scope::Uncommitted | Scope::Files => {
                let words = match scope {
                    Scope::Files => "files",
                    _ => "uncommitted changes",
                };
                Ends::since_head(git, top, words, work.clone(), work).await
            }
            Scope::Staged => {
                let index = git.tree_of_index().await.map_err(unmerged)?;
                Ends::since_head(git, top, "staged changes", index, work).await
            }
            Scope::Base(branch) => {
                let head = git.head().await?;
                let tip = find_branch(git, branch).await?;
                let words = format!("{branch}...HEAD");
                Ends::since_fork(git, words, &tip, head, work).await
            }
            Scope::Fork { from, to } => {
                let words = format!("{from}...{to}");
                let (from, to) = (find_branch(git, from).await?, find_branch(git, to).await?);
                Ends::since_fork(git, words, &from, to, work).await
            }
            Scope::Range { from, to } => {
                let words = format!("{from}..{to}");
                let (from, to) = (find_branch(git, from).await?, find_branch(git, to).await?);
                Ends::between(git, words, from, to, work).await
            }
            Scope::Commit(commit) => {
                let commit = find_branch(git, commit).await?;
                Ends::of_commit(git, commit, work).await
            }
        }
    }

    async fn since_head(
        git: &Git,
        top: &Utf8PathBuf,
        words: &str,
        to: TreeId,
        work: TreeId,
    ) -> Result<Ends, ScopeError> {
        let head = git.find("HEAD").await?;
        let (from, base) = match &head {
            Some(head) => {
                let tree = git.tree_of(head).await?;
                (tree.clone(), Base::Tree(tree))
            }
            None => (git.empty_tree().await?, Base::Disk(top.clone())),
        };
        Ok(Ends {
            words: words.to_owned(),
            base_commit: head,
            head_commit: None,
            from,
            to,
            base,
            work,
            warnings: Vec::new(),
        })
    }

    async fn since_fork(
        git: &Git,
        words: String,
        from: &Oid,
        to: Oid,
        work: TreeId,
    ) -> Result<Ends, ScopeError> {
        match git.merge_base(from, &to).await? {
            Some(fork) => Ends::between(git, words, fork, to, work).await,
            None => Err(ScopeError::NothingShared { words }),
        }
    }

    async fn between(
        git: &Git,
        words: String,
        from: Oid,
        to: Oid,
        work: TreeId,
    ) -> Result<Ends, ScopeError> {
        let (before, after) = (git.tree_of(&from).await?, git.tree_of(&to).await?);
        let mut warnings = Vec::new();
        if after != work && git.find("HEAD").await?.as_ref() == Some(&to) {
            let count = git.status().await?.len();
            let files = if count == 1 { "1 file has" } else { &format!("{count} files have") };
            warnings.push(format!(
                "{files} uncommitted changes that are not looked at; commit them to have them reviewed"
            ));
        }
        Ok(Ends {
            words,
            base_commit: Some(from),
            head_commit: Some(to),
            base: Base::Tree(before.clone()),
            from: before,
            to: after,
            work,
            warnings,
        })
    }

    async fn of_commit(git: &Git, commit: Oid, work: TreeId) -> Result<Ends, ScopeError> {
        let parents = git.parents(&commit).await?;
        let from = match parents.first() {
            Some(parent) => git.tree_of(parent).await?,
            None => git.empty_tree().await?,
        };
        let mut warnings = Vec::new();
        if parents.len() > 1 {
            warnings.push(format!(
                "{} is a merge; it is compared with its first parent",
                commit.short()
            ));
        }
        Ok(Ends {
            words: format!("commit {}", commit.short()),
            base_commit: parents.into_iter().next(),
            to: git.tree_of(&commit).await?,
            head_commit: Some(commit),
            base: Base::Tree(from.clone()),
            from,
            work,
            warnings,
        })
    }
}

fn unmerged(error: GitError) -> ScopeError {
    match &error {
        GitError::Failed { said, .. } if said.contains("unmerged") => ScopeError::Unmerged,
        _ => error.into(),
    }
}

/// The commit of a branch here, of any other expression, or of the branch of `origin` with that name.
async fn find_branch(git: &Git, name: &str) -> Result<Oid, ScopeError> {
    let name = if name.is_empty() { "HEAD" } else { name };
    for revision in
        [format!("refs/heads/{name}"), name.to_owned(), format!("refs/remotes/origin/{name}")]
    {
        match git.find(&revision).await {
            Ok(Some(oid)) => return Ok(oid),
            // A text that is no expression is not the name of anything.
            Ok(None) | Err(GitError::Failed { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if name == "HEAD" {
        return Err(GitError::Unborn { dir: git.dir().to_owned() }.into());
    }
    let near = near(name, git.branches().await?);
    Err(ScopeError::NoSuchRevision { name: name.to_owned(), near })
}

/// The names that somebody may have meant, the nearest first.
fn near(name: &str, branches: Vec<String>) -> Vec<String> {
    let wanted = name.to_lowercase();
    let rank = |branch: String| {
        let here = branch.strip_prefix("origin/").unwrap_or(&branch).to_lowercase();
        let last = here.rsplit('/').next().unwrap_or(&here);
        let distance = distance(&wanted, &here).min(distance(&wanted, last));
        let holds = wanted.len() > 2 && (here.contains(&wanted) || wanted.contains(&here));
        // Two letters that changed places are two changes.
        let letters = wanted.chars().count();
        let close = holds || distance <= (letters / 3).max(2).min(letters.saturating_sub(1));
        close.then_some((distance, branch))
    };
    let mut ranked: Vec<(usize, String)> = branches.into_iter().filter_map(rank).collect();
    ranked.sort();
    ranked.into_iter().take(REVIEW_NEAR_BRANCHES).map(|(_, branch)| branch).collect()
}

/// How many letters have to be changed, put in or taken out.
fn distance(one: &str, other: &str) -> usize {
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
            assert_eq!(near(name, branches().to_vec()), found, "{name}");
        }
    }
}
