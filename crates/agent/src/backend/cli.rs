//! What the agent CLIs have in common: they are asked by a command line, answer with a line of JSON per event, and
//! are supervised while they do.
//!
//! A CLI is two pure functions, [`Cli::ask`] and a [`Parser`], each tested by itself. What is here starts the
//! process, keeps the time, and judges the end: a result, the error flag in it, and the exit code must agree.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use futures_util::future::BoxFuture;
use repertoire_model::Usage;
use tokio::time::Instant;

use super::limits::{GRACE, KEPT_BYTES_MAX, OPEN_CALLS_MAX};
use super::structured;
use super::{Backend, Finished, Holds, Job};
use repertoire_text::clock::{Clock, SystemClock};
use crate::event::{EventKind, Events, Status};
use repertoire_sandbox::process::{self, Ended, Flow, ProcessLimits, Spawn, Stdin, Termination, TerminationRequest};

/// One agent CLI.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cli {
    /// The word that users choose it by.
    pub(crate) name: &'static str,
    /// The program, as it is found on PATH.
    pub(crate) program: &'static str,
    /// What it can be held to.
    pub(crate) holds: Holds,
    /// Whether it has no option for a JSON Schema.
    pub(crate) wants_forms: bool,
    /// How it is asked; the folder is for files that only it shall read.
    pub(crate) ask: fn(&Job, &[String], &Utf8Path) -> Asked,
    /// What reads its answers.
    pub(crate) parser: fn() -> Box<dyn Parser>,
}

/// How a CLI is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The arguments.
    pub(crate) args: Vec<String>,
    /// What is set beside the job's environment.
    pub(crate) environment: Vec<(String, String)>,
    /// What it reads.
    pub(crate) stdin: Stdin,
    /// Files to write before.
    pub(crate) files: Vec<(Utf8PathBuf, String)>,
    /// The signals that ask it to end.
    pub(crate) request: TerminationRequest,
}

impl Asked {
    /// Asked with a prompt on standard input.
    pub(crate) fn with_prompt(prompt: String) -> Self {
        Asked { stdin: Stdin::Text(prompt), ..Asked::default() }
    }

    /// Adds arguments.
    pub(crate) fn args<'a>(&mut self, args: impl IntoIterator<Item = &'a str>) {
        self.args.extend(args.into_iter().map(str::to_owned));
    }

    /// Sets a variable.
    pub(crate) fn env(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Adds a file, and tells its path as an argument.
    pub(crate) fn file(&mut self, path: Utf8PathBuf, content: String) -> String {
        let argument = path.to_string();
        self.files.push((path, content));
        argument
    }
}

/// Reads a CLI's stream. It has no clock and no input but lines, and no line makes it panic.
pub(crate) trait Parser: Send {
    /// Reads a line.
    fn line(&mut self, line: &[u8]) -> Vec<EventKind>;

    /// Whether the stream has said all there is to say.
    fn is_finished(&self) -> bool;

    /// Lines that were not understood.
    fn garbage(&self) -> u64;

    /// Judges the whole.
    fn finish(self: Box<Self>, ended: &Ended, now_ms: u64) -> Finished;
}

/// A backend that is an agent CLI.
pub struct CliBackend {
    cli: Cli,
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
    pub(crate) fn new(cli: Cli, program: Option<&str>, args: Vec<String>) -> Self {
        CliBackend {
            cli,
            program: program.unwrap_or(cli.program).to_owned(),
            args,
            grace: GRACE,
            clock: Arc::new(SystemClock),
        }
    }

    /// How long it has to end by itself after its result.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    async fn execute(&self, job: &Job, events: &Events) -> Finished {
        let private = match Private::new() {
            Ok(private) => private,
            Err(error) => {
                return failed(format!("no folder for {}'s files: {error}", self.cli.name));
            }
        };
        let asked = (self.cli.ask)(job, &self.args, &private.path);
        if let Err(error) = private.write(&asked.files) {
            return failed(format!("{}'s files cannot be written: {error}", self.cli.name));
        }
        let spawn = self.spawn(job, asked);
        let mut parser = (self.cli.parser)();
        let mut watch = Stopwatch::default();
        let ended = process::run(&spawn, &job.cancel, &mut |line| {
            for kind in parser.line(line) {
                events.emit(watch.timed(kind));
            }
            if parser.is_finished() { Flow::Finished } else { Flow::Continue }
        })
        .await;
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return failed(error.to_string()),
        };
        tell_garbage(self.cli.name, parser.garbage(), events);
        let finished = parser.finish(&ended, self.clock.now_ms());
        structured::checked(named(finished, &self.program), job)
    }

    fn spawn(&self, job: &Job, asked: Asked) -> Spawn {
        let mut environment = job.environment.clone();
        for (name, value) in asked.environment {
            environment.retain(|(known, _)| *known != name);
            environment.push((name, value));
        }
        let termination = Termination { request: asked.request, ..Termination::default() };
        let spawn = Spawn {
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
        process::supervised(spawn, job.usage)
    }
}

impl Backend for CliBackend {
    fn name(&self) -> &str {
        self.cli.name
    }

    fn holds(&self) -> Holds {
        self.cli.holds
    }

    fn wants_forms(&self) -> bool {
        self.cli.wants_forms
    }

    fn run<'a>(&'a self, job: &'a Job, events: &'a Events) -> BoxFuture<'a, Finished> {
        Box::pin(self.execute(job, events))
    }
}

/// A task that did not begin.
pub(crate) fn failed(error: String) -> Finished {
    Finished {
        status: Status::Failed,
        text: String::new(),
        structured: None,
        error: Some(error),
        usage: Usage::default(),
        cost_usd: None,
        iterations: 0,
        denials: Vec::new(),
        session: None,
        resets_at_ms: None,
    }
}

/// The same end, whose error begins with the program's name.
pub(crate) fn named(mut finished: Finished, program: &str) -> Finished {
    let name = Utf8Path::new(program).file_name().unwrap_or(program);
    finished.error = finished.error.map(|error| format!("{name}: {error}"));
    finished
}

/// Says that lines were not understood.
pub(crate) fn tell_garbage(name: &str, lines: u64, events: &Events) {
    if lines > 0 {
        events.emit(EventKind::Warning {
            message: format!(
                "{lines} lines of {name}'s output were not understood and passed over"
            ),
        });
    }
}

/// How long calls take, for streams that do not say.
#[derive(Debug, Default)]
pub(crate) struct Stopwatch {
    begun: BTreeMap<String, Instant>,
}

impl Stopwatch {
    /// Notes the start of a call, and puts the duration into its result.
    pub(crate) fn timed(&mut self, mut kind: EventKind) -> EventKind {
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

/// A folder for files that only the CLI shall read; it goes with this value.
#[derive(Debug)]
pub(crate) struct Private {
    /// Its path.
    pub(crate) path: Utf8PathBuf,
    _dir: tempfile::TempDir,
}

impl Private {
    pub(crate) fn new() -> std::io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("rep-").tempdir()?;
        let path = Utf8PathBuf::from_path_buf(dir.path().to_owned())
            .map_err(|path| std::io::Error::other(format!("{} is not UTF-8", path.display())))?;
        Ok(Private { path, _dir: dir })
    }

    pub(crate) fn write(&self, files: &[(Utf8PathBuf, String)]) -> std::io::Result<()> {
        files.iter().try_for_each(|(path, content)| {
            repertoire_text::fs::write_atomic(path, content.as_bytes())
        })
    }
}
