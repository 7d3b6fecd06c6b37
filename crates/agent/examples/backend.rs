//! Gives a task to somebody else's agent and prints what happens, an event a line:
//!
//! ```text
//! cargo run -p repertoire-agent --example backend -- '{"backend": "claude", "prompt": "What is here?"}'
//! ```
//!
//! Other keys: `program`, `args`, `system`, `model`, `session`, `schema`, `freedom` (`read-only`, `workspace`,
//! `full`), `mcp_servers`, `max_iterations`, `max_cost_usd`, `idle_s`, `absolute_s`. The environment is this process's.

#![expect(clippy::print_stdout, reason = "printing is what it does")]

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use repertoire_agent::backend::{
    AgentFreedom, BackendChoice, BackendJob, BackendKind, BackendRestrictions, build_backend,
};
use repertoire_agent::event::{AgentEvent, EventEmitter};
use repertoire_sandbox::process::UsageLimits;
use repertoire_text::clock::SystemClock;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let task = std::env::args().nth(1).ok_or("a task in JSON is expected")?;
    let task: Value = serde_json::from_str(&task)?;
    let text = |key: &str| task.get(key).and_then(Value::as_str).map(str::to_owned);
    let seconds = |key: &str, usual| {
        Duration::from_secs(task.get(key).and_then(Value::as_u64).unwrap_or(usual))
    };
    let kind = text("backend")
        .as_deref()
        .and_then(BackendKind::from_name)
        .ok_or("`backend` is no kind of backend")?;
    let args =
        task.get("args").cloned().map(serde_json::from_value).transpose()?.unwrap_or_default();
    let backend = build_backend(BackendChoice { kind, program: text("program"), args })?;
    let job = BackendJob {
        form: None,
        prompt: text("prompt").unwrap_or_default(),
        system: text("system").unwrap_or_default(),
        dir: Utf8PathBuf::try_from(std::env::current_dir()?)?,
        environment: std::env::vars().collect(),
        model: text("model"),
        session: text("session"),
        schema: task.get("schema").cloned(),
        freedom: match text("freedom").as_deref() {
            Some("read-only") => AgentFreedom::ReadOnly,
            Some("full") => AgentFreedom::Full,
            _ => AgentFreedom::Workspace,
        },
        told: BackendRestrictions::default(),
        max_cost_usd: task.get("max_cost_usd").and_then(Value::as_f64),
        max_iterations: task
            .get("max_iterations")
            .and_then(Value::as_u64)
            .and_then(|n| n.try_into().ok()),
        mcp_servers: task.get("mcp_servers").cloned(),
        ignore_project_rules: false,
        idle: seconds("idle_s", 120),
        absolute: seconds("absolute_s", 600),
        usage: UsageLimits::default_limits().of_agent(),
        cancel: CancellationToken::new(),
    };
    let print =
        |event: &AgentEvent| println!("{}", serde_json::to_string(event).unwrap_or_default());
    let events = EventEmitter::new("example", "example", Arc::new(SystemClock), Arc::new(print));
    let finished = backend.run(&job, &events).await;
    println!("{finished:#?}");
    Ok(())
}
