//! Code shared by the agent CLIs: each is started with a command line, prints one line of JSON per
//! event, and is supervised while it runs.
//!
//! A CLI is defined by two pure parts, [`Cli::ask`] and a [`Parser`], each tested by itself. This
//! module starts the process, enforces timeouts, and determines the outcome: the result, its error
//! flag and the exit code must agree.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use futures_util::future::BoxFuture;
use repertoire_model::TokenUsage;
use tokio::time::Instant;

use super::limits::{GRACE, KEPT_BYTES_MAX, OPEN_CALLS_MAX};
use super::structured_output;
use super::{Backend, BackendEnforcement, BackendJob, BackendResult};
use crate::event::{AgentRunStatus, EventEmitter, EventKind};
use repertoire_sandbox::process::{
    self, OutputFlow, ProcessInput, ProcessLimits, ProcessResult, ProcessSpec, TerminationRequest,
    TerminationSettings,
};
use repertoire_text::clock::{Clock, SystemClock};

/// The definition of an agent CLI.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CliDefinition {
    /// The name by which users select the backend.
    pub(crate) name: &'static str,
    /// The program to look up on PATH.
    pub(crate) program: &'static str,
    pub(crate) holds: BackendEnforcement,
    /// True if the CLI has no option for a JSON Schema.
    pub(crate) wants_forms: bool,
    /// Builds the invocation. The path is a private folder for the CLI's files.
    pub(crate) ask: fn(&BackendJob, &[String], &Utf8Path) -> CliInvocation,
    /// Creates a parser for the CLI's output.
    pub(crate) parser: fn() -> Box<dyn CliStreamParser>,
}

/// The invocation of a CLI.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CliInvocation {
    pub(crate) args: Vec<String>,
    /// Variables to set in addition to the job's environment.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) stdin: ProcessInput,
    /// Files to write before the start.
    pub(crate) files: Vec<(Utf8PathBuf, String)>,
    /// The signals that ask the process to terminate.
    pub(crate) request: TerminationRequest,
}

impl CliInvocation {
    /// Creates an invocation with the prompt on stdin.
    pub(crate) fn with_prompt(prompt: String) -> Self {
        CliInvocation { stdin: ProcessInput::Text(prompt), ..CliInvocation::default() }
    }

    pub(crate) fn add_args<'a>(&mut self, args: impl IntoIterator<Item = &'a str>) {
        self.args.extend(args.into_iter().map(str::to_owned));
    }

    pub(crate) fn set_env(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Adds a file, and returns its path as an argument.
    pub(crate) fn file(&mut self, path: Utf8PathBuf, content: String) -> String {
        let argument = path.to_string();
        self.files.push((path, content));
        argument
    }
}

/// Parses a CLI's output. Has no clock and no input but lines; must not panic on any line.
pub(crate) trait CliStreamParser: Send {
    fn parse_line(&mut self, line: &[u8]) -> Vec<EventKind>;

    /// Returns true once the final event was read.
    fn is_finished(&self) -> bool;

    /// The number of lines that could not be parsed.
    fn garbage_lines(&self) -> u64;

    /// Returns the result of the task.
    fn finish(self: Box<Self>, ended: &ProcessResult, now_ms: u64) -> BackendResult;
}

/// A backend that runs an agent CLI.
pub struct CliBackend {
    cli: CliDefinition,
    program: String,
    args: Vec<String>,
    grace: Duration,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for CliBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CliBackend")
            .field("name", &self.cli.name)
            .field("program", &self.program)
            .finish()
    }
}

impl CliBackend {
    pub(crate) fn new(cli: CliDefinition, program: Option<&str>, args: Vec<String>) -> Self {
        CliBackend {
            cli,
            program: program.unwrap_or(cli.program).to_owned(),
            args,
            grace: GRACE,
            clock: Arc::new(SystemClock),
        }
    }

