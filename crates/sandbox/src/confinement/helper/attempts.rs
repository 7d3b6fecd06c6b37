//! Tests the guarantees of the sandbox from inside: when probing, the helper attempts what a hostile program would.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;

use nix::sys::signal::kill;
use nix::unistd::Pid;

use crate::confinement::Guarantee;
use crate::confinement::policy::{Policy, SECRETS, Walls, value};
use crate::confinement::probe::{ABSTRACT_SOCKET, GUARANTEE, OUTSIDE, PROBER, PROTECTED_FILE};
use crate::process::table::ProcessTable;

/// Records whether the supervisor finds every descendant, including those that `/proc` hides from it (`hidepid`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Descendants {
    /// The supervisor adopts orphans, and the kernel lists its children.
    AllFound,
    /// The supervisor may miss some of them.
    MaybeHidden,
}

impl Descendants {
    /// Checks from the supervisor, before it sets up the sandbox.
    pub(super) fn of_supervisor() -> Descendants {
        let lists_children = || ProcessTable::open().ok().and_then(|table| table.own_children());
        if is_adopting() && lists_children().is_some() {
            Descendants::AllFound
        } else {
            Descendants::MaybeHidden
        }
    }
}

/// Prints every guarantee that holds on standard error, one per line.
#[expect(clippy::print_stderr, reason = "the probe reads it")]
pub(super) fn tell(policy: &Policy, descendants: Descendants) {
    let holds = |guarantee: &&Guarantee| holds(**guarantee, policy, descendants);
    for guarantee in Guarantee::ALL.iter().filter(holds) {
        eprintln!("{GUARANTEE}{guarantee}");
    }
}

fn holds(guarantee: Guarantee, policy: &Policy, descendants: Descendants) -> bool {
    let named = |name| value(&policy.environment, name).unwrap_or_default();
    let outside = Path::new(named(OUTSIDE));
    match guarantee {
        Guarantee::FilesConfined => {
            File::open(outside.join("secret")).is_err()
                && File::create(outside.join("new")).is_err()
        }
        // File permissions already protect the secrets from users other than root.
        Guarantee::SecretsUnreadable => {
            !rustix::process::geteuid().is_root()
                || SECRETS.iter().all(|secret| !shows_something(secret))
        }
        Guarantee::MetadataConfined => mode_fails(&outside.join("secret"), 0o640),
        Guarantee::ProtectedPathsReadOnly => {
            OpenOptions::new().append(true).open(policy.dir.join(PROTECTED_FILE)).is_err()
        }
        Guarantee::NoSetuidFiles => {
            let file = policy.temporary().join("special");
            File::create(&file).is_ok()
                && mode_fails(file.as_std_path(), 0o4755)
                && mode_fails(file.as_std_path(), 0o2755)
        }
        Guarantee::NetworkOff => {
            TcpListener::bind("127.0.0.1:0").is_err() && UdpSocket::bind("127.0.0.1:0").is_err()
        }
        Guarantee::UnixSocketsClosed => {
            let name = SocketAddr::from_abstract_name(named(ABSTRACT_SOCKET));
            name.is_ok_and(|name| UnixStream::connect_addr(&name).is_err())
                && UnixStream::connect(outside.join("socket")).is_err()
                && UnixStream::connect(policy.dir.join("socket")).is_err()
        }
        Guarantee::SignalsScoped => has_own_process_numbers(policy) || signals_are_scoped(policy),
        // A program that can kill the supervisor and its parent can outlive its command.
        Guarantee::ProcessesEndWithCommand => {
            has_own_process_numbers(policy)
                || (descendants == Descendants::AllFound && signals_are_scoped(policy))
        }
    }
}

/// Returns true if the prober's process cannot be signalled.
fn signals_are_scoped(policy: &Policy) -> bool {
    let prober = value(&policy.environment, PROBER).unwrap_or_default().parse().map(Pid::from_raw);
    prober.is_ok_and(|prober| kill(prober, None).is_err())
}

/// Returns true if the processes are in a PID namespace of their own, so that they end with it.
fn has_own_process_numbers(policy: &Policy) -> bool {
    match policy.walls {
        Walls::All | Walls::FilterOnly => std::process::id() == 1,
        Walls::Unprivileged => false,
    }
}

/// Returns true if orphaned descendants become children of the supervisor, which kills them.
fn is_adopting() -> bool {
    rustix::process::child_subreaper().is_ok_and(|reaper| reaper.is_some())
}

fn mode_fails(path: &Path, mode: u32) -> bool {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).is_err()
}

/// Returns true if the file has a byte to read, or the folder an entry to list.
fn shows_something(path: &str) -> bool {
    let has_byte =
        File::open(path).and_then(|mut file| file.read(&mut [0])).is_ok_and(|read| read > 0);
    has_byte || std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
}
