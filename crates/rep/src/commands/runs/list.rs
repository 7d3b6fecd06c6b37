//! `rep runs list`: prints runs as a table, the newest first.

use clap::ValueEnum;
use repertoire::runs;
use repertoire_journal::{Filter, Journal, RunStatus};

use super::{NO_RUNS, journal_failure, now_ms};
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::runs_text::{LocalClock, short_dollars, short_time, status_style};
use crate::schema::runs::{RunListRow, RunsListJson};
use crate::ui::{self, TerminalUi};

/// Number of runs listed by default.
const SHOWN: u32 = 20;
/// Maximum width of the workspace column.
const WORKSPACE_COLUMNS_MAX: usize = 32;

/// Filters of `rep runs list`
#[derive(Debug, clap::Args)]
pub(crate) struct RunsListArgs {
    /// List all runs, not only the latest
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Only runs with this status (may be repeated, or a comma-separated list)
    #[arg(long, value_enum, value_name = "STATUS", value_delimiter = ',')]
    status: Vec<RunStatusArg>,
    /// Only runs of this project
    #[arg(long)]
    here: bool,
    /// List at most this many runs [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: Option<u32>,
    /// Continue at the cursor that a previous list ended with
    #[arg(long, value_name = "CURSOR")]
    before: Option<u64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RunStatusArg {
    Queued,
    Running,
    Paused,
    Waiting,
    Completed,
    Failed,
    Cancelled,
}

impl From<RunStatusArg> for RunStatus {
    fn from(arg: RunStatusArg) -> Self {
        match arg {
            RunStatusArg::Queued => RunStatus::Queued,
            RunStatusArg::Running => RunStatus::Running,
            RunStatusArg::Paused => RunStatus::Paused,
            RunStatusArg::Waiting => RunStatus::Waiting,
            RunStatusArg::Completed => RunStatus::Completed,
            RunStatusArg::Failed => RunStatus::Failed,
            RunStatusArg::Cancelled => RunStatus::Cancelled,
        }
    }
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &RunsListArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let (rows, next) = build_runtime()?.block_on(async {
        match ctx.open_existing_journal().await? {
            Some(journal) => read_rows(ctx, args, &journal).await,
            None => Ok((Vec::new(), None)),
        }
    })?;
    if ui.json {
        ui.print_json(&RunsListJson { runs: rows, next })?;
        return Ok(CliExit::Done);
    }
    if rows.is_empty() {
        let is_filtered = args.here || !args.status.is_empty() || args.before.is_some();
        let line = if is_filtered { "No run is like that. `rep runs` lists all." } else { NO_RUNS };
        writeln!(ui.out, "{line}")?;
        return Ok(CliExit::Done);
    }
    print_table(ctx, &rows, ui)?;
    if let Some(next) = next {
        let line = format!("There are more: --before {next} goes on, --all lists them all.");
        writeln!(ui.out, "{}", ui.paint(ui::FAINT, line))?;
    }
    Ok(CliExit::Done)
}

async fn read_rows(
    ctx: &CliContext<'_>,
    args: &RunsListArgs,
    journal: &Journal,
) -> Result<(Vec<RunListRow>, Option<u64>), CliFailure> {
    let mut filter = Filter {
        statuses: args.status.iter().copied().map(RunStatus::from).collect(),
        kind: None,
        workspace: args.here.then(|| ctx.project_dir(None).to_string()),
        limit: if args.all { 0 } else { args.limit.unwrap_or(SHOWN) },
        before: args.before,
    };
    let (mut rows, mut events_read) = (Vec::new(), 0);
    loop {
        let page = runs::rows(journal, &filter, &mut events_read).await.map_err(journal_failure)?;
        rows.extend(page.items);
        if !args.all || page.next.is_none() {
            return Ok((rows, page.next));
        }
        filter.before = page.next;
    }
}

/// The formatted cells of a row.
struct RunCells<'a> {
    row: &'a RunListRow,
    workspace: String,
    /// Steps, tasks, time, cost, age.
    figures: [String; 5],
}

const FIGURES: [&str; 5] = ["steps", "tasks", "time", "cost", "age"];
/// Indexes of the figures that are dropped first on a narrow screen.
const DROPPED: [usize; 2] = [0, 2];
/// Minimum useful width of a name.
const NAME_COLUMNS_MIN: usize = 16;
const STATUS_COLUMNS: usize = 9;
const ID_COLUMNS: usize = 8;
/// Minimum useful width of a workspace, which is that of its heading.
const WORKSPACE_COLUMNS_MIN: usize = 9;

