//! `rep review list` and `rep review show`: list and print earlier reviews.

use repertoire_review::record::ReviewRecord;
use repertoire_review::store::{ReviewStore, ReviewStoreError};

use super::ReviewOutputArgs;
use crate::async_runtime::build_runtime;
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
    let (all, count) = build_runtime()?.block_on(async {
        match ctx.existing_reviews(&ctx.project_dir(None)).await? {
            Some(reviews) => latest_reviews(&reviews, args.max).await.map_err(review_store_failure),
            None => Ok((Vec::new(), 0)),
        }
    })?;
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
    if count > all.len() {
        ui.print_note(&format!("{} more; `-n {count}` shows all", count - all.len()))?;
    }
    Ok(CliExit::Done)
}

/// Loads the latest reviews, and counts all. Those that cannot be read are left out.
async fn latest_reviews(
    reviews: &ReviewStore,
    reviews_max: usize,
) -> Result<(Vec<ReviewRecord>, usize), ReviewStoreError> {
    let names = reviews.review_ids().await?;
    let mut all = Vec::new();
    for name in names.iter().take(reviews_max) {
        all.extend(reviews.load_review(name).await.ok());
    }
    Ok((all, names.len()))
}

pub(crate) fn show_review(
    ctx: &CliContext<'_>,
    args: &ReviewShowArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let files = args.output.output_files(ctx)?;
    let workspace = ctx.project_dir(None);
    let loaded = build_runtime()?.block_on(async {
        let Some(reviews) = ctx.existing_reviews(&workspace).await? else {
            return Err(review_store_failure(ReviewStoreError::None { workspace }));
        };
        let review = reviews.load_review(&args.name).await.map_err(review_store_failure)?;
        // By its id: `last` may be another one by now.
        let change = reviews.load_change(&review.id).await.map_err(review_store_failure)?;
        Ok((review, change))
    })?;
    let (review, change) = loaded;
    args.output.print_review(ctx, (&review, &change), &files, ui)?;
    Ok(CliExit::Done)
}

pub(super) fn review_store_failure(error: ReviewStoreError) -> CliFailure {
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
