//! The fingerprint of the work that a check looks at.
//!
//! Git lists the files and decides nothing else: this module reads them itself, because times and sizes in the index can
//! be forged, and filters of the repository can make different files look equal. Ignored files do not count, so that
//! a check may write `target/` or `__pycache__`.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use camino::Utf8Path;
use repertoire_git::repo::{GitClient, WorkFiles};
use repertoire_sandbox::workplace::RunWorkplace;
use sha2::{Digest, Sha256};

use crate::limits::{WORK_BYTES_MAX, WORK_FILES_MAX, WORK_NESTED_MAX};
use crate::state::WorkFingerprint;

/// Computes the fingerprint of the checkout around a folder: its commit, its index, and the names, modes and contents of
/// its files, those of nested repositories included. Returns `None` if the folder is in no git repository or is ignored
/// by it, or if the files are too many to read.
pub(super) async fn fingerprint_work(workplace: &RunWorkplace) -> Option<WorkFingerprint> {
    let (environment, sandbox) = (workplace.environment.clone(), workplace.sandbox.clone());
    let mut waiting = vec![GitClient::new(workplace.dir.clone(), environment, sandbox)];
    let mut digest = WorkDigest { hash: Sha256::new(), files: 0, bytes: 0 };
    let mut repositories = 0;
    while let Some(git) = waiting.pop() {
        repositories += 1;
        if repositories > WORK_NESTED_MAX {
            return None;
        }
        let work = git.work_files().await.ok()??;
        let added = tokio::task::spawn_blocking(move || {
            let nested = digest.add_repository(&work);
            (digest, work, nested)
        });
        let (after, work, nested) = added.await.ok()?;
        digest = after;
        waiting.extend(nested.ok()?.into_iter().map(|path| git.in_dir(work.root.join(path))));
    }
    Some(WorkFingerprint::new(format!("sha256:{:x}", digest.hash.finalize())))
}

/// A digest in progress.
struct WorkDigest {
    hash: Sha256,
    files: usize,
    bytes: u64,
}

impl WorkDigest {
    /// Adds the files of a repository, and returns the nested repositories among them.
    fn add_repository(&mut self, work: &WorkFiles) -> io::Result<Vec<camino::Utf8PathBuf>> {
        self.add(work.root.as_str().as_bytes());
        self.add(work.head.as_ref().map(|head| head.as_str()).unwrap_or_default().as_bytes());
        self.add(&work.index);
        let mut nested = Vec::new();
        for path in &work.paths {
            self.files += 1;
            if self.files > WORK_FILES_MAX {
                return Err(io::Error::other("too many files"));
            }
            self.add(path.as_str().as_bytes());
            if self.add_file(&work.root.join(path))? {
                nested.push(path.clone());
            }
        }
        Ok(nested)
    }

    /// Adds a text with its length, so that two texts are never read as one.
    fn add(&mut self, bytes: &[u8]) {
        self.hash.update((bytes.len() as u64).to_le_bytes());
        self.hash.update(bytes);
    }

