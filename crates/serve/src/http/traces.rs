//! OpenTelemetry traces, if a collector is configured: a span for every request of the API and of `/mcp`, sent as OTLP
//! over HTTP in its JSON form. A caller's `traceparent` is continued.
//!
//! Tracing never delays a request: spans go into a bounded queue, and if a collector does not keep up, they are
//! counted and dropped.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, header};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::limits::{SPANS_AT_ONCE_MAX, SPANS_MAX};
use crate::serve_state::ServeClock;

/// The time to collect spans before a batch is sent.
const GATHER: Duration = Duration::from_secs(2);
/// The timeout of requests to the collector.
const PATIENCE: Duration = Duration::from_secs(5);
/// `SPAN_KIND_SERVER` of OTLP.
const KIND_SERVER: u8 = 2;
/// `STATUS_CODE_ERROR` of OTLP.
const STATUS_ERROR: u8 = 2;

/// Called when spans cannot be sent, once, and again when they can.
pub type TraceWarning = Arc<dyn Fn(&str) + Send + Sync>;

/// Records spans.
#[derive(Clone)]
pub struct RequestTracer {
    clock: ServeClock,
    spans: mpsc::Sender<RequestSpan>,
    lost: Arc<AtomicU64>,
}

impl fmt::Debug for RequestTracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").field("lost", &self.lost).finish_non_exhaustive()
    }
}

/// The span of a request.
#[derive(Clone, Debug, PartialEq)]
struct RequestSpan {
    trace: [u8; 16],
    id: [u8; 8],
    parent: Option<[u8; 8]>,
    method: String,
    route: String,
    status: u16,
    begun_ms: u64,
    took: Duration,
}

impl RequestTracer {
    /// Sends spans to the collector at `endpoint` (for instance `http://127.0.0.1:4318`) until `shutdown` is
    /// cancelled.
    ///
    /// # Errors
    ///
    /// If the endpoint is not a valid URL.
    pub fn start_export(
        endpoint: &str,
        clock: ServeClock,
        shutdown: CancellationToken,
        complain: TraceWarning,
    ) -> Result<(Self, JoinHandle<()>), reqwest::Error> {
        // Fails only if a provider is installed already, which is then the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().timeout(PATIENCE).no_proxy().build()?;
        let address = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        client.post(&address).build()?;
        let (sender, spans) = mpsc::channel(SPANS_MAX);
        let lost = Arc::<AtomicU64>::default();
        let exporter = SpanExporter { client, address, lost: Arc::clone(&lost), complain };
        let task = tokio::spawn(exporter.export_batches(spans, shutdown));
        Ok((RequestTracer { clock, spans: sender, lost }, task))
    }

