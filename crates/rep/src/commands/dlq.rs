//! `rep dlq`: lists, retries and closes dead letters, which are runs, events and tasks that could
//! not be handled. Dead letters are never retried automatically.

use clap::ValueEnum;
use repertoire_journal::letter::Priority;
use repertoire_journal::{DeadLetter, Journal, JournalError, LetterFilter, LetterStatus};

use crate::cli::Ctx;
use crate::commands::memory::ScopeArg;
use crate::commands::runs::now_ms;
use crate::failure::{Exit, Failure, Outcome};
use crate::running::runtime;
use crate::runs_text::Clock;
use crate::schema::improve::LettersJson;
use crate::ui::{self, Ui};

mod act;

/// Number of letters listed by default.
const SHOWN: u32 = 20;

/// Arguments of `rep dlq`; without a subcommand, the open letters are listed
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: ListArgs,
}

/// Filters of `rep dlq list` and `rep dlq export`
#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Include letters that are resolved or abandoned
    #[arg(long, conflicts_with = "status")]
    all: bool,
    /// Only letters with this status (may be repeated, or a comma-separated list)
    #[arg(long, value_enum, value_name = "STATUS", value_delimiter = ',')]
    status: Vec<StatusArg>,
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
enum StatusArg {
    Queued,
    Retrying,
    Resolved,
    Abandoned,
}

impl From<StatusArg> for LetterStatus {
    fn from(arg: StatusArg) -> Self {
        match arg {
            StatusArg::Queued => LetterStatus::Queued,
            StatusArg::Retrying => LetterStatus::Retrying,
            StatusArg::Resolved => LetterStatus::Resolved,
            StatusArg::Abandoned => LetterStatus::Abandoned,
        }
    }
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List dead letters, the most urgent first
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Show a dead letter: why it was given up, the open question, and its history
    Show(act::LetterArg),
    /// Retry a letter: queue the run again, write the event to a file, or let the task be picked
    /// again
    Retry(act::RetryArgs),
    /// Put a letter back into the queue, if it was dropped or its retry was abandoned
    Requeue(act::EndArgs),
    /// Mark a letter as resolved
    Resolve(act::EndArgs),
    /// Drop a letter: mark it as abandoned
    Drop(act::EndArgs),
    /// Print dead letters as JSON, with their data
    Export(ListArgs),
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    match &args.action {
        None => list(ctx, &args.list, ui),
        Some(Action::List(args)) => list(ctx, args, ui),
        Some(Action::Show(args)) => act::show(ctx, args, ui),
        Some(Action::Retry(args)) => act::retry(ctx, args, ui),
        Some(Action::Requeue(args)) => act::end(ctx, args, LetterStatus::Queued, ui),
        Some(Action::Resolve(args)) => act::end(ctx, args, LetterStatus::Resolved, ui),
        Some(Action::Drop(args)) => act::end(ctx, args, LetterStatus::Abandoned, ui),
        Some(Action::Export(args)) => {
            let json = runtime()?.block_on(read(ctx, args))?;
            ui.print_json(&json)?;
            Ok(Exit::Done)
        }
    }
}

/// Converts a journal error to a failure with a hint.
pub(crate) fn failed(error: JournalError) -> Failure {
    match &error {
        JournalError::NoLetter { .. } => {
            Failure::no(error.to_string()).hint("`rep dlq list --all` lists them.")
        }
        JournalError::LetterRefused { letter, .. } => {
            let hint = format!("`rep dlq show {letter}` says what happened to it.");
            Failure::no(error.to_string()).hint(hint)
        }
        _ => crate::commands::runs::failed(error),
    }
}

async fn journal(ctx: &Ctx<'_>) -> Result<Journal, Failure> {
    let none = || Failure::no("there are no dead letters").hint("`rep dlq` lists them.");
    ctx.journal_if_there().await?.ok_or_else(none)
}

