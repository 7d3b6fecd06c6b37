//! The policy: the permissions of a confined program, as sent to the helper.

use std::collections::{BTreeSet, HashSet};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::NetworkAccess;
use super::guard::{mounted_paths_of, snapshot_file_of};
use super::nested::{NestedPaths, found_paths, worktree_pointers};
use super::search::JUST_SEARCHED;
use super::toolchains::tool_chains;
use crate::limits::NESTED_MOUNTED_MAX;
use crate::process::ProcessSpec;
use crate::process::supervisor::{GuardedFolder, SupervisorOrder};
use crate::workplace::RunWorkplace;

/// System folders that every program needs. Missing ones are skipped.
pub(super) const SYSTEM: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix"];

/// System secrets that only root may read, and that a program running as root could read too.
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
    "/etc/security/opasswd",
];

/// Returns the system secrets beneath an `/etc`: well-known names, and every file and folder whose mode denies access
/// to ordinary users. A program that runs as root could read them.
pub(super) fn secrets_beneath(etc: &Utf8Path) -> BTreeSet<Utf8PathBuf> {
    let known = SECRETS.iter().filter_map(|secret| secret.strip_prefix("/etc/"));
    let known: Vec<Utf8PathBuf> = known.map(|secret| etc.join(secret)).collect();
    // Every command that runs as root waits for this walk, so compare paths as text, and skip symlinks, which have no
    // mode of their own.
    let known_texts: HashSet<&str> = known.iter().map(|path| path.as_str()).collect();
    let mut secrets: BTreeSet<Utf8PathBuf> = known.iter().cloned().collect();
    let mut folders = vec![etc.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = folder.read_dir_utf8() else { continue };
        for entry in entries.flatten() {
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if is_link || known_texts.contains(entry.path().as_str()) {
                continue;
            }
            let Ok(metadata) = entry.metadata() else { continue };
            let needed = if metadata.is_dir() { EXECUTED_BY_OTHERS } else { READ_BY_OTHERS };
            if metadata.mode() & needed == 0 {
                secrets.insert(entry.into_path());
            } else if metadata.is_dir() {
                folders.push(entry.into_path());
            }
        }
    }
    secrets
}

const READ_BY_OTHERS: u32 = 0o004;
const EXECUTED_BY_OTHERS: u32 = 0o001;

/// Files with the addresses of name servers, one of which is the target of a symlink in `/etc`.
pub(super) const RESOLVER: &[&str] = &[
    "/run/systemd/resolve/stub-resolv.conf",
    "/run/systemd/resolve/resolv.conf",
    "/run/resolvconf/resolv.conf",
    "/run/NetworkManager/resolv.conf",
];

/// Devices that are harmless to every program.
pub(super) const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The layers that the helper sets up. If any of them fails, the program is not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SandboxLayers {
    /// Namespaces with a file system of their own, Landlock and a seccomp filter.
    All,
    /// Landlock and a seccomp filter.
    Unprivileged,
    /// Only a seccomp filter: another sandbox provides the rest.
    FilterOnly,
}

/// The stage of a helper that uses namespaces: outside or inside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum HelperStage {
    Outer,
    Inner {
        /// The descriptor of a pipe that the outer stage closes once it has opened the counters of the inner one, which
        /// then makes itself unreadable.
        opened: Option<i32>,
    },
}

/// The environment variable that carries the policy to the helper.
pub(super) const POLICY_VARIABLE: &str = "REPERTOIRE_SANDBOX_POLICY";

/// The permissions of a confined program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SandboxPolicy {
    pub(super) walls: SandboxLayers,
    pub(super) stage: HelperStage,
    /// The command line that starts the helper.
    pub(super) helper: Vec<String>,
    pub(super) network: NetworkAccess,
    /// The work folder, which contains the protected paths.
    pub(super) dir: Utf8PathBuf,
    pub(super) read: Vec<Utf8PathBuf>,
    pub(super) write: Vec<Utf8PathBuf>,
    pub(super) protected: Vec<Utf8PathBuf>,
    /// Unix sockets in the work folder, on which other processes of the user may listen.
    pub(super) sockets: Vec<Utf8PathBuf>,
    /// A folder for this run alone, with its home and its temporary files.
    pub(super) private: Utf8PathBuf,
    /// The environment of the program. The helper sets it with the last `exec`, inside the sandbox. Neither the helper
    /// nor `bwrap` runs with it, so a variable such as `LD_PRELOAD` never loads code into a process outside.
    pub(super) environment: Vec<(String, String)>,
    /// If set, the helper reports on standard error what the kernel enforces.
    pub(super) report: bool,
    /// The limits on the program and its descendants.
    pub(super) supervisor: SupervisorOrder,
}

