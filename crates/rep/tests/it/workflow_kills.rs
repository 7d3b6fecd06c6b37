//! `kill -9` in the middle of `step` and `record`: nothing that was acknowledged is lost, and nothing counts twice. On
//! both stores.
//!
//! `REPERTOIRE_LONG=1` kills 250 times instead of a few.

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use repertoire_flow::driver::WorkflowRunStore;
use repertoire_journal::{Journal, RunId, Target};
use repertoire_text::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::plan_crash::field::is_long;
use crate::server::Server;
use crate::workspace::Workspace;

/// How often a process is killed in a test, with a SQLite file, in the short form and in the long one.
const KILLS: [u32; 2] = [25, 250];
/// The same with PostgreSQL, where a process takes longer.
const SERVER_KILLS: [u32; 2] = [10, 40];
/// The life of a command is measured again after so many kills, since other tests run at the same time.
const KILLS_PER_LOOK: u32 = 5;

/// A loop that goes on as long as the test does: people allow it once more than its bound.
const ROUND: &str = "\
steps:
  - id: work
    title: Work
    actions: [Work.]
    loop: { max: 100 }
    outcomes: { ok: enough, iterate: more }
    next: { ok: gate, iterate: work }
  - id: gate
    title: Gate
    decide:
      gate:
        name: Review
        reviews: [work]
        banner: Look.
        stop: Do not go on.
        reverify: targeted
    next: { ok: end, fail: work }
";

struct Killing {
    ws: Workspace,
    run: String,
    seed: u64,
    /// How long a command takes that is not killed.
    life: Duration,
    kills: u32,
    tried: u32,
    acknowledged: u32,
    /// Reads what the killed processes have left.
    runtime: tokio::runtime::Runtime,
    journal: Journal,
    _server: Option<Server>,
}

impl Killing {
    fn new(server: Option<Server>) -> Self {
        let mut ws = Workspace::new();
        ws.skill("home/.agents/skills/round", "round", "Goes round. Use when testing.");
        ws.write("home/.agents/skills/round/workflow.yaml", ROUND);
        let (target, kills) = match &server {
            Some(server) => {
                let url = server.url("postgres");
                ws.set("REPERTOIRE_DATABASE_URL", &url);
                (Target::Url(url), SERVER_KILLS)
            }
            None => (Target::File(ws.path("data/journal.sqlite")), KILLS),
        };
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let clock = Arc::new(|| SystemClock.now_ms());
        let journal = runtime.block_on(Journal::open(&target, clock)).unwrap();
        let mut killing = Killing {
            ws,
            run: String::new(),
            seed: 0x9e37_79b9,
            life: Duration::ZERO,
            kills: kills[usize::from(is_long())],
            tried: 0,
            acknowledged: 0,
            runtime,
            journal,
            _server: server,
        };
        killing.start();
        killing
    }

    fn start(&mut self) {
        let started = self.ws.rep("--json workflow start round");
        let step: Value = serde_json::from_str(&started.stdout).unwrap();
        self.run = step["run"].as_str().unwrap().to_owned();
    }

    fn look(&mut self) {
        let begun = Instant::now();
        self.ws.rep_with(&["workflow", "step", &self.run]);
        self.life = begun.elapsed();
    }

    /// A delay around the end of a command's life, where it writes.
    fn delay(&mut self) -> Duration {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.life.mul_f64(0.3 + (self.seed % 1000) as f64 / 1000.0)
    }

    /// Runs a command and kills it; whether it had acknowledged.
    fn kill(&mut self, args: &[&str]) -> bool {
        if self.tried.is_multiple_of(KILLS_PER_LOOK) {
            self.look();
        }
        self.tried += 1;
        let delay = self.delay();
        let mut command = self.ws.command(args);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(delay);
        // It may have ended by itself, which is as good.
        let _ = child.kill();
        let output = child.wait_with_output().unwrap();
        let acknowledged = output.status.success();
        self.acknowledged += u32::from(acknowledged);
        acknowledged
    }

