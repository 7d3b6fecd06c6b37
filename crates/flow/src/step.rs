//! The step model: everything that an agent is told at one point of a run, with templates filled in and commands made.
//! [`crate::render`] turns it into XML, text or JSON; it is the same in all three.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Checked;
use crate::state::{Answer, RunId, State, Status, UserQuestion, Waiting};
use crate::template::{Scope, TemplateError};
use crate::workflow::{
    Banner, DetectionQuestions, ExpectedOutput, IncorrectBehavior, ModelSelection, PostReview,
    ReportForm, Route, StepDef,
};

mod blocks;
mod command;
mod next;
mod review;
mod stateless;

pub use command::{Addressing, Command};
pub use review::{FindingsView, GateView, ItemView, ReviewView};
pub use stateless::{Flags, QrStatus, StatelessError, stateless};

/// The version of the step model, in every rendering.
pub const PROTOCOL: u32 = 1;

/// One step, as an agent is told it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepView {
    /// The version of this shape.
    pub protocol: u32,
    /// The workflow.
    pub workflow: String,
    /// The run; none in the stateless form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Whether the run goes on: `active`, `waiting`, `done` or `aborted`.
    pub status: String,
    /// The turn, which reports refer to.
    pub turn: u32,
    /// The number of the step, which starts at 1.
    pub step: usize,
    /// How many steps the workflow has.
    pub total: usize,
    /// The step's name.
    pub id: String,
    /// What people read.
    pub title: String,
    /// The title of the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Who does it, where it is not the agent that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// How often the step was entered.
    pub iteration: u32,
    /// What the gate says, on the step of a gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateView>,
    /// What is reviewed, on a step of a review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewView>,
    /// What is to be repaired, on the step that a failed gate leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings: Option<FindingsView>,
    /// What the user has answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
    /// What to do.
    pub actions: Vec<ViewBlock>,
    /// What has to be reported when the step is left.
    pub report: ReportView,
    /// What comes next.
    pub next: Next,
}

/// One part of what an agent is told, with nothing left to fill in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ViewBlock {
    /// Text.
    Text(String),
    /// Where the run stands.
    StateBanner(Banner),
    /// What must not be done.
    Forbidden(Vec<String>),
    /// What the answer looks like.
    ExpectedOutput(ExpectedOutput),
    /// What to do after which result.
    Routing(Vec<Route>),
    /// What the agent that asks for steps does after a review.
    PostQrRouting(PostReview),
    /// A text to work with.
    Resource(ResourceView),
    /// Things to look for.
    DetectionQuestions(DetectionQuestions),
    /// Things to make sure of.
    VerificationChecklist(Vec<crate::workflow::ChecklistItem>),
    /// An example of how it goes wrong.
    IncorrectBehavior(IncorrectBehavior),
    /// That the agent delegates.
    OrchestratorConstraint(String),
    /// Why criteria come first.
    FactoredVerification(String),
    /// How to ask.
    OpenQuestions(String),
    /// Which model does what.
    ModelSelection(ModelSelection),
    /// Work for sub-agents.
    Dispatch(DispatchView),
    /// How a reviewer's answer ends.
    QrReport(ReportForm),
}

/// A text to work with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceView {
    /// Its name.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub purpose: String,
    /// The text.
    pub text: String,
}

/// Work for sub-agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DispatchView {
    /// One sub-agent.
    Single(AgentView),
    /// Several at once; all have to be started, and all waited for.
    Parallel {
        /// How.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        instruction: String,
        /// What all of them are told.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        shared: String,
        /// The sub-agents.
        agents: Vec<AgentView>,
    },
    /// One of two, as the agent judges.
    Conditional {
        /// The condition.
        condition: String,
        /// If it holds.
        then: Box<DispatchView>,
        /// If not.
        #[serde(default, rename = "else", skip_serializing_if = "Option::is_none")]
        otherwise: Option<Box<DispatchView>>,
    },
    /// None, because there is nothing to hand out.
    None {
        /// Why.
        reason: String,
    },
}

/// What one sub-agent is told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentView {
    /// Its name among several.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The role.
    pub agent: String,
    /// The model, where it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The task.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task: String,
    /// Facts that are handed over, where there is no workflow that takes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<(String, String)>,
    /// How the sub-agent starts its workflow, which is the first thing that it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
    /// The files that it may change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// What it gives back.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub returns: String,
    /// How long that may be, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_tokens_max: Option<u32>,
}

