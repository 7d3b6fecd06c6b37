//! A backend for any program: the prompt is passed on stdin, or as `{prompt}` in the arguments, and
//! stdout is the answer. `REPERTOIRE_*` variables describe the rest of the task.

use std::time::Duration;

use futures_util::future::BoxFuture;

use super::cli::{failed_result, prefix_error};
use super::limits::{ANSWER_BYTES_MAX, ARGUMENT_BYTES_MAX, COMMAND_OUTPUT_BYTES_MAX, GRACE};
use super::stream_tally::StreamTally;
use super::structured_output;
use super::{
    AgentFreedom, Backend, BackendEnforcement, BackendJob, BackendResult, EffectEnforcement,
    RuleEnforcement,
};
use crate::event::{AgentRunStatus, EventEmitter};
use repertoire_sandbox::process::{
    self, OutputFlow, ProcessInput, ProcessLimits, ProcessSpec, TerminationSettings,
};
use repertoire_text::clock::{Clock, SystemClock};

const PLACE: &str = "{prompt}";

/// A backend for any program.
#[derive(Clone, Debug)]
pub struct CommandBackend {
    program: String,
    args: Vec<String>,
    grace: Duration,
}

impl CommandBackend {
    pub fn new(program: &str, args: Vec<String>) -> Self {
        CommandBackend { program: program.to_owned(), args, grace: GRACE }
    }

    /// Sets how long the process may take to exit after it was asked to terminate.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    async fn execute(&self, job: &BackendJob, events: &EventEmitter) -> BackendResult {
        let spawn = self.spawn(job);
        let placed = self.args.iter().any(|arg| arg.contains(PLACE));
        if placed && spawn.args.iter().any(|arg| arg.len() > ARGUMENT_BYTES_MAX) {
            return failed_result(format!(
                "the prompt has {} bytes, too many for a command line: leave `{PLACE}` out, and it goes by standard input",
                job.prompt.len()
            ));
        }
        let ended = process::run(&spawn, &job.cancel, &mut |line| {
            let mut text = String::from_utf8_lossy(line).into_owned();
            text.push('\n');
            events.emit(StreamTally::text_event(&text));
            OutputFlow::Continue
        })
        .await;
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return failed_result(error.to_string()),
        };
        let mut tally = StreamTally::new("command");
        tally.iterations = 1;
        tally.session.clone_from(&job.session);
        tally.set_text(String::from_utf8_lossy(&ended.stdout.bytes).trim_end());
        let whole = ended.stdout.total <= ANSWER_BYTES_MAX as u64;
        match ended.code {
            Some(0) if ended.stopped.is_none() && whole => {
                tally.verdict = Some(AgentRunStatus::Done)
            }
            Some(0) if ended.stopped.is_none() => {
                tally.verdict = Some(AgentRunStatus::Limited);
                let (total, kept) = (ended.stdout.total, ANSWER_BYTES_MAX);
                tally.error = Some(format!("its output has {total} bytes; the limit is {kept}"));
            }
            _ => {}
        }
        if tally.verdict == Some(AgentRunStatus::Done) {
            events.emit(tally.answer_event("end_turn"));
        }
        let finished = tally.finish(&ended, SystemClock.now_ms());
        structured_output::check_answer(prefix_error(finished, &self.program), job)
    }

    fn spawn(&self, job: &BackendJob) -> ProcessSpec {
        let placed = self.args.iter().any(|arg| arg.contains(PLACE));
        let spawn = ProcessSpec {
            program: self.program.clone(),
            args: self.args.iter().map(|arg| arg.replace(PLACE, &job.prompt)).collect(),
            dir: job.dir.clone(),
            environment: command_environment(job),
            stdin: if placed {
                ProcessInput::Closed
            } else {
                ProcessInput::Text(job.prompt.clone())
            },
            limits: ProcessLimits {
                idle: Some(job.idle),
                absolute: job.absolute,
                grace: self.grace,
                kept_bytes_max: COMMAND_OUTPUT_BYTES_MAX,
            },
            termination: TerminationSettings::default(),
        };
        process::with_supervisor(spawn, job.usage)
    }
}

/// The job's environment plus `REPERTOIRE_*` variables. Values that are too long for a variable are
/// left out.
fn command_environment(job: &BackendJob) -> Vec<(String, String)> {
    let freedom = match job.freedom {
        AgentFreedom::ReadOnly => "read-only",
        AgentFreedom::Workspace => "workspace",
        AgentFreedom::Full => "full",
    };
    let told = [
        ("REPERTOIRE_SYSTEM", (!job.system.is_empty()).then(|| job.system.clone())),
        ("REPERTOIRE_MODEL", job.model.clone()),
        ("REPERTOIRE_SESSION", job.session.clone()),
        ("REPERTOIRE_SCHEMA", job.schema.as_ref().map(ToString::to_string)),
        ("REPERTOIRE_FREEDOM", Some(freedom.to_owned())),
        ("REPERTOIRE_MCP_SERVERS", job.mcp_servers.as_ref().map(ToString::to_string)),
    ];
    let mut environment = job.environment.clone();
    environment.retain(|(name, _)| !told.iter().any(|(ours, _)| ours == name));
    for (name, value) in told {
        if let Some(value) =
            value.filter(|value| value.len() <= ARGUMENT_BYTES_MAX && !value.contains('\0'))
        {
            environment.push((name.to_owned(), value));
        }
    }
    environment
}

impl Backend for CommandBackend {
    fn name(&self) -> &str {
        "command"
    }

    fn enforcement(&self) -> BackendEnforcement {
        BackendEnforcement {
            rules: RuleEnforcement::Nothing,
            effects: EffectEnforcement::Nothing,
            sandbox: false,
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
