//! The processes that end together. They never outlive the value that owns them.

use rustix::process::{Signal, kill_process, kill_process_group};

use super::supervisor::{self, KnownChild, SupervisorOrder, exceeded_by};
use super::{ProcessSpec, ProcessStopReason, TerminationScope};

/// A child with everything that ends with it. Remaining processes are killed on drop.
#[derive(Debug)]
pub struct SupervisedGroup {
    child: KnownChild,
    scope: TerminationScope,
    order: SupervisorOrder,
    /// The child's start time, in clock ticks.
    started: u64,
    /// True if the child's process id may already belong to another process.
    is_reaped: bool,
}

impl SupervisedGroup {
    /// The group of a child that was started as its leader.
    pub(super) fn new(child: KnownChild, spawn: &ProcessSpec) -> Self {
        let scope = spawn.termination.scope;
        let (order, started) = match scope {
            TerminationScope::ProcessGroup => (None, 0),
            TerminationScope::Descendants => (supervisor::order_in(spawn), started_at(&child)),
        };
        SupervisedGroup {
            child,
            scope,
            order: order.unwrap_or_default(),
            started,
            is_reaped: false,
        }
    }

    /// Asks the program to end.
    pub(super) fn request_end(&self, signal: Signal) {
        self.send_signal(signal);
    }

    /// Kills all members.
    pub(super) fn kill_members(&self) {
        match self.scope {
            TerminationScope::ProcessGroup => self.send_signal(Signal::KILL),
            // On SIGQUIT the supervisor kills its descendants. Killing the supervisor would orphan them.
            TerminationScope::Descendants => self.send_signal(Signal::QUIT),
        }
    }

    /// Records that the child was reaped. In a process group the remaining members keep the id in use, so it stays
    /// valid.
    pub(super) fn mark_reaped(&mut self) {
        self.is_reaped = self.scope == TerminationScope::Descendants;
    }

    /// Kills the remaining processes after the child has ended with this signal, or failed to end.
    pub(super) async fn end_rest(&mut self, has_exited: bool, signal: Option<i32>) {
        let is_clean =
            has_exited && (signal.is_none() || exceeded_by(signal, &self.order.limits).is_some());
        match self.scope {
            TerminationScope::ProcessGroup => self.send_signal(Signal::KILL),
            TerminationScope::Descendants if is_clean => {}
            TerminationScope::Descendants => {
                if !has_exited {
                    self.send_signal(Signal::KILL);
                }
                let (marker, started) = (self.order.marker.clone(), self.started);
                let end = move || supervisor::end_orphans(&marker, started);
                let _ = tokio::task::spawn_blocking(end).await;
            }
        }
        self.is_reaped = true;
    }

    /// The limit that the program exceeded, derived from the signal that ended its supervisor.
    pub(super) fn exceeded_limit(&self, signal: Option<i32>) -> Option<ProcessStopReason> {
        match self.scope {
            TerminationScope::ProcessGroup => None,
            TerminationScope::Descendants => {
                exceeded_by(signal, &self.order.limits).map(ProcessStopReason::Exceeded)
            }
        }
    }

    fn send_signal(&self, signal: Signal) {
        let Some(leader) = self.child.id().filter(|_| !self.is_reaped) else { return };
        // The only errors are that no process is left, or none that we may signal.
        let _ = match self.scope {
            TerminationScope::ProcessGroup => kill_process_group(leader, signal),
            TerminationScope::Descendants => kill_process(leader, signal),
        };
    }
}

impl Drop for SupervisedGroup {
    fn drop(&mut self) {
        self.kill_members();
    }
}

#[cfg(target_os = "linux")]
fn started_at(child: &KnownChild) -> u64 {
    let id = child.id().map_or(0, |id| id.as_raw_nonzero().get());
    let table = super::table::ProcessTable::open().ok();
    table.and_then(|table| table.entry(id)).map_or(0, |entry| entry.started)
}

#[cfg(not(target_os = "linux"))]
fn started_at(_child: &KnownChild) -> u64 {
    0
}
