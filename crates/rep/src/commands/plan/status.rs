//! `rep plan status`: draws the progress of a plan.

use anstyle::Style;
use repertoire_plan::document::{
    Choice, Mark, Plan, Priority, Progress, Task, TaskId, select_task,
};
use repertoire_text::terminal::printable;

use super::PlanArg;
use super::check::findings;
use crate::cli::Ctx;
use crate::failure::{Exit, Outcome};
use crate::schema::plan::PlanStatusJson;
use crate::ui::{self, Ui};

/// Arguments of `rep plan status`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    plan: PlanArg,
    /// Show the tasks of finished sections too
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let plan = args.plan.read(ctx)?;
    let errors = findings(ctx, &plan)?.iter().filter(|found| found.is_error()).count();
    let next = match select_task(&plan) {
        Choice::Task(id) if plan.fallback.is_none() => Some(id),
        _ => None,
    };
    if ui.json {
        ui.print_json(&PlanStatusJson::of(&plan, next, errors))?;
        return Ok(Exit::Done);
    }
    let picture = Picture { plan: &plan, next, folds: !args.all };
    picture.print(ui)?;
    footer(&plan, errors, ui)?;
    Ok(Exit::Done)
}

fn ignored(plan: &Plan) -> usize {
    plan.sections.iter().map(|section| section.ignored_boxes).sum()
}

/// A drawing of a plan, section by section.
struct Picture<'a> {
    plan: &'a Plan,
    next: Option<TaskId>,
    /// True if finished sections are drawn as a bar only.
    folds: bool,
}

impl Picture<'_> {
    fn print(&self, ui: &mut Ui<'_>) -> std::io::Result<()> {
        let path = self.plan.source().path().as_str();
        let title = self.plan.title.as_deref().unwrap_or(path);
        writeln!(ui.out, "{}", ui.paint(ui::STRONG, ui::fit(title, ui.columns)))?;
        let progress = self.plan.progress();
        let counts = counts(progress);
        let bar_columns = (ui.columns / 3).clamp(10, 40);
        let bar = bar(progress, bar_columns, ui);
        if bar_columns + 2 + ui::width(&counts) <= ui.columns {
            writeln!(ui.out, "{bar}  {counts}")?;
        } else {
            writeln!(ui.out, "{bar}\n{}", ui::wrap(&counts, ui.columns, ""))?;
        }
        let names = self.plan.tasks.iter().map(|task| ui::width(&printable(task.id.as_str())));
        let names = names.max().unwrap_or(0).min(12);
        let mut rest = self.plan.tasks.as_slice();
        while let Some(first) = rest.first() {
            let here = rest.iter().take_while(|task| task.section == first.section).count();
            let (tasks, after) = rest.split_at(here);
            self.section(first.section, tasks, names, ui)?;
            rest = after;
        }
        Ok(())
    }

    fn section(
        &self,
        section: Option<usize>,
        tasks: &[Task],
        names: usize,
        ui: &mut Ui<'_>,
    ) -> std::io::Result<()> {
        let progress = Progress::of(tasks);
        writeln!(ui.out)?;
        // The plan's title has been drawn already, with its own bar.
        let is_title = |at: &usize| {
            let section = &self.plan.sections[*at];
            section.level == 1 && self.plan.title.as_ref() == Some(&section.title)
        };
        let section = section.filter(|at| !is_title(at));
        if let Some(at) = section {
            let section = &self.plan.sections[at];
            let done = format!("{}/{}", progress.done(), progress.total());
            let columns = (ui.columns / 6).clamp(6, 20);
            let room = ui.columns.saturating_sub(columns + 4 + done.len());
            let title = ui::fit(&section.title, room);
            let gap = " ".repeat(room.min(44).saturating_sub(ui::width(&title)));
            let bar = bar(progress, columns, ui);
            writeln!(ui.out, "{}{gap}  {bar}  {done}", ui.paint(ui::STRONG, title))?;
        }
        let folded = self.folds && section.is_some() && progress.is_done();
        if folded {
            return Ok(());
        }
        // Reasons that all open tasks of a section share are printed only once.
        let mut told: Vec<String> = Vec::new();
        for task in tasks {
            self.task(task, names, &mut told, ui)?;
        }
        Ok(())
    }

    fn task(
        &self,
        task: &Task,
        names: usize,
        told: &mut Vec<String>,
        ui: &mut Ui<'_>,
    ) -> std::io::Result<()> {
        let is_next = self.next.as_ref() == Some(&task.id);
        let arrow = if is_next { ui.paint(ui::GOOD, "→ ") } else { "  ".to_owned() };
        let depth = self.depth(task).min(4) * 2;
        let name = ui::pad(&ui::fit(task.id.as_str(), names), names);
        let symbol = ui::pad(task.mark.symbol(), 4);
        let indent = 2 + depth + 4 + 1 + names + 2;
        let urgency = match task.priority {
            Priority::Medium => "",
            priority => priority.as_str(),
        };
        let tail = match urgency {
            "" => String::new(),
            urgency => format!("  {}", ui.paint(ui::WARN, urgency)),
        };
        let room = ui.columns.saturating_sub(indent + 2 + urgency.len()).max(10);
        let text = ui::fit(&task.text, room);
        let text = if is_next { ui.paint(ui::STRONG, text) } else { text };
        writeln!(
            ui.out,
            "{arrow}{}{} {}  {text}{tail}",
            " ".repeat(depth),
            ui.paint(style_of(task.mark), symbol),
            ui.paint(ui::FAINT, name),
        )?;
        if task.mark != Mark::Open {
            return Ok(());
        }
        let waits = self.plan.waits_for(&task.id);
        let new: Vec<&str> =
            waits.iter().filter(|why| !told.contains(why)).map(String::as_str).collect();
        if !new.is_empty() {
            let blank = " ".repeat(2 + depth + 5);
            let room = ui.columns.saturating_sub(blank.len()).max(20);
            let why = ui::wrap(&joined(&new), room, &blank);
            writeln!(ui.out, "{blank}{}", ui.paint(ui::FAINT, why))?;
        }
        told.extend(waits.into_iter().filter(|why| why.starts_with("waits for \"")));
        Ok(())
    }

    fn depth(&self, task: &Task) -> usize {
        let parent = |task: &&Task| task.parent.as_ref().and_then(|id| self.plan.task(id));
        std::iter::successors(Some(task), parent).take(5).count() - 1
    }
}

