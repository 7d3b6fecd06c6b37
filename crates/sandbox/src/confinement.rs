//! The sandbox: confines the programs that tools start. The machine is probed once, and missing protection is always
//! reported.
//!
//! A program is confined by starting something else in its place: our helper, which sets up the sandbox and then
//! executes the program, or `bwrap`. The kernel enforces the limits; this module never parses commands to guess what
//! they do. A sandbox layer that worked during the probe but fails later prevents the program from starting.
//!
//! The helper stays alive as the program's supervisor. It kills every descendant when the program ends, and the whole
//! tree when it exceeds the memory, process or disk limits of the workplace. CPU use is not limited; commands have
//! timeouts instead.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub(crate) use self::followed::{FollowedPaths, GitFollower, followed_paths};
pub(crate) use self::guard::PICTURES;
pub(crate) use self::policy::private_dir;
use self::policy::{SandboxLayers, SandboxPolicy};
pub(crate) use self::search::SearchedTree;
use crate::process::{ProcessSpec, TerminationScope, TerminationSettings, with_supervisor};
use crate::workplace::RunWorkplace;

mod bubblewrap;
mod environment;
mod followed;
mod guarantee;
mod guard;
#[cfg(target_os = "linux")]
mod helper;
mod lazy;
mod nested;
mod policy;
mod probe;
mod search;
mod toolchains;

pub use self::environment::scrub_environment;
pub use self::guarantee::{SandboxGuarantee, UnknownGuarantee};
pub use self::guard::{ProtectedPathChange, ProtectedPathGuard, ProtectedPathOutcome};
pub use self::lazy::LazySandbox;

/// The mechanism that confines programs. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sandbox {
    /// The sandbox is switched off.
    #[default]
    None,
    /// The machine supports no sandbox.
    Unavailable {
        /// The reason, as shown to the user.
        reason: Arc<str>,
    },
    /// Confined by our helper, with Landlock.
    Landlock(Arc<LandlockSandbox>),
    Bubblewrap(Arc<BubblewrapSandbox>),
}

/// Confinement by our helper, with the features that the kernel supports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandlockSandbox {
    helper: Vec<String>,
    walls: SandboxLayers,
    /// The Landlock ABI version.
    abi: u32,
    /// The guarantees that held when the probe tried to break them.
    guarantees: BTreeSet<SandboxGuarantee>,
    /// Further limitations to report to the user.
    notes: Vec<String>,
}

/// Confinement by `bwrap`. Our helper runs before it to prepare folders and close inherited files, and inside it to
/// install the system call filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BubblewrapSandbox {
    program: String,
    helper: Vec<String>,
    guarantees: BTreeSet<SandboxGuarantee>,
    notes: Vec<String>,
}

/// Network access of confined programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NetworkAccess {
    #[default]
    Off,
    /// Full access, including services on the machine itself.
    On,
}

impl Sandbox {
    /// Finds the strongest sandbox that works on this machine, by trying it. `helper` is a program (an absolute path)
    /// and the leading arguments with which it calls [`helper_main`]. Takes a few milliseconds; keep the result.
    pub fn probe(helper: &[String]) -> Sandbox {
        probe::probe_best(helper)
    }

    /// Returns every kind of sandbox that works on this machine, strongest first.
    pub fn probe_all(helper: &[String]) -> Vec<Sandbox> {
        probe::probe_all(helper)
    }

    /// Rewrites a spawn so that its program runs confined. Without a sandbox the program is only [`with_supervisor`].
    ///
    /// The workplace's environment determines which tool chains are readable. Variables added by `spawn` reach the
    /// program but do not make further paths readable.
    ///
    /// If a signal kills the program, the exit code is 128 plus the signal number, as in a shell. If the program cannot
    /// be started, the exit code is 126 or 127 and the reason is on standard error.
    #[must_use]
    pub fn confine(
        &self,
        spawn: ProcessSpec,
        workplace: &RunWorkplace,
        network: NetworkAccess,
    ) -> ProcessSpec {
        match self {
            Sandbox::None | Sandbox::Unavailable { .. } => {
                with_supervisor(spawn, workplace.limits.usage)
            }
            Sandbox::Landlock(landlock) => {
                let helper = &landlock.helper;
                let policy = SandboxPolicy::new(landlock.walls, helper, &spawn, workplace, network);
                wrap_spawn(spawn, helper.clone(), &policy)
            }
            Sandbox::Bubblewrap(bubblewrap) => {
                let helper = &bubblewrap.helper;
                let policy = SandboxPolicy::new(
                    SandboxLayers::FilterOnly,
                    helper,
                    &spawn,
                    workplace,
                    network,
                );
                let mut words = helper.clone();
                words.extend(["--".to_owned(), bubblewrap.program.clone()]);
                words.extend(bubblewrap::build_args(&policy, &spawn));
                words.extend(helper.iter().cloned());
                wrap_spawn(spawn, words, &policy)
            }
        }
    }

