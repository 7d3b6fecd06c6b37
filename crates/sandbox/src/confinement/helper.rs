//! The helper: sets up the sandbox, starts the program inside it, and supervises it until it ends.
//!
//! With namespaces it runs in two stages. The outer stage creates the namespaces and supervises. The inner stage is PID
//! 1 of the PID namespace, so the kernel kills every process in there when it exits. It builds the file system, applies
//! Landlock and the seccomp filter, starts the program and reaps orphaned processes. Without namespaces, a thread of
//! the supervisor restricts only itself and then starts the program.

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use camino::{Utf8Path, Utf8PathBuf};
use nix::sys::signal::SigSet;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal, WaitOptions};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::policy::{POLICY_VARIABLE, Policy, Stage, Walls};
use super::probe::REPORT;
use crate::process::measure::THREADS_PER_PROCESS;
use crate::process::supervisor::{MARKER_VARIABLE, SUPERVISE_WORD, SupervisorOrder};

mod attempts;
mod filter;
mod namespaces;
mod root;
mod rules;
mod supervise;

use self::attempts::Descendants;
use self::supervise::{Start, supervise};

/// Exit code if the helper itself failed. Shells use it for a program that cannot be executed.
const REFUSED: u8 = 126;
/// Exit code if the program does not exist.
const NOT_FOUND: u8 = 127;
/// The nice value added to a program, relative to its supervisor.
const PRIORITY_STEP: i32 = 5;

/// A sandbox layer that could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {reason}")]
struct Refused {
    step: &'static str,
    reason: String,
}

/// Adds the name of the failed step to an error.
trait During<T> {
    fn during(self, step: &'static str) -> Result<T, Refused>;
}

impl<T, E: std::fmt::Display> During<T> for Result<T, E> {
    fn during(self, step: &'static str) -> Result<T, Refused> {
        self.map_err(|error| Refused { step, reason: error.to_string() })
    }
}

pub(super) fn main(args: &[String]) -> ExitCode {
    if let Some((word, rest)) = args.split_first()
        && word == SUPERVISE_WORD
    {
        return unconfined(rest).unwrap_or_else(|refused| told(&refused, REFUSED));
    }
    confined(args).unwrap_or_else(|refused| told(&refused, REFUSED))
}

/// Sets up the sandbox that the policy in the environment asks for, and runs the program in it.
fn confined(args: &[String]) -> Result<ExitCode, Refused> {
    let (policy, program) = (policy_of_environment()?, program_in(args)?);
    match (policy.walls, policy.stage) {
        (Walls::All, Stage::Outer) => outer(policy, program),
        (Walls::All, Stage::Inner) => inner(&policy, program),
        (Walls::Unprivileged, _) => alone(&policy, program),
        (Walls::FilterOnly, Stage::Outer) => prepared(policy, program),
        (Walls::FilterOnly, Stage::Inner) => filtered(&policy, program),
    }
}

#[expect(clippy::print_stderr, reason = "standard error is the helper's only channel")]
fn told(message: &dyn std::fmt::Display, code: u8) -> ExitCode {
    eprintln!("sandbox: {message}");
    ExitCode::from(code)
}

/// Returns the program and its arguments: everything after `--`.
fn program_in(args: &[String]) -> Result<&[String], Refused> {
    let [dashes, program @ ..] = args else {
        return Err("-- PROGRAM [ARGS...] expected").during("arguments");
    };
    if dashes != "--" || program.is_empty() {
        return Err("`--` and a program expected").during("arguments");
    }
    Ok(program)
}

fn policy_of_environment() -> Result<Policy, Refused> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the policy is all that the helper reads from it"
    )]
    let policy = std::env::var(POLICY_VARIABLE).during("policy")?;
    serde_json::from_str(&policy).during("policy")
}

/// Supervises a program without confining it.
fn unconfined(args: &[String]) -> Result<ExitCode, Refused> {
    let Some((order, rest)) = args.split_first() else {
        return Err("ORDER -- PROGRAM [ARGS...] expected").during("arguments");
    };
    let order: SupervisorOrder = serde_json::from_str(order).during("order")?;
    let program = program_in(rest)?;
    close_inherited()?;
    let mut command = plain_command(program);
    let start = || Ok(start(command.env(MARKER_VARIABLE, &order.marker), program));
    supervise(&order, || in_thread(start))
}

