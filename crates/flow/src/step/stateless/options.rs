//! Builds the continuation of a step without a run: one command for each outcome, with the counter in it.

use std::collections::BTreeMap;

use super::{QrStatus, StatelessFlags};
use crate::check::CheckedWorkflow;
use crate::step::{ChoiceView, NextStep, NextStepOption, ShellCommand};
use crate::workflow::{
    ConfidenceLevel, ConfidenceLoop, Decide, EdgeTarget, Gate, OutcomeCases, StepDef,
    WorkflowOutcome,
};

/// The continuation of a step.
pub(in crate::step) fn stateless_next_step(
    checked: &CheckedWorkflow,
    step: &StepDef,
    flags: &StatelessFlags,
    parameters: &BTreeMap<String, String>,
) -> NextStep {
    let from = StatelessStep { checked, step, flags, parameters };
    match (&step.decide, flags.status) {
        (Decide::Gate(gate), Some(QrStatus::Fail)) if flags.iteration >= gate.iteration_limit() => {
            from.stop_at_limit(gate)
        }
        (Decide::Gate(_), Some(QrStatus::Fail)) => {
            from.next_by_outcome(vec![WorkflowOutcome::Fail])
        }
        (Decide::Gate(_), _) => from.next_by_outcome(vec![WorkflowOutcome::Ok]),
        _ => from.next_by_outcome(step.possible_outcomes()),
    }
}

/// The step that command lines lead from.
struct StatelessStep<'a> {
    checked: &'a CheckedWorkflow,
    step: &'a StepDef,
    flags: &'a StatelessFlags,
    parameters: &'a BTreeMap<String, String>,
}

/// The target of a command line, with its flags.
struct StatelessTarget<'a> {
    step: &'a StepDef,
    iteration: u32,
    fail: bool,
    status: Option<QrStatus>,
}

