//! Nested protected paths: selects those that are mounted read-only, and decides whether repositories that a command
//! created may stay.
//!
//! A new nested repository stays if git would not run anything for it: its configuration contains only harmless keys,
//! it has no hooks, and it does not point to another folder. Test suites and generators create such repositories. In
//! any other repository, the user's own `git status` could run filters and file system monitors. The same holds
//! for bare repositories, which have no `.git`: git recognises such a folder by its entries.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use camino::{Utf8DirEntry, Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, Dir, Mode, OFlags};

use super::FollowedPaths;
use super::search::NestedSearchResult;
use crate::limits::{
    NESTED_CONFIG_BYTES_MAX, NESTED_MOUNTED_BYTES_MAX, NESTED_MOUNTED_MAX, WORKTREES_MOUNTED_MAX,
};
use crate::protected::{GIT, GIT_PARTS};
use crate::workplace::RunWorkplace;

/// The folder of a repository with one folder for each linked worktree.
const WORKTREES: &str = "worktrees";

/// Protected paths that were found, relative to the work folder.
#[derive(Debug, Default)]
pub(super) struct NestedPaths {
    /// The paths that fit into a policy. With namespaces they are mounted read-only.
    pub(super) mounted: Vec<Utf8PathBuf>,
    /// The remaining paths, whose contents are compared. Includes paths that are not UTF-8, since a policy is text.
    pub(super) compared: Vec<PathBuf>,
}

impl NestedPaths {
    /// Selects the paths to mount: folders first, since one mount protects everything in a folder, then files. Paths
    /// that do not exist cannot be mounted over.
    pub(super) fn select(dir: &Utf8Path, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut nested = NestedPaths::default();
        let (mut folders, mut files) = (Vec::new(), Vec::new());
        for path in paths {
            match dir.as_std_path().join(&path).symlink_metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(path),
                Ok(_) => files.push(path),
                Err(_) => nested.compared.push(path),
            }
        }
        let mut bytes = 0;
        for path in folders.into_iter().chain(files) {
            bytes += path.as_os_str().len();
            let fits =
                nested.mounted.len() < NESTED_MOUNTED_MAX && bytes < NESTED_MOUNTED_BYTES_MAX;
            match Utf8PathBuf::from_path_buf(path) {
                Ok(path) if fits => nested.mounted.push(path),
                Ok(path) => nested.compared.push(path.into_std_path_buf()),
                Err(path) => nested.compared.push(path),
            }
        }
        nested
    }
}

/// All protected paths of a workplace that were found: nested ones, and those that git follows. A repository's `.git` is
/// replaced by the protected parts in it. Leaves out paths in a folder that is protected anyway.
pub(super) fn found_paths(
    workplace: &RunWorkplace,
    found: &NestedSearchResult,
    followed: &FollowedPaths,
) -> Vec<PathBuf> {
    let relative = |path: &Utf8PathBuf| {
        path.strip_prefix(&workplace.dir).ok().map(|path| path.as_std_path().to_owned())
    };
    let mut known: HashSet<PathBuf> = workplace.protected.iter().filter_map(relative).collect();
    let mut paths = Vec::new();
    let nested = found.protected.iter().flat_map(|path| parts_of(path));
    for path in nested.chain(followed.paths.iter().filter_map(relative)) {
        if !path.ancestors().any(|above| known.contains(above)) {
            known.insert(path.clone());
            paths.push(path);
        }
    }
    paths
}

/// Files of a repository that say where the configuration of its linked worktrees is.
pub(super) fn worktree_pointers(dir: &Utf8Path) -> Vec<Utf8PathBuf> {
    let worktrees = dir.join(GIT).join(WORKTREES);
    let Ok(entries) = worktrees.read_dir_utf8() else { return Vec::new() };
    let entries = entries.flatten().take(WORKTREES_MOUNTED_MAX).map(Utf8DirEntry::into_path);
    let mut pointers: Vec<_> = entries
        .flat_map(|entry| ["commondir", "config.worktree"].map(|name| entry.join(name)))
        .collect();
    pointers.sort();
    pointers
}

