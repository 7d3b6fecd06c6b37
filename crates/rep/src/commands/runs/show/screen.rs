//! Prints the output of `rep runs show`.

use anstyle::Style;
use camino::Utf8Path;
use repertoire::runs::short_oid;
use repertoire_flow::driver::WorkflowRunRequest;
use repertoire_journal::run::{Run, RunStopRequest, Step, StepStatus};
use repertoire_journal::{Event, RunKind};
use repertoire_plan::document::TaskMark;
use repertoire_review::run_event::ReviewProgress;
use serde::Deserialize as _;

use super::mark_of;
use crate::cli::CliContext;
use crate::commands::runs::now_ms;
use crate::runs_text::{
    LocalClock, RunStatusWord, describe_current_step, describe_delivery, describe_event,
    event_style, outcome_style, outcome_word, reason_parts, short_dollars, short_time,
};
use crate::schema::runs::{RunFile, RunJson, RunTask};
use crate::ui::{self, TerminalUi};

/// Maximum number of steps shown without `--all`. The latest are kept.
const STEPS_SHOWN: usize = 20;
/// Maximum number of events shown without `--all`. The latest are kept.
const EVENTS_SHOWN: usize = 20;
/// Maximum number of tasks shown without `--all`.
const TASKS_SHOWN: usize = 40;
/// Maximum width of a workflow's parameter.
const PARAMETER_COLUMNS_MAX: usize = 200;
/// Width of the labels.
const LABEL: usize = 10;

/// Prints a run with its events. Without `all`, long lists are cut to fit a screen.
pub(crate) fn print_run(
    ctx: &CliContext<'_>,
    (shown, events): (&RunJson, &[Event]),
    all: bool,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let clock = LocalClock::local(now_ms());
    let screen = RunScreen { ctx, shown, events, all, clock };
    screen.print_head(ui)?;
    screen.print_facts(ui)?;
    screen.print_budget(ui)?;
    screen.print_tasks(ui)?;
    screen.print_step_table(ui)?;
    screen.print_watchdog(ui)?;
    screen.print_events(ui)?;
    print_list("To be told next", &shown.steering, ui)?;
    print_list("Learnt", &shown.learnings, ui)?;
    screen.print_files(ui)?;
    screen.print_commands(ui)
}

struct RunScreen<'a> {
    ctx: &'a CliContext<'a>,
    shown: &'a RunJson,
    events: &'a [Event],
    all: bool,
    clock: LocalClock,
}

