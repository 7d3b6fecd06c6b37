//! Claude Code: `claude -p --output-format stream-json`.
//!
//! The prompt is passed on stdin, so neither its length nor a leading dash matters. User and
//! project settings are not read: hooks and permissions come from the job alone.

use camino::Utf8Path;
use repertoire_model::ModelService;
use serde_json::{Map, Value};

use super::cli::{CliDefinition, CliInvocation, CliStreamParser};
use super::json_fields::{event_list, event_number, event_str, value_count, value_list, value_str};
use super::stream_tally::{self, StreamTally};
use crate::backend::{
    AgentFreedom, BackendEnforcement, BackendJob, BackendRestrictions, BackendResult,
    EffectEnforcement, RuleEnforcement,
};
use crate::effect::{EffectSet, RunEffect};
use crate::event::{AgentRunStatus, EventKind};
use crate::permission::tool_name;
use repertoire_sandbox::process::{ProcessResult, TerminationRequest};

pub(crate) const CLI: CliDefinition = CliDefinition {
    name: "claude",
    program: "claude",
    holds: BackendEnforcement {
        rules: RuleEnforcement::All,
        effects: EffectEnforcement::ToolsAndSubAgents,
        sandbox: false,
        service: Some(ModelService::Anthropic),
    },
    wants_forms: false,
    ask: build_invocation,
    parser: || Box::new(ClaudeStream::new()),
};

const READING: &[&str] = &["Read", "Grep", "Glob"];
const WORKING: &[&str] = &[
    "Read",
    "Grep",
    "Glob",
    "Edit",
    "Write",
    "NotebookEdit",
    "Bash",
    "Task",
    "Skill",
    "WebFetch",
    "WebSearch",
];

/// Tools to deny by name when an effect is removed. They are not offered then either, but a deny
/// rule also applies in every permission mode and to sub-agents.
fn denied_for(effect: RunEffect) -> &'static [&'static str] {
    match effect {
        RunEffect::ChangeFiles => &["Edit", "Write", "NotebookEdit"],
        RunEffect::RunCommands => &["Bash"],
        RunEffect::UseNetwork => &["WebFetch", "WebSearch"],
        RunEffect::Delegate => &["Task"],
    }
}

/// Locations of secrets that no task needs: process environments, and credentials in checkouts and
/// the home folder.
const NEVER_READ: &[&str] = &[
    "Read(//proc/**)",
    "Read(//**/.git/config)",
    "Read(//**/.git/**/config)",
    "Read(//**/.git/**/config.worktree)",
    "Read(~/.ssh/**)",
    "Read(~/.aws/**)",
    "Read(~/.docker/config.json)",
    "Read(~/.config/gh/**)",
    "Read(~/.git-credentials)",
    "Read(~/.netrc)",
];

