//! Describes runs and their events in text.

use anstyle::Style;
use repertoire::runs::short_oid;
use repertoire_journal::event::StepOutcome;
use repertoire_journal::run::{Limits, Run, RunStatus};
use repertoire_journal::{Event, FixOutcome, Journal, Payload, RunId};
use serde_json::Value;

use crate::failure::CliFailure;
use crate::ui::{self, TerminalUi};

mod clock;
mod workflow_events;

/// Maximum width of a field in the description of a kind's event.
const KIND_FIELD_COLUMNS_MAX: usize = 80;

pub(crate) use clock::{LocalClock, short_time};
pub(crate) use workflow_events::describe_current_step;
use workflow_events::describe_workflow_event;

/// Prints the events of a run as they arrive.
pub(crate) struct RunEventPrinter {
    run: RunId,
    told: u64,
}

impl RunEventPrinter {
    /// Starts after the event with the number `told`.
    pub(crate) fn new(run: RunId, told: u64) -> Self {
        RunEventPrinter { run, told }
    }

    /// Prints the events since the last call.
    pub(crate) async fn print_new_events(
        &mut self,
        journal: &Journal,
        ui: &mut TerminalUi<'_>,
    ) -> Result<(), CliFailure> {
        loop {
            let events = journal.events(&self.run, self.told, 500).await;
            let events = events.map_err(|error| CliFailure::cannot_run(error.to_string()))?;
            let Some(last) = events.last() else { return Ok(()) };
            self.told = last.seq;
            for event in &events {
                if ui.json {
                    ui.print_json_line(event)?;
                } else if let Some(line) = describe_for_watcher(event, ui) {
                    ui.print_note(&line)?;
                }
            }
        }
    }
}

/// Wraps a line. The lines that follow are indented further than the first.
fn wrap_indented(line: &str, columns: usize) -> String {
    if ui::text_width(line) <= columns {
        return line.to_owned();
    }
    let text = line.trim_start();
    let indent = " ".repeat(line.len() - text.len() + 2);
    let first = &indent[2..];
    let room = columns.saturating_sub(indent.len()).max(20);
    format!("{first}{}", ui::wrap_words(text, room, &indent))
}

/// Describes an event for a user who watches a run. `None` if the event is only for the record.
fn describe_for_watcher(event: &Event, ui: &TerminalUi<'_>) -> Option<String> {
    let payload = &event.payload;
    let line = match payload {
        Payload::StepStarted { step, kind, task, attempt, .. } => {
            let task = task.as_ref().map_or("everything", |task| task.label.as_str());
            let again = if *attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
            format!("{step:>3} {kind}{again}: {}", ui::fit_columns(task, 100))
        }
        Payload::StepFinished { outcome, reason, .. } => {
            let mark = match outcome {
                StepOutcome::Ok => "✓ ",
                StepOutcome::Failed => "✗ ",
                StepOutcome::SentBack => "↩ ",
                StepOutcome::Stopped => "",
            };
            format!("    {mark}{}", append_reason(outcome_word(*outcome), reason.as_deref(), 200))
        }
        Payload::TaskMarked { task, mark, .. } => {
            format!("    \"{}\" is {mark}", ui::fit_columns(&task.label, 100))
        }
        Payload::WorktreeCreated { .. } => format!("  {}", describe_event(payload)),
        Payload::SkillsSelected { skills, .. } if skills.is_empty() => return None,
        Payload::SkillsSelected { .. }
        | Payload::SkillsLoadFailed { .. }
        | Payload::WatchdogSignal { .. }
        | Payload::WatchdogRewrite { .. }
        | Payload::PlanRestored { .. }
        | Payload::PlanFallback { .. }
        | Payload::RunDeferred { .. }
        | Payload::StepInterrupted { .. }
        | Payload::Steered { .. }
        | Payload::Learned { .. }
        | Payload::FailureSeen { .. }
        | Payload::FixTried { .. }
        | Payload::PauseRequested { .. }
        | Payload::CancelRequested { .. }
        | Payload::LeaseExpired { .. }
        | Payload::Note { .. }
        | Payload::Delivered { .. } => format!("    {}", describe_event(payload)),
        _ => return None,
    };
    let line = wrap_indented(&line, ui.columns);
    let style = event_style(payload);
    Some(if style == Style::new() { line } else { ui.paint_err(style, line) })
}