    /// Sets how long the process may take to exit after its result.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    async fn execute(&self, job: &BackendJob, events: &EventEmitter) -> BackendResult {
        let private = match PrivateFolder::new() {
            Ok(private) => private,
            Err(error) => {
                return failed_result(format!("no folder for {}'s files: {error}", self.cli.name));
            }
        };
        let asked = (self.cli.ask)(job, &self.args, &private.path);
        if let Err(error) = private.write_files(&asked.files) {
            return failed_result(format!("{}'s files cannot be written: {error}", self.cli.name));
        }
        let spawn = self.spawn(job, asked);
        let mut parser = (self.cli.parser)();
        let mut watch = ToolCallTimer::default();
        let ended = process::run(&spawn, &job.cancel, &mut |line| {
            for kind in parser.parse_line(line) {
                events.emit(watch.add_duration(kind));
            }
            if parser.is_finished() { OutputFlow::Finished } else { OutputFlow::Continue }
        })
        .await;
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return failed_result(error.to_string()),
        };
        warn_about_garbage(self.cli.name, parser.garbage_lines(), events);
        let finished = parser.finish(&ended, self.clock.now_ms());
        structured_output::check_answer(prefix_error(finished, &self.program), job)
    }

    fn spawn(&self, job: &BackendJob, asked: CliInvocation) -> ProcessSpec {
        let mut environment = job.environment.clone();
        for (name, value) in asked.environment {
            environment.retain(|(known, _)| *known != name);
            environment.push((name, value));
        }
        let termination =
            TerminationSettings { request: asked.request, ..TerminationSettings::default() };
        let spawn = ProcessSpec {
            program: self.program.clone(),
            args: asked.args,
            dir: job.dir.clone(),
            environment,
            stdin: asked.stdin,
            limits: ProcessLimits {
                idle: Some(job.idle),
                absolute: job.absolute,
                grace: self.grace,
                kept_bytes_max: KEPT_BYTES_MAX,
            },
            termination,
        };
        process::with_supervisor(spawn, job.usage)
    }
}

impl Backend for CliBackend {
    fn name(&self) -> &str {
        self.cli.name
    }

    fn enforcement(&self) -> BackendEnforcement {
        self.cli.holds
    }

    fn wants_forms(&self) -> bool {
        self.cli.wants_forms
    }

    fn run<'a>(
        &'a self,
        job: &'a BackendJob,
        events: &'a EventEmitter,
    ) -> BoxFuture<'a, BackendResult> {
        Box::pin(self.execute(job, events))
    }
}

/// The result of a task that could not be started.
pub(crate) fn failed_result(error: String) -> BackendResult {
    BackendResult {
        status: AgentRunStatus::Failed,
        text: String::new(),
        structured: None,
        error: Some(error),
        usage: TokenUsage::default(),
        cost_usd: None,
        iterations: 0,
        denials: Vec::new(),
        session: None,
        resets_at_ms: None,
    }
}

/// Prefixes the error, if any, with the program's name.
pub(crate) fn prefix_error(mut finished: BackendResult, program: &str) -> BackendResult {
    let name = Utf8Path::new(program).file_name().unwrap_or(program);
    finished.error = finished.error.map(|error| format!("{name}: {error}"));
    finished
}

/// Emits a warning if lines could not be parsed.
pub(crate) fn warn_about_garbage(name: &str, lines: u64, events: &EventEmitter) {
    if lines > 0 {
        events.emit(EventKind::Warning {
            message: format!(
                "{lines} lines of {name}'s output were not understood and passed over"
            ),
        });
    }
}

/// Measures the duration of tool calls for streams that don't report it.
#[derive(Debug, Default)]
pub(crate) struct ToolCallTimer {
    begun: BTreeMap<String, Instant>,
}

impl ToolCallTimer {
    /// Records the start of a call, and fills in the duration of its result.
    pub(crate) fn add_duration(&mut self, mut kind: EventKind) -> EventKind {
        match &mut kind {
            EventKind::ToolCall { id, .. } if self.begun.len() < OPEN_CALLS_MAX => {
                self.begun.insert(id.clone(), Instant::now());
            }
            EventKind::ToolResult { id, duration_ms, .. } => {
                if let Some(begun) = self.begun.remove(id)
                    && *duration_ms == 0
                {
                    *duration_ms = begun.elapsed().as_millis().try_into().unwrap_or(u64::MAX);
                }
            }
            _ => {}
        }
        kind
    }
}

/// A temporary folder for files that only the CLI should read; deleted on drop.
#[derive(Debug)]
pub(crate) struct PrivateFolder {
    pub(crate) path: Utf8PathBuf,
    _dir: tempfile::TempDir,
}

impl PrivateFolder {
    pub(crate) fn new() -> std::io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("rep-").tempdir()?;
        let path = Utf8PathBuf::from_path_buf(dir.path().to_owned())
            .map_err(|path| std::io::Error::other(format!("{} is not UTF-8", path.display())))?;
        Ok(PrivateFolder { path, _dir: dir })
    }

    pub(crate) fn write_files(&self, files: &[(Utf8PathBuf, String)]) -> std::io::Result<()> {
        files.iter().try_for_each(|(path, content)| {
            repertoire_text::fs::write_atomic(path, content.as_bytes())
        })
    }
}
