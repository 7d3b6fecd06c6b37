//! Workers and the database are killed at random while plans are worked through.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use repertoire_journal::{Command, RunId, RunStatus};

use super::audit::{self, Counts, Seen};
use super::field::{Dice, Field, PATIENCE, Store, Work, WorkerProcess, is_long};
use crate::server::Server;

/// Kills of the short form.
const ROUNDS: usize = 12;
const ROUNDS_LONG: usize = 300;
/// Workers at once.
const WORKERS: usize = 3;
/// Runs that are unfinished at any time, so that there is always something to interrupt.
const AT_ONCE: usize = 4;

struct Killing {
    field: Field,
    dice: Dice,
    seen: Seen,
    workers: Vec<WorkerProcess>,
    repositories: Vec<Utf8PathBuf>,
    works: Vec<Work>,
    runs: Vec<RunId>,
    kills: BTreeMap<&'static str, usize>,
    resumed: usize,
}

impl Killing {
    fn new(store: Store, dice: Dice, plans: usize) -> Self {
        let field = Field::new(store);
        let works: Vec<Work> =
            (0..plans).map(|number| Work::new(&format!("p{number}"), 2 + number % 2)).collect();
        let mut repositories = Vec::new();
        for (at, name) in ["one", "other"].into_iter().enumerate() {
            let own = works.iter().skip(at).step_by(2);
            let plans: Vec<_> = own.map(|work| (work.path(), work.plan())).collect();
            repositories.push(field.repository(name, &plans));
        }
        let seen = Seen::default();
        field.spawn(seen.clone().follow(field.journal.clone()));
        Killing {
            field,
            dice,
            seen,
            workers: Vec::new(),
            repositories,
            works,
            runs: Vec::new(),
            kills: BTreeMap::new(),
            resumed: 0,
        }
    }

    /// Whatever is missing comes: workers, and runs.
    fn fill(&mut self) {
        let is_gone = |worker: &mut WorkerProcess| worker.child.try_wait().unwrap().is_some();
        for mut worker in self.workers.extract_if(.., is_gone) {
            ends_well(&mut worker);
        }
        while self.workers.len() < WORKERS {
            let args: &[&str] = match self.workers.is_empty() {
                true => &["daemon", "--runs", "3"],
                false => &["worker", "--runs", "2"],
            };
            let worker = self.field.worker(args);
            self.workers.push(worker);
        }
        let open = self.field.runs().iter().filter(|run| !run.status.is_over()).count();
        for _ in open..AT_ONCE {
            self.queue();
        }
    }

    fn queue(&mut self) {
        let at = self.runs.len();
        let Some(work) = self.works.get(at) else { return };
        let transcript = format!("transcripts/{}.yaml", work.name);
        let wait = 50 + self.dice.below(500);
        self.field.ws.write(&transcript, work.transcript(wait));
        let backend = format!("scripted:{}", self.field.ws.path(&transcript));
        let check = format!("sleep 0.05; test -f {}.txt", work.files[0]);
        let ending = ["keep", "merge", "keep", "squash"][at / 2 % 4];
        let args = ["--backend", &backend, "--check", &check, "--ending", ending];
        self.runs.push(self.field.queue(&self.repositories[at % 2], &work.path(), &args));
    }

    /// Lets them work for a while, and kills somebody.
    fn round(&mut self) {
        self.fill();
        // Mostly short, so that starting is interrupted as well; now and then long enough for several steps.
        let most = if self.dice.below(4) == 0 { 4_000 } else { 700 };
        std::thread::sleep(Duration::from_millis(30 + self.dice.below(most)));
        let has_server = matches!(self.field.store, Store::Postgres(_));
        let kind = match self.dice.below(10) {
            0 | 1 => "all workers",
            2 | 3 => "told to stop",
            4..=6 if has_server => "database",
            _ => "worker",
        };
        *self.kills.entry(kind).or_default() += 1;
        match kind {
            "database" => self.kill_database(),
            "all workers" => {
                self.workers
                    .iter_mut()
                    .for_each(|worker| worker.signal(rustix::process::Signal::KILL));
                self.workers.iter_mut().for_each(WorkerProcess::kill);
                self.workers.clear();
            }
            "told to stop" => {
                ends_well(&mut self.any_hand());
            }
            _ => self.any_hand().kill(),
        }
        self.resume();
    }

