//! `rep runs replay`: rebuild runs from their events and report differences from the
//! stored state, or verify their digests.

use repertoire_journal::{DamagedRow, Event, Filter, Journal, Run, RunId};

use super::list::print_damaged_runs;
use super::{NO_RUNS, RunArg, events_of, journal_failure, no_runs_failure, show};
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::runs::{ReplayJson, ReplayedJson, VerifiedRunJson, VerifiedRunsJson};
use crate::ui::{self, TerminalUi};

/// Arguments of `rep runs replay`
#[derive(Debug, clap::Args)]
pub(crate) struct RunsReplayArgs {
    /// Id of the run, the start or end of the id, its name, or `last`
    #[arg(value_name = "RUN", required_unless_present = "all", conflicts_with = "all")]
    run: Option<String>,
    /// Replay every run of the journal
    #[arg(long)]
    all: bool,
    /// Show the state of the run after this event
    #[arg(long, value_name = "SEQ", conflicts_with = "all", value_parser = clap::value_parser!(u64).range(1..))]
    at: Option<u64>,
    /// Verify the digests of the stored events, states and steps, and name the first bad event
    #[arg(long, conflicts_with = "at")]
    verify: bool,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &RunsReplayArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let runtime = build_runtime()?;
    if args.verify {
        return runtime.block_on(verify_runs(ctx, args.run.as_deref(), ui));
    }
    let Some(named) = &args.run else { return runtime.block_on(replay_all(ctx, ui)) };
    runtime.block_on(async {
        let journal = ctx.require_journal().await?;
        let run = RunArg { run: named.clone() }.find_run(&journal).await?;
        match args.at {
            Some(seq) => show_run_at(ctx, &journal, &run, seq, ui).await,
            None => {
                let replayed = replay_run(&journal, &run).await?;
                print_replayed(&replayed, &run, ui)?;
                finish_replay(vec![replayed], Vec::new(), ui)
            }
        }
    })
}

async fn replay_all(ctx: &CliContext<'_>, ui: &mut TerminalUi<'_>) -> CliResult {
    let Some(journal) = ctx.open_existing_journal().await? else {
        if !ui.json {
            writeln!(ui.out, "{NO_RUNS}")?;
        }
        return finish_replay(Vec::new(), Vec::new(), ui);
    };
    let (mut done, mut damaged) = (Vec::new(), Vec::new());
    let mut filter = Filter::default();
    loop {
        let page = journal.runs(&filter).await.map_err(journal_failure)?;
        for run in &page.items {
            match journal.replay_run(&run.id).await {
                Ok(report) => {
                    let replayed = ReplayedJson::new(run.id.clone(), report);
                    print_replayed(&replayed, run, ui)?;
                    done.push(replayed);
                }
                Err(error) => {
                    let what = error.run_problem().ok_or_else(|| journal_failure(error))?;
                    damaged.push(DamagedRow { id: run.id.to_string(), what });
                }
            }
        }
        damaged.extend(page.damaged);
        match page.next {
            Some(next) => filter.before = Some(next),
            None => break,
        }
    }
    if !ui.json {
        let events: u64 = done.iter().map(|one| one.events).sum();
        let other = done.iter().filter(|one| !one.equal).count();
        let runs = ui::format_count(done.len(), "run");
        let how = if other == 0 { "all equal".to_owned() } else { format!("{other} not equal") };
        writeln!(ui.out, "{runs}, {} events: {how}", ui::format_thousands(events))?;
    }
    finish_replay(done, damaged, ui)
}

/// Verifies the digests of one run, or of all runs of the journal.
async fn verify_runs(
    ctx: &CliContext<'_>,
    named: Option<&str>,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let Some(journal) = ctx.open_journal_as_it_is().await? else {
        if named.is_some() {
            return Err(no_runs_failure());
        }
        if !ui.json {
            writeln!(ui.out, "{NO_RUNS}")?;
        }
        return finish_verify(Vec::new(), ui);
    };
    let ids = match named {
        Some(text) => journal.find_run_id(text).await.map(|id| vec![id]),
        None => journal.list_run_ids().await,
    };
    let ids = ids.map_err(journal_failure)?;
    let mut done = Vec::new();
    for id in ids {
        let verified = verify_run(&journal, id).await?;
        print_verified(&verified, ui)?;
        done.push(verified);
    }
    if named.is_none() && !ui.json {
        let events: u64 = done.iter().map(|one| one.events).sum();
        let damaged = done.iter().filter(|one| !one.intact).count();
        let runs = ui::format_count(done.len(), "run");
        let how = if damaged == 0 { "all intact".to_owned() } else { format!("{damaged} damaged") };
        writeln!(ui.out, "{runs}, {} events: {how}", ui::format_thousands(events))?;
    }
    finish_verify(done, ui)
}

