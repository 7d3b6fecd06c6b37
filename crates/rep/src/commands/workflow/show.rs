//! `rep workflow show`: the steps of a workflow, and where they lead.

use repertoire_flow::workflow::{Decide, Dispatch, Outcome as Ended, StepDef, Target, Workflow};
use repertoire_text::terminal::printable;

use super::find;
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::schema::workflow::WorkflowJson;
use crate::ui::{self, Ui};

/// Which workflow.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Its name, also `skill/name`
    name: String,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let (_, loaded) = find(ctx.catalog()?, &args.name)?;
    let path = loaded.source.path().to_owned();
    let can_run = loaded.checked.is_some();
    let fingerprint =
        loaded.checked.as_ref().map(|checked| checked.fingerprint().as_str().to_owned());
    let Some(workflow) = loaded.workflow else {
        return Err(Failure::no(format!("workflow `{}` cannot be read", loaded.name))
            .hint(format!("`rep workflow check {}` says why.", loaded.name)));
    };
    if ui.json {
        let parameters = workflow.parameters.clone().into_iter().collect();
        let path = path.to_string();
        ui.print_json(&WorkflowJson { workflow, path, fingerprint, can_run, parameters })?;
        return Ok(Exit::Done);
    }
    print(&workflow, &ctx.config.places().shorten(&path), ui)?;
    if !can_run {
        writeln!(ui.out, "\nIt cannot run: `rep workflow check {}` says why.", loaded.name)?;
        return Ok(Exit::No);
    }
    Ok(Exit::Done)
}

fn print(workflow: &Workflow, path: &str, ui: &mut Ui<'_>) -> std::io::Result<()> {
    let facts = format!("{} · {path}", ui::count(workflow.steps.len(), "step"));
    writeln!(
        ui.out,
        "{}  {}",
        ui.paint(ui::STRONG, printable(&workflow.name)),
        ui.paint(ui::FAINT, facts)
    )?;
    let room = ui.columns.saturating_sub(4);
    writeln!(ui.out, "  {}\n", ui::wrap(&workflow.description, room, "  "))?;
    if !workflow.parameters.is_empty() {
        writeln!(ui.out, "{}", ui.paint(ui::STRONG, "Parameters"))?;
        let names = workflow.parameters.keys().map(|name| ui::width(name)).max().unwrap_or(0);
        for (name, arg) in &workflow.parameters {
            let mut takes = match arg.choices.is_empty() {
                true => arg.kind.described().to_owned(),
                false => arg.choices.join(" | "),
            };
            match (&arg.default, arg.required) {
                (Some(default), _) => takes.push_str(&format!(", {default} by default")),
                (None, true) => takes.push_str(", needed"),
                (None, false) => {}
            }
            let name = ui.paint(ui::ACCENT, ui::pad(&printable(name), names));
            let text = ui::wrap(
                &arg.description,
                room.saturating_sub(names + 2).max(20),
                &" ".repeat(names + 4),
            );
            writeln!(
                ui.out,
                "  {name}  {text} {}",
                ui.paint(ui::FAINT, printable(&format!("({takes})")))
            )?;
        }
        writeln!(ui.out)?;
    }
    writeln!(ui.out, "{}", ui.paint(ui::STRONG, "Steps"))?;
    let mut phase = None;
    for (at, step) in workflow.steps.iter().enumerate() {
        if step.phase != phase {
            phase = step.phase.clone();
            let title = phase.as_ref().and_then(|id| workflow.phases.get(id));
            if let Some(title) = title {
                writeln!(ui.out, "  {}", ui.paint(ui::FAINT, printable(title)))?;
            }
        }
        let title = ui::fit(&step.title, 44);
        let kind = printable(&kind(step));
        let kind = if kind.is_empty() { String::new() } else { format!(" [{kind}]") };
        let leads = printable(&ways(workflow, step));
        writeln!(
            ui.out,
            "  {:>3}. {}{}  {}",
            at + 1,
            title,
            ui.paint(ui::ACCENT, kind),
            ui.paint(ui::FAINT, leads)
        )?;
    }
    Ok(())
}

/// What is special about a step.
fn kind(step: &StepDef) -> String {
    let mut parts = Vec::new();
    match &step.decide {
        Decide::Gate(gate) => parts.push(format!("gate, at most {} times", gate.limit())),
        Decide::Confidence(confidence) => {
            parts.push(format!("until {}, at most {} times", confidence.until, confidence.max));
        }
        Decide::Cases(_) => parts.push("decided by the engine".to_owned()),
        Decide::Reported => {}
    }
    if let Some(bound) = &step.bound {
        parts.push(format!("at most {} times", bound.max));
    }
    for dispatch in step.dispatches() {
        parts.push(match dispatch {
            Dispatch::Parallel(parallel) => ui::count(parallel.agents.len(), "sub-agent"),
            Dispatch::Template(template) => format!("a sub-agent for each of {}", template.over),
            Dispatch::Single(brief) => format!("sub-agent {}", brief.agent),
            Dispatch::Conditional(_) => "a sub-agent by condition".to_owned(),
        });
    }
    if let Some(role) = &step.role {
        parts.push(format!("by {role}"));
    }
    parts.join("; ")
}

/// Where a step leads: nothing to say if it is only the next one.
fn ways(workflow: &Workflow, step: &StepDef) -> String {
    let number = |target: &Target| match target {
        Target::End => "end".to_owned(),
        Target::Step(id) => {
            workflow.number(id).map_or_else(|| "?".to_owned(), |number| number.to_string())
        }
    };
    let edges = step.next.edges();
    if let [(Ended::Ok, target)] = edges.as_slice() {
        return format!("→ {}", number(target));
    }
    let ways: Vec<String> =
        edges.iter().map(|(outcome, target)| format!("{outcome} → {}", number(target))).collect();
    ways.join(", ")
}
