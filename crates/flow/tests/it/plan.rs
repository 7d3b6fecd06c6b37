//! Plan files: what is read, what is chosen, what is changed, what is found wrong.

mod told;

use camino::Utf8Path;
use repertoire_flow::plan::{Plan, parse};

/// A plan of that text, in a file of no particular habit.
fn plan(text: &str) -> Plan {
    parse(text, Utf8Path::new("PLAN.md"))
}

/// One line a task: mark, id if it is a label, text.
fn shown(plan: &Plan) -> String {
    let line = |task: &repertoire_flow::plan::Task| {
        let label = task.label.as_deref().map(|label| format!("<{label}> ")).unwrap_or_default();
        format!("{} {label}{}", task.mark.symbol(), task.text)
    };
    plan.tasks.iter().map(line).collect::<Vec<_>>().join("\n")
}
