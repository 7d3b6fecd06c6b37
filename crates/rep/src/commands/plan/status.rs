//! `rep plan status`: draws the progress of a plan.

use anstyle::Style;
use repertoire_plan::document::{
    PlanDocument, PlanTask, TaskChoice, TaskId, TaskMark, TaskMarkCounts, TaskPriority, select_task,
};
use repertoire_text::terminal::printable_line;

use super::PlanArg;
use super::check::plan_findings;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliResult};
use crate::schema::plan::PlanStatusJson;
use crate::ui::{self, TerminalUi};

/// Arguments of `rep plan status`
#[derive(Debug, clap::Args)]
pub(crate) struct PlanStatusArgs {
    #[command(flatten)]
    plan: PlanArg,
    /// Show the tasks of finished sections too
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &PlanStatusArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let plan = args.plan.read_plan(ctx)?;
    let errors = plan_findings(ctx, &plan)?.iter().filter(|found| found.is_error()).count();
    let next = match select_task(&plan) {
        TaskChoice::Task(id) if plan.fallback.is_none() => Some(id),
        _ => None,
    };
    if ui.json {
        ui.print_json(&PlanStatusJson::from_plan(&plan, next, errors))?;
        return Ok(CliExit::Done);
    }
    let picture = PlanDrawing { plan: &plan, next, folds: !args.all };
    picture.print_plan(ui)?;
    print_footer(&plan, errors, ui)?;
    Ok(CliExit::Done)
}

fn count_ignored_boxes(plan: &PlanDocument) -> usize {
    plan.sections.iter().map(|section| section.ignored_boxes).sum()
}

/// A drawing of a plan, section by section.
struct PlanDrawing<'a> {
    plan: &'a PlanDocument,
    next: Option<TaskId>,
    /// True if finished sections are drawn as a bar only.
    folds: bool,
}

impl PlanDrawing<'_> {
    fn print_plan(&self, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
        let path = self.plan.source().path().as_str();
        let title = self.plan.title.as_deref().unwrap_or(path);
        writeln!(ui.out, "{}", ui.paint(ui::STRONG, ui::fit_columns(title, ui.columns)))?;
        let progress = self.plan.count_marks();
        let counts = format_counts(progress);
        let bar_columns = (ui.columns / 3).clamp(10, 40);
        let bar = draw_bar(progress, bar_columns, ui);
        if bar_columns + 2 + ui::text_width(&counts) <= ui.columns {
            writeln!(ui.out, "{bar}  {counts}")?;
        } else {
            writeln!(ui.out, "{bar}\n{}", ui::wrap_words(&counts, ui.columns, ""))?;
        }
        let names =
            self.plan.tasks.iter().map(|task| ui::text_width(&printable_line(task.id.as_str())));
        let names = names.max().unwrap_or(0).min(12);
        let mut rest = self.plan.tasks.as_slice();
        while let Some(first) = rest.first() {
            let here = rest.iter().take_while(|task| task.section == first.section).count();
            let (tasks, after) = rest.split_at(here);
            self.print_section(first.section, tasks, names, ui)?;
            rest = after;
        }
        Ok(())
    }

    fn print_section(
        &self,
        section: Option<usize>,
        tasks: &[PlanTask],
        names: usize,
        ui: &mut TerminalUi<'_>,
    ) -> std::io::Result<()> {
        let progress = TaskMarkCounts::count_tasks(tasks);
        writeln!(ui.out)?;
        // The plan's title has been drawn already, with its own bar.
        let is_title = |at: &usize| {
            let section = &self.plan.sections[*at];
            section.level == 1 && self.plan.title.as_ref() == Some(&section.title)
        };
        let section = section.filter(|at| !is_title(at));
        if let Some(at) = section {
            let section = &self.plan.sections[at];
            let done = format!("{}/{}", progress.done_count(), progress.task_count());
            let columns = (ui.columns / 6).clamp(6, 20);
            let room = ui.columns.saturating_sub(columns + 4 + done.len());
            let title = ui::fit_columns(&section.title, room);
            let gap = " ".repeat(room.min(44).saturating_sub(ui::text_width(&title)));
            let bar = draw_bar(progress, columns, ui);
            writeln!(ui.out, "{}{gap}  {bar}  {done}", ui.paint(ui::STRONG, title))?;
        }
        let folded = self.folds && section.is_some() && progress.is_done();
        if folded {
            return Ok(());
        }
        // Reasons that all open tasks of a section share are printed only once.
        let mut told: Vec<String> = Vec::new();
        for task in tasks {
            self.print_task(task, names, &mut told, ui)?;
        }
        Ok(())
    }

    fn print_task(
        &self,
        task: &PlanTask,
        names: usize,
        told: &mut Vec<String>,
        ui: &mut TerminalUi<'_>,
    ) -> std::io::Result<()> {
        let is_next = self.next.as_ref() == Some(&task.id);
        let arrow = if is_next { ui.paint(ui::GOOD, "→ ") } else { "  ".to_owned() };
        let depth = self.task_depth(task).min(4) * 2;
        let name = ui::pad_columns(&ui::fit_columns(task.id.as_str(), names), names);
        let symbol = ui::pad_columns(task.mark.symbol(), 4);
        let indent = 2 + depth + 4 + 1 + names + 2;
        let urgency = match task.priority {
            TaskPriority::Medium => "",
            priority => priority.as_str(),
        };
        let tail = match urgency {
            "" => String::new(),
            urgency => format!("  {}", ui.paint(ui::WARN, urgency)),
        };
        let room = ui.columns.saturating_sub(indent + 2 + urgency.len()).max(10);
        let text = ui::fit_columns(&task.text, room);
        let text = if is_next { ui.paint(ui::STRONG, text) } else { text };
        writeln!(
            ui.out,
            "{arrow}{}{} {}  {text}{tail}",
            " ".repeat(depth),
            ui.paint(style_of(task.mark), symbol),
            ui.paint(ui::FAINT, name),
        )?;
        if task.mark != TaskMark::Open {
            return Ok(());
        }
        let waits = self.plan.blocking_reasons(&task.id);
        let new: Vec<&str> =
            waits.iter().filter(|why| !told.contains(why)).map(String::as_str).collect();
        if !new.is_empty() {
            let blank = " ".repeat(2 + depth + 5);
            let room = ui.columns.saturating_sub(blank.len()).max(20);
            let why = ui::wrap_words(&join_reasons(&new), room, &blank);
            writeln!(ui.out, "{blank}{}", ui.paint(ui::FAINT, why))?;
        }
        told.extend(waits.into_iter().filter(|why| why.starts_with("waits for \"")));
        Ok(())
    }

    fn task_depth(&self, task: &PlanTask) -> usize {
        let parent = |task: &&PlanTask| task.parent.as_ref().and_then(|id| self.plan.task(id));
        std::iter::successors(Some(task), parent).take(5).count() - 1
    }
}

