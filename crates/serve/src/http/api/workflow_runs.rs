//! Runs of workflows: their state, the verdicts of their gates, and decisions of people.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use repertoire_flow::StepView;
use repertoire_flow::driver::events::offered_choices;
use repertoire_flow::driver::json_output::{
    GateJson, StatusJson, WorkflowRunListRow, default_gate,
};
use repertoire_flow::driver::operations::WorkflowOperationError;
use repertoire_flow::driver::{
    AnyWorkflowRun, ScriptRun, StoredWorkflowRun, WorkflowRunError, WorkflowRunListEntry,
};
use repertoire_flow::engine::compute_verdict;
use repertoire_flow::state::{GateReview, WaitReason, WorkflowRunStatus};
use repertoire_flow::step::{StepAddressing, build_view};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::runs::journal_problem;
use super::{ApiBuilder, ApiCall, ApiResult, ListPage, Nothing};
use crate::http::problem::HttpProblem;
use crate::serve_state::ServeState;

const TAG: &str = "workflows";

/// An entry of the list of runs; the run may be unreadable.
#[derive(Debug, Serialize, JsonSchema)]
struct WorkflowRunRow {
    /// The run.
    #[serde(flatten)]
    row: WorkflowRunListRow,
    /// The reason why the run cannot be read, if so; all other fields are empty then.
    broken: Option<String>,
}

/// A filter for runs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct WorkflowRunFilter {
    /// Only runs in this state.
    state: Option<WorkflowRunStateFilter>,
    /// Only runs of this workflow.
    workflow: Option<String>,
    /// Only runs of the project that is served.
    here: Option<bool>,
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum WorkflowRunStateFilter {
    /// Waiting for an agent.
    Active,
    /// Waiting for a person.
    Waiting,
    /// Complete.
    Done,
    /// Ended by a person.
    Aborted,
    /// The run cannot be read.
    Broken,
}

impl WorkflowRunStateFilter {
    fn as_str(self) -> &'static str {
        match self {
            WorkflowRunStateFilter::Active => "active",
            WorkflowRunStateFilter::Waiting => "waiting",
            WorkflowRunStateFilter::Done => "done",
            WorkflowRunStateFilter::Aborted => "aborted",
            WorkflowRunStateFilter::Broken => "broken",
        }
    }
}

/// The path of a run.
#[derive(Debug, Deserialize, JsonSchema)]
struct WorkflowRunPath {
    /// The id of the run, or a prefix of it.
    id: String,
}

/// The state of a run.
#[derive(Debug, Serialize, JsonSchema)]
struct WorkflowRunJson {
    /// The stored status.
    #[serde(flatten)]
    status: StatusJson,
    /// The current step, as an agent sees it; null if one of its templates cannot be rendered.
    view: Option<StepView>,
    /// The current verdict of the relevant gate; null if the workflow has none.
    gate: Option<GateJson>,
    /// The choices of a person, if the run waits for one.
    choices: Vec<String>,
}

/// A person's decision.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChoiceRequest {
    /// One of the `choices` of the run.
    choice: String,
    /// The reason, for the record.
    #[serde(default)]
    note: Option<String>,
}

/// A person's answers.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AnswersRequest {
    /// The answers, by question id.
    answers: BTreeMap<String, String>,
}

pub(super) fn add_endpoints(api: ApiBuilder) -> ApiBuilder {
    let no = "It makes no sense for the run as it is, or the run cannot be read.";
    api.list(
        "/api/v1/workflow-runs",
        TAG,
        "List runs of workflows, the latest first",
        list_workflow_runs,
    )
    .add(Method::GET, "/api/v1/workflow-runs/{id}", TAG, "Where a run is", show_workflow_run)
    .refuses(StatusCode::CONFLICT, no)
    .add(
        Method::POST,
        "/api/v1/workflow-runs/{id}/choice",
        TAG,
        "Decide how a run that has stopped goes on",
        decide_workflow_run,
    )
    .refuses(StatusCode::CONFLICT, no)
    .add(
        Method::POST,
        "/api/v1/workflow-runs/{id}/answers",
        TAG,
        "Answer what an agent has asked",
        answer_questions,
    )
    .refuses(StatusCode::CONFLICT, no)
}

async fn list_workflow_runs(
    call: ApiCall<Nothing, WorkflowRunFilter>,
) -> ApiResult<ListPage<WorkflowRunRow>> {
    let project = call.serve_state.project().to_string();
    let wants = |row: &WorkflowRunRow| {
        call.query.state.is_none_or(|state| row.row.state == state.as_str())
            && call.query.workflow.as_ref().is_none_or(|name| row.row.workflow == *name)
            && (!call.query.here.unwrap_or(false) || row.row.folder == project)
    };
    let runs = call.serve_state.workflow_runs().await.map_err(run_problem)?;
    let all = runs.list_runs().await.map_err(run_problem)?;
    let rows: Vec<WorkflowRunRow> =
        all.into_iter().map(workflow_run_row).filter(|row| wants(row)).collect();
    call.paging.cut_page(rows.into_iter())
}

fn workflow_run_row(listed: WorkflowRunListEntry) -> WorkflowRunRow {
    match listed {
        WorkflowRunListEntry::Run(row) => WorkflowRunRow { row: *row, broken: None },
        WorkflowRunListEntry::Broken { id, error } => {
            let row = WorkflowRunListRow {
                run: id,
                workflow: String::new(),
                state: "broken",
                step: String::new(),
                turn: 0,
                waiting_for: None,
                folder: String::new(),
                parent: None,
                begun_ms: 0,
                updated_ms: 0,
            };
            WorkflowRunRow { row, broken: Some(error.to_string()) }
        }
    }
}

