//! The supervisor: waits for a program, adopts every descendant whose parent ends, and ends all of them.
//!
//! It has one thread and one small loop. A process cannot leave it: a descendant whose parent ends becomes its child
//! (`PR_SET_CHILD_SUBREAPER`), also after `setsid` and a double fork. When the process that asked for it ends, the kernel
//! sends a signal, and everything ends as well.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Resource, Signal, WaitOptions, getpid, getppid, kill_process, kill_process_group,
};
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};

use super::{During, REFUSED, Refused, exit_code};
use crate::process::control_group::ControlGroup;
use crate::process::measure::{THREADS_PER_PROCESS, UsageWatch, tasks};
use crate::process::supervisor::{SupervisorOrder, signal_of};
use crate::process::table::ProcessTable;
use crate::process::{LimitedResource, UsageLimits};
use crate::confinement::guard::OpenPicture;

/// The time between two looks at the number of tasks of the machine, and at the parent.
const TICK_PAUSE: Duration = Duration::from_millis(50);
/// The time before the first look at what the program uses, and the shortest time between two.
const LOOK_PAUSE_MIN: Duration = Duration::from_millis(100);
/// The longest time between two looks.
const LOOK_PAUSE_MAX: Duration = Duration::from_secs(1);
/// The pause is at least this many times as long as the look before it.
const LOOK_PAUSE_FACTOR: u32 = 20;
/// The nice value of a supervisor.
const SUPERVISOR_PRIORITY: i32 = -20;
/// The exit code of a program that was killed, as in a shell.
const KILLED: u8 = 128 + 9;

/// A program that was started, or not.
pub(super) enum Start {
    /// Its process.
    Child(u32),
    /// The exit code that says so; the reason is on standard error.
    Failed(ExitCode),
}

/// The reason to stop waiting.
enum End {
    /// The program ended.
    Exited(ExitCode),
    /// It used more than it may.
    Exceeded(LimitedResource),
    /// The caller asked for it, or is gone.
    Asked,
}

struct Signals {
    terminate: SignalStream,
    interrupt: SignalStream,
    quit: SignalStream,
    hang_up: SignalStream,
    child: SignalStream,
}

impl Signals {
    fn listen() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            hang_up: signal(SignalKind::hangup())?,
            child: signal(SignalKind::child())?,
        })
    }
}

struct Supervisor {
    table: ProcessTable,
    watch: UsageWatch,
    group: Option<ControlGroup>,
    parent: u32,
    child: Pid,
    exited: Option<ExitCode>,
}

/// Starts a program and supervises it to its end, and that of every descendant.
pub(super) fn supervise(
    order: &SupervisorOrder,
    start: impl FnOnce() -> Result<Start, Refused>,
) -> Result<ExitCode, Refused> {
    rustix::process::set_child_subreaper(Some(getpid())).during("supervisor")?;
    // The kernel sends it when the thread that started us ends; only when the process has ended does the parent change.
    rustix::process::set_parent_process_death_signal(Some(Signal::HUP)).during("parent")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.during("supervisor")?;
    let _entered = runtime.enter();
    let signals = Signals::listen().during("signals")?;
    if is_orphan(order.parent) {
        return Ok(ExitCode::from(REFUSED));
    }
    let table = ProcessTable::open().during("/proc")?;
    let own = getpid().as_raw_nonzero().get();
    let mut watch = UsageWatch::new(&table, order.limits, own, &order.folders);
    limit_tasks(&table, &order.limits)?;
    // Opened before the program starts and the view of the file system changes. Without a picture there is none to compare.
    let guarded = order.guarded.as_ref();
    let picture =
        guarded.and_then(|guarded| OpenPicture::open(&guarded.picture, &guarded.dir).ok());
    let nothing = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null");
    let nothing = nothing.during("streams")?;
    let mut group = ControlGroup::enter(&order.limits);
    let started = start();
    if let Some(group) = &mut group {
        group.leave();
    }
    let child = match started? {
        Start::Child(id) => Pid::from_raw(id.cast_signed()).ok_or("no id").during("start")?,
        Start::Failed(code) => return Ok(code),
    };
    watch.open_counters(&table, child.as_raw_nonzero().get());
    // Only root may; a supervisor has to run also when the program starts very many processes.
    let _ = rustix::process::setpriority_process(None, SUPERVISOR_PRIORITY);
    let mut supervisor =
        Supervisor { table, watch, group, parent: order.parent, child, exited: None };
    // The caller waits for the end of these streams, and for the program to read its input.
    nix::unistd::dup2_stdin(&nothing).during("streams")?;
    nix::unistd::dup2_stdout(&nothing).during("streams")?;
    let end = runtime.block_on(supervisor.wait(signals));
    supervisor.end_all();
    if let Some(picture) = picture.filter(|_| is_orphan(order.parent)) {
        picture.put_right();
    }
    // The report may end this process by a signal, and the control group has to be gone by then.
    drop(supervisor);
    Ok(report(&end))
}