    /// The state of the run, computed from what is in the journal.
    fn state(&self) -> Value {
        let store = WorkflowRunStore::new(self.journal.clone(), self.ws.path("data/runs"));
        json!(self.runtime.block_on(store.open_run(&self.run)).unwrap().state)
    }

    /// The rows that the journal derives from the events agree with them.
    fn check_journal(&self) {
        let run = RunId::known(&self.run);
        let replayed = self.runtime.block_on(self.journal.replay_run(&run)).unwrap();
        assert_eq!(replayed.differences, []);
    }
}

/// A server, or none where PostgreSQL is not installed.
fn on_server(test: fn(Killing)) {
    if let Some(server) = Server::start(&[]) {
        test(Killing::new(Some(server)));
    }
}

#[test]
fn a_killed_step_counts_once_or_not_at_all() {
    kill_steps(Killing::new(None));
}

#[test]
fn a_killed_step_counts_once_or_not_at_all_with_postgres() {
    on_server(kill_steps);
}

#[test]
fn a_killed_record_counts_once_or_not_at_all() {
    kill_records(Killing::new(None));
}

#[test]
fn a_killed_record_counts_once_or_not_at_all_with_postgres() {
    on_server(kill_records);
}

#[test]
fn records_at_the_same_time_all_count() {
    record_at_the_same_time(Killing::new(None));
}

#[test]
fn records_at_the_same_time_all_count_with_postgres() {
    on_server(record_at_the_same_time);
}

fn kill_steps(mut killing: Killing) {
    for _ in 0..killing.kills {
        let before = killing.state();
        if before["visits"]["work"].as_u64() == Some(100) {
            killing.start();
            continue;
        }
        let turn = before["turn"].as_u64().unwrap();
        let (run, at) = (killing.run.clone(), turn.to_string());
        let line = ["workflow", "step", &run, "--at", &at, "--outcome", "iterate"];
        let acknowledged = killing.kill(&line);
        let after = killing.state();
        let counted = after["turn"].as_u64().unwrap() - turn;
        assert!(
            counted == 1 || counted == 0 && !acknowledged,
            "turn {turn} counted {counted} times"
        );
        // Whoever does not know whether it counted reports again.
        assert_eq!(killing.ws.rep_with(&line).code, 0);
        let repeated = killing.state();
        assert_eq!(repeated["turn"].as_u64(), Some(turn + 1));
        assert_eq!(repeated["visits"]["work"].as_u64(), Some(turn + 1));
        assert_eq!(repeated["history"].as_array().unwrap().len() as u64, turn);
    }
    assert!(killing.acknowledged < killing.kills, "nothing was killed in time");
    killing.check_journal();
}

fn kill_records(mut killing: Killing) {
    for number in 1..=killing.kills as usize {
        let run = killing.run.clone();
        let item = format!(r#"{{"id":"I{number}","check":"c","severity":"MUST","status":"PASS"}}"#);
        let line = ["workflow", "record", &run, &item];
        let acknowledged = killing.kill(&line);
        let count =
            |state: &Value| state["reviews"]["gate"]["items"].as_array().map_or(0, Vec::len);
        let after = count(&killing.state());
        assert!(
            after == number || after == number - 1 && !acknowledged,
            "{after} items of {number}"
        );
        assert_eq!(killing.ws.rep_with(&line).code, 0);
        assert_eq!(count(&killing.state()), number);
    }
    assert!(killing.acknowledged < killing.kills, "nothing was killed in time");
    killing.check_journal();
}

fn record_at_the_same_time(killing: Killing) {
    let (ws, run) = (&killing.ws, killing.run.as_str());
    std::thread::scope(|scope| {
        for worker in 0..6 {
            scope.spawn(move || {
                for number in 0..5 {
                    let item =
                        format!(r#"{{"id":"W{worker}-{number}","check":"c","severity":"MUST"}}"#);
                    assert_eq!(ws.rep_with(&["workflow", "record", run, &item]).code, 0);
                }
            });
        }
    });
    assert_eq!(killing.state()["reviews"]["gate"]["items"].as_array().unwrap().len(), 30);
    killing.check_journal();
}
