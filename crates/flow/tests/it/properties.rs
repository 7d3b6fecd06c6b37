//! Random workflows and random reports: whatever comes, a run ends or stops for a person within its bound, stays in its
//! graph, and is the same when the same is reported again.
//!
//! `REPERTOIRE_LONG=1` tries fifty times as many.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError};
use repertoire_flow::CheckedWorkflow;
use repertoire_flow::engine::{
    CheckRecord, EngineAction, EngineInput, ItemRecord, PersonChoice, StepReport, advance_run,
    start,
};
use repertoire_flow::state::{
    CheckProof, GateCheckResult, ItemStatus, UserQuestion, WaitReason, WorkflowRunId,
    WorkflowRunState, WorkflowRunStatus,
};
use repertoire_flow::workflow::{
    ConfidenceLevel, ItemSeverity, ParameterType, WorkflowOutcome, WorkflowParameter,
};

use crate::drive::Driver;
use crate::random::{flow, id};
use crate::support::read;

fn config(cases: u32) -> ProptestConfig {
    let long = std::env::vars_os().any(|(key, value)| key == "REPERTOIRE_LONG" && value == "1");
    ProptestConfig {
        cases: if long { cases * 50 } else { cases },
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(5),
        max_global_rejects: 1_000_000,
        ..ProptestConfig::default()
    }
}

/// Something that is reported, made to fit the state that it is reported to, or not to fit.
#[derive(Clone, Debug)]
struct Said {
    kind: u8,
    pick: usize,
    at: Option<u32>,
}

fn said() -> impl Strategy<Value = Said> {
    let at = proptest::option::weighted(0.2, 0..12u32);
    (0..20u8, any::<usize>(), at).prop_map(|(kind, pick, at)| Said { kind, pick, at })
}

const OUTCOMES: [&str; 8] = ["ok", "fail", "skip", "iterate", "default", "other", "a b", ""];
const STATUSES: [ItemStatus; 3] = [ItemStatus::Todo, ItemStatus::Pass, ItemStatus::Fail];
const SEVERITIES: [ItemSeverity; 3] =
    [ItemSeverity::Could, ItemSeverity::Should, ItemSeverity::Must];

/// Nonsense, mostly.
fn nonsense(said: &Said) -> EngineInput {
    let Said { kind, pick, at } = *said;
    let text = ["", "x", "\n", "yes", "[\"a\"]", "quick", "2"][pick % 7].to_owned();
    let mut report =
        StepReport { outcome: Some(OUTCOMES[pick % 8].into()), ..StepReport::default() };
    let name = ["s0", "mode", "list", "fact", "run", "claimed", "number"][pick / 7 % 7].to_owned();
    let action = match kind % 10 {
        0 => EngineAction::Leave(report),
        1 => {
            report.set.insert(name, text);
            report.outcome = None;
            EngineAction::Leave(report)
        }
        2 => {
            report.facts.insert(name, text);
            EngineAction::Leave(StepReport { output: Some("out".into()), ..report })
        }
        3 => EngineAction::Leave(StepReport {
            confidence: Some(ConfidenceLevel::ALL[pick % 5]),
            ..report
        }),
        4 => EngineAction::Error { message: text },
        5 => EngineAction::Record {
            gate: (pick % 3 == 0).then(|| id(pick % 9)),
            items: (0..pick % 3)
                .map(|at| ItemRecord {
                    id: format!("i{}", (pick / 9 + at) % 5),
                    check: (pick % 5 > 0).then(|| "it holds".to_owned()),
                    severity: Some(SEVERITIES[pick / 2 % 3]),
                    status: Some(STATUSES[pick / 5 % 3]),
                    finding: Some(text.clone()),
                    scope: None,
                })
                .collect(),
            checks: (0..pick / 2 % 2)
                .map(|_| CheckRecord {
                    name: name.clone(),
                    result: GateCheckResult {
                        status: STATUSES[pick % 3],
                        proof: match pick / 3 % 2 {
                            0 => CheckProof::Claim,
                            _ => CheckProof::Run {
                                command: "make full".into(),
                                exit_code: Some((pick % 2) as i32),
                                work: None,
                            },
                        },
                        note: String::new(),
                    },
                })
                .collect(),
        },
        6 => EngineAction::Ask {
            questions: (0..pick % 5)
                .map(|at| UserQuestion {
                    id: format!("q{}", at.min(pick / 5 % 4)),
                    ask: "Which?".into(),
                    options: vec!["a".into(); pick / 20 % 5],
                })
                .collect(),
        },
        7 => EngineAction::Answer {
            answers: (0..pick % 4).map(|at| (format!("q{at}"), text.clone())).collect(),
        },
        _ => EngineAction::Choose { choice: choice(pick), note: text },
    };
    EngineInput { at, action }
}

fn choice(pick: usize) -> PersonChoice {
    match pick % 6 {
        0 | 1 => PersonChoice::Continue,
        2 => PersonChoice::MustOnly,
        3 => PersonChoice::Skip,
        4 => PersonChoice::Take(OUTCOMES[pick / 6 % 8].into()),
        _ => PersonChoice::Abort,
    }
}

