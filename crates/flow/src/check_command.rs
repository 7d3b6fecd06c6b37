//! The commands of declared checks: rendered so that a value is a word and never a command, and the values in them
//! that the worker decides.
//!
//! A check proves something about the work only if the one who did the work did not decide what it looks at.

use std::collections::BTreeSet;

use crate::step::ShellCommand;
use crate::template::{
    CommandValues, TemplateError, TemplateScope, names_in_text, render_command, render_template,
};
use crate::workflow::{DeclaredCheck, Workflow};

/// The fields of `state` that the engine or the starter of the run decides.
const STATE_OF_ENGINE: [&str; 3] = ["state.run", "state.step", "state.iteration"];

/// Renders the command of a check; empty if there is nothing to run. Every value is quoted as one word. The exception
/// is a value that is the whole command, if only the starter of the run can have given it.
///
/// # Errors
///
/// If a value is missing, or stands where it cannot be quoted.
pub fn render_check_command(
    workflow: &Workflow,
    check: &DeclaredCheck,
    scope: &TemplateScope,
) -> Result<String, TemplateError> {
    if check.is_built_in() {
        let path = render_template(check.path_template(), scope)?;
        let words: &[&str] =
            if check.file.is_empty() { &["rep", "plan", "check"] } else { &["test", "-s"] };
        return Ok(ShellCommand::new(words.iter().copied().chain([path.trim()])).line);
    }
    let plain = render_template(&check.command, scope)?;
    if plain.trim().is_empty() {
        return Ok(String::new());
    }
    let values = match worker_values(workflow, check).is_empty() {
        true => CommandValues::QuotedUnlessWhole,
        false => CommandValues::Quoted,
    };
    Ok(render_command(&check.command, scope, values)?.trim().to_owned())
}

/// The names in a check's command or path whose values the worker reports: parameters that a step sets, outputs,
/// answers and errors. What such a check says is the worker's own word.
pub fn worker_values(workflow: &Workflow, check: &DeclaredCheck) -> BTreeSet<String> {
    // The checker reports a text that is not a template.
    let names = names_in_text(&check.command_template()).unwrap_or_default();
    let sets: BTreeSet<&str> =
        workflow.steps.iter().flat_map(|step| &step.sets).map(String::as_str).collect();
    let is_reported = |name: &String| match name.split('.').next().unwrap_or_default() {
        "state" => !STATE_OF_ENGINE.contains(&name.as_str()),
        first => sets.contains(first),
    };
    names.into_iter().filter(is_reported).collect()
}
