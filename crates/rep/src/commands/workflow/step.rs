//! `rep workflow step`: where a run is, and going on.

use std::collections::BTreeMap;

use repertoire_flow::engine::{Action, Input, Report};
use repertoire_flow::workflow::{Confidence, Outcome as Ended};

use super::{FormatFlag, exit_of, now_ms, pair, print_step, run_failed, value_of};
use crate::cli::Ctx;
use crate::failure::{Failure, Outcome};
use crate::ui::Ui;

/// Which run, and what is reported.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run, or the start of its name
    run: String,
    /// The turn that is reported about, so that the same report twice counts once
    #[arg(long, value_name = "TURN")]
    at: Option<u32>,
    /// How the step ended
    #[arg(long, value_name = "OUTCOME")]
    outcome: Option<String>,
    /// How sure you are: exploring, low, medium, high or certain
    #[arg(long, value_name = "LEVEL")]
    confidence: Option<String>,
    /// The answer to a question of fact: yes, partial or no (may be repeated)
    #[arg(long = "fact", value_name = "ID=ANSWER")]
    facts: Vec<String>,
    /// A parameter that the step sets; `@FILE` reads a file (may be repeated)
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// What the step hands over; `@FILE` reads a file, `-` the input
    #[arg(long, value_name = "TEXT")]
    output: Option<String>,
    /// The step could not be carried out, and why
    #[arg(long, value_name = "WHY", conflicts_with_all = ["outcome", "confidence", "facts", "set", "output"])]
    error: Option<String>,
    #[command(flatten)]
    format: FormatFlag,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let format = args.format.of(ctx, ui);
    let run = match action(ctx, args)? {
        Some(action) => {
            let input = Input { at: args.at, action };
            ctx.runs().report(&args.run, &input, now_ms()).map_err(run_failed)?
        }
        None => ctx.runs().open(&args.run).map_err(run_failed)?,
    };
    print_step(&run, format, ui)?;
    Ok(exit_of(&run))
}

/// What is reported, if anything is. `--at` alone says that the step is done.
fn action(ctx: &Ctx<'_>, args: &Args) -> Result<Option<Action>, Failure> {
    if let Some(why) = &args.error {
        return Ok(Some(Action::Error { message: why.clone() }));
    }
    let confidence = match &args.confidence {
        Some(word) => Some(Confidence::parse(word).ok_or_else(|| {
            Failure::usage(format!("`--confidence {word}`: this is no level"))
                .hint("Use exploring, low, medium, high or certain.")
        })?),
        None => None,
    };
    let report = Report {
        outcome: args.outcome.as_deref().map(Ended::from),
        confidence,
        facts: pairs(ctx, &args.facts, "--fact")?,
        set: pairs(ctx, &args.set, "--set")?,
        output: match &args.output {
            Some(text) => Some(value_of(ctx, text)?),
            None => None,
        },
    };
    let is_empty = report == Report::default() && args.at.is_none();
    Ok((!is_empty).then_some(Action::Leave(report)))
}

fn pairs(ctx: &Ctx<'_>, texts: &[String], flag: &str) -> Result<BTreeMap<String, String>, Failure> {
    texts.iter().map(|text| pair(ctx, text, flag)).collect()
}