fn build_invocation(job: &BackendJob, extra: &[String], private: &Utf8Path) -> CliInvocation {
    let mut asked = CliInvocation::with_prompt(job.prompt.clone());
    // On SIGTERM it exits and leaves its Bash commands running; on SIGINT it stops them first.
    asked.request = TerminationRequest::InterruptThenTerminate;
    asked.add_args(["-p", "--output-format", "stream-json", "--verbose", "--setting-sources", ""]);
    asked.set_env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    if !job.system.is_empty() {
        let file = asked.file(private.join("system.md"), job.system.clone());
        asked.add_args(["--append-system-prompt-file", &file]);
    }
    if let Some(model) = &job.model {
        asked.add_args(["--model", model]);
    }
    if let Some(session) = &job.session {
        asked.add_args(["--resume", session]);
    }
    if let Some(schema) = &job.schema {
        asked.add_args(["--json-schema", &schema.to_string()]);
    }
    if let Some(dollars) = job.max_cost_usd {
        asked.add_args(["--max-budget-usd", &dollars.to_string()]);
    }
    if let Some(turns) = job.max_iterations {
        asked.add_args(["--max-turns", &turns.to_string()]);
    }
    // Always passed: without it, Claude Code adds the MCP servers of the user's configuration.
    asked.add_args(["--strict-mcp-config"]);
    if let Some(servers) = offered_servers(job) {
        let config = serde_json::json!({ "mcpServers": servers }).to_string();
        let file = asked.file(private.join("mcp.json"), config);
        asked.add_args(["--mcp-config", &file]);
    }
    match job.freedom {
        AgentFreedom::ReadOnly => {
            asked.add_args([
                "--permission-mode",
                "dontAsk",
                "--allowedTools",
                &allowed_tools(READING, job),
            ]);
        }
        AgentFreedom::Workspace => {
            asked.add_args([
                "--permission-mode",
                "acceptEdits",
                "--allowedTools",
                &allowed_tools(WORKING, job),
            ]);
        }
        AgentFreedom::Full => asked.add_args(["--permission-mode", "bypassPermissions"]),
    }
    let never = NEVER_READ.iter().filter(|_| job.freedom != AgentFreedom::Full);
    let removed = EffectSet::ALL.without(job.told.effects);
    let removed = removed.iter().flat_map(denied_for);
    let mut denied: Vec<String> = never.chain(removed).map(|rule| (*rule).to_owned()).collect();
    denied.extend(job.told.denied.iter().map(|rule| claude_rule(rule)));
    if !denied.is_empty() {
        asked.add_args(["--disallowedTools", &denied.join(",")]);
    }
    if let Some(names) = offered_tools(&job.told) {
        asked.add_args(["--tools", &names.join(",")]);
    }
    asked.add_args(extra.iter().map(String::as_str));
    asked
}

/// Returns the tools to offer, or `None` if they are not limited. `git`, `github` and `run_tests`
/// have no counterpart of the same scope: they require an unrestricted `Bash`, or are not
/// available.
fn offered_tools(told: &BackendRestrictions) -> Option<Vec<&'static str>> {
    let tools = told.tools.as_ref()?;
    let mut names: Vec<&str> =
        tools.iter().flat_map(|tool| claude_tool_names(tool)).copied().collect();
    names.sort_unstable();
    names.dedup();
    Some(names)
}

