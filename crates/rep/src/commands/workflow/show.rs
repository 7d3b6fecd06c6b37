//! `rep workflow show`: prints the steps of a workflow and their transitions.

use repertoire_flow::workflow::{
    Decide, EdgeTarget, StepDef, SubagentDispatch, Workflow, WorkflowOutcome as Ended,
    WorkflowParameter,
};
use repertoire_text::terminal::printable_line;

use super::find_workflow;
use crate::cli::CliContext;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::schema::workflow::WorkflowJson;
use crate::ui::{self, TerminalUi};

/// Arguments of `rep workflow show`
#[derive(Debug, clap::Args)]
pub(crate) struct WorkflowShowArgs {
    /// Name of the workflow, also as `skill/name`
    name: String,
}

pub(crate) fn run(
    ctx: &CliContext<'_>,
    args: &WorkflowShowArgs,
    ui: &mut TerminalUi<'_>,
) -> CliResult {
    let (_, loaded) = find_workflow(ctx.load_catalog()?, &args.name)?;
    let path = loaded.source.path().to_owned();
    let can_run = loaded.checked.is_some();
    let fingerprint =
        loaded.checked.as_ref().map(|checked| checked.fingerprint().as_str().to_owned());
    let Some(workflow) = loaded.workflow else {
        return Err(CliFailure::negative_answer(format!(
            "workflow `{}` cannot be read",
            loaded.name
        ))
        .hint(format!("`rep workflow check {}` says why.", loaded.name)));
    };
    if ui.json {
        let parameters = workflow.parameters.clone().into_iter().collect();
        let path = path.to_string();
        ui.print_json(&WorkflowJson { workflow, path, fingerprint, can_run, parameters })?;
        return Ok(CliExit::Done);
    }
    print_workflow(&workflow, &ctx.config.places().shorten_path(&path), ui)?;
    if !can_run {
        writeln!(ui.out, "\nIt cannot run: `rep workflow check {}` says why.", loaded.name)?;
        return Ok(CliExit::No);
    }
    Ok(CliExit::Done)
}

fn print_workflow(workflow: &Workflow, path: &str, ui: &mut TerminalUi<'_>) -> std::io::Result<()> {
    let facts = format!("{} · {path}", ui::format_count(workflow.steps.len(), "step"));
    let name = ui.paint(ui::STRONG, printable_line(&workflow.name));
    let room = ui.columns.saturating_sub(2);
    if ui::text_width(&workflow.name) + ui::text_width(&facts) <= room {
        writeln!(ui.out, "{name}  {}", ui.paint(ui::FAINT, facts))?;
    } else {
        writeln!(ui.out, "{name}\n  {}", ui.paint(ui::FAINT, ui::wrap_words(&facts, room, "  ")))?;
    }
    writeln!(ui.out, "  {}\n", ui::wrap_words(&workflow.description, room, "  "))?;
    if !workflow.parameters.is_empty() {
        writeln!(ui.out, "{}", ui.paint(ui::STRONG, "Parameters"))?;
        let names = workflow.parameters.keys().map(|name| ui::text_width(name)).max().unwrap_or(0);
        for (name, arg) in &workflow.parameters {
            print_parameter(name, names, arg, ui)?;
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
                writeln!(ui.out, "  {}", ui.paint(ui::FAINT, ui::fit_columns(title, room)))?;
            }
        }
        print_step_line(workflow, at, step, ui)?;
    }
    Ok(())
}

/// Minimum width of the text beside a parameter's name. With less room it goes below.
const BESIDE_MIN: usize = 28;

fn print_parameter(
    name: &str,
    names: usize,
    arg: &WorkflowParameter,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    let mut takes = if arg.choices.is_empty() {
        arg.kind.described().to_owned()
    } else {
        arg.choices.join(" | ")
    };
    match (&arg.default, arg.required) {
        (Some(default), _) => takes.push_str(&format!(", {default} by default")),
        (None, true) => takes.push_str(", needed"),
        (None, false) => {}
    }
    let beside = names + 4;
    let (start, indent) = if ui.columns >= beside + BESIDE_MIN {
        (
            format!("{}  ", ui.paint(ui::ACCENT, ui::pad_columns(&printable_line(name), names))),
            beside,
        )
    } else {
        (format!("{}\n      ", ui.paint(ui::ACCENT, printable_line(name))), 6)
    };
    let (room, blank) = (ui.columns.saturating_sub(indent), " ".repeat(indent));
    let text = ui::wrap_words(&arg.description, room, &blank);
    let takes = format!("({takes})");
    // Wrapped separately, since it has a different colour.
    let used = text.lines().last().map_or(0, |last| ui::text_width(last.trim_start()));
    let gap = match used {
        0 => String::new(),
        used if used + 1 + ui::text_width(&takes) <= room => " ".to_owned(),
        _ => format!("\n{blank}"),
    };
    let takes = ui.paint(ui::FAINT, ui::wrap_words(&takes, room, &blank));
    writeln!(ui.out, "  {start}{text}{gap}{takes}")
}

