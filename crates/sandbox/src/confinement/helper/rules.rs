//! Landlock: allows access to the listed paths and denies everything else.

use std::os::fd::OwnedFd;

use camino::{Utf8Path, Utf8PathBuf};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};

use super::{SandboxSetupError, WithStep};
use crate::confinement::NetworkAccess;
use crate::confinement::policy::{
    DEVICES, RESOLVER, SYSTEM, SandboxLayers, SandboxPolicy, secrets_beneath,
};

/// The newest ABI version that we know. An older kernel enforces the part that it supports.
const NEWEST: ABI = ABI::V9;

/// Files about the machine that stay readable when the rest of `/proc` is closed. `/proc/self` is left out: a rule
/// would apply to the supervisor's folder, which shows the user's mounts and connections.
const PROCESS_FILES: &[&str] = &[
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/uptime",
    "/proc/version",
    "/proc/loadavg",
    "/proc/filesystems",
];

/// Restricts this thread and its children. Returns the ABI version in force.
pub(super) fn apply_rules(
    policy: &SandboxPolicy,
    private: &[OwnedFd],
) -> Result<u32, SandboxSetupError> {
    let rules = create_ruleset(policy)?;
    let rules = add_system_rules(rules, policy)?;
    let rules = add_folder_rules(rules, policy, private)?;
    let status = rules.restrict_self().during("Landlock")?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => Err("the kernel does not enforce it").during("Landlock"),
        (_, LandlockStatus::Available { effective_abi, .. }) => Ok(effective_abi as u32),
        _ => Err("the kernel does not have it").during("Landlock"),
    }
}

fn create_ruleset(policy: &SandboxPolicy) -> Result<RulesetCreated, SandboxSetupError> {
    let rules = Ruleset::default().handle_access(AccessFs::from_all(NEWEST)).during("Landlock")?;
    let rules = match policy.network {
        NetworkAccess::Off => {
            rules.handle_access(AccessNet::from_all(NEWEST)).during("Landlock")?
        }
        NetworkAccess::On => rules,
    };
    rules.scope(Scope::from_all(NEWEST)).during("Landlock")?.create().during("Landlock")
}

fn add_system_rules(
    rules: RulesetCreated,
    policy: &SandboxPolicy,
) -> Result<RulesetCreated, SandboxSetupError> {
    let read = AccessFs::from_read(NEWEST);
    let list = AccessFs::ReadFile | AccessFs::ReadDir;
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
    let (etc, system): (Vec<&str>, Vec<&str>) = SYSTEM.iter().partition(|path| **path == "/etc");
    let rules = add_paths(rules, system, read)?;
    // With namespaces, mounts cover the secrets.
    let rules = if policy.walls == SandboxLayers::All || !rustix::process::geteuid().is_root() {
        add_paths(rules, etc, read)?
    } else {
        add_paths(rules, etc_without_secrets(), read)?
    };
    let rules = match policy.network {
        NetworkAccess::Off => rules,
        NetworkAccess::On => add_paths(rules, RESOLVER, read)?,
    };
    let rules = add_paths(rules, DEVICES, device)?;
    match policy.walls {
        // The root contains only what the policy names, so listing it reveals nothing.
        SandboxLayers::All => {
            let rules = add_paths(rules, ["/"], AccessFs::ReadDir.into())?;
            let rules =
                add_paths(rules, ["/dev/shm", "/tmp", "/var/tmp"], AccessFs::from_all(NEWEST))?;
            add_paths(rules, ["/proc"], list)
        }
        SandboxLayers::Unprivileged | SandboxLayers::FilterOnly => {
            add_paths(rules, PROCESS_FILES, list)
        }
    }
}

/// Takes the private folders as handles, because their paths could lead elsewhere by now.
fn add_folder_rules(
    rules: RulesetCreated,
    policy: &SandboxPolicy,
    private: &[OwnedFd],
) -> Result<RulesetCreated, SandboxSetupError> {
    let rules = add_paths(rules, &policy.read, AccessFs::from_read(NEWEST))?;
    let mut rules = add_paths(rules, &policy.write, AccessFs::from_all(NEWEST))?;
    for folder in private {
        let rule = PathBeneath::new(folder, AccessFs::from_all(NEWEST));
        rules = rules.add_rule(rule).during("Landlock")?;
    }
    Ok(rules)
}

/// Adds rules for paths. Missing paths are skipped: programs cannot reach them either.
fn add_paths<P: AsRef<std::path::Path>>(
    rules: RulesetCreated,
    paths: impl IntoIterator<Item = P>,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, SandboxSetupError> {
    rules.add_rules(path_beneath_rules(paths, access)).during("Landlock")
}

/// Lists every entry of `/etc` that is not a secret: Landlock has no exceptions for a folder's entries.
fn etc_without_secrets() -> Vec<Utf8PathBuf> {
    let mut paths = Vec::new();
    let mut folders = vec![Utf8PathBuf::from("/etc")];
    let secrets = secrets_beneath(Utf8Path::new("/etc"));
    while let Some(folder) = folders.pop() {
        let Ok(entries) = folder.read_dir_utf8() else { continue };
        let entries = entries.flatten().map(camino::Utf8DirEntry::into_path);
        for path in entries.filter(|path| !path.is_symlink()) {
            if secrets.contains(&path) {
                continue;
            }
            if secrets.iter().any(|secret| secret.starts_with(&path)) {
                folders.push(path);
            } else {
                paths.push(path);
            }
        }
    }
    paths
}
