//! Namespaces for users, mounts, processes, messages and, unless it is allowed, the network.

use std::fs::OpenOptions;
use std::io::Write;

use nix::sched::{CloneFlags, unshare};
use rustix::thread::{
    CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities,
};

use super::{During, Refused};
use crate::sandbox::Network;

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
