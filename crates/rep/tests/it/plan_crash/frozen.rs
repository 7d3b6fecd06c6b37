//! A worker that stands still for longer than its lease: another one takes its run, and what the first one brings when it
//! wakes up counts for nothing.

use std::time::Duration;

use repertoire_journal::{NewRun, RunId};
use rustix::process::Signal;

use super::audit::{self, Counts};
use super::field::{Field, Hand, Store, Work};
use crate::server::Server;

/// Stops a worker while a step of this kind is at work, and lets it go on when another one has finished its run.
fn freeze(store: Store, kind: &str) {
    let mut field = Field::new(store);
    let (slow, next) = (Work::new("slow", 1), Work::new("next", 1));
    let plans: Vec<_> = [&slow, &next].map(|work| (work.path(), work.plan())).into();
    let repository = field.repository("one", &plans);
    let queue = |field: &mut Field, work: &Work| {
        let transcript = work.transcript(600).replace("wait_ms: 30", "wait_ms: 600");
        field.ws.write("agent.yaml", transcript);
        let backend = format!("scripted:{}", field.ws.path("agent.yaml"));
        let check = format!("sleep 0.6; test -f {}.txt", work.files[0]);
        field.queue(&repository, &work.path(), &["--backend", &backend, "--check", &check])
    };
    let run = queue(&mut field, &slow);
    let mut frozen = field.hand(&["worker"]);
    field.until("the step to begin", |field| is_at(field, &run, kind));
    // In the middle of the step, not at its very beginning.
    std::thread::sleep(Duration::from_millis(200));
    freeze_without_lock(&field, &mut frozen);
    let mut other = field.hand(&["worker"]);
    field.until_completed(std::slice::from_ref(&run));
    field.until("the report", |field| field.types(&run).last() == Some(&"POSTMORTEM_END"));
    assert_eq!(other.stop(), Some(0));
    let before = field.events(&run);

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
/// about that: such a moment is passed over.
fn freeze_without_lock(field: &Field, hand: &mut Hand) {
    for number in 0..20 {
        hand.signal(Signal::STOP);
        let new = NewRun {
            id: RunId::new(),
            kind: "nobody's".to_owned(),
            name: format!("try {number}"),
            workspace: String::new(),
            labels: Default::default(),
            priority: 0,
            limits: Default::default(),
            request: Default::default(),
        };
        let moment = Duration::from_millis(700);
        let written = async { tokio::time::timeout(moment, field.journal.create(new)).await };
        if field.block(written).is_ok() {
            return;
        }
        hand.signal(Signal::CONT);
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("the frozen worker always holds the lock");
}

fn is_at(field: &Field, run: &RunId, kind: &str) -> bool {
    let Some(open) = field.run(run).open_step else { return false };
    let steps = field.block(field.journal.steps(run)).unwrap();
    steps.iter().any(|step| step.number == open && step.kind == kind)
}

/// The run was begun by one worker and ended by another, and its branch is where the journal says.
fn is_as_recorded(field: &Field, id: &RunId, work: &Work, (first, last): (&Hand, &Hand)) {
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
