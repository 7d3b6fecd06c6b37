//! Accumulates the output of a stream in the form that all backends share, and determines the final
//! status.

use std::collections::BTreeMap;

use repertoire_model::TokenUsage;
use repertoire_text::invisible;
use repertoire_text::layout::one_line;
use serde_json::{Map, Value};

use super::limits::{
    ANSWER_BYTES_MAX, ARGUMENT_CHARS_MAX, COMPLAINT_CHARS_MAX, EVENT_TEXT_BYTES_MAX,
    OPEN_CALLS_MAX, SUBJECT_CHARS_MAX, SUMMARY_CHARS_MAX,
};
use super::usage_limit;
use crate::backend::BackendResult;
use crate::event::{AgentRunStatus, EventKind, TodoItem, TodoStatus, ToolDenial};
use repertoire_sandbox::process::{ProcessResult, ProcessStopReason};

/// The output of a stream so far.
#[derive(Debug)]
pub(crate) struct StreamTally {
    backend: &'static str,
    /// The final status that the stream reported, if it has.
    pub(crate) verdict: Option<AgentRunStatus>,
    pub(crate) text: String,
    pub(crate) structured: Option<Value>,
    /// The error as the stream reported it.
    pub(crate) error: Option<String>,
    pub(crate) usage: TokenUsage,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) iterations: u32,
    pub(crate) denials: Vec<ToolDenial>,
    pub(crate) session: Option<String>,
    /// The time at which an exhausted usage limit resets.
    pub(crate) resets_at_ms: Option<u64>,
    /// The number of lines that could not be parsed.
    pub(crate) garbage: u64,
    open_calls: BTreeMap<String, String>,
}

impl StreamTally {
    pub(crate) fn new(backend: &'static str) -> Self {
        StreamTally {
            backend,
            verdict: None,
            text: String::new(),
            structured: None,
            error: None,
            usage: TokenUsage::default(),
            cost_usd: None,
            iterations: 0,
            denials: Vec::new(),
            session: None,
            resets_at_ms: None,
            garbage: 0,
            open_calls: BTreeMap::new(),
        }
    }

