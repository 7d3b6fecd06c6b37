//! `rep plan run`: works through a plan until it is done, and prints the progress.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use repertoire::consent::PLAN_KEYS;
use repertoire::plan_setup::{PlanAgentBuilder, host_label, host_name};
use repertoire_agent::event::EventSink;
use repertoire_agent::{AgentEvent, EventKind};
use repertoire_checks::memory::scope_of;
use repertoire_git::repo::GitError;
use repertoire_journal::run::{Run, RunStatus};
use repertoire_journal::{ClaimRules, Command, Journal, NewRun, RunId, RunKind};
use repertoire_plan::{DriveError, KIND, PlanDeliveryMode, PlanRequest};
use repertoire_skill::skill::ContentDigest;
use repertoire_text::fs;
use tokio_util::sync::CancellationToken;

use super::{PLAN_BYTES_MAX, PlanArg, find_plan};
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::commands::daemon::cancel_on_signal;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::plan_flags::PlanFlags;
use crate::run_display::{RunDisplay, RunDisplayOptions};
use crate::runs_text::{RunEventPrinter, status_line};
use crate::ui::TerminalUi;

/// The author of a pause that was requested with Ctrl-C.
const INTERRUPT: &str = "Ctrl-C";
/// Polling interval of the plan file with `--watch`.
const WATCH_POLL: Duration = Duration::from_secs(1);
/// Polling interval of the journal, for changes that it sends no notification of.
const TELL_POLL: Duration = Duration::from_millis(500);

/// Arguments of `rep plan run`
#[derive(Debug, clap::Args)]
pub(crate) struct PlanRunArgs {
    #[command(flatten)]
    plan: PlanArg,
    /// Do one task and pause
    #[arg(long)]
    once: bool,
    /// When the plan is done, wait for new tasks and start again
    #[arg(long, conflicts_with_all = ["once", "detach"])]
    watch: bool,
    /// Leave the work to a daemon or worker, and return at once
    #[arg(long)]
    detach: bool,
    /// Name of the run (default: the plan's title)
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Only workers with this label may claim the run (may be repeated)
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// Let workers on other hosts claim it; they need the repository at the same path
    #[arg(long)]
    anywhere: bool,
    /// Priority in the queue; higher runs first
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// Show the agents' output and tool calls
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    flags: PlanFlags,
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &PlanRunArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let workspace = ctx.project_dir(None);
    let plan = find_plan(ctx, &args.plan, &workspace)?;
    let ctx = &ctx.with_consent(PLAN_KEYS, ui)?;
    let mut request = ctx.plan_request(plan, &workspace, &args.flags.to_options())?;
    request.once = args.once;
    if args.watch && !matches!(request.ending, PlanDeliveryMode::Merge | PlanDeliveryMode::Squash) {
        return Err(CliFailure::wrong_usage(
            "`--watch` needs `--ending merge` or `--ending squash`",
        )
        .hint("Otherwise the plan here stays as it is, and everything would be done again."));
    }
    let runtime = build_runtime()?;
    runtime.block_on(async {
        check_preconditions(ctx, &workspace, &request).await?;
        if let Some(improve) = &mut request.improve {
            let git = ctx.git_in(&workspace)?;
            improve.letters = true;
            improve.scope = scope_of(&git).await.map_err(|error| CliFailure::cannot_run(error.to_string()))?;
        }
        let journal = ctx.journal(None).await?;
        loop {
            let run = create_run(ctx, args, &journal, &workspace, &request).await?;
            if args.detach {
                return report_detached(&run, ui);
            }
            if request.checks.is_empty() && request.final_checks.is_empty() {
                let warning = if request.review {
                    "no checks are declared: nothing but the review stands between an agent's word and `done`"
                } else {
                    "no checks are declared and nothing is reviewed: `done` will be an agent's word"
                };
                ui.print_note(warning)?;
            }
            let ended = drive_run(ctx, &journal, &run.id, args.verbose, ui).await?;
            if !args.watch || ended.status != RunStatus::Completed {
                return judge_run(&ended, ui);
            }
            judge_run(&ended, ui)?;
            if !wait_for_tasks(&workspace.join(&request.plan), ui).await? {
                return Ok(CliExit::Interrupted);
            }
        }
    })
}

