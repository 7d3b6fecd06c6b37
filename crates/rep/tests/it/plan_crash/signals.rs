//! Workers that are told to stop, and people who interrupt or resume.

use std::process::Stdio;
use std::time::{Duration, Instant};

use repertoire_journal::RunStatus;
use rustix::process::{Pid, Signal, kill_process};

use super::audit::{self, Counts};
use super::field::{Field, Store, Work};

/// An agent that takes longer than any test, the first time.
const ENDLESS_MS: u64 = 600_000;

struct Scene {
    field: Field,
    work: Work,
    repository: camino::Utf8PathBuf,
    backend: String,
}

impl Scene {
    fn new() -> Self {
        // Nothing may depend on a lease that runs out.
        let field = Field::with(Store::Sqlite, &[("REPERTOIRE_QUEUE_LEASE", "1h")]);
        let work = Work::new("p", 2);
        let repository = field.repository("one", &[(work.path(), work.plan())]);
        let backend = format!("scripted:{}", field.ws.path("agent.yaml"));
        let scene = Scene { field, work, repository, backend };
        scene.agent_takes(ENDLESS_MS);
        scene
    }

    fn agent_takes(&self, wait_ms: u64) {
        self.field.ws.write("agent.yaml", self.work.transcript(wait_ms));
    }

    fn finish_elsewhere(&mut self, id: &repertoire_journal::RunId) {
        self.agent_takes(10);
        let mut other = self.field.worker(&["daemon"]);
        self.field.until_completed(std::slice::from_ref(id));
        assert_eq!(other.stop(), Some(0));
        let run = self.field.run(id);
        audit::journal(&self.field, &run, &mut Counts::default());
        audit::branch(&self.field, &run, &self.work);
        audit::worktree(&self.field, &run);
        audit::repository(&self.field, &self.repository);
        audit::nobody_is_left(&self.field);
    }
}

#[test]
fn a_daemon_that_is_told_to_stop_lets_go_of_its_runs_at_once() {
    let mut scene = Scene::new();
    let args = ["--backend", scene.backend.as_str()];
    let id = scene.field.queue(&scene.repository, &scene.work.path(), &args);
    let mut daemon = scene.field.worker(&["daemon"]);
    scene.field.until("a step", |field| field.run(&id).open_step.is_some());
    let begun = Instant::now();
    assert_eq!(daemon.stop(), Some(0), "{}", daemon.said());
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let types = scene.field.types(&id);
    assert_eq!(types.last(), Some(&"LEASE_RELEASED"));
    assert_eq!(scene.field.run(&id).status, RunStatus::Queued);
    scene.finish_elsewhere(&id);
    assert!(!scene.field.types(&id).contains(&"LEASE_EXPIRED"));
}

#[test]
fn an_interrupted_plan_run_pauses_and_a_daemon_finishes_it_when_it_is_resumed() {
    let mut scene = Scene::new();
    let path = scene.work.path();
    let args = ["plan", "run", &path, "--backend", &scene.backend];
    let mut command = scene.field.rep(&scene.repository, &args);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    scene
        .field
        .until("a step", |field| field.runs().first().is_some_and(|run| run.open_step.is_some()));
    let id = scene.field.runs()[0].id.clone();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("stopping; the run can be resumed"), "{said}");
    assert_eq!(scene.field.run(&id).status, RunStatus::Paused);
    // A daemon leaves it alone until somebody says otherwise.
    let mut daemon = scene.field.worker(&["daemon"]);
    std::thread::sleep(Duration::from_millis(1_000));
    assert_eq!(daemon.stop(), Some(0));
    assert_eq!(scene.field.run(&id).status, RunStatus::Paused);
    let resume = ["runs", "resume", id.as_str()];
    let output = scene.field.rep(&scene.repository, &resume).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    scene.finish_elsewhere(&id);
}

#[test]
fn the_agent_of_a_killed_worker_is_ended_before_another_one_begins() {
    let mut field = Field::new(Store::Sqlite);
    let work = Work::new("p", 1);
    let repository = field.repository("one", &[(work.path(), work.plan())]);
    // The first agent is left behind, with a child in a session of its own; the second one does the work.
    let script = "cat >/dev/null\nif mkdir \"$HOME/first\" 2>/dev/null; then\n\
        setsid sleep 600 &\nsleep 600\nfi\nprintf 'half of p-1\\n' >p-1.txt\n";
    field.ws.write("agent.sh", script);
    let backend = format!("command:sh {}", field.ws.path("agent.sh"));
    let args = ["--backend", &backend, "--no-review"];
    let id = field.queue(&repository, &work.path(), &args);
    let mut killed = field.worker(&["worker"]);
    let is_asleep = |line: &String| line.contains(" sleep 600");
    field.until("an agent at work", |field| {
        field.processes().iter().filter(|line| is_asleep(line)).count() >= 2
    });
    killed.kill();
    let mut other = field.worker(&["worker"]);
    field.until_completed(std::slice::from_ref(&id));
    assert_eq!(field.processes().into_iter().find(is_asleep), None);
    assert_eq!(other.stop(), Some(0));
    let run = field.run(&id);
    audit::branch(&field, &run, &work);
    audit::nobody_is_left(&field);
}

#[test]
fn what_a_killed_worker_was_writing_gets_into_no_commit() {
    let mut field = Field::new(Store::Sqlite);
    let work = Work::new("p", 1);
    let repository = field.repository("one", &[(work.path(), work.plan())]);
    field.ws.write("agent.yaml", work.transcript(1_000));
    let backend = format!("scripted:{}", field.ws.path("agent.yaml"));
    let id = field.queue(&repository, &work.path(), &["--backend", &backend]);
    let mut killed = field.worker(&["worker"]);
    field.until("a step", |field| field.run(&id).open_step.is_some());
    killed.kill();
    let worktree = field.run(&id).worktree.unwrap();
    // As the plan and a file of the agent are left when they are written at that moment.
    std::fs::File::create(format!("{}/plans/.rep-a1B2c3", worktree.path)).unwrap();
    std::fs::File::create(format!("{}/.rep-d4E5f6", worktree.path)).unwrap();
    let mut other = field.worker(&["worker"]);
    field.until_completed(std::slice::from_ref(&id));
    assert_eq!(other.stop(), Some(0));
    let run = field.run(&id);
    audit::branch(&field, &run, &work);
    audit::worktree(&field, &run);
}
