//! Staying with a run: its events are shown as they come, questions are put to the person, Ctrl-C ends it cleanly, and a
//! second Ctrl-C at once.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use repertoire_agent::event::Sink;
use repertoire_agent::permission::{Answer, Asker, Question};
use repertoire_agent::{Event, RunOptions};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::live::Live;
use crate::question::{self, Wanted};
use crate::ui::Ui;

/// Largest `/proc/self/status` that is read.
#[cfg(unix)]
const STATUS_BYTES_MAX: u64 = 64 * 1024;

/// The ends of a run that we hold while it goes on.
pub(crate) struct Attended {
    events: UnboundedReceiver<Event>,
    questions: UnboundedReceiver<Asked>,
    cancel: CancellationToken,
}

/// How a run was left.
pub(crate) enum Left<T> {
    /// It ended.
    Ended(T),
    /// It was dropped at the second Ctrl-C.
    Dropped,
}

/// A question that waits for its answer.
struct Asked {
    tool: String,
    subject: String,
    reason: String,
    answer: oneshot::Sender<Answer>,
}

/// Calls that a person has allowed for good: for as long as this is kept, and exactly these.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allowed(Arc<Mutex<BTreeSet<(String, String)>>>);

impl Allowed {
    fn has(&self, question: &Question) -> bool {
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.contains(&(question.tool.clone(), question.subject.clone()))
    }

    fn add(&self, question: &Question) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.insert((question.tool.clone(), question.subject.clone()));
    }
}

/// Puts questions to whoever attends the run.
struct Messenger {
    asked: UnboundedSender<Asked>,
    allowed: Allowed,
}

impl Asker for Messenger {
    fn ask<'a>(&'a self, question: &'a Question) -> futures_util::future::BoxFuture<'a, Answer> {
        Box::pin(async move {
            if self.allowed.has(question) {
                return Answer::Always;
            }
            let (answer, answered) = oneshot::channel();
            let asked = Asked {
                tool: question.tool.clone(),
                subject: question.subject.clone(),
                reason: question.reason.clone(),
                answer,
            };
            let _ = self.asked.send(asked);
            // Nobody listens any more: the run is being stopped.
            let answer = answered.await;
            let answer = answer.unwrap_or_else(|_| Answer::No("nobody answered".to_owned()));
            if answer == Answer::Always {
                self.allowed.add(question);
            }
            answer
        })
    }
}

impl Attended {
    /// Prepares a run to be attended. Only where there is a person are questions asked.
    pub(crate) fn of(options: &mut RunOptions, person: Person, allowed: &Allowed) -> Self {
        let (sender, events) = unbounded_channel();
        let sink: Sink = Arc::new(move |event: &Event| {
            let _ = sender.send(event.clone());
        });
        options.on_event = Some(sink);
        let (sender, questions) = unbounded_channel();
        if person == Person::There {
            let allowed = allowed.clone();
            options.asker = Some(Arc::new(Messenger { asked: sender, allowed }));
        }
        let cancel = CancellationToken::new();
        options.cancel = cancel.clone();
        Attended { events, questions, cancel }
    }

