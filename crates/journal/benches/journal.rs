//! What the journal costs: a step beside the bare SQL of the same writes, and taking a run when the history is long.
//!
//! `cargo bench -p repertoire-journal`. Both stores write to the disk as they do in earnest.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and may stop")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use repertoire_journal::event::StepOutcome;
use repertoire_journal::run::RunUsage;
use repertoire_journal::{
    ClaimRules, Journal, NewRun, Payload, QueueWorker, RunId, RunLease, Target,
};
use serde_json::json;
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

#[path = "../tests/it/server.rs"]
#[allow(dead_code, reason = "tests use all of it")]
mod server;

/// Rounds, in which the journal and the bare SQL take turns.
const ROUNDS: u32 = 6;
/// Steps of one round.
const STEPS: u32 = 100;
/// Runs that are taken to measure one.
const CLAIMS: usize = 201;

const FINISHED: &str = "INSERT INTO run (id, kind, name, workspace, labels, priority, status, seq, token, \
    not_before_ms, state) \
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1) \
    SELECT 'done-' || i, kind, name, workspace, labels, 0, 'completed', 1, 1, 0, state FROM n CROSS JOIN run";
const REQUESTS: &str =
    "INSERT INTO request (run, body) SELECT id, '{}' FROM run WHERE id LIKE 'done-%'";
const EVENTS: &str = "INSERT INTO event (run, seq, v, at_ms, type, payload, batch, prev, row_digest) \
    SELECT id, 1, 1, 0, 'RUN_CREATED', state, '', '', '' FROM run WHERE id LIKE 'done-%'";

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(async {
        println!(
            "{:<12} {:<44} {:>12} {:>12} {:>7}",
            "store", "what", "journal", "compared", "ratio"
        );
        sqlite().await;
        postgres().await;
    });
}

async fn sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let folder = camino::Utf8Path::from_path(folder.path()).unwrap();
    let path = folder.join("steps.db");
    let journal = open(&Target::File(path.clone())).await;
    let options = SqliteConnectOptions::new()
        .filename(&path)
        .busy_timeout(Duration::from_secs(10))
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true);
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
    let lease = taken(&journal, "measured").await;
    let bare = taken(&journal, "bare").await;
    steps("SQLite", &journal, &lease, async |from| bare_sqlite(&pool, &bare, from).await).await;
    let mut journals = Vec::new();
    for finished in [10, 100_000] {
        let path = folder.join(format!("claims-{finished}.db"));
        let journal = open(&Target::File(path.clone())).await;
        journal.create(new_run("model")).await.unwrap();
        let pool = SqlitePool::connect(&format!("sqlite://{path}")).await.unwrap();
        sqlx::query(FINISHED).bind(finished).execute(&pool).await.unwrap();
        for sql in [REQUESTS, EVENTS, "ANALYZE"] {
            sqlx::query(sql).execute(&pool).await.unwrap();
        }
        pool.close().await;
        journals.push(journal);
    }
    claims("SQLite", &journals).await;
}

