//! Workflows to draw in tests.

use crate::workflow::{
    AgentRole, ConfidenceLevel, ConfidenceLoop, Decide, Gate, LoopBound, OutcomeCase, OutcomeCases,
    ParallelDispatch, StepDef, SubagentBrief, SubagentDispatch, Workflow, WorkflowOutcome,
};

/// A small workflow with every feature: phases, a dispatch, a gate, a decision, confidence, an error edge.
pub(super) fn every_feature() -> Workflow {
    let brief = |agent: AgentRole| SubagentBrief { agent, ..SubagentBrief::default() };
    let agents = vec![
        brief(AgentRole::Explore),
        brief(AgentRole::Explore),
        brief(AgentRole::Custom("skeptic".into())),
    ];
    let parallel =
        SubagentDispatch::Parallel(ParallelDispatch { agents, ..ParallelDispatch::default() });
    let gate = Gate {
        name: "Plan".into(),
        reviews: vec!["review".into()],
        limit: Some(3),
        ..Gate::default()
    };
    let quick =
        OutcomeCase { condition: "mode == \"quick\"".into(), outcome: WorkflowOutcome::Skip };
    let steps = vec![
        in_phase("scope", "Scope", "look")
            .next([(WorkflowOutcome::Ok, "survey"), (WorkflowOutcome::Skip, "plan")]),
        in_phase("survey", "Survey \"the\" <code> & [docs]", "look").action(parallel).next("dig"),
        in_phase("dig", "Dig", "look")
            .next([(WorkflowOutcome::Ok, "plan"), (WorkflowOutcome::Iterate, "dig")]),
        in_phase("plan", "Plan", "make").next("review"),
        in_phase("review", "Review", "make")
            .action(SubagentDispatch::Single(brief(AgentRole::QualityReviewer)))
            .next("gate"),
        in_phase("gate", "Plan gate", "make")
            .next([(WorkflowOutcome::Ok, "report"), (WorkflowOutcome::Fail, "plan")]),
        StepDef::new("report", "Report"),
    ];
    let mut workflow =
        Workflow { name: "every\"thing".into(), steps, ..with_phases(&["look", "make"]) };
    workflow.steps[0].decide =
        Decide::Cases(OutcomeCases { when: vec![quick], otherwise: WorkflowOutcome::Ok });
    workflow.steps[2].decide = Decide::Confidence(ConfidenceLoop {
        until: ConfidenceLevel::High,
        max: 4,
        questions: Default::default(),
        levels: Default::default(),
    });
    workflow.steps[3].on_error = Some("report".into());
    workflow.steps[5].decide = Decide::Gate(gate);
    workflow
}

/// Steps in a row.
pub(super) fn linear_workflow(count: usize) -> Workflow {
    let mut steps: Vec<StepDef> = (1..=count)
        .map(|n| {
            StepDef::new(format!("s{n}"), format!("Step number {n}")).next(step_id(n + 1).as_str())
        })
        .collect();
    if let Some(last) = steps.last_mut() {
        last.next = "end".into();
    }
    Workflow { name: "linear".into(), steps, ..Workflow::default() }
}

/// A step that decides between tracks of increasing length, which join again.
pub(super) fn track_workflow(count: usize) -> Workflow {
    let mut steps = vec![StepDef::new("triage", "Triage")];
    let mut ways = indexmap::IndexMap::new();
    for track in 1..=count {
        let length = 1 + track % 3;
        ways.insert(
            WorkflowOutcome::Named(format!("way-{track}")),
            format!("t{track}x1").as_str().into(),
        );
        for at in 1..=length {
            let to = if at == length { "meet".into() } else { format!("t{track}x{}", at + 1) };
            let title = format!("Track {track}, part {at}");
            steps.push(StepDef::new(format!("t{track}x{at}"), title).next(to.as_str()));
        }
    }
    steps[0].next = crate::workflow::StepRouting::Branch(ways);
    steps.push(
        StepDef::new("meet", "Meet")
            .next([(WorkflowOutcome::Ok, "end"), (WorkflowOutcome::Fail, "triage")]),
    );
    if let Some(last) = steps.last_mut() {
        last.bound = Some(LoopBound { max: 3, at_limit: Some(WorkflowOutcome::Ok) });
    }
    Workflow { name: "tracks".into(), steps, ..Workflow::default() }
}

/// One step per entry of `ways`, which lists the further steps it leads to besides the next one. Every third is a
/// gate, every third has no `ok`, and some dispatch sub-agents. Phases, if any, are assigned in turn.
pub(super) fn tangled_workflow(ways: &[Vec<usize>], phases: usize) -> Workflow {
    let names: Vec<String> = (0..phases).map(|phase| format!("p{phase}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let count = ways.len();
    let steps = ways.iter().enumerate().map(|(at, ways)| {
        let next = if at + 1 == count { "end".to_owned() } else { step_id(at + 1) };
        let on =
            if at % 3 == 0 { WorkflowOutcome::Named("on".into()) } else { WorkflowOutcome::Ok };
        let mut edges = indexmap::IndexMap::from([(on, next.as_str().into())]);
        edges.extend(ways.iter().enumerate().map(|(number, to)| {
            (WorkflowOutcome::Named(format!("way-{number}")), step_id(*to).as_str().into())
        }));
        let mut step = StepDef::new(step_id(at), format!("A step, number {at}"));
        step.next = crate::workflow::StepRouting::Branch(edges);
        if at % 3 == 2 {
            step.decide = Decide::Gate(Gate::default());
        }
        if at % 4 == 1 {
            step = step.action(SubagentDispatch::Single(SubagentBrief::default()));
        }
        if at % 5 == 3 {
            step.on_error = ways.first().map(|to| step_id(*to).into());
        }
        step.phase = names.get(at * 7 % (phases + 1)).map(|phase| (*phase).to_owned());
        step
    });
    Workflow { name: "tangled".into(), steps: steps.collect(), ..with_phases(&names) }
}

fn step_id(n: usize) -> String {
    format!("s{n}")
}

fn in_phase(id: &str, title: &str, phase: &str) -> StepDef {
    StepDef { phase: Some(phase.into()), ..StepDef::new(id, title) }
}

fn with_phases(phases: &[&str]) -> Workflow {
    let phases = phases.iter().map(|id| ((*id).to_owned(), format!("To {id}"))).collect();
    Workflow { phases, ..Workflow::default() }
}