/// Describes an event in one line. Unprintable characters are escaped. Nothing is truncated but the
/// fields of a kind's own event.
pub(crate) fn describe_event(payload: &Payload) -> String {
    let text = match payload {
        Payload::RunCreated { kind, name, workspace, priority, limits, .. } => {
            let urgent =
                if *priority == 0 { String::new() } else { format!(", priority {priority}") };
            format!("{kind} \"{name}\" in {workspace}{urgent}{}", describe_limits(*limits))
        }
        Payload::LeaseTaken { worker, token } => format!("{worker} took it (token {token})"),
        Payload::LeaseReleased { worker, reason, .. } => {
            append_reason(&format!("{worker} gave it back"), Some(reason), usize::MAX)
        }
        Payload::LeaseExpired { worker, token } => {
            format!("{worker} was not heard of in time (token {token}); back in the queue")
        }
        Payload::RunStarted { worker } => format!("{worker} begins"),
        Payload::StepStarted { .. }
        | Payload::StepFinished { .. }
        | Payload::StepInterrupted { .. } => describe_step_event(payload),
        Payload::WatchdogSignal { step, signal, evidence } => {
            format!("watchdog after step {step}: {signal}: {evidence}")
        }
        Payload::WatchdogRewrite { step, signal, rewrite, text } => format!(
            "watchdog after step {step}: the next prompt begins otherwise ({signal}, rewrite {rewrite}): {text}"
        ),
        Payload::RunCompleted { summary, .. } => summary.clone(),
        Payload::RunFailed { reason }
        | Payload::RunPaused { reason }
        | Payload::RunCancelled { reason } => reason.clone(),
        Payload::RunWaiting { reason, choices } => {
            if choices.is_empty() {
                reason.clone()
            } else {
                format!("{reason} (one can {})", choices.join("; "))
            }
        }
        Payload::RunDeferred { reason, .. } => format!("goes on later by itself: {reason}"),
        Payload::PauseRequested { by } => format!("{by} wants it to pause after this step"),
        Payload::CancelRequested { by } => format!("{by} wants it to end"),
        Payload::RunResumed { by, limits } => {
            format!("{by}{}", limits.map(describe_limits).unwrap_or_default())
        }
        Payload::RunRetried { by, tasks } => {
            if tasks.is_empty() {
                format!("{by}, all tasks that failed")
            } else {
                format!("{by}, {}", tasks.join(", "))
            }
        }
        Payload::Steered { by, note } => format!("{by}: {note}"),
        _ => describe_other_event(payload),
    };
    ui::fit_columns(&text, usize::MAX)
}

fn describe_step_event(payload: &Payload) -> String {
    match payload {
        Payload::StepStarted { step, kind, task, attempt, .. } => {
            let again = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
            let task = task.as_ref().map(|task| format!(": {}", task.label)).unwrap_or_default();
            format!("step {step} {kind}{again}{task}")
        }
        Payload::StepFinished { step, outcome, reason, spent, .. } => {
            let mut facts = vec![short_time(spent.time_ms)];
            if spent.total_tokens() > 0 {
                facts.push(format!("{} tokens", ui::format_thousands(spent.total_tokens())));
            }
            if spent.cost_micro_usd > 0 {
                facts.push(ui::format_dollars(spent.cost_usd()));
            }
            let what = format!("step {step} {} ({})", outcome_word(*outcome), facts.join(", "));
            append_reason(&what, reason.as_deref(), usize::MAX)
        }
        Payload::StepInterrupted { step, reason } => {
            append_reason(&format!("step {step} was interrupted"), Some(reason), usize::MAX)
        }
        _ => String::new(),
    }
}

