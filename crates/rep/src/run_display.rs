//! Displays a run: the answer as it streams, one line per tool call, loaded skills with their
//! reasons, and warnings. With `--json`, prints the events themselves, one per line.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use repertoire_agent::event::LoadedBy;
use repertoire_agent::middleware::TurnError;
use repertoire_agent::spending::LimitReached;
use repertoire_agent::{AgentEvent, AgentRunError, AgentRunStatus, EventKind, RunReport};
use repertoire_model::TokenUsage;
use serde_json::Value;

use crate::ui::{self, TerminalUi};

mod waiting_line;

use waiting_line::WaitingLine;

/// Minimum width of a skill's name, so that the reasons are aligned.
const SKILL_COLUMNS: usize = 24;

/// Display options of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunDisplayOptions {
    /// True if the model's thinking is shown.
    pub(crate) thinking: bool,
    /// True if the answer is printed while it streams, as on a terminal. Otherwise it is printed at
    /// the end.
    pub(crate) streamed: bool,
    /// True if a line can be overwritten, because standard error is a terminal.
    pub(crate) rewritten: bool,
}

/// The display of a run.
pub(crate) struct RunDisplay {
    manner: RunDisplayOptions,
    /// True if the cursor is inside a line of the answer.
    mid_line: bool,
    /// True if the cursor is inside a line of thinking.
    mid_thought: bool,
    /// The id of the call whose line can still be overwritten.
    open: Option<String>,
    calls: BTreeMap<String, DisplayedCall>,
    scores: BTreeMap<String, f64>,
    /// Degradations that were already reported.
    degraded: BTreeSet<String>,
    waiting: WaitingLine,
    spent: RunUsageTotal,
}

/// The total usage of the runs so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunUsageTotal {
    usage: TokenUsage,
    /// `None` if a price is unknown.
    cost_usd: Option<f64>,
    runs: u32,
    turns: u32,
}

struct DisplayedCall {
    tool: String,
    subject: String,
    arguments: Value,
    is_denied: bool,
}

impl RunDisplay {
    pub(crate) fn new(manner: RunDisplayOptions) -> Self {
        RunDisplay {
            manner,
            mid_line: false,
            mid_thought: false,
            open: None,
            calls: BTreeMap::new(),
            scores: BTreeMap::new(),
            degraded: BTreeSet::new(),
            waiting: WaitingLine::default(),
            spent: RunUsageTotal::default(),
        }
    }

    pub(crate) fn show_event(
        &mut self,
        event: &AgentEvent,
        ui: &mut TerminalUi<'_>,
    ) -> std::io::Result<()> {
        if ui.json {
            serde_json::to_writer(&mut *ui.out, event)?;
            writeln!(ui.out)?;
            return ui.out.flush();
        }
        let is_hidden = matches!(event.kind, EventKind::Thinking { .. }) && !self.manner.thinking;
        if self.manner.rewritten && !is_hidden {
            self.waiting.clear(ui)?;
            self.waiting.record_event(&event.kind, Instant::now());
        }
        let indent = "  ".repeat(event.depth as usize);
        match &event.kind {
            EventKind::Text { text } if event.depth == 0 => self.print_text(text, ui),
            EventKind::Thinking { text } if self.manner.thinking => self.print_thinking(text, ui),
            EventKind::SkillsSelected { picks, .. } => {
                self.scores.extend(picks.iter().map(|pick| (pick.skill.clone(), pick.score)));
                Ok(())
            }
            EventKind::RunFinished { usage, cost_usd, iterations, .. } if event.depth == 0 => {
                self.spent.add(usage, *cost_usd, *iterations);
                Ok(())
            }
            // The run ends with this limit, and its failure reports it.
            EventKind::Limit { limit, .. } if event.depth == 0 && limit != "allowance" => Ok(()),
            // A degradation lasts for the whole run, so report it once.
            EventKind::Degraded { message, .. } if !self.degraded.insert(message.clone()) => Ok(()),
            EventKind::ToolCall { id, tool, subject, arguments } => {
                let call = DisplayedCall {
                    tool: tool.clone(),
                    subject: subject.clone(),
                    arguments: arguments.clone(),
                    is_denied: false,
                };
                self.print_call(id, call, &indent, ui)
            }
            EventKind::ToolResult { id, is_error, summary, duration_ms, .. } => {
                let ended =
                    EndedToolCall { is_error: *is_error, summary, duration_ms: *duration_ms };
                self.print_result(id, &ended, &indent, ui)
            }
            EventKind::Denied { tool, subject, reason } => {
                self.print_denied(tool, subject, reason, &indent, ui)
            }
            other => match self.format_event(other, ui) {
                Some(line) => self.print_line(&format!("{indent}{line}"), ui),
                None => Ok(()),
            },
        }
    }

