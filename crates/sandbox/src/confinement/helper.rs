//! The helper: sets up the sandbox, starts the program inside it, and supervises it until it ends.
//!
//! With namespaces it runs in two stages. The outer stage creates the namespaces and supervises. The inner stage is PID
//! 1 of the PID namespace, so the kernel kills every process in there when it exits. It builds the file system, applies
//! Landlock and the seccomp filter, starts the program and reaps orphaned processes. Without namespaces, a thread of
//! the supervisor restricts only itself and then starts the program.

use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use camino::{Utf8Path, Utf8PathBuf};
use nix::sys::signal::SigSet;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal, WaitOptions};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::policy::{HelperStage, POLICY_VARIABLE, SandboxLayers, SandboxPolicy};
use super::probe::REPORT;
use crate::process::measure::THREADS_PER_PROCESS;
use crate::process::supervisor::{MARKER_VARIABLE, SUPERVISE_WORD, SupervisorOrder};

mod filter;
mod guarantee_checks;
mod namespaces;
mod root;
mod rules;
mod supervise;

use self::guarantee_checks::DescendantVisibility;
use self::supervise::{ProgramStart, supervise};

/// Exit code if the helper itself failed. Shells use it for a program that cannot be executed.
const REFUSED: u8 = 126;
/// Exit code if the program does not exist.
const NOT_FOUND: u8 = 127;
/// The nice value added to a program, relative to its supervisor.
const PRIORITY_STEP: i32 = 5;

/// A sandbox layer that could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {reason}")]
struct SandboxSetupError {
    step: &'static str,
    reason: String,
}

/// Adds the name of the failed step to an error.
trait WithStep<T> {
    fn during(self, step: &'static str) -> Result<T, SandboxSetupError>;
}

impl<T, E: std::fmt::Display> WithStep<T> for Result<T, E> {
    fn during(self, step: &'static str) -> Result<T, SandboxSetupError> {
        self.map_err(|error| SandboxSetupError { step, reason: error.to_string() })
    }
}

pub(super) fn main(args: &[String]) -> ExitCode {
    if let Some((word, rest)) = args.split_first()
        && word == SUPERVISE_WORD
    {
        return run_unconfined(rest).unwrap_or_else(|refused| print_error(&refused, REFUSED));
    }
    run_confined(args).unwrap_or_else(|refused| print_error(&refused, REFUSED))
}

/// Sets up the sandbox that the policy in the environment asks for, and runs the program in it.
fn run_confined(args: &[String]) -> Result<ExitCode, SandboxSetupError> {
    let (policy, program) = (read_policy()?, parse_program(args)?);
    match (policy.walls, policy.stage) {
        (SandboxLayers::All, HelperStage::Outer) => run_outer_stage(policy, program),
        (SandboxLayers::All, HelperStage::Inner { opened }) => {
            run_inner_stage(&policy, opened, program)
        }
        (SandboxLayers::Unprivileged, _) => run_without_namespaces(&policy, program),
        (SandboxLayers::FilterOnly, HelperStage::Outer) => run_before_bwrap(policy, program),
        (SandboxLayers::FilterOnly, HelperStage::Inner { .. }) => {
            run_inside_bwrap(&policy, program)
        }
    }
}

#[expect(clippy::print_stderr, reason = "standard error is the helper's only channel")]
fn print_error(message: &dyn std::fmt::Display, code: u8) -> ExitCode {
    eprintln!("sandbox: {message}");
    ExitCode::from(code)
}

/// Returns the program and its arguments: everything after `--`.
fn parse_program(args: &[String]) -> Result<&[String], SandboxSetupError> {
    let [dashes, program @ ..] = args else {
        return Err("-- PROGRAM [ARGS...] expected").during("arguments");
    };
    if dashes != "--" || program.is_empty() {
        return Err("`--` and a program expected").during("arguments");
    }
    Ok(program)
}

fn read_policy() -> Result<SandboxPolicy, SandboxSetupError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the policy is all that the helper reads from it"
    )]
    let policy = std::env::var(POLICY_VARIABLE).during("policy")?;
    serde_json::from_str(&policy).during("policy")
}

/// Supervises a program without confining it.
fn run_unconfined(args: &[String]) -> Result<ExitCode, SandboxSetupError> {
    let Some((order, rest)) = args.split_first() else {
        return Err("ORDER -- PROGRAM [ARGS...] expected").during("arguments");
    };
    let order: SupervisorOrder = serde_json::from_str(order).during("order")?;
    let program = parse_program(rest)?;
    close_inherited()?;
    let mut command = plain_command(program);
    let start = || Ok(start_program(command.env(MARKER_VARIABLE, &order.marker), program));
    supervise(&order, || start_in_thread(start))
}

