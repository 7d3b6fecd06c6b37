//! Repositories with plans, a journal that the test reads beside the workers, and the workers, which are processes.

use std::collections::BTreeSet;
use std::fs::File;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_journal::{Event, Filter, Journal, JournalError, Run, RunId, RunStatus, Target};
use repertoire_text::clock::{Clock, SystemClock};
use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Runtime;

use crate::server::Server;
use crate::workspace::Workspace;

/// How long anything may take that has to come: a busy machine is slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

const IDENTITY: &str = "[user]\n\tname = Test\n\temail = test@example.com\n[init]\n\tdefaultBranch = main\n\
    [gc]\n\tauto = 0\n";

/// What agents answer to a review, and say at the end of a task.
pub(crate) const APPROVES: &str = "\
- when: You review
  wait_ms: 30
  finish: {structured: {verdict: approve, summary: Good., findings: [], learning: null}}
- unless: You review
  text: Done.
";

/// Where the journal is.
pub(crate) enum Store {
    Sqlite,
    Postgres(Server),
}

/// Everything that a test needs. Workers that are left are killed when it goes.
pub(crate) struct Field {
    pub(crate) ws: Workspace,
    pub(crate) store: Store,
    pub(crate) journal: Journal,
    runtime: Runtime,
    names: u32,
}

/// A worker that runs.
pub(crate) struct WorkerProcess {
    pub(crate) name: String,
    pub(crate) child: Child,
    log: Utf8PathBuf,
}

impl Field {
    /// With a lease of one second: who is silent longer has lost.
    pub(crate) fn new(store: Store) -> Self {
        Self::with(store, &[("REPERTOIRE_QUEUE_LEASE", "1s"), ("REPERTOIRE_QUEUE_RUNS_MAX", "6")])
    }

    pub(crate) fn with(store: Store, variables: &[(&str, &str)]) -> Self {
        let mut ws = Workspace::new();
        ws.set("PATH", "/usr/local/bin:/usr/bin:/bin");
        for (name, value) in variables {
            ws.set(name, value);
        }
        ws.write("home/.gitconfig", IDENTITY);
        std::fs::create_dir_all(ws.path("logs")).unwrap();
        let target = match &store {
            Store::Sqlite => {
                let given = variables.iter().find(|(name, _)| *name == "REPERTOIRE_DATA_DIR");
                let data = given.map_or_else(|| ws.path("data"), |(_, dir)| (*dir).into());
                Target::File(data.join("journal.sqlite"))
            }
            Store::Postgres(server) => {
                let url = server.url("postgres");
                ws.set("REPERTOIRE_DATABASE_URL", &url);
                Target::Url(url)
            }
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let clock = Arc::new(|| SystemClock.now_ms());
        let journal = runtime.block_on(Journal::open(&target, clock)).unwrap();
        Field { ws, store, journal, runtime, names: 0 }
    }

    /// A repository with these files, all committed.
    pub(crate) fn repository(&self, name: &str, files: &[(String, String)]) -> Utf8PathBuf {
        for (path, text) in files {
            self.ws.write(&format!("{name}/{path}"), text);
        }
        let dir = self.ws.path(name);
        self.git(&dir, &["init", "--quiet"]);
        self.git(&dir, &["add", "--all"]);
        self.git(&dir, &["commit", "--quiet", "--message", "start"]);
        dir
    }

    /// What git says; it has to succeed.
    pub(crate) fn git(&self, dir: &Utf8Path, args: &[&str]) -> String {
        let output = self.git_output(dir, args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?} in {dir}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn git_output(&self, dir: &Utf8Path, args: &[&str]) -> Output {
        let mut command = Command::new("git");
        command.args(args).current_dir(dir).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.ws.path("home"));
        command.output().unwrap()
    }

    /// `rep` in a folder.
    pub(crate) fn rep(&self, dir: &Utf8Path, args: &[&str]) -> Command {
        let mut command = self.ws.command(args);
        command.current_dir(dir).stdin(Stdio::null());
        command
    }

    /// Puts a plan into the queue.
    pub(crate) fn queue(&self, dir: &Utf8Path, plan: &str, args: &[&str]) -> RunId {
        let mut all = vec!["plan", "run", plan, "--detach"];
        all.extend(args);
        let output = self.rep(dir, &all).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        RunId::known(String::from_utf8(output.stdout).unwrap().trim())
    }

    /// Starts a worker.
    pub(crate) fn worker(&mut self, args: &[&str]) -> WorkerProcess {
        self.names += 1;
        let name = format!("w{}", self.names);
        let log = self.ws.path(&format!("logs/{name}.log"));
        let mut command = self.rep(&self.ws.path("home"), args);
        command.args(["--name", &name]).stdout(Stdio::null()).stderr(File::create(&log).unwrap());
        WorkerProcess { name, log, child: command.spawn().unwrap() }
    }

    pub(crate) fn block<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(work);
    }

