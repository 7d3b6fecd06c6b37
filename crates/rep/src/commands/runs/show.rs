//! `rep runs show`: everything about a run on one screen.

use repertoire_plan::document::Mark;
use repertoire_journal::fold::Folded;
use repertoire_journal::{Event, Journal, Run};

use super::next::commands;
use super::{RunArg, failed};
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::running::runtime;
use crate::schema::runs::RunJson;
use crate::ui::Ui;

mod print;

pub(crate) use print::print;

/// Which run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArg,
    /// Show all steps, files and words, not only what fits a screen
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let shown = runtime()?.block_on(async {
        let journal = ctx.journal_of_runs().await?;
        let run = args.run.find(&journal).await?;
        gather(ctx, &journal, run).await
    })?;
    match ui.json {
        true => ui.print_json(&shown)?,
        false => print(ctx, &shown, args.all, ui)?,
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

/// A run as it was after some of its events.
pub(crate) fn as_it_was(events: &[Event]) -> Result<Option<RunJson>, String> {
    let folded = Folded::replay(events).map_err(|error| error.to_string())?;
    Ok(folded.run.map(|run| RunJson::of_events(run, folded.steps, events)))
}

/// The mark of a word of the journal.
fn mark_of(word: &str) -> Mark {
    use repertoire_plan::state::mark_word;
    Mark::ALL.into_iter().find(|mark| mark_word(*mark) == word).unwrap_or(Mark::Open)
}
