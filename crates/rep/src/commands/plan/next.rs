//! `rep plan next`: shows the task that comes next, and why.

use repertoire_plan::document::{
    BlockerTarget, PlanDocument, PlanTask, TaskChoice, TaskMark, TaskPriority, select_task,
};
use repertoire_text::terminal::printable_line;

use super::PlanArg;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliResult};
use crate::schema::plan::{BlockedTaskJson, PlanNextJson, TaskJson};
use crate::ui::{self, TerminalUi};

/// Arguments of `rep plan next`
#[derive(Debug, clap::Args)]
pub(crate) struct PlanNextArgs {
    #[command(flatten)]
    plan: PlanArg,
}

pub(crate) fn run(ctx: &CliContext<'_>, args: &PlanNextArgs, ui: &mut TerminalUi<'_>) -> CliResult {
    let plan = args.plan.read_plan(ctx)?;
    let answer = NextTaskChoice::choose(&plan);
    let exit = if answer.task.is_some() { CliExit::Done } else { CliExit::No };
    if ui.json {
        ui.print_json(&answer.into_json(&plan))?;
    } else {
        print_choice(&plan, &answer, ui)?;
    }
    Ok(exit)
}

/// The task that comes next, or the reason why there is none.
struct NextTaskChoice<'a> {
    choice: &'static str,
    task: Option<&'a PlanTask>,
    why: String,
    waiting: Vec<(&'a PlanTask, String)>,
}

impl<'a> NextTaskChoice<'a> {
    fn choose(plan: &'a PlanDocument) -> Self {
        let none = |choice, why| NextTaskChoice { choice, task: None, why, waiting: Vec::new() };
        if let Some(why) = &plan.fallback {
            return none("unknown", format!("The tasks cannot be told: {why}."));
        }
        match select_task(plan) {
            TaskChoice::Task(id) => match plan.task(&id) {
                Some(task) => NextTaskChoice {
                    choice: "task",
                    task: Some(task),
                    why: explain_choice(plan, task),
                    waiting: Vec::new(),
                },
                None => none("nothing", explain_nothing_open(plan)),
            },
            TaskChoice::Nothing => none("nothing", explain_nothing_open(plan)),
            TaskChoice::Stuck { waiting } => {
                let task = |(id, why)| plan.task(&id).map(|task| (task, why));
                let waiting: Vec<(&PlanTask, String)> =
                    waiting.into_iter().filter_map(task).collect();
                let why = match waiting.len() {
                    1 => "One task is open, and it waits.".to_owned(),
                    open => format!("{open} tasks are open, and every one waits."),
                };
                NextTaskChoice { choice: "stuck", task: None, why, waiting }
            }
        }
    }

    fn into_json(self, plan: &PlanDocument) -> PlanNextJson {
        let waiting = self.waiting.into_iter().map(|(task, why)| BlockedTaskJson {
            id: task.id.clone(),
            text: task.text.clone(),
            why,
        });
        PlanNextJson {
            plan: plan.source().path().to_string(),
            choice: self.choice,
            task: self.task.map(|task| TaskJson::from_task(plan, task, Vec::new())),
            why: self.why,
            waiting: waiting.collect(),
            progress: plan.count_marks(),
        }
    }
}

/// Explains why this task comes first.
fn explain_choice(plan: &PlanDocument, task: &PlanTask) -> String {
    let before: Vec<&PlanTask> = plan.open_tasks().filter(|other| other.line < task.line).collect();
    let less_urgent = before.iter().filter(|other| other.priority > task.priority).count();
    let waits = before.len() - less_urgent;
    let priority = match task.priority {
        TaskPriority::Medium => String::new(),
        priority => format!("priority {}; ", priority.as_str()),
    };
    let among = match (less_urgent, waits) {
        (0, 0) => "the first open task".to_owned(),
        (0, waits) => {
            format!("the first open task but {waits} that {}", inflect_verb(waits, "wait"))
        }
        (less, 0) => {
            format!(
                "{} before it {} less urgent",
                ui::format_count(less, "open task"),
                verb_be(less)
            )
        }
        (less, waits) => format!(
            "of the open tasks before it {less} {} less urgent and {waits} {}",
            verb_be(less),
            inflect_verb(waits, "wait")
        ),
    };
    format!("{priority}{among}")
}

