//! Starts the export of spans to the configured collector of OpenTelemetry.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, PoisonError};

use repertoire::telemetry::{SpanExport, SpanLayer, TraceWarning, start_span_export};
use repertoire_text::clock::SystemClock;

use crate::cli::CliContext;
use crate::failure::CliFailure;

impl CliContext<'_> {
    /// Starts to export spans, if a collector is configured.
    pub(crate) fn start_telemetry(&self) -> Result<Option<(SpanLayer, SpanExport)>, CliFailure> {
        let Some(settings) = self.collector_settings() else { return Ok(None) };
        let started = start_span_export(&settings, Arc::new(SystemClock), open_error_printer()?);
        Ok(Some(started?))
    }
}

/// Returns a function that prints errors to standard error through a new descriptor, since `main`
/// holds the lock of the stream.
fn open_error_printer() -> Result<TraceWarning, CliFailure> {
    let handle = std::io::stderr().as_fd().try_clone_to_owned();
    let handle =
        handle.map_err(|error| CliFailure::cannot_run(format!("no standard streams: {error}")))?;
    let stream = Mutex::new(File::from(handle));
    Ok(Arc::new(move |what| {
        let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
        // Standard error may be closed.
        let _ = writeln!(stream, "{what}");
    }))
}
