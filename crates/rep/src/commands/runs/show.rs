//! `rep runs show`: shows everything about a run on one screen.

use repertoire_journal::fold::FoldedRun;
use repertoire_journal::{Event, Journal, Run};
use repertoire_plan::document::TaskMark;

use super::suggestions::{suggest_commands, suggest_for_attended};
use super::{RunArg, journal_failure};
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::runs::RunJson;
use crate::ui::TerminalUi;

mod screen;

pub(crate) use screen::print_run;

/// Arguments of `rep runs show`
#[derive(Debug, clap::Args)]
pub(crate) struct RunsShowArgs {
    #[command(flatten)]
    run: RunArg,
    /// Show all steps, tasks and files, not only as many as fit a screen
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &RunsShowArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let (shown, events) = build_runtime()?.block_on(async {
        let journal = ctx.require_journal().await?;
        let run = args.run.find_run(&journal).await?;
        gather_run(ctx, &journal, run).await
    })?;
    if ui.json {
        ui.print_json(&shown)?;
    } else {
        print_run(ctx, (&shown, &events), args.all, ui)?;
    }
    Ok(CliExit::Done)
}

async fn gather_run(
    ctx: &CliContext<'_>,
    journal: &Journal,
    run: Run,
) -> Result<(RunJson, Vec<Event>), CliFailure> {
    let runs = ctx.run_places().runs;
    let gathered = RunJson::gather_with_events(journal, run, &runs).await;
    let (mut shown, events) = gathered.map_err(journal_failure)?;
    let failed_tasks = shown.tasks.iter().filter(|task| task.mark == "failed").count();
    shown.commands = if shown.run.attended {
        suggest_for_attended(&shown.run, shown.interrupted)
    } else {
        suggest_commands(&shown.run, failed_tasks, shown.delivered.as_ref())
    };
    Ok((shown, events))
}

/// Rebuilds the state of a run after the given events.
pub(crate) fn run_after_events(events: &[Event]) -> Result<Option<RunJson>, String> {
    let folded = FoldedRun::replay(events).map_err(|error| error.to_string())?;
    Ok(folded.run.map(|run| RunJson::of_events(run, folded.steps, events)))
}

/// Parses the journal's word for a mark. Unknown words count as open.
fn mark_of(word: &str) -> TaskMark {
    use repertoire_plan::state::mark_word;
    TaskMark::ALL.into_iter().find(|mark| mark_word(*mark) == word).unwrap_or(TaskMark::Open)
}