/// Starts a program from a thread with a lower priority than the supervisor. The supervisor keeps its own, so that it
/// still gets to run when the program has started very many processes. Priority and sandbox restrictions apply per
/// thread.
fn start_in_thread(
    start: impl FnOnce() -> Result<ProgramStart, SandboxSetupError> + Send,
) -> Result<ProgramStart, SandboxSetupError> {
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
fn run_outer_stage(
    mut policy: SandboxPolicy,
    program: &[String],
) -> Result<ExitCode, SandboxSetupError> {
    prepare_folders(&policy)?;
    let order = policy.supervisor.clone();
    supervise(&order, || {
        // Enter the namespaces only now: `supervise` has already opened `/proc` and the snapshot.
        namespaces::enter_namespaces(policy.network)?;
        // The inner stage inherits the reading end, and waits until the writing end is closed.
        let (reader, writer) = std::io::pipe().during("pipe")?;
        rustix::io::fcntl_setfd(&reader, rustix::io::FdFlags::empty()).during("pipe")?;
        policy.stage = HelperStage::Inner { opened: Some(reader.as_raw_fd()) };
        // A new PID namespace applies only to children, so start the helper again as its PID 1.
        let mut inside = Command::new("/proc/self/exe");
        inside.args(policy.helper.iter().skip(1)).arg("--").args(program);
        inside.env_clear().envs([policy.helper_environment()]);
        let child = inside.process_group(0).spawn();
        let id = child.during("start in the namespaces")?.id();
        Ok(ProgramStart::Child { id, until_opened: Some(writer.into()) })
    })
}

/// Runs as PID 1 of the PID namespace.
fn run_inner_stage(
    policy: &SandboxPolicy,
    opened: Option<i32>,
    program: &[String],
) -> Result<ExitCode, SandboxSetupError> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).during("parent")?;
    SigSet::empty().thread_set_mask().during("signals")?;
    lower_priority();
    // While `/proc` is still the outer one, in which this process has its descriptors.
    let opened = opened.map(take_inherited).transpose()?;
    root::build_root(policy)?;
    if let Some(most) = policy.supervisor.limits.processes_max {
        // The kernel counts the tasks of a user namespace separately. This process is one of them.
        let tasks_max = most.saturating_mul(THREADS_PER_PROCESS).saturating_add(1);
        limit_resource(Resource::Nproc, tasks_max)?;
        namespaces::limit_tasks(tasks_max);
    }
    // No program is running here yet that could replace these folders with a link.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |folder: &Utf8PathBuf| rustix::fs::open(folder.as_str(), flags, Mode::empty());
    let private = policy.private_folders().iter().map(open).collect::<Result<Vec<_>, _>>();
    apply_layers(
        policy,
        &private.during("private folder")?,
        filter::OtherProcesses::Hidden,
        DescendantVisibility::MaybeHidden,
    )?;
    if let Some(mut opened) = opened {
        opened.read_to_end(&mut Vec::new()).during("supervisor")?;
    }
    run_as_first_process(policy, program)
}

/// Opens an inherited descriptor again in a form that no program inherits, and closes it.
fn take_inherited(descriptor: i32) -> Result<std::fs::File, SandboxSetupError> {
    let file = std::fs::File::open(format!("/proc/self/fd/{descriptor}")).during("pipe")?;
    nix::unistd::close(descriptor).during("pipe")?;
    Ok(file)
}

/// Starts the program from PID 1 of a PID namespace, and reaps orphaned processes.
fn run_as_first_process(
    policy: &SandboxPolicy,
    program: &[String],
) -> Result<ExitCode, SandboxSetupError> {
    // The program can see this process, which is less restricted, so it must not be able to write to its memory.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).during("memory")?;
    let child = match program_command(policy, program).spawn() {
        Ok(child) => child,
        Err(error) => return Ok(report_start_failure(program, &error)),
    };
    reap_until_exit(child.id())
}

/// Confines the program without namespaces. The restrictions apply to the calling thread and its children, not to the
/// supervisor.
fn run_without_namespaces(
    policy: &SandboxPolicy,
    program: &[String],
) -> Result<ExitCode, SandboxSetupError> {
    let private = prepare_folders(policy)?;
    let confined = || {
        apply_layers(
            policy,
            &private,
            filter::OtherProcesses::Visible,
            DescendantVisibility::of_supervisor(),
        )?;
        Ok(start_program(&mut program_command(policy, program), program))
    };
    supervise(&policy.supervisor, || start_in_thread(confined))
}

