//! Builds the continuation of a step without a run: one command for each outcome, with the counter in it.

use std::collections::BTreeMap;

use super::{Flags, QrStatus};
use crate::check::Checked;
use crate::step::{ChoiceView, Command, Next, Way};
use crate::workflow::{Cases, Confidence, ConfidenceLoop, Decide, Gate, Outcome, StepDef, Target};

/// The continuation of a step.
pub(in crate::step) fn next(
    checked: &Checked,
    step: &StepDef,
    flags: &Flags,
    parameters: &BTreeMap<String, String>,
) -> Next {
    let from = From { checked, step, flags, parameters };
    match (&step.decide, flags.status) {
        (Decide::Gate(gate), Some(QrStatus::Fail)) if flags.iteration >= gate.limit() => {
            from.at_limit(gate)
        }
        (Decide::Gate(_), Some(QrStatus::Fail)) => from.ways(vec![Outcome::Fail]),
        (Decide::Gate(_), _) => from.ways(vec![Outcome::Ok]),
        _ => from.ways(step.possible_outcomes()),
    }
}

/// The step that command lines lead from.
struct From<'a> {
    checked: &'a Checked,
    step: &'a StepDef,
    flags: &'a Flags,
    parameters: &'a BTreeMap<String, String>,
}

/// The target of a command line, with its flags.
struct To<'a> {
    step: &'a StepDef,
    iteration: u32,
    fail: bool,
    status: Option<QrStatus>,
}