    /// Stays with a run until it ends.
    pub(crate) async fn stay<T>(
        mut self,
        work: impl Future<Output = T>,
        live: &mut Live,
        lines: &mut Lines,
        ui: &mut Ui<'_>,
    ) -> Result<Left<T>, Failure> {
        let mut work = pin!(work);
        let mut signals = Signals::new()?;
        let mut broken: Option<std::io::Error> = None;
        let mut asked: Option<Asked> = None;
        let mut hung_up = false;
        let mut seconds = tokio::time::interval(Duration::from_secs(1));
        seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let result = loop {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => {
                    if let Err(error) = live.show(&event, ui) {
                        broken.get_or_insert(error);
                        self.cancel.cancel();
                    }
                }
                Some(question) = self.questions.recv(), if asked.is_none() => {
                    match put(&question, live, ui) {
                        Ok(()) => asked = Some(question),
                        Err(error) => {
                            broken.get_or_insert(error);
                            self.cancel.cancel();
                        }
                    }
                }
                line = lines.next(), if asked.is_some() => {
                    if let Some(question) = asked.take() {
                        answer(question, line);
                    }
                }
                signal = signals.next() => {
                    // A terminal that closes says so more than once, which is no impatience.
                    hung_up |= signal == Signal::HangUp;
                    if self.cancel.is_cancelled() && signal != Signal::HangUp {
                        return Ok(Left::Dropped);
                    }
                    self.cancel.cancel();
                    asked = None;
                    // With nobody to tell, the run is ended and kept all the same.
                    if !hung_up {
                        let told = live.note("stopping; Ctrl-C again leaves at once", ui);
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
                live.show(&event, ui)?;
            }
        }
        match broken {
            Some(error) if !hung_up => Err(error.into()),
            _ => Ok(Left::Ended(result)),
        }
    }
}

fn put(question: &Asked, live: &mut Live, ui: &mut Ui<'_>) -> std::io::Result<()> {
    live.close(ui)?;
    let Asked { tool, subject, reason, .. } = question;
    let arguments = live.arguments(tool, subject);
    question::put(&Wanted { tool, subject, reason, arguments }, ui)
}

fn answer(question: Asked, line: Option<String>) {
    let word = line.as_deref().map(|line| line.trim().to_lowercase());
    let answer = match word.as_deref() {
        Some("y" | "yes") => Answer::Yes,
        Some("a" | "always") => Answer::Always,
        Some("n" | "no" | "") => Answer::No("the user said no".to_owned()),
        None => Answer::No("there is nobody to ask".to_owned()),
        // Whatever else is typed is what to do instead.
        Some(_) => {
            let words = line.unwrap_or_default();
            Answer::No(format!("the user said no: {}", words.trim()))
        }
    };
    let _ = question.answer.send(answer);
}

/// Whether there is somebody to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Person {
    /// At a terminal.
    There,
    /// Nobody.
    Absent,
}

/// Lines of standard input, read on a thread of its own once the first is wanted.
pub(crate) struct Lines {
    lines: Option<UnboundedReceiver<String>>,
}

impl Lines {
    /// Nothing is read yet.
    pub(crate) fn new() -> Self {
        Lines { lines: None }
    }

    /// The next line; `None` at the end.
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

/// What a process is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// Somebody asks it to end.
    Terminate,
    /// Its terminal is gone.
    HangUp,
}

/// Ctrl-C, being asked to end, and a terminal that goes.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    /// None for a process that is to outlive its terminal.
    #[cfg(unix)]
    hang_up: Option<tokio::signal::unix::Signal>,
}

impl Signals {
    #[cfg(unix)]
    pub(crate) fn new() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| {
            signal(kind).map_err(|error| {
                Failure::cannot_run(format!("signals cannot be listened to: {error}"))
            })
        };
        Ok(Signals {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: (!ignores_hang_up()).then(|| listen(SignalKind::hangup())).transpose()?,
        })
    }

    #[cfg(unix)]
    pub(crate) async fn next(&mut self) -> Signal {
        let hang_up = async {
            match &mut self.hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
            _ = hang_up => Signal::HangUp,
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn new() -> Result<Self, Failure> {
        Ok(Signals {})
    }

    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) -> Signal {
        let _ = tokio::signal::ctrl_c().await;
        Signal::Interrupt
    }
}

/// Whether the process was started to outlive its terminal, as `nohup` does. Listening would undo that.
#[cfg(unix)]
fn ignores_hang_up() -> bool {
    static IGNORED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    // Once we listen, the answer would be another.
    *IGNORED.get_or_init(|| {
        let status = repertoire_text::fs::read_text("/proc/self/status".into(), STATUS_BYTES_MAX);
        let status = status.unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        // Signals are counted from 1, and this is the first.
        mask.is_some_and(|mask| mask & 1 == 1)
    })
}

#[cfg(test)]
mod tests {
    use repertoire_agent::tool::Access;

    use super::*;

    #[tokio::test]
    async fn what_is_always_allowed_is_not_asked_again_in_the_next_run() {
        let allowed = Allowed::default();
        let question = |subject: &str| Question {
            tool: "bash".to_owned(),
            access: Access::Execute,
            subject: subject.to_owned(),
            reason: "it needs permission".to_owned(),
        };
        let (sender, mut questions) = unbounded_channel();
        let first = Messenger { asked: sender, allowed: allowed.clone() };
        let person = async {
            let question = questions.recv().await.unwrap();
            answer(question, Some("a".to_owned()));
        };
        let make = question("make");
        let (given, ()) = tokio::join!(first.ask(&make), person);
        assert_eq!(given, Answer::Always);
        // Nobody listens any more, so whatever is asked is refused.
        let (sender, _) = unbounded_channel();
        let next = Messenger { asked: sender, allowed };
        assert_eq!(next.ask(&make).await, Answer::Always);
        assert!(matches!(next.ask(&question("make install")).await, Answer::No(_)));
    }
}