    /// Formats the events that need only one line.
    fn format_event(&self, kind: &EventKind, ui: &TerminalUi<'_>) -> Option<String> {
        let faint = |text: String| Some(ui.paint_err(ui::FAINT, one_line(&text, ui)));
        let warning = |text: String| Some(ui.paint_err(ui::WARN, one_line(&text, ui)));
        match kind {
            EventKind::SkillLoaded { skill, by, reason, already, trusted, .. } => {
                Some(self.format_skill(skill, *by, reason, *already, *trusted, ui))
            }
            EventKind::SkillTruncated { skill, max_chars } => {
                faint(format!("  {skill} was cut to {max_chars} characters"))
            }
            EventKind::SkillFailed { skill, message } => {
                warning(format!("! {skill} was not loaded: {message}"))
            }
            EventKind::Retry { what, reason, attempt, after_ms } => {
                let after = ui::format_time(*after_ms);
                faint(format!("↻ {what} again in {after} (attempt {attempt} failed: {reason})"))
            }
            EventKind::Paused { reason, .. } => faint(format!("⏸ waiting: {reason}")),
            EventKind::Compacted { tokens_before, tokens_after, messages, .. } => {
                let (before, after) =
                    (ui::format_thousands(*tokens_before), ui::format_thousands(*tokens_after));
                faint(format!(
                    "✂ the conversation was made shorter: {before} to {after} tokens, {messages} messages"
                ))
            }
            EventKind::Delegated { to, task, .. } => {
                let task = ui::fit_columns(task, 60);
                Some(format!("→ {}  {task}", ui.paint_err(ui::ACCENT, ui::fit_columns(to, 40))))
            }
            EventKind::DelegationEnded { to, status, .. } => {
                faint(format!("← {to} {}", ended_word(*status)))
            }
            EventKind::Todos { items } => {
                use repertoire_agent::event::TodoStatus;
                let done = items.iter().filter(|item| item.status == TodoStatus::Completed).count();
                let now = items.iter().find(|item| item.status == TodoStatus::InProgress);
                let now = now.map(|item| format!(": {}", item.content)).unwrap_or_default();
                faint(format!("☐ {done} of {} done{now}", items.len()))
            }
            EventKind::Limit { limit, message } => warning(format!("! {limit}: {message}")),
            EventKind::Degraded { what, message } => faint(format!("! {what}: {message}")),
            EventKind::Warning { message } => warning(format!("! {message}")),
            _ => None,
        }
    }

    fn format_skill(
        &self,
        skill: &str,
        by: LoadedBy,
        reason: &str,
        already: bool,
        trusted: bool,
        ui: &TerminalUi<'_>,
    ) -> String {
        let name = ui::pad_columns(&ui::fit_columns(skill, 40), SKILL_COLUMNS);
        if already {
            return ui.paint_err(ui::FAINT, format!("= {name}  already in the conversation"));
        }
        let score = match (by, self.scores.get(skill)) {
            (LoadedBy::AutoTrigger, Some(score)) => format!("{score:.2}  "),
            _ => String::new(),
        };
        let doubt = if trusted { "" } else { "  (not trusted)" };
        let room = ui.columns.saturating_sub(ui::text_width(&name) + 12).max(20);
        let reason = ui.paint_err(ui::FAINT, ui::fit_columns(reason, room));
        format!("{} {score}{reason}{doubt}", ui.paint_err(ui::GOOD, format!("+ {name} ")))
    }

    fn print_text(&mut self, text: &str, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        if !self.manner.streamed || text.is_empty() {
            return Ok(());
        }
        self.close_message(ui)?;
        write!(ui.out, "{}", ui::printable_lines(text))?;
        self.mid_line = !text.ends_with('\n');
        ui.out.flush()
    }

    fn print_thinking(&mut self, text: &str, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        self.close_call(ui)?;
        self.end_text(ui)?;
        let shown = ui.paint_err(ui::FAINT, ui::printable_lines(text));
        write!(ui.err, "{shown}")?;
        self.mid_thought = !text.ends_with('\n');
        ui.err.flush()
    }

    fn print_call(
        &mut self,
        id: &str,
        call: DisplayedCall,
        indent: &str,
        ui: &mut TerminalUi<'_>,
    ) -> std::io::Result<()> {
        let line = format!("{indent}{}", call.format_line(indent, ui));
        self.calls.insert(id.to_owned(), call);
        if self.manner.rewritten {
            self.close_line(ui)?;
            write!(ui.err, "{line}")?;
            ui.err.flush()?;
            self.open = Some(id.to_owned());
        }
        Ok(())
    }

