//! `rep workflow ask`: lets a sub-agent ask the user a question.

use repertoire_flow::engine::{EngineAction, EngineInput};
use repertoire_flow::state::UserQuestion;

use super::{StepFormatArg, print_step, workflow_run_failure_for};
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::ui::TerminalUi;

/// Arguments of `rep workflow ask`
#[derive(Debug, clap::Args)]
pub(crate) struct WorkflowAskArgs {
    /// Name of the run, or a prefix of it
    run: String,
    /// One to three questions as JSON: id, ask, and two or three options
    #[arg(required = true, value_name = "QUESTION")]
    questions: Vec<String>,
    #[command(flatten)]
    format: StepFormatArg,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &WorkflowAskArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let mut questions: Vec<UserQuestion> = Vec::new();
    for text in &args.questions {
        let read = if text.trim_start().starts_with('[') {
            serde_json::from_str::<Vec<UserQuestion>>(text)
        } else {
            serde_json::from_str(text).map(|question| vec![question])
        };
        questions.extend(read.map_err(|error| {
            CliFailure::wrong_usage(format!("this is no question: {error}"))
                .hint(r#"Write '{"id":"q1","ask":"…","options":["a","b"]}'."#)
        })?);
    }
    let input = EngineInput::about_now(EngineAction::Ask { questions });
    let run = ctx.use_workflow_runs(async |runs| {
        let run = runs.apply_input(&args.run, &input).await;
        run.map_err(|error| workflow_run_failure_for(&args.run, error))
    })?;
    print_step(&run, args.format.resolve(ctx, ui), ui)?;
    Ok(CliExit::Done)
}