/// What has to be reported when the step is left.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportView {
    /// Parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<SetView>,
    /// What is handed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// How sure the agent has to be for the run to go on, where it says so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<String>,
    /// Questions of fact: name, question, possible answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<FactView>,
}

/// A parameter that a step sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetView {
    /// Its name.
    pub name: String,
    /// What it takes.
    pub takes: String,
    /// What it means.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// A question of fact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactView {
    /// Its name.
    pub id: String,
    /// The question.
    pub ask: String,
    /// The possible answers.
    pub answers: Vec<String>,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// Nothing: the run is over.
    Complete {
        /// What to do now.
        message: String,
    },
    /// One way, or one of several by outcome.
    Ways {
        /// The ways.
        ways: Vec<Way>,
        /// If the step cannot be carried out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on_error: Option<Command>,
    },
    /// The gate cannot decide yet: something has to be recorded first.
    Record {
        /// What.
        message: String,
    },
    /// A person has to decide.
    Person {
        /// What about.
        about: String,
        /// What can be chosen, and what each means.
        choices: Vec<ChoiceView>,
        /// What is asked.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        questions: Vec<UserQuestion>,
        /// How the answers are given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<Command>,
    },
}

/// One way on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Way {
    /// The outcome; none where the engine finds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// When it is right.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub when: String,
    /// The number of the step that it leads to; none if it ends the workflow, or if that is not known yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<usize>,
    /// The title of that step.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// What to run.
    pub command: Command,
}

/// What a person can choose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChoiceView {
    /// The word for it.
    pub choice: String,
    /// What it means.
    pub meaning: String,
    /// What to run.
    pub command: Command,
}

/// A step cannot be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The run is at a step that the workflow has not.
    #[error("the workflow has no step `{0}`")]
    NoSuchStep(String),
    /// A text cannot be filled in.
    #[error("step `{step}`: {error}")]
    Template {
        /// The step.
        step: String,
        /// Why.
        error: TemplateError,
    },
}

/// What an agent is told at this point of a run.
pub fn view(
    checked: &Checked,
    state: &State,
    addressing: &Addressing,
) -> Result<StepView, ViewError> {
    let step =
        checked.step(&state.step).ok_or_else(|| ViewError::NoSuchStep(state.step.to_string()))?;
    build(checked, state, step, addressing)
        .map_err(|error| ViewError::Template { step: step.id.to_string(), error })
}

fn build(
    checked: &Checked,
    state: &State,
    step: &StepDef,
    addressing: &Addressing,
) -> Result<StepView, TemplateError> {
    let workflow = checked.workflow();
    let scope = Scope::new(state);
    let is_active = state.status == Status::Active;
    let phase = step.phase.as_ref().and_then(|id| workflow.phases.get(id)).cloned();
    let actions = match is_active {
        true => blocks::show(checked, state, step, &scope, addressing)?,
        false => Vec::new(),
    };
    Ok(StepView {
        protocol: PROTOCOL,
        workflow: workflow.name.clone(),
        run: addressing.is_run().then(|| state.run.clone()),
        status: status(&state.status).to_owned(),
        turn: state.turn,
        step: checked.number(&step.id).unwrap_or_default(),
        total: workflow.steps.len(),
        id: step.id.to_string(),
        title: step.title.clone(),
        phase,
        role: step.role.as_ref().map(|role| role.as_str().to_owned()),
        iteration: state.visit(),
        gate: review::gate(state, step, &scope)?,
        review: match &state.status {
            Status::Active | Status::Waiting(Waiting::Limit { .. }) => {
                review::review(checked, state, step, &scope, addressing)?
            }
            Status::Waiting(_) | Status::Done | Status::Aborted => None,
        },
        findings: match is_active {
            true => review::findings(checked, state, step),
            false => None,
        },
        answers: state.answers.clone(),
        actions,
        report: next::report(workflow, step),
        next: next::next(checked, state, step, addressing),
    })
}

fn status(status: &Status) -> &'static str {
    match status {
        Status::Active => "active",
        Status::Waiting(_) => "waiting",
        Status::Done => "done",
        Status::Aborted => "aborted",
    }
}