    fn print_result(
        &mut self,
        id: &str,
        ended: &EndedToolCall<'_>,
        indent: &str,
        ui: &mut TerminalUi<'_>,
    ) -> std::io::Result<()> {
        let Some(call) = self.calls.remove(id).filter(|call| !call.is_denied) else {
            return Ok(());
        };
        let time = ui.paint_err(ui::FAINT, ui::format_time(ended.duration_ms));
        let mark = if ended.is_error {
            ui.paint_err(ui::BAD, "✗")
        } else {
            ui.paint_err(ui::GOOD, "✓")
        };
        let line = format!("{indent}{}  {mark} {time}", call.format_line(indent, ui));
        self.overwrite_line(id, &line, ui)?;
        match ended.summary.lines().find(|line| !line.trim().is_empty()) {
            Some(first) if ended.is_error => {
                let first =
                    ui::fit_columns(first, ui.columns.saturating_sub(indent.len() + 4).max(20));
                self.print_line(&format!("{indent}  {}", ui.paint_err(ui::BAD, first)), ui)
            }
            _ => Ok(()),
        }
    }

    fn print_denied(
        &mut self,
        tool: &str,
        subject: &str,
        reason: &str,
        indent: &str,
        ui: &mut TerminalUi<'_>,
    ) -> std::io::Result<()> {
        let same = |(_, call): &(&String, &mut DisplayedCall)| {
            call.tool == tool && call.subject == subject
        };
        let known = self.calls.iter_mut().find(same);
        let id = known.map(|(id, call)| {
            call.is_denied = true;
            id.clone()
        });
        let call = DisplayedCall {
            tool: tool.to_owned(),
            subject: subject.to_owned(),
            arguments: Value::Null,
            is_denied: true,
        };
        let mark = ui.paint_err(ui::BAD, "✗ not allowed");
        let line = format!("{indent}{}  {mark}", call.format_line(indent, ui));
        self.overwrite_line(&id.unwrap_or_default(), &line, ui)?;
        let room = ui.columns.saturating_sub(indent.len() + 4).max(20);
        let reason = ui::wrap_words(reason, room, &format!("{indent}  "));
        self.print_line(&format!("{indent}  {}", ui.paint_err(ui::FAINT, reason)), ui)
    }

    /// Overwrites the line of a call if it is still the last line, or prints a new one.
    fn overwrite_line(
        &mut self,
        id: &str,
        line: &str,
        ui: &mut TerminalUi<'_>,
    ) -> std::io::Result<()> {
        if self.open.as_deref() == Some(id) {
            self.open = None;
            return writeln!(ui.err, "\r\u{1b}[K{line}");
        }
        self.print_line(line, ui)
    }

    /// Prints a line to standard error.
    fn print_line(&mut self, line: &str, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        self.close_line(ui)?;
        writeln!(ui.err, "{line}")
    }

    /// Prints a faint line to standard error.
    pub(crate) fn print_note(
        &mut self,
        text: &str,
        ui: &mut TerminalUi<'_>,
    ) -> std::io::Result<()> {
        let line = ui.paint_err(ui::FAINT, one_line(text, ui));
        self.print_line(&line, ui)
    }

    /// Ends a line that is still open.
    pub(crate) fn close_line(&mut self, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        self.close_message(ui)?;
        self.end_text(ui)
    }

    fn close_message(&mut self, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        self.close_call(ui)?;
        if std::mem::take(&mut self.mid_thought) { writeln!(ui.err) } else { Ok(()) }
    }

    fn close_call(&mut self, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        self.waiting.clear(ui)?;
        match self.open.take() {
            Some(_) => writeln!(ui.err),
            None => Ok(()),
        }
    }

    fn end_text(&mut self, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        if std::mem::take(&mut self.mid_line) {
            writeln!(ui.out)?;
            ui.out.flush()?;
        }
        Ok(())
    }

    pub(crate) fn spent(&self) -> RunUsageTotal {
        self.spent
    }

    /// Shows a line about waiting for a model that has been silent for long.
    pub(crate) fn tick(&mut self, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        let is_clean = !self.mid_line && !self.mid_thought && self.open.is_none();
        if self.manner.rewritten && is_clean && !ui.json {
            self.waiting.show_if_due(Instant::now(), ui)
        } else {
            Ok(())
        }
    }

