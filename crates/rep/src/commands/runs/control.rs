//! `rep runs pause`, `resume`, `cancel`, `retry` and `steer`: control a run.

use std::time::Duration;

use repertoire::plan_setup::host_label;
use repertoire::text::duration::parse_duration;
use repertoire_journal::run::Limits;
use repertoire_journal::{Command, Journal, Run, RunStatus, RunStopRequest};

use super::suggestions::find_exhausted_limit;
use super::{RunArg, journal_failure, started_settings};
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::commands::plan::run::{drive_run, judge_run};
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::runs_text::status_line;
use crate::ui::{self, TerminalUi};

/// Arguments of `rep runs pause`
#[derive(Debug, clap::Args)]
pub(crate) struct RunsPauseArgs {
    #[command(flatten)]
    run: RunArg,
}

/// Arguments of `rep runs resume`
#[derive(Debug, clap::Args)]
pub(crate) struct RunsResumeArgs {
    #[command(flatten)]
    run: RunArg,
    /// Stop when the whole run has cost this many US dollars, instead of the previous limit
    #[arg(long, value_name = "USD", value_parser = crate::agent_flags::parse_dollars)]
    max_cost: Option<f64>,
    /// Stop when the whole run has used this many tokens, instead of the previous limit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: Option<u64>,
    /// Stop when the whole run has worked for this long, such as 90s, 10m or 1h, instead of the
    /// previous limit
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    max_time: Option<Duration>,
    /// Work on it in this terminal, and show the progress
    #[arg(long)]
    here: bool,
}

/// Arguments of `rep runs cancel`
#[derive(Debug, clap::Args)]
pub(crate) struct RunsCancelArgs {
    #[command(flatten)]
    run: RunArg,
}

