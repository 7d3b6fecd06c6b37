//! `plan`: keeps the plan of a run. Each step has a check that shows when it is done.

use std::fmt::Write as _;

use futures_util::future::BoxFuture;
use repertoire_model::ToolSpec;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{arguments, object_schema, text_argument};
use crate::run::AgentRun;
use crate::tool::{Tool, ToolAccess, ToolInvocation, ToolOutput};

/// The maximum number of steps.
const STEPS_MAX: usize = 50;
/// The maximum length of a title, step or check.
const TEXT_CHARS_MAX: usize = 500;

#[derive(Clone, Copy, Debug)]
pub struct PlanTool;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentPlan {
    pub title: String,
    pub steps: Vec<PlanStep>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanStep {
    /// The work to do.
    pub step: String,
    /// The criterion that shows that the step is done.
    pub check: String,
    #[serde(default)]
    pub done: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanArguments {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    steps: Option<Vec<PlanStep>>,
    #[serde(default)]
    done: Vec<usize>,
}

impl Tool for PlanTool {
    fn name(&self) -> &str {
        "plan"
    }

    fn spec(&self, _run: &AgentRun) -> ToolSpec {
        ToolSpec {
            name: "plan".to_owned(),
            description: format!(
                "Keep the plan of this run: `title` and `steps` (at most {STEPS_MAX}, each with a check that shows that it \
                 is done) make a new plan; `done` marks steps by number; nothing at all shows it. Answers with the plan \
                 as a check list."
            ),
            parameters: object_schema(
                &[],
                json!({
                    "title": {"type": "string", "description": "What the plan is for."},
                    "steps": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": STEPS_MAX,
                        "description": "The steps of a new plan, in order.",
                        "items": {
                            "type": "object",
                            "properties": {
                                "step": {"type": "string", "description": "What is to be done."},
                                "check": {"type": "string", "description": "What shows that it is done: a command that passes, a file that exists."},
                                "done": {"type": "boolean", "description": "Whether it is done."},
                            },
                            "required": ["step", "check"],
                            "additionalProperties": false,
                        },
                    },
                    "done": {
                        "type": "array",
                        "items": {"type": "integer", "minimum": 1},
                        "description": "Numbers of steps, from 1, whose checks have passed.",
                    },
                }),
            ),
        }
    }

    fn access(&self, _arguments: &Value) -> ToolAccess {
        ToolAccess::None
    }

    fn subject(&self, arguments: &Value) -> String {
        text_argument(arguments, "title").chars().take(TEXT_CHARS_MAX).collect()
    }

    fn call<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let changed = arguments(&call).and_then(|wanted| {
                update_plan(call.run.state.plan(), wanted).map_err(ToolOutput::error)
            });
            match changed {
                Ok(plan) => {
                    let said = plan.to_markdown();
                    call.run.state.set_plan(Some(plan));
                    ToolOutput::ok(said)
                }
                Err(output) => output,
            }
        })
    }
}

impl AgentPlan {
    /// Renders the plan as a Markdown check list.
    pub fn to_markdown(&self) -> String {
        let mut out = format!("# {}\n\n", self.title);
        for (number, step) in (1..).zip(&self.steps) {
            let mark = if step.done { 'x' } else { ' ' };
            let _ = writeln!(out, "{number}. [{mark}] {} (check: {})", step.step, step.check);
        }
        let done = self.steps.iter().filter(|step| step.done).count();
        let _ = write!(out, "\n`[ ]` open, `[x]` done: {done} of {}", self.steps.len());
        out
    }
}

fn update_plan(before: Option<AgentPlan>, wanted: PlanArguments) -> Result<AgentPlan, String> {
    let mut plan = match (wanted.title, wanted.steps, before) {
        (Some(title), Some(steps), _) => {
            AgentPlan { title: one_line(&title)?, steps: tidy_steps(steps)? }
        }
        (None, None, Some(before)) => before,
        (None, None, None) => {
            return Err("there is no plan yet; give `title` and `steps`".to_owned());
        }
        _ => return Err("a new plan needs both `title` and `steps`".to_owned()),
    };
    for number in wanted.done {
        let count = plan.steps.len();
        let step = number.checked_sub(1).and_then(|at| plan.steps.get_mut(at));
        step.ok_or_else(|| format!("there is no step {number}; the plan has {count}"))?.done = true;
    }
    Ok(plan)
}

fn tidy_steps(steps: Vec<PlanStep>) -> Result<Vec<PlanStep>, String> {
    if steps.is_empty() || steps.len() > STEPS_MAX {
        return Err(format!("a plan has 1 to {STEPS_MAX} steps, not {}", steps.len()));
    }
    steps.into_iter().map(tidy_step).collect()
}

fn tidy_step(step: PlanStep) -> Result<PlanStep, String> {
    Ok(PlanStep { step: one_line(&step.step)?, check: one_line(&step.check)?, done: step.done })
}

fn one_line(text: &str) -> Result<String, String> {
    let line = repertoire_text::layout::one_line(text);
    match line.chars().count() {
        1..=TEXT_CHARS_MAX => Ok(line),
        _ => Err(format!("a title, step or check must have 1 to {TEXT_CHARS_MAX} characters")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::{Bench, call};

    #[tokio::test]
    async fn a_plan_is_kept_and_its_steps_are_marked() {
        let bench = Bench::new();
        let run = bench.run();
        let none = call(&PlanTool, &run, json!({})).await;
        assert!(none.is_error && none.text.contains("no plan yet"));
        let steps = json!([
            {"step": "Write the parser", "check": "cargo test\nparser"},
            {"step": "Document it", "check": "docs/parser.md exists"},
        ]);
        call(&PlanTool, &run, json!({"title": "Parser", "steps": steps})).await;
        let output = call(&PlanTool, &run, json!({"done": [1]})).await;
        insta::assert_snapshot!(output.text, @r"
        # Parser

        1. [x] Write the parser (check: cargo test parser)
        2. [ ] Document it (check: docs/parser.md exists)

        `[ ]` open, `[x]` done: 1 of 2
        ");
        let shown = call(&PlanTool, &run, json!({})).await;
        assert_eq!(shown, output);
    }

    #[tokio::test]
    async fn what_makes_no_sense_leaves_the_plan_as_it_was() {
        let bench = Bench::new();
        let run = bench.run();
        let plan = json!({"title": "T", "steps": [{"step": "a", "check": "b"}]});
        call(&PlanTool, &run, plan).await;
        for wrong in [
            json!({"done": [0]}),
            json!({"done": [2]}),
            json!({"title": "only"}),
            json!({"title": "T", "steps": []}),
            json!({"title": "", "steps": [{"step": "a", "check": "b"}]}),
            json!({"title": "T", "steps": [{"step": "a"}]}),
        ] {
            assert!(call(&PlanTool, &run, wrong).await.is_error);
        }
        assert_eq!(run.state.plan().unwrap().title, "T");
        assert!(!run.state.plan().unwrap().steps[0].done);
    }
}
