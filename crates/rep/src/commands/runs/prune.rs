//! `rep runs prune`: removes worktrees whose work is merged, in all workspaces of recorded runs.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;
use repertoire_git::worktree::{Pruned, Why, Worktrees};
use repertoire_journal::{Command, Filter, Journal, Payload, RunId, RunStatus};

use super::{NO_RUNS, failed};
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::running::runtime;
use crate::runs_text::short_oid;
use crate::schema::runs::{KeptJson, PruneJson, RemovedJson, WorkspaceProblem};
use crate::ui::{self, Ui};

/// Arguments of `rep runs prune`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Say what would be removed, without removing it
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let done = runtime()?.block_on(async {
        let Some(journal) = ctx.journal_if_there().await? else { return Ok(None) };
        prune(ctx, args, &journal).await.map(Some)
    })?;
    let Some(done) = done else {
        if ui.json {
            ui.print_json(&empty(args))?;
        } else {
            writeln!(ui.out, "{NO_RUNS}")?;
        }
        return Ok(Exit::Done);
    };
    if ui.json {
        ui.print_json(&done)?;
    } else {
        print(ctx, &done, ui)?;
    }
    // A workspace that was deleted has nothing to prune, so it is not an error.
    let in_the_way = done.failed.iter().any(|one| Utf8Path::new(&one.workspace).exists());
    Ok(if in_the_way { Exit::No } else { Exit::Done })
}

fn empty(args: &Args) -> PruneJson {
    let (removed, kept, failed) = (Vec::new(), Vec::new(), Vec::new());
    PruneJson { dry_run: args.dry_run, removed, kept, failed }
}

async fn prune(ctx: &Ctx<'_>, args: &Args, journal: &Journal) -> Result<PruneJson, Failure> {
    let (statuses, workspaces) = known(journal).await?;
    let in_use = |run: &str| statuses.get(run).is_none_or(|status| !status.is_over());
    let mut done = empty(args);
    // Several workspaces may belong to one repository.
    let mut seen = BTreeSet::new();
    for workspace in workspaces {
        let git = ctx.git(workspace.as_str())?;
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
        let worktrees = Worktrees::new(git, ctx.run_places().worktrees);
        let pruned = if args.dry_run {
            worktrees.prunable(&in_use).await
        } else {
            worktrees.prune(&in_use).await
        };
        match pruned {
            Ok(pruned) => take_down(&mut done, pruned, &statuses),
            Err(error) => done.failed.push(WorkspaceProblem { workspace, why: error.to_string() }),
        }
    }
    for removed in done.removed.iter().filter(|_| !args.dry_run) {
        let gone = Payload::WorktreeRemoved { path: removed.path.clone() };
        let run = RunId::known(removed.run.as_str());
        journal.order(&run, Command::Event(gone)).await.map_err(failed)?;
    }
    Ok(done)
}

/// Returns the status of every run, and the workspaces of all runs.
async fn known(
    journal: &Journal,
) -> Result<(BTreeMap<String, RunStatus>, BTreeSet<String>), Failure> {
    let (mut statuses, mut workspaces) = (BTreeMap::new(), BTreeSet::new());
    let mut filter = Filter::default();
    loop {
        let page = journal.runs(&filter).await.map_err(failed)?;
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

fn take_down(done: &mut PruneJson, pruned: Pruned, statuses: &BTreeMap<String, RunStatus>) {
    for removed in pruned.removed {
        done.removed.push(RemovedJson {
            run: removed.run,
            path: removed.dir.to_string(),
            branch: removed.branch,
            tip: removed.tip.map(String::from),
        });
    }
    for kept in pruned.kept {
        let why = match (&kept.why, statuses.get(&kept.run)) {
            (Why::InUse, None) => "its run is not in this journal".to_owned(),
            (Why::InUse, Some(status)) => format!("its run is {status}"),
            (why, _) => why.to_string(),
        };
        done.kept.push(KeptJson { run: kept.run, path: kept.dir.to_string(), why });
    }
}

fn print(ctx: &Ctx<'_>, done: &PruneJson, ui: &mut Ui<'_>) -> std::io::Result<()> {
    let short = |path: &str| ctx.config.places().shorten(path.into());
    let word = if done.dry_run { "would go" } else { "removed" };
    for removed in &done.removed {
        let run = RunId::known(removed.run.as_str());
        let tip = removed.tip.as_deref().map(|tip| format!(" (was at {})", short_oid(tip)));
        let word = ui.paint(ui::GOOD, ui::pad(word, 8));
        let id = ui::pad(run.short(), 8);
        let branch = format!("with {}{}", removed.branch, tip.unwrap_or_default());
        writeln!(ui.out, "{word}  {id}  {}", short(&removed.path))?;
        writeln!(ui.out, "{}{}", " ".repeat(20), ui.paint(ui::FAINT, branch))?;
    }
    for kept in &done.kept {
        let run = RunId::known(kept.run.as_str());
        let (word, id) = (ui.paint(ui::WARN, ui::pad("stays", 8)), ui::pad(run.short(), 8));
        writeln!(ui.out, "{word}  {id}  {}", short(&kept.path))?;
        let why = ui::wrap(&kept.why, ui.columns.saturating_sub(20).max(20), &" ".repeat(20));
        writeln!(ui.out, "{}{}", " ".repeat(20), ui.paint(ui::FAINT, why))?;
    }
    for failed in &done.failed {
        let word = ui.paint(ui::BAD, ui::pad("failed", 8));
        let line = ui::wrap(
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