    /// Parses one line as JSON. Ignores blank lines, and counts lines that are not objects as
    /// garbage.
    pub(crate) fn parse_line(&mut self, line: &[u8]) -> Option<Map<String, Value>> {
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

    /// An event for which we have no kind of our own.
    pub(crate) fn other_event(&self, name: &str) -> EventKind {
        EventKind::Other {
            backend: self.backend.to_owned(),
            name: truncate_chars(name, SUBJECT_CHARS_MAX),
        }
    }

    /// A piece of text; not necessarily part of the answer.
    pub(crate) fn text_event(text: &str) -> EventKind {
        EventKind::Text { text: truncate_bytes(text, EVENT_TEXT_BYTES_MAX) }
    }

    pub(crate) fn thinking_event(text: &str) -> EventKind {
        EventKind::Thinking { text: truncate_bytes(text, EVENT_TEXT_BYTES_MAX) }
    }

    /// Appends to the answer, up to `ANSWER_BYTES_MAX`.
    pub(crate) fn add_text(&mut self, text: &str) {
        let room = ANSWER_BYTES_MAX.saturating_sub(self.text.len());
        self.text.push_str(prefix_within(text, room));
    }

    /// Replaces the answer, up to `ANSWER_BYTES_MAX`.
    pub(crate) fn set_text(&mut self, text: &str) {
        self.text = prefix_within(text, ANSWER_BYTES_MAX).to_owned();
    }

    /// Stores the session id, unless it is empty or not a string.
    pub(crate) fn set_session(&mut self, session: Option<&Value>) {
        if let Some(session) = session.and_then(Value::as_str).filter(|id| !id.is_empty()) {
            self.session = Some(truncate_chars(session, SUBJECT_CHARS_MAX));
        }
    }

    /// Records a tool call.
    pub(crate) fn call(&mut self, id: &str, tool: &str, arguments: &Value) -> EventKind {
        if self.open_calls.len() < OPEN_CALLS_MAX {
            self.open_calls.insert(id.to_owned(), tool.to_owned());
        }
        EventKind::ToolCall {
            id: id.to_owned(),
            tool: tool.to_owned(),
            subject: call_subject(arguments),
            arguments: shorten_strings(arguments),
        }
    }

    /// Returns true if a call has no result yet.
    pub(crate) fn is_open(&self, id: &str) -> bool {
        self.open_calls.contains_key(id)
    }

    /// Records a tool result. The tool's name is that of the call; `tool` if the call is unknown.
    pub(crate) fn record_result(
        &mut self,
        id: &str,
        tool: &str,
        text: &str,
        is_error: bool,
    ) -> EventKind {
        let named = self.open_calls.remove(id);
        EventKind::ToolResult {
            id: id.to_owned(),
            tool: named.unwrap_or_else(|| tool.to_owned()),
            is_error,
            summary: truncate_chars(text, SUMMARY_CHARS_MAX),
            bytes: text.len(),
            duration_ms: 0,
            spilled: None,
        }
    }

    /// The event for the complete answer.
    pub(crate) fn answer_event(&self, stop: &str) -> EventKind {
        EventKind::Answer {
            text: self.text.clone(),
            stop: stop.to_owned(),
            usage: self.usage,
            cost_usd: self.cost_usd,
        }
    }

    /// Records a denied call.
    pub(crate) fn record_denial(&mut self, tool: &str, subject: String, reason: &str) -> EventKind {
        let (tool, reason) = (tool.to_owned(), reason.to_owned());
        self.denials.push(ToolDenial {
            tool: tool.clone(),
            subject: subject.clone(),
            reason: reason.clone(),
        });
        EventKind::Denied { tool, subject, reason }
    }

    /// Records that the stream reported an error. An exhausted usage limit pauses the task instead
    /// of failing it.
    pub(crate) fn record_failure(&mut self, error: &str, now_ms: u64) {
        self.error = Some(truncate_chars(error, COMPLAINT_CHARS_MAX));
        self.verdict = Some(AgentRunStatus::Failed);
        if let Some(used) = usage_limit::detect_exhausted_limit(error, now_ms) {
            self.verdict = Some(AgentRunStatus::Paused);
            self.resets_at_ms = used.resets_at_ms.or(self.resets_at_ms);
        }
    }

    /// Determines the result from the stream and from the end of the process.
    pub(crate) fn finish(mut self, ended: &ProcessResult, now_ms: u64) -> BackendResult {
        let (status, error) = self.determine_status(ended, now_ms);
        BackendResult {
            status,
            text: self.text,
            structured: self.structured,
            error,
            usage: self.usage,
            cost_usd: self.cost_usd,
            iterations: self.iterations,
            denials: self.denials,
            session: self.session,
            resets_at_ms: (status == AgentRunStatus::Paused).then_some(self.resets_at_ms).flatten(),
        }
    }

    fn determine_status(
        &mut self,
        ended: &ProcessResult,
        now_ms: u64,
    ) -> (AgentRunStatus, Option<String>) {
        // Output after a termination request is not a result: the work was interrupted.
        if was_interrupted(ended) {
            return self.status_without_result(ended, now_ms);
        }
        let clean = ended.code == Some(0) || ended.stopped.is_some();
        match self.verdict {
            Some(AgentRunStatus::Done) if clean => (AgentRunStatus::Done, None),
            Some(AgentRunStatus::Done) => {
                let message = format!("it reported success, but {}", describe_exit(ended));
                (AgentRunStatus::Failed, Some(append_stderr(message, ended)))
            }
            Some(status) => {
                let message = self.error.take();
                (
                    status,
                    Some(message.unwrap_or_else(|| append_stderr(describe_exit(ended), ended))),
                )
            }
            None => self.status_without_result(ended, now_ms),
        }
    }

    fn status_without_result(
        &mut self,
        ended: &ProcessResult,
        now_ms: u64,
    ) -> (AgentRunStatus, Option<String>) {
        let seconds = ended.duration.as_secs();
        let (status, message) = match ended.stopped {
            Some(ProcessStopReason::Cancelled) => {
                (AgentRunStatus::Cancelled, "it was stopped".to_owned())
            }
            Some(ProcessStopReason::Idle) => (
                AgentRunStatus::Failed,
                format!("it said nothing for too long and was ended after {seconds} s"),
            ),
            Some(ProcessStopReason::Absolute) => (
                AgentRunStatus::Limited,
                format!("it took too long and was ended after {seconds} s"),
            ),
            Some(ProcessStopReason::Exceeded(exceeded)) => {
                (AgentRunStatus::Limited, exceeded.to_string())
            }
            Some(ProcessStopReason::AfterResult) | None => (
                AgentRunStatus::Failed,
                self.error
                    .take()
                    .unwrap_or_else(|| format!("{} without a result", describe_exit(ended))),
            ),
        };
        let message = append_stderr(message, ended);
        if status == AgentRunStatus::Failed
            && ended.stopped.is_none()
            && let Some(used) = usage_limit::detect_exhausted_limit(&message, now_ms)
        {
            self.resets_at_ms = used.resets_at_ms.or(self.resets_at_ms);
            return (AgentRunStatus::Paused, Some(message));
        }
        (status, Some(message))
    }
}

/// Returns true if the process was terminated before it had finished.
fn was_interrupted(ended: &ProcessResult) -> bool {
    match ended.stopped {
        Some(
            ProcessStopReason::Idle
            | ProcessStopReason::Absolute
            | ProcessStopReason::Cancelled
            | ProcessStopReason::Exceeded(_),
        ) => true,
        Some(ProcessStopReason::AfterResult) | None => false,
    }
}

/// Parses a to-do list from an array of objects with a text and a status.
pub(crate) fn parse_todos(list: &Value) -> Option<EventKind> {
    let items = list.as_array()?.iter().filter_map(parse_todo).collect();
    Some(EventKind::Todos { items })
}

fn parse_todo(item: &Value) -> Option<TodoItem> {
    let content = ["content", "text", "step"].iter().find_map(|key| item.get(key)?.as_str())?;
    let status = match item.get("status").and_then(Value::as_str) {
        Some("completed") => TodoStatus::Completed,
        Some("in_progress") => TodoStatus::InProgress,
        _ if item.get("completed").and_then(Value::as_bool) == Some(true) => TodoStatus::Completed,
        _ => TodoStatus::Pending,
    };
    Some(TodoItem { content: truncate_chars(content, SUMMARY_CHARS_MAX), status })
}

/// Describes a call on one line: by its most descriptive argument, or by all arguments.
pub(crate) fn call_subject(arguments: &Value) -> String {
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
    truncate_chars(&one_line(&text), SUBJECT_CHARS_MAX)
}

/// Truncates long strings in a value, so that events stay small.
pub(crate) fn shorten_strings(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(truncate_chars(text, ARGUMENT_CHARS_MAX)),
        Value::Array(items) => Value::Array(items.iter().map(shorten_strings).collect()),
        Value::Object(fields) => Value::Object(
            fields.iter().map(|(key, value)| (key.clone(), shorten_strings(value))).collect(),
        ),
        other => other.clone(),
    }
}

