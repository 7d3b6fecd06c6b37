//! `rep review --dry-run`: prints the prompt of every agent.

use repertoire_review::finding::Phase;
use repertoire_review::pipeline::ReviewPlan;
use repertoire_text::terminal::printable_line;
use serde_json::json;

use crate::failure::{CliExit, CliResult};
use crate::ui::{self, TerminalUi};

pub(crate) fn run(plan: &ReviewPlan, ui: &mut TerminalUi<'_>) -> CliResult {
    let questions = plan.preview_questions();
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
        ui.print_json(&json!({ "planned": plan.planned_phases(), "questions": all }))?;
        return Ok(CliExit::Done);
    }
    for warning in plan.warnings.iter().chain(&plan.gathered.warnings) {
        ui.print_note(&ui.paint_err(ui::WARN, format!("! {}", printable_line(warning))))?;
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
    for planned in plan.planned_phases() {
        let when = match planned.phase {
            Phase::Gaps => " (they are told what was found before)",
            Phase::Synthesis => " at most (pairs of categories that both have findings)",
            Phase::Validation => {
                ui.print_note(
                    "validation: a call for each file with findings, and one for insights",
                )?;
                continue;
            }
            _ => "",
        };
        ui.print_note(&format!(
            "{}: {}{when}",
            planned.phase,
            ui::format_count(planned.calls as usize, "call")
        ))?;
    }
    Ok(CliExit::Done)
}
