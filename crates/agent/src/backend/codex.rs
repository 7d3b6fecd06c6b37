//! Codex: `codex exec --json`.
//!
//! The prompt is passed on stdin, which is then closed: with an open stdin, `codex exec` waits
//! forever. The job's freedom selects Codex's own sandbox, which enforces the limits.

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_model::ModelService;
use serde_json::{Map, Value};

use super::cli::{CliDefinition, CliInvocation, CliStreamParser};
use super::json_fields::{event_str, value_count, value_str};
use super::limits::{ARGUMENT_BYTES_MAX, CLI_CONFIG_BYTES_MAX};
use super::stream_tally::{self, StreamTally};
use super::structured_output;
use crate::backend::{
    AgentFreedom, BackendEnforcement, BackendJob, BackendResult, EffectEnforcement, RuleEnforcement,
};
use crate::effect::{EffectSet, RunEffect};
use crate::event::{AgentRunStatus, EventKind};
use repertoire_sandbox::process::ProcessResult;

pub(crate) const CLI: CliDefinition = CliDefinition {
    name: "codex",
    program: "codex",
    holds: BackendEnforcement {
        rules: RuleEnforcement::Freedom,
        effects: EffectEnforcement::CommandSandbox,
        sandbox: true,
        service: Some(ModelService::OpenAi),
    },
    wants_forms: false,
    ask: build_invocation,
    parser: || Box::new(CodexStream::new()),
};

fn build_invocation(job: &BackendJob, extra: &[String], private: &Utf8Path) -> CliInvocation {
    let short = job.system.len() <= ARGUMENT_BYTES_MAX;
    let system_in_prompt = if short { "" } else { job.new_system() };
    let mut asked = CliInvocation::with_prompt(structured_output::prepend_system(
        system_in_prompt,
        &job.prompt,
    ));
    asked.add_args(["exec", "--json", "--skip-git-repo-check", "-s", sandbox_mode(job)]);
    limit_effects(job, &mut asked);
    if short && !job.system.is_empty() {
        asked.add_args(["-c", &format!("developer_instructions={}", quote_toml(&job.system))]);
    }
    if job.ignore_project_rules {
        asked.add_args(["-c", "project_doc_max_bytes=0"]);
    }
    if let Some(model) = &job.model {
        asked.add_args(["-m", model]);
    }
    if let Some(schema) = &job.schema {
        let file = asked.file(private.join("schema.json"), schema.to_string());
        asked.add_args(["--output-schema", &file]);
    }
    if let Some(servers) = &job.mcp_servers {
        asked.add_args(["-c", &format!("mcp_servers={}", toml_value(servers))]);
    }
    asked.add_args(extra.iter().map(String::as_str));
    if let Some(session) = &job.session {
        asked.add_args(["resume", session]);
    }
    asked.add_args(["-"]);
    asked
}

/// Selects the sandbox for commands: the one of the job's freedom, or a stricter one if an effect
/// is removed.
fn sandbox_mode(job: &BackendJob) -> &'static str {
    let effects = job.told.effects;
    match job.freedom {
        AgentFreedom::ReadOnly => "read-only",
        _ if !effects.has(RunEffect::ChangeFiles) => "read-only",
        AgentFreedom::Full if EffectSet::UNKNOWN_TOOL.without(effects).is_empty() => {
            "danger-full-access"
        }
        AgentFreedom::Workspace | AgentFreedom::Full => "workspace-write",
    }
}

