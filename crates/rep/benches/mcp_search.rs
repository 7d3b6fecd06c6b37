//! What a search for skills costs an agent over MCP: `skill_search` over 2,500 skills, beside skillport's `search_skills`, both
//! on standard input and output, in one run.
//!
//! `cargo bench -p repertoire-cli --bench mcp_search`. The peer is `skillport-mcp` of the path, or of `SKILLPORT_MCP`
//! (`pip install skillport-mcp 'lancedb==0.26.0'`: with later ones its index cannot be made, and it falls back to comparing
//! texts). It fails below 20 times the peer's speed; without the peer only our own time is printed.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark prints, and may stop"
)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const SKILLS: usize = 2_500;
const ROUNDS: usize = 120;
const RATIO_MIN: f64 = 20.0;
const TASKS: &[&str] = &[
    "merge the invoice with the ledger",
    "deploy the container to the cluster",
    "translate the contract before the meeting",
    "why does the migration of the database fail",
];
const VERBS: &[&str] = &[
    "write",
    "check",
    "convert",
    "merge",
    "split",
    "extract",
    "plan",
    "deploy",
    "migrate",
    "audit",
    "draft",
    "translate",
    "format",
    "compare",
    "index",
    "export",
    "measure",
];
const NOUNS: &[&str] = &[
    "invoice",
    "contract",
    "ledger",
    "payroll",
    "deployment",
    "migration",
    "container",
    "database",
    "schema",
    "report",
    "chart",
    "image",
    "transcript",
    "email",
    "calendar",
    "meeting",
    "fixture",
    "browser",
    "cache",
    "queue",
    "journal",
    "budget",
    "forecast",
    "tender",
    "slide",
    "archive",
    "backup",
    "cluster",
    "certificate",
    "session",
    "licence",
    "package",
    "release",
    "branch",
];

fn main() -> ExitCode {
    let dir = tempfile::tempdir().unwrap();
    let skills = dir.path().join("skills");
    write_skills(&skills);
    let home = dir.path().join("home");
    std::fs::create_dir_all(&home).unwrap();

    let mut rep = Command::new(env!("CARGO_BIN_EXE_rep"));
    rep.arg("--root").arg(&skills).arg("mcp");
    let ours = Server::start(rep, &home, dir.path()).median("skill_search", "task");
    println!("{SKILLS} skills, median of {ROUNDS} calls after the first");
    println!("{:<40} {:>9.3} ms", "rep mcp: skill_search", ms(ours));

    let peer = std::env::var("SKILLPORT_MCP").unwrap_or_else(|_| "skillport-mcp".to_owned());
    if !matches!(Command::new(&peer).arg("--help").output(), Ok(out) if out.status.success()) {
        println!("{peer} is not there; nothing to compare with");
        return ExitCode::SUCCESS;
    }
    let mut skillport = Command::new(&peer);
    skillport.arg("--skills-dir").arg(&skills).arg("--db-path").arg(dir.path().join("db"));
    let theirs = Server::start(skillport, &home, dir.path()).median("search_skills", "query");
    let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
    println!("{:<40} {:>9.3} ms", "skillport-mcp: search_skills", ms(theirs));
    let enough = ratio >= RATIO_MIN;
    println!(
        "{:<40} {ratio:>9.1} × : {}",
        "ratio (20 at least)",
        if enough { "ok" } else { "too slow" }
    );
    if enough { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Skills of made-up trades, the same in every run.
fn write_skills(dir: &Path) {
    let mut state = 7_u64;
    let mut pick = |words: &[&'static str]| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        words[(state >> 33) as usize % words.len()]
    };
    for number in 0..SKILLS {
        let (verb, noun, other) = (pick(VERBS), pick(NOUNS), pick(NOUNS));
        let name = format!("{verb}-{noun}-{other}-{number}");
        let mut text = format!(
            "---\nname: {name}\ndescription: How to {verb} a {noun} with its {other}. Use when somebody asks to {verb} the \
             {noun} or to {} the {}.\n---\n# {name}\n",
            pick(VERBS),
            pick(NOUNS)
        );
        for _ in 0..40 {
            let line: Vec<&str> =
                (0..12).map(|at| if at % 3 == 0 { pick(VERBS) } else { pick(NOUNS) }).collect();
            text.push_str(&line.join(" "));
            text.push_str(".\n");
        }
        let folder = dir.join(&name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("SKILL.md"), text).unwrap();
    }
}

/// A server that is talked to over its standard streams.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last_id: u64,
}

impl Server {
    fn start(mut command: Command, home: &Path, here: &Path) -> Self {
        let mut child = command
            .env("HOME", home)
            .current_dir(here)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut server = Server { child, input, output, last_id: 0 };
        server.call(
            "initialize",
            &json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } }),
        );
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        server
    }

    fn median(mut self, tool: &str, argument: &str) -> Duration {
        let mut times: Vec<Duration> = Vec::new();
        for round in 0..=ROUNDS {
            let task = TASKS[round % TASKS.len()];
            let start = Instant::now();
            let answer =
                self.call("tools/call", &json!({ "name": tool, "arguments": { argument: task } }));
            times.push(start.elapsed());
            assert!(answer["result"]["isError"] != true && answer["error"].is_null(), "{answer}");
        }
        // The first call makes an index.
        times.remove(0);
        times.sort_unstable();
        let _ = self.child.kill();
        let _ = self.child.wait();
        times[times.len() / 2]
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
        self.input.flush().unwrap();
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server has gone");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
