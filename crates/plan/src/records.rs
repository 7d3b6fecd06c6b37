//! The files that a run leaves for people: prompts, logs and reports, in one folder per run.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use repertoire_agent::AgentEvent;
use repertoire_agent::event::{EventKind, EventSink};
use repertoire_journal::{Run, RunStatus, Step};
use repertoire_text::fs;
use repertoire_text::layout::one_line;
use serde_json::json;

use crate::limits::STEP_LOG_BYTES_MAX;
use repertoire_text::fs::make_private_dir;

/// The folder of a run.
#[derive(Clone, Debug)]
pub struct RunRecords {
    dir: Utf8PathBuf,
}

/// The log of an agent's step: one JSON event per line.
pub struct StepLog {
    file: Mutex<Option<StepLogWriter>>,
    /// The time at which the agent's rate limit resets, if it reported one.
    until_ms: Mutex<Option<u64>>,
}

struct StepLogWriter {
    file: std::fs::File,
    bytes: u64,
}

impl RunRecords {
    /// Opens the folder of a run beneath `runs`, and creates it if needed.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be created.
    pub fn open(runs: &Utf8Path, run: &str) -> std::io::Result<Self> {
        let dir = runs.join(run);
        make_private_dir(&dir)?;
        Ok(RunRecords { dir })
    }

    pub fn dir(&self) -> &Utf8Path {
        &self.dir
    }

    /// Writes a file and returns its name.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub fn write_file(&self, name: &str, text: &str) -> std::io::Result<String> {
        fs::write_atomic(&self.dir.join(name), text.as_bytes())?;
        Ok(name.to_owned())
    }

    /// Reads a file.
    pub fn read(&self, name: &str, bytes_max: u64) -> Option<String> {
        fs::read_text(&self.dir.join(name), bytes_max).ok()
    }

    /// Opens the log of a step.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be opened.
    pub fn open_log(&self, step: u32, kind: &str) -> std::io::Result<Arc<StepLog>> {
        let path = self.dir.join(format!("{step:03}-{kind}.jsonl"));
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
        let bytes = file.metadata()?.len();
        let file = Mutex::new(Some(StepLogWriter { file, bytes }));
        Ok(Arc::new(StepLog { file, until_ms: Mutex::new(None) }))
    }
}

impl StepLog {
    /// A sink that writes events to the log.
    pub fn event_sink(self: &Arc<Self>) -> EventSink {
        let log = self.clone();
        Arc::new(move |event: &AgentEvent| log.add(event))
    }

    /// The time at which the agent's rate limit resets, if it reported one.
    pub fn until_ms(&self) -> Option<u64> {
        *self.until_ms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, event: &AgentEvent) {
        if let EventKind::Paused { until_ms, .. } = event.kind {
            *self.until_ms.lock().unwrap_or_else(PoisonError::into_inner) = Some(until_ms);
        }
        let mut held = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writer) = held.as_mut() else { return };
        let Ok(mut line) = serde_json::to_vec(event) else { return };
        line.push(b'\n');
        writer.bytes += line.len() as u64;
        // A full disk ends the log, not the step. A log that exceeds its limit ends with a marker.
        let is_over = writer.bytes > STEP_LOG_BYTES_MAX;
        if is_over {
            line = b"{\"type\":\"cut\",\"message\":\"the log is full\"}\n".to_vec();
        }
        if writer.file.write_all(&line).is_err() || is_over {
            *held = None;
        }
    }
}

/// A summary of a run and its steps as JSON.
pub fn summary_json(run: &Run, steps: &[Step]) -> String {
    let count = |kind: &str| steps.iter().filter(|step| step.kind == kind).count();
    let value = json!({
        "run_id": run.id,
        "name": run.name,
        "status": run.status,
        "exit_reason": run.reason,
        "workspace": run.workspace,
        "worktree": run.worktree,
        "created_ms": run.created_ms,
        "started_ms": run.started_ms,
        "ended_ms": run.ended_ms,
        "steps": run.steps,
        "implementations": count("implementation"),
        "reviews": count("review"),
        "verifications": count("verification"),
        "spent": run.spent,
    });
    format!("{value:#}\n")
}

