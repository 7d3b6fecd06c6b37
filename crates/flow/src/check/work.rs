//! Checks parallel dispatches: no two sub-agents that run at the same time may change the same file.

use std::collections::BTreeSet;

use super::{Finding, Place};
use crate::codes;
use crate::workflow::{Block, Brief, Dispatch, Parallel, Shared, Workflow, shared_files};

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
        Dispatch::Parallel(parallel) => roster(parallel, place, out),
        Dispatch::Conditional(conditional) => {
            check_dispatch(&conditional.then, place, out);
            if let Some(other) = &conditional.otherwise {
                check_dispatch(other, place, out);
            }
        }
    }
}

fn roster(parallel: &Parallel, place: &Place, out: &mut Vec<Finding>) {
    let names: Vec<String> =
        parallel.agents.iter().enumerate().map(|(at, brief)| brief_name(at, brief)).collect();
    let mut seen = BTreeSet::new();
    for name in names.iter().filter(|name| !seen.insert(*name)) {
        let message = format!("two sub-agents are called `{name}`");
        out.push(Finding::new(&codes::STEP_ID, message, place.clone()));
    }
    if parallel.agents.is_empty() {
        let message = "there is no sub-agent to start";
        out.push(Finding::new(&codes::EMPTY_STEP, message, place.clone()));
    }
    let pieces: Vec<(&str, &[String])> = names
        .iter()
        .zip(&parallel.agents)
        .map(|(name, brief)| (name.as_str(), brief.files.as_slice()))
        .collect();
    for Shared { first, second, file } in shared_files(&pieces) {
        let message =
            format!("sub-agents `{first}` and `{second}` run at once and both change `{file}`");
        out.push(Finding::new(&codes::SHARED_FILE, message, place.clone()));
    }
}

fn brief_name(at: usize, brief: &Brief) -> String {
    if brief.id.is_empty() { (at + 1).to_string() } else { brief.id.clone() }
}
