//! Codex: `codex exec --json`.
//!
//! The prompt is passed on stdin, which is then closed: with an open stdin, `codex exec` waits
//! forever. The job's freedom selects Codex's own sandbox, which enforces the limits.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_model::Service;
use serde_json::{Map, Value};

use super::cli::{Asked, Cli, Parser};
use super::fields::{count, field, str_of};
use super::limits::{ARGUMENT_BYTES_MAX, CLI_CONFIG_BYTES_MAX};
use super::structured;
use super::tally::{self, Tally};
use crate::backend::{Finished, Freedom, Holds, Job, Keeps, Rules};
use crate::effect::{Effect, EffectSet};
use crate::event::{EventKind, Status};
use repertoire_sandbox::process::Ended;

pub(crate) const CLI: Cli = Cli {
    name: "codex",
    program: "codex",
    holds: Holds {
        rules: Rules::Freedom,
        effects: Keeps::CommandSandbox,
        sandbox: true,
        service: Some(Service::OpenAi),
    },
    wants_forms: false,
    ask,
    parser: || Box::new(Stream::new()),
};

fn ask(job: &Job, extra: &[String], private: &Utf8Path) -> Asked {
    let short = job.system.len() <= ARGUMENT_BYTES_MAX;
    let system_in_prompt = if short { "" } else { job.new_system() };
    let mut asked = Asked::with_prompt(structured::with_system(system_in_prompt, &job.prompt));
    asked.args(["exec", "--json", "--skip-git-repo-check", "-s", sandbox_of(job)]);
    limit(job, &mut asked);
    if short && !job.system.is_empty() {
        asked.args(["-c", &format!("developer_instructions={}", toml_text(&job.system))]);
    }
    if job.ignore_project_rules {
        asked.args(["-c", "project_doc_max_bytes=0"]);
    }
    if let Some(model) = &job.model {
        asked.args(["-m", model]);
    }
    if let Some(schema) = &job.schema {
        let file = asked.file(private.join("schema.json"), schema.to_string());
        asked.args(["--output-schema", &file]);
    }
    if let Some(servers) = &job.mcp_servers {
        asked.args(["-c", &format!("mcp_servers={}", toml_value(servers))]);
    }
    asked.args(extra.iter().map(String::as_str));
    if let Some(session) = &job.session {
        asked.args(["resume", session]);
    }
    asked.args(["-"]);
    asked
}

/// Selects the sandbox for commands: the one of the job's freedom, or a stricter one if an effect
/// is removed.
fn sandbox_of(job: &Job) -> &'static str {
    let effects = job.told.effects;
    match job.freedom {
        Freedom::ReadOnly => "read-only",
        _ if !effects.has(Effect::ChangeFiles) => "read-only",
        Freedom::Full if EffectSet::UNKNOWN_TOOL.without(effects).is_empty() => {
            "danger-full-access"
        }
        Freedom::Workspace | Freedom::Full => "workspace-write",
    }
}

/// Removes effects that the command sandbox does not cover. The user's configuration may define MCP
/// servers, which run outside of the sandbox and cannot be disabled individually, so a limited run
/// does not read it.
fn limit(job: &Job, asked: &mut Asked) {
    let effects = job.told.effects;
    if !EffectSet::UNKNOWN_TOOL.without(effects).is_empty() {
        asked.args(["--ignore-user-config", "--disable", "apps", "--disable", "plugins"]);
        for (key, value) in user_model_settings(&job.environment) {
            asked.args(["-c", &format!("{key}={}", toml_value(&value))]);
        }
    }
    if !effects.has(Effect::UseNetwork) {
        asked.args(["-c", "web_search=\"disabled\""]);
        asked.args(["-c", "sandbox_workspace_write.network_access=false"]);
    }
    if !effects.has(Effect::Delegate) {
        asked.args(["--disable", "multi_agent"]);
    }
}

