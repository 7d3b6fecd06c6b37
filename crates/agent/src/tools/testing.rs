//! A test workspace for tools.

use std::sync::{Arc, Mutex};

use camino::Utf8PathBuf;
use serde_json::Value;

use crate::event::{EventEmitter, EventKind};
use crate::run::AgentRun;
use crate::system::System;
use crate::tool::{Tool, ToolInvocation, ToolOutput};
use repertoire_sandbox::confinement::Sandbox;
use repertoire_sandbox::workplace::RunWorkplace;
use repertoire_text::clock::SystemClock;

/// A work folder, a spill folder and the recorded events.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
    events: Arc<Mutex<Vec<EventKind>>>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Bench { folder, events: Arc::default() }
    }

    pub(crate) fn dir(&self) -> Utf8PathBuf {
        self.outside().join("work")
    }

    /// The parent of the work folder.
    pub(crate) fn outside(&self) -> Utf8PathBuf {
        Utf8PathBuf::from_path_buf(self.folder.path().to_owned()).unwrap()
    }

    pub(crate) fn workplace(&self) -> RunWorkplace {
        let mut workplace =
            RunWorkplace::new(self.dir(), self.outside().join("spilled"), Sandbox::default());
        workplace.environment = vec![
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOME".to_owned(), self.outside().to_string()),
        ];
        workplace
    }

    pub(crate) fn run(&self) -> AgentRun {
        self.run_in(self.workplace())
    }

    pub(crate) fn run_in(&self, workplace: RunWorkplace) -> AgentRun {
        let events = self.events.clone();
        let sink = Arc::new(move |event: &crate::event::AgentEvent| {
            events.lock().unwrap().push(event.kind.clone());
        });
        let system = System::builder().work_dir(self.dir()).build().unwrap();
        let events = EventEmitter::new("r1", "tester", Arc::new(SystemClock), sink);
        AgentRun::new(system, workplace, events)
    }

    pub(crate) fn events(&self) -> Vec<EventKind> {
        self.events.lock().unwrap().clone()
    }

    pub(crate) fn file(&self, path: &str, contents: impl AsRef<[u8]>) {
        repertoire_text::fs::write_atomic(&self.dir().join(path), contents.as_ref()).unwrap();
    }

    pub(crate) fn text(&self, path: &str) -> String {
        repertoire_text::fs::read_text(&self.dir().join(path), 1 << 20).unwrap()
    }

    pub(crate) async fn call(&self, tool: &dyn Tool, arguments: Value) -> ToolOutput {
        call(tool, &self.run(), arguments).await
    }

    /// Calls a tool that must succeed, and returns its text.
    pub(crate) async fn ok(&self, tool: &dyn Tool, arguments: Value) -> String {
        let output = self.call(tool, arguments).await;
        assert!(!output.is_error, "{}", output.text);
        output.text
    }

    /// Calls a tool that must fail, and returns its text.
    pub(crate) async fn fails(&self, tool: &dyn Tool, arguments: Value) -> String {
        let output = self.call(tool, arguments).await;
        assert!(output.is_error, "{}", output.text);
        output.text
    }
}

pub(crate) async fn call(tool: &dyn Tool, run: &AgentRun, arguments: Value) -> ToolOutput {
    tool.call(ToolInvocation { id: "c1", arguments: &arguments, run }).await
}
