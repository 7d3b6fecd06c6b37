//! Sends traces of the requests to `rep serve` to a collector.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, PoisonError};

use repertoire::config::KEY;
use repertoire_serve::http::traces::{RequestTracer, TraceWarning};
use repertoire_text::clock::{Clock as _, SystemClock};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cli::CliContext;
use crate::failure::CliFailure;

impl CliContext<'_> {
    /// Starts sending traces to the configured collector, if there is one.
    pub(crate) fn start_tracer(
        &self,
        shutdown: &CancellationToken,
    ) -> Result<Option<(RequestTracer, JoinHandle<()>)>, CliFailure> {
        let Some(endpoint) = &self.config.values().serve_otlp_endpoint else { return Ok(None) };
        let clock = Arc::new(|| SystemClock.now_ms());
        let started =
            RequestTracer::start_export(endpoint, clock, shutdown.clone(), open_error_printer()?);
        started.map(Some).map_err(|error| {
            let key = &KEY.serve_otlp_endpoint;
            let origin = self.config.describe_origin(key);
            CliFailure::wrong_usage(format!("{origin}: `{}`: {error}", key.name)).hint(
                "Give the address of a collector of OTLP over HTTP, such as http://127.0.0.1:4318.",
            )
        })
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
