//! `skill_search`: finds skills, including those that do not fit into the description of the `skill` tool.

use futures_util::future::BoxFuture;
use repertoire_model::ToolSpec;
use repertoire_select::Task;
use repertoire_skill::render::catalog::is_offered;
use repertoire_skill::render::describe_skill;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::run::AgentRun;
use crate::tool::{Tool, ToolAccess, ToolConcurrency, ToolInvocation, ToolOutput};

const FOUND: usize = 5;
const FOUND_MAX: usize = 20;
/// Skills that score below this are not listed.
const SCORE_MIN: f32 = 0.02;

#[derive(Clone, Copy, Debug, Default)]
pub struct AgentSkillSearchTool;

#[derive(Deserialize)]
struct AgentSkillSearchArguments {
    query: String,
    limit: Option<usize>,
}

impl Tool for AgentSkillSearchTool {
    fn name(&self) -> &str {
        "skill_search"
    }

    fn spec(&self, _run: &AgentRun) -> ToolSpec {
        let description = "Finds skills by what they are for, among all that there are. Describe the work in a sentence. \
                           Load what fits with the `skill` tool."
            .to_owned();
        let parameters = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "The work, in a sentence."},
                "limit": {"type": "integer", "minimum": 1, "maximum": FOUND_MAX, "description": "Most skills to list; 5 by default."},
            },
            "required": ["query"],
            "additionalProperties": false,
        });
        ToolSpec { name: "skill_search".to_owned(), description, parameters }
    }

    fn access(&self, _arguments: &Value) -> ToolAccess {
        ToolAccess::None
    }

    fn concurrency(&self) -> ToolConcurrency {
        ToolConcurrency::Safe
    }

    fn subject(&self, arguments: &Value) -> String {
        arguments["query"].as_str().unwrap_or_default().to_owned()
    }

    fn call<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            match AgentSkillSearchArguments::deserialize(call.arguments) {
                Ok(arguments) => search_skills(call.run, &arguments),
                Err(error) => ToolOutput::error(format!("The arguments do not fit: {error}.")),
            }
        })
    }
}

fn search_skills(run: &AgentRun, asked: &AgentSkillSearchArguments) -> ToolOutput {
    let catalog = run.system.catalog();
    let limit = asked.limit.unwrap_or(FOUND).min(FOUND_MAX);
    let ranked = run.system.selector(&catalog).rank(&Task::new(asked.query.clone()), limit);
    let lines: Vec<String> = ranked
        .iter()
        .filter(|found| found.score >= SCORE_MIN)
        .filter_map(|found| catalog.get(&found.name).filter(|entry| is_offered(entry)))
        .map(|entry| format!("- {}: {}", entry.id, describe_skill(entry)))
        .collect();
    if lines.is_empty() {
        return ToolOutput::ok(
            "No skill fits. Go on without, or describe the work in other words.",
        );
    }
    ToolOutput::ok(format!("{}\n\nLoad one with skill(name).", lines.join("\n")))
}
