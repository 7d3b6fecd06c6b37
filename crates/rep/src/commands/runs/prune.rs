//! `rep runs prune`: removes worktrees whose work is merged, in all workspaces of recorded runs, and old runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use camino::Utf8Path;
use clap::ValueEnum;
use repertoire::runs::{RemovalMode, RunEnd, RunSelection, remove_old_runs, short_oid};
use repertoire::text::duration::parse_duration;
use repertoire_git::worktree::{RunWorktrees, WorktreeKeepReason, WorktreePruneResult};
use repertoire_journal::{Command, Filter, Journal, Payload, RunId, RunKind, RunStatus};

use super::list::RunKindArg;
use super::{NO_RUNS, journal_failure, now_ms};
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::runs_text::RunStatusWord;
use crate::schema::runs::{
    KeptRunJson, KeptWorktreeJson, PruneJson, RemovedRunJson, RemovedWorktreeJson, WorkspaceProblem,
};
use crate::ui::{self, TerminalUi};

/// Arguments of `rep runs prune`
#[derive(Debug, clap::Args)]
pub(crate) struct RunsPruneArgs {
    /// Say what would be removed, without removing it
    #[arg(long)]
    dry_run: bool,
    /// Remove runs that have not changed for this long, such as 30d or 12h (default:
    /// `runs.keep_days`)
    #[arg(long, value_name = "TIME", value_parser = parse_age)]
    older_than: Option<Duration>,
    /// Remove only runs of this kind (may be repeated, or a comma-separated list)
    #[arg(long, value_enum, value_name = "KIND", value_delimiter = ',')]
    kind: Vec<RunKindArg>,
    /// Remove only runs that ended so (may be repeated, or a comma-separated list)
    #[arg(long, value_enum, value_name = "STATUS", value_delimiter = ',')]
    status: Vec<RunEndArg>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RunEndArg {
    Completed,
    Failed,
    Cancelled,
    Interrupted,
}

impl From<RunEndArg> for RunEnd {
    fn from(arg: RunEndArg) -> Self {
        match arg {
            RunEndArg::Completed => RunEnd::Completed,
            RunEndArg::Failed => RunEnd::Failed,
            RunEndArg::Cancelled => RunEnd::Cancelled,
            RunEndArg::Interrupted => RunEnd::Interrupted,
        }
    }
}

/// Parses an age: days as `30d`, or a time as in the configuration.
fn parse_age(text: &str) -> Result<Duration, String> {
    match text.strip_suffix('d').map(str::parse::<u32>) {
        Some(Ok(days)) => Ok(Duration::from_secs(u64::from(days) * 24 * 60 * 60)),
        _ => parse_duration(text).map_err(|_| "write an age as 30d, 12h or 90m".to_owned()),
    }
}

impl RunsPruneArgs {
    /// Returns the runs to remove. `None` if runs are kept.
    fn selection(&self, kept: Option<Duration>) -> Result<Option<RunSelection>, CliFailure> {
        let idle = self.older_than.or(kept);
        match idle {
            Some(idle) => Ok(Some(RunSelection {
                idle,
                kinds: self.kind.iter().copied().map(RunKind::from).collect(),
                ends: self.status.iter().copied().map(RunEnd::from).collect(),
            })),
            None if self.kind.is_empty() && self.status.is_empty() => Ok(None),
            None => {
                Err(CliFailure::wrong_usage("it is not said how old runs must be to be removed")
                    .hint("`--older-than 30d` says so for this time, `runs.keep_days` for always."))
            }
        }
    }

