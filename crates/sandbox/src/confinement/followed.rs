//! Files of a work folder that the user's own git follows, wherever they are: configuration that is included, folders
//! of hooks, and programs and other files that settings name.
//!
//! The settings of the user, the repository around the work folder and every nested repository are read as git reads
//! them, without starting git: includes are followed from file to file, and conditional ones count as taken. The
//! search runs before every command, so a configuration file is parsed again only when it has changed. Commands that
//! compute a path (`$(git rev-parse --show-toplevel)/x`) are not understood.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_text::repository::{
    ConfigSetting, RepositoryOwners, config_settings, find_repository_around,
};

use super::nested::runs_nothing;
use super::search::{JUST_SEARCHED, is_settled};
use crate::limits::{
    FOLLOWED_PATHS_MAX, FOLLOWED_WORK_MAX, GIT_CONFIG_BYTES_MAX, WORKTREES_MOUNTED_MAX,
};
use crate::protected::{GIT, GIT_PARTS};
use crate::workplace::{RunWorkplace, visited_paths};

/// Configurations of the whole machine, beside `/etc/gitconfig`: those of a git that was installed elsewhere.
const MACHINE_CONFIGS: &[&str] = &["/usr/local/etc/gitconfig", "/opt/homebrew/etc/gitconfig"];

/// Settings that name a folder from which git takes hooks.
const HOOK_FOLDERS: &[(&str, &str)] = &[("core", "hookspath"), ("init", "templatedir")];

/// The names of hooks. A folder of hooks is protected as a whole, unless it contains a repository.
const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// The maximum size of a `.git` or `commondir` file.
const POINTER_BYTES_MAX: u64 = 8 * 1024;
/// The cost of a lookup, compared with that of reading a byte.
const LOOKUP_COST: u64 = 64;

/// Finds files that git follows, and remembers parsed configuration. Clones share the memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct GitFollower(Arc<Mutex<BTreeMap<Utf8PathBuf, KnownConfig>>>);

/// Files and folders that git follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FollowedPaths {
    /// Spelled beneath the work folder, whether they exist yet or not.
    pub(crate) paths: BTreeSet<Utf8PathBuf>,
    /// The reason why there may be more.
    pub(crate) is_cut: Option<String>,
}

#[derive(Debug)]
struct KnownConfig {
    stamp: ConfigStamp,
    parsed: Arc<ParsedConfig>,
}

/// Identifies the contents of a file: any change results in a different value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ConfigStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

/// The settings of a configuration file that lead elsewhere.
#[derive(Debug, Default)]
struct ParsedConfig {
    includes: Vec<String>,
    hook_folders: Vec<String>,
    /// Words of other values that may be paths.
    words: BTreeSet<String>,
    bytes: u64,
}

/// A repository whose settings apply somewhere in the work folder.
struct SettingsOf {
    /// The folder that relative paths start from.
    top: Utf8PathBuf,
    git_dir: Utf8PathBuf,
    common_dir: Utf8PathBuf,
}

impl GitFollower {
    /// Finds the files that git follows in a work folder. `home` is the user's, and `nested` are the protected paths
    /// that a search found, relative to the work folder.
    pub(crate) fn find_paths(
        &self,
        dir: &Utf8Path,
        home: Option<&Utf8Path>,
        nested: &[PathBuf],
    ) -> FollowedPaths {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let real = dir.canonicalize_utf8().unwrap_or_else(|_| dir.to_owned());
        let found = FollowedPaths::default();
        let mut search = FollowedSearch {
            dir,
            real,
            home,
            known: &mut known,
            seen: HashSet::new(),
            work_left: FOLLOWED_WORK_MAX,
            found,
        };
        search.run(nested);
        let FollowedSearch { seen, found, .. } = search;
        known.retain(|path, _| seen.contains(path));
        found
    }
}

/// The files of a workplace that git follows now, for a tool that is about to write a file.
pub(crate) fn followed_paths(workplace: &RunWorkplace) -> FollowedPaths {
    if workplace.protected.is_empty() {
        return FollowedPaths::default();
    }
    let nested = workplace.searched.search(&workplace.dir, JUST_SEARCHED);
    workplace.find_followed(&nested.protected)
}