/// What a person can do with a run that waits.
fn persons(state: &WorkflowRunState, flow: &CheckedWorkflow, pick: usize) -> Option<EngineInput> {
    let WorkflowRunStatus::Waiting(waiting) = &state.status else { return None };
    Some(EngineInput::about_now(match waiting {
        WaitReason::Questions { questions } => EngineAction::Answer {
            answers: questions.iter().map(|asked| (asked.id.clone(), "so".to_owned())).collect(),
        },
        WaitReason::Limit { .. } | WaitReason::Bound { .. } | WaitReason::Error { .. } => {
            let possible = PersonChoice::possible_choices(flow, waiting);
            let choice = possible[pick % possible.len()].clone();
            EngineAction::Choose { choice, note: String::new() }
        }
    }))
}

/// What has to hold of any state.
fn holds(flow: &CheckedWorkflow, state: &WorkflowRunState) -> Result<(), TestCaseError> {
    prop_assert!(flow.find_step(&state.step).is_some(), "`{}` is no step", state.step);
    prop_assert!(state.history.iter().all(|passage| flow.find_step(&passage.step).is_some()));
    prop_assert_eq!(state.visits.values().sum::<u32>(), state.turn);
    let is_done = state.status == WorkflowRunStatus::Done;
    prop_assert_eq!(state.history.len() as u32, state.turn - 1 + u32::from(is_done));
    for (step, gate) in flow.workflow().gates() {
        let Some(review) = state.reviews.get(&step.id) else { continue };
        let passed = review.rounds.iter().filter(|round| round.passed);
        let went_on = state.history.iter().filter(|passage| {
            passage.step == step.id && passage.outcome == Some(WorkflowOutcome::Ok)
        });
        prop_assert_eq!(passed.clone().count(), went_on.count());
        // No gate was passed with something open or with a red check, whoever has decided it.
        for round in passed {
            prop_assert!(!round.items.is_empty());
            prop_assert!(round.items.iter().all(|item| item.status != ItemStatus::Todo));
            let status = |name: &String| round.checks.get(name).map(|result| result.status);
            prop_assert!(gate.checks.iter().all(|name| status(name) == Some(ItemStatus::Pass)));
        }
    }
    let text = serde_json::to_string(state).expect("a state can be written");
    let again: WorkflowRunState = serde_json::from_str(&text).expect("a state can be read");
    prop_assert_eq!(&again, state);
    Ok(())
}

