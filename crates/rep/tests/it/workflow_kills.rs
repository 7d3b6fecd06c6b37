//! `kill -9` in the middle of `step` and `record`: nothing that was acknowledged is lost, and nothing counts twice.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::workspace::Workspace;

/// How often a process is killed.
const KILLS: u32 = 500;

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
    acknowledged: u32,
}

impl Killing {
    fn new() -> Self {
        let ws = Workspace::new();
        ws.skill("home/.agents/skills/round", "round", "Goes round. Use when testing.");
        ws.write("home/.agents/skills/round/workflow.yaml", ROUND);
        let (run, life) = (String::new(), Duration::ZERO);
        let mut killing = Killing { ws, run, seed: 0x9e37_79b9, life, acknowledged: 0 };
        killing.start();
        killing.look();
        killing
    }

    fn start(&mut self) {
        let started = self.ws.rep("--json workflow start round");
        let step: Value = serde_json::from_str(&started.stdout).unwrap();
        self.run = step["run"].as_str().unwrap().to_owned();
    }

    /// Measures again: other tests run at the same time, and more or fewer of them.
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
        self.look();
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

    fn state(&self) -> Value {
        let text = self.ws.text(&format!("data/workflows/{}/state.json", self.run));
        serde_json::from_str::<Value>(&text).unwrap()["state"].clone()
    }
}

#[test]
fn a_killed_step_counts_once_or_not_at_all() {
    let mut killing = Killing::new();
    for _ in 0..KILLS / 2 {
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
    assert!(killing.acknowledged < KILLS / 2, "nothing was killed in time");
}

#[test]
fn a_killed_record_counts_once_or_not_at_all() {
    let mut killing = Killing::new();
    for number in 1..=KILLS as usize / 2 {
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
    assert!(killing.acknowledged < KILLS / 2, "nothing was killed in time");
}

#[test]
fn records_at_the_same_time_all_count() {
    let killing = Killing::new();
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
}