/// Whether a protected path may disappear: the engine removes linked worktrees while programs run.
pub(super) fn belongs_to_worktree(path: &Path) -> bool {
    path.starts_with(Path::new(GIT).join(WORKTREES))
}

fn parts_of(path: &Path) -> Vec<PathBuf> {
    if path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(GIT)) {
        GIT_PARTS.iter().map(|part| path.join(part)).collect()
    } else {
        vec![path.to_owned()]
    }
}

/// Returns true if git would not run anything for the repository whose `.git` is called `name` in `parent`. A `.git`
/// that is a file or a link may lead anywhere, so it is not inert.
pub(super) fn is_inert_repository(parent: &OwnedFd, name: &OsStr) -> bool {
    let Ok(git) = open_folder(parent, name) else { return false };
    let is_absent = |part: &str| {
        rustix::fs::statat(&git, part, AtFlags::SYMLINK_NOFOLLOW)
            .is_err_and(|error| error == rustix::io::Errno::NOENT)
    };
    let pointers = ["commondir", "config.worktree", "modules"];
    pointers.into_iter().all(is_absent)
        && (is_absent("hooks") || has_only_samples(&git))
        && config_of(&git).is_some_and(|config| is_inert_config(&config))
}

/// Whether git runs nothing because of a new part of a bare repository, given the repository and the name of the part.
pub(super) fn is_inert_part(repository: &OwnedFd, name: &OsStr) -> bool {
    match name.to_str() {
        Some("config") => config_of(repository).is_some_and(|config| is_inert_config(&config)),
        Some("hooks") => has_only_samples(repository),
        Some("info") => true,
        _ => false,
    }
}

/// Whether git takes a folder with these entries for a repository, whatever its name.
pub(super) fn is_repository(has_entry: impl Fn(&str) -> bool) -> bool {
    has_entry("HEAD") && (has_entry("commondir") || (has_entry("objects") && has_entry("refs")))
}

fn open_folder(parent: &OwnedFd, name: impl rustix::path::Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

fn has_only_samples(git: &OwnedFd) -> bool {
    let hooks = open_folder(git, "hooks").and_then(|hooks| Dir::read_from(&hooks));
    hooks.is_ok_and(|mut entries| {
        entries.all(|entry| {
            entry.is_ok_and(|entry| {
                let name = entry.file_name().to_bytes();
                matches!(name, b"." | b"..") || name.ends_with(b".sample")
            })
        })
    })
}

fn config_of(git: &OwnedFd) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(git, "config", flags, Mode::empty()).ok()?);
    let metadata = file.metadata().ok()?;
    let mut text = String::new();
    let fits = metadata.is_file() && metadata.len() <= NESTED_CONFIG_BYTES_MAX;
    fits.then_some(())?;
    file.take(NESTED_CONFIG_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Returns true if every line of a configuration is plain and has a key that cannot run anything. Lines that are not
/// understood are not inert.
fn is_inert_config(config: &str) -> bool {
    is_inert_change("", config)
}

/// Returns true if every new line of a configuration is plain and has a key that cannot run anything. A line is new if
/// it was not in a section with the same header before.
pub(super) fn is_inert_change(before: &str, now: &str) -> bool {
    let known: HashSet<(&str, &str)> = lines_of(before).collect();
    lines_of(now).all(|(header, line)| {
        known.contains(&(header, line)) || (!line.ends_with('\\') && is_inert_line(header, line))
    })
}

/// The lines of a configuration without comments and empty lines, each with the header of its section.
fn lines_of(config: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut header = "";
    config.lines().map(str::trim).filter(|line| !is_comment(line)).map(move |line| {
        if line.starts_with('[') {
            header = line;
        }
        (header, line)
    })
}

/// A comment line that ends with a backslash may continue on the next line, so it does not count as a comment.
fn is_comment(line: &str) -> bool {
    line.is_empty() || (line.starts_with(['#', ';']) && !line.ends_with('\\'))
}

fn is_inert_line(header: &str, line: &str) -> bool {
    let Some(inner) = header.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return false;
    };
    if inner.contains(']') {
        return false;
    }
    let section = inner.split([' ', '\t', '"', '.']).next().unwrap_or_default();
    let section = section.to_ascii_lowercase();
    let key = line.split(['=', ' ', '\t']).next().unwrap_or_default().to_ascii_lowercase();
    line == header || runs_nothing(&section, &key)
}

