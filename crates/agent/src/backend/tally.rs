//! What a stream has said so far, in the words that all backends share, and how it is judged at the end.

use std::collections::BTreeMap;

use repertoire_model::Usage;
use repertoire_text::invisible;
use serde_json::{Map, Value};

use super::allowance;
use super::limits::{
    ANSWER_BYTES_MAX, ARGUMENT_CHARS_MAX, COMPLAINT_CHARS_MAX, EVENT_TEXT_BYTES_MAX,
    OPEN_CALLS_MAX, SUBJECT_CHARS_MAX, SUMMARY_CHARS_MAX,
};
use crate::backend::Finished;
use crate::event::{Denial, EventKind, Status, TodoItem, TodoStatus};
use repertoire_sandbox::process::{Ended, Stopped};

/// What a stream has said so far.
#[derive(Debug)]
pub(crate) struct Tally {
    backend: &'static str,
    /// How the stream says that it ended, if it has.
    pub(crate) verdict: Option<Status>,
    /// The answer.
    pub(crate) text: String,
    /// The answer as JSON.
    pub(crate) structured: Option<Value>,
    /// What went wrong, in the stream's words.
    pub(crate) error: Option<String>,
    /// What was used.
    pub(crate) usage: Usage,
    /// What it cost.
    pub(crate) cost_usd: Option<f64>,
    /// Turns.
    pub(crate) iterations: u32,
    /// Calls that were not allowed.
    pub(crate) denials: Vec<Denial>,
    /// The session.
    pub(crate) session: Option<String>,
    /// When an allowance is filled again.
    pub(crate) resets_at_ms: Option<u64>,
    /// Lines that were not understood.
    pub(crate) garbage: u64,
    open_calls: BTreeMap<String, String>,
}

impl Tally {
    /// Nothing was said yet.
    pub(crate) fn new(backend: &'static str) -> Self {
        Tally {
            backend,
            verdict: None,
            text: String::new(),
            structured: None,
            error: None,
            usage: Usage::default(),
            cost_usd: None,
            iterations: 0,
            denials: Vec::new(),
            session: None,
            resets_at_ms: None,
            garbage: 0,
            open_calls: BTreeMap::new(),
        }
    }

