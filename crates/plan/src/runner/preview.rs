//! The prompt of the next step, without running it.

use crate::document::{self, TaskChoice};
use crate::limits::PLAN_BYTES_MAX;
use camino::Utf8Path;
use repertoire_journal::event::TaskRef;
use repertoire_text::fs;

use super::{DriveError, PlanAgentSetup};
use crate::learnings::LearningsFile;
use crate::limits::DIFF_BYTES_MAX;
use crate::plan_sync;
use crate::prompt::{self, PlanPromptContext, PlanReviewRange, TaskAssignment};
use crate::request::PlanRequest;
use crate::skills;
use crate::state::{PlanState, PlanStepKind};
use repertoire_git::repo::DiffTarget;

/// A prompt as it would be sent.
#[derive(Clone, Debug)]
pub struct PlanPromptPreview {
    /// `None` if the agent would choose a task.
    pub task: Option<TaskRef>,
    /// The names of the selected skills.
    pub skills: Vec<String>,
    /// The events that would be recorded.
    pub events: Vec<repertoire_journal::Payload>,
    /// The exact text of the prompt.
    pub text: String,
}

impl PlanPromptPreview {
    /// The prompt of the first step in a workspace, or of the first step of a kind, or of the step
    /// on `task`. By default, implemented tasks are reviewed before a new one is started.
    ///
    /// # Errors
    ///
    /// Fails if the plan cannot be read, or there is nothing to do.
    pub async fn build(
        workspace: &Utf8Path,
        agent_setup: &PlanAgentSetup,
        request: &PlanRequest,
        kind: Option<PlanStepKind>,
        task: Option<&str>,
        learnings: &LearningsFile,
    ) -> Result<Self, DriveError> {
        let path = workspace.join(&request.plan);
        let text = fs::read_text(&path, PLAN_BYTES_MAX as u64).map_err(|error| {
            DriveError::Stopped(format!("the plan {path} cannot be read: {error}"))
        })?;
        let plan = document::parse_plan(&text, &request.plan);
        let mut state = PlanState::default();
        state.apply(&plan_sync::first_read(&text, &request.plan));
        let is_backlog = request.review && task.is_none() && plan.review_backlog().next().is_some();
        let usual = if is_backlog { PlanStepKind::Review } else { PlanStepKind::Implementation };
        let kind = kind.unwrap_or(usual);
        let id = match (task, kind) {
            (Some(task), _) => Some(task.to_owned()),
            (None, PlanStepKind::Review) => {
                plan.review_backlog().next().map(|task| task.id.as_str().to_owned())
            }
            (None, _) => match document::select_task(&plan) {
                TaskChoice::Task(id) => Some(id.as_str().to_owned()),
                TaskChoice::Nothing | TaskChoice::Stuck { .. } => None,
            },
        };
        let reference = id.as_deref().and_then(|id| state.task_ref(id));
        if reference.is_none() && plan.fallback.is_none() {
            let what = match (task, kind) {
                (Some(task), _) => format!("{path} has no task `{task}`"),
                (None, PlanStepKind::Review) => format!("nothing in {path} waits for review"),
                (None, _) => format!("nothing in {path} is open and free to begin"),
            };
            return Err(DriveError::Stopped(what));
        }
        let assignment = TaskAssignment::new(&plan, &state, request, reference.as_ref());
        let catalog = agent_setup.system.catalog();
        let selector = agent_setup.system.selector(&catalog);
        let chosen = skills::choose_skills(&catalog, &selector, &assignment, kind, &request.skills);
        let (names, events) = (chosen.names.clone(), chosen.events.clone());
        let mut around = PlanPromptContext::from_state(&state, request, chosen);
        around.has_learnings_file = workspace.join("LEARNINGS.md").is_file();
        around.learnings = learnings.read();
        let text = match kind {
            PlanStepKind::Review => {
                let range = current_range(workspace, agent_setup).await?;
                prompt::review_prompt(request, &assignment, &range, &around)
            }
            _ => prompt::implementation_prompt(request, &assignment, &around),
        };
        Ok(PlanPromptPreview { task: reference, skills: names, events, text })
    }
}

async fn current_range(
    workspace: &Utf8Path,
    agent_setup: &PlanAgentSetup,
) -> Result<PlanReviewRange, DriveError> {
    let git = agent_setup.git_in(workspace);
    let head = git.head_commit().await?;
    let of = DiffTarget::Commits { from: head.clone(), to: head.clone() };
    let diff = git.diff(&of, DIFF_BYTES_MAX).await?;
    let name = head.as_str().to_owned();
    Ok(PlanReviewRange { base: name.clone(), head: name, diff: diff.text, is_cut: diff.cut })
}
