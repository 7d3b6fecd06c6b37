//! Attends a foreground run: prints its events as they arrive, puts permission questions to the
//! user, and handles signals. The first Ctrl-C cancels the run cleanly; the second one abandons it
//! at once.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use repertoire_agent::event::EventSink;
use repertoire_agent::permission::{Answer, PermissionAsker, Question};
use repertoire_agent::{AgentEvent, RunOptions};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::failure::CliFailure;
use crate::permission_question::{self, PermissionPrompt};
use crate::run_display::RunDisplay;
use crate::ui::TerminalUi;

/// Maximum number of bytes read from `/proc/self/status`.
#[cfg(unix)]
const STATUS_BYTES_MAX: u64 = 64 * 1024;

/// The receiving ends of a foreground run: its events and its permission questions.
pub(crate) struct ForegroundRun {
    events: UnboundedReceiver<AgentEvent>,
    questions: UnboundedReceiver<PendingToolQuestion>,
    cancel: CancellationToken,
}

/// The result of attending a run.
pub(crate) enum ForegroundOutcome<T> {
    Ended(T),
    /// The user pressed Ctrl-C a second time, and the run was dropped.
    Dropped,
}

/// A permission question with the channel for its answer.
struct PendingToolQuestion {
    tool: String,
    subject: String,
    reason: String,
    answer: oneshot::Sender<Answer>,
}

/// Calls that the user has answered with "always", as (tool, subject). An entry allows only that
/// exact call, for as long as this value lives.
#[derive(Clone, Debug, Default)]
pub(crate) struct AlwaysAllowedCalls(Arc<Mutex<BTreeSet<(String, String)>>>);

impl AlwaysAllowedCalls {
    fn is_allowed(&self, question: &Question) -> bool {
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.contains(&(question.tool.clone(), question.subject.clone()))
    }

    fn allow_call(&self, question: &Question) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.insert((question.tool.clone(), question.subject.clone()));
    }
}

/// Forwards permission questions to the task that attends the run.
struct QuestionForwarder {
    asked: UnboundedSender<PendingToolQuestion>,
    allowed: AlwaysAllowedCalls,
}

impl PermissionAsker for QuestionForwarder {
    fn ask<'a>(&'a self, question: &'a Question) -> futures_util::future::BoxFuture<'a, Answer> {
        Box::pin(async move {
            if self.allowed.is_allowed(question) {
                return Answer::Always;
            }
            let (answer, answered) = oneshot::channel();
            let asked = PendingToolQuestion {
                tool: question.tool.clone(),
                subject: question.subject.clone(),
                reason: question.reason.clone(),
                answer,
            };
            let _ = self.asked.send(asked);
            // The receiver is gone when the run is being stopped.
            let answer = answered.await;
            let answer = answer.unwrap_or_else(|_| Answer::No("nobody answered".to_owned()));
            if answer == Answer::Always {
                self.allowed.allow_call(question);
            }
            answer
        })
    }
}

impl ForegroundRun {
    /// Connects a run's options to a new `Attended`. Questions are asked only if a user is present.
    pub(crate) fn connect(
        options: &mut RunOptions,
        person: UserPresence,
        allowed: &AlwaysAllowedCalls,
    ) -> Self {
        let (sender, events) = unbounded_channel();
        let sink: EventSink = Arc::new(move |event: &AgentEvent| {
            let _ = sender.send(event.clone());
        });
        options.on_event = Some(sink);
        let (sender, questions) = unbounded_channel();
        if person == UserPresence::There {
            let allowed = allowed.clone();
            options.asker = Some(Arc::new(QuestionForwarder { asked: sender, allowed }));
        }
        let cancel = CancellationToken::new();
        options.cancel = cancel.clone();
        ForegroundRun { events, questions, cancel }
    }

    /// Attends a run until it ends or is abandoned.
    pub(crate) async fn attend<T>(
        mut self,
        work: impl Future<Output = T>,
        live: &mut RunDisplay,
        lines: &mut StdinLines,
        ui: &mut TerminalUi<'_>,
    ) -> Result<ForegroundOutcome<T>, CliFailure> {
        let mut work = pin!(work);
        let mut signals = CliSignalListener::new()?;
        let mut broken: Option<std::io::Error> = None;
        let mut asked: Option<PendingToolQuestion> = None;
        let mut hung_up = false;
        let mut seconds = tokio::time::interval(Duration::from_secs(1));
        seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let result = loop {
            tokio::select! {
                // Print pending events before handling questions, signals or the end of the run.
                biased;
                Some(event) = self.events.recv() => {
                    if let Err(error) = live.show_event(&event, ui) {
                        broken.get_or_insert(error);
                        self.cancel.cancel();
                    }
                }
                Some(question) = self.questions.recv(), if asked.is_none() => {
                    match print_question(&question, live, ui) {
                        Ok(()) => asked = Some(question),
                        Err(error) => {
                            broken.get_or_insert(error);
                            self.cancel.cancel();
                        }
                    }
                }
                line = lines.next(), if asked.is_some() => {
                    if let Some(question) = asked.take() {
                        answer_question(question, line);
                    }
                }
                signal = signals.next() => {
                    // A closing terminal sends several SIGHUPs; don't count them as a repeated
                    // Ctrl-C.
                    hung_up |= signal == CliSignal::HangUp;
                    if self.cancel.is_cancelled() && signal != CliSignal::HangUp {
                        return Ok(ForegroundOutcome::Dropped);
                    }
                    self.cancel.cancel();
                    asked = None;
                    // After a hang-up nothing can be printed, but the run is still stopped and
                    // saved.
                    if !hung_up {
                        let told = live.print_note("stopping; Ctrl-C again leaves at once", ui);
                        broken = broken.or(told.err());
                    }
                }
                done = &mut work => break done,
                _ = seconds.tick(), if asked.is_none() => {
                    let told = live.tick(ui);
                    broken = broken.or(told.err());
                }
            }
        };
        while let Ok(event) = self.events.try_recv() {
            if broken.is_none() && !hung_up {
                live.show_event(&event, ui)?;
            }
        }
        match broken {
            Some(error) if !hung_up => Err(error.into()),
            _ => Ok(ForegroundOutcome::Ended(result)),
        }
    }
}

