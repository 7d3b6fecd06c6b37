//! Runs: lists, details, and commands from people.

mod order;
mod output;

use http::{Method, StatusCode};
use repertoire::runs::{
    self, DiffError, RunDiffJson, RunJson, RunRow, RunTask, TasksDone, events_of,
};
use repertoire_journal::{Event, Filter, JournalError, Run, RunStatus, Step};
use repertoire_plan::PlanState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Api, Call, Nothing, Page};
use crate::house::House;
use crate::http::problem::Problem;

const TAG: &str = "runs";

/// A filter for runs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct Which {
    /// Only runs with this status.
    status: Option<RunStatus>,
    /// Only runs of this kind, such as `plan`.
    kind: Option<String>,
    /// Only runs of the project that is served.
    here: Option<bool>,
}

/// The path of a run.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct RunPath {
    /// The id of the run, the start or end of it, its name, or `last`.
    pub(super) id: String,
}

/// The plan of a run, as recorded in the journal.
#[derive(Debug, Serialize, JsonSchema)]
struct RunPlan {
    /// The tasks, in the order of the plan.
    tasks: Vec<RunTask>,
    /// The number of tasks that are done; null if there are no tasks.
    done: Option<TasksDone>,
    /// The reason why the tasks of the plan cannot be determined, if so.
    fallback: Option<String>,
    /// Notes from people for the next prompt.
    steering: Vec<String>,
    /// Learnings of the run.
    learnings: Vec<String>,
}

pub(super) fn add(api: Api) -> Api {
    let ambiguous = "More than one run is called so.";
    let api = api
        .list("/api/v1/runs", TAG, "List runs, the newest first", list)
        .add(Method::GET, "/api/v1/runs/{id}", TAG, "Everything about a run", show)
        .refuses(StatusCode::CONFLICT, ambiguous)
        .list("/api/v1/runs/{id}/steps", TAG, "The steps of a run", steps)
        .refuses(StatusCode::CONFLICT, ambiguous)
        .list("/api/v1/runs/{id}/events", TAG, "What happened to a run, from its start", events)
        .refuses(StatusCode::CONFLICT, ambiguous)
        .add(Method::GET, "/api/v1/runs/{id}/plan", TAG, "How far the plan of a run is", plan)
        .refuses(StatusCode::CONFLICT, ambiguous)
        .add(Method::GET, "/api/v1/runs/{id}/diff", TAG, "What a run changed", diff)
        .refuses(StatusCode::CONFLICT, "What it changed cannot be told, or no run is meant alone.");
    order::add(output::add(api))
}

async fn list(call: Call<Nothing, Which>) -> Answer<Page<RunRow>> {
    let journal = call.house.journal().await.map_err(failed)?;
    journal.reap().await.map_err(failed)?;
    let before = match call.paging.cursor {
        None => None,
        Some(_) => Some(call.paging.start()? as u64),
    };
    let here = call.query.here.unwrap_or(false);
    let filter = Filter {
        statuses: call.query.status.into_iter().collect(),
        kind: call.query.kind,
        workspace: here.then(|| call.house.project().to_string()),
        limit: u32::try_from(call.paging.limit()?).unwrap_or(u32::MAX),
        before,
    };
    let page = runs::rows(journal, &filter, &mut 0).await.map_err(failed)?;
    Ok(Page { items: page.items, next: page.next.map(|next| next.to_string()), total: None })
}

async fn show(call: Call<RunPath>) -> Answer<RunJson> {
    let run = find(&call.house, &call.path).await?;
    let left_behind = call.house.left_behind(&run.id);
    RunJson::gather(call.house.journal().await.map_err(failed)?, run, &left_behind)
        .await
        .map_err(failed)
}

async fn steps(call: Call<RunPath>) -> Answer<Page<Step>> {
    let run = find(&call.house, &call.path).await?;
    let steps = call.house.journal().await.map_err(failed)?.steps(&run.id).await.map_err(failed)?;
    call.paging.cut(steps.into_iter())
}

async fn events(call: Call<RunPath>) -> Answer<Page<Event>> {
    let run = find(&call.house, &call.path).await?;
    let (after, limit) = (call.paging.start()? as u64, call.paging.limit()?);
    let most = u32::try_from(limit).unwrap_or(u32::MAX);
    let items = call
        .house
        .journal()
        .await
        .map_err(failed)?
        .events(&run.id, after, most)
        .await
        .map_err(failed)?;
    let last = items.last().map(|event| event.seq);
    let next = last.filter(|seq| *seq < run.seq).map(|seq| seq.to_string());
    Ok(Page { items, next, total: usize::try_from(run.seq).ok() })
}

async fn plan(call: Call<RunPath>) -> Answer<RunPlan> {
    let run = find(&call.house, &call.path).await?;
    let events =
        events_of(call.house.journal().await.map_err(failed)?, &run.id).await.map_err(failed)?;
    let state = PlanState::replay(&events);
    Ok(RunPlan {
        tasks: RunTask::all(&state),
        done: TasksDone::of(&state),
        fallback: state.fallback,
        steering: state.steering,
        learnings: state.learnings,
    })
}

async fn diff(call: Call<RunPath>) -> Answer<RunDiffJson> {
    let run = find(&call.house, &call.path).await?;
    let git = call.house.git(run.workspace.as_str().into());
    let left_behind = call.house.left_behind(&run.id);
    let found =
        runs::diff(call.house.journal().await.map_err(failed)?, &run, &git, &left_behind).await;
    found.map_err(|error| {
        let problem = Problem::new(StatusCode::CONFLICT, error.to_string());
        match error {
            DiffError::Nothing { .. } => problem.hint("It changes something in its first step."),
            DiffError::Gone { path, source, .. } => {
                problem.hint(format!("{path} cannot be read either: {source}."))
            }
            DiffError::Journal(error) => failed(error),
        }
    })
}

/// Finds the run with this id.
async fn find(house: &House, path: &RunPath) -> Answer<Run> {
    house.journal().await.map_err(failed)?.reap().await.map_err(failed)?;
    house.journal().await.map_err(failed)?.find(&path.id).await.map_err(failed)
}

/// Maps a journal error to a problem: not found, conflict, or internal error.
pub(super) fn failed(error: JournalError) -> Problem {
    let status = match &error {
        JournalError::NotFound { .. } => StatusCode::NOT_FOUND,
        JournalError::Ambiguous { .. }
        | JournalError::Refused { .. }
        | JournalError::Fenced { .. }
        | JournalError::Fold(_)
        | JournalError::TooLarge { .. } => StatusCode::CONFLICT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let problem = Problem::new(status, error.to_string());
    match error {
        JournalError::NotFound { .. } => problem.hint("`GET /api/v1/runs` lists them."),
        JournalError::Ambiguous { .. } => problem.hint("Name it by its whole id."),
        JournalError::Refused { .. } => problem.hint("The run itself says how far it is."),
        _ => problem,
    }
}