/// Checks the preconditions of a run, so that errors are reported before it is created.
async fn check_preconditions(
    ctx: &CliContext<'_>,
    workspace: &Utf8Path,
    request: &PlanRequest,
) -> Result<(), CliFailure> {
    PlanAgentBuilder::new(ctx.env).check_available(workspace, request)?;
    let no = |error: GitError| CliFailure::cannot_run(error.to_string());
    let git = ctx.git_in(workspace)?;
    git.head_commit().await.map_err(no)?;
    match &request.base_branch {
        Some(base) if !git.branch_exists(base).await.map_err(no)? => {
            return Err(CliFailure::wrong_usage(format!("there is no branch `{base}` (`--base`)")));
        }
        Some(_) => {}
        None if git.current_branch().await.map_err(no)?.is_none() => {
            return Err(
                CliFailure::cannot_run("no branch is checked out").hint("Name one with `--base`.")
            );
        }
        None => {}
    }
    if !request.allow_dirty && !git.is_clean().await.map_err(no)? {
        return Err(CliFailure::cannot_run(format!(
            "{workspace} has changes that are not committed, and a worktree would be without them"
        ))
        .hint("Commit or stash them, or leave them behind with `--allow-dirty`."));
    }
    Ok(())
}

async fn create_run(
    ctx: &CliContext<'_>,
    args: &PlanRunArgs,
    journal: &Journal,
    workspace: &Utf8Path,
    request: &PlanRequest,
) -> Result<Run, CliFailure> {
    let mut labels: BTreeSet<String> = args.labels.iter().cloned().collect();
    if !args.anywhere {
        labels.insert(host_label());
    }
    let text =
        fs::read_text(&workspace.join(&request.plan), PLAN_BYTES_MAX as u64).unwrap_or_default();
    let title = repertoire_plan::document::parse_plan(&text, &request.plan).title;
    let stem = || request.plan.file_stem().unwrap_or("plan").to_owned();
    let new = NewRun {
        id: RunId::new(),
        kind: KIND.to_owned(),
        name: args.name.clone().or(title).unwrap_or_else(stem),
        workspace: workspace.to_string(),
        labels,
        priority: args.priority,
        limits: ctx.plan_limits(&args.flags.to_options()),
        request: serde_json::to_value(request)
            .map_err(|error| CliFailure::cannot_run(error.to_string()))?,
    };
    journal.create(new).await.map_err(record_failure)
}

pub(crate) fn record_failure(error: repertoire_journal::JournalError) -> CliFailure {
    CliFailure::cannot_run(error.to_string())
}

fn report_detached(run: &Run, ui: &mut TerminalUi<'_>) -> CliResult {
    if ui.json {
        ui.print_json(run)?;
    } else {
        writeln!(ui.out, "{}", run.id)?;
    }
    ui.print_note(&format!(
        "`rep daemon` works on it; `rep runs events {} -f` shows how",
        run.id.short()
    ))?;
    Ok(CliExit::Done)
}

/// Drives a run in this process, prints its progress, and returns its final state.
pub(crate) async fn drive_run(
    ctx: &CliContext<'_>,
    journal: &Journal,
    id: &RunId,
    verbose: bool,
    ui: &mut TerminalUi<'_>,
) -> Result<Run, CliFailure> {
    let (sender, mut at_work) = tokio::sync::mpsc::unbounded_channel::<AgentEvent>();
    let sink: EventSink = Arc::new(move |event: &AgentEvent| {
        // The receiver is gone once the command ends.
        let _ = sender.send(event.clone());
    });
    let runner = ctx.plan_runner(journal.clone(), Some(sink));
    let manner = RunDisplayOptions { thinking: false, streamed: false, rewritten: false };
    let mut live = RunDisplay::new(manner);
    let who = repertoire_journal::QueueWorker {
        name: format!("{}:{}", host_name(), std::process::id()),
        labels: ctx.worker_labels(&own_labels(journal, id).await?),
        // A task of GitHub is a plan of one task.
        kinds: BTreeSet::from([KIND.to_owned(), RunKind::Task.as_str().to_owned()]),
        lease: ctx.lease_duration(),
    };
    let before = journal.run(id).await.map_err(record_failure)?;
    let told = before.filter(|run| run.started_ms.is_some()).map_or(0, |run| run.seq);
    let claimed =
        journal.claim_run(id, &who, &ClaimRules::default()).await.map_err(record_failure)?;
    let Some(claimed) = claimed else {
        return Err(CliFailure::negative_answer(format!(
            "run {} is not free: somebody else has it, or it is over",
            id.short()
        ))
        .hint(format!("`rep runs show {}` says how far it is.", id.short())));
    };
    let (shutdown, stop) = (CancellationToken::new(), CancellationToken::new());
    // Install the signal handler now, so Ctrl-C also works while output is printed.
    cancel_on_signal(stop.clone())?;
    let drive = runner.drive_run(claimed, &shutdown);
    tokio::pin!(drive);
    let mut changes = journal.subscribe_changes();
    // Don't repeat what was printed before the run was resumed.
    let mut narrator = RunEventPrinter::new(id.clone(), told);
    let mut warned = BTreeSet::new();
    let mut interrupted = false;
    let driven = loop {
        tokio::select! {
            driven = &mut drive => break driven,
            Some(event) = at_work.recv() => {
                let is_warning =
                    matches!(event.kind, EventKind::Degraded { .. } | EventKind::Warning { .. });
                let words = serde_json::to_string(&event.kind).unwrap_or_default();
                if verbose || (is_warning && !ui.json && warned.insert(words)) {
                    // Events recorded before the agent started come first.
                    narrator.print_new_events(journal, ui).await?;
                    live.show_event(&event, ui)?;
                }
            }
            _ = changes.next(TELL_POLL) => narrator.print_new_events(journal, ui).await?,
            () = stop.cancelled(), if !interrupted => {
                interrupted = true;
                ui.print_note("stopping; the run can be resumed")?;
                shutdown.cancel();
            }
        }
    };
    live.close_line(ui)?;
    narrator.print_new_events(journal, ui).await?;
    match driven {
        Ok(_) if interrupted => {
            // Pause the run, so that no other worker takes it from the queue: the user wants it to
            // stop.
            let by = INTERRUPT.to_owned();
            let paused = journal.order(id, Command::Pause { by }).await;
            let current = journal.run(id).await.map_err(record_failure)?;
            narrator.print_new_events(journal, ui).await?;
            paused.or_else(|error| current.ok_or(error)).map_err(record_failure)
        }
        Ok(run) => Ok(run),
        Err(DriveError::Lost(reason)) => Err(CliFailure::negative_answer(format!(
            "the run was lost to another worker: {reason}"
        ))),
        Err(error) => Err(CliFailure::cannot_run(error.to_string())
            .hint(format!("`rep runs resume {} --here` goes on where it stopped.", id.short()))),
    }
}

