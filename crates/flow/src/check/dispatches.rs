//! Checks parallel dispatches: no two sub-agents that run at the same time may change the same file.

use std::collections::BTreeSet;

use super::{FieldPath, WorkflowFinding};
use crate::codes;
use crate::workflow::{
    ParallelDispatch, SharedFile, StepBlock, SubagentBrief, SubagentDispatch, Workflow,
    find_shared_files,
};

pub(super) fn check_dispatches(workflow: &Workflow, out: &mut Vec<WorkflowFinding>) {
    for (at, step) in workflow.steps.iter().enumerate() {
        for (number, block) in step.actions.iter().enumerate() {
            if let StepBlock::Dispatch(dispatch) = block {
                check_dispatch(
                    dispatch,
                    &FieldPath::for_step(at).key("actions").index(number),
                    out,
                );
            }
        }
    }
}

fn check_dispatch(dispatch: &SubagentDispatch, place: &FieldPath, out: &mut Vec<WorkflowFinding>) {
    match dispatch {
        SubagentDispatch::Single(_) | SubagentDispatch::Template(_) => {}
        SubagentDispatch::Parallel(parallel) => check_parallel(parallel, place, out),
        SubagentDispatch::Conditional(conditional) => {
            check_dispatch(&conditional.then, place, out);
            if let Some(other) = &conditional.otherwise {
                check_dispatch(other, place, out);
            }
        }
    }
}

fn check_parallel(parallel: &ParallelDispatch, place: &FieldPath, out: &mut Vec<WorkflowFinding>) {
    let names: Vec<String> =
        parallel.agents.iter().enumerate().map(|(at, brief)| brief_name(at, brief)).collect();
    let mut seen = BTreeSet::new();
    for name in names.iter().filter(|name| !seen.insert(*name)) {
        let message = format!("two sub-agents are called `{name}`");
        out.push(WorkflowFinding::new(&codes::STEP_ID, message, place.clone()));
    }
    if parallel.agents.is_empty() {
        let message = "there is no sub-agent to start";
        out.push(WorkflowFinding::new(&codes::EMPTY_STEP, message, place.clone()));
    }
    let pieces: Vec<(&str, &[String])> = names
        .iter()
        .zip(&parallel.agents)
        .map(|(name, brief)| (name.as_str(), brief.files.as_slice()))
        .collect();
    for SharedFile { first, second, file } in find_shared_files(&pieces) {
        let message =
            format!("sub-agents `{first}` and `{second}` run at once and both change `{file}`");
        out.push(WorkflowFinding::new(&codes::SHARED_FILE, message, place.clone()));
    }
}

fn brief_name(at: usize, brief: &SubagentBrief) -> String {
    if brief.id.is_empty() { (at + 1).to_string() } else { brief.id.clone() }
}
