//! Replays a transcript: for demonstrations, tests, and trying out prompts without paying for a
//! model.
//!
//! The file is either the events of a run, one JSON object per line (`.jsonl`), or a list of steps
//! in YAML or JSON. A step is one of `text`, `thinking`, `tool` (with `arguments`, `result`,
//! `error`), `write` (a file, with `content`, and `append` to append to it), `wait_ms` and
//! `finish`. A step with `when` is only executed if the prompt contains that text, and one with
//! `unless` only if it does not.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use futures_util::future::BoxFuture;
use repertoire_text::fs::ReadError;
use repertoire_text::yaml::Limits;
use serde::Deserialize;
use serde_json::Value;

use super::cli::failed_result;
use super::limits::{
    TRANSCRIPT_BYTES_MAX, TRANSCRIPT_NODES_MAX, TRANSCRIPT_STEPS_MAX, TRANSCRIPT_WAIT_MAX,
};
use super::stream_tally::StreamTally;
use super::structured_output;
use super::{
    AgentFreedom, Backend, BackendEnforcement, BackendJob, BackendResult, EffectEnforcement,
    RuleEnforcement,
};
use crate::effect::RunEffect;
use crate::event::{AgentEvent, AgentRunStatus, EventEmitter, EventKind, ToolDenial};
use repertoire_sandbox::beneath;
use repertoire_sandbox::confinement::Sandbox;
use repertoire_sandbox::workplace::RunWorkplace;

/// Replays a transcript.
#[derive(Clone, Debug)]
pub struct ScriptedBackend {
    file: Utf8PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum TranscriptError {
    #[error("the transcript `{path}` cannot be read: {source}")]
    Unreadable { path: Utf8PathBuf, source: ReadError },
    #[error("the transcript `{path}` is not one: {problem}")]
    Malformed {
        path: Utf8PathBuf,
        /// The problem, with its line or step.
        problem: String,
    },
}

#[derive(Clone, Debug)]
enum TranscriptStep {
    Tell(Box<EventKind>),
    Text(String),
    Tool(ToolStep),
    Write(WriteStep),
    Wait(Duration),
    Finish(Box<FinishStep>),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTranscriptStep {
    when: Option<String>,
    unless: Option<String>,
    write: Option<String>,
    #[serde(default)]
    content: String,
    #[serde(default)]
    append: bool,
    text: Option<String>,
    thinking: Option<String>,
    tool: Option<String>,
    #[serde(default)]
    arguments: Value,
    #[serde(default)]
    result: String,
    #[serde(default)]
    error: bool,
    wait_ms: Option<u64>,
    finish: Option<FinishStep>,
}

#[derive(Clone, Debug)]
struct ToolStep {
    tool: String,
    arguments: Value,
    result: String,
    error: bool,
}

/// A file that is really written, as an agent's tool would write it.
#[derive(Clone, Debug)]
struct WriteStep {
    path: String,
    content: String,
    append: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FinishStep {
    #[serde(default = "done")]
    status: AgentRunStatus,
    text: Option<String>,
    structured: Option<Value>,
    error: Option<String>,
    #[serde(default)]
    usage: repertoire_model::TokenUsage,
    cost_usd: Option<f64>,
    iterations: Option<u32>,
    #[serde(default)]
    denials: Vec<ToolDenial>,
    session: Option<String>,
    resets_at_ms: Option<u64>,
}

fn done() -> AgentRunStatus {
    AgentRunStatus::Done
}

impl ScriptedBackend {
    /// Creates a backend that replays a file. The file is read again for each run.
    pub fn new(file: impl Into<Utf8PathBuf>) -> Self {
        ScriptedBackend { file: file.into() }
    }

    async fn execute(&self, job: &BackendJob, events: &EventEmitter) -> BackendResult {
        let steps = match read_transcript(&self.file, &job.prompt) {
            Ok((steps, unknown)) => {
                if unknown > 0 {
                    let message = format!(
                        "{unknown} lines of the transcript are no events and were passed over"
                    );
                    events.emit(EventKind::Warning { message });
                }
                steps
            }
            Err(error) => return failed_result(error.to_string()),
        };
        structured_output::check_answer(replay_steps(steps, job, events).await, job)
    }
}

impl Backend for ScriptedBackend {
    fn name(&self) -> &str {
        "scripted"
    }

    fn enforcement(&self) -> BackendEnforcement {
        BackendEnforcement {
            rules: RuleEnforcement::All,
            effects: EffectEnforcement::EveryEffect,
            sandbox: true,
            service: None,
        }
    }

