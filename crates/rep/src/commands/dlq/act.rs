//! `rep dlq show`, `retry`, `requeue`, `resolve` and `drop`.

use camino::Utf8PathBuf;
use repertoire_github::run::Started;
use repertoire_journal::letter::LetterSource;
use repertoire_journal::{Command, DeadLetter, Journal, LetterStatus};

use super::{failed, journal, urgency};
use crate::cli::Ctx;
use crate::commands::runs::now_ms;
use crate::failure::{Exit, Failure, Outcome};
use crate::running::runtime;
use crate::runs_text::Clock;
use crate::schema::improve::RetriedJson;
use crate::ui::{self, Ui};

/// A dead letter.
#[derive(Debug, clap::Args)]
pub(crate) struct LetterArg {
    /// Its id, or the start or end of it
    #[arg(value_name = "LETTER")]
    letter: String,
}

/// What to try again.
#[derive(Debug, clap::Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    letter: LetterArg,
    /// Where to write the event, if it is one
    #[arg(long, value_name = "FILE")]
    output: Option<Utf8PathBuf>,
    /// Although somebody began to: for one whose program is gone
    #[arg(long)]
    again: bool,
}

/// What is over, and why.
#[derive(Debug, clap::Args)]
pub(crate) struct EndArgs {
    #[command(flatten)]
    letter: LetterArg,
    /// Why, in a sentence
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

pub(crate) fn show(ctx: &Ctx<'_>, args: &LetterArg, ui: &mut Ui<'_>) -> Outcome {
    let letter = runtime()?
        .block_on(async { journal(ctx).await?.letter(&args.letter).await.map_err(failed) })?;
    match ui.json {
        true => ui.print_json(&letter)?,
        false => print(&letter, ui)?,
    }
    Ok(Exit::Done)
}

fn print(letter: &DeadLetter, ui: &mut Ui<'_>) -> std::io::Result<()> {
    let clock = Clock::local(now_ms());
    let plain = |text: &str| ui::fit(text, usize::MAX);
    let priority = ui.paint(urgency(letter.priority), letter.priority.as_str());
    writeln!(ui.out, "{}  {}", ui.paint(ui::ACCENT, letter.short()), plain(&letter.title))?;
    let times =
        if letter.times > 1 { format!(", came {} times", letter.times) } else { String::new() };
    let from = letter.source.as_str();
    writeln!(ui.out, "{priority}, {}, {from} in {}{times}", letter.status, letter.scope)?;
    writeln!(ui.out, "\nWhy:      {} ({})", plain(&letter.reason), letter.class)?;
    writeln!(ui.out, "Question: {}", plain(&letter.question))?;
    if let Some(run) = &letter.run {
        writeln!(ui.out, "Run:      {} (`rep runs show {}`)", run.short(), run.short())?;
    }
    writeln!(ui.out)?;
    for line in &letter.history {
        let at = ui.paint(ui::FAINT, clock.full(line.at_ms));
        writeln!(ui.out, "{at}  {}: {}", plain(&line.by), plain(&line.what))?;
    }
    let next = match letter.status {
        LetterStatus::Queued | LetterStatus::Retrying => {
            format!("rep dlq retry {0} | rep dlq resolve {0} | rep dlq drop {0}", letter.short())
        }
        LetterStatus::Abandoned => format!("rep dlq requeue {}", letter.short()),
        LetterStatus::Resolved => return Ok(()),
    };
    writeln!(ui.out, "\n{}", ui.paint(ui::FAINT, next))
}

pub(crate) fn retry(ctx: &Ctx<'_>, args: &RetryArgs, ui: &mut Ui<'_>) -> Outcome {
    let done = runtime()?.block_on(async {
        let (journal, by) = (journal(ctx).await?, ctx.person());
        let letter = journal.letter(&args.letter.letter).await.map_err(failed)?;
        if args.again && letter.status == LetterStatus::Retrying {
            let why = "its program is gone";
            let turn = journal.letter_status(&letter.id, LetterStatus::Queued, &by, why);
            turn.await.map_err(failed)?;
        }
        // Whoever says so first does it: the other one is refused here, before anything happens.
        let turn = journal.letter_status(&letter.id, LetterStatus::Retrying, &by, "");
        let letter = turn.await.map_err(failed)?;
        match take_up(ctx, args, &journal, &letter).await {
            Ok((said, file, command)) => Ok((RetriedJson { letter, file, command }, said)),
            Err(failure) => {
                let why = "it could not be taken up";
                let back = journal.letter_status(&letter.id, LetterStatus::Queued, &by, why);
                back.await.map_err(failed)?;
                Err(failure)
            }
        }
    })?;
    let (done, said) = done;
    if ui.json {
        ui.print_json(&done)?;
        return Ok(Exit::Done);
    }
    writeln!(ui.out, "{said}")?;
    if let Some(command) = &done.command {
        writeln!(ui.out, "{command}")?;
    }
    // A run says by itself how an event or a task went.
    if done.letter.source == LetterSource::Run {
        ui.note(&format!("when it is done: `rep dlq resolve {}`", done.letter.short()))?;
    }
    Ok(Exit::Done)
}

/// What people are told, the file that was written, and what to type next.
type TakenUp = (String, Option<String>, Option<String>);

async fn take_up(
    ctx: &Ctx<'_>,
    args: &RetryArgs,
    journal: &Journal,
    letter: &DeadLetter,
) -> Result<TakenUp, Failure> {
    match (letter.source, &letter.run) {
        (LetterSource::Run, Some(run)) => {
            let order = Command::Retry { by: ctx.person(), tasks: Vec::new() };
            let run = journal.order(run, order).await.map_err(crate::commands::runs::failed)?;
            let next = format!("rep runs resume {} --here", run.id.short());
            Ok(("The run is back in the queue.".to_owned(), None, Some(next)))
        }
        (LetterSource::Run, None) => Err(Failure::no("it does not say which run it is about")),
        (LetterSource::Task, _) => {
            let said = "The next run that works through tasks picks it again.";
            Ok((said.to_owned(), None, None))
        }
        (LetterSource::Event, _) => event(ctx, args, letter),
    }
}

/// Writes the event down as GitHub tells it, with the command that handles it.
fn event(ctx: &Ctx<'_>, args: &RetryArgs, letter: &DeadLetter) -> Result<TakenUp, Failure> {
    let Some(started) = Started::of(letter) else {
        let short = letter.short();
        return Err(Failure::no("it does not hold an event that could be handled again")
            .hint(format!("`rep dlq show {short} --json` has what it holds.")));
    };
    let name = format!("event-{}.json", letter.short());
    let file = match &args.output {
        Some(path) => ctx.env.here.join(path),
        None => ctx.env.data_dir().join("letters").join(name),
    };
    let text = serde_json::to_string_pretty(&started.event).unwrap_or_default();
    repertoire_text::fs::write_private(&file, format!("{text}\n").as_bytes())
        .map_err(|error| Failure::cannot_run(format!("{file}: {error}")))?;
    let command = format!(
        "rep github run --event {} --event-name {} --letter {}",
        ui::quoted(file.as_str()),
        started.event_name,
        letter.short()
    );
    Ok((format!("Wrote {file}."), Some(file.to_string()), Some(command)))
}

pub(crate) fn end(ctx: &Ctx<'_>, args: &EndArgs, to: LetterStatus, ui: &mut Ui<'_>) -> Outcome {
    let letter = runtime()?.block_on(async {
        let (journal, by) = (journal(ctx).await?, ctx.person());
        let letter = journal.letter(&args.letter.letter).await.map_err(failed)?;
        let turn = journal.letter_status(&letter.id, to, &by, &args.reason);
        turn.await.map_err(failed)
    })?;
    match ui.json {
        true => ui.print_json(&letter)?,
        false => {
            let title = ui::fit(&letter.title, 200);
            writeln!(ui.out, "{} is {}: {title}", letter.short(), letter.status)?;
        }
    }
    Ok(Exit::Done)
}
