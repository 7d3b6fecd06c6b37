//! `rep daemon`: take runs from the queue and work on them until stopped.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use camino::Utf8PathBuf;
use repertoire::plan_setup::host_name;
use repertoire::runs::apply_retention;
use repertoire::worker::{PlanWorker, PlanWorkerEvent};
use repertoire_journal::{Journal, Target};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::runs::metrics::maintain_metrics_file;
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::runs_text::status_line;
use crate::ui::{self, TerminalUi};

/// Maximum time to write the last metrics on shutdown.
const LAST_FIGURES: Duration = Duration::from_secs(5);
/// Polling interval for messages of the worker.
const TELL_POLL: Duration = Duration::from_millis(100);

/// Arguments of `rep daemon`
#[derive(Debug, Default, clap::Args)]
pub(crate) struct DaemonArgs {
    /// Work on the runs of this database, which many hosts can share, such as postgres://…
    /// (default: `database_url`, or the journal of this machine)
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// Work on at most this many runs at once (default: `queue.runs_max`)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// Labels of this worker, besides `host:NAME` (may be repeated, or a comma-separated list)
    #[arg(long, value_name = "LABELS", value_delimiter = ',')]
    labels: Vec<String>,
    /// Name of the worker (default: host and process id)
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Write metrics for Prometheus to this file, for a text-file collector
    #[arg(long, value_name = "FILE")]
    metrics_file: Option<Utf8PathBuf>,
}

/// Runs `rep worker`, the old name of `rep daemon --database`.
pub(crate) fn run_worker(
    ctx: &CliContext<'_>,
    args: &DaemonArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    if matches!(ctx.journal_target(args.database.as_deref()), Target::File(_)) {
        ui.print_note("no database is given, so this works on the journal of this machine, as `rep daemon` does")?;
    }
    run(ctx, args, ui)
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &DaemonArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let runtime = build_runtime()?;
    runtime.block_on(async {
        let journal = ctx.journal(args.database.as_deref()).await?;
        let shutdown = CancellationToken::new();
        cancel_on_signal(shutdown.clone())?;
        let _retention = start_retention(ctx, &journal, &shutdown);
        work_until(ctx, args, &journal, &shutdown, ui).await
    })
}

/// Starts the task that removes old runs once a day, if `runs.keep_days` says so.
pub(crate) fn start_retention(
    ctx: &CliContext<'_>,
    journal: &Journal,
    shutdown: &CancellationToken,
) -> Option<AbortOnDropHandle<()>> {
    let runs = ctx.run_places().runs;
    let task = |kept| apply_retention(journal.clone(), runs, kept, shutdown.clone());
    ctx.runs_kept().map(|kept| AbortOnDropHandle::new(tokio::spawn(task(kept))))
}

/// Works on queued runs until `shutdown`.
pub(crate) async fn work_until(
    ctx: &CliContext<'_>,
    args: &DaemonArgs,
    journal: &Journal,
    shutdown: &CancellationToken,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let worker = build_worker(ctx, args, journal);
    let labels: Vec<&str> = worker.labels.iter().map(String::as_str).collect();
    ui.print_note(&format!(
        "{} works on runs ({}); Ctrl-C stops it",
        worker.name,
        labels.join(", ")
    ))?;
    let (sender, told) = mpsc::channel();
    let hearer: repertoire::worker::PlanWorkerEventHandler = Arc::new(move |what| {
        // The receiver is gone once the command ends.
        let _ = sender.send(what);
    });
    let (complaints, figures) = start_metrics_task(ctx, args, journal, shutdown);
    let working = worker.run_until_shutdown(shutdown, &hearer);
    tokio::pin!(working);
    let worked = loop {
        let over = tokio::select! {
            worked = &mut working => Some(worked),
            () = tokio::time::sleep(TELL_POLL) => None,
        };
        while let Ok(what) = told.try_recv() {
            print_message(&what, ui)?;
        }
        while let Ok(complaint) = complaints.try_recv() {
            ui.print_note(&ui.paint_err(ui::WARN, complaint))?;
        }
        if let Some(worked) = over {
            break worked;
        }
    };
    if let Some(figures) = figures {
        // Count the last events too, but don't let a slow disk block the shutdown.
        let _ = tokio::time::timeout(LAST_FIGURES, figures).await;
    }
    worked.map_err(|error| CliFailure::cannot_run(error.to_string()))?;
    Ok(CliExit::Done)
}

