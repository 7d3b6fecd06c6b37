//! `rep workflow gate`: shows the verdict of a gate, and why.

use repertoire_flow::driver::StoredWorkflowRun;
use repertoire_flow::driver::json_output::default_gate;
use repertoire_flow::engine::{GateVerdict, compute_verdict, is_proven};
use repertoire_flow::state::{GateReview, ItemStatus};
use repertoire_flow::workflow::{Gate, ItemSeverity, StepDef, StepId};
use repertoire_text::terminal::printable_line;

use super::workflow_run_failure;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::workflow::GateJson;
use crate::ui::{self, TerminalUi};

/// Arguments of `rep workflow gate`
#[derive(Debug, clap::Args)]
pub(crate) struct WorkflowGateArgs {
    /// Name of the run, or a prefix of it
    run: String,
    /// The gate (default: the one whose review is in progress, or the last one that was)
    #[arg(long, value_name = "STEP")]
    gate: Option<String>,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &WorkflowGateArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let gate = args.gate.as_deref().map(StepId::from);
    let (run, outdated) = ctx.run_workflow_action(async |desk, _| {
        let run = desk.runs.open_run(&args.run).await.map_err(workflow_run_failure)?;
        let (step, _) = find_gate(&run, gate.as_ref())?;
        let outdated = desk.outdated_checks(&run, &step.id).await;
        Ok((run, outdated))
    })?;
    let passed = print_gate(&run, gate.as_ref(), ui)?;
    let is_known = outdated.work.is_some();
    for name in &outdated.names {
        let why = if is_known {
            "was green, but not on the work as it is now"
        } else {
            "was green, and nothing says whether the work has changed since (there is no git repository, or it is too large)"
        };
        ui.print_note(&format!(
            "check `{name}` {why}: it is run again when the gate is left, or now with `rep workflow record {} --check {name}`",
            run.state.run
        ))?;
    }
    let is_current = outdated.names.is_empty() || !is_known;
    if passed && is_current { Ok(CliExit::Done) } else { Ok(CliExit::No) }
}

/// Prints the verdict of a gate. Returns true if it is passed.
pub(super) fn print_gate(
    run: &StoredWorkflowRun,
    wanted: Option<&StepId>,
    ui: &mut TerminalUi<'_>,
) -> Result<bool, CliFailure> {
    let (step, gate) = find_gate(run, wanted)?;
    let none = GateReview::default();
    let review = run.state.reviews.get(&step.id).unwrap_or(&none);
    let verdict = compute_verdict(gate, review);
    let passed = matches!(verdict, GateVerdict::Pass { .. });
    if ui.json {
        ui.print_json(&GateJson::new(run, &step.id, gate, review, &verdict))?;
        return Ok(passed);
    }
    let word = match &verdict {
        GateVerdict::Pass { .. } => ui.paint(ui::GOOD, "pass"),
        GateVerdict::Fail { .. } => ui.paint(ui::BAD, "fail"),
        GateVerdict::Open { .. } => ui.paint(ui::WARN, "open"),
    };
    let granted = run.state.granted.get(&step.id).copied().unwrap_or_default();
    let limit = gate.iteration_limit().saturating_add(granted);
    let iteration = format!("iteration {} of {limit}", review.iteration);
    let blocks = match gate.blocking_severity(review.iteration) {
        ItemSeverity::Could => "everything blocks",
        ItemSeverity::Should => "MUST and SHOULD block",
        ItemSeverity::Must => "only MUST blocks",
    };
    writeln!(
        ui.out,
        "{} {word} {}",
        ui.paint(ui::STRONG, printable_line(&gate.name)),
        ui.paint(ui::FAINT, format!("({}; {iteration}; {blocks})", step.id))
    )?;
    for item in &review.items {
        let finding = if item.finding.is_empty() { &item.check } else { &item.finding };
        print_line(&item.id, item.severity.as_str(), item.status, finding, ui)?;
    }
    for name in &gate.checks {
        let result = review.checks.get(name);
        let status = result.map_or(ItemStatus::Todo, |result| result.status);
        let note = result.map(|result| result.note.as_str()).unwrap_or_default();
        print_line(name, "check", status, note, ui)?;
    }
    let said = match &verdict {
        GateVerdict::Open { todo, checks } if todo.is_empty() && checks.is_empty() => {
            "Nothing was recorded; a gate without items cannot be passed.".to_owned()
        }
        GateVerdict::Open { todo, checks } => {
            format!("No verdict yet: {}.", [todo.as_slice(), checks].concat().join(", "))
        }
        GateVerdict::Fail { blocking, .. } => format!("Blocking: {}.", blocking.join(", ")),
        GateVerdict::Pass { passed_over } if !passed_over.is_empty() => {
            format!("Failed, and not blocking in this iteration: {}.", passed_over.join(", "))
        }
        GateVerdict::Pass { .. } => "Nothing blocks.".to_owned(),
    };
    writeln!(ui.out, "{said}")?;
    if passed {
        let proof = if is_proven(run.workflow.workflow(), gate, review) {
            "Self-reviewed: its items were recorded in this run. A declared check is green."
        } else {
            "Self-reviewed, and no declared check has confirmed it: a person has to accept it."
        };
        writeln!(ui.out, "{proof}")?;
    }
    Ok(passed)
}

fn print_line(
    id: &str,
    severity: &str,
    status: ItemStatus,
    text: &str,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let word = match status {
        ItemStatus::Pass => ui.paint(ui::GOOD, "PASS"),
        ItemStatus::Fail => ui.paint(ui::BAD, "FAIL"),
        ItemStatus::Todo => ui.paint(ui::WARN, "TODO"),
    };
    let (id, severity) =
        (ui::pad_columns(&ui::fit_columns(id, 16), 16), ui::pad_columns(severity, 6));
    let text = ui::fit_columns(text, ui.columns.saturating_sub(34).max(20));
    writeln!(ui.out, "  {word}  {severity}  {id}  {text}")
}

/// Returns the requested gate, or the current one.
fn find_gate<'a>(
    run: &'a StoredWorkflowRun,
    wanted: Option<&StepId>,
) -> Result<(&'a StepDef, &'a Gate), CliFailure> {
    let workflow = run.workflow.workflow();
    let gates = || workflow.gates();
    if let Some(wanted) = wanted {
        return gates().find(|(step, _)| step.id == *wanted).ok_or_else(|| {
            let names: Vec<&str> = gates().map(|(step, _)| step.id.as_str()).collect();
            CliFailure::negative_answer(format!("there is no gate `{wanted}`"))
                .hint(format!("Gates of this workflow: {}.", names.join(", ")))
        });
    }
    default_gate(run).ok_or_else(|| {
        CliFailure::negative_answer(format!("workflow `{}` has no gate", workflow.name))
    })
}
