//! A driver that knows how to satisfy any step: it sets what has to be set, hands over, records, is sure or not, and tries
//! to end each step as it is told to. It is used on random workflows and on those that are shipped.

use std::collections::{BTreeMap, BTreeSet};

use repertoire_flow::CheckedWorkflow;
use repertoire_flow::check_command::render_check_command;
use repertoire_flow::engine::{
    CheckRecord, EngineAction, EngineInput, GateVerdict, ItemRecord, StepReport, advance_run,
    compute_verdict, start,
};
use repertoire_flow::render;
use repertoire_flow::state::{
    CheckProof, GateCheckResult, GateReview, ItemStatus, WorkflowRunId, WorkflowRunState,
    WorkflowRunStatus,
};
use repertoire_flow::step::{NextStep, StepAddressing, build_view};
use repertoire_flow::template::TemplateScope;
use repertoire_flow::workflow::{
    ConfidenceLevel, Decide, Gate, ItemSeverity, ParameterType, StepDef, StepId, Workflow,
    WorkflowOutcome, WorkflowParameter,
};

/// An edge: the step and its outcome, none for an error.
pub(crate) type Edge = (String, Option<String>);

/// Numbers that look random and are the same every time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % end.max(1) as u64) as usize
    }

    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// How a step is wanted to end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wish {
    Outcome(WorkflowOutcome),
    Error,
}

