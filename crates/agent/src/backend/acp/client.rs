//! The client side of the protocol, without the process: lines in, replies and events out.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use serde_json::{Map, Value, json};

use crate::backend::fields::{count, list, str_of};
use crate::backend::structured;
use crate::backend::tally::{self, Tally};
use crate::backend::{Finished, Freedom, Job};
use crate::event::{EventKind, Status};
use repertoire_sandbox::process::{Ended, Stopped};

const PROTOCOL: u64 = 1;
const METHOD_NOT_FOUND: i64 = -32601;
const NEEDS_LOGIN: i64 = -32000;

/// The response that the client is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Initialize,
    Session,
    Answer,
    Nothing,
}

/// The effects of one line from the agent.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) events: Vec<EventKind>,
    /// The replies, each a complete line.
    pub(super) replies: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Client {
    tally: Tally,
    waiting: Waiting,
    last_id: u64,
    failure: Option<String>,
    text_is_old: bool,
    freedom: Freedom,
    dir: Utf8PathBuf,
    prompt: String,
    session: Option<String>,
    servers: Value,
    model: Option<String>,
}

impl Client {
    pub(super) fn new(job: &Job) -> Self {
        let request = structured::request(job);
        Client {
            tally: Tally::new("acp"),
            waiting: Waiting::Initialize,
            last_id: 0,
            failure: None,
            text_is_old: false,
            freedom: job.freedom,
            dir: job.dir.clone(),
            prompt: format!("{}{request}", structured::with_system(job.new_system(), &job.prompt)),
            session: job.session.clone(),
            servers: servers(job.mcp_servers.as_ref()),
            model: job.model.clone(),
        }
    }

    /// Returns the first request, `initialize`.
    pub(super) fn begin(&mut self) -> String {
        self.request(
            "initialize",
            &json!({
                "protocolVersion": PROTOCOL,
                "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false},
                "clientInfo": {"name": "repertoire", "version": env!("CARGO_PKG_VERSION")},
            }),
        )
    }