/// Starts a program from a thread with a lower priority than the supervisor. The supervisor keeps its own, so that it
/// still gets to run when the program has started very many processes. Priority and sandbox restrictions apply per
/// thread.
fn in_thread(start: impl FnOnce() -> Result<Start, Refused> + Send) -> Result<Start, Refused> {
    let lowered = || {
        lower_priority();
        start()
    };
    let joined = std::thread::scope(|scope| scope.spawn(lowered).join());
    joined.map_err(|_| "it panicked").during("thread of the program")?
}

fn lower_priority() {
    // Has no effect if the user has already lowered the priority further.
    let _ = rustix::process::nice(PRIORITY_STEP);
}

/// Creates the namespaces and supervises the inner stage.
fn outer(mut policy: Policy, program: &[String]) -> Result<ExitCode, Refused> {
    prepare(&policy)?;
    let order = policy.supervisor.clone();
    supervise(&order, || {
        // Enter the namespaces only now: `supervise` has already opened `/proc` and the snapshot.
        namespaces::enter(policy.network)?;
        policy.stage = Stage::Inner;
        // A new PID namespace applies only to children, so start the helper again as its PID 1.
        let mut inside = Command::new("/proc/self/exe");
        inside.args(policy.helper.iter().skip(1)).arg("--").args(program);
        inside.env_clear().envs([policy.helper_environment()]);
        let child = inside.process_group(0).spawn();
        child.during("start in the namespaces").map(|child| Start::Child(child.id()))
    })
}

/// Runs as PID 1 of the PID namespace.
fn inner(policy: &Policy, program: &[String]) -> Result<ExitCode, Refused> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).during("parent")?;
    SigSet::empty().thread_set_mask().during("signals")?;
    lower_priority();
    root::build(policy)?;
    if let Some(most) = policy.supervisor.limits.processes_max {
        // The kernel counts the tasks of a user namespace separately. This process is one of them.
        let tasks_max = most.saturating_mul(THREADS_PER_PROCESS).saturating_add(1);
        limit(Resource::Nproc, tasks_max)?;
        namespaces::limit_tasks(tasks_max);
    }
    // No program is running here yet that could replace these folders with a link.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |folder: &Utf8PathBuf| rustix::fs::open(folder.as_str(), flags, Mode::empty());
    let private = policy.private_folders().iter().map(open).collect::<Result<Vec<_>, _>>();
    confine(
        policy,
        &private.during("private folder")?,
        filter::OtherProcesses::Hidden,
        Descendants::MaybeHidden,
    )?;
    first_process(policy, program)
}

/// Starts the program from PID 1 of a PID namespace, and reaps orphaned processes.
fn first_process(policy: &Policy, program: &[String]) -> Result<ExitCode, Refused> {
    // The program can see this process, which is less restricted, so it must not be able to write to its memory.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).during("memory")?;
    let child = match command(policy, program).spawn() {
        Ok(child) => child,
        Err(error) => return Ok(not_started(program, &error)),
    };
    reap_until(child.id())
}

/// Confines the program without namespaces. The restrictions apply to the calling thread and its children, not to the
/// supervisor.
fn alone(policy: &Policy, program: &[String]) -> Result<ExitCode, Refused> {
    let private = prepare(policy)?;
    let confined = || {
        confine(policy, &private, filter::OtherProcesses::Visible, Descendants::of_supervisor())?;
        Ok(start(&mut command(policy, program), program))
    };
    supervise(&policy.supervisor, || in_thread(confined))
}

/// Prepares and supervises another sandbox (`bwrap`), which starts this helper again inside.
fn prepared(mut policy: Policy, program: &[String]) -> Result<ExitCode, Refused> {
    prepare(&policy)?;
    policy.stage = Stage::Inner;
    let mut sandbox = plain_command(program);
    sandbox.env_clear().envs([policy.helper_environment()]);
    supervise(&policy.supervisor, || Ok(start(&mut sandbox, program)))
}

/// Starts a program in a process group of its own.
fn start(command: &mut Command, program: &[String]) -> Start {
    match command.process_group(0).spawn() {
        Ok(child) => Start::Child(child.id()),
        Err(error) => Start::Failed(not_started(program, &error)),
    }
}

/// Installs the filter inside another sandbox (`bwrap`), as PID 1 of its PID namespace.
fn filtered(policy: &Policy, program: &[String]) -> Result<ExitCode, Refused> {
    close_inherited()?;
    rustix::thread::set_no_new_privs(true).during("no new privileges")?;
    filter::apply(policy.network, filter::OtherProcesses::Hidden)?;
    if policy.report {
        attempts::tell(policy, Descendants::MaybeHidden);
    }
    first_process(policy, program)
}