async fn read(ctx: &Ctx<'_>, args: &ListArgs) -> Result<LettersJson, Failure> {
    let Some(journal) = ctx.journal_if_there().await? else {
        return Ok(LettersJson { letters: Vec::new(), next: None });
    };
    let open = || LetterStatus::ALL.iter().copied().filter(|status| status.is_open()).collect();
    let statuses = match (args.all, args.status.is_empty()) {
        (true, _) => Vec::new(),
        (false, true) => open(),
        (false, false) => args.status.iter().copied().map(LetterStatus::from).collect(),
    };
    let scope = if args.here { Some(ctx.scope(&ScopeArg::default()).await?) } else { None };
    let filter = LetterFilter { scope, statuses, limit: args.limit, after: args.after };
    let page = journal.letters(&filter).await.map_err(failed)?;
    Ok(LettersJson { letters: page.items, next: page.next })
}

fn list(ctx: &Ctx<'_>, args: &ListArgs, ui: &mut Ui<'_>) -> Outcome {
    let json = runtime()?.block_on(read(ctx, args))?;
    if ui.json {
        ui.print_json(&json)?;
        return Ok(Exit::Done);
    }
    if json.letters.is_empty() {
        let is_plain = args.status.is_empty() && !args.here && args.after == 0;
        let line = if is_plain {
            "There are no dead letters: nothing waits for you."
        } else {
            "No dead letter is like that. `rep dlq list --all` lists them."
        };
        writeln!(ui.out, "{line}")?;
        return Ok(Exit::Done);
    }
    table(&json.letters, ui)?;
    if let Some(next) = json.next {
        let line = format!("There are more: --after {next} goes on.");
        writeln!(ui.out, "{}", ui.paint(ui::FAINT, line))?;
    }
    Ok(Exit::Done)
}

const HEADINGS: [&str; 6] = ["id", "priority", "status", "from", "age", "what"];

fn table(letters: &[DeadLetter], ui: &mut Ui<'_>) -> std::io::Result<()> {
    let clock = Clock::local(now_ms());
    let rows: Vec<[String; 6]> = letters.iter().map(|letter| cells(letter, &clock)).collect();
    let widths: [usize; 5] = std::array::from_fn(|at| {
        let cells = rows.iter().map(|row| ui::width(&row[at]));
        cells.chain([HEADINGS[at].len()]).max().unwrap_or(0)
    });
    let left = ui.columns.saturating_sub(widths.iter().sum::<usize>() + 10).max(20);
    let head: String = (0..5).map(|at| ui::pad(HEADINGS[at], widths[at] + 2)).collect();
    writeln!(ui.out, "{}", ui.paint(ui::FAINT, format!("{head}{}", HEADINGS[5])))?;
    for (letter, row) in letters.iter().zip(&rows) {
        let id = ui::pad(&row[0], widths[0] + 2);
        let priority = ui.paint(urgency(letter.priority), ui::pad(&row[1], widths[1] + 2));
        let rest: String = (2..5).map(|at| ui::pad(&row[at], widths[at] + 2)).collect();
        writeln!(ui.out, "{id}{priority}{rest}{}", ui::fit(&row[5], left))?;
    }
    Ok(())
}

fn cells(letter: &DeadLetter, clock: &Clock) -> [String; 6] {
    let times = if letter.times > 1 { format!(" ({} times)", letter.times) } else { String::new() };
    [
        letter.short().to_owned(),
        letter.priority.as_str().to_owned(),
        letter.status.as_str().to_owned(),
        letter.source.as_str().to_owned(),
        clock.age(letter.created_ms),
        format!("{}{times}: {}", letter.title, letter.reason),
    ]
}

fn urgency(priority: Priority) -> anstyle::Style {
    match priority {
        Priority::Critical | Priority::High => ui::BAD,
        Priority::Medium => ui::WARN,
        Priority::Low => ui::FAINT,
    }
}
