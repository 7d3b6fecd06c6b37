//! Every workflow that is shipped: it passes the checker, and is driven along its happy path, over each of its edges, each
//! loop to its bound, and each gate to pass, fail and limit.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8PathBuf;
use repertoire_flow::CheckedWorkflow;
use repertoire_flow::engine::{EngineAction, EngineInput, PersonChoice, advance_run};
use repertoire_flow::file::{self, LoadedWorkflow};
use repertoire_flow::state::{WaitReason, WorkflowRunState, WorkflowRunStatus};
use repertoire_flow::workflow::{Decide, StepDef, StepId, WorkflowOutcome};

use repertoire_skill::load;
use repertoire_skill::pack;
use repertoire_skill::skill::SkillOrigin;
use repertoire_text::{Limits, Source};

use crate::drive::{Driver, Edge, Wish, edges, target};

/// Drives until everything is covered, and no more than this.
const DRIVES_MAX: u64 = 2000;

/// What is shipped: name, steps, gates, loops (confidence and `loop`), and the step that a run ends with.
const TABLE: &[(&str, usize, usize, usize, &str)] = &[
    ("codebase-analysis", 4, 0, 4, "synthesize"),
    ("decision-critic", 7, 0, 0, "synthesis_verdict"),
    ("deepthink", 14, 0, 2, "formatting"),
    ("doc-sync", 11, 1, 0, "report"),
    ("executor", 9, 2, 0, "retrospective"),
    ("incoherence", 21, 0, 2, "present_report"),
    ("leon-writing-style", 9, 1, 0, "final_review"),
    ("planner", 13, 3, 0, "gate_docs"),
    ("problem-analysis", 5, 0, 1, "output"),
    ("prompt-engineer", 20, 0, 1, "approve"),
    ("refactor", 5, 0, 0, "synthesize"),
    ("solution-design", 9, 0, 0, "output"),
];

/// All workflows of the pack, those of sub-agents too.
fn all() -> Vec<LoadedWorkflow> {
    let folder = Utf8PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../skills"));
    let mut all = Vec::new();
    for path in pack::list_pack_files().iter().filter(|path| path.ends_with("/SKILL.md")) {
        let bytes = pack::read_pack_file(path).expect("the pack has its files");
        let text = String::from_utf8(bytes.into_owned()).expect("skills are UTF-8");
        let file = folder.join(path.as_ref());
        let loaded = load::load_skill(
            Source::new(file.clone(), text),
            SkillOrigin::from_file(file),
            &Limits::default(),
        );
        all.extend(loaded.skill.iter().flat_map(file::load_workflows));
    }
    all
}

fn flows() -> Vec<(String, CheckedWorkflow)> {
    let checked = |loaded: LoadedWorkflow| {
        let name = loaded.name;
        let found: Vec<String> =
            loaded.diagnostics.iter().map(|found| found.message.clone()).collect();
        (name.clone(), loaded.checked.unwrap_or_else(|| panic!("{name} cannot run: {found:#?}")))
    };
    all().into_iter().map(checked).collect()
}

