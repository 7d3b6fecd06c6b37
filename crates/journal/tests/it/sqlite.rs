//! The suite on SQLite, and what only SQLite has.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_journal::{Journal, JournalError, Target};
use sqlx::{ConnectOptions, Connection, SqliteConnection};

use crate::every_test;
use crate::suite::{self, BoxFuture, Place, new_run};

mod flips;

macro_rules! on_sqlite {
    ($($module:ident: $name:ident,)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let folder = tempfile::tempdir().unwrap();
            suite::$module::$name(Place::new(Target::File(file(&folder)), tamper)).await;
        })*
    };
}
every_test!(on_sqlite);

fn file(folder: &tempfile::TempDir) -> Utf8PathBuf {
    Utf8Path::from_path(folder.path()).unwrap().join("state/journal.db")
}

async fn connect(path: &Utf8Path) -> SqliteConnection {
    sqlx::sqlite::SqliteConnectOptions::new().filename(path).connect().await.unwrap()
}

fn tamper(target: &Target, sql: &'static str) -> BoxFuture {
    let Target::File(path) = target.clone() else { panic!() };
    Box::pin(async move {
        let mut connection = connect(&path).await;
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    })
}

async fn open(path: &Utf8Path) -> Result<Journal, JournalError> {
    Journal::open(&Target::File(path.to_owned()), Arc::new(|| 1_000)).await
}

#[tokio::test]
async fn a_damaged_file_says_so_and_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(folder.path()).unwrap().join("journal.db");
    let noise = "this is not a database at all. ".repeat(500);
    repertoire_text::fs::write_atomic(&path, noise.as_bytes()).unwrap();
    let error = open(&path).await.err().unwrap();
    assert!(matches!(error, JournalError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("left as it is"));
    assert_eq!(repertoire_text::fs::read_text(&path, 1 << 20).unwrap(), noise);
}

#[tokio::test]
async fn a_page_that_is_damaged_later_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder);
    let journal = open(&path).await.unwrap();
    for _ in 0..50 {
        journal.create(new_run("r")).await.unwrap();
    }
    journal.close().await;
    let mut bytes = repertoire_text::fs::read_bytes_beneath(
        path.parent().unwrap(),
        Utf8Path::new("journal.db"),
        1 << 24,
    )
    .unwrap();
    for byte in &mut bytes[4096..] {
        *byte = 0x5a;
    }
    repertoire_text::fs::write_atomic(&path, &bytes).unwrap();
    let error = match open(&path).await {
        Ok(journal) => journal.find_run("last").await.unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(error, JournalError::Damaged { .. }), "{error}");
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder);
    open(&path).await.unwrap().close().await;
    tamper(&Target::File(path.clone()), "INSERT INTO journal_version VALUES (99)").await;
    let error = open(&path).await.err().unwrap();
    assert!(error.to_string().contains("schema version 99"), "{error}");
    assert!(matches!(error, JournalError::Newer { found: 99, .. }));
}

#[tokio::test]
async fn the_database_of_something_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(folder.path()).unwrap().join("other.db");
    let mut other = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true)
        .connect()
        .await
        .unwrap();
    sqlx::raw_sql("CREATE TABLE bookmarks (url TEXT)").execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    let error = open(&path).await.err().unwrap();
    assert!(matches!(error, JournalError::NotAJournal { .. }), "{error}");
}

#[tokio::test]
async fn a_place_that_cannot_be_used_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(folder.path()).unwrap();
    let error = open(path).await.err().unwrap();
    assert!(matches!(error, JournalError::Open { .. }), "{error}");
    for url in ["mysql://x:secret@y/z", "secret@y:5432/z", "host=y password=secret options=a:b"] {
        let odd = Journal::open(&Target::Url(url.into()), Arc::new(|| 0)).await;
        let error = odd.err().unwrap().to_string();
        assert!(error.contains("postgres://") && !error.contains("secret"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_can_open_a_new_file_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let path = path.clone();
        tasks.spawn(async move {
            let journal = open(&path).await.unwrap();
            journal.create(new_run("r")).await.unwrap();
        });
    }
    tasks.join_all().await;
    let journal = open(&path).await.unwrap();
    assert_eq!(journal.runs(&Default::default()).await.unwrap().items.len(), 8);
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder);
    let journal = open(&path).await.unwrap();
    journal.create(new_run("r")).await.unwrap();
    let mode = |path: &Utf8Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
    assert_eq!(mode(&path.with_file_name("journal.db-wal")), 0o600);
}

#[tokio::test]
async fn what_is_acknowledged_is_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder);
    let journal = open(&path).await.unwrap();
    journal.create(new_run("r")).await.unwrap();
    let mut connection = connect(&path).await;
    let mode: String =
        sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut connection).await.unwrap();
    assert_eq!(mode, "wal");
}