    /// Adds what is at a path. Returns true if it is a nested repository.
    fn add_file(&mut self, path: &Utf8Path) -> io::Result<bool> {
        let metadata = match path.symlink_metadata() {
            Err(error) if is_missing(&error) => {
                self.add(b"missing");
                return Ok(false);
            }
            metadata => metadata?,
        };
        if metadata.is_symlink() {
            self.add(b"link");
            self.add(path.as_std_path().read_link()?.as_os_str().as_bytes());
            return Ok(false);
        }
        if metadata.is_dir() {
            self.add(b"folder");
            return Ok(path.join(".git").symlink_metadata().is_ok());
        }
        self.add(if metadata.mode() & 0o100 == 0 { b"file" } else { b"program" });
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let file = File::options().read(true).custom_flags(flags.bits() as i32).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let mut content = Sha256::new();
        let left = WORK_BYTES_MAX.saturating_sub(self.bytes).saturating_add(1);
        self.bytes += io::copy(&mut file.take(left), &mut content)?;
        if self.bytes > WORK_BYTES_MAX {
            return Err(io::Error::other("too many bytes"));
        }
        self.hash.update(content.finalize());
        Ok(false)
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;

    use repertoire_sandbox::confinement::Sandbox;
    use repertoire_text::fs::write_atomic;

    use super::*;

    /// A project with a file and an ignored folder.
    struct Project {
        _keep: tempfile::TempDir,
        dir: camino::Utf8PathBuf,
    }

    impl Project {
        fn without_git() -> Self {
            let keep = tempfile::tempdir().unwrap();
            let dir = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
            let project = Project { _keep: keep, dir };
            project.write(".gitignore", "target/\n");
            project.write("a.txt", "one");
            project.write("target/built", "");
            project
        }

        /// In a repository with a commit.
        fn with_git() -> Self {
            let project = Project::without_git();
            project.git(&["init", "--quiet"]);
            project.commit();
            project
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.dir.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            write_atomic(&path, text.as_bytes()).unwrap();
        }

        fn git(&self, args: &[&str]) {
            let mut git = Command::new("git");
            git.args(["-c", "user.name=A", "-c", "user.email=a@example.com", "-C"]);
            assert!(git.arg(&self.dir).args(args).status().unwrap().success(), "{args:?}");
        }

        fn commit(&self) {
            self.git(&["add", "--all"]);
            self.git(&["commit", "--quiet", "--allow-empty", "--message", "A commit"]);
        }

        async fn fingerprint(&self) -> Option<WorkFingerprint> {
            self.fingerprint_in("").await
        }

        async fn fingerprint_in(&self, folder: &str) -> Option<WorkFingerprint> {
            let spill = self.dir.join("target/spill");
            let mut workplace = RunWorkplace::new(self.dir.join(folder), spill, Sandbox::None);
            let path = "/usr/local/bin:/usr/bin:/bin".to_owned();
            workplace.environment = vec![("PATH".to_owned(), path)];
            fingerprint_work(&workplace).await
        }
    }

    #[tokio::test]
    async fn every_change_of_the_work_changes_its_fingerprint_and_ignored_files_do_not() {
        let project = Project::with_git();
        let mut seen = vec![project.fingerprint().await.unwrap()];
        project.write("target/built", "again");
        assert_eq!(project.fingerprint().await.unwrap(), seen[0]);
        let dir = &project.dir;
        let changes: [&dyn Fn(); 8] = [
            &|| project.write("a.txt", "two"),
            &|| project.write("new.txt", ""),
            &|| std::fs::rename(dir.join("new.txt"), dir.join("old.txt")).unwrap(),
            &|| symlink("a.txt", dir.join("link")).unwrap(),
            &|| {
                let mode = std::fs::Permissions::from_mode(0o755);
                std::fs::set_permissions(dir.join("a.txt"), mode).unwrap();
            },
            &|| project.git(&["add", "--all"]),
            &|| project.commit(),
            &|| std::fs::remove_file(dir.join("a.txt")).unwrap(),
        ];
        for (at, change) in changes.iter().enumerate() {
            change();
            let now = project.fingerprint().await.unwrap();
            assert!(!seen.contains(&now), "change {at}");
            seen.push(now);
        }
    }

    #[tokio::test]
    async fn what_the_repository_has_git_overlook_counts() {
        let project = Project::with_git();
        project.write(".git/info/exclude", "hidden\n");
        project.write(".git/info/attributes", "* filter=empty\n");
        project.git(&["config", "filter.empty.clean", "true"]);
        project.git(&["update-index", "--assume-unchanged", "a.txt"]);
        let before = project.fingerprint().await.unwrap();
        project.write("a.txt", "two");
        let changed = project.fingerprint().await.unwrap();
        assert_ne!(changed, before);
        project.write("hidden", "");
        assert_ne!(project.fingerprint().await.unwrap(), changed);
    }

    #[tokio::test]
    async fn work_that_git_does_not_list_has_no_fingerprint() {
        assert_eq!(Project::without_git().fingerprint().await, None);
        // Changes in an ignored folder would not show.
        assert_eq!(Project::with_git().fingerprint_in("target").await, None);
    }
}