/// User settings that determine the model. They also apply to limited runs.
const MODEL_SETTINGS: &[&str] = &[
    "model",
    "model_provider",
    "model_providers",
    "model_reasoning_effort",
    "openai_base_url",
    "chatgpt_base_url",
    "cli_auth_credentials_store",
];

/// Reads the model settings from the user's `config.toml`; empty if the file is missing or invalid.
fn user_model_settings(environment: &[(String, String)]) -> Vec<(String, Value)> {
    let home = environment_variable(environment, "CODEX_HOME").map(Utf8PathBuf::from);
    let home = home
        .or_else(|| Some(Utf8Path::new(environment_variable(environment, "HOME")?).join(".codex")));
    let Some(file) = home.map(|home| home.join("config.toml")) else { return Vec::new() };
    let text = repertoire_text::fs::read_text(&file, CLI_CONFIG_BYTES_MAX).unwrap_or_default();
    let table: toml::Table = text.parse().unwrap_or_default();
    MODEL_SETTINGS.iter().filter_map(|key| model_setting(&table, key)).collect()
}

fn environment_variable<'a>(environment: &'a [(String, String)], name: &str) -> Option<&'a str> {
    environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn model_setting(table: &toml::Table, key: &str) -> Option<(String, Value)> {
    let value = serde_json::to_value(table.get(key)?).ok()?;
    Some((key.to_owned(), value))
}

