//! `rep workflow runs`: lists the runs of workflows, and removes some.

use camino::Utf8Path;
use repertoire_flow::driver::{WorkflowRunListEntry, WorkflowRunStore};
use repertoire_journal::{Journal, RunId};

use super::{now_ms, workflow_run_failure};
use crate::async_runtime::build_runtime;
use crate::cli::{CliContext, print_failure};
use crate::commands::runs::conversations::format_ago;
use crate::commands::runs::journal_failure;
use crate::commands::runs::remove::require_removable;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::workflow::{BrokenWorkflowRun, WorkflowRunListRow, WorkflowRunsListJson};
use crate::ui::{self, TerminalUi};

const SHOWN_MAX: usize = 20;

/// Arguments of `rep workflow runs`
#[derive(Debug, clap::Args)]
pub(crate) struct WorkflowRunsArgs {
    /// List all runs, not only the latest 20
    #[arg(long)]
    all: bool,
    #[command(subcommand)]
    action: Option<WorkflowRunsAction>,
}

#[derive(Debug, clap::Subcommand)]
enum WorkflowRunsAction {
    /// Remove runs
    Rm {
        /// Names of the runs, or prefixes of them
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
        /// Also remove runs that are not over
        #[arg(long)]
        force: bool,
    },
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &WorkflowRunsArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    if let Some(WorkflowRunsAction::Rm { runs, force }) = &args.action {
        return remove_runs(ctx, runs, *force, ui);
    }
    let all = ctx.list_workflow_runs()?;
    if ui.json {
        let mut json = WorkflowRunsListJson { runs: Vec::new(), broken: Vec::new() };
        for listed in all {
            match listed {
                WorkflowRunListEntry::Run(row) => json.runs.push(*row),
                WorkflowRunListEntry::Broken { id, error } => {
                    json.broken.push(BrokenWorkflowRun { run: id, reason: error.to_string() });
                }
            }
        }
        ui.print_json(&json)?;
        return Ok(CliExit::Done);
    }
    if all.is_empty() {
        writeln!(ui.out, "There are no runs of workflows. `rep workflow start NAME` begins one.")?;
        return Ok(CliExit::Done);
    }
    let now_ms = now_ms();
    let shown = if args.all { all.len() } else { SHOWN_MAX };
    for listed in all.iter().take(shown) {
        match listed {
            WorkflowRunListEntry::Run(row) => print_run(ctx, row, now_ms, ui)?,
            WorkflowRunListEntry::Broken { id, error } => {
                let reason = ui.paint(ui::BAD, ui::fit_columns(&error.to_string(), 200));
                writeln!(ui.out, "{id}  {reason}")?;
            }
        }
    }
    if all.len() > shown {
        let line = format!("{} more, see --all", all.len() - shown);
        writeln!(ui.out, "{}", ui.paint(ui::FAINT, line))?;
    }
    Ok(CliExit::Done)
}

/// Removes runs one after the other, and reports each. A run that is not removed stops no other.
fn remove_runs(
    ctx: &CliContext<'_>,
    names: &[String],
    is_forced: bool,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    build_runtime()?.block_on(async {
        let journal = ctx.journal(None).await?;
        let store = WorkflowRunStore::new(journal.clone(), ctx.run_places().runs);
        let mut exit = CliExit::Done;
        for wanted in names {
            match remove_run(ctx, (&journal, &store), wanted, is_forced, ui).await {
                Ok(id) => ui.print_note(&format!("removed {id}"))?,
                Err(failure) if names.len() == 1 => return Err(failure),
                Err(failure) => {
                    print_failure(ui.err, &failure, ui.err_colour);
                    exit = CliExit::No;
                }
            }
        }
        Ok(exit)
    })
}

async fn remove_run(
    ctx: &CliContext<'_>,
    (journal, store): (&Journal, &WorkflowRunStore),
    wanted: &str,
    is_forced: bool,
    ui: &mut TerminalUi<'_>,
) -> Result<String, CliFailure> {
    let id = store.resolve_id(wanted).await.map_err(workflow_run_failure)?;
    let run = journal.run(&RunId::known(&id)).await.map_err(journal_failure)?;
    if let Some(run) = run.filter(|_| !is_forced) {
        require_removable(ctx, &run, &ctx.run_places().runs, ui)?;
    }
    store.remove_run(&id).await.map_err(workflow_run_failure)
}

fn print_run(
    ctx: &CliContext<'_>,
    row: &WorkflowRunListRow,
    now_ms: u64,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let style = match row.state {
        "active" => ui::ACCENT,
        "waiting" => ui::WARN,
        "done" => ui::GOOD,
        _ => ui::FAINT,
    };
    let word = ui.paint(style, ui::pad_columns(row.state, 7));
    let folder = if ctx.project_dir(None) == row.folder {
        "here".to_owned()
    } else {
        ctx.config.places().shorten_path(Utf8Path::new(&row.folder))
    };
    let facts = format!(
        "step {}, turn {} · {} · {}",
        row.step,
        row.turn,
        format_ago(now_ms.saturating_sub(row.updated_ms)),
        ui::fit_columns(&folder, 30)
    );
    let facts = match &row.parent {
        Some(parent) => format!("{facts} · for {parent}"),
        None => facts,
    };
    let id = ui::pad_columns(&ui::fit_columns(&row.run, 28), 28);
    writeln!(ui.out, "{word}  {id}  {}", ui.paint(ui::FAINT, facts))
}
