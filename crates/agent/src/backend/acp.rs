//! A backend for any agent that speaks the Agent Client Protocol: JSON-RPC 2.0 over stdin and
//! stdout, one message per line.
//!
//! The client offers no capabilities except answering permission requests: the agent reads and
//! writes files with its own tools. The client is a pure state machine ([`Client`]), so timeouts
//! are enforced by the same supervision as for every other process.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::cli::{Stopwatch, failed, named, tell_garbage};
use super::limits::{ACP_GRACE, KEPT_BYTES_MAX, REPLIES_WAITING_MAX};
use super::structured;
use super::{Backend, Finished, Holds, Job, Keeps, Rules};
use crate::event::Events;
use repertoire_sandbox::process::{self, Flow, ProcessLimits, Spawn, Stdin, Termination};
use repertoire_text::clock::{Clock, SystemClock};

mod client;

use client::Client;

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

    async fn execute(&self, job: &Job, events: &Events) -> Finished {
        let (say, said) = mpsc::channel(REPLIES_WAITING_MAX);
        let mut client = Client::new(job);
        // A new channel has room, so this send cannot fail.
        let _ = say.try_send(client.begin());
        let mut say = Some(say);
        let mut watch = Stopwatch::default();
        let ended = process::converse(&self.spawn(job), &job.cancel, said, &mut |line| {
            let heard = client.line(line);
            for kind in heard.events {
                events.emit(watch.timed(kind));
            }
            for reply in heard.replies {
                if say.as_ref().is_some_and(|say| say.try_send(reply).is_err()) {
                    client.overrun();
                }
            }
            if !client.is_finished() {
                return Flow::Continue;
            }
            // Closing stdin asks the agent to exit.
            say = None;
            Flow::Finished
        })
        .await;
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return failed(error.to_string()),
        };
        tell_garbage(&self.program, client.garbage(), events);
        let finished = client.finish(&ended, SystemClock.now_ms());
        structured::checked(named(finished, &self.program), job)
    }

    fn spawn(&self, job: &Job) -> Spawn {
        let spawn = Spawn {
            program: self.program.clone(),
            args: self.args.clone(),
            dir: job.dir.clone(),
            environment: job.environment.clone(),
            stdin: Stdin::Text(String::new()),
            limits: ProcessLimits {
                idle: Some(job.idle),
                absolute: job.absolute,
                grace: self.grace,
                kept_bytes_max: KEPT_BYTES_MAX,
            },
            termination: Termination::default(),
        };
        process::supervised(spawn, job.usage)
    }
}

impl Backend for AcpBackend {
    fn name(&self) -> &str {
        "acp"
    }

    fn holds(&self) -> Holds {
        Holds { rules: Rules::Freedom, effects: Keeps::Nothing, sandbox: false, service: None }
    }

    fn wants_forms(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, job: &'a Job, events: &'a Events) -> BoxFuture<'a, Finished> {
        Box::pin(self.execute(job, events))
    }
}
