//! The accepted owners of repositories: the current user, the user behind `sudo`, and the exceptions in
//! `safe.directory`.

use camino::{Utf8Path, Utf8PathBuf};

use super::GitRepository;
use super::configuration::configured_values;
use crate::fs::read_text;

/// The maximum size of a git configuration that is searched for `safe.directory`.
const CONFIG_BYTES_MAX: u64 = 1024 * 1024;
const SYSTEM_CONFIG: &str = "/etc/gitconfig";

/// The accepted owners of repositories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryOwners {
    pub user_ids: Vec<u32>,
    /// Git configurations that may list further repositories as `safe.directory`, the most specific first.
    pub configurations: Vec<Utf8PathBuf>,
    /// The home folder, for `~/` in `safe.directory`.
    pub home: Utf8PathBuf,
}

impl RepositoryOwners {
    /// The user of this process, with the configuration in this home folder. For root, also the user who ran `sudo`.
    pub fn of_process(home: &Utf8Path) -> Self {
        let folder = account_path("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let mut configurations = match account_path("GIT_CONFIG_GLOBAL") {
            Some(file) => vec![file],
            None => vec![home.join(".gitconfig"), folder.join("git/config")],
        };
        configurations.push(Utf8PathBuf::from(SYSTEM_CONFIG));
        RepositoryOwners { user_ids: user_ids(), configurations, home: home.to_owned() }
    }

    /// Returns true if every part of the repository belongs to an accepted owner.
    pub(super) fn own_all_of(&self, repository: &GitRepository) -> bool {
        let GitRepository { top, git_dir, common_dir } = repository;
        let paths = [top.join(".git"), top.clone(), git_dir.clone(), common_dir.clone()];
        let owned =
            |path: &Utf8PathBuf| owner_of(path).is_none_or(|id| self.user_ids.contains(&id));
        paths.iter().all(owned)
    }

    /// Returns true if a configuration lists the root of a work tree as safe.
    pub(super) fn lists_as_safe(&self, top: &Utf8Path) -> bool {
        let real = top.canonicalize_utf8().unwrap_or_else(|_| top.to_owned());
        let mut safe = Vec::new();
        // As in git, the most general configuration comes first.
        for path in self.configurations.iter().rev() {
            let text = read_text(path, CONFIG_BYTES_MAX).unwrap_or_default();
            for value in configured_values(&text, "safe", "directory") {
                // An empty value resets the list.
                if value.is_empty() {
                    safe.clear();
                }
                safe.push(value);
            }
        }
        safe.iter().any(|value| {
            let value = expand_home(value, &self.home);
            matches_directory(&value, top) || matches_directory(&value, &real)
        })
    }
}

fn expand_home(value: &str, home: &Utf8Path) -> String {
    value.strip_prefix("~/").map_or_else(|| value.to_owned(), |rest| home.join(rest).into_string())
}

fn matches_directory(value: &str, top: &Utf8Path) -> bool {
    match value.strip_suffix("/*") {
        _ if value.is_empty() => false,
        _ if value == "*" => true,
        Some(above) => top.starts_with(above) && top != above,
        None => top == value,
    }
}

#[cfg(unix)]
fn user_ids() -> Vec<u32> {
    let own = rustix::process::geteuid();
    let mut ids = vec![own.as_raw()];
    if own.is_root() {
        let behind_sudo = account_variable("SUDO_UID");
        ids.extend(behind_sudo.and_then(|id| id.parse::<u32>().ok()));
    }
    ids
}

fn account_variable(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "part of the account, like the user id itself")]
    std::env::var(name).ok()
}

/// An absolute path in the environment. Other values are ignored, as git does.
fn account_path(name: &str) -> Option<Utf8PathBuf> {
    account_variable(name).map(Utf8PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(not(unix))]
fn user_ids() -> Vec<u32> {
    Vec::new()
}

#[cfg(unix)]
fn owner_of(path: &Utf8Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).ok().map(|metadata| metadata.uid())
}

#[cfg(not(unix))]
fn owner_of(_path: &Utf8Path) -> Option<u32> {
    None
}

/// The file system of a folder; `None` if it cannot be read.
#[cfg(unix)]
pub(super) fn file_system_of(dir: &Utf8Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(dir).ok().map(|metadata| metadata.dev())
}

#[cfg(not(unix))]
pub(super) fn file_system_of(_dir: &Utf8Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tilde_in_a_safe_directory_stands_for_the_home_folder() {
        let home = Utf8Path::new("/home/me");
        assert_eq!(expand_home("~/src/*", home), "/home/me/src/*");
        assert_eq!(expand_home("/src/~/x", home), "/src/~/x");
    }

    #[test]
    fn a_safe_directory_is_exact_or_ends_with_a_star() {
        for (value, top, matched) in [
            ("/a", "/a", true),
            ("/a", "/a/b", false),
            ("/a/*", "/a/b", true),
            ("/a/*", "/a", false),
            ("*", "/x", true),
            ("", "/x", false),
        ] {
            assert_eq!(matches_directory(value, Utf8Path::new(top)), matched, "{value} {top}");
        }
    }
}
