//! What a worker that is gone has left behind: programs that still run, and files that it was writing.

use camino::Utf8Path;
use repertoire_sandbox::process;
use repertoire_journal::Lease;
use repertoire_text::fs::{self, Folder};

use super::{DriveError, Session};
use repertoire_git::repo::ChangeKind;

/// The variable that the programs of a run are known by, whoever started them.
pub(super) const MARK: &str = "REPERTOIRE_RUN";

pub(super) fn mark(lease: &Lease) -> String {
    format!("{}:{}", lease.run, lease.token)
}

/// A worker that was killed, or stands still, has left its agent and checks at work in the run's worktree. Two agents there
/// would work against each other.
pub(super) async fn end_programs(lease: &Lease) {
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
    let ended = tokio::task::spawn_blocking(move || process::end_left(MARK, is_before)).await;
    // Nothing depends on how many there were.
    drop(ended);
}

/// Whether a file was being written by the engine or by one of its tools.
fn is_half_written(path: &Utf8Path) -> bool {
    path.file_name().is_some_and(fs::is_temporary_name)
}

impl Session<'_> {
    /// A worker that was killed while it wrote a file has left half of it beside it. That is nobody's work, and must not get
    /// into a commit.
    pub(super) async fn clear_half_written(&self) -> Result<(), DriveError> {
        for change in self.git.status().await? {
            let path = Utf8Path::new(&change.path);
            if change.kind == ChangeKind::Untracked && is_half_written(path) {
                // By handle: an agent may have put a link in the place of a folder.
                Folder::open(&self.worktree.dir)?
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
