//! Gemini CLI: `gemini --output-format stream-json`.
//!
//! The prompt is passed on stdin. Gemini CLI has no option for an additional system prompt, so ours
//! goes at the start of the prompt; MCP servers are passed in a settings file of the highest
//! precedence that exists for this run only.

use camino::Utf8Path;
use serde_json::{Map, Value, json};

use super::cli::{CliDefinition, CliInvocation, CliStreamParser};
use super::json_fields::{event_str, value_count, value_str};
use super::stream_tally::{self, StreamTally};
use super::structured_output;
use crate::backend::{
    AgentFreedom, BackendEnforcement, BackendJob, BackendResult, EffectEnforcement, RuleEnforcement,
};
use crate::effect::RunEffect;
use crate::event::{AgentRunStatus, EventKind};
use repertoire_sandbox::process::ProcessResult;

pub(crate) const CLI: CliDefinition = CliDefinition {
    name: "gemini",
    program: "gemini",
    holds: BackendEnforcement {
        rules: RuleEnforcement::Freedom,
        effects: EffectEnforcement::ToolsOnly,
        sandbox: false,
        service: None,
    },
    wants_forms: true,
    ask: build_invocation,
    parser: || Box::new(GeminiStream::new()),
};

fn build_invocation(job: &BackendJob, extra: &[String], private: &Utf8Path) -> CliInvocation {
    let request = structured_output::schema_request(job);
    let prompt = structured_output::prepend_system(job.new_system(), &job.prompt);
    let mut asked = CliInvocation::with_prompt(format!("{prompt}{request}"));
    asked.add_args(["--output-format", "stream-json", "--skip-trust"]);
    let changes_files = job.told.effects.has(RunEffect::ChangeFiles);
    match job.freedom {
        AgentFreedom::ReadOnly => asked.add_args(["--approval-mode", "plan"]),
        AgentFreedom::Workspace | AgentFreedom::Full if !changes_files => {
            asked.add_args(["--approval-mode", "plan"]);
        }
        // Without `--allowed-tools`, a headless run is not offered the shell at all.
        AgentFreedom::Workspace if job.told.has_tool("bash") => {
            asked.add_args([
                "--approval-mode",
                "auto_edit",
                "--allowed-tools",
                "run_shell_command",
            ]);
        }
        AgentFreedom::Workspace => asked.add_args(["--approval-mode", "auto_edit"]),
        AgentFreedom::Full => asked.add_args(["--approval-mode", "yolo"]),
    }
    if let Some(model) = &job.model {
        asked.add_args(["-m", model]);
    }
    if let Some(session) = &job.session {
        asked.add_args(["--resume", session]);
    }
    if job.told.is_limited() {
        limit_tools(job, private, &mut asked);
    }
    asked.add_args(extra.iter().map(String::as_str));
    if let Some(servers) = &job.mcp_servers {
        let settings = json!({ "mcpServers": servers }).to_string();
        let file = asked.file(private.join("settings.json"), settings);
        asked.set_env("GEMINI_CLI_SYSTEM_SETTINGS_PATH", &file);
    }
    asked
}

/// The name of a server that does not exist: an empty list of allowed servers would allow all of
/// them.
const NO_SERVER: &str = "repertoire-allows-no-server";

/// Restricts the run to the permitted tools, by a policy that denies all others in every approval
/// mode. A settings file would not work: Gemini CLI ignores one in a temporary folder. Extensions
/// and other servers are disabled.
fn limit_tools(job: &BackendJob, private: &Utf8Path, asked: &mut CliInvocation) {
    let servers = job.mcp_servers.as_ref().and_then(Value::as_object);
    let servers: Vec<&str> = servers.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let file = asked.file(private.join("policy.toml"), render_policy(job, &servers));
    asked.add_args(["-e", "none", "--policy", &file, "--allowed-mcp-server-names"]);
    if servers.is_empty() {
        asked.add_args([NO_SERVER]);
    } else {
        asked.add_args([servers.join(",").as_str()]);
    }
}

/// Renders the policy file of a limited run.
fn render_policy(job: &BackendJob, servers: &[&str]) -> String {
    let tools = job.told.tools.iter().flatten();
    let mut names: Vec<&str> = tools.flat_map(|tool| gemini_tool_names(tool)).copied().collect();
    names.sort_unstable();
    names.dedup();
    let mut policy = "[[rule]]\ntoolName = \"*\"\ndecision = \"deny\"\npriority = 998\n".to_owned();
    if !names.is_empty() {
        policy.push_str(&format!(
            "\n[[rule]]\ntoolName = {}\ndecision = \"allow\"\npriority = 999\n",
            json!(names)
        ));
    }
    for server in servers {
        policy.push_str(&format!(
            "\n[[rule]]\nmcpName = {}\ntoolName = \"*\"\ndecision = \"allow\"\npriority = 999\n",
            json!(server)
        ));
    }
    policy
}

