//! Interprets the paths that a user names: files, folders and globs, relative to the current folder.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use globset::{GlobBuilder, GlobMatcher};

use super::ScopeError;

/// A filter of named paths. Without any, all files match.
pub(super) struct ScopePathFilter {
    wanted: Vec<NamedPath>,
}

/// A named path.
pub(super) struct NamedPath {
    /// The path as the user wrote it.
    pub(super) said: Utf8PathBuf,
    meant: PathTarget,
}

enum PathTarget {
    /// A file, or everything below a folder.
    At(Utf8PathBuf),
    /// Matchers for the glob itself, and for everything below a matching folder.
    Glob(GlobMatcher, GlobMatcher),
}

impl ScopePathFilter {
    /// Creates a filter from paths relative to `here`, for files below `top`.
    pub(super) fn new(
        here: &Utf8Path,
        top: &Utf8Path,
        paths: &[Utf8PathBuf],
    ) -> Result<ScopePathFilter, ScopeError> {
        let wanted = paths.iter().map(|said| {
            let meant = resolve_path(here, top, said)?;
            Ok(NamedPath { said: said.clone(), meant })
        });
        Ok(ScopePathFilter { wanted: wanted.collect::<Result<_, ScopeError>>()? })
    }

    /// Returns true if the filter includes a file.
    pub(super) fn matches_path(&self, path: &Utf8Path) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|wanted| wanted.matches_path(path))
    }

    /// Returns true if the user named this very file, not just a folder that contains it.
    pub(super) fn names_file(&self, path: &Utf8Path) -> bool {
        self.wanted.iter().any(|wanted| matches!(&wanted.meant, PathTarget::At(at) if at == path))
    }

    pub(super) fn wanted(&self) -> &[NamedPath] {
        &self.wanted
    }

    /// The named files and folders, without globs.
    pub(super) fn named_places(&self) -> impl Iterator<Item = &Utf8Path> {
        self.wanted.iter().filter_map(|wanted| match &wanted.meant {
            PathTarget::At(at) => Some(at.as_path()),
            PathTarget::Glob(..) => None,
        })
    }
}

impl NamedPath {
    /// The path for display. `.` is replaced by the path from the top, since it means nothing to other readers.
    pub(super) fn display_path(&self) -> &Utf8Path {
        match &self.meant {
            PathTarget::At(at) if matches!(self.said.as_str(), "" | "." | "./") => at,
            _ => &self.said,
        }
    }

    pub(super) fn matches_path(&self, path: &Utf8Path) -> bool {
        match &self.meant {
            PathTarget::At(at) => path.starts_with(at),
            PathTarget::Glob(file, folder) => file.is_match(path) || folder.is_match(path),
        }
    }
}

fn resolve_path(
    here: &Utf8Path,
    top: &Utf8Path,
    said: &Utf8Path,
) -> Result<PathTarget, ScopeError> {
    let outside = || ScopeError::Outside { path: said.to_owned(), top: top.to_owned() };
    let whole = here.join(said);
    let is_glob = said.as_str().contains(['*', '?', '[', '{']);
    if !is_glob || whole.symlink_metadata().is_ok() {
        return relative_to_top(&whole, top).map(PathTarget::At).ok_or_else(outside);
    }
    let folder = relative_to_top(here, top).unwrap_or_default();
    let folder = Utf8PathBuf::from(globset::escape(folder.as_str()));
    let glob = match (said.is_absolute(), said.as_str().contains('/')) {
        (true, _) => relative_to_top(said, top).ok_or_else(outside)?,
        (false, true) => normalise_path(&folder.join(said)).ok_or_else(outside)?,
        (false, false) => folder.join("**").join(said),
    };
    let matcher = compile_glob(glob.as_str(), said)?;
    let below_matcher = compile_glob(glob.join("**").as_str(), said)?;
    Ok(PathTarget::Glob(matcher, below_matcher))
}

/// Compiles a glob. An error names the path as the user wrote it.
fn compile_glob(text: &str, said: &Utf8Path) -> Result<GlobMatcher, ScopeError> {
    let glob = GlobBuilder::new(text).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher())
        .map_err(|error| ScopeError::Glob { glob: said.to_owned(), why: error.kind().to_string() })
}

/// Makes a path relative to `top`. Symbolic links are resolved if it is not below `top` as written.
fn relative_to_top(whole: &Utf8Path, top: &Utf8Path) -> Option<Utf8PathBuf> {
    let plain = normalise_path(whole)?;
    if let Ok(relative) = plain.strip_prefix(top) {
        return Some(relative.to_owned());
    }
    let real = plain.canonicalize_utf8().ok()?;
    real.strip_prefix(top).ok().map(Utf8Path::to_owned)
}

/// Removes `.` and `..` from a path. Returns `None` if it leads above its start.
fn normalise_path(path: &Utf8Path) -> Option<Utf8PathBuf> {
    let mut normal = Utf8PathBuf::new();
    for part in path.components() {
        match part {
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir => {
                normal.file_name()?;
                normal.pop();
            }
            other => normal.push(other.as_str()),
        }
    }
    Some(normal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(here: &str, said: &str, taken: &[&str]) {
        let all = ["a.rs", "src/a.rs", "src/b.md", "src/sub/c.rs", "srcs/d.rs"];
        let (here, top) = (Utf8Path::new("/nowhere").join(here), Utf8Path::new("/nowhere"));
        let filter = ScopePathFilter::new(&here, top, &[said.into()]).unwrap();
        let found: Vec<&str> =
            all.into_iter().filter(|path| filter.matches_path(Utf8Path::new(path))).collect();
        assert_eq!(found, taken, "{said} in {here}");
    }

    #[test]
    fn files_folders_and_globs_are_meant_from_where_one_stands() {
        check("", "a.rs", &["a.rs"]);
        check("src", "a.rs", &["src/a.rs"]);
        check("", "src", &["src/a.rs", "src/b.md", "src/sub/c.rs"]);
        check("src", "..", &["a.rs", "src/a.rs", "src/b.md", "src/sub/c.rs", "srcs/d.rs"]);
        check("src/sub", "../a.rs", &["src/a.rs"]);
        check("", "/nowhere/src/a.rs", &["src/a.rs"]);
        check("", "*.rs", &["a.rs", "src/a.rs", "src/sub/c.rs", "srcs/d.rs"]);
        check("src", "*.rs", &["src/a.rs", "src/sub/c.rs"]);
        check("", "src/*.rs", &["src/a.rs"]);
        check("", "src/*", &["src/a.rs", "src/b.md", "src/sub/c.rs"]);
        check("", "./src/**/c.rs", &["src/sub/c.rs"]);
    }

    #[test]
    fn what_is_elsewhere_or_no_glob_is_refused() {
        let top = Utf8Path::new("/nowhere");
        for said in ["../x", "/etc/passwd", "../*.rs"] {
            let refused = ScopePathFilter::new(top, top, &[said.into()]);
            assert!(matches!(refused, Err(ScopeError::Outside { .. })), "{said}");
        }
        assert!(matches!(
            ScopePathFilter::new(top, top, &["a{".into()]),
            Err(ScopeError::Glob { .. })
        ));
    }
}
