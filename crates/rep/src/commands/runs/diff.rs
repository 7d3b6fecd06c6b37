//! `rep runs diff`: what a run changed.

use repertoire_drive::git::{Diff, DiffOf, FileDiff, Git, GitError, Oid};
use repertoire_drive::limits::GIT_OUTPUT_BYTES_MAX;
use repertoire_journal::{Payload, Run};
use repertoire_text::fs;

use super::{RunArg, events_of};
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::running::runtime;
use crate::schema::runs::{ChangedFile, RunDiffJson};
use crate::ui::{self, Ui};

/// Columns of the bars beside the files.
const BAR_COLUMNS: u64 = 30;

/// Which run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArg,
    /// Print the files and how many lines changed
    #[arg(long)]
    stat: bool,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let mut found = runtime()?.block_on(async {
        let journal = ctx.journal_of_runs().await?;
        let run = args.run.find(&journal).await?;
        let events = events_of(&journal, &run).await?;
        // A worktree that is gone was known once.
        let place = events.iter().rev().find_map(|event| match &event.payload {
            Payload::WorktreeCreated { branch, base, .. } => Some((branch.clone(), base.clone())),
            _ => None,
        });
        match place {
            Some((branch, base)) => changes(ctx, &run, &branch, &base).await,
            None => Err(Failure::no(format!("run {} has changed nothing yet", run.id.short()))
                .hint(format!("`rep runs show {}` says how far it is.", run.id.short()))),
        }
    })?;
    if ui.json {
        if args.stat {
            found.text = None;
        }
        ui.print_json(&found)?;
        return Ok(Exit::Done);
    }
    match args.stat {
        true => print_stat(&found, ui)?,
        false => print_text(ctx, &found, ui)?,
    }
    if found.source == "record" {
        ui.note("the branch of the run is gone: this is what it left behind")?;
    }
    if found.cut {
        ui.note("the diff is longer than is shown")?;
    }
    Ok(Exit::Done)
}

async fn changes(
    ctx: &Ctx<'_>,
    run: &Run,
    branch: &str,
    base: &str,
) -> Result<RunDiffJson, Failure> {
    match compared(ctx, run, branch, base).await {
        Ok(Some(diff)) => Ok(diff),
        Ok(None) => recorded(ctx, run, None),
        Err(error) => recorded(ctx, run, Some(error)),
    }
}

/// The branch against the commit that it began on; nothing if either is gone.
async fn compared(
    ctx: &Ctx<'_>,
    run: &Run,
    branch: &str,
    base: &str,
) -> Result<Option<RunDiffJson>, GitError> {
    let git = Git::new(run.workspace.as_str(), ctx.env.tool_environment(false));
    let (Some(from), Some(to)) = (git.find(base).await?, git.branch_tip(branch).await?) else {
        return Ok(None);
    };
    let of = DiffOf::Commits { from: from.clone(), to: to.clone() };
    let diff = git.diff(&of, GIT_OUTPUT_BYTES_MAX).await?;
    Ok(Some(json(run, "branch", diff, Some(from), Some(to))))
}

/// What the run left behind.
fn recorded(ctx: &Ctx<'_>, run: &Run, why: Option<GitError>) -> Result<RunDiffJson, Failure> {
    let path = ctx.run_places().runs.join(run.id.as_str()).join("changes.diff");
    let read = fs::read_text(&path, GIT_OUTPUT_BYTES_MAX as u64);
    let text = read.map_err(|error| {
        let branch = why.map_or_else(|| "its branch is gone".to_owned(), |why| why.to_string());
        Failure::no(format!("what run {} changed cannot be told: {branch}", run.id.short()))
            .hint(format!("{path} cannot be read either: {error}."))
    })?;
    let files = files_of(&text);
    let diff = Diff {
        insertions: files.iter().filter_map(|file| file.insertions).sum(),
        deletions: files.iter().filter_map(|file| file.deletions).sum(),
        files,
        text,
        cut: false,
    };
    Ok(json(run, "record", diff, None, None))
}

fn json(
    run: &Run,
    source: &'static str,
    diff: Diff,
    from: Option<Oid>,
    to: Option<Oid>,
) -> RunDiffJson {
    let file = |file: FileDiff| ChangedFile {
        path: file.path,
        from: file.from,
        insertions: file.insertions,
        deletions: file.deletions,
    };
    RunDiffJson {
        run: run.id.clone(),
        source,
        from: from.map(String::from),
        to: to.map(String::from),
        files: diff.files.into_iter().map(file).collect(),
        insertions: diff.insertions,
        deletions: diff.deletions,
        cut: diff.cut,
        text: Some(diff.text),
    }
}