    /// Handles one line from the agent.
    pub(super) fn line(&mut self, line: &[u8]) -> Heard {
        let Some(message) = self.tally.read(line) else { return Heard::default() };
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some(method), Some(id)) => {
                self.asked(method, id, message.get("params").unwrap_or(&Value::Null))
            }
            (Some(method), None) => {
                self.told(method, message.get("params").unwrap_or(&Value::Null))
            }
            (None, _) => self.answered(&message),
        }
    }

    /// Returns true if no more messages are expected.
    pub(super) fn is_finished(&self) -> bool {
        self.waiting == Waiting::Nothing
    }

    /// Fails the task because the agent sends requests faster than it reads the replies.
    pub(super) fn overrun(&mut self) {
        self.fail("it asks more than it listens to the answers of".to_owned());
    }

    /// The number of lines that could not be parsed.
    pub(super) fn garbage(&self) -> u64 {
        self.tally.garbage
    }

    /// Returns the result of the task. The response to the prompt decides it; the exit code after
    /// that is ignored.
    pub(super) fn finish(mut self, ended: &Ended, now_ms: u64) -> Finished {
        if let Some(words) = self.failure.take() {
            self.tally.fail(&words, now_ms);
        }
        let stopped = ended.stopped.or(self.tally.verdict.map(|_| Stopped::AfterResult));
        self.tally.finish(&Ended { stopped, ..ended.clone() }, now_ms)
    }

    fn request(&mut self, method: &str, params: &Value) -> String {
        self.last_id += 1;
        line_of(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}))
    }

    fn fail(&mut self, words: String) {
        self.failure = Some(words);
        self.waiting = Waiting::Nothing;
    }

    fn asked(&mut self, method: &str, id: &Value, params: &Value) -> Heard {
        if method == "session/request_permission" {
            return self.asked_permission(id, params);
        }
        let error =
            json!({"code": METHOD_NOT_FOUND, "message": format!("`{method}` is not offered")});
        let reply = line_of(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
        Heard { events: vec![self.tally.other(method)], replies: vec![reply] }
    }

    fn asked_permission(&mut self, id: &Value, params: &Value) -> Heard {
        let call = params.get("toolCall").unwrap_or(&Value::Null);
        let refusal = self.refusal(call);
        let wanted = if refusal.is_some() { "reject" } else { "allow" };
        let options = list(params, "options");
        let kind = |suffix| {
            options.iter().find(|option| str_of(option, "kind") == format!("{wanted}_{suffix}"))
        };
        // Prefer "once". If only "always" is offered, it applies to this session at most.
        let outcome = match kind("once").or_else(|| kind("always")) {
            Some(option) => json!({"outcome": "selected", "optionId": option.get("optionId")}),
            None => json!({"outcome": "cancelled"}),
        };
        let reply = line_of(&json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}}));
        let mut heard = Heard { events: Vec::new(), replies: vec![reply] };
        // Some agents announce a tool call only through its permission request.
        let call_id = str_of(call, "toolCallId");
        if !self.tally.is_open(call_id) {
            self.text_is_old = true;
            heard.events.push(self.tally.call(call_id, &tool_of(call), &input_of(call)));
        }
        if let Some(reason) = refusal {
            let subject = tally::cut(str_of(call, "title"), 200);
            heard.events.push(self.tally.deny(&tool_of(call), subject, &reason));
        }
        heard
    }

    /// Returns the reason why a call is denied. Calls for which the agent does not ask permission
    /// are never seen here.
    fn refusal(&self, call: &Value) -> Option<String> {
        let kind = str_of(call, "kind");
        match self.freedom {
            Freedom::Full => None,
            Freedom::ReadOnly if matches!(kind, "read" | "search" | "think") => None,
            Freedom::ReadOnly => Some("this run may look only".to_owned()),
            Freedom::Workspace => {
                let paths = list(call, "locations")
                    .iter()
                    .map(|place| Utf8Path::new(str_of(place, "path")));
                let mut outside = paths.filter(|path| !is_within(path, &self.dir));
                outside.next().map(|path| format!("`{path}` is outside of the run's folder"))
            }
        }
    }

    fn answered(&mut self, message: &Map<String, Value>) -> Heard {
        if message.get("id").and_then(Value::as_u64) != Some(self.last_id) {
            return Heard::default();
        }
        if let Some(error) = message.get("error") {
            self.fail(error_words(error, self.waiting));
            return Heard::default();
        }
        let result = message.get("result").unwrap_or(&Value::Null);
        match self.waiting {
            Waiting::Initialize => self.initialized(result),
            Waiting::Session => self.opened(result),
            Waiting::Answer => self.done(result),
            Waiting::Nothing => Heard::default(),
        }
    }

    fn initialized(&mut self, result: &Value) -> Heard {
        let theirs = count(result, "protocolVersion");
        if theirs != PROTOCOL {
            self.fail(format!("it speaks version {theirs} of the protocol; we speak {PROTOCOL}"));
            return Heard::default();
        }
        let capabilities = result.get("agentCapabilities").unwrap_or(&Value::Null);
        let loads = capabilities.get("loadSession").and_then(Value::as_bool) == Some(true);
        let mut params = json!({"cwd": self.dir, "mcpServers": self.servers});
        self.waiting = Waiting::Session;
        let method = match (&self.session, loads) {
            (None, _) => "session/new",
            (Some(session), true) => {
                params["sessionId"] = json!(session);
                "session/load"
            }
            (Some(_), false) => {
                self.fail("it cannot go on with a session".to_owned());
                return Heard::default();
            }
        };
        Heard { events: Vec::new(), replies: vec![self.request(method, &params)] }
    }

    fn opened(&mut self, result: &Value) -> Heard {
        self.tally.set_session(result.get("sessionId"));
        let session = self.tally.session.clone().or_else(|| self.session.clone());
        let Some(session) = session else {
            self.fail("it opened a session without an id".to_owned());
            return Heard::default();
        };
        self.tally.session = Some(session.clone());
        self.waiting = Waiting::Answer;
        self.tally.iterations = 1;
        let params =
            json!({"sessionId": session, "prompt": [{"type": "text", "text": self.prompt}]});
        let mut heard =
            Heard { events: Vec::new(), replies: vec![self.request("session/prompt", &params)] };
        if let Some(model) = self.model.take() {
            let message =
                format!("the model `{model}` was not set: the protocol has no word for it");
            heard.events.push(EventKind::Warning { message });
        }
        heard
    }

    fn done(&mut self, result: &Value) -> Heard {
        self.waiting = Waiting::Nothing;
        if let Some(used) = result.get("usage") {
            self.tally.usage.input_tokens = count(used, "inputTokens");
            self.tally.usage.output_tokens = count(used, "outputTokens");
            self.tally.usage.cache_read_tokens = count(used, "cachedReadTokens");
            self.tally.usage.cache_write_tokens = count(used, "cachedWriteTokens");
        }
        let reason = str_of(result, "stopReason");
        let (status, error) = match reason {
            "end_turn" => (Status::Done, None),
            "max_tokens" => (Status::Limited, Some("the answer was cut at the model's limit")),
            "max_turn_requests" => (Status::Limited, Some("it reached its most turns")),
            "refusal" => (Status::Failed, Some("the model refused")),
            "cancelled" => (Status::Cancelled, Some("it was stopped")),
            _ => (Status::Failed, Some("it ended for a reason that is not known")),
        };
        self.tally.verdict = Some(status);
        self.tally.error = error.map(str::to_owned);
        let events =
            if status == Status::Done { vec![self.tally.answer(reason)] } else { Vec::new() };
        Heard { events, replies: Vec::new() }
    }

    fn told(&mut self, method: &str, params: &Value) -> Heard {
        // While a session is loaded, the agent replays its history; don't report it again.
        if method != "session/update" || self.waiting != Waiting::Answer {
            return Heard::default();
        }
        let update = params.get("update").unwrap_or(&Value::Null);
        Heard { events: self.update(update), replies: Vec::new() }
    }

    fn update(&mut self, update: &Value) -> Vec<EventKind> {
        let text = update.get("content").map(|content| str_of(content, "text")).unwrap_or_default();
        match str_of(update, "sessionUpdate") {
            "agent_message_chunk" => {
                // Only the text after the last tool call is the answer.
                if std::mem::take(&mut self.text_is_old) {
                    self.tally.text.clear();
                    self.tally.iterations = self.tally.iterations.saturating_add(1);
                }
                self.tally.add_text(text);
                vec![Tally::text_event(text)]
            }
            "agent_thought_chunk" => vec![Tally::thinking_event(text)],
            "user_message_chunk" => Vec::new(),
            "tool_call" => {
                self.text_is_old = true;
                let id = str_of(update, "toolCallId");
                let mut events = Vec::new();
                if !self.tally.is_open(id) {
                    events.push(self.tally.call(id, &tool_of(update), &input_of(update)));
                }
                events.extend(self.outcome(update));
                events
            }
            "tool_call_update" => self.outcome(update).into_iter().collect(),
            "plan" => update.get("entries").and_then(tally::todos).into_iter().collect(),
            other => vec![self.tally.other(other)],
        }
    }

    /// Returns the result event if an update completes a tool call.
    fn outcome(&mut self, update: &Value) -> Option<EventKind> {
        let is_error = match str_of(update, "status") {
            "completed" => false,
            "failed" => true,
            _ => return None,
        };
        let parts = list(update, "content").iter();
        let texts: Vec<&str> =
            parts.filter_map(|part| part.get("content")?.get("text")?.as_str()).collect();
        let id = str_of(update, "toolCallId");
        Some(self.tally.result(id, &tool_of(update), &texts.join("\n"), is_error))
    }
}