/// Prints a step with its number. Its properties and transitions follow on the same line, or below
/// if there is no room.
fn print_step_line(
    workflow: &Workflow,
    at: usize,
    step: &StepDef,
    ui: &mut TerminalUi<'_>,
) -> std::io::Result<()> {
    const INDENT: usize = 7;
    let (room, blank) = (ui.columns.saturating_sub(INDENT), " ".repeat(INDENT));
    let title = ui::fit_columns(&step.title, room);
    let kind = match printable_line(&describe_step(step)).as_str() {
        "" => String::new(),
        kind => format!("[{kind}]"),
    };
    let leads = printable_line(&describe_transitions(workflow, step));
    let mut line = format!("  {:>3}. {title}", at + 1);
    let mut used = ui::text_width(&title);
    for (text, style, gap) in [(kind, ui::ACCENT, " "), (leads, ui::FAINT, "  ")] {
        if text.is_empty() {
            continue;
        }
        let length = ui::text_width(&text);
        if used + gap.len() + length <= room {
            line.push_str(&format!("{gap}{}", ui.paint(style, &text)));
            used += gap.len() + length;
            continue;
        }
        let text = ui::wrap_words(&text, room, &blank);
        used = text.lines().last().map_or(0, |last| ui::text_width(last.trim_start()));
        line.push_str(&format!("\n{blank}{}", ui.paint(style, text)));
    }
    writeln!(ui.out, "{line}")
}

/// Describes the special properties of a step.
fn describe_step(step: &StepDef) -> String {
    let mut parts = Vec::new();
    match &step.decide {
        Decide::Gate(gate) => parts.push(format!("gate, at most {} times", gate.iteration_limit())),
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
            SubagentDispatch::Parallel(parallel) => {
                ui::format_count(parallel.agents.len(), "sub-agent")
            }
            SubagentDispatch::Template(template) => {
                format!("a sub-agent for each of {}", template.over)
            }
            SubagentDispatch::Single(brief) => format!("sub-agent {}", brief.agent),
            SubagentDispatch::Conditional(_) => "a sub-agent by condition".to_owned(),
        });
    }
    if let Some(role) = &step.role {
        parts.push(format!("by {role}"));
    }
    parts.join("; ")
}

/// Lists the transitions of a step.
fn describe_transitions(workflow: &Workflow, step: &StepDef) -> String {
    let edges = step.next.all_edges();
    if let [(Ended::Ok, target)] = edges.as_slice() {
        return format!("→ {}", target_number(workflow, target));
    }
    let ways = edges
        .iter()
        .map(|(outcome, target)| format!("{outcome} → {}", target_number(workflow, target)));
    ways.collect::<Vec<String>>().join(", ")
}

fn target_number(workflow: &Workflow, target: &EdgeTarget) -> String {
    match target {
        EdgeTarget::End => "end".to_owned(),
        EdgeTarget::Step(id) => {
            workflow.step_number(id).map_or_else(|| "?".to_owned(), |number| number.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use repertoire_flow::file::{WorkflowContext, read_source};
    use repertoire_text::Source;

    use super::*;

    const LONG: &str = "\
parameters:
  a_parameter_with_quite_a_long_name: { description: What it is for, choices: [one-of-several-words, another-of-them, and-a-third] }
  short: { required: true }
phases: { p: A phase whose title is longer than some terminals are wide and says all there is to say }
steps:
  - id: one
    title: A step whose title is longer than some terminals are wide, since it says all that there is to say
    phase: p
    actions: [Do it]
    loop: { max: 3 }
    next: { ok: two, again: one, something-else: two, something-else-again: one, nothing: end }
  - { id: two, title: Two, actions: [Do it], next: end }
";

    fn shown(columns: usize) -> String {
        let around = WorkflowContext {
            name: "long",
            description: "A workflow with a description that takes more than one line on most terminals.",
            siblings: ("long", &[]),
            read: &|_| Err("there is no such file".to_owned()),
        };
        let loaded = read_source(Source::new("workflow.yaml", LONG.to_owned()), &around);
        let workflow = loaded.workflow.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics));
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut ui = TerminalUi {
            out: &mut out,
            err: &mut err,
            colour: false,
            err_colour: false,
            columns,
            json: false,
        };
        print_workflow(&workflow, "~/skills/long/workflow.yaml", &mut ui).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_line_fits_the_terminal() {
        for columns in [40, 60, 80, 100, 140] {
            let text = shown(columns);
            let wide = |line: &&str| ui::text_width(line) > columns;
            assert_eq!(text.lines().find(wide), None, "{columns}:\n{text}");
            assert!(text.lines().all(|line| line == line.trim_end()), "{columns}:\n{text}");
        }
    }

    #[test]
    fn what_has_no_room_beside_a_step_stands_below() {
        insta::assert_snapshot!(shown(60), @"
        long  2 steps · ~/skills/long/workflow.yaml
          A workflow with a description that takes more than one
          line on most terminals.

        Parameters
          a_parameter_with_quite_a_long_name
              What it is for
              (one-of-several-words | another-of-them | and-a-third)
          short
              (text, needed)

        Steps
          A phase whose title is longer than some terminals are wid…
            1. A step whose title is longer than some terminals are…
               [at most 3 times]
               ok → 2, again → 1, something-else → 2,
               something-else-again → 1, nothing → end
            2. Two  → end
        ");
    }
}
