//! The client side of the protocol, without the process: lines in, replies and events out.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use serde_json::{Map, Value, json};

use crate::backend::json_fields::{value_count, value_list, value_str};
use crate::backend::stream_tally::{self, StreamTally};
use crate::backend::structured_output;
use crate::backend::{AgentFreedom, BackendJob, BackendResult};
use crate::event::{AgentRunStatus, EventKind};
use repertoire_sandbox::process::{ProcessResult, ProcessStopReason};

const PROTOCOL: u64 = 1;
const METHOD_NOT_FOUND: i64 = -32601;
const NEEDS_LOGIN: i64 = -32000;

/// The response that the client is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AcpRequestState {
    Initialize,
    Session,
    Answer,
    Nothing,
}

/// The effects of one line from the agent.
#[derive(Debug, Default)]
pub(super) struct AcpReaction {
    pub(super) events: Vec<EventKind>,
    /// The replies, each a complete line.
    pub(super) replies: Vec<String>,
}

#[derive(Debug)]
pub(super) struct AcpClient {
    tally: StreamTally,
    waiting: AcpRequestState,
    last_id: u64,
    failure: Option<String>,
    text_is_old: bool,
    freedom: AgentFreedom,
    dir: Utf8PathBuf,
    prompt: String,
    session: Option<String>,
    servers: Value,
    model: Option<String>,
}

impl AcpClient {
    pub(super) fn new(job: &BackendJob) -> Self {
        let request = structured_output::schema_request(job);
        AcpClient {
            tally: StreamTally::new("acp"),
            waiting: AcpRequestState::Initialize,
            last_id: 0,
            failure: None,
            text_is_old: false,
            freedom: job.freedom,
            dir: job.dir.clone(),
            prompt: format!(
                "{}{request}",
                structured_output::prepend_system(job.new_system(), &job.prompt)
            ),
            session: job.session.clone(),
            servers: acp_servers(job.mcp_servers.as_ref()),
            model: job.model.clone(),
        }
    }

    /// Returns the first request, `initialize`.
    pub(super) fn initialize_request(&mut self) -> String {
        self.next_request(
            "initialize",
            &json!({
                "protocolVersion": PROTOCOL,
                "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false},
                "clientInfo": {"name": "repertoire", "version": env!("CARGO_PKG_VERSION")},
            }),
        )
    }