async fn verify_run(journal: &Journal, id: RunId) -> Result<VerifiedRunJson, CliFailure> {
    let report = journal.verify_run(&id).await.map_err(journal_failure)?;
    Ok(VerifiedRunJson::new(id, report))
}

fn print_verified(verified: &VerifiedRunJson, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    if ui.json {
        return Ok(());
    }
    let id = verified.run.short();
    let Some(problem) = &verified.problem else {
        let counted = format!(
            "{}, {}",
            format_event_count(verified.events),
            ui::format_count(verified.steps as usize, "step")
        );
        return writeln!(ui.out, "{id}  {}: {counted}", ui.paint(ui::GOOD, "intact"));
    };
    let before = match problem.event {
        Some(_) => format!(" ({} before it fit)", format_event_count(verified.events)),
        None => format!(" ({} fit)", format_event_count(verified.events)),
    };
    writeln!(ui.out, "{id}  {}: {}{before}", ui.paint(ui::BAD, "damaged"), problem.what)
}

fn finish_verify(runs: Vec<VerifiedRunJson>, ui: &mut TerminalUi<'_>) -> CliResult {
    let intact = runs.iter().all(|one| one.intact);
    if ui.json {
        ui.print_json(&VerifiedRunsJson { intact, runs })?;
    }
    Ok(if intact { CliExit::Done } else { CliExit::No })
}

async fn replay_run(journal: &Journal, run: &Run) -> Result<ReplayedJson, CliFailure> {
    let replayed = journal.replay_run(&run.id).await.map_err(journal_failure)?;
    Ok(ReplayedJson::new(run.id.clone(), replayed))
}

fn print_replayed(
    replayed: &ReplayedJson,
    run: &Run,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    if ui.json {
        return Ok(());
    }
    let id = replayed.run.short();
    let counted = format!(
        "{}, {}",
        format_event_count(replayed.events),
        ui::format_count(replayed.steps as usize, "step")
    );
    if replayed.equal {
        return writeln!(ui.out, "{id}  {}: {counted}", ui.paint(ui::GOOD, "equal"));
    }
    let differences = ui::format_count(replayed.differences.len(), "difference");
    let name = ui::fit_columns(&run.name, 60);
    writeln!(
        ui.out,
        "{id}  {}: {differences}, {counted} ({name})",
        ui.paint(ui::BAD, "not equal")
    )?;
    let room = ui.columns.saturating_sub(14).max(20);
    for one in &replayed.differences {
        writeln!(ui.out, "  {}", ui.paint(ui::STRONG, ui::fit_columns(&one.what, room)))?;
        for (word, text) in [("stored", &one.stored), ("replayed", &one.replayed)] {
            let word = ui.paint(ui::FAINT, ui::pad_columns(word, 8));
            writeln!(ui.out, "    {word}  {}", ui::wrap_words(text, room, &" ".repeat(14)))?;
        }
    }
    Ok(())
}

fn format_event_count(count: u64) -> String {
    if count == 1 {
        "1 event".to_owned()
    } else {
        format!("{} events", ui::format_thousands(count))
    }
}

fn finish_replay(
    runs: Vec<ReplayedJson>,
    damaged: Vec<DamagedRow>,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let equal = damaged.is_empty() && runs.iter().all(|one| one.equal);
    if ui.json {
        ui.print_json(&ReplayJson { equal, runs, damaged })?;
    } else {
        print_damaged_runs(&damaged, ui)?;
    }
    Ok(if equal { CliExit::Done } else { CliExit::No })
}

/// Shows a run as it was after one of its events.
async fn show_run_at(
    ctx: &CliContext<'_>,
    journal: &Journal,
    run: &Run,
    seq: u64,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let mut past: Vec<Event> = events_of(journal, run).await?;
    let short = run.id.short();
    let last = past.last().map_or(0, |event| event.seq);
    if seq > last {
        return Err(CliFailure::negative_answer(format!(
            "run {short} has {}, so there is no event {seq}",
            format_event_count(last)
        ))
        .hint(format!("`rep runs events {short}` shows them with their numbers.")));
    }
    past.retain(|event| event.seq <= seq);
    let was = show::run_after_events(&past).map_err(|error| {
        CliFailure::negative_answer(error)
            .hint(format!("`rep runs replay {short}` says what does not fit."))
    })?;
    let Some(was) = was else {
        return Err(CliFailure::negative_answer(format!("run {short} has no first event")));
    };
    if ui.json {
        ui.print_json(&was)?;
        return Ok(CliExit::Done);
    }
    if let Some(event) = past.last() {
        ui.print_note(&format!("as it was after event {seq} of {last}, {}", event.payload.name()))?;
    }
    show::print_run(ctx, (&was, &past), true, ui)?;
    Ok(CliExit::Done)
}
