//! `rep runs` for runs of every kind: lists, one of them, removing, and pruning by age.

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use repertoire_journal::{Journal, NewRun, Payload, RunFolder, RunId, RunKind, RunLock, Target};
use repertoire_text::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::workspace::Workspace;

const TALK: &str = "0199e5b2-0000-7000-8000-00000000ta1k";
const FLOW: &str = "fix-the-login";
const GONE: &str = "0199e5b2aaaa-90ne";
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Journal entries of attended runs, written as the process that carries them out writes them.
struct Bench {
    ws: Workspace,
    runtime: tokio::runtime::Runtime,
}

impl Bench {
    fn new() -> Self {
        let mut ws = Workspace::new();
        ws.set("TZ", "UTC");
        Bench { ws, runtime: tokio::runtime::Runtime::new().unwrap() }
    }

    /// With a conversation that is over, a workflow that is under way, and a review whose process is gone; all from
    /// 40 days ago.
    fn filled() -> (Self, RunLock) {
        let bench = Bench::new();
        let done = Payload::RunCompleted { summary: "answered".into(), head: None };
        drop(bench.create(
            TALK,
            RunKind::Conversation,
            "Why is the sky blue?",
            vec![said("blue"), done],
        ));
        let lock = bench.create(FLOW, RunKind::Workflow, "bugfix", vec![said("step one")]);
        drop(bench.create(GONE, RunKind::Review, "uncommitted changes", vec![said("asked")]));
        (bench, lock)
    }

    /// A run from 40 days ago.
    fn create(&self, id: &str, kind: RunKind, name: &str, payloads: Vec<Payload>) -> RunLock {
        self.create_before(40, id, kind, name, payloads)
    }

    fn create_before(
        &self,
        days: u64,
        id: &str,
        kind: RunKind,
        name: &str,
        payloads: Vec<Payload>,
    ) -> RunLock {
        let id = RunId::known(id);
        let lock = self.folder(&id).acquire_lock().unwrap();
        let new = NewRun {
            id,
            kind: kind.to_string(),
            name: name.into(),
            workspace: self.ws.path("project").to_string(),
            labels: Default::default(),
            priority: 0,
            limits: Default::default(),
            request: json!({}),
        };
        let then_ms = SystemClock.now_ms() - days * DAY_MS;
        let target = Target::File(self.ws.path("data/journal.sqlite"));
        self.runtime.block_on(async {
            let journal = Journal::open(&target, Arc::new(move || then_ms)).await.unwrap();
            journal.create_attended(new, payloads).await.unwrap();
            journal.close().await;
        });
        lock
    }

    fn folder(&self, id: &RunId) -> RunFolder {
        RunFolder::new(&self.ws.path("data/runs"), id)
    }

    fn ids(&self, line: &str) -> Vec<String> {
        let page = self.ws.json(line, "runs.json");
        let rows = page["runs"].as_array().unwrap().iter();
        rows.map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    }

    fn has_folder(&self, id: &str) -> bool {
        self.folder(&RunId::known(id)).path().exists()
    }
}

