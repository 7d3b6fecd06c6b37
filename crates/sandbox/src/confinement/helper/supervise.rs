//! The supervisor: waits for a program, adopts every descendant whose parent ends, and kills all of them at the end.
//!
//! It is a single-threaded loop. Processes cannot escape it: a descendant whose parent ends becomes its child
//! (`PR_SET_CHILD_SUBREAPER`), even after `setsid` and a double fork. When the supervisor's own parent ends, the kernel
//! sends it a signal, and it kills everything.

use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Resource, Signal, WaitOptions, getpid, getppid, kill_process, kill_process_group,
};
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};

use super::{REFUSED, SandboxSetupError, WithStep, exit_code};
use crate::confinement::guard::OpenGuardSnapshot;
use crate::process::control_group::ControlGroup;
use crate::process::measure::{THREADS_PER_PROCESS, UsageWatch, count_tasks};
use crate::process::supervisor::{SupervisorOrder, signal_of};
use crate::process::table::ProcessTable;
use crate::process::{LimitedResource, UsageLimits};

/// The interval between checks of the machine's number of tasks and of the parent.
const TICK_PAUSE: Duration = Duration::from_millis(50);
/// The delay before the first measurement of resource use, and the minimum between two.
const LOOK_PAUSE_MIN: Duration = Duration::from_millis(100);
/// The maximum delay between two measurements.
const LOOK_PAUSE_MAX: Duration = Duration::from_secs(1);
/// The delay is at least this many times as long as the previous measurement took.
const LOOK_PAUSE_FACTOR: u32 = 20;
const SUPERVISOR_PRIORITY: i32 = -20;
/// The exit code of a killed program, as in a shell.
const KILLED: u8 = 128 + 9;

/// The result of starting a program.
pub(super) enum ProgramStart {
    Child {
        id: u32,
        /// Dropped once the counters of the process are open: it waits for that before it makes itself unreadable.
        until_opened: Option<OwnedFd>,
    },
    /// The exit code for the failure; the reason is on standard error.
    Failed(ExitCode),
}

/// The reason to stop waiting for a program.
enum SupervisionEnd {
    Exited(ExitCode),
    /// The program exceeded a limit.
    Exceeded(LimitedResource),
    /// The caller asked to stop, or has ended.
    Asked,
}

struct SupervisorSignals {
    terminate: SignalStream,
    interrupt: SignalStream,
    quit: SignalStream,
    hang_up: SignalStream,
    child: SignalStream,
}

impl SupervisorSignals {
    fn listen() -> std::io::Result<SupervisorSignals> {
        Ok(SupervisorSignals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            hang_up: signal(SignalKind::hangup())?,
            child: signal(SignalKind::child())?,
        })
    }
}

struct ProgramSupervisor {
    table: ProcessTable,
    watch: UsageWatch,
    group: Option<ControlGroup>,
    parent: u32,
    child: Pid,
    exited: Option<ExitCode>,
}

/// Starts a program and supervises it and every descendant until they have ended.
pub(super) fn supervise(
    order: &SupervisorOrder,
    start: impl FnOnce() -> Result<ProgramStart, SandboxSetupError>,
) -> Result<ExitCode, SandboxSetupError> {
    rustix::process::set_child_subreaper(Some(getpid())).during("supervisor")?;
    // The signal is sent when the parent's *thread* ends; only a changed parent id shows that the process has ended.
    rustix::process::set_parent_process_death_signal(Some(Signal::HUP)).during("parent")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.during("supervisor")?;
    let _entered = runtime.enter();
    let signals = SupervisorSignals::listen().during("signals")?;
    // The parent may have ended before the death signal was set.
    if is_orphan(order.parent) {
        return Ok(ExitCode::from(REFUSED));
    }
    let table = ProcessTable::open().during("/proc")?;
    let own = getpid().as_raw_nonzero().get();
    let mut watch = UsageWatch::new(&table, order.limits, own, &order.folders);
    limit_tasks(&table, &order.limits)?;
    // Opened before the program starts and the view of the file system changes. Without a snapshot there is nothing to
    // restore.
    let guarded = order.guarded.as_ref();
    let picture =
        guarded.and_then(|guarded| OpenGuardSnapshot::open(&guarded.picture, &guarded.dir).ok());
    let nothing = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null");
    let nothing = nothing.during("streams")?;
    let mut group = ControlGroup::enter(&order.limits);
    let started = start();
    if let Some(group) = &mut group {
        group.leave();
    }
    let (id, until_opened) = match started? {
        ProgramStart::Child { id, until_opened } => (id, until_opened),
        ProgramStart::Failed(code) => return Ok(code),
    };
    let child = Pid::from_raw(id.cast_signed()).ok_or("no id").during("start")?;
    watch.open_counters(&table, child.as_raw_nonzero().get());
    drop(until_opened);
    // Only root may do this. A supervisor has to run even if the program starts very many processes.
    let _ = rustix::process::setpriority_process(None, SUPERVISOR_PRIORITY);
    let mut supervisor =
        ProgramSupervisor { table, watch, group, parent: order.parent, child, exited: None };
    // Release the streams: the caller waits for end of file on standard output, and has to notice when the program no
    // longer reads its input.
    nix::unistd::dup2_stdin(&nothing).during("streams")?;
    nix::unistd::dup2_stdout(&nothing).during("streams")?;
    let end = runtime.block_on(supervisor.wait_for_end(signals));
    supervisor.kill_all();
    let end = supervisor.check_usage_at_end(end);
    if let Some(picture) = picture.filter(|_| is_orphan(order.parent)) {
        picture.restore_paths();
    }
    // The report may end this process with a signal, and the control group has to be removed before that.
    drop(supervisor);
    Ok(report_end(&end))
}

