//! `rep runs rm`: removes runs of any kind, with their events and files.

use repertoire::runs::{RunRemovalError, force_remove_run, remove_run};
use repertoire_journal::Run;

use super::{RunArg, journal_failure};
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
    /// Also remove a run that is running and whose files are not on this machine
    #[arg(long)]
    force: bool,
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
        let mut found: Vec<Run> = Vec::new();
        for name in &args.runs {
            let run = RunArg { run: name.clone() }.find_run(&journal).await?;
            if !found.iter().any(|known| known.id == run.id) {
                found.push(run);
            }
        }
        for run in &found {
            let removed = if args.force {
                force_remove_run(&journal, &folder, run).await
            } else {
                remove_run(&journal, &folder, run).await
            };
            removed.map_err(|error| removal_failure(run, error))?;
        }
        Ok::<_, CliFailure>(found)
    })?;
    if ui.json {
        let runs = removed.iter().map(RemovedRunJson::new).collect();
        ui.print_json(&RunsRemovedJson { runs })?;
    } else {
        for run in &removed {
            let name = ui::fit_columns(&run.name, usize::MAX);
            writeln!(ui.out, "removed {} {}: {name}", run.kind, run.id)?;
        }
    }
    Ok(CliExit::Done)
}

fn removal_failure(run: &Run, error: RunRemovalError) -> CliFailure {
    match error {
        RunRemovalError::Journal(error) => journal_failure(error),
        RunRemovalError::Folder(error) => CliFailure::negative_answer(error.to_string()),
        RunRemovalError::Elsewhere => {
            CliFailure::negative_answer(format!("run {}: {error}", run.id.short()))
                .hint("Remove it on the machine that started it, or say `--force`.")
        }
    }
}
