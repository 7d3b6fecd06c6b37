//! `skill_search`: finds skills, including those that do not fit into the description of the `skill` tool.

use futures_util::future::BoxFuture;
use repertoire_model::ToolSpec;
use repertoire_select::Task;
use repertoire_skill::render::catalog::is_offered;
use repertoire_skill::render::described;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::run::Run;
use crate::tool::{Access, Call, Concurrency, Output, Tool};

const FOUND: usize = 5;
const FOUND_MAX: usize = 20;
/// Skills that score below this are not listed.
const SCORE_MIN: f32 = 0.02;

#[derive(Clone, Copy, Debug, Default)]
pub struct SkillSearch;

#[derive(Deserialize)]
struct Arguments {
    query: String,
    limit: Option<usize>,
}

impl Tool for SkillSearch {
    fn name(&self) -> &str {
        "skill_search"
    }

    fn spec(&self, _run: &Run) -> ToolSpec {
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

    fn access(&self, _arguments: &Value) -> Access {
        Access::None
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Safe
    }

    fn subject(&self, arguments: &Value) -> String {
        arguments["query"].as_str().unwrap_or_default().to_owned()
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            match Arguments::deserialize(call.arguments) {
                Ok(arguments) => search(call.run, &arguments),
                Err(error) => Output::error(format!("The arguments do not fit: {error}.")),
            }
        })
    }
}

fn search(run: &Run, asked: &Arguments) -> Output {
    let catalog = run.system.catalog();
    let limit = asked.limit.unwrap_or(FOUND).min(FOUND_MAX);
    let ranked = run.system.selector(&catalog).rank(&Task::new(asked.query.clone()), limit);
    let lines: Vec<String> = ranked
        .iter()
        .filter(|found| found.score >= SCORE_MIN)
        .filter_map(|found| catalog.get(&found.name).filter(|entry| is_offered(entry)))
        .map(|entry| format!("- {}: {}", entry.id, described(entry)))
        .collect();
    if lines.is_empty() {
        return Output::ok("No skill fits. Go on without, or describe the work in other words.");
    }
    Output::ok(format!("{}\n\nLoad one with skill(name).", lines.join("\n")))
}
