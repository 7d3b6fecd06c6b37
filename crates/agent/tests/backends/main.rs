//! Backends with real processes, most of which misbehave.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_agent::backend::{
    AgentFreedom, Backend, BackendChoice, BackendJob, BackendKind, BackendRestrictions,
    BackendResult, build_backend,
};
use repertoire_agent::event::{AgentEvent, EventEmitter, EventKind};
use repertoire_sandbox::process::UsageLimits;
use repertoire_text::clock::SystemClock;
use tokio_util::sync::CancellationToken;

mod faults;
mod mcp;
mod programs;

/// A folder for a test, which goes with it.
struct Folder {
    path: Utf8PathBuf,
    _dir: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let path = Utf8PathBuf::from_path_buf(dir.path().to_owned()).expect("UTF-8");
        Folder { path, _dir: dir }
    }

    /// A shell script that can be run.
    fn script(&self, name: &str, body: &str) -> String {
        use std::os::unix::fs::PermissionsExt;
        let file = self.path.join(name);
        self.file(name, &format!("#!/bin/sh\n{body}\n"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("a mode");
        file.into_string()
    }

    fn file(&self, name: &str, content: &str) -> Utf8PathBuf {
        let file = self.path.join(name);
        repertoire_text::fs::write_atomic(&file, content.as_bytes()).expect("a file");
        file
    }
}

fn job(dir: &Utf8Path) -> BackendJob {
    BackendJob {
        form: None,
        prompt: "do it".to_owned(),
        system: String::new(),
        dir: dir.to_owned(),
        environment: vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())],
        model: None,
        session: None,
        schema: None,
        freedom: AgentFreedom::Workspace,
        told: BackendRestrictions::default(),
        max_cost_usd: None,
        max_iterations: None,
        mcp_servers: None,
        ignore_project_rules: false,
        idle: Duration::from_secs(20),
        absolute: Duration::from_secs(40),
        usage: UsageLimits::default(),
        cancel: CancellationToken::new(),
    }
}

/// Events that are kept.
fn kept() -> (EventEmitter, Arc<Mutex<Vec<EventKind>>>) {
    let list = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&list);
    let keep = move |event: &AgentEvent| sink.lock().expect("a list").push(event.kind.clone());
    (EventEmitter::new("run", "agent", Arc::new(SystemClock), Arc::new(keep)), list)
}

async fn run(backend: &dyn Backend, job: &BackendJob) -> (BackendResult, Vec<EventKind>) {
    let (events, list) = kept();
    let finished = backend.run(job, &events).await;
    let list = list.lock().expect("a list").clone();
    (finished, list)
}

fn chosen(kind: BackendKind, program: &str, args: &[&str]) -> Box<dyn Backend> {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    build_backend(BackendChoice { kind, program: Some(program.to_owned()), args })
        .expect("a backend")
}

/// Whether a process whose command line has this text vanishes within a moment.
fn vanishes(mark: &str) -> bool {
    use std::io::Read;
    let is_there = || {
        std::fs::read_dir("/proc").expect("/proc").flatten().any(|entry| {
            let mut text = Vec::new();
            let file = std::fs::File::open(entry.path().join("cmdline"));
            file.and_then(|mut file| file.read_to_end(&mut text)).is_ok()
                && String::from_utf8_lossy(&text).contains(mark)
        })
    };
    let deadline = Instant::now() + Duration::from_secs(3);
    while is_there() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    !is_there()
}