/// Joins reasons into one sentence.
fn joined(reasons: &[&str]) -> String {
    let (waits, others): (Vec<&str>, Vec<&str>) =
        reasons.iter().partition(|why| why.starts_with("waits for "));
    let names: Vec<&str> = waits.iter().map(|why| why.trim_start_matches("waits for ")).collect();
    let waits = (!names.is_empty()).then(|| format!("waits for {}", names.join("; ")));
    others.into_iter().map(str::to_owned).chain(waits).collect::<Vec<_>>().join("; ")
}

/// Draws the shares of reviewed, implemented, failed and remaining tasks.
fn bar(progress: Progress, columns: usize, ui: &Ui<'_>) -> String {
    let total = progress.total().max(1);
    // Round up, so that every non-empty share is visible, but fill the bar only when all is done.
    let up_to = |count: usize| (count * columns).div_ceil(total).min(columns);
    let not_full = |count: usize, at: usize| {
        if count < progress.total() && at == columns { columns - 1 } else { at }
    };
    let reviewed = not_full(progress.reviewed, up_to(progress.reviewed));
    let done = not_full(progress.done(), up_to(progress.done())).max(reviewed);
    let tried = up_to(progress.done() + progress.failed).max(done);
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

fn counts(progress: Progress) -> String {
    let mut parts = vec![format!("{} of {} done", progress.done(), progress.total())];
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

fn style_of(mark: Mark) -> Style {
    match mark {
        Mark::Open => Style::new(),
        Mark::Blocked => ui::WARN,
        Mark::Implemented => ui::ACCENT,
        Mark::Reviewed => ui::GOOD,
        Mark::ManualQa => ui::FAINT,
        Mark::Failed => ui::BAD,
    }
}

/// Prints the errors and counts that the drawing leaves out.
fn footer(plan: &Plan, errors: usize, ui: &mut Ui<'_>) -> std::io::Result<()> {
    let mut lines = Vec::new();
    if let Some(why) = &plan.fallback {
        lines.push(ui.paint(
            ui::BAD,
            ui::wrap(&format!("The tasks cannot be told: {why}."), ui.columns, ""),
        ));
    }
    match ignored(plan) {
        0 => {}
        boxes => {
            let boxes = if boxes == 1 { "1 box".to_owned() } else { format!("{boxes} boxes") };
            let text = format!("{boxes} in sections for people, not shown.");
            lines.push(ui.paint(ui::FAINT, ui::wrap(&text, ui.columns, "")));
        }
    }
    if errors > 0 {
        let text = format!("{}: `rep plan check` shows where.", ui::count(errors, "error"));
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
