//! Parameters: that defaults, choices and ranges fit together.

use super::{Finding, Place};
use crate::codes;
use crate::workflow::Workflow;

pub(super) fn check(workflow: &Workflow, out: &mut Vec<Finding>) {
    for (name, arg) in &workflow.parameters {
        let place = Place::default().key("parameters").key(name.as_str());
        let mut bad = |message: String, place: Place| {
            out.push(Finding::new(&codes::BAD_PARAMETER, message, place));
        };
        if let Some(default) = &arg.default
            && let Err(error) = arg.accept(default.clone())
        {
            bad(format!("the default of `{name}` does not fit: {error}"), place.key("default"));
        }
        if arg.required && arg.default.is_some() {
            bad(
                format!("`{name}` is required and has a default; one of them is too many"),
                place.key("required"),
            );
        }
        if let (Some(min), Some(max)) = (arg.min, arg.max)
            && min > max
        {
            bad(format!("`{name}`: nothing is at least {min} and at most {max}"), place.key("min"));
        }
    }
}