    /// Handles one line from the agent.
    pub(super) fn handle_line(&mut self, line: &[u8]) -> AcpReaction {
        let Some(message) = self.tally.parse_line(line) else { return AcpReaction::default() };
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some(method), Some(id)) => {
                self.handle_request(method, id, message.get("params").unwrap_or(&Value::Null))
            }
            (Some(method), None) => {
                self.handle_notification(method, message.get("params").unwrap_or(&Value::Null))
            }
            (None, _) => self.handle_response(&message),
        }
    }

    /// Returns true if no more messages are expected.
    pub(super) fn is_finished(&self) -> bool {
        self.waiting == AcpRequestState::Nothing
    }

    /// Fails the task because the agent sends requests faster than it reads the replies.
    pub(super) fn fail_overrun(&mut self) {
        self.fail("it asks more than it listens to the answers of".to_owned());
    }

    /// The number of lines that could not be parsed.
    pub(super) fn garbage_lines(&self) -> u64 {
        self.tally.garbage
    }

    /// Returns the result of the task. The response to the prompt decides it; the exit code after
    /// that is ignored.
    pub(super) fn finish(mut self, ended: &ProcessResult, now_ms: u64) -> BackendResult {
        if let Some(words) = self.failure.take() {
            self.tally.record_failure(&words, now_ms);
        }
        let stopped = ended.stopped.or(self.tally.verdict.map(|_| ProcessStopReason::AfterResult));
        self.tally.finish(&ProcessResult { stopped, ..ended.clone() }, now_ms)
    }

    fn next_request(&mut self, method: &str, params: &Value) -> String {
        self.last_id += 1;
        line_of(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}))
    }

    fn fail(&mut self, words: String) {
        self.failure = Some(words);
        self.waiting = AcpRequestState::Nothing;
    }

    fn handle_request(&mut self, method: &str, id: &Value, params: &Value) -> AcpReaction {
        if method == "session/request_permission" {
            return self.handle_permission_request(id, params);
        }
        let error =
            json!({"code": METHOD_NOT_FOUND, "message": format!("`{method}` is not offered")});
        let reply = line_of(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
        AcpReaction { events: vec![self.tally.other_event(method)], replies: vec![reply] }
    }

    fn handle_permission_request(&mut self, id: &Value, params: &Value) -> AcpReaction {
        let call = params.get("toolCall").unwrap_or(&Value::Null);
        let refusal = self.denial_reason(call);
        let wanted = if refusal.is_some() { "reject" } else { "allow" };
        let options = value_list(params, "options");
        let kind = |suffix| {
            options.iter().find(|option| value_str(option, "kind") == format!("{wanted}_{suffix}"))
        };
        // Prefer "once". If only "always" is offered, it applies to this session at most.
        let outcome = match kind("once").or_else(|| kind("always")) {
            Some(option) => json!({"outcome": "selected", "optionId": option.get("optionId")}),
            None => json!({"outcome": "cancelled"}),
        };
        let reply = line_of(&json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}}));
        let mut heard = AcpReaction { events: Vec::new(), replies: vec![reply] };
        // Some agents announce a tool call only through its permission request.
        let call_id = value_str(call, "toolCallId");
        if !self.tally.is_open(call_id) {
            self.text_is_old = true;
            heard.events.push(self.tally.call(call_id, &tool_of(call), &input_of(call)));
        }
        if let Some(reason) = refusal {
            let subject = stream_tally::truncate_chars(value_str(call, "title"), 200);
            heard.events.push(self.tally.record_denial(&tool_of(call), subject, &reason));
        }
        heard
    }

    /// Returns the reason why a call is denied. Calls for which the agent does not ask permission
    /// are never seen here.
    fn denial_reason(&self, call: &Value) -> Option<String> {
        let kind = value_str(call, "kind");
        match self.freedom {
            AgentFreedom::Full => None,
            AgentFreedom::ReadOnly if matches!(kind, "read" | "search" | "think") => None,
            AgentFreedom::ReadOnly => Some("this run may look only".to_owned()),
            AgentFreedom::Workspace => {
                let paths = value_list(call, "locations")
                    .iter()
                    .map(|place| Utf8Path::new(value_str(place, "path")));
                let mut outside = paths.filter(|path| !is_within(path, &self.dir));
                outside.next().map(|path| format!("`{path}` is outside of the run's folder"))
            }
        }
    }

    fn handle_response(&mut self, message: &Map<String, Value>) -> AcpReaction {
        if message.get("id").and_then(Value::as_u64) != Some(self.last_id) {
            return AcpReaction::default();
        }
        if let Some(error) = message.get("error") {
            self.fail(describe_error(error, self.waiting));
            return AcpReaction::default();
        }
        let result = message.get("result").unwrap_or(&Value::Null);
        match self.waiting {
            AcpRequestState::Initialize => self.handle_initialized(result),
            AcpRequestState::Session => self.handle_session_opened(result),
            AcpRequestState::Answer => self.handle_prompt_result(result),
            AcpRequestState::Nothing => AcpReaction::default(),
        }
    }

    fn handle_initialized(&mut self, result: &Value) -> AcpReaction {
        let theirs = value_count(result, "protocolVersion");
        if theirs != PROTOCOL {
            self.fail(format!("it speaks version {theirs} of the protocol; we speak {PROTOCOL}"));
            return AcpReaction::default();
        }
        let capabilities = result.get("agentCapabilities").unwrap_or(&Value::Null);
        let loads = capabilities.get("loadSession").and_then(Value::as_bool) == Some(true);
        let mut params = json!({"cwd": self.dir, "mcpServers": self.servers});
        self.waiting = AcpRequestState::Session;
        let method = match (&self.session, loads) {
            (None, _) => "session/new",
            (Some(session), true) => {
                params["sessionId"] = json!(session);
                "session/load"
            }
            (Some(_), false) => {
                self.fail("it cannot go on with a session".to_owned());
                return AcpReaction::default();
            }
        };
        AcpReaction { events: Vec::new(), replies: vec![self.next_request(method, &params)] }
    }

    fn handle_session_opened(&mut self, result: &Value) -> AcpReaction {
        self.tally.set_session(result.get("sessionId"));
        let session = self.tally.session.clone().or_else(|| self.session.clone());
        let Some(session) = session else {
            self.fail("it opened a session without an id".to_owned());
            return AcpReaction::default();
        };
        self.tally.session = Some(session.clone());
        self.waiting = AcpRequestState::Answer;
        self.tally.iterations = 1;
        let params =
            json!({"sessionId": session, "prompt": [{"type": "text", "text": self.prompt}]});
        let mut heard = AcpReaction {
            events: Vec::new(),
            replies: vec![self.next_request("session/prompt", &params)],
        };
        if let Some(model) = self.model.take() {
            let message =
                format!("the model `{model}` was not set: the protocol has no word for it");
            heard.events.push(EventKind::Warning { message });
        }
        heard
    }

    fn handle_prompt_result(&mut self, result: &Value) -> AcpReaction {
        self.waiting = AcpRequestState::Nothing;
        if let Some(used) = result.get("usage") {
            self.tally.usage.input_tokens = value_count(used, "inputTokens");
            self.tally.usage.output_tokens = value_count(used, "outputTokens");
            self.tally.usage.cache_read_tokens = value_count(used, "cachedReadTokens");
            self.tally.usage.cache_write_tokens = value_count(used, "cachedWriteTokens");
        }
        let reason = value_str(result, "stopReason");
        let (status, error) = match reason {
            "end_turn" => (AgentRunStatus::Done, None),
            "max_tokens" => {
                (AgentRunStatus::Limited, Some("the answer was cut at the model's limit"))
            }
            "max_turn_requests" => (AgentRunStatus::Limited, Some("it reached its most turns")),
            "refusal" => (AgentRunStatus::Failed, Some("the model refused")),
            "cancelled" => (AgentRunStatus::Cancelled, Some("it was stopped")),
            _ => (AgentRunStatus::Failed, Some("it ended for a reason that is not known")),
        };
        self.tally.verdict = Some(status);
        self.tally.error = error.map(str::to_owned);
        let events = if status == AgentRunStatus::Done {
            vec![self.tally.answer_event(reason)]
        } else {
            Vec::new()
        };
        AcpReaction { events, replies: Vec::new() }
    }

    fn handle_notification(&mut self, method: &str, params: &Value) -> AcpReaction {
        // While a session is loaded, the agent replays its history; don't report it again.
        if method != "session/update" || self.waiting != AcpRequestState::Answer {
            return AcpReaction::default();
        }
        let update = params.get("update").unwrap_or(&Value::Null);
        AcpReaction { events: self.handle_update(update), replies: Vec::new() }
    }

    fn handle_update(&mut self, update: &Value) -> Vec<EventKind> {
        let text =
            update.get("content").map(|content| value_str(content, "text")).unwrap_or_default();
        match value_str(update, "sessionUpdate") {
            "agent_message_chunk" => {
                // Only the text after the last tool call is the answer.
                if std::mem::take(&mut self.text_is_old) {
                    self.tally.text.clear();
                    self.tally.iterations = self.tally.iterations.saturating_add(1);
                }
                self.tally.add_text(text);
                vec![StreamTally::text_event(text)]
            }
            "agent_thought_chunk" => vec![StreamTally::thinking_event(text)],
            "user_message_chunk" => Vec::new(),
            "tool_call" => {
                self.text_is_old = true;
                let id = value_str(update, "toolCallId");
                let mut events = Vec::new();
                if !self.tally.is_open(id) {
                    events.push(self.tally.call(id, &tool_of(update), &input_of(update)));
                }
                events.extend(self.tool_result_event(update));
                events
            }
            "tool_call_update" => self.tool_result_event(update).into_iter().collect(),
            "plan" => {
                update.get("entries").and_then(stream_tally::parse_todos).into_iter().collect()
            }
            other => vec![self.tally.other_event(other)],
        }
    }

    /// Returns the result event if an update completes a tool call.
    fn tool_result_event(&mut self, update: &Value) -> Option<EventKind> {
        let is_error = match value_str(update, "status") {
            "completed" => false,
            "failed" => true,
            _ => return None,
        };
        let parts = value_list(update, "content").iter();
        let texts: Vec<&str> =
            parts.filter_map(|part| part.get("content")?.get("text")?.as_str()).collect();
        let id = value_str(update, "toolCallId");
        Some(self.tally.record_result(id, &tool_of(update), &texts.join("\n"), is_error))
    }
}

