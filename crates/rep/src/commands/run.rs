//! `rep run`: has an agent do a task, with the skills that it needs.

use std::io::Read;

use camino::Utf8PathBuf;
use repertoire::{Driver, Talk};
use repertoire_agent::definition::DEFAULT_AGENT;
use repertoire_agent::middleware::TurnError;
use repertoire_agent::spending::LimitReached;
use repertoire_agent::{Report, RunError, RunOptions, Status};
use repertoire_model::ResponseFormat;
use repertoire_text::fs;

use crate::attending::{Allowed, Attended, Left, Lines, Person};
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::live::{Live, Manner, error_words, short};
use crate::running::{RunFlags, not_kept, runtime};
use crate::ui::Ui;

mod preview;

/// The hint for a missing API key.
const DRY: &str = "`--dry-run` shows what would be sent, without a key.";
const PROMPT_BYTES_MAX: u64 = 4 * 1024 * 1024;
const SCHEMA_BYTES_MAX: u64 = 1024 * 1024;
/// Time without standard input after which a note says that it is awaited.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);

/// Arguments of `rep run`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The task, in any words; `-` reads it from standard input; other piped input is appended to
    /// it
    #[arg(value_name = "PROMPT")]
    prompt: Vec<String>,
    /// The agent (default: the one of the resumed conversation, or `default`)
    #[arg(short, long, value_name = "AGENT")]
    agent: Option<String>,
    /// Continue a conversation, given by its id, a prefix of the id, or `last`
    #[arg(long, value_name = "ID")]
    resume: Option<String>,
    /// Print the request without sending it
    #[arg(long)]
    dry_run: bool,
    /// A file with a JSON Schema that the answer must match
    #[arg(long, value_name = "FILE")]
    schema: Option<Utf8PathBuf>,
    /// Show the model's thinking
    #[arg(short = 'v', long, visible_alias = "verbose")]
    thinking: bool,
    #[command(flatten)]
    flags: RunFlags,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let prompt = prompt(ctx, args, ui)?;
    let mut options = ctx.run_options(&args.flags)?;
    options.format = args.schema.as_ref().map(|path| schema(ctx, path)).transpose()?;
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let (driver, servers) = ctx.driver(&args.flags, ui).await?;
        let outcome = if args.dry_run {
            preview::run(&driver, args, &prompt, options, ui).await
        } else {
            attend(ctx, &driver, args, &prompt, options, ui).await
        };
        servers.close().await;
        outcome
    });
    // A thread may still be blocked on reading standard input; don't wait for it.
    runtime.shutdown_background();
    outcome
}

async fn attend(
    ctx: &Ctx<'_>,
    driver: &Driver,
    args: &Args,
    prompt: &str,
    mut options: RunOptions,
    ui: &mut Ui<'_>,
) -> Outcome {
    let resumed = args.resume.as_ref().map(|id| driver.resume(id)).transpose().map_err(not_kept)?;
    let agent = agent(args, resumed.as_ref());
    ctx.check_reach(driver.system(), &agent, &args.flags, Some(DRY))?;
    let mut talk = match resumed {
        Some(talk) => talk,
        None => driver.begin(&agent).map_err(not_kept)?,
    };
    let mut live = Live::new(manner(ctx, args));
    if let Some(line) = ctx.begun_elsewhere(&talk, &args.flags).filter(|_| !ui.json) {
        live.note(&line, ui)?;
    }
    if talk.interrupted().is_some() && !ui.json {
        live.note("the last run of this conversation was interrupted; it goes on from there", ui)?;
    }
    let attended = Attended::of(&mut options, person(ctx, ui), &Allowed::default());
    let mut lines = Lines::new();
    let work = talk.send(&agent, prompt, options);
    let report = match attended.stay(work, &mut live, &mut lines, ui).await? {
        Left::Ended(report) => report.map_err(not_kept)?,
        Left::Dropped => return Ok(Exit::Interrupted),
    };
    live.end(&report, ui)?;
    ctx.remember_use(&talk);
    verdict(report)
}

/// Returns the requested agent, or that of the conversation, or the default one.
fn agent(args: &Args, talk: Option<&Talk>) -> String {
    let known = talk.map(|talk| talk.head().agent.clone()).filter(|agent| !agent.is_empty());
    args.agent.clone().or(known).unwrap_or_else(|| DEFAULT_AGENT.to_owned())
}