async fn show_workflow_run(call: ApiCall<WorkflowRunPath>) -> ApiResult<WorkflowRunJson> {
    load_run(&call.serve_state, &call.path.id).await
}

async fn decide_workflow_run(
    call: ApiCall<WorkflowRunPath, Nothing, ChoiceRequest>,
) -> ApiResult<WorkflowRunJson> {
    let ChoiceRequest { choice, note } = call.body;
    let id = resolve_run(&call.serve_state, &call.path.id).await?;
    let cancel = CancellationToken::new();
    let note = note.unwrap_or_default();
    // Spawn a task, so that a client that disconnects does not abort a script half way.
    let serve_state = call.serve_state.clone();
    let run = id.clone();
    let decided = tokio::spawn(async move {
        let operations = serve_state.workflow_operations().await.map_err(run_problem)?;
        operations.apply_choice(&run, &choice, &note, &cancel).await.map_err(decision_problem)
    });
    let decided = decided.await.map_err(|error| {
        HttpProblem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("it was not decided: {error}"))
    });
    decided??;
    load_run(&call.serve_state, &id).await
}

async fn answer_questions(
    call: ApiCall<WorkflowRunPath, Nothing, AnswersRequest>,
) -> ApiResult<WorkflowRunJson> {
    let operations = call.serve_state.workflow_operations().await.map_err(run_problem)?;
    match operations.answer(&call.path.id, call.body.answers).await {
        Ok(run) => Ok(workflow_run_json(&run)),
        Err(WorkflowOperationError::Run(WorkflowRunError::OfScript { .. })) => {
            let detail = "a script asks no questions that can be answered here";
            Err(HttpProblem::new(StatusCode::CONFLICT, detail))
        }
        Err(error) => Err(decision_problem(error)),
    }
}

async fn resolve_run(serve_state: &ServeState, wanted: &str) -> ApiResult<String> {
    let runs = serve_state.workflow_runs().await.map_err(run_problem)?;
    runs.resolve_id(wanted).await.map_err(run_problem)
}

async fn load_run(serve_state: &ServeState, wanted: &str) -> ApiResult<WorkflowRunJson> {
    let runs = serve_state.workflow_runs().await.map_err(run_problem)?;
    match runs.open_any(wanted).await.map_err(run_problem)? {
        AnyWorkflowRun::Workflow(run) => Ok(workflow_run_json(&run)),
        AnyWorkflowRun::Script(run) => Ok(script_run_json(&run)),
    }
}

fn workflow_run_json(run: &StoredWorkflowRun) -> WorkflowRunJson {
    let none = GateReview::default();
    let gate = default_gate(run).map(|(step, gate)| {
        let review = run.state.reviews.get(&step.id).unwrap_or(&none);
        GateJson::new(run, &step.id, gate, review, &compute_verdict(gate, review))
    });
    let choices = match &run.state.status {
        WorkflowRunStatus::Waiting(waiting) => offered_choices(&run.workflow, waiting),
        _ => Vec::new(),
    };
    WorkflowRunJson {
        status: StatusJson::from_run(run),
        view: build_view(&run.workflow, &run.state, &StepAddressing::Run).ok(),
        gate,
        choices,
    }
}

/// The state of a script run. Scripts have a state of their own, of which only the position maps to a workflow's.
fn script_run_json(run: &ScriptRun) -> WorkflowRunJson {
    let is_waiting = run.status() == "waiting";
    let row = WorkflowRunListRow::of_script(run);
    let message = row.waiting_for.clone().unwrap_or_default();
    let status = StatusJson {
        status: match run.status() {
            "waiting" => WorkflowRunStatus::Waiting(WaitReason::Error { message }),
            "done" => WorkflowRunStatus::Done,
            "aborted" => WorkflowRunStatus::Aborted,
            _ => WorkflowRunStatus::Active,
        },
        run: row,
        parameters: BTreeMap::new(),
        visits: BTreeMap::new(),
        outputs: BTreeMap::new(),
        reviews: BTreeMap::new(),
        decisions: Vec::new(),
        history: Vec::new(),
        fingerprint: String::new(),
    };
    let choices = if is_waiting { vec!["continue".to_owned(), "abort".to_owned()] } else { vec![] };
    WorkflowRunJson { status, view: Some(run.view()), gate: None, choices }
}

/// Maps an error of the run store to a problem.
pub(super) fn run_problem(error: WorkflowRunError) -> HttpProblem {
    let error = match error {
        WorkflowRunError::Journal(error) => return journal_problem(error),
        error => error,
    };
    let status = match &error {
        WorkflowRunError::NotFound { .. } => StatusCode::NOT_FOUND,
        WorkflowRunError::Io { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::CONFLICT,
    };
    let problem = HttpProblem::new(status, error.to_string());
    match error {
        WorkflowRunError::NotFound { .. } | WorkflowRunError::Ambiguous { .. } => {
            problem.hint("`GET /api/v1/workflow-runs` lists them.")
        }
        WorkflowRunError::InUse { .. } => problem.hint("Try again in a moment."),
        WorkflowRunError::Refused(_) => problem.hint("The run itself says what can be done."),
        _ => problem,
    }
}

fn decision_problem(error: WorkflowOperationError) -> HttpProblem {
    match error {
        WorkflowOperationError::Run(error) => run_problem(error),
        WorkflowOperationError::NoChoice { .. } => {
            HttpProblem::new(StatusCode::CONFLICT, error.to_string())
                .hint("The run itself says what can be chosen.")
        }
        error => HttpProblem::new(StatusCode::CONFLICT, error.to_string()),
    }
}
