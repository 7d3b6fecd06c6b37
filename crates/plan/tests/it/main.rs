//! Plan files: what is read, what is chosen, what is changed, what is found wrong.

mod chosen;
mod edited;
mod found;
mod hostile;
mod told;

use camino::Utf8Path;
use repertoire_plan::document::{PlanDocument, parse_plan};

/// A plan of that text, in a file of no particular habit.
fn plan(text: &str) -> PlanDocument {
    parse_plan(text, Utf8Path::new("PLAN.md"))
}

/// One line a task: mark, id if it is a label, text.
fn shown(plan: &PlanDocument) -> String {
    let line = |task: &repertoire_plan::document::PlanTask| {
        let label = task.label.as_deref().map(|label| format!("<{label}> ")).unwrap_or_default();
        format!("{} {label}{}", task.mark.symbol(), task.text)
    };
    plan.tasks.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Whether two texts have the same bytes but for one box, which takes four at most.
fn differ_in_one_box(a: &str, b: &str) -> bool {
    let head = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let tail = a.bytes().rev().zip(b.bytes().rev()).take_while(|(a, b)| a == b).count();
    let middle = |text: &str| text.len().saturating_sub(head + tail);
    // A sign of two bytes, and a question mark that comes or goes.
    middle(a) <= 6 && middle(b) <= 6
}