    fn any_hand(&mut self) -> WorkerProcess {
        let at = self.dice.below(self.workers.len() as u64) as usize;
        self.workers.swap_remove(at)
    }

    fn kill_database(&mut self) {
        let down = Duration::from_millis(self.dice.below(1_500));
        let Store::Postgres(server) = &mut self.field.store else { return };
        server.kill();
        std::thread::sleep(down);
        server.restart();
        self.seen.is_kept(&self.field);
    }

    /// A task whose steps are interrupted again and again waits for a person: here that is the test.
    fn resume(&mut self) {
        for run in self.field.runs() {
            if run.status != RunStatus::Waiting {
                assert!(
                    !matches!(
                        run.status,
                        RunStatus::Failed | RunStatus::Paused | RunStatus::Cancelled
                    ),
                    "{} is {}: {:?}\n{}",
                    run.name,
                    run.status,
                    run.reason,
                    self.field.stand(),
                );
                continue;
            }
            let reason = run.reason.unwrap_or_default();
            assert!(
                reason.contains("ended with their worker"),
                "{}: {reason}\n{}",
                run.name,
                self.field.stand()
            );
            let order = Command::Resume { by: "test".to_owned(), limits: None };
            self.field.block(self.field.journal.order(&run.id, order)).unwrap();
            self.resumed += 1;
        }
    }

    /// Nobody is killed any more: everything has to come to its end.
    fn finish(&mut self) {
        self.works.truncate(self.runs.len());
        let begun = Instant::now();
        loop {
            self.fill();
            self.resume();
            if self.field.runs().iter().all(|run| run.status == RunStatus::Completed) {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{}", self.field.stand());
            std::thread::sleep(Duration::from_millis(50));
        }
        self.workers.iter_mut().for_each(ends_well);
    }

    fn audit(&self) -> Counts {
        let mut counts = Counts::default();
        let runs = self.field.runs();
        assert_eq!(runs.len(), self.works.len());
        for (work, id) in self.works.iter().zip(&self.runs) {
            let run = self.field.run(id);
            audit::journal(&self.field, &run, &mut counts);
            audit::branch(&self.field, &run, work);
            audit::worktree(&self.field, &run);
        }
        self.seen.is_kept(&self.field);
        self.seen.is_all(&self.field, &runs);
        for dir in &self.repositories {
            audit::repository(&self.field, dir);
        }
        audit::nobody_is_left(&self.field);
        counts
    }
}

/// Asks a worker to end. One that has only just started does not listen yet; one that started while the database was down
/// has said so and ended by itself.
fn ends_well(worker: &mut WorkerProcess) {
    let (code, said) = (worker.stop(), worker.said());
    let is_well = match code {
        Some(0) => true,
        Some(3) => said.starts_with("error: the journal") && said.contains("cannot be opened"),
        _ => !said.contains("works on runs"),
    };
    assert!(is_well, "{} ended with {code:?}: {said}", worker.name);
}

#[allow(clippy::print_stderr, reason = "the test harness shows it when a test fails")]
fn kill_at_random(store: Store, name: &str) {
    let rounds = if is_long() { ROUNDS_LONG } else { ROUNDS };
    let (dice, seed) = Dice::new();
    eprintln!("{name}: REPERTOIRE_SEED={seed}");
    let begun = Instant::now();
    let mut killing = Killing::new(store, dice, rounds);
    for round in 1..=rounds {
        killing.round();
        eprintln!("{name}: round {round} after {:.1} s", begun.elapsed().as_secs_f32());
    }
    killing.finish();
    eprintln!("{name}: all done after {:.1} s", begun.elapsed().as_secs_f32());
    let counts = killing.audit();
    let took = begun.elapsed().as_secs_f32();
    let line = format!(
        "{name}: {rounds} rounds in {took:.1} s, kills {:?}, {} runs, resumed {}, {counts:?}",
        killing.kills,
        killing.runs.len(),
        killing.resumed,
    );
    if is_long() {
        // Past the test harness, which keeps what a test that passes has to say.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
    eprintln!("{line}");
    assert!(counts.interrupted > 0, "nothing was killed in time: {line}");
}

#[test]
fn killed_workers_lose_nothing_with_sqlite() {
    kill_at_random(Store::Sqlite, "sqlite");
}

#[test]
fn killed_workers_and_databases_lose_nothing_with_postgres() {
    let Some(server) = Server::start(&[]) else { return };
    kill_at_random(Store::Postgres(server), "postgres");
}
