//! Traces for a collector of OpenTelemetry: the `tracing` spans of runs, steps, model calls, tools, selection, requests,
//! git and processes, sent as OTLP over HTTP in its JSON form. Off unless a collector is configured.
//!
//! Exporting never delays the work: a closed span goes into a bounded queue, which a thread of its own empties. Spans
//! that do not fit are counted and dropped. Only the fields of `attribute_name` leave the process: names, ids and
//! numbers, never the text of a prompt, an answer, a path or an error.
//!
//! The official crates (`opentelemetry_sdk`, `opentelemetry-otlp`, `tracing-opentelemetry`) would do the same. They add 11
//! crates even with JSON alone, among them `prost` with its macros; here it is one JSON object and one request.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use repertoire_text::clock::Clock;
use tokio::sync::mpsc;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::config::KEY;
use crate::context::AppContext;
use crate::error::AppError;
use crate::limits::{SPAN_TEXT_CHARS_MAX, SPANS_MAX};

mod export;
mod otlp;

pub use export::{SpanExport, TraceWarning};

/// The collector, and the name under which it files the spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorSettings {
    /// The address without `/v1/traces`, for instance `http://127.0.0.1:4318`.
    pub endpoint: String,
    /// The setting or variable that the address comes from, for messages.
    pub origin: String,
    pub service: String,
}

impl AppContext<'_> {
    /// The configured collector, if any: the key `telemetry.otlp_endpoint`, else the standard variables of OpenTelemetry.
    pub fn collector_settings(&self) -> Option<CollectorSettings> {
        const VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
        // The variable may be meant for programs that speak gRPC, which this one does not.
        let speaks_http = self.env.var("OTEL_EXPORTER_OTLP_PROTOCOL") != Some("grpc");
        let key = &KEY.telemetry_otlp_endpoint;
        let (endpoint, origin) = match self.config.values().telemetry_otlp_endpoint.as_deref() {
            Some(endpoint) => {
                (endpoint, format!("{}: `{}`", self.config.describe_origin(key), key.name))
            }
            None => (self.env.var(VARIABLE).filter(|_| speaks_http)?, format!("${VARIABLE}")),
        };
        let service = self.env.var("OTEL_SERVICE_NAME").unwrap_or("repertoire");
        Some(CollectorSettings {
            endpoint: endpoint.to_owned(),
            origin,
            service: service.to_owned(),
        })
    }
}

/// Starts a thread that sends spans to a collector, and returns the layer that collects them. Install the layer with
/// [`is_exported`] as its filter.
///
/// # Errors
///
/// If the endpoint is not an address of HTTP, or no thread can be started.
pub fn start_span_export(
    settings: &CollectorSettings,
    clock: Arc<dyn Clock>,
    warning: TraceWarning,
) -> Result<(SpanLayer, SpanExport), AppError> {
    let (queue, spans) = mpsc::channel(SPANS_MAX);
    let lost = Arc::<AtomicU64>::default();
    let export = SpanExport::start(settings, spans, Arc::clone(&lost), warning)?;
    Ok((SpanLayer { clock, queue, lost }, export))
}

/// Returns true for the spans that are exported, and for the events that mark them as failed. Spans of other crates,
/// such as the HTTP client, may hold secrets.
pub fn is_exported(metadata: &Metadata<'_>) -> bool {
    let is_ours = metadata.target().starts_with("repertoire");
    is_ours && (metadata.is_span() || *metadata.level() == Level::ERROR)
}

/// The attribute of a collected span for a field, or `None` for a field that stays in the process.
fn attribute_name(field: &str) -> Option<&'static str> {
    Some(match field {
        "agent" => "gen_ai.agent.name",
        "attempt" => "repertoire.attempt",
        "command" => "repertoire.command",
        "id" => "repertoire.request",
        "iteration" => "repertoire.iteration",
        "kind" => "repertoire.kind",
        "method" => "http.request.method",
        "model" => "gen_ai.request.model",
        "program" => "process.executable.name",
        "route" => "http.route",
        "run" => "repertoire.run",
        "status" => "http.response.status_code",
        "step" => "repertoire.step",
        "tool" => "gen_ai.tool.name",
        "workflow" => "repertoire.workflow",
        _ => return None,
    })
}

/// A layer of `tracing` that hands closed spans to an export.
pub struct SpanLayer {
    clock: Arc<dyn Clock>,
    queue: mpsc::Sender<ClosedSpan>,
    lost: Arc<AtomicU64>,
}

impl fmt::Debug for SpanLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpanLayer").field("lost", &self.lost).finish_non_exhaustive()
    }
}

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SpanValue {
    Flag(bool),
    Number(i64),
    Text(String),
}

/// The wall clock of a whole trace, so that a child never seems to begin before its parent.
#[derive(Clone, Copy, Debug)]
struct TraceClock {
    unix_ns: u64,
    begun: Instant,
}