fn line_of(message: &Value) -> String {
    format!("{message}\n")
}

/// Returns the kind of a call as its tool name: the protocol has only kinds and titles.
fn tool_of(call: &Value) -> String {
    match str_of(call, "kind") {
        "" => "tool".to_owned(),
        kind => kind.to_owned(),
    }
}

/// Returns the input of a call, or its title if there is no input.
fn input_of(call: &Value) -> Value {
    match call.get("rawInput") {
        Some(Value::Object(input)) if !input.is_empty() => Value::Object(input.clone()),
        _ => json!({"description": str_of(call, "title")}),
    }
}

fn is_within(path: &Utf8Path, dir: &Utf8Path) -> bool {
    let climbs = path.components().any(|part| part == Utf8Component::ParentDir);
    !climbs && (path.is_relative() || path.starts_with(dir))
}

fn error_words(error: &Value, waiting: Waiting) -> String {
    let message = str_of(error, "message");
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
        (_, Waiting::Session) => format!("no session could be opened: {words}"),
        _ => words,
    }
}

/// Converts MCP server configurations to the protocol's format.
fn servers(configured: Option<&Value>) -> Value {
    let servers = configured.and_then(Value::as_object);
    servers.into_iter().flatten().map(|(name, server)| in_protocol(name, server)).collect()
}

fn in_protocol(name: &str, server: &Value) -> Value {
    if server.get("url").is_some() {
        return json!({"type": "http", "name": name, "url": str_of(server, "url"), "headers": []});
    }
    let variables = server.get("env").and_then(Value::as_object);
    let variables: Vec<Value> = variables
        .into_iter()
        .flatten()
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    json!({"name": name, "command": str_of(server, "command"), "args": list(server, "args"), "env": variables})
}
