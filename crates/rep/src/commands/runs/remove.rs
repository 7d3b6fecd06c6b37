//! `rep runs rm`: removes runs of any kind, with their events and files.

use camino::Utf8Path;
use repertoire::runs::{RunEnd, SafeRemovalError, force_remove_run, remove_run};
use repertoire_journal::{Journal, Run, RunId, RunKind, RunRemovalError, RunStatus};

use super::journal_failure;
use crate::async_runtime::build_runtime;
use crate::cli::{CliContext, print_failure};
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::runs::{RemovedRunJson, RunNotRemovedJson, RunsRemovedJson};
use crate::ui::{self, TerminalUi};

/// Arguments of `rep runs rm`
#[derive(Debug, clap::Args)]
pub(crate) struct RunsRemoveArgs {
    /// Ids of the runs, the start or end of an id, names, or `last`
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// Also remove a workflow that is not over, and a run that is damaged, or whose files or worktree
    /// are not on this machine
    #[arg(long)]
    force: bool,
}

/// A run to remove. `run` is `None` if it cannot be read.
struct FoundRun {
    id: RunId,
    run: Option<Run>,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &RunsRemoveArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let removed = build_runtime()?.block_on(async {
        let journal = ctx.require_journal().await?;
        // Find all before removing any, since `last` names another run after a removal.
        let mut found: Vec<(&str, Result<FoundRun, CliFailure>)> = Vec::new();
        for name in &args.runs {
            let run = find_run(&journal, name, args.force).await;
            let is_known = run.as_ref().is_ok_and(|run| is_among(&found, &run.id));
            if !is_known {
                found.push((name, run));
            }
        }
        remove_all(ctx, &journal, args.force, found, ui).await
    })?;
    if ui.json {
        ui.print_json(&removed)?;
    }
    Ok(if removed.failed.is_empty() { CliExit::Done } else { CliExit::No })
}

fn is_among(found: &[(&str, Result<FoundRun, CliFailure>)], id: &RunId) -> bool {
    found.iter().any(|(_, run)| run.as_ref().is_ok_and(|run| run.id == *id))
}

/// Removes runs one after the other, and reports each. A run that is not removed stops no other; if
/// there is only one, its failure is the result.
async fn remove_all(
    ctx: &CliContext<'_>,
    journal: &Journal,
    is_forced: bool,
    found: Vec<(&str, Result<FoundRun, CliFailure>)>,
    ui: &mut TerminalUi<'_>,
) -> Result<RunsRemovedJson, CliFailure> {
    let is_only_one = found.len() == 1;
    let mut report = RunsRemovedJson { runs: Vec::new(), damaged: Vec::new(), failed: Vec::new() };
    for (name, found) in found {
        let removed = match found {
            Ok(found) => remove_found(ctx, journal, is_forced, found, ui).await,
            Err(failure) => Err(failure),
        };
        match removed {
            Ok(FoundRun { run: Some(run), id }) => {
                let title = ui::fit_columns(&run.name, usize::MAX);
                print_line(&format!("removed {} {id}: {title}", run.kind), ui)?;
                report.runs.push(RemovedRunJson::new(&run));
            }
            Ok(FoundRun { run: None, id }) => {
                print_line(&format!("removed {id}, which could not be read"), ui)?;
                report.damaged.push(id);
            }
            Err(failure) if is_only_one => return Err(failure),
            Err(failure) => {
                ui.out.flush()?;
                print_failure(ui.err, &failure, ui.err_colour);
                let reason = failure.message;
                report.failed.push(RunNotRemovedJson { run: name.to_owned(), reason });
            }
        }
    }
    Ok(report)
}

fn print_line(line: &str, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    if ui.json { Ok(()) } else { writeln!(ui.out, "{line}") }
}

async fn find_run(journal: &Journal, name: &str, is_forced: bool) -> Result<FoundRun, CliFailure> {
    let id = journal.find_run_id(name).await.map_err(journal_failure)?;
    match journal.run(&id).await {
        Ok(run) => Ok(FoundRun { id, run }),
        Err(error) if is_forced && error.run_problem().is_some() => Ok(FoundRun { id, run: None }),
        Err(error) => Err(journal_failure(error)),
    }
}

async fn remove_found(
    ctx: &CliContext<'_>,
    journal: &Journal,
    is_forced: bool,
    found: FoundRun,
    ui: &mut TerminalUi<'_>,
) -> Result<FoundRun, CliFailure> {
    let folder = ctx.run_places().runs;
    let removed = match &found.run {
        Some(run) if !is_forced => {
            require_removable(ctx, run, &folder, ui)?;
            remove_run(journal, &folder, run).await
        }
        _ => force_remove_run(journal, &folder, &found.id).await.map_err(SafeRemovalError::from),
    };
    removed.map_err(|error| removal_failure(&found.id, error))?;
    Ok(found)
}

/// Fails for a workflow that is not over, unless the user confirms its removal at a terminal. Other
/// runs that are not over are refused by the journal, or by the lock of their folder.
pub(crate) fn require_removable(
    ctx: &CliContext<'_>,
    run: &Run,
    folder: &Utf8Path,
    ui: &mut TerminalUi<'_>,
) -> Result<(), CliFailure> {
    let is_workflow = RunKind::parse(&run.kind) == Some(RunKind::Workflow);
    if !is_workflow || RunEnd::of_run(run, folder).is_some() {
        return Ok(());
    }
    let state = match run.status {
        RunStatus::Waiting => "waits for a person",
        _ => "is not over",
    };
    let name = ui::fit_columns(&run.name, usize::MAX);
    if ctx.env.stdin_is_terminal && ctx.env.stderr_is_terminal && !ui.json {
        let question = format!("Workflow {} ({name}) {state}. Remove it?", run.id);
        if ui.ask_yes_or_no(&question)? {
            return Ok(());
        }
    }
    let failure = CliFailure::negative_answer(format!("workflow {} ({name}) {state}", run.id));
    Err(failure.hint(format!(
        "Cancel it with `rep workflow resume {0} --choice abort`, or remove it with `rep runs rm --force {0}`.",
        run.id
    )))
}

fn removal_failure(id: &RunId, error: SafeRemovalError) -> CliFailure {
    match error {
        SafeRemovalError::Removal(RunRemovalError::Journal(error)) => journal_failure(error),
        SafeRemovalError::Removal(RunRemovalError::Folder(error)) => {
            CliFailure::negative_answer(error.to_string())
        }
        SafeRemovalError::Elsewhere => {
            CliFailure::negative_answer(format!("run {}: {error}", id.short()))
                .hint("Remove it on the machine that started it, or say `--force`.")
        }
    }
}