struct FollowedSearch<'a> {
    dir: &'a Utf8Path,
    real: Utf8PathBuf,
    home: Option<&'a Utf8Path>,
    known: &'a mut BTreeMap<Utf8PathBuf, KnownConfig>,
    /// Configuration files that were read.
    seen: HashSet<Utf8PathBuf>,
    work_left: u64,
    found: FollowedPaths,
}

impl FollowedSearch<'_> {
    fn run(&mut self, nested: &[PathBuf]) {
        let mut of_user: Vec<Utf8PathBuf> = MACHINE_CONFIGS.iter().map(Utf8PathBuf::from).collect();
        if let Some(home) = self.home {
            of_user.extend(RepositoryOwners::of_process(home).configurations);
        }
        let of_user = self.read_chain(of_user);
        for repository in self.list_repositories(nested) {
            if repository.git_dir.parent() != Some(&repository.top) {
                // A file leads here, and a search recognises such a folder only if it is complete.
                let parts = [&repository.git_dir, &repository.common_dir].into_iter();
                parts
                    .flat_map(|folder| GIT_PARTS.iter().map(|part| folder.join(part)))
                    .for_each(|path| self.add_visited(&path));
            }
            let mut files = vec![
                repository.common_dir.join("config"),
                repository.git_dir.join("config.worktree"),
            ];
            files.extend(worktree_configs(&repository.common_dir));
            let own = self.read_chain(files);
            for config in of_user.iter().chain(&own) {
                self.add_named_in(config, &repository);
                if self.found.is_cut.is_some() {
                    return;
                }
            }
        }
    }

    fn list_repositories(&self, nested: &[PathBuf]) -> Vec<SettingsOf> {
        let around = find_repository_around(self.dir);
        // Settings of the user count for a repository that is not there yet, too.
        let own = repository_at(self.dir, self.dir.join(GIT));
        let mut repositories = vec![own.unwrap_or_else(|| SettingsOf {
            top: self.dir.to_owned(),
            git_dir: self.dir.join(GIT),
            common_dir: self.dir.join(GIT),
        })];
        repositories.extend(around.filter(|around| around.top != self.dir).map(|around| {
            SettingsOf { top: around.top, git_dir: around.git_dir, common_dir: around.common_dir }
        }));
        for path in nested.iter().filter_map(|path| Utf8Path::from_path(path)) {
            let path = self.dir.join(path);
            let Some(parent) = path.parent() else { continue };
            if path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(GIT)) {
                repositories.extend(repository_at(parent, path.clone()));
            } else if path.file_name() == Some("config") || path.file_name() == Some("commondir") {
                // A bare repository.
                repositories.extend(repository_at(parent, parent.to_owned()));
            }
        }
        repositories
    }

    /// Reads configuration files and all that they include, and adds those in the work folder.
    fn read_chain(&mut self, files: Vec<Utf8PathBuf>) -> Vec<Arc<ParsedConfig>> {
        let mut waiting = files;
        let mut visited = HashSet::new();
        let mut chain = Vec::new();
        while let Some(path) = waiting.pop() {
            if !visited.insert(path.clone()) || !self.spend(LOOKUP_COST) {
                continue;
            }
            // Also one that does not exist: git would read it once it does.
            self.add_visited(&path);
            let Some(config) = self.read_config(&path) else { continue };
            let base = path.parent().unwrap_or(Utf8Path::new("/"));
            waiting.extend(config.includes.iter().filter_map(|value| self.expand(value, base)));
            if self.spend(config.bytes) {
                chain.push(config);
            }
        }
        chain
    }

    fn read_config(&mut self, path: &Utf8Path) -> Option<Arc<ParsedConfig>> {
        let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        self.seen.insert(path.to_owned());
        let stamp = stamp_of(&metadata);
        // Before the cache is asked: a file that is too large is so every time.
        if stamp.bytes > GIT_CONFIG_BYTES_MAX {
            self.cut(format!(
                "the git configuration {path} has more than {GIT_CONFIG_BYTES_MAX} bytes"
            ));
        }
        if let Some(known) = self.known.get(path)
            && known.stamp == stamp
            && is_settled(stamp.changed)
        {
            return Some(known.parsed.clone());
        }
        let text = read_lossy(path, GIT_CONFIG_BYTES_MAX)?;
        let parsed = Arc::new(ParsedConfig::from_text(&text));
        self.known.insert(path.to_owned(), KnownConfig { stamp, parsed: parsed.clone() });
        Some(parsed)
    }

    /// Adds what the settings of a file name for a repository.
    fn add_named_in(&mut self, config: &ParsedConfig, repository: &SettingsOf) {
        for value in &config.hook_folders {
            if let Some(folder) = self.expand(value, &repository.top) {
                self.add_hook_folder(&folder, repository);
            }
        }
        for word in &config.words {
            if !self.spend(LOOKUP_COST) {
                return;
            }
            let Some(path) = self.expand(word, &repository.top) else { continue };
            let is_named = match std::fs::metadata(&path) {
                Ok(metadata) => metadata.is_file(),
                Err(_) => word.contains('/') && !word.contains(char::is_whitespace),
            };
            if is_named {
                self.add_visited(&path);
            }
        }
    }

    fn add_hook_folder(&mut self, folder: &Utf8Path, repository: &SettingsOf) {
        let visited: Vec<Utf8PathBuf> =
            visited_paths(folder).iter().filter_map(|path| self.spell_beneath(path)).collect();
        for path in visited {
            let git_dir = visited_paths(&repository.git_dir).pop();
            let git_dir = git_dir.and_then(|git_dir| self.spell_beneath(&git_dir));
            if path == self.dir || git_dir.is_some_and(|git_dir| git_dir.starts_with(&path)) {
                HOOKS.iter().for_each(|hook| self.add_visited(&path.join(hook)));
            } else {
                self.add(path);
            }
        }
    }

    /// Adds a path, the links on the way to it, and what they lead to.
    fn add_visited(&mut self, path: &Utf8Path) {
        for visited in visited_paths(path) {
            if let Some(path) = self.spell_beneath(&visited) {
                self.add(path);
            }
        }
    }

    fn add(&mut self, path: Utf8PathBuf) {
        if path == self.dir {
            return;
        }
        self.found.paths.insert(path);
        if self.found.paths.len() > FOLLOWED_PATHS_MAX {
            self.cut(format!("git configuration names more than {FOLLOWED_PATHS_MAX} files"));
        }
    }

    /// A path without links in the spelling of the work folder; `None` if it is elsewhere.
    fn spell_beneath(&self, path: &Utf8Path) -> Option<Utf8PathBuf> {
        let relative = path.strip_prefix(&self.real).or_else(|_| path.strip_prefix(self.dir));
        relative.ok().map(|relative| {
            if relative == "" { self.dir.to_owned() } else { self.dir.join(relative) }
        })
    }

    /// The path that a value stands for, relative to `base`.
    fn expand(&self, value: &str, base: &Utf8Path) -> Option<Utf8PathBuf> {
        let value = value.strip_prefix(":(optional)").unwrap_or(value);
        let Some(rest) = value.strip_prefix('~') else {
            return (!value.is_empty()).then(|| base.join(value));
        };
        let (user, rest) = rest.split_once('/').unwrap_or((rest, ""));
        let home = self.home?;
        (user.is_empty() || Some(user) == home.file_name()).then(|| home.join(rest))
    }

    /// Returns false if there has been too much to look at.
    fn spend(&mut self, work: u64) -> bool {
        self.work_left = self.work_left.saturating_sub(work);
        if self.work_left == 0 {
            self.cut("there is too much git configuration to read before every command".to_owned());
        }
        self.work_left > 0
    }

    fn cut(&mut self, why: String) {
        self.found.is_cut.get_or_insert(why);
    }
}

