//! `rep runs pause`, `resume`, `cancel`, `retry` and `steer`: control a run.

use std::time::Duration;

use repertoire_journal::run::Limits;
use repertoire_journal::{Command, Journal, Run, RunStatus, Wish};

use super::next::exhausted;
use super::{RunArg, failed, started_settings};
use crate::cli::Ctx;
use crate::commands::plan::run::{attend, verdict};
use crate::config::duration;
use crate::failure::{Exit, Failure, Outcome};
use crate::planning::host_label;
use crate::running::runtime;
use crate::runs_text::status_line;
use crate::ui::{self, Ui};

/// Arguments of `rep runs pause`
#[derive(Debug, clap::Args)]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    run: RunArg,
}

/// Arguments of `rep runs resume`
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    run: RunArg,
    /// Stop when the whole run has cost this many US dollars, instead of the previous limit
    #[arg(long, value_name = "USD", value_parser = crate::running::dollars)]
    max_cost: Option<f64>,
    /// Stop when the whole run has used this many tokens, instead of the previous limit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: Option<u64>,
    /// Stop when the whole run has worked for this long, such as 90s, 10m or 1h, instead of the
    /// previous limit
    #[arg(long, value_name = "TIME", value_parser = duration)]
    max_time: Option<Duration>,
    /// Work on it in this terminal, and show the progress
    #[arg(long)]
    here: bool,
}

/// Arguments of `rep runs cancel`
#[derive(Debug, clap::Args)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    run: RunArg,
}

/// Arguments of `rep runs retry`
#[derive(Debug, clap::Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    run: RunArg,
    /// Retry only this task (may be repeated; default: all failed tasks)
    #[arg(long = "task", value_name = "ID")]
    tasks: Vec<String>,
    /// Work on it in this terminal, and show the progress
    #[arg(long)]
    here: bool,
}

/// Arguments of `rep runs steer`
#[derive(Debug, clap::Args)]
pub(crate) struct SteerArgs {
    #[command(flatten)]
    run: RunArg,
    /// The instruction that the next prompt begins with
    #[arg(required = true, value_name = "NOTE")]
    note: Vec<String>,
}

pub(crate) fn pause(ctx: &Ctx<'_>, args: &PauseArgs, ui: &mut Ui<'_>) -> Outcome {
    runtime()?.block_on(async {
        let (journal, run) = found(ctx, &args.run, ui).await?;
        let run = order(&journal, &run, Command::Pause { by: ctx.person() }).await?;
        tell(&run, ui)?;
        match run.wish {
            Some(Wish::Pause) => ui.note("it pauses after the step that is under way")?,
            _ => ui.note(&format!("`rep runs resume {}` lets it go on", run.id.short()))?,
        }
        Ok(Exit::Done)
    })
}

pub(crate) fn cancel(ctx: &Ctx<'_>, args: &CancelArgs, ui: &mut Ui<'_>) -> Outcome {
    runtime()?.block_on(async {
        let (journal, run) = found(ctx, &args.run, ui).await?;
        let run = order(&journal, &run, Command::Cancel { by: ctx.person() }).await?;
        tell(&run, ui)?;
        if run.wish == Some(Wish::Cancel) {
            ui.note("its worker stops it as soon as it hears of it")?;
        }
        Ok(Exit::Done)
    })
}

pub(crate) fn steer(ctx: &Ctx<'_>, args: &SteerArgs, ui: &mut Ui<'_>) -> Outcome {
    let note = args.note.join(" ");
    if note.trim().is_empty() {
        return Err(Failure::usage("there is nothing to say")
            .hint("Write what the next prompt should begin with: rep runs steer RUN \"use the old parser\"."));
    }
    runtime()?.block_on(async {
        let (journal, run) = found(ctx, &args.run, ui).await?;
        let run = order(&journal, &run, Command::Steer { by: ctx.person(), note }).await?;
        tell(&run, ui)?;
        ui.note(match run.status {
            RunStatus::Running => "its next prompt says so; the step under way is not disturbed",
            _ => "its next prompt says so, once it goes on",
        })?;
        Ok(Exit::Done)
    })
}

pub(crate) fn resume(ctx: &Ctx<'_>, args: &ResumeArgs, ui: &mut Ui<'_>) -> Outcome {
    runtime()?.block_on(async {
        let (journal, run) = found(ctx, &args.run, ui).await?;
        let limits = limits(args, &run)?;
        started_settings::compare(ctx, &run, ui)?;
        let run = order(&journal, &run, Command::Resume { by: ctx.person(), limits }).await?;
        go_on(ctx, &journal, run, args.here, ui).await
    })
}

pub(crate) fn retry(ctx: &Ctx<'_>, args: &RetryArgs, ui: &mut Ui<'_>) -> Outcome {
    runtime()?.block_on(async {
        let (journal, run) = found(ctx, &args.run, ui).await?;
        known(&journal, &run, &args.tasks).await?;
        started_settings::compare(ctx, &run, ui)?;
        let retry = Command::Retry { by: ctx.person(), tasks: args.tasks.clone() };
        let run = order(&journal, &run, retry).await?;
        go_on(ctx, &journal, run, args.here, ui).await
    })
}