async fn postgres() {
    let Some(server) = server::Server::start(&[]) else { return };
    let url = server.url("postgres");
    let journal = open(&Target::Url(url.clone())).await;
    let pool = PgPoolOptions::new().max_connections(1).test_before_acquire(false);
    let pool = pool.connect(&url).await.unwrap();
    let lease = taken(&journal, "measured").await;
    let bare = taken(&journal, "bare").await;
    steps("PostgreSQL", &journal, &lease, async |from| bare_postgres(&pool, &bare, from).await)
        .await;
    let mut journals = Vec::new();
    for finished in [10_i32, 100_000] {
        let make = format!("CREATE DATABASE claims_{finished}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(make)).execute(&pool).await.unwrap();
        let url = server.url(&format!("claims_{finished}"));
        let journal = open(&Target::Url(url.clone())).await;
        journal.create(new_run("model")).await.unwrap();
        let pool = PgPool::connect(&url).await.unwrap();
        sqlx::query(FINISHED).bind(finished).execute(&pool).await.unwrap();
        for sql in [REQUESTS, EVENTS, "VACUUM ANALYZE", "CHECKPOINT"] {
            sqlx::raw_sql(sql).execute(&pool).await.unwrap();
        }
        pool.close().await;
        journals.push(journal);
    }
    claims("PostgreSQL", &journals).await;
}

async fn open(target: &Target) -> Journal {
    let begun = Instant::now();
    let clock = move || 1_000_000 + u64::try_from(begun.elapsed().as_millis()).unwrap();
    Journal::open(target, Arc::new(clock)).await.unwrap()
}

fn new_run(name: &str) -> NewRun {
    NewRun {
        id: RunId::new(),
        kind: "plan".into(),
        name: name.into(),
        workspace: "/repo".into(),
        labels: Default::default(),
        priority: 0,
        limits: Default::default(),
        request: json!({ "plan": "PLAN.md" }),
    }
}

fn worker() -> QueueWorker {
    let kinds = ["plan".to_owned()].into();
    let lease = Duration::from_secs(3_600);
    QueueWorker { name: "w".into(), labels: Default::default(), kinds, lease }
}

/// A run that is under way in its first step.
async fn taken(journal: &Journal, name: &str) -> RunLease {
    journal.create(new_run(name)).await.unwrap();
    let lease = journal.claim(&worker(), &ClaimRules::default()).await.unwrap().unwrap().lease;
    journal.append(&lease, vec![started(1)]).await.unwrap();
    lease
}

fn started(step: u32) -> Payload {
    Payload::StepStarted {
        step,
        kind: "implementation".into(),
        task: None,
        attempt: 1,
        iteration: step,
        head: Some("0123456789abcdef".into()),
        detail: json!({ "prompt": "prompts/0001.txt" }),
    }
}

fn finished(step: u32) -> Payload {
    let spent = RunUsage { cost_micro_usd: 1_200, input_tokens: 4_000, ..RunUsage::default() };
    let result = json!({ "files": ["src/lib.rs", "src/main.rs"], "summary": "x".repeat(400) });
    let head = Some("0123456789abcdef".into());
    Payload::StepFinished { step, outcome: StepOutcome::Ok, reason: None, head, spent, result }
}

/// The journal and the bare SQL take turns, so that both meet the same disk.
async fn steps(
    store: &str,
    journal: &Journal,
    lease: &RunLease,
    bare: impl AsyncFn(u32) -> Duration,
) {
    let (mut ours, mut theirs) = (Duration::ZERO, Duration::ZERO);
    for round in 0..ROUNDS {
        let from = round * STEPS + 1;
        let begun = Instant::now();
        for step in from..from + STEPS {
            journal.append(lease, vec![finished(step), started(step + 1)]).await.unwrap();
        }
        ours += begun.elapsed();
        theirs += bare(from).await;
    }
    let all = f64::from(ROUNDS * STEPS);
    let (ours, theirs) = (all / ours.as_secs_f64(), all / theirs.as_secs_f64());
    let what = "steps/s, beside the same writes as bare SQL";
    println!("{store:<12} {what:<44} {ours:>12.0} {theirs:>12.0} {:>6.2}x", ours / theirs);
}

/// The texts that one step writes.
struct Written {
    events: [(i64, &'static str, String); 2],
    steps: [String; 2],
    state: String,
}

fn written(step: u32) -> Written {
    let seq = i64::from(step) * 2 + 1_000_000;
    let (end, begin) = (finished(step), started(step + 1));
    let state = json!({ "kind": "plan", "steps": step, "filler": "x".repeat(500) }).to_string();
    Written {
        steps: [json!(end).to_string() + &state[..200], json!(begin).to_string() + &state[..200]],
        events: [
            (seq, end.name(), json!(end).to_string()),
            (seq + 1, begin.name(), json!(begin).to_string()),
        ],
        state,
    }
}

macro_rules! bare {
    ($name:ident, $pool:ty, $begin:expr, $update:literal) => {
        async fn $name(pool: &$pool, lease: &RunLease, from: u32) -> Duration {
            let begun = Instant::now();
            for step in from..from + STEPS {
                let written = written(step);
                let mut tx = pool.begin_with($begin).await.unwrap();
                let run = lease.run.as_str();
                let update = sqlx::query($update);
                let update = update.bind(run).bind(1_i64).bind(i64::from(step)).bind(written.state);
                update.execute(&mut *tx).await.unwrap();
                for (seq, name, payload) in written.events {
                    let insert = "INSERT INTO event (run, seq, v, at_ms, type, payload, batch, prev, row_digest) \
                        VALUES ($1, $2, 1, 1000000, $3, $4, '0199a0a0-0000-7000-8000-000000000000', $5, $5)";
                    let insert = sqlx::query(insert).bind(run).bind(seq).bind(name).bind(payload);
                    let insert = insert.bind(vec![0_u8; 32]);
                    insert.execute(&mut *tx).await.unwrap();
                }
                let [end, begin] = written.steps;
                let finish = "UPDATE step SET status = 'finished', state = $3 WHERE run = $1 AND number = $2";
                let finish = sqlx::query(finish).bind(run).bind(i64::from(step)).bind(end);
                finish.execute(&mut *tx).await.unwrap();
                let next = "INSERT INTO step (run, number, status, state) VALUES ($1, $2, 'running', $3)";
                let next = sqlx::query(next).bind(run).bind(i64::from(step) + 1).bind(begin);
                next.execute(&mut *tx).await.unwrap();
                tx.commit().await.unwrap();
            }
            begun.elapsed()
        }
    };
}
bare!(
    bare_sqlite,
    SqlitePool,
    "BEGIN IMMEDIATE",
    "UPDATE run SET seq = $3, state = $4, lease_until_ms = $3 WHERE id = $1 AND token = $2"
);
bare!(
    bare_postgres,
    PgPool,
    "BEGIN",
    "UPDATE run SET seq = $3, state = $4, lease_until_ms = $3 WHERE id = $1 AND token = $2 \
     RETURNING pg_notify('rep_journal', id)"
);

/// The middle of the times that taking a run took. Few and many take turns, so that both meet the same disk.
async fn claims(store: &str, journals: &[Journal]) {
    let mut times = vec![Vec::new(); journals.len()];
    for journal in journals {
        for _ in 0..CLAIMS {
            journal.create(new_run("queued")).await.unwrap();
        }
    }
    for _ in 0..CLAIMS {
        for (journal, times) in journals.iter().zip(&mut times) {
            let begun = Instant::now();
            journal.claim(&worker(), &ClaimRules::default()).await.unwrap().unwrap();
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
    }
    let middle: Vec<f64> = times.iter_mut().map(|times| middle_of(times)).collect();
    let what = "claim p50 in ms: 100,000 finished, beside 10";
    let [few, many] = middle[..] else { return };
    println!("{store:<12} {what:<44} {many:>12.2} {few:>12.2} {:>6.2}x", many / few);
}

fn middle_of(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
