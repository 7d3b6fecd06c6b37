//! `rep workflow step`: prints the current step of a run, or reports on it and advances.

use std::collections::BTreeMap;

use repertoire_flow::driver::desk::Said;
use repertoire_flow::engine::Report;
use repertoire_flow::step::{Flags, QrStatus, StepView, stateless};
use repertoire_flow::workflow::{Confidence, Outcome as Ended};

use super::{FormatFlag, desk_failed, find, pair, print_standing, print_view, ready, value_of};
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::ui::Ui;

/// Arguments of `rep workflow step`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the run, or a prefix of it; with `--step`, a workflow
    #[arg(value_name = "RUN")]
    run: String,
    /// The turn that the report is about, so that a repeated report counts once
    #[arg(long, value_name = "TURN")]
    at: Option<u32>,
    /// Outcome of the step
    #[arg(long, value_name = "OUTCOME")]
    outcome: Option<String>,
    /// Level of confidence: exploring, low, medium, high or certain
    #[arg(long, value_name = "LEVEL")]
    confidence: Option<String>,
    /// Answer to a question of fact: yes, partial or no (may be repeated)
    #[arg(long = "fact", value_name = "ID=ANSWER")]
    facts: Vec<String>,
    /// A parameter that the step sets; `@FILE` reads a file (may be repeated)
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Output of the step; `@FILE` reads a file, `-` standard input
    #[arg(long, value_name = "TEXT")]
    output: Option<String>,
    /// Report that the step could not be carried out, and why
    #[arg(long, value_name = "WHY", conflicts_with_all = ["outcome", "confidence", "facts", "set", "output"])]
    error: Option<String>,
    #[command(flatten)]
    stateless: Stateless,
    #[command(flatten)]
    format: FormatFlag,
}

/// A step of a workflow by its number, without a run and without recorded state
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "A step of a workflow, without a run")]
struct Stateless {
    /// Number of the step, from 1
    #[arg(long, value_name = "N", conflicts_with_all = ["at", "outcome", "confidence", "facts", "set", "output", "error"])]
    step: Option<usize>,
    /// Total number of steps
    #[arg(long, value_name = "M", requires = "step")]
    total_steps: Option<usize>,
    /// Iteration of the review loop, from 1
    #[arg(long, value_name = "I", requires = "step")]
    qr_iteration: Option<u32>,
    /// Print the step as a fix of review findings
    #[arg(
        long,
        value_name = "BOOL",
        requires = "step",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    qr_fail: Option<bool>,
    /// Result of the review, for a gate
    #[arg(long, value_name = "STATUS", requires = "step")]
    qr_status: Option<Status>,
    /// Value of a parameter (may be repeated)
    #[arg(long = "param", short = 'p', value_name = "NAME=VALUE", requires = "step")]
    parameters: Vec<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Status {
    /// Nothing blocks
    Pass,
    /// Something blocks
    Fail,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let format = args.format.of(ctx, ui);
    if let Some(number) = args.stateless.step {
        let view = stateless_view(ctx, args, number, ui)?;
        print_view(&view, format, ui)?;
        return Ok(Exit::Done);
    }
    if !args.stateless.parameters.is_empty() {
        return Err(Failure::usage("`--param` belongs to a step without a run")
            .hint("Values of a run are given to `rep workflow start`, or by `--set` where a step sets them."));
    }
    refuse_placeholders(args)?;
    let said = said(ctx, args)?;
    let standing = ctx.at_desk(async |desk, cancel| {
        let standing = desk.step(&args.run, args.at, said, cancel).await;
        standing.map_err(|error| desk_failed(ctx, &args.run, error, ui))
    })?;
    print_standing(&standing, format, ui)
}

fn stateless_view(
    ctx: &Ctx<'_>,
    args: &Args,
    number: usize,
    ui: &mut Ui<'_>,
) -> Result<StepView, Failure> {
    let given = &args.stateless;
    let (_, loaded) = find(ctx.catalog()?, &args.run)?;
    let workflow = ready(loaded, ui)?;
    let flags = Flags {
        step: number,
        total: given.total_steps,
        iteration: given.qr_iteration.unwrap_or(1),
        fail: given.qr_fail.unwrap_or(false),
        status: given.qr_status.map(|status| match status {
            Status::Pass => QrStatus::Pass,
            Status::Fail => QrStatus::Fail,
        }),
    };
    let parameters = pairs(ctx, &given.parameters, "--param")?;
    stateless(&workflow, &flags, &parameters).map_err(|error| Failure::usage(error.to_string()))
}

/// Parses the report, or returns `None` if only the turn is given.
fn said(ctx: &Ctx<'_>, args: &Args) -> Result<Option<Said>, Failure> {
    if let Some(why) = &args.error {
        return Ok(Some(Said::Failed(why.clone())));
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
    Ok((report != Report::default()).then_some(Said::Done(report)))
}

/// Rejects placeholders copied from the printed command. A completed turn cannot be undone, so they
/// must not be taken for a report.
fn refuse_placeholders(args: &Args) -> Result<(), Failure> {
    let left = match () {
        () if args.output.as_deref() == Some("TEXT") => "--output TEXT",
        () if args.error.as_deref() == Some("WHY") => "--error WHY",
        () if args.confidence.as_deref() == Some("LEVEL") => "--confidence LEVEL",
        () if any_ends_with(&args.set, "=VALUE") => "--set NAME=VALUE",
        () if any_ends_with(&args.facts, "=ANSWER") => "--fact ID=ANSWER",
        () => return Ok(()),
    };
    Err(Failure::usage(format!("`{left}`: the last word stands for what you have to say"))
        .hint("Put it there; `--output @FILE` reads a file, and `--output -` the input."))
}

fn any_ends_with(texts: &[String], ending: &str) -> bool {
    texts.iter().any(|text| text.ends_with(ending))
}

fn pairs(ctx: &Ctx<'_>, texts: &[String], flag: &str) -> Result<BTreeMap<String, String>, Failure> {
    texts.iter().map(|text| pair(ctx, text, flag)).collect()
}
