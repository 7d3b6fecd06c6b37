//! Translates a policy into arguments for `bwrap`.

use camino::{Utf8Path, Utf8PathBuf};

use super::NetworkAccess;
use super::policy::{RESOLVER, SYSTEM, SandboxPolicy};
use crate::process::ProcessSpec;

/// Kernel interfaces that root can write to, even as root of a namespace.
const KERNEL: &[&str] = &["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"];

/// Returns all arguments up to the program. `bwrap` itself skips the `-try` paths that do not exist.
pub(super) fn build_args(policy: &SandboxPolicy, spawn: &ProcessSpec) -> Vec<String> {
    let mut args = BwrapArgs(Vec::new());
    args.push_words(&["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]);
    // Make our helper PID 1. `bwrap`'s own init process would run without the filter, and programs could write to its
    // memory.
    args.push_words(&["--as-pid-1"]);
    if policy.network == NetworkAccess::On {
        args.push_words(&["--share-net"]);
    }
    SYSTEM.iter().for_each(|path| args.mount("--ro-bind-try", path));
    if policy.network == NetworkAccess::On {
        RESOLVER.iter().for_each(|path| args.mount("--ro-bind-try", path));
    }
    args.push_words(&["--proc", "/proc", "--dev", "/dev"]);
    KERNEL.iter().for_each(|path| args.mount("--ro-bind-try", path));
    let temporary = policy.temporary_folder();
    for place in ["/tmp", "/var/tmp"] {
        args.push_words(&["--bind", temporary.as_str(), place]);
    }
    for (path, how) in sorted_mounts(policy) {
        args.mount(how, path.as_str());
    }
    protect_paths(&mut args, policy);
    if let Some(helper) = policy.helper.first() {
        args.mount("--ro-bind", helper);
    }
    args.push_words(&["--chdir", spawn.dir.as_str(), "--"]);
    args.0
}

struct BwrapArgs(Vec<String>);

impl BwrapArgs {
    fn push_words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(|word| (*word).to_owned()));
    }

    fn mount(&mut self, how: &str, path: &str) {
        self.push_words(&[how, path, path]);
    }
}

/// Sorts parents before children, so that the mount of a nested folder comes later and wins.
fn sorted_mounts(policy: &SandboxPolicy) -> Vec<(Utf8PathBuf, &'static str)> {
    let read = policy.read.iter().map(|path| (path.clone(), "--ro-bind-try"));
    let write = policy.write.iter().map(|path| (path.clone(), "--bind-try"));
    let private = policy.private_folders().map(|path| (path, "--bind-try"));
    let mut mounts: Vec<_> = read.chain(write).chain(private).collect();
    mounts.sort_by(|(a, _), (b, _)| a.components().cmp(b.components()));
    mounts
}

/// Mounts protected paths read-only, and bind-mounts their parents so that they cannot be renamed away.
fn protect_paths(args: &mut BwrapArgs, policy: &SandboxPolicy) {
    let mut pinned: Vec<&Utf8Path> = Vec::new();
    for path in &policy.protected {
        let above = path.ancestors().skip(1).take_while(|above| *above != policy.dir);
        pinned.extend(above.filter(|above| above.starts_with(&policy.dir)));
    }
    pinned.sort();
    pinned.dedup();
    pinned.iter().for_each(|path| args.mount("--bind-try", path.as_str()));
    policy.protected.iter().for_each(|path| args.mount("--ro-bind-try", path.as_str()));
    // Hide sockets behind `/dev/null`, so that connecting to them fails.
    for socket in policy.sockets.iter().filter(|socket| !socket.is_symlink() && socket.exists()) {
        args.push_words(&["--ro-bind", "/dev/null", socket.as_str()]);
    }
}
