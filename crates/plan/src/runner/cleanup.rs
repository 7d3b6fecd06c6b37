//! Cleans up after a worker that died: processes that still run, and partly written files.

use camino::Utf8Path;
use repertoire_journal::RunLease;
use repertoire_sandbox::process;
use repertoire_text::fs::{self, FolderHandle};

use super::{DriveError, PlanRunSession};
use repertoire_git::repo::ChangeKind;

/// The environment variable that marks all processes of a run.
pub(super) const MARK: &str = "REPERTOIRE_RUN";

pub(super) fn process_mark(lease: &RunLease) -> String {
    format!("{}:{}", lease.run, lease.token)
}

/// Kills the agents and checks of a worker that died or hangs. Two agents in the same worktree
/// would interfere with each other.
pub(super) async fn kill_left_processes(lease: &RunLease) {
    let (run, token) = (lease.run.clone(), lease.token);
    if token <= 1 {
        return;
    }
    let is_before = move |value: &str| {
        let parts = value.rsplit_once(':');
        parts.is_some_and(|(id, theirs)| {
            id == run.as_str() && theirs.parse::<u64>().is_ok_and(|theirs| theirs < token)
        })
    };
    let ended =
        tokio::task::spawn_blocking(move || process::kill_marked_processes(MARK, is_before)).await;
    // The number of killed processes does not matter.
    drop(ended);
}

/// Returns true if the file is a temporary file of the engine or one of its tools.
fn is_half_written(path: &Utf8Path) -> bool {
    path.file_name().is_some_and(fs::is_temporary_name)
}

impl PlanRunSession<'_> {
    /// Removes temporary files of a worker that was killed while writing, so that they do not get
    /// into a commit.
    pub(super) async fn clear_half_written(&self) -> Result<(), DriveError> {
        for change in self.git.status().await? {
            let path = Utf8Path::new(&change.path);
            if change.kind == ChangeKind::Untracked && is_half_written(path) {
                // Resolve from a folder handle, since an agent may have replaced a folder by a
                // symbolic link.
                FolderHandle::open(&self.worktree.dir)?
                    .remove_file(path)
                    .map_err(std::io::Error::from)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_being_written_is_told_apart() {
        for (path, is_left) in [
            (".rep-a1B2c3", true),
            ("plans/.rep-0123abcd-0", true),
            (".rep-a1B2c3/kept.txt", false),
            (".rep-notes.txt", false),
        ] {
            assert_eq!(is_half_written(Utf8Path::new(path)), is_left, "{path}");
        }
    }
}
