//! The clock that measures leases: how long this machine has been awake since it booted.
//!
//! The clock cannot be set, and it stops while the machine is suspended, together with every worker
//! on the machine. Two readings are comparable only if they were taken in the same boot and the
//! same time namespace ([`BootName`]).

use std::fmt;
use std::io::Read;
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// The identifier of the current boot on Linux.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// The time namespace of this process. Clocks in different namespaces have different offsets.
const TIME_NAMESPACE: &str = "/proc/self/ns/time";
/// The identifier of the installation. Many containers have none, or an empty one.
const MACHINE_ID: &str = "/etc/machine-id";
/// The maximum length of an identifier, with room to spare.
const ID_BYTES_MAX: u64 = 128;
/// The number of hex digits in a machine name.
const MACHINE_DIGITS: usize = 16;

/// The components of a boot name, which is stored as words separated by spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BootName<'a> {
    /// The boot id. All containers on a machine share it.
    boot: &'a str,
    /// The time namespace; empty if the kernel has none.
    namespace: &'a str,
    /// The machine name, which is stable across reboots; empty if unknown.
    machine: &'a str,
}

impl<'a> BootName<'a> {
    pub(crate) fn parse(text: &'a str) -> Self {
        let mut words = text.split(' ');
        let mut next = || words.next().unwrap_or_default();
        BootName { boot: next(), namespace: next(), machine: next() }
    }

    /// Returns true if readings of the two clocks can be compared.
    pub(crate) fn has_clock_of(&self, other: &BootName<'_>) -> bool {
        (self.boot, self.namespace) == (other.boot, other.namespace)
    }

    /// Returns true if this is a different boot of the same machine, so that one of the two has
    /// ended. Two containers in the same boot do not qualify.
    pub(crate) fn is_other_boot_of_machine(&self, other: &BootName<'_>) -> bool {
        !self.machine.is_empty() && self.machine == other.machine && self.boot != other.boot
    }
}

/// A monotonic clock, together with the boot it belongs to.
#[derive(Clone)]
pub struct BootClock {
    boot: Option<Arc<str>>,
    now_ms: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl BootClock {
    /// Returns the clock of this machine.
    pub fn of_this_machine() -> Self {
        BootClock { boot: boot_of_this_machine().map(Arc::from), now_ms: Arc::new(awake_ms) }
    }

    /// Creates a clock for tests. `boot` is the boot id, the time namespace and the machine name,
    /// separated by spaces, or `None` for a machine without a boot id.
    pub fn new(boot: Option<&str>, now_ms: Arc<dyn Fn() -> u64 + Send + Sync>) -> Self {
        BootClock { boot: boot.map(Arc::from), now_ms }
    }

    /// The boot name, or `None` if the system does not provide one.
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

/// Returns how long the machine has been awake since it booted.
fn awake_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000).saturating_add(nanoseconds / 1_000_000)
}

/// Returns the boot name, or `None` if the system provides no boot id.
fn boot_of_this_machine() -> Option<String> {
    let boot = first_word_of(BOOT_ID)?;
    // Kernels without time namespaces have a single clock.
    let namespace = std::fs::read_link(TIME_NAMESPACE).unwrap_or_default();
    Some(format!("{boot} {} {}", namespace.display(), this_machine()))
}

/// Returns the name of this machine. Clones and containers often share a machine id or a host name,
/// but rarely both. The machine id is confidential (see machine-id(5)), so only a digest is stored.
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
