//! The step model: the complete instructions for an agent at one point of a run, with templates rendered and commands
//! built. [`crate::render`] turns it into XML, text or JSON; the content is the same in all three.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::CheckedWorkflow;
use crate::state::{
    UserAnswer, UserQuestion, WaitReason, WorkflowRunId, WorkflowRunState, WorkflowRunStatus,
};
use crate::template::{TemplateError, TemplateScope};
use crate::workflow::{
    DetectionQuestions, ExpectedOutput, IncorrectBehavior, ModelSelection, PostReview, ReportForm,
    ResultRoute, StateBanner, StepDef,
};

mod blocks;
mod command;
mod next;
mod review;
mod stateless;

pub use command::{ShellCommand, StepAddressing};
pub use review::{FindingsView, GateView, ItemView, ReviewView};
pub use stateless::{QrStatus, StatelessError, StatelessFlags, stateless_view};

/// The version of the step model, part of every rendering.
pub const PROTOCOL: u32 = 1;

/// The instructions of a step for an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepView {
    /// The version of this format.
    pub protocol: u32,
    /// The name of the workflow.
    pub workflow: String,
    /// The id of the run; none in the stateless form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<WorkflowRunId>,
    /// The status of the run: `active`, `waiting`, `done` or `aborted`.
    pub status: String,
    /// The turn that reports refer to.
    pub turn: u32,
    /// The number of the step, starting at 1.
    pub step: usize,
    /// The number of steps of the workflow.
    pub total: usize,
    /// The id of the step.
    pub id: String,
    /// The title of the step.
    pub title: String,
    /// The title of the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The role that does the step, if it is not the requesting agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The number of times the step was entered.
    pub iteration: u32,
    /// The verdict of the gate, on the step of a gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateView>,
    /// The review, on a step of a review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewView>,
    /// The findings to repair, on the step that a failed gate leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings: Option<FindingsView>,
    /// The user's answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<UserAnswer>,
    /// The instructions.
    pub actions: Vec<ViewBlock>,
    /// The values to report when the step is left.
    pub report: ReportView,
    /// The possible continuations.
    pub next: NextStep,
}

/// A block of instructions, with all templates rendered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ViewBlock {
    /// Plain text.
    Text(String),
    /// The state of the run.
    StateBanner(StateBanner),
    /// Actions that are forbidden.
    Forbidden(Vec<String>),
    /// The expected form of the answer.
    ExpectedOutput(ExpectedOutput),
    /// The action for each result.
    Routing(Vec<ResultRoute>),
    /// Instructions for the orchestrating agent after a review.
    PostQrRouting(PostReview),
    /// A text to work with.
    Resource(ResourceView),
    /// Problems to look for.
    DetectionQuestions(DetectionQuestions),
    /// Criteria to verify.
    VerificationChecklist(Vec<crate::workflow::ChecklistItem>),
    /// An example of incorrect behaviour.
    IncorrectBehavior(IncorrectBehavior),
    /// The rule that the agent delegates the work.
    OrchestratorConstraint(String),
    /// The reason why criteria come first.
    FactoredVerification(String),
    /// Guidance for asking open questions.
    OpenQuestions(String),
    /// The model for each kind of work.
    ModelSelection(ModelSelection),
    /// Work for sub-agents.
    Dispatch(DispatchView),
    /// The form in which a reviewer ends its answer.
    QrReport(ReportForm),
}

/// A text to work with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceView {
    /// The name of the resource.
    pub name: String,
    /// The purpose of the resource.
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
    /// Several sub-agents at once; all have to be started, and all waited for.
    Parallel {
        /// Instructions for starting them.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        instruction: String,
        /// Context that all of them get.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        shared: String,
        /// The sub-agents.
        agents: Vec<AgentView>,
    },
    /// One of two dispatches, by the agent's judgement.
    Conditional {
        /// The condition.
        condition: String,
        /// The dispatch if the condition holds.
        then: Box<DispatchView>,
        /// The dispatch if it does not.
        #[serde(default, rename = "else", skip_serializing_if = "Option::is_none")]
        otherwise: Option<Box<DispatchView>>,
    },
    /// No sub-agent, because there is no work to dispatch.
    None {
        /// The reason.
        reason: String,
    },
}

/// The brief of a sub-agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentView {
    /// The id among several sub-agents.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The role.
    pub agent: String,
    /// The model, if a particular one is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The task.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task: String,
    /// Facts for the sub-agent, unless it has a workflow with parameters for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<(String, String)>,
    /// The command that starts the sub-agent's workflow, to be run before anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<ShellCommand>,
    /// The files it may change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// A description of what it returns.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub returns: String,
    /// The maximum length of its answer, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_tokens_max: Option<u32>,
}

