//! Decides when a lease has run out, without trusting a clock that can be set.
//!
//! A worker that took its lease in the same boot of the same machine can be measured directly, by the machine's
//! [`BootClock`]. Every other lease has to be observed: it has run out when it was not renewed for its whole length, by this
//! process's own clock. Neither the wall clock of a host nor the clock of a PostgreSQL server takes part, so setting one
//! forward ends no lease and setting it back prolongs none.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::boot_clock::BootClock;
use crate::limits::LEGACY_SILENCE;
use crate::store::tx::millis;

/// A lease as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeaseRow {
    pub(crate) id: String,
    pub(crate) token: i64,
    pub(crate) lease_beat: i64,
    /// `None` for a lease that an older version took: then nothing but its end by the wall clock is known.
    pub(crate) lease_length_ms: Option<i64>,
    pub(crate) lease_boot: Option<String>,
    pub(crate) lease_boot_until_ms: Option<i64>,
    pub(crate) shown_until_ms: Option<i64>,
    /// Whether the lease has ended by the store's wall clock, which may be wrong.
    pub(crate) is_over_by_wall_clock: bool,
}

/// The state of a lease, as far as this process can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Its worker may be at work.
    Held,
    /// Not renewed so far. It expires if it is not renewed for this many more milliseconds.
    Silent { left_ms: i64 },
    /// Expired.
    Over,
}

/// A lease that was seen, and since when it has not changed.
struct Seen {
    mark: (i64, i64, Option<i64>),
    since_ms: i64,
}

/// The leases that this process has observed.
#[derive(Default)]
pub(crate) struct Observer {
    seen: Mutex<BTreeMap<String, Seen>>,
}

impl Observer {
    /// Looks at all leases there are. The rows must have been read before this is called.
    pub(crate) fn look(&self, rows: Vec<LeaseRow>, clock: &BootClock) -> Vec<(LeaseRow, Standing)> {
        let now_ms = clock.now_ms();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *seen);
        let mut looked = Vec::with_capacity(rows.len());
        for row in rows {
            let mark = (row.token, row.lease_beat, row.shown_until_ms);
            let since_ms = match before.remove(&row.id) {
                Some(known) if known.mark == mark => known.since_ms,
                _ => now_ms,
            };
            let standing = standing(&row, clock.boot(), now_ms, now_ms.saturating_sub(since_ms));
            seen.insert(row.id.clone(), Seen { mark, since_ms });
            looked.push((row, standing));
        }
        looked
    }
}

/// The state of a lease at `now_ms` of the boot `boot`, after it was seen unchanged for `silent_ms`.
fn standing(row: &LeaseRow, boot: Option<&str>, now_ms: i64, silent_ms: i64) -> Standing {
    let Some(length_ms) = row.lease_length_ms else {
        return match row.is_over_by_wall_clock {
            true => silent(silent_ms, millis(LEGACY_SILENCE)),
            false => Standing::Held,
        };
    };
    if let (Some(theirs), Some(ours)) = (row.lease_boot.as_deref(), boot)
        && theirs == ours
        && let Some(until_ms) = row.lease_boot_until_ms
    {
        let left_ms = until_ms.saturating_sub(now_ms);
        if left_ms <= 0 {
            return Standing::Over;
        }
        // Farther ahead than the lease is long: the machine was restored from a snapshot, and its clock with it.
        if left_ms <= length_ms {
            return Standing::Held;
        }
    }
    silent(silent_ms, length_ms)
}

fn silent(silent_ms: i64, length_ms: i64) -> Standing {
    match length_ms.saturating_sub(silent_ms) {
        left_ms if left_ms <= 0 => Standing::Over,
        left_ms => Standing::Silent { left_ms },
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

    #[test]
    fn the_same_boot_is_measured_and_every_other_observed() {
        let left = |left_ms| Standing::Silent { left_ms };
        for (row, silent_ms, expected) in [
            (row(Some("a"), 1_010), 0, Standing::Held),
            (row(Some("a"), 1_010), 999, Standing::Held),
            (row(Some("a"), 1_000), 0, Standing::Over),
            // The machine was restored from a snapshot.
            (row(Some("a"), 9_000), 0, left(30)),
            (row(Some("a"), 9_000), 30, Standing::Over),
            // Another boot or another machine.
            (row(Some("b"), 5), 0, left(30)),
            (row(Some("b"), 5), 29, left(1)),
            (row(Some("b"), 5), 30, Standing::Over),
            (row(None, 5), 29, left(1)),
        ] {
            assert_eq!(standing(&row, Some("a"), 1_000, silent_ms), expected, "{row:?}");
        }
        assert_eq!(standing(&row(Some("a"), 5), None, 1_000, 0), left(30));
    }

    #[test]
    fn the_lease_of_an_older_version_ends_only_when_it_is_silent_too() {
        let legacy = LeaseRow { lease_length_ms: None, ..row(None, 0) };
        let silence_ms = millis(LEGACY_SILENCE);
        let left = |left_ms| Standing::Silent { left_ms };
        assert_eq!(standing(&legacy, Some("a"), 1_000, 0), left(silence_ms));
        assert_eq!(standing(&legacy, Some("a"), 1_000, silence_ms), Standing::Over);
        let held = LeaseRow { is_over_by_wall_clock: false, ..legacy };
        assert_eq!(standing(&held, Some("a"), 1_000, silence_ms), Standing::Held);
    }

    #[test]
    fn a_renewed_lease_is_observed_anew() {
        let observer = Observer::default();
        let at = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
        let time = at.clone();
        let now = std::sync::Arc::new(move || time.load(std::sync::atomic::Ordering::Relaxed));
        let clock = BootClock::new(Some("a"), now);
        let look = |beat: i64, now_ms: u64| {
            at.store(now_ms, std::sync::atomic::Ordering::Relaxed);
            let row = LeaseRow { lease_beat: beat, ..row(Some("b"), 0) };
            observer.look(vec![row], &clock)[0].1
        };
        assert_eq!(look(1, 0), Standing::Silent { left_ms: 30 });
        assert_eq!(look(1, 20), Standing::Silent { left_ms: 10 });
        assert_eq!(look(2, 25), Standing::Silent { left_ms: 30 });
        assert_eq!(look(2, 54), Standing::Silent { left_ms: 1 });
        assert_eq!(look(2, 55), Standing::Over);
        // A run that was away is not remembered.
        assert!(observer.look(Vec::new(), &clock).is_empty());
        assert_eq!(look(2, 60), Standing::Silent { left_ms: 30 });
    }
}
