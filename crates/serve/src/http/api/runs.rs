//! Runs: lists, details, and commands from people.

mod commands;
mod output;

use http::{Method, StatusCode};
use repertoire::runs::{
    self, RunDiffError, RunDiffJson, RunJson, RunListRow, RunTask, TasksDone, events_of,
};
use repertoire_journal::{DamagedRow, Event, Filter, JournalError, Run, RunKind, RunStatus, Step};
use repertoire_plan::PlanState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApiBuilder, ApiCall, ApiResult, ListPage, Nothing};
use crate::http::problem::HttpProblem;
use crate::serve_state::ServeState;

const TAG: &str = "runs";

/// A filter for runs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct RunFilter {
    /// Only runs with this status.
    status: Option<RunStatus>,
    /// Only runs of this kind.
    kind: Option<RunKind>,
    /// Only runs of the project that is served.
    here: Option<bool>,
}

/// The path of a run.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct RunIdPath {
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

pub(super) fn add_endpoints(api: ApiBuilder) -> ApiBuilder {
    let ambiguous = "More than one run is called so.";
    let api = api
        .list("/api/v1/runs", TAG, "List runs, the newest first", list_runs)
        .add(Method::GET, "/api/v1/runs/{id}", TAG, "Everything about a run", show_run)
        .refuses(StatusCode::CONFLICT, ambiguous)
        .list("/api/v1/runs/{id}/steps", TAG, "The steps of a run", list_run_steps)
        .refuses(StatusCode::CONFLICT, ambiguous)
        .list(
            "/api/v1/runs/{id}/events",
            TAG,
            "What happened to a run, from its start",
            list_run_events,
        )
        .refuses(StatusCode::CONFLICT, ambiguous)
        .add(
            Method::GET,
            "/api/v1/runs/{id}/plan",
            TAG,
            "How far the plan of a run is",
            show_run_plan,
        )
        .refuses(StatusCode::CONFLICT, ambiguous)
        .add(Method::GET, "/api/v1/runs/{id}/diff", TAG, "What a run changed", show_run_diff)
        .refuses(StatusCode::CONFLICT, "What it changed cannot be told, or no run is meant alone.");
    commands::add_endpoints(output::add_endpoints(api))
}

