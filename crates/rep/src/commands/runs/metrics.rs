//! `rep runs metrics`: prints metrics for Prometheus, computed from all events. Also maintains the
//! metrics file of a daemon.

use std::time::Duration;

use camino::Utf8PathBuf;
use repertoire_journal::Journal;
use repertoire_journal::metrics::MetricsCollector;
use repertoire_text::fs;
use tokio_util::sync::CancellationToken;

use super::{describe_left_out, journal_failure};
use crate::async_runtime::build_runtime;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliResult};
use crate::ui::TerminalUi;

/// Interval between writes of the metrics file.
const WRITE_EVERY: Duration = Duration::from_secs(15);

/// Arguments of `rep runs metrics`
#[derive(Debug, clap::Args)]
pub(crate) struct RunsMetricsArgs {}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    _args: &RunsMetricsArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let (text, damaged) = build_runtime()?.block_on(async {
        let mut counted = MetricsCollector::new();
        let damaged = match ctx.open_existing_journal().await? {
            Some(journal) => counted.collect_new_events(&journal).await.map_err(journal_failure)?,
            None => Vec::new(),
        };
        Ok::<_, crate::failure::CliFailure>((counted.encode_prometheus(), damaged))
    })?;
    write!(ui.out, "{text}")?;
    for row in &damaged {
        ui.print_warning(&describe_left_out(row))?;
    }
    Ok(CliExit::Done)
}

/// Keeps a metrics file up to date until `shutdown`, for a text-file collector. Of consecutive
/// errors only the first is passed to `complain`, and every damaged run once.
pub(crate) async fn maintain_metrics_file(
    journal: Journal,
    path: Utf8PathBuf,
    shutdown: CancellationToken,
    complain: impl Fn(String) + Send,
) {
    let mut counted = MetricsCollector::new();
    let mut went_well = true;
    loop {
        let written = match counted.collect_new_events(&journal).await {
            Ok(damaged) => {
                damaged.iter().for_each(|row| complain(describe_left_out(row)));
                fs::write_atomic(&path, counted.encode_prometheus().as_bytes())
                    .map_err(|error| format!("{path} cannot be written: {error}"))
            }
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
