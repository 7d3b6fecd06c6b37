//! `rep runs prune`: removes worktrees whose work is merged, in all workspaces of recorded runs.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;
use repertoire::runs::short_oid;
use repertoire_git::worktree::{RunWorktrees, WorktreeKeepReason, WorktreePruneResult};
use repertoire_journal::{Command, Filter, Journal, Payload, RunId, RunStatus};

use super::{NO_RUNS, journal_failure};
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::runs::{KeptWorktreeJson, PruneJson, RemovedWorktreeJson, WorkspaceProblem};
use crate::ui::{self, TerminalUi};

/// Arguments of `rep runs prune`
#[derive(Debug, clap::Args)]
pub(crate) struct RunsPruneArgs {
    /// Say what would be removed, without removing it
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &RunsPruneArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let done = build_runtime()?.block_on(async {
        let Some(journal) = ctx.open_existing_journal().await? else { return Ok(None) };
        prune_worktrees(ctx, args, &journal).await.map(Some)
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
    }
    // A workspace that was deleted has nothing to prune, so it is not an error.
    let in_the_way = done.failed.iter().any(|one| Utf8Path::new(&one.workspace).exists());
    Ok(if in_the_way { CliExit::No } else { CliExit::Done })
}

fn empty_result(args: &RunsPruneArgs) -> PruneJson {
    let (removed, kept, failed) = (Vec::new(), Vec::new(), Vec::new());
    PruneJson { dry_run: args.dry_run, removed, kept, failed }
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
            Ok(pruned) => record_pruned(&mut done, pruned, &statuses),
            Err(error) => done.failed.push(WorkspaceProblem { workspace, why: error.to_string() }),
        }
    }
    for removed in done.removed.iter().filter(|_| !args.dry_run) {
        let gone = Payload::WorktreeRemoved { path: removed.path.clone() };
        let run = RunId::known(removed.run.as_str());
        journal.order(&run, Command::Event(gone)).await.map_err(journal_failure)?;
    }
    Ok(done)
}

/// Returns the status of every run, and the workspaces of all runs.
async fn list_runs(
    journal: &Journal,
) -> Result<(BTreeMap<String, RunStatus>, BTreeSet<String>), CliFailure> {
    let (mut statuses, mut workspaces) = (BTreeMap::new(), BTreeSet::new());
    let mut filter = Filter::default();
    loop {
        let page = journal.runs(&filter).await.map_err(journal_failure)?;
        for run in page.items {
            statuses.insert(run.id.to_string(), run.status);
            workspaces.insert(run.workspace);
        }
        match page.next {
            Some(next) => filter.before = Some(next),
            None => return Ok((statuses, workspaces)),
        }
    }
}

fn record_pruned(
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
    if done.removed.is_empty() && done.kept.is_empty() && done.failed.is_empty() {
        writeln!(ui.out, "No run has a worktree.")?;
    }
    Ok(())
}