pub(crate) struct Driver<'a> {
    pub(crate) flow: &'a CheckedWorkflow,
    pub(crate) state: WorkflowRunState,
    pub(crate) dice: Dice,
    literals: Vec<String>,
    /// Everything that was accepted, in order.
    pub(crate) accepted: Vec<EngineInput>,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(flow: &'a CheckedWorkflow, seed: u64) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let literals = literals(flow.workflow());
        let mut given = BTreeMap::new();
        let set_later: BTreeSet<&String> =
            flow.workflow().steps.iter().flat_map(|step| &step.sets).collect();
        for (name, arg) in &flow.workflow().parameters {
            // What no step sets is only ever known from the start.
            let is_given = arg.required || (!set_later.contains(name) && dice.below(2) == 0);
            if is_given {
                given.insert(name.clone(), value(arg, &literals, &mut dice));
            }
        }
        let state = start(flow, WorkflowRunId::new("run-1"), &given).expect("the values fit");
        Driver { flow, state, dice, literals, accepted: Vec::new() }
    }

    pub(crate) fn step(&self) -> &'a StepDef {
        self.flow.find_step(&self.state.step).expect("a run is at a step of its workflow")
    }

    /// The ways in which the step that the run is at can end.
    pub(crate) fn wishes(&self) -> Vec<Wish> {
        wishes(self.step())
    }

    /// Shows the step, in every form, and looks whether what is shown can be true.
    pub(crate) fn look(&self) {
        let seen = match build_view(self.flow, &self.state, &StepAddressing::Run) {
            Ok(seen) => seen,
            Err(error) => panic!("{} cannot be shown: {error}", self.state.step),
        };
        assert!((1..=seen.total).contains(&seen.step), "steps are counted from 1");
        for rendered in
            [render::render_xml(&seen), render::render_text(&seen), render::json(&seen).to_string()]
        {
            assert!(!rendered.trim().is_empty());
        }
        let is_over =
            matches!(self.state.status, WorkflowRunStatus::Done | WorkflowRunStatus::Aborted);
        assert_eq!(is_over, matches!(seen.next, NextStep::Complete { .. }), "{:?}", seen.next);
        if let NextStep::Ways { ways, .. } = &seen.next {
            assert!(!ways.is_empty(), "step `{}` shows no way on", seen.id);
            assert!(ways.iter().all(|way| way.to.is_none_or(|to| (1..=seen.total).contains(&to))));
        }
        if let NextStep::Person { choices, command, .. } = &seen.next {
            assert!(!choices.is_empty() || command.is_some(), "nothing can be chosen");
        }
    }

    /// Ends the step as wished if that is possible, and otherwise in some way. The outcome that the run took.
    pub(crate) fn leave(&mut self, wish: &Wish) -> Option<Edge> {
        let before = self.state.history.len();
        match wish {
            Wish::Error => {
                self.say(EngineInput::about_now(EngineAction::Error {
                    message: "it cannot be done".into(),
                }));
            }
            Wish::Outcome(outcome) => {
                if let Decide::Gate(gate) = &self.step().decide {
                    self.review(gate, *outcome == WorkflowOutcome::Ok);
                }
                let input = self.leaving(outcome);
                self.say(input);
            }
        }
        let passage = self.state.history.get(before)?;
        Some((passage.step.to_string(), passage.outcome.as_ref().map(ToString::to_string)))
    }

    fn say(&mut self, input: EngineInput) {
        match advance_run(self.flow, &self.state, &input) {
            Ok(state) => self.state = state,
            Err(refusal) => panic!("step `{}` refuses {input:?}: {refusal}", self.state.step),
        }
        self.accepted.push(input);
    }

    /// The report that ends the step with an outcome; where values decide, some are tried.
    fn leaving(&mut self, wanted: &WorkflowOutcome) -> EngineInput {
        let step = self.step();
        let tries = if matches!(step.decide, Decide::Cases(_)) { 24 } else { 1 };
        let mut last = None;
        for _ in 0..tries {
            let input = EngineInput::about_now(EngineAction::Leave(self.report(step, wanted)));
            let after = advance_run(self.flow, &self.state, &input);
            let reached = after.as_ref().ok().and_then(|state| state.history.last());
            let hit = reached.is_some_and(|passage| passage.outcome.as_ref() == Some(wanted));
            last = Some(input);
            if hit {
                break;
            }
        }
        last.expect("there is one try at least")
    }

    fn report(&mut self, step: &StepDef, wanted: &WorkflowOutcome) -> StepReport {
        let mut report = StepReport::default();
        for name in &step.sets {
            let arg = &self.flow.workflow().parameters[name];
            report.set.insert(name.clone(), value(arg, &self.literals, &mut self.dice));
        }
        report.output = step.output.as_ref().map(|_| format!("what {} gives", step.id));
        match &step.decide {
            Decide::Reported => report.outcome = Some(wanted.clone()),
            Decide::Confidence(confidence) => {
                let sure = *wanted == WorkflowOutcome::Ok;
                match confidence.questions.is_empty() {
                    true => {
                        let level = if sure {
                            ConfidenceLevel::Certain
                        } else {
                            ConfidenceLevel::Exploring
                        };
                        report.confidence = Some(level);
                    }
                    false => {
                        let answer = if sure { "yes" } else { "no" };
                        let facts = confidence.questions.keys();
                        report.facts = facts.map(|id| (id.clone(), answer.to_owned())).collect();
                    }
                }
            }
            Decide::Gate(_) | Decide::Cases(_) => {}
        }
        report
    }

    /// Records so that the gate passes or fails.
    fn review(&mut self, gate: &Gate, pass: bool) {
        let id = self.state.step.clone();
        let review = self.state.reviews.get(&id).cloned().unwrap_or_default();
        let is_open = |name: &&String| {
            review.checks.get(*name).is_none_or(|known| known.status == ItemStatus::Todo)
        };
        let checks: Vec<CheckRecord> =
            gate.checks.iter().filter(is_open).map(|name| self.check(name, pass)).collect();
        // A red check is enough.
        let items_pass = pass || (!checks.is_empty() && self.dice.below(2) == 0);
        let status = if items_pass { ItemStatus::Pass } else { ItemStatus::Fail };
        let finding = (!items_pass).then(|| "it does not hold".to_owned());
        let mut items: Vec<ItemRecord> = review
            .items
            .iter()
            .filter(|item| item.status == ItemStatus::Todo)
            .map(|item| ItemRecord {
                id: item.id.clone(),
                status: Some(status),
                finding: finding.clone(),
                ..ItemRecord::default()
            })
            .collect();
        let number = review.items.len();
        if items.is_empty() && number < 100 {
            items.push(ItemRecord {
                id: format!("item-{number}"),
                check: Some("something holds".into()),
                severity: Some(ItemSeverity::Must),
                status: Some(status),
                finding,
                scope: None,
            });
        }
        self.say(EngineInput::about_now(EngineAction::Record { gate: None, items, checks }));
        let after =
            compute_verdict(gate, self.state.reviews.get(&id).unwrap_or(&GateReview::default()));
        assert!(!matches!(after, GateVerdict::Open { .. }), "gate `{id}` is still open");
    }

    fn check(&self, name: &str, pass: bool) -> CheckRecord {
        let workflow = self.flow.workflow();
        let scope = TemplateScope::new(&self.state);
        let command = render_check_command(workflow, &workflow.checks[name], &scope)
            .expect("a command can be filled in");
        let status = if pass { ItemStatus::Pass } else { ItemStatus::Fail };
        let proof = match command.trim() {
            "" => CheckProof::Claim,
            command => CheckProof::Run {
                command: command.to_owned(),
                exit_code: Some(if pass { 0 } else { 1 }),
                work: None,
            },
        };
        let result = GateCheckResult { status, proof, note: String::new() };
        CheckRecord { name: name.to_owned(), result }
    }
}