    fn queue_span(&self, span: RequestSpan) {
        if self.spans.try_send(span).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The middleware that records spans. It runs as a route layer, so that it knows the matched route.
pub(super) async fn trace_request(
    State(tracer): State<RequestTracer>,
    route: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let (trace, parent) =
        parse_traceparent(request.headers()).unwrap_or_else(|| (random_bytes(), None));
    let (method, begun_ms, start) =
        (request.method().as_str().to_owned(), (tracer.clock)(), Instant::now());
    let response = next.run(request).await;
    tracer.queue_span(RequestSpan {
        trace,
        id: random_bytes(),
        parent,
        method,
        route: route.map_or_else(|| "unknown".to_owned(), |route| route.as_str().to_owned()),
        status: response.status().as_u16(),
        begun_ms,
        took: start.elapsed(),
    });
    response
}

/// Parses a caller's `traceparent` (`00-TRACE-SPAN-FLAGS`, see W3C Trace Context).
fn parse_traceparent(headers: &HeaderMap) -> Option<([u8; 16], Option<[u8; 8]>)> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    let mut parts = text.split('-');
    let (version, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
    let trace: [u8; 16] = parse_hex(trace)?;
    let span: [u8; 8] = parse_hex(span)?;
    let is_told = version.len() == 2 && version != "ff" && trace != [0; 16] && span != [0; 8];
    is_told.then_some((trace, Some(span)))
}

fn parse_hex<const N: usize>(hex: &str) -> Option<[u8; N]> {
    if hex.len() != 2 * N || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut out = [0; N];
    for (at, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(out)
}

fn random_bytes<const N: usize>() -> [u8; N] {
    let mut out = [0; N];
    // Without random numbers there is no token, and therefore no daemon.
    let _ = getrandom::fill(&mut out);
    out
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sends batches of spans.
struct SpanExporter {
    client: reqwest::Client,
    address: String,
    lost: Arc<AtomicU64>,
    complain: TraceWarning,
}

impl SpanExporter {
    async fn export_batches(
        self,
        mut spans: mpsc::Receiver<RequestSpan>,
        shutdown: CancellationToken,
    ) {
        let mut fails = false;
        loop {
            let mut batch = Vec::new();
            tokio::select! {
                _ = spans.recv_many(&mut batch, SPANS_AT_ONCE_MAX) => {}
                () = shutdown.cancelled() => spans.close(),
            }
            if !shutdown.is_cancelled() && batch.len() < SPANS_AT_ONCE_MAX {
                tokio::select! {
                    () = tokio::time::sleep(GATHER) => {}
                    () = shutdown.cancelled() => {}
                }
            }
            while batch.len() < SPANS_AT_ONCE_MAX
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
                    (self.complain)(&format!(
                        "traces are not collected: {error}; requests are served all the same"
                    ));
                }
            } else if fails {
                let lost = self.lost.swap(0, Ordering::Relaxed);
                (self.complain)(&format!("traces are collected again; {lost} spans were lost"));
            }
            fails = failed;
        }
    }

    async fn send_batch(&self, spans: &[RequestSpan]) -> Result<(), reqwest::Error> {
        let kind = HeaderValue::from_static("application/json");
        let request = self.client.post(&self.address).header(header::CONTENT_TYPE, kind);
        request.body(otlp_payload(spans).to_string()).send().await?.error_for_status()?;
        Ok(())
    }
}

/// Encodes spans as OTLP JSON.
fn otlp_payload(spans: &[RequestSpan]) -> Value {
    let spans: Vec<Value> = spans.iter().map(span_json).collect();
    let version = env!("CARGO_PKG_VERSION");
    json!({
        "resourceSpans": [{
            "resource": { "attributes": [text_attribute("service.name", "repertoire"), text_attribute("service.version", version)] },
            "scopeSpans": [{
                "scope": { "name": "repertoire-serve", "version": version },
                "spans": spans,
            }],
        }],
    })
}

fn span_json(span: &RequestSpan) -> Value {
    let begun_ns = u128::from(span.begun_ms) * 1_000_000;
    let mut out = json!({
        "traceId": to_hex(&span.trace),
        "spanId": to_hex(&span.id),
        "name": format!("{} {}", span.method, span.route),
        "kind": KIND_SERVER,
        // OTLP JSON encodes 64-bit integers as strings.
        "startTimeUnixNano": begun_ns.to_string(),
        "endTimeUnixNano": (begun_ns + span.took.as_nanos()).to_string(),
        "attributes": [
            text_attribute("http.request.method", &span.method),
            text_attribute("http.route", &span.route),
            { "key": "http.response.status_code", "value": { "intValue": span.status.to_string() } },
        ],
    });
    if let Some(parent) = span.parent {
        out["parentSpanId"] = json!(to_hex(&parent));
    }
    if span.status >= 500 {
        out["status"] = json!({ "code": STATUS_ERROR });
    }
    out
}

fn text_attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(text: &str) -> HeaderMap {
        [(http::HeaderName::from_static("traceparent"), HeaderValue::from_str(text).unwrap())]
            .into_iter()
            .collect()
    }

    #[test]
    fn a_callers_trace_is_gone_on_with_and_nonsense_is_not() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let (trace, parent) = parse_traceparent(&headers(good)).unwrap();
        assert_eq!(to_hex(&trace), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(parent.map(|span| to_hex(&span)).as_deref(), Some("00f067aa0ba902b7"));
        for bad in [
            "",
            "00",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf9-00f067aa0ba902b7-01",
            "00-zbf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(parse_traceparent(&headers(bad)), None, "{bad}");
        }
    }

    #[test]
    fn a_span_is_what_collectors_read() {
        let span = RequestSpan {
            trace: [1; 16],
            id: [2; 8],
            parent: Some([3; 8]),
            method: "GET".into(),
            route: "/api/v1/runs/{id}".into(),
            status: 500,
            begun_ms: 1_700_000_000_000,
            took: Duration::from_micros(1_500),
        };
        let payload = otlp_payload(&[span]);
        let span = &payload["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        assert_eq!(span["traceId"], "01".repeat(16));
        assert_eq!(span["parentSpanId"], "03".repeat(8));
        assert_eq!(span["name"], "GET /api/v1/runs/{id}");
        assert_eq!(span["startTimeUnixNano"], "1700000000000000000");
        assert_eq!(span["endTimeUnixNano"], "1700000000001500000");
        assert_eq!(span["attributes"][2]["value"]["intValue"], "500");
        assert_eq!(span["status"]["code"], 2);
    }

    /// A collector that keeps the requests it gets, and its address.
    async fn collector() -> (String, mpsc::UnboundedReceiver<Value>) {
        let (sender, received) = mpsc::unbounded_channel();
        let keep = move |axum::Json(body): axum::Json<Value>| async move {
            let _ = sender.send(body);
        };
        let app = axum::Router::new().route("/v1/traces", axum::routing::post(keep));
        (serve(app).await, received)
    }

    async fn serve(app: axum::Router) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        format!("http://{address}")
    }

    fn traced(tracer: RequestTracer) -> axum::Router {
        let watch = axum::middleware::from_fn_with_state(tracer, trace_request);
        let answer = axum::routing::get(|| async { "here" });
        axum::Router::new().route("/runs/{id}", answer).route_layer(watch)
    }

    #[tokio::test]
    async fn a_request_reaches_the_collector_when_the_daemon_ends_at_the_latest() {
        let (endpoint, mut received) = collector().await;
        let shutdown = CancellationToken::new();
        let complain: TraceWarning = Arc::new(|what| panic!("{what}"));
        let (tracer, task) =
            RequestTracer::start_export(&endpoint, Arc::new(|| 5), shutdown.clone(), complain)
                .unwrap();
        let daemon = serve(traced(tracer)).await;
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let told = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let asked = client.get(format!("{daemon}/runs/7")).header("traceparent", told);
        assert_eq!(asked.send().await.unwrap().status(), 200);
        shutdown.cancel();
        task.await.unwrap();
        let body = received.recv().await.unwrap();
        let span = &body["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        assert_eq!(span["name"], "GET /runs/{id}");
        assert_eq!(span["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(span["startTimeUnixNano"], "5000000");
    }

    #[tokio::test]
    async fn without_a_collector_requests_are_served_and_it_is_said_once() {
        let (sender, mut said) = mpsc::unbounded_channel();
        let complain: TraceWarning = Arc::new(move |what| {
            let _ = sender.send(what.to_owned());
        });
        let shutdown = CancellationToken::new();
        // Port 9 (discard) has no listener.
        let (tracer, task) = RequestTracer::start_export(
            "http://127.0.0.1:9",
            Arc::new(|| 5),
            shutdown.clone(),
            complain,
        )
        .unwrap();
        let daemon = serve(traced(tracer)).await;
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        for _ in 0..3 {
            let asked = client.get(format!("{daemon}/runs/7")).send().await.unwrap();
            assert_eq!(asked.status(), 200);
        }
        shutdown.cancel();
        task.await.unwrap();
        assert!(said.recv().await.unwrap().contains("not collected"));
        assert!(said.try_recv().is_err());
    }
}
