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

use super::group::Group;
use super::lines::Lines;
use super::{
    Captured, Ended, Flow, ProcessLimits, Spawn, Stdin, Stopped, Termination, TerminationRequest,
    TerminationScope,
};
use crate::limits::PIPE_CHUNK_BYTES;

/// The phase of a process on its way to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
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
enum Woken {
    Stdout(usize),
    Stderr(usize),
    Exited(Option<ExitStatus>),
    Cancelled,
    Due,
}

struct Supervision<'a> {
    phase: Phase,
    group: Group,
    lines: Lines<'a>,
    limits: ProcessLimits,
    termination: Termination,
    started: Instant,
    heard: Instant,
    status: Option<ExitStatus>,
    stopped: Option<Stopped>,
    stdout: Captured,
    stderr: Captured,
}

/// Supervises a child until it and its group have ended.
pub(super) async fn to_the_end(
    child: &mut Child,
    group: Group,
    lines: Lines<'_>,
    feeding: impl Future<Output = ()>,
    spawn: &Spawn,
    cancel: &CancellationToken,
    started: Instant,
) -> Ended {
    let mut watch = Supervision::new(group, lines, spawn, started);
    tokio::pin!(feeding);
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let (mut out_bytes, mut err_bytes) = (vec![0; PIPE_CHUNK_BYTES], vec![0; PIPE_CHUNK_BYTES]);
    let mut fed = false;
    while !watch.is_over(out.is_none() && err.is_none()) {
        let woken = tokio::select! {
            // Check deadlines first, so that a process that floods its output cannot starve them.
            biased;
            () = sleep_until(watch.due()) => Woken::Due,
            () = cancel.cancelled(), if watch.may_be_cancelled() => Woken::Cancelled,
            status = child.wait(), if !watch.has_exited() => Woken::Exited(status.ok()),
            () = &mut feeding, if !fed => { fed = true; continue }
            bytes = read(&mut out, &mut out_bytes), if out.is_some() => Woken::Stdout(bytes),
            bytes = read(&mut err, &mut err_bytes), if err.is_some() => Woken::Stderr(bytes),
        };
        watch.note(woken, &out_bytes, &err_bytes);
    }
    let (has_exited, signal) = (watch.has_exited(), watch.signal());
    watch.group.end_rest(has_exited, signal).await;
    watch.ended()
}

impl<'a> Supervision<'a> {
    fn new(group: Group, lines: Lines<'a>, spawn: &Spawn, started: Instant) -> Self {
        Supervision {
            phase: Phase::Running,
            group,
            lines,
            limits: spawn.limits,
            termination: spawn.termination,
            started,
            heard: started,
            status: None,
            stopped: None,
            stdout: Captured::default(),
            stderr: Captured::default(),
        }
    }

    fn is_over(&self, output_ended: bool) -> bool {
        let now = Instant::now();
        match self.phase {
            Phase::Draining { until } => output_ended || until <= now,
            Phase::Killed { until } => until <= now,
            Phase::Running | Phase::Finishing { .. } | Phase::Asked { .. } => false,
        }
    }

    fn may_be_cancelled(&self) -> bool {
        match self.phase {
            Phase::Running | Phase::Finishing { .. } => true,
            Phase::Draining { until } => Instant::now() < until,
            Phase::Asked { .. } | Phase::Killed { .. } => false,
        }
    }

    fn has_exited(&self) -> bool {
        matches!(self.phase, Phase::Draining { .. })
    }

    /// The time at which to act if no other event arrives before.
    fn due(&self) -> Instant {
        let end_of_life = self.started + self.limits.absolute;
        match self.phase {
            Phase::Running => {
                self.limits.idle.map_or(end_of_life, |idle| end_of_life.min(self.heard + idle))
            }
            Phase::Finishing { until } => until.min(end_of_life),
            Phase::Asked { until, terminate_at } => terminate_at.unwrap_or(until),
            Phase::Killed { until } | Phase::Draining { until } => until,
        }
    }

    fn note(&mut self, woken: Woken, out: &[u8], err: &[u8]) {
        match woken {
            Woken::Due => self.act(),
            Woken::Cancelled if self.has_exited() => {
                self.phase = Phase::Draining { until: Instant::now() };
            }
            Woken::Cancelled => self.ask(Stopped::Cancelled),
            Woken::Exited(status) => self.exited(status),
            Woken::Stdout(bytes) => self.heard_stdout(&out[..bytes]),
            Woken::Stderr(bytes) => {
                self.heard = Instant::now();
                self.stderr.keep(&err[..bytes], self.limits.kept_bytes_max);
            }
        }
    }

