//! What keeps programs in their place: probed once, and a lack of it is told, never silent.
//!
//! A program is confined by starting something else in its stead: a helper that puts up the walls and then becomes the
//! program, or `bwrap`. The walls stand in the kernel; nothing here reads commands and guesses what they do. A wall
//! that was found at the probe and cannot be put up later means that the program does not start.
//!
//! The helper stays as the supervisor of the program: it ends every descendant with it, and the whole tree when it uses
//! more memory, processes or disk space than the workplace allows. The processor is not limited; commands have time limits.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub(crate) use self::guard::PICTURES;
pub(crate) use self::policy::private_dir;
use self::policy::{Policy, Walls};
pub(crate) use self::search::SearchedTree;
use crate::process::{Spawn, Termination, TerminationScope, supervised};
use crate::workplace::Workplace;

mod bubblewrap;
mod environment;
mod guarantee;
mod guard;
#[cfg(target_os = "linux")]
mod helper;
mod nested;
mod policy;
mod probe;
mod probed;
mod search;
mod toolchains;

pub use self::environment::scrubbed;
pub use self::guarantee::{Guarantee, UnknownGuarantee};
pub use self::guard::{Change, Guard, Outcome};
pub use self::probed::Probed;

/// What keeps programs in their place. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sandbox {
    /// Nothing does, because nobody asked for it.
    #[default]
    None,
    /// Nothing does, because the machine has nothing.
    Unavailable {
        /// Why, for the user.
        reason: Arc<str>,
    },
    /// Our helper does.
    Landlock(Arc<Landlock>),
    /// `bwrap` does.
    Bubblewrap(Arc<Bubblewrap>),
}

/// Our helper, and what the kernel lets it do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landlock {
    helper: Vec<String>,
    walls: Walls,
    /// The version of Landlock.
    abi: u32,
    /// The guarantees that held when the probe tried to break them.
    guarantees: BTreeSet<Guarantee>,
    /// Further limitations to report to the user.
    notes: Vec<String>,
}

/// The program `bwrap`, with our helper before it for folders and open files, and inside it for system calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bubblewrap {
    program: String,
    helper: Vec<String>,
    guarantees: BTreeSet<Guarantee>,
    notes: Vec<String>,
}

/// Whether programs may reach the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Network {
    /// They may not.
    #[default]
    Off,
    /// They may, the machine's own services included.
    On,
}

impl Sandbox {
    /// Finds the best that this machine allows, by trying it. `helper` is a program and its first arguments that end
    /// in [`helper_main`]; the program has to be an absolute path. Takes some milliseconds; keep the answer.
    pub fn probe(helper: &[String]) -> Sandbox {
        probe::best(helper)
    }

    /// Every kind that works on this machine, the best first.
    pub fn probe_all(helper: &[String]) -> Vec<Sandbox> {
        probe::all(helper)
    }

    /// The same program, confined. Without a sandbox it is only [`supervised`].
    ///
    /// Readable tool chains come from the environment of the workplace. Variables that `spawn` adds reach the program and
    /// make nothing else readable.
    ///
    /// The exit code of a program that a signal ended is 128 and the number of the signal, as in a shell; that of one
    /// that could not be started is 127, and the reason is on standard error.
    #[must_use]
    pub fn confine(&self, spawn: Spawn, workplace: &Workplace, network: Network) -> Spawn {
        match self {
            Sandbox::None | Sandbox::Unavailable { .. } => {
                supervised(spawn, workplace.limits.usage)
            }
            Sandbox::Landlock(landlock) => {
                let helper = &landlock.helper;
                let policy = Policy::new(landlock.walls, helper, &spawn, workplace, network);
                rewritten(spawn, helper.clone(), &policy)
            }
            Sandbox::Bubblewrap(bubblewrap) => {
                let helper = &bubblewrap.helper;
                let policy = Policy::new(Walls::FilterOnly, helper, &spawn, workplace, network);
                let mut words = helper.clone();
                words.extend(["--".to_owned(), bubblewrap.program.clone()]);
                words.extend(bubblewrap::args(&policy, &spawn));
                words.extend(helper.iter().cloned());
                rewritten(spawn, words, &policy)
            }
        }
    }

    /// Whether anything keeps programs in their place.
    pub fn is_enforced(&self) -> bool {
        matches!(self, Sandbox::Landlock(_) | Sandbox::Bubblewrap(_))
    }

    /// The guarantees that hold here, found out by trying to break them from inside.
    pub fn guarantees(&self) -> BTreeSet<Guarantee> {
        match self {
            Sandbox::None | Sandbox::Unavailable { .. } => BTreeSet::new(),
            Sandbox::Landlock(landlock) => landlock.guarantees.clone(),
            Sandbox::Bubblewrap(bubblewrap) => bubblewrap.guarantees.clone(),
        }
    }

    /// Whether protected paths are read-only to programs, rather than put back afterwards.
    pub fn protects_paths(&self) -> bool {
        self.guarantees().contains(&Guarantee::ProtectedPathsReadOnly)
    }

    /// One line for people: what is enforced.
    pub fn describe(&self) -> String {
        match self {
            Sandbox::None => "no sandbox: it is switched off".to_owned(),
            Sandbox::Unavailable { reason } => format!("no sandbox: {reason}"),
            Sandbox::Landlock(landlock) => {
                let namespaces = match landlock.walls {
                    Walls::All => "namespaces, ",
                    Walls::Unprivileged | Walls::FilterOnly => "",
                };
                format!("sandbox: {namespaces}Landlock (version {}), seccomp", landlock.abi)
            }
            Sandbox::Bubblewrap(_) => "sandbox: bubblewrap (namespaces), seccomp".to_owned(),
        }
    }

    /// What is not enforced and could be, each with what to do about it. Empty when nothing is missing.
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
            Sandbox::Landlock(landlock) => lacks(&landlock.guarantees, &landlock.notes),
            Sandbox::Bubblewrap(bubblewrap) => lacks(&bubblewrap.guarantees, &bubblewrap.notes),
        }
    }
}

fn lacks(guarantees: &BTreeSet<Guarantee>, notes: &[String]) -> Vec<String> {
    let missing = Guarantee::missing_in(guarantees);
    let missing = missing.iter().map(|guarantee| format!("{} ({guarantee})", guarantee.lack()));
    notes.iter().cloned().chain(missing).collect()
}

/// Reads the policy from its environment and `-- PROGRAM ARGS…` from its arguments, puts up the walls and becomes the
/// program. Call it from a process with one thread,
/// before any runtime starts: Landlock binds the thread that asks for it.
#[cfg(target_os = "linux")]
pub fn helper_main(args: &[String]) -> std::process::ExitCode {
    helper::main(args)
}

/// There is no helper for this system.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::print_stderr, reason = "the helper has nobody else to tell")]
pub fn helper_main(_args: &[String]) -> std::process::ExitCode {
    eprintln!("sandbox: this system has no Landlock");
    std::process::ExitCode::from(126)
}

/// The program's variables travel in the policy: the helper starts with that one variable and no other.
fn rewritten(spawn: Spawn, words: Vec<String>, policy: &Policy) -> Spawn {
    let mut words = words.into_iter();
    let program = words.next().unwrap_or_default();
    let mut args: Vec<String> = words.collect();
    args.extend(["--".to_owned(), spawn.program]);
    args.extend(spawn.args);
    let environment = vec![policy.helper_environment()];
    let termination = Termination { scope: TerminationScope::Descendants, ..spawn.termination };
    Spawn { program, args, environment, termination, ..spawn }
}