/// The text in one line, however it was wrapped.
fn unwrap_text(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn said(text: &str) -> Payload {
    Payload::KindEvent { name: "turn_ended".into(), data: json!({ "text": text, "turn": 1 }) }
}

macro_rules! snapshot {
    ($ran:expr, @$expected:literal) => {
        insta::with_settings!({ filters => vec![
            (r"\b(\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d", "[TIME]"),
        ] }, { insta::assert_snapshot!($ran, @$expected) });
    };
}

#[test]
fn runs_of_every_kind_are_listed_and_can_be_told_apart() {
    let (bench, _lock) = Bench::filled();
    snapshot!(bench.ws.rep("runs"), @"
    id        status       kind          name                  workspace  steps  tasks  time  cost  age
    aaa-90ne  interrupted  review        uncommitted changes   here           0      -    0s    $0  40d
    he-login  running      workflow      bugfix                here           0      -    0s    $0  40d
    0000ta1k  completed    conversation  Why is the sky blue?  here           0      -    0s    $0  40d
    [exit 0]
    ");
    assert_eq!(bench.ids("--json runs --kind workflow,review"), [GONE, FLOW]);
    assert_eq!(bench.ids("--json runs --kind conversation"), [TALK]);
    assert_eq!(bench.ids("--json runs --status interrupted"), [GONE]);
    assert_eq!(bench.ids("--json runs --status running"), [FLOW]);
    assert_eq!(bench.ids("--json runs --kind review,workflow --limit 1"), [GONE]);
    snapshot!(bench.ws.rep("runs --kind reviews"), @"
    [stderr]
    error: invalid value 'reviews' for '--kind <KIND>'
      [possible values: conversation, workflow, review, plan, task]

      tip: a similar value exists: 'review'

    For more information, try '--help'.
    [exit 2]
    ");
}

#[test]
fn a_run_of_any_kind_is_shown_with_what_happened() {
    let (mut bench, _lock) = Bench::filled();
    // Wide enough for the path of any temporary folder.
    bench.ws.set("COLUMNS", "400");
    snapshot!(bench.ws.rep("runs show ta1k"), @r#"
    Why is the sky blue?  0199e5b2-0000-7000-8000-00000000ta1k
      completed: answered

      kind       conversation
      workspace  [TMP]/project
      time       made [TIME], ended [TIME]
      cost       $0.0000
      tokens     0
      at work    0s

    What happened
      [TIME]  conversation "Why is the sky blue?" in [TMP]/project
      [TIME]  turn ended: text blue, turn 1
      [TIME]  answered

    What can be done
      rep runs --kind conversation  conversations, and how to go on with one
      rep runs events 0000ta1k      everything that happened
      rep runs rm 0000ta1k          remove it, with its files
    [exit 0]
    "#);
    snapshot!(bench.ws.rep(&format!("runs show {GONE}")), @r#"
    uncommitted changes  0199e5b2aaaa-90ne
      interrupted

      kind       review
      progress   0 of 0 calls answered; 0 of 0 answers accepted
      workspace  [TMP]/project
      time       made [TIME]
      cost       $0.0000
      tokens     0
      at work    0s

    What happened
      [TIME]  review "uncommitted changes" in [TMP]/project
      [TIME]  turn ended: text asked, turn 1

    What can be done
      rep runs events aaa-90ne  everything that happened
      rep runs rm aaa-90ne      remove it, with its files
    [exit 0]
    "#);
    let shown = bench.ws.json(&format!("--json runs show {GONE}"), "runs-show.json");
    assert_eq!((&shown["interrupted"], &shown["run"]["status"]), (&json!(true), &json!("running")));
}

#[test]
fn a_run_is_removed_with_its_files_unless_it_is_in_use() {
    let (bench, lock) = Bench::filled();
    let refused = bench.ws.rep(&format!("runs rm --force {FLOW}"));
    assert_eq!(refused.code, 1, "{refused}");
    assert!(refused.stderr.contains("is in use by another process"), "{refused}");
    let removed = bench.ws.json(&format!("--json runs rm {GONE} {TALK}"), "runs-rm.json");
    assert_eq!(removed["runs"].as_array().unwrap().len(), 2);
    assert_eq!(bench.ids("--json runs"), [FLOW]);
    assert_eq!([GONE, TALK, FLOW].map(|id| bench.has_folder(id)), [false, false, true]);
    drop(lock);
    snapshot!(bench.ws.rep(&format!("runs rm --force {FLOW}")), @"
    removed workflow fix-the-login: bugfix
    [exit 0]
    ");
    assert!(!bench.has_folder(FLOW));
    assert_eq!(bench.ws.rep("runs").stdout, "There are no runs. `rep plan run` begins one.\n");
}

#[test]
fn a_workflow_that_is_not_over_is_removed_only_by_force_or_after_a_confirmation() {
    let (bench, lock) = Bench::filled();
    drop(lock);
    let waiting = || Payload::RunWaiting { reason: "which one?".into(), choices: vec![] };
    drop(bench.create("waits", RunKind::Workflow, "bugfix", vec![said("asked"), waiting()]));
    snapshot!(bench.ws.rep("runs rm last"), @"
    [stderr]
    error: workflow waits (bugfix) waits for a person
    hint: Cancel it with `rep workflow resume waits --choice abort`, or remove it with `rep runs rm --force waits`.
    [exit 1]
    ");
    let running = "\
        error: workflow fix-the-login (bugfix) is not over\n\
        hint: Cancel it with `rep workflow resume fix-the-login --choice abort`, or remove it with \
        `rep runs rm --force fix-the-login`.\n";
    for line in ["runs rm", "workflow runs rm"] {
        let refused = bench.ws.rep(&format!("{line} {FLOW}"));
        assert_eq!((refused.code, refused.stderr.as_str()), (1, running));
    }
    let (seen, code) = bench.ws.at_a_terminal("runs rm waits", "n\n");
    assert_eq!(code, 1, "{seen}");
    assert!(seen.contains("Workflow waits (bugfix) waits for a person. Remove it?"), "{seen}");
    let (seen, code) = bench.ws.at_a_terminal("runs rm waits", "y\n");
    assert!(code == 0 && seen.contains("removed workflow waits: bugfix"), "{seen}");
    assert_eq!(bench.ws.rep(&format!("workflow runs rm --force {FLOW}")).code, 0);
    assert_eq!(bench.ids("--json runs"), [GONE, TALK]);
}

#[test]
fn a_run_that_is_not_removed_stops_no_other_removal() {
    let (bench, lock) = Bench::filled();
    drop(lock);
    snapshot!(bench.ws.rep(&format!("runs rm nothing-like-it {GONE} {FLOW} ta1k")), @"
    removed review 0199e5b2aaaa-90ne: uncommitted changes
    removed conversation 0199e5b2-0000-7000-8000-00000000ta1k: Why is the sky blue?
    [stderr]
    error: there is no run `nothing-like-it`: no run has this id or name; list them to see which there are
    hint: `rep runs` lists them; `last` is the newest.
    error: workflow fix-the-login (bugfix) is not over
    hint: Cancel it with `rep workflow resume fix-the-login --choice abort`, or remove it with `rep runs rm --force fix-the-login`.
    [exit 1]
    ");
    assert_eq!(bench.ids("--json runs"), [FLOW]);
    let ran = bench.ws.rep(&format!("--json runs rm --force nothing-like-it {FLOW}"));
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &report["failed"][0]["run"]), (1, &json!("nothing-like-it")));
    assert_eq!(bench.ids("--json runs"), [""; 0]);
}

#[test]
fn last_twice_removes_one_run() {
    let (bench, _lock) = Bench::filled();
    assert_eq!(bench.ws.rep("runs rm last last").code, 0);
    assert_eq!(bench.ids("--json runs"), [FLOW, TALK]);
}

#[test]
fn damaged_events_of_one_run_hide_no_event_of_another() {
    let (bench, _lock) = Bench::filled();
    bench.ws.tamper("UPDATE event SET at_ms = at_ms + 1 WHERE seq > 1 AND run LIKE '%ta1k'");
    let events = bench.ws.rep("runs events");
    assert_eq!(events.code, 1, "{events}");
    let shown = |id: &str| events.stdout.lines().filter(|line| line.contains(id)).count();
    assert_eq!(["0000ta1k", "he-login", "aaa-90ne"].map(shown), [1, 2, 2], "{events}");
    let warning = format!(
        "warning: run 0000ta1k is damaged (event 2 of run {TALK} does not fit its digest); what cannot be read is \
         left out. `rep runs show 0000ta1k` says what can be done, `rep runs rm --force 0000ta1k` removes the run\n"
    );
    assert_eq!(events.stderr, warning);
    let after = bench.ws.rep("runs events --after 0-0 --limit 2");
    assert_eq!(after.stdout.lines().count(), 2, "{after}");
    let metrics = bench.ws.rep("runs metrics");
    assert_eq!((metrics.code, &metrics.stderr), (0, &warning));
    assert!(metrics.stdout.contains("rep_runs{status=\"running\"} 2\n"), "{metrics}");
    assert!(metrics.stdout.contains("rep_runs_damaged 1\n"), "{metrics}");
    let shown = bench.ws.rep("runs show 0000ta1k");
    assert!(unwrap_text(&shown.stderr).contains("rep runs rm --force"), "{shown}");
    assert_eq!(bench.ws.rep("runs rm --force 0000ta1k").code, 0);
    assert_eq!((bench.ws.rep("runs events").code, bench.ws.rep("events").stderr.as_str()), (0, ""));
}

#[test]
fn the_doctor_counts_running_workflows_and_fails_for_a_run_with_damaged_events() {
    let (bench, _lock) = Bench::filled();
    let report = bench.ws.rep("doctor");
    assert_eq!(report.code, 0, "{report}");
    let expected = "1 run running, see `rep runs --status running`";
    assert!(unwrap_text(&report.stdout).contains(expected), "{report}");
    bench.ws.tamper("UPDATE event SET at_ms = at_ms + 1 WHERE seq = 2 AND run LIKE '%ta1k'");
    let report = bench.ws.rep("doctor");
    assert_eq!(report.code, 1, "{report}");
    let text = unwrap_text(&report.stdout);
    let problem = "run 0000ta1k is damaged: event 2 does not fit its digest";
    assert!(text.contains(problem) && text.contains("`rep runs rm --force 0000ta1k`"), "{text}");
    let json: Value = serde_json::from_str(&bench.ws.rep("--json doctor").stdout).unwrap();
    assert_eq!(json["journal"]["damaged"][0]["id"], TALK);
}

#[test]
fn old_runs_are_pruned_by_age_kind_and_status_and_never_those_in_use() {
    let (bench, _lock) = Bench::filled();
    snapshot!(bench.ws.rep("runs prune --kind review"), @"
    [stderr]
    error: it is not said how old runs must be to be removed
    hint: `--older-than 30d` says so for this time, `runs.keep_days` for always.
    [exit 2]
    ");
    snapshot!(bench.ws.rep("runs prune --older-than soon"), @"
    [stderr]
    error: invalid value 'soon' for '--older-than <TIME>': write an age as 30d, 12h or 90m

    For more information, try '--help'.
    [exit 2]
    ");
    snapshot!(bench.ws.rep("runs prune --older-than 30d --dry-run"), @"
    would go  aaa-90ne  interrupted review: uncommitted changes
    would go  0000ta1k  completed conversation: Why is the sky blue?
    [exit 0]
    ");
    assert_eq!(bench.ids("--json runs").len(), 3);
    snapshot!(bench.ws.rep("runs prune --older-than 60d"), @"
    There is nothing to remove.
    [exit 0]
    ");
    snapshot!(bench.ws.rep("runs prune --older-than 30d --kind plan,review"), @"
    removed   aaa-90ne  interrupted review: uncommitted changes
    [exit 0]
    ");
    assert_eq!(bench.ids("--json runs"), [FLOW, TALK]);
    bench.ws.write("home/.config/repertoire/repertoire.toml", "[runs]\nkeep_days = 30\n");
    let pruned = bench.ws.json("--json runs prune --status completed", "runs-prune.json");
    assert_eq!(pruned["removed_runs"][0]["kind"], "conversation");
    assert_eq!(bench.ids("--json runs"), [FLOW], "what is in use stays");
    assert_eq!([GONE, TALK, FLOW].map(|id| bench.has_folder(id)), [false, false, true]);
}

#[test]
fn a_damaged_run_hides_no_other_and_is_removed_by_force() {
    let (bench, _lock) = Bench::filled();
    bench.ws.tamper("UPDATE run SET name = 'other' WHERE kind = 'conversation'");
    let problem = format!("the columns of run {TALK} do not fit its state");
    let listed = unwrap_text(&bench.ws.rep("runs").stdout);
    assert!(listed.contains("aaa-90ne interrupted") && listed.contains("he-login"), "{listed}");
    assert!(listed.contains(&format!("0000ta1k damaged {problem}")), "{listed}");
    assert!(listed.contains("`rep runs rm --force 0000ta1k` removes the run."), "{listed}");
    let json = bench.ws.json("--json runs", "runs.json");
    assert_eq!(json["damaged"], json!([{ "id": TALK, "what": problem }]));
    assert_eq!(bench.ids("--json runs --limit 1"), [GONE]);
    let report = unwrap_text(&bench.ws.rep("doctor").stdout);
    assert!(report.contains(&format!("run 0000ta1k is damaged: {problem}")), "{report}");
    let refused = bench.ws.rep("runs rm 0000ta1k");
    assert!(refused.code == 3 && refused.stderr.contains("is damaged"), "{refused}");
    assert!(unwrap_text(&refused.stderr).contains(&format!("rep runs rm --force {TALK}")));
    assert_eq!(bench.ws.rep("runs replay --all").code, 1);
    let removed = bench.ws.rep("runs rm --force 0000ta1k");
    assert_eq!(removed.stdout, format!("removed {TALK}, which could not be read\n"), "{removed}");
    assert!(!bench.has_folder(TALK));
    let json = bench.ws.json("--json runs", "runs.json");
    assert_eq!(json["damaged"], json!([]));
    assert_eq!(bench.ids("--json runs"), [GONE, FLOW]);
}

fn worktree(path: &str) -> Payload {
    Payload::WorktreeCreated {
        path: path.into(),
        branch: "b".into(),
        base_branch: "main".into(),
        base: "abc".into(),
        how: "created".into(),
    }
}

#[test]
fn a_run_whose_worktree_is_gone_can_be_removed() {
    let bench = Bench::new();
    let done = || Payload::RunCompleted { summary: "done".into(), head: None };
    let there = bench.ws.path("project").to_string();
    for (id, path) in
        [("first-gone", "/no/first"), ("second-gone", "/no/second"), ("there", &there)]
    {
        drop(bench.create(id, RunKind::Plan, "tidy up", vec![worktree(path), done()]));
    }
    let removed = bench.ws.rep("runs rm first-gone");
    assert_eq!(removed.code, 0, "{removed}");
    let refused = bench.ws.rep("runs rm there");
    assert!(refused.code == 1 && refused.stderr.contains("is still there"), "{refused}");
    let preview = bench.ws.json("--json runs prune --older-than 30d --dry-run", "runs-prune.json");
    assert_eq!(preview["removed_runs"][0]["run"], "second-gone", "{preview}");
    assert_eq!(bench.ids("--json runs"), ["there", "second-gone"]);
    let pruned = bench.ws.json("--json runs prune --older-than 30d", "runs-prune.json");
    assert_eq!(pruned["removed_runs"][0]["run"], "second-gone", "{pruned}");
    assert_eq!(pruned["kept_runs"][0]["run"], "there", "{pruned}");
    assert_eq!(bench.ids("--json runs"), ["there"]);
}

#[test]
fn pruning_completes_a_removal_that_was_interrupted() {
    let (bench, _lock) = Bench::filled();
    bench.ws.write("data/runs/0199e5b2-dead/report.md", "x");
    bench.ws.write("data/runs/.removed-0199e5b2-dead", "");
    assert_eq!(bench.ws.rep("runs prune --dry-run").code, 0);
    assert!(bench.has_folder("0199e5b2-dead"));
    assert_eq!(bench.ws.rep("runs prune").code, 0);
    assert!(!bench.has_folder("0199e5b2-dead"));
    assert!(!bench.ws.path("data/runs/.removed-0199e5b2-dead").exists());
}

#[test]
fn a_daemon_removes_old_runs_by_itself() {
    let (bench, _lock) = Bench::filled();
    let recent = "0199e5b2-0000-7000-8000-00000000n3w0";
    drop(bench.create_before(0, recent, RunKind::Conversation, "Hello", vec![said("hi")]));
    bench.ws.write("home/.config/repertoire/repertoire.toml", "[runs]\nkeep_days = 30\n");
    let mut daemon = bench.ws.command(&["daemon"]).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while bench.has_folder(TALK) || bench.has_folder(GONE) {
        assert!(begun.elapsed() < Duration::from_secs(60), "the daemon removes nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    assert_eq!(bench.ids("--json runs"), [recent, FLOW]);
}

#[test]
fn stores_of_an_earlier_version_are_named_and_left_alone() {
    let bench = Bench::new();
    bench.ws.write("data/reviews/0123/review.json", "{}");
    bench.ws.write("data/conversations/abc/state.json", "{}");
    let ran = bench.ws.rep("runs");
    assert!(ran.stderr.contains("records of an earlier version"), "{ran}");
    assert!(ran.stderr.contains("data/conversations, "), "{ran}");
    let report: Value = serde_json::from_slice(&bench.ws.raw("--json doctor")).unwrap();
    let problems = report["problems"].to_string();
    assert!(problems.contains("records of an earlier version"), "{problems}");
    assert_eq!(bench.ws.text("data/reviews/0123/review.json"), "{}");
}
