//! Builds the report form of a step and its possible continuations.

use super::{
    ChoiceView, FactView, NextStep, NextStepOption, ReportView, SetView, ShellCommand,
    StepAddressing, stateless,
};
use crate::check::CheckedWorkflow;
use crate::engine::{self, EngineAction, EngineInput, GateVerdict, PersonChoice, compute_verdict};
use crate::state::{WaitReason, WorkflowRunState, WorkflowRunStatus};
use crate::workflow::{Decide, EdgeTarget, StepDef, Workflow, WorkflowOutcome, WorkflowParameter};

/// The values to report when the step is left.
pub(super) fn report_view(workflow: &Workflow, step: &StepDef) -> ReportView {
    let set = step.sets.iter().filter_map(|name| {
        let arg = workflow.parameters.get(name)?;
        Some(SetView {
            name: name.clone(),
            takes: describe_values(arg),
            description: arg.description.clone(),
        })
    });
    let (confidence, facts) = match &step.decide {
        Decide::Confidence(confidence) if confidence.questions.is_empty() => {
            (Some(confidence.until.to_string()), Vec::new())
        }
        Decide::Confidence(confidence) => {
            let facts = confidence.questions.iter().map(|(id, question)| FactView {
                id: id.clone(),
                ask: question.ask.clone(),
                answers: if question.partial {
                    ["yes", "partial", "no"].map(str::to_owned).to_vec()
                } else {
                    ["yes", "no"].map(str::to_owned).to_vec()
                },
            });
            (None, facts.collect())
        }
        Decide::Reported | Decide::Gate(_) | Decide::Cases(_) => (None, Vec::new()),
    };
    ReportView { set: set.collect(), output: step.output.clone(), confidence, facts }
}

fn describe_values(arg: &WorkflowParameter) -> String {
    if arg.choices.is_empty() { arg.kind.described().to_owned() } else { arg.choices.join(" | ") }
}

/// The continuation of the current step.
pub(super) fn next_step(
    checked: &CheckedWorkflow,
    state: &WorkflowRunState,
    step: &StepDef,
    addressing: &StepAddressing,
) -> NextStep {
    match &state.status {
        WorkflowRunStatus::Done => {
            NextStep::Complete { message: "The workflow is complete.".to_owned() }
        }
        WorkflowRunStatus::Aborted => {
            NextStep::Complete { message: "A person has ended the run.".to_owned() }
        }
        WorkflowRunStatus::Waiting(waiting) => person_next_step(checked, state, waiting),
        WorkflowRunStatus::Active => match addressing {
            StepAddressing::Run => active_next_step(checked, state, step),
            StepAddressing::Stateless { flags, parameters } => {
                stateless::stateless_next_step(checked, step, flags, parameters)
            }
        },
    }
}

fn active_next_step(
    checked: &CheckedWorkflow,
    state: &WorkflowRunState,
    step: &StepDef,
) -> NextStep {
    if let Some(gate) = step.decide.as_gate() {
        let open = state
            .reviews
            .get(&step.id)
            .is_none_or(|review| matches!(compute_verdict(gate, review), GateVerdict::Open { .. }));
        if open {
            let again = ShellCommand::new(["rep", "workflow", "step", state.run.as_str()]);
            let message = format!(
                "Something has no verdict yet. Let its reviewer look at it (a sub-agent is started again) and record what it \
                 finds; then ask for this step again: {}",
                again.line
            );
            return NextStep::Record { message };
        }
    }
    let possible = step.possible_outcomes();
    // If the engine computes the outcome, a single command covers all outcomes.
    let outcomes: Vec<Option<WorkflowOutcome>> = match step.decide {
        Decide::Reported => possible
            .into_iter()
            .filter(|outcome| *outcome != WorkflowOutcome::Default)
            .map(Some)
            .collect(),
        Decide::Gate(_) | Decide::Confidence(_) | Decide::Cases(_) => vec![None],
    };
    let ways = outcomes.iter().map(|outcome| run_option(checked, state, step, outcome.as_ref()));
    // A gate is computed, so there is nothing that could fail to be carried out.
    let on_error = step.decide.as_gate().is_none().then(|| {
        let words = ["--error", "WHY"].map(str::to_owned);
        ShellCommand::new(ShellCommand::step_arguments(&state.run, state).into_iter().chain(words))
    });
    NextStep::Ways { ways: ways.collect(), on_error }
}

