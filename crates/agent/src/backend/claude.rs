//! Claude Code: `claude -p --output-format stream-json`.
//!
//! The prompt is passed on stdin, so neither its length nor a leading dash matters. User and
//! project settings are not read: hooks and permissions come from the job alone.

use camino::Utf8Path;
use repertoire_model::Service;
use serde_json::{Map, Value};

use super::cli::{Asked, Cli, Parser};
use super::fields::{count, entries, field, list, number, str_of};
use super::tally::{self, Tally};
use crate::backend::{Finished, Freedom, Holds, Job, Keeps, Rules, Told};
use crate::effect::{Effect, EffectSet};
use crate::event::{EventKind, Status};
use crate::permission::tool_name;
use repertoire_sandbox::process::{Ended, TerminationRequest};

pub(crate) const CLI: Cli = Cli {
    name: "claude",
    program: "claude",
    holds: Holds {
        rules: Rules::All,
        effects: Keeps::ToolsAndSubAgents,
        sandbox: false,
        service: Some(Service::Anthropic),
    },
    wants_forms: false,
    ask,
    parser: || Box::new(Stream::new()),
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
fn denied_for(effect: Effect) -> &'static [&'static str] {
    match effect {
        Effect::ChangeFiles => &["Edit", "Write", "NotebookEdit"],
        Effect::RunCommands => &["Bash"],
        Effect::UseNetwork => &["WebFetch", "WebSearch"],
        Effect::Delegate => &["Task"],
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

fn ask(job: &Job, extra: &[String], private: &Utf8Path) -> Asked {
    let mut asked = Asked::with_prompt(job.prompt.clone());
    // On SIGTERM it exits and leaves its Bash commands running; on SIGINT it stops them first.
    asked.request = TerminationRequest::InterruptThenTerminate;
    asked.args(["-p", "--output-format", "stream-json", "--verbose", "--setting-sources", ""]);
    asked.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    if !job.system.is_empty() {
        let file = asked.file(private.join("system.md"), job.system.clone());
        asked.args(["--append-system-prompt-file", &file]);
    }
    if let Some(model) = &job.model {
        asked.args(["--model", model]);
    }
    if let Some(session) = &job.session {
        asked.args(["--resume", session]);
    }
    if let Some(schema) = &job.schema {
        asked.args(["--json-schema", &schema.to_string()]);
    }
    if let Some(dollars) = job.max_cost_usd {
        asked.args(["--max-budget-usd", &dollars.to_string()]);
    }
    if let Some(turns) = job.max_iterations {
        asked.args(["--max-turns", &turns.to_string()]);
    }
    // Always passed: without it, Claude Code adds the MCP servers of the user's configuration.
    asked.args(["--strict-mcp-config"]);
    if let Some(servers) = servers_of(job) {
        let config = serde_json::json!({ "mcpServers": servers }).to_string();
        let file = asked.file(private.join("mcp.json"), config);
        asked.args(["--mcp-config", &file]);
    }
    match job.freedom {
        Freedom::ReadOnly => {
            asked.args(["--permission-mode", "dontAsk", "--allowedTools", &allowed(READING, job)]);
        }
        Freedom::Workspace => {
            asked.args([
                "--permission-mode",
                "acceptEdits",
                "--allowedTools",
                &allowed(WORKING, job),
            ]);
        }
        Freedom::Full => asked.args(["--permission-mode", "bypassPermissions"]),
    }
    let never = NEVER_READ.iter().filter(|_| job.freedom != Freedom::Full);
    let removed = EffectSet::ALL.without(job.told.effects);
    let removed = removed.iter().flat_map(denied_for);
    let mut denied: Vec<String> = never.chain(removed).map(|rule| (*rule).to_owned()).collect();
    denied.extend(job.told.denied.iter().map(|rule| its_rule(rule)));
    if !denied.is_empty() {
        asked.args(["--disallowedTools", &denied.join(",")]);
    }
    if let Some(names) = its_tools(&job.told) {
        asked.args(["--tools", &names.join(",")]);
    }
    asked.args(extra.iter().map(String::as_str));
    asked
}

/// Returns the tools to offer, or `None` if they are not limited. `git`, `github` and `run_tests`
/// have no counterpart of the same scope: they require an unrestricted `Bash`, or are not
/// available.
fn its_tools(told: &Told) -> Option<Vec<&'static str>> {
    let tools = told.tools.as_ref()?;
    let mut names: Vec<&str> = tools.iter().flat_map(|tool| its_names(tool)).copied().collect();
    names.sort_unstable();
    names.dedup();
    Some(names)
}

/// Maps one of our tools to Claude Code's tools.
fn its_names(tool: &str) -> &'static [&'static str] {
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
fn its_rule(rule: &str) -> String {
    let (name, rest) = rule.split_at(rule.find('(').unwrap_or(rule.len()));
    let tool = tool_name(name);
    let names = match tool.as_str() {
        "git" | "github" | "run_tests" => &["Bash"],
        "edit" => &["Edit"],
        tool => its_names(tool),
    };
    match names {
        [] => rule.to_owned(),
        names => names.iter().map(|name| format!("{name}{rest}")).collect::<Vec<_>>().join(","),
    }
}

/// Returns the MCP servers to offer. Servers don't declare which of their tools are read-only, so a
/// read-only run gets none.
fn servers_of(job: &Job) -> Option<&Value> {
    job.mcp_servers.as_ref().filter(|_| job.freedom != Freedom::ReadOnly)
}

/// Lists the tools that may be called without asking: the permitted ones of `tools`, and all tools
/// of the offered servers.
fn allowed(tools: &[&str], job: &Job) -> String {
    let left = its_tools(&job.told);
    let is_left = |tool: &&&str| left.as_ref().is_none_or(|left| left.contains(tool));
    let mut names: Vec<String> =
        tools.iter().filter(is_left).map(|tool| (*tool).to_owned()).collect();
    let servers = servers_of(job).and_then(Value::as_object);
    names.extend(servers.into_iter().flat_map(Map::keys).map(|name| format!("mcp__{name}")));
    names.join(",")
}

/// Parses Claude Code's stream-json output.
#[derive(Debug)]
pub(crate) struct Stream {
    tally: Tally,
    message: String,
    failure: Option<Failure>,
}

#[derive(Debug)]
struct Failure {
    status: Status,
    words: String,
    allowance: bool,
}

impl Stream {
    pub(crate) fn new() -> Self {
        Stream { tally: Tally::new(CLI.name), message: String::new(), failure: None }
    }

    fn assistant(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        let Some(message) = event.get("message") else {
            return vec![self.tally.other("assistant")];
        };
        let id = str_of(message, "id");
        if id != self.message {
            id.clone_into(&mut self.message);
            self.tally.iterations = self.tally.iterations.saturating_add(1);
        }
        let aside = event.get("parent_tool_use_id").is_some_and(|id| !id.is_null());
        let synthetic = str_of(message, "model") == "<synthetic>";
        list(message, "content").iter().map(|part| self.part(part, aside, synthetic)).collect()
    }

    fn part(&mut self, part: &Value, aside: bool, synthetic: bool) -> EventKind {
        match str_of(part, "type") {
            "text" if synthetic => {
                EventKind::Warning { message: tally::cut(str_of(part, "text"), 2_000) }
            }
            "text" if aside => self.tally.other("sub-agent text"),
            "text" => {
                self.tally.set_text(str_of(part, "text"));
                Tally::text_event(str_of(part, "text"))
            }
            "thinking" => Tally::thinking_event(str_of(part, "thinking")),
            "tool_use" => {
                let input = part.get("input").unwrap_or(&Value::Null);
                if str_of(part, "name") == "TodoWrite"
                    && let Some(todos) = input.get("todos").and_then(tally::todos)
                {
                    return todos;
                }
                self.tally.call(str_of(part, "id"), str_of(part, "name"), input)
            }
            other => self.tally.other(other),
        }
    }

    fn user(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        let message = event.get("message").unwrap_or(&Value::Null);
        let results =
            list(message, "content").iter().filter(|part| str_of(part, "type") == "tool_result");
        results
            .map(|part| {
                let is_error = part.get("is_error").and_then(Value::as_bool).unwrap_or(false);
                self.tally.result(
                    str_of(part, "tool_use_id"),
                    "",
                    &words_of(part.get("content")),
                    is_error,
                )
            })
            .collect()
    }

    fn system(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        match field(event, "subtype") {
            "api_retry" => vec![EventKind::Retry {
                what: "model call".to_owned(),
                reason: retry_reason(event),
                attempt: number(event, "attempt").try_into().unwrap_or(u32::MAX),
                after_ms: number(event, "retry_delay_ms"),
            }],
            subtype => vec![self.tally.other(&format!("system/{subtype}"))],
        }
    }

    fn rate_limit(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        let info = event.get("rate_limit_info").unwrap_or(&Value::Null);
        let resets = info.get("resetsAt").and_then(Value::as_u64);
        if str_of(info, "status") != "rejected" {
            return vec![self.tally.other("rate_limit_event")];
        }
        self.tally.resets_at_ms = resets.and_then(super::allowance::instant_ms);
        let which = str_of(info, "rateLimitType").replace('_', " ");
        vec![EventKind::Limit {
            limit: "allowance".to_owned(),
            message: format!("Claude's {which} allowance is used up"),
        }]
    }

    fn result(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        let tally = &mut self.tally;
        tally.usage = usage_of(event);
        tally.cost_usd = event.get("total_cost_usd").and_then(Value::as_f64);
        tally.iterations = number(event, "num_turns").try_into().unwrap_or(u32::MAX);
        tally.structured = event.get("structured_output").filter(|value| !value.is_null()).cloned();
        let words = field(event, "result");
        self.failure = failure_of(event, words);
        let mut events = self.denials(event);
        if self.failure.is_none() {
            self.tally.verdict = Some(Status::Done);
            self.tally.set_text(words);
            events.push(self.tally.answer(field(event, "stop_reason")));
        }
        events
    }

    fn denials(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        let denials = entries(event, "permission_denials");
        denials.iter().map(|denial| self.on_denial(denial)).collect()
    }

    fn on_denial(&mut self, denial: &Value) -> EventKind {
        let subject = tally::subject(denial.get("tool_input").unwrap_or(&Value::Null));
        let tool = str_of(denial, "tool_name");
        self.tally.deny(tool, subject, "Claude Code's permission rules")
    }
}

impl Parser for Stream {
    fn line(&mut self, line: &[u8]) -> Vec<EventKind> {
        let Some(event) = self.tally.read(line) else { return Vec::new() };
        self.tally.set_session(event.get("session_id"));
        match field(&event, "type") {
            "assistant" => self.assistant(&event),
            "user" => self.user(&event),
            "system" => self.system(&event),
            "rate_limit_event" => self.rate_limit(&event),
            "result" => self.result(&event),
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
        let Stream { mut tally, failure, .. } = *self;
        if let Some(Failure { status, words, allowance }) = failure {
            let known = tally.resets_at_ms;
            tally.fail(&words, now_ms);
            tally.verdict = match (status, allowance || known.is_some()) {
                (Status::Failed, true) => Some(Status::Paused),
                (Status::Failed, false) => tally.verdict,
                (limited, _) => Some(limited),
            };
        }
        tally.finish(ended, now_ms)
    }
}

/// Returns the failure that a result reports. `subtype` may be "success" even when `is_error` is
/// set.
fn failure_of(event: &Map<String, Value>, words: &str) -> Option<Failure> {
    let subtype = field(event, "subtype");
    let is_error = event.get("is_error").and_then(Value::as_bool).unwrap_or(false);
    if !is_error && subtype == "success" {
        return None;
    }
    let status = match subtype {
        "error_max_turns" | "error_max_budget_usd" => Status::Limited,
        _ => Status::Failed,
    };
    let listed: Vec<&str> = entries(event, "errors").iter().filter_map(Value::as_str).collect();
    let words = match (listed.is_empty(), words.is_empty()) {
        (false, _) => listed.join("; "),
        (true, false) => words.to_owned(),
        (true, true) => format!("the result is `{subtype}`"),
    };
    Some(Failure { status, words, allowance: number(event, "api_error_status") == 429 })
}

/// Sums the usage of all models; falls back to the main model's total if they are not listed.
fn usage_of(event: &Map<String, Value>) -> repertoire_model::Usage {
    let mut usage = repertoire_model::Usage::default();
    let models = event.get("modelUsage").and_then(Value::as_object);
    for model in models.into_iter().flat_map(Map::values) {
        usage.input_tokens += count(model, "inputTokens");
        usage.output_tokens += count(model, "outputTokens");
        usage.cache_read_tokens += count(model, "cacheReadInputTokens");
        usage.cache_write_tokens += count(model, "cacheCreationInputTokens");
    }
    if usage.total() == 0
        && let Some(own) = event.get("usage")
    {
        usage.input_tokens = count(own, "input_tokens");
        usage.output_tokens = count(own, "output_tokens");
        usage.cache_read_tokens = count(own, "cache_read_input_tokens");
        usage.cache_write_tokens = count(own, "cache_creation_input_tokens");
    }
    usage
}

fn retry_reason(event: &Map<String, Value>) -> String {
    match number(event, "error_status") {
        0 => field(event, "error").to_owned(),
        status => format!("{} ({status})", field(event, "error")),
    }
}

/// The text of a tool result, which is a string or a list of parts.
fn words_of(content: Option<&Value>) -> String {
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