/// Reports something, and looks at what comes of it.
fn push(
    flow: &CheckedWorkflow,
    state: &WorkflowRunState,
    input: &EngineInput,
) -> Result<Option<WorkflowRunState>, TestCaseError> {
    let before = state.clone();
    let Ok(after) = advance_run(flow, state, input) else {
        prop_assert_eq!(&before, state);
        return Ok(None);
    };
    prop_assert!(after.turn == state.turn || after.turn == state.turn + 1);
    holds(flow, &after)?;
    // The same again, with its turn, changes nothing.
    let repeated = EngineInput { at: Some(input.at.unwrap_or(state.turn)), ..input.clone() };
    match advance_run(flow, &after, &repeated) {
        Ok(again) => prop_assert_eq!(&again, &after),
        Err(refusal) => prop_assert!(false, "{:?} twice is refused: {}", repeated, refusal),
    }
    Ok(Some(after))
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn whatever_is_reported_a_run_stays_in_its_graph_and_within_its_bound(
        flow in flow(),
        says in proptest::collection::vec(said(), 0..60),
        seed in 1..u64::MAX,
    ) {
        let mut driver = Driver::new(&flow, seed);
        let first = driver.state.clone();
        let mut inputs: Vec<EngineInput> = Vec::new();
        let mut since = driver.state.turn;
        for said in says {
            let before = driver.state.clone();
            let input = match (said.kind, &driver.state.status) {
                (10.., WorkflowRunStatus::Active) => {
                    driver.look();
                    let wishes = driver.wishes();
                    let known = driver.accepted.len();
                    driver.leave(&wishes[said.pick % wishes.len()]);
                    inputs.extend(driver.accepted.drain(known..));
                    None
                }
                (10.., WorkflowRunStatus::Waiting(_)) => persons(&driver.state, &flow, said.pick),
                _ => Some(nonsense(&said)),
            };
            if let Some(input) = input
                && let Some(after) = push(&flow, &driver.state, &input)?
            {
                driver.state = after;
                inputs.push(input);
            }
            if driver.state.decisions.len() > before.decisions.len() {
                since = driver.state.turn;
            }
            let turns = u64::from(driver.state.turn - since);
            prop_assert!(turns <= flow.turns_max(), "{} turns of {}", turns, flow.turns_max());
            holds(&flow, &driver.state)?;
            driver.look();
        }
        // Whatever was said so far, a run that nobody stops comes to an end.
        let mut pick = seed as usize;
        while driver.state.status == WorkflowRunStatus::Active {
            let wishes = driver.wishes();
            pick = pick.wrapping_mul(31).wrapping_add(7);
            let known = driver.accepted.len();
            driver.leave(&wishes[(pick >> 8) % wishes.len()]);
            inputs.extend(driver.accepted.drain(known..));
            prop_assert!(u64::from(driver.state.turn - since) <= flow.turns_max());
        }
        // The same reports give the same run.
        let mut replayed = first;
        for input in &inputs {
            replayed = advance_run(&flow, &replayed, input).expect("what was accepted is accepted");
        }
        prop_assert_eq!(replayed, driver.state);
    }

    #[test]
    fn a_run_that_always_takes_the_way_back_ends_or_stops_within_its_bound(
        flow in flow(),
        picks in proptest::collection::vec(any::<usize>(), 8),
    ) {
        // Each step always ends in the same way: the worst that an obstinate agent can do.
        let mut driver = Driver::new(&flow, 3);
        while driver.state.status == WorkflowRunStatus::Active {
            let wishes = driver.wishes();
            let number = flow.step_number(&driver.state.step).expect("a step of the workflow");
            let pick = picks[number % picks.len()];
            driver.leave(&wishes[pick % wishes.len()]);
            prop_assert!(u64::from(driver.state.turn) <= flow.turns_max());
        }
        holds(&flow, &driver.state)?;
    }

    #[test]
    fn a_frozen_workflow_thaws_to_the_same(flow in flow()) {
        let bytes = flow.freeze();
        let thawed = CheckedWorkflow::thaw(&bytes, flow.fingerprint()).expect("it is the same");
        prop_assert_eq!(thawed.workflow(), flow.workflow());
        prop_assert_eq!(thawed.freeze(), bytes);
    }

    #[test]
    fn numbers_survive_being_written(number in any::<f64>()) {
        let arg = WorkflowParameter { kind: ParameterType::Number, ..WorkflowParameter::default() };
        if let Ok(value) = arg.parse_value(&number.to_string()) {
            let again: serde_json::Value = serde_json::from_str(&value.to_string()).expect("JSON");
            prop_assert_eq!(again, value);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(?s).{0,200}") {
        let loaded = read(&text);
        prop_assert!(loaded.checked.is_some() || !loaded.diagnostics.is_empty());
    }

    #[test]
    fn a_workflow_with_a_piece_of_anything_is_read_or_refused(
        at in any::<usize>(),
        cut in 0..40usize,
        piece in "[a-z:{}\\[\\],|>\\-\n #'\"%0-9]{0,20}",
    ) {
        let whole = crate::properties::SAMPLE;
        let at = at % whole.len();
        let end = (at + cut).min(whole.len());
        let text = format!("{}{piece}{}", &whole[..at], &whole[end..]);
        let loaded = read(&text);
        prop_assert!(loaded.checked.is_some() || !loaded.diagnostics.is_empty());
        if let Some(flow) = &loaded.checked {
            let given = BTreeMap::from([("task".to_owned(), "it".to_owned())]);
            if let Ok(state) = start(flow, WorkflowRunId::new("r"), &given) {
                // It may not be possible to show it, but nothing else happens.
                let _ = repertoire_flow::step::build_view(flow, &state, &repertoire_flow::step::StepAddressing::Run);
            }
        }
    }
}

const SAMPLE: &str = r#"
parameters:
  task: { required: true, description: What to do }
  mode: { choices: [quick, full], default: full }
  work: { type: work, default: [] }
roles: { skeptic: Doubts }
phases: { one: First, two: Second }
checks:
  tests: { command: "make {{ mode }}", description: The tests }
steps:
  - id: plan
    title: Plan
    phase: one
    actions:
      - "Plan {{ task }}"
      - forbidden: [Do not build]
      - detection_questions: { category: c, questions: [{ id: q, ask: Why? }] }
      - dispatch:
          template: { over: work, each: { agent: skeptic, task: "{{ item.task }}" } }
    sets: [work]
    output: The plan
    decide:
      cases: { when: [{ if: 'mode == "quick"', outcome: skip }], otherwise: ok }
    next: { ok: look, skip: end }
  - id: look
    title: Look
    phase: two
    actions: ["{{ state.outputs.plan }}"]
    decide: { confidence: { until: high, max: 3 } }
    next: { ok: review, iterate: look }
  - { id: review, title: Review, role: quality-reviewer, actions: [{ qr_banner: gate }], next: gate }
  - id: gate
    title: Gate
    decide:
      gate:
        { name: G, reviews: [review], banner: b, stop: s, reverify: fresh, checks: [tests] }
    next: { ok: end, fail: plan }
"#;

#[test]
fn the_sample_that_is_cut_up_is_good_as_it_is() {
    let loaded = read(SAMPLE);
    assert!(loaded.checked.is_some(), "{:#?}", loaded.diagnostics);
}
