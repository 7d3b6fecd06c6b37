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

use crate::confinement::SandboxGuarantee;
use crate::confinement::policy::{SECRETS, SandboxLayers, SandboxPolicy, find_variable};
use crate::confinement::probe::{ABSTRACT_SOCKET, GUARANTEE, OUTSIDE, PROBER, PROTECTED_FILE};
use crate::process::table::ProcessTable;

/// Records whether the supervisor finds every descendant, including those that `/proc` hides from it (`hidepid`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DescendantVisibility {
    /// The supervisor adopts orphans, and the kernel lists its children.
    AllFound,
    /// The supervisor may miss some of them.
    MaybeHidden,
}

impl DescendantVisibility {
    /// Checks from the supervisor, before it sets up the sandbox.
    pub(super) fn of_supervisor() -> DescendantVisibility {
        let lists_children = || ProcessTable::open().ok().and_then(|table| table.own_children());
        if is_adopting() && lists_children().is_some() {
            DescendantVisibility::AllFound
        } else {
            DescendantVisibility::MaybeHidden
        }
    }
}

/// Prints every guarantee that holds on standard error, one per line.
#[expect(clippy::print_stderr, reason = "the probe reads it")]
pub(super) fn report_guarantees(policy: &SandboxPolicy, descendants: DescendantVisibility) {
    let holds = |guarantee: &&SandboxGuarantee| is_guaranteed(**guarantee, policy, descendants);
    for guarantee in SandboxGuarantee::ALL.iter().filter(holds) {
        eprintln!("{GUARANTEE}{guarantee}");
    }
}

fn is_guaranteed(
    guarantee: SandboxGuarantee,
    policy: &SandboxPolicy,
    descendants: DescendantVisibility,
) -> bool {
    let named = |name| find_variable(&policy.environment, name).unwrap_or_default();
    let outside = Path::new(named(OUTSIDE));
    match guarantee {
        SandboxGuarantee::FilesConfined => {
            File::open(outside.join("secret")).is_err()
                && File::create(outside.join("new")).is_err()
        }
        // File permissions already protect the secrets from users other than root.
        SandboxGuarantee::SecretsUnreadable => {
            !rustix::process::geteuid().is_root()
                || SECRETS.iter().all(|secret| !shows_something(secret))
        }
        SandboxGuarantee::MetadataConfined => mode_fails(&outside.join("secret"), 0o640),
        SandboxGuarantee::ProtectedPathsReadOnly => {
            OpenOptions::new().append(true).open(policy.dir.join(PROTECTED_FILE)).is_err()
        }
        SandboxGuarantee::NoSetuidFiles => {
            let file = policy.temporary_folder().join("special");
            File::create(&file).is_ok()
                && mode_fails(file.as_std_path(), 0o4755)
                && mode_fails(file.as_std_path(), 0o2755)
        }
        SandboxGuarantee::NetworkOff => {
            TcpListener::bind("127.0.0.1:0").is_err() && UdpSocket::bind("127.0.0.1:0").is_err()
        }
        SandboxGuarantee::UnixSocketsClosed => {
            let name = SocketAddr::from_abstract_name(named(ABSTRACT_SOCKET));
            name.is_ok_and(|name| UnixStream::connect_addr(&name).is_err())
                && UnixStream::connect(outside.join("socket")).is_err()
                && UnixStream::connect(policy.dir.join("socket")).is_err()
        }
        SandboxGuarantee::SignalsScoped => {
            has_own_process_numbers(policy) || signals_are_scoped(policy)
        }
        // A program that can kill the supervisor and its parent can outlive its command.
        SandboxGuarantee::ProcessesEndWithCommand => {
            has_own_process_numbers(policy)
                || (descendants == DescendantVisibility::AllFound && signals_are_scoped(policy))
        }
    }
}

/// Returns true if the prober's process cannot be signalled.
fn signals_are_scoped(policy: &SandboxPolicy) -> bool {
    let prober =
        find_variable(&policy.environment, PROBER).unwrap_or_default().parse().map(Pid::from_raw);
    prober.is_ok_and(|prober| kill(prober, None).is_err())
}

/// Returns true if the processes are in a PID namespace of their own, so that they end with it.
fn has_own_process_numbers(policy: &SandboxPolicy) -> bool {
    match policy.walls {
        SandboxLayers::All | SandboxLayers::FilterOnly => std::process::id() == 1,
        SandboxLayers::Unprivileged => false,
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