/// A page of the list of runs.
#[derive(Debug, Serialize, JsonSchema)]
struct RunListPage {
    /// The runs, the newest first.
    items: Vec<RunListRow>,
    /// Runs of this page that cannot be read. `rep runs replay --verify` names what is damaged, and
    /// `rep runs rm --force` removes such a run.
    damaged: Vec<DamagedRow>,
    /// The `cursor` of the next page; none on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

async fn list_runs(call: ApiCall<Nothing, RunFilter>) -> ApiResult<RunListPage> {
    let journal = call.serve_state.journal().await.map_err(journal_problem)?;
    journal.requeue_expired().await.map_err(journal_problem)?;
    let before = match call.paging.cursor {
        None => None,
        Some(_) => Some(call.paging.start()? as u64),
    };
    let kind = call.query.kind.map(|kind| kind.to_string());
    let here = call.query.here.unwrap_or(false);
    let filter = Filter {
        statuses: call.query.status.into_iter().collect(),
        kind,
        workspace: here.then(|| call.serve_state.project().to_string()),
        limit: u32::try_from(call.paging.page_limit()?).unwrap_or(u32::MAX),
        before,
    };
    let folder = call.serve_state.runs_dir();
    let page = runs::rows(journal, &folder, &filter, &mut 0).await.map_err(journal_problem)?;
    let next = page.next.map(|next| next.to_string());
    Ok(RunListPage { items: page.items, damaged: page.damaged, next })
}

async fn show_run(call: ApiCall<RunIdPath>) -> ApiResult<RunJson> {
    let run = find_run(&call.serve_state, &call.path).await?;
    let journal = call.serve_state.journal().await.map_err(journal_problem)?;
    RunJson::gather(journal, run, &call.serve_state.runs_dir()).await.map_err(journal_problem)
}

async fn list_run_steps(call: ApiCall<RunIdPath>) -> ApiResult<ListPage<Step>> {
    let run = find_run(&call.serve_state, &call.path).await?;
    let steps = call
        .serve_state
        .journal()
        .await
        .map_err(journal_problem)?
        .steps(&run.id)
        .await
        .map_err(journal_problem)?;
    call.paging.cut_page(steps.into_iter())
}

async fn list_run_events(call: ApiCall<RunIdPath>) -> ApiResult<ListPage<Event>> {
    let run = find_run(&call.serve_state, &call.path).await?;
    let (after, limit) = (call.paging.start()? as u64, call.paging.page_limit()?);
    let most = u32::try_from(limit).unwrap_or(u32::MAX);
    let items = call
        .serve_state
        .journal()
        .await
        .map_err(journal_problem)?
        .events(&run.id, after, most)
        .await
        .map_err(journal_problem)?;
    let last = items.last().map(|event| event.seq);
    let next = last.filter(|seq| *seq < run.seq).map(|seq| seq.to_string());
    Ok(ListPage { items, next, total: usize::try_from(run.seq).ok() })
}

async fn show_run_plan(call: ApiCall<RunIdPath>) -> ApiResult<RunPlan> {
    let run = find_run(&call.serve_state, &call.path).await?;
    let events = events_of(call.serve_state.journal().await.map_err(journal_problem)?, &run.id)
        .await
        .map_err(journal_problem)?;
    let state = PlanState::replay(&events);
    Ok(RunPlan {
        tasks: RunTask::from_state(&state),
        done: TasksDone::from_state(&state),
        fallback: state.fallback,
        steering: state.steering,
        learnings: state.learnings,
    })
}

async fn show_run_diff(call: ApiCall<RunIdPath>) -> ApiResult<RunDiffJson> {
    let run = find_run(&call.serve_state, &call.path).await?;
    let git = call.serve_state.git_in(run.workspace.as_str().into());
    let left_behind = call.serve_state.run_output_dir(&run.id);
    let found = runs::run_diff(
        call.serve_state.journal().await.map_err(journal_problem)?,
        &run,
        &git,
        &left_behind,
    )
    .await;
    found.map_err(|error| {
        let problem = HttpProblem::new(StatusCode::CONFLICT, error.to_string());
        match error {
            RunDiffError::Nothing { .. } => problem.hint("It changes something in its first step."),
            RunDiffError::Gone { path, source, .. } => {
                problem.hint(format!("{path} cannot be read either: {source}."))
            }
            RunDiffError::Journal(error) => journal_problem(error),
        }
    })
}

/// Finds the run with this id.
async fn find_run(serve_state: &ServeState, path: &RunIdPath) -> ApiResult<Run> {
    serve_state
        .journal()
        .await
        .map_err(journal_problem)?
        .requeue_expired()
        .await
        .map_err(journal_problem)?;
    serve_state
        .journal()
        .await
        .map_err(journal_problem)?
        .find_run(&path.id)
        .await
        .map_err(journal_problem)
}

/// Maps a journal error to a problem: not found, conflict, or internal error.
pub(super) fn journal_problem(error: JournalError) -> HttpProblem {
    let status = match &error {
        JournalError::NotFound { .. } => StatusCode::NOT_FOUND,
        JournalError::Ambiguous { .. }
        | JournalError::Refused { .. }
        | JournalError::Fenced { .. }
        | JournalError::Fold(_)
        | JournalError::TooLarge { .. } => StatusCode::CONFLICT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let problem = HttpProblem::new(status, error.to_string());
    match error {
        JournalError::NotFound { .. } => problem.hint("`GET /api/v1/runs` lists them."),
        JournalError::Ambiguous { .. } => problem.hint("Name it by its whole id."),
        JournalError::Refused { .. } => problem.hint("The run itself says how far it is."),
        _ => problem,
    }
}