fn manner(ctx: &Ctx<'_>, args: &Args) -> Manner {
    Manner {
        thinking: args.thinking,
        streamed: ctx.env.is_terminal,
        rewritten: ctx.env.stderr_is_terminal,
    }
}

/// Questions are asked only at a terminal, and not with `--json`.
pub(crate) fn person(ctx: &Ctx<'_>, ui: &Ui<'_>) -> Person {
    if ctx.env.stdin_is_terminal && ctx.env.stderr_is_terminal && !ui.json {
        Person::There
    } else {
        Person::Absent
    }
}

/// Converts a report to an exit code or a failure.
pub(crate) fn verdict(report: Report) -> Outcome {
    let Some(error) = report.error else { return Ok(Exit::Done) };
    if report.status == Status::Cancelled {
        return Ok(Exit::Interrupted);
    }
    let failure = if is_set_up_wrong(&error) {
        Failure::cannot_run(error_words(&error))
    } else {
        Failure::no(error_words(&error))
    };
    let resume = format!("`rep run --resume {} …` goes on", short(&report.conversation));
    Err(match report.status {
        Status::Limited if is_price_unknown(&error) => {
            failure.hint("Or leave out the limit on cost (`--max-cost`, `limits.cost`).")
        }
        Status::Limited => failure.hint(format!("{resume}, with a higher limit.")),
        Status::Paused => failure.hint(format!("{resume} then.")),
        _ => failure,
    })
}

fn is_price_unknown(error: &RunError) -> bool {
    matches!(error, RunError::Turn(TurnError::Limit(LimitReached::PriceUnknown { .. })))
}

/// Returns true if the user has to change the configuration before a run can work.
fn is_set_up_wrong(error: &RunError) -> bool {
    use repertoire_model::Error;
    matches!(
        error,
        RunError::Turn(
            TurnError::Model(Error::NotConfigured { .. } | Error::Unauthorised { .. })
                | TurnError::Definition(_)
                | TurnError::UnknownAgent { .. }
                | TurnError::UnknownTools { .. }
                | TurnError::Limit(LimitReached::PriceUnknown { .. })
        )
    )
}

fn prompt(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Result<String, Failure> {
    let typed = args.prompt.join(" ");
    let is_dash = typed.trim() == "-";
    let piped =
        if is_dash || !ctx.env.stdin_is_terminal { standard_input(ui)? } else { String::new() };
    let piped = piped.trim_end();
    match (is_dash || typed.trim().is_empty(), piped.trim().is_empty()) {
        (true, true) => Err(Failure::usage("there is no task").hint(
            "Write it after the options, or pipe it in: `rep run \"fix the failing test\"`.",
        )),
        (true, false) => Ok(piped.to_owned()),
        (false, true) => Ok(typed),
        // Input piped in beside a task is material, and is marked as such.
        (false, false) => Ok(format!("{typed}\n\n<stdin>\n{piped}\n</stdin>")),
    }
}

fn standard_input(ui: &mut Ui<'_>) -> Result<String, Failure> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = std::io::stdin().take(PROMPT_BYTES_MAX + 1).read_to_end(&mut bytes);
        let _ = sender.send(read.map(|_| bytes));
    });
    let read = match receiver.recv_timeout(PATIENCE) {
        Ok(read) => Ok(read),
        Err(_) => {
            ui.note("waiting for the end of standard input (`< /dev/null` if there is none)")?;
            receiver.recv()
        }
    };
    let bytes = read
        .unwrap_or_else(|_| Ok(Vec::new()))
        .map_err(|error| Failure::cannot_run(format!("standard input cannot be read: {error}")))?;
    if bytes.len() as u64 > PROMPT_BYTES_MAX {
        return Err(Failure::usage(format!(
            "standard input is larger than {} MiB",
            PROMPT_BYTES_MAX / 1024 / 1024
        ))
        .hint("Put it into a file and name the file in the task."));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn schema(ctx: &Ctx<'_>, path: &Utf8PathBuf) -> Result<ResponseFormat, Failure> {
    let text = fs::read_text(&ctx.typed_path(path), SCHEMA_BYTES_MAX)
        .map_err(|error| Failure::usage(format!("`--schema {path}` cannot be read: {error}")))?;
    let schema: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| Failure::usage(format!("`--schema {path}` is not JSON: {error}")))?;
    jsonschema::validator_for(&schema).map_err(|error| {
        Failure::usage(format!("`--schema {path}` is not a JSON Schema: {error}"))
    })?;
    Ok(ResponseFormat::Schema { name: "answer".to_owned(), schema })
}
