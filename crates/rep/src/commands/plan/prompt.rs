//! `rep plan prompt`: prints the exact prompt of the next step, without running it.

use repertoire::plan_setup::PlanAgentBuilder;
use repertoire_plan::PlanPromptPreview;
use repertoire_plan::state::PlanStepKind;

use super::{PlanArg, find_plan};
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::plan_flags::PlanFlags;
use crate::schema::plan::PlanPromptJson;
use crate::ui::{self, TerminalUi};

/// Arguments of `rep plan prompt`
#[derive(Debug, clap::Args)]
pub(crate) struct PlanPromptArgs {
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

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &PlanPromptArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let workspace = ctx.project_dir(None);
    let plan = find_plan(ctx, &args.plan, &workspace)?;
    // Nothing is run, so show the checks as they would be with the user's consent.
    let ctx = &ctx.with_proposal_in_force();
    let request = ctx.plan_request(plan, &workspace, &args.flags.to_options())?;
    let kind = args.review.then_some(PlanStepKind::Review);
    let agent_setup = PlanAgentBuilder::new(ctx.env).build_for_preview(&workspace, &request)?;
    let learnings = ctx.plan_learnings(&workspace);
    let task = args.task.as_deref();
    let preview = build_runtime()?
        .block_on(PlanPromptPreview::build(
            &workspace,
            &agent_setup,
            &request,
            kind,
            task,
            &learnings,
        ))
        .map_err(|error| CliFailure::negative_answer(error.to_string()))?;
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
    Ok(CliExit::Done)
}