/// Maps one of our tools to Claude Code's tools.
fn claude_tool_names(tool: &str) -> &'static [&'static str] {
    match tool {
        "bash" => &["Bash"],
        "read" => &["Read"],
        "write" => &["Write"],
        "edit" => &["Edit", "NotebookEdit"],
        "grep" | "search" => &["Grep"],
        "glob" | "list" => &["Glob"],
        "research" => &["WebFetch", "WebSearch"],
        "todo" | "plan" => &["TodoWrite", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate"],
        "delegate" => &["Task"],
        "skill" | "skill_search" => &["Skill"],
        _ => &[],
    }
}

/// Converts one of our permission rules to Claude Code's syntax.
fn claude_rule(rule: &str) -> String {
    let (name, rest) = rule.split_at(rule.find('(').unwrap_or(rule.len()));
    let tool = tool_name(name);
    let names = match tool.as_str() {
        "git" | "github" | "run_tests" => &["Bash"],
        "edit" => &["Edit"],
        tool => claude_tool_names(tool),
    };
    match names {
        [] => rule.to_owned(),
        names => names.iter().map(|name| format!("{name}{rest}")).collect::<Vec<_>>().join(","),
    }
}

/// Returns the MCP servers to offer. Servers don't declare which of their tools are read-only, so a
/// read-only run gets none.
fn offered_servers(job: &BackendJob) -> Option<&Value> {
    job.mcp_servers.as_ref().filter(|_| job.freedom != AgentFreedom::ReadOnly)
}

/// Lists the tools that may be called without asking: the permitted ones of `tools`, and all tools
/// of the offered servers.
fn allowed_tools(tools: &[&str], job: &BackendJob) -> String {
    let left = offered_tools(&job.told);
    let is_left = |tool: &&&str| left.as_ref().is_none_or(|left| left.contains(tool));
    let mut names: Vec<String> =
        tools.iter().filter(is_left).map(|tool| (*tool).to_owned()).collect();
    let servers = offered_servers(job).and_then(Value::as_object);
    names.extend(servers.into_iter().flat_map(Map::keys).map(|name| format!("mcp__{name}")));
    names.join(",")
}

/// Parses Claude Code's stream-json output.
#[derive(Debug)]
pub(crate) struct ClaudeStream {
    tally: StreamTally,
    message: String,
    failure: Option<ClaudeFailure>,
}

#[derive(Debug)]
struct ClaudeFailure {
    status: AgentRunStatus,
    words: String,
    allowance: bool,
}

impl ClaudeStream {
    pub(crate) fn new() -> Self {
        ClaudeStream { tally: StreamTally::new(CLI.name), message: String::new(), failure: None }
    }

    fn on_assistant(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        let Some(message) = event.get("message") else {
            return vec![self.tally.other_event("assistant")];
        };
        let id = value_str(message, "id");
        if id != self.message {
            id.clone_into(&mut self.message);
            self.tally.iterations = self.tally.iterations.saturating_add(1);
        }
        let aside = event.get("parent_tool_use_id").is_some_and(|id| !id.is_null());
        let synthetic = value_str(message, "model") == "<synthetic>";
        value_list(message, "content")
            .iter()
            .map(|part| self.on_content_part(part, aside, synthetic))
            .collect()
    }

    fn on_content_part(&mut self, part: &Value, aside: bool, synthetic: bool) -> EventKind {
        match value_str(part, "type") {
            "text" if synthetic => EventKind::Warning {
                message: stream_tally::truncate_chars(value_str(part, "text"), 2_000),
            },
            "text" if aside => self.tally.other_event("sub-agent text"),
            "text" => {
                self.tally.set_text(value_str(part, "text"));
                StreamTally::text_event(value_str(part, "text"))
            }
            "thinking" => StreamTally::thinking_event(value_str(part, "thinking")),
            "tool_use" => {
                let input = part.get("input").unwrap_or(&Value::Null);
                if value_str(part, "name") == "TodoWrite"
                    && let Some(todos) = input.get("todos").and_then(stream_tally::parse_todos)
                {
                    return todos;
                }
                self.tally.call(value_str(part, "id"), value_str(part, "name"), input)
            }
            other => self.tally.other_event(other),
        }
    }

    fn on_user(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        let message = event.get("message").unwrap_or(&Value::Null);
        let results = value_list(message, "content")
            .iter()
            .filter(|part| value_str(part, "type") == "tool_result");
        results
            .map(|part| {
                let is_error = part.get("is_error").and_then(Value::as_bool).unwrap_or(false);
                self.tally.record_result(
                    value_str(part, "tool_use_id"),
                    "",
                    &content_text(part.get("content")),
                    is_error,
                )
            })
            .collect()
    }

    fn on_system(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        match event_str(event, "subtype") {
            "api_retry" => vec![EventKind::Retry {
                what: "model call".to_owned(),
                reason: retry_reason(event),
                attempt: event_number(event, "attempt").try_into().unwrap_or(u32::MAX),
                after_ms: event_number(event, "retry_delay_ms"),
            }],
            subtype => vec![self.tally.other_event(&format!("system/{subtype}"))],
        }
    }

    fn on_rate_limit(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        let info = event.get("rate_limit_info").unwrap_or(&Value::Null);
        let resets = info.get("resetsAt").and_then(Value::as_u64);
        if value_str(info, "status") != "rejected" {
            return vec![self.tally.other_event("rate_limit_event")];
        }
        self.tally.resets_at_ms = resets.and_then(super::usage_limit::timestamp_ms);
        let which = value_str(info, "rateLimitType").replace('_', " ");
        vec![EventKind::Limit {
            limit: "allowance".to_owned(),
            message: format!("Claude's {which} allowance is used up"),
        }]
    }

    fn on_result(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        let tally = &mut self.tally;
        tally.usage = usage_of(event);
        tally.cost_usd = event.get("total_cost_usd").and_then(Value::as_f64);
        tally.iterations = event_number(event, "num_turns").try_into().unwrap_or(u32::MAX);
        tally.structured = event.get("structured_output").filter(|value| !value.is_null()).cloned();
        let words = event_str(event, "result");
        self.failure = failure_of(event, words);
        let mut events = self.on_denials(event);
        if self.failure.is_none() {
            self.tally.verdict = Some(AgentRunStatus::Done);
            self.tally.set_text(words);
            events.push(self.tally.answer_event(event_str(event, "stop_reason")));
        }
        events
    }

    fn on_denials(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        let denials = event_list(event, "permission_denials");
        denials.iter().map(|denial| self.on_denial(denial)).collect()
    }

    fn on_denial(&mut self, denial: &Value) -> EventKind {
        let subject = stream_tally::call_subject(denial.get("tool_input").unwrap_or(&Value::Null));
        let tool = value_str(denial, "tool_name");
        self.tally.record_denial(tool, subject, "Claude Code's permission rules")
    }
}

impl CliStreamParser for ClaudeStream {
    fn parse_line(&mut self, line: &[u8]) -> Vec<EventKind> {
        let Some(event) = self.tally.parse_line(line) else { return Vec::new() };
        self.tally.set_session(event.get("session_id"));
        match event_str(&event, "type") {
            "assistant" => self.on_assistant(&event),
            "user" => self.on_user(&event),
            "system" => self.on_system(&event),
            "rate_limit_event" => self.on_rate_limit(&event),
            "result" => self.on_result(&event),
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
        let ClaudeStream { mut tally, failure, .. } = *self;
        if let Some(ClaudeFailure { status, words, allowance }) = failure {
            let known = tally.resets_at_ms;
            tally.record_failure(&words, now_ms);
            tally.verdict = match (status, allowance || known.is_some()) {
                (AgentRunStatus::Failed, true) => Some(AgentRunStatus::Paused),
                (AgentRunStatus::Failed, false) => tally.verdict,
                (limited, _) => Some(limited),
            };
        }
        tally.finish(ended, now_ms)
    }
}

/// Returns the failure that a result reports. `subtype` may be "success" even when `is_error` is
/// set.
fn failure_of(event: &Map<String, Value>, words: &str) -> Option<ClaudeFailure> {
    let subtype = event_str(event, "subtype");
    let is_error = event.get("is_error").and_then(Value::as_bool).unwrap_or(false);
    if !is_error && subtype == "success" {
        return None;
    }
    let status = match subtype {
        "error_max_turns" | "error_max_budget_usd" => AgentRunStatus::Limited,
        _ => AgentRunStatus::Failed,
    };
    let listed: Vec<&str> = event_list(event, "errors").iter().filter_map(Value::as_str).collect();
    let words = match (listed.is_empty(), words.is_empty()) {
        (false, _) => listed.join("; "),
        (true, false) => words.to_owned(),
        (true, true) => format!("the result is `{subtype}`"),
    };
    Some(ClaudeFailure { status, words, allowance: event_number(event, "api_error_status") == 429 })
}

/// Sums the usage of all models; falls back to the main model's total if they are not listed.
fn usage_of(event: &Map<String, Value>) -> repertoire_model::TokenUsage {
    let mut usage = repertoire_model::TokenUsage::default();
    let models = event.get("modelUsage").and_then(Value::as_object);
    for model in models.into_iter().flat_map(Map::values) {
        usage.input_tokens += value_count(model, "inputTokens");
        usage.output_tokens += value_count(model, "outputTokens");
        usage.cache_read_tokens += value_count(model, "cacheReadInputTokens");
        usage.cache_write_tokens += value_count(model, "cacheCreationInputTokens");
    }
    if usage.total() == 0
        && let Some(own) = event.get("usage")
    {
        usage.input_tokens = value_count(own, "input_tokens");
        usage.output_tokens = value_count(own, "output_tokens");
        usage.cache_read_tokens = value_count(own, "cache_read_input_tokens");
        usage.cache_write_tokens = value_count(own, "cache_creation_input_tokens");
    }
    usage
}

fn retry_reason(event: &Map<String, Value>) -> String {
    match event_number(event, "error_status") {
        0 => event_str(event, "error").to_owned(),
        status => format!("{} ({status})", event_str(event, "error")),
    }
}

/// The text of a tool result, which is a string or a list of parts.
fn content_text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts: Vec<&str> =
                parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}
