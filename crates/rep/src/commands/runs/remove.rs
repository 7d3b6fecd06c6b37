//! `rep runs rm`: removes runs of any kind, with their events and files.

use repertoire::runs::{SafeRemovalError, force_remove_run, remove_run};
use repertoire_journal::{Journal, Run, RunId, RunRemovalError};

use super::journal_failure;
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::runs::{RemovedRunJson, RunsRemovedJson};
use crate::ui::{self, TerminalUi};

/// Arguments of `rep runs rm`
#[derive(Debug, clap::Args)]
pub(crate) struct RunsRemoveArgs {
    /// Ids of the runs, the start or end of an id, names, or `last`
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// Also remove a run that is damaged, or whose files or worktree are not on this machine
    #[arg(long)]
    force: bool,
}

/// A run to remove. `None` if it cannot be read.
struct FoundRun {
    id: RunId,
    run: Option<Run>,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &RunsRemoveArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let folder = ctx.run_places().runs;
    let removed = build_runtime()?.block_on(async {
        let journal = ctx.require_journal().await?;
        // Find all before removing any: a typo removes nothing.
        let mut found: Vec<FoundRun> = Vec::new();
        for name in &args.runs {
            let run = find_run(&journal, name, args.force).await?;
            if !found.iter().any(|known| known.id == run.id) {
                found.push(run);
            }
        }
        for FoundRun { id, run } in &found {
            let removed = match run {
                Some(run) if !args.force => remove_run(&journal, &folder, run).await,
                _ => force_remove_run(&journal, &folder, id).await.map_err(SafeRemovalError::from),
            };
            removed.map_err(|error| removal_failure(id, error))?;
        }
        Ok::<_, CliFailure>(found)
    })?;
    if ui.json {
        let runs = removed.iter().filter_map(|found| found.run.as_ref());
        let damaged = removed.iter().filter(|found| found.run.is_none());
        ui.print_json(&RunsRemovedJson {
            runs: runs.map(RemovedRunJson::new).collect(),
            damaged: damaged.map(|found| found.id.clone()).collect(),
        })?;
        return Ok(CliExit::Done);
    }
    for FoundRun { id, run } in &removed {
        match run {
            Some(run) => {
                let name = ui::fit_columns(&run.name, usize::MAX);
                writeln!(ui.out, "removed {} {id}: {name}", run.kind)?;
            }
            None => writeln!(ui.out, "removed {id}, which could not be read")?,
        }
    }
    Ok(CliExit::Done)
}

async fn find_run(journal: &Journal, name: &str, is_forced: bool) -> Result<FoundRun, CliFailure> {
    let id = journal.find_run_id(name).await.map_err(journal_failure)?;
    match journal.run(&id).await {
        Ok(run) => Ok(FoundRun { id, run }),
        Err(error) if is_forced && error.run_problem().is_some() => Ok(FoundRun { id, run: None }),
        Err(error) => Err(journal_failure(error)),
    }
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
