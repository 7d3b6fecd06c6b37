//! The clock that leases are measured by: the time that this machine has been awake since it booted.
//!
//! Nobody can set it, and it stands still while the machine is suspended, together with every worker on the machine. Two
//! readings can be compared only if they were taken in the same boot and in the same time namespace.

use std::fmt;
use std::io::Read;
use std::sync::Arc;

/// The identifier of the current boot on Linux.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// The time namespace of this process: clocks of another one are shifted.
const TIME_NAMESPACE: &str = "/proc/self/ns/time";
/// The length of a boot identifier, with room to spare.
const BOOT_ID_BYTES_MAX: u64 = 128;

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

    /// A clock for tests. `boot` is `None` for a machine that cannot name its boot.
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

/// The boot and the time namespace, if the system tells both.
fn boot_of_this_machine() -> Option<String> {
    let mut boot = String::new();
    std::fs::File::open(BOOT_ID).ok()?.take(BOOT_ID_BYTES_MAX).read_to_string(&mut boot).ok()?;
    // Kernels without time namespaces have one clock for all.
    let namespace = std::fs::read_link(TIME_NAMESPACE).unwrap_or_default();
    let boot = boot.trim();
    (!boot.is_empty()).then(|| format!("{boot} {}", namespace.display()))
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
        assert!(clock.boot().is_some_and(|boot| boot.len() > 30), "{clock:?}");
    }
}