    /// One line as JSON. Blank lines are nothing; a line that is no object is counted.
    pub(crate) fn read(&mut self, line: &[u8]) -> Option<Map<String, Value>> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        match serde_json::from_slice(line) {
            Ok(Value::Object(object)) => Some(object),
            _ => {
                self.garbage += 1;
                None
            }
        }
    }

    /// An event that has no kind of ours.
    pub(crate) fn other(&self, name: &str) -> EventKind {
        EventKind::Other { backend: self.backend.to_owned(), name: cut(name, SUBJECT_CHARS_MAX) }
    }

    /// More text; it is not the answer yet.
    pub(crate) fn text_event(text: &str) -> EventKind {
        EventKind::Text { text: cut_bytes(text, EVENT_TEXT_BYTES_MAX) }
    }

    /// More thoughts.
    pub(crate) fn thinking_event(text: &str) -> EventKind {
        EventKind::Thinking { text: cut_bytes(text, EVENT_TEXT_BYTES_MAX) }
    }

    /// Adds to the answer, up to a limit.
    pub(crate) fn add_text(&mut self, text: &str) {
        let room = ANSWER_BYTES_MAX.saturating_sub(self.text.len());
        self.text.push_str(head(text, room));
    }

    /// The answer is this, up to a limit.
    pub(crate) fn set_text(&mut self, text: &str) {
        self.text = head(text, ANSWER_BYTES_MAX).to_owned();
    }

    /// Remembers the session, if it is one.
    pub(crate) fn set_session(&mut self, session: Option<&Value>) {
        if let Some(session) = session.and_then(Value::as_str).filter(|id| !id.is_empty()) {
            self.session = Some(cut(session, SUBJECT_CHARS_MAX));
        }
    }

    /// A tool is called.
    pub(crate) fn call(&mut self, id: &str, tool: &str, arguments: &Value) -> EventKind {
        if self.open_calls.len() < OPEN_CALLS_MAX {
            self.open_calls.insert(id.to_owned(), tool.to_owned());
        }
        EventKind::ToolCall {
            id: id.to_owned(),
            tool: tool.to_owned(),
            subject: subject(arguments),
            arguments: shortened(arguments),
        }
    }

    /// Whether a call waits for its answer.
    pub(crate) fn is_open(&self, id: &str) -> bool {
        self.open_calls.contains_key(id)
    }

    /// A tool answered. Its name is the one that it was called by, or `tool`.
    pub(crate) fn result(&mut self, id: &str, tool: &str, text: &str, is_error: bool) -> EventKind {
        let named = self.open_calls.remove(id);
        EventKind::ToolResult {
            id: id.to_owned(),
            tool: named.unwrap_or_else(|| tool.to_owned()),
            is_error,
            summary: cut(text, SUMMARY_CHARS_MAX),
            bytes: text.len(),
            duration_ms: 0,
            spilled: None,
        }
    }

    /// The answer is complete.
    pub(crate) fn answer(&self, stop: &str) -> EventKind {
        EventKind::Answer {
            text: self.text.clone(),
            stop: stop.to_owned(),
            usage: self.usage,
            cost_usd: self.cost_usd,
        }
    }

    /// A call was not allowed.
    pub(crate) fn deny(&mut self, tool: &str, subject: String, reason: &str) -> EventKind {
        let (tool, reason) = (tool.to_owned(), reason.to_owned());
        self.denials.push(Denial {
            tool: tool.clone(),
            subject: subject.clone(),
            reason: reason.clone(),
        });
        EventKind::Denied { tool, subject, reason }
    }

    /// The stream says that it failed, and why. An allowance that is used up is a pause.
    pub(crate) fn fail(&mut self, error: &str, now_ms: u64) {
        self.error = Some(cut(error, COMPLAINT_CHARS_MAX));
        self.verdict = Some(Status::Failed);
        if let Some(used) = allowance::used_up(error, now_ms) {
            self.verdict = Some(Status::Paused);
            self.resets_at_ms = used.resets_at_ms.or(self.resets_at_ms);
        }
    }

    /// Judges the whole: what the stream said, and how the process ended.
    pub(crate) fn finish(mut self, ended: &Ended, now_ms: u64) -> Finished {
        let (status, error) = self.judge(ended, now_ms);
        Finished {
            status,
            text: self.text,
            structured: self.structured,
            error,
            usage: self.usage,
            cost_usd: self.cost_usd,
            iterations: self.iterations,
            denials: self.denials,
            session: self.session,
            resets_at_ms: (status == Status::Paused).then_some(self.resets_at_ms).flatten(),
        }
    }

    fn judge(&mut self, ended: &Ended, now_ms: u64) -> (Status, Option<String>) {
        // What a CLI says after it was asked to end is no result: its work was cut off.
        if cut_off(ended) {
            return self.judge_without_result(ended, now_ms);
        }
        let clean = ended.code == Some(0) || ended.stopped.is_some();
        match self.verdict {
            Some(Status::Done) if clean => (Status::Done, None),
            Some(Status::Done) => {
                let message = format!("it reported success, but {}", exit_words(ended));
                (Status::Failed, Some(with_complaint(message, ended)))
            }
            Some(status) => {
                let message = self.error.take();
                (status, Some(message.unwrap_or_else(|| with_complaint(exit_words(ended), ended))))
            }
            None => self.judge_without_result(ended, now_ms),
        }
    }

    fn judge_without_result(&mut self, ended: &Ended, now_ms: u64) -> (Status, Option<String>) {
        let seconds = ended.duration.as_secs();
        let (status, message) = match ended.stopped {
            Some(Stopped::Cancelled) => (Status::Cancelled, "it was stopped".to_owned()),
            Some(Stopped::Idle) => (
                Status::Failed,
                format!("it said nothing for too long and was ended after {seconds} s"),
            ),
            Some(Stopped::Absolute) => {
                (Status::Limited, format!("it took too long and was ended after {seconds} s"))
            }
            Some(Stopped::Exceeded(exceeded)) => (Status::Limited, exceeded.to_string()),
            Some(Stopped::AfterResult) | None => (
                Status::Failed,
                self.error
                    .take()
                    .unwrap_or_else(|| format!("{} without a result", exit_words(ended))),
            ),
        };
        let message = with_complaint(message, ended);
        if status == Status::Failed
            && ended.stopped.is_none()
            && let Some(used) = allowance::used_up(&message, now_ms)
        {
            self.resets_at_ms = used.resets_at_ms.or(self.resets_at_ms);
            return (Status::Paused, Some(message));
        }
        (status, Some(message))
    }
}

