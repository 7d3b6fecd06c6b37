//! Clocks, leases and damaged databases.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::scene::Scene;
use crate::{Guarantee, Tried};

/// The longest time that a busy machine may need.
const PATIENCE: Duration = Duration::from_secs(90);

/// Shifts the wall clock of a program by the seconds in a file; clocks that cannot be set stay as they are.
const SKEW: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    long result = syscall(SYS_clock_gettime, clock, now);
    const char *path = getenv("SKEW_FILE");
    if (result != 0 || clock != CLOCK_REALTIME || path == NULL) return (int)result;
    char text[32] = {0};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (read(file, text, sizeof text - 1) > 0) now->tv_sec += atol(text);
        close(file);
    }
    return 0;
}
"#;

/// An agent that takes longer than a daemon's pause between two looks at the queue.
const SLOW_AGENT: &str =
    "- wait_ms: 2500\n- write: log.txt\n  append: true\n  content: \"x\\n\"\n- text: Done.\n";
const PLAN: &str = "# Three\n\n- [ ] Write one\n- [ ] Write two\n- [ ] Write three\n";

pub(crate) fn guarantees() -> Vec<Guarantee> {
    vec![
        Guarantee {
            holds: "a clock that jumps by an hour or a day starts no step twice",
            tried: Tried::Once,
            attack: a_clock_that_jumps_starts_no_step_twice,
        },
        Guarantee {
            holds: "a damaged journal is read, and never written",
            tried: Tried::Once,
            attack: a_damaged_journal_is_never_written,
        },
    ]
}

/// Processes that are killed when the attack ends, however it ends.
struct Killed(Vec<Child>);

impl Drop for Killed {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn a_clock_that_jumps_starts_no_step_twice(scene: &Scene) {
    let library = skewing_library(scene);
    scene.write("skew", "0");
    let run = queue_plan(scene, SLOW_AGENT);
    let daemon = |name: &str| {
        let mut command = scene.rep_command(&["daemon", "--name", name]);
        command.env("LD_PRELOAD", &library).env("SKEW_FILE", scene.path("skew"));
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let _daemons = Killed(vec![daemon("first"), daemon("second")]);
    // A jump in each of the three steps in which an agent works.
    for (step, seconds) in [(1, "3600"), (2, "-86400"), (3, "86400")] {
        until("the next step", || implementations(scene, &run).len() >= step);
        scene.write("skew", seconds);
    }
    until("the end of the run", || {
        events(scene, &run).iter().any(|event| event["type"] == "RUN_COMPLETED")
    });
    let tasks = implementations(scene, &run);
    assert_eq!(tasks, ["Write one", "Write two", "Write three"], "each task is worked on once");
    let all = events(scene, &run);
    let lost = all.iter().filter(|event| event["type"] == "LEASE_EXPIRED").count();
    assert_eq!(lost, 0, "no lease runs out");
}

fn a_damaged_journal_is_never_written(scene: &Scene) {
    queue_plan(scene, SLOW_AGENT);
    // The log beside the file would hide what is changed in it.
    until("the end of the log", || {
        scene.rep("runs list");
        !scene.exists("data/journal.sqlite-wal")
    });
    let journal = scene.path("data/journal.sqlite");
    let mut bytes = bytes_of(&journal);
    // An empty index that none of these commands looks at: the last one in the file.
    let mut pages = (0..bytes.len()).step_by(4096);
    let is_empty_index = |page: &usize| bytes[*page] == 10 && bytes[page + 3..page + 5] == [0, 0];
    let page = pages.rfind(is_empty_index).unwrap();
    bytes[page] ^= 0x10;
    scene.write("data/journal.sqlite", &bytes);
    let steered = scene.rep("runs steer last hello");
    assert_eq!(steered.code, 3, "{steered:?}");
    for words in ["data/journal.sqlite is damaged", "nothing is written", ".recover"] {
        assert!(steered.stderr.contains(words), "{words}: {steered:?}");
    }
    let daemon = scene.rep_command(&["daemon"]).output().unwrap();
    assert_eq!(daemon.status.code(), Some(3), "a daemon stops: {daemon:?}");
    let listed = scene.rep("runs list");
    assert!(listed.code == 0 && listed.stdout.contains("Three"), "{listed:?}");
    let doctor = scene.rep("doctor");
    assert!(doctor.code == 1 && doctor.stdout.contains("is damaged"), "{doctor:?}");
    assert!(bytes_of(&journal) == bytes, "the file is as it was");
}

#[expect(clippy::disallowed_methods, reason = "files of this test are small")]
fn bytes_of(path: &camino::Utf8Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

/// Puts a plan with three tasks into the queue, and returns the id of the run.
fn queue_plan(scene: &Scene, agent: &str) -> String {
    scene.write("project/PLAN.md", PLAN);
    scene.commit("Plan");
    scene.write("agent.yaml", agent);
    let backend = format!("scripted:{}", scene.path("agent.yaml"));
    let line = format!("plan run PLAN.md --detach --no-review --check true --backend {backend}");
    let queued = scene.rep(&line);
    assert_eq!(queued.code, 0, "{queued:?}");
    queued.stdout.trim().to_owned()
}

fn skewing_library(scene: &Scene) -> camino::Utf8PathBuf {
    scene.write("skew.c", SKEW);
    let library = scene.path("skew.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(scene.path("skew.c"));
    let status = compiler.status().unwrap();
    assert!(status.success(), "cc: {status}");
    library
}

fn events(scene: &Scene, run: &str) -> Vec<Value> {
    let told = scene.rep(&format!("events {run} --json"));
    told.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The tasks that an agent was started for, in order.
fn implementations(scene: &Scene, run: &str) -> Vec<String> {
    let is_begun =
        |event: &Value| event["type"] == "STEP_STARTED" && event["kind"] == "implementation";
    let all = events(scene, run);
    let begun = all.iter().filter(|event| is_begun(event));
    begun.map(|event| event["task"]["label"].as_str().unwrap_or("?").to_owned()).collect()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not come");
        // Every look is a process, and a step takes ten times as long.
        std::thread::sleep(Duration::from_millis(250));
    }
}
