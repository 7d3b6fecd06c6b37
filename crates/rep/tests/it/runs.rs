//! `rep runs`, `rep runs events`, `rep runs replay` and `rep runs metrics`, on a real journal that was filled through its own interface.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use repertoire_journal::event::{StepOutcome, TaskRef, TaskSeen};
use repertoire_journal::run::{Limits, RunUsage};
use repertoire_journal::{
    ClaimRules, Command, Journal, NewRun, Payload, QueueWorker, RunId, RunLease, Target,
};
use repertoire_text::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::workspace::Workspace;

const FORMS: &str = "0199e5b2-0000-7000-8000-0000000000a1";
const PARSER: &str = "0199e5b2-0000-7000-8000-0000000000b2";
const DOCS: &str = "0199e5b2-0000-7000-8000-0000000000c3";
const MAIL: &str = "0199e5b2-0000-7000-8000-0000000000d4";
/// Wide enough for the path of any temporary folder.
const WIDE: &str = "400";
const HOUR_MS: u64 = 3_600_000;

/// A project with a journal, and a hand on it.
pub(crate) struct Bench {
    pub(crate) ws: Workspace,
    runtime: tokio::runtime::Runtime,
    journal: Journal,
    /// What the clock of the journal shows.
    now_ms: Arc<AtomicU64>,
}

impl Bench {
    fn new() -> Self {
        let mut ws = Workspace::new();
        ws.set("TZ", "UTC");
        ws.set("USER", "ada");
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let now_ms = Arc::new(AtomicU64::new(SystemClock.now_ms() - 5 * HOUR_MS));
        let target = Target::File(ws.path("data/journal.sqlite"));
        let shown = now_ms.clone();
        let clock = Arc::new(move || shown.load(Ordering::Relaxed));
        let journal = runtime.block_on(Journal::open(&target, clock)).unwrap();
        Bench { ws, runtime, journal, now_ms }
    }

    /// With four runs: one complete, one that waits, one in the queue, one under way.
    fn filled() -> Self {
        let bench = Bench::new();
        bench.complete_run();
        bench.pass(HOUR_MS);
        bench.waiting_run();
        bench.pass(HOUR_MS);
        bench.create(DOCS, "Write the docs", "/srv/elsewhere/deep/docs", Limits::default());
        bench.create(MAIL, "Send mail", bench.ws.path("project").as_str(), Limits::default());
        bench.pass(2 * HOUR_MS);
        let lease = bench.claim(MAIL);
        bench.append(&lease, vec![started(1, "implementation", "1", 1)]);
        bench
    }

    fn pass(&self, ms: u64) {
        self.now_ms.fetch_add(ms, Ordering::Relaxed);
    }

    fn create(&self, id: &str, name: &str, workspace: &str, limits: Limits) {
        let new = NewRun {
            id: RunId::known(id),
            kind: "plan".into(),
            name: name.into(),
            workspace: workspace.into(),
            labels: Default::default(),
            priority: 0,
            limits,
            request: json!({ "plan": "PLAN.md" }),
        };
        self.runtime.block_on(self.journal.create(new)).unwrap();
    }

    fn claim(&self, id: &str) -> RunLease {
        let who = QueueWorker {
            name: "desk:42".into(),
            labels: Default::default(),
            kinds: ["plan".to_owned()].into(),
            lease: Duration::from_secs(24 * 60 * 60),
        };
        let (id, rules) = (RunId::known(id), ClaimRules::default());
        let claim = self.journal.claim_run(&id, &who, &rules);
        self.runtime.block_on(claim).unwrap().unwrap().lease
    }

    fn append(&self, lease: &RunLease, payloads: Vec<Payload>) {
        self.runtime.block_on(self.journal.append(lease, payloads)).unwrap();
    }

    fn status(&self, id: &str) -> String {
        let run = self.runtime.block_on(self.journal.run(&RunId::known(id))).unwrap();
        run.unwrap().status.to_string()
    }

    fn last_event(&self, id: &str) -> Value {
        let id = RunId::known(id);
        let events = self.runtime.block_on(self.journal.events(&id, 0, 0)).unwrap();
        serde_json::to_value(events.last().unwrap()).unwrap()
    }

    fn complete_run(&self) {
        let workspace = self.ws.path("project");
        self.create(FORMS, "Forms by mail", workspace.as_str(), Limits::default());
        let lease = self.claim(FORMS);
        let worktree = Payload::WorktreeCreated {
            path: self.ws.path("data/worktrees/forms-000000a1").to_string(),
            branch: "rep/forms-000000a1".into(),
            base_branch: "main".into(),
            base: "0123456789abcdef0123456789abcdef01234567".into(),
            how: "created".into(),
        };
        self.append(&lease, vec![Payload::RunStarted { worker: "desk:42".into() }, worktree]);
        self.append(&lease, vec![plan_read(), started(1, "implementation", "1", 1)]);
        self.pass(65_000);
        self.append(&lease, vec![finished(1, StepOutcome::Ok, None), marked("1", "implemented")]);
        self.append(&lease, vec![started(2, "review", "1", 1)]);
        self.pass(5_000);
        self.append(
            &lease,
            vec![
                finished(2, StepOutcome::Ok, None),
                marked("1", "reviewed"),
                marked("2", "reviewed"),
                Payload::Delivered {
                    strategy: "keep".into(),
                    branch: "rep/forms-000000a1".into(),
                    commit: None,
                },
                Payload::RunCompleted { summary: "2 tasks done".into(), head: None },
            ],
        );
    }