impl RunScreen<'_> {
    fn run(&self) -> &Run {
        &self.shown.run
    }

    fn print_head(&self, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        let run = self.run();
        let id = run.id.as_str();
        let room = ui.columns.saturating_sub(ui::text_width(id) + 2);
        let name = if room >= 16 {
            ui::fit_columns(&run.name, room)
        } else {
            ui::fit_columns(&run.name, ui.columns)
        };
        let gap = if room >= 16 { "  " } else { "\n" };
        writeln!(ui.out, "{}{gap}{}", ui.paint(ui::STRONG, name), ui.paint(ui::FAINT, id))?;
        let word = RunStatusWord::new(run.status, self.shown.interrupted);
        let status = ui.paint(word.style(), word.as_str());
        let wish = match run.wish {
            Some(RunStopRequest::Pause) => ", will pause after this step",
            Some(RunStopRequest::Cancel) => ", is being ended",
            None => "",
        };
        let (reason, output) = reason_parts(run);
        if reason.is_empty() {
            writeln!(ui.out, "  {status}{wish}")?;
        } else {
            let word = word.as_str().len() + wish.len();
            let text = format!("{}: {reason}", "x".repeat(word));
            let text = ui::wrap_words(&text, ui.columns.saturating_sub(2).max(20), "  ");
            let rest = text.get(word..).unwrap_or_default();
            writeln!(ui.out, "  {status}{wish}{rest}")?;
        }
        let output = ui::printable_lines(output);
        output.lines().try_for_each(|line| writeln!(ui.out, "    {}", ui.paint(ui::FAINT, line)))
    }

    fn print_workflow_facts(&self, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        if let Some(step) = describe_current_step(self.events) {
            print_fact("step", &ui::fit_columns(&step, PARAMETER_COLUMNS_MAX), ui)?;
        }
        let request = WorkflowRunRequest::deserialize(&self.run().request).unwrap_or_default();
        for (name, value) in &request.parameters {
            let text = format!("{name} = {value}");
            print_fact("parameter", &ui::fit_columns(&text, PARAMETER_COLUMNS_MAX), ui)?;
        }
        Ok(())
    }

    fn print_facts(&self, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        let run = self.run();
        writeln!(ui.out)?;
        let kind = RunKind::parse(&run.kind);
        if kind != Some(RunKind::Plan) {
            print_fact("kind", &run.kind, ui)?;
        }
        if kind == Some(RunKind::Review) {
            print_fact("progress", &describe_review(&ReviewProgress::replay(self.events)), ui)?;
        }
        if kind == Some(RunKind::Workflow) {
            self.print_workflow_facts(ui)?;
        }
        print_fact("workspace", &self.shorten_path(&run.workspace), ui)?;
        if let Some(worktree) = &run.worktree {
            let from = format!("{} at {}", worktree.base_branch, short_oid(&worktree.base));
            print_fact("branch", &format!("{} from {from}", worktree.branch), ui)?;
            let gone = if Utf8Path::new(&worktree.path).exists() { "" } else { " (gone)" };
            print_fact("worktree", &format!("{}{gone}", self.shorten_path(&worktree.path)), ui)?;
        }
        if let Some(delivered) = &self.shown.delivered {
            let commit = delivered.commit.as_deref().map(|oid| format!(" at {}", short_oid(oid)));
            let what = describe_delivery(&delivered.strategy, &delivered.branch);
            print_fact("delivered", &format!("{what}{}", commit.unwrap_or_default()), ui)?;
        }
        if let Some(worker) = &run.worker {
            let until = self.shown.lease_until_ms.map(|until_ms| {
                format!(", to be heard of by {}", self.clock.format_brief(until_ms))
            });
            print_fact("worker", &format!("{worker}{}", until.unwrap_or_default()), ui)?;
        }
        let labels: Vec<&str> = run.labels.iter().map(String::as_str).collect();
        if !labels.is_empty() && !run.status.is_over() {
            print_fact("needs", &format!("a worker with {}", labels.join(", ")), ui)?;
        }
        if run.not_before_ms > 0 {
            print_fact(
                "goes on",
                &format!("by itself at {}", self.clock.format_full(run.not_before_ms)),
                ui,
            )?;
        }
        let mut times = format!("made {}", self.clock.format_full(run.created_ms));
        if let Some(ended_ms) = run.ended_ms {
            times.push_str(&format!(", ended {}", self.clock.format_full(ended_ms)));
        }
        print_fact("time", &times, ui)
    }

    fn print_budget(&self, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        let (spent, limits) = (&self.run().spent, &self.run().limits);
        let partial = if spent.unpriced { " and what has no price" } else { "" };
        let cost = format!("{}{partial}", ui::format_dollars(spent.cost_usd()));
        let cost_max = limits.cost_usd.map(|max| (max, format!("${max}")));
        print_gauge("cost", spent.cost_usd(), &cost, cost_max, ui)?;
        let tokens = ui::format_thousands(spent.total_tokens());
        let tokens_max = limits.tokens.map(|max| (max as f64, ui::format_thousands(max)));
        print_gauge("tokens", spent.total_tokens() as f64, &tokens, tokens_max, ui)?;
        let time_max = limits.time_ms.map(|max| (max as f64, short_time(max)));
        print_gauge("at work", spent.time_ms as f64, &short_time(spent.time_ms), time_max, ui)
    }

    fn print_tasks(&self, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        let tasks = &self.shown.tasks;
        if let Some(why) = &self.shown.fallback {
            print_heading("Tasks", "", ui)?;
            let text = format!("The agent chooses: {why}.");
            let text = ui::wrap_words(&text, ui.columns.saturating_sub(2), "  ");
            writeln!(ui.out, "  {}", ui.paint(ui::WARN, text))?;
        }
        if tasks.is_empty() {
            return Ok(());
        }
        let done = self.shown.done.map(|tasks| format!("{} of {} done", tasks.done, tasks.all));
        print_heading("Tasks", &done.unwrap_or_default(), ui)?;
        let at = self.shown.steps.last().filter(|step| step.status == StepStatus::Running);
        let at = at.and_then(|step| step.task.as_ref()).map(|task| task.id.as_str());
        let ids = tasks.iter().map(|task| ui::text_width(&task.id)).max().unwrap_or(0).min(12);
        let shown = if self.all { tasks.len() } else { TASKS_SHOWN };
        for task in tasks.iter().take(shown) {
            print_task(task, at == Some(&task.id), ids, ui)?;
        }
        print_more(tasks.len().saturating_sub(shown), ui)
    }

    fn print_step_table(&self, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        let steps = &self.shown.steps;
        if steps.is_empty() {
            return Ok(());
        }
        print_heading("Steps", "", ui)?;
        let skipped = if self.all { 0 } else { steps.len().saturating_sub(STEPS_SHOWN) };
        if skipped > 0 {
            let line = format!("  {} before these, see --all", ui::format_count(skipped, "step"));
            writeln!(ui.out, "{}", ui.paint(ui::FAINT, line))?;
        }
        let rows: Vec<StepRow<'_>> =
            steps.iter().skip(skipped).map(|step| self.step_row(step)).collect();
        print_steps(&rows, ui)
    }

    fn step_row<'a>(&self, step: &'a Step) -> StepRow<'a> {
        let (outcome, style) = match (step.outcome, step.status) {
            (Some(outcome), _) => (outcome_word(outcome), outcome_style(outcome)),
            (None, StepStatus::Running) => ("under way", ui::ACCENT),
            (None, StepStatus::Interrupted) => ("interrupted", ui::WARN),
            (None, StepStatus::Finished) => ("ended", Style::new()),
        };
        let is_open = step.status == StepStatus::Running;
        let time_ms = match (is_open, step.ended_ms, step.spent.time_ms) {
            (true, _, _) => now_ms().saturating_sub(step.started_ms),
            (false, Some(ended_ms), 0) => ended_ms.saturating_sub(step.started_ms),
            (false, _, time_ms) => time_ms,
        };
        let tokens = step.spent.total_tokens();
        let cost = step.spent.cost_usd();
        StepRow {
            step,
            outcome,
            style,
            cells: [
                step.number.to_string(),
                ui::fit_columns(&step.kind, 16),
                step.task.as_ref().map(|task| ui::fit_columns(&task.id, 12)).unwrap_or_default(),
                step.attempt.to_string(),
                outcome.to_owned(),
                short_time(time_ms),
                if tokens == 0 { "-".to_owned() } else { ui::format_thousands(tokens) },
                if cost == 0.0 { "-".to_owned() } else { short_dollars(cost) },
            ],
        }
    }

    fn print_watchdog(&self, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        let signals = self.shown.watchdog.iter().map(|seen| {
            let rewritten = if seen.rewritten { "; the next prompt began otherwise" } else { "" };
            format!("after step {}: {}: {}{rewritten}", seen.step, seen.signal, seen.evidence)
        });
        print_list("Watchdog", &signals.collect::<Vec<_>>(), ui)
    }

    /// Prints the events of an attended run. For runs of workers, the steps and tasks say more.
    fn print_events(&self, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        if !self.run().attended || self.events.is_empty() {
            return Ok(());
        }
        print_heading("What happened", "", ui)?;
        let skipped = if self.all { 0 } else { self.events.len().saturating_sub(EVENTS_SHOWN) };
        if skipped > 0 {
            let line = format!("  {} before these, see --all", ui::format_count(skipped, "event"));
            writeln!(ui.out, "{}", ui.paint(ui::FAINT, line))?;
        }
        for event in self.events.iter().skip(skipped) {
            let at = self.clock.format_brief(event.at_ms);
            let room = ui.columns.saturating_sub(ui::text_width(&at) + 4).max(20);
            let text = ui::fit_columns(&describe_event(&event.payload), room);
            let text = ui.paint(event_style(&event.payload), text);
            writeln!(ui.out, "  {}  {text}", ui.paint(ui::FAINT, at))?;
        }
        Ok(())
    }

    fn print_files(&self, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        let files = &self.shown.files;
        let Some(folder) = files.first().and_then(|file| Utf8Path::new(&file.path).parent()) else {
            return Ok(());
        };
        print_heading("Files", &self.shorten_path(folder.as_str()), ui)?;
        let (of_steps, others): (Vec<&RunFile>, Vec<&RunFile>) =
            files.iter().partition(|file| is_step_file(file) && !self.all);
        let names = others.iter().map(|file| ui::text_width(name_of(file))).max().unwrap_or(0);
        for file in others {
            let about = match name_of(file) {
                "report.md" => "what happened, for people",
                "changes.diff" => "what it changed",
                "summary.json" => "the same for programs",
                "report.tsv" => "the steps, for spreadsheets",
                "review.json" => "the record of the review",
                "change.json" => "what was reviewed",
                _ => "",
            };
            let size = ui.paint(ui::FAINT, format!("{:>9}", format_bytes(file.bytes)));
            let name = ui::pad_columns(&ui::fit_columns(name_of(file), 60), names);
            let line = format!("  {name}  {size}  {}", ui.paint(ui::FAINT, about));
            writeln!(ui.out, "{}", if about.is_empty() { line.trim_end() } else { &line })?;
        }
        if !of_steps.is_empty() {
            let prompts = of_steps.iter().filter(|file| file.path.ends_with(".md")).count();
            let logs = of_steps.len() - prompts;
            let line = format!(
                "  and {}, {}: NNN-KIND.prompt.md, NNN-KIND.jsonl",
                ui::format_count(prompts, "prompt"),
                ui::format_count(logs, "log")
            );
            writeln!(ui.out, "{}", ui.paint(ui::FAINT, line))?;
        }
        Ok(())
    }

    fn print_commands(&self, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        let commands = &self.shown.commands;
        if commands.is_empty() {
            return Ok(());
        }
        print_heading("What can be done", "", ui)?;
        let widest = commands.iter().map(|one| ui::text_width(&one.command)).max().unwrap_or(0);
        for one in commands {
            let command = ui.paint(ui::ACCENT, ui::pad_columns(&one.command, widest));
            let about = ui::fit_columns(&one.about, ui.columns.saturating_sub(widest + 4).max(12));
            writeln!(ui.out, "  {command}  {}", ui.paint(ui::FAINT, about))?;
        }
        Ok(())
    }

    fn shorten_path(&self, path: &str) -> String {
        self.ctx.config.places().shorten_path(path.into())
    }
}