    /// Returns true if worktrees are pruned as well: they belong to runs of plans.
    fn includes_worktrees(&self) -> bool {
        let has_plan = |kind: &RunKindArg| matches!(kind, RunKindArg::Plan | RunKindArg::Task);
        self.kind.is_empty() || self.kind.iter().any(has_plan)
    }
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &RunsPruneArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let selection = args.selection(ctx.runs_kept())?;
    let done = build_runtime()?.block_on(async {
        let Some(journal) = ctx.open_existing_journal().await? else { return Ok(None) };
        if !args.dry_run {
            let runs = ctx.run_places().runs;
            journal.complete_removals(&runs).await.map_err(journal_failure)?;
        }
        // Worktrees first: a run is kept as long as it has one.
        let mut done = if args.includes_worktrees() {
            prune_worktrees(ctx, args, &journal).await?
        } else {
            empty_result(args)
        };
        if let Some(selection) = &selection {
            prune_runs(ctx, selection, &journal, &mut done).await?;
        }
        Ok::<_, CliFailure>(Some(done))
    })?;
    let Some(done) = done else {
        if ui.json {
            ui.print_json(&empty_result(args))?;
        } else {
            writeln!(ui.out, "{NO_RUNS}")?;
        }
        return Ok(CliExit::Done);
    };
    if ui.json {
        ui.print_json(&done)?;
    } else {
        print_pruned(ctx, &done, ui)?;
        print_removed_runs(&done, ui)?;
        let is_nothing = done.removed.is_empty() && done.kept.is_empty() && done.failed.is_empty();
        match (&selection, done.removed_runs.is_empty() && done.kept_runs.is_empty()) {
            (None, _) if is_nothing => writeln!(ui.out, "No run has a worktree.")?,
            (Some(_), true) if is_nothing => writeln!(ui.out, "There is nothing to remove.")?,
            _ => {}
        }
    }
    // A workspace that was deleted has nothing to prune, so it is not an error.
    let in_the_way = done.failed.iter().any(|one| Utf8Path::new(&one.workspace).exists());
    Ok(if in_the_way { CliExit::No } else { CliExit::Done })
}

fn empty_result(args: &RunsPruneArgs) -> PruneJson {
    PruneJson {
        dry_run: args.dry_run,
        removed: Vec::new(),
        kept: Vec::new(),
        failed: Vec::new(),
        removed_runs: Vec::new(),
        kept_runs: Vec::new(),
    }
}

async fn prune_worktrees(
    ctx: &CliContext<'_>,
    args: &RunsPruneArgs,
    journal: &Journal,
) -> Result<PruneJson, CliFailure> {
    let (statuses, workspaces) = list_runs(journal).await?;
    let in_use = |run: &str| statuses.get(run).is_none_or(|status| !status.is_over());
    let mut done = empty_result(args);
    // Several workspaces may belong to one repository.
    let mut seen = BTreeSet::new();
    for workspace in workspaces {
        let git = ctx.git_in(workspace.as_str())?;
        let common = match git.common_dir().await {
            Ok(common) => common,
            Err(error) => {
                let why = if Utf8Path::new(&workspace).exists() {
                    error.to_string()
                } else {
                    "the folder is gone".to_owned()
                };
                done.failed.push(WorkspaceProblem { workspace, why });
                continue;
            }
        };
        if !seen.insert(common) {
            continue;
        }
        let worktrees = RunWorktrees::new(git, ctx.run_places().worktrees);
        let pruned = if args.dry_run {
            worktrees.preview_prune(&in_use).await
        } else {
            worktrees.prune(&in_use).await
        };
        match pruned {
            Ok(pruned) => {
                // Recorded at once: what happens to the next workspace changes nothing about it.
                if !args.dry_run {
                    record_removed_worktrees(journal, &pruned).await?;
                }
                list_pruned(&mut done, pruned, &statuses);
            }
            Err(error) => done.failed.push(WorkspaceProblem { workspace, why: error.to_string() }),
        }
    }
    Ok(done)
}

async fn record_removed_worktrees(
    journal: &Journal,
    pruned: &WorktreePruneResult,
) -> Result<(), CliFailure> {
    for removed in &pruned.removed {
        let gone = Payload::WorktreeRemoved { path: removed.dir.to_string() };
        let run = RunId::known(removed.run.as_str());
        journal.order(&run, Command::Event(gone)).await.map_err(journal_failure)?;
    }
    Ok(())
}

/// Returns the status of every run, and the workspaces of all runs that have worktrees.
async fn list_runs(
    journal: &Journal,
) -> Result<(BTreeMap<String, RunStatus>, BTreeSet<String>), CliFailure> {
    let (mut statuses, mut workspaces) = (BTreeMap::new(), BTreeSet::new());
    let mut filter = Filter::default();
    loop {
        let page = journal.runs(&filter).await.map_err(journal_failure)?;
        for run in page.items {
            statuses.insert(run.id.to_string(), run.status);
            if !run.attended {
                workspaces.insert(run.workspace);
            }
        }
        match page.next {
            Some(next) => filter.before = Some(next),
            None => return Ok((statuses, workspaces)),
        }
    }
}

fn list_pruned(
    done: &mut PruneJson,
    pruned: WorktreePruneResult,
    statuses: &BTreeMap<String, RunStatus>,
) {
    for removed in pruned.removed {
        done.removed.push(RemovedWorktreeJson {
            run: removed.run,
            path: removed.dir.to_string(),
            branch: removed.branch,
            tip: removed.tip.map(String::from),
        });
    }
    for kept in pruned.kept {
        let why = match (&kept.why, statuses.get(&kept.run)) {
            (WorktreeKeepReason::InUse, None) => "its run is not in this journal".to_owned(),
            (WorktreeKeepReason::InUse, Some(status)) => format!("its run is {status}"),
            (why, _) => why.to_string(),
        };
        done.kept.push(KeptWorktreeJson { run: kept.run, path: kept.dir.to_string(), why });
    }
}

fn print_pruned(
    ctx: &CliContext<'_>,
    done: &PruneJson,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let short = |path: &str| ctx.config.places().shorten_path(path.into());
    let word = if done.dry_run { "would go" } else { "removed" };
    for removed in &done.removed {
        let run = RunId::known(removed.run.as_str());
        let tip = removed.tip.as_deref().map(|tip| format!(" (was at {})", short_oid(tip)));
        let word = ui.paint(ui::GOOD, ui::pad_columns(word, 8));
        let id = ui::pad_columns(run.short(), 8);
        let branch = format!("with {}{}", removed.branch, tip.unwrap_or_default());
        writeln!(ui.out, "{word}  {id}  {}", short(&removed.path))?;
        writeln!(ui.out, "{}{}", " ".repeat(20), ui.paint(ui::FAINT, branch))?;
    }
    for kept in &done.kept {
        let run = RunId::known(kept.run.as_str());
        let (word, id) =
            (ui.paint(ui::WARN, ui::pad_columns("stays", 8)), ui::pad_columns(run.short(), 8));
        writeln!(ui.out, "{word}  {id}  {}", short(&kept.path))?;
        let why = ui::wrap_words(&kept.why, ui.columns.saturating_sub(20).max(20), &" ".repeat(20));
        writeln!(ui.out, "{}{}", " ".repeat(20), ui.paint(ui::FAINT, why))?;
    }
    for failed in &done.failed {
        let word = ui.paint(ui::BAD, ui::pad_columns("failed", 8));
        let line = ui::wrap_words(
            &format!("{}: {}", short(&failed.workspace), failed.why),
            ui.columns.saturating_sub(10).max(20),
            &" ".repeat(10),
        );
        writeln!(ui.out, "{word}  {line}")?;
    }
    Ok(())
}

/// Removes the selected runs, or lists them.
async fn prune_runs(
    ctx: &CliContext<'_>,
    selection: &RunSelection,
    journal: &Journal,
    done: &mut PruneJson,
) -> Result<(), CliFailure> {
    let runs = ctx.run_places().runs;
    let mode = if done.dry_run { RemovalMode::Preview } else { RemovalMode::Remove };
    let report = remove_old_runs(journal, &runs, selection, now_ms(), mode).await;
    let report = report.map_err(journal_failure)?;
    done.removed_runs = report.removed.iter().map(RemovedRunJson::new).collect();
    let kept = report.kept.into_iter();
    done.kept_runs = kept.map(|(run, why)| KeptRunJson { run: run.id, why }).collect();
    Ok(())
}

fn print_removed_runs(done: &PruneJson, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let word = if done.dry_run { "would go" } else { "removed" };
    for removed in &done.removed_runs {
        let word = ui.paint(ui::GOOD, ui::pad_columns(word, 8));
        let name = ui::fit_columns(&removed.name, ui.columns.saturating_sub(40).max(20));
        let id = ui::pad_columns(removed.run.short(), 8);
        // Of the runs that are running, only those are removed whose process is gone.
        let status = RunStatusWord::new(removed.status, removed.status == RunStatus::Running);
        writeln!(ui.out, "{word}  {id}  {} {}: {name}", status.as_str(), removed.kind)?;
    }
    for kept in &done.kept_runs {
        let word = ui.paint(ui::WARN, ui::pad_columns("stays", 8));
        let why = ui::wrap_words(&kept.why, ui.columns.saturating_sub(20).max(20), &" ".repeat(20));
        writeln!(ui.out, "{word}  {}  {why}", ui::pad_columns(kept.run.short(), 8))?;
    }
    Ok(())
}
