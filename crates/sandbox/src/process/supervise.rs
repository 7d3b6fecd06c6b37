//! The supervision loop: reads output, waits for the child and ends it.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::group::SupervisedGroup;
use super::lines::LineSplitter;
use super::{
    CapturedStream, OutputFlow, ProcessInput, ProcessLimits, ProcessResult, ProcessSpec,
    ProcessStopReason, TerminationRequest, TerminationScope, TerminationSettings,
};
use crate::limits::PIPE_CHUNK_BYTES;

/// The phase of a process on its way to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SupervisionPhase {
    Running,
    /// The result is complete. Until then, the process may exit by itself.
    Finishing {
        until: Instant,
    },
    /// The process was asked to end, and has until then to comply. If the first request was an interrupt,
    /// `terminate_at` is the time of the second one.
    Asked {
        until: Instant,
        terminate_at: Option<Instant>,
    },
    /// The process was killed. Until then, the system may take to clean it up.
    Killed {
        until: Instant,
    },
    /// The process has ended. Until then, other processes may hold its output open.
    Draining {
        until: Instant,
    },
}

/// The event that woke the loop.
enum SupervisionEvent {
    Stdout(usize),
    Stderr(usize),
    Exited(Option<ExitStatus>),
    Cancelled,
    Due,
}

struct ProcessSupervision<'a> {
    phase: SupervisionPhase,
    group: SupervisedGroup,
    lines: LineSplitter<'a>,
    limits: ProcessLimits,
    termination: TerminationSettings,
    started: Instant,
    heard: Instant,
    status: Option<ExitStatus>,
    stopped: Option<ProcessStopReason>,
    stdout: CapturedStream,
    stderr: CapturedStream,
}

/// Supervises a child until it and its group have ended.
pub(super) async fn supervise_to_end(
    child: &mut Child,
    group: SupervisedGroup,
    lines: LineSplitter<'_>,
    feeding: impl Future<Output = ()>,
    spawn: &ProcessSpec,
    cancel: &CancellationToken,
    started: Instant,
) -> ProcessResult {
    let mut watch = ProcessSupervision::new(group, lines, spawn, started);
    tokio::pin!(feeding);
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let (mut out_bytes, mut err_bytes) = (vec![0; PIPE_CHUNK_BYTES], vec![0; PIPE_CHUNK_BYTES]);
    let mut fed = false;
    while !watch.is_over(out.is_none() && err.is_none()) {
        let woken = tokio::select! {
            // Check deadlines first, so that a process that floods its output cannot starve them.
            biased;
            () = sleep_until(watch.next_deadline()) => SupervisionEvent::Due,
            () = cancel.cancelled(), if watch.may_be_cancelled() => SupervisionEvent::Cancelled,
            status = child.wait(), if !watch.has_exited() => SupervisionEvent::Exited(status.ok()),
            () = &mut feeding, if !fed => { fed = true; continue }
            bytes = read_stream(&mut out, &mut out_bytes), if out.is_some() => SupervisionEvent::Stdout(bytes),
            bytes = read_stream(&mut err, &mut err_bytes), if err.is_some() => SupervisionEvent::Stderr(bytes),
        };
        watch.handle_event(woken, &out_bytes, &err_bytes);
    }
    let (has_exited, signal) = (watch.has_exited(), watch.exit_signal());
    watch.group.end_rest(has_exited, signal).await;
    watch.into_result()
}

impl<'a> ProcessSupervision<'a> {
    fn new(
        group: SupervisedGroup,
        lines: LineSplitter<'a>,
        spawn: &ProcessSpec,
        started: Instant,
    ) -> Self {
        ProcessSupervision {
            phase: SupervisionPhase::Running,
            group,
            lines,
            limits: spawn.limits,
            termination: spawn.termination,
            started,
            heard: started,
            status: None,
            stopped: None,
            stdout: CapturedStream::default(),
            stderr: CapturedStream::default(),
        }
    }

