//! Checks that the defaults, choices and ranges of parameters fit together.

use super::{Finding, Place};
use crate::codes;
use crate::workflow::{Arg, ArgType, Workflow};

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
        for (at, choice) in arg.choices.iter().enumerate() {
            let takes_words = !matches!(arg.kind, ArgType::Work | ArgType::Boolean);
            // List entries are text.
            let fits = arg.kind == ArgType::List
                || Arg { kind: arg.kind, ..Arg::default() }.parse(choice).is_ok();
            if !takes_words || !fits {
                let message = format!(
                    "`{choice}` is no choice for `{name}`, which is {}",
                    arg.kind.described()
                );
                bad(message, place.key("choices").index(at));
            }
        }
        let is_measured = !matches!(arg.kind, ArgType::Text | ArgType::Boolean);
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
