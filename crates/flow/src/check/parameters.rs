//! Checks that the defaults, choices and ranges of parameters fit together.

use super::{FieldPath, WorkflowFinding};
use crate::codes;
use crate::workflow::{ParameterType, Workflow, WorkflowParameter};

pub(super) fn check_parameters(workflow: &Workflow, out: &mut Vec<WorkflowFinding>) {
    for (name, arg) in &workflow.parameters {
        let place = FieldPath::default().key("parameters").key(name.as_str());
        let mut bad = |message: String, place: FieldPath| {
            out.push(WorkflowFinding::new(&codes::BAD_PARAMETER, message, place));
        };
        if let Some(default) = &arg.default
            && let Err(error) = arg.check_value(default.clone())
        {
            bad(format!("the default of `{name}` does not fit: {error}"), place.key("default"));
        }
        for (at, choice) in arg.choices.iter().enumerate() {
            let takes_words = !matches!(arg.kind, ParameterType::Work | ParameterType::Boolean);
            // List entries are text.
            let fits = arg.kind == ParameterType::List
                || WorkflowParameter { kind: arg.kind, ..WorkflowParameter::default() }
                    .parse_value(choice)
                    .is_ok();
            if !takes_words || !fits {
                let message = format!(
                    "`{choice}` is no choice for `{name}`, which is {}",
                    arg.kind.described()
                );
                bad(message, place.key("choices").index(at));
            }
        }
        let is_measured = !matches!(arg.kind, ParameterType::Text | ParameterType::Boolean);
        if !is_measured && (arg.min.is_some() || arg.max.is_some()) {
            let message =
                format!("`{name}` is {}, which has no `min` and no `max`", arg.kind.described());
            bad(message, place.clone());
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
