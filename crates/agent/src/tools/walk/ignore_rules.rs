//! Decides which entries of a walk git ignores: the rules of `.gitignore`, `.ignore` and `.git/info/exclude`, folder by
//! folder. Rule files are read through the handle of their folder.

use camino::Utf8Path;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use repertoire_text::fs::FolderHandle;

/// The maximum size of a file with rules.
const RULES_BYTES_MAX: u64 = 1024 * 1024;

/// The rules of the folders from the outermost one down to the folder being walked.
#[derive(Default)]
pub(super) struct IgnoreRules {
    levels: Vec<IgnoreLevel>,
}

/// The rules of one folder.
struct IgnoreLevel {
    ignore: Option<Gitignore>,
    gitignore: Option<Gitignore>,
    exclude: Option<Gitignore>,
    /// True at the top of a repository: git's rules from above do not apply inside it.
    has_git: bool,
}

impl IgnoreRules {
    /// Collects the rules of all parents of a path.
    pub(super) fn from_parents(path: &Utf8Path) -> Self {
        let mut above: Vec<&Utf8Path> = path.ancestors().skip(1).collect();
        above.reverse();
        IgnoreRules { levels: above.into_iter().filter_map(IgnoreLevel::open).collect() }
    }

    /// Adds the rules of a folder. `has` tells whether the folder has an entry of that name.
    pub(super) fn enter(&mut self, folder: &FolderHandle, has: &dyn Fn(&str) -> bool) {
        self.levels.push(IgnoreLevel::read(folder, has));
    }

    /// Drops the rules of the folder that was entered last.
    pub(super) fn leave(&mut self) {
        self.levels.pop();
    }

    /// Returns true if a path is ignored. Within each kind of rules, the nearest folder with a matching rule decides.
    /// `.ignore` takes precedence over `.gitignore`, and that over `.git/info/exclude`.
    pub(super) fn is_ignored(&self, path: &Utf8Path, is_folder: bool) -> bool {
        let (mut by_ignore, mut by_git, mut by_exclude) = (None, None, None);
        let mut is_within = true;
        for level in self.levels.iter().rev() {
            let decide = |rules: &Option<Gitignore>| match_rules(rules.as_ref()?, path, is_folder);
            by_ignore = by_ignore.or_else(|| decide(&level.ignore));
            if is_within {
                by_git = by_git.or_else(|| decide(&level.gitignore));
                by_exclude = by_exclude.or_else(|| decide(&level.exclude));
            }
            is_within &= !level.has_git;
        }
        by_ignore.or(by_git).or(by_exclude).unwrap_or(false)
    }
}

/// Returns true if the rules ignore the path, false if they whitelist it, and `None` if no rule matches.
fn match_rules(rules: &Gitignore, path: &Utf8Path, is_folder: bool) -> Option<bool> {
    match rules.matched(path.as_std_path(), is_folder) {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    }
}

impl IgnoreLevel {
    fn open(path: &Utf8Path) -> Option<Self> {
        let folder = FolderHandle::open(path).ok()?;
        let has = |name: &str| folder.path().join(name).symlink_metadata().is_ok();
        Some(IgnoreLevel::read(&folder, &has))
    }

    fn read(folder: &FolderHandle, has: &dyn Fn(&str) -> bool) -> Self {
        let rules =
            |file: &str| has(file.split('/').next()?).then(|| rules_of(folder, file)).flatten();
        IgnoreLevel {
            ignore: rules(".ignore"),
            gitignore: rules(".gitignore"),
            exclude: rules(".git/info/exclude"),
            has_git: has(".git"),
        }
    }
}

/// Reads a rule file; `None` if it cannot be read. Malformed lines are ignored.
fn rules_of(folder: &FolderHandle, file: &str) -> Option<Gitignore> {
    let text = folder.read_text(Utf8Path::new(file), RULES_BYTES_MAX).ok()?;
    let mut builder = GitignoreBuilder::new(folder.path());
    for line in text.lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}