/// Whether a program was ended before it had finished.
fn cut_off(ended: &Ended) -> bool {
    match ended.stopped {
        Some(Stopped::Idle | Stopped::Absolute | Stopped::Cancelled | Stopped::Exceeded(_)) => true,
        Some(Stopped::AfterResult) | None => false,
    }
}

/// The list of things to do, from a list of objects with a text and a status.
pub(crate) fn todos(list: &Value) -> Option<EventKind> {
    let items = list.as_array()?.iter().filter_map(todo).collect();
    Some(EventKind::Todos { items })
}

fn todo(item: &Value) -> Option<TodoItem> {
    let content = ["content", "text", "step"].iter().find_map(|key| item.get(key)?.as_str())?;
    let status = match item.get("status").and_then(Value::as_str) {
        Some("completed") => TodoStatus::Completed,
        Some("in_progress") => TodoStatus::InProgress,
        _ if item.get("completed").and_then(Value::as_bool) == Some(true) => TodoStatus::Completed,
        _ => TodoStatus::Pending,
    };
    Some(TodoItem { content: cut(content, SUMMARY_CHARS_MAX), status })
}

/// What a call is about, on one line: the first argument that usually says it, or all of them.
pub(crate) fn subject(arguments: &Value) -> String {
    const TELLING: &[&str] = &[
        "command",
        "cmd",
        "file_path",
        "filePath",
        "absolute_path",
        "path",
        "pattern",
        "query",
        "url",
        "skill",
        "description",
        "prompt",
    ];
    let telling = TELLING.iter().find_map(|key| arguments.get(key)?.as_str());
    let text = match (telling, arguments) {
        (Some(text), _) => text.to_owned(),
        (None, Value::Null) => String::new(),
        (None, Value::String(text)) => text.clone(),
        (None, other) => other.to_string(),
    };
    cut(&text.split_whitespace().collect::<Vec<_>>().join(" "), SUBJECT_CHARS_MAX)
}

/// The same value with long strings cut, so that an event stays small.
pub(crate) fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(cut(text, ARGUMENT_CHARS_MAX)),
        Value::Array(items) => Value::Array(items.iter().map(shortened).collect()),
        Value::Object(fields) => Value::Object(
            fields.iter().map(|(key, value)| (key.clone(), shortened(value))).collect(),
        ),
        other => other.clone(),
    }
}

/// The start of a text, with a mark if there was more.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// The start of a text in bytes, at the border of a character, with a mark if there was more.
fn cut_bytes(text: &str, bytes_max: usize) -> String {
    let start = head(text, bytes_max);
    if start.len() == text.len() { start.to_owned() } else { format!("{start}…") }
}

fn head(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// How a process ended, in words.
pub(crate) fn exit_words(ended: &Ended) -> String {
    match (ended.code, ended.signal) {
        (Some(code), _) => format!("it exited with code {code}"),
        (None, Some(signal)) => format!("signal {signal} ended it"),
        (None, None) => "it ended".to_owned(),
    }
}

/// A message with the end of what the process complained.
pub(crate) fn with_complaint(message: String, ended: &Ended) -> String {
    let complaint = String::from_utf8_lossy(&ended.stderr.bytes);
    let complaint = printable(complaint.trim());
    if complaint.is_empty() {
        return message;
    }
    let skipped = complaint.chars().count().saturating_sub(COMPLAINT_CHARS_MAX);
    let tail: String = complaint.chars().skip(skipped).collect();
    let mark = if skipped > 0 { "…" } else { "" };
    format!("{message}; it complained: {mark}{tail}")
}

/// A text without escape sequences and invisible characters.
fn printable(text: &str) -> String {
    let text = invisible::without_terminal_control(text);
    invisible::removed(&text).0.into_owned()
}
