//! `rep runs show`: everything about a run on one screen.

use camino::Utf8Path;
use repertoire_drive::plan::PlanState;
use repertoire_flow::plan::Mark;
use repertoire_journal::fold::Folded;
use repertoire_journal::{Event, Journal, Payload, Run, Step};
use repertoire_text::fs;

use super::next::commands;
use super::{RunArg, events_of, failed};
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::running::runtime;
use crate::schema::runs::{DeliveredJson, RunFile, RunJson, RunTask, SignalJson, TasksDone};
use crate::ui::Ui;

mod print;

pub(crate) use print::print;

/// Files of a run that are looked at.
const FILES_MAX: usize = 10_000;

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
    let events = events_of(journal, &run).await?;
    let steps = journal.steps(&run.id).await.map_err(failed)?;
    let lease_until_ms = journal.lease_until(&run.id).await.map_err(failed)?;
    let files = files_of(&ctx.run_places().runs.join(run.id.as_str()));
    let mut shown = of_events(run, steps, &events);
    shown.lease_until_ms = lease_until_ms;
    shown.files = files;
    let failed_tasks = shown.tasks.iter().filter(|task| task.mark == "failed").count();
    shown.commands = commands(&shown.run, failed_tasks, shown.delivered.as_ref());
    Ok(shown)
}

/// A run as it was after some of its events.
pub(crate) fn as_it_was(events: &[Event]) -> Result<Option<RunJson>, String> {
    let folded = Folded::replay(events).map_err(|error| error.to_string())?;
    Ok(folded.run.map(|run| of_events(run, folded.steps, events)))
}

fn of_events(run: Run, steps: Vec<Step>, events: &[Event]) -> RunJson {
    let state = PlanState::replay(events);
    RunJson {
        tasks: RunTask::all(&state),
        done: TasksDone::of(&state),
        fallback: state.fallback,
        steps,
        steering: state.steering,
        watchdog: signals(events),
        learnings: state.learnings,
        delivered: events.iter().rev().find_map(delivered),
        lease_until_ms: None,
        files: Vec::new(),
        commands: Vec::new(),
        run,
    }
}

fn signals(events: &[Event]) -> Vec<SignalJson> {
    let mut out: Vec<SignalJson> = Vec::new();
    for event in events {
        match &event.payload {
            Payload::WatchdogSignal { step, signal, evidence } => out.push(SignalJson {
                step: *step,
                signal: signal.clone(),
                evidence: evidence.clone(),
                rewritten: false,
            }),
            Payload::WatchdogRewrite { step, signal, .. } => {
                let seen = out.iter_mut().rev().find(|seen| seen.step == *step);
                if let Some(seen) = seen.filter(|seen| seen.signal == *signal) {
                    seen.rewritten = true;
                }
            }
            _ => {}
        }
    }
    out
}

fn delivered(event: &Event) -> Option<DeliveredJson> {
    let Payload::Delivered { strategy, branch, commit } = &event.payload else { return None };
    Some(DeliveredJson {
        strategy: strategy.clone(),
        branch: branch.clone(),
        commit: commit.clone(),
    })
}

/// What a run left behind; a folder that is gone has nothing.
fn files_of(folder: &Utf8Path) -> Vec<RunFile> {
    let Ok(entries) = fs::entries(folder) else { return Vec::new() };
    let file = |name: &str| {
        let path = folder.join(name);
        let bytes = path.metadata().ok().filter(|meta| meta.is_file())?.len();
        Some(RunFile { path: path.to_string(), bytes })
    };
    let names = entries.take(FILES_MAX).filter_map(|entry| entry.ok()?.name.into_string().ok());
    let mut files: Vec<RunFile> = names.filter_map(|name| file(&name)).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// The mark of a word of the journal.
fn mark_of(word: &str) -> Mark {
    use repertoire_drive::plan::state::mark_word;
    Mark::ALL.into_iter().find(|mark| mark_word(*mark) == word).unwrap_or(Mark::Open)
}