    fn is_over(&self, output_ended: bool) -> bool {
        let now = Instant::now();
        match self.phase {
            SupervisionPhase::Draining { until } => output_ended || until <= now,
            SupervisionPhase::Killed { until } => until <= now,
            SupervisionPhase::Running
            | SupervisionPhase::Finishing { .. }
            | SupervisionPhase::Asked { .. } => false,
        }
    }

    fn may_be_cancelled(&self) -> bool {
        match self.phase {
            SupervisionPhase::Running | SupervisionPhase::Finishing { .. } => true,
            SupervisionPhase::Draining { until } => Instant::now() < until,
            SupervisionPhase::Asked { .. } | SupervisionPhase::Killed { .. } => false,
        }
    }

    fn has_exited(&self) -> bool {
        matches!(self.phase, SupervisionPhase::Draining { .. })
    }

    /// The time at which to act if no other event arrives before.
    fn next_deadline(&self) -> Instant {
        let end_of_life = self.started + self.limits.absolute;
        match self.phase {
            SupervisionPhase::Running => {
                self.limits.idle.map_or(end_of_life, |idle| end_of_life.min(self.heard + idle))
            }
            SupervisionPhase::Finishing { until } => until.min(end_of_life),
            SupervisionPhase::Asked { until, terminate_at } => terminate_at.unwrap_or(until),
            SupervisionPhase::Killed { until } | SupervisionPhase::Draining { until } => until,
        }
    }

    fn handle_event(&mut self, woken: SupervisionEvent, out: &[u8], err: &[u8]) {
        match woken {
            SupervisionEvent::Due => self.handle_deadline(),
            SupervisionEvent::Cancelled if self.has_exited() => {
                self.phase = SupervisionPhase::Draining { until: Instant::now() };
            }
            SupervisionEvent::Cancelled => self.request_end(ProcessStopReason::Cancelled),
            SupervisionEvent::Exited(status) => self.handle_exit(status),
            SupervisionEvent::Stdout(bytes) => self.handle_stdout(&out[..bytes]),
            SupervisionEvent::Stderr(bytes) => {
                self.heard = Instant::now();
                self.stderr.keep_bytes(&err[..bytes], self.limits.kept_bytes_max);
            }
        }
    }

    fn handle_stdout(&mut self, bytes: &[u8]) {
        self.heard = Instant::now();
        self.stdout.keep_bytes(bytes, self.limits.kept_bytes_max);
        let flow = if bytes.is_empty() {
            self.lines.finish_output()
        } else {
            self.lines.push_bytes(bytes)
        };
        if flow == OutputFlow::Finished && self.phase == SupervisionPhase::Running {
            self.phase = SupervisionPhase::Finishing { until: self.grace_deadline() };
        }
    }

    fn handle_deadline(&mut self) {
        let late = self.started + self.limits.absolute <= Instant::now();
        match self.phase {
            SupervisionPhase::Running if late => self.request_end(ProcessStopReason::Absolute),
            SupervisionPhase::Running => self.request_end(ProcessStopReason::Idle),
            SupervisionPhase::Finishing { .. } => self.request_end(ProcessStopReason::AfterResult),
            SupervisionPhase::Asked { until, terminate_at: Some(_) } => {
                self.group.request_end(Signal::TERM);
                self.phase = SupervisionPhase::Asked { until, terminate_at: None };
            }
            SupervisionPhase::Asked { terminate_at: None, .. } => {
                self.group.kill_members();
                let reap_time = in_future(self.reap_time());
                self.phase =
                    SupervisionPhase::Killed { until: self.grace_deadline().max(reap_time) };
            }
            // Nothing more can be done; the loop ends.
            SupervisionPhase::Killed { .. } | SupervisionPhase::Draining { .. } => {}
        }
    }