fn describe_review(progress: &ReviewProgress) -> String {
    let phase = progress.phase.map(|phase| format!(", in phase {phase}")).unwrap_or_default();
    let phase = if progress.result.is_some() { String::new() } else { phase };
    format!(
        "{} of {} answered{phase}; {} of {} accepted",
        progress.ended,
        ui::format_count(progress.asked as usize, "call"),
        progress.admitted,
        ui::format_count(progress.answered as usize, "answer")
    )
}

struct StepRow<'a> {
    step: &'a Step,
    outcome: &'static str,
    style: Style,
    /// Number, kind, task, attempt, outcome, time, tokens, cost.
    cells: [String; 8],
}

const STEP_HEADS: [&str; 8] = ["#", "kind", "task", "try", "outcome", "time", "tokens", "cost"];
/// True for the columns that are right-aligned: the figures.
const RIGHT: [bool; 8] = [true, false, false, true, false, true, true, true];
const OUTCOME: usize = 4;
/// Indexes of the columns dropped first on a narrow screen: tokens, attempt, cost.
const DROPPED: [usize; 3] = [6, 3, 7];
/// A reason with less room than this gets its own line.
const REASON_COLUMNS_MIN: usize = 24;

fn print_steps(rows: &[StepRow<'_>], ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let mut widths: [usize; 8] = std::array::from_fn(|at| {
        let cells = rows.iter().map(|row| ui::text_width(&row.cells[at]));
        cells.chain([STEP_HEADS[at].len()]).max().unwrap_or(0)
    });
    for dropped in DROPPED {
        if columns_used(&widths) > ui.columns {
            widths[dropped] = 0;
        }
    }
    let room = ui.columns.saturating_sub(columns_used(&widths) + 2);
    let cell = |at: usize, text: &str| {
        let blank = " ".repeat(widths[at].saturating_sub(ui::text_width(text)));
        if RIGHT[at] { format!("{blank}{text}") } else { format!("{text}{blank}") }
    };
    let shown = || (0..8).filter(|at| widths[*at] > 0);
    let head: Vec<String> = shown().map(|at| cell(at, STEP_HEADS[at])).collect();
    writeln!(ui.out, "{}", ui.paint(ui::FAINT, format!("  {}", head.join("  "))))?;
    for row in rows {
        let cells: Vec<String> = shown()
            .map(|at| match at {
                OUTCOME => ui.paint(row.style, cell(at, row.outcome)),
                at => cell(at, &row.cells[at]),
            })
            .collect();
        let line = format!("  {}", cells.join("  "));
        let reason = row.step.reason.as_deref().unwrap_or_default();
        match (reason.is_empty(), room >= REASON_COLUMNS_MIN) {
            (true, _) => writeln!(ui.out, "{line}")?,
            (false, true) => {
                writeln!(ui.out, "{line}  {}", ui.paint(ui::FAINT, ui::fit_columns(reason, room)))?;
            }
            (false, false) => {
                let indent = " ".repeat(2 + widths[0] + 2);
                let room = ui.columns.saturating_sub(indent.len()).max(20);
                writeln!(ui.out, "{line}")?;
                writeln!(ui.out, "{indent}{}", ui.paint(ui::FAINT, ui::fit_columns(reason, room)))?;
            }
        }
    }
    Ok(())
}

