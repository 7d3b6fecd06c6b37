//! The workflow model: steps, the instructions of each, and where each outcome leads.
//!
//! The types are the file format: [`crate::file`] reads a `workflow.yaml` into them, its JSON Schema is generated from
//! them, and workflows built in Rust use them directly. Texts in a workflow are templates over parameters and state
//! (see [`crate::template`]).

use std::borrow::Borrow;
use std::fmt;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod block;
mod decide;
mod dispatch;
mod outcome;
mod parameter;
mod role;
mod routing;

pub use block::{
    ChecklistItem, DetectionQuestion, DetectionQuestions, ExpectedOutput, IncorrectBehavior,
    ModelSelection, PostReview, ReportForm, ResultRoute, StateBanner, StepBlock,
};
pub use decide::{
    ConfidenceLevel, ConfidenceLoop, ConfidenceQuestion, Decide, Gate, ItemSeverity, LoopBound,
    OutcomeCase, OutcomeCases, RepairAgent, ReverifyMode,
};
pub use dispatch::{
    ConditionalDispatch, ParallelDispatch, SubagentBrief, SubagentDispatch, TemplateDispatch,
};
pub use outcome::WorkflowOutcome;
pub use parameter::{BadParameterValue, ParameterType, WorkItem, WorkflowParameter};
pub(crate) use parameter::{SharedFile, find_shared_files};
pub use role::AgentRole;
pub use routing::{EdgeTarget, StepRouting};

/// The version of the file format that this crate reads and writes.
pub const FORMAT: u32 = 1;

/// A workflow: a graph of steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workflow {
    /// The version of the file format; 1 is the only one.
    #[serde(default = "format")]
    pub format: u32,
    /// The name; by default that of the skill whose folder the file is in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The purpose, in one sentence; by default the skill's description.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Values that are set when a run starts, or by a step that `sets` them.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub parameters: IndexMap<String, WorkflowParameter>,
    /// Roles of sub-agents besides the five built-in ones: name and description.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub roles: IndexMap<String, String>,
    /// Named stretches of the workflow, in order: id and title.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub phases: IndexMap<String, String>,
    /// Texts that steps inject by name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub resources: IndexMap<String, WorkflowResource>,
    /// Texts of conventions by name; filled in from the skill's `conventions/` folder, or the pack's.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub conventions: IndexMap<String, String>,
    /// Checks with a verdict of their own (tests, lint, build), which gates may require.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub checks: IndexMap<String, DeclaredCheck>,
    /// The first step; by default the first in the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<StepId>,
    /// The steps. Their numbers are their positions in this list, starting at 1.
    pub steps: Vec<StepDef>,
}

fn format() -> u32 {
    FORMAT
}

/// The id of a step: lower-case letters, digits, `-` and `_`.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct StepId(String);

/// A step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepDef {
    /// The id that edges refer to.
    pub id: StepId,
    /// The title shown to people.
    pub title: String,
    /// The phase the step belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The role that does the step, if it is not the agent that requests steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<AgentRole>,
    /// The instructions for the agent: texts and typed blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<StepBlock>,
    /// Parameters that the agent reports when it leaves the step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<String>,
    /// A description of the step's output. If set, the agent has to report an output to leave the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The way the outcome is determined.
    #[serde(default, skip_serializing_if = "Decide::is_reported")]
    pub decide: Decide,
    /// The outcomes that the agent may report, and when each applies; by default those that `next` names.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub outcomes: IndexMap<WorkflowOutcome, String>,
    /// The number of times the step may be entered before the run has to take another edge.
    #[serde(default, rename = "loop", skip_serializing_if = "Option::is_none")]
    pub bound: Option<LoopBound>,
    /// The step that each outcome leads to.
    pub next: StepRouting,
    /// The next step if this one could not be carried out; by default the run stops for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_error: Option<StepId>,
}

/// A text that steps inject by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowResource {
    /// The file in the skill's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The text itself, instead of a file; filled in when the file is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The purpose, for the agent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub purpose: String,
}

/// A check that a gate requires, whatever its schedule says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeclaredCheck {
    /// The command, as a template. If it is not empty, only a run of it by the engine counts; otherwise the verdict
    /// that the agent records counts.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// A file of the project, as a template, that has to exist and not be empty. The engine checks this itself,
    /// without running a command.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// A plan file of the project, as a template, that `rep plan check` has to accept. The engine checks this itself,
    /// without running a command.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub plan: String,
    /// A description of what the check proves.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

