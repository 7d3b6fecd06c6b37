//! Every step of every workflow that is shipped, without a run.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use repertoire_skill::skill::SkillOrigin;
use repertoire_skill::{load, pack};
use repertoire_text::{Limits, Source};

use super::super::{QrStatus, StatelessFlags, stateless_view};
use super::flags_of;
use crate::check::CheckedWorkflow;
use crate::file;
use crate::render;
use crate::step::{NextStep, ShellCommand, StepView};

fn flows() -> Vec<CheckedWorkflow> {
    let folder = Utf8PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../skills"));
    let mut all = Vec::new();
    for path in pack::list_pack_files().iter().filter(|path| path.ends_with("/SKILL.md")) {
        let text = String::from_utf8(pack::read_pack_file(path).unwrap().into_owned()).unwrap();
        let file = folder.join(path.as_ref());
        let source = Source::new(file.clone(), text);
        let skill =
            load::load_skill(source, SkillOrigin::from_file(file), &Limits::default()).skill;
        all.extend(skill.iter().flat_map(file::load_workflows).filter_map(|loaded| loaded.checked));
    }
    assert!(all.len() >= 12);
    all
}

/// All command lines that ask for a step the first time.
fn first_times(flow: &CheckedWorkflow) -> Vec<StatelessFlags> {
    let statuses = |is_gate: bool| match is_gate {
        true => vec![Some(QrStatus::Pass), Some(QrStatus::Fail)],
        false => vec![None],
    };
    let steps = flow.workflow().steps.iter().enumerate();
    steps
        .flat_map(|(at, step)| {
            statuses(step.decide.as_gate().is_some())
                .into_iter()
                .map(move |status| StatelessFlags { status, ..StatelessFlags::at_step(at + 1) })
        })
        .collect()
}

fn shown(flow: &CheckedWorkflow, flags: &StatelessFlags) -> StepView {
    stateless_view(flow, flags, &BTreeMap::new())
        .unwrap_or_else(|error| panic!("{} {flags:?}: {error}", flow.workflow().name))
}

#[test]
fn every_shipped_step_is_shown_without_a_run_and_comes_back_from_xml() {
    for flow in flows() {
        for flags in first_times(&flow) {
            let view = shown(&flow, &flags);
            assert_eq!(render::parse_xml(&render::render_xml(&view)), Ok(view.clone()));
            let text = render::render_text(&view);
            for command in commands(&view) {
                assert!(text.contains(&command.line), "{}: {}", view.title, command.line);
            }
        }
    }
}

fn commands(view: &StepView) -> Vec<ShellCommand> {
    match &view.next {
        NextStep::Ways { ways, on_error } => {
            ways.iter().map(|way| &way.command).chain(on_error).cloned().collect()
        }
        NextStep::Person { choices, .. } => choices.iter().map(|one| one.command.clone()).collect(),
        NextStep::Complete { .. } | NextStep::Record { .. } => Vec::new(),
    }
}

#[test]
fn whichever_command_is_run_a_shipped_workflow_ends_or_asks_a_person() {
    for flow in flows() {
        // The last command is the one that leads back, if any does.
        for pick in [|count: usize| count - 1, |_| 0, |count: usize| count / 2] {
            let entry = flow.workflow().entry_step().and_then(|id| flow.step_number(id)).unwrap();
            let mut flags = StatelessFlags::at_step(entry);
            let mut turns = 0;
            loop {
                let view = shown(&flow, &flags);
                let NextStep::Ways { ways, .. } = &view.next else { break };
                let way = &ways[pick(ways.len())];
                if way.to.is_none() {
                    break;
                }
                flags = flags_of(&way.command);
                turns += 1;
                assert!(turns < 500, "{} does not end: {flags:?}", flow.workflow().name);
            }
        }
    }
}
