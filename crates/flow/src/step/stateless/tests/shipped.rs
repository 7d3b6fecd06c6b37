//! Every step of every workflow that is shipped, without a run.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use repertoire_skill::skill::Origin;
use repertoire_skill::{load, pack};
use repertoire_text::{Limits, Source};

use super::super::{Flags, QrStatus, stateless};
use super::flags_of;
use crate::check::Checked;
use crate::file;
use crate::render;
use crate::step::{Command, Next, StepView};

fn flows() -> Vec<Checked> {
    let folder = Utf8PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../skills"));
    let mut all = Vec::new();
    for path in pack::files().iter().filter(|path| path.ends_with("/SKILL.md")) {
        let text = String::from_utf8(pack::read(path).unwrap().into_owned()).unwrap();
        let file = folder.join(path.as_ref());
        let source = Source::new(file.clone(), text);
        let skill = load::load(source, Origin::file(file), &Limits::default()).skill;
        all.extend(skill.iter().flat_map(file::load).filter_map(|loaded| loaded.checked));
    }
    assert!(all.len() >= 12);
    all
}

/// All command lines that ask for a step the first time.
fn first_times(flow: &Checked) -> Vec<Flags> {
    let statuses = |is_gate: bool| match is_gate {
        true => vec![Some(QrStatus::Pass), Some(QrStatus::Fail)],
        false => vec![None],
    };
    let steps = flow.workflow().steps.iter().enumerate();
    steps
        .flat_map(|(at, step)| {
            statuses(step.decide.as_gate().is_some())
                .into_iter()
                .map(move |status| Flags { status, ..Flags::at(at + 1) })
        })
        .collect()
}

fn shown(flow: &Checked, flags: &Flags) -> StepView {
    stateless(flow, flags, &BTreeMap::new())
        .unwrap_or_else(|error| panic!("{} {flags:?}: {error}", flow.workflow().name))
}

#[test]
fn every_shipped_step_is_shown_without_a_run_and_comes_back_from_xml() {
    for flow in flows() {
        for flags in first_times(&flow) {
            let view = shown(&flow, &flags);
            assert_eq!(render::parse_xml(&render::xml(&view)), Ok(view.clone()));
            let text = render::text(&view);
            for command in commands(&view) {
                assert!(text.contains(&command.line), "{}: {}", view.title, command.line);
            }
        }
    }
}

fn commands(view: &StepView) -> Vec<Command> {
    match &view.next {
        Next::Ways { ways, on_error } => {
            ways.iter().map(|way| &way.command).chain(on_error).cloned().collect()
        }
        Next::Person { choices, .. } => choices.iter().map(|one| one.command.clone()).collect(),
        Next::Complete { .. } | Next::Record { .. } => Vec::new(),
    }
}

#[test]
fn whichever_command_is_run_a_shipped_workflow_ends_or_asks_a_person() {
    for flow in flows() {
        // The last command is the one that leads back, if any does.
        for pick in [|count: usize| count - 1, |_| 0, |count: usize| count / 2] {
            let entry = flow.workflow().entry().and_then(|id| flow.number(id)).unwrap();
            let mut flags = Flags::at(entry);
            let mut turns = 0;
            loop {
                let view = shown(&flow, &flags);
                let Next::Ways { ways, .. } = &view.next else { break };
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
