//! `rep metrics`: figures for Prometheus, counted from all events; and the file that a daemon keeps of them.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::Utf8PathBuf;
use repertoire_journal::{Cursor, Filter, Journal, JournalError, Metrics};
use repertoire_text::fs;
use tokio_util::sync::CancellationToken;

use super::runs::failed;
use crate::cli::Ctx;
use crate::failure::{Exit, Outcome};
use crate::running::runtime;
use crate::ui::Ui;

/// How often the file is written.
const WRITE_EVERY: Duration = Duration::from_secs(15);

/// Nothing to choose.
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

/// What was counted so far, and up to where.
struct Counted {
    metrics: Metrics,
    at: Cursor,
}

impl Counted {
    fn new() -> Self {
        let metrics = Metrics::new();
        metrics.set_runs(&BTreeMap::new());
        Counted { metrics, at: Cursor::default() }
    }

    /// Counts what happened since the last time.
    async fn go_on(&mut self, journal: &Journal) -> Result<(), JournalError> {
        loop {
            let (events, next) = journal.events_all(self.at, 0).await?;
            if events.is_empty() {
                break;
            }
            self.at = next;
            events.iter().for_each(|event| self.metrics.note(event));
        }
        let mut by_status = BTreeMap::new();
        let mut filter = Filter::default();
        loop {
            let page = journal.runs(&filter).await?;
            for run in &page.items {
                *by_status.entry(run.status).or_insert(0) += 1;
            }
            match page.next {
                Some(next) => filter.before = Some(next),
                None => break,
            }
        }
        self.metrics.set_runs(&by_status);
        Ok(())
    }

    fn text(&self) -> String {
        self.metrics.encode()
    }
}

/// Keeps a file of figures up to date until `shutdown`, for a collector of text files. What is in the way is told once,
/// and again after it went well in between.
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
