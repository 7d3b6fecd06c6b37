//! `rep workflow ask`: lets a sub-agent ask the user a question.

use repertoire_flow::engine::{Action, Input};
use repertoire_flow::state::UserQuestion;

use super::{FormatFlag, failed_for, now_ms, print_step};
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::ui::Ui;

/// Arguments of `rep workflow ask`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the run, or a prefix of it
    run: String,
    /// One to three questions as JSON: id, ask, and two or three options
    #[arg(required = true, value_name = "QUESTION")]
    questions: Vec<String>,
    #[command(flatten)]
    format: FormatFlag,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let mut questions: Vec<UserQuestion> = Vec::new();
    for text in &args.questions {
        let read = if text.trim_start().starts_with('[') {
            serde_json::from_str::<Vec<UserQuestion>>(text)
        } else {
            serde_json::from_str(text).map(|question| vec![question])
        };
        questions.extend(read.map_err(|error| {
            Failure::usage(format!("this is no question: {error}"))
                .hint(r#"Write '{"id":"q1","ask":"…","options":["a","b"]}'."#)
        })?);
    }
    let input = Input::now(Action::Ask { questions });
    let run = ctx
        .runs()
        .report(&args.run, &input, now_ms())
        .map_err(|error| failed_for(&args.run, error))?;
    print_step(&run, args.format.of(ctx, ui), ui)?;
    Ok(Exit::Done)
}