    fn waiting_run(&self) {
        let limits = Limits { cost_usd: Some(0.5), tokens: Some(50_000), time_ms: None };
        self.create(PARSER, "Fix the parser", self.ws.path("project").as_str(), limits);
        let lease = self.claim(PARSER);
        self.append(&lease, vec![plan_read(), started(1, "implementation", "1", 1)]);
        self.pass(30_000);
        let reason = "the tests fail: 3 of 40, the first is a_cut_body_says_so";
        self.append(&lease, vec![finished(1, StepOutcome::Failed, Some(reason))]);
        self.append(&lease, vec![started(2, "implementation", "1", 2)]);
        self.append(
            &lease,
            vec![
                finished(2, StepOutcome::SentBack, Some("the same diff as before")),
                Payload::WatchdogSignal {
                    step: 2,
                    signal: "repeated_diff".into(),
                    evidence: "steps 1 and 2 made the same change".into(),
                },
                Payload::WatchdogRewrite {
                    step: 2,
                    signal: "repeated_diff".into(),
                    rewrite: 1,
                    text: "Stop. Look at the test first.".into(),
                },
                Payload::Learned { task: None, note: "the fixtures are generated".into() },
                marked("1", "failed"),
                Payload::RunWaiting {
                    reason: "budget:cost: $0.5000 of $0.5 is spent".into(),
                    choices: vec!["resume it with higher limits".into(), "cancel it".into()],
                },
            ],
        );
        let steer = Command::Steer { by: "ada".into(), note: "use the old parser".into() };
        self.runtime.block_on(self.journal.order(&RunId::known(PARSER), steer)).unwrap();
    }
}

fn task(id: &str) -> TaskRef {
    let label = if id == "1" { "Read a form" } else { "Keep what was not understood" };
    TaskRef { id: id.into(), label: label.into() }
}

fn plan_read() -> Payload {
    let tasks = ["1", "2"].map(|id| TaskSeen { task: task(id), mark: "open".into() });
    Payload::PlanRead { digest: "d".into(), tasks: tasks.to_vec() }
}

fn marked(id: &str, mark: &str) -> Payload {
    Payload::TaskMarked { task: task(id), mark: mark.into(), reason: "the checks say so".into() }
}

fn started(step: u32, kind: &str, id: &str, attempt: u32) -> Payload {
    Payload::StepStarted {
        step,
        kind: kind.into(),
        task: Some(task(id)),
        attempt,
        iteration: step,
        head: None,
        detail: Value::Null,
    }
}

fn finished(step: u32, outcome: StepOutcome, reason: Option<&str>) -> Payload {
    let spent = RunUsage {
        cost_micro_usd: 250_000,
        unpriced: false,
        input_tokens: 10_000,
        output_tokens: 2_345,
        time_ms: 35_000,
    };
    let reason = reason.map(str::to_owned);
    Payload::StepFinished { step, outcome, reason, head: None, spent, result: Value::Null }
}

/// Snapshots without what differs from day to day.
macro_rules! snapshot {
    ($ran:expr, @$expected:literal) => {
        insta::with_settings!({ filters => vec![
            (r"\b(\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d", "[TIME]"),
            (r"\bhost:\S+", "[HOST]"),
        ] }, { insta::assert_snapshot!($ran, @$expected) });
    };
}

