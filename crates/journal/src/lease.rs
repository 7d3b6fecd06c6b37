//! Decides when a lease has expired, without trusting a clock that can be set.
//!
//! A lease taken in the same boot of the same machine is measured directly, by the machine's
//! [`BootClock`]. A worker of an earlier boot of this machine is gone, since no process survives a
//! reboot. Every other lease has to be observed: it has expired when it was not renewed for its
//! whole length, by this process's own clock. Neither the wall clock of a host nor the clock of a
//! PostgreSQL server is used, so setting one forward ends no lease and setting it back prolongs
//! none.
//!
//! "An earlier boot of this machine" is assumed only for a SQLite file, which lies on a disk of
//! this machine, and only if the machine has the same name: a digest of `/etc/machine-id` and the
//! host name. Each of these conditions alone is not enough:
//!
//! - PostgreSQL serves many machines. Clones of a virtual machine, and containers of one image on
//!   several hosts, can have the same machine id and host name, and different boots that are all
//!   alive.
//! - A SQLite file may lie on a network file system or in a folder shared with a virtual machine,
//!   although it should not. Then a different boot is a different machine, and the machine name
//!   shows it.
//! - Containers on one host share the boot id, so they are measured and never taken for another
//!   boot. A container that gets a new host name after a reboot counts as another machine, and its
//!   lease is observed.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::boot_clock::{BootClock, BootName};
use crate::limits::LEGACY_SILENCE;
use crate::store::tx::duration_millis;

/// A lease as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeaseRow {
    pub(crate) id: String,
    pub(crate) token: i64,
    pub(crate) lease_beat: i64,
    /// `None` for a lease taken by an older version: only its end by the wall clock is known.
    pub(crate) lease_length_ms: Option<i64>,
    pub(crate) lease_boot: Option<String>,
    pub(crate) lease_boot_until_ms: Option<i64>,
    pub(crate) shown_until_ms: Option<i64>,
    /// True if the lease has ended by the store's wall clock, which may be wrong.
    pub(crate) is_over_by_wall_clock: bool,
}

/// The values of a lease that a renewal changes.
pub(crate) type LeaseMark = (i64, i64, Option<i64>);

impl LeaseRow {
    pub(crate) fn mark(&self) -> LeaseMark {
        (self.token, self.lease_beat, self.shown_until_ms)
    }
}

/// The state of a lease, as far as this process can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseState {
    /// The worker may be active.
    Held,
    /// Not renewed so far. The lease expires if it is not renewed for this many more milliseconds.
    Silent { left_ms: i64 },
    /// Expired.
    Over,
}

/// The machines a store can be used from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreReach {
    /// This machine only: a file.
    OneMachine,
    /// Any machine: a server.
    ManyMachines,
}

/// An observed lease, and the time since when it has not changed.
struct ObservedLease {
    mark: LeaseMark,
    since_ms: i64,
}

/// The leases this process has observed.
#[derive(Default)]
pub(crate) struct LeaseObserver {
    seen: Mutex<BTreeMap<String, ObservedLease>>,
}

impl LeaseObserver {
    /// Updates the observations with all current leases and returns the state of each. The rows
    /// must have been read before the call.
    pub(crate) fn observe_leases(
        &self,
        rows: Vec<LeaseRow>,
        reach: StoreReach,
        clock: &BootClock,
    ) -> Vec<(LeaseRow, LeaseState)> {
        let now_ms = clock.now_ms();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *seen);
        let mut looked = Vec::with_capacity(rows.len());
        for row in rows {
            let mark = row.mark();
            let since_ms = match before.remove(&row.id) {
                Some(known) if known.mark == mark => known.since_ms,
                _ => now_ms,
            };
            let here = CurrentBoot { reach, boot: clock.boot(), now_ms };
            let standing = here.lease_state(&row, now_ms.saturating_sub(since_ms));
            seen.insert(row.id.clone(), ObservedLease { mark, since_ms });
            looked.push((row, standing));
        }
        looked
    }
}

/// The current boot and time, which leases are compared with.
struct CurrentBoot<'a> {
    reach: StoreReach,
    boot: Option<&'a str>,
    now_ms: i64,
}

impl CurrentBoot<'_> {
    /// Returns the state of a lease that was seen unchanged for `silent_ms`.
    fn lease_state(&self, row: &LeaseRow, silent_ms: i64) -> LeaseState {
        let Some(length_ms) = row.lease_length_ms else {
            return if row.is_over_by_wall_clock {
                silent_state(silent_ms, duration_millis(LEGACY_SILENCE))
            } else {
                LeaseState::Held
            };
        };
        let boots = row.lease_boot.as_deref().zip(self.boot);
        if let Some((theirs, ours)) = boots {
            let (theirs, ours) = (BootName::parse(theirs), BootName::parse(ours));
            if self.reach == StoreReach::OneMachine && theirs.is_other_boot_of_machine(&ours) {
                return LeaseState::Over;
            }
            if theirs.has_clock_of(&ours)
                && let Some(until_ms) = row.lease_boot_until_ms
            {
                let left_ms = until_ms.saturating_sub(self.now_ms);
                if left_ms <= 0 {
                    return LeaseState::Over;
                }
                // An end farther ahead than the lease is long means that the machine was restored
                // from a snapshot, and its clock with it.
                if left_ms <= length_ms {
                    return LeaseState::Held;
                }
            }
        }
        silent_state(silent_ms, length_ms)
    }
}