impl SandboxPolicy {
    pub(super) fn new(
        walls: SandboxLayers,
        helper: &[String],
        spawn: &ProcessSpec,
        workplace: &RunWorkplace,
        network: NetworkAccess,
    ) -> Self {
        let mut write = vec![workplace.dir.clone()];
        write.extend(workplace.writable.iter().cloned());
        let mut read = tool_chains(&workplace.environment, &write);
        read.extend(workplace.readable.list());
        read.push(workplace.spill_dir.clone());
        let private = private_dir(workplace);
        let folders = write.iter().chain([&private]).cloned().collect();
        let (mut protected, sockets) = mounted_paths(walls, workplace);
        if workplace.is_read_only {
            // The whole folder is read-only anyway, and the mounts for single paths would make their parents writable.
            protected.clear();
            read.append(&mut write);
        }
        let guarded = snapshot_file_of(workplace)
            .map(|picture| GuardedFolder { dir: workplace.dir.clone(), picture });
        let supervisor = SupervisorOrder::new(workplace.limits.usage, folders);
        SandboxPolicy {
            walls,
            stage: HelperStage::Outer,
            helper: helper.to_vec(),
            network,
            dir: workplace.dir.clone(),
            read,
            write,
            protected,
            sockets,
            environment: confined_environment(&spawn.environment, &workplace.environment, &private),
            private,
            report: false,
            supervisor: SupervisorOrder { guarded, ..supervisor },
        }
    }

    /// The whole environment of a helper: one variable that holds the policy.
    ///
    /// The policy is not passed as an argument because every user of the machine can read `/proc/PID/cmdline`, and the
    /// program's variables may be secret. `/proc/PID/environ` is readable only to the same user.
    pub(super) fn helper_environment(&self) -> (String, String) {
        let json = serde_json::to_string(self).expect("a policy is text and lists of text");
        (POLICY_VARIABLE.to_owned(), json)
    }

    pub(super) fn temporary_folder(&self) -> Utf8PathBuf {
        temporary_in(&self.private)
    }

    pub(super) fn home_folder(&self) -> Utf8PathBuf {
        home_in(&self.private)
    }

    /// The folders of the run that its programs may write to. Their parent is not writable: otherwise a program could
    /// replace a folder that the next program gets with a link.
    pub(super) fn private_folders(&self) -> [Utf8PathBuf; 2] {
        [self.home_folder(), self.temporary_folder()]
    }
}

/// The protected paths and sockets of a workplace to mount over. Without namespaces, no nested paths or sockets are
/// returned: the guard compares contents there, and programs cannot use Unix sockets.
fn mounted_paths(
    walls: SandboxLayers,
    workplace: &RunWorkplace,
) -> (Vec<Utf8PathBuf>, Vec<Utf8PathBuf>) {
    let mut protected = workplace.protected.clone();
    if protected.is_empty() || walls == SandboxLayers::Unprivileged {
        return (protected, Vec::new());
    }
    // Prefer the guard's selection: it stored no contents for these paths because it expects them to be mounted.
    let guarded = mounted_paths_of(workplace);
    let age_max = if guarded.is_some() { JUST_SEARCHED } else { Duration::ZERO };
    let now = workplace.searched.search(&workplace.dir, age_max);
    let mounted = guarded.unwrap_or_else(|| {
        let followed = workplace.find_followed(&now.protected);
        NestedPaths::select(&workplace.dir, found_paths(workplace, &now, &followed)).mounted.into()
    });
    protected.extend(mounted.iter().map(|path| workplace.dir.join(path)));
    protected.extend(worktree_pointers(&workplace.dir));
    let sockets = now.sockets.iter().filter_map(|path| Utf8Path::from_path(path));
    let sockets = sockets.take(NESTED_MOUNTED_MAX).map(|path| workplace.dir.join(path));
    (protected, sockets.collect())
}

/// The folder shared by the programs of one run.
pub(crate) fn private_dir(workplace: &RunWorkplace) -> Utf8PathBuf {
    workplace.spill_dir.join("private")
}

fn temporary_in(private: &Utf8Path) -> Utf8PathBuf {
    private.join("tmp")
}

fn home_in(private: &Utf8Path) -> Utf8PathBuf {
    private.join("home")
}

