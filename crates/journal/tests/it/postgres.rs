//! The suite on PostgreSQL, and what only PostgreSQL has.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use repertoire_journal::{
    Command, Event, EventCursor, Journal, JournalError, Payload, RunStatus, Target,
};
use sqlx::{ConnectOptions, Connection, PgConnection};

use crate::every_test;
use crate::server::Server;
use crate::suite::{self, BoxFuture, Place, agrees, claim, finished, new_run, started, worker};

mod proxy;

use proxy::{Loss, Proxy};

macro_rules! on_postgres {
    ($($module:ident: $name:ident,)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let Some(url) = database().await else { return };
            suite::$module::$name(Place::new(Target::Url(url), tamper)).await;
        })*
    };
}
every_test!(on_postgres);

/// One server for all tests of this binary.
fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&["fsync=off"])).as_ref()
}

/// A database of its own.
async fn database() -> Option<String> {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let server = server()?;
    let name = format!("test_{}", LAST.fetch_add(1, Ordering::Relaxed));
    let mut connection = connect(&server.url("postgres")).await;
    let make = format!("CREATE DATABASE {name}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(make)).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    Some(server.url(&name))
}

async fn connect(url: &str) -> PgConnection {
    url.parse::<sqlx::postgres::PgConnectOptions>().unwrap().connect().await.unwrap()
}

fn tamper(target: &Target, sql: &'static str) -> BoxFuture {
    let Target::Url(url) = target.clone() else { panic!() };
    Box::pin(async move {
        let mut connection = connect(&url).await;
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    })
}

async fn open(url: &str) -> Result<Journal, JournalError> {
    Journal::open(&Target::Url(url.to_owned()), Arc::new(|| 1_000)).await
}

/// So many events of the tail. Transactions of other tests hold it up a little.
async fn tail(journal: &Journal, from: EventCursor, count: usize) -> (Vec<Event>, EventCursor) {
    loop {
        let page = journal.list_all_events(from, 10).await.unwrap();
        if page.events.len() >= count {
            let events = page.events.into_iter().map(|(_, event)| event);
            return (events.collect(), page.next);
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let Some(url) = database().await else { return };
    open(&url).await.unwrap().close().await;
    tamper(&Target::Url(url.clone()), "INSERT INTO journal_version VALUES (99)").await;
    let error = open(&url).await.err().unwrap();
    assert!(matches!(error, JournalError::Newer { found: 99, .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_can_open_a_new_database_at_once() {
    let Some(url) = database().await else { return };
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let url = url.clone();
        tasks.spawn(async move {
            let journal = open(&url).await.unwrap();
            journal.create(new_run("r")).await.unwrap();
        });
    }
    tasks.join_all().await;
    let journal = open(&url).await.unwrap();
    assert_eq!(journal.runs(&Default::default()).await.unwrap().items.len(), 8);
}

#[tokio::test]
async fn a_password_is_never_shown() {
    for url in [
        "postgres://me:s3cret@127.0.0.1:1/rep",
        "postgres://me:s3cret@127.0.0.1:notaport/rep",
        "postgres://127.0.0.1:1/rep?password=s3cret",
        "postgres://me:s3cret@[/rep",
    ] {
        let error = open(url).await.err().unwrap();
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    }
    let target = Target::Url("postgres://me:s3cret@h/d".into());
    assert!(!format!("{target:?}").contains("s3cret"));
}

#[tokio::test]
async fn the_end_of_a_lease_is_shown_by_the_servers_clock() {
    let Some(url) = database().await else { return };
    // This host believes that it is 1970.
    let journal = open(&url).await.unwrap();
    journal.create(new_run("r")).await.unwrap();
    let lease = claim(&journal, &worker("w")).await.lease;
    let until = journal.lease_until(&lease.run).await.unwrap().unwrap();
    assert!(until > 1_700_000_000_000, "{until}");
    assert_eq!(journal.requeue_expired().await.unwrap(), []);
}

#[tokio::test]
async fn a_copy_that_was_restored_on_another_server_is_shown_whole() {
    let Some(url) = database().await else { return };
    let journal = open(&url).await.unwrap();
    let first = journal.create(new_run("first")).await.unwrap().id;
    claim(&journal, &worker("w")).await;
    // The first event has a number that this server has reached, too.
    let far = "UPDATE event SET xact = CASE seq WHEN 1 THEN 5 ELSE 4000000000000 END";
    tamper(&Target::Url(url.clone()), far).await;
    assert_eq!(journal.list_all_events(Default::default(), 10).await.unwrap().events.len(), 1);
    let restored = open(&url).await.unwrap();
    let second = restored.create(new_run("second")).await.unwrap().id;
    let (events, _) = tail(&restored, EventCursor::default(), 3).await;
    let seen: Vec<_> = events.into_iter().map(|event| (event.run, event.seq)).collect();
    assert_eq!(seen, [(first.clone(), 1), (first, 2), (second, 1)]);
}

#[tokio::test]
async fn what_commits_late_is_not_missed_by_a_tail() {
    let Some(url) = database().await else { return };
    let journal = open(&url).await.unwrap();
    let first = journal.create(new_run("first")).await.unwrap().id;
    let note = Payload::Note { name: "late".into(), data: Default::default() };
    journal.order(&first, Command::Event(note)).await.unwrap();
    let aside =
        "CREATE TABLE late AS SELECT * FROM event WHERE seq = 2; DELETE FROM event WHERE seq = 2";
    tamper(&Target::Url(url.clone()), aside).await;
    let (_, start) = tail(&journal, EventCursor::default(), 1).await;
    // An event of a transaction that is still open has the lower number.
    let mut slow = connect(&url).await;
    let mut open = slow.begin().await.unwrap();
    let late = "INSERT INTO event (run, seq, v, at_ms, type, payload, batch, prev, row_digest) \
        SELECT run, seq, v, at_ms, type, payload, batch, prev, row_digest FROM late";
    sqlx::raw_sql(late).execute(&mut *open).await.unwrap();
    let second = journal.create(new_run("second")).await.unwrap().id;
    assert_eq!(journal.events(&second, 0, 0).await.unwrap().len(), 1);
    let early = journal.list_all_events(start, 10).await.unwrap();
    assert_eq!((early.is_end(), early.next), (true, start));
    // Whoever begins now sees what is still to come.
    let now = journal.last_cursor().await.unwrap();
    open.commit().await.unwrap();
    for from in [start, now] {
        let (events, _) = tail(&journal, from, 2).await;
        let seen: Vec<_> = events.iter().map(|event| (&event.run, event.seq)).collect();
        assert_eq!(seen, [(&first, 2), (&second, 1)]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_to_a_commit_doubles_nothing_and_loses_nothing() {
    let Some(url) = database().await else { return };
    let socket = server().unwrap().socket_folder().join(".s.PGSQL.5432");
    let name = url.rsplit('/').next().unwrap();
    for loss in [Loss::Request, Loss::Answer] {
        let proxy = Proxy::start(&socket).await;
        let journal = open(&proxy.url(name)).await.unwrap();
        proxy.lose(loss);
        let run = journal.create(new_run("r")).await.unwrap();
        proxy.lose(loss);
        let lease = claim(&journal, &worker("w")).await.lease;
        assert_eq!((&lease.run, lease.token), (&run.id, 1));
        for step in 1..=3 {
            proxy.lose(loss);
            journal.append(&lease, vec![started(step), finished(step)]).await.unwrap();
        }
        proxy.lose(loss);
        journal.renew_lease(&lease).await.unwrap();
        let cancel = repertoire_journal::Command::Cancel { by: "me".into() };
        proxy.lose(loss);
        journal.order(&run.id, cancel).await.unwrap();
        proxy.lose(loss);
        journal.release_run(&lease, "bye").await.unwrap();
        assert_eq!(proxy.lost(), 8, "{loss:?}");
        let run = journal.run(&run.id).await.unwrap().unwrap();
        assert_eq!((run.status, run.steps, run.seq), (RunStatus::Cancelled, 3, 11), "{loss:?}");
        agrees(&journal, &run.id).await;
        journal.close().await;
    }
}

/// Every attempt fails, and the caller tries again later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_whose_answer_was_lost_is_recognised_when_it_is_tried_again() {
    let Some(url) = database().await else { return };
    let socket = server().unwrap().socket_folder().join(".s.PGSQL.5432");
    let name = url.rsplit('/').next().unwrap();
    for (loss, is_stored) in [(Loss::Answer, true), (Loss::Request, false)] {
        let proxy = Proxy::start(&socket).await;
        let journal = open(&proxy.url(name)).await.unwrap();
        let run = journal.create_attended(new_run("r"), vec![started(1)]).await.unwrap();
        let data = serde_json::json!({ "ratio": 0.1, "large": 1e300, "text": "a\0b \u{1b}[31m" });
        let note = Payload::KindEvent { name: "SAID".into(), data };
        let batch = vec![finished(1), note];
        proxy.lose_and_stay_down(loss);
        let failed = journal.append_attended(&run.id, run.seq, batch.clone()).await;
        assert!(matches!(failed, Err(JournalError::Unreachable { .. })), "{failed:?}");
        proxy.end_outage();
        let found = journal.is_batch_stored(&run.id, run.seq, &batch).await.unwrap();
        assert_eq!(found, is_stored, "{loss:?}");
        let again = journal.append_attended(&run.id, run.seq, batch.clone()).await;
        match again {
            Ok(run) => assert!(!is_stored && run.seq == 4, "{run:?}"),
            Err(JournalError::Conflict { found, .. }) => assert!(is_stored && found == 4),
            Err(error) => panic!("{error}"),
        }
        assert!(journal.is_batch_stored(&run.id, run.seq, &batch).await.unwrap());
        let other = [batch[0].clone(), started(2)];
        assert!(!journal.is_batch_stored(&run.id, run.seq, &other).await.unwrap());
        agrees(&journal, &run.id).await;
        journal.close().await;
    }
}

/// The second attempt comes while the server still carries out the first commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_not_refused_because_of_its_own_first_attempt() {
    let Some(url) = database().await else { return };
    open(&url).await.unwrap().close().await;
    let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$; \
         CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON request DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW EXECUTE FUNCTION slow()";
    tamper(&Target::Url(url.clone()), slow).await;
    let socket = server().unwrap().socket_folder().join(".s.PGSQL.5432");
    let proxy = Proxy::start(&socket).await;
    let journal = open(&proxy.url(url.rsplit('/').next().unwrap())).await.unwrap();
    proxy.lose(Loss::Wait);
    let run = journal.create_attended(new_run("r"), vec![started(1)]).await.unwrap();
    assert_eq!((proxy.lost(), run.seq), (1, 2));
    agrees(&journal, &run.id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_loses_nothing_that_it_acknowledged() {
    let Some(mut server) = Server::start(&["fsync=off"]) else { return };
    let journal = open(&server.url("postgres")).await.unwrap();
    let mut changes = journal.subscribe_changes();
    journal.create(new_run("r")).await.unwrap();
    let lease = claim(&journal, &worker("w")).await.lease;
    let mut step = 0;
    for _ in 0..2 {
        for _ in 0..5 {
            step += 1;
            journal.append(&lease, vec![started(step), finished(step)]).await.unwrap();
        }
        server.kill();
        let (writer, next) = (journal.clone(), lease.clone());
        step += 1;
        let during =
            tokio::spawn(
                async move { writer.append(&next, vec![started(step), finished(step)]).await },
            );
        let restarted = tokio::task::spawn_blocking(move || {
            server.restart();
            server
        });
        server = restarted.await.unwrap();
        during.await.unwrap().unwrap();
    }
    assert_eq!(journal.run(&lease.run).await.unwrap().unwrap().steps, 12);
    agrees(&journal, &lease.run).await;
    // The connection that listens is there again, too.
    let other = open(&server.url("postgres")).await.unwrap();
    let second = std::time::Duration::from_secs(2);
    while changes.next(second).await {}
    other.create(new_run("there")).await.unwrap();
    assert!(changes.next(second * 10).await);
    journal.close().await;
    other.close().await;
}

#[tokio::test]
async fn the_tables_of_something_else_are_left_alone() {
    let Some(url) = database().await else { return };
    let target = Target::Url(url.clone());
    tamper(&target, "CREATE TABLE event (what TEXT)").await;
    let error = open(&url).await.err().unwrap();
    assert!(matches!(error, JournalError::NotAJournal { .. }), "{error}");
    tamper(&target, "DROP TABLE event").await;
    open(&url).await.unwrap();
}

#[tokio::test]
async fn a_connection_that_the_server_ends_while_it_is_idle_is_made_again() {
    let Some(url) = database().await else { return };
    let name = url.rsplit('/').next().unwrap();
    let idle = format!("ALTER DATABASE {name} SET idle_session_timeout = '100ms'");
    let mut connection = connect(&url).await;
    sqlx::raw_sql(sqlx::AssertSqlSafe(idle)).execute(&mut connection).await.unwrap();
    // Over TCP the first thing that comes is why.
    let socket = server().unwrap().socket_folder().join(".s.PGSQL.5432");
    let proxy = Proxy::start(&socket).await;
    let journal = open(&proxy.url(name)).await.unwrap();
    for _ in 0..2 {
        let id = journal.create(new_run("r")).await.unwrap().id;
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        assert!(journal.run(&id).await.unwrap().is_some());
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
}

#[tokio::test]
async fn what_the_database_has_as_its_default_does_not_weaken_the_journal() {
    let Some(url) = database().await else { return };
    let name = url.rsplit('/').next().unwrap();
    open(&url).await.unwrap().close().await;
    let weak = format!(
        "ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'; \
         ALTER DATABASE {name} SET synchronous_commit = off; \
         CREATE TABLE seen (isolation TEXT, durable TEXT); \
         CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen VALUES \
         (current_setting('transaction_isolation'), current_setting('synchronous_commit')); RETURN NEW; END $$; \
         CREATE TRIGGER see BEFORE INSERT ON event FOR EACH ROW EXECUTE FUNCTION see()"
    );
    let mut connection = connect(&url).await;
    sqlx::raw_sql(sqlx::AssertSqlSafe(weak)).execute(&mut connection).await.unwrap();
    open(&url).await.unwrap().create(new_run("r")).await.unwrap();
    let seen: (String, String) =
        sqlx::query_as("SELECT * FROM seen").fetch_one(&mut connection).await.unwrap();
    assert_eq!(seen, ("read committed".into(), "on".into()));
}
