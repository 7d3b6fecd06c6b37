//! Runs and their events in words, for people who watch.

use repertoire_journal::event::StepOutcome;
use repertoire_journal::run::{Run, RunStatus};
use repertoire_journal::{Event, Journal, Payload, RunId};

use crate::failure::Failure;
use crate::ui::{self, Ui};

/// Tells the events of a run as they come.
pub(crate) struct Narrator {
    run: RunId,
    told: u64,
}

impl Narrator {
    pub(crate) fn new(run: RunId) -> Self {
        Narrator { run, told: 0 }
    }

    /// Tells what happened since the last time.
    pub(crate) async fn tell(&mut self, journal: &Journal, ui: &mut Ui<'_>) -> Result<(), Failure> {
        loop {
            let events = journal.events(&self.run, self.told, 500).await;
            let events = events.map_err(|error| Failure::cannot_run(error.to_string()))?;
            let Some(last) = events.last() else { return Ok(()) };
            self.told = last.seq;
            for event in &events {
                if ui.json {
                    ui.print_json_line(event)?;
                } else if let Some(line) = told(event, ui) {
                    ui.note(&line)?;
                }
            }
        }
    }
}

/// What a person who watches wants to know of an event; nothing if it is only for the record.
fn told(event: &Event, ui: &Ui<'_>) -> Option<String> {
    let good = |text: String| ui.paint_err(ui::GOOD, text);
    let bad = |text: String| ui.paint_err(ui::BAD, text);
    let warn = |text: String| ui.paint_err(ui::WARN, text);
    Some(match &event.payload {
        Payload::WorktreeCreated { path, branch, how, .. } => {
            format!("  worktree {how}: {branch} in {path}")
        }
        Payload::StepStarted { step, kind, task, attempt, .. } => {
            let task = task.as_ref().map_or("everything", |task| task.label.as_str());
            let again = if *attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
            format!("{step:>3} {kind}{again}: {}", ui::fit(task, 100))
        }
        Payload::StepFinished { outcome, reason, .. } => {
            let reason = reason.as_deref().map(|reason| format!(": {}", ui::fit(reason, 200)));
            let reason = reason.unwrap_or_default();
            match outcome {
                StepOutcome::Ok => good(format!("    ✓ ok{reason}")),
                StepOutcome::Failed => bad(format!("    ✗ failed{reason}")),
                StepOutcome::SentBack => warn(format!("    ↩ sent back{reason}")),
                StepOutcome::Stopped => format!("    stopped{reason}"),
            }
        }
        Payload::SkillsSelected { skills, .. } if !skills.is_empty() => {
            let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
            format!("    skills: {}", names.join(", "))
        }
        Payload::TaskMarked { task, mark, .. } => {
            format!("    \"{}\" is {mark}", ui::fit(&task.label, 100))
        }
        Payload::WatchdogSignal { signal, evidence, .. } => {
            warn(format!("    watchdog: {signal}: {evidence}"))
        }
        Payload::PlanRestored { reason } => warn(format!("    the plan was put right: {reason}")),
        Payload::PlanFallback { reason } => warn(format!(
            "    the tasks of the plan cannot be told, so the agent chooses: {reason}"
        )),
        Payload::SkillsLoadFailed { name, error } => warn(format!("    {name}: {error}")),
        Payload::RunDeferred { reason, .. } => warn(format!("    waits: {reason}")),
        Payload::Delivered { strategy, branch, .. } => format!("    {strategy}: {branch}"),
        _ => return None,
    })
}

/// A run in a line.
pub(crate) fn status_line(run: &Run, ui: &Ui<'_>) -> String {
    let style = match run.status {
        RunStatus::Completed => ui::GOOD,
        RunStatus::Failed | RunStatus::Cancelled => ui::BAD,
        _ => ui::WARN,
    };
    let reason = run.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{} {} {}{reason}", run.id.short(), run.name, ui.paint(style, run.status))
}
