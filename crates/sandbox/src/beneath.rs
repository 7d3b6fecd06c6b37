//! Resolves the paths of tools: beneath the work folder or a readable folder, never through a symlink that leaves it,
//! and never to a protected or secret file.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{
    FileLocation as Target, FolderHandle, LocationError, OpenedEntry, ReadError,
};

use crate::confinement::followed_paths;
use crate::protected;
use crate::workplace::RunWorkplace;

/// The reason why a path is refused.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// The path is empty or has a NUL byte.
    #[error("the path is empty or has a NUL byte; give a path beneath the work folder")]
    Malformed,
    #[error("`{path}` is outside of the work folder {dir}; use a path beneath it")]
    Outside { path: String, dir: Utf8PathBuf },
    #[error("there is no `{path}`; `list` and `glob` show what there is")]
    NotFound { path: String },
    /// Tools may not change this path.
    #[error("`{path}` is protected: tools do not change it (a person can)")]
    Protected { path: String },
    /// The file's name suggests that it holds keys or passwords.
    #[error(
        "`{path}` holds keys or passwords, to judge by its name, and tools do not touch it; ask the user for what you need"
    )]
    Secret { path: String },
    /// A symlink whose target does not exist.
    #[error("`{path}` is a symbolic link to nothing; remove it first or use another path")]
    Dangling { path: String },
    #[error("`{path}`: {source}")]
    Io { path: String, source: std::io::Error },
}

/// An open file or folder that may be read.
#[derive(Debug)]
pub struct ReadablePath {
    /// The folder that contains it, with symlinks resolved.
    root: Utf8PathBuf,
    found: OpenedEntry,
}

impl ReadablePath {
    /// The path relative to the root, with symlinks resolved; `.` for the root itself.
    pub fn relative(&self) -> &Utf8Path {
        self.found.relative()
    }

    /// The whole path, with symlinks resolved.
    pub fn path(&self) -> Utf8PathBuf {
        match self.relative() {
            relative if relative == "." => self.root.clone(),
            relative => self.root.join(relative),
        }
    }

    pub fn is_folder(&self) -> bool {
        self.found.is_folder()
    }

    /// The size in bytes.
    pub fn bytes(&self) -> u64 {
        self.found.bytes()
    }

    /// Returns the folder, to read its entries.
    ///
    /// # Errors
    ///
    /// If it is a file.
    pub fn folder(&self) -> std::io::Result<FolderHandle> {
        self.found.to_folder(self.path())
    }

    /// Reads at most `bytes_max` bytes.
    ///
    /// # Errors
    ///
    /// If it is larger, or not a regular file.
    pub fn read_bytes(&self, bytes_max: u64) -> Result<Vec<u8>, ReadError> {
        self.found.read_bytes(bytes_max)
    }
}

/// Opens a path for reading: a file or folder in the work folder, in a readable folder, or in the folder of spilled
/// output. Symlinks are followed as long as they lead into one of these.
///
/// # Errors
///
/// If the path is elsewhere, does not exist, or its name suggests that it is secret.
pub fn open_readable(workplace: &RunWorkplace, path: &str) -> Result<ReadablePath, PathError> {
    let lexical = lexical_path(workplace, path)?;
    let mut roots = vec![workplace.dir.clone()];
    roots.extend(workplace.readable.list());
    if workplace.has_real_spill_folder() {
        roots.push(workplace.spill_dir.clone());
    }
    let mut wanted = lexical.clone();
    for _ in 0..=ROOTS_CROSSED_MAX {
        // Compare names only: looking at the disk would reveal which files exist elsewhere.
        let Some((root, relative)) = root_of(&roots, &wanted) else {
            return Err(outside_error(workplace, path));
        };
        let folder = FolderHandle::open(&root).map_err(|error| io_error(path, error))?;
        let found = match folder.find(&relative) {
            // A link that leaves one root may lead into another readable one.
            Err(LocationError::LinkLeaves { to: Some(to), .. }) => {
                wanted = Utf8PathBuf::from(normalise_path(to.as_str()));
                continue;
            }
            found => found.map_err(|error| place_error(workplace, path, error))?,
        };
        let root = folder.real_path().map_err(|error| io_error(path, error))?;
        let place = ReadablePath { root, found };
        if is_secret(&lexical) || is_secret(&place.path()) {
            return Err(PathError::Secret { path: path.to_owned() });
        }
        return Ok(place);
    }
    Err(outside_error(workplace, path))
}

