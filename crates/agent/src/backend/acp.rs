//! A backend for any agent that speaks the Agent Client Protocol: JSON-RPC 2.0 over stdin and
//! stdout, one message per line.
//!
//! The client offers no capabilities except answering permission requests: the agent reads and
//! writes files with its own tools. The client is a pure state machine ([`Client`]), so timeouts
//! are enforced by the same supervision as for every other process.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::cli::{ToolCallTimer, failed_result, prefix_error, warn_about_garbage};
use super::limits::{ACP_GRACE, KEPT_BYTES_MAX, REPLIES_WAITING_MAX};
use super::structured_output;
use super::{
    Backend, BackendEnforcement, BackendJob, BackendResult, EffectEnforcement, RuleEnforcement,
};
use crate::event::EventEmitter;
use repertoire_sandbox::process::{
    self, OutputFlow, ProcessInput, ProcessLimits, ProcessSpec, TerminationSettings,
};
use repertoire_text::clock::{Clock, SystemClock};

mod client;

use client::AcpClient;

/// A backend for any agent that speaks the Agent Client Protocol.
#[derive(Clone, Debug)]
pub struct AcpBackend {
    program: String,
    args: Vec<String>,
    grace: Duration,
}

impl AcpBackend {
    /// Creates a backend from a program and the arguments that make it speak the protocol.
    pub fn new(program: &str, args: Vec<String>) -> Self {
        AcpBackend { program: program.to_owned(), args, grace: ACP_GRACE }
    }

    /// Sets how long the process may take to exit after its result.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    async fn execute(&self, job: &BackendJob, events: &EventEmitter) -> BackendResult {
        let (say, said) = mpsc::channel(REPLIES_WAITING_MAX);
        let mut client = AcpClient::new(job);
        // A new channel has room, so this send cannot fail.
        let _ = say.try_send(client.initialize_request());
        let mut say = Some(say);
        let mut watch = ToolCallTimer::default();
        let ended = process::run_interactive(&self.spawn(job), &job.cancel, said, &mut |line| {
            let heard = client.handle_line(line);
            for kind in heard.events {
                events.emit(watch.add_duration(kind));
            }
            for reply in heard.replies {
                if say.as_ref().is_some_and(|say| say.try_send(reply).is_err()) {
                    client.fail_overrun();
                }
            }
            if !client.is_finished() {
                return OutputFlow::Continue;
            }
            // Closing stdin asks the agent to exit.
            say = None;
            OutputFlow::Finished
        })
        .await;
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return failed_result(error.to_string()),
        };
        warn_about_garbage(&self.program, client.garbage_lines(), events);
        let finished = client.finish(&ended, SystemClock.now_ms());
        structured_output::check_answer(prefix_error(finished, &self.program), job)
    }

    fn spawn(&self, job: &BackendJob) -> ProcessSpec {
        let spawn = ProcessSpec {
            program: self.program.clone(),
            args: self.args.clone(),
            dir: job.dir.clone(),
            environment: job.environment.clone(),
            stdin: ProcessInput::Text(String::new()),
            limits: ProcessLimits {
                idle: Some(job.idle),
                absolute: job.absolute,
                grace: self.grace,
                kept_bytes_max: KEPT_BYTES_MAX,
            },
            termination: TerminationSettings::default(),
        };
        process::with_supervisor(spawn, job.usage)
    }
}

impl Backend for AcpBackend {
    fn name(&self) -> &str {
        "acp"
    }

    fn enforcement(&self) -> BackendEnforcement {
        BackendEnforcement {
            rules: RuleEnforcement::Freedom,
            effects: EffectEnforcement::Nothing,
            sandbox: false,
            service: None,
        }
    }

    fn wants_forms(&self) -> bool {
        true
    }

    fn run<'a>(
        &'a self,
        job: &'a BackendJob,
        events: &'a EventEmitter,
    ) -> BoxFuture<'a, BackendResult> {
        Box::pin(self.execute(job, events))
    }
}
