//! The paths of tools: beneath the work folder or a folder that may be read, never through a link that leaves it, and
//! never at what is protected or secret.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use repertoire_text::fs::{self, ReadError};

use crate::protected;
use crate::workplace::Workplace;

/// Why a path is not used.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// Nothing was given, or a NUL byte.
    #[error("the path is empty or has a NUL byte; give a path beneath the work folder")]
    Malformed,
    /// It is elsewhere.
    #[error("`{path}` is outside of the work folder {dir}; use a path beneath it")]
    Outside {
        /// The path.
        path: String,
        /// The folder.
        dir: Utf8PathBuf,
    },
    /// There is nothing.
    #[error("there is no `{path}`; `list` and `glob` show what there is")]
    NotFound {
        /// The path.
        path: String,
    },
    /// It is not for tools to change.
    #[error("`{path}` is protected: tools do not change it (a person can)")]
    Protected {
        /// The path.
        path: String,
    },
    /// It holds keys or passwords.
    #[error(
        "`{path}` holds keys or passwords, to judge by its name, and tools do not touch it; ask the user for what you need"
    )]
    Secret {
        /// The path.
        path: String,
    },
    /// A link whose target is not there.
    #[error("`{path}` is a symbolic link to nothing; remove it first or use another path")]
    Dangling {
        /// The path.
        path: String,
    },
    /// The operating system said no.
    #[error("`{path}`: {source}")]
    Io {
        /// The path.
        path: String,
        /// Why.
        source: std::io::Error,
    },
}

/// A place that is there and may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The folder that it is beneath, without links.
    pub root: Utf8PathBuf,
    /// Where it is beneath the root, without links; `.` for the root itself.
    pub relative: Utf8PathBuf,
}

impl Place {
    /// The whole path.
    pub fn path(&self) -> Utf8PathBuf {
        if self.relative == "." { self.root.clone() } else { self.root.join(&self.relative) }
    }

    /// Reads it, at most `bytes_max` bytes.
    ///
    /// # Errors
    ///
    /// When it is larger, no regular file, or no longer beneath the root.
    pub fn read(&self, bytes_max: u64) -> Result<Vec<u8>, ReadError> {
        fs::read_bytes_beneath(&self.root, &self.relative, bytes_max)
    }
}

/// Where a path is that shall be read: a file or a folder in the work folder, in a folder that may be read, or in the
/// folder of spilled output.
///
/// # Errors
///
/// When it is nowhere there, or its name says that it is secret.
pub fn readable(workplace: &Workplace, path: &str) -> Result<Place, PathError> {
    let lexical = lexical(workplace, path)?;
    let mut readable = workplace.readable.list();
    if workplace.spills_where_it_says() {
        readable.push(workplace.spill_dir.clone());
    }
    let roots = std::iter::once(&workplace.dir).chain(&readable);
    let roots: Vec<Utf8PathBuf> = roots.filter_map(|root| root.canonicalize_utf8().ok()).collect();
    // Before the disk is asked, so that nobody learns what exists elsewhere.
    let named_within = roots.iter().chain([&workplace.dir]).any(|root| lexical.starts_with(root))
        || readable.iter().any(|root| lexical.starts_with(root));
    if !named_within {
        return Err(outside(workplace, path));
    }
    let real = lexical.canonicalize_utf8().map_err(|error| io_error(path, error))?;
    let root = roots.into_iter().find(|root| real.starts_with(root));
    let Some(root) = root else { return Err(outside(workplace, path)) };
    let relative = real.strip_prefix(&root).unwrap_or(&real).to_owned();
    if is_secret(&lexical) || is_secret(&real) {
        return Err(PathError::Secret { path: path.to_owned() });
    }
    let relative = if relative == "" { Utf8PathBuf::from(".") } else { relative };
    Ok(Place { root, relative })
}

/// Where a path is that shall be written, without links. It need not be there.
///
/// # Errors
///
/// When it is outside of the work folder, or protected.
pub fn writable(workplace: &Workplace, path: &str) -> Result<Utf8PathBuf, PathError> {
    let lexical = lexical(workplace, path)?;
    let root = workplace.dir.canonicalize_utf8().map_err(|error| io_error(path, error))?;
    if !lexical.starts_with(&workplace.dir) && !lexical.starts_with(&root) {
        return Err(outside(workplace, path));
    }
    let real = real_of_new(&lexical, path)?;
    if !real.starts_with(&root) || real == root {
        return Err(outside(workplace, path));
    }
    if is_protected(workplace, &root, &lexical) || is_protected(workplace, &root, &real) {
        return Err(PathError::Protected { path: path.to_owned() });
    }
    // A new one may be made from its example; one that is there would be lost.
    if real.exists() && (is_secret(&lexical) || is_secret(&real)) {
        return Err(PathError::Secret { path: path.to_owned() });
    }
    Ok(real)
}

