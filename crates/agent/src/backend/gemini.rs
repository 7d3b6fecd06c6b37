//! Gemini CLI: `gemini --output-format stream-json`.
//!
//! The prompt is passed on stdin. Gemini CLI has no option for an additional system prompt, so ours
//! goes at the start of the prompt; MCP servers are passed in a settings file of the highest
//! precedence that exists for this run only.

use camino::Utf8Path;
use serde_json::{Map, Value, json};

use super::cli::{Asked, Cli, Parser};
use super::fields::{count, field, str_of};
use super::structured;
use super::tally::{self, Tally};
use crate::backend::{Finished, Freedom, Holds, Job, Keeps, Rules};
use crate::effect::Effect;
use crate::event::{EventKind, Status};
use repertoire_sandbox::process::Ended;

pub(crate) const CLI: Cli = Cli {
    name: "gemini",
    program: "gemini",
    holds: Holds {
        rules: Rules::Freedom,
        effects: Keeps::ToolsOnly,
        sandbox: false,
        service: None,
    },
    wants_forms: true,
    ask,
    parser: || Box::new(Stream::new()),
};

fn ask(job: &Job, extra: &[String], private: &Utf8Path) -> Asked {
    let request = structured::request(job);
    let prompt = structured::with_system(job.new_system(), &job.prompt);
    let mut asked = Asked::with_prompt(format!("{prompt}{request}"));
    asked.args(["--output-format", "stream-json", "--skip-trust"]);
    let changes_files = job.told.effects.has(Effect::ChangeFiles);
    match job.freedom {
        Freedom::ReadOnly => asked.args(["--approval-mode", "plan"]),
        Freedom::Workspace | Freedom::Full if !changes_files => {
            asked.args(["--approval-mode", "plan"]);
        }
        // Without `--allowed-tools`, a headless run is not offered the shell at all.
        Freedom::Workspace if job.told.has("bash") => {
            asked.args(["--approval-mode", "auto_edit", "--allowed-tools", "run_shell_command"]);
        }
        Freedom::Workspace => asked.args(["--approval-mode", "auto_edit"]),
        Freedom::Full => asked.args(["--approval-mode", "yolo"]),
    }
    if let Some(model) = &job.model {
        asked.args(["-m", model]);
    }
    if let Some(session) = &job.session {
        asked.args(["--resume", session]);
    }
    if job.told.is_limited() {
        limit(job, private, &mut asked);
    }
    asked.args(extra.iter().map(String::as_str));
    if let Some(servers) = &job.mcp_servers {
        let settings = json!({ "mcpServers": servers }).to_string();
        let file = asked.file(private.join("settings.json"), settings);
        asked.env("GEMINI_CLI_SYSTEM_SETTINGS_PATH", &file);
    }
    asked
}

/// The name of a server that does not exist: an empty list of allowed servers would allow all of
/// them.
const NO_SERVER: &str = "repertoire-allows-no-server";

/// Restricts the run to the permitted tools, by a policy that denies all others in every approval
/// mode. A settings file would not work: Gemini CLI ignores one in a temporary folder. Extensions
/// and other servers are disabled.
fn limit(job: &Job, private: &Utf8Path, asked: &mut Asked) {
    let servers = job.mcp_servers.as_ref().and_then(Value::as_object);
    let servers: Vec<&str> = servers.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let file = asked.file(private.join("policy.toml"), policy(job, &servers));
    asked.args(["-e", "none", "--policy", &file, "--allowed-mcp-server-names"]);
    if servers.is_empty() {
        asked.args([NO_SERVER]);
    } else {
        asked.args([servers.join(",").as_str()]);
    }
}

/// Renders the policy file of a limited run.
fn policy(job: &Job, servers: &[&str]) -> String {
    let tools = job.told.tools.iter().flatten();
    let mut names: Vec<&str> = tools.flat_map(|tool| its_names(tool)).copied().collect();
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
fn its_names(tool: &str) -> &'static [&'static str] {
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
pub(crate) struct Stream {
    tally: Tally,
    failure: Option<String>,
    complaint: Option<String>,
    after_tools: bool,
}

impl Stream {
    pub(crate) fn new() -> Self {
        Stream { tally: Tally::new(CLI.name), failure: None, complaint: None, after_tools: true }
    }

    fn message(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        if field(event, "role") != "assistant" {
            return Vec::new();
        }
        // Only the text after the last tool call is the answer.
        if std::mem::take(&mut self.after_tools) {
            self.tally.text.clear();
            self.tally.iterations = self.tally.iterations.saturating_add(1);
        }
        let text = field(event, "content");
        if event.get("delta").and_then(Value::as_bool) == Some(true) {
            self.tally.add_text(text);
        } else {
            self.tally.set_text(text);
        }
        vec![Tally::text_event(text)]
    }

    fn tool_use(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        // Text before the call belongs to the same turn.
        if std::mem::replace(&mut self.after_tools, true) {
            self.tally.iterations = self.tally.iterations.saturating_add(1);
        }
        let parameters = event.get("parameters").unwrap_or(&Value::Null);
        vec![self.tally.call(field(event, "tool_id"), field(event, "tool_name"), parameters)]
    }

    fn tool_result(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        let error = event.get("error").map(|error| str_of(error, "message")).unwrap_or_default();
        let is_error = field(event, "status") == "error";
        let output = field(event, "output");
        let words = if output.is_empty() { error } else { output };
        vec![self.tally.result(field(event, "tool_id"), "", words, is_error)]
    }

    fn result(&mut self, event: &Map<String, Value>) -> Vec<EventKind> {
        let stats = event.get("stats").unwrap_or(&Value::Null);
        let cached = count(stats, "cached");
        self.tally.usage.cache_read_tokens = cached;
        self.tally.usage.input_tokens = count(stats, "input_tokens").saturating_sub(cached);
        self.tally.usage.output_tokens = count(stats, "output_tokens");
        if field(event, "status") == "success" {
            self.tally.verdict = Some(Status::Done);
            return vec![self.tally.answer("end_turn")];
        }
        let words = event.get("error").map(|error| str_of(error, "message")).unwrap_or_default();
        self.failure = Some(words.to_owned());
        Vec::new()
    }
}

impl Parser for Stream {
    fn line(&mut self, line: &[u8]) -> Vec<EventKind> {
        let Some(event) = self.tally.read(line) else { return Vec::new() };
        match field(&event, "type") {
            "init" => {
                self.tally.set_session(event.get("session_id"));
                vec![self.tally.other("init")]
            }
            "message" => self.message(&event),
            "tool_use" => self.tool_use(&event),
            "tool_result" => self.tool_result(&event),
            "error" => {
                let message = tally::cut(field(&event, "message"), 2_000);
                self.complaint = Some(message.clone());
                vec![EventKind::Warning { message }]
            }
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
        let Stream { mut tally, failure, complaint, .. } = *self;
        match failure {
            Some(words) if !words.is_empty() => tally.fail(&words, now_ms),
            Some(_) => tally.fail(complaint.as_deref().unwrap_or("the result is an error"), now_ms),
            None => tally.error = tally.error.take().or(complaint),
        }
        let mut finished = tally.finish(ended, now_ms);
        // The documented exit code for "too many turns".
        if finished.status == Status::Failed && ended.code == Some(53) {
            finished.status = Status::Limited;
        }
        finished
    }
}
