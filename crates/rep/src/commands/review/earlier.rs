//! `rep review list` and `rep review show`: list and print earlier reviews.

use repertoire_review::store::ReviewStoreError;

use super::ReviewOutputArgs;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::ui::{self, TerminalUi};

/// Arguments of `rep review list`
#[derive(Debug, clap::Args)]
pub(crate) struct ReviewListArgs {
    /// List at most this many reviews
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    max: usize,
}

/// Arguments of `rep review show`
#[derive(Debug, clap::Args)]
pub(crate) struct ReviewShowArgs {
    /// Name of the review, a prefix of it, or `last`
    #[arg(value_name = "REVIEW", default_value = "last")]
    name: String,
    #[command(flatten)]
    output: ReviewOutputArgs,
}

pub(crate) fn list_reviews(
    ctx: &CliContext<'_>,
    args: &ReviewListArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let reviews = ctx.review_store(&ctx.project_dir(None));
    let names = reviews.review_ids();
    let all: Vec<_> =
        names.iter().take(args.max).filter_map(|name| reviews.load_review(name).ok()).collect();
    if ui.json {
        ui.print_json(&all)?;
        return Ok(CliExit::Done);
    }
    if all.is_empty() {
        ui.print_note("there are no reviews of this project yet; `rep review` makes one")?;
    }
    for review in &all {
        let silent = review.failed_calls().count();
        let found = match review.worst_severity() {
            None if silent > 0 => {
                ui.paint(ui::WARN, format!("incomplete, {silent} without an answer"))
            }
            None if !review.still_open.is_empty() => {
                ui.paint(ui::WARN, format!("nothing new, {} still open", review.still_open.len()))
            }
            None => ui.paint(ui::GOOD, "clean"),
            Some(worst) => {
                let count = ui::format_count(review.findings.len(), "finding");
                ui.paint(ui::WARN, format!("{count}, the worst {worst}"))
            }
        };
        let when = jiff::Timestamp::from_millisecond(review.started_ms as i64).unwrap_or_default();
        let when = when.strftime("%Y-%m-%d %H:%M");
        let id = ui.paint(ui::ACCENT, &review.id);
        let depth = format!("{:?}", review.depth).to_lowercase();
        let words = ui::fit_columns(&review.scope.words, 30);
        writeln!(ui.out, "{id}  {when}  {depth:8}  {words}  {found}")?;
    }
    if names.len() > all.len() {
        ui.print_note(&format!(
            "{} more; `-n {}` shows all",
            names.len() - all.len(),
            names.len()
        ))?;
    }
    Ok(CliExit::Done)
}

pub(crate) fn show_review(
    ctx: &CliContext<'_>,
    args: &ReviewShowArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let files = args.output.output_files(ctx)?;
    let reviews = ctx.review_store(&ctx.project_dir(None));
    let review = reviews.load_review(&args.name).map_err(review_store_failure)?;
    let change = reviews.load_change(&args.name).map_err(review_store_failure)?;
    args.output.print_review(ctx, (&review, &change), &files, ui)?;
    Ok(CliExit::Done)
}

fn review_store_failure(error: ReviewStoreError) -> CliFailure {
    match &error {
        ReviewStoreError::NotFound { .. } | ReviewStoreError::Ambiguous { .. } => {
            CliFailure::negative_answer(error.to_string()).hint("`rep review list` lists them.")
        }
        ReviewStoreError::None { .. } => {
            CliFailure::negative_answer(error.to_string()).hint("`rep review` makes one.")
        }
        _ => CliFailure::cannot_run(error.to_string()),
    }
}