/// Prepares and supervises another sandbox (`bwrap`), which starts this helper again inside.
fn run_before_bwrap(
    mut policy: SandboxPolicy,
    program: &[String],
) -> Result<ExitCode, SandboxSetupError> {
    prepare_folders(&policy)?;
    policy.stage = HelperStage::Inner { opened: None };
    let mut sandbox = plain_command(program);
    sandbox.env_clear().envs([policy.helper_environment()]);
    supervise(&policy.supervisor, || Ok(start_program(&mut sandbox, program)))
}

/// Starts a program in a process group of its own.
fn start_program(command: &mut Command, program: &[String]) -> ProgramStart {
    match command.process_group(0).spawn() {
        Ok(child) => ProgramStart::Child { id: child.id(), until_opened: None },
        Err(error) => ProgramStart::Failed(report_start_failure(program, &error)),
    }
}

/// Installs the filter inside another sandbox (`bwrap`), as PID 1 of its PID namespace.
fn run_inside_bwrap(
    policy: &SandboxPolicy,
    program: &[String],
) -> Result<ExitCode, SandboxSetupError> {
    close_inherited()?;
    rustix::thread::set_no_new_privs(true).during("no new privileges")?;
    filter::install_filters(policy.network, filter::OtherProcesses::Hidden)?;
    if policy.report {
        guarantee_checks::report_guarantees(policy, DescendantVisibility::MaybeHidden);
    }
    run_as_first_process(policy, program)
}

/// Does everything that has to happen before the sandbox is set up. Returns handles of the folders that the program may
/// write to besides its work folder.
fn prepare_folders(policy: &SandboxPolicy) -> Result<Vec<OwnedFd>, SandboxSetupError> {
    close_inherited()?;
    limit_resource(Resource::Core, 0)?;
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
            match rustix::fs::mkdirat(private, name, Mode::from_raw_mode(0o777)) {
                // A command that starts at the same time has created it. Should it be a link by now, opening it fails.
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(private, name, flags, Mode::empty())
}

fn apply_layers(
    policy: &SandboxPolicy,
    private: &[OwnedFd],
    others: filter::OtherProcesses,
    descendants: DescendantVisibility,
) -> Result<(), SandboxSetupError> {
    // This also sets no-new-privileges, which Landlock and seccomp require.
    drop_capabilities()?;
    let abi = rules::apply_rules(policy, private)?;
    filter::install_filters(policy.network, others)?;
    if policy.report {
        report_abi(abi);
        guarantee_checks::report_guarantees(policy, descendants);
    }
    Ok(())
}

#[expect(clippy::print_stderr, reason = "the probe reads it")]
fn report_abi(abi: u32) {
    eprintln!("{REPORT}{abi}");
}

/// The command for the program itself, with the policy's environment and none of the helper's own.
fn program_command(policy: &SandboxPolicy, program: &[String]) -> Command {
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

fn report_start_failure(program: &[String], error: &std::io::Error) -> ExitCode {
    let code = if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { REFUSED };
    print_error(&format!("`{}` cannot be started: {error}", program[0]), code)
}

/// Reaps processes until the main one ends. As PID 1, this process inherits all orphans; when it exits, the kernel
/// kills the remaining ones.
fn reap_until_exit(main: u32) -> Result<ExitCode, SandboxSetupError> {
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
fn close_inherited() -> Result<(), SandboxSetupError> {
    let entries = std::fs::read_dir("/proc/self/fd").during("open files")?;
    let open: Vec<i32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // Ignore the error for the descriptor that listed them: it is already closed.
        let _ = nix::unistd::close(fd);
    }
    Ok(())
}

fn limit_resource(resource: Resource, most: u64) -> Result<(), SandboxSetupError> {
    let now = rustix::process::getrlimit(resource);
    let most = now.maximum.map_or(most, |maximum| maximum.min(most));
    let limit = Rlimit { current: Some(most), maximum: Some(most) };
    rustix::process::setrlimit(resource, limit).during("limits")
}

fn drop_capabilities() -> Result<(), SandboxSetupError> {
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

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn commands_that_start_at_the_same_time_share_their_private_folders() {
        for _ in 0..200 {
            let private = tempfile::tempdir().unwrap();
            let handle = rustix::fs::open(private.path(), OFlags::RDONLY, Mode::empty()).unwrap();
            let at_once = Barrier::new(2);
            let open = || {
                at_once.wait();
                open_or_create(&handle, Utf8Path::new("home")).map(drop)
            };
            let both = std::thread::scope(|scope| {
                let threads = [scope.spawn(open), scope.spawn(open)];
                threads.map(|thread| thread.join().unwrap())
            });
            assert_eq!(both, [Ok(()), Ok(())]);
        }
    }
}