/// A path as the model should see it: relative to the work folder if it is there.
pub fn shown(workplace: &Workplace, path: &Utf8Path) -> String {
    let real = workplace.dir.canonicalize_utf8();
    let within = path.strip_prefix(&workplace.dir).ok();
    let within =
        within.or_else(|| real.as_ref().ok().and_then(|real| path.strip_prefix(real).ok()));
    match within {
        Some(relative) if relative == "" => ".".to_owned(),
        Some(relative) => relative.to_string(),
        None => path.to_string(),
    }
}

/// A path without `.` and `..`, as far as that can be said without the disk.
pub fn normalised(path: &str) -> String {
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

/// Whether a file holds keys or passwords, by its name.
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

/// Where checkouts keep the token that they were made with: of a repository, its worktrees and its submodules.
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

fn lexical(workplace: &Workplace, path: &str) -> Result<Utf8PathBuf, PathError> {
    if path.trim().is_empty() || path.contains('\0') {
        return Err(PathError::Malformed);
    }
    Ok(Utf8PathBuf::from(normalised(workplace.dir.join(path).as_str())))
}

/// The real place of something that may not be there yet: that of the nearest folder that is, and the rest.
fn real_of_new(lexical: &Utf8Path, path: &str) -> Result<Utf8PathBuf, PathError> {
    let mut missing = Vec::new();
    let mut there = lexical;
    loop {
        match there.canonicalize_utf8() {
            Ok(real) => {
                let missing = missing.iter().rev();
                return Ok(missing.fold(real, |place: Utf8PathBuf, name| place.join(name)));
            }
            Err(_) if there.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()) => {
                return Err(PathError::Dangling { path: path.to_owned() });
            }
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(io_error(path, error));
            }
            Err(error) => {
                let (Some(parent), Some(name)) = (there.parent(), there.file_name()) else {
                    return Err(io_error(path, error));
                };
                missing.push(name);
                there = parent;
            }
        }
    }
}

/// Case does not matter here, as it does not on some disks.
fn is_protected(workplace: &Workplace, root: &Utf8Path, path: &Utf8Path) -> bool {
    let lower = |path: &Utf8Path| Utf8PathBuf::from(path.as_str().to_lowercase());
    let wanted = lower(path);
    let relative = path.strip_prefix(&workplace.dir).or_else(|_| path.strip_prefix(root));
    protected::is_protected(relative.unwrap_or(path))
        || workplace.protected.iter().any(|protected| {
            let beneath = protected.strip_prefix(&workplace.dir).unwrap_or(protected);
            let real = protected.canonicalize_utf8().ok();
            wanted.starts_with(lower(protected))
                || wanted.starts_with(lower(&root.join(beneath)))
                || real.is_some_and(|real| wanted.starts_with(lower(&real)))
        })
}

fn outside(workplace: &Workplace, path: &str) -> PathError {
    PathError::Outside { path: path.to_owned(), dir: workplace.dir.clone() }
}

fn io_error(path: &str, source: std::io::Error) -> PathError {
    match source.kind() {
        std::io::ErrorKind::NotFound => PathError::NotFound { path: path.to_owned() },
        _ => PathError::Io { path: path.to_owned(), source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::Bench;

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
            assert_eq!(normalised(path), expected, "{path}");
        }
    }

    #[test]
    fn climbing_out_is_refused_whether_something_is_there_or_not() {
        let bench = Bench::new();
        let workplace = bench.workplace();
        for path in ["../x", "/etc/passwd", "/no/such/file", "a/../../x", "\0", " ", ""] {
            let read = readable(&workplace, path).unwrap_err();
            assert!(matches!(read, PathError::Outside { .. } | PathError::Malformed), "{read}");
            assert!(writable(&workplace, path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn an_absolute_path_into_the_work_folder_is_fine() {
        let bench = Bench::new();
        bench.file("a/b.txt", "x");
        let workplace = bench.workplace();
        let place = readable(&workplace, workplace.dir.join("a/b.txt").as_str()).unwrap();
        assert_eq!(place.relative, "a/b.txt");
        assert_eq!(readable(&workplace, ".").unwrap().relative, ".");
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
        assert!(matches!(readable(&workplace, "out/passwd"), Err(PathError::Outside { .. })));
        assert!(matches!(writable(&workplace, "out/new"), Err(PathError::Outside { .. })));
        assert!(matches!(writable(&workplace, "dangling"), Err(PathError::Dangling { .. })));
        assert_eq!(readable(&workplace, "in").unwrap().relative, "a.txt");
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
            let refused = readable(&workplace, path);
            assert!(matches!(refused, Err(PathError::Outside { .. })), "{path}: {refused:?}");
        }
        let spilled = crate::spill::bounded_text(&"x".repeat(100_000), &workplace, "c1");
        assert!(spilled.spilled.is_none() && spilled.text.contains("could not be kept"));
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
        ] {
            let refused = writable(&workplace, path);
            assert!(matches!(refused, Err(PathError::Protected { .. })), "{path}: {refused:?}");
        }
        assert!(writable(&workplace, "src/new/file.rs").is_ok());
        assert!(writable(&workplace, ".gitignore").is_ok());
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
            assert!(matches!(readable(&workplace, path), Err(PathError::Secret { .. })), "{path}");
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
