//! `rep workflow gate`: shows the verdict of a gate, and why.

use repertoire_flow::driver::Run;
use repertoire_flow::driver::shown::gate_in_question;
use repertoire_flow::engine::{Verdict, is_proven, verdict};
use repertoire_flow::state::{ItemStatus, Review};
use repertoire_flow::workflow::{Gate, Severity, StepDef, StepId};
use repertoire_text::terminal::printable;

use super::run_failed;
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::schema::workflow::GateJson;
use crate::ui::{self, Ui};

/// Arguments of `rep workflow gate`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the run, or a prefix of it
    run: String,
    /// The gate (default: the one whose review is in progress, or the last one that was)
    #[arg(long, value_name = "STEP")]
    gate: Option<String>,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let run = ctx.runs().open(&args.run).map_err(run_failed)?;
    let gate = args.gate.as_deref().map(StepId::from);
    if print(&run, gate.as_ref(), ui)? { Ok(Exit::Done) } else { Ok(Exit::No) }
}

/// Prints the verdict of a gate. Returns true if it is passed.
pub(super) fn print(run: &Run, wanted: Option<&StepId>, ui: &mut Ui<'_>) -> Result<bool, Failure> {
    let (step, gate) = of(run, wanted)?;
    let none = Review::default();
    let review = run.state.reviews.get(&step.id).unwrap_or(&none);
    let verdict = verdict(gate, review);
    let passed = matches!(verdict, Verdict::Pass { .. });
    if ui.json {
        ui.print_json(&GateJson::new(run, &step.id, gate, review, &verdict))?;
        return Ok(passed);
    }
    let word = match &verdict {
        Verdict::Pass { .. } => ui.paint(ui::GOOD, "pass"),
        Verdict::Fail { .. } => ui.paint(ui::BAD, "fail"),
        Verdict::Open { .. } => ui.paint(ui::WARN, "open"),
    };
    let granted = run.state.granted.get(&step.id).copied().unwrap_or_default();
    let limit = gate.limit().saturating_add(granted);
    let iteration = format!("iteration {} of {limit}", review.iteration);
    let blocks = match gate.blocking(review.iteration) {
        Severity::Could => "everything blocks",
        Severity::Should => "MUST and SHOULD block",
        Severity::Must => "only MUST blocks",
    };
    writeln!(
        ui.out,
        "{} {word} {}",
        ui.paint(ui::STRONG, printable(&gate.name)),
        ui.paint(ui::FAINT, format!("({}; {iteration}; {blocks})", step.id))
    )?;
    for item in &review.items {
        let finding = if item.finding.is_empty() { &item.check } else { &item.finding };
        print_line(&item.id, item.severity.as_str(), item.status, finding, ui)?;
    }
    for name in &gate.checks {
        let result = review.checks.get(name);
        let status = result.map_or(ItemStatus::Todo, |result| result.status);
        let note = result.map(|result| result.note.as_str()).unwrap_or_default();
        print_line(name, "check", status, note, ui)?;
    }
    let said = match &verdict {
        Verdict::Open { todo, checks } if todo.is_empty() && checks.is_empty() => {
            "Nothing was recorded; a gate without items cannot be passed.".to_owned()
        }
        Verdict::Open { todo, checks } => {
            format!("No verdict yet: {}.", [todo.as_slice(), checks].concat().join(", "))
        }
        Verdict::Fail { blocking, .. } => format!("Blocking: {}.", blocking.join(", ")),
        Verdict::Pass { passed_over } if !passed_over.is_empty() => {
            format!("Failed, and not blocking in this iteration: {}.", passed_over.join(", "))
        }
        Verdict::Pass { .. } => "Nothing blocks.".to_owned(),
    };
    writeln!(ui.out, "{said}")?;
    if passed {
        let proof = if is_proven(gate, review) {
            "Self-reviewed: its items were recorded in this run. A declared check is green."
        } else {
            "Self-reviewed, and no declared check has confirmed it: a person has to accept it."
        };
        writeln!(ui.out, "{proof}")?;
    }
    Ok(passed)
}

fn print_line(
    id: &str,
    severity: &str,
    status: ItemStatus,
    text: &str,
    ui: &mut Ui<'_>,
) -> std::io::Result<()> {
    let word = match status {
        ItemStatus::Pass => ui.paint(ui::GOOD, "PASS"),
        ItemStatus::Fail => ui.paint(ui::BAD, "FAIL"),
        ItemStatus::Todo => ui.paint(ui::WARN, "TODO"),
    };
    let (id, severity) = (ui::pad(&ui::fit(id, 16), 16), ui::pad(severity, 6));
    let text = ui::fit(text, ui.columns.saturating_sub(34).max(20));
    writeln!(ui.out, "  {word}  {severity}  {id}  {text}")
}

/// Returns the requested gate, or the current one.
fn of<'a>(run: &'a Run, wanted: Option<&StepId>) -> Result<(&'a StepDef, &'a Gate), Failure> {
    let workflow = run.workflow.workflow();
    let gates = || workflow.gates();
    if let Some(wanted) = wanted {
        return gates().find(|(step, _)| step.id == *wanted).ok_or_else(|| {
            let names: Vec<&str> = gates().map(|(step, _)| step.id.as_str()).collect();
            Failure::no(format!("there is no gate `{wanted}`"))
                .hint(format!("Gates of this workflow: {}.", names.join(", ")))
        });
    }
    gate_in_question(run)
        .ok_or_else(|| Failure::no(format!("workflow `{}` has no gate", workflow.name)))
}