/// Describes events about worktrees, skills, plans and reports.
fn describe_other_event(payload: &Payload) -> String {
    match payload {
        Payload::WorktreeProviderSelected { provider } => format!("worktrees by {provider}"),
        Payload::WorktreeCreated { path, branch, base_branch, how, .. } => {
            format!("worktree {how}: {branch} from {base_branch}, in {path}")
        }
        Payload::WorktreeRemoved { path } => format!("{path} is gone"),
        Payload::Delivered { strategy, branch, commit } => {
            let commit = commit.as_deref().map(|oid| format!(" at {}", short_oid(oid)));
            format!("{}{}", describe_delivery(strategy, branch), commit.unwrap_or_default())
        }
        Payload::PostmortemStart { reason } => format!("putting the report together ({reason})"),
        Payload::PostmortemEnd { status, files } => {
            format!("report {status}: {}", ui::format_count(files.len(), "file"))
        }
        Payload::SkillsDiscovered { count, locations, .. } => format!(
            "{} in {}",
            ui::format_count(usize::try_from(*count).unwrap_or(usize::MAX), "skill"),
            ui::format_count(locations.len(), "place")
        ),
        Payload::SkillsSelected { skills, strategy, errors, .. } => {
            let names: Vec<String> =
                skills.iter().map(|skill| format!("{} ({})", skill.name, skill.reason)).collect();
            let chosen = if names.is_empty() {
                "no skill was chosen".to_owned()
            } else {
                format!("skills by {strategy}: {}", names.join(", "))
            };
            append_reason(&chosen, Some(&errors.join("; ")), usize::MAX)
        }
        Payload::SkillsLoadFailed { name, error } => {
            format!("skill {name} cannot be loaded: {error}")
        }
        Payload::SkillsTruncated { name, max_chars } => {
            format!("skill {name} was cut to {} characters", ui::format_thousands(*max_chars))
        }
        Payload::PlanRead { tasks, .. } => {
            let open = tasks.iter().filter(|task| task.mark == "open").count();
            format!("the plan has {}, {open} open", ui::format_count(tasks.len(), "task"))
        }
        Payload::PlanFallback { reason } => {
            format!("the tasks of the plan cannot be told, so the agent chooses: {reason}")
        }
        Payload::PlanRestored { reason } => format!("the plan was put right: {reason}"),
        // Most reasons repeat the mark.
        Payload::TaskMarked { task, mark, reason } if reason.starts_with(mark.as_str()) => {
            format!("\"{}\": {reason}", task.label)
        }
        Payload::TaskMarked { task, mark, reason } => {
            append_reason(&format!("\"{}\" is {mark}", task.label), Some(reason), usize::MAX)
        }
        Payload::Learned { task, note } => match task {
            Some(task) => format!("learnt from \"{}\": {note}", task.label),
            None => format!("learnt: {note}"),
        },
        Payload::FailureSeen { signature, tool, example, .. } => {
            format!("failure {signature} ({tool}): {example}")
        }
        Payload::FixTried { signature, fix, outcome, reason, .. } => {
            let (kind, told) = (fix.remedy.kind(), fix_word(*outcome));
            append_reason(&format!("a {kind} for {signature} {told}"), Some(reason), usize::MAX)
        }
        Payload::KindEvent { name, data } => describe_kind_event(name, data),
        Payload::Note { name, data } if data.is_null() => name.clone(),
        Payload::Note { name, data } if name == "hooks_left_out" => {
            format!("the engine's own commits run no hooks; left out: {}", join_list(data, "hooks"))
        }
        Payload::Note { name, data } if name == "left_by_checks" => format!(
            "checks left files that git does not ignore, and they go into the next commit: {}",
            join_list(data, "files")
        ),
        Payload::Note { name, data } if name == "worktree_put_right" => {
            format!("the worktree was put right: {}", join_list(data, "mended"))
        }
        Payload::Note { name, data } if name == "taken_back" => {
            let tried = data.get("tried").and_then(|tried| tried.as_str()).unwrap_or_default();
            format!("the files are again as they were before; what was tried is in {tried}")
        }
        Payload::Note { name, data } => format!("{name}: {data}"),
        _ => String::new(),
    }
}

/// Describes an event of a run's kind: its name and its short fields. Long and nested fields are only
/// counted, because such an event may have megabytes.
fn describe_kind_event(name: &str, data: &Value) -> String {
    if let Some(text) = describe_workflow_event(name, data) {
        return text;
    }
    let name = name.replace('_', " ");
    let fields = data.as_object().into_iter().flatten();
    let fields: Vec<String> =
        fields.filter_map(|(key, value)| describe_field(key, value)).collect();
    if fields.is_empty() { name } else { format!("{name}: {}", fields.join(", ")) }
}

fn describe_field(key: &str, value: &Value) -> Option<String> {
    let key = key.replace('_', " ");
    match value {
        Value::Null => None,
        Value::String(text) => {
            Some(format!("{key} {}", ui::fit_columns(text.trim(), KIND_FIELD_COLUMNS_MAX)))
        }
        Value::Bool(_) | Value::Number(_) => Some(format!("{key} {value}")),
        Value::Array(items) => Some(format!("{key} ({})", items.len())),
        Value::Object(fields) => Some(format!("{key} {{{}}}", fields.len())),
    }
}

fn fix_word(outcome: FixOutcome) -> &'static str {
    match outcome {
        FixOutcome::Worked => "worked",
        FixOutcome::Failed => "did not work",
        FixOutcome::Unknown => "could not be verified",
    }
}

