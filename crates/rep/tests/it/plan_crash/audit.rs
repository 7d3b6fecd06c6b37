//! What has to hold of journals, branches and repositories, whatever was killed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::Utf8Path;
use repertoire_journal::{Event, Journal, Payload, Run, RunId, RunStatus};

use super::field::{Field, Work};

/// What the test itself saw in the journal, as it came: each of these was acknowledged.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    events: Arc<Mutex<BTreeMap<(RunId, u64), Event>>>,
    /// What was told twice.
    twice: Arc<Mutex<Vec<Event>>>,
}

/// What happened to runs, in numbers.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) events: usize,
    pub(crate) steps: usize,
    pub(crate) interrupted: usize,
    pub(crate) leases: usize,
    pub(crate) expired: usize,
}

impl Seen {
    /// Follows the journal for as long as it is there.
    pub(crate) async fn follow(self, journal: Journal) {
        let mut at = Default::default();
        loop {
            // The database may be down.
            if let Ok(page) = journal.list_all_events(at, 0).await {
                at = page.next;
                let mut seen = self.events.lock().unwrap();
                for (_, event) in page.events {
                    let place = (event.run.clone(), event.seq);
                    if let Some(before) = seen.insert(place, event) {
                        self.twice.lock().unwrap().push(before);
                    }
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.events.lock().unwrap().len()
    }

    /// Everything that was seen is still there, and unchanged.
    pub(crate) fn is_kept(&self, field: &Field) {
        assert_eq!(*self.twice.lock().unwrap(), Vec::new(), "the tail told these twice");
        let mut there: BTreeMap<RunId, Vec<Event>> = BTreeMap::new();
        // A copy: whoever follows must not wait while the journal is asked.
        let seen = self.events.lock().unwrap().clone();
        for ((run, seq), event) in seen {
            let events = there.entry(run.clone()).or_insert_with(|| field.events(&run));
            let found = events.get(seq as usize - 1);
            assert_eq!(found, Some(&event), "what was acknowledged is gone");
        }
    }

    /// Nothing is there that the tail did not tell.
    pub(crate) fn is_all(&self, field: &Field, runs: &[Run]) {
        let all: usize = runs.iter().map(|run| run.seq as usize).sum();
        field.until("the tail to tell everything", |_| self.count() >= all);
        assert_eq!(self.count(), all);
    }
}

/// The journal of one run.
pub(crate) fn journal(field: &Field, run: &Run, counts: &mut Counts) {
    let events = field.events(&run.id);
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=run.seq).collect::<Vec<_>>(), "{} has gaps", run.id);
    let mut finished = BTreeSet::new();
    let mut holder: Option<(String, u64)> = None;
    let mut last_token = 0;
    for event in &events {
        match &event.payload {
            Payload::LeaseTaken { worker, token } => {
                assert_eq!(holder, None, "{} was taken by {worker} while it was held", run.id);
                assert!(*token > last_token, "{}: token {token} was given twice", run.id);
                last_token = *token;
                holder = Some((worker.clone(), *token));
                counts.leases += 1;
            }
            Payload::LeaseReleased { worker, token, .. } => {
                assert_eq!(holder.take(), Some((worker.clone(), *token)));
            }
            Payload::LeaseExpired { worker, token } => {
                assert_eq!(holder.take(), Some((worker.clone(), *token)));
                counts.expired += 1;
            }
            Payload::StepStarted { .. } => {
                assert!(holder.is_some(), "{}: a step without a lease", run.id);
                counts.steps += 1;
            }
            Payload::StepFinished { step, .. } => {
                assert!(finished.insert(*step), "{}: step {step} was finished twice", run.id);
            }
            Payload::StepInterrupted { step, .. } => {
                assert!(finished.insert(*step), "{}: step {step} had ended before", run.id);
                counts.interrupted += 1;
            }
            _ => {}
        }
    }
    counts.events += events.len();
    let replayed = field.block(field.journal.replay_run(&run.id)).unwrap();
    assert_eq!((replayed.events, replayed.differences), (run.seq, Vec::new()), "{}", run.id);
}

/// The branch of a run that is completed: every task is done, every file is whole, and it ends where the journal says.
pub(crate) fn branch(field: &Field, run: &Run, work: &Work) {
    assert_eq!(run.status, RunStatus::Completed, "{}: {:?}", run.name, run.reason);
    let repository = Utf8Path::new(&run.workspace);
    let worktree = run.worktree.as_ref().unwrap();
    let is_reviewed = run.request["review"] == true;
    let done = work.plan().replace("[ ]", if is_reviewed { "[R]" } else { "[x]" });
    let show =
        |path: &str| field.git(repository, &["show", &format!("{}:{path}", worktree.branch)]);
    assert_eq!(show(&work.path()), done);
    for file in &work.files {
        assert_eq!(show(&format!("{file}.txt")), format!("half of {file}\n"));
    }
    // Nothing else was ever committed.
    let range = format!("{}..{}", worktree.base, worktree.branch);
    let log = field.git(repository, &["log", "--name-only", "--format=", &range]);
    let touched: BTreeSet<&str> = log.lines().collect();
    let plan = work.path();
    let files: Vec<String> = work.files.iter().map(|file| format!("{file}.txt")).collect();
    let expected = files.iter().map(String::as_str).chain([plan.as_str()]).collect();
    assert_eq!(touched, expected, "{}", run.name);
    let head = field.git(repository, &["rev-parse", &worktree.branch]);
    let events = field.events(&run.id);
    let recorded = events.iter().find_map(|event| match &event.payload {
        Payload::RunCompleted { head, .. } => head.clone(),
        _ => None,
    });
    assert_eq!(recorded.as_deref(), Some(head.trim()), "{}", run.name);
}

/// Nothing lies about in the worktree of a run.
pub(crate) fn worktree(field: &Field, run: &Run) {
    let place = Utf8Path::new(&run.worktree.as_ref().unwrap().path);
    assert_eq!(field.git(place, &["status", "--porcelain"]), "", "{}", run.name);
}

/// A repository that runs have worked in.
pub(crate) fn repository(field: &Field, dir: &Utf8Path) {
    let checked = field.git_output(dir, &["fsck", "--full", "--strict"]);
    let said = String::from_utf8_lossy(&checked.stderr).into_owned()
        + &String::from_utf8_lossy(&checked.stdout);
    let wrong: Vec<&str> = said.lines().filter(|line| !line.starts_with("dangling ")).collect();
    assert_eq!((checked.status.code(), wrong), (Some(0), Vec::new()));
    assert_eq!(field.git(dir, &["status", "--porcelain"]), "", "the user's checkout was changed");
    let mut locks = Vec::new();
    find_locks(&dir.join(".git"), &mut locks);
    assert_eq!(locks, Vec::<String>::new());
    let list = field.git(dir, &["worktree", "list", "--porcelain"]);
    assert!(
        !list.lines().any(|line| line.starts_with("locked") || line.starts_with("prunable")),
        "{list}"
    );
}

fn find_locks(dir: &Utf8Path, found: &mut Vec<String>) {
    for entry in dir.read_dir_utf8().unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            find_locks(entry.path(), found);
        } else if entry.file_name().ends_with(".lock")
            && entry.file_name() != "repertoire-worktrees.lock"
        {
            found.push(entry.path().to_string());
        }
    }
}

/// No process of the test is left; what was killed has a moment to vanish.
pub(crate) fn nobody_is_left(field: &Field) {
    for _ in 0..100 {
        if field.processes().is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(field.processes(), BTreeSet::new());
}
