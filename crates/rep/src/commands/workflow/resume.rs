//! `rep workflow resume`: resumes a run that waits for a person or was left.

use std::collections::BTreeMap;

use repertoire_flow::driver::{AnyWorkflowRun, WorkflowRunError, WorkflowRunListEntry};

use super::{StepFormatArg, parse_pair, print_run_state, workflow_failure};
use crate::cli::CliContext;
use crate::failure::{CliFailure, CliResult};
use crate::ui::TerminalUi;

/// Arguments of `rep workflow resume`
#[derive(Debug, clap::Args)]
pub(crate) struct WorkflowResumeArgs {
    /// Name of the run, or a prefix of it (default: the latest unfinished run of this project)
    run: Option<String>,
    /// The decision: continue, must-only, skip, abort, or take:OUTCOME
    #[arg(long, value_name = "CHOICE", conflicts_with = "answers")]
    choice: Option<String>,
    /// Reason for the decision, for the record
    #[arg(long, value_name = "TEXT", requires = "choice")]
    note: Option<String>,
    /// Answer to a question (may be repeated)
    #[arg(long = "answer", value_name = "ID=TEXT")]
    answers: Vec<String>,
    #[command(flatten)]
    format: StepFormatArg,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &WorkflowResumeArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let wanted = match &args.run {
        Some(wanted) => wanted.clone(),
        None => find_latest_run(ctx, args.choice.is_some() || !args.answers.is_empty(), ui)?,
    };
    let format = args.format.resolve(ctx, ui);
    let answers = args.answers.iter().map(|text| parse_pair(ctx, text, "--answer"));
    let answers = answers.collect::<Result<BTreeMap<_, _>, _>>()?;
    let note = args.note.as_deref().unwrap_or_default();
    let standing = ctx.run_workflow_action(async |operations, cancel| {
        let standing = match &args.choice {
            Some(word) => operations.apply_choice(&wanted, word, note, cancel).await,
            None if answers.is_empty() => operations.advance_run(&wanted, None, None, cancel).await,
            None => {
                let answered = operations.answer(&wanted, answers).await;
                answered.map(|run| AnyWorkflowRun::Workflow(Box::new(run)))
            }
        };
        standing.map_err(|error| workflow_failure(ctx, &wanted, error, ui))
    })?;
    print_run_state(&standing, format, ui)
}

fn print_skipped_run(
    id: &str,
    error: &WorkflowRunError,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let remedy = match error {
        WorkflowRunError::Damaged { .. } => format!("; `rep runs rm --force {id}` removes it"),
        _ => String::new(),
    };
    ui.print_note(&format!("note: skipped run {id}: {error}{remedy}"))
}

/// Returns the latest unfinished run of this project, leaving out those of sub-agents. Broken runs
/// are skipped with a note. If there are several and `decides` is set, fails, since a decision must
/// not go to a run that the user did not name.
fn find_latest_run(
    ctx: &CliContext<'_>,
    decides: bool,
    ui: &mut TerminalUi<'_>,
) -> Result<String, CliFailure> {
    let here = ctx.project_dir(None);
    let mut open = Vec::new();
    for listed in ctx.list_workflow_runs()? {
        match listed {
            WorkflowRunListEntry::Run(row) => {
                let goes_on = matches!(row.state, "active" | "waiting");
                if !goes_on || row.folder != here.as_str() || row.parent.is_some() {
                    continue;
                }
                // The list reads only the end of a run.
                match ctx.use_workflow_runs(async |runs| Ok(runs.open_any(&row.run).await))? {
                    Ok(_) => open.push(row.run),
                    Err(error) => print_skipped_run(&row.run, &error, ui)?,
                }
            }
            WorkflowRunListEntry::Broken { id, error } => print_skipped_run(&id, &error, ui)?,
        }
    }
    match open.as_slice() {
        [] => Err(CliFailure::negative_answer("no run of this project waits to go on")
            .hint("`rep workflow runs` lists those of all projects.")),
        [one] => Ok(one.clone()),
        several if decides => {
            Err(CliFailure::wrong_usage(format!("say which run: {}", several.join(", "))))
        }
        [latest, others @ ..] => {
            ui.print_note(&format!("note: also open here: {}", others.join(", ")))?;
            Ok(latest.clone())
        }
    }
}
