//! Leases and clocks that are set while workers are at work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use repertoire_journal::{
    BootClock, Command, Journal, JournalError, QueueWorker, RunStatus, RunStopRequest, Target,
};

use super::{Place, agrees, claim, claimed, completed, finished, new_run, started, worker};

const LEASE: Duration = Duration::from_secs(30);
const LEASE_MS: u64 = 30_000;
/// The wall clock of the hosts before it is set.
const WALL_MS: u64 = 1_800_000_000_000;

/// PostgreSQL's clock, which adds what a table says.
const SERVER_CLOCK: &str = "CREATE SCHEMA skewed; CREATE TABLE skewed.skew (ms BIGINT NOT NULL); \
    INSERT INTO skewed.skew VALUES (0); \
    CREATE FUNCTION skewed.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql AS \
    $$ SELECT pg_catalog.clock_timestamp() + ms * interval '1 millisecond' FROM skewed.skew $$; \
    DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = skewed, pg_catalog', \
    current_database()); END $$";

/// Jumps of a clock in milliseconds, and how the clock of a PostgreSQL server is made to jump.
const JUMPS: [(i64, &str); 4] = [
    (3_600_000, "UPDATE skewed.skew SET ms = 3600000"),
    (-3_600_000, "UPDATE skewed.skew SET ms = -3600000"),
    (86_400_000, "UPDATE skewed.skew SET ms = 86400000"),
    (-86_400_000, "UPDATE skewed.skew SET ms = -86400000"),
];
const NO_JUMP: &str = "UPDATE skewed.skew SET ms = 0";

/// A host: its wall clock, which can be set, and its boot clock, which cannot.
struct Host {
    boot: &'static str,
    wall_ms: Arc<AtomicU64>,
    awake_ms: Arc<AtomicU64>,
}

impl Host {
    fn new(boot: &'static str) -> Self {
        let (wall_ms, awake_ms) = (AtomicU64::new(WALL_MS), AtomicU64::new(500_000));
        Host { boot, wall_ms: Arc::new(wall_ms), awake_ms: Arc::new(awake_ms) }
    }

    /// Opens the journal as a process of this host does.
    async fn open(&self, place: &Place) -> Journal {
        let (wall_ms, awake_ms) = (self.wall_ms.clone(), self.awake_ms.clone());
        let wall = Arc::new(move || wall_ms.load(Ordering::Relaxed));
        let awake = Arc::new(move || awake_ms.load(Ordering::Relaxed));
        let boot_clock = BootClock::new(Some(self.boot), awake);
        Journal::open_with(&place.target, wall, boot_clock).await.unwrap()
    }

    fn set_wall(&self, jump_ms: i64) {
        self.wall_ms.store(WALL_MS.saturating_add_signed(jump_ms), Ordering::Relaxed);
    }