    pub(crate) fn run(&self, id: &RunId) -> Run {
        self.block(self.journal.run(id)).unwrap().unwrap()
    }

    pub(crate) fn runs(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut before = None;
        loop {
            let filter = Filter { before, ..Filter::default() };
            let page = self.block(self.journal.runs(&filter)).unwrap();
            runs.extend(page.items);
            match page.next {
                Some(next) => before = Some(next),
                None => return runs,
            }
        }
    }

    pub(crate) fn events(&self, id: &RunId) -> Vec<Event> {
        self.block(events(&self.journal, id)).unwrap()
    }

    /// The types of a run's events, in their order.
    pub(crate) fn types(&self, id: &RunId) -> Vec<&'static str> {
        self.events(id).iter().map(|event| event.payload.name()).collect()
    }

    /// Waits for something that has to come.
    pub(crate) fn until(&self, what: &str, mut there: impl FnMut(&Field) -> bool) {
        let begun = Instant::now();
        while !there(self) {
            assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}\n{}", self.stand());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn until_completed(&self, ids: &[RunId]) {
        self.until("all runs to be completed", |field| {
            ids.iter().all(|id| match field.run(id).status {
                RunStatus::Completed => true,
                RunStatus::Queued | RunStatus::Running => false,
                status => panic!("{id} is {status}\n{}", field.stand()),
            })
        });
    }

    /// How far everything is, for a test that cannot go on.
    pub(crate) fn stand(&self) -> String {
        let mut out = String::new();
        for run in self.runs().iter().filter(|run| run.status != RunStatus::Completed) {
            out.push_str(&format!("{} {} {:?}\n", run.id, run.status, run.reason));
            let events = self.events(&run.id);
            for event in events.iter().skip(events.len().saturating_sub(8)) {
                let text: String = format!("{:?}", event.payload).chars().take(300).collect();
                out.push_str(&format!("    {} {text}\n", event.seq));
            }
        }
        let mut logs = self.ws.files("logs");
        logs.sort_by_key(|log| std::fs::metadata(self.ws.path(log)).unwrap().modified().unwrap());
        for log in logs.iter().rev().take(5) {
            let text = self.ws.text(log);
            let lines: Vec<&str> = text.lines().collect();
            out.push_str(&format!(
                "{log}:\n    {}\n",
                lines[lines.len().saturating_sub(12)..].join("\n    ")
            ));
        }
        out
    }

    /// Processes that belong to this test, besides the test and the database.
    pub(crate) fn processes(&self) -> BTreeSet<String> {
        let place = self.ws.path("");
        let place = place.as_str().trim_end_matches('/').as_bytes();
        let mut found = BTreeSet::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let path = entry.path();
            let environment = contents(&path.join("environ"));
            if environment.windows(place.len()).any(|part| part == place) {
                let line = contents(&path.join("cmdline"));
                let line = String::from_utf8_lossy(&line).replace('\0', " ");
                if !line.is_empty() {
                    found.insert(format!("{} {line}", entry.file_name().to_string_lossy()));
                }
            }
        }
        found
    }
}

fn contents(path: &std::path::Path) -> Vec<u8> {
    use std::io::Read;
    let mut bytes = Vec::new();
    // A process may be gone by now.
    let _ = File::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
    bytes
}

