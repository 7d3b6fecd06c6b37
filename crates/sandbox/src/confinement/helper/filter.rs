//! seccomp: denies system calls that agents' commands do not need, and network sockets if the network is off.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use super::{SandboxSetupError, WithStep};
use crate::confinement::NetworkAccess;

/// Describes whether a program can reach the user's other processes through process ids, named sockets, or System V and
/// POSIX IPC. If it can, the filter denies these. Unnamed socket pairs are always allowed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OtherProcesses {
    /// Hidden by the file system and the namespaces.
    Hidden,
    /// Only the filter protects them.
    Visible,
}

type SeccompRules = BTreeMap<i64, Vec<SeccompRule>>;

pub(super) fn install_filters(
    network: NetworkAccess,
    others: OtherProcesses,
) -> Result<(), SandboxSetupError> {
    let mut denied: SeccompRules = DENIED.iter().map(|call| (*call, Vec::new())).collect();
    denied.insert(libc::SYS_socket, deny_socket_families(network, others)?);
    denied.insert(libc::SYS_ioctl, deny_terminal_input()?);
    denied.insert(libc::SYS_clone, deny_namespaces()?);
    // Lowering the CPU time limit of another process would kill it.
    denied.insert(libc::SYS_prlimit64, vec![single_rule(0, SeccompCmpOp::Ne, 0)?]);
    denied.extend(deny_setuid_modes()?);
    if others == OtherProcesses::Visible {
        denied.extend(SHARED_WITH_OTHERS.iter().map(|call| (*call, Vec::new())));
        denied.extend(deny_priority_changes()?);
        install_filter(with_x32(ignore_schedule_changes()?), SUCCESS)?;
    }
    install_filter(with_x32(denied), libc::EPERM)?;
    // Return `ENOSYS`, because programs fall back to older calls on that, but not on `EPERM`. A filter cannot inspect
    // the flags of `clone3`, which are behind a pointer.
    let unknown = UNKNOWN.iter().map(|call| (*call, Vec::new())).collect();
    install_filter(with_x32(unknown), libc::ENOSYS)?;
    // The kernel does not count reserved space as written. Without it programs write the blocks instead, as on file
    // systems that do not support reservations.
    install_filter(with_x32(deny_reserving_space()?), libc::EOPNOTSUPP)
}

/// Denies reserving space in a file with `fallocate`; punching holes stays allowed.
fn deny_reserving_space() -> Result<SeccompRules, SandboxSetupError> {
    let punch_hole = libc::FALLOC_FL_PUNCH_HOLE.unsigned_abs();
    let others = argument_condition(1, SeccompCmpOp::MaskedEq(u64::from(punch_hole)), 0)?;
    let rules = vec![SeccompRule::new(vec![others]).during("seccomp")?];
    Ok(SeccompRules::from([(libc::SYS_fallocate, rules)]))
}

fn install_filter(rules: SeccompRules, errno: i32) -> Result<(), SandboxSetupError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).during("seccomp")?;
    let deny = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, deny, arch).during("seccomp")?;
    let program: BpfProgram = filter.try_into().during("seccomp")?;
    apply_filter(&program).during("seccomp")
}