/// Maps one of our tools to Gemini's tools. Earlier versions named the two search tools
/// differently.
fn gemini_tool_names(tool: &str) -> &'static [&'static str] {
    match tool {
        "read" => &["read_file", "read_many_files"],
        "list" => &["list_directory"],
        "glob" => &["glob"],
        "grep" | "search" => &["grep_search", "search_file_content"],
        "write" => &["write_file"],
        "edit" => &["replace"],
        "bash" => &["run_shell_command"],
        "research" => &["web_fetch", "google_web_search"],
        "todo" | "plan" => &["write_todos"],
        "delegate" => &["invoke_agent"],
        "skill" | "skill_search" => &["activate_skill"],
        _ => &[],
    }
}

/// Parses Gemini CLI's stream-json output.
#[derive(Debug)]
pub(crate) struct GeminiStream {
    tally: StreamTally,
    failure: Option<String>,
    complaint: Option<String>,
    after_tools: bool,
}

impl GeminiStream {
    pub(crate) fn new() -> Self {
        GeminiStream {
            tally: StreamTally::new(CLI.name),
            failure: None,
            complaint: None,
            after_tools: true,
        }
    }

    fn on_message(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        if event_str(event, "role") != "assistant" {
            return Vec::new();
        }
        // Only the text after the last tool call is the answer.
        if std::mem::take(&mut self.after_tools) {
            self.tally.text.clear();
            self.tally.iterations = self.tally.iterations.saturating_add(1);
        }
        let text = event_str(event, "content");
        if event.get("delta").and_then(Value::as_bool) == Some(true) {
            self.tally.add_text(text);
        } else {
            self.tally.set_text(text);
        }
        vec![StreamTally::text_event(text)]
    }

    fn on_tool_use(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        // Text before the call belongs to the same turn.
        if std::mem::replace(&mut self.after_tools, true) {
            self.tally.iterations = self.tally.iterations.saturating_add(1);
        }
        let parameters = event.get("parameters").unwrap_or(&Value::Null);
        vec![self.tally.call(
            event_str(event, "tool_id"),
            event_str(event, "tool_name"),
            parameters,
        )]
    }

    fn on_tool_result(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        let error = event.get("error").map(|error| value_str(error, "message")).unwrap_or_default();
        let is_error = event_str(event, "status") == "error";
        let output = event_str(event, "output");
        let words = if output.is_empty() { error } else { output };
        vec![self.tally.record_result(event_str(event, "tool_id"), "", words, is_error)]
    }

    fn on_result(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        let stats = event.get("stats").unwrap_or(&Value::Null);
        let cached = value_count(stats, "cached");
        self.tally.usage.cache_read_tokens = cached;
        self.tally.usage.input_tokens = value_count(stats, "input_tokens").saturating_sub(cached);
        self.tally.usage.output_tokens = value_count(stats, "output_tokens");
        if event_str(event, "status") == "success" {
            self.tally.verdict = Some(AgentRunStatus::Done);
            return vec![self.tally.answer_event("end_turn")];
        }
        let words = event.get("error").map(|error| value_str(error, "message")).unwrap_or_default();
        self.failure = Some(words.to_owned());
        Vec::new()
    }
}

impl CliStreamParser for GeminiStream {
    fn parse_line(&mut self, line: &[u8]) -> Vec<EventKind> {
        let Some(event) = self.tally.parse_line(line) else { return Vec::new() };
        match event_str(&event, "type") {
            "init" => {
                self.tally.set_session(event.get("session_id"));
                vec![self.tally.other_event("init")]
            }
            "message" => self.on_message(&event),
            "tool_use" => self.on_tool_use(&event),
            "tool_result" => self.on_tool_result(&event),
            "error" => {
                let message = stream_tally::truncate_chars(event_str(&event, "message"), 2_000);
                self.complaint = Some(message.clone());
                vec![EventKind::Warning { message }]
            }
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
        let GeminiStream { mut tally, failure, complaint, .. } = *self;
        match failure {
            Some(words) if !words.is_empty() => tally.record_failure(&words, now_ms),
            Some(_) => tally
                .record_failure(complaint.as_deref().unwrap_or("the result is an error"), now_ms),
            None => tally.error = tally.error.take().or(complaint),
        }
        let mut finished = tally.finish(ended, now_ms);
        // The documented exit code for "too many turns".
        if finished.status == AgentRunStatus::Failed && ended.code == Some(53) {
            finished.status = AgentRunStatus::Limited;
        }
        finished
    }
}