impl ParsedConfig {
    fn from_text(text: &str) -> ParsedConfig {
        let mut parsed = ParsedConfig { bytes: text.len() as u64, ..ParsedConfig::default() };
        for ConfigSetting { section, key, value, .. } in config_settings(text) {
            let Some(value) = value else { continue };
            let name = (section.as_str(), key.as_str());
            if matches!(name, ("include" | "includeif", "path")) {
                parsed.includes.push(value);
            } else if HOOK_FOLDERS.contains(&name) {
                parsed.hook_folders.push(value);
            } else if !runs_nothing(&section, &key) {
                parsed.words.extend(words_of(&value).map(str::to_owned));
            }
        }
        parsed
    }
}

/// The words of a value that may be paths: a value can be a path, a command, or a command of a shell.
fn words_of(value: &str) -> impl Iterator<Item = &str> {
    const ENDS: &[char] = &['\'', '"', ';', '|', '&', '(', ')', '<', '>', '`', '$', '=', '!'];
    let whole = (!value.contains("://")).then_some(value);
    let words = value.split(|c: char| c.is_whitespace() || ENDS.contains(&c));
    let words = words.filter(|word| !word.contains("://"));
    whole
        .into_iter()
        .chain(words)
        .filter(|word| word.bytes().any(|byte| byte.is_ascii_alphanumeric()))
}

