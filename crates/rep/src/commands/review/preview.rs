//! `rep review --dry-run`: prints the prompt of every agent.

use repertoire_review::finding::Phase;
use repertoire_review::pipeline::Plan;
use repertoire_text::terminal::printable;
use serde_json::json;

use crate::failure::{Exit, Outcome};
use crate::ui::{self, Ui};

pub(crate) fn run(plan: &Plan, ui: &mut Ui<'_>) -> Outcome {
    let questions = plan.preview();
    if ui.json {
        let all: Vec<_> = questions
            .iter()
            .map(|(phase, question)| {
                json!({
                    "phase": phase, "agent": question.name, "tier": question.tier,
                    "system": question.prompt.system, "prompt": question.prompt.task,
                    "schema": question.schema.1,
                })
            })
            .collect();
        ui.print_json(&json!({ "planned": plan.planned(), "questions": all }))?;
        return Ok(Exit::Done);
    }
    for warning in plan.warnings.iter().chain(&plan.gathered.warnings) {
        ui.note(&ui.paint_err(ui::WARN, format!("! {}", printable(warning))))?;
    }
    for (phase, question) in &questions {
        let heading = format!("━━ {} ({phase}, {} model)", question.name, question.tier.as_str());
        writeln!(ui.out, "{}\n", ui.paint(ui::STRONG, heading))?;
        writeln!(
            ui.out,
            "{}\n{}\n",
            ui.paint(ui::FAINT, "as the operator:"),
            ui::printable_lines(&question.prompt.system)
        )?;
        writeln!(
            ui.out,
            "{}\n{}",
            ui.paint(ui::FAINT, "as the task:"),
            ui::printable_lines(&question.prompt.task)
        )?;
    }
    for planned in plan.planned() {
        let when = match planned.phase {
            Phase::Gaps => " (they are told what was found before)",
            Phase::Synthesis => " at most (pairs of categories that both have findings)",
            Phase::Validation => {
                ui.note("validation: a call for each file with findings, and one for insights")?;
                continue;
            }
            _ => "",
        };
        ui.note(&format!(
            "{}: {}{when}",
            planned.phase,
            ui::count(planned.calls as usize, "call")
        ))?;
    }
    Ok(Exit::Done)
}
