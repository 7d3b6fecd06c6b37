//! `rep workflow status`: shows the current step of a run, and its history.

use repertoire_flow::driver::{AnyWorkflowRun, StoredWorkflowRun};
use repertoire_flow::state::{GateReview, ItemStatus, WorkflowRunStatus};
use repertoire_text::terminal::printable_line;

use super::{exit_of, scripts, workflow_run_failure};
use crate::cli::CliContext;
use crate::failure::CliResult;
use crate::schema::workflow::StatusJson;
use crate::ui::{self, TerminalUi};

/// Arguments of `rep workflow status`
#[derive(Debug, clap::Args)]
pub(crate) struct WorkflowStatusArgs {
    /// Name of the run, or a prefix of it
    run: String,
    /// Show the findings of earlier review iterations
    #[arg(long)]
    findings: bool,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &WorkflowStatusArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let run = ctx.use_workflow_runs(async |runs| {
        runs.open_any(&args.run).await.map_err(workflow_run_failure)
    })?;
    let mut run = match run {
        AnyWorkflowRun::Script(run) => return scripts::print_status(&run, ui),
        AnyWorkflowRun::Workflow(run) => run,
    };
    if !args.findings {
        // Hide earlier findings by default, so that they don't bias a reviewer who reads this.
        for review in run.state.reviews.values_mut() {
            review
                .rounds
                .iter_mut()
                .flat_map(|round| &mut round.items)
                .for_each(|item| item.finding.clear());
        }
    }
    if ui.json {
        ui.print_json(&StatusJson::from_run(&run))?;
        return Ok(exit_of(&run));
    }
    print_state(&run, args, ui)?;
    Ok(exit_of(&run))
}

fn print_state(
    run: &StoredWorkflowRun,
    args: &WorkflowStatusArgs,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let (state, workflow) = (&run.state, run.workflow.workflow());
    let step = run.workflow.find_step(&state.step);
    let number = run.workflow.step_number(&state.step).unwrap_or_default();
    let title = step.map(|step| step.title.as_str()).unwrap_or_default();
    writeln!(
        ui.out,
        "{}  {}",
        ui.paint(ui::STRONG, &state.run),
        ui.paint(ui::FAINT, &state.workflow)
    )?;
    let place = printable_line(&format!("step {number} of {}: {title}", workflow.steps.len()));
    match &state.status {
        WorkflowRunStatus::Active => writeln!(ui.out, "  at {place}, turn {}", state.turn)?,
        WorkflowRunStatus::Done => {
            writeln!(ui.out, "  {} after {} turns", ui.paint(ui::GOOD, "done"), state.turn)?;
        }
        WorkflowRunStatus::Aborted => {
            writeln!(ui.out, "  {} at {place}", ui.paint(ui::BAD, "ended by a person"))?;
        }
        WorkflowRunStatus::Waiting(waiting) => {
            writeln!(ui.out, "  {} at {place}", ui.paint(ui::WARN, "waits for a person"))?;
            writeln!(
                ui.out,
                "  {}",
                ui::wrap_words(&waiting.to_string(), ui.columns.saturating_sub(4), "  ")
            )?;
        }
    }
    if let Some(parent) = &run.head.parent {
        writeln!(ui.out, "  for a sub-agent of {parent}")?;
    }
    if !state.parameters.is_empty() {
        writeln!(ui.out, "\n{}", ui.paint(ui::STRONG, "Parameters"))?;
        for (name, value) in &state.parameters {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let text = ui::fit_columns(&text, ui.columns.saturating_sub(24).max(20));
            writeln!(ui.out, "  {}  {text}", ui.paint(ui::ACCENT, ui::pad_columns(name, 18)))?;
        }
    }
    if !state.outputs.is_empty() {
        writeln!(ui.out, "\n{}", ui.paint(ui::STRONG, "Handed over"))?;
        for (step, text) in &state.outputs {
            let first = text.trim().lines().next().unwrap_or_default();
            let first = ui::fit_columns(first, ui.columns.saturating_sub(30).max(20));
            writeln!(
                ui.out,
                "  {}  {first}",
                ui.paint(ui::ACCENT, ui::pad_columns(step.as_str(), 24))
            )?;
        }
    }
    for (gate, review) in &state.reviews {
        print_review(gate.as_str(), review, args.findings, ui)?;
    }
    if !state.decisions.is_empty() {
        writeln!(ui.out, "\n{}", ui.paint(ui::STRONG, "Decided by people"))?;
        for made in &state.decisions {
            let accepted = if made.accepted.is_empty() {
                String::new()
            } else {
                format!("; accepted: {}", made.accepted.join(", "))
            };
            let note =
                if made.note.is_empty() { String::new() } else { format!(" ({})", made.note) };
            let line =
                format!("turn {}, {}: {}{note}{accepted}", made.turn, made.step, made.choice);
            writeln!(ui.out, "  {}", ui::fit_columns(&line, 400))?;
        }
    }
    if !state.history.is_empty() {
        writeln!(ui.out, "\n{}", ui.paint(ui::STRONG, "The way so far"))?;
        for passage in &state.history {
            let outcome = passage.outcome.as_ref().map_or("error", |outcome| outcome.as_str());
            let note = match &passage.error {
                Some(error) => format!(": {}", ui::fit_columns(error, 60)),
                None if passage.limited => " (its bound decided)".to_owned(),
                None => String::new(),
            };
            let to = passage.to.as_step().map_or("end", |id| id.as_str());
            writeln!(
                ui.out,
                "  {:>3}  {}  {outcome} → {to}{note}",
                passage.turn,
                ui::pad_columns(passage.step.as_str(), 24)
            )?;
        }
    }
    Ok(())
}

fn print_review(
    gate: &str,
    review: &GateReview,
    findings: bool,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let count = |status| review.items.iter().filter(|item| item.status == status).count();
    let (todo, pass, fail) =
        (count(ItemStatus::Todo), count(ItemStatus::Pass), count(ItemStatus::Fail));
    let passed = if review.passed { ", passed" } else { "" };
    writeln!(
        ui.out,
        "\n{}  iteration {}: {pass} PASS, {fail} FAIL, {todo} TODO{passed}",
        ui.paint(ui::STRONG, gate),
        review.iteration
    )?;
    if !findings {
        return Ok(());
    }
    for round in &review.rounds {
        let red = round.checks.iter().filter(|(_, result)| result.status == ItemStatus::Fail);
        for (name, result) in red {
            let line = format!("iteration {}  check {name}: {}", round.iteration, result.note);
            writeln!(ui.out, "  {}", ui::fit_columns(&line, ui.columns.saturating_sub(2).max(40)))?;
        }
        let failed = round.items.iter().filter(|item| item.status == ItemStatus::Fail);
        for item in failed {
            let line = format!(
                "iteration {}  {} {}: {}",
                round.iteration, item.severity, item.id, item.finding
            );
            writeln!(ui.out, "  {}", ui::fit_columns(&line, ui.columns.saturating_sub(2).max(40)))?;
        }
    }
    Ok(())
}