impl TraceClock {
    fn now_ns(&self) -> u64 {
        let elapsed = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.unix_ns.saturating_add(elapsed)
    }
}

/// A span that has not ended, kept with its data in the registry.
#[derive(Debug)]
struct OpenSpan {
    trace: [u8; 16],
    id: [u8; 8],
    parent: Option<[u8; 8]>,
    clock: TraceClock,
    begun_ns: u64,
    fields: SpanFields,
}

/// A span that has ended.
#[derive(Debug)]
struct ClosedSpan {
    trace: [u8; 16],
    id: [u8; 8],
    parent: Option<[u8; 8]>,
    name: &'static str,
    begun_ns: u64,
    ended_ns: u64,
    fields: SpanFields,
}

/// The exported fields of a span.
#[derive(Clone, Debug, Default)]
struct SpanFields {
    values: BTreeMap<&'static str, SpanValue>,
    /// The trace and the span of a caller (see W3C Trace Context).
    caller: Option<([u8; 16], [u8; 8])>,
    is_error: bool,
}

impl SpanFields {
    fn keep(&mut self, field: &Field, value: SpanValue) {
        let name = field.name();
        match (name, &value) {
            ("error", value) => self.is_error |= *value != SpanValue::Flag(false),
            ("traceparent", SpanValue::Text(text)) => self.caller = parse_traceparent(text),
            ("status", SpanValue::Number(status)) => self.is_error |= *status >= 500,
            _ => {}
        }
        if attribute_name(name).is_some() {
            self.values.insert(name, value);
        }
    }

    fn keep_text(&mut self, field: &Field, text: &str) {
        // The folders of a program say where a person works.
        let text = if field.name() == "program" { text.rsplit('/').next() } else { Some(text) };
        let text = text.unwrap_or_default().chars().take(SPAN_TEXT_CHARS_MAX).collect();
        self.keep(field, SpanValue::Text(text));
    }
}

impl Visit for SpanFields {
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.keep(field, SpanValue::Flag(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.keep(field, SpanValue::Number(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.keep(field, SpanValue::Number(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.keep_text(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Don't format what is not exported.
        if attribute_name(field.name()).is_some() || field.name() == "traceparent" {
            self.keep_text(field, &format!("{value:?}"));
        } else if field.name() == "error" {
            self.is_error = true;
        }
    }
}

impl<S> Layer<S> for SpanLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        let Some(span) = ctx.span(id) else { return };
        let mut fields = SpanFields::default();
        attributes.record(&mut fields);
        let parent = span.parent().and_then(|parent| {
            let extensions = parent.extensions();
            extensions.get::<OpenSpan>().map(|open| (open.trace, open.id, open.clock))
        });
        let (trace, parent, clock) = match (parent, fields.caller) {
            (Some((trace, parent, clock)), _) => (trace, Some(parent), clock),
            (None, Some((trace, parent))) => (trace, Some(parent), self.read_clock()),
            (None, None) => (random_bytes(), None, self.read_clock()),
        };
        let begun_ns = clock.now_ns();
        let open = OpenSpan { trace, id: random_bytes(), parent, clock, begun_ns, fields };
        span.extensions_mut().insert(open);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, ctx: Context<'_, S>) {
        let Some(span) = ctx.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<OpenSpan>() {
            values.record(&mut open.fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, ctx: Context<'_, S>) {
        let Some(span) = ctx.event_span(event) else { return };
        if *event.metadata().level() == Level::ERROR
            && let Some(open) = span.extensions_mut().get_mut::<OpenSpan>()
        {
            open.fields.is_error = true;
        }
    }

    fn on_close(&self, id: Id, ctx: Context<'_, S>) {
        let Some(span) = ctx.span(&id) else { return };
        let Some(open) = span.extensions_mut().remove::<OpenSpan>() else { return };
        let closed = ClosedSpan {
            trace: open.trace,
            id: open.id,
            parent: open.parent,
            name: span.name(),
            begun_ns: open.begun_ns,
            ended_ns: open.clock.now_ns(),
            fields: open.fields,
        };
        if self.queue.try_send(closed).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl SpanLayer {
    fn read_clock(&self) -> TraceClock {
        let unix_ns = self.clock.now_ms().saturating_mul(1_000_000);
        TraceClock { unix_ns, begun: Instant::now() }
    }
}

/// Parses a caller's `traceparent` (`00-TRACE-SPAN-FLAGS`, see W3C Trace Context).
fn parse_traceparent(text: &str) -> Option<([u8; 16], [u8; 8])> {
    let mut parts = text.split('-');
    let (version, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
    let trace: [u8; 16] = parse_hex(trace)?;
    let span: [u8; 8] = parse_hex(span)?;
    let is_valid = version.len() == 2 && version != "ff" && trace != [0; 16] && span != [0; 8];
    is_valid.then_some((trace, span))
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
    // Without random numbers spans are hard to tell apart, which harms nothing but the trace.
    let _ = getrandom::fill(&mut out);
    out
}
