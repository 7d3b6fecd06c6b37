//! Work that is done at once: no two sub-agents may change the same file.

use std::collections::BTreeMap;

use super::{Finding, Place};
use crate::codes;
use crate::workflow::{Block, Dispatch, Parallel, Workflow};

pub(super) fn check(workflow: &Workflow, out: &mut Vec<Finding>) {
    for (at, step) in workflow.steps.iter().enumerate() {
        for (number, block) in step.actions.iter().enumerate() {
            if let Block::Dispatch(dispatch) = block {
                check_dispatch(dispatch, &Place::step(at).key("actions").index(number), out);
            }
        }
    }
}

fn check_dispatch(dispatch: &Dispatch, place: &Place, out: &mut Vec<Finding>) {
    match dispatch {
        Dispatch::Single(_) | Dispatch::Template(_) => {}
        Dispatch::Parallel(parallel) => shared_files(parallel, place, out),
        Dispatch::Conditional(conditional) => {
            check_dispatch(&conditional.then, place, out);
            if let Some(other) = &conditional.otherwise {
                check_dispatch(other, place, out);
            }
        }
    }
}

fn shared_files(parallel: &Parallel, place: &Place, out: &mut Vec<Finding>) {
    let mut owners: BTreeMap<&str, String> = BTreeMap::new();
    let mut names = BTreeMap::new();
    for (at, brief) in parallel.agents.iter().enumerate() {
        let name = if brief.id.is_empty() { format!("{}", at + 1) } else { brief.id.clone() };
        if names.insert(name.clone(), at).is_some() {
            let message = format!("two sub-agents are called `{name}`");
            out.push(Finding::new(&codes::STEP_ID, message, place.clone()));
        }
        for file in &brief.files {
            let file = file.trim_start_matches("./");
            let Some(other) = owners.insert(file, name.clone()).filter(|other| *other != name)
            else {
                continue;
            };
            let message =
                format!("sub-agents `{other}` and `{name}` run at once and both change `{file}`");
            out.push(Finding::new(&codes::SHARED_FILE, message, place.clone()));
        }
    }
}