/// The ways in which a step can end.
pub(crate) fn wishes(step: &StepDef) -> Vec<Wish> {
    let word = |outcome: WorkflowOutcome| match outcome {
        WorkflowOutcome::Default => WorkflowOutcome::Named("anything-else".into()),
        other => other,
    };
    let mut all: Vec<Wish> =
        step.possible_outcomes().into_iter().map(|outcome| Wish::Outcome(word(outcome))).collect();
    all.extend(step.on_error.as_ref().map(|_| Wish::Error));
    all
}

/// All edges of a workflow.
pub(crate) fn edges(workflow: &Workflow) -> BTreeSet<Edge> {
    let edges = workflow.steps.iter().flat_map(|step| {
        wishes(step).into_iter().map(|wish| match wish {
            Wish::Outcome(outcome) => (step.id.to_string(), Some(outcome.to_string())),
            Wish::Error => (step.id.to_string(), None),
        })
    });
    edges.collect()
}

/// Where a way of ending a step leads; none is the end.
pub(crate) fn target(step: &StepDef, wish: &Wish) -> Option<StepId> {
    match wish {
        Wish::Outcome(outcome) => step.next.find_target(outcome)?.as_step().cloned(),
        Wish::Error => step.on_error.clone(),
    }
}

/// A value that a parameter takes.
fn value(arg: &WorkflowParameter, literals: &[String], dice: &mut Dice) -> String {
    if !arg.choices.is_empty() && arg.kind != ParameterType::List {
        return dice.pick(&arg.choices).clone();
    }
    let least = arg.min.unwrap_or(0.0) as i64;
    let most = arg.max.map_or(least + 3, |max| max as i64);
    let number = (least + dice.below(4) as i64).min(most);
    match arg.kind {
        ParameterType::Text => match dice.below(2) {
            0 if !literals.is_empty() => dice.pick(literals).clone(),
            _ => "some text, with a comma".to_owned(),
        },
        // Now and then more than any loop goes round.
        ParameterType::Integer | ParameterType::Number => match dice.below(4) {
            0 => arg.max.map_or(1000, |max| max as i64).to_string(),
            _ => number.to_string(),
        },
        ParameterType::Boolean => ["true", "false"][dice.below(2)].to_owned(),
        ParameterType::List => {
            let entry = |at: i64| match arg.choices.get(at as usize) {
                Some(choice) => format!("{choice:?}"),
                None => format!("\"entry {at}\""),
            };
            let entries: Vec<String> = (0..number).map(entry).collect();
            format!("[{}]", entries.join(","))
        }
        ParameterType::Work => {
            let pieces: Vec<String> = (0..number)
                .map(|at| {
                    format!(
                        r#"{{"id":"w{at}","task":"t","files":["f{at}"],"wave":{}}}"#,
                        1 + at / 2
                    )
                })
                .collect();
            format!("[{}]", pieces.join(","))
        }
    }
}

/// The texts that conditions compare with.
fn literals(workflow: &Workflow) -> Vec<String> {
    let conditions = workflow.steps.iter().flat_map(|step| match &step.decide {
        Decide::Cases(cases) => cases.when.iter().map(|case| case.condition.as_str()).collect(),
        Decide::Reported | Decide::Gate(_) | Decide::Confidence(_) => Vec::new(),
    });
    conditions.flat_map(|text| text.split('"').skip(1).step_by(2).map(str::to_owned)).collect()
}
