//! `rep runs dead-letters show`, `retry`, `requeue`, `resolve` and `drop`.

use camino::Utf8PathBuf;
use repertoire_github::run::EventRunParameters;
use repertoire_journal::letter::LetterSource;
use repertoire_journal::{Command, DeadLetter, Journal, LetterStatus};

use super::{letter_failure, priority_style, require_letter_journal};
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::commands::runs::now_ms;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::runs_text::LocalClock;
use crate::schema::improve::LetterRetryJson;
use crate::ui::{self, TerminalUi};

/// A dead letter
#[derive(Debug, clap::Args)]
pub(crate) struct LetterArg {
    /// Id of the letter, or the start or end of the id
    #[arg(value_name = "LETTER")]
    letter: String,
}

/// Arguments of `rep runs dead-letters retry`
#[derive(Debug, clap::Args)]
pub(crate) struct DeadLetterRetryArgs {
    #[command(flatten)]
    letter: LetterArg,
    /// Write the event to this file, if the letter holds one (default: a file in the data folder)
    #[arg(long, value_name = "FILE")]
    output: Option<Utf8PathBuf>,
    /// Retry even if a retry has begun already, for one whose process is gone
    #[arg(long)]
    again: bool,
}

/// Arguments of `rep runs dead-letters requeue`, `resolve` and `drop`
#[derive(Debug, clap::Args)]
pub(crate) struct LetterEndArgs {
    #[command(flatten)]
    letter: LetterArg,
    /// The reason, in a sentence
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

pub(crate) fn show_letter(
    ctx: &CliContext<'_>,
    args: &LetterArg,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let letter = build_runtime()?.block_on(async {
        require_letter_journal(ctx).await?.find_letter(&args.letter).await.map_err(letter_failure)
    })?;
    if ui.json {
        ui.print_json(&letter)?;
    } else {
        print_letter(&letter, ui)?;
    }
    Ok(CliExit::Done)
}

fn print_letter(letter: &DeadLetter, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let clock = LocalClock::local(now_ms());
    let priority = ui.paint(priority_style(letter.priority), letter.priority.as_str());
    writeln!(ui.out, "{}  {}", ui.paint(ui::ACCENT, letter.short()), on_one_line(&letter.title))?;
    let times =
        if letter.times > 1 { format!(", came {} times", letter.times) } else { String::new() };
    let from = letter.source.as_str();
    writeln!(ui.out, "{priority}, {}, {from} in {}{times}", letter.status, letter.scope)?;
    writeln!(ui.out, "\nWhy:      {} ({})", on_one_line(&letter.reason), letter.class)?;
    writeln!(ui.out, "Question: {}", on_one_line(&letter.question))?;
    if let Some(run) = &letter.run {
        writeln!(ui.out, "Run:      {} (`rep runs show {}`)", run.short(), run.short())?;
    }
    writeln!(ui.out)?;
    for line in &letter.history {
        let at = ui.paint(ui::FAINT, clock.format_full(line.at_ms));
        writeln!(ui.out, "{at}  {}: {}", on_one_line(&line.by), on_one_line(&line.what))?;
    }
    let next = match letter.status {
        LetterStatus::Queued | LetterStatus::Retrying => {
            format!(
                "rep runs dead-letters retry {0} | rep runs dead-letters resolve {0} | rep runs dead-letters drop {0}",
                letter.short()
            )
        }
        LetterStatus::Abandoned => format!("rep runs dead-letters requeue {}", letter.short()),
        LetterStatus::Resolved => return Ok(()),
    };
    writeln!(ui.out, "\n{}", ui.paint(ui::FAINT, next))
}

fn on_one_line(text: &str) -> String {
    ui::fit_columns(text, usize::MAX)
}

pub(crate) fn retry_letter(
    ctx: &CliContext<'_>,
    args: &DeadLetterRetryArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let done = build_runtime()?.block_on(async {
        let (journal, by) = (require_letter_journal(ctx).await?, ctx.user_name());
        let letter = journal.find_letter(&args.letter.letter).await.map_err(letter_failure)?;
        if args.again && letter.status == LetterStatus::Retrying {
            let why = "its program is gone";
            let turn = journal.set_letter_status(&letter.id, LetterStatus::Queued, &by, why);
            turn.await.map_err(letter_failure)?;
        }
        // This status change is the lock: of two concurrent retries, the second one is refused
        // here, before anything happens.
        let turn = journal.set_letter_status(&letter.id, LetterStatus::Retrying, &by, "");
        let letter = turn.await.map_err(letter_failure)?;
        match start_retry(ctx, args, &journal, &letter).await {
            Ok((said, file, command)) => Ok((LetterRetryJson { letter, file, command }, said)),
            Err(failure) => {
                let why = "it could not be taken up";
                let back = journal.set_letter_status(&letter.id, LetterStatus::Queued, &by, why);
                back.await.map_err(letter_failure)?;
                Err(failure)
            }
        }
    })?;
    let (done, said) = done;
    if ui.json {
        ui.print_json(&done)?;
        return Ok(CliExit::Done);
    }
    writeln!(ui.out, "{said}")?;
    if let Some(command) = &done.command {
        writeln!(ui.out, "{command}")?;
    }
    // Runs for an event or a task close their letter themselves.
    if done.letter.source == LetterSource::Run {
        ui.print_note(&format!(
            "when it is done: `rep runs dead-letters resolve {}`",
            done.letter.short()
        ))?;
    }
    Ok(CliExit::Done)
}

/// The message for the user, the file that was written, and the command to run next.
type StartedRetry = (String, Option<String>, Option<String>);

async fn start_retry(
    ctx: &CliContext<'_>,
    args: &DeadLetterRetryArgs,
    journal: &Journal,
    letter: &DeadLetter,
) -> Result<StartedRetry, CliFailure> {
    match (letter.source, &letter.run) {
        (LetterSource::Run, Some(run)) => {
            let order = Command::Retry { by: ctx.user_name(), tasks: Vec::new() };
            let run =
                journal.order(run, order).await.map_err(crate::commands::runs::journal_failure)?;
            let next = format!("rep runs resume {} --here", run.id.short());
            Ok(("The run is back in the queue.".to_owned(), None, Some(next)))
        }
        (LetterSource::Run, None) => {
            Err(CliFailure::negative_answer("it does not say which run it is about"))
        }
        (LetterSource::Task, _) => {
            let said = "The next run that works through tasks picks it again.";
            Ok((said.to_owned(), None, None))
        }
        (LetterSource::Event, _) => write_event(ctx, args, letter),
    }
}

/// Writes the event to a file in GitHub's format, and returns the command that handles it.
fn write_event(
    ctx: &CliContext<'_>,
    args: &DeadLetterRetryArgs,
    letter: &DeadLetter,
) -> Result<StartedRetry, CliFailure> {
    let Some(started) = EventRunParameters::from_letter(letter) else {
        let short = letter.short();
        return Err(CliFailure::negative_answer(
            "it does not hold an event that could be handled again",
        )
        .hint(format!("`rep runs dead-letters show {short} --json` has what it holds.")));
    };
    let name = format!("event-{}.json", letter.short());
    let file = match &args.output {
        Some(path) => ctx.env.here.join(path),
        None => ctx.env.data_dir().join("letters").join(name),
    };
    let text = serde_json::to_string_pretty(&started.event).unwrap_or_default();
    repertoire_text::fs::write_private(&file, format!("{text}\n").as_bytes())
        .map_err(|error| CliFailure::cannot_run(format!("{file}: {error}")))?;
    let command = format!(
        "rep github run --event {} --event-name {} --letter {}",
        ui::quote_argument(file.as_str()),
        started.event_name,
        letter.short()
    );
    Ok((format!("Wrote {file}."), Some(file.to_string()), Some(command)))
}

pub(crate) fn set_status(
    ctx: &CliContext<'_>,
    args: &LetterEndArgs,
    to: LetterStatus,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let letter = build_runtime()?.block_on(async {
        let (journal, by) = (require_letter_journal(ctx).await?, ctx.user_name());
        let letter = journal.find_letter(&args.letter.letter).await.map_err(letter_failure)?;
        let turn = journal.set_letter_status(&letter.id, to, &by, &args.reason);
        turn.await.map_err(letter_failure)
    })?;
    if ui.json {
        ui.print_json(&letter)?;
    } else {
        let title = ui::fit_columns(&letter.title, 200);
        writeln!(ui.out, "{} is {}: {title}", letter.short(), letter.status)?;
    }
    Ok(CliExit::Done)
}