impl From<'_> {
    fn ways(&self, outcomes: Vec<Outcome>) -> Next {
        let within: Vec<&Outcome> =
            outcomes.iter().filter(|outcome| self.is_within_bound(outcome)).collect();
        if within.is_empty() {
            return self.at_bound(&outcomes);
        }
        let ends = |outcome: &&Outcome| self.step.next.target(outcome) == Some(Target::End);
        if within.iter().all(ends) {
            let message = "This is the last step: when it is done, the workflow is complete.";
            return Next::Complete { message: message.to_owned() };
        }
        let is_only = within.len() == 1;
        let ways = within.iter().flat_map(|outcome| self.ways_of(outcome, is_only)).collect();
        let on_error = self.step.on_error.as_ref().and_then(|id| self.checked.step(id));
        let on_error = on_error.map(|step| {
            let iteration = self.iteration_after(None);
            self.command(&To { step, iteration, fail: false, status: None })
        });
        Next::Ways { ways, on_error }
    }

    /// The ways for an outcome: two if it leads to a gate, because the command has to state the result of the review.
    fn ways_of(&self, outcome: &Outcome, is_only: bool) -> Vec<Way> {
        let target = self.step.next.target(outcome);
        let to = target.as_ref().and_then(Target::step).and_then(|id| self.checked.step(id));
        let when = self.when(outcome);
        let Some(step) = to else {
            let (outcome, title) = (Some(outcome.to_string()), "the end".to_owned());
            return vec![Way { outcome, when, to: None, title, command: Command::default() }];
        };
        let way = |name: String, when: String, status: Option<QrStatus>| {
            let iteration = self.iteration_after(Some(outcome));
            let fail = self.step.decide.as_gate().is_some() && *outcome == Outcome::Fail;
            Way {
                outcome: Some(name),
                when,
                to: self.checked.number(&step.id),
                title: step.title.clone(),
                command: self.command(&To { step, iteration, fail, status }),
            }
        };
        if step.decide.as_gate().is_none() {
            return vec![way(outcome.to_string(), when, None)];
        }
        let (pass, fail) = if is_only {
            (Outcome::Ok.to_string(), Outcome::Fail.to_string())
        } else {
            (format!("{outcome}-pass"), format!("{outcome}-fail"))
        };
        vec![
            way(pass, "The review has found nothing that blocks".to_owned(), Some(QrStatus::Pass)),
            way(fail, "The review has found anything that blocks".to_owned(), Some(QrStatus::Fail)),
        ]
    }

    fn when(&self, outcome: &Outcome) -> String {
        match &self.step.decide {
            Decide::Reported => match self.step.outcomes.get(outcome) {
                Some(when) => when.clone(),
                None if *outcome == Outcome::Default => "Anything else".to_owned(),
                None => String::new(),
            },
            Decide::Gate(_) => String::new(),
            Decide::Cases(cases) => when_case(cases, outcome),
            Decide::Confidence(confidence) => when_sure(confidence, outcome, self.flags.iteration),
        }
    }

    /// The counter that goes with an outcome, or with an error if `None`: it is kept within the loop, incremented
    /// where the loop is closed, and reset to 1 where it is left.
    fn iteration_after(&self, outcome: Option<&Outcome>) -> u32 {
        if !self.checked.leads_back(self.step, outcome) {
            return 1;
        }
        let closes = match &self.step.decide {
            Decide::Gate(_) => outcome == Some(&Outcome::Fail),
            Decide::Confidence(_) => outcome == Some(&Outcome::Iterate),
            Decide::Reported | Decide::Cases(_) => self.step.bound.is_some(),
        };
        self.flags.iteration.saturating_add(u32::from(closes))
    }

    /// Returns true if the bound of the step allows the outcome.
    fn is_within_bound(&self, outcome: &Outcome) -> bool {
        let (max, at_limit) = match (&self.step.decide, &self.step.bound) {
            (Decide::Gate(_), _) => return true,
            (Decide::Confidence(confidence), _) => (confidence.max, Some(&Outcome::Ok)),
            (_, Some(bound)) => (bound.max, bound.at_limit.as_ref()),
            (_, None) => return true,
        };
        self.flags.iteration < max
            || at_limit == Some(outcome)
            || !self.checked.leads_back(self.step, Some(outcome))
    }

    /// Stops for a person: the loop has reached its bound, and every outcome leads back.
    fn at_bound(&self, outcomes: &[Outcome]) -> Next {
        let ways = outcomes.iter().flat_map(|outcome| self.ways_of(outcome, outcomes.len() == 1));
        let choices = ways.map(|way| ChoiceView {
            meaning: format!("Allow one more iteration: {}.", way.title),
            choice: way.outcome.unwrap_or_default(),
            command: way.command,
        });
        let about = format!("step `{}` was gone through as often as it may", self.step.id);
        Next::Person { about, choices: choices.collect(), questions: Vec::new(), command: None }
    }

    /// Stops for a person: the gate has reached its limit.
    fn at_limit(&self, gate: &Gate) -> Next {
        let leads = |outcome: &Outcome| {
            self.ways_of(outcome, true)
                .into_iter()
                .next()
                .map(|way| way.command)
                .unwrap_or_default()
        };
        let choices = vec![
            choice_view("continue", "Allow one more iteration.", leads(&Outcome::Fail)),
            choice_view(
                "must-only",
                "Accept what failed below MUST, if no MUST has.",
                leads(&Outcome::Ok),
            ),
            choice_view(
                "skip",
                "Accept everything that failed, and go on; write down what.",
                leads(&Outcome::Ok),
            ),
            choice_view("abort", "Stop here; there is nothing to run.", Command::default()),
        ];
        let (name, limit) = (&gate.name, gate.limit());
        let about = format!("{name} has failed as often as it may ({limit})");
        Next::Person { about, choices, questions: Vec::new(), command: None }
    }

    fn command(&self, to: &To<'_>) -> Command {
        let workflow = self.checked.workflow();
        let number = self.checked.number(&to.step.id).unwrap_or_default().to_string();
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
        Command::new(argv)
    }
}

fn choice_view(choice: &str, meaning: &str, command: Command) -> ChoiceView {
    ChoiceView { choice: choice.to_owned(), meaning: meaning.to_owned(), command }
}

fn when_case(cases: &Cases, outcome: &Outcome) -> String {
    let conditions = cases.when.iter().filter(|case| case.outcome == *outcome);
    let mut said: Vec<String> = conditions.map(|case| format!("`{}`", case.condition)).collect();
    if cases.otherwise == *outcome {
        said.push("otherwise".to_owned());
    }
    said.join(" or ")
}

fn when_sure(confidence: &ConfidenceLoop, outcome: &Outcome, iteration: u32) -> String {
    let ConfidenceLoop { until, max, .. } = confidence;
    if iteration >= *max {
        return format!("This was time {iteration} of {max}: go on, and say how sure you are");
    }
    let least = |level: &Confidence| confidence.levels.get(level).copied();
    let sure = match (confidence.questions.is_empty(), least(until)) {
        (false, Some(sum)) => format!("the answers (yes 1, partial ½, no 0) give {sum} or more"),
        _ => format!("you are sure to the level {until} or above"),
    };
    match outcome {
        Outcome::Ok => sure,
        _ => format!("not yet: until {sure}, at most {max} times"),
    }
}