/// The steps as tab-separated values.
pub fn steps_table(steps: &[Step]) -> String {
    let mut out = String::from(
        "step\tkind\ttask\tattempt\titeration\toutcome\ttime_ms\ttokens\tcost_usd\thead\treason\n",
    );
    for step in steps {
        let task = step.task.as_ref().map_or("", |task| task.label.as_str());
        let outcome = step.outcome.map_or_else(|| json!(step.status), |outcome| json!(outcome));
        let cells = [
            step.number.to_string(),
            step.kind.clone(),
            task.to_owned(),
            step.attempt.to_string(),
            step.iteration.to_string(),
            outcome.as_str().unwrap_or_default().to_owned(),
            step.spent.time_ms.to_string(),
            step.spent.total_tokens().to_string(),
            format!("{:.6}", step.spent.cost_usd()),
            step.head_after.clone().unwrap_or_default(),
            step.reason.clone().unwrap_or_default(),
        ];
        let line: Vec<String> =
            cells.iter().map(|cell| cell.replace(['\t', '\n', '\r'], " ")).collect();
        out.push_str(&line.join("\t"));
        out.push('\n');
    }
    out
}

/// A report on what happened and what it cost, in Markdown.
pub fn post_mortem(run: &Run, steps: &[Step], learnings: &[String]) -> String {
    let mut out = format!("# {}\n\n", run.name);
    let reason = run.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    out.push_str(&format!("{} is {}{reason}.\n\n", run.id, run.status));
    let spent = run.spent;
    let more = if spent.unpriced { " and what has no price" } else { "" };
    out.push_str(&format!(
        "{} steps, {}, {} tokens, ${:.4}{more}.\n",
        run.steps,
        format_duration(spent.time_ms),
        spent.total_tokens(),
        spent.cost_usd()
    ));
    if let Some(worktree) = &run.worktree {
        out.push_str(&format!(
            "Branch {} (from {}), in {}.\n",
            worktree.branch, worktree.base_branch, worktree.path
        ));
    }
    out.push_str("\n## What each task cost\n\n| task | steps | time | tokens | $ | last |\n|---|---|---|---|---|---|\n");
    for (label, of) in by_task(steps) {
        let spent = of
            .iter()
            .fold(repertoire_journal::run::RunUsage::default(), |sum, s| sum.plus(s.spent));
        let last = of.last().map_or_else(String::new, |step| {
            let how = step.outcome.map_or_else(|| json!(step.status), |outcome| json!(outcome));
            format!("{} {}", step.kind, how.as_str().unwrap_or_default())
        });
        out.push_str(&format!(
            "| {} | {} | {} | {} | {:.4} | {last} |\n",
            table_cell(&label),
            of.len(),
            format_duration(spent.time_ms),
            spent.total_tokens(),
            spent.cost_usd()
        ));
    }
    let bad: Vec<&Step> = steps.iter().filter(|step| step.reason.is_some()).collect();
    if !bad.is_empty() {
        out.push_str("\n## What went wrong on the way\n\n");
        for step in bad {
            let reason = step.reason.as_deref().unwrap_or_default();
            out.push_str(&format!(
                "- Step {} ({}): {}\n",
                step.number,
                step.kind,
                table_cell(reason)
            ));
        }
    }
    if !learnings.is_empty() {
        out.push_str("\n## Learnt\n\n");
        out.extend(learnings.iter().map(|note| format!("- {}\n", table_cell(note))));
    }
    if run.status == RunStatus::Waiting && !run.choices.is_empty() {
        out.push_str("\n## What can be done\n\n");
        out.extend(run.choices.iter().map(|choice| format!("- {choice}\n")));
    }
    out
}

fn by_task(steps: &[Step]) -> Vec<(String, Vec<&Step>)> {
    let mut out: Vec<(String, Vec<&Step>)> = Vec::new();
    for step in steps {
        let label = step.task.as_ref().map_or("(the whole plan)", |task| task.label.as_str());
        match out.iter_mut().find(|(known, _)| known == label) {
            Some((_, of)) => of.push(step),
            None => out.push((label.to_owned(), vec![step])),
        }
    }
    out
}

fn format_duration(ms: u64) -> String {
    match ms / 1000 {
        0 => format!("{ms} ms"),
        seconds if seconds < 60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// The text on one line, without table separators.
fn table_cell(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}
