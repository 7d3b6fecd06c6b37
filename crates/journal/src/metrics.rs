//! Metrics for Prometheus, counted from events as they are read.
//!
//! The registry is a value, not a global. The number of driver-defined label values is capped, so a
//! driver cannot blow up the cardinality.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::error::JournalError;
use crate::event::{Event, Payload, StepOutcome};
use crate::journal::{DamagedRow, EventCursor, Filter, Journal};
use crate::limits::{METRIC_STEPS_MAX, METRIC_WORD_CHARS_MAX, METRIC_WORDS_MAX};
use crate::run::{RunId, RunStatus, RunUsage};

/// Label names with their values.
type MetricLabelSet = Vec<(&'static str, String)>;

/// The counters and gauges of one process.
pub struct JournalMetrics {
    registry: Registry,
    skills_discovered: Counter,
    skills_selected: Counter,
    skills_load_failed: Counter,
    skills_truncated: Counter,
    runs_ended: Family<MetricLabelSet, Counter>,
    steps_ended: Family<MetricLabelSet, Counter>,
    watchdog_signals: Family<MetricLabelSet, Counter>,
    watchdog_rewrites: Counter,
    leases_expired: Counter,
    tokens: Family<MetricLabelSet, Counter>,
    cost_usd: Counter<f64, AtomicU64>,
    runs: Family<MetricLabelSet, Gauge>,
    runs_damaged: Gauge,
    words: Mutex<BTreeSet<String>>,
    /// The kinds of the open steps, because the event that ends a step does not contain its kind.
    open: Mutex<BTreeMap<RunId, String>>,
}

impl Default for JournalMetrics {
    fn default() -> Self {
        JournalMetrics::new()
    }
}

impl JournalMetrics {
    /// Creates all metrics with the value zero.
    pub fn new() -> Self {
        let mut metrics = JournalMetrics {
            registry: Registry::default(),
            skills_discovered: Counter::default(),
            skills_selected: Counter::default(),
            skills_load_failed: Counter::default(),
            skills_truncated: Counter::default(),
            runs_ended: Family::default(),
            steps_ended: Family::default(),
            watchdog_signals: Family::default(),
            watchdog_rewrites: Counter::default(),
            leases_expired: Counter::default(),
            tokens: Family::default(),
            cost_usd: Counter::default(),
            runs: Family::default(),
            runs_damaged: Gauge::default(),
            words: Mutex::default(),
            open: Mutex::default(),
        };
        metrics.register_all();
        metrics
    }

    /// Counts an event. Call this once per event.
    pub fn count_event(&self, event: &Event) {
        match &event.payload {
            Payload::SkillsDiscovered { count, .. } => drop(self.skills_discovered.inc_by(*count)),
            Payload::SkillsSelected { skills, .. } => {
                self.skills_selected.inc_by(skills.len() as u64);
            }
            Payload::SkillsLoadFailed { .. } => drop(self.skills_load_failed.inc()),
            Payload::SkillsTruncated { .. } => drop(self.skills_truncated.inc()),
            Payload::RunCompleted { .. } => self.count_run_end(RunStatus::Completed),
            Payload::RunFailed { .. } => self.count_run_end(RunStatus::Failed),
            Payload::RunCancelled { .. } => self.count_run_end(RunStatus::Cancelled),
            Payload::StepStarted { kind, .. } => self.open_step(&event.run, kind),
            Payload::StepFinished { outcome, spent, .. } => {
                self.count_step_end(&event.run, outcome_label(*outcome));
                self.add_usage(spent);
            }
            Payload::StepInterrupted { .. } => self.count_step_end(&event.run, "interrupted"),
            Payload::WatchdogSignal { signal, .. } => {
                let labels = vec![("signal", self.label_value(signal))];
                self.watchdog_signals.get_or_create(&labels).inc();
            }
            Payload::WatchdogRewrite { .. } => drop(self.watchdog_rewrites.inc()),
            Payload::LeaseExpired { .. } => drop(self.leases_expired.inc()),
            _ => {}
        }
    }

    /// Sets the current number of runs by status. Statuses missing from `by_status` are set to 0.
    pub fn set_runs(&self, by_status: &BTreeMap<RunStatus, u64>) {
        for status in RunStatus::ALL {
            let count = by_status.get(status).copied().unwrap_or(0);
            let labels = vec![("status", status.to_string())];
            self.runs.get_or_create(&labels).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// Sets the current number of runs in which something damaged was found.
    pub fn set_damaged_runs(&self, count: usize) {
        self.runs_damaged.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Encodes the metrics in the Prometheus text format.
    pub fn encode_prometheus(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a string takes everything");
        text
    }

    fn count_run_end(&self, status: RunStatus) {
        self.runs_ended.get_or_create(&vec![("status", status.to_string())]).inc();
    }

    fn open_step(&self, run: &RunId, kind: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= METRIC_STEPS_MAX {
            open.pop_first();
        }
        open.insert(run.clone(), kind.to_owned());
    }

    fn count_step_end(&self, run: &RunId, outcome: &str) {
        let kind = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(run);
        let kind = self.label_value(kind.as_deref().unwrap_or("unknown"));
        let labels = vec![("kind", kind), ("outcome", outcome.to_owned())];
        self.steps_ended.get_or_create(&labels).inc();
    }

    fn add_usage(&self, spent: &RunUsage) {
        for (direction, tokens) in [("in", spent.input_tokens), ("out", spent.output_tokens)] {
            let labels = vec![("direction", direction.to_owned())];
            self.tokens.get_or_create(&labels).inc_by(tokens);
        }
        self.cost_usd.inc_by(spent.cost_usd());
    }

    /// Returns a driver-defined word as a label value, or `other` if there are too many distinct
    /// ones already.
    fn label_value(&self, word: &str) -> String {
        let word: String = word.chars().take(METRIC_WORD_CHARS_MAX).collect();
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        if words.len() < METRIC_WORDS_MAX {
            words.insert(word.clone());
        }
        if words.contains(&word) { word } else { "other".to_owned() }
    }

    fn register_all(&mut self) {
        let to = &mut self.registry;
        // The text format appends `_total` to the names of counters.
        let mut add = |name: &str, help: &str, counter: &Counter| {
            to.register(name, help, counter.clone());
        };
        add("skills_discovered", "Skills that were found", &self.skills_discovered);
        add("skills_selected", "Skills that were chosen for steps", &self.skills_selected);
        add("skills_load_failed", "Skills that could not be loaded", &self.skills_load_failed);
        add("skills_truncated", "Skills that were cut to their budget", &self.skills_truncated);
        add("rep_watchdog_rewrites", "Prompts that were rewritten", &self.watchdog_rewrites);
        add("rep_leases_expired", "Workers that were not heard of in time", &self.leases_expired);
        let mut add = |name: &str, help: &str, family: &Family<MetricLabelSet, Counter>| {
            to.register(name, help, family.clone());
        };
        add("rep_runs_ended", "Runs that ended, by how", &self.runs_ended);
        add("rep_steps_ended", "Steps that ended, by kind and how", &self.steps_ended);
        add("rep_watchdog_signals", "Loops that seemed to go in circles", &self.watchdog_signals);
        add("rep_tokens", "Tokens that steps used, by direction", &self.tokens);
        to.register("rep_cost_usd", "Dollars that steps cost", self.cost_usd.clone());
        to.register("rep_runs", "Runs that there are now, by status", self.runs.clone());
        let damaged = "Runs with damaged entries in the journal";
        to.register("rep_runs_damaged", damaged, self.runs_damaged.clone());
    }
}

fn outcome_label(outcome: StepOutcome) -> &'static str {
    match outcome {
        StepOutcome::Ok => "ok",
        StepOutcome::Failed => "failed",
        StepOutcome::SentBack => "sent_back",
        StepOutcome::Stopped => "stopped",
    }
}

/// Metrics together with the position up to which events were counted.
pub struct MetricsCollector {
    metrics: JournalMetrics,
    at: EventCursor,
    /// The damaged runs found so far.
    damaged: BTreeSet<String>,
}

impl MetricsCollector {
    /// Creates metrics that have counted no events yet.
    pub fn new() -> Self {
        let metrics = JournalMetrics::new();
        metrics.set_runs(&BTreeMap::new());
        MetricsCollector { metrics, at: EventCursor::default(), damaged: BTreeSet::new() }
    }

    /// Counts the events since the last call. Returns the damaged runs that earlier calls have not
    /// returned, each once; their damaged entries are not counted.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub async fn collect_new_events(
        &mut self,
        journal: &Journal,
    ) -> Result<Vec<DamagedRow>, JournalError> {
        self.forget_removed_runs(journal).await?;
        let mut found = Vec::new();
        loop {
            let page = journal.list_all_events(self.at, 0).await?;
            if page.is_end() {
                break;
            }
            self.at = page.next;
            page.events.iter().for_each(|(_, event)| self.metrics.count_event(event));
            found.extend(page.damaged);
        }
        let mut by_status = BTreeMap::new();
        let mut filter = Filter::default();
        loop {
            let page = journal.runs(&filter).await?;
            for run in &page.items {
                *by_status.entry(run.status).or_insert(0) += 1;
            }
            found.extend(page.damaged);
            match page.next {
                Some(next) => filter.before = Some(next),
                None => break,
            }
        }
        self.metrics.set_runs(&by_status);
        found.retain(|row| self.damaged.insert(row.id.clone()));
        self.metrics.set_damaged_runs(self.damaged.len());
        Ok(found)
    }

    /// Forgets damaged runs that were removed from the journal.
    async fn forget_removed_runs(&mut self, journal: &Journal) -> Result<(), JournalError> {
        if self.damaged.is_empty() {
            return Ok(());
        }
        let existing = journal.list_run_ids().await?;
        let existing: BTreeSet<&str> = existing.iter().map(RunId::as_str).collect();
        self.damaged.retain(|id| existing.contains(id.as_str()));
        Ok(())
    }

    /// Encodes the metrics in the Prometheus text format.
    pub fn encode_prometheus(&self) -> String {
        self.metrics.encode_prometheus()
    }
}

impl Default for MetricsCollector {
    fn default() -> Self {
        MetricsCollector::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EVENT_VERSION, SelectedSkill};

    fn note(metrics: &JournalMetrics, payload: Payload) {
        let run = RunId::known("r");
        metrics.count_event(&Event { v: EVENT_VERSION, run, seq: 1, at_ms: 0, payload });
    }

    fn step(kind: &str) -> Payload {
        Payload::StepStarted {
            step: 1,
            kind: kind.into(),
            task: None,
            attempt: 1,
            iteration: 1,
            head: None,
            detail: serde_json::Value::Null,
        }
    }

    #[test]
    fn events_are_counted_under_their_names() {
        let metrics = JournalMetrics::new();
        let skill = SelectedSkill { name: "a".into(), reason: "match".into() };
        let spent = RunUsage { cost_micro_usd: 250_000, input_tokens: 7, ..RunUsage::default() };
        let lost = Payload::LeaseExpired { worker: "w".into(), token: 1 };
        for payload in [
            Payload::SkillsDiscovered { count: 3, locations: vec![], names: vec![] },
            Payload::SkillsSelected {
                step_kind: "s".into(),
                task_label: "t".into(),
                skills: vec![skill.clone(), skill],
                strategy: "match".into(),
                errors: vec![],
            },
            step("review"),
            Payload::StepFinished {
                step: 1,
                outcome: StepOutcome::SentBack,
                reason: None,
                head: None,
                spent,
                result: serde_json::Value::Null,
            },
            Payload::RunFailed { reason: "r:x".into() },
            lost,
        ] {
            note(&metrics, payload);
        }
        metrics.set_runs(&[(RunStatus::Queued, 2)].into());
        let text = metrics.encode_prometheus();
        for line in [
            "skills_discovered_total 3",
            "skills_selected_total 2",
            "skills_load_failed_total 0",
            "skills_truncated_total 0",
            "rep_steps_ended_total{kind=\"review\",outcome=\"sent_back\"} 1",
            "rep_runs_ended_total{status=\"failed\"} 1",
            "rep_leases_expired_total 1",
            "rep_tokens_total{direction=\"in\"} 7",
            "rep_cost_usd_total 0.25",
            "rep_runs{status=\"queued\"} 2",
            "rep_runs{status=\"running\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in:\n{text}");
        }
    }

    #[test]
    fn too_many_words_become_one_label() {
        let metrics = JournalMetrics::new();
        for at in 0..METRIC_WORDS_MAX + 50 {
            note(&metrics, step(&format!("kind {at}")));
            note(&metrics, Payload::StepInterrupted { step: 1, reason: "r".into() });
        }
        let text = metrics.encode_prometheus();
        let lines = text.lines().filter(|line| line.starts_with("rep_steps_ended_total"));
        assert_eq!(lines.count(), METRIC_WORDS_MAX + 1);
        assert!(text.contains("{kind=\"other\",outcome=\"interrupted\"} 50"), "{text}");
    }
}
