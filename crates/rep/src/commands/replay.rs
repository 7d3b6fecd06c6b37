//! `rep replay`: rebuilds runs from their events and reports differences from the stored state.

use repertoire_journal::{Event, Filter, Journal, Run};

use super::runs::{NO_RUNS, RunArg, events_of, failed, show};
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::running::runtime;
use crate::schema::runs::{ReplayJson, ReplayedJson};
use crate::ui::{self, Ui};

/// Arguments of `rep replay`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the run, the start or end of the id, its name, or `last`
    #[arg(value_name = "RUN", required_unless_present = "all", conflicts_with = "all")]
    run: Option<String>,
    /// Replay every run of the journal
    #[arg(long)]
    all: bool,
    /// Show the state of the run after this event
    #[arg(long, value_name = "SEQ", conflicts_with = "all", value_parser = clap::value_parser!(u64).range(1..))]
    at: Option<u64>,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let runtime = runtime()?;
    let Some(named) = &args.run else { return runtime.block_on(all(ctx, ui)) };
    runtime.block_on(async {
        let journal = ctx.journal_of_runs().await?;
        let run = RunArg { run: named.clone() }.find(&journal).await?;
        match args.at {
            Some(seq) => at(ctx, &journal, &run, seq, ui).await,
            None => {
                let replayed = replay(&journal, &run).await?;
                print(&replayed, &run, ui)?;
                end(vec![replayed], ui)
            }
        }
    })
}

async fn all(ctx: &Ctx<'_>, ui: &mut Ui<'_>) -> Outcome {
    let Some(journal) = ctx.journal_if_there().await? else {
        if !ui.json {
            writeln!(ui.out, "{NO_RUNS}")?;
        }
        return end(Vec::new(), ui);
    };
    let mut done = Vec::new();
    let mut filter = Filter::default();
    loop {
        let page = journal.runs(&filter).await.map_err(failed)?;
        for run in &page.items {
            let replayed = replay(&journal, run).await?;
            print(&replayed, run, ui)?;
            done.push(replayed);
        }
        match page.next {
            Some(next) => filter.before = Some(next),
            None => break,
        }
    }
    if !ui.json {
        let events: u64 = done.iter().map(|one| one.events).sum();
        let other = done.iter().filter(|one| !one.equal).count();
        let runs = ui::count(done.len(), "run");
        let how = if other == 0 { "all equal".to_owned() } else { format!("{other} not equal") };
        writeln!(ui.out, "{runs}, {} events: {how}", ui::thousands(events))?;
    }
    end(done, ui)
}

async fn replay(journal: &Journal, run: &Run) -> Result<ReplayedJson, Failure> {
    let replayed = journal.replay(&run.id).await.map_err(failed)?;
    Ok(ReplayedJson::new(run.id.clone(), replayed))
}

fn print(replayed: &ReplayedJson, run: &Run, ui: &mut Ui<'_>) -> std::io::Result<()> {
    if ui.json {
        return Ok(());
    }
    let id = replayed.run.short();
    let counted =
        format!("{}, {}", events(replayed.events), ui::count(replayed.steps as usize, "step"));
    if replayed.equal {
        return writeln!(ui.out, "{id}  {}: {counted}", ui.paint(ui::GOOD, "equal"));
    }
    let differences = ui::count(replayed.differences.len(), "difference");
    let name = ui::fit(&run.name, 60);
    writeln!(
        ui.out,
        "{id}  {}: {differences}, {counted} ({name})",
        ui.paint(ui::BAD, "not equal")
    )?;
    let room = ui.columns.saturating_sub(14).max(20);
    for one in &replayed.differences {
        writeln!(ui.out, "  {}", ui.paint(ui::STRONG, ui::fit(&one.what, room)))?;
        for (word, text) in [("stored", &one.stored), ("replayed", &one.replayed)] {
            let word = ui.paint(ui::FAINT, ui::pad(word, 8));
            writeln!(ui.out, "    {word}  {}", ui::wrap(text, room, &" ".repeat(14)))?;
        }
    }
    Ok(())
}

fn events(count: u64) -> String {
    if count == 1 { "1 event".to_owned() } else { format!("{} events", ui::thousands(count)) }
}

fn end(runs: Vec<ReplayedJson>, ui: &mut Ui<'_>) -> Outcome {
    let equal = runs.iter().all(|one| one.equal);
    if ui.json {
        ui.print_json(&ReplayJson { equal, runs })?;
    }
    Ok(if equal { Exit::Done } else { Exit::No })
}

/// Shows a run as it was after one of its events.
async fn at(ctx: &Ctx<'_>, journal: &Journal, run: &Run, seq: u64, ui: &mut Ui<'_>) -> Outcome {
    let mut past: Vec<Event> = events_of(journal, run).await?;
    let short = run.id.short();
    let last = past.last().map_or(0, |event| event.seq);
    if seq > last {
        return Err(Failure::no(format!(
            "run {short} has {}, so there is no event {seq}",
            events(last)
        ))
        .hint(format!("`rep events {short}` shows them with their numbers.")));
    }
    past.retain(|event| event.seq <= seq);
    let was = show::as_it_was(&past).map_err(|error| {
        Failure::no(error).hint(format!("`rep replay {short}` says what does not fit."))
    })?;
    let Some(was) = was else {
        return Err(Failure::no(format!("run {short} has no first event")));
    };
    if ui.json {
        ui.print_json(&was)?;
        return Ok(Exit::Done);
    }
    if let Some(event) = past.last() {
        ui.note(&format!("as it was after event {seq} of {last}, {}", event.payload.name()))?;
    }
    show::print(ctx, &was, true, ui)?;
    Ok(Exit::Done)
}