fn print_question(
    question: &PendingToolQuestion,
    live: &mut RunDisplay,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    live.close_line(ui)?;
    let PendingToolQuestion { tool, subject, reason, .. } = question;
    let arguments = live.arguments_of_call(tool, subject);
    permission_question::print_question(&PermissionPrompt { tool, subject, reason, arguments }, ui)
}

fn answer_question(question: PendingToolQuestion, line: Option<String>) {
    let word = line.as_deref().map(|line| line.trim().to_lowercase());
    let answer = match word.as_deref() {
        Some("y" | "yes") => Answer::Yes,
        Some("a" | "always") => Answer::Always,
        Some("n" | "no" | "") => Answer::No("the user said no".to_owned()),
        None => Answer::No("there is nobody to ask".to_owned()),
        // Any other text is an instruction: refuse the call and pass the text on to the agent.
        Some(_) => {
            let words = line.unwrap_or_default();
            Answer::No(format!("the user said no: {}", words.trim()))
        }
    };
    let _ = question.answer.send(answer);
}

/// Tells if a user is available to answer questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UserPresence {
    /// A user sits at a terminal.
    There,
    Absent,
}

/// Lines of standard input, read on a separate thread that starts with the first call of
/// [`Lines::next`].
pub(crate) struct StdinLines {
    lines: Option<UnboundedReceiver<String>>,
}

impl StdinLines {
    /// Creates the reader without reading anything yet.
    pub(crate) fn new() -> Self {
        StdinLines { lines: None }
    }

    /// Returns the next line, or `None` at the end of the input.
    pub(crate) async fn next(&mut self) -> Option<String> {
        self.lines.get_or_insert_with(read_lines).recv().await
    }
}

fn read_lines() -> UnboundedReceiver<String> {
    let (sender, lines) = unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// A signal that asks the process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CliSignal {
    /// SIGINT (Ctrl-C).
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal was closed.
    HangUp,
}

/// A listener for SIGINT, SIGTERM and SIGHUP (only Ctrl-C on Windows).
pub(crate) struct CliSignalListener {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    /// `None` if the process was started to outlive its terminal.
    #[cfg(unix)]
    hang_up: Option<tokio::signal::unix::Signal>,
}

impl CliSignalListener {
    #[cfg(unix)]
    pub(crate) fn new() -> Result<Self, CliFailure> {
        use tokio::signal::unix::SignalKind;
        Ok(CliSignalListener {
            interrupt: listen_for(SignalKind::interrupt())?,
            terminate: listen_for(SignalKind::terminate())?,
            hang_up: (!ignores_hang_up()).then(|| listen_for(SignalKind::hangup())).transpose()?,
        })
    }

    #[cfg(unix)]
    pub(crate) async fn next(&mut self) -> CliSignal {
        let hang_up = async {
            match &mut self.hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => CliSignal::Interrupt,
            _ = self.terminate.recv() => CliSignal::Terminate,
            _ = hang_up => CliSignal::HangUp,
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn new() -> Result<Self, CliFailure> {
        Ok(CliSignalListener {})
    }

    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) -> CliSignal {
        let _ = tokio::signal::ctrl_c().await;
        CliSignal::Interrupt
    }
}

#[cfg(unix)]
fn listen_for(
    kind: tokio::signal::unix::SignalKind,
) -> Result<tokio::signal::unix::Signal, CliFailure> {
    tokio::signal::unix::signal(kind)
        .map_err(|error| CliFailure::cannot_run(format!("signals cannot be listened to: {error}")))
}

/// Returns true if the process was started with SIGHUP ignored, as `nohup` does. Listening for the
/// signal would undo that.
#[cfg(unix)]
fn ignores_hang_up() -> bool {
    static IGNORED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    // Cached, because installing a handler clears the bit in `SigIgn`.
    *IGNORED.get_or_init(|| {
        let status = repertoire_text::fs::read_text("/proc/self/status".into(), STATUS_BYTES_MAX);
        let status = status.unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        // Bit 0 stands for signal 1, which is SIGHUP.
        mask.is_some_and(|mask| mask & 1 == 1)
    })
}

#[cfg(test)]
mod tests {
    use repertoire_agent::tool::ToolAccess;

    use super::*;

    #[tokio::test]
    async fn what_is_always_allowed_is_not_asked_again_in_the_next_run() {
        let allowed = AlwaysAllowedCalls::default();
        let question = |subject: &str| Question {
            tool: "bash".to_owned(),
            access: ToolAccess::Execute,
            subject: subject.to_owned(),
            reason: "it needs permission".to_owned(),
        };
        let (sender, mut questions) = unbounded_channel();
        let first = QuestionForwarder { asked: sender, allowed: allowed.clone() };
        let person = async {
            let question = questions.recv().await.unwrap();
            answer_question(question, Some("a".to_owned()));
        };
        let make = question("make");
        let (given, ()) = tokio::join!(first.ask(&make), person);
        assert_eq!(given, Answer::Always);
        // The receiver is dropped, so every question that is not already allowed is refused.
        let (sender, _) = unbounded_channel();
        let next = QuestionForwarder { asked: sender, allowed };
        assert_eq!(next.ask(&make).await, Answer::Always);
        assert!(matches!(next.ask(&question("make install")).await, Answer::No(_)));
    }
}
