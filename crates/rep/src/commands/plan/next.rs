//! `rep plan next`: shows the task that comes next, and why.

use repertoire_plan::document::{BlockedOn, Choice, Mark, Plan, Priority, Task, select_task};
use repertoire_text::terminal::printable;

use super::PlanArg;
use crate::cli::Ctx;
use crate::failure::{Exit, Outcome};
use crate::schema::plan::{PlanNextJson, TaskJson, WaitingJson};
use crate::ui::{self, Ui};

/// Arguments of `rep plan next`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    plan: PlanArg,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let plan = args.plan.read(ctx)?;
    let answer = Answer::of(&plan);
    let exit = if answer.task.is_some() { Exit::Done } else { Exit::No };
    if ui.json {
        ui.print_json(&answer.json(&plan))?;
    } else {
        print(&plan, &answer, ui)?;
    }
    Ok(exit)
}

/// The task that comes next, or the reason why there is none.
struct Answer<'a> {
    choice: &'static str,
    task: Option<&'a Task>,
    why: String,
    waiting: Vec<(&'a Task, String)>,
}

impl<'a> Answer<'a> {
    fn of(plan: &'a Plan) -> Self {
        let none = |choice, why| Answer { choice, task: None, why, waiting: Vec::new() };
        if let Some(why) = &plan.fallback {
            return none("unknown", format!("The tasks cannot be told: {why}."));
        }
        match select_task(plan) {
            Choice::Task(id) => match plan.task(&id) {
                Some(task) => Answer {
                    choice: "task",
                    task: Some(task),
                    why: why(plan, task),
                    waiting: Vec::new(),
                },
                None => none("nothing", nothing(plan)),
            },
            Choice::Nothing => none("nothing", nothing(plan)),
            Choice::Stuck { waiting } => {
                let task = |(id, why)| plan.task(&id).map(|task| (task, why));
                let waiting: Vec<(&Task, String)> = waiting.into_iter().filter_map(task).collect();
                let why = match waiting.len() {
                    1 => "One task is open, and it waits.".to_owned(),
                    open => format!("{open} tasks are open, and every one waits."),
                };
                Answer { choice: "stuck", task: None, why, waiting }
            }
        }
    }

    fn json(self, plan: &Plan) -> PlanNextJson {
        let waiting = self.waiting.into_iter().map(|(task, why)| WaitingJson {
            id: task.id.clone(),
            text: task.text.clone(),
            why,
        });
        PlanNextJson {
            plan: plan.source().path().to_string(),
            choice: self.choice,
            task: self.task.map(|task| TaskJson::of(plan, task, Vec::new())),
            why: self.why,
            waiting: waiting.collect(),
            progress: plan.progress(),
        }
    }
}

/// Explains why this task comes first.
fn why(plan: &Plan, task: &Task) -> String {
    let before: Vec<&Task> = plan.open().filter(|other| other.line < task.line).collect();
    let less_urgent = before.iter().filter(|other| other.priority > task.priority).count();
    let waits = before.len() - less_urgent;
    let priority = match task.priority {
        Priority::Medium => String::new(),
        priority => format!("priority {}; ", priority.as_str()),
    };
    let among = match (less_urgent, waits) {
        (0, 0) => "the first open task".to_owned(),
        (0, waits) => format!("the first open task but {waits} that {}", verb(waits, "wait")),
        (less, 0) => {
            format!("{} before it {} less urgent", ui::count(less, "open task"), be(less))
        }
        (less, waits) => format!(
            "of the open tasks before it {less} {} less urgent and {waits} {}",
            be(less),
            verb(waits, "wait")
        ),
    };
    format!("{priority}{among}")
}

fn be(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

fn verb(count: usize, verb: &str) -> String {
    if count == 1 { format!("{verb}s") } else { verb.to_owned() }
}

/// Explains why no task is open.
fn nothing(plan: &Plan) -> String {
    let progress = plan.progress();
    let mut text = format!(
        "Nothing is open: {} of {} done",
        progress.done(),
        ui::count(progress.total(), "task")
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

fn print(plan: &Plan, answer: &Answer<'_>, ui: &mut Ui<'_>) -> std::io::Result<()> {
    let Some(task) = answer.task else {
        writeln!(ui.out, "{}", ui::wrap(&answer.why, ui.columns, ""))?;
        for (task, why) in &answer.waiting {
            let id = printable(task.id.as_str());
            let room = ui.columns.saturating_sub(ui::width(&id) + 4);
            writeln!(ui.out, "  {}  {}", ui.paint(ui::ACCENT, &id), ui::fit(&task.text, room))?;
            writeln!(
                ui.out,
                "      {}",
                ui.paint(ui::WARN, ui::wrap(why, ui.columns.saturating_sub(6), "      "))
            )?;
        }
        if answer.choice == "unknown" {
            writeln!(ui.out, "`rep plan check` shows where.")?;
        }
        return Ok(());
    };
    let id = printable(task.id.as_str());
    let indent = " ".repeat(ui::width(&id) + 2);
    let room = ui.columns.saturating_sub(indent.len()).max(20);
    writeln!(
        ui.out,
        "{}  {}",
        ui.paint(ui::ACCENT, &id),
        ui.paint(ui::STRONG, ui::wrap(&task.text, room, &indent))
    )?;
    let section =
        task.section.map(|at| format!(" · {}", plan.sections[at].title)).unwrap_or_default();
    let place = format!("{}:{}{section}", plan.source().path(), task.line);
    writeln!(ui.out, "  {}", ui.paint(ui::FAINT, ui::fit(&place, ui.columns.saturating_sub(2))))?;
    let parent =
        task.parent.as_ref().and_then(|id| plan.task(id)).map(|parent| parent.text.clone());
    let hints: Vec<String> = task.hints.iter().map(|hint| format!("@{hint}")).collect();
    for (name, text) in [
        ("why", answer.why.clone()),
        ("part of", parent.unwrap_or_default()),
        ("after", finished(plan, task)),
        ("skills", hints.join(", ")),
        ("spec", task.spec_refs.join(", ")),
    ] {
        if !text.is_empty() {
            let text = ui::wrap(&text, ui.columns.saturating_sub(11), "           ");
            writeln!(ui.out, "  {}  {text}", ui.paint(ui::FAINT, ui::pad(name, 7)))?;
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
fn finished(plan: &Plan, task: &Task) -> String {
    let section =
        task.section.map(|at| plan.sections[at].blocked_by.as_slice()).unwrap_or_default();
    let all = task.blocked_by.iter().chain(section);
    let all = all.filter_map(|blocker| name_of_blocker(plan, &blocker.on));
    all.collect::<Vec<_>>().join(", ")
}

fn name_of_blocker(plan: &Plan, on: &BlockedOn) -> Option<String> {
    match on {
        BlockedOn::Task(id) => {
            let mark = plan.task(id).map_or(Mark::Open, |task| task.mark);
            Some(format!("{id} ({})", mark.described()))
        }
        BlockedOn::Section(at) => Some(format!("\"{}\"", plan.sections[*at].title)),
        BlockedOn::Nothing => None,
    }
}
