//! `rep workflow record`: records the findings of a review.

use repertoire_flow::driver::ProgramError;
use repertoire_flow::driver::desk::{AskedCheck, Record};
use repertoire_flow::engine::ItemRecord;
use repertoire_flow::items;
use repertoire_flow::workflow::StepId;
use repertoire_text::terminal::printable;

use super::{desk_failed, gate, value_of};
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::ui::Ui;

/// Arguments of `rep workflow record`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the run, or a prefix of it
    run: String,
    /// Items: `ID=PASS`, `ID=FAIL: finding`, or JSON with id, scope, check, severity, status and
    /// finding
    #[arg(value_name = "ITEM")]
    items: Vec<String>,
    /// Read items as JSON from this file, or `-` for standard input
    #[arg(long, value_name = "FILE")]
    from: Option<String>,
    /// A declared check: NAME runs its command; `NAME=PASS` is for a check without a command (may
    /// be repeated)
    #[arg(long = "check", value_name = "NAME")]
    checks: Vec<String>,
    /// The gate to record for, if there are several
    #[arg(long, value_name = "STEP")]
    gate: Option<String>,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let items = read_items(ctx, args)?;
    if items.is_empty() && args.checks.is_empty() {
        return Err(Failure::usage("there is nothing to record")
            .hint("Write `ID=PASS`, `'ID=FAIL: finding'`, JSON, or `--check NAME`."));
    }
    let gate = args.gate.as_deref().map(StepId::from);
    let record = Record { gate: gate.clone(), items, checks: asked_checks(args)? };
    let run = ctx.at_desk(async |desk, cancel| {
        let told = |name: &str, command: &str| {
            // Run the check even if the message cannot be printed.
            let _ = ui.note(&format!("running {name}: {}", printable(command)));
        };
        let run = desk.record(&args.run, record, cancel, told).await;
        run.map_err(|error| desk_failed(ctx, &args.run, error, ui))
    })?;
    gate::print(&run, gate.as_ref(), ui)?;
    Ok(Exit::Done)
}

fn read_items(ctx: &Ctx<'_>, args: &Args) -> Result<Vec<ItemRecord>, Failure> {
    let mut texts = args.items.clone();
    if let Some(from) = &args.from {
        let source = if from == "-" { from.clone() } else { format!("@{from}") };
        texts.push(value_of(ctx, &source)?);
    }
    let mut all = Vec::new();
    for text in texts.iter().filter(|text| !text.trim().is_empty()) {
        all.extend(items::parse(text).map_err(|error| Failure::usage(error.to_string()))?);
    }
    Ok(all)
}

/// Parses `--check`: `NAME=VERDICT` claims a result, a bare name runs the check.
fn asked_checks(args: &Args) -> Result<Vec<AskedCheck>, Failure> {
    let asked = args.checks.iter().map(|text| {
        if text.contains('=') {
            let claimed = items::parse_check(text);
            claimed.map(AskedCheck::Claimed).map_err(|error| Failure::usage(error.to_string()))
        } else {
            Ok(AskedCheck::Run(text.clone()))
        }
    });
    asked.collect()
}

/// Converts an error of a check that was not run to a failure.
pub(super) fn not_run(error: ProgramError) -> Failure {
    let message = error.to_string();
    match error {
        ProgramError::NotTrusted { workflow } => {
            let skill = workflow.split('/').next().unwrap_or_default().to_owned();
            Failure::no(message)
                .hint(format!("Look at it, then `rep trust {skill}`; a run goes on if its workflow was not changed since."))
        }
        ProgramError::NoCommand { name } => Failure::no(message).hint(format!(
            "Record what you saw: `--check {name}=PASS` or `--check '{name}=FAIL: why'`."
        )),
        ProgramError::NoSuchCheck { .. } | ProgramError::Template { .. } => Failure::no(message),
        ProgramError::Cancelled => Failure { exit: Exit::Interrupted, ..Failure::no(message) },
        ProgramError::Process(_) => Failure::cannot_run(message),
    }
}