/// Converts JSON to a single-line TOML value. Null fields are left out, since TOML has no null.
fn toml_value(value: &Value) -> String {
    match value {
        Value::Null => "\"\"".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => toml_text(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml_value).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(fields) => {
            let known = fields.iter().filter(|(_, value)| !value.is_null());
            let fields: Vec<String> = known
                .map(|(key, value)| format!("{}={}", toml_text(key), toml_value(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
    }
}

/// Quotes a string for TOML, on a single line.
fn toml_text(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Parses the output of `codex exec --json`.
#[derive(Debug)]
pub(crate) struct Stream {
    tally: Tally,
    failure: Option<String>,
    complaint: Option<String>,
}

impl Stream {
    pub(crate) fn new() -> Self {
        Stream { tally: Tally::new(CLI.name), failure: None, complaint: None }
    }

    fn item(&mut self, item: &Value, done: bool) -> Vec<EventKind> {
        let id = str_of(item, "id");
        match (str_of(item, "type"), done) {
            ("agent_message", true) => {
                self.tally.set_text(str_of(item, "text"));
                vec![Tally::text_event(str_of(item, "text"))]
            }
            ("reasoning", true) => vec![Tally::thinking_event(str_of(item, "text"))],
            ("todo_list", _) => item.get("items").and_then(tally::todos).into_iter().collect(),
            ("error", true) => {
                vec![EventKind::Warning { message: tally::cut(str_of(item, "message"), 2_000) }]
            }
            ("command_execution", _) => self.tool(id, "shell", item, "aggregated_output", done),
            ("file_change", _) => self.tool(id, "apply_patch", item, "", done),
            ("web_search", _) => self.tool(id, "web_search", item, "", done),
            ("mcp_tool_call", _) => {
                let tool = format!("{}_{}", str_of(item, "server"), str_of(item, "tool"));
                self.tool(id, &tool, item, "result", done)
            }
            (other, true) => vec![self.tally.other(other)],
            (_, false) => Vec::new(),
        }
    }

    /// Returns the event for the start or the result of a call; both for items that are reported
    /// only when they complete.
    fn tool(
        &mut self,
        id: &str,
        tool: &str,
        item: &Value,
        output: &str,
        done: bool,
    ) -> Vec<EventKind> {
        let mut events = Vec::new();
        if !self.tally.is_open(id) {
            events.push(self.tally.call(id, tool, &arguments_of(item)));
        }
        if done {
            let status = str_of(item, "status");
            let is_error = matches!(status, "failed" | "declined")
                || item.get("exit_code").and_then(Value::as_i64).is_some_and(|code| code != 0);
            let text = match item.get(output) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Null) | None => status.to_owned(),
                Some(other) => other.to_string(),
            };
            if status == "declined" {
                let subject = tally::subject(&arguments_of(item));
                events.push(self.tally.deny(tool, subject, "Codex's approval policy"));
            }
            events.push(self.tally.result(id, tool, &text, is_error));
        }
        events
    }

    fn completed(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        let usage = event.get("usage").unwrap_or(&Value::Null);
        let cached = count(usage, "cached_input_tokens");
        self.tally.usage.input_tokens = count(usage, "input_tokens").saturating_sub(cached);
        self.tally.usage.cache_read_tokens = cached;
        self.tally.usage.cache_write_tokens = count(usage, "cache_write_input_tokens");
        self.tally.usage.output_tokens = count(usage, "output_tokens");
        self.tally.verdict = Some(Status::Done);
        vec![self.tally.answer("end_turn")]
    }

    fn complaint(&mut self, words: &str) -> Vec<EventKind> {
        match reconnection(words) {
            Some((attempt, reason)) => vec![EventKind::Retry {
                what: "model call".to_owned(),
                reason: tally::cut(reason, 500),
                attempt,
                after_ms: 0,
            }],
            None => {
                self.complaint = Some(words.to_owned());
                vec![EventKind::Warning { message: tally::cut(words, 2_000) }]
            }
        }
    }
}

impl Parser for Stream {
    fn line(&mut self, line: &[u8]) -> Vec<EventKind> {
        let Some(event) = self.tally.read(line) else { return Vec::new() };
        let item = event.get("item").unwrap_or(&Value::Null);
        match field(&event, "type") {
            "thread.started" => {
                self.tally.set_session(event.get("thread_id"));
                vec![self.tally.other("thread.started")]
            }
            "turn.started" => {
                self.tally.iterations = self.tally.iterations.saturating_add(1);
                vec![self.tally.other("turn.started")]
            }
            "item.started" | "item.updated" => self.item(item, false),
            "item.completed" => self.item(item, true),
            "turn.completed" => self.completed(&event),
            "turn.failed" => {
                let words =
                    event.get("error").map(|error| str_of(error, "message")).unwrap_or_default();
                self.failure = Some(words.to_owned());
                Vec::new()
            }
            "error" => self.complaint(field(&event, "message")),
            other => vec![self.tally.other(other)],
        }
    }

    fn is_finished(&self) -> bool {
        self.tally.verdict.is_some() || self.failure.is_some()
    }

    fn garbage(&self) -> u64 {
        self.tally.garbage
    }

    fn finish(self: Box<Self>, ended: &Ended, now_ms: u64) -> Finished {
        let Stream { mut tally, failure, complaint } = *self;
        match failure {
            Some(words) if !words.is_empty() => tally.fail(&words, now_ms),
            Some(_) => tally.fail(complaint.as_deref().unwrap_or("the turn failed"), now_ms),
            None => tally.error = tally.error.take().or(complaint),
        }
        tally.finish(ended, now_ms)
    }
}

/// Parses the attempt and the reason from a "Reconnecting..." message.
fn reconnection(words: &str) -> Option<(u32, &str)> {
    let rest = words.strip_prefix("Reconnecting... ")?;
    let (attempt, rest) = rest.split_once('/')?;
    let reason = rest.split_once(" (").map_or("", |(_, reason)| reason.trim_end_matches(')'));
    Some((attempt.parse().ok()?, reason))
}

/// Returns the fields of an item that describe its call.
fn arguments_of(item: &Value) -> Value {
    const TOLD: &[&str] = &["command", "query", "arguments", "changes"];
    let told = TOLD.iter().filter_map(|key| Some(((*key).to_owned(), item.get(key)?.clone())));
    Value::Object(told.collect())
}
