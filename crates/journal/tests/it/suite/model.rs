//! Random operations by several workers, against the store and against the fold alone.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use repertoire_journal::event::Payload;
use repertoire_journal::fold::FoldedRun;
use repertoire_journal::{
    ClaimRules, Command, Event, Journal, JournalError, Run, RunId, RunLease, RunStatus, StepStatus,
};

use super::{Place, agrees, completed, doomed, finished, new_run, started, worker};

#[derive(Clone, Debug)]
enum Step {
    Create,
    Claim { who: usize, doomed: bool },
    Begin { who: usize },
    End { who: usize },
    Stop { who: usize, how: usize },
    Heartbeat { who: usize },
    Release { who: usize },
    Order { run: usize, order: usize },
    Reap,
}

fn step() -> impl Strategy<Value = Step> {
    let who = 0..3_usize;
    prop_oneof![
        2 => Just(Step::Create),
        4 => (who.clone(), any::<bool>()).prop_map(|(who, doomed)| Step::Claim { who, doomed }),
        5 => who.clone().prop_map(|who| Step::Begin { who }),
        4 => who.clone().prop_map(|who| Step::End { who }),
        2 => (who.clone(), 0..5_usize).prop_map(|(who, how)| Step::Stop { who, how }),
        2 => who.clone().prop_map(|who| Step::Heartbeat { who }),
        1 => who.prop_map(|who| Step::Release { who }),
        3 => (0..8_usize, 0..6_usize).prop_map(|(run, order)| Step::Order { run, order }),
        2 => Just(Step::Reap),
    ]
}

/// What the fold says of each run: it is given every event as it is written.
#[derive(Default)]
struct Model {
    runs: BTreeMap<RunId, FoldedRun>,
    leases: BTreeMap<usize, RunLease>,
}

impl Model {
    fn run(&self, id: &RunId) -> &Run {
        self.runs[id].run.as_ref().unwrap()
    }

    /// Whether the worker still has what it took.
    fn holds(&self, lease: &RunLease) -> bool {
        let run = self.run(&lease.run);
        run.token == lease.token && run.worker.as_deref() == Some(lease.worker.as_str())
    }

    async fn follow(&mut self, journal: &Journal) {
        for (id, folded) in &mut self.runs {
            let seq = folded.run.as_ref().map_or(0, |run| run.seq);
            let events: Vec<Event> = journal.events(id, seq, 0).await.unwrap();
            for event in &events {
                folded.apply(event).unwrap();
            }
            let stored = journal.run(id).await.unwrap().unwrap();
            assert_eq!(Some(&stored), folded.run.as_ref());
            assert_eq!(journal.steps(id).await.unwrap(), folded.steps);
            let open = folded.steps.iter().filter(|step| step.status == StepStatus::Running);
            assert_eq!(open.count(), usize::from(stored.open_step.is_some()));
            let has_worker = stored.status == RunStatus::Running;
            assert_eq!(stored.worker.is_some(), has_worker);
            assert_eq!(journal.lease_until(id).await.unwrap().is_some(), has_worker);
            assert!(stored.open_step.is_none() || has_worker);
        }
    }
}

pub(crate) async fn random_operations_agree_with_the_fold(place: Place) {
    let config = Config { rng_seed: RngSeed::Fixed(7), ..Config::default() };
    let mut runner = TestRunner::new(config);
    let steps = proptest::collection::vec(step(), 60..80);
    for _ in 0..4 {
        let steps = steps.new_tree(&mut runner).unwrap().current();
        let journal = place.open().await;
        let mut model = Model::default();
        for step in &steps {
            perform(&journal, &mut model, step).await;
            model.follow(&journal).await;
        }
        for id in model.runs.keys() {
            agrees(&journal, id).await;
            // The next round begins with an empty queue.
            let _ = journal.order(id, Command::Cancel { by: "end".into() }).await;
        }
        for lease in model.leases.values() {
            let _ = journal.release_run(lease, "end").await;
        }
        journal.close().await;
    }
}

async fn perform(journal: &Journal, model: &mut Model, step: &Step) {
    match step {
        Step::Create => {
            let run = journal.create(new_run("r")).await.unwrap();
            model.runs.insert(run.id, FoldedRun::default());
        }
        Step::Claim { who, doomed: is_doomed } => {
            let name = format!("w{who}");
            let who_is = if *is_doomed { doomed(&name) } else { worker(&name) };
            if let Some(claimed) = journal.claim(&who_is, &ClaimRules::default()).await.unwrap() {
                model.leases.insert(*who, claimed.lease);
            }
        }
        Step::Begin { who } => {
            append(journal, model, *who, |run| vec![started(run.steps + 1)]).await;
        }
        Step::End { who } => {
            append(journal, model, *who, |run| vec![finished(run.steps)]).await;
        }
        Step::Stop { who, how } => append(journal, model, *who, |_| vec![stop(*how)]).await,
        Step::Heartbeat { who } => {
            let Some(lease) = model.leases.get(who) else { return };
            check(journal.renew_lease(lease).await, model.holds(lease));
        }
        Step::Release { who } => {
            let Some(lease) = model.leases.get(who) else { return };
            check(journal.release_run(lease, "bye").await, model.holds(lease));
        }
        Step::Order { run, order } => {
            let Some(id) = model.runs.keys().nth(*run) else { return };
            let result = journal.order(id, command(*order)).await;
            assert!(matches!(result, Ok(_) | Err(JournalError::Refused { .. })), "{result:?}");
        }
        Step::Reap => drop(journal.requeue_expired().await.unwrap()),
    }
}

fn check<T: std::fmt::Debug>(result: Result<T, JournalError>, holds: bool) {
    match result {
        Ok(_) => assert!(holds),
        Err(JournalError::Fenced { .. }) => assert!(!holds),
        Err(error) => panic!("{error}"),
    }
}

async fn append(
    journal: &Journal,
    model: &Model,
    who: usize,
    payloads: impl FnOnce(&Run) -> Vec<Payload>,
) {
    let Some(lease) = model.leases.get(&who) else { return };
    let run = model.run(&lease.run);
    let payloads = payloads(run);
    match journal.append(lease, payloads.clone()).await {
        Ok(_) => assert!(model.holds(lease)),
        Err(JournalError::Fenced { .. }) => assert!(!model.holds(lease)),
        // A step begins when none is under way, and ends when it is.
        Err(JournalError::Fold(_)) => match payloads[0] {
            Payload::StepStarted { .. } => assert!(run.open_step.is_some()),
            _ => assert!(run.open_step.is_none()),
        },
        Err(error) => panic!("{error}"),
    }
}

fn stop(how: usize) -> Payload {
    match how {
        0 => completed(),
        1 => Payload::RunFailed { reason: "r:x".into() },
        2 => Payload::RunPaused { reason: "p".into() },
        3 => Payload::RunWaiting { reason: "w".into(), choices: Vec::new() },
        _ => Payload::RunDeferred { reason: "d".into(), until_ms: 1 },
    }
}

fn command(order: usize) -> Command {
    let by = "me".to_owned();
    match order {
        0 => Command::Pause { by },
        1 => Command::Cancel { by },
        2 => Command::Retry { by, tasks: Vec::new() },
        3 => Command::Steer { by, note: "n".into() },
        _ => Command::Resume { by, limits: None },
    }
}