fn silent_state(silent_ms: i64, length_ms: i64) -> LeaseState {
    match length_ms.saturating_sub(silent_ms) {
        left_ms if left_ms <= 0 => LeaseState::Over,
        left_ms => LeaseState::Silent { left_ms },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(boot: Option<&str>, until_ms: i64) -> LeaseRow {
        LeaseRow {
            id: "r".into(),
            token: 1,
            lease_beat: 1,
            lease_length_ms: Some(30),
            lease_boot: boot.map(Into::into),
            lease_boot_until_ms: Some(until_ms),
            shown_until_ms: None,
            is_over_by_wall_clock: true,
        }
    }

    fn here(boot: Option<&str>) -> CurrentBoot<'_> {
        CurrentBoot { reach: StoreReach::OneMachine, boot, now_ms: 1_000 }
    }

    #[test]
    fn the_same_boot_is_measured_and_every_other_observed() {
        let left = |left_ms| LeaseState::Silent { left_ms };
        for (row, silent_ms, expected) in [
            (row(Some("a"), 1_010), 0, LeaseState::Held),
            (row(Some("a"), 1_010), 999, LeaseState::Held),
            (row(Some("a"), 1_000), 0, LeaseState::Over),
            // The machine was restored from a snapshot.
            (row(Some("a"), 9_000), 0, left(30)),
            (row(Some("a"), 9_000), 30, LeaseState::Over),
            // Another boot or another machine.
            (row(Some("b"), 5), 0, left(30)),
            (row(Some("b"), 5), 29, left(1)),
            (row(Some("b"), 5), 30, LeaseState::Over),
            (row(None, 5), 29, left(1)),
        ] {
            assert_eq!(here(Some("a")).lease_state(&row, silent_ms), expected, "{row:?}");
        }
        assert_eq!(here(None).lease_state(&row(Some("a"), 5), 0), left(30));
    }

    #[test]
    fn a_lease_of_an_earlier_boot_of_this_machine_is_over() {
        let left = LeaseState::Silent { left_ms: 30 };
        for (boot, file, server) in [
            ("1 time m", LeaseState::Over, left),
            // Another machine, one that is not known, and the name that an older version gave.
            ("1 time n", left, left),
            ("1 time ", left, left),
            ("1 time", left, left),
            // The same boot: another container with a clock of its own, and one with the same clock.
            ("2 other m", left, left),
            ("2 time n", LeaseState::Held, LeaseState::Held),
            ("2 time", LeaseState::Held, LeaseState::Held),
        ] {
            for (reach, expected) in
                [(StoreReach::OneMachine, file), (StoreReach::ManyMachines, server)]
            {
                let here = CurrentBoot { reach, boot: Some("2 time m"), now_ms: 1_000 };
                assert_eq!(
                    here.lease_state(&row(Some(boot), 1_010), 0),
                    expected,
                    "{boot} {reach:?}"
                );
            }
        }
        let unknown =
            CurrentBoot { reach: StoreReach::OneMachine, boot: Some("2 time "), now_ms: 1_000 };
        assert_eq!(unknown.lease_state(&row(Some("1 time "), 1_010), 0), left);
    }

    #[test]
    fn the_lease_of_an_older_version_ends_only_when_it_is_silent_too() {
        let legacy = LeaseRow { lease_length_ms: None, ..row(None, 0) };
        let silence_ms = duration_millis(LEGACY_SILENCE);
        let left = |left_ms| LeaseState::Silent { left_ms };
        assert_eq!(here(Some("a")).lease_state(&legacy, 0), left(silence_ms));
        assert_eq!(here(Some("a")).lease_state(&legacy, silence_ms), LeaseState::Over);
        let held = LeaseRow { is_over_by_wall_clock: false, ..legacy };
        assert_eq!(here(Some("a")).lease_state(&held, silence_ms), LeaseState::Held);
    }

    #[test]
    fn a_renewed_lease_is_observed_anew() {
        let observer = LeaseObserver::default();
        let at = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
        let time = at.clone();
        let now = std::sync::Arc::new(move || time.load(std::sync::atomic::Ordering::Relaxed));
        let clock = BootClock::new(Some("a"), now);
        let look = |beat: i64, now_ms: u64| {
            at.store(now_ms, std::sync::atomic::Ordering::Relaxed);
            let row = LeaseRow { lease_beat: beat, ..row(Some("b"), 0) };
            observer.observe_leases(vec![row], StoreReach::OneMachine, &clock)[0].1
        };
        assert_eq!(look(1, 0), LeaseState::Silent { left_ms: 30 });
        assert_eq!(look(1, 20), LeaseState::Silent { left_ms: 10 });
        assert_eq!(look(2, 25), LeaseState::Silent { left_ms: 30 });
        assert_eq!(look(2, 54), LeaseState::Silent { left_ms: 1 });
        assert_eq!(look(2, 55), LeaseState::Over);
        // A lease that was missing in between is observed from the start again.
        assert!(observer.observe_leases(Vec::new(), StoreReach::OneMachine, &clock).is_empty());
        assert_eq!(look(2, 60), LeaseState::Silent { left_ms: 30 });
    }
}