    fn request_end(&mut self, why: ProcessStopReason) {
        self.stopped = Some(why);
        let (signal, terminate_at) = match self.termination.request {
            TerminationRequest::Terminate => (Signal::TERM, None),
            TerminationRequest::InterruptThenTerminate => {
                (Signal::INT, Some(in_future(self.limits.grace / 2)))
            }
        };
        self.group.request_end(signal);
        self.phase = SupervisionPhase::Asked { until: self.grace_deadline(), terminate_at };
    }

    fn handle_exit(&mut self, status: Option<ExitStatus>) {
        // An error of `wait` means that the child was reaped elsewhere, so it has ended all the same.
        self.status = status;
        // A shell's background commands ignore `SIGINT` and would hold the output open.
        let is_asked = matches!(self.phase, SupervisionPhase::Asked { .. });
        if is_asked && self.termination.scope == TerminationScope::ProcessGroup {
            self.group.request_end(Signal::TERM);
        }
        self.group.mark_reaped();
        let until = match self.phase {
            SupervisionPhase::Asked { until, .. } => until,
            SupervisionPhase::Killed { .. } => in_future(REAP_TIME_MIN),
            _ => self.grace_deadline(),
        };
        self.phase = SupervisionPhase::Draining { until };
    }

    fn grace_deadline(&self) -> Instant {
        in_future(self.limits.grace)
    }

    /// How long a killed process has to disappear, even if the grace time is zero.
    fn reap_time(&self) -> Duration {
        match self.termination.scope {
            TerminationScope::ProcessGroup => REAP_TIME_MIN,
            TerminationScope::Descendants => SUPERVISOR_REAP_TIME_MIN,
        }
    }

    fn exit_signal(&self) -> Option<i32> {
        self.status.and_then(|status| status.signal())
    }

    fn into_result(self) -> ProcessResult {
        let exceeded = self.group.exceeded_limit(self.exit_signal());
        ProcessResult {
            code: self.status.and_then(|status| status.code()),
            signal: self.exit_signal().filter(|_| exceeded.is_none()),
            stopped: exceeded.or(self.stopped),
            stdout: self.stdout,
            stderr: self.stderr,
            duration: self.started.elapsed(),
        }
    }
}

/// The minimum time that a killed process has to disappear.
const REAP_TIME_MIN: Duration = Duration::from_millis(200);
/// The minimum time that a supervisor has to kill all its descendants.
const SUPERVISOR_REAP_TIME_MIN: Duration = Duration::from_secs(5);

fn in_future(time: Duration) -> Instant {
    Instant::now() + time
}

/// Reads once. Returns 0 and drops the stream if it has ended or failed.
async fn read_stream(stream: &mut Option<impl AsyncRead + Unpin>, bytes: &mut [u8]) -> usize {
    let Some(open) = stream else { return 0 };
    let count = open.read(bytes).await.unwrap_or(0);
    if count == 0 {
        *stream = None;
    }
    count
}

/// Writes the input of a process. Errors are ignored: the process need not read all of it.
pub(super) async fn feed_stdin(pipe: Option<tokio::process::ChildStdin>, stdin: &ProcessInput) {
    if let (Some(mut pipe), ProcessInput::Text(text)) = (pipe, stdin) {
        let _ = pipe.write_all(text.as_bytes()).await;
    }
}

/// Writes the input of a process, first the text in `stdin` and then each message as it arrives. Errors are ignored:
/// the process need not read all of it.
pub(super) async fn feed_messages(
    pipe: Option<tokio::process::ChildStdin>,
    stdin: &ProcessInput,
    mut said: mpsc::Receiver<String>,
) {
    let (Some(mut pipe), ProcessInput::Text(first)) = (pipe, stdin) else { return };
    let mut next = Some(first.clone());
    while let Some(text) = next {
        if pipe.write_all(text.as_bytes()).await.is_err() || pipe.flush().await.is_err() {
            return;
        }
        next = said.recv().await;
    }
}
