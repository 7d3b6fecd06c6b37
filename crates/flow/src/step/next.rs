//! Builds the report form of a step and its possible continuations.

use super::{Addressing, ChoiceView, Command, FactView, Next, ReportView, SetView, Way, stateless};
use crate::check::Checked;
use crate::engine::{self, Action, Choice, Input, Verdict, verdict};
use crate::state::{State, Status, Waiting};
use crate::workflow::{Arg, Decide, Outcome, StepDef, Target, Workflow};

/// The values to report when the step is left.
pub(super) fn report(workflow: &Workflow, step: &StepDef) -> ReportView {
    let set = step.sets.iter().filter_map(|name| {
        let arg = workflow.parameters.get(name)?;
        Some(SetView {
            name: name.clone(),
            takes: takes(arg),
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

fn takes(arg: &Arg) -> String {
    if arg.choices.is_empty() { arg.kind.described().to_owned() } else { arg.choices.join(" | ") }
}

/// The continuation of the current step.
pub(super) fn next(
    checked: &Checked,
    state: &State,
    step: &StepDef,
    addressing: &Addressing,
) -> Next {
    match &state.status {
        Status::Done => Next::Complete { message: "The workflow is complete.".to_owned() },
        Status::Aborted => Next::Complete { message: "A person has ended the run.".to_owned() },
        Status::Waiting(waiting) => person(checked, state, waiting),
        Status::Active => match addressing {
            Addressing::Run => active(checked, state, step),
            Addressing::Stateless { flags, parameters } => {
                stateless::next(checked, step, flags, parameters)
            }
        },
    }
}

fn active(checked: &Checked, state: &State, step: &StepDef) -> Next {
    if let Some(gate) = step.decide.as_gate() {
        let open = state
            .reviews
            .get(&step.id)
            .is_none_or(|review| matches!(verdict(gate, review), Verdict::Open { .. }));
        if open {
            let again = Command::new(["rep", "workflow", "step", state.run.as_str()]);
            let message = format!(
                "Something has no verdict yet. Let its reviewer look at it (a sub-agent is started again) and record what it \
                 finds; then ask for this step again: {}",
                again.line
            );
            return Next::Record { message };
        }
    }
    let possible = step.possible_outcomes();
    // If the engine computes the outcome, a single command covers all outcomes.
    let outcomes: Vec<Option<Outcome>> = match step.decide {
        Decide::Reported => {
            possible.into_iter().filter(|outcome| *outcome != Outcome::Default).map(Some).collect()
        }
        Decide::Gate(_) | Decide::Confidence(_) | Decide::Cases(_) => vec![None],
    };
    let ways = outcomes.iter().map(|outcome| way(checked, state, step, outcome.as_ref()));
    // A gate is computed, so there is nothing that could fail to be carried out.
    let on_error = step.decide.as_gate().is_none().then(|| {
        let words = ["--error", "WHY"].map(str::to_owned);
        Command::new(Command::step(&state.run, state).into_iter().chain(words))
    });
    Next::Ways { ways: ways.collect(), on_error }
}

fn way(checked: &Checked, state: &State, step: &StepDef, outcome: Option<&Outcome>) -> Way {
    let target = match (outcome, &step.decide) {
        (Some(outcome), _) => step.next.target(outcome),
        (None, Decide::Gate(gate)) => {
            let review = state.reviews.get(&step.id);
            match review.map(|review| verdict(gate, review)) {
                Some(Verdict::Pass { .. }) => step.next.target(&Outcome::Ok),
                Some(Verdict::Fail { .. }) => step.next.target(&Outcome::Fail),
                Some(Verdict::Open { .. }) | None => None,
            }
        }
        (None, _) => None,
    };
    let to = target.as_ref().and_then(Target::step).and_then(|id| checked.step(id));
    let mut argv = Command::step(&state.run, state);
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
    Way {
        outcome: outcome.map(Outcome::to_string),
        when: outcome.and_then(|outcome| step.outcomes.get(outcome)).cloned().unwrap_or_default(),
        to: to.and_then(|step| checked.number(&step.id)),
        title: match (&target, to) {
            (_, Some(step)) => step.title.clone(),
            (Some(Target::End), None) => "the end".to_owned(),
            _ => String::new(),
        },
        command: Command::new(argv),
    }
}

fn person(checked: &Checked, state: &State, waiting: &Waiting) -> Next {
    let resume = ["rep", "workflow", "resume", state.run.as_str()];
    // Offer only choices that the engine would accept.
    let is_taken = |choice: &Choice| {
        let action = Action::Choose { choice: choice.clone(), note: String::new() };
        engine::next(checked, state, &Input::now(action)).is_ok()
    };
    let possible = Choice::possible(checked, waiting).into_iter().filter(is_taken);
    let choices = possible.map(|choice| {
        let word = choice.to_string();
        ChoiceView {
            meaning: meaning(&choice, waiting),
            command: Command::new(resume.into_iter().chain(["--choice", &word])),
            choice: word,
        }
    });
    let (questions, command) = match waiting {
        Waiting::Questions { questions } => {
            let mut argv = resume.map(str::to_owned).to_vec();
            for asked in questions {
                argv.extend(["--answer".to_owned(), format!("{}=ANSWER", asked.id)]);
            }
            (questions.clone(), Some(Command::new(argv)))
        }
        Waiting::Limit { .. } | Waiting::Bound { .. } | Waiting::Error { .. } => (Vec::new(), None),
    };
    Next::Person { about: waiting.to_string(), choices: choices.collect(), questions, command }
}

fn meaning(choice: &Choice, waiting: &Waiting) -> String {
    match (choice, waiting) {
        (Choice::Continue, Waiting::Error { .. }) => "Try the step again.".to_owned(),
        (Choice::Continue, _) => "Allow one more iteration.".to_owned(),
        (Choice::MustOnly, _) => {
            "Accept what failed below MUST; possible only if no MUST has failed.".to_owned()
        }
        (Choice::Skip, _) => {
            "Accept everything that failed, and go on; not possible while a declared check is red."
                .to_owned()
        }
        (Choice::Abort, _) => "End the run.".to_owned(),
        (Choice::Take(outcome), _) => format!("Go on with the outcome `{outcome}`."),
    }
}
