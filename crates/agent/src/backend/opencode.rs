//! opencode: `opencode run --format json`.
//!
//! Permissions, instructions and MCP servers are passed in `OPENCODE_CONFIG_CONTENT`, which
//! overrides the user's configuration. The stream has no event for the end of a run: a step that
//! ends with `stop` is the answer, but more may follow (after a compaction, for instance), so the
//! run ends when the process exits.

use camino::Utf8Path;
use serde_json::{Map, Value, json};

use super::cli::{CliDefinition, CliInvocation, CliStreamParser};
use super::json_fields::{event_str, value_count, value_str};
use super::stream_tally::{self, StreamTally};
use super::structured_output;
use crate::backend::{
    AgentFreedom, BackendEnforcement, BackendJob, BackendResult, EffectEnforcement, RuleEnforcement,
};
use crate::event::{AgentRunStatus, EventKind};
use repertoire_sandbox::process::{ProcessResult, ProcessStopReason};

pub(crate) const CLI: CliDefinition = CliDefinition {
    name: "opencode",
    program: "opencode",
    holds: BackendEnforcement {
        rules: RuleEnforcement::Freedom,
        effects: EffectEnforcement::ToolsOnly,
        sandbox: false,
        service: None,
    },
    wants_forms: true,
    ask: build_invocation,
    parser: || Box::new(OpencodeStream::new()),
};

fn build_invocation(job: &BackendJob, extra: &[String], private: &Utf8Path) -> CliInvocation {
    let request = structured_output::schema_request(job);
    let mut asked = CliInvocation::with_prompt(format!("{}{request}", job.prompt));
    asked.add_args(["run", "--format", "json"]);
    if let Some(model) = &job.model {
        asked.add_args(["-m", model]);
    }
    if let Some(session) = &job.session {
        asked.add_args(["--session", session]);
    }
    let mut config = given_config(job);
    config.insert("autoupdate".to_owned(), json!(false));
    config.insert("share".to_owned(), json!("disabled"));
    if job.told.is_limited() {
        limit_tools(job, private, &mut asked, &mut config);
    } else {
        config.insert("permission".to_owned(), permission_config(job.freedom));
    }
    asked.add_args(extra.iter().map(String::as_str));
    if !job.system.is_empty() {
        let file = asked.file(private.join("system.md"), job.system.clone());
        config.insert("instructions".to_owned(), json!([file]));
    }
    if let Some(servers) = job.mcp_servers.as_ref().and_then(Value::as_object) {
        config.insert("mcp".to_owned(), servers.iter().map(server_config).collect());
    }
    asked.set_env(CONFIG, &Value::Object(config).to_string());
    asked.set_env("OPENCODE_DISABLE_AUTOUPDATE", "1");
    asked
}

const CONFIG: &str = "OPENCODE_CONFIG_CONTENT";

