//! Many runs at once in one daemon: all of them end, nothing that their agents say is lost, and memory stays small.

use std::io::Write;
use std::time::Instant;

use repertoire_journal::{NewRun, RunId};
use serde_json::Value;

use crate::plan_crash::audit::{self, Counts};
use crate::plan_crash::field::{Field, Store, Work, is_long};

const RUNS: usize = 8;
const RUNS_LONG: usize = 50;
/// What the agent of each run says.
const LINES: usize = 2_000;
/// Most memory of the daemon at any time, without its children.
const MEMORY_KB_MAX: u64 = 200 * 1024;

#[test]
fn many_runs_at_once_lose_no_output_and_need_little_memory() {
    let begun = Instant::now();
    let count = if is_long() { RUNS_LONG } else { RUNS };
    let most = count.to_string();
    let mut field = Field::with(Store::Sqlite, &[("REPERTOIRE_QUEUE_RUNS_MAX", &most)]);
    // One repository, and a worktree of it for each run.
    let work = Work::new("load", 1);
    let repository = field.repository("one", &[(work.path(), work.plan())]);
    let agent = field.ws.path("agent.sh");
    // Each agent waits until all of them are at work.
    let script = format!(
        "cat >/dev/null\nwhile [ ! -e \"$HOME/go\" ]; do sleep 0.5; done\n\
         seq -f 'line %.0f of many' 1 {LINES}\nprintf 'half of load-1\\n' >load-1.txt\n"
    );
    field.ws.write("agent.sh", script);
    let backend = format!("command:sh {agent}");
    let args = ["--backend", &backend, "--no-review", "--check", "test -f load-1.txt"];
    let first = field.queue(&repository, &work.path(), &args);
    let mut runs = vec![first.clone()];
    runs.extend((1..count).map(|_| another(&field, &first)));

    let mut daemon = field.worker(&["daemon", "--runs", &most]);
    field.until("all of them at work", |field| {
        field.runs().iter().all(|run| run.open_step.is_some())
    });
    field.ws.write("home/go", "");
    field.until_completed(&runs);
    let memory = status_kb(daemon.child.id(), "VmHWM:");
    assert_eq!(daemon.stop(), Some(0), "{}", daemon.said());
    let took = begun.elapsed().as_secs_f32();
    let line = format!("{count} runs at once in {took:.1} s, peak memory {} MB", memory / 1024);
    let _ = writeln!(std::io::stderr(), "{line}");
    for id in &runs {
        let run = field.run(id);
        audit::journal(&field, &run, &mut Counts::default());
        audit::branch(&field, &run, &work);
        audit::worktree(&field, &run);
        said_everything(&field, id);
    }
    audit::repository(&field, &repository);
    audit::nobody_is_left(&field);
    assert!(memory < MEMORY_KB_MAX, "{line}");
}

/// A run that asks for the same.
fn another(field: &Field, like: &RunId) -> RunId {
    let run = field.run(like);
    let new = NewRun {
        id: RunId::new(),
        kind: run.kind,
        name: run.name,
        workspace: run.workspace,
        labels: run.labels,
        priority: run.priority,
        limits: run.limits,
        request: run.request,
    };
    field.block(field.journal.create(new)).unwrap().id
}

/// All lines of the agent are in the log of its step, in their order.
fn said_everything(field: &Field, id: &RunId) {
    let log = field.ws.text(&format!("data/runs/{id}/001-implementation.jsonl"));
    let mut said = String::new();
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        if event["type"] == "text" {
            said.push_str(event["text"].as_str().unwrap());
        }
    }
    let expected: String = (1..=LINES).map(|number| format!("line {number} of many\n")).collect();
    assert!(said == expected, "{id}: {} bytes of {}", said.len(), expected.len());
}

fn status_kb(process: u32, field: &str) -> u64 {
    let text = repertoire_text::fs::read_text(
        camino::Utf8Path::new(&format!("/proc/{process}/status")),
        1024 * 1024,
    );
    let text = text.unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