fn build_worker(ctx: &CliContext<'_>, args: &DaemonArgs, journal: &Journal) -> PlanWorker {
    let mut rules = ctx.queue_rules();
    let at_once = args.runs.or(rules.total_max).unwrap_or(u32::MAX);
    if let Some(runs) = args.runs {
        rules.total_max = rules.total_max.map(|total| total.max(runs));
    }
    let name =
        args.name.clone().unwrap_or_else(|| format!("{}:{}", host_name(), std::process::id()));
    PlanWorker {
        runner: ctx.plan_runner(journal.clone(), None),
        labels: ctx.worker_labels(&args.labels),
        lease: ctx.lease_duration(),
        rules,
        at_once: usize::try_from(at_once).unwrap_or(usize::MAX),
        name,
    }
}

/// Starts the task that maintains the metrics file, if one is configured. Its errors arrive on the
/// channel.
fn start_metrics_task(
    ctx: &CliContext<'_>,
    args: &DaemonArgs,
    journal: &Journal,
    shutdown: &CancellationToken,
) -> (mpsc::Receiver<String>, Option<JoinHandle<()>>) {
    let (sender, complaints) = mpsc::channel();
    let complain = move |what| {
        // The receiver is gone once the command ends.
        let _ = sender.send(what);
    };
    let task = args.metrics_file.as_ref().map(|path| {
        let path = ctx.env.here.join(path);
        tokio::spawn(maintain_metrics_file(journal.clone(), path, shutdown.clone(), complain))
    });
    (complaints, task)
}

/// Cancels `shutdown` on SIGINT (Ctrl-C) or SIGTERM (a supervisor).
pub(crate) fn cancel_on_signal(shutdown: CancellationToken) -> Result<(), CliFailure> {
    use tokio::signal::unix::{SignalKind, signal};
    let cannot = |error| CliFailure::cannot_run(format!("signals cannot be heard: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        shutdown.cancel();
    });
    Ok(())
}

fn print_message(told: &PlanWorkerEvent, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    if ui.json {
        return ui.print_json_line(&message_as_json(told));
    }
    let line = match told {
        PlanWorkerEvent::Took(run) => {
            format!("took {} {} in {}", run.id.short(), run.name, run.workspace)
        }
        PlanWorkerEvent::LetGo(run) => status_line(run, ui),
        PlanWorkerEvent::Failed { run, error } => {
            ui.paint_err(ui::BAD, format!("{} was left: {error}", run.short()))
        }
        PlanWorkerEvent::Unreachable(error) => {
            ui.paint_err(ui::WARN, format!("the journal cannot be reached: {error}; trying again"))
        }
    };
    ui.print_note(&line)
}

fn message_as_json(told: &PlanWorkerEvent) -> serde_json::Value {
    match told {
        PlanWorkerEvent::Took(run) => serde_json::json!({ "told": "took", "run": run.id }),
        PlanWorkerEvent::LetGo(run) => {
            serde_json::json!({ "told": "let_go", "run": run.id, "status": run.status, "reason": run.reason })
        }
        PlanWorkerEvent::Failed { run, error } => {
            serde_json::json!({ "told": "failed", "run": run, "error": error.to_string() })
        }
        PlanWorkerEvent::Unreachable(error) => {
            serde_json::json!({ "told": "unreachable", "error": error.to_string() })
        }
    }
}