fn columns_used(widths: &[usize; 8]) -> usize {
    widths.iter().filter(|width| **width > 0).map(|width| width + 2).sum()
}

fn print_task(
    task: &RunTask,
    is_under_way: bool,
    ids: usize,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let mark = mark_of(&task.mark);
    let style = match mark {
        TaskMark::Open => Style::new(),
        TaskMark::Blocked => ui::WARN,
        TaskMark::Implemented => ui::ACCENT,
        TaskMark::Reviewed => ui::GOOD,
        TaskMark::ManualQa => ui::FAINT,
        TaskMark::Failed => ui::BAD,
    };
    let arrow = if is_under_way { ui.paint(ui::GOOD, "→ ") } else { "  ".to_owned() };
    let tries = match task.attempts {
        0 | 1 => String::new(),
        attempts => format!("  {attempts} attempts"),
    };
    let room = ui.columns.saturating_sub(2 + 4 + 1 + ids + 2 + tries.len()).max(10);
    let label = ui::fit_columns(&task.label, room);
    let symbol = ui.paint(style, ui::pad_columns(mark.symbol(), 4));
    let id = ui.paint(ui::FAINT, ui::pad_columns(&ui::fit_columns(&task.id, ids), ids));
    let tries = if tries.is_empty() { tries } else { ui.paint(ui::FAINT, tries) };
    writeln!(ui.out, "{arrow}{symbol} {id}  {label}{tries}")
}