#[test]
fn every_workflow_passes_the_checker() {
    let mut found = Vec::new();
    for loaded in all() {
        for diagnostic in &loaded.diagnostics {
            let at = diagnostic.position.map(|at| format!("{}:{}", at.line, at.column));
            let line = format!(
                "{} {} {}: {}",
                loaded.source.path(),
                at.unwrap_or_default(),
                diagnostic.code.id,
                diagnostic.message
            );
            found.push(line);
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_table_of_what_is_shipped_is_right() {
    let flows: BTreeMap<String, CheckedWorkflow> = flows().into_iter().collect();
    let rows = flows.iter().filter(|(name, _)| !name.contains('/')).map(|(name, flow)| {
        let workflow = flow.workflow();
        let gates = workflow.gates().count();
        let loops = workflow.steps.iter().filter(|step| bound(step).is_some()).count();
        let end = happy(flow).state.step.to_string();
        (name.as_str(), workflow.steps.len(), gates, loops, end)
    });
    let rows: Vec<_> = rows.collect();
    let table: Vec<_> = TABLE
        .iter()
        .map(|(name, steps, gates, loops, end)| (*name, *steps, *gates, *loops, (*end).to_owned()))
        .collect();
    assert_eq!(rows, table);
}

#[test]
fn every_workflow_goes_well_when_all_goes_well() {
    for (name, flow) in flows() {
        let driver = happy(&flow);
        assert_eq!(driver.state.status, WorkflowRunStatus::Done, "{name} at {}", driver.state.step);
        assert!(driver.state.history.iter().all(|passage| !passage.limited), "{name}");
    }
}

#[test]
fn every_edge_is_taken() {
    for (name, flow) in flows() {
        let reach = Reach::of(&flow);
        let mut left = edges(flow.workflow());
        for seed in 1..DRIVES_MAX {
            if left.is_empty() {
                break;
            }
            wander(&flow, &reach, seed, &mut left);
        }
        assert!(left.is_empty(), "{name}: never taken: {left:?}");
    }
}

#[test]
fn every_loop_goes_to_its_bound_and_no_further() {
    for (name, flow) in flows() {
        let reach = Reach::of(&flow);
        for step in &flow.workflow().steps {
            let Some(max) = bound(step) else { continue };
            let back: Vec<Wish> = crate::drive::wishes(step)
                .into_iter()
                .filter(|wish| *wish != Wish::Error)
                .filter(|wish| target(step, wish).is_some_and(|to| reach.leads(&to, &step.id)))
                .collect();
            assert!(!back.is_empty(), "{name}: the bound of `{}` bounds nothing", step.id);
            let mut seen = 0;
            for (seed, wish) in (1..DRIVES_MAX).zip(back.iter().cycle()) {
                let state = stubborn(&flow, &reach, seed, step, wish);
                let visits = state.visits.get(&step.id).copied().unwrap_or_default();
                assert!(visits <= max, "{name}: `{}` was entered {visits} times", step.id);
                let is_limited =
                    state.history.iter().any(|passage| passage.step == step.id && passage.limited);
                let waits = matches!(&state.status, WorkflowRunStatus::Waiting(WaitReason::Bound { step: at, .. }) if *at == step.id);
                seen += u32::from(is_limited || waits);
                if seen > 0 {
                    break;
                }
            }
            assert!(seen > 0, "{name}: the bound of `{}` is never reached", step.id);
        }
    }
}

#[test]
fn every_gate_passes_fails_and_stops_at_its_limit() {
    for (name, flow) in flows() {
        let reach = Reach::of(&flow);
        for (step, gate) in flow.workflow().gates() {
            let state = (1..DRIVES_MAX)
                .map(|seed| stubborn(&flow, &reach, seed, step, &Wish::Outcome(WorkflowOutcome::Fail)))
                .find(|state| matches!(&state.status, WorkflowRunStatus::Waiting(WaitReason::Limit { gate, .. }) if *gate == step.id));
            let state = state.unwrap_or_else(|| panic!("{name}: `{}` has no limit", step.id));
            let review = &state.reviews[&step.id];
            assert_eq!(review.iteration, gate.iteration_limit(), "{name}: `{}`", step.id);
            assert_eq!(
                review.rounds.len() as u32 + 1,
                gate.iteration_limit(),
                "{name}: `{}`",
                step.id
            );
            let choose = |choice| {
                let action = EngineAction::Choose { choice, note: "so it is".into() };
                advance_run(&flow, &state, &EngineInput::about_now(action))
            };
            let repair = target(step, &Wish::Outcome(WorkflowOutcome::Fail));
            let once_more = choose(PersonChoice::Continue).expect("it can go on");
            assert_eq!(Some(once_more.step), repair, "{name}: `{}`", step.id);
            let ended = choose(PersonChoice::Abort).expect("it can be ended");
            assert_eq!(ended.status, WorkflowRunStatus::Aborted);
            // What failed can be accepted, unless a declared check is red.
            let skipped = choose(PersonChoice::Skip);
            match gate.checks.is_empty() {
                true => {
                    let skipped = skipped.expect("it can be skipped");
                    let passage = skipped.history.last().expect("it went on");
                    assert_eq!(passage.outcome, Some(WorkflowOutcome::Ok), "{name}: `{}`", step.id);
                    assert!(!skipped.decisions[0].accepted.is_empty());
                }
                false => assert!(skipped.is_err(), "{name}: `{}` skips a red check", step.id),
            }
        }
    }
}

#[test]
fn sub_agents_are_given_what_their_workflows_need() {
    let flows: BTreeMap<String, CheckedWorkflow> = flows().into_iter().collect();
    for (name, flow) in &flows {
        let briefs = flow
            .workflow()
            .steps
            .iter()
            .flat_map(|step| step.dispatches().flat_map(|dispatch| dispatch.briefs()));
        for brief in briefs {
            let Some(wanted) = &brief.workflow else { continue };
            let other = flows
                .get(wanted)
                .unwrap_or_else(|| panic!("{name}: there is no workflow `{wanted}`"));
            let takes = &other.workflow().parameters;
            for given in brief.with.keys() {
                assert!(takes.contains_key(given), "{name}: `{wanted}` takes no `{given}`");
            }
            for (needed, _) in takes.iter().filter(|(_, arg)| arg.required) {
                assert!(brief.with.contains_key(needed), "{name}: `{wanted}` needs `{needed}`");
            }
        }
    }
}

/// How often a step may be gone through, if it has a bound of its own.
fn bound(step: &StepDef) -> Option<u32> {
    match (&step.decide, &step.bound) {
        (Decide::Confidence(confidence), _) => Some(confidence.max),
        (Decide::Gate(_), _) | (_, None) => None,
        (_, Some(bound)) => Some(bound.max),
    }
}

/// Whether one step can be reached from another.
struct Reach(BTreeMap<StepId, BTreeSet<StepId>>);

impl Reach {
    fn of(flow: &CheckedWorkflow) -> Self {
        let steps = &flow.workflow().steps;
        let mut reach: BTreeMap<StepId, BTreeSet<StepId>> = steps
            .iter()
            .map(|step| {
                let wishes = crate::drive::wishes(step);
                let next = wishes.iter().filter_map(|wish| target(step, wish));
                (step.id.clone(), next.chain([step.id.clone()]).collect())
            })
            .collect();
        for _ in steps {
            let before = reach.clone();
            for reached in reach.values_mut() {
                let further: Vec<StepId> =
                    reached.iter().flat_map(|step| before[step].clone()).collect();
                reached.extend(further);
            }
        }
        Reach(reach)
    }

    fn leads(&self, from: &StepId, to: &StepId) -> bool {
        self.0[from].contains(to)
    }

    /// Whether a way of ending a step leads back to it.
    fn leads_back(&self, step: &StepDef, wish: &Wish) -> bool {
        target(step, wish).is_some_and(|to| self.leads(&to, &step.id))
    }
}

/// All goes well: gates are passed, the agent is sure, and nothing is done again.
fn happy(flow: &CheckedWorkflow) -> Driver<'_> {
    let reach = Reach::of(flow);
    let mut driver = Driver::new(flow, 7);
    while driver.state.status == WorkflowRunStatus::Active
        && u64::from(driver.state.turn) <= flow.turns_max()
    {
        driver.look();
        let step = driver.step();
        let wishes: Vec<Wish> =
            driver.wishes().into_iter().filter(|wish| *wish != Wish::Error).collect();
        let on = wishes.iter().find(|wish| !reach.leads_back(step, wish));
        driver.leave(on.unwrap_or(&wishes[0]));
    }
    driver.look();
    driver
}

/// Goes at random, over edges that were never taken where there are some.
fn wander(flow: &CheckedWorkflow, reach: &Reach, seed: u64, left: &mut BTreeSet<Edge>) {
    let mut driver = Driver::new(flow, seed);
    while driver.state.status == WorkflowRunStatus::Active {
        driver.look();
        let step = driver.step();
        let wishes = driver.wishes();
        let is_new = |wish: &&Wish| {
            let outcome = match wish {
                Wish::Outcome(outcome) => Some(outcome.to_string()),
                Wish::Error => None,
            };
            left.contains(&(step.id.to_string(), outcome))
        };
        let new: Vec<&Wish> = wishes.iter().filter(is_new).collect();
        let on: Vec<&Wish> = wishes.iter().filter(|wish| !reach.leads_back(step, wish)).collect();
        let wish = match (driver.dice.below(4), new.is_empty(), on.is_empty()) {
            (1.., false, _) => (*driver.dice.pick(&new)).clone(),
            (2.., true, false) => (*driver.dice.pick(&on)).clone(),
            _ => driver.dice.pick(&wishes).clone(),
        };
        if let Some(edge) = driver.leave(&wish) {
            left.remove(&edge);
        }
        let turn = u64::from(driver.state.turn);
        assert!(turn <= flow.turns_max(), "{} turns and no end", turn);
    }
    driver.look();
}

/// Ends one step always the same way, and others so that the run goes on.
fn stubborn(
    flow: &CheckedWorkflow,
    reach: &Reach,
    seed: u64,
    at: &StepDef,
    always: &Wish,
) -> WorkflowRunState {
    let mut driver = Driver::new(flow, seed);
    while driver.state.status == WorkflowRunStatus::Active {
        let step = driver.step();
        let wishes: Vec<Wish> =
            driver.wishes().into_iter().filter(|wish| *wish != Wish::Error).collect();
        let to_it = |wish: &&Wish| {
            target(step, wish).is_some_and(|to| reach.leads(&to, &at.id))
                && (step.decide.as_gate().is_none() || **wish == Wish::Outcome(WorkflowOutcome::Ok))
        };
        let wish = if step.id == at.id {
            always.clone()
        } else {
            let near: Vec<&Wish> = wishes.iter().filter(to_it).collect();
            let on: Vec<&Wish> =
                wishes.iter().filter(|wish| !reach.leads_back(step, wish)).collect();
            let all: Vec<&Wish> = wishes.iter().collect();
            let from = [near, on, all].into_iter().find(|some| !some.is_empty());
            let from = from.expect("a step can end somehow");
            // Mostly straight on: a detour uses up the bounds of others.
            let first = from.iter().find(|wish| !reach.leads_back(step, wish)).unwrap_or(&from[0]);
            match driver.dice.below(4) {
                0 => (*driver.dice.pick(&from)).clone(),
                _ => (*first).clone(),
            }
        };
        driver.leave(&wish);
        assert!(u64::from(driver.state.turn) <= flow.turns_max(), "no end");
    }
    driver.state
}
