//! Supervised programs. A supervisor is a process of ours between the caller and the program: it adopts every
//! descendant whose parent ends, and kills all of them when the program or the caller ends.
//!
//! The supervisor is this executable, started again with arguments that lead to
//! [`helper_main`](crate::confinement::helper_main); [`install_supervisor`] sets them. It is controlled by signals:
//! `SIGTERM` and `SIGINT` are forwarded to the program, `SIGQUIT` kills everything at once. If the supervisor itself is
//! killed, its descendants become children of this process, which kills them.

use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock, PoisonError};

use camino::Utf8PathBuf;
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use super::usage::{ExceededLimit, LimitedResource, UsageLimits};
use super::{ProcessSpec, TerminationScope, TerminationSettings};

/// The first argument that asks the helper to supervise a program without a sandbox.
pub(crate) const SUPERVISE_WORD: &str = "--supervise";
/// The variable that marks the programs of one supervisor.
#[cfg(target_os = "linux")]
pub(crate) const MARKER_VARIABLE: &str = "REPERTOIRE_PROCESS";
/// The separator before the program in a supervised command line.
const DASHES: &str = "--";

static SUPERVISOR: OnceLock<Vec<String>> = OnceLock::new();
static CHILDREN: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Everything that a supervisor needs to know besides the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SupervisorOrder {
    /// The process that started the supervisor. When it ends, the program is killed.
    pub(crate) parent: u32,
    /// The value of [`MARKER_VARIABLE`] for the program.
    pub(crate) marker: String,
    /// The limits on the program and its descendants together.
    pub(crate) limits: UsageLimits,
    /// The folders that the program writes to.
    pub(crate) folders: Vec<Utf8PathBuf>,
    /// The work folder that the supervisor restores if its parent process has ended.
    #[serde(default)]
    pub(crate) guarded: Option<GuardedFolder>,
}

/// A work folder with a snapshot of its protected paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GuardedFolder {
    pub(crate) dir: Utf8PathBuf,
    /// The file with the snapshot.
    pub(crate) picture: Utf8PathBuf,
}

impl SupervisorOrder {
    /// An order with this process as the parent.
    pub(crate) fn new(limits: UsageLimits, folders: Vec<Utf8PathBuf>) -> SupervisorOrder {
        let marker = uuid::Uuid::now_v7().simple().to_string();
        SupervisorOrder { parent: std::process::id(), marker, limits, folders, guarded: None }
    }
}

/// Makes this process run programs under a supervisor. `helper` is a program (an absolute path) and the leading
/// arguments with which it calls [`helper_main`](crate::confinement::helper_main). From now on, this process adopts the
/// descendants of supervisors that were killed. Call it once, at the start of a program.
pub fn install_supervisor(helper: Vec<String>) {
    let is_absolute = helper.first().is_some_and(|program| program.starts_with('/'));
    if cfg!(target_os = "linux") && is_absolute && SUPERVISOR.set(helper).is_ok() {
        adopt_orphans();
    }
}

