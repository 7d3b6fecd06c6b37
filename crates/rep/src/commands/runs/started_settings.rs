//! Compares the settings that a run was started with to the current settings of its project.

use camino::Utf8Path;
use repertoire::config::{ConfigFlags, KEY, RepConfig};
use repertoire::plan_setup::CheckStage;
use repertoire_checks::declared::CheckDefinition;
use repertoire_journal::Run;
use repertoire_plan::{KIND, PlanRequest};

use crate::cli::CliContext;
use crate::failure::CliFailure;
use crate::ui::TerminalUi;

/// Notes that a run keeps the settings it was started with, if its project has different ones now.
///
/// # Errors
///
/// Fails if `--consent` is given for settings that the run does not use, since they would not take
/// effect.
pub(super) fn compare_settings(
    ctx: &CliContext<'_>,
    run: &Run,
    ui: &mut TerminalUi<'_>,
) -> Result<(), CliFailure> {
    let Some(request) = plan_request(run) else { return Ok(()) };
    let workspace = Utf8Path::new(&run.workspace);
    let env = ctx.env.in_folder(workspace);
    let consents = ctx.config.flag_consents().to_vec();
    // The run may have been started in a subfolder with its own settings.
    let config = if ctx.project_dir(None) == workspace {
        ctx.config.clone()
    } else {
        RepConfig::load(
            &env,
            workspace,
            &ConfigFlags { consents: consents.clone(), ..ConfigFlags::default() },
        )?
    };
    let proposed = config.pending_proposal().map(|proposal| proposal.settings.digest());
    let current = CliContext::new(&env, config.with_proposal_in_force());
    let changed = changed_keys(&current, &request);
    let restart = restart_hint(run);
    let is_agreed = consents.iter().all(|digest| Some(*digest) == proposed);
    if !consents.is_empty() && (!changed.is_empty() || !is_agreed) {
        return Err(CliFailure::cannot_run(
            "nothing was run: `--consent` is for settings that this run does not use; it keeps those that it was \
             started with",
        )
        .hint(restart));
    }
    if !changed.is_empty() {
        let names: Vec<String> = changed.iter().map(|key| format!("`{key}`")).collect();
        ui.print_note(&format!(
            "this run keeps the settings it was started with; different now: {}",
            names.join(", ")
        ))?;
        ui.print_note(&format!("hint: {restart}"))?;
    }
    Ok(())
}

/// Returns the request of a plan run whose project is on this machine. GitHub runs are left out,
/// since they take their settings from the base branch.
fn plan_request(run: &Run) -> Option<PlanRequest> {
    let is_here = run.kind == KIND && Utf8Path::new(&run.workspace).is_dir();
    let request: PlanRequest = serde_json::from_value(run.request.clone()).ok()?;
    (is_here && request.asked.is_none()).then_some(request)
}

fn restart_hint(run: &Run) -> String {
    if run.status.is_over() {
        return "To use the settings as they are now, start a new run: `rep plan run`.".to_owned();
    }
    let short = run.id.short();
    format!(
        "To use the settings as they are now, start a new run: `rep runs cancel {short}` and `rep plan run`."
    )
}

/// Returns the keys of settings that start programs and differ from those of the run. `current`
/// must have all of them in force.
fn changed_keys(current: &CliContext<'_>, request: &PlanRequest) -> Vec<&'static str> {
    let values = current.config.values();
    let setup = values.plan_setup.as_deref().filter(|command| !command.trim().is_empty());
    // Checks that cannot be parsed count as changed.
    let differ = |stage: CheckStage, started: &[CheckDefinition]| {
        current
            .declared_checks(stage)
            .map_or(true, |declared| !is_declared_or_typed(started, &declared))
    };
    // `--self-improve` turns it on for one run, so only report the setting if the run lacks it.
    let lacks_improve = values.plan_self_improve && request.improve.is_none();
    [
        (&KEY.plan_setup, setup != request.setup.as_deref()),
        (&KEY.plan_copy, values.plan_copy != request.copy),
        (&KEY.plan_checks, differ(CheckStage::EveryChange, &request.checks)),
        (&KEY.plan_final_checks, differ(CheckStage::Completion, &request.final_checks)),
        (&KEY.plan_self_improve, lacks_improve),
    ]
    .into_iter()
    .filter_map(|(key, has_changed)| has_changed.then_some(key.name))
    .collect()
}

/// Returns true if the checks of a run are the declared ones, followed by those of `--check`.
fn is_declared_or_typed(started: &[CheckDefinition], declared: &[CheckDefinition]) -> bool {
    let Some(typed) = started.strip_prefix(declared) else { return false };
    typed.iter().enumerate().all(|(at, check)| check.name == format!("check-{}", at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_of_the_command_line_are_no_change_of_the_settings() {
        let [build, test, typed] =
            ["build", "test", "check-1"].map(|name| CheckDefinition::new(name, "true"));
        let declared = [build.clone(), test.clone()];
        assert!(is_declared_or_typed(&declared, &declared));
        assert!(is_declared_or_typed(&[build.clone(), test.clone(), typed.clone()], &declared));
        assert!(is_declared_or_typed(&[typed], &[]));
        assert!(!is_declared_or_typed(&declared, &declared[..1]));
        assert!(!is_declared_or_typed(&declared[..1], &declared));
        let changed = CheckDefinition::new("test", "false");
        assert!(!is_declared_or_typed(&[build, changed], &declared));
    }
}