#[tokio::test]
async fn a_journal_goes_on_after_sqlite_ended_a_transaction_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder);
    let (target, journal) = (Target::File(path.clone()), open(&path).await.unwrap());
    // As on a full disk.
    let full =
        "CREATE TRIGGER full BEFORE INSERT ON event BEGIN SELECT RAISE(ROLLBACK, 'no room'); END";
    tamper(&target, full).await;
    for _ in 0..2 {
        let error = journal.create(new_run("first")).await.unwrap_err().to_string();
        assert!(error.contains("no room"), "{error}");
    }
    tamper(&target, "DROP TRIGGER full").await;
    let id = journal.create(new_run("second")).await.unwrap().id;
    assert_eq!(journal.runs(&Default::default()).await.unwrap().items.len(), 1);
    suite::agrees(&journal, &id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_was_given_up_on_a_full_disk_holds_up_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder);
    let (target, journal) = (Target::File(path.clone()), open(&path).await.unwrap());
    // As on a full disk.
    let full =
        "CREATE TRIGGER full BEFORE INSERT ON event BEGIN SELECT RAISE(ROLLBACK, 'no room'); END";
    tamper(&target, full).await;
    let soon = std::time::Duration::from_secs(10);
    for _ in 0..100 {
        let refused = tokio::time::timeout(soon, journal.create(new_run("refused"))).await;
        let error = refused.expect("it is told at once").unwrap_err().to_string();
        assert!(error.contains("no room"), "{error}");
        // A worker gives up its write when its lease has run out meanwhile.
        let now = std::time::Duration::ZERO;
        let _ = tokio::time::timeout(now, journal.create(new_run("given up"))).await;
    }
    tamper(&target, "DROP TRIGGER full").await;
    let created = tokio::time::timeout(soon, journal.create(new_run("second"))).await;
    assert!(created.expect("there is room again").is_ok());
}

#[tokio::test]
async fn whoever_finds_the_queue_empty_waits_for_nobody_who_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder);
    let journal = open(&path).await.unwrap();
    let mut other = connect(&path).await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let (who, rules) = (suite::worker("w"), Default::default());
    let claim = journal.claim(&who, &rules);
    let claimed = tokio::time::timeout(std::time::Duration::from_secs(5), claim).await;
    assert!(claimed.expect("it asks without a lock").unwrap().is_none());
}

/// The bytes of the file, without a log beside it.
fn bytes_of(path: &Utf8Path) -> Vec<u8> {
    let (folder, name) = (path.parent().unwrap(), path.file_name().unwrap());
    repertoire_text::fs::read_bytes_beneath(folder, Utf8Path::new(name), 1 << 24).unwrap()
}

async fn root_page(path: &Utf8Path, name: &str) -> usize {
    let mut connection = connect(path).await;
    let sql = "SELECT rootpage FROM sqlite_master WHERE name = $1";
    let page: i64 = sqlx::query_scalar(sql).bind(name).fetch_one(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    usize::try_from(page).unwrap()
}

/// Makes the page of an index no page at all, and returns the bytes of the file.
async fn damage(path: &Utf8Path, index: &str) -> Vec<u8> {
    let at = (root_page(path, index).await - 1) * 4096;
    let mut bytes = bytes_of(path);
    bytes[at] ^= 0x10;
    repertoire_text::fs::write_atomic(path, &bytes).unwrap();
    bytes
}

#[tokio::test]
async fn a_damaged_database_is_never_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder);
    let journal = open(&path).await.unwrap();
    let first = journal.create(new_run("first")).await.unwrap().id;
    journal.create(new_run("second")).await.unwrap();
    journal.close().await;
    let damaged = damage(&path, "letter_by_digest").await;
    let journal = open(&path).await.unwrap();
    // It can still be read.
    assert!(journal.run(&first).await.unwrap().is_some());
    let claim = journal.claim(&suite::worker("w"), &Default::default()).await.map(drop);
    let create = journal.create(new_run("third")).await.map(drop);
    for refused in [claim, create, journal.check_damage().await] {
        let Err(error @ JournalError::Damaged { .. }) = refused else { panic!("{refused:?}") };
        let text = error.to_string();
        assert!(text.contains("nothing is written") && text.contains(".recover"), "{text}");
        assert!(error.is_permanent() && text.contains(path.as_str()), "{text}");
    }
    journal.close().await;
    assert_eq!(bytes_of(&path), damaged);
}

#[tokio::test]
async fn a_damaged_database_of_an_older_version_is_not_migrated() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder);
    let journal = open(&path).await.unwrap();
    for _ in 0..2 {
        journal.create(new_run("r")).await.unwrap();
    }
    journal.close().await;
    let older =
        "ALTER TABLE run DROP COLUMN lease_beat; DELETE FROM journal_version WHERE version >= 3";
    tamper(&Target::File(path.clone()), older).await;
    let damaged = damage(&path, "letter_by_digest").await;
    let refused = open(&path).await.err().unwrap();
    assert!(matches!(refused, JournalError::Damaged { .. }), "{refused}");
    assert_eq!(bytes_of(&path), damaged);
}

