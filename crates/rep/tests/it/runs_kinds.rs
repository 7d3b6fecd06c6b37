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

/// Changes the journal with another program.
fn tamper(bench: &Bench, sql: &'static str) {
    bench.runtime.block_on(async {
        let url = format!("sqlite://{}", bench.ws.path("data/journal.sqlite"));
        let db = <sqlx::SqliteConnection as sqlx::Connection>::connect(&url).await;
        sqlx::raw_sql(sql).execute(&mut db.unwrap()).await.unwrap();
    });
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
    let (bench, _lock) = Bench::filled();
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
      rep conversations     conversations, and how to go on with one
      rep events 0000ta1k   everything that happened
      rep runs rm 0000ta1k  remove it, with its files
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
      rep events aaa-90ne   everything that happened
      rep runs rm aaa-90ne  remove it, with its files
    [exit 0]
    "#);
    let shown = bench.ws.json(&format!("--json runs show {GONE}"), "runs-show.json");
    assert_eq!((&shown["interrupted"], &shown["run"]["status"]), (&json!(true), &json!("running")));
}

#[test]
fn a_run_is_removed_with_its_files_unless_it_is_in_use() {
    let (bench, lock) = Bench::filled();
    let refused = bench.ws.rep(&format!("runs rm {FLOW}"));
    assert_eq!(refused.code, 1, "{refused}");
    assert!(refused.stderr.contains("is in use by another process"), "{refused}");
    let typo = bench.ws.rep(&format!("runs rm {GONE} nothing-like-it"));
    assert_eq!(typo.code, 1, "{typo}");
    assert_eq!(bench.ids("--json runs").len(), 3, "a typo removes nothing");
    let removed = bench.ws.json(&format!("--json runs rm {GONE} {TALK}"), "runs-rm.json");
    assert_eq!(removed["runs"].as_array().unwrap().len(), 2);
    assert_eq!(bench.ids("--json runs"), [FLOW]);
    assert_eq!([GONE, TALK, FLOW].map(|id| bench.has_folder(id)), [false, false, true]);
    drop(lock);
    snapshot!(bench.ws.rep(&format!("runs rm {FLOW}")), @"
    removed workflow fix-the-login: bugfix
    [exit 0]
    ");
    assert!(!bench.has_folder(FLOW));
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
    tamper(&bench, "UPDATE run SET name = 'other' WHERE kind = 'conversation'");
    let problem = format!("the columns of run {TALK} do not fit its state");
    let listed = unwrap_text(&bench.ws.rep("runs").stdout);
    assert!(listed.contains("aaa-90ne interrupted") && listed.contains("he-login"), "{listed}");
    assert!(listed.contains(&format!("0000ta1k damaged {problem}")), "{listed}");
    assert!(listed.contains("`rep runs rm --force 0000ta1k` removes the run."), "{listed}");
    let json = bench.ws.json("--json runs", "runs.json");
    assert_eq!(json["damaged"], json!([{ "id": TALK, "what": problem }]));
    assert_eq!(bench.ids("--json runs --limit 1"), [GONE]);
    let report = unwrap_text(&bench.ws.rep("doctor").stdout);
    assert!(report.contains(&format!("run {TALK} is damaged: {problem}")), "{report}");
    let refused = bench.ws.rep("runs rm 0000ta1k");
    assert!(refused.code == 3 && refused.stderr.contains("is damaged"), "{refused}");
    assert!(unwrap_text(&refused.stderr).contains(&format!("rep runs rm --force {TALK}")));
    assert_eq!(bench.ws.rep("replay --all").code, 1);
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