fn print_fact(name: &str, text: &str, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let indent = " ".repeat(2 + LABEL + 1);
    let text = ui::wrap_words(text, ui.columns.saturating_sub(indent.len()).max(20), &indent);
    writeln!(ui.out, "  {} {text}", ui.paint(ui::FAINT, ui::pad_columns(name, LABEL)))
}

/// Prints an amount used, with a bar if there is a limit.
fn print_gauge(
    name: &str,
    used: f64,
    text: &str,
    max: Option<(f64, String)>,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let Some((max, of)) = max else { return print_fact(name, text, ui) };
    const COLUMNS: usize = 20;
    let share = if max > 0.0 { (used / max).clamp(0.0, 1.0) } else { 1.0 };
    // Full only at the limit, and never empty if something was used.
    let full = if share >= 1.0 { COLUMNS } else { (share * COLUMNS as f64).ceil() as usize };
    let full = if share < 1.0 { full.min(COLUMNS - 1) } else { full };
    let style = match share {
        share if share >= 1.0 => ui::BAD,
        share if share >= 0.8 => ui::WARN,
        _ => ui::GOOD,
    };
    let bar = ui.paint(style, "█".repeat(full));
    let rest = ui.paint(ui::FAINT, "░".repeat(COLUMNS - full));
    let name = ui.paint(ui::FAINT, ui::pad_columns(name, LABEL));
    writeln!(ui.out, "  {name} {bar}{rest}  {text} of {of}")
}

fn print_heading(title: &str, note: &str, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let note =
        if note.is_empty() { String::new() } else { format!("  {}", ui.paint(ui::FAINT, note)) };
    writeln!(ui.out, "\n{}{note}", ui.paint(ui::STRONG, title))
}

fn print_list(title: &str, texts: &[String], ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    if texts.is_empty() {
        return Ok(());
    }
    print_heading(title, "", ui)?;
    for text in texts {
        let text = ui::wrap_words(text, ui.columns.saturating_sub(4).max(20), "    ");
        writeln!(ui.out, "  - {text}")?;
    }
    Ok(())
}

fn print_more(left: usize, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    match left {
        0 => Ok(()),
        left => writeln!(ui.out, "{}", ui.paint(ui::FAINT, format!("  {left} more, see --all"))),
    }
}

/// Returns true for the prompts and logs of single steps.
fn is_step_file(file: &RunFile) -> bool {
    let name = name_of(file);
    name.ends_with(".prompt.md") || name.ends_with(".jsonl")
}

fn name_of(file: &RunFile) -> &str {
    Utf8Path::new(&file.path).file_name().unwrap_or(&file.path)
}

fn format_bytes(count: u64) -> String {
    match count {
        0..=9_999 => format!("{count} B"),
        10_000..=9_999_999 => format!("{} kB", count / 1000),
        _ => format!("{} MB", count / 1_000_000),
    }
}
