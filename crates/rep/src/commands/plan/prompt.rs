//! `rep plan prompt`: prints the exact prompt of the next step, without running it.

use repertoire_plan::Preview;
use repertoire_plan::state::Kind;

use super::{PlanArg, find_plan};
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::planning::{House, PlanFlags};
use crate::running::runtime;
use crate::schema::plan::PlanPromptJson;
use crate::ui::{self, Ui};

/// Arguments of `rep plan prompt`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    plan: PlanArg,
    /// Print the prompt of a review, whatever comes next
    #[arg(long)]
    review: bool,
    /// Print the prompt for the task with this id instead of the next one
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    #[command(flatten)]
    flags: PlanFlags,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let workspace = ctx.project_dir(None);
    let plan = find_plan(ctx, &args.plan, &workspace)?;
    // Nothing is run, so show the checks as they would be with the user's consent.
    let ctx = &ctx.with_proposal_in_force();
    let request = ctx.plan_request(plan, &workspace, &args.flags)?;
    let kind = args.review.then_some(Kind::Review);
    let station = House::new(ctx.env).station_at_rest(&workspace, &request)?;
    let learnings = ctx.learnings(&workspace);
    let task = args.task.as_deref();
    let preview = runtime()?
        .block_on(Preview::of(&workspace, &station, &request, kind, task, &learnings))
        .map_err(|error| Failure::no(error.to_string()))?;
    if ui.json {
        ui.print_json(&PlanPromptJson {
            task: preview.task,
            skills: preview.skills,
            events: preview.events,
            prompt: preview.text,
        })?;
    } else {
        // Invisible characters were stripped from the prompt already; this escapes terminal control
        // sequences.
        write!(ui.out, "{}", ui::printable_lines(&preview.text))?;
    }
    Ok(Exit::Done)
}