    fn run<'a>(
        &'a self,
        job: &'a BackendJob,
        events: &'a EventEmitter,
    ) -> BoxFuture<'a, BackendResult> {
        Box::pin(self.execute(job, events))
    }
}

/// Executes the steps in order. A transcript without a `finish` step ends as done, with the text so
/// far.
async fn replay_steps(
    steps: Vec<TranscriptStep>,
    job: &BackendJob,
    events: &EventEmitter,
) -> BackendResult {
    let mut tally = StreamTally::new("scripted");
    let mut calls = 0_u32;
    let deadline = tokio::time::Instant::now() + job.absolute;
    for step in steps {
        match step {
            TranscriptStep::Tell(kind) => events.emit(*kind),
            TranscriptStep::Text(text) => {
                tally.add_text(&text);
                events.emit(EventKind::Text { text });
            }
            TranscriptStep::Tool(step) => {
                calls += 1;
                let id = format!("call-{calls}");
                events.emit(tally.call(&id, &step.tool, &step.arguments));
                events.emit(tally.record_result(&id, &step.tool, &step.result, step.error));
            }
            TranscriptStep::Write(step) => {
                calls += 1;
                let id = format!("call-{calls}");
                let arguments = serde_json::json!({ "path": step.path });
                events.emit(tally.call(&id, "write", &arguments));
                let (said, is_error) = match write_file(&step, job) {
                    Ok(bytes) => (format!("{bytes} bytes written"), false),
                    Err(problem) => (problem, true),
                };
                events.emit(tally.record_result(&id, "write", &said, is_error));
            }
            TranscriptStep::Wait(time) => {
                if let Some(status) = wait_unless_stopped(time, deadline, job).await {
                    let error = if status == AgentRunStatus::Limited {
                        "it took too long"
                    } else {
                        "it was stopped"
                    };
                    return BackendResult {
                        status,
                        text: tally.text,
                        ..failed_result(error.to_owned())
                    };
                }
            }
            TranscriptStep::Finish(finish) => return finish_replay(*finish, tally, calls),
        }
    }
    let finish = FinishStep {
        status: AgentRunStatus::Done,
        text: None,
        structured: None,
        error: None,
        usage: tally.usage,
        cost_usd: None,
        iterations: None,
        denials: Vec::new(),
        session: None,
        resets_at_ms: None,
    };
    finish_replay(finish, tally, calls)
}

/// Writes a file in the job's folder, under the same rules as the agent's tools.
fn write_file(step: &WriteStep, job: &BackendJob) -> Result<usize, String> {
    if job.freedom == AgentFreedom::ReadOnly || !job.told.effects.has(RunEffect::ChangeFiles) {
        return Err("files may only be read".to_owned());
    }
    let place = RunWorkplace::new(&job.dir, &job.dir, Sandbox::None);
    let target =
        beneath::resolve_writable(&place, &step.path).map_err(|error| error.to_string())?;
    let before = if step.append {
        target.read_text(TRANSCRIPT_BYTES_MAX).unwrap_or_default()
    } else {
        String::new()
    };
    let text = before + &step.content;
    target.write_atomic(text.as_bytes()).map_err(|error| error.to_string())?;
    Ok(text.len())
}

/// Waits. Returns the status if the run was cancelled or reached its deadline first.
async fn wait_unless_stopped(
    time: Duration,
    deadline: tokio::time::Instant,
    job: &BackendJob,
) -> Option<AgentRunStatus> {
    tokio::select! {
        () = tokio::time::sleep(time) => None,
        () = tokio::time::sleep_until(deadline) => Some(AgentRunStatus::Limited),
        () = job.cancel.cancelled() => Some(AgentRunStatus::Cancelled),
    }
}

fn finish_replay(finish: FinishStep, tally: StreamTally, calls: u32) -> BackendResult {
    let failed = !matches!(finish.status, AgentRunStatus::Done);
    BackendResult {
        status: finish.status,
        text: finish.text.unwrap_or(tally.text),
        structured: finish.structured,
        error: finish.error.or_else(|| failed.then(|| "the transcript says so".to_owned())),
        usage: finish.usage,
        cost_usd: finish.cost_usd,
        iterations: finish.iterations.unwrap_or(calls + 1),
        denials: finish.denials,
        session: finish.session,
        resets_at_ms: finish.resets_at_ms,
    }
}

/// Reads the steps of a file that apply to a prompt, and the number of lines that could not be
/// parsed.
fn read_transcript(
    file: &Utf8Path,
    prompt: &str,
) -> Result<(Vec<TranscriptStep>, usize), TranscriptError> {
    let text = repertoire_text::fs::read_text(file, TRANSCRIPT_BYTES_MAX)
        .map_err(|source| TranscriptError::Unreadable { path: file.to_owned(), source })?;
    let malformed = |problem| TranscriptError::Malformed { path: file.to_owned(), problem };
    if file.extension() == Some("jsonl") {
        return steps_from_events(&text).map_err(malformed);
    }
    Ok((parse_steps(&text, prompt).map_err(malformed)?, 0))
}

/// Parses the events of a run. The start is dropped, since the caller reports it.
fn steps_from_events(text: &str) -> Result<(Vec<TranscriptStep>, usize), String> {
    let mut steps = Vec::new();
    let mut unknown = 0;
    for line in text.lines().filter(|line| !line.trim().is_empty()).take(TRANSCRIPT_STEPS_MAX) {
        match serde_json::from_str::<AgentEvent>(line) {
            // Replay the events of sub-agents, except the start and end of their runs.
            Ok(event) if event.depth > 0 => {
                if !matches!(
                    event.kind,
                    EventKind::RunStarted { .. } | EventKind::RunFinished { .. }
                ) {
                    steps.push(TranscriptStep::Tell(Box::new(event.kind)));
                }
            }
            Ok(event) => steps.extend(step_from_event(event.kind)),
            Err(_) => unknown += 1,
        }
    }
    if steps.is_empty() {
        return Err("no line of it is an event".to_owned());
    }
    Ok((steps, unknown))
}

fn step_from_event(kind: EventKind) -> Option<TranscriptStep> {
    match kind {
        EventKind::RunStarted { .. } => None,
        EventKind::RunFinished {
            status,
            text,
            structured,
            error,
            usage,
            cost_usd,
            iterations,
            denials,
            session,
            duration_ms: _,
        } => Some(TranscriptStep::Finish(Box::new(FinishStep {
            status,
            text: Some(text),
            structured,
            error,
            usage,
            cost_usd,
            iterations: Some(iterations),
            denials,
            session,
            resets_at_ms: None,
        }))),
        EventKind::Text { text } => Some(TranscriptStep::Text(text)),
        other => Some(TranscriptStep::Tell(Box::new(other))),
    }
}

fn parse_steps(text: &str, prompt: &str) -> Result<Vec<TranscriptStep>, String> {
    let span = repertoire_text::source::Span::new(0, text.len());
    let limits = Limits { depth_max: 32, nodes_max: TRANSCRIPT_NODES_MAX, repairs_max: 0 };
    let node = repertoire_text::yaml::parse(text, span, &limits).map_err(|error| {
        let line = text[..(error.span.start as usize).min(text.len())].matches('\n').count() + 1;
        format!("line {line}: {error}")
    })?;
    let Value::Array(written) = node.to_json() else {
        return Err("a list of steps is expected".to_owned());
    };
    if written.len() > TRANSCRIPT_STEPS_MAX {
        return Err(format!("it has {} steps; the limit is {TRANSCRIPT_STEPS_MAX}", written.len()));
    }
    let mut steps = Vec::new();
    for (index, value) in written.into_iter().enumerate() {
        let step: RawTranscriptStep = serde_json::from_value(value)
            .map_err(|error| format!("step {}: {error}", index + 1))?;
        let says = |words: &String| prompt.contains(words.as_str());
        if step.when.as_ref().is_none_or(says) && !step.unless.as_ref().is_some_and(says) {
            steps.extend(
                steps_from_raw(step).map_err(|error| format!("step {}: {error}", index + 1))?,
            );
        }
    }
    Ok(steps)
}

fn steps_from_raw(step: RawTranscriptStep) -> Result<Vec<TranscriptStep>, &'static str> {
    let mut steps = Vec::new();
    if let Some(ms) = step.wait_ms {
        steps.push(TranscriptStep::Wait(Duration::from_millis(ms).min(TRANSCRIPT_WAIT_MAX)));
    }
    if let Some(text) = step.thinking {
        steps.push(TranscriptStep::Tell(Box::new(EventKind::Thinking { text })));
    }
    if let Some(text) = step.text {
        steps.push(TranscriptStep::Text(text));
    }
    if let Some(tool) = step.tool {
        steps.push(TranscriptStep::Tool(ToolStep {
            tool,
            arguments: step.arguments,
            result: step.result,
            error: step.error,
        }));
    }
    if let Some(path) = step.write {
        let (content, append) = (step.content, step.append);
        steps.push(TranscriptStep::Write(WriteStep { path, content, append }));
    }
    if let Some(finish) = step.finish {
        steps.push(TranscriptStep::Finish(Box::new(finish)));
    }
    if steps.is_empty() {
        return Err("none of `text`, `thinking`, `tool`, `write`, `wait_ms`, `finish` is there");
    }
    Ok(steps)
}