fn verb_be(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

fn inflect_verb(count: usize, verb: &str) -> String {
    if count == 1 { format!("{verb}s") } else { verb.to_owned() }
}

/// Explains why no task is open.
fn explain_nothing_open(plan: &PlanDocument) -> String {
    let progress = plan.count_marks();
    let mut text = format!(
        "Nothing is open: {} of {} done",
        progress.done_count(),
        ui::format_count(progress.task_count(), "task")
    );
    for (count, what) in [
        (progress.implemented, "to review"),
        (progress.blocked, "blocked"),
        (progress.failed, "failed"),
        (progress.manual_qa, "for people"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text + "."
}

fn print_choice(
    plan: &PlanDocument,
    answer: &NextTaskChoice<'_>,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let Some(task) = answer.task else {
        writeln!(ui.out, "{}", ui::wrap_words(&answer.why, ui.columns, ""))?;
        for (task, why) in &answer.waiting {
            let id = printable_line(task.id.as_str());
            let room = ui.columns.saturating_sub(ui::text_width(&id) + 4);
            writeln!(
                ui.out,
                "  {}  {}",
                ui.paint(ui::ACCENT, &id),
                ui::fit_columns(&task.text, room)
            )?;
            writeln!(
                ui.out,
                "      {}",
                ui.paint(ui::WARN, ui::wrap_words(why, ui.columns.saturating_sub(6), "      "))
            )?;
        }
        if answer.choice == "unknown" {
            writeln!(ui.out, "`rep plan check` shows where.")?;
        }
        return Ok(());
    };
    let id = printable_line(task.id.as_str());
    let indent = " ".repeat(ui::text_width(&id) + 2);
    let room = ui.columns.saturating_sub(indent.len()).max(20);
    writeln!(
        ui.out,
        "{}  {}",
        ui.paint(ui::ACCENT, &id),
        ui.paint(ui::STRONG, ui::wrap_words(&task.text, room, &indent))
    )?;
    let section =
        task.section.map(|at| format!(" · {}", plan.sections[at].title)).unwrap_or_default();
    let place = format!("{}:{}{section}", plan.source().path(), task.line);
    writeln!(
        ui.out,
        "  {}",
        ui.paint(ui::FAINT, ui::fit_columns(&place, ui.columns.saturating_sub(2)))
    )?;
    let parent =
        task.parent.as_ref().and_then(|id| plan.task(id)).map(|parent| parent.text.clone());
    let hints: Vec<String> = task.hints.iter().map(|hint| format!("@{hint}")).collect();
    for (name, text) in [
        ("why", answer.why.clone()),
        ("part of", parent.unwrap_or_default()),
        ("after", finished_blockers(plan, task)),
        ("skills", hints.join(", ")),
        ("spec", task.spec_refs.join(", ")),
    ] {
        if !text.is_empty() {
            let text = ui::wrap_words(&text, ui.columns.saturating_sub(11), "           ");
            writeln!(ui.out, "  {}  {text}", ui.paint(ui::FAINT, ui::pad_columns(name, 7)))?;
        }
    }
    if !task.details.is_empty() {
        writeln!(ui.out)?;
        for line in ui::printable_lines(&task.details).lines() {
            writeln!(ui.out, "  {line}")?;
        }
    }
    Ok(())
}

/// Lists the blockers of a task, all of which are finished.
fn finished_blockers(plan: &PlanDocument, task: &PlanTask) -> String {
    let section =
        task.section.map(|at| plan.sections[at].blocked_by.as_slice()).unwrap_or_default();
    let all = task.blocked_by.iter().chain(section);
    let all = all.filter_map(|blocker| name_of_blocker(plan, &blocker.on));
    all.collect::<Vec<_>>().join(", ")
}

fn name_of_blocker(plan: &PlanDocument, on: &BlockerTarget) -> Option<String> {
    match on {
        BlockerTarget::Task(id) => {
            let mark = plan.task(id).map_or(TaskMark::Open, |task| task.mark);
            Some(format!("{id} ({})", mark.described()))
        }
        BlockerTarget::Section(at) => Some(format!("\"{}\"", plan.sections[*at].title)),
        BlockerTarget::Nothing => None,
    }
}