/// Arguments of `rep runs retry`
#[derive(Debug, clap::Args)]
pub(crate) struct RunsRetryArgs {
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
pub(crate) struct RunsSteerArgs {
    #[command(flatten)]
    run: RunArg,
    /// The instruction that the next prompt begins with
    #[arg(required = true, value_name = "NOTE")]
    note: Vec<String>,
}

pub(crate) fn pause_run(
    ctx: &CliContext<'_>,
    args: &RunsPauseArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    build_runtime()?.block_on(async {
        let (journal, run) = find_settled_run(ctx, &args.run, ui).await?;
        let run = send_command(&journal, &run, Command::Pause { by: ctx.user_name() }).await?;
        print_run(&run, ui)?;
        match run.wish {
            Some(RunStopRequest::Pause) => {
                ui.print_note("it pauses after the step that is under way")?
            }
            _ => ui.print_note(&format!("`rep runs resume {}` lets it go on", run.id.short()))?,
        }
        Ok(CliExit::Done)
    })
}

pub(crate) fn cancel_run(
    ctx: &CliContext<'_>,
    args: &RunsCancelArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    build_runtime()?.block_on(async {
        let (journal, run) = find_settled_run(ctx, &args.run, ui).await?;
        let run = send_command(&journal, &run, Command::Cancel { by: ctx.user_name() }).await?;
        print_run(&run, ui)?;
        if run.wish == Some(RunStopRequest::Cancel) {
            ui.print_note("its worker stops it as soon as it hears of it")?;
        }
        Ok(CliExit::Done)
    })
}

pub(crate) fn steer_run(
    ctx: &CliContext<'_>,
    args: &RunsSteerArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let note = args.note.join(" ");
    if note.trim().is_empty() {
        return Err(CliFailure::wrong_usage("there is nothing to say")
            .hint("Write what the next prompt should begin with: rep runs steer RUN \"use the old parser\"."));
    }
    build_runtime()?.block_on(async {
        let (journal, run) = find_settled_run(ctx, &args.run, ui).await?;
        let run =
            send_command(&journal, &run, Command::Steer { by: ctx.user_name(), note }).await?;
        print_run(&run, ui)?;
        ui.print_note(match run.status {
            RunStatus::Running => "its next prompt says so; the step under way is not disturbed",
            _ => "its next prompt says so, once it goes on",
        })?;
        Ok(CliExit::Done)
    })
}

pub(crate) fn resume_run(
    ctx: &CliContext<'_>,
    args: &RunsResumeArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    build_runtime()?.block_on(async {
        let (journal, run) = find_settled_run(ctx, &args.run, ui).await?;
        let limits = new_limits(args, &run)?;
        started_settings::compare_settings(ctx, &run, ui)?;
        let run =
            send_command(&journal, &run, Command::Resume { by: ctx.user_name(), limits }).await?;
        continue_run(ctx, &journal, run, args.here, ui).await
    })
}

pub(crate) fn retry_run(
    ctx: &CliContext<'_>,
    args: &RunsRetryArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    build_runtime()?.block_on(async {
        let (journal, run) = find_settled_run(ctx, &args.run, ui).await?;
        check_tasks_exist(&journal, &run, &args.tasks).await?;
        started_settings::compare_settings(ctx, &run, ui)?;
        let retry = Command::Retry { by: ctx.user_name(), tasks: args.tasks.clone() };
        let run = send_command(&journal, &run, retry).await?;
        continue_run(ctx, &journal, run, args.here, ui).await
    })
}

/// Finds a run and waits, if necessary, until it is certain whether its worker is gone.
async fn find_settled_run(
    ctx: &CliContext<'_>,
    run: &RunArg,
    ui: &mut TerminalUi<'_>,
) -> Result<(Journal, Run), CliFailure> {
    let journal = ctx.require_journal().await?;
    let run = run.find_run(&journal).await?;
    let mut on_wait = |left: Duration| {
        let time = ui::format_time(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
        // A closed standard error must not stop the command.
        let _ = ui.print_note(&format!("waiting up to {time} to see whether its worker is gone"));
    };
    journal.wait_for_lease(&run.id, &mut on_wait).await.map_err(journal_failure)?;
    let run = journal.run(&run.id).await.map_err(journal_failure)?.unwrap_or(run);
    Ok((journal, run))
}

async fn send_command(journal: &Journal, run: &Run, order: Command) -> Result<Run, CliFailure> {
    journal.order(&run.id, order).await.map_err(journal_failure)
}

fn print_run(run: &Run, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    if ui.json {
        ui.print_json(run)
    } else {
        let line = status_line(run, ui);
        writeln!(ui.out, "{line}")
    }
}

/// Works on the run in this terminal, or says which worker will.
async fn continue_run(
    ctx: &CliContext<'_>,
    journal: &Journal,
    run: Run,
    here: bool,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    if here {
        let ended = drive_run(ctx, journal, &run.id, false, ui).await?;
        return judge_run(&ended, ui);
    }
    print_run(&run, ui)?;
    if run.status == RunStatus::Queued {
        let line = describe_worker(journal, &run).await?;
        ui.print_note(&line)?;
        if let Some(limit) = find_exhausted_limit(&run) {
            ui.print_note(&format!(
                "it has used {}: `rep runs resume {} {}` lets it use more",
                limit.what,
                run.id.short(),
                limit.flag
            ))?;
        }
    }
    Ok(CliExit::Done)
}

async fn describe_worker(journal: &Journal, run: &Run) -> Result<String, CliFailure> {
    let short = run.id.short();
    let elsewhere =
        run.labels.iter().find(|label| label.starts_with("host:") && **label != host_label());
    if let Some(label) = elsewhere {
        let host = label.trim_start_matches("host:");
        return Ok(format!("a worker on {host} takes it up: run `rep daemon` there"));
    }
    let mut workers: Vec<String> = journal
        .list_leased_runs()
        .await
        .map_err(journal_failure)?
        .into_iter()
        .map(|(_, worker, _)| worker)
        .collect();
    workers.sort();
    workers.dedup();
    Ok(match workers.as_slice() {
        [] => format!(
            "a daemon takes it up: run `rep daemon`, or `rep runs resume {short} --here` to work on it in this terminal"
        ),
        workers => {
            let names = ui::fit_columns(&workers.join(", "), 200);
            format!("a worker takes it up when it is free; at work now: {names}")
        }
    })
}

/// Returns the new limits: the given ones, and the previous ones for the rest. `None` if none were
/// given. Fails if the run would stop again at once.
fn new_limits(args: &RunsResumeArgs, run: &Run) -> Result<Option<Limits>, CliFailure> {
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
    if let Some(limit) = find_exhausted_limit(&then).filter(|_| run.status != RunStatus::Completed)
    {
        return Err(CliFailure::negative_answer(format!(
            "run {short} would stop again at once: it has used {}",
            limit.what
        ))
        .hint(format!("`rep runs resume {short} {}` lets it use more.", limit.flag)));
    }
    Ok((said != Limits::default()).then_some(limits))
}

/// Fails if the run lacks one of the given tasks, which would otherwise be ignored silently.
async fn check_tasks_exist(
    journal: &Journal,
    run: &Run,
    tasks: &[String],
) -> Result<(), CliFailure> {
    if tasks.is_empty() {
        return Ok(());
    }
    let events = super::events_of(journal, run).await?;
    let state = repertoire_plan::PlanState::replay(&events);
    let Some(unknown) = tasks.iter().find(|id| !state.tasks.contains_key(*id)) else {
        return Ok(());
    };
    let failed: Vec<&str> = state
        .tasks_with_mark(repertoire_plan::document::TaskMark::Failed)
        .map(|(id, _)| id)
        .collect();
    let hint = match failed.as_slice() {
        [] => "None of its tasks failed.".to_owned(),
        ids => format!("These failed: {}.", ids.join(", ")),
    };
    Err(CliFailure::negative_answer(format!("run {} has no task `{unknown}`", run.id.short()))
        .hint(hint))
}