/// The values to report when a step is left.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportView {
    /// Parameters to set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<SetView>,
    /// A description of the output to hand over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The confidence needed for the run to continue, if the agent reports it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<String>,
    /// Questions of fact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<FactView>,
}

/// A parameter that a step sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetView {
    /// The name of the parameter.
    pub name: String,
    /// A description of the values it accepts.
    pub takes: String,
    /// The meaning of the parameter.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// A question of fact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactView {
    /// The id of the question.
    pub id: String,
    /// The question.
    pub ask: String,
    /// The possible answers.
    pub answers: Vec<String>,
}

/// The continuation of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NextStep {
    /// The run is over.
    Complete {
        /// Closing instructions.
        message: String,
    },
    /// One way to continue, or several by outcome.
    Ways {
        /// The ways to continue.
        ways: Vec<NextStepOption>,
        /// The command to run if the step cannot be carried out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on_error: Option<ShellCommand>,
    },
    /// The gate cannot decide yet: items or checks have to be recorded first.
    Record {
        /// Instructions for recording.
        message: String,
    },
    /// A person has to decide.
    Person {
        /// The subject of the decision.
        about: String,
        /// The choices and their meanings.
        choices: Vec<ChoiceView>,
        /// The open questions.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        questions: Vec<UserQuestion>,
        /// The command that gives the answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<ShellCommand>,
    },
}

/// A way to continue after a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NextStepOption {
    /// The outcome; none if the engine computes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The condition for this outcome.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub when: String,
    /// The number of the next step; none if the workflow ends, or if the step is not known yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<usize>,
    /// The title of the next step.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The command to run.
    pub command: ShellCommand,
}

/// A choice that a person has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChoiceView {
    /// The keyword.
    pub choice: String,
    /// The meaning.
    pub meaning: String,
    /// The command to run.
    pub command: ShellCommand,
}

/// The reason why a step cannot be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The current step of the run does not exist in the workflow.
    #[error("the workflow has no step `{0}`")]
    NoSuchStep(String),
    #[error("step `{step}`: {error}")]
    Template { step: String, error: TemplateError },
}

/// Builds the instructions for an agent at the current point of a run.
pub fn build_view(
    checked: &CheckedWorkflow,
    state: &WorkflowRunState,
    addressing: &StepAddressing,
) -> Result<StepView, ViewError> {
    let step = checked
        .find_step(&state.step)
        .ok_or_else(|| ViewError::NoSuchStep(state.step.to_string()))?;
    build_step_view(checked, state, step, addressing)
        .map_err(|error| ViewError::Template { step: step.id.to_string(), error })
}

fn build_step_view(
    checked: &CheckedWorkflow,
    state: &WorkflowRunState,
    step: &StepDef,
    addressing: &StepAddressing,
) -> Result<StepView, TemplateError> {
    let workflow = checked.workflow();
    let scope = TemplateScope::new(state);
    let is_active = state.status == WorkflowRunStatus::Active;
    let phase = step.phase.as_ref().and_then(|id| workflow.phases.get(id)).cloned();
    let actions = if is_active {
        blocks::render_blocks(checked, state, step, &scope, addressing)?
    } else {
        Vec::new()
    };
    Ok(StepView {
        protocol: PROTOCOL,
        workflow: workflow.name.clone(),
        run: addressing.is_run().then(|| state.run.clone()),
        status: status_word(&state.status).to_owned(),
        turn: state.turn,
        step: checked.step_number(&step.id).unwrap_or_default(),
        total: workflow.steps.len(),
        id: step.id.to_string(),
        title: step.title.clone(),
        phase,
        role: step.role.as_ref().map(|role| role.as_str().to_owned()),
        iteration: state.visit_count(),
        gate: review::gate_view(checked, state, step, &scope)?,
        review: match &state.status {
            WorkflowRunStatus::Active | WorkflowRunStatus::Waiting(WaitReason::Limit { .. }) => {
                review::review_view(checked, state, step, &scope, addressing)?
            }
            WorkflowRunStatus::Waiting(_)
            | WorkflowRunStatus::Done
            | WorkflowRunStatus::Aborted => None,
        },
        findings: if is_active { review::findings_view(checked, state, step) } else { None },
        answers: state.answers.clone(),
        actions,
        report: next::report_view(workflow, step),
        next: next::next_step(checked, state, step, addressing),
    })
}

fn status_word(status: &WorkflowRunStatus) -> &'static str {
    match status {
        WorkflowRunStatus::Active => "active",
        WorkflowRunStatus::Waiting(_) => "waiting",
        WorkflowRunStatus::Done => "done",
        WorkflowRunStatus::Aborted => "aborted",
    }
}