/// Returns true if a setting of git cannot run anything. Section and key are in lower case.
pub(super) fn runs_nothing(section: &str, key: &str) -> bool {
    INERT.iter().any(|(name, keys)| *name == section && keys.contains(&key))
}

/// Sections and keys of git's configuration that cannot run anything.
const INERT: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "autocrlf",
            "bare",
            "eol",
            "filemode",
            "ignorecase",
            "logallrefupdates",
            "longpaths",
            "precomposeunicode",
            "repositoryformatversion",
            "symlinks",
        ],
    ),
    ("extensions", &["objectformat", "refstorage"]),
    ("init", &["defaultbranch"]),
    ("user", &["email", "name"]),
    ("remote", &["fetch", "pushurl", "tagopt", "url"]),
    ("blame", &["ignorerevsfile"]),
    ("branch", &["description", "merge", "rebase", "remote", "vscode-merge-base"]),
    ("commit", &["gpgsign", "template"]),
    ("tag", &["gpgsign"]),
    ("pull", &["ff", "rebase"]),
    ("push", &["default"]),
    ("gc", &["auto"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_configuration_is_inert() {
        assert!(is_inert_config(""));
        assert!(is_inert_config(
            "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n[user]\n\tname = A\n\temail = a@b\n\
             [remote \"origin\"]\n\turl = https://example.com/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
             [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n"
        ));
    }

    #[test]
    fn a_configuration_that_runs_something_is_not_inert() {
        for config in [
            "[filter \"x\"]\n\tclean = evil\n",
            "[core]\n\tfsmonitor = evil\n",
            "[core] fsmonitor = evil\n",
            "[core]\n\thooksPath = /tmp\n",
            "[core]\n\tsshCommand = evil\n",
            "[core]\n\tworktree = /\n",
            "[include]\n\tpath = other\n",
            "[includeIf \"gitdir:x\"]\n\tpath = other\n",
            "[alias]\n\tst = !evil\n",
            "[diff \"x\"]\n\ttextconv = evil\n",
            "[credential]\n\thelper = evil\n",
            "[user]\n\tname = a\\\n[core]\n",
            "[remote \"x\"]\n\tuploadpack = evil\n",
            "[core \"]\"]\n\tfilemode = true\n",
            "fsmonitor = evil\n",
        ] {
            assert!(!is_inert_config(config), "{config}");
        }
    }

    #[test]
    fn a_change_is_inert_if_what_it_adds_is() {
        let before = "[core]\n\thooksPath = mine\n[alias]\n\tst = status\n";
        let remote = "[remote \"o\"]\n\turl = x\n";
        assert!(is_inert_change(before, before));
        assert!(is_inert_change(before, &format!("{before}{remote}")));
        assert!(is_inert_change(before, remote));
        for added in [
            "[core]\n\tfsmonitor = evil\n",
            "[core]\n\thooksPath = other\n",
            "[alias]\n\tco = !x\n",
        ] {
            assert!(!is_inert_change(before, &format!("{before}{added}")), "{added}");
        }
        assert!(!is_inert_change(before, "[diff \"x\"]\n\tst = status\n"));
    }

    #[test]
    fn folders_are_mounted_before_files_and_paths_beyond_the_limit_are_compared() {
        let keep = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(keep.path()).unwrap();
        let mut paths: Vec<PathBuf> =
            (0..600).map(|number| PathBuf::from(format!("{number:04}.md"))).collect();
        for path in &paths {
            File::create(dir.as_std_path().join(path)).unwrap();
        }
        std::fs::create_dir(dir.join("z")).unwrap();
        paths.extend(["missing".into(), "z".into()]);
        let nested = NestedPaths::select(dir, paths);
        assert_eq!(nested.mounted.len(), NESTED_MOUNTED_MAX);
        assert_eq!(nested.mounted[0], "z");
        assert_eq!(nested.compared.len(), 602 - NESTED_MOUNTED_MAX);
        assert_eq!(nested.compared[0], Path::new("missing"));
    }
}
