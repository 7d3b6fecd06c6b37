//! Namespaces for users, mounts, processes, IPC and, unless it is allowed, the network.

use std::fs::OpenOptions;
use std::io::Write;

use nix::sched::{CloneFlags, unshare};
use rustix::thread::{
    CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities,
};

use super::{SandboxSetupError, WithStep};
use crate::confinement::NetworkAccess;

/// The first Linux version with a `pid_max` per PID namespace. Before that, a write would change it for the whole
/// machine.
const OWN_PID_MAX: (u32, u32) = (6, 14);
/// Once process ids wrap around, the kernel does not reuse the ones below this.
const RESERVED_PIDS: u64 = 300;

/// Moves this process into new namespaces; for the PID namespace, its future children. The user id stays the same
/// inside.
pub(super) fn enter_namespaces(network: NetworkAccess) -> Result<(), SandboxSetupError> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let mut flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC;
    if network == NetworkAccess::Off {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    unshare(flags).during("namespaces")?;
    // The kernel requires this before an unprivileged process may write `gid_map`.
    write_id_map("setgroups", "deny")?;
    write_id_map("uid_map", &format!("{user} {user} 1"))?;
    write_id_map("gid_map", &format!("{group} {group} 1"))?;
    keep_capabilities()
}

/// Keeps two capabilities across `exec`. Users other than root lose their namespace capabilities when they execute a
/// program, and the inner stage of the helper is one. It drops all of them before the confined program starts.
fn keep_capabilities() -> Result<(), SandboxSetupError> {
    let needed = [CapabilitySet::SYS_ADMIN, CapabilitySet::SETPCAP];
    let mut sets = capabilities(None).during("capabilities")?;
    sets.inheritable = needed.into_iter().collect();
    set_capabilities(None, sets).during("capabilities")?;
    for capability in needed {
        configure_capability_in_ambient_set(capability, true).during("capabilities")?;
    }
    Ok(())
}

fn write_id_map(name: &str, line: &str) -> Result<(), SandboxSetupError> {
    let file = OpenOptions::new().write(true).open(format!("/proc/self/{name}"));
    file.and_then(|mut file| file.write_all(line.as_bytes())).during("user namespace")
}

/// Limits the number of tasks in the PID namespace of this process. Unlike `RLIMIT_NPROC`, this also applies to root.
/// If the kernel does not support it, the supervisor's own count is the only limit.
pub(super) fn limit_tasks(tasks_max: u64) {
    let system = rustix::system::uname();
    let release = parse_version(&system.release().to_string_lossy());
    if release.is_some_and(|release| release >= OWN_PID_MAX) {
        let pid_max = tasks_max.saturating_add(RESERVED_PIDS).to_string();
        let file = OpenOptions::new().write(true).open("/proc/sys/kernel/pid_max");
        let _ = file.and_then(|mut file| file.write_all(pid_max.as_bytes()));
    }
}

/// Parses the first two numbers of a kernel release, such as `6.14.3-generic`.
fn parse_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_their_numbers() {
        assert_eq!(parse_version("6.14.3-generic"), Some((6, 14)));
        assert_eq!(parse_version("6.9-rc1"), Some((6, 9)));
        assert_eq!(parse_version("unknown"), None);
        assert!((6, 9) < OWN_PID_MAX && (7, 0) > OWN_PID_MAX);
    }
}
