//! Namespaces for users, mounts, processes, messages and, unless it is allowed, the network.

use std::fs::OpenOptions;
use std::io::Write;

use nix::sched::{CloneFlags, unshare};
use rustix::thread::{
    CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities,
};

use super::{During, Refused};
use crate::confinement::Network;

/// The first version of Linux in which every PID namespace has a largest process id of its own. Before, a write would
/// change the one of the machine.
const OWN_PID_MAX: (u32, u32) = (6, 14);
/// The ids that the kernel does not give out again once it has come to the largest one.
const RESERVED_PIDS: u64 = 300;

/// Moves this process into new namespaces; its children, for the one of processes. It is the same user inside.
pub(super) fn enter(network: Network) -> Result<(), Refused> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let mut flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC;
    if network == Network::Off {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    unshare(flags).during("namespaces")?;
    map("setgroups", "deny")?;
    map("uid_map", &format!("{user} {user} 1"))?;
    map("gid_map", &format!("{group} {group} 1"))?;
    keep_capabilities()
}

/// A user other than root loses the capabilities in a namespace by starting a program, and the helper's second life is
/// one. It needs two of them, and drops all before the program starts.
fn keep_capabilities() -> Result<(), Refused> {
    let needed = [CapabilitySet::SYS_ADMIN, CapabilitySet::SETPCAP];
    let mut sets = capabilities(None).during("capabilities")?;
    sets.inheritable = needed.into_iter().collect();
    set_capabilities(None, sets).during("capabilities")?;
    for capability in needed {
        configure_capability_in_ambient_set(capability, true).during("capabilities")?;
    }
    Ok(())
}

fn map(name: &str, line: &str) -> Result<(), Refused> {
    let file = OpenOptions::new().write(true).open(format!("/proc/self/{name}"));
    file.and_then(|mut file| file.write_all(line.as_bytes())).during("user namespace")
}

/// Limits the tasks of the PID namespace that this process is the first of. Unlike `RLIMIT_NPROC` this binds root too.
/// Where the kernel does not let it happen, the supervisor's count remains.
pub(super) fn limit_tasks(tasks_max: u64) {
    let system = rustix::system::uname();
    let release = version_of(&system.release().to_string_lossy());
    if release.is_some_and(|release| release >= OWN_PID_MAX) {
        let pid_max = tasks_max.saturating_add(RESERVED_PIDS).to_string();
        let file = OpenOptions::new().write(true).open("/proc/sys/kernel/pid_max");
        let _ = file.and_then(|mut file| file.write_all(pid_max.as_bytes()));
    }
}

/// The first two numbers of a release, such as `6.14.3-generic`.
fn version_of(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_their_numbers() {
        assert_eq!(version_of("6.14.3-generic"), Some((6, 14)));
        assert_eq!(version_of("6.9-rc1"), Some((6, 9)));
        assert_eq!(version_of("unknown"), None);
        assert!((6, 9) < OWN_PID_MAX && (7, 0) > OWN_PID_MAX);
    }
}