/// The configuration that the job's environment already contains; ours is merged on top.
fn given_config(job: &BackendJob) -> Map<String, Value> {
    let given = job.environment.iter().find(|(name, _)| name == CONFIG);
    given.and_then(|(_, text)| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn permission_config(freedom: AgentFreedom) -> Value {
    match freedom {
        AgentFreedom::ReadOnly => {
            json!({"edit": "deny", "bash": "deny", "webfetch": "deny", "task": "deny", "external_directory": "deny"})
        }
        AgentFreedom::Workspace => {
            json!({"edit": "allow", "bash": "allow", "external_directory": "deny"})
        }
        AgentFreedom::Full => json!({"*": "allow"}),
    }
}

/// Restricts the run to the permitted tools. A project's `opencode.json` can widen the permissions
/// of any agent whose name it knows, so the run gets its own agent with an unguessable name;
/// `--pure` prevents the project's plugins from being loaded.
fn limit_tools(
    job: &BackendJob,
    private: &Utf8Path,
    asked: &mut CliInvocation,
    config: &mut Map<String, Value>,
) {
    let name = format!("repertoire-{}", private.file_name().unwrap_or("run"));
    let permission = limited_permission(job);
    let agent = json!({"mode": "primary", "permission": permission});
    let agents = config.entry("agent").or_insert_with(|| json!({}));
    if let Some(agents) = agents.as_object_mut() {
        agents.insert(name.clone(), agent);
    }
    config.insert("permission".to_owned(), permission);
    asked.add_args(["--pure", "--agent", &name]);
}

/// Maps one of our tools to opencode's permission keys.
fn opencode_tool_names(tool: &str) -> &'static [&'static str] {
    match tool {
        "read" => &["read"],
        "list" => &["list"],
        "glob" => &["glob"],
        "grep" | "search" => &["grep"],
        "write" | "edit" => &["edit"],
        "bash" => &["bash"],
        "research" => &["webfetch", "websearch"],
        "todo" | "plan" => &["todowrite", "todoread"],
        "delegate" => &["task"],
        "skill" | "skill_search" => &["skill"],
        _ => &[],
    }
}

/// Denies everything except the permitted tools and those of the offered servers.
fn limited_permission(job: &BackendJob) -> Value {
    let mut permission = Map::new();
    permission.insert("*".to_owned(), json!("deny"));
    let tools = job.told.tools.iter().flatten().flat_map(|tool| opencode_tool_names(tool));
    let servers = job.mcp_servers.as_ref().and_then(Value::as_object);
    let servers = servers.into_iter().flat_map(Map::keys).map(|name| format!("{name}_*"));
    for name in tools.map(|name| (*name).to_owned()).chain(servers) {
        permission.insert(name, json!("allow"));
    }
    permission.insert("external_directory".to_owned(), json!("deny"));
    Value::Object(permission)
}

/// Converts an MCP server configuration to opencode's format.
fn server_config((name, server): (&String, &Value)) -> (String, Value) {
    if let Some(url) = server.get("url") {
        return (name.clone(), json!({"type": "remote", "url": url, "enabled": true}));
    }
    let mut command = vec![server.get("command").cloned().unwrap_or_default()];
    command.extend(super::json_fields::value_list(server, "args").iter().cloned());
    let environment = server.get("env").cloned().unwrap_or_else(|| json!({}));
    (
        name.clone(),
        json!({"type": "local", "command": command, "environment": environment, "enabled": true}),
    )
}

/// Parses the output of `opencode run --format json`.
#[derive(Debug)]
pub(crate) struct OpencodeStream {
    tally: StreamTally,
    failure: Option<String>,
}

impl OpencodeStream {
    pub(crate) fn new() -> Self {
        OpencodeStream { tally: StreamTally::new(CLI.name), failure: None }
    }

    fn on_tool(&mut self, part: &Value) -> Vec<EventKind> {
        let (id, tool) = (value_str(part, "callID"), value_str(part, "tool"));
        let state = part.get("state").unwrap_or(&Value::Null);
        let input = state.get("input").unwrap_or(&Value::Null);
        let failed = value_str(state, "status") == "error";
        let words = value_str(state, if failed { "error" } else { "output" });
        let mut events = vec![self.tally.call(id, tool, input)];
        if tool == "todowrite"
            && let Some(todos) = input.get("todos").and_then(stream_tally::parse_todos)
        {
            events.push(todos);
        }
        if failed && is_refusal(words) {
            let reason = stream_tally::truncate_chars(words, 500);
            events.push(self.tally.record_denial(tool, stream_tally::call_subject(input), &reason));
        }
        let mut result = self.tally.record_result(id, tool, words, failed);
        if let (EventKind::ToolResult { duration_ms, .. }, Some(time)) =
            (&mut result, state.get("time"))
        {
            *duration_ms = value_count(time, "end").saturating_sub(value_count(time, "start"));
        }
        events.push(result);
        events
    }

    fn on_step_finished(&mut self, part: &Value) -> Vec<EventKind> {
        let tokens = part.get("tokens").unwrap_or(&Value::Null);
        let cache = tokens.get("cache").unwrap_or(&Value::Null);
        let usage = &mut self.tally.usage;
        usage.input_tokens = usage.input_tokens.saturating_add(value_count(tokens, "input"));
        usage.output_tokens = usage
            .output_tokens
            .saturating_add(value_count(tokens, "output") + value_count(tokens, "reasoning"));
        usage.cache_read_tokens =
            usage.cache_read_tokens.saturating_add(value_count(cache, "read"));
        usage.cache_write_tokens =
            usage.cache_write_tokens.saturating_add(value_count(cache, "write"));
        if let Some(cost) = part.get("cost").and_then(Value::as_f64) {
            self.tally.cost_usd = Some(self.tally.cost_usd.unwrap_or(0.0) + cost);
        }
        match value_str(part, "reason") {
            "tool-calls" => {
                self.tally.verdict = None;
                Vec::new()
            }
            "length" => {
                self.tally.verdict = Some(AgentRunStatus::Limited);
                self.tally.error = Some("the answer was cut at the model's limit".to_owned());
                Vec::new()
            }
            reason => {
                self.tally.verdict = Some(AgentRunStatus::Done);
                vec![self.tally.answer_event(reason)]
            }
        }
    }
}

impl CliStreamParser for OpencodeStream {
    fn parse_line(&mut self, line: &[u8]) -> Vec<EventKind> {
        let Some(event) = self.tally.parse_line(line) else { return Vec::new() };
        self.tally.set_session(event.get("sessionID"));
        let part = event.get("part").unwrap_or(&Value::Null);
        match event_str(&event, "type") {
            "step_start" => {
                self.tally.iterations = self.tally.iterations.saturating_add(1);
                self.tally.text.clear();
                self.tally.verdict = None;
                vec![self.tally.other_event("step_start")]
            }
            "text" => {
                self.tally.add_text(value_str(part, "text"));
                vec![StreamTally::text_event(value_str(part, "text"))]
            }
            "reasoning" => vec![StreamTally::thinking_event(value_str(part, "text"))],
            "tool_use" => self.on_tool(part),
            "step_finish" => self.on_step_finished(part),
            "error" => {
                self.failure = Some(describe_error(event.get("error").unwrap_or(&Value::Null)));
                Vec::new()
            }
            other => vec![self.tally.other_event(other)],
        }
    }

    fn is_finished(&self) -> bool {
        false
    }

    fn garbage_lines(&self) -> u64 {
        self.tally.garbage
    }

    fn finish(self: Box<Self>, ended: &ProcessResult, now_ms: u64) -> BackendResult {
        let OpencodeStream { mut tally, failure } = *self;
        if let Some(words) = failure {
            tally.record_failure(&words, now_ms);
        }
        // If the agent answered but did not exit, the answer is valid.
        let stopped = match (ended.stopped, tally.verdict) {
            (Some(ProcessStopReason::Idle), Some(_)) => Some(ProcessStopReason::AfterResult),
            (stopped, _) => stopped,
        };
        tally.finish(&ProcessResult { stopped, ..ended.clone() }, now_ms)
    }
}

fn is_refusal(words: &str) -> bool {
    words.contains("rejected permission") || words.contains("prevents you from using")
}

fn describe_error(error: &Value) -> String {
    let data = error.get("data").unwrap_or(&Value::Null);
    let words = match value_str(data, "message") {
        "" => value_str(error, "name"),
        words => words,
    };
    match value_count(data, "statusCode") {
        0 => words.to_owned(),
        status => format!("{words} (status {status})"),
    }
}
