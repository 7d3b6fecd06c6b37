//! `rep runs diff`: shows the changes of a run.

use repertoire::runs::{RunDiffError, run_diff};

use super::{RunArg, journal_failure};
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::runs::{RunChangedFile, RunDiffJson};
use crate::ui::{self, TerminalUi};

/// Maximum width of the bars beside the files.
const BAR_COLUMNS: u64 = 30;

/// Arguments of `rep runs diff`
#[derive(Debug, clap::Args)]
pub(crate) struct RunsDiffArgs {
    #[command(flatten)]
    run: RunArg,
    /// Print only the files and their number of changed lines
    #[arg(long)]
    stat: bool,
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &RunsDiffArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let mut found = build_runtime()?.block_on(async {
        let journal = ctx.require_journal().await?;
        let run = args.run.find_run(&journal).await?;
        let git = ctx.git_in(run.workspace.as_str())?;
        let left_behind = ctx.run_places().runs.join(run.id.as_str());
        run_diff(&journal, &run, &git, &left_behind).await.map_err(diff_failure)
    })?;
    if ui.json {
        if args.stat {
            found.text = None;
        }
        ui.print_json(&found)?;
        return Ok(CliExit::Done);
    }
    if args.stat {
        print_stat(&found, ui)?;
    } else {
        print_text(ctx, &found, ui)?;
    }
    if found.source == "record" {
        ui.print_note("the branch of the run is gone: this is what it left behind")?;
    }
    if found.cut {
        ui.print_note("the diff is longer than is shown")?;
    }
    Ok(CliExit::Done)
}

fn diff_failure(error: RunDiffError) -> CliFailure {
    let failure = CliFailure::negative_answer(error.to_string());
    match error {
        RunDiffError::Nothing { run } => {
            failure.hint(format!("`rep runs show {}` says how far it is.", run.short()))
        }
        RunDiffError::Gone { path, source, .. } => {
            failure.hint(format!("{path} cannot be read either: {source}."))
        }
        RunDiffError::Journal(error) => journal_failure(error),
    }
}

/// Prints the diff. A terminal gets colour and escaped control characters; anything else gets the
/// raw text, for `git apply`.
fn print_text(
    ctx: &CliContext<'_>,
    found: &RunDiffJson,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
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

fn print_stat(found: &RunDiffJson, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    if found.files.is_empty() {
        return writeln!(ui.err, "nothing was changed");
    }
    let most = found.files.iter().map(changed_lines).max().unwrap_or(0).max(1);
    let figures = most.to_string().len().max(3);
    let bar = BAR_COLUMNS.min(most);
    let room = ui.columns.saturating_sub(figures + 5 + bar as usize).max(12);
    let names = found
        .files
        .iter()
        .map(|file| ui::text_width(&file_name(file)))
        .max()
        .unwrap_or(0)
        .min(room);
    for file in &found.files {
        let path = ui::pad_columns(&ui::fit_columns(&file_name(file), names), names);
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
    let files = ui::format_count(found.files.len(), "file");
    writeln!(ui.out, "{files} changed, {} lines came, {} went", found.insertions, found.deletions)
}

fn changed_lines(file: &RunChangedFile) -> u64 {
    file.insertions.unwrap_or(0) + file.deletions.unwrap_or(0)
}

fn file_name(file: &RunChangedFile) -> String {
    let name = match &file.from {
        Some(from) => format!("{from} → {}", file.path),
        None => file.path.clone(),
    };
    ui::fit_columns(&name, usize::MAX)
}
