//! `rep runs diff`, `merge`, `prune` and `resume --here`, on a run that a scripted agent did in a real repository.

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use repertoire_journal::{BootClock, ClaimRules, Journal, Payload, QueueWorker, RunId, Target};
use serde_json::Value;

use crate::workspace::Workspace;

const PLAN: &str = "# Letters\n\n- [ ] Write alpha\n- [ ] Write beta\n";

const AGENT: &str = "\
- when: \"# Selected task\\n\\nWrite alpha\"
  unless: You review
  write: alpha.txt
  content: \"alpha\\n\"
- when: \"# Selected task\\n\\nWrite beta\"
  unless: You review
  write: beta.txt
  content: \"beta\\n\"
- when: You review
  finish: {structured: {verdict: approve, summary: Good., findings: [], learning: null}}
- unless: You review
  text: Done. <promise>COMPLETE</promise>
";

fn git(dir: &Utf8Path, args: &[&str]) -> String {
    let mut command = std::process::Command::new("git");
    command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]);
    command.args(["-c", "init.defaultBranch=main"]).args(args).current_dir(dir);
    let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn repository() -> Workspace {
    let mut ws = Workspace::new();
    ws.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    ws.set("TZ", "UTC");
    ws.set("USER", "ada");
    ws.write("home/.gitconfig", "[user]\n  name = Ada\n  email = ada@example.org\n");
    let project = ws.path("project");
    std::fs::remove_dir_all(project.join(".git")).unwrap();
    git(&project, &["init", "--quiet"]);
    ws.write("project/PLAN.md", PLAN);
    ws.write("agent.yaml", AGENT);
    commit(&ws, "the plan");
    ws
}

fn commit(ws: &Workspace, message: &str) {
    let project = ws.path("project");
    git(&project, &["add", "--all"]);
    git(&project, &["commit", "--quiet", "--message", message]);
}

/// The short id of a run that did the whole plan.
fn completed(ws: &Workspace) -> String {
    let ran = ws.rep("plan run --backend scripted:../agent.yaml");
    assert_eq!(ran.code, 0, "{ran}");
    short(ws)
}

fn short(ws: &Workspace) -> String {
    let runs = ws.json("--json runs", "runs.json");
    runs["runs"][0]["short"].as_str().unwrap().to_owned()
}