/// Joins a list in the data of a note.
fn join_list(data: &Value, name: &str) -> String {
    let items = data.get(name).and_then(|list| list.as_array()).into_iter().flatten();
    items.filter_map(|item| item.as_str()).collect::<Vec<_>>().join(", ")
}

pub(crate) fn event_style(payload: &Payload) -> Style {
    match payload {
        Payload::RunCompleted { .. } | Payload::Delivered { .. } => ui::GOOD,
        Payload::StepFinished { outcome, .. } => outcome_style(*outcome),
        Payload::RunFailed { .. } | Payload::RunCancelled { .. } => ui::BAD,
        Payload::TaskMarked { mark, .. } if mark == "failed" => ui::BAD,
        Payload::FixTried { outcome: FixOutcome::Worked, .. } => ui::GOOD,
        Payload::FailureSeen { .. } | Payload::FixTried { .. } => ui::WARN,
        Payload::TaskMarked { mark, .. } if mark == "reviewed" => ui::GOOD,
        Payload::RunWaiting { .. }
        | Payload::RunPaused { .. }
        | Payload::RunDeferred { .. }
        | Payload::PauseRequested { .. }
        | Payload::CancelRequested { .. }
        | Payload::StepInterrupted { .. }
        | Payload::LeaseExpired { .. }
        | Payload::WatchdogSignal { .. }
        | Payload::WatchdogRewrite { .. }
        | Payload::PlanRestored { .. }
        | Payload::PlanFallback { .. }
        | Payload::SkillsLoadFailed { .. }
        | Payload::SkillsTruncated { .. } => ui::WARN,
        Payload::RunResumed { .. } | Payload::RunRetried { .. } | Payload::Steered { .. } => {
            ui::ACCENT
        }
        Payload::LeaseTaken { .. }
        | Payload::LeaseReleased { .. }
        | Payload::WorktreeProviderSelected { .. }
        | Payload::PostmortemStart { .. }
        | Payload::PostmortemEnd { .. }
        | Payload::SkillsDiscovered { .. }
        | Payload::KindEvent { .. }
        | Payload::Note { .. } => ui::FAINT,
        Payload::RunCreated { .. }
        | Payload::RunStarted { .. }
        | Payload::StepStarted { .. }
        | Payload::WorktreeCreated { .. }
        | Payload::WorktreeRemoved { .. }
        | Payload::SkillsSelected { .. }
        | Payload::PlanRead { .. }
        | Payload::TaskMarked { .. }
        | Payload::Learned { .. } => Style::new(),
    }
}

pub(crate) fn outcome_word(outcome: StepOutcome) -> &'static str {
    match outcome {
        StepOutcome::Ok => "ok",
        StepOutcome::Failed => "failed",
        StepOutcome::SentBack => "sent back",
        StepOutcome::Stopped => "stopped",
    }
}

pub(crate) fn outcome_style(outcome: StepOutcome) -> Style {
    match outcome {
        StepOutcome::Ok => ui::GOOD,
        StepOutcome::Failed => ui::BAD,
        StepOutcome::SentBack => ui::WARN,
        StepOutcome::Stopped => ui::FAINT,
    }
}

/// The status of a run as people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunStatusWord {
    Stored(RunStatus),
    /// The process that carried out the run is gone.
    Interrupted,
}

impl RunStatusWord {
    pub(crate) fn new(status: RunStatus, interrupted: bool) -> Self {
        if interrupted { RunStatusWord::Interrupted } else { RunStatusWord::Stored(status) }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            RunStatusWord::Stored(status) => status.as_str(),
            RunStatusWord::Interrupted => "interrupted",
        }
    }

    pub(crate) fn style(self) -> Style {
        match self {
            RunStatusWord::Stored(status) => status_style(status),
            RunStatusWord::Interrupted => ui::WARN,
        }
    }
}

fn status_style(status: RunStatus) -> Style {
    match status {
        RunStatus::Completed => ui::GOOD,
        RunStatus::Failed => ui::BAD,
        RunStatus::Running => ui::ACCENT,
        RunStatus::Waiting | RunStatus::Paused => ui::WARN,
        RunStatus::Queued => Style::new(),
        RunStatus::Cancelled => ui::FAINT,
    }
}

