//! `rep runs list`: prints runs as a table, the newest first.

use camino::Utf8Path;
use clap::ValueEnum;
use repertoire::runs::{self, describe_older_stores, find_older_stores};
use repertoire_journal::{DamagedRow, Filter, Journal, RunId, RunKind, RunStatus};

use super::{NO_RUNS, journal_failure, now_ms};
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::runs_text::{LocalClock, RunStatusWord, short_dollars, short_time};
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
    /// Only runs of this kind (may be repeated, or a comma-separated list)
    #[arg(long, value_enum, value_name = "KIND", value_delimiter = ',')]
    kind: Vec<RunKindArg>,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RunStatusArg {
    Queued,
    Running,
    Interrupted,
    Paused,
    Waiting,
    Completed,
    Failed,
    Cancelled,
}

impl RunStatusArg {
    /// The status in the journal.
    fn stored(self) -> RunStatus {
        match self {
            RunStatusArg::Queued => RunStatus::Queued,
            RunStatusArg::Running | RunStatusArg::Interrupted => RunStatus::Running,
            RunStatusArg::Paused => RunStatus::Paused,
            RunStatusArg::Waiting => RunStatus::Waiting,
            RunStatusArg::Completed => RunStatus::Completed,
            RunStatusArg::Failed => RunStatus::Failed,
            RunStatusArg::Cancelled => RunStatus::Cancelled,
        }
    }
}

/// The kind of a run
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunKindArg {
    Conversation,
    Workflow,
    Review,
    Plan,
    Task,
}

impl From<RunKindArg> for RunKind {
    fn from(arg: RunKindArg) -> Self {
        match arg {
            RunKindArg::Conversation => RunKind::Conversation,
            RunKindArg::Workflow => RunKind::Workflow,
            RunKindArg::Review => RunKind::Review,
            RunKindArg::Plan => RunKind::Plan,
            RunKindArg::Task => RunKind::Task,
        }
    }
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &RunsListArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let listed = build_runtime()?.block_on(async {
        match ctx.open_existing_journal().await? {
            Some(journal) => read_rows(ctx, args, &journal).await,
            None => Ok(RunsListJson { runs: Vec::new(), damaged: Vec::new(), next: None }),
        }
    })?;
    let older = find_older_stores(&ctx.env.data_dir());
    let shorten = |dir: &Utf8Path| ctx.config.places().shorten_path(dir);
    if let Some(text) = describe_older_stores(&older, shorten) {
        ui.print_note(&text)?;
    }
    if ui.json {
        ui.print_json(&listed)?;
        return Ok(CliExit::Done);
    }
    let RunsListJson { runs: rows, damaged, next } = listed;
    if rows.is_empty() && damaged.is_empty() {
        let is_filtered =
            args.here || !args.status.is_empty() || !args.kind.is_empty() || args.before.is_some();
        let line = if is_filtered { "No run is like that. `rep runs` lists all." } else { NO_RUNS };
        writeln!(ui.out, "{line}")?;
        return Ok(CliExit::Done);
    }
    if !rows.is_empty() {
        print_table(ctx, &rows, ui)?;
    }
    print_damaged_runs(&damaged, ui)?;
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
) -> Result<RunsListJson, CliFailure> {
    let folder = ctx.run_places().runs;
    let rows_max = args.limit.unwrap_or(SHOWN);
    let mut filter = Filter {
        statuses: args.status.iter().map(|status| status.stored()).collect(),
        // The journal filters by one kind.
        kind: match args.kind.as_slice() {
            [kind] => Some(RunKind::from(*kind).to_string()),
            _ => None,
        },
        workspace: args.here.then(|| ctx.project_dir(None).to_string()),
        limit: if args.all { 0 } else { rows_max },
        before: args.before,
    };
    let (mut rows, mut damaged, mut events_read) = (Vec::new(), Vec::new(), 0);
    loop {
        let page = runs::rows(journal, &folder, &filter, &mut events_read).await;
        let page = page.map_err(journal_failure)?;
        rows.extend(page.items.into_iter().filter(|row| args.selects(row)));
        damaged.extend(page.damaged);
        // Rows that are filtered out here leave room for rows of the next page.
        let listed = u32::try_from(rows.len() + damaged.len()).unwrap_or(u32::MAX);
        let room = rows_max.saturating_sub(listed);
        if page.next.is_none() || (room == 0 && !args.all) {
            return Ok(RunsListJson { runs: rows, damaged, next: page.next });
        }
        filter.before = page.next;
        filter.limit = if args.all { 0 } else { room };
    }
}

impl RunsListArgs {
    /// Returns true if a row of the journal is listed: the journal knows no interrupted runs, and
    /// filters by one kind only.
    fn selects(&self, row: &RunListRow) -> bool {
        let is_kind = |kind: &RunKindArg| RunKind::from(*kind).as_str() == row.kind;
        let is_status = |status: &RunStatusArg| match status {
            RunStatusArg::Running => row.status == RunStatus::Running && !row.interrupted,
            RunStatusArg::Interrupted => row.interrupted,
            status => row.status == status.stored(),
        };
        (self.kind.is_empty() || self.kind.iter().any(is_kind))
            && (self.status.is_empty() || self.status.iter().any(is_status))
    }
}

/// The formatted cells of a row.
struct RunCells<'a> {
    row: &'a RunListRow,
    workspace: String,
    /// Steps, tasks, time, cost, age.
    figures: [String; 5],
}

