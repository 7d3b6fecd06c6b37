//! The clock that leases are measured by: the time that this machine has been awake since it booted.
//!
//! Nobody can set it, and it stands still while the machine is suspended, together with every worker on the machine. Two
//! readings can be compared only if they were taken in the same boot and in the same time namespace ([`BootName`]).

use std::fmt;
use std::io::Read;
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// The identifier of the current boot on Linux.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// The time namespace of this process: clocks of another one are shifted.
const TIME_NAMESPACE: &str = "/proc/self/ns/time";
/// The identifier of the installation. It is missing or empty in many containers.
const MACHINE_ID: &str = "/etc/machine-id";
/// The length of an identifier, with room to spare.
const ID_BYTES_MAX: u64 = 128;
/// The number of digits of a machine's name.
const MACHINE_DIGITS: usize = 16;

/// The parts of a boot's name, which are written as words with a space in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BootName<'a> {
    /// The identifier of the boot. All containers of a machine have the same.
    boot: &'a str,
    /// The time namespace; empty if the kernel has none.
    namespace: &'a str,
    /// The machine, which stays the same when it boots again; empty if it is not known.
    machine: &'a str,
}

impl<'a> BootName<'a> {
    pub(crate) fn parse(text: &'a str) -> Self {
        let mut words = text.split(' ');
        let mut next = || words.next().unwrap_or_default();
        BootName { boot: next(), namespace: next(), machine: next() }
    }

    /// Whether readings of the two clocks can be compared.
    pub(crate) fn has_clock_of(&self, other: &BootName<'_>) -> bool {
        (self.boot, self.namespace) == (other.boot, other.namespace)
    }

    /// Whether this is another boot of the same machine, so that one of the two is over. Two containers of one boot are not.
    pub(crate) fn is_other_boot_of_machine(&self, other: &BootName<'_>) -> bool {
        !self.machine.is_empty() && self.machine == other.machine && self.boot != other.boot
    }
}

/// A clock that only ever advances, with the boot that it belongs to.
#[derive(Clone)]
pub struct BootClock {
    boot: Option<Arc<str>>,
    now_ms: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl BootClock {
    /// The clock of this machine.
    pub fn of_this_machine() -> Self {
        BootClock { boot: boot_of_this_machine().map(Arc::from), now_ms: Arc::new(awake_ms) }
    }

    /// A clock for tests. `boot` names the boot, the time namespace and the machine, with spaces in between; it is `None` for a
    /// machine that cannot name its boot.
    pub fn new(boot: Option<&str>, now_ms: Arc<dyn Fn() -> u64 + Send + Sync>) -> Self {
        BootClock { boot: boot.map(Arc::from), now_ms }
    }

    /// The name of the boot; `None` if the system does not tell.
    pub(crate) fn boot(&self) -> Option<&str> {
        self.boot.as_deref()
    }

    pub(crate) fn now_ms(&self) -> i64 {
        i64::try_from((self.now_ms)()).unwrap_or(i64::MAX)
    }
}

impl fmt::Debug for BootClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BootClock").field("boot", &self.boot).finish_non_exhaustive()
    }
}

/// Milliseconds that the machine has been awake since it booted.
fn awake_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000).saturating_add(nanoseconds / 1_000_000)
}

/// The name of the boot, if the system tells its identifier.
fn boot_of_this_machine() -> Option<String> {
    let boot = first_word_of(BOOT_ID)?;
    // Kernels without time namespaces have one clock for all.
    let namespace = std::fs::read_link(TIME_NAMESPACE).unwrap_or_default();
    Some(format!("{boot} {} {}", namespace.display(), this_machine()))
}

/// The name of this machine. Clones and containers often share an installation's identifier or a host name, but seldom both.
/// The identifier is not for other programs to see, so only a digest is stored.
fn this_machine() -> String {
    let installation = first_word_of(MACHINE_ID).unwrap_or_default();
    let system = rustix::system::uname();
    let mut digest = Sha256::new_with_prefix("repertoire machine 1\n");
    digest.update(installation);
    digest.update("\n");
    digest.update(system.nodename().to_bytes());
    let mut name = format!("{:x}", digest.finalize());
    name.truncate(MACHINE_DIGITS);
    name
}

fn first_word_of(path: &str) -> Option<String> {
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(ID_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.split_whitespace().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_clock_of_this_machine_advances_and_names_its_boot() {
        let clock = BootClock::of_this_machine();
        let (first, second) = (clock.now_ms(), clock.now_ms());
        assert!(first > 0 && second >= first, "{first} {second}");
        assert_eq!(clock.boot(), BootClock::of_this_machine().boot());
        let name = BootName::parse(clock.boot().unwrap());
        assert!(name.boot.len() > 30, "{clock:?}");
        assert_eq!(name.machine.len(), MACHINE_DIGITS, "{clock:?}");
    }
}