    /// Returns the arguments of a pending call. `None` if several calls match and their arguments
    /// differ.
    pub(crate) fn arguments_of_call(&self, tool: &str, subject: &str) -> Option<&Value> {
        let same =
            |call: &&DisplayedCall| call.tool == tool && call.subject == subject && !call.is_denied;
        let mut found = self.calls.values().filter(same).map(|call| &call.arguments);
        let first = found.next()?;
        found.all(|other| other == first).then_some(first)
    }

    /// Prints the end of a run: the answer, unless it was streamed, and the usage.
    pub(crate) fn print_end(
        &mut self,
        report: &RunReport,
        ui: &mut TerminalUi<'_>,
    ) -> std::io::Result<()> {
        if ui.json {
            return Ok(());
        }
        self.close_line(ui)?;
        if !self.manner.streamed && !report.text.is_empty() {
            writeln!(ui.out, "{}", report.text.trim_end_matches('\n'))?;
            ui.out.flush()?;
        }
        let line = ui.paint_err(ui::FAINT, format_usage(report));
        writeln!(ui.err, "{line}")
    }
}

struct EndedToolCall<'a> {
    is_error: bool,
    summary: &'a str,
    duration_ms: u64,
}

impl DisplayedCall {
    fn format_line(&self, indent: &str, ui: &TerminalUi<'_>) -> String {
        let tool = ui::fit_columns(&self.tool, 40);
        // Leave room for the mark and the time, so that the overwritten line does not wrap.
        let room = ui.columns.saturating_sub(indent.len() + ui::text_width(&tool) + 20).max(20);
        let tool = ui.paint_err(ui::ACCENT, tool);
        if self.subject.is_empty() {
            format!("⏺ {tool}")
        } else {
            format!("⏺ {tool}  {}", ui::fit_columns(&self.subject, room))
        }
    }
}

fn one_line(text: &str, ui: &TerminalUi<'_>) -> String {
    // Long enough not to cut off advice; the terminal wraps it.
    ui::fit_columns(text, ui.columns.saturating_mul(4).max(200))
}

fn ended_word(status: AgentRunStatus) -> &'static str {
    match status {
        AgentRunStatus::Done => "is done",
        AgentRunStatus::Failed => "failed",
        AgentRunStatus::Limited => "came to a limit",
        AgentRunStatus::Cancelled => "was stopped",
        AgentRunStatus::Paused => "waits for an allowance",
    }
}

impl RunUsageTotal {
    fn add(&mut self, usage: &TokenUsage, cost_usd: Option<f64>, turns: u32) {
        self.usage.input_tokens += usage.input_tokens;
        self.usage.output_tokens += usage.output_tokens;
        self.usage.cache_read_tokens += usage.cache_read_tokens;
        self.usage.cache_write_tokens += usage.cache_write_tokens;
        let before = if self.runs == 0 { Some(0.0) } else { self.cost_usd };
        self.cost_usd = before.zip(cost_usd).map(|(before, cost)| before + cost);
        self.runs += 1;
        self.turns += turns;
    }

    /// Cost, tokens and turns as text. Empty if nothing ran.
    pub(crate) fn describe_parts(&self) -> Vec<String> {
        if self.runs == 0 {
            return Vec::new();
        }
        let usage = &self.usage;
        let read = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens;
        let (read, written) =
            (ui::format_thousands(read), ui::format_thousands(usage.output_tokens));
        vec![
            self.cost_usd.map_or_else(|| "cost not known".to_owned(), ui::format_dollars),
            format!("{read} tokens in, {written} out"),
            ui::format_count(self.turns as usize, "turn"),
        ]
    }
}

/// Formats the error of a run.
pub(crate) fn describe_error(error: &AgentRunError) -> String {
    match error {
        // Print the limit exactly as configured, however small.
        AgentRunError::Turn(TurnError::Limit(LimitReached::Cost { used, max })) => {
            format!(
                "{} was spent, and ${max} is allowed (`limits.cost`)",
                ui::format_dollars(*used)
            )
        }
        error => error.to_string(),
    }
}

/// Formats the usage of a run on one line.
pub(crate) fn format_usage(report: &RunReport) -> String {
    let mut spent = RunUsageTotal::default();
    spent.add(&report.usage, report.cost_usd, report.iterations);
    let mut parts = spent.describe_parts();
    parts.push(ui::format_time(u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX)));
    if !report.denials.is_empty() {
        parts.push(format!("{} not allowed", ui::format_count(report.denials.len(), "call")));
    }
    parts.push(format!("rep run --resume {}", short(&report.conversation)));
    parts.join(" · ")
}

/// Shortens an id to the part that encodes its time in milliseconds.
pub(crate) fn short(id: &str) -> &str {
    id.get(..13).unwrap_or(id)
}
