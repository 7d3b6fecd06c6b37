//! Workflows that are scripts: skills with a program that prints the steps.

use repertoire_flow::driver::{ScriptError, ScriptRun};

use super::record::program_failure;
use super::workflow_run_failure;
use crate::failure::{CliExit, CliFailure, CliResult};
use crate::ui::{self, TerminalUi};

/// Maximum number of lines shown of a failed script's output.
const SAID_LINES_MAX: usize = 5;

/// Prints the status of a script's run.
pub(super) fn print_status(run: &ScriptRun, ui: &mut TerminalUi<'_>) -> CliResult {
    let view = run.view();
    if ui.json {
        ui.print_json(&view)?;
        return Ok(exit_of(run));
    }
    writeln!(ui.out, "{}  {}", ui.paint(ui::STRONG, &run.run), ui.paint(ui::FAINT, &run.workflow))?;
    writeln!(
        ui.out,
        "  {} at step {} of {}: {}, turn {}",
        run.status(),
        view.step,
        view.total,
        ui::fit_columns(&view.title, 80),
        view.turn
    )?;
    Ok(exit_of(run))
}

pub(super) fn exit_of(run: &ScriptRun) -> CliExit {
    match run.status() {
        "active" | "done" => CliExit::Done,
        _ => CliExit::No,
    }
}

/// Converts an error of a script to a failure.
pub(super) fn script_failure(error: ScriptError) -> CliFailure {
    let message = error.to_string();
    let hint = "Nothing was changed: mend the script (a project's has to be trusted again), and run the same command.";
    match error {
        ScriptError::Run(error) => workflow_run_failure(error),
        ScriptError::Program(error) => program_failure(error),
        ScriptError::Failed { command, how } => {
            let mut lines = how.lines();
            let first = lines.next().unwrap_or_default();
            let mut failure = CliFailure::cannot_run(format!("`{command}` has failed: {first}"));
            // The reason is usually at the end of the output.
            for line in lines.rev().take(SAID_LINES_MAX).collect::<Vec<_>>().into_iter().rev() {
                failure = failure.hint(line);
            }
            failure.hint(hint)
        }
        ScriptError::Output(_) => CliFailure::cannot_run(message).hint(hint),
        ScriptError::Progress(_)
        | ScriptError::OtherTurn { .. }
        | ScriptError::Missing(_)
        | ScriptError::NoSuchArgument { .. }
        | ScriptError::NotWaiting => CliFailure::negative_answer(message),
    }
}