/// The environment inside the sandbox, with a private home and temporary folder. Variables point tool chains that are
/// normally found through `HOME` to the user's own installation.
fn confined_environment(
    program_environment: &[(String, String)],
    user_environment: &[(String, String)],
    private: &Utf8Path,
) -> Vec<(String, String)> {
    let mut set = vec![
        ("HOME", home_in(private).into_string()),
        ("TMPDIR", temporary_in(private).into_string()),
    ];
    if let Some(home) = find_variable(user_environment, "HOME") {
        for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            let named = find_variable(program_environment, name).map(str::to_owned);
            set.push((name, named.unwrap_or_else(|| format!("{home}/{folder}"))));
        }
    }
    let others = program_environment.iter();
    let others = others.filter(|(name, _)| set.iter().all(|(other, _)| other != name)).cloned();
    let mut confined: Vec<_> = others.collect();
    confined.extend(set.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    with_git_setting(confined, "core.sharedRepository", "umask")
}

/// Adds a git setting to an environment. It is used for `core.sharedRepository`: in a shared repository git sets the
/// setgid bit of folders, which the seccomp filter refuses because it cannot tell folders from programs. The kernel
/// passes the bit on to new folders anyway.
fn with_git_setting(
    mut environment: Vec<(String, String)>,
    key: &str,
    setting: &str,
) -> Vec<(String, String)> {
    const COUNT: &str = "GIT_CONFIG_COUNT";
    let count = find_variable(&environment, COUNT).and_then(|count| count.parse::<usize>().ok());
    let count = count.unwrap_or(0);
    environment.retain(|(name, _)| name != COUNT);
    environment.extend([
        (COUNT.to_owned(), (count + 1).to_string()),
        (format!("GIT_CONFIG_KEY_{count}"), key.to_owned()),
        (format!("GIT_CONFIG_VALUE_{count}"), setting.to_owned()),
    ]);
    environment
}

pub(super) fn find_variable<'a>(
    environment: &'a [(String, String)],
    name: &str,
) -> Option<&'a str> {
    environment.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn files_that_ordinary_users_cannot_read_are_secrets() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let etc = Utf8Path::from_path(dir.path()).unwrap();
        let put = |path: &str, mode: u32| {
            let path = etc.join(path);
            if path.as_str().ends_with('/') {
                std::fs::create_dir(&path).unwrap();
            } else {
                std::fs::File::create(&path).unwrap();
            }
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for (path, mode) in [("open/", 0o755), ("closed/", 0o710), ("open/key", 0o640)] {
            put(path, mode);
        }
        for (path, mode) in [("open/hosts", 0o644), ("closed/key", 0o644), ("shadow", 0o644)] {
            put(path, mode);
        }
        let mut found = secrets_beneath(etc);
        found.retain(|path| path.exists());
        assert_eq!(found, ["closed", "open/key", "shadow"].map(|path| etc.join(path)).into());
        let known = secrets_beneath(Utf8Path::new("/etc"));
        assert!(known.contains(Utf8Path::new("/etc/security/opasswd")));
    }

    #[test]
    fn the_home_inside_is_private_and_tool_chains_are_still_found() {
        let environment = vec![pair("HOME", "/home/a"), pair("RUSTUP_HOME", "/opt/rustup")];
        let confined = confined_environment(&environment, &environment, Utf8Path::new("/run/p"));
        assert_eq!(
            confined,
            [
                pair("HOME", "/run/p/home"),
                pair("TMPDIR", "/run/p/tmp"),
                pair("CARGO_HOME", "/home/a/.cargo"),
                pair("RUSTUP_HOME", "/opt/rustup"),
                pair("GIT_CONFIG_COUNT", "1"),
                pair("GIT_CONFIG_KEY_0", "core.sharedRepository"),
                pair("GIT_CONFIG_VALUE_0", "umask"),
            ]
        );
    }

    #[test]
    fn a_setting_of_git_comes_after_those_of_the_program() {
        let environment = vec![
            pair("GIT_CONFIG_COUNT", "1"),
            pair("GIT_CONFIG_KEY_0", "user.name"),
            pair("GIT_CONFIG_VALUE_0", "A"),
        ];
        let with_setting = with_git_setting(environment, "a.b", "c");
        assert_eq!(find_variable(&with_setting, "GIT_CONFIG_COUNT"), Some("2"));
        assert_eq!(find_variable(&with_setting, "GIT_CONFIG_KEY_0"), Some("user.name"));
        assert_eq!(find_variable(&with_setting, "GIT_CONFIG_KEY_1"), Some("a.b"));
    }
}
