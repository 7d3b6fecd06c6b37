//! Which files somebody means who names paths: files, folders and globs, from where they stand.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use globset::{GlobBuilder, GlobMatcher};

use super::ScopeError;

/// What is meant by the paths that were named; everything if none was.
pub(super) struct Filter {
    wanted: Vec<Wanted>,
}

/// One path that was named.
pub(super) struct Wanted {
    /// As it was said.
    pub(super) said: Utf8PathBuf,
    meant: Meant,
}

enum Meant {
    /// A file, or all that is in a folder.
    At(Utf8PathBuf),
    /// What fits, and all that is in a folder that fits.
    Glob(GlobMatcher, GlobMatcher),
}

impl Filter {
    /// Paths as somebody in the folder `here` says them, for files below `top`.
    pub(super) fn new(
        here: &Utf8Path,
        top: &Utf8Path,
        paths: &[Utf8PathBuf],
    ) -> Result<Filter, ScopeError> {
        let wanted = paths.iter().map(|said| {
            let meant = meant(here, top, said)?;
            Ok(Wanted { said: said.clone(), meant })
        });
        Ok(Filter { wanted: wanted.collect::<Result<_, ScopeError>>()? })
    }

    /// Whether a file is meant.
    pub(super) fn takes(&self, path: &Utf8Path) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|wanted| wanted.takes(path))
    }

    /// Whether a file was named itself, and not only a folder that it is in.
    pub(super) fn names(&self, path: &Utf8Path) -> bool {
        self.wanted.iter().any(|wanted| matches!(&wanted.meant, Meant::At(at) if at == path))
    }

    /// The paths that were named.
    pub(super) fn wanted(&self) -> &[Wanted] {
        &self.wanted
    }

    /// The places that were named, without globs.
    pub(super) fn places(&self) -> impl Iterator<Item = &Utf8Path> {
        self.wanted.iter().filter_map(|wanted| match &wanted.meant {
            Meant::At(at) => Some(at.as_path()),
            Meant::Glob(..) => None,
        })
    }
}

impl Wanted {
    /// As it is shown: `.` says nothing to somebody who stands elsewhere.
    pub(super) fn shown(&self) -> &Utf8Path {
        match &self.meant {
            Meant::At(at) if matches!(self.said.as_str(), "" | "." | "./") => at,
            _ => &self.said,
        }
    }

    pub(super) fn takes(&self, path: &Utf8Path) -> bool {
        match &self.meant {
            Meant::At(at) => path.starts_with(at),
            Meant::Glob(file, folder) => file.is_match(path) || folder.is_match(path),
        }
    }
}

fn meant(here: &Utf8Path, top: &Utf8Path, said: &Utf8Path) -> Result<Meant, ScopeError> {
    let outside = || ScopeError::Outside { path: said.to_owned(), top: top.to_owned() };
    let whole = here.join(said);
    let is_glob = said.as_str().contains(['*', '?', '[', '{']);
    if !is_glob || whole.symlink_metadata().is_ok() {
        return below(&whole, top).map(Meant::At).ok_or_else(outside);
    }
    let folder = below(here, top).unwrap_or_default();
    let folder = Utf8PathBuf::from(globset::escape(folder.as_str()));
    let glob = match (said.is_absolute(), said.as_str().contains('/')) {
        (true, _) => below(said, top).ok_or_else(outside)?,
        (false, true) => normal(&folder.join(said)).ok_or_else(outside)?,
        (false, false) => folder.join("**").join(said),
    };
    let matcher = |text: &str| {
        let glob = GlobBuilder::new(text).literal_separator(true).build();
        let wrong = |error: globset::Error| ScopeError::Glob {
            glob: said.to_owned(),
            why: error.kind().to_string(),
        };
        glob.map(|glob| glob.compile_matcher()).map_err(wrong)
    };
    Ok(Meant::Glob(matcher(glob.as_str())?, matcher(glob.join("**").as_str())?))
}

/// A path relative to the top; the disk is asked if it leads there by way of a link.
fn below(whole: &Utf8Path, top: &Utf8Path) -> Option<Utf8PathBuf> {
    let plain = normal(whole)?;
    if let Ok(relative) = plain.strip_prefix(top) {
        return Some(relative.to_owned());
    }
    let real = plain.canonicalize_utf8().ok()?;
    real.strip_prefix(top).ok().map(Utf8Path::to_owned)
}

/// A path without `.` and `..`; `None` if it leads above its beginning.
fn normal(path: &Utf8Path) -> Option<Utf8PathBuf> {
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
        let filter = Filter::new(&here, top, &[said.into()]).unwrap();
        let found: Vec<&str> =
            all.into_iter().filter(|path| filter.takes(Utf8Path::new(path))).collect();
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
            let refused = Filter::new(top, top, &[said.into()]);
            assert!(matches!(refused, Err(ScopeError::Outside { .. })), "{said}");
        }
        assert!(matches!(Filter::new(top, top, &["a{".into()]), Err(ScopeError::Glob { .. })));
    }
}
