//! `delegate`: hands work to another agent, which sees only the task and answers once.

use futures_util::future::BoxFuture;
use repertoire_model::ToolSpec;
use repertoire_skill::render::described;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::event::{EventKind, Status};
use crate::run::Run;
use crate::system::RunOptions;
use crate::tool::{Access, Call, Concurrency, Output, Tool};

const TASK_SHOWN_CHARS: usize = 120;
const DESCRIPTION_SHOWN_CHARS: usize = 300;

#[derive(Clone, Copy, Debug, Default)]
pub struct Delegate;

#[derive(Deserialize)]
struct Arguments {
    agent: String,
    task: String,
}

impl Tool for Delegate {
    fn name(&self) -> &str {
        "delegate"
    }

    fn spec(&self, run: &Run) -> ToolSpec {
        let catalog = run.system.catalog();
        let mut description = String::from(
            "Hands a piece of work to another agent and returns its answer. It sees nothing of this conversation: put \
             everything it needs into the task, and say what to give back. Several calls in one turn run at once.\n\nAgents:\n",
        );
        let names = run.system.agent_names();
        for name in &names {
            let about =
                catalog.agent(name).map_or("Works with every tool there is.".into(), |entry| {
                    described(entry).chars().take(DESCRIPTION_SHOWN_CHARS).collect::<String>()
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

    fn access(&self, _arguments: &Value) -> Access {
        // The other agent's own calls are checked one by one.
        Access::None
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Safe
    }

    fn subject(&self, arguments: &Value) -> String {
        let agent = arguments["agent"].as_str().unwrap_or_default();
        let about = arguments["description"].as_str().or(arguments["task"].as_str());
        format!("{agent}: {}", shortened(about.unwrap_or_default()))
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            match Arguments::deserialize(call.arguments) {
                Ok(arguments) => delegate(call, arguments).await,
                Err(error) => Output::error(format!("The arguments do not fit: {error}.")),
            }
        })
    }
}

async fn delegate(call: Call<'_>, Arguments { agent, task }: Arguments) -> Output {
    let run = call.run;
    let id = call.id.to_owned();
    let (to, short) = (agent.clone(), shortened(&task));
    run.events.emit(EventKind::Delegated { id: id.clone(), to: to.clone(), task: short });
    let report = run.system.run_for(run, &agent, task, RunOptions::default()).await;
    run.events.emit(EventKind::DelegationEnded { id, to, status: report.status });
    match (report.status, report.error) {
        (Status::Done, _) => Output::ok(report.text),
        (status, error) => {
            let why = error.map_or_else(|| format!("{status:?}"), |error| error.to_string());
            let said = match report.text.trim() {
                "" => String::new(),
                text => format!("\n\nWhat it said before that:\n{text}"),
            };
            Output::error(format!("The agent {agent} did not finish: {why}.{said}"))
        }
    }
}

fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(TASK_SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
