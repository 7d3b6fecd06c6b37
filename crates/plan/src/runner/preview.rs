//! The prompt of the next step, without running it.

use crate::document::{self, Choice};
use crate::limits::PLAN_BYTES_MAX;
use camino::Utf8Path;
use repertoire_journal::event::TaskRef;
use repertoire_text::fs;

use super::{DriveError, Station};
use crate::keeper;
use crate::learnings::Learnings;
use crate::limits::DIFF_BYTES_MAX;
use crate::prompt::{self, Assignment, Range, Surroundings};
use crate::request::PlanRequest;
use crate::skills;
use crate::state::{Kind, PlanState};
use repertoire_git::repo::DiffOf;

/// A prompt as it would be sent.
#[derive(Clone, Debug)]
pub struct Preview {
    /// `None` if the agent would choose a task.
    pub task: Option<TaskRef>,
    /// The names of the selected skills.
    pub skills: Vec<String>,
    /// The events that would be recorded.
    pub events: Vec<repertoire_journal::Payload>,
    /// The exact text of the prompt.
    pub text: String,
}

impl Preview {
    /// The prompt of the first step in a workspace, or of the first step of a kind, or of the step
    /// on `task`. By default, implemented tasks are reviewed before a new one is started.
    ///
    /// # Errors
    ///
    /// Fails if the plan cannot be read, or there is nothing to do.
    pub async fn of(
        workspace: &Utf8Path,
        station: &Station,
        request: &PlanRequest,
        kind: Option<Kind>,
        task: Option<&str>,
        learnings: &Learnings,
    ) -> Result<Self, DriveError> {
        let path = workspace.join(&request.plan);
        let text = fs::read_text(&path, PLAN_BYTES_MAX as u64).map_err(|error| {
            DriveError::Stopped(format!("the plan {path} cannot be read: {error}"))
        })?;
        let plan = document::parse(&text, &request.plan);
        let mut state = PlanState::default();
        state.apply(&keeper::first_read(&text, &request.plan));
        let is_backlog = request.review && task.is_none() && plan.backlog().next().is_some();
        let usual = if is_backlog { Kind::Review } else { Kind::Implementation };
        let kind = kind.unwrap_or(usual);
        let id = match (task, kind) {
            (Some(task), _) => Some(task.to_owned()),
            (None, Kind::Review) => plan.backlog().next().map(|task| task.id.as_str().to_owned()),
            (None, _) => match document::select_task(&plan) {
                Choice::Task(id) => Some(id.as_str().to_owned()),
                Choice::Nothing | Choice::Stuck { .. } => None,
            },
        };
        let reference = id.as_deref().and_then(|id| state.task_ref(id));
        if reference.is_none() && plan.fallback.is_none() {
            let what = match (task, kind) {
                (Some(task), _) => format!("{path} has no task `{task}`"),
                (None, Kind::Review) => format!("nothing in {path} waits for review"),
                (None, _) => format!("nothing in {path} is open and free to begin"),
            };
            return Err(DriveError::Stopped(what));
        }
        let assignment = Assignment::new(&plan, &state, request, reference.as_ref());
        let catalog = station.system.catalog();
        let selector = station.system.selector(&catalog);
        let chosen = skills::choose(&catalog, &selector, &assignment, kind, &request.skills);
        let (names, events) = (chosen.names.clone(), chosen.events.clone());
        let mut around = Surroundings::of(&state, request, chosen);
        around.has_learnings_file = workspace.join("LEARNINGS.md").is_file();
        around.learnings = learnings.read();
        let text = match kind {
            Kind::Review => {
                let range = as_it_stands(workspace, station).await?;
                prompt::review(request, &assignment, &range, &around)
            }
            _ => prompt::implementation(request, &assignment, &around),
        };
        Ok(Preview { task: reference, skills: names, events, text })
    }
}

async fn as_it_stands(workspace: &Utf8Path, station: &Station) -> Result<Range, DriveError> {
    let git = station.git(workspace);
    let head = git.head().await?;
    let of = DiffOf::Commits { from: head.clone(), to: head.clone() };
    let diff = git.diff(&of, DIFF_BYTES_MAX).await?;
    let name = head.as_str().to_owned();
    Ok(Range { base: name.clone(), head: name, diff: diff.text, is_cut: diff.cut })
}