    fn heard_stdout(&mut self, bytes: &[u8]) {
        self.heard = Instant::now();
        self.stdout.keep(bytes, self.limits.kept_bytes_max);
        let flow = if bytes.is_empty() { self.lines.end() } else { self.lines.take(bytes) };
        if flow == Flow::Finished && self.phase == Phase::Running {
            self.phase = Phase::Finishing { until: self.in_grace() };
        }
    }

    fn act(&mut self) {
        let late = self.started + self.limits.absolute <= Instant::now();
        match self.phase {
            Phase::Running if late => self.ask(Stopped::Absolute),
            Phase::Running => self.ask(Stopped::Idle),
            Phase::Finishing { .. } => self.ask(Stopped::AfterResult),
            Phase::Asked { until, terminate_at: Some(_) } => {
                self.group.ask(Signal::TERM);
                self.phase = Phase::Asked { until, terminate_at: None };
            }
            Phase::Asked { terminate_at: None, .. } => {
                self.group.kill();
                let reap_time = in_future(self.reap_time());
                self.phase = Phase::Killed { until: self.in_grace().max(reap_time) };
            }
            // Nothing more can be done; the loop ends.
            Phase::Killed { .. } | Phase::Draining { .. } => {}
        }
    }

    fn ask(&mut self, why: Stopped) {
        self.stopped = Some(why);
        let (signal, terminate_at) = match self.termination.request {
            TerminationRequest::Terminate => (Signal::TERM, None),
            TerminationRequest::InterruptThenTerminate => {
                (Signal::INT, Some(in_future(self.limits.grace / 2)))
            }
        };
        self.group.ask(signal);
        self.phase = Phase::Asked { until: self.in_grace(), terminate_at };
    }

    fn exited(&mut self, status: Option<ExitStatus>) {
        // An error of `wait` means that the child was reaped elsewhere, so it has ended all the same.
        self.status = status;
        // A shell's background commands ignore `SIGINT` and would hold the output open.
        let is_asked = matches!(self.phase, Phase::Asked { .. });
        if is_asked && self.termination.scope == TerminationScope::ProcessGroup {
            self.group.ask(Signal::TERM);
        }
        self.group.reaped();
        let until = match self.phase {
            Phase::Asked { until, .. } => until,
            Phase::Killed { .. } => in_future(REAP_TIME_MIN),
            _ => self.in_grace(),
        };
        self.phase = Phase::Draining { until };
    }

    fn in_grace(&self) -> Instant {
        in_future(self.limits.grace)
    }

    /// How long a killed process has to disappear, even if the grace time is zero.
    fn reap_time(&self) -> Duration {
        match self.termination.scope {
            TerminationScope::ProcessGroup => REAP_TIME_MIN,
            TerminationScope::Descendants => SUPERVISOR_REAP_TIME_MIN,
        }
    }

    fn signal(&self) -> Option<i32> {
        self.status.and_then(|status| status.signal())
    }

    fn ended(self) -> Ended {
        let exceeded = self.group.exceeded(self.signal());
        Ended {
            code: self.status.and_then(|status| status.code()),
            signal: self.signal().filter(|_| exceeded.is_none()),
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
async fn read(stream: &mut Option<impl AsyncRead + Unpin>, bytes: &mut [u8]) -> usize {
    let Some(open) = stream else { return 0 };
    let count = open.read(bytes).await.unwrap_or(0);
    if count == 0 {
        *stream = None;
    }
    count
}

/// Writes the input of a process. Errors are ignored: the process need not read all of it.
pub(super) async fn feed(pipe: Option<tokio::process::ChildStdin>, stdin: &Stdin) {
    if let (Some(mut pipe), Stdin::Text(text)) = (pipe, stdin) {
        let _ = pipe.write_all(text.as_bytes()).await;
    }
}

/// Writes the input of a process, first the text in `stdin` and then each message as it arrives. Errors are ignored:
/// the process need not read all of it.
pub(super) async fn feed_as_said(
    pipe: Option<tokio::process::ChildStdin>,
    stdin: &Stdin,
    mut said: mpsc::Receiver<String>,
) {
    let (Some(mut pipe), Stdin::Text(first)) = (pipe, stdin) else { return };
    let mut next = Some(first.clone());
    while let Some(text) = next {
        if pipe.write_all(text.as_bytes()).await.is_err() || pipe.flush().await.is_err() {
            return;
        }
        next = said.recv().await;
    }
}