/// The maximum number of times that symlinks may lead from one readable folder into another.
const ROOTS_CROSSED_MAX: usize = 4;

/// Finds the root that contains an absolute path, and the path relative to it.
fn root_of(roots: &[Utf8PathBuf], path: &Utf8Path) -> Option<(Utf8PathBuf, Utf8PathBuf)> {
    let named = roots.iter().find_map(|root| Some((root.clone(), relative_to(root, path)?)));
    // Fall back to resolving the roots, which may contain symlinks. This is rare, and needs the disk.
    named.or_else(|| {
        roots.iter().find_map(|root| {
            let real = root.canonicalize_utf8().ok()?;
            let inner = relative_to(&real, path)?;
            Some((root.clone(), inner))
        })
    })
}

/// The path relative to a root, `.` for the root itself; `None` if it is outside.
fn relative_to(root: &Utf8Path, path: &Utf8Path) -> Option<Utf8PathBuf> {
    let inner = path.strip_prefix(root).ok()?;
    Some(if inner == "" { Utf8PathBuf::from(".") } else { inner.to_owned() })
}

/// Resolves a path for writing: a file beneath the work folder that need not exist yet. The result holds a handle of
/// its parent folder, so it is written without resolving the path again.
///
/// # Errors
///
/// If the path is outside the work folder, protected or secret.
pub fn resolve_writable(workplace: &RunWorkplace, path: &str) -> Result<Target, PathError> {
    let lexical = lexical_path(workplace, path)?;
    let Some((_, relative)) = root_of(std::slice::from_ref(&workplace.dir), &lexical) else {
        return Err(outside_error(workplace, path));
    };
    let folder = FolderHandle::open(&workplace.dir).map_err(|error| io_error(path, error))?;
    let place = folder.place(&relative).map_err(|error| place_error(workplace, path, error))?;
    if place.relative() == "." {
        return Err(outside_error(workplace, path));
    }
    let root = folder.real_path().map_err(|error| io_error(path, error))?;
    let real = root.join(place.relative());
    // Both the given path and the resolved one may be protected.
    if is_protected(workplace, &root, &lexical) || is_protected(workplace, &root, &real) {
        return Err(PathError::Protected { path: path.to_owned() });
    }
    // A secret file may be created, for instance from its example, but an existing one must not be overwritten.
    if (is_secret(&lexical) || is_secret(&real)) && place.existing_entry().is_some() {
        return Err(PathError::Secret { path: path.to_owned() });
    }
    Ok(place)
}

/// Formats a path for the model: relative to the work folder, if it is inside.
pub fn display_path(workplace: &RunWorkplace, path: &Utf8Path) -> String {
    relative_to(&workplace.dir, path)
        .or_else(|| relative_to(&workplace.dir.canonicalize_utf8().ok()?, path))
        .map_or_else(|| path.to_string(), Utf8PathBuf::into_string)
}

/// Removes `.` and `..` from a path lexically, without looking at the disk.
pub fn normalise_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let absolute = path.starts_with('/');
    for part in Utf8Path::new(path).components() {
        match part {
            Utf8Component::ParentDir if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            Utf8Component::ParentDir if !absolute => parts.push(".."),
            Utf8Component::Normal(name) => parts.push(name),
            _ => {}
        }
    }
    match (absolute, parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) => ".".to_owned(),
        (false, false) => parts.join("/"),
    }
}

/// Returns true if a file's name suggests that it holds keys or passwords.
pub fn is_secret(path: &Utf8Path) -> bool {
    let lower = path.as_str().to_ascii_lowercase();
    let name = lower.rsplit('/').next().unwrap_or("");
    let ends = |list: &[&str]| list.iter().any(|end| name.ends_with(end));
    if name.starts_with(".env.") || name == ".env" || name == ".envrc" {
        return !ends(&[".example", ".sample", ".template", ".dist"]);
    }
    SECRET_NAMES.contains(&name)
        || is_git_configuration(&lower, name)
        || ends(SECRET_ENDS)
        || SECRET_PLACES.iter().any(|place| lower.ends_with(place))
        || SECRET_FOLDERS.iter().any(|folder| lower.contains(folder) && !name.ends_with(".pub"))
}

