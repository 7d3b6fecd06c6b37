//! Path patterns, as in `.gitignore`: `src/**`, `/docs`, `*.lock`, `//absolute/path`.

use camino::{Utf8Path, Utf8PathBuf};
use globset::{GlobBuilder, GlobMatcher};

use super::rule::{PermissionRule, RuleError};
use repertoire_sandbox::beneath::normalise_path;

/// A path pattern. It matches the paths that it names and everything beneath them.
#[derive(Clone, Debug)]
pub(super) struct PathPattern {
    glob: GlobMatcher,
    /// True if the pattern is matched against absolute paths rather than paths relative to the work folder.
    is_absolute: bool,
    /// True if the pattern ends with a literal name, and so may name a folder.
    ends_plainly: bool,
    /// True if the pattern ends with `**`.
    ends_deeply: bool,
}

impl PathPattern {
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        if pattern.starts_with('~') {
            return Err("`~` is not understood here; write `//` and the absolute path".to_owned());
        }
        let whole = match pattern.strip_prefix("//") {
            Some(absolute) => format!("/{absolute}"),
            None => anchor_pattern(pattern),
        };
        let whole = whole.strip_suffix('/').unwrap_or(&whole);
        let glob = GlobBuilder::new(whole)
            .literal_separator(true)
            .case_insensitive(cfg!(any(target_os = "macos", windows)))
            .build()
            .map_err(|error| error.kind().to_string())?;
        let last = whole.rsplit('/').next().unwrap_or("");
        Ok(PathPattern {
            is_absolute: pattern.starts_with("//"),
            ends_plainly: !last.contains(['*', '?', '[', '{']),
            ends_deeply: last == "**",
            glob: glob.compile_matcher(),
        })
    }

    /// Returns true if the pattern is matched against absolute paths rather than paths relative to the work folder.
    pub(super) fn is_absolute(&self) -> bool {
        self.is_absolute
    }

    /// Returns true if the pattern matches a path or any of its parents. For rules that deny.
    pub(super) fn matches(&self, path: &str) -> bool {
        self.folder_matches(path) || self.names_content_of(path)
    }

    /// Returns true if the pattern matches a path itself, or names one of its parents in full. For rules that allow.
    pub(super) fn matches_strictly(&self, path: &str) -> bool {
        self.glob.is_match(path)
            || self.ends_plainly && self.folder_matches(path)
            || self.ends_deeply && self.names_content_of(path)
    }

    fn folder_matches(&self, path: &str) -> bool {
        Utf8Path::new(path).ancestors().any(|part| part != "" && self.glob.is_match(part))
    }

    /// Returns true if the pattern matches the contents of a folder: `src/**` applies to listing `src`, which shows
    /// them.
    fn names_content_of(&self, path: &str) -> bool {
        self.glob.is_match(Utf8Path::new(path).join("_"))
    }
}

fn anchor_pattern(pattern: &str) -> String {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    match pattern.strip_prefix('/') {
        Some(anchored) => anchored.to_owned(),
        None if pattern.trim_end_matches('/').contains('/') => pattern.to_owned(),
        None => format!("**/{pattern}"),
    }
}

/// The names of a path: as given, and with symlinks resolved.
#[derive(Clone, Debug, Default)]
pub(super) struct PathNames {
    /// Relative to the work folder, if the path is inside it.
    relative: Vec<String>,
    /// Absolute, if the path's location is known.
    absolute: Vec<String>,
}

impl PathNames {
    /// The names against which a pattern is matched.
    pub(super) fn for_pattern(&self, pattern: &PathPattern) -> &[String] {
        if pattern.is_absolute() { &self.absolute } else { &self.relative }
    }
}

/// Computes the names of a path in a work folder.
pub(super) fn path_names(subject: &str, dir: Option<&Utf8Path>) -> PathNames {
    let given = normalise_path(subject);
    let Some(dir) = dir else {
        let absolute = if given.starts_with('/') { vec![given.clone()] } else { Vec::new() };
        return PathNames { relative: vec![given], absolute };
    };
    let real_dir = dir.canonicalize_utf8().unwrap_or_else(|_| dir.to_owned());
    let within = |path: &Utf8PathBuf| {
        let inner = path.strip_prefix(dir).or_else(|_| path.strip_prefix(&real_dir));
        match inner {
            Ok(inner) if inner == "" => ".".to_owned(),
            Ok(inner) => inner.to_string(),
            Err(_) => path.to_string(),
        }
    };
    let whole = Utf8PathBuf::from(normalise_path(dir.join(&given).as_str()));
    let mut both = [without_links(&whole), whole];
    both.reverse();
    let mut relative: Vec<String> = both.iter().map(within).collect();
    relative.dedup();
    PathNames { relative, absolute: both.into_iter().map(Utf8PathBuf::into_string).collect() }
}

/// Resolves the symlinks of a path, as far as it exists.
fn without_links(path: &Utf8Path) -> Utf8PathBuf {
    for there in path.ancestors() {
        if let Ok(real) = there.canonicalize_utf8() {
            let rest = path.strip_prefix(there).unwrap_or(Utf8Path::new(""));
            return if rest == "" { real } else { real.join(rest) };
        }
    }
    path.to_owned()
}

/// Path rules that search tools apply to skip files.
#[derive(Clone, Debug, Default)]
pub struct PathRules {
    patterns: Vec<PathPattern>,
}

impl PathRules {
    /// Collects the paths of rules such as `Read(private/**)`.
    ///
    /// # Errors
    ///
    /// If a rule is malformed.
    pub fn new(rules: &[&str]) -> Result<Self, RuleError> {
        let rules: Result<Vec<PermissionRule>, RuleError> =
            rules.iter().map(|rule| rule.parse()).collect();
        rules.map(|rules| PathRules::hidden_by(&rules))
    }

    pub(super) fn hidden_by<'a>(rules: impl IntoIterator<Item = &'a PermissionRule>) -> Self {
        PathRules {
            patterns: rules.into_iter().filter_map(PermissionRule::read_paths).cloned().collect(),
        }
    }

    /// Returns true if a path matches. `relative` is relative to the work folder, `whole` is absolute.
    pub fn matches(&self, relative: &str, whole: &str) -> bool {
        self.patterns
            .iter()
            .any(|pattern| pattern.matches(if pattern.is_absolute() { whole } else { relative }))
    }
}