/// Describes a run in one line.
pub(crate) fn status_line(run: &Run, ui: &TerminalUi<'_>) -> String {
    let status = ui.paint(status_style(run.status), run.status);
    let name = ui::fit_columns(&run.name, usize::MAX);
    let line = format!("{} {name} {status}", run.id.short());
    let (reason, _) = reason_parts(run);
    let plain = format!("{} {name} {}: {reason}", run.id.short(), run.status);
    if ui::text_width(&plain) <= ui.columns {
        return append_reason(&line, Some(reason), usize::MAX);
    }
    let room = ui.columns.saturating_sub(2).max(20);
    format!("{line}:\n  {}", ui::wrap_words(reason, room, "  "))
}

/// Splits the reason for a run's status into the reason and the output of a command, which follows
/// after an empty line.
pub(crate) fn reason_parts(run: &Run) -> (&str, &str) {
    let reason = run.reason.as_deref().unwrap_or_default().trim();
    reason.split_once("\n\n").unwrap_or((reason, ""))
}

/// Describes where the work of a run went.
pub(crate) fn describe_delivery(strategy: &str, branch: &str) -> String {
    match strategy {
        "keep" => format!("the work stays on {branch}"),
        "merge" => format!("merged into {branch}"),
        "squash" => format!("merged into {branch} as one commit"),
        "branch" => format!("the work is on the branch {branch}"),
        other => format!("{other}: {branch}"),
    }
}

/// Formats dollars for a table, with fewer digits.
pub(crate) fn short_dollars(usd: f64) -> String {
    match usd {
        0.0 => "$0".to_owned(),
        small if small < 0.1 => ui::format_dollars(usd),
        _ => format!("${usd:.2}"),
    }
}

fn describe_limits(limits: Limits) -> String {
    let mut parts = Vec::new();
    parts.extend(limits.cost_usd.map(|usd| format!("${usd}")));
    parts.extend(limits.tokens.map(|tokens| format!("{} tokens", ui::format_thousands(tokens))));
    parts.extend(limits.time_ms.map(short_time));
    if parts.is_empty() { String::new() } else { format!(", at most {}", parts.join(", ")) }
}

fn append_reason(what: &str, reason: Option<&str>, columns: usize) -> String {
    match reason.map(str::trim).filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("{what}: {}", ui::fit_columns(reason, columns)),
        None => what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Checks the description of an event in the journal's format.
    #[track_caller]
    fn check(event: serde_json::Value, expected: &str) {
        let payload: Payload = serde_json::from_value(event).unwrap();
        assert_eq!(describe_event(&payload), expected);
    }

    #[test]
    fn events_are_told_in_words() {
        let task = json!({ "id": "1", "label": "Fill in" });
        check(
            json!({ "type": "RUN_CREATED", "kind": "plan", "name": "a", "workspace": "/r",
                "priority": 2, "limits": { "cost_usd": 0.5, "time_ms": 60_000 }, "request": {} }),
            "plan \"a\" in /r, priority 2, at most $0.5, 1m",
        );
        check(
            json!({ "type": "STEP_STARTED", "step": 3, "kind": "review", "task": task,
                "attempt": 2, "iteration": 1 }),
            "step 3 review, attempt 2: Fill in",
        );
        check(
            json!({ "type": "STEP_FINISHED", "step": 3, "outcome": "sent_back", "reason": "no\n test",
                "spent": { "time_ms": 65_000, "input_tokens": 1_234, "cost_micro_usd": 20_000 } }),
            "step 3 sent back (1m 05s, 1,234 tokens, $0.0200): no test",
        );
        check(
            json!({ "type": "DELIVERED", "strategy": "squash", "branch": "main",
                "commit": "0123456789abcdef" }),
            "merged into main as one commit at 0123456789",
        );
        check(
            json!({ "type": "SKILLS_SELECTED", "step_kind": "review", "task_label": "x",
                "skills": [], "strategy": "none", "errors": ["bad"] }),
            "no skill was chosen: bad",
        );
        check(json!({ "type": "NOTE", "name": "unknown:MOON", "data": null }), "unknown:MOON");
        check(
            json!({ "type": "KIND_EVENT", "name": "agent_asked", "data": { "agent": "x".repeat(90),
                "calls": 2, "files": ["a", "b"], "none": null, "spent": { "tokens": 1 } } }),
            &format!("agent asked: agent {}…, calls 2, files (2), spent {{1}}", "x".repeat(79)),
        );
    }

    #[test]
    fn what_a_stranger_wrote_cannot_move_the_cursor() {
        check(
            json!({ "type": "STEERED", "by": "me", "note": "a\u{1b}[2Jb\r\nc" }),
            "me: a⟨U+001B⟩[2Jb c",
        );
    }
}
