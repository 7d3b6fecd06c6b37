//! Repositories for tests: real ones, in temporary folders, with nobody's configuration.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_git::repo::{GitClient, GitObjectId};
use repertoire_sandbox::confinement::Sandbox;

pub(crate) struct Repo {
    _keep: tempfile::TempDir,
    /// A folder with the repository in it, for whatever else a test needs.
    pub(crate) base: Utf8PathBuf,
    pub(crate) dir: Utf8PathBuf,
}

/// An environment in which git finds its programs, and no user.
pub(crate) fn environment(home: &Utf8Path) -> Vec<(String, String)> {
    let mut set: Vec<_> = std::env::vars().filter(|(name, _)| name == "PATH").collect();
    set.push(("HOME".to_owned(), home.to_string()));
    set.push(("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()));
    set
}

impl Repo {
    /// A repository without a commit.
    pub(crate) fn unborn() -> Repo {
        let keep = tempfile::tempdir().unwrap();
        let base = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
        let dir = base.join("repo");
        std::fs::create_dir(&dir).unwrap();
        let repo = Repo { _keep: keep, base, dir };
        repo.git(&["init", "--quiet", "--initial-branch=main"]);
        repo
    }

    /// A repository with one commit.
    pub(crate) fn new() -> Repo {
        let repo = Repo::unborn();
        repo.file("a.txt", "one\n");
        repo.file(".gitignore", "ignored/\n.env\n");
        repo.commit("first");
        repo
    }

    pub(crate) fn engine(&self) -> GitClient {
        GitClient::new(&self.dir, environment(&self.base), Sandbox::None)
    }

    pub(crate) fn file(&self, path: &str, text: &str) {
        write(&self.dir.join(path), text);
    }

    pub(crate) fn commit(&self, message: &str) -> GitObjectId {
        commit_in(&self.dir, message)
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git_in(&self.dir, args)
    }
}

pub(crate) fn write(path: &Utf8Path, text: &str) {
    repertoire_text::fs::write_atomic(path, text.as_bytes()).unwrap();
}

pub(crate) fn read(path: &Utf8Path) -> String {
    repertoire_text::fs::read_text(path, 1 << 20).unwrap()
}

/// git as a user would run it.
pub(crate) fn git_in(dir: &Utf8Path, args: &[&str]) -> String {
    let (code, text) = try_git_in(dir, args);
    assert_eq!(code, Some(0), "git {args:?}: {text}");
    text
}

/// As [`git_in`], with its exit code and all that it said.
pub(crate) fn try_git_in(dir: &Utf8Path, args: &[&str]) -> (Option<i32>, String) {
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=Test", "-c", "user.email=test@example.com"])
        .args(args)
        .current_dir(dir)
        .env_remove("GIT_DIR")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_EDITOR", "true")
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).trim_end().to_owned())
}

pub(crate) fn commit_in(dir: &Utf8Path, message: &str) -> GitObjectId {
    git_in(dir, &["add", "--all"]);
    git_in(dir, &["commit", "--quiet", "--allow-empty", "-m", message]);
    GitObjectId::parse(&git_in(dir, &["rev-parse", "HEAD"])).unwrap()
}

#[cfg(unix)]
pub(crate) fn script(path: &Utf8Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    // A child that another test starts at this moment inherits the open file, which can then not be executed. So a program
    // of its own writes the file that is executed.
    let draft = Utf8PathBuf::from(format!("{path}.draft"));
    write(&draft, text);
    assert!(std::process::Command::new("cp").args([&draft, path]).status().unwrap().success());
    std::fs::remove_file(&draft).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
