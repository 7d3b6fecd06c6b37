//! `rep workflow resume`: resumes a run that waits for a person or was left.

use std::collections::BTreeMap;

use repertoire_flow::driver::Listed;
use repertoire_flow::state::Status;

use super::{FormatFlag, desk_failed, pair, print_standing, run_failed};
use crate::cli::Ctx;
use crate::failure::{Failure, Outcome};
use crate::ui::Ui;

/// Arguments of `rep workflow resume`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the run, or a prefix of it (default: the latest unfinished run of this project)
    run: Option<String>,
    /// The decision: continue, must-only, skip, abort, or take:OUTCOME
    #[arg(long, value_name = "CHOICE", conflicts_with = "answers")]
    choice: Option<String>,
    /// Reason for the decision, for the record
    #[arg(long, value_name = "TEXT", requires = "choice")]
    note: Option<String>,
    /// Answer to a question (may be repeated)
    #[arg(long = "answer", value_name = "ID=TEXT")]
    answers: Vec<String>,
    #[command(flatten)]
    format: FormatFlag,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let wanted = match &args.run {
        Some(wanted) => wanted.clone(),
        None => latest(ctx, args.choice.is_some() || !args.answers.is_empty(), ui)?,
    };
    let format = args.format.of(ctx, ui);
    let answers = args.answers.iter().map(|text| pair(ctx, text, "--answer"));
    let answers = answers.collect::<Result<BTreeMap<_, _>, _>>()?;
    let note = args.note.as_deref().unwrap_or_default();
    let standing = ctx.at_desk(async |desk, cancel| {
        let standing = match &args.choice {
            Some(word) => desk.choose(&wanted, word, note, cancel).await,
            None if answers.is_empty() => desk.step(&wanted, None, None, cancel).await,
            None => desk.answer(&wanted, answers),
        };
        standing.map_err(|error| desk_failed(ctx, &wanted, error, ui))
    })?;
    print_standing(&standing, format, ui)
}

/// Returns the latest unfinished run of this project, leaving out those of sub-agents. Broken runs
/// are skipped with a note. If there are several and `decides` is set, fails, since a decision must
/// not go to a run that the user did not name.
fn latest(ctx: &Ctx<'_>, decides: bool, ui: &mut Ui<'_>) -> Result<String, Failure> {
    let here = ctx.project_dir(None);
    let mut open = Vec::new();
    for listed in ctx.runs().list().map_err(run_failed)? {
        let (head, goes_on, id) = match &listed {
            Listed::Run { head, state } => {
                let goes_on = matches!(state.status, Status::Active | Status::Waiting(_));
                (head, goes_on, state.run.to_string())
            }
            Listed::Script(run) => {
                let goes_on = matches!(run.status(), "active" | "waiting");
                (&run.head, goes_on, run.run.to_string())
            }
            Listed::Broken { id, error } => {
                ui.note(&format!("note: run {id} is passed over: {error}"))?;
                continue;
            }
        };
        if goes_on && head.folder == here && head.parent.is_none() {
            open.push(id);
        }
    }
    match open.as_slice() {
        [] => Err(Failure::no("no run of this project waits to go on")
            .hint("`rep workflow runs` lists those of all projects.")),
        [one] => Ok(one.clone()),
        several if decides => Err(Failure::usage(format!("say which run: {}", several.join(", ")))),
        [latest, others @ ..] => {
            ui.note(&format!("note: also open here: {}", others.join(", ")))?;
            Ok(latest.clone())
        }
    }
}