/// Returns true for git configuration, in which checkouts may store the token that they were made with: that of a
/// repository, its worktrees and its submodules.
fn is_git_configuration(lower: &str, name: &str) -> bool {
    let in_git = lower.split('/').rev().skip(1).any(|folder| folder.ends_with(".git"));
    in_git && matches!(name, "config" | "config.worktree")
}

const SECRET_NAMES: &[&str] = &[
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    ".dockercfg",
    ".my.cnf",
    ".vault-token",
];
const SECRET_ENDS: &[&str] =
    &[".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".asc.key"];
const SECRET_PLACES: &[&str] = &[
    "/.aws/credentials",
    "/.aws/config",
    "/.docker/config.json",
    "/.kube/config",
    "/.config/gh/hosts.yml",
    "/.cargo/credentials",
    "/.cargo/credentials.toml",
    "/.claude/.credentials.json",
    "/.codex/auth.json",
];
const SECRET_FOLDERS: &[&str] = &["/.ssh/", "/.gnupg/", "/.azure/", "/.config/gcloud/"];

fn lexical_path(workplace: &RunWorkplace, path: &str) -> Result<Utf8PathBuf, PathError> {
    if path.trim().is_empty() || path.contains('\0') {
        return Err(PathError::Malformed);
    }
    Ok(Utf8PathBuf::from(normalise_path(workplace.dir.join(path).as_str())))
}

/// Returns true if tools may not change a path. Names are compared as leniently as on the most lenient file systems.
fn is_protected(workplace: &RunWorkplace, root: &Utf8Path, path: &Utf8Path) -> bool {
    let wanted = fold_case(path);
    let relative = wanted.strip_prefix(fold_case(&workplace.dir));
    let relative = relative.or_else(|_| wanted.strip_prefix(fold_case(root)));
    let is_beneath = |protected: &Utf8PathBuf| {
        let beneath = protected.strip_prefix(&workplace.dir).unwrap_or(protected);
        let real = protected.canonicalize_utf8().ok();
        wanted.starts_with(fold_case(protected))
            || wanted.starts_with(fold_case(&root.join(beneath)))
            || real.is_some_and(|real| wanted.starts_with(fold_case(&real)))
    };
    if protected::is_protected(relative.unwrap_or(&wanted))
        || workplace.protected.iter().any(is_beneath)
    {
        return true;
    }
    let followed = followed_paths(workplace);
    // If there is too much configuration to read, git may follow any file.
    followed.is_cut.is_some() || followed.paths.iter().any(is_beneath)
}

/// Folds a path as case-insensitive file systems do. Those of macOS also ignore some invisible characters, and use full
/// case folding, which makes letters such as `ſ` and `s` equal.
fn fold_case(path: &Utf8Path) -> Utf8PathBuf {
    let visible = path.as_str().chars().filter(|c| {
        !matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
    });
    let upper = visible.flat_map(char::to_uppercase);
    Utf8PathBuf::from(upper.flat_map(char::to_lowercase).collect::<String>())
}

fn outside_error(workplace: &RunWorkplace, path: &str) -> PathError {
    PathError::Outside { path: path.to_owned(), dir: workplace.dir.clone() }
}

fn io_error(path: &str, source: std::io::Error) -> PathError {
    match source.kind() {
        std::io::ErrorKind::NotFound => PathError::NotFound { path: path.to_owned() },
        _ => PathError::Io { path: path.to_owned(), source },
    }
}

fn place_error(workplace: &RunWorkplace, path: &str, error: LocationError) -> PathError {
    match error {
        LocationError::NotFound => PathError::NotFound { path: path.to_owned() },
        LocationError::Dangling { .. } => PathError::Dangling { path: path.to_owned() },
        LocationError::LinkLeaves { .. } | LocationError::PathRefused => {
            outside_error(workplace, path)
        }
        other => PathError::Io { path: path.to_owned(), source: other.into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    #[test]
    fn paths_are_normalised_without_the_disk() {
        for (path, expected) in [
            ("a/./b", "a/b"),
            ("./a/../b", "b"),
            ("../a", "../a"),
            ("a/../../b", "../b"),
            ("/a/../../b", "/b"),
            ("", "."),
            (".", "."),
        ] {
            assert_eq!(normalise_path(path), expected, "{path}");
        }
    }

    #[test]
    fn climbing_out_is_refused_whether_something_is_there_or_not() {
        let bench = Bench::new();
        let workplace = bench.workplace();
        for path in ["../x", "/etc/passwd", "/no/such/file", "a/../../x", "\0", " ", ""] {
            let read = open_readable(&workplace, path).unwrap_err();
            assert!(matches!(read, PathError::Outside { .. } | PathError::Malformed), "{read}");
            assert!(resolve_writable(&workplace, path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn an_absolute_path_into_the_work_folder_is_fine() {
        let bench = Bench::new();
        bench.file("a/b.txt", "x");
        let workplace = bench.workplace();
        let place = open_readable(&workplace, workplace.dir.join("a/b.txt").as_str()).unwrap();
        assert_eq!(place.relative(), "a/b.txt");
        assert_eq!(open_readable(&workplace, ".").unwrap().relative(), ".");
    }

    #[cfg(unix)]
    #[test]
    fn links_that_leave_are_refused_and_links_that_stay_are_followed() {
        let bench = Bench::new();
        bench.file("a.txt", "x");
        let workplace = bench.workplace();
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(target, workplace.dir.join(name)).unwrap();
        };
        link("/etc", "out");
        link("a.txt", "in");
        link("nothing", "dangling");
        assert!(matches!(open_readable(&workplace, "out/passwd"), Err(PathError::Outside { .. })));
        assert!(matches!(resolve_writable(&workplace, "out/new"), Err(PathError::Outside { .. })));
        assert!(matches!(
            resolve_writable(&workplace, "dangling"),
            Err(PathError::Dangling { .. })
        ));
        assert_eq!(open_readable(&workplace, "in").unwrap().relative(), "a.txt");
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_for_output_that_is_a_link_opens_nothing() {
        let bench = Bench::new();
        let mut workplace = bench.workplace();
        workplace.spill_dir = workplace.dir.join(".repertoire/output");
        std::fs::create_dir(workplace.dir.join(".repertoire")).unwrap();
        std::os::unix::fs::symlink("/", &workplace.spill_dir).unwrap();
        for path in ["/etc/passwd", ".repertoire/output/etc/passwd"] {
            let refused = open_readable(&workplace, path);
            assert!(matches!(refused, Err(PathError::Outside { .. })), "{path}: {refused:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_protected_stays_so_through_links_dots_and_case() {
        let bench = Bench::new();
        bench.file(".claude/settings.json", "{}");
        let workplace = bench.workplace();
        std::os::unix::fs::symlink(".claude", workplace.dir.join("harmless")).unwrap();
        for path in [
            ".claude/settings.json",
            "x/../.claude/new",
            "harmless/settings.json",
            ".CLAUDE/new",
            ".git/hooks/pre-commit",
            "vendor/.git/config",
            "AGENTS.md",
            "agents.MD",
            "\u{17f}kills/new/SKILL.md",
            ".g\u{200c}it/hooks/pre-commit",
        ] {
            let refused = resolve_writable(&workplace, path);
            assert!(matches!(refused, Err(PathError::Protected { .. })), "{path}: {refused:?}");
        }
        assert!(resolve_writable(&workplace, "src/new/file.rs").is_ok());
        assert!(resolve_writable(&workplace, ".gitignore").is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn secrets_are_refused_also_behind_a_link() {
        let bench = Bench::new();
        bench.file(".env", "KEY=1");
        bench.file("keys/id_rsa", "x");
        let workplace = bench.workplace();
        std::os::unix::fs::symlink(".env", workplace.dir.join("notes.txt")).unwrap();
        for path in [".env", "keys/id_rsa", "notes.txt"] {
            assert!(
                matches!(open_readable(&workplace, path), Err(PathError::Secret { .. })),
                "{path}"
            );
        }
        let plain =
            ["a/.env.example", "a/id_rsa.pub", "a/environment.rs", "a/monkey", "a/.ssh/x.pub"];
        for path in plain {
            assert!(!is_secret(Utf8Path::new(path)), "{path}");
        }
        for path in [
            "w/.git/config",
            "w/.git/modules/x/config",
            "w/.git/worktrees/y/config.worktree",
            "mirror.git/config",
        ] {
            assert!(is_secret(Utf8Path::new(path)), "{path}");
        }
        for path in ["src/config", "w/.git/HEAD", "w/.github/config"] {
            assert!(!is_secret(Utf8Path::new(path)), "{path}");
        }
        for path in ["a/server.PEM", "h/.aws/credentials", "h/.ssh/work", "a/.env.local"] {
            assert!(is_secret(Utf8Path::new(path)), "{path}");
        }
    }
}
