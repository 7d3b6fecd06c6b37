//! Runs the technical analyst of `examples/udbud` and says which skills it was given, and why:
//! `cargo run -p repertoire-agent --example udbud`.
//!
//! Without more it asks a scripted model on this machine, which costs nothing and answers what it was told to. With
//! `--key-file FILE` it asks Anthropic with the key in that file. Any other words are the task.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_agent::event::EventSink;
use repertoire_agent::{AgentConfig, EventKind, RunOptions, System};
use repertoire_model::{ApiSecret, ModelEndpoint, ModelEndpoints, ModelService};
use repertoire_scripted::{ModelScript, ScriptedServer, ScriptedTurn};
use repertoire_text::fs::read_text;

const TASK: &str = "Analyze this Danish tender for compliance";
const ANTHROPIC: &str = "https://api.anthropic.com";
const KEY_BYTES_MAX: u64 = 4_096;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (key_file, task) = arguments()?;
    let udbud = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/udbud");

    // The server has to live as long as it is asked.
    let script =
        ModelScript::new().turn(ScriptedTurn::text("[UKENDT] I am a script and cannot read."));
    let server = ScriptedServer::start(script).await;
    let endpoint = match &key_file {
        Some(file) => {
            let key = read_text(file, KEY_BYTES_MAX).map_err(|error| format!("{file}: {error}"))?;
            ModelEndpoint { base_url: ANTHROPIC.to_owned(), key: Some(ApiSecret::new(key.trim())) }
        }
        None => ModelEndpoint { base_url: server.url(), key: None },
    };

    let mut config = AgentConfig::default();
    config.auto_trigger.max_skills = 2;
    config.limits.cost_usd_max = Some(0.25);

    let system = System::builder()
        .agents_from(udbud.join("agents"))
        .skills_from(udbud.join("skills"))
        .work_dir(udbud.join("tender"))
        .endpoints(ModelEndpoints::default().with(ModelService::Anthropic, endpoint))
        .config(config)
        .on_event(tell())
        .build()?;
    println!("agents: {}", system.agent_names().join(", "));
    println!("task:   {task}");

    let report = system.run("technical-analyst", task, RunOptions::default()).await;
    println!("in the conversation: {}", report.skills.join(", "));
    println!("turns: {}, cost: {:?} USD", report.iterations, report.cost_usd);
    println!("\n{}", report.into_answer()?);
    Ok(())
}

/// The file with the key, if one is named, and the task.
fn arguments() -> Result<(Option<Utf8PathBuf>, String), String> {
    let mut words = std::env::args().skip(1).peekable();
    let mut key_file = None;
    if words.next_if_eq("--key-file").is_some() {
        let file = words.next().ok_or("`--key-file` needs the path of a file with a key in it")?;
        key_file = Some(Utf8PathBuf::from(file));
    }
    let task: Vec<String> = words.collect();
    let task = if task.is_empty() { TASK.to_owned() } else { task.join(" ") };
    Ok((key_file, task))
}

/// Shows what concerns skills, and what a person should know.
fn tell() -> EventSink {
    Arc::new(|event| match &event.kind {
        EventKind::SkillsSelected { picks, abstention } => {
            for pick in picks {
                println!("chosen: {} with {:.2}: {}", pick.skill, pick.score, pick.reason);
            }
            if let Some(why) = abstention {
                println!("chosen: none; {why}");
            }
        }
        EventKind::SkillLoaded { skill, by, tokens, already: false, .. } => {
            println!("loaded: {skill} by {by:?}, about {tokens} tokens");
        }
        EventKind::SkillFailed { skill, message } => eprintln!("not loaded: {skill}: {message}"),
        EventKind::Warning { message } | EventKind::Degraded { message, .. } => {
            eprintln!("warning: {message}");
        }
        _ => {}
    })
}
