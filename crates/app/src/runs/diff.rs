//! What a run changed.

use camino::Utf8Path;
use repertoire_journal::{Journal, JournalError, Payload, Run, RunId};
use repertoire_text::fs::{self, ReadError};
use schemars::JsonSchema;
use serde::Serialize;

use super::events_of;
use repertoire_git::repo::{Diff, DiffOf, FileDiff, Git, GitError, Oid};
use repertoire_git::limits::GIT_OUTPUT_BYTES_MAX;

/// `rep runs diff --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunDiffJson {
    /// The run.
    pub run: RunId,
    /// `branch` if it was compared now, `record` if it is what the run left behind.
    pub source: &'static str,
    /// The commit that the run began on.
    pub from: Option<String>,
    /// The commit that it is at.
    pub to: Option<String>,
    /// The files.
    pub files: Vec<ChangedFile>,
    /// Lines that came.
    pub insertions: u64,
    /// Lines that went.
    pub deletions: u64,
    /// Whether the text is not all of it.
    pub cut: bool,
    /// The diff; null with `--stat`.
    pub text: Option<String>,
}

/// What has changed in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangedFile {
    /// Its path.
    pub path: String,
    /// Its path before, if it was renamed.
    pub from: Option<String>,
    /// Lines that came; null if it is no text.
    pub insertions: Option<u64>,
    /// Lines that went; null if it is no text.
    pub deletions: Option<u64>,
}

/// Why it cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// It has no place of its own yet.
    #[error("run {} has changed nothing yet", .run.short())]
    Nothing {
        /// The run.
        run: RunId,
    },
    /// Neither its branch nor what it left behind can be read.
    #[error("what run {} changed cannot be told: {branch}", .run.short())]
    Gone {
        /// The run.
        run: RunId,
        /// What became of its branch.
        branch: String,
        /// Where it would have left a diff.
        path: String,
        /// Why that cannot be read.
        source: ReadError,
    },
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// What a run changed: its branch against the commit that it began on, or the diff that it left behind in a folder.
///
/// # Errors
///
/// [`DiffError`].
pub async fn diff(
    journal: &Journal,
    run: &Run,
    git: &Git,
    left_behind: &Utf8Path,
) -> Result<RunDiffJson, DiffError> {
    let events = events_of(journal, &run.id).await?;
    // A worktree that is gone was known once.
    let place = events.iter().rev().find_map(|event| match &event.payload {
        Payload::WorktreeCreated { branch, base, .. } => Some((branch, base)),
        _ => None,
    });
    let Some((branch, base)) = place else {
        return Err(DiffError::Nothing { run: run.id.clone() });
    };
    match compared(git, run, branch, base).await {
        Ok(Some(diff)) => Ok(diff),
        Ok(None) => recorded(run, left_behind, None),
        Err(error) => recorded(run, left_behind, Some(error)),
    }
}

/// The branch against the commit that it began on; nothing if either is gone.
async fn compared(
    git: &Git,
    run: &Run,
    branch: &str,
    base: &str,
) -> Result<Option<RunDiffJson>, GitError> {
    let (Some(from), Some(to)) = (git.find(base).await?, git.branch_tip(branch).await?) else {
        return Ok(None);
    };
    let of = DiffOf::Commits { from: from.clone(), to: to.clone() };
    let diff = git.diff(&of, GIT_OUTPUT_BYTES_MAX).await?;
    Ok(Some(json(run, "branch", diff, Some(from), Some(to))))
}

/// What the run left behind.
fn recorded(
    run: &Run,
    left_behind: &Utf8Path,
    why: Option<GitError>,
) -> Result<RunDiffJson, DiffError> {
    let path = left_behind.join("changes.diff");
    let read = fs::read_text(&path, GIT_OUTPUT_BYTES_MAX as u64);
    let text = read.map_err(|source| DiffError::Gone {
        run: run.id.clone(),
        branch: why.map_or_else(|| "its branch is gone".to_owned(), |why| why.to_string()),
        path: path.to_string(),
        source,
    })?;
    let files = files_of(&text);
    let diff = Diff {
        insertions: files.iter().filter_map(|file| file.insertions).sum(),
        deletions: files.iter().filter_map(|file| file.deletions).sum(),
        files,
        text,
        cut: false,
    };
    Ok(json(run, "record", diff, None, None))
}

fn json(
    run: &Run,
    source: &'static str,
    diff: Diff,
    from: Option<Oid>,
    to: Option<Oid>,
) -> RunDiffJson {
    let file = |file: FileDiff| ChangedFile {
        path: file.path,
        from: file.from,
        insertions: file.insertions,
        deletions: file.deletions,
    };
    RunDiffJson {
        run: run.id.clone(),
        source,
        from: from.map(String::from),
        to: to.map(String::from),
        files: diff.files.into_iter().map(file).collect(),
        insertions: diff.insertions,
        deletions: diff.deletions,
        cut: diff.cut,
        text: Some(diff.text),
    }
}

/// The files of a diff as git writes it, counted line by line.
fn files_of(text: &str) -> Vec<FileDiff> {
    let mut files: Vec<FileDiff> = Vec::new();
    let mut in_hunk = false;
    for line in text.lines() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            in_hunk = false;
            let (_, path) = names.split_once(" b/").unwrap_or(("", names));
            let path = path.to_owned();
            let (insertions, deletions) = (Some(0), Some(0));
            files.push(FileDiff { path, from: None, insertions, deletions });
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        if line.starts_with("@@ ") {
            in_hunk = true;
        } else if let (true, Some(count)) = (in_hunk && line.starts_with('+'), &mut file.insertions)
        {
            *count += 1;
        } else if let (true, Some(count)) = (in_hunk && line.starts_with('-'), &mut file.deletions)
        {
            *count += 1;
        } else if let (false, Some(from)) = (in_hunk, line.strip_prefix("rename from ")) {
            file.from = Some(from.to_owned());
        } else if !in_hunk && line.starts_with("Binary files ") {
            (file.insertions, file.deletions) = (None, None);
        }
    }
    files
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
