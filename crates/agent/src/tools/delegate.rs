//! `delegate`: hands work to another agent, which sees only the task and answers once.

use futures_util::future::BoxFuture;
use repertoire_model::ToolSpec;
use repertoire_skill::render::describe_skill;
use repertoire_text::layout::one_line;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::event::{AgentRunStatus, EventKind};
use crate::run::AgentRun;
use crate::system::RunOptions;
use crate::tool::{Tool, ToolAccess, ToolConcurrency, ToolInvocation, ToolOutput};

const TASK_SHOWN_CHARS: usize = 120;
const DESCRIPTION_SHOWN_CHARS: usize = 300;

#[derive(Clone, Copy, Debug, Default)]
pub struct DelegateTool;

#[derive(Deserialize)]
struct DelegateArguments {
    agent: String,
    task: String,
}

impl Tool for DelegateTool {
    fn name(&self) -> &str {
        "delegate"
    }

    fn spec(&self, run: &AgentRun) -> ToolSpec {
        let catalog = run.system.catalog();
        let mut description = String::from(
            "Hands a piece of work to another agent and returns its answer. It sees nothing of this conversation: put \
             everything it needs into the task, and say what to give back. Several calls in one turn run at once.\n\nAgents:\n",
        );
        let names = run.system.agent_names();
        for name in &names {
            let about =
                catalog.get_agent(name).map_or("Works with every tool there is.".into(), |entry| {
                    describe_skill(entry).chars().take(DESCRIPTION_SHOWN_CHARS).collect::<String>()
                });
            description.push_str(&format!("- {name}: {about}\n"));
        }
        let parameters = json!({
            "type": "object",
            "properties": {
                "agent": {"type": "string", "enum": names, "description": "Who shall do it."},
                "task": {"type": "string", "minLength": 1, "description": "What is to be done, complete in itself."},
                "description": {"type": "string", "description": "The task in three to five words, for the user."},
            },
            "required": ["agent", "task"],
            "additionalProperties": false,
        });
        ToolSpec { name: "delegate".to_owned(), description, parameters }
    }

    fn access(&self, _arguments: &Value) -> ToolAccess {
        // The other agent's own calls are checked one by one.
        ToolAccess::None
    }

    fn concurrency(&self) -> ToolConcurrency {
        ToolConcurrency::Safe
    }

    fn subject(&self, arguments: &Value) -> String {
        let agent = arguments["agent"].as_str().unwrap_or_default();
        let about = arguments["description"].as_str().or(arguments["task"].as_str());
        format!("{agent}: {}", shorten_line(about.unwrap_or_default()))
    }

    fn call<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            match DelegateArguments::deserialize(call.arguments) {
                Ok(arguments) => delegate_task(call, arguments).await,
                Err(error) => ToolOutput::error(format!("The arguments do not fit: {error}.")),
            }
        })
    }
}

async fn delegate_task(
    call: ToolInvocation<'_>,
    DelegateArguments { agent, task }: DelegateArguments,
) -> ToolOutput {
    let run = call.run;
    let id = call.id.to_owned();
    let (to, short) = (agent.clone(), shorten_line(&task));
    run.events.emit(EventKind::Delegated { id: id.clone(), to: to.clone(), task: short });
    let report = run.system.run_subagent(run, &agent, task, RunOptions::default()).await;
    run.events.emit(EventKind::DelegationEnded { id, to, status: report.status });
    match (report.status, report.error) {
        (AgentRunStatus::Done, _) => ToolOutput::ok(report.text),
        (status, error) => {
            let why = error.map_or_else(|| format!("{status:?}"), |error| error.to_string());
            let said = match report.text.trim() {
                "" => String::new(),
                text => format!("\n\nWhat it said before that:\n{text}"),
            };
            ToolOutput::error(format!("The agent {agent} did not finish: {why}.{said}"))
        }
    }
}

fn shorten_line(text: &str) -> String {
    let line = one_line(text);
    match line.char_indices().nth(TASK_SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
