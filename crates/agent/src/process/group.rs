//! A process group, and the promise that it does not outlive its owner.

use rustix::process::{Pid, Signal, kill_process_group};

/// The group of a child; what is left of it is killed on drop.
pub(super) struct Group {
    leader: Option<Pid>,
}

impl Group {
    /// The group that a child was started in as its leader.
    pub(super) fn of(child: &tokio::process::Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Group { leader: id.and_then(Pid::from_raw) }
    }

    /// Asks every member to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends every member.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            // The only errors are that nobody is left, or nobody whom we may signal.
            let _ = kill_process_group(leader, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