/// The widths of the columns. 0 for a column that is left out.
struct RunColumns {
    status: usize,
    kind: usize,
    name: usize,
    workspace: usize,
    figures: [usize; 5],
}

const FIGURES: [&str; 5] = ["steps", "tasks", "time", "cost", "age"];
/// Indexes of the figures that are dropped first on a narrow screen.
const DROPPED: [usize; 2] = [0, 2];
/// Minimum useful width of a name.
const NAME_COLUMNS_MIN: usize = 16;
const STATUS_COLUMNS_MIN: usize = 9;
const KIND_COLUMNS_MIN: usize = 4;
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
    let columns = RunColumns::fit(&cells, ui.columns);
    let head = columns.format_rest("kind", "name", "workspace", FIGURES);
    let head = format!("{}  {}{head}", pad("id", ID_COLUMNS), pad("status", columns.status));
    writeln!(ui.out, "{}", ui.paint(ui::FAINT, head.trim_end()))?;
    for RunCells { row, workspace, figures } in &cells {
        let figures = figures.each_ref().map(String::as_str);
        let rest = columns.format_rest(&row.kind, &row.name, workspace, figures);
        let id = ui.paint(ui::STRONG, pad(&row.short, ID_COLUMNS));
        let status = RunStatusWord::new(row.status, row.interrupted);
        let status = ui.paint(status.style(), pad(status.as_str(), columns.status));
        writeln!(ui.out, "{id}  {status}{}", rest.trim_end())?;
    }
    Ok(())
}

/// Prints the runs that cannot be read, and what can be done about them.
pub(crate) fn print_damaged_runs(
    damaged: &[DamagedRow],
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let Some(first) = damaged.first() else { return Ok(()) };
    for row in damaged {
        let id = RunId::known(&row.id);
        let word = ui.paint(ui::BAD, pad("damaged", STATUS_COLUMNS_MIN));
        let indent = " ".repeat(ID_COLUMNS + STATUS_COLUMNS_MIN + 4);
        let room = ui.columns.saturating_sub(indent.len()).max(20);
        let what = ui::wrap_words(&row.what, room, &indent);
        writeln!(ui.out, "{}  {word}  {what}", pad(id.short(), ID_COLUMNS))?;
    }
    let id = RunId::known(&first.id);
    let line = format!(
        "`rep runs replay --verify {0}` says what is damaged, `rep runs rm --force {0}` removes the run.",
        id.short()
    );
    writeln!(ui.out, "{}", ui.paint(ui::FAINT, line))
}

impl RunColumns {
    /// Chooses the widths for a screen. On a narrow one, the workspace matters more than the number
    /// of steps, and the name more than the time and the kind.
    fn fit(cells: &[RunCells<'_>], screen: usize) -> Self {
        let widest = |text: &dyn Fn(&RunCells<'_>) -> usize, least: usize| {
            cells.iter().map(text).max().unwrap_or(0).max(least)
        };
        let status = |cells: &RunCells<'_>| {
            RunStatusWord::new(cells.row.status, cells.row.interrupted).as_str().len()
        };
        let mut columns = RunColumns {
            status: widest(&status, STATUS_COLUMNS_MIN),
            kind: widest(&|cells| ui::text_width(&cells.row.kind), KIND_COLUMNS_MIN),
            name: widest(&|cells| ui::text_width(&cells.row.name), 4),
            workspace: widest(&|cells| ui::text_width(&cells.workspace), WORKSPACE_COLUMNS_MIN),
            figures: std::array::from_fn(|at| {
                widest(&|cells| ui::text_width(&cells.figures[at]), FIGURES[at].len())
            }),
        };
        let both = NAME_COLUMNS_MIN + 2 + WORKSPACE_COLUMNS_MIN;
        for (dropped, room) in DROPPED.into_iter().zip([both, NAME_COLUMNS_MIN]) {
            if screen < columns.fixed() + room {
                columns.figures[dropped] = 0;
            }
        }
        if screen < columns.fixed() + NAME_COLUMNS_MIN {
            columns.kind = 0;
        }
        let room = screen.saturating_sub(columns.fixed());
        let place = columns.workspace.min(WORKSPACE_COLUMNS_MAX);
        (columns.name, columns.workspace) = share_columns(columns.name, place, room);
        columns
    }

    /// The width of all columns but name and workspace.
    fn fixed(&self) -> usize {
        let optional = self.figures.iter().chain([&self.kind]);
        let optional: usize = optional.filter(|width| **width > 0).map(|width| width + 2).sum();
        ID_COLUMNS + 2 + self.status + 2 + optional
    }

    /// Formats the columns after id and status.
    fn format_rest(&self, kind: &str, name: &str, place: &str, figures: [&str; 5]) -> String {
        let mut out = String::new();
        if self.kind > 0 {
            out.push_str(&format!("  {}", pad(kind, self.kind)));
        }
        out.push_str(&format!("  {}", pad(name, self.name)));
        if self.workspace > 0 {
            let place = truncate_start(place, self.workspace);
            out.push_str(&format!("  {}", ui::pad_columns(&place, self.workspace)));
        }
        let shown = figures.iter().zip(self.figures).filter(|(_, width)| *width > 0);
        for (figure, width) in shown {
            let blank = " ".repeat(width.saturating_sub(ui::text_width(figure)));
            out.push_str(&format!("  {blank}{figure}"));
        }
        out
    }
}

/// Truncates and pads a text to a width.
fn pad(text: &str, columns: usize) -> String {
    ui::pad_columns(&ui::fit_columns(text, columns), columns)
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