#[cfg(target_os = "linux")]
fn adopt_orphans() {
    // If this fails, the descendants of a killed supervisor are left to the system. That is no reason not to start.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

#[cfg(not(target_os = "linux"))]
fn adopt_orphans() {}

/// Rewrites a spawn so that a supervisor starts the program. Returns it unchanged if no supervisor is installed, or if
/// the program cannot be started anyway: then the caller gets the original error.
#[must_use]
pub fn with_supervisor(spawn: ProcessSpec, limits: UsageLimits) -> ProcessSpec {
    let helper = SUPERVISOR.get().filter(|_| is_startable(&spawn));
    let Some((program, first)) = helper.and_then(|helper| helper.split_first()) else {
        return spawn;
    };
    let order = SupervisorOrder::new(limits, vec![spawn.dir.clone()]);
    let order = serde_json::to_string(&order).expect("an order is numbers and text");
    let mut args = first.to_vec();
    args.extend([SUPERVISE_WORD.to_owned(), order, DASHES.to_owned(), spawn.program]);
    args.extend(spawn.args);
    let termination =
        TerminationSettings { scope: TerminationScope::Descendants, ..spawn.termination };
    ProcessSpec { program: program.clone(), args, termination, ..spawn }
}

fn is_startable(spawn: &ProcessSpec) -> bool {
    let path = spawn.environment.iter().find(|(name, _)| name == "PATH");
    let mut folders = path.map_or("/bin:/usr/bin", |(_, path)| path).split(':');
    spawn.dir.is_dir()
        && if spawn.program.contains('/') {
            spawn.dir.join(&spawn.program).is_file()
        } else {
            folders.any(|folder| spawn.dir.join(folder).join(&spawn.program).is_file())
        }
}

/// The signal with which a supervisor ends itself to report an exceeded limit. It cannot be confused with a signal that
/// ended the program, which is reported as an exit code above 128.
pub(crate) fn signal_of(resource: LimitedResource) -> Signal {
    match resource {
        LimitedResource::Memory => Signal::USR1,
        LimitedResource::Processes => Signal::USR2,
        LimitedResource::Disk => Signal::ALARM,
        LimitedResource::FreeDisk => Signal::VTALARM,
    }
}

/// The limit that a supervisor reported with the signal that ended it.
pub(super) fn exceeded_by(signal: Option<i32>, limits: &UsageLimits) -> Option<ExceededLimit> {
    let is_reported = |resource: &LimitedResource| Some(signal_of(*resource).as_raw()) == signal;
    LimitedResource::ALL
        .into_iter()
        .find(is_reported)
        .map(|resource| ExceededLimit::new(resource, limits))
}

/// A child that another part of this process waits for, and that must not be mistaken for an orphan of a killed
/// supervisor.
#[derive(Debug)]
pub(crate) struct KnownChild(i32);

impl KnownChild {
    /// Starts a child and registers it atomically, so that it cannot be mistaken for an orphan.
    pub(crate) fn start(
        command: &mut tokio::process::Command,
    ) -> std::io::Result<(tokio::process::Child, KnownChild)> {
        // Hold the lock across the spawn, so that no orphan search sees the child before it is registered.
        let mut children = lock_children();
        let child = command.spawn()?;
        let id = child.id().map_or(0, u32::cast_signed);
        children.insert(id);
        Ok((child, KnownChild(id)))
    }

    pub(crate) fn id(&self) -> Option<Pid> {
        Pid::from_raw(self.0)
    }
}

impl Drop for KnownChild {
    fn drop(&mut self) {
        lock_children().remove(&self.0);
    }
}

fn lock_children() -> std::sync::MutexGuard<'static, BTreeSet<i32>> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if another part of this process waits for the child.
#[cfg(target_os = "linux")]
pub(crate) fn is_known(id: i32) -> bool {
    lock_children().contains(&id)
}

/// Returns true if the process was adopted because its parent ended, so that it has to be reaped here.
#[cfg(target_os = "linux")]
pub(crate) fn is_adopted(id: i32) -> bool {
    SUPERVISOR.get().is_some() && !is_known(id)
}

/// Kills the processes that a killed supervisor left behind: those with its marker, and children that this process has
/// adopted since. Blocks until they have ended.
#[cfg(target_os = "linux")]
pub(super) fn end_orphans(marker: &str, started: u64) {
    use super::table::{ProcessEntry, ProcessTable};
    if SUPERVISOR.get().is_some()
        && let Ok(table) = ProcessTable::open()
    {
        let own = std::process::id().cast_signed();
        let is_known = |entry: &ProcessEntry| entry.started < started || is_known(entry.id);
        table.kill_descendants(own, &is_known);
    }
    if !marker.is_empty() {
        super::kill_marked_processes(MARKER_VARIABLE, |value| value == marker);
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn end_orphans(_marker: &str, _started: u64) {}

/// Finds the order of a supervised program: in its arguments, or in the policy in its environment.
pub(super) fn order_in(spawn: &ProcessSpec) -> Option<SupervisorOrder> {
    let values = spawn.environment.iter().map(|(_, value)| value);
    let mut orders = spawn.args.iter().chain(values).filter(|text| text.starts_with('{'));
    orders.find_map(|order| {
        let order: serde_json::Value = serde_json::from_str(order).ok()?;
        let order = order.get("supervisor").unwrap_or(&order);
        SupervisorOrder::deserialize(order).ok()
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::process::{ProcessInput, ProcessLimits};

    fn spawn(args: &[&str], values: &[&str]) -> ProcessSpec {
        let absolute = Duration::from_secs(1);
        ProcessSpec {
            program: "x".to_owned(),
            args: args.iter().map(|text| (*text).to_owned()).collect(),
            dir: "/".into(),
            environment: values.iter().map(|text| ("X".to_owned(), (*text).to_owned())).collect(),
            stdin: ProcessInput::Closed,
            limits: ProcessLimits { idle: None, absolute, grace: absolute, kept_bytes_max: 0 },
            termination: TerminationSettings::default(),
        }
    }

    #[test]
    fn each_limit_is_reported_by_a_signal_of_its_own() {
        let limits = UsageLimits::default_limits();
        for resource in LimitedResource::ALL {
            let exceeded = exceeded_by(Some(signal_of(resource).as_raw()), &limits);
            assert_eq!(exceeded, Some(ExceededLimit::new(resource, &limits)));
        }
        assert_eq!(exceeded_by(Some(Signal::KILL.as_raw()), &limits), None);
        assert_eq!(exceeded_by(None, &limits), None);
    }

    #[test]
    fn the_order_is_found_in_arguments_and_in_policies() {
        let order = SupervisorOrder::new(UsageLimits::default_limits(), Vec::new());
        let alone = serde_json::to_string(&order).unwrap();
        let within = serde_json::json!({ "walls": "All", "supervisor": order }).to_string();
        for text in [alone, within] {
            assert_eq!(order_in(&spawn(&[&text], &[])), Some(order.clone()));
            assert_eq!(order_in(&spawn(&[], &[&text])), Some(order.clone()));
        }
        assert_eq!(order_in(&spawn(&["{"], &["{"])), None);
    }
}
