//! The helper: puts up the walls, starts the program behind them, and supervises it to its end.
//!
//! With namespaces it lives twice. The outer life makes the namespaces and supervises; the inner one is the first process
//! of the PID namespace, so that when it ends, nothing in there survives. It builds the file system, puts up Landlock and
//! the filter, starts the program and reaps whatever the program leaves behind. Without namespaces the program is started
//! by a thread of the supervisor that has put up the walls round itself alone.

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

/// The helper itself failed; what a shell says of a program that it may not run.
const REFUSED: u8 = 126;
/// The program is not there.
const NOT_FOUND: u8 = 127;
/// The amount by which the priority of a program is lower than that of its supervisor.
const PRIORITY_STEP: i32 = 5;

/// Why a wall did not go up.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {reason}")]
struct Refused {
    step: &'static str,
    reason: String,
}

/// Names the step in which something failed.
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

/// Puts up the walls that the policy in the environment asks for, and runs the program behind them.
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

#[expect(clippy::print_stderr, reason = "the helper has nobody else to tell")]
fn told(message: &dyn std::fmt::Display, code: u8) -> ExitCode {
    eprintln!("sandbox: {message}");
    ExitCode::from(code)
}

/// The words after `--`: the program and its arguments.
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

/// Supervises a program without walls.
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

/// Starts a program from a thread with a lower priority than the supervisor, which keeps its own: it has to run also when
/// the program has started very many processes. The priority and the walls belong to the thread.
fn in_thread(start: impl FnOnce() -> Result<Start, Refused> + Send) -> Result<Start, Refused> {
    let lowered = || {
        lower_priority();
        start()
    };
    let joined = std::thread::scope(|scope| scope.spawn(lowered).join());
    joined.map_err(|_| "it panicked").during("thread of the program")?
}

fn lower_priority() {
    // It has no effect where the user has lowered it further already.
    let _ = rustix::process::nice(PRIORITY_STEP);
}

/// Makes the namespaces, and supervises the life inside them.
fn outer(mut policy: Policy, program: &[String]) -> Result<ExitCode, Refused> {
    prepare(&policy)?;
    let order = policy.supervisor.clone();
    supervise(&order, || {
        namespaces::enter(policy.network)?;
        policy.stage = Stage::Inner;
        let mut inside = Command::new("/proc/self/exe");
        inside.args(policy.helper.iter().skip(1)).arg("--").args(program);
        inside.env_clear().envs([policy.helper_environment()]);
        let child = inside.process_group(0).spawn();
        child.during("start in the namespaces").map(|child| Start::Child(child.id()))
    })
}

/// The first process of the PID namespace.
fn inner(policy: &Policy, program: &[String]) -> Result<ExitCode, Refused> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).during("parent")?;
    SigSet::empty().thread_set_mask().during("signals")?;
    lower_priority();
    root::build(policy)?;
    if let Some(most) = policy.supervisor.limits.processes_max {
        // The kernel counts tasks in a user namespace by themselves. This process is one of them.
        let tasks_max = most.saturating_mul(THREADS_PER_PROCESS).saturating_add(1);
        limit(Resource::Nproc, tasks_max)?;
        namespaces::limit_tasks(tasks_max);
    }
    // Nothing else runs here yet that could put a link in their place.
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

/// Starts the program from the first process of a PID namespace, and reaps what it leaves behind.
fn first_process(policy: &Policy, program: &[String]) -> Result<ExitCode, Refused> {
    // The program sees this process. A program that could write its memory would act with fewer walls.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).during("memory")?;
    let child = match command(policy, program).spawn() {
        Ok(child) => child,
        Err(error) => return Ok(not_started(program, &error)),
    };
    reap_until(child.id())
}

/// Without namespaces. The walls bind the thread that puts them up and what it starts, not the supervisor.
fn alone(policy: &Policy, program: &[String]) -> Result<ExitCode, Refused> {
    let private = prepare(policy)?;
    let confined = || {
        confine(policy, &private, filter::OtherProcesses::Visible, Descendants::of_supervisor())?;
        Ok(start(&mut command(policy, program), program))
    };
    supervise(&policy.supervisor, || in_thread(confined))
}

/// Before another sandbox, which starts this helper again inside.
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

/// Inside another sandbox, as the first process of its PID namespace.
fn filtered(policy: &Policy, program: &[String]) -> Result<ExitCode, Refused> {
    close_inherited()?;
    rustix::thread::set_no_new_privs(true).during("no new privileges")?;
    filter::apply(policy.network, filter::OtherProcesses::Hidden)?;
    if policy.report {
        attempts::tell(policy, Descendants::MaybeHidden);
    }
    first_process(policy, program)
}

/// Prepares everything that has to happen before the walls are up. Returns handles of the folders that the program may write to besides its work folder.
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
    let make = |folder: &Utf8Path| {
        let name = folder.file_name().unwrap_or_default();
        match rustix::fs::statat(&private, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {}
            found => {
                // A program that ran before may have left a link to somewhere else.
                if found.is_ok() {
                    rustix::fs::unlinkat(&private, name, AtFlags::empty())?;
                }
                rustix::fs::mkdirat(&private, name, Mode::from_raw_mode(0o777))?;
            }
        }
        rustix::fs::openat(&private, name, flags, Mode::empty())
    };
    make(&policy.private.join("root")).during("private folder")?;
    let folders = policy.private_folders();
    folders.iter().map(|folder| make(folder)).collect::<Result<_, _>>().during("private folder")
}

fn confine(
    policy: &Policy,
    private: &[OwnedFd],
    others: filter::OtherProcesses,
    descendants: Descendants,
) -> Result<(), Refused> {
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

/// The program itself, with the environment of the policy and nothing of the helper's own.
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

/// Orphans of the namespace become our children. When we return, the kernel ends those that are left.
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

/// Files that somebody forgot to close would be doors.
fn close_inherited() -> Result<(), Refused> {
    let entries = std::fs::read_dir("/proc/self/fd").during("open files")?;
    let open: Vec<i32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // The one that listed them is closed already.
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
        // Without the right to drop them there are none to gain either: no-new-privileges sees to that.
        let _ = rustix::thread::remove_capability_from_bounding_set(capability);
    }
    rustix::thread::clear_ambient_capability_set().during("capabilities")?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets).during("capabilities")?;
    rustix::thread::set_no_new_privs(true).during("no new privileges")
}