/// Joins reasons into one sentence.
fn join_reasons(reasons: &[&str]) -> String {
    let (waits, others): (Vec<&str>, Vec<&str>) =
        reasons.iter().partition(|why| why.starts_with("waits for "));
    let names: Vec<&str> = waits.iter().map(|why| why.trim_start_matches("waits for ")).collect();
    let waits = (!names.is_empty()).then(|| format!("waits for {}", names.join("; ")));
    others.into_iter().map(str::to_owned).chain(waits).collect::<Vec<_>>().join("; ")
}

/// Draws the shares of reviewed, implemented, failed and remaining tasks.
fn draw_bar(progress: TaskMarkCounts, columns: usize, ui: &TerminalUi<'_>) -> String {
    let total = progress.task_count().max(1);
    // Round up, so that every non-empty share is visible, but fill the bar only when all is done.
    let up_to = |count: usize| (count * columns).div_ceil(total).min(columns);
    let not_full = |count: usize, at: usize| {
        if count < progress.task_count() && at == columns { columns - 1 } else { at }
    };
    let reviewed = not_full(progress.reviewed, up_to(progress.reviewed));
    let done = not_full(progress.done_count(), up_to(progress.done_count())).max(reviewed);
    let tried = up_to(progress.done_count() + progress.failed).max(done);
    let tried = if progress.failed == 0 { done } else { tried };
    [
        (reviewed, "█", ui::GOOD),
        (done - reviewed, "▓", ui::ACCENT),
        (tried - done, "!", ui::BAD),
        (columns - tried, "░", ui::FAINT),
    ]
    .into_iter()
    .filter(|(length, _, _)| *length > 0)
    .map(|(length, sign, style)| ui.paint(style, sign.repeat(length)))
    .collect()
}

fn format_counts(progress: TaskMarkCounts) -> String {
    let mut parts = vec![format!("{} of {} done", progress.done_count(), progress.task_count())];
    for (count, what) in [
        (progress.implemented, "to review"),
        (progress.blocked, "blocked"),
        (progress.failed, "failed"),
        (progress.manual_qa, "for people"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    parts.join(" · ")
}

fn style_of(mark: TaskMark) -> Style {
    match mark {
        TaskMark::Open => Style::new(),
        TaskMark::Blocked => ui::WARN,
        TaskMark::Implemented => ui::ACCENT,
        TaskMark::Reviewed => ui::GOOD,
        TaskMark::ManualQa => ui::FAINT,
        TaskMark::Failed => ui::BAD,
    }
}

/// Prints the errors and counts that the drawing leaves out.
fn print_footer(
    plan: &PlanDocument,
    errors: usize,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let mut lines = Vec::new();
    if let Some(why) = &plan.fallback {
        lines.push(ui.paint(
            ui::BAD,
            ui::wrap_words(&format!("The tasks cannot be told: {why}."), ui.columns, ""),
        ));
    }
    match count_ignored_boxes(plan) {
        0 => {}
        boxes => {
            let boxes = if boxes == 1 { "1 box".to_owned() } else { format!("{boxes} boxes") };
            let text = format!("{boxes} in sections for people, not shown.");
            lines.push(ui.paint(ui::FAINT, ui::wrap_words(&text, ui.columns, "")));
        }
    }
    if errors > 0 {
        let text = format!("{}: `rep plan check` shows where.", ui::format_count(errors, "error"));
        lines.push(ui.paint(ui::BAD, text));
    }
    if !lines.is_empty() {
        writeln!(ui.out)?;
    }
    for line in lines {
        writeln!(ui.out, "{line}")?;
    }
    Ok(())
}