impl ProgramSupervisor {
    async fn wait_for_end(&mut self, mut signals: SupervisorSignals) -> SupervisionEnd {
        let mut next_look = Instant::now() + LOOK_PAUSE_MIN;
        loop {
            if let Some(code) = self.exited {
                return SupervisionEnd::Exited(code);
            }
            tokio::select! {
                biased;
                _ = signals.quit.recv() => return SupervisionEnd::Asked,
                _ = signals.hang_up.recv() => if is_orphan(self.parent) { return SupervisionEnd::Asked },
                _ = signals.terminate.recv() => self.forward_signal(Signal::TERM),
                _ = signals.interrupt.recv() => self.forward_signal(Signal::INT),
                _ = signals.child.recv() => self.reap_children(),
                () = tokio::time::sleep(TICK_PAUSE) => {
                    if let Some(end) = self.check_usage(&mut next_look) {
                        return end;
                    }
                }
            }
        }
    }

    /// Measures resource use if it is time to, or if the machine is suddenly crowded with tasks. In the latter case the
    /// program is stopped during the measurement, because a fork bomb would not leave any CPU time for it.
    fn check_usage(&mut self, next_look: &mut Instant) -> Option<SupervisionEnd> {
        if is_orphan(self.parent) {
            return Some(SupervisionEnd::Asked);
        }
        if let Some(exceeded) = self.kernel_exceeded() {
            return Some(SupervisionEnd::Exceeded(exceeded));
        }
        let (begun, is_crowded) = (Instant::now(), self.watch.is_crowded(&self.table));
        if begun < *next_look && !is_crowded {
            return None;
        }
        if is_crowded {
            self.forward_signal(Signal::STOP);
        }
        if let Some(exceeded) = self.watch.exceeded_limit(&self.table) {
            return Some(SupervisionEnd::Exceeded(exceeded));
        }
        if is_crowded {
            self.watch.accept_crowd(&self.table);
            self.forward_signal(Signal::CONT);
        }
        let pause = begun.elapsed().saturating_mul(LOOK_PAUSE_FACTOR);
        *next_look = Instant::now() + pause.clamp(LOOK_PAUSE_MIN, LOOK_PAUSE_MAX);
        None
    }

    /// Measures what the program wrote since the last measurement, now that all processes have ended.
    fn check_usage_at_end(&mut self, end: SupervisionEnd) -> SupervisionEnd {
        if !matches!(end, SupervisionEnd::Exited(_)) {
            return end;
        }
        let exceeded = self.kernel_exceeded().or_else(|| self.watch.exceeded_at_end(&self.table));
        exceeded.map_or(end, SupervisionEnd::Exceeded)
    }

    /// The limit that the kernel enforced, if a control group is in use.
    fn kernel_exceeded(&self) -> Option<LimitedResource> {
        self.group.as_ref().and_then(ControlGroup::exceeded_limit)
    }

    fn forward_signal(&self, signal: Signal) {
        // Ignore errors: the program may just have ended.
        let _ = kill_process_group(self.child, signal);
    }

    /// Reaps all children that have ended, and records the exit code of the program.
    fn reap_children(&mut self) {
        while let Ok(Some((id, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if id == self.child {
                self.exited = Some(exit_code(status.exit_status(), status.terminating_signal()));
            }
        }
    }

    /// Kills all remaining processes.
    fn kill_all(&mut self) {
        if let Some(group) = &self.group {
            group.kill_all();
        }
        if self.exited.is_none() {
            // Killing PID 1 of a PID namespace kills all processes in it, however fast they fork.
            let _ = kill_process(self.child, Signal::KILL);
        }
        // The kernel signals a process group atomically, so do this before walking the process table.
        self.forward_signal(Signal::KILL);
        if has_no_children() {
            return;
        }
        let own = getpid().as_raw_nonzero().get();
        let left = self.table.kill_descendants(own, &|_| false);
        // Processes hidden by `hidepid` are not in the table, but the kernel still counts them as children.
        if !self.table.kill_own_children() || left > 0 {
            super::print_error(&"some processes of the program could not be ended", REFUSED);
        }
    }
}

/// Sets `RLIMIT_NPROC`. The kernel counts all tasks of the user, so the limit is the machine's present number of tasks
/// plus the program's share. It does not apply to root.
fn limit_tasks(table: &ProcessTable, limits: &UsageLimits) -> Result<(), SandboxSetupError> {
    match limits.processes_max {
        Some(most) => {
            let own = most.saturating_mul(THREADS_PER_PROCESS);
            super::limit_resource(Resource::Nproc, count_tasks(table).saturating_add(own))
        }
        None => Ok(()),
    }
}

/// Returns true if this process has no child. Since it adopts orphaned descendants, it then has no descendants either.
fn has_no_children() -> bool {
    matches!(rustix::process::wait(WaitOptions::NOHANG), Err(rustix::io::Errno::CHILD))
}

fn is_orphan(parent: u32) -> bool {
    getppid().map(|id| id.as_raw_nonzero().get()) != Some(parent.cast_signed())
}

/// Returns the exit code of the program, or ends this process with the signal that reports an exceeded limit.
fn report_end(end: &SupervisionEnd) -> ExitCode {
    match end {
        SupervisionEnd::Exited(code) => *code,
        SupervisionEnd::Exceeded(exceeded) => {
            let _ = kill_process(getpid(), signal_of(*exceeded));
            ExitCode::from(KILLED)
        }
        SupervisionEnd::Asked => ExitCode::from(KILLED),
    }
}
