//! One bit of the file changes, anywhere: what is read afterwards is the same, or an error.
//!
//! By default the test flips some bits. `ATTACKS_FULL=1 cargo test -p repertoire-journal flips` flips 400.

use std::collections::BTreeMap;
use std::fmt::Debug;

use camino::Utf8Path;
use repertoire_journal::{
    EventCursor, EventPage, FailureFilter, Filter, Journal, JournalError, JournalPage,
    LetterFilter, LetterStatus, RunId, RunKind, RunStatus,
};

use super::{bytes_of, file, open};
use crate::suite::digests::{SCOPE, fill};

/// The flips of a normal run, and of a full one.
const FLIPS: u32 = 60;
const FLIPS_FULL: u32 = 400;
const SEED: u64 = 0x5eed;

#[expect(
    clippy::disallowed_methods,
    reason = "the variable is about the test run, not about what is tested"
)]
fn flips() -> u32 {
    if std::env::var_os("ATTACKS_FULL").is_some() { FLIPS_FULL } else { FLIPS }
}

/// The next number of a fixed sequence (splitmix64).
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Everything that can be read, by the name of the read.
#[derive(Default)]
struct FileReadings(BTreeMap<String, Result<String, String>>);

impl FileReadings {
    /// A damaged entry is noticed.
    fn add_page<T: Debug>(&mut self, name: String, page: Result<JournalPage<T>, JournalError>) {
        match page {
            Ok(JournalPage { damaged, .. }) if !damaged.is_empty() => {
                self.0.insert(name, Err(format!("{damaged:?}")));
            }
            page => self.add(name, page),
        }
    }

    fn add<T: Debug>(&mut self, name: impl Into<String>, read: Result<T, JournalError>) {
        let read = match read {
            Ok(value) => Ok(format!("{value:?}")),
            // Something that was there cannot be unknown now.
            Err(
                error @ (JournalError::NotFound { .. }
                | JournalError::NoLetter { .. }
                | JournalError::Ambiguous { .. }),
            ) => Ok(error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        self.0.insert(name.into(), read);
    }
}

async fn read_all(journal: &Journal, ids: &[RunId], letters: &[String]) -> FileReadings {
    let mut all = FileReadings::default();
    for id in ids {
        all.add(format!("run {id}"), journal.run(id).await);
        all.add(format!("steps {id}"), journal.steps(id).await);
        all.add(format!("events {id}"), journal.events(id, 0, 0).await);
        all.add(format!("later events {id}"), journal.events(id, 2, 1).await);
        all.add(format!("last of the kind {id}"), journal.last_kind_event(id).await);
        all.add(format!("replay {id}"), journal.replay_run(id).await);
        all.add(format!("part {id}"), journal.find_run(id.short()).await);
    }
    for name in ["queued", "talk", "last"] {
        all.add(format!("name {name}"), journal.find_run(name).await);
    }
    let of_kind = journal.find_run_of_kind(RunKind::Conversation, "last").await;
    all.add("last conversation", of_kind);
    let every = Filter::default();
    for (name, filter) in [
        ("all", every.clone()),
        ("queued", Filter { statuses: vec![RunStatus::Queued], ..every.clone() }),
        (
            "ended",
            Filter { statuses: vec![RunStatus::Completed, RunStatus::Failed], ..every.clone() },
        ),
        ("conversations", Filter { kind: Some("conversation".into()), ..every.clone() }),
        ("other", Filter { workspace: Some("/other".into()), ..every.clone() }),
        ("page", Filter { limit: 2, ..every }),
    ] {
        all.add_page(format!("runs {name}"), journal.runs(&filter).await);
    }
    all.add("ids", journal.list_run_ids().await);
    let stream = journal.list_all_events(EventCursor::default(), 0).await;
    let stream = stream.map(|EventPage { events, damaged, .. }| JournalPage {
        items: events,
        damaged,
        next: None,
    });
    all.add_page("stream".into(), stream);
    all.add("scopes", journal.list_scopes().await);
    let failures = FailureFilter { scope: SCOPE.into(), ..FailureFilter::default() };
    all.add("failures", journal.list_failures(&failures).await);
    let category = FailureFilter { category: Some("build".into()), ..failures };
    all.add("failures of a category", journal.list_failures(&category).await);
    all.add("failure", journal.known(SCOPE, "aa11").await);
    all.add("fixes", journal.list_fixes(SCOPE, "aa11").await);
    all.add("memory", journal.replay_memory(SCOPE).await);
    all.add_page("letters".into(), journal.list_letters(&LetterFilter::default()).await);
    let statuses = vec![LetterStatus::Queued];
    let queued = LetterFilter { statuses, scope: Some(SCOPE.into()), ..LetterFilter::default() };
    all.add_page("queued letters".into(), journal.list_letters(&queued).await);
    for id in letters {
        all.add(format!("letter {id}"), journal.find_letter(id).await);
    }
    all
}

/// Everything that can be read from a file; nothing if it cannot be opened.
async fn read_file(path: &Utf8Path, ids: &[RunId], letters: &[String]) -> FileReadings {
    let Ok(journal) = open(path).await else { return FileReadings::default() };
    let all = read_all(&journal, ids, letters).await;
    journal.close().await;
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_changes_nothing_silently() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder);
    let journal = open(&path).await.unwrap();
    let ids = fill(&journal).await;
    let letters = journal.list_letters(&LetterFilter::default()).await.unwrap().items;
    let letters: Vec<String> = letters.into_iter().map(|letter| letter.id).collect();
    let before = read_all(&journal, &ids, &letters).await;
    assert!(before.0.values().all(Result::is_ok));
    journal.close().await;
    let sound = bytes_of(&path);
    let (mut random, mut noticed, mut silent) = (SEED, 0, Vec::new());
    for _ in 0..flips() {
        let bit = next_random(&mut random) % (sound.len() as u64 * 8);
        let mut bytes = sound.clone();
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        let copy = path.with_file_name(format!("flip-{bit}.db"));
        repertoire_text::fs::write_atomic(&copy, &bytes).unwrap();
        let after = read_file(&copy, &ids, &letters).await;
        noticed += u32::from(after.0.is_empty() || after.0.values().any(Result::is_err));
        for (name, read) in &after.0 {
            if read.is_ok() && *read != before.0[name] {
                silent.push(format!("bit {} of byte {} ({name})", bit % 8, bit / 8));
            }
        }
        for file in ["", "-wal", "-shm"] {
            drop(std::fs::remove_file(format!("{copy}{file}")));
        }
    }
    assert_eq!(silent, [""; 0]);
    // Most bits are in pages without content; others must have been noticed.
    assert!(noticed > flips() / 10, "{noticed} of {}", flips());
}
