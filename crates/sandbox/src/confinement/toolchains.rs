//! Tool chain folders that confined programs may read, derived from the user's own environment.
//!
//! Only the scrubbed environment of the user counts. Variables that a check, a workflow or a tool adds to a program
//! never widen what it may read.

use camino::{Utf8Path, Utf8PathBuf};

use super::policy::{SYSTEM, find_variable};

/// Tool chains in a home folder, restricted to code. `~/.cargo` as a whole would expose `credentials.toml`.
const TOOL_CHAINS: &[&str] = &[
    ".asdf",
    ".bun",
    ".cargo/bin",
    ".cargo/config.toml",
    ".cargo/env",
    ".cargo/git",
    ".cargo/registry",
    ".deno/bin",
    ".fnm",
    ".go",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pnpm",
    ".local/share/uv",
    ".nix-profile",
    ".npm-global",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".rye",
    ".sdkman",
    ".volta",
    "go/bin",
    "go/pkg",
];

const CARGO_HOME: &[&str] = &["bin", "config.toml", "env", "git", "registry"];

/// Variables that name a single tool chain folder.
const NAMED_BY_VARIABLE: &[&str] =
    &["RUSTUP_HOME", "PYENV_ROOT", "NVM_DIR", "GOROOT", "JAVA_HOME", "VIRTUAL_ENV"];

/// Folders and files of a home that hold keys, tokens or sessions. A tool chain folder is rejected if it is one of
/// them, lies in one of them or contains one of them.
const HOLDS_CREDENTIALS: &[&str] = &[
    ".aws",
    ".azure",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude",
    ".codex",
    ".config/gcloud",
    ".config/gh",
    ".config/git",
    ".config/op",
    ".config/repertoire",
    ".docker",
    ".gemini",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".local/share/repertoire",
    ".mozilla",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pypirc",
    ".ssh",
    ".thunderbird",
    ".vault-token",
];

/// The tool chains that the user's environment names, whether they exist or not. `writable` are the folders that
/// programs may write to: tool chains in there are readable already, and a program could replace one with a link.
pub(super) fn tool_chains(
    user_environment: &[(String, String)],
    writable: &[Utf8PathBuf],
) -> Vec<Utf8PathBuf> {
    let home = find_variable(user_environment, "HOME").map(Utf8Path::new);
    let home = home.filter(|home| home.is_absolute() && home.parent().is_some());
    let mut found = Vec::new();
    if let Some(home) = home {
        found.extend(TOOL_CHAINS.iter().map(|folder| home.join(folder)));
    }
    if let Some(cargo) = find_variable(user_environment, "CARGO_HOME") {
        found.extend(CARGO_HOME.iter().map(|part| Utf8Path::new(cargo).join(part)));
    }
    let named = NAMED_BY_VARIABLE.iter().filter_map(|name| find_variable(user_environment, name));
    found.extend(named.map(Utf8PathBuf::from));
    let path = find_variable(user_environment, "PATH").unwrap_or_default();
    found.extend(path.split(':').map(Utf8PathBuf::from));
    found.retain(|path| {
        !is_in_system(path)
            && is_narrow(path, home)
            && !writable.iter().any(|folder| path.starts_with(folder))
            && leads_to_narrow(path, home)
    });
    found.sort();
    found.dedup();
    found
}

/// Returns true if a path is narrow enough to be a tool chain: not the root, a home, a parent of a home, or a location
/// of credentials.
fn is_narrow(path: &Utf8Path, home: Option<&Utf8Path>) -> bool {
    let plain = path.components().all(|part| !matches!(part.as_str(), "." | ".."));
    let holds_credentials = HOLDS_CREDENTIALS.iter().any(|place| {
        contains_parts(path, Utf8Path::new(place))
            || home.is_some_and(|home| home.join(place).starts_with(path))
    });
    path.is_absolute()
        && plain
        && path.components().count() > 2
        && home.is_none_or(|home| !home.starts_with(path))
        && !holds_credentials
}