fn events(ws: &Workspace, run: &str, wanted: &str) -> Vec<Value> {
    let lines = ws.rep(&format!("--json runs events {run} --type {wanted}")).stdout;
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Snapshots without the names of commits and runs.
macro_rules! snapshot {
    ($ran:expr, @$expected:literal) => {
        insta::with_settings!({ filters => vec![
            (r"\b[0-9a-f]{40}\b", "[OID]"),
            (r"\b[0-9a-f]{10}\b", "[OID]"),
            (r"\b(letters-)?[0-9a-f]{8}\b", "[RUN]"),
        ] }, { insta::assert_snapshot!($ran, @$expected) });
    };
}

#[test]
fn what_a_run_changed_is_shown_and_taken_over() {
    let ws = repository();
    let run = completed(&ws);
    snapshot!(ws.rep("runs diff last --stat"), @"
    PLAN.md      4  ++--
    alpha.txt    1  +
    beta.txt     1  +
    3 files changed, 4 lines came, 2 went
    [exit 0]
    ");
    let diff = ws.json("--json runs diff last", "runs-diff.json");
    assert_eq!(diff["source"], "branch");
    let text = ws.rep("diff last").stdout;
    assert!(text.contains("\n+alpha\n") && !text.contains('\u{1b}'), "{text}");
    let coloured = ws.rep("--color always diff last").stdout;
    assert!(coloured.contains("\u{1b}[32m+alpha\u{1b}[0m\n"), "{coloured}");
    snapshot!(ws.rep("runs merge last"), @"
    merged into main at [OID]
    [stderr]
    `rep runs prune` removes worktrees whose work is merged
    [exit 0]
    ");
    assert_eq!(ws.text("project/alpha.txt"), "alpha\n");
    snapshot!(ws.rep("merge last"), @"
    merged into main: there was nothing new
    [exit 0]
    ");
    assert_eq!(events(&ws, &run, "delivered").len(), 2, "one to keep it, one merge");
    snapshot!(ws.rep("runs prune --dry-run"), @"
    would go  [RUN]  [TMP]/data/worktrees/[RUN]
                        with rep/[RUN] (was at [OID])
    [exit 0]
    ");
    assert_eq!(events(&ws, &run, "worktree_removed").len(), 0);
    snapshot!(ws.rep("runs prune"), @"
    removed   [RUN]  [TMP]/data/worktrees/[RUN]
                        with rep/[RUN] (was at [OID])
    [exit 0]
    ");
    assert_eq!(events(&ws, &run, "worktree_removed").len(), 1);
    snapshot!(ws.rep("runs prune"), @"
    No run has a worktree.
    [exit 0]
    ");
    // The branch is gone; what the run left behind is not.
    snapshot!(ws.rep("runs diff last --stat"), @"
    PLAN.md      4  ++--
    alpha.txt    1  +
    beta.txt     1  +
    3 files changed, 4 lines came, 2 went
    [stderr]
    the branch of the run is gone: this is what it left behind
    [exit 0]
    ");
    assert_eq!(ws.json("--json runs diff last", "runs-diff.json")["source"], "record");
    snapshot!(ws.rep("runs merge last"), @"
    [stderr]
    error: run [RUN] has no worktree and no branch any more
    hint: `rep runs diff [RUN]` may still show what it changed.
    [exit 1]
    ");
    assert_eq!(ws.rep("runs replay --all").code, 0);
}

#[test]
fn a_diff_can_be_applied_elsewhere() {
    let ws = repository();
    completed(&ws);
    let diff = ws.raw("runs diff last");
    ws.write("the.diff", diff);
    git(&ws.path("project"), &["apply", ws.path("the.diff").as_str()]);
    assert_eq!(ws.text("project/beta.txt"), "beta\n");
}

#[test]
fn a_conflict_is_refused_with_its_files_and_changes_nothing() {
    let ws = repository();
    let run = completed(&ws);
    ws.write("project/alpha.txt", "another\n");
    commit(&ws, "in the way");
    let before = git(&ws.path("project"), &["rev-parse", "HEAD"]);
    snapshot!(ws.rep("runs merge last"), @"
    [stderr]
    error: merging `rep/[RUN]` into `main` conflicts, and nothing was changed: `alpha.txt`
    hint: Merge it by hand: `git merge rep/[RUN]`; or `--branch` leaves it on a branch of its own.
    [exit 1]
    ");
    assert_eq!(git(&ws.path("project"), &["rev-parse", "HEAD"]), before);
    assert_eq!(events(&ws, &run, "delivered").len(), 1);
    snapshot!(ws.rep("runs prune"), @"
    stays     [RUN]  [TMP]/data/worktrees/[RUN]
                        6 commits are not in `main`
    [exit 0]
    ");
    let merged = ws.json("--json runs merge last --branch", "runs-merge.json");
    assert_eq!(merged["strategy"], "branch");
    let branch = merged["branch"].as_str().unwrap();
    assert!(git(&ws.path("project"), &["branch", "--list", branch]).contains(branch));
    assert_eq!(events(&ws, &run, "delivered").len(), 2);
    let again = ws.rep("runs merge last --branch");
    assert!(again.stdout.ends_with(": there was nothing new\n"), "{again}");
    assert_eq!(events(&ws, &run, "delivered").len(), 2, "the same delivery is recorded once");
}

#[test]
fn one_commit_is_made_of_it_on_request() {
    let ws = repository();
    completed(&ws);
    snapshot!(ws.rep("runs merge last --squash"), @"
    merged into main as one commit at [OID]
    [stderr]
    `rep runs prune` removes worktrees whose work is merged
    [exit 0]
    ");
    let log = git(&ws.path("project"), &["log", "--format=%s"]);
    assert_eq!(log, "Letters\nthe plan\n");
}

#[test]
fn only_work_that_something_vouches_for_is_taken_without_force() {
    let ws = repository();
    let ran = ws.rep("plan run --once --backend scripted:../agent.yaml");
    assert_eq!(ran.code, 0, "{ran}");
    snapshot!(ws.rep("runs merge last"), @"
    [stderr]
    error: run [RUN] is paused, so nothing vouches for its work: reviews or checks are missing
    hint: `rep runs diff [RUN]` shows it; `--force` takes it all the same.
    [exit 1]
    ");
    assert!(!ws.path("project/alpha.txt").exists());
    assert_eq!(ws.rep("runs merge last --force").code, 0);
    assert_eq!(ws.text("project/alpha.txt"), "alpha\n");
    snapshot!(ws.rep("runs prune"), @"
    stays     [RUN]  [TMP]/data/worktrees/[RUN]
                        its run is paused
    [exit 0]
    ");
}

#[test]
fn a_paused_run_goes_on_here() {
    let ws = repository();
    assert_eq!(ws.rep("plan run --detach --backend scripted:../agent.yaml").code, 0);
    assert_eq!(ws.rep("pause last").code, 0);
    let ran = ws.rep("resume last --here");
    assert_eq!(ran.code, 0, "{ran}");
    let shown = ws.json("--json runs show last", "runs-show.json");
    assert_eq!((&shown["run"]["status"], &shown["done"]["done"]), (&"completed".into(), &2.into()));
    let files = shown["files"].as_array().unwrap();
    assert!(files.iter().any(|file| file["path"].as_str().unwrap().ends_with("/report.md")));
}

#[test]
fn a_run_in_the_queue_is_worked_on_here() {
    let ws = repository();
    assert_eq!(ws.rep("plan run --detach --backend scripted:../agent.yaml").code, 0);
    let ran = ws.rep("runs resume last --here");
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("completed"), "{ran}");
    let again = ws.rep("runs resume last --here");
    assert_eq!(again.code, 1, "{again}");
}

/// Lets a worker take the newest run in another boot, long ago by its wall clock, and disappear.
fn taken_by_a_worker_that_is_gone(ws: &Workspace, boot: &str, lease: Duration) {
    let target = Target::File(ws.path("data/journal.sqlite"));
    let boot_clock = BootClock::new(Some(boot), Arc::new(|| 1));
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let journal = Journal::open_with(&target, Arc::new(|| 1_000), boot_clock).await.unwrap();
        let run = journal.find_run("last").await.unwrap();
        let (name, kinds) = ("gone".to_owned(), ["plan".to_owned()].into());
        let worker = QueueWorker { name, labels: run.labels.clone(), kinds, lease };
        let claimed = journal.claim_run(&run.id, &worker, &ClaimRules::default()).await.unwrap();
        assert!(claimed.is_some());
        journal.close().await;
    });
}

#[test]
fn a_run_whose_worker_is_gone_is_waited_for_and_goes_on_here() {
    let ws = repository();
    assert_eq!(ws.rep("plan run --detach --backend scripted:../agent.yaml").code, 0);
    let waits = "waiting up to 2.0 s to see whether its worker is gone\n";
    for (line, words) in [("runs resume last", "queued"), ("runs resume last --here", "completed")]
    {
        taken_by_a_worker_that_is_gone(&ws, "0 time elsewhere", Duration::from_secs(2));
        let ran = ws.rep(line);
        assert_eq!(ran.code, 0, "{ran}");
        assert!(ran.stdout.contains(words) && ran.stderr.contains(waits), "{ran}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_from_before_a_reboot_goes_on_at_once() {
    let ws = repository();
    assert_eq!(ws.rep("plan run --detach --backend scripted:../agent.yaml").code, 0);
    let here = format!("{:?}", BootClock::of_this_machine());
    let machine = here.split('"').nth(1).and_then(|name| name.split(' ').nth(2)).unwrap();
    let boot = format!("an-earlier-boot time:[1] {machine}");
    taken_by_a_worker_that_is_gone(&ws, &boot, Duration::from_secs(3_600));
    let ran = ws.rep("runs resume last --here");
    assert!(ran.code == 0 && ran.stdout.contains("completed"), "{ran}");
    assert!(!ran.stderr.contains("waiting"), "{ran}");
}

#[test]
fn a_project_that_is_gone_is_told_and_stops_nothing() {
    let ws = repository();
    completed(&ws);
    assert_eq!(ws.rep("runs merge last").code, 0);
    std::fs::rename(ws.path("project"), ws.path("moved")).unwrap();
    std::fs::create_dir_all(ws.path("project/.git")).unwrap();
    let ran = ws.rep("runs prune");
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stdout.starts_with("failed    "), "{ran}");
    // What it changed is still known.
    assert!(ws.rep("runs diff last").stdout.contains("+alpha\n"));
}

#[test]
fn a_worktree_of_another_journal_stays() {
    let ws = repository();
    completed(&ws);
    assert_eq!(ws.rep("runs merge last").code, 0);
    for name in ["journal.sqlite", "journal.sqlite-wal", "journal.sqlite-shm"] {
        let path = ws.path("data").join(name);
        if path.exists() {
            std::fs::remove_file(path).unwrap();
        }
    }
    // A new journal that knows the project, but not that run.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let target = Target::File(ws.path("data/journal.sqlite"));
        let journal = Journal::open(&target, std::sync::Arc::new(|| 1_000)).await.unwrap();
        let new = repertoire_journal::NewRun {
            id: RunId::known("other-run-1"),
            kind: "plan".into(),
            name: "other".into(),
            workspace: ws.path("project").to_string(),
            labels: Default::default(),
            priority: 0,
            limits: Default::default(),
            request: Value::Null,
        };
        let run = journal.create(new).await.unwrap();
        let note = Payload::Note { name: "n".into(), data: Value::Null };
        journal.order(&run.id, repertoire_journal::Command::Event(note)).await.unwrap();
        journal.close().await;
    });
    let ran = ws.rep("runs prune");
    assert!(ran.stdout.contains("its run is not in this journal"), "{ran}");
}

#[test]
fn what_would_stop_a_run_at_once_is_said_before_there_is_one() {
    let ws = repository();
    let check = |args: &str, code: i32, words: &str| {
        let said = ws.rep(args);
        assert_eq!(said.code, code, "{said}");
        assert!(said.to_string().contains(words), "{said}");
    };
    check("plan run --backend cluade", 2, "Did you mean `claude`?");
    check("plan run --backend scripted:nofile.yaml", 3, "there is no transcript");
    check("plan run --backend scripted:../agent.yaml --base nobranch", 2, "no branch `nobranch`");
    check("plan run --backend scripted:../agent.yaml -a nobody", 3, "there is no agent `nobody`");
    check("plan run --backend scripted:../agent.yaml --watch", 2, "--ending merge");
    ws.write("project/new.txt", "x");
    check("plan run --backend scripted:../agent.yaml", 3, "--allow-dirty");
    check("runs", 0, "rep plan run");
}

#[test]
fn a_run_of_one_task_goes_on_with_the_next_one_when_it_is_resumed() {
    let ws = repository();
    let once = ws.rep("plan run --backend scripted:../agent.yaml --once");
    assert_eq!(once.code, 0, "{once}");
    let again = ws.rep(&format!("runs resume {} --here", short(&ws)));
    assert_eq!(again.code, 0, "{again}");
    let told = again.to_string();
    assert!(told.contains("Write beta") && !told.contains("implementation: Write alpha"), "{told}");
}

#[test]
fn a_run_keeps_the_settings_it_was_started_with_and_says_so() {
    let ws = repository();
    let settings = |text: &str| {
        ws.write("project/repertoire.toml", text);
        commit(&ws, "settings");
        let listed: Value = serde_json::from_slice(&ws.raw("trust --json")).unwrap();
        listed["project"]["digest"].as_str().unwrap().to_owned()
    };
    let first = settings("plan.setup = \"echo one; echo two; exit 6\"\n");
    let ran = ws.rep(&format!("plan run --backend scripted:../agent.yaml --consent {first}"));
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stdout.ends_with("waiting: `plan.setup` failed (exit code 6): two\n"), "{ran}");
    let shown = ws.rep("runs show last").stdout;
    assert!(shown.contains("\n    one\n    two\n"), "{shown}");
    assert!(shown.contains(&format!("rep runs resume {} --here", short(&ws))), "{shown}");
    // The settings in use are agreed to, and nothing has changed.
    let same = ws.rep(&format!("runs resume last --here --consent {first}"));
    assert!(same.code == 1 && !same.stderr.contains("keeps the settings"), "{same}");

    let second = settings("plan.setup = \"true\"\n");
    for digest in [&first, &second] {
        let refused = ws.rep(&format!("runs resume last --here --consent {digest}"));
        assert_eq!(refused.code, 3, "{refused}");
        assert!(refused.stderr.contains("for settings that this run does not use"), "{refused}");
        assert!(refused.stderr.contains("`rep runs cancel "), "{refused}");
    }
    let resumed = ws.rep("runs resume last --here");
    let note = "this run keeps the settings it was started with; different now: `plan.setup`";
    assert!(resumed.stderr.contains(note), "{resumed}");
    assert!(resumed.stderr.contains("`rep plan run`"), "{resumed}");
}