/// A repository by its `.git`, whether it is complete or not. A command could complete it.
fn repository_at(top: &Utf8Path, mark: Utf8PathBuf) -> Option<SettingsOf> {
    let metadata = std::fs::metadata(&mark).ok()?;
    let pointed = |file: &Utf8Path, prefix: &str, base: &Utf8Path| {
        let text = read_lossy(file, POINTER_BYTES_MAX)?;
        Some(base.join(text.strip_prefix(prefix)?.trim_end_matches(['\n', '\r'])))
    };
    let git_dir = if metadata.is_dir() { mark } else { pointed(&mark, "gitdir: ", top)? };
    let common_dir = pointed(&git_dir.join("commondir"), "", &git_dir);
    let common_dir = common_dir.unwrap_or_else(|| git_dir.clone());
    Some(SettingsOf { top: top.to_owned(), git_dir, common_dir })
}

fn worktree_configs(common_dir: &Utf8Path) -> Vec<Utf8PathBuf> {
    let Ok(entries) = common_dir.join("worktrees").read_dir_utf8() else { return Vec::new() };
    let entries = entries.flatten().take(WORKTREES_MOUNTED_MAX);
    entries.map(|entry| entry.path().join("config.worktree")).collect()
}

/// The beginning of a file. Git does not mind bytes that are not UTF-8.
fn read_lossy(path: &Utf8Path, bytes_max: u64) -> Option<String> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn stamp_of(metadata: &std::fs::Metadata) -> ConfigStamp {
    ConfigStamp {
        device: metadata.dev(),
        inode: metadata.ino(),
        bytes: metadata.len(),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place {
        _keep: tempfile::TempDir,
        root: Utf8PathBuf,
    }

    impl Place {
        fn new() -> Place {
            let keep = tempfile::tempdir().unwrap();
            let root = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
            let place = Place { _keep: keep, root };
            place.put("home/file", "");
            place.put("work/.git/HEAD", "ref: refs/heads/main\n");
            for folder in ["objects", "refs"] {
                std::fs::create_dir(place.root.join("work/.git").join(folder)).unwrap();
            }
            place
        }

        fn put(&self, path: &str, text: &str) {
            repertoire_text::fs::write_atomic(&self.root.join(path), text.as_bytes()).unwrap();
        }

        fn find(&self, nested: &[&str]) -> Vec<String> {
            let nested: Vec<PathBuf> = nested.iter().map(PathBuf::from).collect();
            let (dir, home) = (self.root.join("work"), self.root.join("home"));
            let found = GitFollower::default().find_paths(&dir, Some(&home), &nested);
            assert_eq!(found.is_cut, None);
            let paths = found.paths.iter().map(|path| path.strip_prefix(&dir).unwrap().to_string());
            paths.filter(|path| !path.ends_with("config") && !path.ends_with(".worktree")).collect()
        }
    }

    #[test]
    fn includes_are_followed_from_file_to_file_and_conditional_ones_count_as_taken() {
        let place = Place::new();
        place.put(
            "work/.git/config",
            "[include]\n\tpath = ../conf/git\n\tpath = more\n\tpath = /etc/elsewhere\n",
        );
        place.put("work/conf/git", "[includeIf \"onbranch:]\"]\n\tpath = second\n");
        place.put(
            "work/conf/second",
            "[include]\n\tpath = git\n\tpath = not-there\n[core]\n\thooksPath = tools/hooks\n",
        );
        assert_eq!(
            place.find(&[]),
            [".git/more", "conf/git", "conf/not-there", "conf/second", "tools/hooks"]
        );
    }

    #[test]
    fn every_scope_counts_and_so_do_links_and_the_home() {
        let place = Place::new();
        place.put(
            "home/.gitconfig",
            "[core]\n\thooksPath = ~/../work/of-user\n[include]\n\tpath = ../work/link/inc\n",
        );
        place.put("work/real/inc", "[core]\n\tfsmonitor = \"tools/monitor --all\"\n");
        std::os::unix::fs::symlink("real", place.root.join("work/link")).unwrap();
        place.put("work/.git/config.worktree", "[core]\n\thooksPath = of-worktree\n");
        assert_eq!(
            place.find(&[]),
            ["link", "of-user", "of-worktree", "real/inc", "tools/monitor"]
        );
    }

    #[test]
    fn nested_repositories_count_even_if_they_are_incomplete() {
        let place = Place::new();
        place.put("work/lib/.git/config", "[include]\n\tpath = ../inc\n[core]\n\thooksPath = th\n");
        place.put("work/sub/.git", "gitdir: ../store\n");
        place.put(
            "work/store/config",
            "[core]\n\thooksPath = .\n[filter \"x\"]\n\tclean = \"sh clean.sh; a/b\"\n",
        );
        place.put("work/sub/clean.sh", "");
        let found = place.find(&["lib/.git", "sub/.git"]);
        for path in ["lib/inc", "lib/th", "sub", "sub/clean.sh", "sub/a/b", "store/hooks"] {
            assert!(found.iter().any(|other| other == path), "{path}: {found:?}");
        }
    }

    #[test]
    fn settings_that_run_nothing_and_folders_name_nothing() {
        let place = Place::new();
        place.put(
            "work/.git/config",
            "[remote \"o\"]\n\turl = ../lib/x\n\tfetch = +refs/heads/*:refs/remotes/o/*\n[core]\n\tworktree = ../src\n\
             [branch \"a\"]\n\tmerge = refs/heads/a\n[credential]\n\thelper = https://x/y\n\
             [blame]\n\tignoreRevsFile = revs\n[alias]\n\tl = log\n",
        );
        place.put("work/revs", "");
        place.put("work/src/main.rs", "");
        assert_eq!(place.find(&[]), Vec::<String>::new());
    }

    #[test]
    fn the_work_folder_itself_is_no_folder_of_hooks_but_hooks_in_it_are_protected() {
        let place = Place::new();
        place.put("work/.git/config", "[core]\n\thooksPath = .\n");
        let found = place.find(&[]);
        assert_eq!(found.len(), HOOKS.len());
        assert!(found.contains(&"pre-commit".to_owned()));
    }

    #[test]
    fn a_configuration_that_changes_is_read_again() {
        let place = Place::new();
        let (dir, follower) = (place.root.join("work"), GitFollower::default());
        for name in ["one", "two"] {
            place.put("work/.git/config", &format!("[core]\n\thooksPath = {name}\n"));
            let found = follower.find_paths(&dir, None, &[]);
            assert!(found.paths.contains(&dir.join(name)), "{found:?}");
        }
        place.put("work/.git/config", &format!("#{}\n", "x".repeat(1024 * 1024)));
        assert!(follower.find_paths(&dir, None, &[]).is_cut.is_some());
    }
}
