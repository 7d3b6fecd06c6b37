//! The changes of a run.

use camino::Utf8Path;
use repertoire_journal::{Journal, JournalError, Payload, Run, RunId};
use repertoire_text::fs::{self, ReadError};
use schemars::JsonSchema;
use serde::Serialize;

use super::events_of;
use repertoire_git::diff::{self, FilePatch, LineKind};
use repertoire_git::limits::GIT_OUTPUT_BYTES_MAX;
use repertoire_git::repo::{DiffTarget, FileDiff, GitClient, GitDiff, GitError, GitObjectId};

/// The output of `rep runs diff --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunDiffJson {
    /// The id of the run.
    pub run: RunId,
    /// `branch` if the branch was compared now, `record` if the diff was stored by the run.
    pub source: &'static str,
    /// The commit that the run started from.
    pub from: Option<String>,
    /// The commit of the run's branch.
    pub to: Option<String>,
    /// The changed files.
    pub files: Vec<RunChangedFile>,
    /// The number of added lines.
    pub insertions: u64,
    /// The number of removed lines.
    pub deletions: u64,
    /// True if the text is incomplete.
    pub cut: bool,
    /// The diff; null with `--stat`.
    pub text: Option<String>,
}

/// A changed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunChangedFile {
    /// The path of the file.
    pub path: String,
    /// The previous path, if the file was renamed.
    pub from: Option<String>,
    /// The number of added lines; null for a binary file.
    pub insertions: Option<u64>,
    /// The number of removed lines; null for a binary file.
    pub deletions: Option<u64>,
}

#[derive(Debug, thiserror::Error)]
pub enum RunDiffError {
    /// The run has no worktree yet.
    #[error("run {} has changed nothing yet", .run.short())]
    Nothing { run: RunId },
    /// Neither the branch nor the stored diff can be read.
    #[error("what run {} changed cannot be told: {branch}", .run.short())]
    Gone {
        run: RunId,
        /// The problem with the branch.
        branch: String,
        /// The path of the stored diff.
        path: String,
        source: ReadError,
    },
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// The changes of a run: its branch compared with its base commit, or the stored diff.
///
/// # Errors
///
/// Fails with a [`RunDiffError`] if the changes are not available.
pub async fn run_diff(
    journal: &Journal,
    run: &Run,
    git: &GitClient,
    left_behind: &Utf8Path,
) -> Result<RunDiffJson, RunDiffError> {
    let events = events_of(journal, &run.id).await?;
    // From the events, since the run's record does not have a worktree that was removed.
    let place = events.iter().rev().find_map(|event| match &event.payload {
        Payload::WorktreeCreated { branch, base, .. } => Some((branch, base)),
        _ => None,
    });
    let Some((branch, base)) = place else {
        return Err(RunDiffError::Nothing { run: run.id.clone() });
    };
    match compare_branch(git, run, branch, base).await {
        Ok(Some(diff)) => Ok(diff),
        Ok(None) => read_stored_diff(run, left_behind, None),
        Err(error) => read_stored_diff(run, left_behind, Some(error)),
    }
}

/// Compares the branch with its base commit; `None` if either is gone.
async fn compare_branch(
    git: &GitClient,
    run: &Run,
    branch: &str,
    base: &str,
) -> Result<Option<RunDiffJson>, GitError> {
    let (Some(from), Some(to)) = (git.find_commit(base).await?, git.branch_tip(branch).await?)
    else {
        return Ok(None);
    };
    let of = DiffTarget::Commits { from: from.clone(), to: to.clone() };
    let diff = git.diff(&of, GIT_OUTPUT_BYTES_MAX).await?;
    Ok(Some(build_json(run, "branch", diff, Some(from), Some(to))))
}

/// Reads the diff that the run stored.
fn read_stored_diff(
    run: &Run,
    left_behind: &Utf8Path,
    why: Option<GitError>,
) -> Result<RunDiffJson, RunDiffError> {
    let path = left_behind.join("changes.diff");
    let read = fs::read_text(&path, GIT_OUTPUT_BYTES_MAX as u64);
    let text = read.map_err(|source| RunDiffError::Gone {
        run: run.id.clone(),
        branch: why.map_or_else(|| "its branch is gone".to_owned(), |why| why.to_string()),
        path: path.to_string(),
        source,
    })?;
    let files = files_of(&text);
    let diff = GitDiff {
        insertions: files.iter().filter_map(|file| file.insertions).sum(),
        deletions: files.iter().filter_map(|file| file.deletions).sum(),
        files,
        text,
        cut: false,
    };
    Ok(build_json(run, "record", diff, None, None))
}

fn build_json(
    run: &Run,
    source: &'static str,
    diff: GitDiff,
    from: Option<GitObjectId>,
    to: Option<GitObjectId>,
) -> RunDiffJson {
    RunDiffJson {
        run: run.id.clone(),
        source,
        from: from.map(String::from),
        to: to.map(String::from),
        files: diff.files.into_iter().map(RunChangedFile::from).collect(),
        insertions: diff.insertions,
        deletions: diff.deletions,
        cut: diff.cut,
        text: Some(diff.text),
    }
}

impl From<FileDiff> for RunChangedFile {
    fn from(file: FileDiff) -> Self {
        RunChangedFile {
            path: file.path,
            from: file.from,
            insertions: file.insertions,
            deletions: file.deletions,
        }
    }
}

/// The files of a diff, with their added and removed lines counted.
fn files_of(text: &str) -> Vec<FileDiff> {
    diff::parse_patch(text).iter().map(count_lines).collect()
}

fn count_lines(file: &FilePatch) -> FileDiff {
    let count = |kind| (!file.binary).then(|| file.lines_of(kind).count() as u64);
    FileDiff {
        path: file.path().to_owned(),
        from: file.renamed_from().map(str::to_owned),
        insertions: count(LineKind::Added),
        deletions: count(LineKind::Removed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_that_was_left_behind_is_counted() {
        let text = "\
diff --git a/a.txt b/a.txt
index 1..2 100644
--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,3 @@
 one
--- two
+++ two
+three
diff --git a/old b/new
similarity index 100%
rename from old
rename to new
diff --git a/x.png b/x.png
Binary files a/x.png and b/x.png differ
";
        let files = files_of(text);
        let shown: Vec<_> = files
            .iter()
            .map(|file| (file.path.as_str(), file.from.as_deref(), file.insertions, file.deletions))
            .collect();
        assert_eq!(
            shown,
            [
                ("a.txt", None, Some(2), Some(1)),
                ("new", Some("old"), Some(0), Some(0)),
                ("x.png", None, None, None),
            ]
        );
    }
}
