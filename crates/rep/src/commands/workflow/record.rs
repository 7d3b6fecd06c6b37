//! `rep workflow record`: records the findings of a review.

use repertoire_flow::driver::ProgramError;
use repertoire_flow::driver::operations::{CheckToRecord, GateReviewRecord};
use repertoire_flow::engine::ItemRecord;
use repertoire_flow::items;
use repertoire_flow::workflow::StepId;
use repertoire_text::terminal::printable_line;

use super::{gate, read_value, workflow_failure};
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::ui::TerminalUi;

/// Arguments of `rep workflow record`
#[derive(Debug, clap::Args)]
pub(crate) struct WorkflowRecordArgs {
    /// Name of the run, or a prefix of it
    run: String,
    /// Items: `ID=PASS`, `ID=FAIL: finding`, or JSON with id, scope, check, severity, status and
    /// finding
    #[arg(value_name = "ITEM")]
    items: Vec<String>,
    /// Read items as JSON from this file, or `-` for standard input
    #[arg(long, value_name = "FILE")]
    from: Option<String>,
    /// A declared check: NAME runs its command; `NAME=PASS` is for a check without a command (may
    /// be repeated)
    #[arg(long = "check", value_name = "NAME")]
    checks: Vec<String>,
    /// The gate to record for, if there are several
    #[arg(long, value_name = "STEP")]
    gate: Option<String>,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &WorkflowRecordArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let items = read_items(ctx, args)?;
    if items.is_empty() && args.checks.is_empty() {
        return Err(CliFailure::wrong_usage("there is nothing to record")
            .hint("Write `ID=PASS`, `'ID=FAIL: finding'`, JSON, or `--check NAME`."));
    }
    let gate = args.gate.as_deref().map(StepId::from);
    let record = GateReviewRecord { gate: gate.clone(), items, checks: parse_checks(args)? };
    let run = ctx.run_workflow_action(async |operations, cancel| {
        let told = |name: &str, command: &str| {
            // Run the check even if the message cannot be printed.
            let _ = ui.print_note(&format!("running {name}: {}", printable_line(command)));
        };
        let run = operations.record_review(&args.run, record, cancel, told).await;
        run.map_err(|error| workflow_failure(ctx, &args.run, error, ui))
    })?;
    gate::print_gate(&run, gate.as_ref(), ui)?;
    Ok(CliExit::Done)
}

fn read_items(
    ctx: &CliContext<'_>,
    args: &WorkflowRecordArgs,
) -> Result<Vec<ItemRecord>, CliFailure> {
    let mut texts = args.items.clone();
    if let Some(from) = &args.from {
        let source = if from == "-" { from.clone() } else { format!("@{from}") };
        texts.push(read_value(ctx, &source)?);
    }
    let mut all = Vec::new();
    for text in texts.iter().filter(|text| !text.trim().is_empty()) {
        all.extend(
            items::parse_items(text).map_err(|error| CliFailure::wrong_usage(error.to_string()))?,
        );
    }
    Ok(all)
}

/// Parses `--check`: `NAME=VERDICT` claims a result, a bare name runs the check.
fn parse_checks(args: &WorkflowRecordArgs) -> Result<Vec<CheckToRecord>, CliFailure> {
    let asked = args.checks.iter().map(|text| {
        if text.contains('=') {
            let claimed = items::parse_check(text);
            claimed
                .map(CheckToRecord::Claimed)
                .map_err(|error| CliFailure::wrong_usage(error.to_string()))
        } else {
            Ok(CheckToRecord::Run(text.clone()))
        }
    });
    asked.collect()
}

/// Converts an error of a check that was not run to a failure.
pub(super) fn program_failure(error: ProgramError) -> CliFailure {
    let message = error.to_string();
    match error {
        ProgramError::NotTrusted { workflow } => {
            let skill = workflow.split('/').next().unwrap_or_default().to_owned();
            CliFailure::negative_answer(message)
                .hint(format!("Look at it, then `rep trust {skill}`; a run goes on if its workflow was not changed since."))
        }
        ProgramError::NoCommand { name } => CliFailure::negative_answer(message).hint(format!(
            "Record what you saw: `--check {name}=PASS` or `--check '{name}=FAIL: why'`."
        )),
        ProgramError::NoSuchCheck { .. } | ProgramError::Template { .. } => {
            CliFailure::negative_answer(message)
        }
        ProgramError::Cancelled => {
            CliFailure { exit: CliExit::Interrupted, ..CliFailure::negative_answer(message) }
        }
        ProgramError::Process(_) => CliFailure::cannot_run(message),
    }
}