/// Removes effects that the command sandbox does not cover. The user's configuration may define MCP
/// servers, which run outside of the sandbox and cannot be disabled individually, so a limited run
/// does not read it.
fn limit_effects(job: &BackendJob, asked: &mut CliInvocation) {
    let effects = job.told.effects;
    if !EffectSet::UNKNOWN_TOOL.without(effects).is_empty() {
        asked.add_args(["--ignore-user-config", "--disable", "apps", "--disable", "plugins"]);
        for (key, value) in user_model_settings(&job.environment) {
            asked.add_args(["-c", &format!("{key}={}", toml_value(&value))]);
        }
    }
    if !effects.has(RunEffect::UseNetwork) {
        asked.add_args(["-c", "web_search=\"disabled\""]);
        asked.add_args(["-c", "sandbox_workspace_write.network_access=false"]);
    }
    if !effects.has(RunEffect::Delegate) {
        asked.add_args(["--disable", "multi_agent"]);
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
        Value::String(text) => quote_toml(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml_value).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(fields) => {
            let known = fields.iter().filter(|(_, value)| !value.is_null());
            let fields: Vec<String> = known
                .map(|(key, value)| format!("{}={}", quote_toml(key), toml_value(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
    }
}

/// Quotes a string for TOML, on a single line.
fn quote_toml(text: &str) -> String {
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
pub(crate) struct CodexStream {
    tally: StreamTally,
    failure: Option<String>,
    complaint: Option<String>,
}

impl CodexStream {
    pub(crate) fn new() -> Self {
        CodexStream { tally: StreamTally::new(CLI.name), failure: None, complaint: None }
    }

    fn on_item(&mut self, item: &Value, done: bool) -> Vec<EventKind> {
        let id = value_str(item, "id");
        match (value_str(item, "type"), done) {
            ("agent_message", true) => {
                self.tally.set_text(value_str(item, "text"));
                vec![StreamTally::text_event(value_str(item, "text"))]
            }
            ("reasoning", true) => vec![StreamTally::thinking_event(value_str(item, "text"))],
            ("todo_list", _) => {
                item.get("items").and_then(stream_tally::parse_todos).into_iter().collect()
            }
            ("error", true) => {
                vec![EventKind::Warning {
                    message: stream_tally::truncate_chars(value_str(item, "message"), 2_000),
                }]
            }
            ("command_execution", _) => self.on_tool(id, "shell", item, "aggregated_output", done),
            ("file_change", _) => self.on_tool(id, "apply_patch", item, "", done),
            ("web_search", _) => self.on_tool(id, "web_search", item, "", done),
            ("mcp_tool_call", _) => {
                let tool = format!("{}_{}", value_str(item, "server"), value_str(item, "tool"));
                self.on_tool(id, &tool, item, "result", done)
            }
            (other, true) => vec![self.tally.other_event(other)],
            (_, false) => Vec::new(),
        }
    }

    /// Returns the event for the start or the result of a call; both for items that are reported
    /// only when they complete.
    fn on_tool(
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
            let status = value_str(item, "status");
            let is_error = matches!(status, "failed" | "declined")
                || item.get("exit_code").and_then(Value::as_i64).is_some_and(|code| code != 0);
            let text = match item.get(output) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Null) | None => status.to_owned(),
                Some(other) => other.to_string(),
            };
            if status == "declined" {
                let subject = stream_tally::call_subject(&arguments_of(item));
                events.push(self.tally.record_denial(tool, subject, "Codex's approval policy"));
            }
            events.push(self.tally.record_result(id, tool, &text, is_error));
        }
        events
    }

    fn on_completed(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        let usage = event.get("usage").unwrap_or(&Value::Null);
        let cached = value_count(usage, "cached_input_tokens");
        self.tally.usage.input_tokens = value_count(usage, "input_tokens").saturating_sub(cached);
        self.tally.usage.cache_read_tokens = cached;
        self.tally.usage.cache_write_tokens = value_count(usage, "cache_write_input_tokens");
        self.tally.usage.output_tokens = value_count(usage, "output_tokens");
        self.tally.verdict = Some(AgentRunStatus::Done);
        vec![self.tally.answer_event("end_turn")]
    }

    fn on_error(&mut self, words: &str) -> Vec<EventKind> {
        match parse_reconnection(words) {
            Some((attempt, reason)) => vec![EventKind::Retry {
                what: "model call".to_owned(),
                reason: stream_tally::truncate_chars(reason, 500),
                attempt,
                after_ms: 0,
            }],
            None => {
                self.complaint = Some(words.to_owned());
                vec![EventKind::Warning { message: stream_tally::truncate_chars(words, 2_000) }]
            }
        }
    }
}

impl CliStreamParser for CodexStream {
    fn parse_line(&mut self, line: &[u8]) -> Vec<EventKind> {
        let Some(event) = self.tally.parse_line(line) else { return Vec::new() };
        let item = event.get("item").unwrap_or(&Value::Null);
        match event_str(&event, "type") {
            "thread.started" => {
                self.tally.set_session(event.get("thread_id"));
                vec![self.tally.other_event("thread.started")]
            }
            "turn.started" => {
                self.tally.iterations = self.tally.iterations.saturating_add(1);
                vec![self.tally.other_event("turn.started")]
            }
            "item.started" | "item.updated" => self.on_item(item, false),
            "item.completed" => self.on_item(item, true),
            "turn.completed" => self.on_completed(&event),
            "turn.failed" => {
                let words =
                    event.get("error").map(|error| value_str(error, "message")).unwrap_or_default();
                self.failure = Some(words.to_owned());
                Vec::new()
            }
            "error" => self.on_error(event_str(&event, "message")),
            other => vec![self.tally.other_event(other)],
        }
    }

    fn is_finished(&self) -> bool {
        self.tally.verdict.is_some() || self.failure.is_some()
    }

    fn garbage_lines(&self) -> u64 {
        self.tally.garbage
    }

    fn finish(self: Box<Self>, ended: &ProcessResult, now_ms: u64) -> BackendResult {
        let CodexStream { mut tally, failure, complaint } = *self;
        match failure {
            Some(words) if !words.is_empty() => tally.record_failure(&words, now_ms),
            Some(_) => {
                tally.record_failure(complaint.as_deref().unwrap_or("the turn failed"), now_ms)
            }
            None => tally.error = tally.error.take().or(complaint),
        }
        tally.finish(ended, now_ms)
    }
}

/// Parses the attempt and the reason from a "Reconnecting..." message.
fn parse_reconnection(words: &str) -> Option<(u32, &str)> {
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