/// Finds a run and waits, if necessary, until it is certain whether its worker is gone.
async fn found(ctx: &Ctx<'_>, run: &RunArg, ui: &mut Ui<'_>) -> Result<(Journal, Run), Failure> {
    let journal = ctx.journal_of_runs().await?;
    let run = run.find(&journal).await?;
    let mut on_wait = |left: Duration| {
        let time = ui::time(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
        // A closed standard error must not stop the command.
        let _ = ui.note(&format!("waiting up to {time} to see whether its worker is gone"));
    };
    journal.settle(&run.id, &mut on_wait).await.map_err(failed)?;
    let run = journal.run(&run.id).await.map_err(failed)?.unwrap_or(run);
    Ok((journal, run))
}

async fn order(journal: &Journal, run: &Run, order: Command) -> Result<Run, Failure> {
    journal.order(&run.id, order).await.map_err(failed)
}

fn tell(run: &Run, ui: &mut Ui<'_>) -> std::io::Result<()> {
    if ui.json {
        ui.print_json(run)
    } else {
        let line = status_line(run, ui);
        writeln!(ui.out, "{line}")
    }
}

/// Works on the run in this terminal, or says which worker will.
async fn go_on(ctx: &Ctx<'_>, journal: &Journal, run: Run, here: bool, ui: &mut Ui<'_>) -> Outcome {
    if here {
        let ended = attend(ctx, journal, &run.id, false, ui).await?;
        return verdict(&ended, ui);
    }
    tell(&run, ui)?;
    if run.status == RunStatus::Queued {
        let line = who_works(journal, &run).await?;
        ui.note(&line)?;
        if let Some(limit) = exhausted(&run) {
            ui.note(&format!(
                "it has used {}: `rep runs resume {} {}` lets it use more",
                limit.what,
                run.id.short(),
                limit.flag
            ))?;
        }
    }
    Ok(Exit::Done)
}

async fn who_works(journal: &Journal, run: &Run) -> Result<String, Failure> {
    let short = run.id.short();
    let elsewhere =
        run.labels.iter().find(|label| label.starts_with("host:") && **label != host_label());
    if let Some(label) = elsewhere {
        let host = label.trim_start_matches("host:");
        return Ok(format!("a worker on {host} takes it up: run `rep daemon` there"));
    }
    let mut workers: Vec<String> =
        journal.leased().await.map_err(failed)?.into_iter().map(|(_, worker, _)| worker).collect();
    workers.sort();
    workers.dedup();
    Ok(match workers.as_slice() {
        [] => format!(
            "a daemon takes it up: run `rep daemon`, or `rep runs resume {short} --here` to work on it in this terminal"
        ),
        workers => {
            let names = ui::fit(&workers.join(", "), 200);
            format!("a worker takes it up when it is free; at work now: {names}")
        }
    })
}

/// Returns the new limits: the given ones, and the previous ones for the rest. `None` if none were
/// given. Fails if the run would stop again at once.
fn limits(args: &ResumeArgs, run: &Run) -> Result<Option<Limits>, Failure> {
    let said = Limits {
        cost_usd: args.max_cost,
        tokens: args.max_tokens,
        time_ms: args.max_time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
    };
    let limits = Limits {
        cost_usd: said.cost_usd.or(run.limits.cost_usd),
        tokens: said.tokens.or(run.limits.tokens),
        time_ms: said.time_ms.or(run.limits.time_ms),
    };
    let short = run.id.short();
    let then = Run { limits, ..run.clone() };
    // The journal refuses a completed run itself, with a better message.
    if let Some(limit) = exhausted(&then).filter(|_| run.status != RunStatus::Completed) {
        return Err(Failure::no(format!(
            "run {short} would stop again at once: it has used {}",
            limit.what
        ))
        .hint(format!("`rep runs resume {short} {}` lets it use more.", limit.flag)));
    }
    Ok((said != Limits::default()).then_some(limits))
}

/// Fails if the run lacks one of the given tasks, which would otherwise be ignored silently.
async fn known(journal: &Journal, run: &Run, tasks: &[String]) -> Result<(), Failure> {
    if tasks.is_empty() {
        return Ok(());
    }
    let events = super::events_of(journal, run).await?;
    let state = repertoire_plan::PlanState::replay(&events);
    let Some(unknown) = tasks.iter().find(|id| !state.tasks.contains_key(*id)) else {
        return Ok(());
    };
    let failed: Vec<&str> =
        state.marked(repertoire_plan::document::Mark::Failed).map(|(id, _)| id).collect();
    let hint = match failed.as_slice() {
        [] => "None of its tasks failed.".to_owned(),
        ids => format!("These failed: {}.", ids.join(", ")),
    };
    Err(Failure::no(format!("run {} has no task `{unknown}`", run.id.short())).hint(hint))
}