    fn stay_awake(&self, ms: u64) {
        self.awake_ms.fetch_add(ms, Ordering::Relaxed);
        self.wall_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

async fn prepare(place: &Place) {
    if matches!(place.target, Target::Url(_)) {
        (place.tamper)(&place.target, SERVER_CLOCK).await;
    }
}

/// Sets the clock of the hosts, and on PostgreSQL that of the server too.
async fn jump(place: &Place, hosts: &[&Host], ms: i64, server: &'static str) {
    for host in hosts {
        host.set_wall(ms);
    }
    if matches!(place.target, Target::Url(_)) {
        (place.tamper)(&place.target, server).await;
    }
}

fn brief(name: &str) -> QueueWorker {
    QueueWorker { lease: LEASE, ..worker(name) }
}

async fn no_run_for(journal: &Journal, name: &str) {
    let taken = journal.claim(&brief(name), &Default::default()).await.unwrap();
    assert!(taken.is_none(), "{name} took {taken:?}");
}

/// A run of three steps, with a jump of the clock during the first: each step starts once.
pub(crate) async fn a_clock_that_jumps_starts_no_step_twice(place: Place) {
    prepare(&place).await;
    for (ms, server) in JUMPS {
        let (here, there) = (Host::new("here"), Host::new("there"));
        let (first, second) = (here.open(&place).await, here.open(&place).await);
        let third = there.open(&place).await;
        let lease = claimed(&first, &brief("first")).await.lease;
        first.append(&lease, vec![started(1)]).await.unwrap();
        no_run_for(&third, "third").await;
        jump(&place, &[&here, &there], ms, server).await;
        for step in 1..=3 {
            // Longer than the lease in all, with a renewal in between.
            for _ in 0..4 {
                here.stay_awake(LEASE_MS / 3);
                there.stay_awake(LEASE_MS / 3);
                no_run_for(&second, "second").await;
                no_run_for(&third, "third").await;
                first.renew_lease(&lease).await.unwrap();
            }
            let next = if step < 3 { started(step + 1) } else { completed() };
            first.append(&lease, vec![finished(step), next]).await.unwrap();
        }
        let run = second.run(&lease.run).await.unwrap().unwrap();
        assert_eq!((run.status, run.steps, run.token), (RunStatus::Completed, 3, 1), "{ms}");
        agrees(&third, &lease.run).await;
        jump(&place, &[], 0, NO_JUMP).await;
    }
}

/// A worker that is gone is replaced after its lease, wherever the clock was set meanwhile.
pub(crate) async fn a_clock_that_jumps_keeps_no_run_with_a_worker_that_is_gone(place: Place) {
    prepare(&place).await;
    for (ms, server) in JUMPS {
        let (here, there) = (Host::new("here"), Host::new("there"));
        let (gone, near, far) =
            (here.open(&place).await, here.open(&place).await, there.open(&place).await);
        let lease = claimed(&gone, &brief("gone")).await.lease;
        jump(&place, &[&here, &there], ms, server).await;
        here.stay_awake(LEASE_MS - 1);
        no_run_for(&near, "near").await;
        here.stay_awake(1);
        // Another machine has to see for itself that the lease is not renewed.
        no_run_for(&far, "far").await;
        there.stay_awake(LEASE_MS - 1);
        no_run_for(&far, "far").await;
        there.stay_awake(1);
        let successor = if ms > 0 { &near } else { &far };
        assert_eq!(claim(successor, &brief("next")).await.run.id, lease.run, "{ms}");
        let late = gone.renew_lease(&lease).await;
        assert!(matches!(late, Err(JournalError::Fenced { .. })), "{late:?}");
        assert!(matches!(gone.pending_request(&lease).await, Err(JournalError::Fenced { .. })));
        agrees(&far, &lease.run).await;
        (place.tamper)(&place.target, "UPDATE run SET status = 'failed'").await;
        jump(&place, &[], 0, NO_JUMP).await;
    }
}

/// No process survives a reboot. A server has clients on many machines, and cannot know which of them are the same.
pub(crate) async fn a_lease_from_before_a_reboot_is_over_in_a_file(place: Place) {
    let (before, after) = (Host::new("1 time machine"), Host::new("2 time machine"));
    let lease = claimed(&before.open(&place).await, &brief("gone")).await.lease;
    let journal = after.open(&place).await;
    if matches!(place.target, Target::Url(_)) {
        assert_eq!(journal.requeue_expired().await.unwrap(), []);
        after.stay_awake(LEASE_MS);
    }
    assert_eq!(journal.requeue_expired().await.unwrap(), [lease.run]);
}

/// The clock of a host runs much faster than the one of this test.
fn hurry(host: &Host) -> tokio::task::JoinHandle<()> {
    let time = host.awake_ms.clone();
    tokio::spawn(async move {
        loop {
            time.fetch_add(1_000, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
}

/// A command for one run waits until it is certain, instead of saying that the run is taken: also for a long lease, and after
/// the wall clock was set back.
pub(crate) async fn a_certain_run_is_waited_for_while_its_lease_is_observed(place: Place) {
    for (length, shown) in [
        (Duration::from_secs(30), "UPDATE run SET lease_shown_until_ms = 5"),
        (Duration::from_secs(300), "UPDATE run SET lease_shown_until_ms = 5"),
        (
            Duration::from_secs(300),
            "UPDATE run SET lease_shown_until_ms = lease_shown_until_ms + 3600000",
        ),
    ] {
        let (there, here) = (Host::new("1 time there"), Host::new("2 time here"));
        let gone = QueueWorker { lease: length, ..worker("gone") };
        let lease = claimed(&there.open(&place).await, &gone).await.lease;
        (place.tamper)(&place.target, shown).await;
        let journal = here.open(&place).await;
        let ticking = hurry(&here);
        let mut told = Vec::new();
        journal.wait_for_lease(&lease.run, &mut |left| told.push(left)).await.unwrap();
        ticking.abort();
        assert_eq!(told, [length]);
        let next = worker("next");
        let taken = journal.claim_run(&lease.run, &next, &Default::default()).await;
        let taken = taken.unwrap().unwrap();
        assert_eq!(taken.lease.token, 2);
        journal.append(&taken.lease, vec![completed()]).await.unwrap();
    }
}

pub(crate) async fn a_worker_that_renews_its_lease_is_not_waited_for_any_longer(place: Place) {
    let (there, here) = (Host::new("1 time there"), Host::new("2 time here"));
    let worker = there.open(&place).await;
    let lease = claimed(&worker, &brief("alive")).await.lease;
    let journal = here.open(&place).await;
    // Its wall clock is ahead of that of the worker's machine, or on PostgreSQL that of the server was set.
    (place.tamper)(&place.target, "UPDATE run SET lease_shown_until_ms = 5").await;
    let beating = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        worker.renew_lease(&lease).await.unwrap();
    };
    let mut told = 0;
    let mut on_wait = |_| told += 1;
    let (settled, ()) = tokio::join!(journal.wait_for_lease(&lease.run, &mut on_wait), beating);
    settled.unwrap();
    assert_eq!(told, 1);
    let run = journal.run(&lease.run).await.unwrap().unwrap();
    assert_eq!((run.status, run.token), (RunStatus::Running, 1));
}

/// The order that a worker was given before it was gone is carried out when its run is put back.
pub(crate) async fn a_run_of_a_worker_that_is_gone_can_be_cancelled(place: Place) {
    let (there, here) = (Host::new("1 time there"), Host::new("2 time here"));
    let lease = claimed(&there.open(&place).await, &brief("gone")).await.lease;
    let journal = here.open(&place).await;
    let cancel = Command::Cancel { by: "ada".into() };
    let run = journal.order(&lease.run, cancel).await.unwrap();
    assert_eq!((run.status, run.wish), (RunStatus::Running, Some(RunStopRequest::Cancel)));
    (place.tamper)(&place.target, "UPDATE run SET lease_shown_until_ms = 5").await;
    let ticking = hurry(&here);
    journal.wait_for_lease(&lease.run, &mut |_| {}).await.unwrap();
    ticking.abort();
    let run = journal.run(&lease.run).await.unwrap().unwrap();
    assert_eq!(run.status, RunStatus::Cancelled);
    agrees(&journal, &lease.run).await;
}

/// An older version wrote the end of the lease by the wall clock, and nothing else.
pub(crate) async fn a_lease_of_an_older_version_ends_when_it_is_over_and_silent(place: Place) {
    let host = Host::new("here");
    let journal = host.open(&place).await;
    let lease = claimed(&journal, &brief("old")).await.lease;
    let legacy = "UPDATE run SET lease_until_ms = 5, lease_beat = 0, lease_length_ms = NULL, \
        lease_boot = NULL, lease_boot_until_ms = NULL, lease_shown_until_ms = NULL";
    (place.tamper)(&place.target, legacy).await;
    assert_eq!(journal.requeue_expired().await.unwrap(), []);
    host.stay_awake(20_000);
    // It is renewed as that version does, so it is alive although it is over by the clock.
    (place.tamper)(&place.target, "UPDATE run SET lease_until_ms = 6").await;
    assert_eq!(journal.requeue_expired().await.unwrap(), []);
    host.stay_awake(20_000);
    assert_eq!(journal.requeue_expired().await.unwrap(), []);
    host.stay_awake(10_000);
    assert_eq!(journal.requeue_expired().await.unwrap(), [lease.run]);
    journal.create(new_run("next")).await.unwrap();
    claim(&journal, &brief("new")).await;
}
