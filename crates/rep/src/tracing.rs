//! Sends traces of the requests to `rep serve` to a collector.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, PoisonError};

use repertoire_serve::http::traces::{Complain, Tracer};
use repertoire_text::clock::{Clock as _, SystemClock};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cli::Ctx;
use crate::failure::Failure;

impl Ctx<'_> {
    /// Starts sending traces to the configured collector, if there is one.
    pub(crate) fn tracer(
        &self,
        shutdown: &CancellationToken,
    ) -> Result<Option<(Tracer, JoinHandle<()>)>, Failure> {
        const KEY: &str = "serve.otlp_endpoint";
        let Some(endpoint) = self.config.text(KEY) else { return Ok(None) };
        let clock = Arc::new(|| SystemClock.now_ms());
        let started = Tracer::start(endpoint, clock, shutdown.clone(), complaints()?);
        started.map(Some).map_err(|error| {
            Failure::usage(format!("{}: `{KEY}`: {error}", self.config.origin(KEY))).hint(
                "Give the address of a collector of OTLP over HTTP, such as http://127.0.0.1:4318.",
            )
        })
    }
}

/// Returns a function that prints errors to standard error through a new descriptor, since `main`
/// holds the lock of the stream.
fn complaints() -> Result<Complain, Failure> {
    let handle = std::io::stderr().as_fd().try_clone_to_owned();
    let handle =
        handle.map_err(|error| Failure::cannot_run(format!("no standard streams: {error}")))?;
    let stream = Mutex::new(File::from(handle));
    Ok(Arc::new(move |what| {
        let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
        // Standard error may be closed.
        let _ = writeln!(stream, "{what}");
    }))
}