fn line_of(message: &Value) -> String {
    format!("{message}\n")
}

/// Returns the kind of a call as its tool name: the protocol has only kinds and titles.
fn tool_of(call: &Value) -> String {
    match value_str(call, "kind") {
        "" => "tool".to_owned(),
        kind => kind.to_owned(),
    }
}

/// Returns the input of a call, or its title if there is no input.
fn input_of(call: &Value) -> Value {
    match call.get("rawInput") {
        Some(Value::Object(input)) if !input.is_empty() => Value::Object(input.clone()),
        _ => json!({"description": value_str(call, "title")}),
    }
}

fn is_within(path: &Utf8Path, dir: &Utf8Path) -> bool {
    let climbs = path.components().any(|part| part == Utf8Component::ParentDir);
    !climbs && (path.is_relative() || path.starts_with(dir))
}

fn describe_error(error: &Value, waiting: AcpRequestState) -> String {
    let message = value_str(error, "message");
    let details = error.get("data").map(|data| match data {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    let words = match details {
        Some(details) => format!("{message} ({details})"),
        None => message.to_owned(),
    };
    match (error.get("code").and_then(Value::as_i64), waiting) {
        (Some(NEEDS_LOGIN), _) => format!("it asks for a login: {words}"),
        (_, AcpRequestState::Session) => format!("no session could be opened: {words}"),
        _ => words,
    }
}

/// Converts MCP server configurations to the protocol's format.
fn acp_servers(configured: Option<&Value>) -> Value {
    let servers = configured.and_then(Value::as_object);
    servers.into_iter().flatten().map(|(name, server)| acp_server(name, server)).collect()
}

fn acp_server(name: &str, server: &Value) -> Value {
    if server.get("url").is_some() {
        return json!({"type": "http", "name": name, "url": value_str(server, "url"), "headers": []});
    }
    let variables = server.get("env").and_then(Value::as_object);
    let variables: Vec<Value> = variables
        .into_iter()
        .flatten()
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    json!({"name": name, "command": value_str(server, "command"), "args": value_list(server, "args"), "env": variables})
}
