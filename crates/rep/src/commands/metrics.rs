//! `rep metrics`: prints metrics for Prometheus, computed from all events. Also maintains the
//! metrics file of a daemon.

use std::time::Duration;

use camino::Utf8PathBuf;
use repertoire_journal::Journal;
use repertoire_journal::metrics::Counted;
use repertoire_text::fs;
use tokio_util::sync::CancellationToken;

use super::runs::failed;
use crate::cli::Ctx;
use crate::failure::{Exit, Outcome};
use crate::running::runtime;
use crate::ui::Ui;

/// Interval between writes of the metrics file.
const WRITE_EVERY: Duration = Duration::from_secs(15);

/// Arguments of `rep metrics`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(ctx: &Ctx<'_>, _args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let text = runtime()?.block_on(async {
        let mut counted = Counted::new();
        if let Some(journal) = ctx.journal_if_there().await? {
            counted.go_on(&journal).await.map_err(failed)?;
        }
        Ok::<_, crate::failure::Failure>(counted.text())
    })?;
    write!(ui.out, "{text}")?;
    Ok(Exit::Done)
}

/// Keeps a metrics file up to date until `shutdown`, for a text-file collector. Of consecutive
/// errors only the first is passed to `complain`.
pub(crate) async fn keep_file(
    journal: Journal,
    path: Utf8PathBuf,
    shutdown: CancellationToken,
    complain: impl Fn(String) + Send,
) {
    let mut counted = Counted::new();
    let mut went_well = true;
    loop {
        let written = match counted.go_on(&journal).await {
            Ok(()) => fs::write_atomic(&path, counted.text().as_bytes())
                .map_err(|error| format!("{path} cannot be written: {error}")),
            Err(error) => Err(format!("figures cannot be counted: {error}")),
        };
        if let (Err(error), true) = (&written, went_well) {
            complain(error.clone());
        }
        went_well = written.is_ok();
        if shutdown.is_cancelled() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(WRITE_EVERY) => {}
            () = shutdown.cancelled() => {}
        }
    }
}
