//! Metrics for Prometheus: about runs from the journal, and about this daemon.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use repertoire_journal::JournalError;
use repertoire_journal::metrics::MetricsCollector;
use tokio::sync::Mutex;

use crate::serve_state::ServeState;

/// The media type of metrics.
pub const MEDIA_TYPE: &str = "application/openmetrics-text";

/// The end marker of the OpenMetrics format.
const END: &str = "# EOF\n";
/// The buckets of request durations, in seconds.
const TIMES: [f64; 8] = [0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0];

type MetricLabels = Vec<(&'static str, String)>;

/// The metrics of a daemon.
pub struct DaemonMetrics {
    runs: Mutex<MetricsCollector>,
    registry: Registry,
    requests: Family<MetricLabels, Counter>,
    durations: Family<MetricLabels, Histogram, fn() -> Histogram>,
    listeners: Gauge,
    ring_bytes: Gauge,
    skills: Family<MetricLabels, Gauge>,
    reloads: Gauge,
}

impl Default for DaemonMetrics {
    fn default() -> Self {
        DaemonMetrics::new()
    }
}

impl DaemonMetrics {
    /// Creates metrics that are all zero.
    pub fn new() -> Self {
        let make: fn() -> Histogram = || Histogram::new(TIMES);
        let mut figures = DaemonMetrics {
            runs: Mutex::new(MetricsCollector::new()),
            registry: Registry::default(),
            requests: Family::default(),
            durations: Family::new_with_constructor(make),
            listeners: Gauge::default(),
            ring_bytes: Gauge::default(),
            skills: Family::default(),
            reloads: Gauge::default(),
        };
        let to = &mut figures.registry;
        to.register("rep_http_requests", "Requests to the API, by how", figures.requests.clone());
        let help = "How long an answer took to begin, in seconds";
        to.register("rep_http_duration_seconds", help, figures.durations.clone());
        to.register("rep_event_listeners", "Who hears events now", figures.listeners.clone());
        let help = "Bytes that are kept for those who are a little behind";
        to.register("rep_event_ring_bytes", help, figures.ring_bytes.clone());
        to.register("rep_skills", "Skills that there are now, by state", figures.skills.clone());
        to.register(
            "rep_skill_reloads",
            "How often skills were read again",
            figures.reloads.clone(),
        );
        figures
    }

    /// Counts a request. Routes are those of the table of endpoints, so the number of label values is bounded.
    fn count_request(&self, method: &str, route: &str, status: u16, took: Duration) {
        let labels = vec![
            ("method", method.to_owned()),
            ("route", route.to_owned()),
            ("status", status.to_string()),
        ];
        self.requests.get_or_create(&labels).inc();
        let labels = vec![("method", method.to_owned()), ("route", route.to_owned())];
        self.durations.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Renders the metrics for Prometheus, up to date.
    ///
    /// # Errors
    ///
    /// If the journal cannot be used.
    pub async fn render_text(&self, serve_state: &ServeState) -> Result<String, JournalError> {
        self.update_gauges(serve_state);
        let mut runs = self.runs.lock().await;
        runs.collect_new_events(serve_state.journal().await?).await?;
        let mut text = runs.encode_prometheus().trim_end_matches(END).to_owned();
        drop(runs);
        let mut own = String::new();
        encode(&mut own, &self.registry).expect("a string takes everything");
        text.push_str(&own);
        Ok(text)
    }

    fn update_gauges(&self, serve_state: &ServeState) {
        let catalog = serve_state.catalog();
        let agents = catalog.entries().iter().filter(|entry| entry.skill.is_agent()).count();
        let counts = BTreeMap::from([
            ("used", catalog.entries().len() - agents),
            ("agents", agents),
            ("shadowed", catalog.shadowed().len()),
            ("broken", catalog.broken().len()),
        ]);
        for (state, count) in counts {
            self.skills.get_or_create(&vec![("state", state.to_owned())]).set(gauge_value(count));
        }
        self.reloads.set(i64::try_from(catalog.generation().saturating_sub(1)).unwrap_or(i64::MAX));
        if let Some(hub) = serve_state.started_hub() {
            self.listeners.set(gauge_value(hub.listener_count()));
            self.ring_bytes.set(gauge_value(hub.ring_bytes()));
        }
    }
}

fn gauge_value(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The middleware that counts requests.
pub(super) async fn count_requests(
    State(serve_state): State<ServeState>,
    request: Request,
    next: Next,
) -> Response {
    let start = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let response = next.run(request).await;
    let route = route.unwrap_or_else(|| "none".to_owned());
    let figures: &Arc<DaemonMetrics> = serve_state.figures();
    figures.count_request(method.as_str(), &route, response.status().as_u16(), start.elapsed());
    response
}
