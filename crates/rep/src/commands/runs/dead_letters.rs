//! `rep runs dead-letters`: lists, retries and closes dead letters, which are runs, events and tasks that could
//! not be handled. Dead letters are never retried automatically.

use clap::ValueEnum;
use repertoire_journal::letter::LetterPriority;
use repertoire_journal::{DeadLetter, Journal, JournalError, LetterFilter, LetterStatus};

use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::commands::runs::now_ms;
use crate::commands::verify::memory::RepositoryArg;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::runs_text::LocalClock;
use crate::schema::improve::DeadLettersJson;
use crate::ui::{self, TerminalUi};

mod actions;

/// Number of letters listed by default.
const SHOWN: u32 = 20;

/// Arguments of `rep runs dead-letters`; without a subcommand, the open letters are listed
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct DeadLettersArgs {
    #[command(subcommand)]
    action: Option<DeadLettersAction>,
    #[command(flatten)]
    list: DeadLettersListArgs,
}

/// Filters of `rep runs dead-letters list` and `rep runs dead-letters export`
#[derive(Debug, clap::Args)]
struct DeadLettersListArgs {
    /// Include letters that are resolved or abandoned
    #[arg(long, conflicts_with = "status")]
    all: bool,
    /// Only letters with this status (may be repeated, or a comma-separated list)
    #[arg(long, value_enum, value_name = "STATUS", value_delimiter = ',')]
    status: Vec<LetterStatusArg>,
    /// Only letters of this repository
    #[arg(long)]
    here: bool,
    /// List at most this many letters
    #[arg(long, value_name = "N", default_value_t = SHOWN, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Continue at the position that a previous list ended with
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LetterStatusArg {
    Queued,
    Retrying,
    Resolved,
    Abandoned,
}

impl From<LetterStatusArg> for LetterStatus {
    fn from(arg: LetterStatusArg) -> Self {
        match arg {
            LetterStatusArg::Queued => LetterStatus::Queued,
            LetterStatusArg::Retrying => LetterStatus::Retrying,
            LetterStatusArg::Resolved => LetterStatus::Resolved,
            LetterStatusArg::Abandoned => LetterStatus::Abandoned,
        }
    }
}

#[derive(Debug, clap::Subcommand)]
enum DeadLettersAction {
    /// List dead letters, the most urgent first
    #[command(visible_alias = "ls")]
    List(DeadLettersListArgs),
    /// Show a dead letter: why it was given up, the open question, and its history
    Show(actions::LetterArg),
    /// Retry a letter: queue the run again, write the event to a file, or let the task be picked
    /// again
    Retry(actions::DeadLetterRetryArgs),
    /// Put a letter back into the queue, if it was dropped or its retry was abandoned
    Requeue(actions::LetterEndArgs),
    /// Mark a letter as resolved
    Resolve(actions::LetterEndArgs),
    /// Drop a letter: mark it as abandoned
    Drop(actions::LetterEndArgs),
    /// Print dead letters as JSON, with their data
    Export(DeadLettersListArgs),
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &DeadLettersArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    match &args.action {
        None => list_letters(ctx, &args.list, ui),
        Some(DeadLettersAction::List(args)) => list_letters(ctx, args, ui),
        Some(DeadLettersAction::Show(args)) => actions::show_letter(ctx, args, ui),
        Some(DeadLettersAction::Retry(args)) => actions::retry_letter(ctx, args, ui),
        Some(DeadLettersAction::Requeue(args)) => {
            actions::set_status(ctx, args, LetterStatus::Queued, ui)
        }
        Some(DeadLettersAction::Resolve(args)) => {
            actions::set_status(ctx, args, LetterStatus::Resolved, ui)
        }
        Some(DeadLettersAction::Drop(args)) => {
            actions::set_status(ctx, args, LetterStatus::Abandoned, ui)
        }
        Some(DeadLettersAction::Export(args)) => {
            let json = build_runtime()?.block_on(read_letters(ctx, args))?;
            ui.print_json(&json)?;
            Ok(CliExit::Done)
        }
    }
}

/// Converts a journal error to a failure with a hint.
pub(crate) fn letter_failure(error: JournalError) -> CliFailure {
    match &error {
        JournalError::NoLetter { .. } => CliFailure::negative_answer(error.to_string())
            .hint("`rep runs dead-letters list --all` lists them."),
        JournalError::LetterRefused { letter, .. } => {
            let hint = format!("`rep runs dead-letters show {letter}` says what happened to it.");
            CliFailure::negative_answer(error.to_string()).hint(hint)
        }
        _ => crate::commands::runs::journal_failure(error),
    }
}

async fn require_letter_journal(ctx: &CliContext<'_>) -> Result<Journal, CliFailure> {
    let none = || {
        CliFailure::negative_answer("there are no dead letters")
            .hint("`rep runs dead-letters` lists them.")
    };
    ctx.open_existing_journal().await?.ok_or_else(none)
}

async fn read_letters(
    ctx: &CliContext<'_>,
    args: &DeadLettersListArgs,
) -> Result<DeadLettersJson, CliFailure> {
    let Some(journal) = ctx.open_existing_journal().await? else {
        return Ok(DeadLettersJson { letters: Vec::new(), damaged: Vec::new(), next: None });
    };
    let open = || LetterStatus::ALL.iter().copied().filter(|status| status.is_open()).collect();
    let statuses = match (args.all, args.status.is_empty()) {
        (true, _) => Vec::new(),
        (false, true) => open(),
        (false, false) => args.status.iter().copied().map(LetterStatus::from).collect(),
    };
    let scope =
        if args.here { Some(ctx.repository_key(&RepositoryArg::default()).await?) } else { None };
    let filter = LetterFilter { scope, statuses, limit: args.limit, after: args.after };
    let page = journal.list_letters(&filter).await.map_err(letter_failure)?;
    Ok(DeadLettersJson { letters: page.items, damaged: page.damaged, next: page.next })
}

fn list_letters(
    ctx: &CliContext<'_>,
    args: &DeadLettersListArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let json = build_runtime()?.block_on(read_letters(ctx, args))?;
    if ui.json {
        ui.print_json(&json)?;
        return Ok(CliExit::Done);
    }
    for row in &json.damaged {
        writeln!(ui.out, "{}  {}", ui.paint(ui::BAD, "damaged"), row.what)?;
    }
    if json.letters.is_empty() && json.damaged.is_empty() {
        let is_plain = args.status.is_empty() && !args.here && args.after == 0;
        let line = if is_plain {
            "There are no dead letters: nothing waits for you."
        } else {
            "No dead letter is like that. `rep runs dead-letters list --all` lists them."
        };
        writeln!(ui.out, "{line}")?;
        return Ok(CliExit::Done);
    }
    if !json.letters.is_empty() {
        print_table(&json.letters, ui)?;
    }
    if let Some(next) = json.next {
        let line = format!("There are more: --after {next} goes on.");
        writeln!(ui.out, "{}", ui.paint(ui::FAINT, line))?;
    }
    Ok(CliExit::Done)
}

const HEADINGS: [&str; 6] = ["id", "priority", "status", "from", "age", "what"];

fn print_table(letters: &[DeadLetter], ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let clock = LocalClock::local(now_ms());
    let rows: Vec<[String; 6]> = letters.iter().map(|letter| row_cells(letter, &clock)).collect();
    let widths: [usize; 5] = std::array::from_fn(|at| {
        let cells = rows.iter().map(|row| ui::text_width(&row[at]));
        cells.chain([HEADINGS[at].len()]).max().unwrap_or(0)
    });
    let left = ui.columns.saturating_sub(widths.iter().sum::<usize>() + 10).max(20);
    let head: String = (0..5).map(|at| ui::pad_columns(HEADINGS[at], widths[at] + 2)).collect();
    writeln!(ui.out, "{}", ui.paint(ui::FAINT, format!("{head}{}", HEADINGS[5])))?;
    for (letter, row) in letters.iter().zip(&rows) {
        let id = ui::pad_columns(&row[0], widths[0] + 2);
        let priority =
            ui.paint(priority_style(letter.priority), ui::pad_columns(&row[1], widths[1] + 2));
        let rest: String = (2..5).map(|at| ui::pad_columns(&row[at], widths[at] + 2)).collect();
        writeln!(ui.out, "{id}{priority}{rest}{}", ui::fit_columns(&row[5], left))?;
    }
    Ok(())
}

fn row_cells(letter: &DeadLetter, clock: &LocalClock) -> [String; 6] {
    let times = if letter.times > 1 { format!(" ({} times)", letter.times) } else { String::new() };
    [
        letter.short().to_owned(),
        letter.priority.as_str().to_owned(),
        letter.status.as_str().to_owned(),
        letter.source.as_str().to_owned(),
        clock.format_age(letter.created_ms),
        format!("{}{times}: {}", letter.title, letter.reason),
    ]
}

fn priority_style(priority: LetterPriority) -> anstyle::Style {
    match priority {
        LetterPriority::Critical | LetterPriority::High => ui::BAD,
        LetterPriority::Medium => ui::WARN,
        LetterPriority::Low => ui::FAINT,
    }
}