fn run_option(
    checked: &CheckedWorkflow,
    state: &WorkflowRunState,
    step: &StepDef,
    outcome: Option<&WorkflowOutcome>,
) -> NextStepOption {
    let target = match (outcome, &step.decide) {
        (Some(outcome), _) => step.next.find_target(outcome),
        (None, Decide::Gate(gate)) => {
            let review = state.reviews.get(&step.id);
            match review.map(|review| compute_verdict(gate, review)) {
                Some(GateVerdict::Pass { .. }) => step.next.find_target(&WorkflowOutcome::Ok),
                Some(GateVerdict::Fail { .. }) => step.next.find_target(&WorkflowOutcome::Fail),
                Some(GateVerdict::Open { .. }) | None => None,
            }
        }
        (None, _) => None,
    };
    let to = target.as_ref().and_then(EdgeTarget::as_step).and_then(|id| checked.find_step(id));
    let mut argv = ShellCommand::step_arguments(&state.run, state);
    if let Some(outcome) = outcome {
        argv.extend(["--outcome".to_owned(), outcome.to_string()]);
    }
    for name in &step.sets {
        argv.extend(["--set".to_owned(), format!("{name}=VALUE")]);
    }
    if step.output.is_some() {
        argv.extend(["--output".to_owned(), "TEXT".to_owned()]);
    }
    if let Decide::Confidence(confidence) = &step.decide {
        if confidence.questions.is_empty() {
            argv.extend(["--confidence".to_owned(), "LEVEL".to_owned()])
        } else {
            for id in confidence.questions.keys() {
                argv.extend(["--fact".to_owned(), format!("{id}=ANSWER")]);
            }
        }
    }
    NextStepOption {
        outcome: outcome.map(WorkflowOutcome::to_string),
        when: outcome.and_then(|outcome| step.outcomes.get(outcome)).cloned().unwrap_or_default(),
        to: to.and_then(|step| checked.step_number(&step.id)),
        title: match (&target, to) {
            (_, Some(step)) => step.title.clone(),
            (Some(EdgeTarget::End), None) => "the end".to_owned(),
            _ => String::new(),
        },
        command: ShellCommand::new(argv),
    }
}

fn person_next_step(
    checked: &CheckedWorkflow,
    state: &WorkflowRunState,
    waiting: &WaitReason,
) -> NextStep {
    let resume = ["rep", "workflow", "resume", state.run.as_str()];
    // Offer only choices that the engine would accept.
    let is_taken = |choice: &PersonChoice| {
        let action = EngineAction::Choose { choice: choice.clone(), note: String::new() };
        engine::advance_run(checked, state, &EngineInput::about_now(action)).is_ok()
    };
    let possible = PersonChoice::possible_choices(checked, waiting).into_iter().filter(is_taken);
    let choices = possible.map(|choice| {
        let word = choice.to_string();
        ChoiceView {
            meaning: choice_meaning(&choice, waiting),
            command: ShellCommand::new(resume.into_iter().chain(["--choice", &word])),
            choice: word,
        }
    });
    let (questions, command) = match waiting {
        WaitReason::Questions { questions } => {
            let mut argv = resume.map(str::to_owned).to_vec();
            for asked in questions {
                argv.extend(["--answer".to_owned(), format!("{}=ANSWER", asked.id)]);
            }
            (questions.clone(), Some(ShellCommand::new(argv)))
        }
        WaitReason::Limit { .. } | WaitReason::Bound { .. } | WaitReason::Error { .. } => {
            (Vec::new(), None)
        }
    };
    NextStep::Person { about: waiting.to_string(), choices: choices.collect(), questions, command }
}

fn choice_meaning(choice: &PersonChoice, waiting: &WaitReason) -> String {
    match (choice, waiting) {
        (PersonChoice::Continue, WaitReason::Error { .. }) => "Try the step again.".to_owned(),
        (PersonChoice::Continue, _) => "Allow one more iteration.".to_owned(),
        (PersonChoice::MustOnly, _) => {
            "Accept what failed below MUST; possible only if no MUST has failed.".to_owned()
        }
        (PersonChoice::Skip, _) => {
            "Accept everything that failed, and go on; not possible while a declared check is red."
                .to_owned()
        }
        (PersonChoice::Abort, _) => "End the run.".to_owned(),
        (PersonChoice::Take(outcome), _) => format!("Go on with the outcome `{outcome}`."),
    }
}
