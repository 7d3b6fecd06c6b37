//! The export of spans to a collector of OpenTelemetry.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use repertoire::limits::SPANS_MAX;
use repertoire::telemetry::{CollectorSettings, SpanExport, is_exported, start_span_export};
use repertoire_scripted::TraceCollector;
use repertoire_text::clock::Clock;
use serde_json::{Value, json};
use tracing::dispatcher::DefaultGuard;
use tracing::{error_span, info_span};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

struct FixedClock;

impl Clock for FixedClock {
    fn now_ms(&self) -> u64 {
        1_700_000_000_000
    }
}

/// Exports the spans of this thread, and returns the warnings.
fn export_to(endpoint: &str) -> (DefaultGuard, SpanExport, Receiver<String>) {
    let settings = CollectorSettings {
        endpoint: endpoint.to_owned(),
        origin: "$HERE".to_owned(),
        service: "tests".to_owned(),
    };
    let (sender, warnings) = channel();
    let warning = Arc::new(move |text: &str| {
        let _ = sender.send(text.to_owned());
    });
    let (layer, export) = start_span_export(&settings, Arc::new(FixedClock), warning).unwrap();
    let layer = layer.with_filter(filter_fn(is_exported));
    (tracing_subscriber::registry().with(layer).set_default(), export, warnings)
}

/// The address of a port without a listener.
fn closed_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

fn named<'a>(spans: &'a [Value], name: &str) -> &'a Value {
    spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("{name}: {spans:?}"))
}

#[test]
fn closed_spans_arrive_as_a_tree_with_names_and_numbers_only() {
    let collector = TraceCollector::start();
    let (guard, export, warnings) = export_to(&format!("{}/", collector.url()));
    {
        let run =
            info_span!(target: "repertoire_x", "agent_run", agent = %"analyst", task = "TEXT");
        let _run = run.enter();
        let call = info_span!(target: "repertoire_x", "model_call", attempt = 2, error = tracing::field::Empty);
        call.record("error", true);
        drop(call);
        let process = info_span!(target: "repertoire_x", "process", program = %"/home/ada/bin/rg");
        let _process = process.enter();
        tracing::error!(target: "repertoire_x", "TEXT");
        let _of_others = info_span!(target: "hyper", "connection", agent = "TEXT").entered();
        let _tool =
            info_span!(target: "repertoire_x", "tool_call", tool = "x".repeat(500)).entered();
    }
    drop(guard);
    export.finish();
    assert_eq!(warnings.iter().collect::<Vec<_>>(), Vec::<String>::new());
    let spans = collector.spans();
    assert_eq!(spans.len(), 4, "{spans:?}");
    let run = named(&spans, "agent_run");
    assert_eq!(run.get("parentSpanId"), None);
    assert_eq!(run["kind"], 1);
    assert_eq!(
        run["attributes"],
        json!([{"key": "gen_ai.agent.name", "value": {"stringValue": "analyst"}}])
    );
    let call = named(&spans, "model_call");
    assert_eq!((&call["parentSpanId"], &call["traceId"]), (&run["spanId"], &run["traceId"]));
    assert_eq!((&call["kind"], &call["status"]["code"]), (&json!(3), &json!(2)));
    assert_eq!(call["attributes"][0]["value"]["intValue"], "2");
    let process = named(&spans, "process");
    assert_eq!(process["status"]["code"], 2);
    assert_eq!(process["attributes"][0]["value"]["stringValue"], "rg");
    let tool = named(&spans, "tool_call");
    assert_eq!(tool["parentSpanId"], process["spanId"]);
    assert_eq!(tool["attributes"][0]["value"]["stringValue"], "x".repeat(200));
    let begun: u64 = run["startTimeUnixNano"].as_str().unwrap().parse().unwrap();
    assert!((1_700_000_000_000_000_000..1_700_000_100_000_000_000).contains(&begun), "{begun}");
    let bodies = format!("{:?}", collector.bodies());
    assert!(
        bodies.contains("tests") && !bodies.contains("TEXT") && !bodies.contains("ada"),
        "{bodies}"
    );
}

#[test]
fn a_callers_trace_is_continued_and_an_invalid_one_is_not() {
    let collector = TraceCollector::start();
    let (guard, export, _warnings) = export_to(&collector.url());
    let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let bad = [
        "",
        "00",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf9-00f067aa0ba902b7-01",
        "00-zbf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    ];
    for traceparent in std::iter::once(good).chain(bad) {
        let span = error_span!(
            target: "repertoire_x",
            "request",
            method = %"GET",
            traceparent,
            route = tracing::field::Empty,
            status = tracing::field::Empty
        );
        span.record("status", 503_u16);
        span.record("route", "/api/v1/runs/{id}");
    }
    drop(guard);
    export.finish();
    let spans = collector.spans();
    assert_eq!(spans.len(), 1 + bad.len());
    for (at, span) in spans.iter().enumerate() {
        assert_eq!(span["name"], "GET /api/v1/runs/{id}");
        assert_eq!((&span["kind"], &span["status"]["code"]), (&json!(2), &json!(2)));
        let continued = span["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4736";
        assert_eq!(continued, at == 0, "{span}");
        assert_eq!(span.get("parentSpanId") == Some(&json!("00f067aa0ba902b7")), at == 0);
    }
}

#[test]
fn a_collector_that_hangs_delays_no_span_and_the_end_by_a_second() {
    let collector = TraceCollector::start_silent();
    let (guard, export, warnings) = export_to(&collector.url());
    let _ = info_span!(target: "repertoire_x", "agent_run").entered();
    drop(guard);
    let begun = Instant::now();
    export.finish();
    // A request to the collector would take 5 s to time out.
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    let warning = warnings.recv_timeout(Duration::from_secs(30)).unwrap();
    assert!(warning.contains("did not answer within 1 s"), "{warning}");
}

#[test]
fn spans_beyond_the_queue_are_dropped_and_counted() {
    let mut collector = TraceCollector::start_silent();
    let (_guard, _export, warnings) = export_to(&collector.url());
    let close_spans = |number: usize| {
        for _ in 0..number {
            drop(info_span!(target: "repertoire_x", "select"));
        }
    };
    // A full batch is on its way before the queue is filled.
    close_spans(512);
    collector.wait_for_request();
    close_spans(SPANS_MAX + 3);
    collector.open();
    let warning = warnings.recv_timeout(Duration::from_secs(30)).unwrap();
    assert_eq!(warning, "the collector is too slow: 3 spans were lost");
}

#[test]
fn a_collector_that_is_down_is_reported_once() {
    let (guard, export, warnings) = export_to(&closed_port());
    for _ in 0..2_000 {
        drop(info_span!(target: "repertoire_x", "select"));
    }
    drop(guard);
    export.finish();
    let warnings: Vec<String> = warnings.iter().collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("traces are not collected: "), "{warnings:?}");
    assert!(!warnings[0].contains("127.0.0.1"), "{warnings:?}");
}

#[test]
fn an_endpoint_that_is_no_address_is_refused() {
    for endpoint in ["collector:4318", "ftp://127.0.0.1", "127.0.0.1"] {
        let settings = CollectorSettings {
            endpoint: endpoint.to_owned(),
            origin: "$HERE".to_owned(),
            service: "tests".to_owned(),
        };
        let refused = start_span_export(&settings, Arc::new(FixedClock), Arc::new(|_: &str| {}));
        let refused = refused.map(|_| ()).unwrap_err();
        assert!(refused.message.starts_with("$HERE: "), "{refused}");
        assert!(refused.hints[0].contains("http://127.0.0.1:4318"), "{refused:?}");
    }
}