impl StatelessStep<'_> {
    fn next_by_outcome(&self, outcomes: Vec<WorkflowOutcome>) -> NextStep {
        let within: Vec<&WorkflowOutcome> =
            outcomes.iter().filter(|outcome| self.is_within_bound(outcome)).collect();
        if within.is_empty() {
            return self.stop_at_bound(&outcomes);
        }
        let ends = |outcome: &&WorkflowOutcome| {
            self.step.next.find_target(outcome) == Some(EdgeTarget::End)
        };
        if within.iter().all(ends) {
            let message = "This is the last step: when it is done, the workflow is complete.";
            return NextStep::Complete { message: message.to_owned() };
        }
        let is_only = within.len() == 1;
        let ways =
            within.iter().flat_map(|outcome| self.outcome_options(outcome, is_only)).collect();
        let on_error = self.step.on_error.as_ref().and_then(|id| self.checked.find_step(id));
        let on_error = on_error.map(|step| {
            let iteration = self.iteration_after(None);
            self.step_command(&StatelessTarget { step, iteration, fail: false, status: None })
        });
        NextStep::Ways { ways, on_error }
    }

    /// The ways for an outcome: two if it leads to a gate, because the command has to state the result of the review.
    fn outcome_options(&self, outcome: &WorkflowOutcome, is_only: bool) -> Vec<NextStepOption> {
        let target = self.step.next.find_target(outcome);
        let to =
            target.as_ref().and_then(EdgeTarget::as_step).and_then(|id| self.checked.find_step(id));
        let when = self.describe_outcome(outcome);
        let Some(step) = to else {
            let (outcome, title) = (Some(outcome.to_string()), "the end".to_owned());
            return vec![NextStepOption {
                outcome,
                when,
                to: None,
                title,
                command: ShellCommand::default(),
            }];
        };
        let way = |name: String, when: String, status: Option<QrStatus>| {
            let iteration = self.iteration_after(Some(outcome));
            let fail = self.step.decide.as_gate().is_some() && *outcome == WorkflowOutcome::Fail;
            NextStepOption {
                outcome: Some(name),
                when,
                to: self.checked.step_number(&step.id),
                title: step.title.clone(),
                command: self.step_command(&StatelessTarget { step, iteration, fail, status }),
            }
        };
        if step.decide.as_gate().is_none() {
            return vec![way(outcome.to_string(), when, None)];
        }
        let (pass, fail) = if is_only {
            (WorkflowOutcome::Ok.to_string(), WorkflowOutcome::Fail.to_string())
        } else {
            (format!("{outcome}-pass"), format!("{outcome}-fail"))
        };
        vec![
            way(pass, "The review has found nothing that blocks".to_owned(), Some(QrStatus::Pass)),
            way(fail, "The review has found anything that blocks".to_owned(), Some(QrStatus::Fail)),
        ]
    }

    fn describe_outcome(&self, outcome: &WorkflowOutcome) -> String {
        match &self.step.decide {
            Decide::Reported => match self.step.outcomes.get(outcome) {
                Some(when) => when.clone(),
                None if *outcome == WorkflowOutcome::Default => "Anything else".to_owned(),
                None => String::new(),
            },
            Decide::Gate(_) => String::new(),
            Decide::Cases(cases) => describe_case(cases, outcome),
            Decide::Confidence(confidence) => {
                describe_confidence(confidence, outcome, self.flags.iteration)
            }
        }
    }

    /// The counter that goes with an outcome, or with an error if `None`: it is kept within the loop, incremented
    /// where the loop is closed, and reset to 1 where it is left.
    fn iteration_after(&self, outcome: Option<&WorkflowOutcome>) -> u32 {
        if !self.checked.leads_back(self.step, outcome) {
            return 1;
        }
        let closes = match &self.step.decide {
            Decide::Gate(_) => outcome == Some(&WorkflowOutcome::Fail),
            Decide::Confidence(_) => outcome == Some(&WorkflowOutcome::Iterate),
            Decide::Reported | Decide::Cases(_) => self.step.bound.is_some(),
        };
        self.flags.iteration.saturating_add(u32::from(closes))
    }

    /// Returns true if the bound of the step allows the outcome.
    fn is_within_bound(&self, outcome: &WorkflowOutcome) -> bool {
        let (max, at_limit) = match (&self.step.decide, &self.step.bound) {
            (Decide::Gate(_), _) => return true,
            (Decide::Confidence(confidence), _) => (confidence.max, Some(&WorkflowOutcome::Ok)),
            (_, Some(bound)) => (bound.max, bound.at_limit.as_ref()),
            (_, None) => return true,
        };
        self.flags.iteration < max
            || at_limit == Some(outcome)
            || !self.checked.leads_back(self.step, Some(outcome))
    }

    /// Stops for a person: the loop has reached its bound, and every outcome leads back.
    fn stop_at_bound(&self, outcomes: &[WorkflowOutcome]) -> NextStep {
        let ways =
            outcomes.iter().flat_map(|outcome| self.outcome_options(outcome, outcomes.len() == 1));
        let choices = ways.map(|way| ChoiceView {
            meaning: format!("Allow one more iteration: {}.", way.title),
            choice: way.outcome.unwrap_or_default(),
            command: way.command,
        });
        let about = format!("step `{}` was gone through as often as it may", self.step.id);
        NextStep::Person { about, choices: choices.collect(), questions: Vec::new(), command: None }
    }

    /// Stops for a person: the gate has reached its limit.
    fn stop_at_limit(&self, gate: &Gate) -> NextStep {
        let leads = |outcome: &WorkflowOutcome| {
            self.outcome_options(outcome, true)
                .into_iter()
                .next()
                .map(|way| way.command)
                .unwrap_or_default()
        };
        let choices = vec![
            choice_view("continue", "Allow one more iteration.", leads(&WorkflowOutcome::Fail)),
            choice_view(
                "must-only",
                "Accept what failed below MUST, if no MUST has.",
                leads(&WorkflowOutcome::Ok),
            ),
            choice_view(
                "skip",
                "Accept everything that failed, and go on; write down what.",
                leads(&WorkflowOutcome::Ok),
            ),
            choice_view("abort", "Stop here; there is nothing to run.", ShellCommand::default()),
        ];
        let (name, limit) = (&gate.name, gate.iteration_limit());
        let about = format!("{name} has failed as often as it may ({limit})");
        NextStep::Person { about, choices, questions: Vec::new(), command: None }
    }

    fn step_command(&self, to: &StatelessTarget<'_>) -> ShellCommand {
        let workflow = self.checked.workflow();
        let number = self.checked.step_number(&to.step.id).unwrap_or_default().to_string();
        let total = workflow.steps.len().to_string();
        let name = workflow.name.as_str();
        let mut argv: Vec<String> =
            ["rep", "workflow", "step", name, "--step", &number, "--total-steps", &total]
                .map(str::to_owned)
                .to_vec();
        if to.iteration > 1 {
            argv.extend(["--qr-iteration".to_owned(), to.iteration.to_string()]);
        }
        if to.fail {
            argv.push("--qr-fail".to_owned());
        }
        if let Some(status) = to.status {
            argv.extend(["--qr-status", status.as_str()].map(str::to_owned));
        }
        let carried = self.parameters.iter().filter(|(name, _)| !self.step.sets.contains(name));
        for (name, value) in carried {
            argv.extend(["--param".to_owned(), format!("{name}={value}")]);
        }
        for name in &self.step.sets {
            argv.extend(["--param".to_owned(), format!("{name}=VALUE")]);
        }
        ShellCommand::new(argv)
    }
}

fn choice_view(choice: &str, meaning: &str, command: ShellCommand) -> ChoiceView {
    ChoiceView { choice: choice.to_owned(), meaning: meaning.to_owned(), command }
}

fn describe_case(cases: &OutcomeCases, outcome: &WorkflowOutcome) -> String {
    let conditions = cases.when.iter().filter(|case| case.outcome == *outcome);
    let mut said: Vec<String> = conditions.map(|case| format!("`{}`", case.condition)).collect();
    if cases.otherwise == *outcome {
        said.push("otherwise".to_owned());
    }
    said.join(" or ")
}

fn describe_confidence(
    confidence: &ConfidenceLoop,
    outcome: &WorkflowOutcome,
    iteration: u32,
) -> String {
    let ConfidenceLoop { until, max, .. } = confidence;
    if iteration >= *max {
        return format!("This was time {iteration} of {max}: go on, and say how sure you are");
    }
    let least = |level: &ConfidenceLevel| confidence.levels.get(level).copied();
    let sure = match (confidence.questions.is_empty(), least(until)) {
        (false, Some(sum)) => format!("the answers (yes 1, partial ½, no 0) give {sum} or more"),
        _ => format!("you are sure to the level {until} or above"),
    };
    match outcome {
        WorkflowOutcome::Ok => sure,
        _ => format!("not yet: until {sure}, at most {max} times"),
    }
}