/// Denies every socket family that is not listed. An empty list of rules denies the call unconditionally.
fn deny_socket_families(
    network: NetworkAccess,
    others: OtherProcesses,
) -> Result<Vec<SeccompRule>, SandboxSetupError> {
    let mut allowed: Vec<i32> = match network {
        NetworkAccess::Off => Vec::new(),
        NetworkAccess::On => vec![libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
    };
    if others == OtherProcesses::Hidden {
        allowed.push(libc::AF_UNIX);
    }
    if allowed.is_empty() {
        return Ok(Vec::new());
    }
    let unlisted: Result<Vec<_>, _> = allowed
        .iter()
        .map(|family| argument_condition(0, SeccompCmpOp::Ne, family.unsigned_abs()))
        .collect();
    Ok(vec![SeccompRule::new(unlisted?).during("seccomp")?])
}

/// Denies changing the priority of anything but the calling thread.
fn deny_priority_changes() -> Result<SeccompRules, SandboxSetupError> {
    let mut rules = SeccompRules::new();
    let calls =
        [(libc::SYS_setpriority, libc::PRIO_PROCESS), (libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS)];
    for (call, one_process) in calls {
        let of_call =
            [single_rule(0, SeccompCmpOp::Ne, one_process)?, single_rule(1, SeccompCmpOp::Ne, 0)?];
        rules.insert(call, of_call.into());
    }
    Ok(rules)
}

/// Makes changes to the scheduling of other threads succeed without effect. The C library names the threads of its own
/// process by id, which a filter cannot tell from other processes, and it cannot start a thread with an affinity if the
/// call fails.
fn ignore_schedule_changes() -> Result<SeccompRules, SandboxSetupError> {
    let calls = [
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
        libc::SYS_sched_setaffinity,
    ];
    calls.iter().map(|call| Ok((*call, vec![single_rule(0, SeccompCmpOp::Ne, 0)?]))).collect()
}

/// Denies injecting input into a terminal.
fn deny_terminal_input() -> Result<Vec<SeccompRule>, SandboxSetupError> {
    let requests = [libc::TIOCSTI, libc::TIOCLINUX];
    requests.iter().map(|request| single_rule(1, SeccompCmpOp::Eq, *request as u32)).collect()
}

fn deny_namespaces() -> Result<Vec<SeccompRule>, SandboxSetupError> {
    let flags = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    let masked = |flag: u32| single_rule(0, SeccompCmpOp::MaskedEq(u64::from(flag)), flag);
    flags.iter().map(|flag| masked(flag.unsigned_abs())).collect()
}

/// Denies creating setuid or setgid files and setting these bits. `mkdir` is safe: the kernel drops the bits from its
/// mode.
fn deny_setuid_modes() -> Result<SeccompRules, SandboxSetupError> {
    let mut rules = SeccompRules::new();
    for (call, mode, flags) in MODE_CALLS {
        let mut of_call = Vec::new();
        for bit in [libc::S_ISUID, libc::S_ISGID] {
            for creating in flags.map_or(&[0][..], |_| CREATING) {
                let mut conditions = vec![flag_condition(*mode, bit)?];
                if let Some(flags) = flags {
                    conditions.push(flag_condition(*flags, creating.unsigned_abs())?);
                }
                of_call.push(SeccompRule::new(conditions).during("seccomp")?);
            }
        }
        rules.insert(*call, of_call);
    }
    Ok(rules)
}

/// A condition that is true if all bits of a flag are set in an argument.
fn flag_condition(argument: u8, flag: u32) -> Result<SeccompCondition, SandboxSetupError> {
    argument_condition(argument, SeccompCmpOp::MaskedEq(u64::from(flag)), flag)
}

fn single_rule(
    argument: u8,
    operator: SeccompCmpOp,
    value: u32,
) -> Result<SeccompRule, SandboxSetupError> {
    SeccompRule::new(vec![argument_condition(argument, operator, value)?]).during("seccomp")
}

fn argument_condition(
    argument: u8,
    operator: SeccompCmpOp,
    value: u32,
) -> Result<SeccompCondition, SandboxSetupError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, u64::from(value))
        .during("seccomp")
}

/// Adds the x32 numbers of the calls. On x86-64 every call has a second number for programs with 32-bit pointers, and
/// some calls (512 to 547) exist only there; a filter without them could be bypassed.
#[cfg(target_arch = "x86_64")]
fn with_x32(mut rules: SeccompRules) -> SeccompRules {
    const X32: i64 = 0x4000_0000;
    let second: Vec<_> = rules.iter().map(|(call, rules)| (X32 | call, rules.clone())).collect();
    rules.extend(second);
    rules.extend((512..548).map(|call| (X32 | call, Vec::new())));
    rules
}

#[cfg(not(target_arch = "x86_64"))]
fn with_x32(rules: SeccompRules) -> SeccompRules {
    rules
}

/// Flags with which `open` uses its mode argument.
const CREATING: &[i32] = &[libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];

/// Calls that take a file mode: the index of the mode argument, and of the flags argument that decides whether the mode
/// is used.
const MODE_CALLS: &[(i64, u8, Option<u8>)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1, None),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1, None),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1, None),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 2, Some(1)),
    (libc::SYS_fchmod, 1, None),
    (libc::SYS_fchmodat, 2, None),
    (FCHMODAT2, 2, None),
    (libc::SYS_mknodat, 2, None),
    (libc::SYS_openat, 3, Some(2)),
];

/// With this errno, a filtered call reports success.
const SUCCESS: i32 = 0;

/// `ioprio_set` on a single process.
const IOPRIO_WHO_PROCESS: u32 = 1;

/// The number of `fchmodat2`, the same on every architecture.
const FCHMODAT2: i64 = 452;

/// IPC objects that all processes of a user share unless an IPC namespace separates them.
const SHARED_WITH_OTHERS: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

const UNKNOWN: &[i64] = &[
    libc::SYS_clone3,
    // A filter cannot inspect its mode either.
    libc::SYS_openat2,
    // Pages in a pipe are not charged to any process.
    libc::SYS_vmsplice,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

const DENIED: &[i64] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    // Keys.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // The kernel and the machine.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
];
