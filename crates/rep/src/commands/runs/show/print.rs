//! Prints the output of `rep runs show`.

use anstyle::Style;
use camino::Utf8Path;
use repertoire_journal::run::{Run, Step, StepStatus, Wish};
use repertoire_plan::document::Mark;

use super::mark_of;
use crate::cli::Ctx;
use crate::commands::runs::now_ms;
use crate::runs_text::{
    Clock, delivery, outcome_style, outcome_word, reason_parts, short_dollars, short_oid,
    short_time, status_style,
};
use crate::schema::runs::{RunFile, RunJson, RunTask};
use crate::ui::{self, Ui};

/// Maximum number of steps shown without `--all`. The latest are kept.
const STEPS_SHOWN: usize = 20;
/// Maximum number of tasks shown without `--all`.
const TASKS_SHOWN: usize = 40;
/// Width of the labels.
const LABEL: usize = 10;

/// Prints a run. Without `all`, long lists are cut to fit a screen.
pub(crate) fn print(
    ctx: &Ctx<'_>,
    shown: &RunJson,
    all: bool,
    ui: &mut Ui<'_>,
) -> std::io::Result<()> {
    let clock = Clock::local(now_ms());
    let screen = Screen { ctx, shown, all, clock };
    screen.head(ui)?;
    screen.facts(ui)?;
    screen.budget(ui)?;
    screen.tasks(ui)?;
    screen.steps(ui)?;
    screen.watchdog(ui)?;
    list("To be told next", &shown.steering, ui)?;
    list("Learnt", &shown.learnings, ui)?;
    screen.files(ui)?;
    screen.commands(ui)
}

struct Screen<'a> {
    ctx: &'a Ctx<'a>,
    shown: &'a RunJson,
    all: bool,
    clock: Clock,
}

