//! Random workflows that the checker lets pass.

use indexmap::IndexMap;
use proptest::prelude::*;
use repertoire_flow::CheckedWorkflow;
use repertoire_flow::workflow::{
    ConfidenceLevel, ConfidenceLoop, ConfidenceQuestion, Decide, DeclaredCheck, EdgeTarget, Gate,
    ItemSeverity, LoopBound, OutcomeCase, OutcomeCases, ParameterType, ReverifyMode, StepDef,
    StepId, StepRouting, Workflow, WorkflowOutcome, WorkflowParameter,
};

/// What one step is made of: its kind, where its edges lead, and how often it may be gone through.
#[derive(Clone, Debug)]
struct Plan {
    kind: u8,
    to: [usize; 2],
    max: u32,
    at_limit: bool,
    on_error: Option<usize>,
    sets: bool,
    output: bool,
}

fn plan() -> impl Strategy<Value = Plan> {
    let to = [0..12usize, 0..12usize];
    let on_error = proptest::option::weighted(0.25, 0..12usize);
    (0..8u8, to, 1..4u32, any::<bool>(), on_error, any::<bool>(), any::<bool>()).prop_map(
        |(kind, to, max, at_limit, on_error, sets, output)| Plan {
            kind,
            to,
            max,
            at_limit,
            on_error,
            sets,
            output,
        },
    )
}

pub(crate) fn id(at: usize) -> StepId {
    format!("s{at}").into()
}

/// A workflow of these steps. The first edge of each leads to the next step, so that all are reached and lead to the end;
/// the others lead anywhere.
fn workflow(plans: &[Plan]) -> Workflow {
    let count = plans.len();
    let target = |at: usize| match at % (count + 1) {
        end if end == count => EdgeTarget::End,
        at => EdgeTarget::Step(id(at)),
    };
    let mut steps: Vec<StepDef> = Vec::new();
    for (at, plan) in plans.iter().enumerate() {
        let mut step = StepDef::new(id(at), format!("Step {at}")).action(
            "{{ state.iteration }} {{ mode }} {% for entry in list %}{{ entry }}{% endfor %}\
             {% if state.outputs.s0 is defined %}{{ state.outputs.s0 }}{% endif %}",
        );
        let branch = |edges: &[(WorkflowOutcome, EdgeTarget)]| {
            StepRouting::Branch(edges.iter().cloned().collect())
        };
        let on = target(at + 1);
        let named = WorkflowOutcome::Named("other".into());
        let bound =
            LoopBound { max: plan.max, at_limit: plan.at_limit.then_some(WorkflowOutcome::Ok) };
        let previous = at.checked_sub(1).filter(|at| steps[*at].decide.as_gate().is_none());
        match (plan.kind, previous) {
            (1, _) => {
                step.next = branch(&[(WorkflowOutcome::Ok, on), (named, target(plan.to[0]))]);
                step.bound = Some(bound);
            }
            (2, _) => {
                step.next = branch(&[
                    (WorkflowOutcome::Ok, on),
                    (WorkflowOutcome::Default, target(plan.to[0])),
                ]);
                step.bound = plan.at_limit.then_some(bound);
                if plan.on_error.is_none() {
                    // An outcome that only `default` takes, at the limit too.
                    step.outcomes = [WorkflowOutcome::Ok, named.clone()]
                        .map(|outcome| (outcome, String::new()))
                        .into();
                    step.bound = Some(LoopBound { max: plan.max, at_limit: Some(named) });
                }
            }
            (3, _) => {
                step.next = branch(&[
                    (WorkflowOutcome::Ok, on),
                    (WorkflowOutcome::Iterate, target(plan.to[0])),
                ]);
                step.decide = Decide::Confidence(confidence(plan));
            }
            (4, _) => {
                step.next = branch(&[
                    (WorkflowOutcome::Ok, on),
                    (WorkflowOutcome::Skip, target(plan.to[0])),
                    (named, target(plan.to[1])),
                ]);
                step.decide = Decide::Cases(cases());
                step.bound = Some(bound);
            }
            (5 | 6, Some(previous)) => {
                let repair = plan.to[0] % (previous + 1);
                step.next = branch(&[
                    (WorkflowOutcome::Ok, on),
                    (WorkflowOutcome::Fail, EdgeTarget::Step(id(repair))),
                ]);
                step.decide = Decide::Gate(gate(plan, previous));
            }
            (7, _) => {
                // Forward only, so that no bound is needed.
                let ahead = at + 1 + plan.to[0] % (count - at);
                step.next = branch(&[(WorkflowOutcome::Ok, on), (named, target(ahead))]);
            }
            _ => {
                step.next =
                    on.as_step().map_or(StepRouting::Terminal, |to| StepRouting::Linear(to.clone()))
            }
        }
        step.on_error = plan.on_error.map(|to| id(to % count));
        step.on_error = step.on_error.filter(|_| step.decide.as_gate().is_none());
        if plan.sets {
            step.sets = vec!["mode".into(), "list".into()];
        }
        step.output = plan.output.then(|| "What was found".to_owned());
        steps.push(step);
    }
    let mode = WorkflowParameter {
        choices: vec!["quick".into(), "full".into(), "odd".into()],
        default: Some("full".into()),
        ..WorkflowParameter::default()
    };
    let list = WorkflowParameter {
        kind: ParameterType::List,
        default: Some(serde_json::json!(["a"])),
        ..WorkflowParameter::default()
    };
    let number = WorkflowParameter {
        kind: ParameterType::Number,
        default: Some(0.1.into()),
        ..WorkflowParameter::default()
    };
    let checks = [
        ("claimed", DeclaredCheck::default()),
        ("run", DeclaredCheck { command: "make {{ number }}".into(), ..DeclaredCheck::default() }),
    ];
    Workflow {
        format: 1,
        name: "random".into(),
        parameters: [("mode", mode), ("list", list), ("number", number)]
            .map(|(name, arg)| (name.to_owned(), arg))
            .into_iter()
            .collect(),
        checks: checks.map(|(name, check)| (name.to_owned(), check)).into_iter().collect(),
        steps,
        ..Workflow::default()
    }
}

