//! The engine's refusals, each with what is possible instead.

use crate::limits::{
    ASKS_PER_VISIT_MAX, ITEM_TEXT_BYTES_MAX, ITEMS_MAX, NOTE_BYTES_MAX, OUTPUT_BYTES_MAX,
    REVIEW_BYTES_MAX,
};
use crate::state::ItemStatus;
use crate::template::TemplateError;
use crate::workflow::{ItemSeverity, StepId, WorkflowOutcome};

/// The reason why the engine refuses a report. The run is unchanged.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EngineRefusal {
    #[error("the workflow has no steps")]
    NoSteps,
    #[error("this is not the workflow that the run was started with")]
    OtherWorkflow,
    #[error("the run is over ({how})")]
    Over { how: &'static str },
    #[error("the run waits for a person: {what}")]
    WaitsForPerson { what: String },
    #[error("the run waits for no such decision")]
    NotWaiting,
    #[error("{}; the run is at turn {now}, step `{step}`", other_turn(*at, *now))]
    OtherTurn {
        /// The turn in the report.
        at: u32,
        /// The run's current turn.
        now: u32,
        /// The run's current step.
        step: StepId,
    },
    #[error("there is no parameter `{name}`{}", listed("; there are ", known))]
    UnknownParameter { name: String, known: Vec<String> },
    #[error("parameter `{name}` is needed{}", colon(description))]
    MissingParameter { name: String, description: String },
    #[error("parameter `{name}`: {reason}")]
    BadValue { name: String, reason: String },
    /// The step was left without a value for the parameters it sets.
    #[error("step `{step}` sets {}; report {}", quoted(names), how_to_set(names))]
    NotSet { step: StepId, names: Vec<String> },
    #[error("step `{step}` does not set `{name}`")]
    NotItsParameter { step: StepId, name: String },
    /// The step was left without the output it has to hand over.
    #[error("step `{step}` hands over an output: {what}")]
    NoOutput {
        step: StepId,
        /// A description of the output.
        what: String,
    },
    #[error(
        "the output has {bytes} bytes, and {OUTPUT_BYTES_MAX} is the limit; hand over a path instead"
    )]
    OutputTooLong { bytes: usize },
    #[error("say how step `{step}` ended: {}", outcomes(possible))]
    OutcomeNeeded { step: StepId, possible: Vec<WorkflowOutcome> },
    #[error("step `{step}` cannot end with `{given}`; possible: {}", outcomes(possible))]
    NoSuchOutcome { step: StepId, given: WorkflowOutcome, possible: Vec<WorkflowOutcome> },
    /// The engine computes the outcome, and the report names a different one.
    #[error("the outcome of step `{step}` is computed, and is `{computed}`, not `{given}`")]
    Computed { step: StepId, given: WorkflowOutcome, computed: WorkflowOutcome },
    #[error("say how sure you are: exploring, low, medium, high or certain")]
    ConfidenceNeeded,
    #[error("answer {} with yes, partial or no", quoted(missing))]
    FactsNeeded { missing: Vec<String> },
    #[error("`{answer}` is no answer to `{id}`; possible: {possible}")]
    BadFact { id: String, answer: String, possible: &'static str },
    #[error("step `{step}` does not ask {what}")]
    NotAsked { step: StepId, what: String },
    #[error("{what} has {bytes} bytes, and {NOTE_BYTES_MAX} is the limit")]
    TooLong { what: &'static str, bytes: usize },
    /// The gate has items or checks without a verdict.
    #[error("gate `{gate}` is open: {}", open(todo, checks))]
    GateOpen {
        gate: StepId,
        /// Items without a verdict.
        todo: Vec<String>,
        /// Checks without a verdict.
        checks: Vec<String>,
    },
    /// The current step is not a review, so it cannot record anything.
    #[error("nothing is recorded during step `{step}`{}", listed("; reviews are ", reviews))]
    NoReview {
        step: StepId,
        /// The steps during which items are recorded.
        reviews: Vec<String>,
    },
    #[error("there is no gate `{gate}`")]
    NoSuchGate { gate: StepId },
    #[error(
        "`{id}` is no name: use letters, digits, `.`, `_` and `-`, at most {} of them",
        crate::limits::ID_BYTES_MAX
    )]
    BadId {
        /// Shortened.
        id: String,
    },
    #[error("item `{id}` is new: give its check and its severity (MUST, SHOULD or COULD)")]
    IncompleteItem { id: String },
    #[error("item `{id}` fails: give the finding")]
    FindingNeeded { id: String },
    /// The report would change the meaning of a recorded item.
    #[error("item `{id}` is recorded already, with another {what}; record a new one instead")]
    ItemChanged {
        id: String,
        /// The field that would change.
        what: &'static str,
    },
    /// The severity of an item can only rise.
    #[error("item `{id}` is {from}, and does not become {to}")]
    SeverityLowered { id: String, from: ItemSeverity, to: ItemSeverity },
    /// A failed item can pass only after a repair, in the next iteration.
    #[error("item `{id}` has failed in this iteration; it can pass in the next, after the repair")]
    FailStands { id: String },
    #[error("a review has at most {ITEMS_MAX} items")]
    TooManyItems,
    #[error("{what} of item `{id}` is longer than {ITEM_TEXT_BYTES_MAX} bytes")]
    ItemTooLong {
        id: String,
        /// The field that is too long.
        what: &'static str,
    },
    /// The report has two verdicts for one item or check.
    #[error("`{id}` is there twice; one verdict is enough")]
    RecordedTwice { id: String },
    #[error(
        "the items of a review have at most {REVIEW_BYTES_MAX} bytes together; write findings to a file and name it"
    )]
    ReviewTooLong,
    /// The reported verdict contradicts the exit code of the command.
    #[error("check `{name}` is not {status}: its command has ended with {exit}")]
    CheckContradicted {
        name: String,
        status: ItemStatus,
        /// The exit code, or the signal that ended the command.
        exit: String,
    },
    #[error("gate `{gate}` has no check `{name}`{}", listed("; it has ", known))]
    NoSuchCheck { gate: StepId, name: String, known: Vec<String> },
    #[error("check `{name}` has a command (`{command}`): only a run of it counts")]
    CheckNeedsRun { name: String, command: String },
    #[error("{0}")]
    BadQuestions(String),
    #[error(
        "the user was asked {ASKS_PER_VISIT_MAX} times during this step; decide with what is known"
    )]
    AskedOften,
    #[error("not answered: {}", quoted(missing))]
    Unanswered { missing: Vec<String> },
    #[error("`{given}` is no choice here; possible: {}", possible.join(", "))]
    NoSuchChoice { given: String, possible: Vec<String> },
    #[error("this cannot be accepted: {}", quoted(blocking))]
    NotAcceptable { blocking: Vec<String> },
    #[error("{what} cannot be worked out: {error}")]
    Template {
        /// The condition or command.
        what: String,
        error: TemplateError,
    },
}

fn other_turn(at: u32, now: u32) -> String {
    if at < now {
        format!("turn {at} is over, and was ended by another report")
    } else {
        format!("there was no turn {at} yet")
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

fn outcomes(possible: &[WorkflowOutcome]) -> String {
    possible.iter().map(WorkflowOutcome::as_str).collect::<Vec<_>>().join(", ")
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
