//! A worker that stands still for longer than its lease: another one takes its run, and what the first one brings when it
//! wakes up counts for nothing.

use camino::Utf8Path;
use repertoire_journal::RunId;
use rustix::process::Signal;

use super::audit::{self, Counts};
use super::field::{Field, Store, Work, WorkerProcess};
use crate::server::Server;

/// How long the frozen step would take, so that no machine is too slow to freeze it in time.
const SLOW_MS: u64 = 60_000;

/// Stops a worker while a step of this kind is at work, and lets it go on when another one has finished its run.
fn freeze(store: Store, kind: &str) {
    let mut field = Field::new(store);
    let (slow, next) = (Work::new("slow", 1), Work::new("next", 1));
    let plans: Vec<_> = [&slow, &next].map(|work| (work.path(), work.plan())).into();
    let repository = field.repository("one", &plans);
    let gate = field.ws.path("gate");
    let backend = format!("scripted:{}", field.ws.path("agent.yaml"));
    let queue = |field: &mut Field, work: &Work| {
        let file = &work.files[0];
        let check = format!("while test -e {gate}; do sleep 0.05; done; test -f {file}.txt");
        field.queue(&repository, &work.path(), &["--backend", &backend, "--check", &check])
    };
    match kind {
        "implementation" => field.ws.write("agent.yaml", slow.transcript(SLOW_MS)),
        "verification" => {
            field.ws.write("agent.yaml", slow.transcript(1));
            field.ws.write("gate", "");
        }
        _ => {
            let slowly = format!("wait_ms: {SLOW_MS}");
            field.ws.write("agent.yaml", slow.transcript(1).replace("wait_ms: 30", &slowly));
        }
    }
    let run = queue(&mut field, &slow);
    let mut frozen = field.worker(&["worker"]);
    field.until("the step to begin", |field| is_at(field, &run, kind));
    if kind == "implementation" {
        // In the middle of the step, not at its very beginning.
        field.until("half of the work", |field| {
            let worktree = field.run(&run).worktree.unwrap().path;
            Utf8Path::new(&worktree).join(format!("{}.txt", slow.files[0])).exists()
        });
    }
    freeze_without_lock(&field, &mut frozen);
    // The same step is quick for everybody who begins it from here on.
    field.ws.write("agent.yaml", slow.transcript(1));
    if kind == "verification" {
        std::fs::remove_file(&gate).unwrap();
    }
    let mut other = field.worker(&["worker"]);
    field.until_completed(std::slice::from_ref(&run));
    field.until("the report", |field| field.types(&run).last() == Some(&"POSTMORTEM_END"));
    assert_eq!(other.stop(), Some(0));
    let before = field.events(&run);

    // What the first worker's agent may still write must get into no commit.
    let worktree = field.run(&run).worktree.unwrap().path;
    std::fs::File::create(format!("{worktree}/late.txt")).unwrap();
    field.ws.write("agent.yaml", next.transcript(1));
    let more = queue(&mut field, &next);
    frozen.signal(Signal::CONT);
    field.until_completed(std::slice::from_ref(&more));
    assert_eq!(frozen.stop(), Some(0));
    let said = frozen.said();
    assert!(said.contains("the run was lost to another worker"), "{kind}: {said}");
    assert_eq!(field.events(&run), before, "{kind}: what a fenced worker brings is not recorded");
    is_as_recorded(&field, &run, &slow, (&frozen, &other));
    is_as_recorded(&field, &more, &next, (&frozen, &frozen));
    audit::repository(&field, &repository);
    audit::nobody_is_left(&field);
}

/// A process that stands still in the middle of a write holds the lock of a SQLite file, and nobody else can do anything
/// about that: such a moment is passed over. The table of the system tells, and nothing has to be tried, for which a slow
/// machine might take longer than the lease.
fn freeze_without_lock(field: &Field, worker: &mut WorkerProcess) {
    field.until("a moment without the lock", |field| {
        worker.signal(Signal::STOP);
        field.until("the worker to stand still", |_| worker.stands_still());
        let holds_lock = matches!(field.store, Store::Sqlite)
            && worker.has_write_lock(&field.ws.path("data/journal.sqlite-shm"));
        if holds_lock {
            worker.signal(Signal::CONT);
        }
        !holds_lock
    });
}

fn is_at(field: &Field, run: &RunId, kind: &str) -> bool {
    let Some(open) = field.run(run).open_step else { return false };
    let steps = field.block(field.journal.steps(run)).unwrap();
    steps.iter().any(|step| step.number == open && step.kind == kind)
}

/// The run was begun by one worker and ended by another, and its branch is where the journal says.
fn is_as_recorded(
    field: &Field,
    id: &RunId,
    work: &Work,
    (first, last): (&WorkerProcess, &WorkerProcess),
) {
    let run = field.run(id);
    audit::journal(field, &run, &mut Counts::default());
    audit::branch(field, &run, work);
    let steps = field.block(field.journal.steps(id)).unwrap();
    assert_eq!(steps.first().unwrap().worker.as_deref(), Some(first.name.as_str()));
    assert_eq!(steps.last().unwrap().worker.as_deref(), Some(last.name.as_str()));
}

#[test]
fn a_worker_frozen_in_an_implementation_is_fenced() {
    freeze(Store::Sqlite, "implementation");
}

#[test]
fn a_worker_frozen_in_a_verification_is_fenced() {
    freeze(Store::Sqlite, "verification");
}

#[test]
fn a_worker_frozen_in_a_review_is_fenced() {
    freeze(Store::Sqlite, "review");
}

#[test]
fn a_worker_frozen_with_postgres_is_fenced() {
    let Some(server) = Server::start(&[]) else { return };
    freeze(Store::Postgres(server), "implementation");
}