fn confidence(plan: &Plan) -> ConfidenceLoop {
    let mut confidence = ConfidenceLoop {
        until: ConfidenceLevel::High,
        max: plan.max,
        questions: IndexMap::new(),
        levels: IndexMap::new(),
    };
    if plan.at_limit {
        let question = ConfidenceQuestion { ask: "Is it so?".into(), partial: true };
        confidence.questions.insert("fact".into(), question);
        confidence.levels.insert(ConfidenceLevel::High, 1.0);
    }
    confidence
}

fn cases() -> OutcomeCases {
    let case = |condition: &str, outcome: WorkflowOutcome| OutcomeCase {
        condition: condition.into(),
        outcome,
    };
    OutcomeCases {
        when: vec![
            case("mode == \"quick\"", WorkflowOutcome::Skip),
            case("list | length > 2", WorkflowOutcome::Named("other".into())),
        ],
        otherwise: WorkflowOutcome::Ok,
    }
}

fn gate(plan: &Plan, review: usize) -> Gate {
    let schedule = [ItemSeverity::Could, ItemSeverity::Should, ItemSeverity::Must];
    Gate {
        name: "Quality".into(),
        reviews: vec![id(review)],
        schedule: schedule.into_iter().cycle().skip(3 - plan.max as usize % 3).take(1).collect(),
        limit: Some(plan.max),
        checks: match plan.to[1] % 3 {
            0 => vec!["claimed".into()],
            1 => vec!["run".into()],
            _ => Vec::new(),
        },
        banner: Some("Look at {{ mode }}".into()),
        stop: Some("Nothing".into()),
        reverify: Some(if plan.at_limit { ReverifyMode::Fresh } else { ReverifyMode::Targeted }),
        ..Gate::default()
    }
}

/// Workflows that the checker lets pass.
pub(crate) fn flow() -> impl Strategy<Value = CheckedWorkflow> {
    let plans = proptest::collection::vec(plan(), 1..9);
    plans.prop_filter_map("the checker refuses it", |plans| {
        CheckedWorkflow::new(workflow(&plans)).ok()
    })
}