/// Does everything that has to happen before the sandbox is set up. Returns handles of the folders that the program may
/// write to besides its work folder.
fn prepare(policy: &Policy) -> Result<Vec<OwnedFd>, Refused> {
    close_inherited()?;
    limit(Resource::Core, 0)?;
    let made = std::fs::create_dir_all(&policy.private).map_err(|error| {
        let private = &policy.private;
        format!("{private}: {error}; set XDG_CACHE_HOME to a folder that you may write to")
    });
    made.during("private folder")?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let private = rustix::fs::open(policy.private.as_str(), flags, Mode::empty());
    let private = private.during("private folder")?;
    open_or_create(&private, &policy.private.join("root")).during("private folder")?;
    let folders = policy.private_folders();
    let opened = folders.iter().map(|folder| open_or_create(&private, folder));
    opened.collect::<Result<_, _>>().during("private folder")
}

/// Opens a folder of the private folder, and creates it if it does not exist.
fn open_or_create(private: &OwnedFd, folder: &Utf8Path) -> rustix::io::Result<OwnedFd> {
    let name = folder.file_name().unwrap_or_default();
    match rustix::fs::statat(private, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {}
        found => {
            // An earlier program may have left a link to some other folder.
            if found.is_ok() {
                rustix::fs::unlinkat(private, name, AtFlags::empty())?;
            }
            rustix::fs::mkdirat(private, name, Mode::from_raw_mode(0o777))?;
        }
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(private, name, flags, Mode::empty())
}

fn confine(
    policy: &Policy,
    private: &[OwnedFd],
    others: filter::OtherProcesses,
    descendants: Descendants,
) -> Result<(), Refused> {
    // This also sets no-new-privileges, which Landlock and seccomp require.
    drop_capabilities()?;
    let abi = rules::apply(policy, private)?;
    filter::apply(policy.network, others)?;
    if policy.report {
        report(abi);
        attempts::tell(policy, descendants);
    }
    Ok(())
}

#[expect(clippy::print_stderr, reason = "the probe reads it")]
fn report(abi: u32) {
    eprintln!("{REPORT}{abi}");
}

/// The command for the program itself, with the policy's environment and none of the helper's own.
fn command(policy: &Policy, program: &[String]) -> Command {
    let mut command = plain_command(program);
    let environment = policy.environment.iter().map(|(name, value)| (name, value));
    command.env_clear().envs(environment).env(MARKER_VARIABLE, &policy.supervisor.marker);
    command
}

fn plain_command(program: &[String]) -> Command {
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]);
    command
}

fn not_started(program: &[String], error: &std::io::Error) -> ExitCode {
    let code = if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { REFUSED };
    told(&format!("`{}` cannot be started: {error}", program[0]), code)
}

/// Reaps processes until the main one ends. As PID 1, this process inherits all orphans; when it exits, the kernel
/// kills the remaining ones.
fn reap_until(main: u32) -> Result<ExitCode, Refused> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if u32::try_from(pid.as_raw_pid()) == Ok(main) => {
                return Ok(exit_code(status.exit_status(), status.terminating_signal()));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).during("wait"),
        }
    }
}

fn exit_code(code: Option<i32>, signal: Option<i32>) -> ExitCode {
    let number = code.or(signal.map(|signal| 128 + signal));
    ExitCode::from(number.and_then(|number| u8::try_from(number).ok()).unwrap_or(u8::MAX))
}

/// Closes inherited file descriptors above 2, through which a program could reach files outside the sandbox.
fn close_inherited() -> Result<(), Refused> {
    let entries = std::fs::read_dir("/proc/self/fd").during("open files")?;
    let open: Vec<i32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // Ignore the error for the descriptor that listed them: it is already closed.
        let _ = nix::unistd::close(fd);
    }
    Ok(())
}

fn limit(resource: Resource, most: u64) -> Result<(), Refused> {
    let now = rustix::process::getrlimit(resource);
    let most = now.maximum.map_or(most, |maximum| maximum.min(most));
    let limit = Rlimit { current: Some(most), maximum: Some(most) };
    rustix::process::setrlimit(resource, limit).during("limits")
}

fn drop_capabilities() -> Result<(), Refused> {
    for capability in CapabilitySet::all().iter() {
        // This fails without `CAP_SETPCAP`; then no-new-privileges keeps the program from gaining any capability.
        let _ = rustix::thread::remove_capability_from_bounding_set(capability);
    }
    rustix::thread::clear_ambient_capability_set().during("capabilities")?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets).during("capabilities")?;
    rustix::thread::set_no_new_privs(true).during("no new privileges")
}