/// Returns the run's own labels. A user who starts a run here satisfies them by definition.
async fn own_labels(journal: &Journal, id: &RunId) -> Result<Vec<String>, CliFailure> {
    let run = journal.run(id).await.map_err(record_failure)?;
    let labels = run.into_iter().flat_map(|run| run.labels);
    Ok(labels.filter(|label| !label.starts_with("host:")).collect())
}

/// Prints the final state of a run and converts it to an exit code.
pub(crate) fn judge_run(run: &Run, ui: &mut TerminalUi<'_>) -> CliResult {
    if ui.json {
        ui.print_json_line(run)?;
    } else {
        let line = status_line(run, ui);
        writeln!(ui.out, "{line}")?;
    }
    let short = run.id.short();
    match run.status {
        RunStatus::Completed => {
            let is_kept = run.request.get("ending").and_then(|word| word.as_str()) == Some("keep");
            if !ui.json && is_kept {
                ui.print_note(&format!(
                    "`rep runs diff {short}` shows the changes, `rep runs merge {short}` merges them"
                ))?;
            }
            Ok(CliExit::Done)
        }
        RunStatus::Queued => {
            ui.print_note("it continues when a worker is free")?;
            Ok(CliExit::No)
        }
        RunStatus::Paused => {
            ui.print_note(&format!("continue with `rep runs resume {short}`"))?;
            let is_once = run.request.get("once").and_then(|once| once.as_bool()) == Some(true);
            Ok(match run.reason.as_deref() {
                Some(reason) if reason == format!("by {INTERRUPT}") => CliExit::Interrupted,
                _ if is_once => CliExit::Done,
                _ => CliExit::No,
            })
        }
        RunStatus::Waiting => {
            ui.print_note(&format!("`rep runs show {short}` lists what you can do"))?;
            Ok(CliExit::No)
        }
        RunStatus::Failed | RunStatus::Cancelled | RunStatus::Running => Ok(CliExit::No),
    }
}

/// Waits until the plan has changed and has an open task. Returns false when interrupted.
async fn wait_for_tasks(plan: &Utf8Path, ui: &mut TerminalUi<'_>) -> Result<bool, CliFailure> {
    ui.print_note(&format!("waiting for new tasks in {plan}"))?;
    let read = || fs::read_text(plan, PLAN_BYTES_MAX as u64).unwrap_or_default();
    let mut seen = ContentDigest::hash_bytes(read().as_bytes());
    let stop = CancellationToken::new();
    cancel_on_signal(stop.clone())?;
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(false),
            () = tokio::time::sleep(WATCH_POLL) => {}
        }
        let text = read();
        let now = ContentDigest::hash_bytes(text.as_bytes());
        if now != seen {
            seen = now;
            let parsed = repertoire_plan::document::parse_plan(&text, plan);
            if parsed.count_marks().open > 0 {
                return Ok(true);
            }
        }
    }
}