/// Truncates a text, and marks that with an ellipsis.
pub(crate) fn truncate_chars(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Truncates a text to a number of bytes, at a character boundary, and marks that with an ellipsis.
fn truncate_bytes(text: &str, bytes_max: usize) -> String {
    let start = prefix_within(text, bytes_max);
    if start.len() == text.len() { start.to_owned() } else { format!("{start}…") }
}

fn prefix_within(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// Describes the exit of a process.
pub(crate) fn describe_exit(ended: &ProcessResult) -> String {
    match (ended.code, ended.signal) {
        (Some(code), _) => format!("it exited with code {code}"),
        (None, Some(signal)) => format!("signal {signal} ended it"),
        (None, None) => "it ended".to_owned(),
    }
}

/// Appends the end of the process's stderr to a message.
pub(crate) fn append_stderr(message: String, ended: &ProcessResult) -> String {
    let complaint = String::from_utf8_lossy(&ended.stderr.bytes);
    let complaint = strip_control(complaint.trim());
    if complaint.is_empty() {
        return message;
    }
    let skipped = complaint.chars().count().saturating_sub(COMPLAINT_CHARS_MAX);
    let tail: String = complaint.chars().skip(skipped).collect();
    let mark = if skipped > 0 { "…" } else { "" };
    format!("{message}; it complained: {mark}{tail}")
}

/// Removes escape sequences and invisible characters.
fn strip_control(text: &str) -> String {
    let text = invisible::without_terminal_control(text);
    invisible::removed(&text).0.into_owned()
}