/// A damaged index made whoever paged through events read the same ones for ever.
#[tokio::test]
async fn events_that_are_out_of_order_are_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder);
    let journal = open(&path).await.unwrap();
    let lease = suite::claimed(&journal, &suite::worker("w")).await.lease;
    journal.append(&lease, vec![suite::started(1), suite::finished(1)]).await.unwrap();
    journal.close().await;
    // The first two entries of the index change places.
    let entries = (root_page(&path, "sqlite_autoindex_event_1").await - 1) * 4096 + 8;
    let mut bytes = bytes_of(&path);
    for at in 0..2 {
        bytes.swap(entries + at, entries + 2 + at);
    }
    repertoire_text::fs::write_atomic(&path, &bytes).unwrap();
    let journal = open(&path).await.unwrap();
    let read = journal.events(&lease.run, 0, 0).await;
    assert!(matches!(read, Err(JournalError::Damaged { .. })), "{read:?}");
    let written = journal.renew_lease(&lease).await;
    assert!(matches!(written, Err(JournalError::Damaged { .. })), "{written:?}");
}

/// A value of another type, as a flipped bit of a row's header makes it.
#[tokio::test]
async fn a_value_that_cannot_be_read_hides_no_other_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder);
    let journal = open(&path).await.unwrap();
    let bad = journal.create(new_run("bad")).await.unwrap().id;
    let good = journal.create(new_run("good")).await.unwrap();
    for tampered in [
        "UPDATE run SET head = 1.5 WHERE name = 'bad'",
        "UPDATE run SET head = x'00', state = CAST(x'ff' AS TEXT) WHERE name = 'bad'",
    ] {
        tamper(&Target::File(path.clone()), tampered).await;
        let page = journal.runs(&Default::default()).await.unwrap();
        assert_eq!(page.items, std::slice::from_ref(&good));
        let [row] = &page.damaged[..] else { panic!("{page:?}") };
        assert_eq!(row.id, bad.as_str());
        assert!(row.what.contains("cannot be read"), "{}", row.what);
        let problem = journal.verify_run(&bad).await.unwrap().problem.unwrap();
        assert!(problem.what.contains("cannot be read"), "{problem:?}");
    }
    let claimed = journal.claim(&suite::worker("w"), &Default::default()).await.unwrap();
    assert_eq!(claimed.unwrap().run.id, good.id);
}

/// The row is damaged, and so is the file: nothing more is written.
#[tokio::test]
async fn a_damaged_row_in_a_damaged_file_stops_writing() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder);
    let journal = open(&path).await.unwrap();
    let id = journal.create(new_run("first")).await.unwrap().id;
    journal.close().await;
    tamper(&Target::File(path.clone()), "UPDATE run SET name = 'other'").await;
    let damaged = damage(&path, "letter_by_digest").await;
    let journal = open(&path).await.unwrap();
    for _ in 0..2 {
        let read = journal.run(&id).await;
        assert!(matches!(read, Err(JournalError::Damaged { .. })), "{read:?}");
        let listed = journal.runs(&Default::default()).await;
        assert!(matches!(listed, Err(JournalError::Damaged { .. })), "{listed:?}");
    }
    let written = journal.create(new_run("second")).await;
    assert!(matches!(written, Err(JournalError::Damaged { .. })), "{written:?}");
    journal.close().await;
    assert_eq!(bytes_of(&path), damaged);
}

/// A program that was started before the migration would write events without digests.
#[tokio::test]
async fn an_older_version_cannot_write_after_the_migration() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder);
    let id = open(&path).await.unwrap().create(new_run("r")).await.unwrap().id;
    let mut older = connect(&path).await;
    let insert = "INSERT INTO event (run, seq, v, at_ms, type, payload, batch) \
        VALUES ($1, 2, 1, 1000, 'NOTE', '{}', 'b')";
    let refused = sqlx::query(insert).bind(id.as_str()).execute(&mut older).await.unwrap_err();
    assert!(refused.to_string().contains("NOT NULL constraint failed: event."), "{refused}");
}

/// Damage to the index of runs hides a run, but not its request.
#[tokio::test]
async fn a_run_that_damage_hides_is_not_reported_as_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder);
    let journal = open(&path).await.unwrap();
    let id = journal.create(new_run("r")).await.unwrap().id;
    journal.close().await;
    let page = (root_page(&path, "sqlite_autoindex_run_1").await - 1) * 4096;
    let mut bytes = bytes_of(&path);
    let at = bytes[page..page + 4096].windows(36).position(|part| part == id.as_str().as_bytes());
    bytes[page + at.unwrap() + 35] ^= 1;
    repertoire_text::fs::write_atomic(&path, &bytes).unwrap();
    let journal = open(&path).await.unwrap();
    let read = journal.run(&id).await;
    assert!(matches!(read, Err(JournalError::Damaged { .. })), "{read:?}");
    let found = open(&path).await.unwrap().find_run(id.as_str()).await;
    assert!(matches!(found, Err(JournalError::Damaged { .. })), "{found:?}");
}
