//! `rep workflow record`: what a review has found.

use repertoire_flow::engine::{Action, CheckRecord, Input, ItemRecord};
use repertoire_flow::items;

use super::{gate, now_ms, run_failed, value_of};
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::ui::Ui;

/// Which run, and what was found.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run, or the start of its name
    run: String,
    /// Items: `ID=PASS`, `ID=FAIL: finding`, or JSON with id, scope, check, severity, status and finding
    #[arg(value_name = "ITEM")]
    items: Vec<String>,
    /// Read items as JSON from a file, or from the input if it is `-`
    #[arg(long, value_name = "FILE")]
    from: Option<String>,
    /// A declared check: its name runs its command; `NAME=PASS` is for one that has none (may be repeated)
    #[arg(long = "check", value_name = "NAME")]
    checks: Vec<String>,
    /// The gate that it is for, where several are possible
    #[arg(long, value_name = "STEP")]
    gate: Option<String>,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let items = read_items(ctx, args)?;
    if items.is_empty() && args.checks.is_empty() {
        return Err(Failure::usage("there is nothing to record")
            .hint("Write `ID=PASS`, `'ID=FAIL: finding'`, JSON, or `--check NAME`."));
    }
    let checks = args
        .checks
        .iter()
        .map(|text| check(text))
        .collect::<Result<Vec<CheckRecord>, Failure>>()?;
    let gate = args.gate.as_deref().map(Into::into);
    let action = Action::Record { gate: gate.clone(), items, checks };
    let run = ctx.runs().report(&args.run, &Input::now(action), now_ms()).map_err(run_failed)?;
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

fn check(text: &str) -> Result<CheckRecord, Failure> {
    items::parse_check(text).map_err(|error| Failure::usage(error.to_string()))
}
