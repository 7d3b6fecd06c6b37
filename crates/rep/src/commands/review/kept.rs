//! `rep review list` and `rep review show`: list and print earlier reviews.

use repertoire_review::store::StoreError;

use super::Output;
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::ui::{self, Ui};

/// Arguments of `rep review list`
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// List at most this many reviews
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    max: usize,
}

/// Arguments of `rep review show`
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// Name of the review, a prefix of it, or `last`
    #[arg(value_name = "REVIEW", default_value = "last")]
    name: String,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn list(ctx: &Ctx<'_>, args: &ListArgs, ui: &mut Ui<'_>) -> Outcome {
    let reviews = ctx.reviews(&ctx.project_dir(None));
    let names = reviews.names();
    let all: Vec<_> =
        names.iter().take(args.max).filter_map(|name| reviews.load(name).ok()).collect();
    if ui.json {
        ui.print_json(&all)?;
        return Ok(Exit::Done);
    }
    if all.is_empty() {
        ui.note("there are no reviews of this project yet; `rep review` makes one")?;
    }
    for review in &all {
        let silent = review.failed_calls().count();
        let found = match review.worst() {
            None if silent > 0 => {
                ui.paint(ui::WARN, format!("incomplete, {silent} without an answer"))
            }
            None if !review.still_open.is_empty() => {
                ui.paint(ui::WARN, format!("nothing new, {} still open", review.still_open.len()))
            }
            None => ui.paint(ui::GOOD, "clean"),
            Some(worst) => {
                let count = ui::count(review.findings.len(), "finding");
                ui.paint(ui::WARN, format!("{count}, the worst {worst}"))
            }
        };
        let when = jiff::Timestamp::from_millisecond(review.started_ms as i64).unwrap_or_default();
        let when = when.strftime("%Y-%m-%d %H:%M");
        let id = ui.paint(ui::ACCENT, &review.id);
        let depth = format!("{:?}", review.depth).to_lowercase();
        let words = ui::fit(&review.scope.words, 30);
        writeln!(ui.out, "{id}  {when}  {depth:8}  {words}  {found}")?;
    }
    if names.len() > all.len() {
        ui.note(&format!("{} more; `-n {}` shows all", names.len() - all.len(), names.len()))?;
    }
    Ok(Exit::Done)
}

pub(crate) fn show(ctx: &Ctx<'_>, args: &ShowArgs, ui: &mut Ui<'_>) -> Outcome {
    let files = args.output.checked(ctx)?;
    let reviews = ctx.reviews(&ctx.project_dir(None));
    let review = reviews.load(&args.name).map_err(not_had)?;
    let change = reviews.change(&args.name).map_err(not_had)?;
    args.output.print(ctx, (&review, &change), &files, ui)?;
    Ok(Exit::Done)
}

fn not_had(error: StoreError) -> Failure {
    match &error {
        StoreError::NotFound { .. } | StoreError::Ambiguous { .. } => {
            Failure::no(error.to_string()).hint("`rep review list` lists them.")
        }
        StoreError::None { .. } => Failure::no(error.to_string()).hint("`rep review` makes one."),
        _ => Failure::cannot_run(error.to_string()),
    }
}
