//! Which entries of a walk git ignores: the rules of `.gitignore`, `.ignore` and `.git/info/exclude`, folder by folder.
//! Rule files are read through the handle of their folder.

use camino::Utf8Path;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use repertoire_text::fs::Folder;

/// The largest file with rules.
const RULES_BYTES_MAX: u64 = 1024 * 1024;

/// The rules of the folders from the outermost one to the folder that is being walked.
#[derive(Default)]
pub(super) struct Ignored {
    levels: Vec<Level>,
}

/// The rules of one folder.
struct Level {
    ignore: Option<Gitignore>,
    gitignore: Option<Gitignore>,
    exclude: Option<Gitignore>,
    /// Whether it is the top of a repository: rules for git from above do not reach into it.
    has_git: bool,
}

impl Ignored {
    /// The rules that the folders above a path have for it.
    pub(super) fn above(path: &Utf8Path) -> Self {
        let mut above: Vec<&Utf8Path> = path.ancestors().skip(1).collect();
        above.reverse();
        let level = |path: &Utf8Path| {
            let folder = Folder::open(path).ok()?;
            let has = |name: &str| folder.path().join(name).symlink_metadata().is_ok();
            Some(Level::read(&folder, &has))
        };
        Ignored { levels: above.into_iter().filter_map(level).collect() }
    }

    /// Adds the rules of a folder, whose path is that of its handle. `has` says whether it has an entry.
    pub(super) fn enter(&mut self, folder: &Folder, has: &dyn Fn(&str) -> bool) {
        self.levels.push(Level::read(folder, has));
    }

    /// Drops the rules of the folder that was entered last.
    pub(super) fn leave(&mut self) {
        self.levels.pop();
    }

    /// Whether a path is ignored. A kind of rules decides by the nearest folder that has one for the path, and `.ignore`
    /// comes before `.gitignore`, which comes before `.git/info/exclude`.
    pub(super) fn has(&self, path: &Utf8Path, is_folder: bool) -> bool {
        let (mut by_ignore, mut by_git, mut by_exclude) = (None, None, None);
        let mut is_within = true;
        for level in self.levels.iter().rev() {
            let decide = |rules: &Option<Gitignore>| match rules
                .as_ref()?
                .matched(path.as_std_path(), is_folder)
            {
                Match::None => None,
                Match::Ignore(_) => Some(true),
                Match::Whitelist(_) => Some(false),
            };
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

impl Level {
    fn read(folder: &Folder, has: &dyn Fn(&str) -> bool) -> Self {
        let rules =
            |file: &str| has(file.split('/').next()?).then(|| rules_of(folder, file)).flatten();
        Level {
            ignore: rules(".ignore"),
            gitignore: rules(".gitignore"),
            exclude: rules(".git/info/exclude"),
            has_git: has(".git"),
        }
    }
}

/// The rules of a file; `None` if it cannot be read. Lines that are no rules are passed over.
fn rules_of(folder: &Folder, file: &str) -> Option<Gitignore> {
    let text = folder.read_text(Utf8Path::new(file), RULES_BYTES_MAX).ok()?;
    let mut builder = GitignoreBuilder::new(folder.path());
    for line in text.lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}