#[test]
fn an_empty_journal_says_how_to_begin_and_is_not_made() {
    let ws = Workspace::new();
    snapshot!(ws.rep("runs"), @"
    There are no runs. `rep plan run` begins one.
    [exit 0]
    ");
    assert_eq!(ws.json("--json runs", "runs.json")["runs"], json!([]));
    snapshot!(ws.rep("runs show last"), @"
    [stderr]
    error: there are no runs
    hint: `rep plan run` begins one.
    [exit 1]
    ");
    snapshot!(ws.rep("runs events"), @"
    There are no runs. `rep plan run` begins one.
    [exit 0]
    ");
    snapshot!(ws.rep("runs replay --all"), @"
    There are no runs. `rep plan run` begins one.
    [exit 0]
    ");
    snapshot!(ws.rep("runs prune"), @"
    There are no runs. `rep plan run` begins one.
    [exit 0]
    ");
    assert!(ws.rep("runs metrics").stdout.contains("rep_runs{status=\"queued\"} 0\n"));
    assert!(!ws.path("data/journal.sqlite").exists());
}

#[test]
fn runs_are_listed_the_newest_first() {
    let mut bench = Bench::filled();
    snapshot!(bench.ws.rep("runs"), @"
    id        status     kind  name            workspace                steps  tasks    time   cost  age
    000000d4  running    plan  Send mail       here                         1    0/1      0s     $0   2h
    000000c3  queued     plan  Write the docs  …rv/elsewhere/deep/docs      0      -      0s     $0   2h
    000000b2  waiting    plan  Fix the parser  here                         2    0/2  1m 10s  $0.50   3h
    000000a1  completed  plan  Forms by mail   here                         2    2/2  1m 10s  $0.50   5h
    [exit 0]
    ");
    bench.ws.set("COLUMNS", "80");
    snapshot!(bench.ws.rep("runs list"), @"
    id        status     kind  name            workspace   tasks    time   cost  age
    000000d4  running    plan  Send mail       here          0/1      0s     $0   2h
    000000c3  queued     plan  Write the docs  …deep/docs      -      0s     $0   2h
    000000b2  waiting    plan  Fix the parser  here          0/2  1m 10s  $0.50   3h
    000000a1  completed  plan  Forms by mail   here          2/2  1m 10s  $0.50   5h
    [exit 0]
    ");
    bench.ws.set("COLUMNS", "60");
    snapshot!(bench.ws.rep("runs ls --status waiting,queued"), @"
    id        status     name            tasks   cost  age
    000000c3  queued     Write the docs      -     $0   2h
    000000b2  waiting    Fix the parser    0/2  $0.50   3h
    [exit 0]
    ");
}

#[test]
fn a_list_is_read_in_pages() {
    let bench = Bench::filled();
    let first = bench.ws.json("--json runs --limit 3", "runs.json");
    assert_eq!(first["runs"].as_array().unwrap().len(), 3);
    let next = first["next"].as_u64().unwrap();
    let rest = bench.ws.json(&format!("--json runs --before {next}"), "runs.json");
    assert_eq!((&rest["runs"][0]["short"], &rest["next"]), (&json!("000000a1"), &Value::Null));
    assert_eq!(rest["runs"][0]["tasks"], json!({ "done": 2, "all": 2 }));
    let text = bench.ws.rep("runs --limit 1").stdout;
    assert!(text.contains("There are more: --before 4 goes on, --all lists them all."), "{text}");
    let here = bench.ws.json("--json runs --here --all", "runs.json");
    assert_eq!(here["runs"].as_array().unwrap().len(), 3);
    snapshot!(bench.ws.rep("runs --status cancelled"), @"
    No run is like that. `rep runs` lists all.
    [exit 0]
    ");
    snapshot!(bench.ws.rep("runs --status done"), @"
    [stderr]
    error: invalid value 'done' for '--status <STATUS>'
      [possible values: queued, running, interrupted, paused, waiting, completed, failed, cancelled]

    For more information, try '--help'.
    [exit 2]
    ");
}

#[test]
fn a_run_is_shown_on_one_screen() {
    let mut bench = Bench::filled();
    bench.ws.set("COLUMNS", WIDE);
    bench.ws.write(&format!("data/runs/{FORMS}/report.md"), "# Forms\n");
    bench.ws.write(&format!("data/runs/{FORMS}/changes.diff"), "x".repeat(12_345));
    bench.ws.write(&format!("data/runs/{FORMS}/001-implementation.prompt.md"), "Do it.\n");
    bench.ws.write(&format!("data/runs/{FORMS}/001-implementation.jsonl"), "{}\n");
    snapshot!(bench.ws.rep("runs show 000000a1"), @"
    Forms by mail  0199e5b2-0000-7000-8000-0000000000a1
      completed: 2 tasks done

      workspace  [TMP]/project
      branch     rep/forms-000000a1 from main at 0123456789
      worktree   [TMP]/data/worktrees/forms-000000a1 (gone)
      delivered  the work stays on rep/forms-000000a1
      time       made [TIME], ended [TIME]
      cost       $0.5000
      tokens     24,690
      at work    1m 10s

    Tasks  2 of 2 done
      [R]  1  Read a form
      [R]  2  Keep what was not understood

    Steps
      #  kind            task  try  outcome  time  tokens   cost
      1  implementation  1       1  ok        35s  12,345  $0.25
      2  review          1       1  ok        35s  12,345  $0.25

    Files  [TMP]/data/runs/0199e5b2-0000-7000-8000-0000000000a1
      changes.diff      12 kB  what it changed
      report.md           8 B  what happened, for people
      and 1 prompt, 1 log: NNN-KIND.prompt.md, NNN-KIND.jsonl

    What can be done
      rep runs diff 000000a1   see what it changed
      rep runs merge 000000a1  take its work over
    [exit 0]
    ");
    bench.ws.set("COLUMNS", "80");
    snapshot!(bench.ws.rep_with(&["runs", "show", "Fix the parser"]), @r#"
    Fix the parser  0199e5b2-0000-7000-8000-0000000000b2
      waiting: budget:cost: $0.5000 of $0.5 is spent

      workspace  [TMP]/project
      time       made [TIME]
      cost       ████████████████████  $0.5000 of $0.5
      tokens     ██████████░░░░░░░░░░  24,690 of 50,000
      at work    1m 10s

    Tasks  0 of 2 done
      [!]  1  Read a form  2 attempts
      [ ]  2  Keep what was not understood

    Steps
      #  kind            task  try  outcome    time  tokens   cost
      1  implementation  1       1  failed      35s  12,345  $0.25
         the tests fail: 3 of 40, the first is a_cut_body_says_so
      2  implementation  1       2  sent back   35s  12,345  $0.25
         the same diff as before

    Watchdog
      - after step 2: repeated_diff: steps 1 and 2 made the same change; the next
        prompt began otherwise

    To be told next
      - use the old parser

    Learnt
      - the fixtures are generated

    What can be done
      rep runs resume 000000b2 --max-cost 1.00  let it use more
      rep runs retry 000000b2                   try the failed tasks again
      rep runs steer 000000b2 "…"               say something before its next step
      rep runs diff 000000b2                    see what it changed
      rep runs cancel 000000b2                  end it
    [exit 0]
    "#);
    let shown = bench.ws.json("--json runs show 000000b2", "runs-show.json");
    assert_eq!(shown["commands"][0]["command"], "rep runs resume 000000b2 --max-cost 1.00");
    assert_eq!(
        (&shown["watchdog"][0]["rewritten"], &shown["tasks"][0]["mark"]),
        (&json!(true), &json!("failed"))
    );
    let running = bench.ws.rep("runs show last").stdout;
    assert!(running.contains("\n→ [ ]  1  Read a form\n"), "{running}");
    assert!(running.contains("\n  1  implementation  1       1  under way"), "{running}");
}

#[test]
fn every_line_fits_the_terminal() {
    for columns in ["60", "80", "120"] {
        let mut bench = Bench::filled();
        bench.ws.set("COLUMNS", columns);
        let wide: usize = columns.parse().unwrap();
        for line in [
            "runs",
            "runs show 000000a1",
            "runs show 000000b2",
            "events",
            "events 000000b2",
            "replay --all",
        ] {
            let ran = bench.ws.rep(line);
            // Paths of the test's own folder are as long as they are.
            let pasted = |text: &str| text.contains("[TMP]");
            let long = ran.stdout.lines().find(|text| text.chars().count() > wide && !pasted(text));
            assert_eq!(long, None, "{columns} {line}\n{}", ran.stdout);
            assert!(
                ran.stdout.lines().all(|text| text == text.trim_end()),
                "{line}\n{}",
                ran.stdout
            );
        }
    }
}

#[test]
fn a_run_is_found_by_any_of_its_names_or_the_answer_is_no() {
    let bench = Bench::filled();
    for name in [FORMS, "000000a1", "Forms by mail"] {
        let ran = bench.ws.rep_with(&["--json", "runs", "show", name]);
        assert!(ran.stdout.contains(FORMS), "{name}: {ran}");
    }
    snapshot!(bench.ws.rep("runs show 0199e5b2"), @"
    [stderr]
    error: `0199e5b2` is more than one run: 0199e5b2-0000-7000-8000-0000000000d4, 0199e5b2-0000-7000-8000-0000000000c3, 0199e5b2-0000-7000-8000-0000000000b2, 0199e5b2-0000-7000-8000-0000000000a1
    hint: Name it by the end of its id: 000000d4, 000000c3, 000000b2, 000000a1.
    [exit 1]
    ");
    snapshot!(bench.ws.rep("runs show nothing"), @"
    [stderr]
    error: there is no run `nothing`: no run has this id or name; list them to see which there are
    hint: `rep runs` lists them; `last` is the newest.
    [exit 1]
    ");
    snapshot!(bench.ws.rep("runs show abc"), @"
    [stderr]
    error: there is no run `abc`: a part of an id has at least 4 characters
    hint: `rep runs` lists them; `last` is the newest.
    [exit 1]
    ");
    snapshot!(bench.ws.rep("show 000000a1"), @"
    [stderr]
    error: skill `000000a1` not found
    hint: Searched: [TMP]/pack
    hint: `rep list` shows every skill; `rep doctor` says why one is missing.
    hint: There is a run of that name: `rep runs show 000000a1`.
    [exit 1]
    ");
}

#[test]
fn orders_go_through_the_journal_and_say_who_works() {
    let bench = Bench::filled();
    snapshot!(bench.ws.rep("runs pause 000000d4"), @"
    000000d4 Send mail running
    [stderr]
    it pauses after the step that is under way
    [exit 0]
    ");
    snapshot!(bench.ws.rep("runs pause 000000d4"), @"
    [stderr]
    error: run 000000d4: it was already asked to pause, and does so after this step
    hint: `rep runs show 000000d4` says what can be done.
    [exit 1]
    ");
    snapshot!(bench.ws.rep("steer 000000d4 mind the gap"), @"
    000000d4 Send mail running
    [stderr]
    its next prompt says so; the step under way is not disturbed
    [exit 0]
    ");
    assert_eq!(bench.last_event(MAIL)["note"], "mind the gap");
    assert_eq!(bench.last_event(MAIL)["by"], "ada");
    snapshot!(bench.ws.rep("cancel 000000d4"), @"
    000000d4 Send mail running
    [stderr]
    its worker stops it as soon as it hears of it
    [exit 0]
    ");
    snapshot!(bench.ws.rep("pause 000000c3"), @"
    000000c3 Write the docs paused: by ada
    [stderr]
    `rep runs resume 000000c3` lets it go on
    [exit 0]
    ");
    snapshot!(bench.ws.rep("resume 000000c3"), @"
    000000c3 Write the docs queued
    [stderr]
    a worker takes it up when it is free; at work now: desk:42
    [exit 0]
    ");
    snapshot!(bench.ws.rep("cancel 000000c3"), @"
    000000c3 Write the docs cancelled: by ada
    [exit 0]
    ");
    assert_eq!(bench.status(DOCS), "cancelled");
    snapshot!(bench.ws.rep("cancel 000000c3"), @"
    [stderr]
    error: run 000000c3: it is cancelled already, so there is nothing to cancel
    hint: `rep runs show 000000c3` says what can be done.
    [exit 1]
    ");
    let paused = bench.ws.json("--json retry 000000c3", "runs-order.json");
    assert_eq!(paused["status"], "queued");
    assert_eq!(bench.ws.rep_with(&["runs", "steer", "000000c3", "  "]).code, 2);
}

#[test]
fn what_has_used_its_budget_goes_on_only_with_more() {
    let bench = Bench::filled();
    snapshot!(bench.ws.rep("runs resume 000000b2"), @"
    [stderr]
    error: run 000000b2 would stop again at once: it has used $0.5000 of $0.5
    hint: `rep runs resume 000000b2 --max-cost 1.00` lets it use more.
    [exit 1]
    ");
    snapshot!(bench.ws.rep("runs resume 000000b2 --max-cost 0.4"), @"
    [stderr]
    error: run 000000b2 would stop again at once: it has used $0.5000 of $0.4
    hint: `rep runs resume 000000b2 --max-cost 1.00` lets it use more.
    [exit 1]
    ");
    assert_eq!(bench.status(PARSER), "waiting");
    assert_eq!(bench.ws.rep("runs resume 000000b2 --max-cost 2").code, 0);
    // What was not named holds as before.
    assert_eq!(bench.last_event(PARSER)["limits"], json!({ "cost_usd": 2.0, "tokens": 50_000 }));
}

#[test]
fn only_tasks_that_there_are_can_be_retried() {
    let bench = Bench::filled();
    snapshot!(bench.ws.rep("runs retry 000000b2 --task 9"), @"
    [stderr]
    error: run 000000b2 has no task `9`
    hint: These failed: 1.
    [exit 1]
    ");
    snapshot!(bench.ws.rep("runs retry 000000b2 --task 1"), @"
    000000b2 Fix the parser queued
    [stderr]
    a worker takes it up when it is free; at work now: desk:42
    it has used $0.5000 of $0.5: `rep runs resume 000000b2 --max-cost 1.00` lets it use more
    [exit 0]
    ");
    assert_eq!(bench.last_event(PARSER)["tasks"], json!(["1"]));
    let shown = bench.ws.json("--json runs show 000000b2", "runs-show.json");
    assert_eq!(shown["tasks"][0]["mark"], "open");
}

#[test]
fn events_are_one_line_each() {
    let mut bench = Bench::filled();
    // Wide enough for every line: where a line with a path is cut would depend on the machine's temporary folder.
    bench.ws.set("COLUMNS", "1000");
    snapshot!(bench.ws.rep("runs events 000000b2"), @r#"
    [TIME]     1  RUN_CREATED         plan "Fix the parser" in [TMP]/project, at most $0.5, 50,000 tokens
    [TIME]     2  LEASE_TAKEN         desk:42 took it (token 1)
    [TIME]     3  PLAN_READ           the plan has 2 tasks, 2 open
    [TIME]     4  STEP_STARTED        step 1 implementation: Read a form
    [TIME]     5  STEP_FINISHED       step 1 failed (35s, 12,345 tokens, $0.2500): the tests fail: 3 of 40, the first is a_cut_body_says_so
    [TIME]     6  STEP_STARTED        step 2 implementation, attempt 2: Read a form
    [TIME]     7  STEP_FINISHED       step 2 sent back (35s, 12,345 tokens, $0.2500): the same diff as before
    [TIME]     8  WATCHDOG_SIGNAL     watchdog after step 2: repeated_diff: steps 1 and 2 made the same change
    [TIME]     9  WATCHDOG_REWRITE    watchdog after step 2: the next prompt begins otherwise (repeated_diff, rewrite 1): Stop. Look at the test first.
    [TIME]    10  LEARNED             learnt: the fixtures are generated
    [TIME]    11  TASK_MARKED         "Read a form" is failed: the checks say so
    [TIME]    12  RUN_WAITING         budget:cost: $0.5000 of $0.5 is spent (one can resume it with higher limits; cancel it)
    [TIME]    13  LEASE_RELEASED      desk:42 gave it back: the run is waiting
    [TIME]    14  STEERED             ada: use the old parser
    [exit 0]
    "#);
    snapshot!(bench.ws.rep("runs events --type run_created,STEP_FINISHED"), @r#"
    [TIME]  000000a1  RUN_CREATED         plan "Forms by mail" in [TMP]/project
    [TIME]  000000a1  STEP_FINISHED       step 1 ok (35s, 12,345 tokens, $0.2500)
    [TIME]  000000a1  STEP_FINISHED       step 2 ok (35s, 12,345 tokens, $0.2500)
    [TIME]  000000b2  RUN_CREATED         plan "Fix the parser" in [TMP]/project, at most $0.5, 50,000 tokens
    [TIME]  000000b2  STEP_FINISHED       step 1 failed (35s, 12,345 tokens, $0.2500): the tests fail: 3 of 40, the first is a_cut_body_says_so
    [TIME]  000000b2  STEP_FINISHED       step 2 sent back (35s, 12,345 tokens, $0.2500): the same diff as before
    [TIME]  000000c3  RUN_CREATED         plan "Write the docs" in /srv/elsewhere/deep/docs
    [TIME]  000000d4  RUN_CREATED         plan "Send mail" in [TMP]/project
    [exit 0]
    "#);
    snapshot!(bench.ws.rep("runs events 000000b2 --after 3 --limit 2"), @"
    [TIME]     4  STEP_STARTED        step 1 implementation: Read a form
    [TIME]     5  STEP_FINISHED       step 1 failed (35s, 12,345 tokens, $0.2500): the tests fail: 3 of 40, the first is a_cut_body_says_so
    [exit 0]
    ");
    snapshot!(bench.ws.rep("runs events 000000b2 --limit 1 --relative"), @"
      3h    14  STEERED             ada: use the old parser
    [exit 0]
    ");
}

#[test]
fn long_lines_of_events_are_cut_to_the_screen() {
    let mut bench = Bench::filled();
    bench.ws.set("COLUMNS", "80");
    snapshot!(bench.ws.rep("runs events 000000b2 --after 4 --limit 4 --relative"), @"
      3h     5  STEP_FINISHED       step 1 failed (35s, 12,345 tokens, $0.2500): th…
      3h     6  STEP_STARTED        step 2 implementation, attempt 2: Read a form
      3h     7  STEP_FINISHED       step 2 sent back (35s, 12,345 tokens, $0.2500):…
      3h     8  WATCHDOG_SIGNAL     watchdog after step 2: repeated_diff: steps 1 a…
    [exit 0]
    ");
    snapshot!(bench.ws.rep("runs events --type WATCHDOG_REWRITE --relative"), @"
      3h  000000b2  WATCHDOG_REWRITE    watchdog after step 2: the next prompt begi…
    [exit 0]
    ");
}

#[test]
fn what_no_event_can_be_found_by_is_named() {
    let bench = Bench::filled();
    snapshot!(bench.ws.rep("runs events --type nonsense"), @"
    [stderr]
    error: invalid value 'nonsense' for '--type <TYPE>'
      [possible values: RUN_CREATED, LEASE_TAKEN, LEASE_RELEASED, LEASE_EXPIRED, RUN_STARTED, STEP_STARTED, STEP_FINISHED, STEP_INTERRUPTED, WATCHDOG_SIGNAL, WATCHDOG_REWRITE, RUN_COMPLETED, RUN_FAILED, RUN_WAITING, RUN_DEFERRED, PAUSE_REQUESTED, RUN_PAUSED, RUN_RESUMED, RUN_RETRIED, CANCEL_REQUESTED, RUN_CANCELLED, STEERED, WORKTREE_PROVIDER_SELECTED, WORKTREE_CREATED, WORKTREE_REMOVED, DELIVERED, POSTMORTEM_START, POSTMORTEM_END, SKILLS_DISCOVERED, SKILLS_SELECTED, SKILLS_LOAD_FAILED, SKILLS_TRUNCATED, PLAN_READ, PLAN_FALLBACK, PLAN_RESTORED, TASK_MARKED, LEARNED, FAILURE_SEEN, FIX_TRIED, KIND_EVENT, NOTE]

    For more information, try '--help'.
    [exit 2]
    ");
    snapshot!(bench.ws.rep("runs events --after 12"), @"
    [stderr]
    error: `12` is no place in the journal: it looks like `12-345`
    hint: A number of an event goes with a run: rep runs events RUN --after 12.
    [exit 2]
    ");
    snapshot!(bench.ws.rep("runs events last --after 1-2"), @"
    [stderr]
    error: `--after` is the number of an event of the run
    hint: A place such as 12-345 goes with the events of all runs, without RUN.
    [exit 2]
    ");
}

#[test]
fn events_of_all_runs_are_read_in_pages_and_none_is_missed() {
    let bench = Bench::filled();
    let seen = |text: &str| -> Vec<(String, u64)> {
        text.lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .map(|event| {
                (event["run"].as_str().unwrap().to_owned(), event["seq"].as_u64().unwrap())
            })
            .collect()
    };
    let all = seen(&bench.ws.rep("--json runs events --limit 1000").stdout);
    assert!(all.len() > 30);
    let (mut paged, mut after) = (Vec::new(), "0-0".to_owned());
    loop {
        let ran = bench.ws.rep(&format!("--json runs events --after {after} --limit 7"));
        paged.extend(seen(&ran.stdout));
        let Some(next) = ran.stderr.split("`--after ").nth(1) else { break };
        after = next.split('`').next().unwrap().to_owned();
    }
    assert_eq!(paged, all);
}

#[test]
fn json_lines_have_the_published_shape() {
    let bench = Bench::filled();
    let all = repertoire_cli::schema::all_schemas();
    let (_, schema) = all.into_iter().find(|(name, _)| *name == "run-event.json").unwrap();
    let validator = jsonschema::validator_for(schema.as_value()).unwrap();
    for line in bench.ws.rep("--json runs events").stdout.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert!(validator.is_valid(&event), "{line}");
    }
}

#[test]
fn a_run_is_followed_until_it_is_over() {
    let bench = Bench::filled();
    let mut command = bench.ws.command(&["events", "last", "-f", "--json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut name = || -> String {
        let event: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        event["type"].as_str().unwrap().to_owned()
    };
    assert_eq!([name(), name(), name()], ["RUN_CREATED", "LEASE_TAKEN", "STEP_STARTED"]);
    // What happens now is heard at once, from another process.
    let (worker, length) = ("desk:42".to_owned(), Duration::from_secs(60));
    let lease = RunLease { run: RunId::known(MAIL), token: 1, worker, length };
    bench.append(&lease, vec![finished(1, StepOutcome::Ok, None)]);
    assert_eq!(name(), "STEP_FINISHED");
    let summary = "done".to_owned();
    let start = Payload::PostmortemStart { reason: "run_completed".into() };
    bench.append(&lease, vec![start, Payload::RunCompleted { summary, head: None }]);
    assert_eq!([name(), name(), name()], ["POSTMORTEM_START", "RUN_COMPLETED", "LEASE_RELEASED"]);
    let end = Payload::PostmortemEnd { status: "ok".into(), files: vec![] };
    let id = RunId::known(MAIL);
    let order = bench.journal.order(&id, Command::Event(end));
    bench.runtime.block_on(order).unwrap();
    assert_eq!(name(), "POSTMORTEM_END");
    assert!(child.wait().unwrap().success());
}

#[test]
fn all_runs_are_followed_until_somebody_interrupts() {
    let bench = Bench::filled();
    let mut command = bench.ws.command(&["events", "-f", "--type", "steered"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().ends_with("ada: use the old parser"));
    bench.ws.rep("steer 000000c3 hurry up");
    assert!(lines.next().unwrap().unwrap().ends_with("ada: hurry up"));
    let id = child.id().to_string();
    std::process::Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let bench = Bench::filled();
    for args in [&["events"][..], &["events", "last", "-f"], &["runs"], &["metrics"]] {
        let mut command = bench.ws.command(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        if args.contains(&"-f") {
            // It notices when it writes again.
            bench.ws.rep("steer last go on");
        }
        let begun = Instant::now();
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), output.stderr.as_slice()),
            (Some(0), &b""[..]),
            "{args:?}"
        );
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}

#[test]
fn replaying_gives_what_is_stored_and_what_was() {
    let bench = Bench::filled();
    snapshot!(bench.ws.rep("runs replay 000000b2"), @"
    000000b2  equal: 14 events, 2 steps
    [exit 0]
    ");
    snapshot!(bench.ws.rep("runs replay --all"), @"
    000000d4  equal: 3 events, 1 step
    000000c3  equal: 1 event, 0 steps
    000000b2  equal: 14 events, 2 steps
    000000a1  equal: 15 events, 2 steps
    4 runs, 33 events: all equal
    [exit 0]
    ");
    let json = bench.ws.json("--json replay --all", "replay.json");
    assert_eq!((&json["equal"], json["runs"].as_array().map(Vec::len)), (&json!(true), Some(4)));
    let then = bench.ws.json("--json replay 000000b2 --at 5", "runs-show.json");
    assert_eq!((&then["run"]["status"], &then["run"]["seq"]), (&json!("running"), &json!(5)));
    assert_eq!(then["steps"][0]["outcome"], "failed");
    let text = bench.ws.rep("runs replay 000000b2 --at 5");
    assert!(text.stderr.starts_with("as it was after event 5 of "), "{text}");
    snapshot!(bench.ws.rep("runs replay 000000b2 --at 99"), @"
    [stderr]
    error: run 000000b2 has 14 events, so there is no event 99
    hint: `rep runs events 000000b2` shows them with their numbers.
    [exit 1]
    ");
    assert_eq!(bench.ws.rep("runs replay").code, 2);
}

/// Changes the journal behind its back, with another program.
fn tamper(bench: &Bench, sql: &'static str) {
    bench.runtime.block_on(async {
        let url = format!("sqlite://{}", bench.ws.path("data/journal.sqlite"));
        let db = <sqlx::SqliteConnection as sqlx::Connection>::connect(&url).await;
        sqlx::raw_sql(sql).execute(&mut db.unwrap()).await.unwrap();
    });
}

#[test]
fn a_state_that_is_not_what_the_events_say_is_told_with_both() {
    let bench = Bench::filled();
    tamper(
        &bench,
        "UPDATE run SET state = json_set(state, '$.reason', 'other') WHERE id LIKE '%000000a1'",
    );
    // As if an older version without digests had left it so.
    tamper(
        &bench,
        "DROP INDEX run_by_kind; DROP INDEX run_by_workspace; DROP INDEX failure_by_category; \
         ALTER TABLE event DROP COLUMN prev; ALTER TABLE event DROP COLUMN row_digest; \
         ALTER TABLE memory DROP COLUMN row_digest; ALTER TABLE letter DROP COLUMN row_digest; \
         ALTER TABLE run DROP COLUMN head; ALTER TABLE run DROP COLUMN row_digest; \
         ALTER TABLE request DROP COLUMN row_digest; ALTER TABLE step DROP COLUMN row_digest; \
         ALTER TABLE failure DROP COLUMN row_digest; ALTER TABLE fix DROP COLUMN row_digest; \
         DELETE FROM journal_version WHERE version = 4",
    );
    snapshot!(bench.ws.rep("runs replay 000000a1"), @r#"
    000000a1  not equal: 1 difference, 15 events, 2 steps (Forms by mail)
      run.reason
        stored    "other"
        replayed  "2 tasks done"
    [exit 1]
    "#);
    let json = bench.ws.json("--json replay --all", "replay.json");
    assert_eq!(json["equal"], false);
    assert_eq!(bench.ws.rep("runs replay --all").code, 1);
}

#[test]
fn verifying_names_the_first_bad_event() {
    let bench = Bench::filled();
    snapshot!(bench.ws.rep("runs replay --all --verify"), @"
    000000d4  intact: 3 events, 1 step
    000000c3  intact: 1 event, 0 steps
    000000b2  intact: 14 events, 2 steps
    000000a1  intact: 15 events, 2 steps
    4 runs, 33 events: all intact
    [exit 0]
    ");
    tamper(&bench, "UPDATE event SET at_ms = at_ms + 1 WHERE seq >= 9 AND run LIKE '%000000b2'");
    tamper(&bench, "UPDATE step SET status = 'running' WHERE number = 2 AND run LIKE '%000000a1'");
    snapshot!(bench.ws.rep("runs replay 000000b2 --verify"), @"
    000000b2  damaged: event 9 does not fit its digest (8 events before it fit)
    [exit 1]
    ");
    let all = bench.ws.rep("runs replay --all --verify");
    assert_eq!(all.code, 1);
    assert!(all.stdout.contains(&format!(
        "000000a1  damaged: step 2 of run {FORMS} does not fit its digest (15 events fit)\n"
    )));
    assert!(all.stdout.ends_with("4 runs, 27 events: 2 damaged\n"), "{all}");
    let replayed = bench.ws.rep("runs replay 000000b2");
    assert_eq!(replayed.code, 3, "{replayed}");
    let named = format!("is damaged (event 9 of run {PARSER} does not fit its digest)");
    assert!(replayed.stderr.contains(&named), "{replayed}");
    let json = bench.ws.json("--json replay --all --verify", "replay-verify.json");
    let problem = &json["runs"][2]["problem"];
    assert_eq!((&json["intact"], &problem["event"]), (&json!(false), &json!(9)));
}

#[test]
fn figures_are_counted_from_all_events() {
    let bench = Bench::filled();
    let text = bench.ws.rep("runs metrics").stdout;
    for line in [
        "rep_runs_ended_total{status=\"completed\"} 1",
        "rep_steps_ended_total{kind=\"implementation\",outcome=\"failed\"} 1",
        "rep_watchdog_signals_total{signal=\"repeated_diff\"} 1",
        "rep_tokens_total{direction=\"in\"} 40000",
        "rep_cost_usd_total 1.0",
        "rep_runs{status=\"waiting\"} 1",
        "rep_runs{status=\"running\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in:\n{text}");
    }
    assert_eq!(bench.ws.rep("--json runs metrics").code, 2);
}

#[test]
fn a_daemon_keeps_the_figures_in_a_file() {
    let bench = Bench::filled();
    let args = ["daemon", "--runs", "1", "--labels", "none", "--metrics-file", "../figures.prom"];
    let mut child = bench.ws.command(&args).stderr(Stdio::piped()).spawn().unwrap();
    let file = bench.ws.path("figures.prom");
    let begun = Instant::now();
    while !file.exists() && begun.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let id = child.id().to_string();
    std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(
        bench.ws.text("figures.prom").contains("rep_runs_ended_total{status=\"completed\"} 1\n")
    );
}

#[test]
fn the_doctor_says_what_waits_for_a_person() {
    let bench = Bench::filled();
    let text = bench.ws.rep("doctor").stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("1 run waits for a person, see `rep runs --status waiting`"), "{text}");
    let json = bench.ws.json("--json doctor", "doctor.json");
    assert_eq!(json["journal"]["store"], "sqlite");
    assert_eq!((&json["journal"]["waiting"], &json["journal"]["running"]), (&json!(1), &json!(1)));
    bench
        .ws
        .write("data/journal.sqlite", "this is no database, but it is long enough to be looked at");
    let text = bench.ws.rep("doctor").stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("✗ journal: ") && text.contains("is damaged"), "{text}");
}

#[test]
fn escapes_of_a_stranger_do_not_reach_the_terminal() {
    let bench = Bench::new();
    bench.create(FORMS, "a\u{1b}[2Jb", "/x\u{1b}[2J", Limits::default());
    let lease = bench.claim(FORMS);
    let mut bad = finished(1, StepOutcome::Failed, Some("no\u{1b}[2J"));
    if let Payload::StepFinished { result, .. } = &mut bad {
        *result = json!("\u{1b}[2J");
    }
    bench.append(&lease, vec![started(1, "k\u{1b}[2J", "1", 1), bad]);
    bench.append(&lease, vec![Payload::RunFailed { reason: "\u{1b}[2J\u{202e}".into() }]);
    for line in
        ["runs", "runs show last", "events", "events last", "replay last", "runs resume last"]
    {
        let ran = bench.ws.rep(line);
        let all = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!all.contains('\u{1b}') && !all.contains('\u{202e}'), "{line}: {all:?}");
    }
}
