//! `rep workflow step`: prints the current step of a run, or reports on it and advances.

use std::collections::BTreeMap;

use repertoire_flow::driver::operations::StepResultReport;
use repertoire_flow::engine::StepReport;
use repertoire_flow::step::{QrStatus, StatelessFlags, StepView, stateless_view};
use repertoire_flow::workflow::{ConfidenceLevel, WorkflowOutcome as Ended};

use super::{
    StepFormatArg, find_workflow, parse_pair, print_run_state, print_view, read_value,
    runnable_workflow, workflow_failure,
};
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::ui::TerminalUi;

/// Arguments of `rep workflow step`
#[derive(Debug, clap::Args)]
pub(crate) struct WorkflowStepArgs {
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
    stateless: StatelessStepArgs,
    #[command(flatten)]
    format: StepFormatArg,
}

/// A step of a workflow by its number, without a run and without recorded state
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "A step of a workflow, without a run")]
struct StatelessStepArgs {
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
    qr_status: Option<QrStatusArg>,
    /// Value of a parameter (may be repeated)
    #[arg(long = "param", short = 'p', value_name = "NAME=VALUE", requires = "step")]
    parameters: Vec<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum QrStatusArg {
    /// Nothing blocks
    Pass,
    /// Something blocks
    Fail,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &WorkflowStepArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let format = args.format.resolve(ctx, ui);
    if let Some(number) = args.stateless.step {
        let view = render_stateless(ctx, args, number, ui)?;
        print_view(&view, format, ui)?;
        return Ok(CliExit::Done);
    }
    if !args.stateless.parameters.is_empty() {
        return Err(CliFailure::wrong_usage("`--param` belongs to a step without a run")
            .hint("Values of a run are given to `rep workflow start`, or by `--set` where a step sets them."));
    }
    refuse_placeholders(args)?;
    let said = parse_report(ctx, args)?;
    let standing = ctx.run_workflow_action(async |operations, cancel| {
        let standing = operations.advance_run(&args.run, args.at, said, cancel).await;
        standing.map_err(|error| workflow_failure(ctx, &args.run, error, ui))
    })?;
    print_run_state(&standing, format, ui)
}

fn render_stateless(
    ctx: &CliContext<'_>,
    args: &WorkflowStepArgs,
    number: usize,
    ui: &mut TerminalUi<'_>,
) -> Result<StepView, CliFailure> {
    let given = &args.stateless;
    let (_, loaded) = find_workflow(ctx.load_catalog()?, &args.run)?;
    let workflow = runnable_workflow(loaded, ui)?;
    let flags = StatelessFlags {
        step: number,
        total: given.total_steps,
        iteration: given.qr_iteration.unwrap_or(1),
        fail: given.qr_fail.unwrap_or(false),
        status: given.qr_status.map(|status| match status {
            QrStatusArg::Pass => QrStatus::Pass,
            QrStatusArg::Fail => QrStatus::Fail,
        }),
    };
    let parameters = parse_pairs(ctx, &given.parameters, "--param")?;
    stateless_view(&workflow, &flags, &parameters)
        .map_err(|error| CliFailure::wrong_usage(error.to_string()))
}

/// Parses the report, or returns `None` if only the turn is given.
fn parse_report(
    ctx: &CliContext<'_>,
    args: &WorkflowStepArgs,
) -> Result<Option<StepResultReport>, CliFailure> {
    if let Some(why) = &args.error {
        return Ok(Some(StepResultReport::Failed(why.clone())));
    }
    let confidence = match &args.confidence {
        Some(word) => Some(ConfidenceLevel::parse(word).ok_or_else(|| {
            CliFailure::wrong_usage(format!("`--confidence {word}`: this is no level"))
                .hint("Use exploring, low, medium, high or certain.")
        })?),
        None => None,
    };
    let report = StepReport {
        outcome: args.outcome.as_deref().map(Ended::from),
        confidence,
        facts: parse_pairs(ctx, &args.facts, "--fact")?,
        set: parse_pairs(ctx, &args.set, "--set")?,
        output: match &args.output {
            Some(text) => Some(read_value(ctx, text)?),
            None => None,
        },
    };
    Ok((report != StepReport::default()).then_some(StepResultReport::Done(report)))
}

/// Rejects placeholders copied from the printed command. A completed turn cannot be undone, so they
/// must not be taken for a report.
fn refuse_placeholders(args: &WorkflowStepArgs) -> Result<(), CliFailure> {
    let left = match () {
        () if args.output.as_deref() == Some("TEXT") => "--output TEXT",
        () if args.error.as_deref() == Some("WHY") => "--error WHY",
        () if args.confidence.as_deref() == Some("LEVEL") => "--confidence LEVEL",
        () if any_ends_with(&args.set, "=VALUE") => "--set NAME=VALUE",
        () if any_ends_with(&args.facts, "=ANSWER") => "--fact ID=ANSWER",
        () => return Ok(()),
    };
    Err(CliFailure::wrong_usage(format!("`{left}`: the last word stands for what you have to say"))
        .hint("Put it there; `--output @FILE` reads a file, and `--output -` the input."))
}

fn any_ends_with(texts: &[String], ending: &str) -> bool {
    texts.iter().any(|text| text.ends_with(ending))
}

fn parse_pairs(
    ctx: &CliContext<'_>,
    texts: &[String],
    flag: &str,
) -> Result<BTreeMap<String, String>, CliFailure> {
    texts.iter().map(|text| parse_pair(ctx, text, flag)).collect()
}