    /// Returns true if programs are confined at all.
    pub fn is_enforced(&self) -> bool {
        matches!(self, Sandbox::Landlock(_) | Sandbox::Bubblewrap(_))
    }

    /// The guarantees that hold here, established by trying to break them from inside.
    pub fn guarantees(&self) -> BTreeSet<SandboxGuarantee> {
        match self {
            Sandbox::None | Sandbox::Unavailable { .. } => BTreeSet::new(),
            Sandbox::Landlock(landlock) => landlock.guarantees.clone(),
            Sandbox::Bubblewrap(bubblewrap) => bubblewrap.guarantees.clone(),
        }
    }

    /// Returns true if protected paths are mounted read-only, rather than restored after each program.
    pub fn protects_paths(&self) -> bool {
        self.guarantees().contains(&SandboxGuarantee::ProtectedPathsReadOnly)
    }

    /// Describes in one line what is enforced.
    pub fn describe(&self) -> String {
        match self {
            Sandbox::None => "no sandbox: it is switched off".to_owned(),
            Sandbox::Unavailable { reason } => format!("no sandbox: {reason}"),
            Sandbox::Landlock(landlock) => {
                let namespaces = match landlock.walls {
                    SandboxLayers::All => "namespaces, ",
                    SandboxLayers::Unprivileged | SandboxLayers::FilterOnly => "",
                };
                format!("sandbox: {namespaces}Landlock (version {}), seccomp", landlock.abi)
            }
            Sandbox::Bubblewrap(_) => "sandbox: bubblewrap (namespaces), seccomp".to_owned(),
        }
    }

    /// Lists the protections that are missing, each with a remedy. Empty if nothing is missing.
    pub fn degradations(&self) -> Vec<String> {
        match self {
            Sandbox::None => vec![
                "Programs run without a sandbox, because it is switched off: they can read and write \
                 whatever you can, and reach the network."
                    .to_owned(),
            ],
            Sandbox::Unavailable { reason } => vec![format!(
                "Programs run without a sandbox: {reason}. They can read and write whatever you can, and reach \
                 the network. Use a kernel with Landlock (Linux 5.13 or later), install `bwrap`, or run all of it \
                 in a container."
            )],
            Sandbox::Landlock(landlock) => describe_missing(&landlock.guarantees, &landlock.notes),
            Sandbox::Bubblewrap(bubblewrap) => describe_missing(&bubblewrap.guarantees, &bubblewrap.notes),
        }
    }
}

fn describe_missing(guarantees: &BTreeSet<SandboxGuarantee>, notes: &[String]) -> Vec<String> {
    let missing = SandboxGuarantee::missing_in(guarantees);
    let missing =
        missing.iter().map(|guarantee| format!("{} ({guarantee})", guarantee.describe_lack()));
    notes.iter().cloned().chain(missing).collect()
}

/// Entry point of the helper. Reads the policy from the environment and `-- PROGRAM ARGS…` from `args`, sets up the
/// sandbox and executes the program. Call it from a single-threaded process before any runtime starts: Landlock
/// restricts only the calling thread.
#[cfg(target_os = "linux")]
pub fn helper_main(args: &[String]) -> std::process::ExitCode {
    helper::main(args)
}

/// Fails: there is no helper for this system.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::print_stderr, reason = "standard error is the helper's only channel")]
pub fn helper_main(_args: &[String]) -> std::process::ExitCode {
    eprintln!("sandbox: this system has no Landlock");
    std::process::ExitCode::from(126)
}

/// Replaces the program with the helper. The program's environment travels inside the policy; the helper itself starts
/// with that single variable.
fn wrap_spawn(spawn: ProcessSpec, words: Vec<String>, policy: &SandboxPolicy) -> ProcessSpec {
    let mut words = words.into_iter();
    let program = words.next().unwrap_or_default();
    let mut args: Vec<String> = words.collect();
    args.extend(["--".to_owned(), spawn.program]);
    args.extend(spawn.args);
    let environment = vec![policy.helper_environment()];
    let termination =
        TerminationSettings { scope: TerminationScope::Descendants, ..spawn.termination };
    ProcessSpec { program, args, environment, termination, ..spawn }
}