/// Returns true if the path is still narrow once symlinks are resolved. Paths that do not exist pass.
fn leads_to_narrow(path: &Utf8Path, home: Option<&Utf8Path>) -> bool {
    let real_home = home.and_then(|home| home.canonicalize_utf8().ok());
    match path.canonicalize_utf8() {
        Ok(real) => is_in_system(&real) || is_narrow(&real, real_home.as_deref().or(home)),
        Err(_) => true,
    }
}

fn is_in_system(path: &Utf8Path) -> bool {
    SYSTEM.iter().any(|system| path.starts_with(system))
}

/// Returns true if `path` contains the components of `parts` consecutively.
fn contains_parts(path: &Utf8Path, parts: &Utf8Path) -> bool {
    let path: Vec<_> = path.components().collect();
    let parts: Vec<_> = parts.components().collect();
    path.windows(parts.len()).any(|window| window == parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn tool_chains_are_code_and_never_a_home() {
        let path = "/usr/bin:/home/a:/home/a/tools/bin:.:/:/home:../x:/home/a/../b/bin";
        let found = tool_chains(&[pair("HOME", "/home/a"), pair("PATH", path)], &[]);
        let found: Vec<&str> = found.iter().map(|path| path.as_str()).collect();
        assert!(found.contains(&"/home/a/tools/bin"));
        assert!(found.contains(&"/home/a/.cargo/registry"));
        for wrong in
            ["/home/a", "/", "/home", "/usr/bin", ".", "/home/a/.cargo", "/home/a/../b/bin"]
        {
            assert!(!found.contains(&wrong), "{wrong}");
        }
    }

    #[test]
    fn folders_of_credentials_are_not_tool_chains() {
        for folder in [
            "/home/a/.ssh",
            "/home/a/.ssh/bin",
            "/home/b/.aws",
            "/home/a/.gnupg",
            "/home/a/.config",
            "/home/a/.config/gh",
            "/home/a/.local",
            "/home/a/.local/share",
            "/home/a/.cargo",
        ] {
            let named = [
                pair("HOME", "/home/a"),
                pair("PATH", folder),
                pair("JAVA_HOME", folder),
                pair("RUSTUP_HOME", folder),
            ];
            let found = tool_chains(&named, &[]);
            assert!(!found.contains(&Utf8PathBuf::from(folder)), "{folder}: {found:?}");
        }
        let named = [pair("HOME", "/home/a"), pair("PATH", "/home/a/.config/composer/vendor/bin")];
        assert!(tool_chains(&named, &[]).iter().any(|path| path.ends_with("composer/vendor/bin")));
    }

    #[test]
    fn a_link_to_credentials_is_not_a_tool_chain() {
        let scratch = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(scratch.path()).unwrap().canonicalize_utf8().unwrap();
        std::fs::create_dir_all(home.join(".ssh")).unwrap();
        std::fs::create_dir_all(home.join("tools/bin")).unwrap();
        std::os::unix::fs::symlink(home.join(".ssh"), home.join("linked")).unwrap();
        std::os::unix::fs::symlink(&home, home.join("all")).unwrap();
        let path = format!("{home}/linked:{home}/all:{home}/tools/bin");
        let found = tool_chains(&[pair("HOME", home.as_str()), pair("PATH", &path)], &[]);
        assert!(!found.contains(&home.join("linked")), "{found:?}");
        assert!(!found.contains(&home.join("all")), "{found:?}");
        assert!(found.contains(&home.join("tools/bin")), "{found:?}");
    }

    #[test]
    fn a_tool_chain_in_a_writable_folder_is_left_out() {
        let work = Utf8PathBuf::from("/home/a/project");
        let named = [pair("HOME", "/home/a"), pair("PATH", "/home/a/project/node_modules/.bin")];
        let found = tool_chains(&named, std::slice::from_ref(&work));
        assert!(!found.iter().any(|path| path.starts_with(&work)), "{found:?}");
    }
}