impl Screen<'_> {
    fn run(&self) -> &Run {
        &self.shown.run
    }

    fn head(&self, ui: &mut Ui<'_>) -> std::io::Result<()> {
        let run = self.run();
        let id = run.id.as_str();
        let room = ui.columns.saturating_sub(ui::width(id) + 2);
        let name =
            if room >= 16 { ui::fit(&run.name, room) } else { ui::fit(&run.name, ui.columns) };
        let gap = if room >= 16 { "  " } else { "\n" };
        writeln!(ui.out, "{}{gap}{}", ui.paint(ui::STRONG, name), ui.paint(ui::FAINT, id))?;
        let status = ui.paint(status_style(run.status), run.status);
        let wish = match run.wish {
            Some(Wish::Pause) => ", will pause after this step",
            Some(Wish::Cancel) => ", is being ended",
            None => "",
        };
        let (reason, output) = reason_parts(run);
        if reason.is_empty() {
            writeln!(ui.out, "  {status}{wish}")?;
        } else {
            let word = run.status.as_str().len() + wish.len();
            let text = format!("{}: {reason}", "x".repeat(word));
            let text = ui::wrap(&text, ui.columns.saturating_sub(2).max(20), "  ");
            let rest = text.get(word..).unwrap_or_default();
            writeln!(ui.out, "  {status}{wish}{rest}")?;
        }
        let output = ui::printable_lines(output);
        output.lines().try_for_each(|line| writeln!(ui.out, "    {}", ui.paint(ui::FAINT, line)))
    }

    fn facts(&self, ui: &mut Ui<'_>) -> std::io::Result<()> {
        let run = self.run();
        writeln!(ui.out)?;
        fact("workspace", &self.short(&run.workspace), ui)?;
        if let Some(worktree) = &run.worktree {
            let from = format!("{} at {}", worktree.base_branch, short_oid(&worktree.base));
            fact("branch", &format!("{} from {from}", worktree.branch), ui)?;
            let gone = if Utf8Path::new(&worktree.path).exists() { "" } else { " (gone)" };
            fact("worktree", &format!("{}{gone}", self.short(&worktree.path)), ui)?;
        }
        if let Some(delivered) = &self.shown.delivered {
            let commit = delivered.commit.as_deref().map(|oid| format!(" at {}", short_oid(oid)));
            let what = delivery(&delivered.strategy, &delivered.branch);
            fact("delivered", &format!("{what}{}", commit.unwrap_or_default()), ui)?;
        }
        if let Some(worker) = &run.worker {
            let until = self
                .shown
                .lease_until_ms
                .map(|until_ms| format!(", to be heard of by {}", self.clock.brief(until_ms)));
            fact("worker", &format!("{worker}{}", until.unwrap_or_default()), ui)?;
        }
        let labels: Vec<&str> = run.labels.iter().map(String::as_str).collect();
        if !labels.is_empty() && !run.status.is_over() {
            fact("needs", &format!("a worker with {}", labels.join(", ")), ui)?;
        }
        if run.not_before_ms > 0 {
            fact("goes on", &format!("by itself at {}", self.clock.full(run.not_before_ms)), ui)?;
        }
        let mut times = format!("made {}", self.clock.full(run.created_ms));
        if let Some(ended_ms) = run.ended_ms {
            times.push_str(&format!(", ended {}", self.clock.full(ended_ms)));
        }
        fact("time", &times, ui)
    }

    fn budget(&self, ui: &mut Ui<'_>) -> std::io::Result<()> {
        let (spent, limits) = (&self.run().spent, &self.run().limits);
        let partial = if spent.unpriced { " and what has no price" } else { "" };
        let cost = format!("{}{partial}", ui::dollars(spent.cost_usd()));
        let cost_max = limits.cost_usd.map(|max| (max, format!("${max}")));
        gauge("cost", spent.cost_usd(), &cost, cost_max, ui)?;
        let tokens = ui::thousands(spent.tokens());
        let tokens_max = limits.tokens.map(|max| (max as f64, ui::thousands(max)));
        gauge("tokens", spent.tokens() as f64, &tokens, tokens_max, ui)?;
        let time_max = limits.time_ms.map(|max| (max as f64, short_time(max)));
        gauge("at work", spent.time_ms as f64, &short_time(spent.time_ms), time_max, ui)
    }

    fn tasks(&self, ui: &mut Ui<'_>) -> std::io::Result<()> {
        let tasks = &self.shown.tasks;
        if let Some(why) = &self.shown.fallback {
            heading("Tasks", "", ui)?;
            let text = format!("The agent chooses: {why}.");
            let text = ui::wrap(&text, ui.columns.saturating_sub(2), "  ");
            writeln!(ui.out, "  {}", ui.paint(ui::WARN, text))?;
        }
        if tasks.is_empty() {
            return Ok(());
        }
        let done = self.shown.done.map(|tasks| format!("{} of {} done", tasks.done, tasks.all));
        heading("Tasks", &done.unwrap_or_default(), ui)?;
        let at = self.shown.steps.last().filter(|step| step.status == StepStatus::Running);
        let at = at.and_then(|step| step.task.as_ref()).map(|task| task.id.as_str());
        let ids = tasks.iter().map(|task| ui::width(&task.id)).max().unwrap_or(0).min(12);
        let shown = if self.all { tasks.len() } else { TASKS_SHOWN };
        for task in tasks.iter().take(shown) {
            print_task(task, at == Some(&task.id), ids, ui)?;
        }
        more(tasks.len().saturating_sub(shown), ui)
    }

    fn steps(&self, ui: &mut Ui<'_>) -> std::io::Result<()> {
        let steps = &self.shown.steps;
        if steps.is_empty() {
            return Ok(());
        }
        heading("Steps", "", ui)?;
        let skipped = if self.all { 0 } else { steps.len().saturating_sub(STEPS_SHOWN) };
        if skipped > 0 {
            let line = format!("  {} before these, see --all", ui::count(skipped, "step"));
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
        let tokens = step.spent.tokens();
        let cost = step.spent.cost_usd();
        StepRow {
            step,
            outcome,
            style,
            cells: [
                step.number.to_string(),
                ui::fit(&step.kind, 16),
                step.task.as_ref().map(|task| ui::fit(&task.id, 12)).unwrap_or_default(),
                step.attempt.to_string(),
                outcome.to_owned(),
                short_time(time_ms),
                if tokens == 0 { "-".to_owned() } else { ui::thousands(tokens) },
                if cost == 0.0 { "-".to_owned() } else { short_dollars(cost) },
            ],
        }
    }

    fn watchdog(&self, ui: &mut Ui<'_>) -> std::io::Result<()> {
        let signals = self.shown.watchdog.iter().map(|seen| {
            let rewritten = if seen.rewritten { "; the next prompt began otherwise" } else { "" };
            format!("after step {}: {}: {}{rewritten}", seen.step, seen.signal, seen.evidence)
        });
        list("Watchdog", &signals.collect::<Vec<_>>(), ui)
    }

    fn files(&self, ui: &mut Ui<'_>) -> std::io::Result<()> {
        let files = &self.shown.files;
        let Some(folder) = files.first().and_then(|file| Utf8Path::new(&file.path).parent()) else {
            return Ok(());
        };
        heading("Files", &self.short(folder.as_str()), ui)?;
        let (of_steps, others): (Vec<&RunFile>, Vec<&RunFile>) =
            files.iter().partition(|file| is_step_file(file) && !self.all);
        let names = others.iter().map(|file| ui::width(name_of(file))).max().unwrap_or(0);
        for file in others {
            let about = match name_of(file) {
                "report.md" => "what happened, for people",
                "changes.diff" => "what it changed",
                "summary.json" => "the same for programs",
                "report.tsv" => "the steps, for spreadsheets",
                _ => "",
            };
            let size = ui.paint(ui::FAINT, format!("{:>9}", bytes(file.bytes)));
            let name = ui::pad(&ui::fit(name_of(file), 60), names);
            let line = format!("  {name}  {size}  {}", ui.paint(ui::FAINT, about));
            writeln!(ui.out, "{}", if about.is_empty() { line.trim_end() } else { &line })?;
        }
        if !of_steps.is_empty() {
            let prompts = of_steps.iter().filter(|file| file.path.ends_with(".md")).count();
            let logs = of_steps.len() - prompts;
            let line = format!(
                "  and {}, {}: NNN-KIND.prompt.md, NNN-KIND.jsonl",
                ui::count(prompts, "prompt"),
                ui::count(logs, "log")
            );
            writeln!(ui.out, "{}", ui.paint(ui::FAINT, line))?;
        }
        Ok(())
    }

    fn commands(&self, ui: &mut Ui<'_>) -> std::io::Result<()> {
        let commands = &self.shown.commands;
        if commands.is_empty() {
            return Ok(());
        }
        heading("What can be done", "", ui)?;
        let widest = commands.iter().map(|one| ui::width(&one.command)).max().unwrap_or(0);
        for one in commands {
            let command = ui.paint(ui::ACCENT, ui::pad(&one.command, widest));
            let about = ui::fit(&one.about, ui.columns.saturating_sub(widest + 4).max(12));
            writeln!(ui.out, "  {command}  {}", ui.paint(ui::FAINT, about))?;
        }
        Ok(())
    }

    fn short(&self, path: &str) -> String {
        self.ctx.config.places().shorten(path.into())
    }
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

fn print_steps(rows: &[StepRow<'_>], ui: &mut Ui<'_>) -> std::io::Result<()> {
    let mut widths: [usize; 8] = std::array::from_fn(|at| {
        let cells = rows.iter().map(|row| ui::width(&row.cells[at]));
        cells.chain([STEP_HEADS[at].len()]).max().unwrap_or(0)
    });
    for dropped in DROPPED {
        if columns_used(&widths) > ui.columns {
            widths[dropped] = 0;
        }
    }
    let room = ui.columns.saturating_sub(columns_used(&widths) + 2);
    let cell = |at: usize, text: &str| {
        let blank = " ".repeat(widths[at].saturating_sub(ui::width(text)));
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
                writeln!(ui.out, "{line}  {}", ui.paint(ui::FAINT, ui::fit(reason, room)))?;
            }
            (false, false) => {
                let indent = " ".repeat(2 + widths[0] + 2);
                let room = ui.columns.saturating_sub(indent.len()).max(20);
                writeln!(ui.out, "{line}")?;
                writeln!(ui.out, "{indent}{}", ui.paint(ui::FAINT, ui::fit(reason, room)))?;
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
    ui: &mut Ui<'_>,
) -> std::io::Result<()> {
    let mark = mark_of(&task.mark);
    let style = match mark {
        Mark::Open => Style::new(),
        Mark::Blocked => ui::WARN,
        Mark::Implemented => ui::ACCENT,
        Mark::Reviewed => ui::GOOD,
        Mark::ManualQa => ui::FAINT,
        Mark::Failed => ui::BAD,
    };
    let arrow = if is_under_way { ui.paint(ui::GOOD, "→ ") } else { "  ".to_owned() };
    let tries = match task.attempts {
        0 | 1 => String::new(),
        attempts => format!("  {attempts} attempts"),
    };
    let room = ui.columns.saturating_sub(2 + 4 + 1 + ids + 2 + tries.len()).max(10);
    let label = ui::fit(&task.label, room);
    let symbol = ui.paint(style, ui::pad(mark.symbol(), 4));
    let id = ui.paint(ui::FAINT, ui::pad(&ui::fit(&task.id, ids), ids));
    let tries = if tries.is_empty() { tries } else { ui.paint(ui::FAINT, tries) };
    writeln!(ui.out, "{arrow}{symbol} {id}  {label}{tries}")
}

fn fact(name: &str, text: &str, ui: &mut Ui<'_>) -> std::io::Result<()> {
    let indent = " ".repeat(2 + LABEL + 1);
    let text = ui::wrap(text, ui.columns.saturating_sub(indent.len()).max(20), &indent);
    writeln!(ui.out, "  {} {text}", ui.paint(ui::FAINT, ui::pad(name, LABEL)))
}

/// Prints an amount used, with a bar if there is a limit.
fn gauge(
    name: &str,
    used: f64,
    text: &str,
    max: Option<(f64, String)>,
    ui: &mut Ui<'_>,
) -> std::io::Result<()> {
    let Some((max, of)) = max else { return fact(name, text, ui) };
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
    let name = ui.paint(ui::FAINT, ui::pad(name, LABEL));
    writeln!(ui.out, "  {name} {bar}{rest}  {text} of {of}")
}

fn heading(title: &str, note: &str, ui: &mut Ui<'_>) -> std::io::Result<()> {
    let note =
        if note.is_empty() { String::new() } else { format!("  {}", ui.paint(ui::FAINT, note)) };
    writeln!(ui.out, "\n{}{note}", ui.paint(ui::STRONG, title))
}

fn list(title: &str, texts: &[String], ui: &mut Ui<'_>) -> std::io::Result<()> {
    if texts.is_empty() {
        return Ok(());
    }
    heading(title, "", ui)?;
    for text in texts {
        let text = ui::wrap(text, ui.columns.saturating_sub(4).max(20), "    ");
        writeln!(ui.out, "  - {text}")?;
    }
    Ok(())
}

fn more(left: usize, ui: &mut Ui<'_>) -> std::io::Result<()> {
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

fn bytes(count: u64) -> String {
    match count {
        0..=9_999 => format!("{count} B"),
        10_000..=9_999_999 => format!("{} kB", count / 1000),
        _ => format!("{} MB", count / 1_000_000),
    }
}
