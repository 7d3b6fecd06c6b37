//! `rep workflow record`: what a review has found.

use repertoire_drive::limits::CHECK_TIMEOUT;
use repertoire_drive::workflow::{self, ProgramError, Run};
use repertoire_flow::engine::{self, Action, CheckRecord, Input, ItemRecord};
use repertoire_flow::items;
use repertoire_flow::state::{CheckResult, ItemStatus, Proof};
use repertoire_flow::workflow::StepId;
use repertoire_skill::trust::Trust;
use repertoire_text::terminal::printable;

use super::programs::{attended, workplace};
use super::{failed_for, find, gate, now_ms, run_failed, value_of};
use crate::cli::Ctx;
use crate::failure::{Exit, Failure, Outcome};
use crate::ui::Ui;

/// Which run, and what was found.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run, or the start of its name
    run: String,
    /// Items: `ID=PASS`, `ID=FAIL: finding`, or JSON with id, scope, check, severity, status and finding
    #[arg(value_name = "ITEM")]
    items: Vec<String>,
    /// Read items as JSON from a file, or from the input if it is `-`
    #[arg(long, value_name = "FILE")]
    from: Option<String>,
    /// A declared check: its name runs its command; `NAME=PASS` is for one that has none (may be repeated)
    #[arg(long = "check", value_name = "NAME")]
    checks: Vec<String>,
    /// The gate that it is for, where several are possible
    #[arg(long, value_name = "STEP")]
    gate: Option<String>,
}

pub(crate) fn run(ctx: &Ctx<'_>, args: &Args, ui: &mut Ui<'_>) -> Outcome {
    let items = read_items(ctx, args)?;
    if items.is_empty() && args.checks.is_empty() {
        return Err(Failure::usage("there is nothing to record")
            .hint("Write `ID=PASS`, `'ID=FAIL: finding'`, JSON, or `--check NAME`."));
    }
    let gate = args.gate.as_deref().map(StepId::from);
    let checks = checks(ctx, args, gate.as_ref(), ui)?;
    let action = Action::Record { gate: gate.clone(), items, checks };
    let run = ctx
        .runs()
        .report(&args.run, &Input::now(action), now_ms())
        .map_err(|error| failed_for(&args.run, error))?;
    gate::print(&run, gate.as_ref(), ui)?;
    Ok(Exit::Done)
}

fn read_items(ctx: &Ctx<'_>, args: &Args) -> Result<Vec<ItemRecord>, Failure> {
    let mut texts = args.items.clone();
    if let Some(from) = &args.from {
        let source = if from == "-" { from.clone() } else { format!("@{from}") };
        texts.push(value_of(ctx, &source)?);
    }
    let mut all = Vec::new();
    for text in texts.iter().filter(|text| !text.trim().is_empty()) {
        all.extend(items::parse(text).map_err(|error| Failure::usage(error.to_string()))?);
    }
    Ok(all)
}

/// The verdicts of checks: claimed ones as they are typed, the others by running them.
fn checks(
    ctx: &Ctx<'_>,
    args: &Args,
    gate: Option<&StepId>,
    ui: &mut Ui<'_>,
) -> Result<Vec<CheckRecord>, Failure> {
    let mut all = Vec::new();
    for text in &args.checks {
        if text.contains('=') {
            let claimed = items::parse_check(text);
            all.push(claimed.map_err(|error| Failure::usage(error.to_string()))?);
            continue;
        }
        all.push(run_check(ctx, &args.run, gate, text, ui)?);
    }
    Ok(all)
}

/// Runs a check. Nothing is held meanwhile: others may record, and the engine looks at the command again afterwards.
fn run_check(
    ctx: &Ctx<'_>,
    wanted: &str,
    gate: Option<&StepId>,
    name: &str,
    ui: &mut Ui<'_>,
) -> Result<CheckRecord, Failure> {
    let mut run = ctx.runs().open(wanted).map_err(run_failed)?;
    run.head.trusted |= is_trusted_now(ctx, &run)?;
    let command = workflow::check_command(&run, name).map_err(not_run)?;
    if !run.head.trusted && !command.is_empty() {
        return Err(not_run(ProgramError::NotTrusted { workflow: run.state.workflow.clone() }));
    }
    // What could not be recorded is not run.
    let result = CheckResult {
        status: ItemStatus::Fail,
        proof: Proof::Run { command: command.clone(), exit_code: None },
        note: String::new(),
    };
    let trial = Action::Record {
        gate: gate.cloned(),
        items: Vec::new(),
        checks: vec![CheckRecord { name: name.to_owned(), result }],
    };
    engine::next(&run.workflow, &run.state, &Input::now(trial))
        .map_err(|refusal| failed_for(wanted, refusal.into()))?;
    if !command.is_empty() {
        ui.note(&format!("running {name}: {}", printable(&command)))?;
    }
    let workplace = workplace(ctx, &run.head.folder)?;
    let record = attended(async |cancel| {
        workflow::run_check(&run, name, &workplace, CHECK_TIMEOUT, cancel).await.map_err(not_run)
    });
    workplace.clean_up();
    record
}

/// Whether the skill is trusted by now, and its workflow is still the one that the run was started with.
fn is_trusted_now(ctx: &Ctx<'_>, run: &Run) -> Result<bool, Failure> {
    if run.head.trusted {
        return Ok(true);
    }
    let Ok((entry, loaded)) = find(ctx.catalog()?, &run.state.workflow) else { return Ok(false) };
    let is_same =
        loaded.checked.is_some_and(|checked| *checked.fingerprint() == run.state.fingerprint);
    Ok(entry.trust == Trust::Trusted && is_same)
}

pub(super) fn not_run(error: ProgramError) -> Failure {
    let message = error.to_string();
    match error {
        ProgramError::NotTrusted { workflow } => {
            let skill = workflow.split('/').next().unwrap_or_default().to_owned();
            Failure::no(message)
                .hint(format!("Look at it, then `rep trust {skill}`; a run goes on if its workflow was not changed since."))
        }
        ProgramError::NoCommand { name } => Failure::no(message).hint(format!(
            "Record what you saw: `--check {name}=PASS` or `--check '{name}=FAIL: why'`."
        )),
        ProgramError::NoSuchCheck { .. } | ProgramError::Template { .. } => Failure::no(message),
        ProgramError::Cancelled => Failure { exit: Exit::Interrupted, ..Failure::no(message) },
        ProgramError::Process(_) => Failure::cannot_run(message),
    }
}