/// The files of a diff as git writes it, counted line by line.
fn files_of(text: &str) -> Vec<FileDiff> {
    let mut files: Vec<FileDiff> = Vec::new();
    let mut in_hunk = false;
    for line in text.lines() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            in_hunk = false;
            let (_, path) = names.split_once(" b/").unwrap_or(("", names));
            let path = path.to_owned();
            let (insertions, deletions) = (Some(0), Some(0));
            files.push(FileDiff { path, from: None, insertions, deletions });
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        if line.starts_with("@@ ") {
            in_hunk = true;
        } else if let (true, Some(count)) = (in_hunk && line.starts_with('+'), &mut file.insertions)
        {
            *count += 1;
        } else if let (true, Some(count)) = (in_hunk && line.starts_with('-'), &mut file.deletions)
        {
            *count += 1;
        } else if let (false, Some(from)) = (in_hunk, line.strip_prefix("rename from ")) {
            file.from = Some(from.to_owned());
        } else if !in_hunk && line.starts_with("Binary files ") {
            (file.insertions, file.deletions) = (None, None);
        }
    }
    files
}

/// To a terminal in colour, with what would move the cursor made visible; elsewhere as it is, for `git apply`.
fn print_text(ctx: &Ctx<'_>, found: &RunDiffJson, ui: &mut Ui<'_>) -> std::io::Result<()> {
    let text = found.text.as_deref().unwrap_or_default();
    if text.is_empty() {
        return writeln!(ui.err, "nothing was changed");
    }
    if !ctx.env.is_terminal && !ui.colour {
        return ui.out.write_all(text.as_bytes());
    }
    let mut in_hunk = false;
    for line in text.lines() {
        in_hunk = !line.starts_with("diff --git ") && (in_hunk || line.starts_with("@@ "));
        let shown = ui::printable_lines(line);
        let shown = match (in_hunk, line.as_bytes().first()) {
            (false, _) => ui.paint(ui::STRONG, shown),
            (true, Some(b'@')) => ui.paint(ui::ACCENT, shown),
            (true, Some(b'+')) => ui.paint(ui::GOOD, shown),
            (true, Some(b'-')) => ui.paint(anstyle::AnsiColor::Red.on_default(), shown),
            (true, _) => shown,
        };
        writeln!(ui.out, "{shown}")?;
    }
    Ok(())
}

fn print_stat(found: &RunDiffJson, ui: &mut Ui<'_>) -> std::io::Result<()> {
    if found.files.is_empty() {
        return writeln!(ui.err, "nothing was changed");
    }
    let lines = |file: &ChangedFile| file.insertions.unwrap_or(0) + file.deletions.unwrap_or(0);
    let most = found.files.iter().map(lines).max().unwrap_or(0).max(1);
    let figures = most.to_string().len().max(3);
    let bar = BAR_COLUMNS.min(most);
    let room = ui.columns.saturating_sub(figures + 5 + bar as usize).max(12);
    let names = found.files.iter().map(|file| ui::width(&name(file))).max().unwrap_or(0).min(room);
    for file in &found.files {
        let path = ui::pad(&ui::fit(&name(file), names), names);
        let Some((came, went)) = file.insertions.zip(file.deletions) else {
            writeln!(ui.out, "{path}  {:>figures$}", "bin")?;
            continue;
        };
        let share = |count: u64| (count * bar).div_ceil(most).min(bar);
        let plus = ui.paint(ui::GOOD, "+".repeat(share(came) as usize));
        let minus = "-".repeat(share(went).min(bar - share(came)) as usize);
        let minus = ui.paint(anstyle::AnsiColor::Red.on_default(), minus);
        writeln!(ui.out, "{path}  {:>figures$}  {plus}{minus}", came + went)?;
    }
    let files = ui::count(found.files.len(), "file");
    writeln!(ui.out, "{files} changed, {} lines came, {} went", found.insertions, found.deletions)
}

fn name(file: &ChangedFile) -> String {
    let name = match &file.from {
        Some(from) => format!("{from} → {}", file.path),
        None => file.path.clone(),
    };
    ui::fit(&name, usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_that_was_left_behind_is_counted() {
        let text = "\
diff --git a/a.txt b/a.txt
index 1..2 100644
--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,3 @@
 one
--- two
+++ two
+three
diff --git a/old b/new
similarity index 100%
rename from old
rename to new
diff --git a/x.png b/x.png
Binary files a/x.png and b/x.png differ
";
        let files = files_of(text);
        let shown: Vec<_> = files
            .iter()
            .map(|file| (file.path.as_str(), file.from.as_deref(), file.insertions, file.deletions))
            .collect();
        assert_eq!(
            shown,
            [
                ("a.txt", None, Some(2), Some(1)),
                ("new", Some("old"), Some(0), Some(0)),
                ("x.png", None, None, None),
            ]
        );
    }
}
