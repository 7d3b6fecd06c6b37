//! Why the engine says no: each time with what is possible instead.

use crate::limits::{
    ASKS_PER_VISIT_MAX, ITEM_TEXT_BYTES_MAX, ITEMS_MAX, NOTE_BYTES_MAX, OUTPUT_BYTES_MAX,
    REVIEW_BYTES_MAX,
};
use crate::state::ItemStatus;
use crate::template::TemplateError;
use crate::workflow::{Outcome, Severity, StepId};

/// Why the engine says no. Nothing has changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The workflow is empty.
    #[error("the workflow has no steps")]
    NoSteps,
    /// The workflow is not the one that the run was started with.
    #[error("this is not the workflow that the run was started with")]
    OtherWorkflow,
    /// The run is over.
    #[error("the run is over ({how})")]
    Over {
        /// How it has ended.
        how: &'static str,
    },
    /// The run waits for a person.
    #[error("the run waits for a person: {what}")]
    WaitsForPerson {
        /// What for.
        what: String,
    },
    /// The run waits for nobody.
    #[error("the run waits for no such decision")]
    NotWaiting,
    /// The report is about another turn.
    #[error("{}; the run is at turn {now}, step `{step}`", other_turn(*at, *now))]
    OtherTurn {
        /// The turn that the report is about.
        at: u32,
        /// The turn that the run is at.
        now: u32,
        /// The step that the run is at.
        step: StepId,
    },
    /// No such parameter.
    #[error("there is no parameter `{name}`{}", listed("; there are ", known))]
    UnknownParameter {
        /// What was given.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A parameter is needed.
    #[error("parameter `{name}` is needed{}", colon(description))]
    MissingParameter {
        /// Which.
        name: String,
        /// What it means.
        description: String,
    },
    /// A parameter does not take this value.
    #[error("parameter `{name}`: {reason}")]
    BadValue {
        /// Which.
        name: String,
        /// Why not.
        reason: String,
    },
    /// The step sets parameters, and was left without.
    #[error("step `{step}` sets {}; report {}", quoted(names), how_to_set(names))]
    NotSet {
        /// The step.
        step: StepId,
        /// What it sets.
        names: Vec<String>,
    },
    /// The step does not set this parameter.
    #[error("step `{step}` does not set `{name}`")]
    NotItsParameter {
        /// The step.
        step: StepId,
        /// What was set.
        name: String,
    },
    /// The step hands something over, and was left without.
    #[error("step `{step}` hands over an output: {what}")]
    NoOutput {
        /// The step.
        step: StepId,
        /// What.
        what: String,
    },
    /// The output is too long.
    #[error(
        "the output has {bytes} bytes, and {OUTPUT_BYTES_MAX} is the limit; hand over a path instead"
    )]
    OutputTooLong {
        /// How long it is.
        bytes: usize,
    },
    /// The agent has to say how the step ended.
    #[error("say how step `{step}` ended: {}", outcomes(possible))]
    OutcomeNeeded {
        /// The step.
        step: StepId,
        /// What is possible.
        possible: Vec<Outcome>,
    },
    /// The step cannot end like this.
    #[error("step `{step}` cannot end with `{given}`; possible: {}", outcomes(possible))]
    NoSuchOutcome {
        /// The step.
        step: StepId,
        /// What was reported.
        given: Outcome,
        /// What is possible.
        possible: Vec<Outcome>,
    },
    /// The outcome is computed, and is another one.
    #[error("the outcome of step `{step}` is computed, and is `{computed}`, not `{given}`")]
    Computed {
        /// The step.
        step: StepId,
        /// What was reported.
        given: Outcome,
        /// What it is.
        computed: Outcome,
    },
    /// The agent has to say how sure it is.
    #[error("say how sure you are: exploring, low, medium, high or certain")]
    ConfidenceNeeded,
    /// The agent has to answer the questions of fact.
    #[error("answer {} with yes, partial or no", quoted(missing))]
    FactsNeeded {
        /// Which.
        missing: Vec<String>,
    },
    /// That is no answer to a question of fact.
    #[error("`{answer}` is no answer to `{id}`; possible: {possible}")]
    BadFact {
        /// The question.
        id: String,
        /// What was answered.
        answer: String,
        /// What is possible.
        possible: &'static str,
    },
    /// Nobody has asked for this.
    #[error("step `{step}` does not ask {what}")]
    NotAsked {
        /// The step.
        step: StepId,
        /// What was given.
        what: String,
    },
    /// A text that is too long.
    #[error("{what} has {bytes} bytes, and {NOTE_BYTES_MAX} is the limit")]
    TooLong {
        /// What.
        what: &'static str,
        /// How long it is.
        bytes: usize,
    },
    /// The gate cannot decide yet.
    #[error("gate `{gate}` is open: {}", open(todo, checks))]
    GateOpen {
        /// The gate.
        gate: StepId,
        /// Items without a verdict.
        todo: Vec<String>,
        /// Checks without a verdict.
        checks: Vec<String>,
    },
    /// Nothing can be recorded here.
    #[error("nothing is recorded during step `{step}`{}", listed("; reviews are ", reviews))]
    NoReview {
        /// The step.
        step: StepId,
        /// The steps during which items are recorded.
        reviews: Vec<String>,
    },
    /// No such gate.
    #[error("there is no gate `{gate}`")]
    NoSuchGate {
        /// What was given.
        gate: StepId,
    },
    /// A name that could be taken for something else.
    #[error(
        "`{id}` is no name: use letters, digits, `.`, `_` and `-`, at most {} of them",
        crate::limits::ID_BYTES_MAX
    )]
    BadId {
        /// What was given, shortened.
        id: String,
    },
    /// A new item has to say what it checks.
    #[error("item `{id}` is new: give its check and its severity (MUST, SHOULD or COULD)")]
    IncompleteItem {
        /// Which.
        id: String,
    },
    /// An item that fails has to say why.
    #[error("item `{id}` fails: give the finding")]
    FindingNeeded {
        /// Which.
        id: String,
    },
    /// An item means what it meant when it was recorded.
    #[error("item `{id}` is recorded already, with another {what}; record a new one instead")]
    ItemChanged {
        /// Which.
        id: String,
        /// What would change.
        what: &'static str,
    },
    /// A severity does not get less.
    #[error("item `{id}` is {from}, and does not become {to}")]
    SeverityLowered {
        /// Which.
        id: String,
        /// What it is.
        from: Severity,
        /// What was given.
        to: Severity,
    },
    /// What has failed passes after a repair, not before.
    #[error("item `{id}` has failed in this iteration; it can pass in the next, after the repair")]
    FailStands {
        /// Which.
        id: String,
    },
    /// Too many items.
    #[error("a review has at most {ITEMS_MAX} items")]
    TooManyItems,
    /// A text that is too long.
    #[error("{what} of item `{id}` is longer than {ITEM_TEXT_BYTES_MAX} bytes")]
    ItemTooLong {
        /// Which.
        id: String,
        /// What is too long.
        what: &'static str,
    },
    /// One item, two verdicts.
    #[error("`{id}` is there twice; one verdict is enough")]
    RecordedTwice {
        /// Which.
        id: String,
    },
    /// Too much text.
    #[error(
        "the items of a review have at most {REVIEW_BYTES_MAX} bytes together; write findings to a file and name it"
    )]
    ReviewTooLong,
    /// A verdict that its own run contradicts.
    #[error("check `{name}` is not {status}: its command has ended with {exit}")]
    CheckContradicted {
        /// Which.
        name: String,
        /// The verdict that was given.
        status: ItemStatus,
        /// How the command has ended.
        exit: String,
    },
    /// No such check.
    #[error("gate `{gate}` has no check `{name}`{}", listed("; it has ", known))]
    NoSuchCheck {
        /// The gate.
        gate: StepId,
        /// What was given.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A check with a command has to be run.
    #[error("check `{name}` has a command (`{command}`): only a run of it counts")]
    CheckNeedsRun {
        /// Which.
        name: String,
        /// The command.
        command: String,
    },
    /// Too many questions, or too few options.
    #[error("{0}")]
    BadQuestions(String),
    /// The user was asked often enough.
    #[error(
        "the user was asked {ASKS_PER_VISIT_MAX} times during this step; decide with what is known"
    )]
    AskedOften,
    /// Answers are missing.
    #[error("not answered: {}", quoted(missing))]
    Unanswered {
        /// Which questions.
        missing: Vec<String>,
    },
    /// No such choice here.
    #[error("`{given}` is no choice here; possible: {}", possible.join(", "))]
    NoSuchChoice {
        /// What was chosen.
        given: String,
        /// What is possible.
        possible: Vec<String>,
    },
    /// What blocks cannot be accepted.
    #[error("this cannot be accepted: {}", quoted(blocking))]
    NotAcceptable {
        /// What blocks.
        blocking: Vec<String>,
    },
    /// A condition or a command cannot be worked out.
    #[error("{what} cannot be worked out: {error}")]
    Template {
        /// What.
        what: String,
        /// Why.
        error: TemplateError,
    },
}

fn other_turn(at: u32, now: u32) -> String {
    match at < now {
        true => format!("turn {at} is over, and was ended by another report"),
        false => format!("there was no turn {at} yet"),
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn listed(lead: &str, names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("{lead}{}", quoted(names)) }
}

fn how_to_set(names: &[String]) -> String {
    names.iter().map(|name| format!("`--set {name}=…`")).collect::<Vec<_>>().join(" ")
}

fn colon(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

fn outcomes(possible: &[Outcome]) -> String {
    possible.iter().map(Outcome::as_str).collect::<Vec<_>>().join(", ")
}

fn open(todo: &[String], checks: &[String]) -> String {
    match (todo.is_empty(), checks.is_empty()) {
        (true, true) => "nothing was recorded".to_owned(),
        (false, true) => format!("no verdict yet on {}", quoted(todo)),
        (true, false) => format!("no verdict yet of check {}", quoted(checks)),
        (false, false) => {
            format!("no verdict yet on {}, and of check {}", quoted(todo), quoted(checks))
        }
    }
}
