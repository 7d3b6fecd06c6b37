//! What a confined program may do: the value that travels to the helper.

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::Network;
use crate::process::Spawn;
use crate::process::supervisor::SupervisorOrder;
use crate::workplace::Workplace;

/// Folders of the system that every program needs. What is missing is skipped.
pub(super) const SYSTEM: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix"];

/// Secrets of the system that only root may read, and so would a program that runs as root.
pub(super) const SECRETS: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/krb5.keytab",
];

/// Files that say where a name server is; a link in `/etc` leads to one of them.
pub(super) const RESOLVER: &[&str] = &[
    "/run/systemd/resolve/stub-resolv.conf",
    "/run/systemd/resolve/resolv.conf",
    "/run/resolvconf/resolv.conf",
    "/run/NetworkManager/resolv.conf",
];

/// Devices that give and take nothing.
pub(super) const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Tool chains in a home folder: only their code, not what lies beside it. `~/.cargo` as a whole would show
/// `credentials.toml`.
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

/// Which walls the helper puts up. Each of them must stand, or the program is not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Walls {
    /// Namespaces with a file system of their own, Landlock and a filter of system calls.
    All,
    /// Landlock and a filter of system calls.
    Unprivileged,
    /// A filter of system calls only: something else has put up the rest.
    FilterOnly,
}

/// The two lives of a helper that uses namespaces: outside of them and inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stage {
    Outer,
    Inner,
}

/// What a confined program may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Policy {
    pub(super) walls: Walls,
    pub(super) stage: Stage,
    /// How the helper is called.
    pub(super) helper: Vec<String>,
    pub(super) network: Network,
    /// Where protected paths are.
    pub(super) dir: Utf8PathBuf,
    pub(super) read: Vec<Utf8PathBuf>,
    pub(super) write: Vec<Utf8PathBuf>,
    pub(super) protected: Vec<Utf8PathBuf>,
    /// A folder for this run alone, with its home and its temporary files.
    pub(super) private: Utf8PathBuf,
    /// Tell on standard error how much the kernel enforces.
    pub(super) report: bool,
    /// The limits on the program and its descendants, and the process that they end with.
    pub(super) supervisor: SupervisorOrder,
}

impl Policy {
    pub(super) fn new(
        walls: Walls,
        helper: &[String],
        spawn: &Spawn,
        workplace: &Workplace,
        network: Network,
    ) -> Self {
        let mut read = tool_chains(&spawn.environment);
        read.extend(workplace.readable.list());
        read.push(workplace.spill_dir.clone());
        let mut write = vec![workplace.dir.clone()];
        write.extend(workplace.writable.iter().cloned());
        let private = private_dir(workplace);
        let folders = write.iter().chain([&private]).cloned().collect();
        let mut protected = workplace.protected.clone();
        if workplace.is_read_only {
            // Everything is protected, and the mounts that protect single paths would open the folders above them.
            protected.clear();
            read.append(&mut write);
        }
        Policy {
            walls,
            stage: Stage::Outer,
            helper: helper.to_vec(),
            network,
            dir: workplace.dir.clone(),
            read,
            write,
            protected,
            private,
            report: false,
            supervisor: SupervisorOrder::new(workplace.limits.usage, folders),
        }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a policy is text and lists of text")
    }

    pub(super) fn temporary(&self) -> Utf8PathBuf {
        temporary_in(&self.private)
    }

    pub(super) fn home(&self) -> Utf8PathBuf {
        home_in(&self.private)
    }
}

/// The folder that only the programs of one run share.
pub(crate) fn private_dir(workplace: &Workplace) -> Utf8PathBuf {
    workplace.spill_dir.join("private")
}

fn temporary_in(private: &Utf8Path) -> Utf8PathBuf {
    private.join("tmp")
}

fn home_in(private: &Utf8Path) -> Utf8PathBuf {
    private.join("home")
}

/// The environment inside: a private home and temporary folder; tool chains that look for themselves in the home are
/// told where they are.
pub(super) fn confined_environment(
    environment: Vec<(String, String)>,
    private: &Utf8Path,
) -> Vec<(String, String)> {
    let get = |name: &str| value(&environment, name).map(str::to_owned);
    let home = get("HOME");
    let mut set = vec![
        ("HOME", home_in(private).into_string()),
        ("TMPDIR", temporary_in(private).into_string()),
    ];
    if let Some(home) = home {
        for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            let there = get(name).unwrap_or_else(|| format!("{home}/{folder}"));
            set.push((name, there));
        }
    }
    let mut confined: Vec<_> = environment
        .into_iter()
        .filter(|(name, _)| set.iter().all(|(other, _)| other != name))
        .collect();
    confined.extend(set.into_iter().map(|(name, value)| (name.to_owned(), value)));
    confined
}

/// Where the tool chains are that an environment names, there or not.
pub(super) fn tool_chains(environment: &[(String, String)]) -> Vec<Utf8PathBuf> {
    let home = value(environment, "HOME").map(Utf8Path::new).filter(|home| home.is_absolute());
    let mut found = Vec::new();
    if let Some(home) = home.filter(|home| home.parent().is_some()) {
        found.extend(TOOL_CHAINS.iter().map(|folder| home.join(folder)));
    }
    if let Some(cargo) = value(environment, "CARGO_HOME") {
        found.extend(CARGO_HOME.iter().map(|part| Utf8Path::new(cargo).join(part)));
    }
    let named = ["RUSTUP_HOME", "PYENV_ROOT", "NVM_DIR", "GOROOT", "JAVA_HOME", "VIRTUAL_ENV"];
    found.extend(named.iter().filter_map(|name| value(environment, name)).map(Utf8PathBuf::from));
    let path = value(environment, "PATH").unwrap_or_default();
    found.extend(path.split(':').map(Utf8PathBuf::from));
    found.retain(|path| is_narrow(path, home));
    found.sort();
    found.dedup();
    found
}

/// A folder of programs, not one that holds everything else: neither the root, nor a home, nor what is above it.
fn is_narrow(path: &Utf8Path, home: Option<&Utf8Path>) -> bool {
    let plain = path.components().all(|part| !matches!(part.as_str(), "." | ".."));
    path.is_absolute()
        && plain
        && path.components().count() > 2
        && home.is_none_or(|home| !home.starts_with(path))
        && !SYSTEM.iter().any(|system| path.starts_with(system))
}

fn value<'a>(environment: &'a [(String, String)], name: &str) -> Option<&'a str> {
    environment.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
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
        let found = tool_chains(&[pair("HOME", "/home/a"), pair("PATH", path)]);
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
    fn the_home_inside_is_private_and_tool_chains_are_still_found() {
        let environment = vec![pair("HOME", "/home/a"), pair("RUSTUP_HOME", "/opt/rustup")];
        let confined = confined_environment(environment, Utf8Path::new("/run/p"));
        assert_eq!(
            confined,
            [
                pair("HOME", "/run/p/home"),
                pair("TMPDIR", "/run/p/tmp"),
                pair("CARGO_HOME", "/home/a/.cargo"),
                pair("RUSTUP_HOME", "/opt/rustup"),
            ]
        );
    }
}