impl DeclaredCheck {
    /// The command, or an equivalent command for a built-in check, as a template. Empty if only the agent can give a
    /// verdict.
    pub fn command_template(&self) -> String {
        match (self.command.is_empty(), self.file.is_empty(), self.plan.is_empty()) {
            (false, _, _) => self.command.clone(),
            (true, false, _) => format!("test -s {}", self.file),
            (true, true, false) => format!("rep plan check {}", self.plan),
            (true, true, true) => String::new(),
        }
    }

    /// Returns true if the engine checks this itself, without running a command.
    pub fn is_built_in(&self) -> bool {
        self.command.is_empty() && !(self.file.is_empty() && self.plan.is_empty())
    }

    /// The path that a built-in check looks at, as a template.
    pub fn path_template(&self) -> &str {
        if self.file.is_empty() { &self.plan } else { &self.file }
    }
}

impl Default for Workflow {
    /// A workflow of the current format, without steps.
    fn default() -> Self {
        Workflow {
            format: FORMAT,
            name: String::new(),
            description: String::new(),
            parameters: IndexMap::new(),
            roles: IndexMap::new(),
            phases: IndexMap::new(),
            resources: IndexMap::new(),
            conventions: IndexMap::new(),
            checks: IndexMap::new(),
            entry: None,
            steps: Vec::new(),
        }
    }
}

impl Workflow {
    /// The id of the first step of a run.
    pub fn entry_step(&self) -> Option<&StepId> {
        self.entry.as_ref().or_else(|| self.steps.first().map(|step| &step.id))
    }

    /// Returns the step with this id.
    pub fn find_step(&self, id: &StepId) -> Option<&StepDef> {
        self.steps.iter().find(|step| step.id == *id)
    }

    /// Returns the number of a step, starting at 1.
    pub fn step_number(&self, id: &StepId) -> Option<usize> {
        self.steps.iter().position(|step| step.id == *id).map(|at| at + 1)
    }

    /// The gates with their steps.
    pub fn gates(&self) -> impl Iterator<Item = (&StepDef, &Gate)> {
        self.steps.iter().filter_map(|step| Some((step, step.decide.as_gate()?)))
    }
}

impl StepDef {
    /// Creates a step with only an id and a title, which ends the workflow.
    pub fn new(id: impl Into<StepId>, title: impl Into<String>) -> Self {
        StepDef {
            id: id.into(),
            title: title.into(),
            phase: None,
            role: None,
            actions: Vec::new(),
            sets: Vec::new(),
            output: None,
            decide: Decide::Reported,
            outcomes: IndexMap::new(),
            bound: None,
            next: StepRouting::Terminal,
            on_error: None,
        }
    }

    /// Adds a block of instructions.
    #[must_use]
    pub fn action(mut self, block: impl Into<StepBlock>) -> Self {
        self.actions.push(block.into());
        self
    }

    /// Sets where the outcomes lead.
    #[must_use]
    pub fn next(mut self, next: impl Into<StepRouting>) -> Self {
        self.next = next.into();
        self
    }

    /// All outcomes of the step, in display order.
    pub fn possible_outcomes(&self) -> Vec<WorkflowOutcome> {
        match &self.decide {
            Decide::Reported if !self.outcomes.is_empty() => {
                self.outcomes.keys().cloned().collect()
            }
            Decide::Reported => self.next.routed_outcomes(),
            Decide::Gate(_) => vec![WorkflowOutcome::Ok, WorkflowOutcome::Fail],
            Decide::Confidence(_) => vec![WorkflowOutcome::Ok, WorkflowOutcome::Iterate],
            Decide::Cases(cases) => cases.distinct_outcomes(),
        }
    }

    /// The dispatches among the step's actions.
    pub fn dispatches(&self) -> impl Iterator<Item = &SubagentDispatch> {
        self.actions.iter().filter_map(|block| match block {
            StepBlock::Dispatch(dispatch) => Some(dispatch),
            _ => None,
        })
    }
}

impl StepId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for StepId {
    fn from(id: &str) -> Self {
        StepId(id.to_owned())
    }
}

impl From<String> for StepId {
    fn from(id: String) -> Self {
        StepId(id)
    }
}

impl Borrow<str> for StepId {
    fn borrow(&self) -> &str {
        &self.0
    }
}
