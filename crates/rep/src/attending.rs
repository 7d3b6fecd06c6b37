//! Staying with a run: its events are shown as they come, questions are put to the person, Ctrl-C ends it cleanly, and a
//! second Ctrl-C at once.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use repertoire_agent::event::Sink;
use repertoire_agent::permission::{Answer, Asker, Question};
use repertoire_agent::{Event, RunOptions};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::live::Live;
use crate::ui::{self, Ui};

/// Most characters of what is asked for that are shown.
const SUBJECT_CHARS_MAX: usize = 10_000;

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

/// Puts questions to whoever attends the run.
struct Messenger(UnboundedSender<Asked>);

impl Asker for Messenger {
    fn ask<'a>(&'a self, question: &'a Question) -> futures_util::future::BoxFuture<'a, Answer> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let asked = Asked {
                tool: question.tool.clone(),
                subject: question.subject.clone(),
                reason: question.reason.clone(),
                answer,
            };
            let _ = self.0.send(asked);
            // Nobody listens any more: the run is being stopped.
            answered.await.unwrap_or_else(|_| Answer::No("nobody answered".to_owned()))
        })
    }
}

impl Attended {
    /// Prepares a run to be attended. Only where there is a person are questions asked.
    pub(crate) fn of(options: &mut RunOptions, person: Person) -> Self {
        let (sender, events) = unbounded_channel();
        let sink: Sink = Arc::new(move |event: &Event| {
            let _ = sender.send(event.clone());
        });
        options.on_event = Some(sink);
        let (sender, questions) = unbounded_channel();
        if person == Person::There {
            options.asker = Some(Arc::new(Messenger(sender)));
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
                    live.close(ui)?;
                    put(&question, ui)?;
                    asked = Some(question);
                }
                line = lines.next(), if asked.is_some() => {
                    if let Some(question) = asked.take() {
                        answer(question, line);
                    }
                }
                () = signals.next() => {
                    if self.cancel.is_cancelled() {
                        return Ok(Left::Dropped);
                    }
                    self.cancel.cancel();
                    asked = None;
                    live.note("stopping; Ctrl-C again leaves at once", ui)?;
                }
                done = &mut work => break done,
            }
        };
        while let Ok(event) = self.events.try_recv() {
            live.show(&event, ui)?;
        }
        match broken {
            Some(error) => Err(error.into()),
            None => Ok(Left::Ended(result)),
        }
    }
}

fn put(question: &Asked, ui: &mut Ui<'_>) -> std::io::Result<()> {
    let subject = whole(&question.subject);
    let what = ui.paint_err(ui::STRONG, format!("Allow {}: {subject}?", question.tool));
    let why = ui.paint_err(ui::FAINT, format!("({})", ui::fit(&question.reason, 60)));
    write!(ui.err, "{what} {why} [y]es / [a]lways / [n]o ")?;
    ui.err.flush()
}

/// All that is asked for, line by line: what is cut or joined can hide what matters.
fn whole(subject: &str) -> String {
    let shown = ui::printable_lines(subject);
    let shown = match shown.contains('\n') {
        true => format!("\n{shown}\n"),
        false => shown,
    };
    match shown.char_indices().nth(SUBJECT_CHARS_MAX) {
        None => shown,
        Some((at, _)) => {
            let more = shown[at..].chars().count();
            format!(
                "{}\n[{more} more characters are not shown; say no if you cannot tell]\n",
                &shown[..at]
            )
        }
    }
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

/// Ctrl-C, and being asked to end.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
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
        })
    }

    #[cfg(unix)]
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn new() -> Result<Self, Failure> {
        Ok(Signals {})
    }

    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_shown_whole() {
        let long = format!("ls {}; rm x", "a".repeat(500));
        assert_eq!(whole(&long), long);
        assert_eq!(whole("ls # fine\nrm x"), "\nls # fine\nrm x\n");
        assert!(!whole("ls\u{1b}[2K").contains('\u{1b}'));
        assert!(whole(&"a".repeat(20_000)).contains("10000 more characters are not shown"));
    }
}