/// All events of a run.
pub(crate) async fn events(journal: &Journal, id: &RunId) -> Result<Vec<Event>, JournalError> {
    let mut all: Vec<Event> = Vec::new();
    loop {
        let after = all.last().map_or(0, |event| event.seq);
        let page = journal.events(id, after, 0).await?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

impl WorkerProcess {
    /// Nothing if it has ended: its number may be another's by now.
    pub(crate) fn signal(&mut self, signal: Signal) {
        if self.child.try_wait().unwrap().is_none() {
            kill_process(Pid::from_child(&self.child), signal).unwrap();
        }
    }

    /// Kills it, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
    }

    /// Asks it to end, waits, and gives its exit code.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        self.wait().code()
    }

    pub(crate) fn wait(&mut self) -> std::process::ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < PATIENCE, "{} does not end: {}", self.name, self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether all its threads are stopped by a signal.
    pub(crate) fn stands_still(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        threads.flatten().all(|thread| {
            let stat = contents(&thread.path().join("stat"));
            // The state comes after the name, which is in brackets.
            let after_name = stat.rsplit(|byte| *byte == b')').next().unwrap_or_default();
            after_name.trim_ascii_start().first() == Some(&b'T')
        })
    }

    /// Whether it holds a lock on this file that keeps others from writing.
    pub(crate) fn has_write_lock(&self, path: &Utf8Path) -> bool {
        use std::os::unix::fs::MetadataExt;
        let id = self.child.id().to_string();
        let inode = format!(":{}", std::fs::metadata(path).unwrap().ino());
        let locks = contents("/proc/locks".as_ref());
        String::from_utf8_lossy(&locks).lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            matches!(words[..], [_, "POSIX", _, "WRITE", holder, file, ..]
                if holder == id && file.ends_with(&inode))
        })
    }

    /// What it told people.
    pub(crate) fn said(&self) -> String {
        String::from_utf8_lossy(&contents(self.log.as_std_path())).into_owned()
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A plan of some tasks, each of which wants a file, and what an agent does about them: it writes half of the file, takes
/// its time, and writes the rest.
pub(crate) struct Work {
    pub(crate) name: String,
    pub(crate) files: Vec<String>,
}

impl Work {
    pub(crate) fn new(name: &str, tasks: usize) -> Self {
        let files = (1..=tasks).map(|number| format!("{name}-{number}")).collect();
        Work { name: name.to_owned(), files }
    }

    /// The path of the plan in its repository.
    pub(crate) fn path(&self) -> String {
        format!("plans/{}.md", self.name)
    }

    pub(crate) fn plan(&self) -> String {
        let tasks = self.files.iter().map(|file| format!("- [ ] Write {file}.\n"));
        format!("# Plan {}\n\n{}", self.name, tasks.collect::<String>())
    }

    pub(crate) fn transcript(&self, wait_ms: u64) -> String {
        let mut out = String::new();
        for file in &self.files {
            let when =
                format!("- when: \"# Selected task\\n\\nWrite {file}.\"\n  unless: You review\n");
            out.push_str(&format!("{when}  write: {file}.txt\n  content: \"half of \"\n"));
            out.push_str(&format!("{when}  wait_ms: {wait_ms}\n  write: {file}.txt\n  append: true\n  content: \"{file}\\n\"\n"));
        }
        out + APPROVES
    }
}

/// Whether the long form is asked for.
#[expect(
    clippy::disallowed_methods,
    reason = "it is about how long to test, not about what is tested"
)]
pub(crate) fn is_long() -> bool {
    std::env::var_os("REPERTOIRE_LONG").is_some()
}

/// Where the choices of a test come from: told, so that they can be had again.
pub(crate) struct Dice(u64);

impl Dice {
    #[expect(clippy::disallowed_methods, reason = "it repeats a test that failed")]
    pub(crate) fn new() -> (Self, u64) {
        use std::hash::{BuildHasher, RandomState};
        let given = std::env::var("REPERTOIRE_SEED").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| RandomState::new().hash_one(0) % 1_000_000).max(1);
        (Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)), seed)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}