fn print_table(
    ctx: &CliContext<'_>,
    rows: &[RunListRow],
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let clock = LocalClock::local(now_ms());
    let cells: Vec<RunCells<'_>> = rows.iter().map(|row| row_cells(ctx, row, &clock)).collect();
    let mut widths: [usize; 5] = std::array::from_fn(|at| {
        let cells = cells.iter().map(|cells| ui::text_width(&cells.figures[at]));
        cells.chain([FIGURES[at].len()]).max().unwrap_or(0)
    });
    // On a narrow screen, the name matters more than the number of steps and the time.
    for dropped in DROPPED {
        if ui.columns < fixed_columns(widths) + NAME_COLUMNS_MIN {
            widths[dropped] = 0;
        }
    }
    let names = cells.iter().map(|cells| ui::text_width(&cells.row.name)).max().unwrap_or(0).max(4);
    let places = cells.iter().map(|cells| ui::text_width(&cells.workspace)).max().unwrap_or(0);
    let places = places.max(WORKSPACE_COLUMNS_MIN);
    let room = ui.columns.saturating_sub(fixed_columns(widths));
    let (name, place) = share_columns(names, places.min(WORKSPACE_COLUMNS_MAX), room);
    let head = format_line("id", "status", ("name", name), ("workspace", place), FIGURES, widths);
    writeln!(ui.out, "{}", ui.paint(ui::FAINT, head.trim_end()))?;
    for RunCells { row, workspace, figures } in &cells {
        let figures = figures.each_ref().map(String::as_str);
        let text = format_line("", "", (&row.name, name), (workspace, place), figures, widths);
        let rest = text.get(ID_COLUMNS + 2 + STATUS_COLUMNS..).unwrap_or_default();
        let id = ui.paint(
            ui::STRONG,
            ui::pad_columns(&ui::fit_columns(&row.short, ID_COLUMNS), ID_COLUMNS),
        );
        let status = ui::pad_columns(row.status.as_str(), STATUS_COLUMNS);
        let status = ui.paint(status_style(row.status), status);
        writeln!(ui.out, "{id}  {status}{}", rest.trim_end())?;
    }
    Ok(())
}

/// The width of all columns but name and workspace.
fn fixed_columns(widths: [usize; 5]) -> usize {
    let figures: usize = widths.iter().filter(|width| **width > 0).map(|width| width + 2).sum();
    ID_COLUMNS + 2 + STATUS_COLUMNS + 2 + figures
}

/// Divides the room between name and workspace. Both get their full width if there is room;
/// otherwise the name gets more.
fn share_columns(names: usize, places: usize, room: usize) -> (usize, usize) {
    let place = room.saturating_sub(names + 2).max(room / 3).min(places);
    if place < WORKSPACE_COLUMNS_MIN {
        (names.min(room), 0)
    } else {
        (names.min(room.saturating_sub(place + 2)), place)
    }
}

fn format_line(
    id: &str,
    status: &str,
    (name, names): (&str, usize),
    (place, places): (&str, usize),
    figures: [&str; 5],
    widths: [usize; 5],
) -> String {
    let mut out =
        format!("{}  {}", ui::pad_columns(id, ID_COLUMNS), ui::pad_columns(status, STATUS_COLUMNS));
    out.push_str(&format!("  {}", ui::pad_columns(&ui::fit_columns(name, names), names)));
    if places > 0 {
        out.push_str(&format!("  {}", ui::pad_columns(&truncate_start(place, places), places)));
    }
    for (figure, width) in figures.iter().zip(widths).filter(|(_, width)| *width > 0) {
        out.push_str(&format!(
            "  {}{figure}",
            " ".repeat(width.saturating_sub(ui::text_width(figure)))
        ));
    }
    out
}

/// Truncates a path at its start, since its end says more.
fn truncate_start(path: &str, columns: usize) -> String {
    if ui::text_width(path) <= columns {
        return path.to_owned();
    }
    let mut kept: Vec<char> = Vec::new();
    for c in path.chars().rev() {
        kept.push(c);
        if ui::text_width(&kept.iter().collect::<String>()) + 1 > columns {
            kept.pop();
            break;
        }
    }
    format!("…{}", kept.iter().rev().collect::<String>())
}

fn row_cells<'a>(ctx: &CliContext<'_>, row: &'a RunListRow, clock: &LocalClock) -> RunCells<'a> {
    let workspace = if ctx.project_dir(None) == row.workspace.as_str() {
        "here".to_owned()
    } else {
        ctx.config.places().shorten_path(row.workspace.as_str().into())
    };
    let tasks = row.tasks.map_or("-".to_owned(), |tasks| format!("{}/{}", tasks.done, tasks.all));
    let cost = match (row.cost_usd, row.cost_is_partial) {
        (0.0, true) => "?".to_owned(),
        (cost, true) => format!("{}+", short_dollars(cost)),
        (cost, false) => short_dollars(cost),
    };
    let age = clock.format_age(row.created_ms);
    let figures = [row.steps.to_string(), tasks, short_time(row.time_ms), cost, age];
    RunCells { row, workspace, figures }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_place_share_what_room_there_is() {
        assert_eq!(share_columns(12, 20, 60), (12, 20));
        assert_eq!(share_columns(40, 20, 60), (38, 20));
        assert_eq!(share_columns(40, 30, 45), (28, 15));
        assert_eq!(share_columns(40, 30, 20), (20, 0));
        assert_eq!(share_columns(8, 30, 20), (8, 10));
    }

    #[test]
    fn the_end_of_a_long_path_is_kept() {
        assert_eq!(truncate_start("~/code/forms", 20), "~/code/forms");
        assert_eq!(truncate_start("~/code/forms", 8), "…e/forms");
        assert_eq!(truncate_start("日本語", 5), "…本語");
    }
}