impl Supervisor {
    async fn wait(&mut self, mut signals: Signals) -> End {
        let mut next_look = Instant::now() + LOOK_PAUSE_MIN;
        loop {
            if let Some(code) = self.exited {
                let exceeded = self.exceeded().or_else(|| self.watch.exceeded_at_end(&self.table));
                return exceeded.map_or(End::Exited(code), End::Exceeded);
            }
            tokio::select! {
                biased;
                _ = signals.quit.recv() => return End::Asked,
                _ = signals.hang_up.recv() => if is_orphan(self.parent) { return End::Asked },
                _ = signals.terminate.recv() => self.forward(Signal::TERM),
                _ = signals.interrupt.recv() => self.forward(Signal::INT),
                _ = signals.child.recv() => self.reap(),
                () = tokio::time::sleep(TICK_PAUSE) => {
                    if let Some(end) = self.tick(&mut next_look) {
                        return end;
                    }
                }
            }
        }
    }

    /// Looks at what the program uses, if it is time to or the machine is crowded. Then the program is stopped while it is
    /// looked at: a fork bomb leaves no time for anything else.
    fn tick(&mut self, next_look: &mut Instant) -> Option<End> {
        if is_orphan(self.parent) {
            return Some(End::Asked);
        }
        if let Some(exceeded) = self.exceeded() {
            return Some(End::Exceeded(exceeded));
        }
        let (begun, is_crowded) = (Instant::now(), self.watch.is_crowded(&self.table));
        if begun < *next_look && !is_crowded {
            return None;
        }
        if is_crowded {
            self.forward(Signal::STOP);
        }
        if let Some(exceeded) = self.watch.exceeded(&self.table) {
            return Some(End::Exceeded(exceeded));
        }
        if is_crowded {
            self.watch.accept_crowd(&self.table);
            self.forward(Signal::CONT);
        }
        let pause = begun.elapsed().saturating_mul(LOOK_PAUSE_FACTOR);
        *next_look = Instant::now() + pause.clamp(LOOK_PAUSE_MIN, LOOK_PAUSE_MAX);
        None
    }

    /// The limit that the kernel had to enforce, where it does.
    fn exceeded(&self) -> Option<LimitedResource> {
        self.group.as_ref().and_then(ControlGroup::exceeded)
    }

    fn forward(&self, signal: Signal) {
        // The program may have ended a moment ago.
        let _ = kill_process_group(self.child, signal);
    }

    /// Reaps every child that has ended, and notes how the program did.
    fn reap(&mut self) {
        while let Ok(Some((id, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if id == self.child {
                self.exited = Some(exit_code(status.exit_status(), status.terminating_signal()));
            }
        }
    }

    /// Ends everything that is left.
    fn end_all(&mut self) {
        if let Some(group) = &self.group {
            group.kill();
        }
        if self.exited.is_none() {
            // The first process of a PID namespace takes all others with it, however fast they start new ones.
            let _ = kill_process(self.child, Signal::KILL);
        }
        // The kernel kills a process group in one go, before the table of processes is read.
        self.forward(Signal::KILL);
        if has_no_children() {
            return;
        }
        let own = getpid().as_raw_nonzero().get();
        let left = self.table.kill_descendants(own, &|_| false);
        // The table does not show a process that `hidepid` hides; the kernel still counts it as a child.
        if !self.table.kill_own_children() || left > 0 {
            super::told(&"some processes of the program could not be ended", REFUSED);
        }
    }
}

/// The kernel counts the tasks of the user, which are fewer than those of the machine: that many may be there besides those
/// of the program. It does not count those of root.
fn limit_tasks(table: &ProcessTable, limits: &UsageLimits) -> Result<(), Refused> {
    match limits.processes_max {
        Some(most) => {
            let own = most.saturating_mul(THREADS_PER_PROCESS);
            super::limit(Resource::Nproc, tasks(table).saturating_add(own))
        }
        None => Ok(()),
    }
}

/// Whether this process has no child. As it adopts every descendant whose parent ends, it then has no descendant either.
fn has_no_children() -> bool {
    matches!(rustix::process::wait(WaitOptions::NOHANG), Err(rustix::io::Errno::CHILD))
}

fn is_orphan(parent: u32) -> bool {
    getppid().map(|id| id.as_raw_nonzero().get()) != Some(parent.cast_signed())
}

/// The exit code of the program; a signal of our own reports an exceeded limit.
fn report(end: &End) -> ExitCode {
    match end {
        End::Exited(code) => *code,
        End::Exceeded(exceeded) => {
            let _ = kill_process(getpid(), signal_of(*exceeded));
            ExitCode::from(KILLED)
        }
        End::Asked => ExitCode::from(KILLED),
    }
}
