//! A workflow run as it was read from the journal.

use camino::Utf8PathBuf;

use super::ScriptRun;
use crate::check::CheckedWorkflow;
use crate::state::{WorkflowRunId, WorkflowRunState};
use crate::step::{StepAddressing, StepView, ViewError, build_view};

/// A stored run, of a workflow file or of a script.
#[derive(Clone, Debug)]
pub enum AnyWorkflowRun {
    Workflow(Box<StoredWorkflowRun>),
    Script(Box<ScriptRun>),
}

/// A stored run of a workflow file.
#[derive(Clone, Debug)]
pub struct StoredWorkflowRun {
    pub head: WorkflowRunMetadata,
    /// The workflow the run was started with.
    pub workflow: CheckedWorkflow,
    pub state: WorkflowRunState,
    /// The number of its last event.
    pub(super) seq: u64,
}

/// The metadata of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkflowRunMetadata {
    /// The time it was started, in milliseconds since 1970.
    pub begun_ms: u64,
    /// The time of the last change, in milliseconds since 1970.
    pub updated_ms: u64,
    /// The project it was started in.
    pub folder: Utf8PathBuf,
    /// The run whose sub-agent started it.
    pub parent: Option<String>,
    /// True if the skill was trusted when the run was started, so that its commands may be run.
    pub trusted: bool,
}

impl AnyWorkflowRun {
    pub fn id(&self) -> &WorkflowRunId {
        match self {
            AnyWorkflowRun::Workflow(run) => &run.state.run,
            AnyWorkflowRun::Script(run) => &run.run,
        }
    }

    /// Renders the current step for an agent.
    ///
    /// # Errors
    ///
    /// If a template of the step cannot be filled.
    pub fn render_step(&self) -> Result<StepView, ViewError> {
        match self {
            AnyWorkflowRun::Workflow(run) => {
                build_view(&run.workflow, &run.state, &StepAddressing::Run)
            }
            AnyWorkflowRun::Script(run) => Ok(run.view()),
        }
    }
}
