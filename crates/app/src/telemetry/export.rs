//! The thread that sends batches of spans to the collector.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::otlp::otlp_payload;
use super::{ClosedSpan, CollectorSettings};
use crate::error::AppError;
use crate::limits::{SPAN_BATCH_MAX, SPAN_FLUSH_MAX};

/// The time to collect spans before a batch is sent.
const GATHER: Duration = Duration::from_secs(2);
/// The timeout of requests to the collector.
const PATIENCE: Duration = Duration::from_secs(5);

/// Called when spans cannot be sent, once, and again when they can.
pub type TraceWarning = Arc<dyn Fn(&str) + Send + Sync>;

/// A running export.
pub struct SpanExport {
    stop: CancellationToken,
    /// Disconnected when the thread ends.
    ended: Receiver<()>,
    warning: TraceWarning,
}

impl fmt::Debug for SpanExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpanExport").finish_non_exhaustive()
    }
}

impl SpanExport {
    pub(super) fn start(
        settings: &CollectorSettings,
        spans: mpsc::Receiver<ClosedSpan>,
        lost: Arc<AtomicU64>,
        warning: TraceWarning,
    ) -> Result<Self, AppError> {
        let address = collector_address(settings)?;
        let (alive, ended) = channel();
        let stop = CancellationToken::new();
        let sender = BatchSender {
            address,
            service: settings.service.clone(),
            lost,
            warning: Arc::clone(&warning),
            client: None,
        };
        let until = stop.clone();
        // A runtime of its own, because commands start and end theirs as they need them.
        let thread = std::thread::Builder::new().name("span-export".to_owned());
        let started = thread.spawn(move || {
            let _alive = alive;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(sender.send_all(spans, until)),
                Err(error) => (sender.warning)(&format!("traces are not collected: {error}")),
            }
        });
        started
            .map_err(|error| AppError::cannot_run(format!("no threads can be started: {error}")))?;
        Ok(SpanExport { stop, ended, warning })
    }

    /// Sends the remaining spans, and waits for that at most [`SPAN_FLUSH_MAX`].
    pub fn finish(self) {
        self.stop.cancel();
        if self.ended.recv_timeout(SPAN_FLUSH_MAX) == Err(RecvTimeoutError::Timeout) {
            let seconds = SPAN_FLUSH_MAX.as_secs();
            (self.warning)(&format!(
                "the last traces are lost: the collector did not answer within {seconds} s"
            ));
        }
    }
}

fn collector_address(settings: &CollectorSettings) -> Result<reqwest::Url, AppError> {
    let wrong = |error: String| {
        AppError::wrong_usage(format!("{}: {error}", settings.origin)).hint(
            "Give the address of a collector of OTLP over HTTP, such as http://127.0.0.1:4318.",
        )
    };
    let address = format!("{}/v1/traces", settings.endpoint.trim_end_matches('/'));
    let address = reqwest::Url::parse(&address).map_err(|error| wrong(error.to_string()))?;
    if !["http", "https"].contains(&address.scheme()) {
        return Err(wrong("this is not an address of HTTP".to_owned()));
    }
    Ok(address)
}

struct BatchSender {
    address: reqwest::Url,
    service: String,
    lost: Arc<AtomicU64>,
    warning: TraceWarning,
    /// Made for the first batch: most short commands have no spans.
    client: Option<reqwest::Client>,
}

impl BatchSender {
    async fn send_all(mut self, mut spans: mpsc::Receiver<ClosedSpan>, stop: CancellationToken) {
        let mut fails = false;
        loop {
            let mut batch = Vec::new();
            tokio::select! {
                _ = spans.recv_many(&mut batch, SPAN_BATCH_MAX) => {}
                () = stop.cancelled() => spans.close(),
            }
            if batch.len() < SPAN_BATCH_MAX {
                tokio::select! {
                    () = tokio::time::sleep(GATHER) => {}
                    () = stop.cancelled() => {}
                }
            }
            while batch.len() < SPAN_BATCH_MAX
                && let Ok(span) = spans.try_recv()
            {
                batch.push(span);
            }
            if batch.is_empty() {
                return;
            }
            let sent = self.send_batch(&batch).await;
            let failed = sent.is_err();
            if let Err(error) = sent {
                self.lost.fetch_add(batch.len() as u64, Ordering::Relaxed);
                if !fails {
                    // Without the address, which may hold a password.
                    let error = error.without_url();
                    (self.warning)(&format!(
                        "traces are not collected: {error}; the work goes on without them"
                    ));
                }
            } else {
                let lost = self.lost.swap(0, Ordering::Relaxed);
                if fails {
                    (self.warning)(&format!("traces are collected again; {lost} spans were lost"));
                } else if lost > 0 {
                    (self.warning)(&format!("the collector is too slow: {lost} spans were lost"));
                }
            }
            fails = failed;
        }
    }

    async fn send_batch(&mut self, spans: &[ClosedSpan]) -> Result<(), reqwest::Error> {
        let client = match &self.client {
            Some(client) => client,
            None => self.client.insert(build_client()?),
        };
        let body = otlp_payload(&self.service, spans).to_string();
        let request = client.post(self.address.clone()).body(body);
        let request = request.header("content-type", "application/json");
        request.send().await?.error_for_status()?;
        Ok(())
    }
}

fn build_client() -> Result<reqwest::Client, reqwest::Error> {
    // Fails only if a provider is installed already, which is then the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().timeout(PATIENCE).no_proxy().build()
}
