//! `rep workflow ask`: a sub-agent asks the user, and the engine relays it.

use repertoire_flow::engine::{Action, Input};
use repertoire_flow::state::UserQuestion;

use super::{FormatFlag, exit_of, now_ms, print_step, run_failed};
use crate::cli::Ctx;
use crate::failure::{Failure, Outcome};
use crate::ui::Ui;

/// Which run, and what is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run, or the start of its name
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
        let read = match text.trim_start().starts_with('[') {
            true => serde_json::from_str::<Vec<UserQuestion>>(text),
            false => serde_json::from_str(text).map(|question| vec![question]),
        };
        questions.extend(read.map_err(|error| {
            Failure::usage(format!("this is no question: {error}"))
                .hint(r#"Write '{"id":"q1","ask":"…","options":["a","b"]}'."#)
        })?);
    }
    let input = Input::now(Action::Ask { questions });
    let run = ctx.runs().report(&args.run, &input, now_ms()).map_err(run_failed)?;
    print_step(&run, args.format.of(ctx, ui), ui)?;
    Ok(exit_of(&run))
}
