//! Translates a policy into arguments for `bwrap`.

use camino::{Utf8Path, Utf8PathBuf};

use super::Network;
use super::policy::{Policy, RESOLVER, SYSTEM};
use crate::process::Spawn;

/// Kernel interfaces that root can write to, even as root of a namespace.
const KERNEL: &[&str] = &["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"];

/// Returns all arguments up to the program. `bwrap` itself skips the `-try` paths that do not exist.
pub(super) fn args(policy: &Policy, spawn: &Spawn) -> Vec<String> {
    let mut args = Args(Vec::new());
    args.words(&["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]);
    // Make our helper PID 1. `bwrap`'s own init process would run without the filter, and programs could write to its
    // memory.
    args.words(&["--as-pid-1"]);
    if policy.network == Network::On {
        args.words(&["--share-net"]);
    }
    SYSTEM.iter().for_each(|path| args.mount("--ro-bind-try", path));
    if policy.network == Network::On {
        RESOLVER.iter().for_each(|path| args.mount("--ro-bind-try", path));
    }
    args.words(&["--proc", "/proc", "--dev", "/dev"]);
    KERNEL.iter().for_each(|path| args.mount("--ro-bind-try", path));
    let temporary = policy.temporary();
    for place in ["/tmp", "/var/tmp"] {
        args.words(&["--bind", temporary.as_str(), place]);
    }
    for (path, how) in in_order(policy) {
        args.mount(how, path.as_str());
    }
    protect(&mut args, policy);
    if let Some(helper) = policy.helper.first() {
        args.mount("--ro-bind", helper);
    }
    args.words(&["--chdir", spawn.dir.as_str(), "--"]);
    args.0
}

struct Args(Vec<String>);

impl Args {
    fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(|word| (*word).to_owned()));
    }

    fn mount(&mut self, how: &str, path: &str) {
        self.words(&[how, path, path]);
    }
}

/// Sorts parents before children, so that the mount of a nested folder comes later and wins.
fn in_order(policy: &Policy) -> Vec<(Utf8PathBuf, &'static str)> {
    let read = policy.read.iter().map(|path| (path.clone(), "--ro-bind-try"));
    let write = policy.write.iter().map(|path| (path.clone(), "--bind-try"));
    let private = policy.private_folders().map(|path| (path, "--bind-try"));
    let mut mounts: Vec<_> = read.chain(write).chain(private).collect();
    mounts.sort_by(|(a, _), (b, _)| a.components().cmp(b.components()));
    mounts
}

/// Mounts protected paths read-only, and bind-mounts their parents so that they cannot be renamed away.
fn protect(args: &mut Args, policy: &Policy) {
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
        args.words(&["--ro-bind", "/dev/null", socket.as_str()]);
    }
}
