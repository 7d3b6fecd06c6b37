//! `rep runs show`: shows everything about a run on one screen.

use repertoire_journal::fold::Folded;
use repertoire_journal::{Event, Journal, Run};
use repertoire_plan::document::Mark;

use super::next::commands;
use super::{RunArg, failed};
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::running::runtime;
use crate::schema::runs::RunJson;
use crate::ui::Ui;

mod print;

pub(crate) use print::print;

/// Arguments of `rep runs show`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArg,
    /// Show all steps, tasks and files, not only as many as fit a screen
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let shown = runtime()?.block_on(async {
        let journal = ctx.journal_of_runs().await?;
        let run = args.run.find(&journal).await?;
        gather(ctx, &journal, run).await
    })?;
    if ui.json {
        ui.print_json(&shown)?;
    } else {
        print(ctx, &shown, args.all, ui)?;
    }
    Ok(Exit::Done)
}

async fn gather(ctx: &Ctx<'_>, journal: &Journal, run: Run) -> Result<RunJson, Failure> {
    let left_behind = ctx.run_places().runs.join(run.id.as_str());
    let mut shown = RunJson::gather(journal, run, &left_behind).await.map_err(failed)?;
    let failed_tasks = shown.tasks.iter().filter(|task| task.mark == "failed").count();
    shown.commands = commands(&shown.run, failed_tasks, shown.delivered.as_ref());
    Ok(shown)
}

/// Rebuilds the state of a run after the given events.
pub(crate) fn as_it_was(events: &[Event]) -> Result<Option<RunJson>, String> {
    let folded = Folded::replay(events).map_err(|error| error.to_string())?;
    Ok(folded.run.map(|run| RunJson::of_events(run, folded.steps, events)))
}

/// Parses the journal's word for a mark. Unknown words count as open.
fn mark_of(word: &str) -> Mark {
    use repertoire_plan::state::mark_word;
    Mark::ALL.into_iter().find(|mark| mark_word(*mark) == word).unwrap_or(Mark::Open)
}
